//! The validated `[route]` tree, which selects the receivers of an alert, with time intervals and inhibitions. Pure.
//!
//! The semantics are Alertmanager's. An alert enters at the root and descends into the first child whose matchers all match, and also into
//! the next siblings if that child has `continue`. The deepest routes that it reaches name its receivers. A child without `receivers`,
//! `group_by`, or waits inherits them. A missing label counts as empty.
//!
//! There are three intended differences:
//! - A receiver gets an alert once, by the first route that leads to it.
//! - Without `group_by`, each alert is sent separately and at once.
//! - A firing alert is repeated only if `repeat_interval` is set, because lead times already produce reminders.
//!
//! [`RouteTree::of`] reports all problems at once, so a built tree is always valid.

mod build;
pub mod inhibit;
pub mod interval;
mod node;

use std::collections::BTreeMap;

use chrono::TimeDelta;

pub use build::{ConfigProblem, GROUP_INTERVAL, GROUP_WAIT, MAX_DEPTH, MAX_ROUTES, MAX_RULES, Sections};
pub use inhibit::{CheckedInhibitRule, Inhibitor};
pub use interval::NamedInterval;
use model::{Labels, NotificationKind, ReceiverName, Timestamp};
use node::RouteNode;
pub use node::{GroupBy, Grouping, Leaf, RouteLine};

/// The maximum time until the end of a mute time that is searched minute by minute: more than a week, so that it covers every weekday.
const MUTE_SEARCH_WINDOW: TimeDelta = TimeDelta::days(8);

/// The routes of a config, with its receivers, time intervals, and inhibitions.
#[derive(Clone, Debug, Default)]
pub struct RouteTree {
    root: RouteNode,
    fallback: Vec<ReceiverName>,
    /// All receivers of the config.
    known: BTreeMap<ReceiverName, KnownReceiver>,
    intervals: Vec<NamedInterval>,
    inhibit_rules: Vec<CheckedInhibitRule>,
}

/// The settings of a receiver that decide which messages it gets.
#[derive(Clone, Debug, Default)]
struct KnownReceiver {
    gets_resolutions: bool,
    /// The message types that it wants. Empty stands for all.
    types: Vec<NotificationKind>,
}

impl RouteTree {
    /// Returns the receivers of an alert with these labels, each once, in tree order.
    pub fn route(&self, labels: &Labels) -> Vec<ReceiverName> {
        let mut receivers: Vec<ReceiverName> = Vec::new();
        for leaf in self.leaves(labels) {
            for receiver in leaf.receivers() {
                if !receivers.contains(receiver) {
                    receivers.push(receiver.clone());
                }
            }
        }
        receivers
    }

    /// Returns the routes that an alert with these labels reaches, in tree order.
    pub fn leaves(&self, labels: &Labels) -> Vec<Leaf<'_>> {
        let mut leaves = Vec::new();
        self.root.collect(labels, &mut leaves);
        leaves
    }

    /// Returns the route by which `receiver` gets an alert with these labels: the first one that names it, else the root, for receivers
    /// that a rule or the fallback names.
    pub fn leaf(&self, labels: &Labels, receiver: &ReceiverName) -> Leaf<'_> {
        let leaf = self.leaves(labels).into_iter().find(|leaf| leaf.receivers().contains(receiver));
        leaf.unwrap_or(Leaf { node: &self.root })
    }

    /// Returns why a route is muted at `now`: the name of the mute interval, or `not` with the active intervals. `None` if it is not muted.
    pub fn muted(&self, grouping: &Grouping, now: Timestamp) -> Option<String> {
        let interval = |index: &usize| self.intervals.get(*index);
        if let Some(mute) = grouping.mute.iter().filter_map(interval).find(|interval| interval.contains(now)) {
            return Some(mute.name.clone());
        }
        let mut active = grouping.active.iter().filter_map(interval).peekable();
        if active.peek().is_none() || active.clone().any(|interval| interval.contains(now)) {
            return None;
        }
        Some(format!("not {}", active.map(|interval| interval.name.as_str()).collect::<Vec<_>>().join(", ")))
    }

    /// Returns the first full minute after `now` at which a muted route is no longer muted, or an earlier minute at which to check again if
    /// that is more than `MUTE_SEARCH_WINDOW` away.
    pub fn unmuted_at(&self, grouping: &Grouping, now: Timestamp) -> Timestamp {
        let mut at = interval::next_minute(now);
        while self.muted(grouping, at).is_some() && at - now < MUTE_SEARCH_WINDOW {
            at = interval::next_minute(at);
        }
        at
    }

    /// Returns whether any route has a `repeat_interval`.
    pub fn repeats(&self) -> bool {
        fn any(node: &RouteNode) -> bool {
            node.grouping.repeat.is_some() || node.routes.iter().any(any)
        }
        any(&self.root)
    }

    pub fn inhibit_rules(&self) -> &[CheckedInhibitRule] {
        &self.inhibit_rules
    }

    /// Returns the receivers of dead letters of `dead`, without `dead` itself: `[route] fallback`, else the root's receivers, else the
    /// first receiver of another route. A receiver that does not want messages about incidents gets them only if no other does. Empty if
    /// the routes name no other receiver.
    pub fn fallback(&self, dead: &ReceiverName) -> Vec<ReceiverName> {
        let wanting = self.fallback_of(|name| name != dead && self.wants(name, NotificationKind::Source));
        if wanting.is_empty() { self.fallback_of(|name| name != dead) } else { wanting }
    }

    fn fallback_of(&self, is_possible: impl Fn(&ReceiverName) -> bool) -> Vec<ReceiverName> {
        let possible = |names: &[ReceiverName]| names.iter().filter(|name| is_possible(name)).cloned().collect::<Vec<_>>();
        let candidates = [&self.fallback, &self.root.receivers];
        let found = candidates.into_iter().map(|names| possible(names)).find(|others| !others.is_empty());
        found.unwrap_or_else(|| self.root.named().find(|name| is_possible(name)).into_iter().cloned().collect())
    }

    /// Returns whether a receiver wants messages of this type. One that left the config wants all, because it may return.
    pub fn wants(&self, receiver: &ReceiverName, kind: NotificationKind) -> bool {
        let types = self.types_of(receiver);
        kind == NotificationKind::Test || types.is_empty() || types.contains(&kind)
    }

    /// Returns the message types that a receiver wants. Empty stands for all.
    pub fn types_of(&self, receiver: &ReceiverName) -> &[NotificationKind] {
        self.known.get(receiver).map_or(&[], |known| &known.types)
    }

    /// Returns whether a route names this receiver.
    pub fn names(&self, receiver: &ReceiverName) -> bool {
        self.root.named().any(|name| name == receiver)
    }

    /// Returns whether the config has this receiver.
    pub fn has_receiver(&self, receiver: &ReceiverName) -> bool {
        self.known.contains_key(receiver)
    }

    /// Returns whether the receiver gets resolutions: not if it has `send_resolved = false` or left the config.
    pub fn sends_resolved_to(&self, receiver: &ReceiverName) -> bool {
        self.known.get(receiver).is_some_and(|known| known.gets_resolutions)
    }

    /// Returns one line for each route, from the root down.
    pub fn lines(&self) -> Vec<RouteLine> {
        let mut lines = Vec::new();
        self.root.describe(0, &self.intervals, &mut lines);
        lines
    }
}

#[cfg(test)]
mod tests;
