//! Builds and validates the route tree from the config. Reports all problems at once, each with its key.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::{CheckedInhibitRule, GroupBy, Grouping, KnownReceiver, NamedInterval, RouteTree, node::RouteNode};
use model::{Matcher, MatcherError, ReceiverName, closest, config, matcher};

/// The maximum nesting depth of routes.
pub const MAX_DEPTH: usize = 16;

/// The maximum number of routes in the tree.
pub const MAX_ROUTES: usize = 2_000;

/// The maximum number of inhibitions, and of time intervals.
pub const MAX_RULES: usize = 1_000;

/// The default `group_wait` of a route with `group_by`.
pub const GROUP_WAIT: TimeDelta = TimeDelta::seconds(30);

/// The default `group_interval` of a route with `group_by`.
pub const GROUP_INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// A problem in the routing sections of the config. The loader computes line and column from the path of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The path of the key, like `route.routes[1].receivers[0]`.
    pub path: String,
    /// The error text, lowercase and without a final period.
    pub message: String,
    pub help: Option<String>,
    /// Whether the loader also finds this problem, when it checks keys and names.
    pub is_of_keys: bool,
}

impl std::fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The config sections that define routing.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    /// `[route]`.
    pub route: &'a config::Route,
    /// `[[receiver]]`.
    pub receivers: &'a [config::ReceiverSettings],
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

impl RouteTree {
    /// Builds the tree from `[route]` and `[[receiver]]` only. See [`Self::of`].
    pub fn build(route: &config::Route, receivers: &[config::ReceiverSettings]) -> Result<Self, Vec<ConfigProblem>> {
        Self::of(&Sections { route, receivers, inhibit_rules: &[], time_intervals: &[] })
    }

    /// Builds the tree. A config without routes sends every alert to every receiver.
    ///
    /// # Errors
    ///
    /// Fails with all problems of the sections: invalid matchers, unknown receivers and intervals, and keys that a route cannot have.
    pub fn of(sections: &Sections<'_>) -> Result<Self, Vec<ConfigProblem>> {
        let route = sections.route;
        let mut known = BTreeMap::new();
        for receiver in sections.receivers {
            let (gets_resolutions, types) = (receiver.send_resolved.unwrap_or(true), receiver.types.clone());
            known.insert(ReceiverName::from(receiver.name.as_str()), KnownReceiver { gets_resolutions, types });
        }
        let mut builder = TreeBuilder { known: &known, intervals: Vec::new(), problems: Vec::new(), routes: 0 };
        builder.intervals(sections.time_intervals);
        if !route.matchers.is_empty() {
            builder.problem(
                "route.matchers",
                "the root route matches every alert and cannot have matchers",
                Some("move them into a [[route.routes]]"),
            );
        }
        if route.continue_ {
            builder.problem("route.continue", "the root route has no sibling to continue with", Some("remove it"));
        }
        for (key, names) in
            [("active_time_intervals", &route.active_time_intervals), ("mute_time_intervals", &route.mute_time_intervals)]
        {
            if !names.is_empty() {
                let advice = Some("move it into a [[route.routes]]");
                builder.problem(format!("route.{key}"), "the root route is always active and cannot have intervals", advice);
            }
        }
        let mut root = builder.node(route, "route", None, 0);
        if root.receivers.is_empty() && !known.is_empty() {
            if route.routes.is_empty() {
                root.receivers = known.keys().cloned().collect();
            } else if route.receivers.is_empty() {
                builder.problem(
                    "route",
                    "the root route has no receivers, so alerts that match no other route would be lost",
                    Some("add receivers = [\"…\"] under [route]"),
                );
            }
        }
        let fallback = builder.receivers(&route.fallback, "route.fallback");
        let inhibit_rules = builder.inhibit_rules(sections.inhibit_rules);
        let TreeBuilder { intervals, problems, .. } = builder;
        if problems.is_empty() { Ok(Self { root, fallback, known, intervals, inhibit_rules }) } else { Err(problems) }
    }
}

struct TreeBuilder<'a> {
    known: &'a BTreeMap<ReceiverName, KnownReceiver>,
    intervals: Vec<NamedInterval>,
    problems: Vec<ConfigProblem>,
    routes: usize,
}

