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
mod tests;
