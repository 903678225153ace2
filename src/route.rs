//! Who is told: the `[route]` tree with its time intervals and inhibitions, checked and ready.
//!
//! The words and their meaning are those of Alertmanager. An alert enters at the root and goes down into the first child whose
//! matchers all hold, and on to the next sibling where that child says `continue`; the deepest routes that it reaches name its
//! receivers. A child without receivers takes its parent's, and so it does with `group_by` and the waits. A label that an alert does
//! not have counts as empty. Three things differ, on purpose. A receiver is told once, by the first route that leads to it.
//! Without any `group_by` each alert is told by itself and at once. And what still fires is told again only where `repeat_interval` says so,
//! since lead times remind by themselves.
//!
//! [`RouteTree::of`] finds every problem at once; a tree that was built cannot be wrong. Pure: no clock, no I/O.

pub mod inhibit;
pub mod interval;
pub mod matcher;

use std::collections::BTreeMap;

use chrono::TimeDelta;

pub use inhibit::{Firing, InhibitRule, Inhibitor};
pub use interval::Interval;
pub use matcher::{Matcher, MatcherError, all_match};

use crate::{
    alert::Labels,
    config,
    diagnostic::closest,
    supply::{ReceiverName, Timestamp},
};

/// How deep routes may be nested.
pub const MAX_DEPTH: usize = 16;

/// Routes in the whole tree.
pub const MAX_ROUTES: usize = 2_000;

/// Inhibitions and intervals.
pub const MAX_RULES: usize = 1_000;

/// Wait for more before the first message of a group, where a route groups but does not say how long.
pub const GROUP_WAIT: TimeDelta = TimeDelta::seconds(30);

/// Wait between messages of a group, where a route groups but does not say how long.
pub const GROUP_INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// How far ahead the end of a mute time is looked for: a week and a day hold one of every turn of the week.
const MUTE_LOOK: TimeDelta = TimeDelta::days(8);

/// Something wrong in `[route]` or beside it, with where: a path such as `route.routes[1].matchers[0]`, from which the loader finds
/// line and caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key: `route.routes[1].receivers[0]`.
    pub path: String,
    /// What is wrong, in lower case, without a full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Whether the loader, which knows keys and names, finds it by itself.
    pub is_of_keys: bool,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The sections of the config that say who is told what, and when.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    /// `[route]`.
    pub route: &'a config::Route,
    /// `[[receiver]]`.
    pub receivers: &'a [config::Receiver],
    /// `[[inhibit_rules]]`.
    pub inhibit_rules: &'a [config::InhibitRule],
    /// `[[time_intervals]]`.
    pub time_intervals: &'a [config::TimeIntervals],
}

impl<'a> From<&'a config::Config> for Sections<'a> {
    fn from(config: &'a config::Config) -> Self {
        Self {
            route: &config.route,
            receivers: &config.receivers,
            inhibit_rules: &config.inhibit_rules,
            time_intervals: &config.time_intervals,
        }
    }
}

/// The routes of a config, together with what routing must know of its receivers.
#[derive(Clone, Debug, Default)]
pub struct RouteTree {
    root: Node,
    fallback: Vec<ReceiverName>,
    /// All receivers of the config; whether the end of an alert is told to them.
    known: BTreeMap<ReceiverName, bool>,
    intervals: Vec<Interval>,
    inhibit_rules: Vec<InhibitRule>,
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
    active: Vec<usize>,
    /// Indices of the intervals within which it does not tell.
    mute: Vec<usize>,
}

/// One route. Its receivers and grouping are its own, else those of the nearest route above that has any.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Its place in the tree, as Alertmanager writes it: `{}/{severity="critical"}`.
    key: String,
    matchers: Vec<Matcher>,
    receivers: Vec<ReceiverName>,
    grouping: Grouping,
    goes_on: bool,
    routes: Vec<Node>,
}

/// A route that an alert reaches.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    node: &'a Node,
}

