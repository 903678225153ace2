//! The inputs of a condition other than its record, which decide when it is evaluated again although the record did not change.

use chrono::TimeDelta;

use crate::aggregate::{Flow, Window};

/// The inputs of a condition other than its record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// Whether the condition reads the time so that its result can change at any instant.
    pub clock: bool,
    /// Comparisons of a distance in time with a constant. They change only when that distance is reached.
    pub edges: Vec<Edge>,
    pub windows: Vec<Window>,
    /// Whether the condition reads the daily release of a token or group, its next change, or the age of the price.
    pub has_supply: bool,
    /// Whether the condition reads the change of the daily release at an unlock.
    pub has_rate_steps: bool,
    /// The fields of the token list, by their names in the rule.
    pub token_fields: Vec<&'static str>,
    /// The times before now within which the condition counts earlier corrections.
    pub correction_spans: Vec<TimeDelta>,
    /// The groups whose share the condition reads.
    pub groups: Vec<String>,
}

/// A distance in time at which the result of a condition changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// Days before the record's time. Negative: after it.
    Until(f64),
    /// Days after the latest burn or buyback.
    Since(Flow, f64),
    /// Days after the time of a token's latest price.
    PriceAge(f64),
    /// Days before the next change of a token's daily release.
    RateChange(f64),
}

impl Dependencies {
    /// Adds the inputs of another condition of the same rule.
    pub fn join(&mut self, other: &Dependencies) {
        self.clock |= other.clock;
        self.has_supply |= other.has_supply;
        self.has_rate_steps |= other.has_rate_steps;
        self.edges.extend(other.edges.iter().filter(|edge| !self.edges.contains(edge)).copied().collect::<Vec<_>>());
        for window in &other.windows {
            self.add_window(*window);
        }
        for span in &other.correction_spans {
            self.add_correction_span(*span);
        }
        for name in &other.token_fields {
            if !self.token_fields.contains(name) {
                self.token_fields.push(name);
            }
        }
        for group in &other.groups {
            if !self.groups.contains(group) {
                self.groups.push(group.clone());
            }
        }
    }

    pub fn add_correction_span(&mut self, span: TimeDelta) {
        if !self.correction_spans.contains(&span) {
            self.correction_spans.push(span);
        }
    }

    pub fn add_window(&mut self, window: Window) {
        if !self.windows.contains(&window) {
            self.windows.push(window);
        }
    }
}
