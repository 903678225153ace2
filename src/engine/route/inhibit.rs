//! What goes without saying while something else fires.

use std::collections::HashMap;

use model::{AlertId, FiringAlert, Labels, Matcher, all_match};

/// One of `[[inhibit_rules]]`, checked.
#[derive(Clone, Debug)]
pub struct CheckedInhibitRule {
    pub(super) source: Vec<Matcher>,
    pub(super) target: Vec<Matcher>,
    pub(super) equal: Vec<String>,
}

/// What inhibits by a rule, by the values of the labels that must be equal.
type Sources<'a> = HashMap<Vec<&'a str>, Vec<&'a FiringAlert>>;

/// All inhibitions of one moment, ready to be asked.
#[derive(Debug)]
pub struct Inhibitor<'a> {
    rules: Vec<(&'a CheckedInhibitRule, Sources<'a>)>,
}

impl<'a> Inhibitor<'a> {
    /// Finds what inhibits among what fires.
    pub fn new(rules: &'a [CheckedInhibitRule], firing: &'a [FiringAlert]) -> Self {
        let rules = rules
            .iter()
            .map(|rule| {
                let mut sources: Sources<'_> = HashMap::new();
                for alert in firing.iter().filter(|alert| all_match(&rule.source, &alert.labels)) {
                    sources.entry(values(&rule.equal, &alert.labels)).or_default().push(alert);
                }
                (rule, sources)
            })
            .collect();
        Self { rules }
    }

    /// The alert because of which `alert` is not told; none where it is. An alert that both sides of a rule take is not inhibited by
    /// another such alert, or the two would silence each other.
    pub fn of(&self, alert: &AlertId, labels: &Labels) -> Option<&'a AlertId> {
        self.rules.iter().find_map(|(rule, sources)| {
            if !all_match(&rule.target, labels) {
                return None;
            }
            let is_two_sided = all_match(&rule.source, labels);
            let candidates = sources.get(values(&rule.equal, labels).as_slice())?;
            candidates
                .iter()
                .find(|source| source.id != *alert && !(is_two_sided && all_match(&rule.target, &source.labels)))
                .map(|source| &source.id)
        })
    }
}

/// The values of the labels that must be equal; a missing one counts as empty.
fn values<'l>(names: &[String], labels: &'l Labels) -> Vec<&'l str> {
    names.iter().map(|name| labels.get(name).map_or("", String::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn firing(id: &str, pairs: &[(&str, &str)]) -> FiringAlert {
        FiringAlert { id: id.into(), labels: labels(pairs) }
    }

    fn rule(source: &str, target: &str, equal: &[&str]) -> CheckedInhibitRule {
        let read = |text: &str| vec![Matcher::parse(text).expect("a matcher")];
        CheckedInhibitRule {
            source: read(source),
            target: read(target),
            equal: equal.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_warning_is_inhibited_by_a_critical_alert_of_the_same_token_alone() {
        let rules = [rule("severity=critical", "severity=warning", &["token"])];
        let all = [firing("c", &[("severity", "critical"), ("token", "arb")])];
        let inhibitor = Inhibitor::new(&rules, &all);
        let by = |pairs: &[(&str, &str)]| inhibitor.of(&"w".into(), &labels(pairs)).map(|id| id.as_str());
        assert_eq!(by(&[("severity", "warning"), ("token", "arb")]), Some("c"));
        assert_eq!(by(&[("severity", "warning"), ("token", "apt")]), None);
        assert_eq!(by(&[("severity", "info"), ("token", "arb")]), None);
        assert_eq!(by(&[("severity", "warning")]), None, "a missing label is empty, and the other's is not");
    }

    #[test]
    fn an_alert_inhibits_neither_itself_nor_one_that_both_sides_take() {
        let rules = [rule("team=desk", "team=desk", &[])];
        let all = [firing("a", &[("team", "desk")]), firing("b", &[("team", "desk")])];
        let inhibitor = Inhibitor::new(&rules, &all);
        assert_eq!(inhibitor.of(&"a".into(), &all[0].labels), None);
        assert_eq!(inhibitor.of(&"b".into(), &all[1].labels), None);
        let narrow = [rule("severity=critical", "team=desk", &[])];
        let all = [firing("a", &[("team", "desk"), ("severity", "critical")])];
        let inhibitor = Inhibitor::new(&narrow, &all);
        assert_eq!(inhibitor.of(&"a".into(), &all[0].labels), None);
        assert_eq!(inhibitor.of(&"b".into(), &labels(&[("team", "desk")])).map(|id| id.as_str()), Some("a"));
    }
}
