//! Route nodes: matching and grouping.

use chrono::TimeDelta;

use super::NamedInterval;
use model::{Labels, Matcher, ReceiverName, all_match};

/// A route with its own or inherited receivers and grouping.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteNode {
    /// The path of matchers from the root, as in Alertmanager: `{}/{severity="critical"}`.
    pub(super) key: String,
    pub(super) matchers: Vec<Matcher>,
    pub(super) receivers: Vec<ReceiverName>,
    pub(super) grouping: Grouping,
    pub(super) continues: bool,
    pub(super) routes: Vec<RouteNode>,
}

impl RouteNode {
    /// Adds the deepest routes below this one that match `labels`. Returns `false` if this route does not match.
    pub(super) fn collect<'a>(&'a self, labels: &Labels, leaves: &mut Vec<Leaf<'a>>) -> bool {
        if !all_match(&self.matchers, labels) {
            return false;
        }
        let mut has_descended = false;
        for child in &self.routes {
            if child.collect(labels, leaves) {
                has_descended = true;
                if !child.continues {
                    break;
                }
            }
        }
        if !has_descended {
            leaves.push(Leaf { node: self });
        }
        true
    }

    /// Returns the receivers of this route and all routes below it, in tree order.
    pub(super) fn named(&self) -> Box<dyn Iterator<Item = &ReceiverName> + '_> {
        Box::new(self.receivers.iter().chain(self.routes.iter().flat_map(RouteNode::named)))
    }

    pub(super) fn describe(&self, depth: usize, intervals: &[NamedInterval], lines: &mut Vec<RouteLine>) {
        let names = |indices: &[usize]| indices.iter().filter_map(|index| Some(intervals.get(*index)?.name.clone())).collect();
        lines.push(RouteLine {
            depth,
            matchers: self.matchers.iter().map(ToString::to_string).collect(),
            receivers: self.receivers.clone(),
            grouping: self.grouping.clone(),
            continues: self.continues,
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
    /// Returns the path of matchers from the root: `{}/{severity="critical"}`.
    pub fn key(&self) -> &'a str {
        &self.node.key
    }

    pub fn receivers(&self) -> &'a [ReceiverName] {
        &self.node.receivers
    }

    pub fn grouping(&self) -> &'a Grouping {
        &self.node.grouping
    }
}

/// The labels by which alerts are grouped into messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// No grouping: each alert is sent separately.
    #[default]
    Alert,
    /// All labels (`group_by = ["..."]`).
    AllLabels,
    /// These labels. If empty, all alerts of the route are one group.
    Labels(Vec<String>),
}

/// The grouping and timing of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    pub by: GroupBy,
    /// The time from the first alert of a group to its first message.
    pub wait: TimeDelta,
    /// The minimum time between two messages of a group.
    pub interval: TimeDelta,
    /// The time after which firing alerts are sent again; `None` if they are not repeated.
    pub repeat: Option<TimeDelta>,
    /// Indices of the intervals in which the route is active; empty if it always is.
    pub(super) active: Vec<usize>,
    /// Indices of the intervals in which the route is muted.
    pub(super) mute: Vec<usize>,
}

/// A route as `routes show` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteLine {
    /// The number of routes above it.
    pub depth: usize,
    pub matchers: Vec<String>,
    pub receivers: Vec<ReceiverName>,
    pub grouping: Grouping,
    /// Whether matching continues with the next sibling.
    pub continues: bool,
    /// The names of the intervals in which the route is active; empty if it always is.
    pub active: Vec<String>,
    /// The names of the intervals in which the route is muted.
    pub mute: Vec<String>,
}
