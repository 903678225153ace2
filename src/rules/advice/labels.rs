//! Labels that alerts can have, held against the matchers of routes, inhibitions and silences: one that nothing can answer to is a slip.

use std::collections::{BTreeMap, BTreeSet};

use model::{Labels, Matcher, SOURCE_TROUBLE, Token, closest};

use crate::{on::On, rule::Rule, set::RuleSet, template::Template};

use super::tokens::token_hint;

/// Values that one hint names.
const MAX_NAMED: usize = 8;

/// The labels that alerts can have: of each rule, and of what this program tells of itself.
#[derive(Clone, Debug)]
pub struct LabelFacts<'a> {
    alerts: Vec<AlertLabels>,
    listed: &'a [Token],
}

/// The labels of the alerts of one rule.
type AlertLabels = BTreeMap<String, LabelValues>;

#[derive(Clone, Debug, Default)]
struct LabelValues {
    /// The values that it can have; none where any may come.
    values: Option<BTreeSet<String>>,
    /// Whether an alert may be without it.
    may_lack: bool,
}

impl LabelValues {
    fn of(values: impl IntoIterator<Item = String>) -> Self {
        Self { values: Some(values.into_iter().collect()), may_lack: false }
    }

    fn answers(&self, matcher: &Matcher) -> bool {
        let holds = |value: &String| matcher.matches(&Labels::from([(matcher.label().to_owned(), value.clone())]));
        (self.may_lack && matcher.takes_empty()) || self.values.as_ref().is_none_or(|values| values.iter().any(holds))
    }
}

/// Why no alert can be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelProblem {
    /// Which of the matchers is to blame; none where it is all of them together.
    pub matcher: Option<usize>,
    pub message: String,
    pub help: String,
}

impl<'a> LabelFacts<'a> {
    /// The labels that alerts of these rules can have. `listed` are all tokens that are known; where there are none, any token may come.
    pub fn of(set: &RuleSet, listed: &'a [Token]) -> Self {
        let mut alerts: Vec<AlertLabels> = set.rules.iter().map(|rule| of_rule(rule, listed)).collect();
        alerts.push(of_source(set, listed));
        Self { alerts, listed }
    }

    /// Whether some alert can have the label.
    pub fn has(&self, label: &str) -> bool {
        self.alerts.iter().any(|labels| labels.contains_key(label))
    }

    /// What was probably meant by a label that no alert has.
    pub fn label_hint(&self, label: &str) -> String {
        let names: BTreeSet<&str> = self.alerts.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
        match closest(label, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("labels are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Why these matchers together take no alert that can come; none where they may take one.
    pub fn problem(&self, matchers: &[Matcher]) -> Option<LabelProblem> {
        let answers = |labels: &AlertLabels, matcher: &Matcher| match labels.get(matcher.label()) {
            Some(values) => values.answers(matcher),
            None => matcher.takes_empty(),
        };
        if self.alerts.iter().any(|labels| matchers.iter().all(|matcher| answers(labels, matcher))) {
            return None;
        }
        let alone = matchers.iter().position(|matcher| !self.alerts.iter().any(|labels| answers(labels, matcher)));
        let Some((at, matcher)) = alone.and_then(|at| Some((at, matchers.get(at)?))) else {
            return Some(LabelProblem {
                matcher: None,
                message: "no rule sets all of these labels together".to_owned(),
                help: "each matcher takes alerts of some rule, but no rule answers to all of them".to_owned(),
            });
        };
        let label = matcher.label();
        let (message, help) = if self.has(label) {
            (format!("no alert can have {matcher}"), self.value_hint(matcher))
        } else {
            (format!("no rule sets the label `{label}`"), self.label_hint(label))
        };
        Some(LabelProblem { matcher: Some(at), message, help })
    }

    fn value_hint(&self, matcher: &Matcher) -> String {
        let label = matcher.label();
        let wanted = matcher.wanted().unwrap_or_default();
        if label == "token" {
            return token_hint(wanted, self.listed);
        }
        let values: BTreeSet<&str> =
            self.alerts.iter().filter_map(|labels| labels.get(label)?.values.as_ref()).flatten().map(String::as_str).collect();
        match closest(wanted, values.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let more = if values.len() > MAX_NAMED { ", …" } else { "" };
                format!("rules set {}{more}", values.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn of_rule(rule: &Rule, listed: &[Token]) -> AlertLabels {
    let mut labels = AlertLabels::new();
    for name in &rule.body.label_names {
        let own = rule.body.labels.iter().filter(|(known, _)| known == name).map(|(_, template)| template);
        let of_levels = rule.body.levels.iter().flat_map(|level| &level.labels).filter(|(known, _)| known == name);
        let own: Vec<&Template> = own.collect();
        let may_lack = own.is_empty();
        // One that is rendered may come out as anything.
        let constant =
            |template: &Template| template.constant().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let values = own.into_iter().chain(of_levels.map(|(_, template)| template)).map(constant).collect();
        labels.insert(name.clone(), LabelValues { values, may_lack });
    }
    labels.insert("alertname".to_owned(), LabelValues::of([rule.name.clone()]));
    match rule.on {
        On::Portfolio => {
            labels.remove("token");
            let groups = rule.pools.iter().filter_map(|pool| pool.group()).map(str::to_owned);
            let may_lack = rule.pools.iter().any(|pool| pool.group().is_none());
            labels.insert("group".to_owned(), LabelValues { may_lack, ..LabelValues::of(groups) });
        }
        On::Source => {}
        _ if listed.is_empty() => _ = labels.insert("token".to_owned(), LabelValues::default()),
        _ => {
            let tokens = listed.iter().filter(|token| rule.lets_in(token)).map(|token| token.id.as_str().to_owned());
            labels.insert("token".to_owned(), LabelValues::of(tokens));
        }
    }
    labels
}

/// What this program tells of the source, of receivers and of itself.
fn of_source(set: &RuleSet, listed: &[Token]) -> AlertLabels {
    let rules: Vec<&Rule> = set.on(On::Source).collect();
    let mut labels = AlertLabels::new();
    // A rule on the source adds its own.
    for (name, values) in rules.iter().flat_map(|rule| of_rule(rule, &[])) {
        let known = labels.entry(name).or_insert_with(|| LabelValues::of([]));
        known.may_lack = true;
        known.values = known.values.take().zip(values.values).map(|(known, more)| known.into_iter().chain(more).collect());
    }
    for name in ["kind", "endpoint", "receiver", "owner", "rule"] {
        labels.insert(name.to_owned(), LabelValues { values: None, may_lack: true });
    }
    let tokens = (!listed.is_empty()).then(|| listed.iter().map(|token| token.id.as_str().to_owned()).collect());
    labels.insert("token".to_owned(), LabelValues { values: tokens, may_lack: true });
    for (name, value) in [("alertname", SOURCE_TROUBLE), ("severity", "warning")] {
        let known = labels.entry(name.to_owned()).or_insert_with(|| LabelValues::of([]));
        known.may_lack = false;
        if let Some(values) = &mut known.values {
            values.insert(value.to_owned());
        }
    }
    labels
}
