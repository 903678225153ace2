//! Who is told: the `[route]` tree, checked and ready.
//!
//! The words and their meaning are those of Alertmanager. An alert enters at the root and goes down into the first child whose
//! matchers all hold, and on to the next sibling where that child says `continue`; the deepest routes that it reaches name its
//! receivers. A child without receivers takes its parent's. A label that an alert does not have counts as empty.
//!
//! [`RouteTree::build`] finds every problem at once; a tree that was built cannot be wrong. Pure: no clock, no I/O.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use crate::{alert::Labels, config, diagnostic::closest, supply::ReceiverName};

/// How deep routes may be nested.
pub const MAX_DEPTH: usize = 16;

/// Routes in the whole tree.
pub const MAX_ROUTES: usize = 2_000;

/// Bytes of one matcher.
pub const MAX_MATCHER_BYTES: usize = 1_024;

/// Memory for one compiled pattern, bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Something wrong in `[route]`, with where: a path such as `route.routes[1].matchers[0]`, from which the loader finds line and caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key: `route.routes[1].receivers[0]`.
    pub path: String,
    /// What is wrong, in lower case, without a full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
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

/// The routes of a config, together with what routing must know of its receivers.
#[derive(Clone, Debug, Default)]
pub struct RouteTree {
    root: Node,
    fallback: Vec<ReceiverName>,
    /// All receivers of the config; whether the end of an alert is told to them.
    known: BTreeMap<ReceiverName, bool>,
}

/// One route. Its receivers are its own, else those of the nearest route above that has any.
#[derive(Clone, Debug, Default)]
struct Node {
    matchers: Vec<Matcher>,
    receivers: Vec<ReceiverName>,
    goes_on: bool,
    routes: Vec<Node>,
}

impl RouteTree {
    /// Builds the tree from `[route]` and the `[[receiver]]` sections. A config without any route sends everything to every
    /// receiver: whoever configures one receiver and nothing else wants to hear.
    ///
    /// # Errors
    /// All problems of the section: matchers that cannot be read, receivers that do not exist, keys that only the root may have.
    pub fn build(route: &config::Route, receivers: &[config::Receiver]) -> Result<Self, Vec<Problem>> {
        let mut known = BTreeMap::new();
        for receiver in receivers {
            known.insert(ReceiverName::from(receiver.name.as_str()), receiver.send_resolved.unwrap_or(true));
        }
        let mut builder = Builder { known: &known, problems: Vec::new(), routes: 0 };
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
        let mut root = builder.node(route, "route", &[], 0);
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
        if builder.problems.is_empty() { Ok(Self { root, fallback, known }) } else { Err(builder.problems) }
    }

    /// Who is told of an alert with these labels, each once, in the order of the tree.
    #[must_use]
    pub fn route(&self, labels: &Labels) -> Vec<ReceiverName> {
        let mut told = Vec::new();
        self.root.collect(labels, &mut told);
        told
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
}

impl Node {
    /// Adds the receivers that `labels` reach below this route; false where its own matchers keep them out.
    fn collect(&self, labels: &Labels, told: &mut Vec<ReceiverName>) -> bool {
        if !self.matchers.iter().all(|matcher| matcher.matches(labels)) {
            return false;
        }
        let mut went_down = false;
        for child in &self.routes {
            if child.collect(labels, told) {
                went_down = true;
                if !child.goes_on {
                    break;
                }
            }
        }
        if !went_down {
            for receiver in &self.receivers {
                if !told.contains(receiver) {
                    told.push(receiver.clone());
                }
            }
        }
        true
    }
}

struct Builder<'a> {
    known: &'a BTreeMap<ReceiverName, bool>,
    problems: Vec<Problem>,
    routes: usize,
}