impl<'a> Leaf<'a> {
    /// Its place in the tree: `{}/{severity="critical"}`.
    #[must_use]
    pub fn key(&self) -> &'a str {
        &self.node.key
    }

    /// Who is told there.
    #[must_use]
    pub fn receivers(&self) -> &'a [ReceiverName] {
        &self.node.receivers
    }

    /// How it groups.
    #[must_use]
    pub fn grouping(&self) -> &'a Grouping {
        &self.node.grouping
    }
}

/// One line of the tree as `routes show` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// How deep it stands; the root at 0.
    pub depth: usize,
    /// Its matchers.
    pub matchers: Vec<String>,
    /// Who is told.
    pub receivers: Vec<ReceiverName>,
    /// How it groups.
    pub grouping: Grouping,
    /// Whether it goes on to the next sibling.
    pub goes_on: bool,
    /// Names of the intervals within which alone it tells.
    pub active: Vec<String>,
    /// Names of the intervals within which it does not tell.
    pub mute: Vec<String>,
}

impl RouteTree {
    /// Builds the tree from `[route]` and the `[[receiver]]` sections alone: see [`Self::of`].
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn build(route: &config::Route, receivers: &[config::Receiver]) -> Result<Self, Vec<Problem>> {
        Self::of(&Sections { route, receivers, inhibit_rules: &[], time_intervals: &[] })
    }

    /// Builds the tree. A config without any route sends everything to every receiver: whoever configures one receiver and nothing
    /// else wants to hear.
    ///
    /// # Errors
    /// All problems of the sections: matchers that cannot be read, receivers and intervals that do not exist, keys that only the root
    /// may have.
    pub fn of(sections: &Sections<'_>) -> Result<Self, Vec<Problem>> {
        let route = sections.route;
        let mut known = BTreeMap::new();
        for receiver in sections.receivers {
            known.insert(ReceiverName::from(receiver.name.as_str()), receiver.send_resolved.unwrap_or(true));
        }
        let mut builder = Builder { known: &known, intervals: Vec::new(), problems: Vec::new(), routes: 0 };
        builder.intervals(sections.time_intervals);
        if !route.matchers.is_empty() {
            builder.problem(
                "route.matchers",
                "the root takes every alert and can have no matchers",
                Some("move them into a [[route.routes]]"),
            );
        }
        if route.continue_ {
            builder.problem("route.continue", "the root has no sibling to continue to", Some("leave it out"));
        }
        for (key, names) in
            [("active_time_intervals", &route.active_time_intervals), ("mute_time_intervals", &route.mute_time_intervals)]
        {
            if !names.is_empty() {
                let advice = Some("move it into a [[route.routes]]");
                builder.problem(format!("route.{key}"), "the root is always at work and can have no intervals", advice);
            }
        }
        let mut root = builder.node(route, "route", None, 0);
        if root.receivers.is_empty() && !known.is_empty() {
            if route.routes.is_empty() {
                root.receivers = known.keys().cloned().collect();
            } else if route.receivers.is_empty() {
                builder.problem(
                    "route",
                    "the root names no receivers, so alerts that no route matches would reach nobody",
                    Some("add receivers = [\"…\"] under [route]"),
                );
            }
        }
        let fallback = builder.receivers(&route.fallback, "route.fallback");
        let inhibit_rules = builder.inhibit_rules(sections.inhibit_rules);
        let Builder { intervals, problems, .. } = builder;
        if problems.is_empty() { Ok(Self { root, fallback, known, intervals, inhibit_rules }) } else { Err(problems) }
    }

