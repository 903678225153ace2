//! Checks matchers of routes, inhibitions, and silences against the labels that alerts can have.

use std::collections::{BTreeMap, BTreeSet};

use model::{Labels, Matcher, SOURCE_TROUBLE, Token, closest};

use crate::{on::On, rule::Rule, set::RuleSet, template::Template};

use super::tokens::token_hint;

/// The maximum number of values in a hint.
const MAX_VALUES: usize = 8;

/// The labels that alerts can have, for each rule and for incidents.
#[derive(Clone, Debug)]
pub struct LabelFacts<'a> {
    alerts: Vec<AlertLabels>,
    listed: &'a [Token],
}

/// The labels of the alerts of one rule.
type AlertLabels = BTreeMap<String, LabelValues>;

#[derive(Clone, Debug, Default)]
struct LabelValues {
    /// The possible values. `None` if any value is possible.
    values: Option<BTreeSet<String>>,
    /// Whether an alert can lack the label.
    may_lack: bool,
}

impl LabelValues {
    fn of(values: impl IntoIterator<Item = String>) -> Self {
        Self { values: Some(values.into_iter().collect()), may_lack: false }
    }

    fn can_match(&self, matcher: &Matcher) -> bool {
        let holds = |value: &String| matcher.matches(&Labels::from([(matcher.label().to_owned(), value.clone())]));
        (self.may_lack && matcher.matches_missing_label()) || self.values.as_ref().is_none_or(|values| values.iter().any(holds))
    }
}

/// The reason why matchers select no possible alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelProblem {
    /// The index of the matcher with the problem. `None` if only the combination selects nothing.
    pub matcher: Option<usize>,
    pub message: String,
    pub help: String,
}

impl<'a> LabelFacts<'a> {
    /// Returns the labels that alerts of these rules can have. If `listed` is empty, any token is possible.
    pub fn of(set: &RuleSet, listed: &'a [Token]) -> Self {
        let mut alerts: Vec<AlertLabels> = set.rules.iter().map(|rule| rule_labels(rule, listed)).collect();
        alerts.push(source_labels(set, listed));
        Self { alerts, listed }
    }

    /// Returns `true` if an alert can have the label.
    pub fn has(&self, label: &str) -> bool {
        self.alerts.iter().any(|labels| labels.contains_key(label))
    }

    /// Suggests a label for one that no alert can have.
    pub fn label_hint(&self, label: &str) -> String {
        let names: BTreeSet<&str> = self.alerts.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
        match closest(label, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("possible labels: {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the reason why no possible alert matches all of the matchers. `None` if one can.
    pub fn problem(&self, matchers: &[Matcher]) -> Option<LabelProblem> {
        let can_match = |labels: &AlertLabels, matcher: &Matcher| match labels.get(matcher.label()) {
            Some(values) => values.can_match(matcher),
            None => matcher.matches_missing_label(),
        };
        if self.alerts.iter().any(|labels| matchers.iter().all(|matcher| can_match(labels, matcher))) {
            return None;
        }
        let alone = matchers.iter().position(|matcher| !self.alerts.iter().any(|labels| can_match(labels, matcher)));
        let Some((at, matcher)) = alone.and_then(|at| Some((at, matchers.get(at)?))) else {
            return Some(LabelProblem {
                matcher: None,
                message: "no rule sets all of these labels together".to_owned(),
                help: "each matcher matches some rule, but no rule matches all of them".to_owned(),
            });
        };
        let label = matcher.label();
        let (message, help) = if self.has(label) {
            (format!("no alert can match {matcher}"), self.value_hint(matcher))
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
                let more = if values.len() > MAX_VALUES { ", …" } else { "" };
                format!("rules set {}{more}", values.into_iter().take(MAX_VALUES).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn rule_labels(rule: &Rule, listed: &[Token]) -> AlertLabels {
    let mut labels = AlertLabels::new();
    for name in &rule.body.label_names {
        let own = rule.body.labels.iter().filter(|(known, _)| known == name).map(|(_, template)| template);
        let of_levels = rule.body.levels.iter().flat_map(|level| &level.labels).filter(|(known, _)| known == name);
        let own: Vec<&Template> = own.collect();
        let may_lack = own.is_empty();
        // A template with expressions can render any value.
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
            let tokens = listed.iter().filter(|token| rule.selects_token(token)).map(|token| token.id.as_str().to_owned());
            labels.insert("token".to_owned(), LabelValues::of(tokens));
        }
    }
    labels
}

/// Returns the labels of incidents.
fn source_labels(set: &RuleSet, listed: &[Token]) -> AlertLabels {
    let rules: Vec<&Rule> = set.on(On::Source).collect();
    let mut labels = AlertLabels::new();
    // A rule on the source adds its own labels.
    for (name, values) in rules.iter().flat_map(|rule| rule_labels(rule, &[])) {
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