impl TreeBuilder<'_> {
    /// Adds a problem that the loader also finds.
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>, help: Option<&str>) {
        let (path, message, help) = (path.into(), message.into(), help.map(str::to_owned));
        self.problems.push(ConfigProblem { path, message, help, is_of_keys: true });
    }

    /// Adds a problem that only this check finds.
    fn wrong(&mut self, path: String, message: impl Into<String>, help: Option<String>) {
        self.problems.push(ConfigProblem { path, message: message.into(), help, is_of_keys: false });
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

    fn node(&mut self, route: &config::Route, path: &str, above: Option<&RouteNode>, depth: usize) -> RouteNode {
        self.routes += 1;
        let matchers = self.matchers(&route.matchers, &format!("{path}.matchers"));
        let own = self.receivers(&route.receivers, &format!("{path}.receivers"));
        if depth > 0 && !route.fallback.is_empty() {
            self.problem(format!("{path}.fallback"), "only the root route can have a fallback", Some("move it to [route]"));
        }
        let inherited = above.map(|above| above.receivers.clone()).unwrap_or_default();
        let receivers = if route.receivers.is_empty() { inherited } else { own };
        let texts: Vec<String> = matchers.iter().map(ToString::to_string).collect();
        let key = match above {
            None => "{}".to_owned(),
            Some(above) => format!("{}/{{{}}}", above.key, texts.join(",")),
        };
        let grouping = self.grouping(route, path, above.map(|above| &above.grouping));
        let mut node = RouteNode { key, matchers, receivers, grouping, continues: route.continue_, routes: Vec::new() };
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

    /// Returns how a route groups its alerts. Options that it does not set are inherited from the route `above`; time intervals are not
    /// inherited. If the route above does not group alerts and this one does, `wait` and `interval` are at least [`GROUP_WAIT`] and
    /// [`GROUP_INTERVAL`] unless the route sets them. Problems are recorded under `path`.
    fn grouping(&mut self, route: &config::Route, path: &str, above: Option<&Grouping>) -> Grouping {
        let mut grouping = above.cloned().unwrap_or_default();
        // Intervals are not inherited.
        grouping.active = self.named_intervals(&route.active_time_intervals, &format!("{path}.active_time_intervals"));
        grouping.mute = self.named_intervals(&route.mute_time_intervals, &format!("{path}.mute_time_intervals"));
        if let Some(labels) = &route.group_by {
            let was_ungrouped = grouping.by == GroupBy::Alert;
            grouping.by = self.group_by(labels, &format!("{path}.group_by"));
            if was_ungrouped {
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
                let help = "write either [\"...\"] or a list of labels".to_owned();
                self.wrong(path.to_owned(), "\"...\" means all labels, so it must be the only item", Some(help));
            }
            return GroupBy::AllLabels;
        }
        let mut names: Vec<String> = Vec::new();
        for (index, label) in labels.iter().enumerate() {
            if !matcher::is_label(label) {
                let help = Some("use letters, digits, `_`, `-`, and `.`, and do not start with a digit".to_owned());
                self.wrong(format!("{path}[{index}]"), format!("{label:?} is not a valid label name"), help);
            } else if names.contains(label) {
                self.wrong(format!("{path}[{index}]"), format!("{label:?} is listed twice"), Some("remove one".to_owned()));
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
                let help = Some("add a name that routes can refer to, like name = \"nights\"".to_owned());
                self.wrong(path.clone(), "the interval has no `name`", help);
            } else if self.intervals.iter().any(|known| known.name == interval.name) {
                let help = Some("rename one, or merge both".to_owned());
                self.wrong(format!("{path}.name"), format!("two intervals are named {:?}", interval.name), help);
            }
            match NamedInterval::build(interval) {
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

    fn inhibit_rules(&mut self, rules: &[config::InhibitRule]) -> Vec<CheckedInhibitRule> {
        let mut built = Vec::new();
        for (index, rule) in rules.iter().enumerate().take(MAX_RULES) {
            let path = format!("inhibit_rules[{index}]");
            for (key, texts) in [("source_matchers", &rule.source_matchers), ("target_matchers", &rule.target_matchers)] {
                if texts.is_empty() {
                    let help = Some(format!("add {key} = ['severity=\"critical\"']"));
                    self.wrong(path.clone(), format!("the inhibition has no `{key}`, so it would match every alert"), help);
                }
            }
            let source = self.matchers(&rule.source_matchers, &format!("{path}.source_matchers"));
            let target = self.matchers(&rule.target_matchers, &format!("{path}.target_matchers"));
            for (at, label) in rule.equal.iter().enumerate().filter(|(_, label)| !matcher::is_label(label)) {
                self.wrong(format!("{path}.equal[{at}]"), format!("{label:?} is not a valid label name"), None);
            }
            built.push(CheckedInhibitRule { source, target, equal: rule.equal.clone() });
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
                None if self.known.is_empty() => "add a [[receiver]] section with this name".to_owned(),
                None => {
                    let names: Vec<_> = self.known.keys().take(10).map(ReceiverName::as_str).collect();
                    format!("known receivers: {}", names.join(", "))
                }
            };
            self.problem(format!("{path}[{index}]"), format!("there is no receiver {name:?}"), Some(&help));
        }
        found
    }
}