    /// Who is told of an alert with these labels, each once, in the order of the tree.
    #[must_use]
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
    #[must_use]
    pub fn leaves(&self, labels: &Labels) -> Vec<Leaf<'_>> {
        let mut leaves = Vec::new();
        self.root.collect(labels, &mut leaves);
        leaves
    }

    /// The route by which `receiver` is told of an alert with these labels: the first that names it, else the root, for receivers
    /// that a rule or the fallback named.
    #[must_use]
    pub fn leaf(&self, labels: &Labels, receiver: &ReceiverName) -> Leaf<'_> {
        let leaf = self.leaves(labels).into_iter().find(|leaf| leaf.receivers().contains(receiver));
        leaf.unwrap_or(Leaf { node: &self.root })
    }

    /// Why a route does not tell at `now`: the interval that mutes it, or those of which none lasts. None where it tells.
    #[must_use]
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
    #[must_use]
    pub fn heard_again(&self, grouping: &Grouping, now: Timestamp) -> Timestamp {
        let mut at = interval::next_turn(now);
        while self.muted(grouping, at).is_some() && at - now < MUTE_LOOK {
            at = interval::next_turn(at);
        }
        at
    }

    /// Whether any route tells again what still fires.
    #[must_use]
    pub fn repeats(&self) -> bool {
        fn any(node: &Node) -> bool {
            node.grouping.repeat.is_some() || node.routes.iter().any(any)
        }
        any(&self.root)
    }

    /// What inhibits what.
    #[must_use]
    pub fn inhibit_rules(&self) -> &[InhibitRule] {
        &self.inhibit_rules
    }

    /// Who is told that `dead` cannot be reached: `[route] fallback`, else the root's receivers; never `dead` itself.
    #[must_use]
    pub fn fallback(&self, dead: &ReceiverName) -> Vec<ReceiverName> {
        let others = |names: &[ReceiverName]| names.iter().filter(|name| *name != dead).cloned().collect::<Vec<_>>();
        let fallback = others(&self.fallback);
        if fallback.is_empty() { others(&self.root.receivers) } else { fallback }
    }

    /// Whether the config has this receiver.
    #[must_use]
    pub fn knows(&self, receiver: &ReceiverName) -> bool {
        self.known.contains_key(receiver)
    }

    /// Whether the end of an alert is told to this receiver: not where it says `send_resolved = false`, nor where it is gone.
    #[must_use]
    pub fn tells_ends_to(&self, receiver: &ReceiverName) -> bool {
        self.known.get(receiver).copied().unwrap_or(false)
    }

    /// All receivers of the config.
    pub fn receivers(&self) -> impl Iterator<Item = &ReceiverName> {
        self.known.keys()
    }

    /// The whole tree, a line for each route, from the root down.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.root.describe(0, &self.intervals, &mut lines);
        lines
    }
}

impl Node {
    /// Adds the routes that `labels` reach from here down; false where its own matchers keep them out.
    fn collect<'a>(&'a self, labels: &Labels, leaves: &mut Vec<Leaf<'a>>) -> bool {
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

    fn describe(&self, depth: usize, intervals: &[Interval], lines: &mut Vec<Line>) {
        let names = |indices: &[usize]| indices.iter().filter_map(|index| Some(intervals.get(*index)?.name.clone())).collect();
        lines.push(Line {
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

struct Builder<'a> {
    known: &'a BTreeMap<ReceiverName, bool>,
    intervals: Vec<Interval>,
    problems: Vec<Problem>,
    routes: usize,
}

impl Builder<'_> {
    /// A problem that the loader finds too, since it knows keys and names.
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>, help: Option<&str>) {
        let (path, message, help) = (path.into(), message.into(), help.map(str::to_owned));
        self.problems.push(Problem { path, message, help, is_of_keys: true });
    }

    /// A problem that shows only here.
    fn wrong(&mut self, path: String, message: impl Into<String>, help: Option<String>) {
        self.problems.push(Problem { path, message: message.into(), help, is_of_keys: false });
    }

    fn matchers(&mut self, texts: &[String], path: &str) -> Vec<Matcher> {
        let mut matchers = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match Matcher::parse(text) {
                Ok(matcher) => matchers.push(matcher),
                Err(MatcherError { message, help }) => self.wrong(format!("{path}[{index}]"), message, help),
            }
        }
        matchers
    }