impl Builder<'_> {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>, help: Option<&str>) {
        self.problems.push(Problem { path: path.into(), message: message.into(), help: help.map(str::to_owned) });
    }

    fn node(&mut self, route: &config::Route, path: &str, inherited: &[ReceiverName], depth: usize) -> Node {
        self.routes += 1;
        let mut matchers = Vec::new();
        for (index, text) in route.matchers.iter().enumerate() {
            match Matcher::parse(text) {
                Ok(matcher) => matchers.push(matcher),
                Err(MatcherError { message, help }) => {
                    self.problems.push(Problem { path: format!("{path}.matchers[{index}]"), message, help });
                }
            }
        }
        let own = self.receivers(&route.receivers, &format!("{path}.receivers"));
        if depth > 0 && !route.fallback.is_empty() {
            self.problem(format!("{path}.fallback"), "only the root has a fallback", Some("move it to [route]"));
        }
        let receivers = if route.receivers.is_empty() { inherited.to_vec() } else { own };
        let mut routes = Vec::new();
        if depth == MAX_DEPTH && !route.routes.is_empty() {
            self.problem(
                format!("{path}.routes"),
                format!("routes are nested deeper than {MAX_DEPTH} levels"),
                Some("flatten them"),
            );
        } else {
            for (index, child) in route.routes.iter().enumerate() {
                if self.routes >= MAX_ROUTES {
                    self.problem(format!("{path}.routes[{index}]"), format!("there are more than {MAX_ROUTES} routes"), None);
                    break;
                }
                routes.push(self.node(child, &format!("{path}.routes[{index}]"), &receivers, depth + 1));
            }
        }
        Node { matchers, receivers, goes_on: route.continue_, routes }
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

/// A condition on one label: `severity="critical"`, `team!="ops"`, `token=~"arb.*"`, `kind!~"timeout|held"`.
#[derive(Clone, Debug)]
pub struct Matcher {
    label: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Is(String),
    IsNot(String),
    Like(Regex),
    Unlike(Regex),
}

/// Why a text is no matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MatcherError {
    /// What is wrong, in lower case, without a full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

fn wrong(message: impl Into<String>, help: impl Into<String>) -> MatcherError {
    MatcherError { message: message.into(), help: Some(help.into()) }
}

impl Matcher {
    /// Reads a matcher: a label, one of `=` `!=` `=~` `!~`, and a value, in double quotes unless it is a plain word. Patterns are
    /// anchored at both ends.
    ///
    /// # Errors
    /// Where it cannot be read, with what to write instead.
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        const FORM: &str = "write it like severity=\"critical\", with =, !=, =~ or !~";
        if text.len() > MAX_MATCHER_BYTES {
            return Err(wrong(format!("this matcher is longer than {MAX_MATCHER_BYTES} bytes"), "split it into several"));
        }
        let text = text.trim();
        if text.starts_with('{') {
            return Err(wrong(
                "a matcher stands without braces",
                "write each condition as an item of its own: [\"a=\\\"b\\\"\", \"c=\\\"d\\\"\"]",
            ));
        }
        let Some(at) = text.find(['=', '!']) else {
            return Err(wrong("this matcher compares nothing", FORM));
        };
        let (label, rest) = text.split_at(at);
        let label = label.trim();
        if label.is_empty() {
            return Err(wrong("this matcher names no label", FORM));
        }
        if !is_label(label) {
            return Err(wrong(
                format!("{label:?} cannot be the name of a label"),
                "names have letters, digits, _, - and . and do not begin with a digit",
            ));
        }
        // The longer operators come first: `=~` begins like `=`.
        let Some((operator, value)) = ["=~", "!~", "!=", "="].into_iter().find_map(|op| Some((op, rest.strip_prefix(op)?)))
        else {
            return Err(wrong("after ! comes = or ~", FORM));
        };
        if value.starts_with('=') {
            return Err(wrong("matchers compare with a single =", FORM));
        }
        let value = value_of(value.trim())?;
        let test = match operator {
            "=" => Test::Is(value),
            "!=" => Test::IsNot(value),
            "=~" => Test::Like(pattern(&value)?),
            _ => Test::Unlike(pattern(&value)?),
        };
        Ok(Self { label: label.to_owned(), test })
    }

    /// Whether it holds for an alert with these labels.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.label).map_or("", String::as_str);
        match &self.test {
            Test::Is(wanted) => value == wanted,
            Test::IsNot(unwanted) => value != unwanted,
            Test::Like(pattern) => pattern.is_match(value),
            Test::Unlike(pattern) => !pattern.is_match(value),
        }
    }
}

fn is_label(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// The value of a matcher: a plain word, or a text in double quotes with the escapes `\"`, `\\` and `\n`. Other escapes stay as
/// they are, so that a pattern may say `\d`.
fn value_of(text: &str) -> Result<String, MatcherError> {
    let Some(quoted) = text.strip_prefix('"') else {
        return match text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '{' | '}')) {
            None => Ok(text.to_owned()),
            Some(_) => Err(wrong(format!("the value {text:?} needs double quotes"), "write it like team=\"market makers\"")),
        };
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let after = chars.as_str().trim();
                return match after {
                    "" => Ok(value),
                    _ => Err(wrong(format!("{after:?} follows the value"), "write each condition as an item of its own")),
                };
            }
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err(wrong("the value's closing quote is missing", "end it with a double quote"))
}

fn pattern(text: &str) -> Result<Regex, MatcherError> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
    // By itself first, so that a stray bracket cannot end the group that anchors it.
    compile(text).and_then(|_| compile(&format!("^(?:{text})$"))).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => wrong("this pattern is too large", "make it shorter"),
        error => {
            // The last line of the library's message is the reason; the lines before it draw the pattern.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            wrong(format!("this is no pattern: {reason}"), "patterns are regular expressions, such as token=~\"arb.*|optimism\"")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
