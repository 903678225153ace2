//! What a condition reads beside its record, and so when it must be looked at again although its record stays as it is.

use crate::aggregate::{Flow, Window};

/// What a condition reads beside its record: what else may change its truth, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// It reads the time in such a way that its truth may turn at any instant.
    pub clock: bool,
    /// It compares a distance in time with a constant: its truth turns as that distance is reached, and not between.
    pub edges: Vec<Edge>,
    pub windows: Vec<Window>,
    /// Fields of the token list, as the rule names them.
    pub token_fields: Vec<&'static str>,
    /// Groups of which it asks for a token's share.
    pub groups: Vec<String>,
}

/// A distance in time at which truth turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// So many days before the record's time; negative: after it.
    Until(f64),
    /// So many days after the latest burn or buyback.
    Since(Flow, f64),
}

impl Dependencies {
    /// Adds what another condition of the same rule reads.
    pub fn join(&mut self, other: &Dependencies) {
        self.clock |= other.clock;
        self.edges.extend(other.edges.iter().filter(|edge| !self.edges.contains(edge)).copied().collect::<Vec<_>>());
        for window in &other.windows {
            self.add_window(*window);
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

    pub fn add_window(&mut self, window: Window) {
        if !self.windows.contains(&window) {
            self.windows.push(window);
        }
    }
}