    fn node(&mut self, route: &config::Route, path: &str, above: Option<&Node>, depth: usize) -> Node {
        self.routes += 1;
        let matchers = self.matchers(&route.matchers, &format!("{path}.matchers"));
        let own = self.receivers(&route.receivers, &format!("{path}.receivers"));
        if depth > 0 && !route.fallback.is_empty() {
            self.problem(format!("{path}.fallback"), "only the root has a fallback", Some("move it to [route]"));
        }
        let inherited = above.map(|above| above.receivers.clone()).unwrap_or_default();
        let receivers = if route.receivers.is_empty() { inherited } else { own };
        let texts: Vec<String> = matchers.iter().map(ToString::to_string).collect();
        let key = match above {
            None => "{}".to_owned(),
            Some(above) => format!("{}/{{{}}}", above.key, texts.join(",")),
        };
        let grouping = self.grouping(route, path, above.map(|above| &above.grouping));
        let mut node = Node { key, matchers, receivers, grouping, goes_on: route.continue_, routes: Vec::new() };
        if depth == MAX_DEPTH && !route.routes.is_empty() {
            self.problem(
                format!("{path}.routes"),
                format!("routes are nested deeper than {MAX_DEPTH} levels"),
                Some("flatten them"),
            );
            return node;
        }
        for (index, child) in route.routes.iter().enumerate() {
            if self.routes >= MAX_ROUTES {
                self.wrong(format!("{path}.routes[{index}]"), format!("there are more than {MAX_ROUTES} routes"), None);
                break;
            }
            let child = self.node(child, &format!("{path}.routes[{index}]"), Some(&node), depth + 1);
            node.routes.push(child);
        }
        node
    }

    fn grouping(&mut self, route: &config::Route, path: &str, above: Option<&Grouping>) -> Grouping {
        let mut grouping = above.cloned().unwrap_or_default();
        // Intervals are of a route alone.
        grouping.active = self.named_intervals(&route.active_time_intervals, &format!("{path}.active_time_intervals"));
        grouping.mute = self.named_intervals(&route.mute_time_intervals, &format!("{path}.mute_time_intervals"));
        if let Some(labels) = &route.group_by {
            let begins = grouping.by == GroupBy::Alert;
            grouping.by = self.group_by(labels, &format!("{path}.group_by"));
            if begins {
                (grouping.wait, grouping.interval) = (grouping.wait.max(GROUP_WAIT), grouping.interval.max(GROUP_INTERVAL));
            }
        }
        if let Some(wait) = route.group_wait {
            grouping.wait = wait.delta();
        }
        if let Some(interval) = route.group_interval {
            grouping.interval = interval.delta();
        }
        if let Some(repeat) = route.repeat_interval {
            grouping.repeat = Some(repeat.delta());
        }
        grouping
    }

    fn group_by(&mut self, labels: &[String], path: &str) -> GroupBy {
        if labels.iter().any(|label| label == "...") {
            if labels.len() > 1 {
                let help = "write [\"...\"] alone, or name labels".to_owned();
                self.wrong(path.to_owned(), "\"...\" means all labels, so it stands alone", Some(help));
            }
            return GroupBy::AllLabels;
        }
        let mut names: Vec<String> = Vec::new();
        for (index, label) in labels.iter().enumerate() {
            if !matcher::is_label(label) {
                let help = Some("names have letters, digits, _, - and . and do not begin with a digit".to_owned());
                self.wrong(format!("{path}[{index}]"), format!("{label:?} cannot be the name of a label"), help);
            } else if names.contains(label) {
                self.wrong(format!("{path}[{index}]"), format!("{label:?} is named twice"), Some("leave one out".to_owned()));
            } else {
                names.push(label.clone());
            }
        }
        names.sort();
        GroupBy::Labels(names)
    }

    fn intervals(&mut self, intervals: &[config::TimeIntervals]) {
        for (index, interval) in intervals.iter().enumerate().take(MAX_RULES) {
            let path = format!("time_intervals[{index}]");
            if interval.name.is_empty() {
                let help = Some("add name = \"nights\"; routes refer to it".to_owned());
                self.wrong(path.clone(), "this interval has no `name`", help);
            } else if self.intervals.iter().any(|known| known.name == interval.name) {
                let help = Some("put both into one list of time_intervals, or rename one".to_owned());
                self.wrong(format!("{path}.name"), format!("two intervals are named {:?}", interval.name), help);
            }
            match Interval::build(interval) {
                Ok(interval) => self.intervals.push(interval),
                Err(wrong) => {
                    for (within, message, help) in wrong {
                        self.wrong(format!("{path}{within}"), message, Some(help));
                    }
                }
            }
        }
        if intervals.len() > MAX_RULES {
            self.wrong("time_intervals".to_owned(), format!("there are more than {MAX_RULES} intervals"), None);
        }
    }

