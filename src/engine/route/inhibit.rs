//! Inhibition: an alert is suppressed while a related alert fires.

use std::collections::HashMap;

use model::{AlertId, FiringAlert, Labels, Matcher, all_match};

/// A validated section of `[[inhibit_rules]]`.
#[derive(Clone, Debug)]
pub struct CheckedInhibitRule {
    pub(super) source: Vec<Matcher>,
    pub(super) target: Vec<Matcher>,
    pub(super) equal: Vec<String>,
}

/// The inhibiting alerts of a rule, by the values of the `equal` labels.
type Sources<'a> = HashMap<Vec<&'a str>, Vec<&'a FiringAlert>>;

/// The inhibitions in force, indexed for lookup.
#[derive(Debug)]
pub struct Inhibitor<'a> {
    rules: Vec<(&'a CheckedInhibitRule, Sources<'a>)>,
}

impl<'a> Inhibitor<'a> {
    /// Finds the inhibiting alerts among the firing ones.
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

    /// Returns the alert that inhibits `alert`. If both alerts match both sides of a rule, neither inhibits the other, because they would
    /// suppress each other.
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

/// Returns the values of the `equal` labels. A missing label counts as empty.
fn values<'l>(names: &[String], labels: &'l Labels) -> Vec<&'l str> {
    names.iter().map(|name| labels.get(name).map_or("", String::as_str)).collect()
}

#[cfg(test)]
mod tests;
