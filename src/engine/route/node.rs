//! One route of the tree, where alerts come to, and how they are grouped there.

use chrono::TimeDelta;

use super::NamedInterval;
use model::{Labels, Matcher, ReceiverName, all_match};

/// One route. Its receivers and grouping are its own, else those of the nearest route above that has any.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteNode {
    /// Its place in the tree, as Alertmanager writes it: `{}/{severity="critical"}`.
    pub(super) key: String,
    pub(super) matchers: Vec<Matcher>,
    pub(super) receivers: Vec<ReceiverName>,
    pub(super) grouping: Grouping,
    pub(super) goes_on: bool,
    pub(super) routes: Vec<RouteNode>,
}

impl RouteNode {
    /// Adds the routes that `labels` reach from here down; false where its own matchers keep them out.
    pub(super) fn collect<'a>(&'a self, labels: &Labels, leaves: &mut Vec<Leaf<'a>>) -> bool {
        if !all_match(&self.matchers, labels) {
            return false;
        }
        let mut went_down = false;
        for child in &self.routes {
            if child.collect(labels, leaves) {
                went_down = true;
                if !child.goes_on {
                    break;
                }
            }
        }
        if !went_down {
            leaves.push(Leaf { node: self });
        }
        true
    }

    pub(super) fn describe(&self, depth: usize, intervals: &[NamedInterval], lines: &mut Vec<RouteLine>) {
        let names = |indices: &[usize]| indices.iter().filter_map(|index| Some(intervals.get(*index)?.name.clone())).collect();
        lines.push(RouteLine {
            depth,
            matchers: self.matchers.iter().map(ToString::to_string).collect(),
            receivers: self.receivers.clone(),
            grouping: self.grouping.clone(),
            goes_on: self.goes_on,
            active: names(&self.grouping.active),
            mute: names(&self.grouping.mute),
        });
        for route in &self.routes {
            route.describe(depth + 1, intervals, lines);
        }
    }
}

/// A route that an alert reaches.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    pub(super) node: &'a RouteNode,
}

impl<'a> Leaf<'a> {
    /// Its place in the tree: `{}/{severity="critical"}`.
    pub fn key(&self) -> &'a str {
        &self.node.key
    }

    /// Who is told there.
    pub fn receivers(&self) -> &'a [ReceiverName] {
        &self.node.receivers
    }

    pub fn grouping(&self) -> &'a Grouping {
        &self.node.grouping
    }
}

/// By what alerts are put into one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// Not at all: each alert by itself.
    #[default]
    Alert,
    /// By all their labels (`group_by = ["..."]`).
    AllLabels,
    /// By these; none: all alerts of the route are one group.
    Labels(Vec<String>),
}

/// How a route groups and when it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// By what.
    pub by: GroupBy,
    /// From the first alert of a group until it is told.
    pub wait: TimeDelta,
    /// At least between messages of a group.
    pub interval: TimeDelta,
    /// After which what still fires is told again; none: never.
    pub repeat: Option<TimeDelta>,
    /// Indices of the intervals within which alone it tells; empty: always.
    pub(super) active: Vec<usize>,
    /// Indices of the intervals within which it does not tell.
    pub(super) mute: Vec<usize>,
}

/// One route of the tree as `routes show` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteLine {
    /// How deep it stands; the root at 0.
    pub depth: usize,
    pub matchers: Vec<String>,
    pub receivers: Vec<ReceiverName>,
    pub grouping: Grouping,
    /// Whether it goes on to the next sibling.
    pub goes_on: bool,
    /// Names of the intervals within which alone it tells.
    pub active: Vec<String>,
    /// Names of the intervals within which it does not tell.
    pub mute: Vec<String>,
}
