//! Who is told: the `[route]` tree with its time intervals and inhibitions, checked and ready.
//!
//! The words and their meaning are those of Alertmanager. An alert enters at the root and goes down into the first child whose
//! matchers all hold, and on to the next sibling where that child says `continue`; the deepest routes that it reaches name its
//! receivers. A child without receivers takes its parent's, and so it does with `group_by` and the waits. A label that an alert does
//! not have counts as empty. Three things differ, on purpose. A receiver is told once, by the first route that leads to it.
//! Without any `group_by` each alert is told by itself and at once. And what still fires is told again only where `repeat_interval`
//! says so, since lead times remind by themselves.
//!
//! [`RouteTree::of`] finds every problem at once; a tree that was built cannot be wrong. Pure: no clock, no I/O.

mod build;
pub mod inhibit;
pub mod interval;
mod node;

use std::collections::BTreeMap;

use chrono::TimeDelta;

pub use build::{ConfigProblem, GROUP_INTERVAL, GROUP_WAIT, MAX_DEPTH, MAX_ROUTES, MAX_RULES, Sections};
pub use inhibit::{CheckedInhibitRule, Inhibitor};
pub use interval::NamedInterval;
use model::{Labels, ReceiverName, Timestamp};
use node::RouteNode;
pub use node::{GroupBy, Grouping, Leaf, RouteLine};

/// How far ahead the end of a mute time is looked for: a week and a day hold one of every turn of the week.
const MUTE_LOOK: TimeDelta = TimeDelta::days(8);

/// The routes of a config, together with what routing must know of its receivers.
#[derive(Clone, Debug, Default)]
pub struct RouteTree {
    root: RouteNode,
    fallback: Vec<ReceiverName>,
    /// All receivers of the config; whether the end of an alert is told to them.
    known: BTreeMap<ReceiverName, bool>,
    intervals: Vec<NamedInterval>,
    inhibit_rules: Vec<CheckedInhibitRule>,
}

impl RouteTree {
    /// Who is told of an alert with these labels, each once, in the order of the tree.
    pub fn route(&self, labels: &Labels) -> Vec<ReceiverName> {
        let mut told: Vec<ReceiverName> = Vec::new();
        for leaf in self.leaves(labels) {
            for receiver in leaf.receivers() {
                if !told.contains(receiver) {
                    told.push(receiver.clone());
                }
            }
        }
        told
    }

    /// The routes that an alert with these labels reaches, in the order of the tree.
    pub fn leaves(&self, labels: &Labels) -> Vec<Leaf<'_>> {
        let mut leaves = Vec::new();
        self.root.collect(labels, &mut leaves);
        leaves
    }

    /// The route by which `receiver` is told of an alert with these labels: the first that names it, else the root, for receivers
    /// that a rule or the fallback named.
    pub fn leaf(&self, labels: &Labels, receiver: &ReceiverName) -> Leaf<'_> {
        let leaf = self.leaves(labels).into_iter().find(|leaf| leaf.receivers().contains(receiver));
        leaf.unwrap_or(Leaf { node: &self.root })
    }

    /// Why a route does not tell at `now`: the interval that mutes it, or those of which none lasts. None where it tells.
    pub fn muted(&self, grouping: &Grouping, now: Timestamp) -> Option<String> {
        let interval = |index: &usize| self.intervals.get(*index);
        if let Some(mute) = grouping.mute.iter().filter_map(interval).find(|interval| interval.lasts(now)) {
            return Some(mute.name.clone());
        }
        let mut active = grouping.active.iter().filter_map(interval).peekable();
        if active.peek().is_none() || active.clone().any(|interval| interval.lasts(now)) {
            return None;
        }
        Some(format!("not {}", active.map(|interval| interval.name.as_str()).collect::<Vec<_>>().join(", ")))
    }

    /// The first full minute after `now` at which a route that does not tell now tells again; where that is far away, a time before it
    /// at which to look again.
    pub fn heard_again(&self, grouping: &Grouping, now: Timestamp) -> Timestamp {
        let mut at = interval::next_turn(now);
        while self.muted(grouping, at).is_some() && at - now < MUTE_LOOK {
            at = interval::next_turn(at);
        }
        at
    }

    /// Whether any route tells again what still fires.
    pub fn repeats(&self) -> bool {
        fn any(node: &RouteNode) -> bool {
            node.grouping.repeat.is_some() || node.routes.iter().any(any)
        }
        any(&self.root)
    }

    pub fn inhibit_rules(&self) -> &[CheckedInhibitRule] {
        &self.inhibit_rules
    }

    /// Who is told that `dead` cannot be reached: `[route] fallback`, else the root's receivers; never `dead` itself.
    pub fn fallback(&self, dead: &ReceiverName) -> Vec<ReceiverName> {
        let others = |names: &[ReceiverName]| names.iter().filter(|name| *name != dead).cloned().collect::<Vec<_>>();
        let fallback = others(&self.fallback);
        if fallback.is_empty() { others(&self.root.receivers) } else { fallback }
    }

    /// Whether the config has this receiver.
    pub fn knows(&self, receiver: &ReceiverName) -> bool {
        self.known.contains_key(receiver)
    }

    /// Whether the end of an alert is told to this receiver: not where it says `send_resolved = false`, nor where it is gone.
    pub fn tells_ends_to(&self, receiver: &ReceiverName) -> bool {
        self.known.get(receiver).copied().unwrap_or(false)
    }

    /// The whole tree, a line for each route, from the root down.
    pub fn lines(&self) -> Vec<RouteLine> {
        let mut lines = Vec::new();
        self.root.describe(0, &self.intervals, &mut lines);
        lines
    }
}

#[cfg(test)]
mod tests;