    fn named_intervals(&mut self, names: &[String], path: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, name) in names.iter().enumerate() {
            if let Some(at) = self.intervals.iter().position(|interval| interval.name == *name) {
                found.push(at);
                continue;
            }
            let help = match closest(name, self.intervals.iter().map(|interval| interval.name.as_str())) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("add [[time_intervals]] with name = {name:?}"),
            };
            self.wrong(format!("{path}[{index}]"), format!("there is no time interval {name:?}"), Some(help));
        }
        found
    }

    fn inhibit_rules(&mut self, rules: &[config::InhibitRule]) -> Vec<InhibitRule> {
        let mut built = Vec::new();
        for (index, rule) in rules.iter().enumerate().take(MAX_RULES) {
            let path = format!("inhibit_rules[{index}]");
            for (key, texts) in [("source_matchers", &rule.source_matchers), ("target_matchers", &rule.target_matchers)] {
                if texts.is_empty() {
                    let help = Some(format!("add {key} = ['severity=\"critical\"']"));
                    self.wrong(path.clone(), format!("this inhibition has no `{key}`, so it would take every alert"), help);
                }
            }
            let source = self.matchers(&rule.source_matchers, &format!("{path}.source_matchers"));
            let target = self.matchers(&rule.target_matchers, &format!("{path}.target_matchers"));
            for (at, label) in rule.equal.iter().enumerate().filter(|(_, label)| !matcher::is_label(label)) {
                self.wrong(format!("{path}.equal[{at}]"), format!("{label:?} cannot be the name of a label"), None);
            }
            built.push(InhibitRule { source, target, equal: rule.equal.clone() });
        }
        if rules.len() > MAX_RULES {
            self.wrong("inhibit_rules".to_owned(), format!("there are more than {MAX_RULES} inhibitions"), None);
        }
        built
    }

    fn receivers(&mut self, names: &[String], path: &str) -> Vec<ReceiverName> {
        let mut found = Vec::new();
        for (index, name) in names.iter().enumerate() {
            if self.known.contains_key(name.as_str()) {
                let name = ReceiverName::from(name.as_str());
                if !found.contains(&name) {
                    found.push(name);
                }
                continue;
            }
            let help = match closest(name, self.known.keys().map(ReceiverName::as_str)) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None if self.known.is_empty() => "add a [[receiver]] section with that name".to_owned(),
                None => {
                    let names: Vec<_> = self.known.keys().take(10).map(ReceiverName::as_str).collect();
                    format!("there is: {}", names.join(", "))
                }
            };
            self.problem(format!("{path}[{index}]"), format!("there is no receiver {name:?}"), Some(&help));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{matcher::MAX_MATCHER_BYTES, *};

    fn receiver(name: &str) -> config::Receiver {
        config::Receiver { name: name.into(), ..Default::default() }
    }

    fn route(matchers: &[&str], receivers: &[&str], routes: Vec<config::Route>) -> config::Route {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        config::Route { matchers: owned(matchers), receivers: owned(receivers), routes, ..Default::default() }
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn build(route: &config::Route) -> Result<RouteTree, Vec<Problem>> {
        RouteTree::build(route, &["ops", "desk", "night", "archive"].map(receiver))
    }

    #[track_caller]
    fn check(tree: &RouteTree, pairs: &[(&str, &str)], expected: &[&str]) {
        let told = tree.route(&labels(pairs));
        assert_eq!(told.iter().map(ReceiverName::as_str).collect::<Vec<_>>(), expected, "{pairs:?}");
    }

    #[track_caller]
    fn holds(matcher: &str, pairs: &[(&str, &str)], expected: bool) {
        let parsed = Matcher::parse(matcher).unwrap_or_else(|error| panic!("{matcher}: {error}"));
        assert_eq!(parsed.matches(&labels(pairs)), expected, "{matcher} on {pairs:?}");
    }

    #[test]
    fn the_first_child_that_matches_wins_unless_it_continues() {
        let mut everything = route(&["severity=~\".+\""], &["archive"], vec![]);
        everything.continue_ = true;
        let tree = build(&route(
            &[],
            &["ops"],
            vec![
                everything,
                route(
                    &["severity=\"critical\""],
                    &["ops", "desk"],
                    vec![route(&["team=\"night\""], &["night"], vec![]), route(&["team=trading"], &[], vec![])],
                ),
                route(&["severity=\"critical\""], &["night"], vec![]),
            ],
        ))
        .expect("a tree");
        check(&tree, &[("severity", "critical")], &["archive", "ops", "desk"]);
        check(&tree, &[("severity", "critical"), ("team", "night")], &["archive", "night"]);
        check(&tree, &[("severity", "critical"), ("team", "trading")], &["archive", "ops", "desk"]);
        check(&tree, &[("severity", "info")], &["archive"]);
        check(&tree, &[], &["ops"]);
    }

    #[test]
    fn nobody_is_named_twice() {
        let mut first = route(&["a=b"], &["desk", "desk"], vec![]);
        first.continue_ = true;
        let tree = build(&route(&[], &["ops"], vec![first, route(&["a=b"], &["desk", "ops"], vec![])])).expect("a tree");
        check(&tree, &[("a", "b")], &["desk", "ops"]);
    }

    #[test]
    fn matchers_mean_what_alertmanager_means() {
        holds("a=\"b\"", &[("a", "b")], true);
        holds("a = b", &[("a", "b")], true);
        holds("a=b", &[("a", "bb")], false);
        holds("a!=b", &[], true);
        holds("a=\"\"", &[], true);
        holds("a!=\"\"", &[], false);
        holds("a=~\"b|c\"", &[("a", "c")], true);
        holds("a=~\"b|c\"", &[("a", "cc")], false);
        holds("a=~b.*", &[("a", "bcd")], true);
        holds("a=~\"(?i)ARB\"", &[("a", "arb")], true);
        holds("a=~\"\\d+\"", &[("a", "17")], true);
        holds("a!~\"b.*\"", &[("a", "c")], true);
        holds("a!~\"b.*\"", &[("a", "bc")], false);
        holds("a=\"say \\\"x\\\" \\\\\"", &[("a", "say \"x\" \\")], true);
        holds("a=\"b=c\"", &[("a", "b=c")], true);
    }

    #[test]
    fn what_is_no_matcher_is_refused_with_advice() {
        for text in [
            "",
            "severity",
            "=x",
            "a==\"b\"",
            "a!b",
            "a=\"b",
            "a=\"b\\",
            "a=two words",
            "a='b'",
            "a=\"b\",c=\"d\"",
            "{a=\"b\"}",
            "1a=b",
            "a=~\"(\"",
            "a=~\"b)|(c\"",
            "ä=b",
        ] {
            let error = Matcher::parse(text).expect_err(text);
            assert!(error.help.is_some() && !error.message.is_empty(), "{text}");
        }
        let huge = format!("a=\"{}\"", "x".repeat(MAX_MATCHER_BYTES));
        assert!(Matcher::parse(&huge).is_err());
        let bomb = "a=~\"((((x{100}){100}){100}){100})\"";
        assert_eq!(Matcher::parse(bomb).expect_err("too large").message, "this pattern is too large");
    }

    #[test]
    fn every_problem_is_found_at_once_with_its_place() {
        let mut child = route(&["severity=critical", "team"], &["dsek"], vec![route(&["a=~\"(\""], &["nobody at all"], vec![])]);
        child.fallback = vec!["ops".into()];
        let mut root = route(&["a=b"], &["ops"], vec![child]);
        root.fallback = vec!["desk".into(), "opps".into()];
        let problems = build(&root).expect_err("problems");
        let places: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(
            places,
            [
                "route.matchers",
                "route.routes[0].matchers[1]",
                "route.routes[0].receivers[0]",
                "route.routes[0].fallback",
                "route.routes[0].routes[0].matchers[0]",
                "route.routes[0].routes[0].receivers[0]",
                "route.fallback[1]",
            ]
        );
        assert_eq!(problems[2].help.as_deref(), Some("did you mean \"desk\"?"));
    }

    #[test]
    fn a_tree_whose_unmatched_alerts_reach_nobody_is_refused() {
        let problems = build(&route(&[], &[], vec![route(&["a=b"], &["ops"], vec![])])).expect_err("a problem");
        assert_eq!(problems[0].path, "route");
    }

    #[test]
    fn without_any_route_every_receiver_hears() {
        check(&build(&config::Route::default()).expect("a tree"), &[("a", "b")], &["archive", "desk", "night", "ops"]);
        check(&RouteTree::build(&config::Route::default(), &[]).expect("a tree"), &[("a", "b")], &[]);
    }

    #[test]
    fn a_dead_receiver_is_never_told_of_itself() {
        let mut root = route(&[], &["ops", "desk"], vec![]);
        let tree = build(&root).expect("a tree");
        assert_eq!(tree.fallback(&"ops".into()), vec![ReceiverName::from("desk")]);
        root.fallback = vec!["night".into()];
        let tree = build(&root).expect("a tree");
        assert_eq!(tree.fallback(&"ops".into()), vec![ReceiverName::from("night")]);
        assert_eq!(tree.fallback(&"night".into()), vec![ReceiverName::from("ops"), ReceiverName::from("desk")]);
    }

    #[test]
    fn too_deep_a_tree_is_refused() {
        let mut deep = route(&["a=b"], &["ops"], vec![]);
        for _ in 0..=MAX_DEPTH {
            deep = route(&["a=b"], &["ops"], vec![deep]);
        }
        deep.matchers.clear();
        assert!(build(&deep).expect_err("too deep").iter().any(|problem| problem.message.contains("nested deeper")));
    }

    #[test]
    fn send_resolved_is_known_of_each_receiver() {
        let quiet = config::Receiver { send_resolved: Some(false), ..receiver("quiet") };
        let tree = RouteTree::build(&config::Route::default(), &[receiver("ops"), quiet]).expect("a tree");
        assert!(tree.tells_ends_to(&"ops".into()) && !tree.tells_ends_to(&"quiet".into()) && !tree.tells_ends_to(&"gone".into()));
    }

    fn times(name: &str) -> config::TimeIntervals {
        let part = config::TimeInterval { weekdays: vec!["sat:sun".into()], ..Default::default() };
        config::TimeIntervals { name: name.into(), time_intervals: vec![part] }
    }

    fn grouped(labels: &[&str]) -> config::Route {
        config::Route { group_by: Some(labels.iter().map(|label| (*label).to_owned()).collect()), ..route(&[], &["ops"], vec![]) }
    }

    #[test]
    fn grouping_is_inherited_and_intervals_are_not() {
        let mut critical = route(&["severity=critical"], &[], vec![route(&["team=night"], &["night"], vec![])]);
        critical.group_wait = Some("0s".parse().expect("a span"));
        critical.mute_time_intervals = vec!["weekend".into()];
        let mut root = grouped(&["token", "alertname"]);
        root.repeat_interval = Some("4h".parse().expect("a span"));
        root.routes = vec![critical];
        let receivers = ["ops", "desk", "night", "archive"].map(receiver);
        let time_intervals = [times("weekend")];
        let sections = Sections { route: &root, receivers: &receivers, inhibit_rules: &[], time_intervals: &time_intervals };
        let tree = RouteTree::of(&sections).expect("a tree");
        let saturday = crate::wire::parse_timestamp("2026-03-07T12:00:00Z").expect("a time");
        let by = GroupBy::Labels(vec!["alertname".into(), "token".into()]);

        let plain = tree.leaf(&labels(&[]), &"ops".into());
        assert_eq!((plain.key(), &plain.grouping().by), ("{}", &by));
        assert_eq!((plain.grouping().wait, plain.grouping().interval), (GROUP_WAIT, GROUP_INTERVAL));
        let critical = tree.leaf(&labels(&[("severity", "critical")]), &"ops".into());
        assert_eq!(critical.key(), "{}/{severity=\"critical\"}");
        assert_eq!((critical.grouping().wait, critical.grouping().repeat), (TimeDelta::zero(), Some(TimeDelta::hours(4))));
        assert_eq!(tree.muted(critical.grouping(), saturday).as_deref(), Some("weekend"));
        assert_eq!(tree.muted(critical.grouping(), saturday + TimeDelta::days(2)), None);
        let night = tree.leaf(&labels(&[("severity", "critical"), ("team", "night")]), &"night".into());
        assert_eq!((night.grouping().wait, &night.grouping().by), (TimeDelta::zero(), &by));
        assert_eq!(tree.muted(night.grouping(), saturday), None, "a child is not muted with its parent");
        let named = tree.leaf(&labels(&[("severity", "critical")]), &"archive".into());
        assert_eq!(named.key(), "{}", "whom a rule names is told by the root");
    }

    #[test]
    fn without_group_by_each_alert_is_told_by_itself_at_once_and_never_again() {
        let tree = build(&route(&[], &["ops"], vec![])).expect("a tree");
        assert_eq!(*tree.leaf(&labels(&[]), &"ops".into()).grouping(), Grouping::default());
        let all = build(&grouped(&["..."])).expect("a tree");
        assert_eq!(all.leaf(&labels(&[]), &"ops".into()).grouping().by, GroupBy::AllLabels);
        let one = build(&grouped(&[])).expect("a tree");
        assert_eq!(one.leaf(&labels(&[]), &"ops".into()).grouping().by, GroupBy::Labels(vec![]));
    }

    #[test]
    fn what_is_wrong_beside_the_routes_is_found_too() {
        let mut child = route(&["a=b"], &["ops"], vec![]);
        child.mute_time_intervals = vec!["weekends".into()];
        child.group_by = Some(vec!["...".into(), "token".into()]);
        let mut root = grouped(&["token", "a b", "token"]);
        root.active_time_intervals = vec!["weekend".into()];
        root.routes = vec![child];
        let inhibit_rules = [config::InhibitRule { source_matchers: vec!["a".into()], ..Default::default() }];
        let time_intervals = [times("weekend"), times("weekend"), config::TimeIntervals::default()];
        let sections = Sections {
            route: &root,
            receivers: &[receiver("ops")],
            inhibit_rules: &inhibit_rules,
            time_intervals: &time_intervals,
        };
        let problems = RouteTree::of(&sections).expect_err("problems");
        let places: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(
            places,
            [
                "time_intervals[1].name",
                "time_intervals[2]",
                "time_intervals[2]",
                "route.active_time_intervals",
                "route.group_by[1]",
                "route.group_by[2]",
                "route.routes[0].mute_time_intervals[0]",
                "route.routes[0].group_by",
                "inhibit_rules[0]",
                "inhibit_rules[0].source_matchers[0]",
            ]
        );
        assert_eq!(problems[6].help.as_deref(), Some("did you mean \"weekend\"?"));
    }

    #[test]
    fn a_matcher_written_down_is_read_as_the_same() {
        for text in ["a=b", "a!=\"two words\"", "a=~\"x|\\d+\"", "a!~\"say \\\"x\\\" \\\\ \\n\"", "a=\"\""] {
            let matcher = Matcher::parse(text).expect(text);
            let again = Matcher::parse(&matcher.to_string()).expect("reads");
            assert_eq!(matcher, again, "{text}");
            let json = serde_json::to_string(&matcher).expect("writes");
            assert_eq!(serde_json::from_str::<Matcher>(&json).expect("reads"), matcher, "{text}");
        }
    }
}
