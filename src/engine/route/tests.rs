use super::*;
use model::{MAX_MATCHER_BYTES, Matcher, config};

fn receiver(name: &str) -> config::ReceiverSettings {
    config::ReceiverSettings { name: name.into(), ..Default::default() }
}

fn route(matchers: &[&str], receivers: &[&str], routes: Vec<config::Route>) -> config::Route {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    config::Route { matchers: owned(matchers), receivers: owned(receivers), routes, ..Default::default() }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn build(route: &config::Route) -> Result<RouteTree, Vec<ConfigProblem>> {
    RouteTree::build(route, &["ops", "desk", "night", "archive"].map(receiver))
}

#[track_caller]
fn check(tree: &RouteTree, pairs: &[(&str, &str)], expected: &[&str]) {
    let receivers = tree.route(&labels(pairs));
    assert_eq!(receivers.iter().map(ReceiverName::as_str).collect::<Vec<_>>(), expected, "{pairs:?}");
}

#[track_caller]
fn holds(matcher: &str, pairs: &[(&str, &str)], expected: bool) {
    let parsed = Matcher::parse(matcher).unwrap_or_else(|error| panic!("{matcher}: {error}"));
    assert_eq!(parsed.matches(&labels(pairs)), expected, "{matcher} on {pairs:?}");
}

#[test]
fn first_matching_child_wins_unless_it_continues() {
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
fn each_receiver_is_returned_once() {
    let mut first = route(&["a=b"], &["desk", "desk"], vec![]);
    first.continue_ = true;
    let tree = build(&route(&[], &["ops"], vec![first, route(&["a=b"], &["desk", "ops"], vec![])])).expect("a tree");
    check(&tree, &[("a", "b")], &["desk", "ops"]);
}

#[test]
fn matchers_behave_as_in_alertmanager() {
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
fn invalid_matchers_are_rejected_with_help() {
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
fn reports_all_problems_with_their_paths() {
    let mut child = route(&["severity=critical", "team"], &["dsek"], vec![route(&["a=~\"(\""], &["no such receiver"], vec![])]);
    child.fallback = vec!["ops".into()];
    let mut root = route(&["a=b"], &["ops"], vec![child]);
    root.fallback = vec!["desk".into(), "opps".into()];
    let problems = build(&root).expect_err("problems");
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
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
fn root_without_receivers_is_rejected() {
    let problems = build(&route(&[], &[], vec![route(&["a=b"], &["ops"], vec![])])).expect_err("a problem");
    assert_eq!(problems[0].path, "route");
}

#[test]
fn config_without_routes_sends_to_every_receiver() {
    check(&build(&config::Route::default()).expect("a tree"), &[("a", "b")], &["archive", "desk", "night", "ops"]);
    check(&RouteTree::build(&config::Route::default(), &[]).expect("a tree"), &[("a", "b")], &[]);
}

#[test]
fn fallback_never_contains_the_dead_receiver() {
    let mut root = route(&[], &["ops", "desk"], vec![]);
    let tree = build(&root).expect("a tree");
    assert_eq!(tree.fallback(&"ops".into()), vec![ReceiverName::from("desk")]);
    root.fallback = vec!["night".into()];
    let tree = build(&root).expect("a tree");
    assert_eq!(tree.fallback(&"ops".into()), vec![ReceiverName::from("night")]);
    assert_eq!(tree.fallback(&"night".into()), vec![ReceiverName::from("ops"), ReceiverName::from("desk")]);

    // A root with one receiver and a child with another, as in the how-to.
    let child = route(&["severity=\"critical\""], &["ops", "night"], vec![]);
    let tree = build(&route(&[], &["ops"], vec![child])).expect("a tree");
    assert_eq!(tree.fallback(&"ops".into()), vec![ReceiverName::from("night")]);
    assert_eq!(tree.fallback(&"night".into()), vec![ReceiverName::from("ops")]);
    let tree = build(&route(&[], &["ops"], vec![])).expect("a tree");
    assert_eq!(tree.fallback(&"ops".into()), Vec::<ReceiverName>::new());
}

#[test]
fn too_deep_tree_is_rejected() {
    let mut deep = route(&["a=b"], &["ops"], vec![]);
    for _ in 0..=MAX_DEPTH {
        deep = route(&["a=b"], &["ops"], vec![deep]);
    }
    deep.matchers.clear();
    assert!(build(&deep).expect_err("too deep").iter().any(|problem| problem.message.contains("nested deeper")));
}

#[test]
fn send_resolved_applies_per_receiver() {
    let quiet = config::ReceiverSettings { send_resolved: Some(false), ..receiver("quiet") };
    let tree = RouteTree::build(&config::Route::default(), &[receiver("ops"), quiet]).expect("a tree");
    assert!(
        tree.sends_resolved_to(&"ops".into())
            && !tree.sends_resolved_to(&"quiet".into())
            && !tree.sends_resolved_to(&"gone".into())
    );
}

fn weekends(name: &str) -> config::TimeIntervals {
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
    let time_intervals = [weekends("weekend")];
    let sections = Sections { route: &root, receivers: &receivers, inhibit_rules: &[], time_intervals: &time_intervals };
    let tree = RouteTree::of(&sections).expect("a tree");
    let saturday = model::wire::parse_timestamp("2026-03-07T12:00:00Z").expect("a time");
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
    assert_eq!(named.key(), "{}", "a receiver that a rule names uses the root");
}

#[test]
fn group_by_defaults_to_no_grouping() {
    let tree = build(&route(&[], &["ops"], vec![])).expect("a tree");
    assert_eq!(*tree.leaf(&labels(&[]), &"ops".into()).grouping(), Grouping::default());
    let all = build(&grouped(&["..."])).expect("a tree");
    assert_eq!(all.leaf(&labels(&[]), &"ops".into()).grouping().by, GroupBy::AllLabels);
    let one = build(&grouped(&[])).expect("a tree");
    assert_eq!(one.leaf(&labels(&[]), &"ops".into()).grouping().by, GroupBy::Labels(vec![]));
}

#[test]
fn reports_problems_of_grouping_intervals_and_inhibitions() {
    let mut child = route(&["a=b"], &["ops"], vec![]);
    child.mute_time_intervals = vec!["weekends".into()];
    child.group_by = Some(vec!["...".into(), "token".into()]);
    let mut root = grouped(&["token", "a b", "token"]);
    root.active_time_intervals = vec!["weekend".into()];
    root.routes = vec![child];
    let inhibit_rules = [config::InhibitRule { source_matchers: vec!["a".into()], ..Default::default() }];
    let time_intervals = [weekends("weekend"), weekends("weekend"), config::TimeIntervals::default()];
    let sections =
        Sections { route: &root, receivers: &[receiver("ops")], inhibit_rules: &inhibit_rules, time_intervals: &time_intervals };
    let problems = RouteTree::of(&sections).expect_err("problems");
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
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
fn matcher_round_trips_through_text_and_json() {
    for text in ["a=b", "a!=\"two words\"", "a=~\"x|\\d+\"", "a!~\"say \\\"x\\\" \\\\ \\n\"", "a=\"\""] {
        let matcher = Matcher::parse(text).expect(text);
        let again = Matcher::parse(&matcher.to_string()).expect("reads");
        assert_eq!(matcher, again, "{text}");
        let json = serde_json::to_string(&matcher).expect("writes");
        assert_eq!(serde_json::from_str::<Matcher>(&json).expect("reads"), matcher, "{text}");
    }
}

#[test]
fn fallback_prefers_receivers_that_want_incidents() {
    let receiver = |name: &str, types: &[NotificationKind]| config::ReceiverSettings {
        name: name.into(),
        types: types.to_vec(),
        ..Default::default()
    };
    let build = |night: &[NotificationKind]| {
        let receivers = [
            receiver("ops", &[]),
            receiver("desk", &[NotificationKind::Firing]),
            receiver("night", night),
            receiver("spare", &[]),
        ];
        let root = config::Route { fallback: vec!["desk".into()], ..route(&[], &["ops", "night"], vec![]) };
        RouteTree::build(&root, &receivers).expect("a tree")
    };
    assert_eq!(build(&[]).fallback(&"ops".into()), [ReceiverName::from("night")], "the fallback does not want incidents");
    assert_eq!(build(&[NotificationKind::Digest]).fallback(&"ops".into()), [ReceiverName::from("desk")], "no other does either");
}
