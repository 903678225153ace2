use super::*;
use model::{self, Change, SourceText, config, wire};
use rules::{self, Surroundings};
use testkit::labels;

const RULES: &str = r#"
[[rule]]
alert  = "Big"
on     = "unlock"
within = ["7d", "1d"]
when   = "cliffAmount >= 1000"
[rule.annotations]
summary = "{{ token.id }} {{ cliffAmount | amount }} {{ when }}"

[[rule]]
alert  = "Moved"
on     = "unlock.rescheduled"

[[rule]]
alert  = "Burned"
on     = "burn"

[[rule]]
alert  = "Never"
on     = "funding"
"#;

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

fn compiled(text: &str) -> RuleSet {
    let source = SourceText { file: "rules.toml".into(), text: text.into() };
    let names = ["ops".to_owned(), "desk".to_owned()];
    let loaded = rules::load(&[source], &Surroundings { receivers: &names, groups: &BTreeMap::new(), now: at("2026-01-01") });
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    loaded.set
}

fn routes() -> RouteTree {
    let receivers: Vec<_> = ["ops", "desk"]
        .into_iter()
        .map(|name| config::ReceiverSettings { name: name.into(), ..config::ReceiverSettings::default() })
        .collect();
    RouteTree::build(&config::Route { receivers: vec!["ops".into(), "desk".into()], ..config::Route::default() }, &receivers)
        .unwrap()
}

fn played(history: &History, rules: &RuleSet, from: &str, to: &str) -> BacktestRun {
    let (routes, watch) = (
        routes(),
        Watch::build(&config::WatchSettings {
            tokens: vec!["*".into()],
            groups: BTreeMap::new(),
            ..config::WatchSettings::default()
        })
        .unwrap(),
    );
    let setup =
        BacktestSetup { rules, routes: &routes, delivery: &DeliverySetup::default(), watch: &watch, pace: Pace::default() };
    run(history, &setup, at(from), at(to), |_| {})
}

/// Creates a data folder with a schedule, a burn before the start, and a burn after it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("tokens.json", r#"[{"tokenId": "x", "name": "X", "symbol": "XX"}]"#);
    let event = |date: &str, amount: u32| {
        format!(
            r#"{{"unlockDate": "{date}", "cliffUnlocks": {{"cliffAmount": {amount}, "allocationBreakdown": [{{"allocationName": "Team", "cliffAmount": {amount}}}]}}}}"#
        )
    };
    write("unlock-events/x.json", &format!("[{},{}]", event("2026-02-10T00:00:00Z", 5000), event("2026-03-10T00:00:00Z", 10)));
    write(
        "burn/x.json",
        r#"{"tokenId": "x", "tokenName": "X", "tokenSymbol": "XX", "burns": [
            {"burnEventLabel": "a", "burnType": "P", "burnDate": "2026-01-01T00:00:00Z", "amount": 1},
            {"burnEventLabel": "b", "burnType": "P", "burnDate": "2026-02-20T00:00:00Z", "amount": 2}]}"#,
    );
    folder
}

#[test]
fn data_folder_replays_lead_times_and_burns() {
    let folder = folder();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    let run = played(&history, &compiled(RULES), "2026-01-20", "2026-03-01");
    let notified: Vec<_> = run
        .notifications
        .iter()
        .map(|notification| (notification.at.to_rfc3339(), notification.rule.as_str(), notification.reason.as_str()))
        .collect();
    let expected = [
        ("2026-02-03T00:00:00+00:00", "Big", "lead 7d"),
        ("2026-02-09T00:00:00+00:00", "Big", "lead 1d"),
        ("2026-02-10T00:00:00+00:00", "Big", "passed"),
        ("2026-02-20T00:00:00+00:00", "Burned", "added"),
    ];
    assert_eq!(notified, expected.map(|(at, rule, reason)| (at.to_owned(), rule, reason)));
    let messages: Vec<_> = run.messages.iter().map(|message| (message.at, message.receiver.as_str(), message.title())).collect();
    assert_eq!(messages.len(), 8, "each to two receivers");
    let text = "x 5.00K on 10 Feb 2026".to_owned();
    assert_eq!(messages[..2], [(at("2026-02-03"), "desk", text.clone()), (at("2026-02-03"), "ops", text)]);
    let joint_messages: Vec<_> = joint_messages(&run.messages).map(|(_, receivers)| receivers).collect();
    assert_eq!(joint_messages, vec![vec!["desk", "ops"]; 4], "equal messages are listed once");
    assert_eq!(run.undelivered, []);
}

#[test]
fn daily_emission_is_replayed_if_a_rule_subscribes() {
    let folder = folder();
    let day = |n: u32| {
        let (start, end) = (format!("2026-02-{n:02}T00:00:00Z"), format!("2026-02-{:02}T00:00:00Z", n + 1));
        format!(r#"{{"startDate": "{start}", "endDate": "{end}", "unlockAmount": 5}}"#)
    };
    std::fs::create_dir(folder.path().join("daily-emission")).unwrap();
    std::fs::write(folder.path().join("daily-emission/x.json"), format!("[{},{},{}]", day(1), day(2), day(3))).unwrap();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    for (rule, notified) in [
        ("on = \"emission\"\nwhen = \"unlockAmount >= 5\"", 3),
        ("on = \"emission.added\"", 3),
        ("on = \"token\"\nwhen = 'emitted(\"30d\").amount >= 15'", 1),
        ("on = \"burn\"", 1),
    ] {
        let run = played(&history, &compiled(&format!("[[rule]]\nalert = \"A\"\n{rule}\n")), "2026-01-20", "2026-03-01");
        let fired = run.notifications.iter().filter(|notification| notification.kind != "alert.resolved").count();
        assert_eq!(fired, notified, "{rule}: {:#?}", run.notifications);
        // The burn, and the daily emissions.
        assert_eq!(run.changes, if rule.contains("burn") { 1 } else { 4 }, "{rule}");
    }
}

#[test]
fn folder_of_versions_replays_corrections() {
    let folder = tempfile::tempdir().unwrap();
    let version = |at: &str, date: &str| {
        format!(
            r#"{{"at": "{at}", "data": [{{"unlockDate": "{date}", "cliffUnlocks": {{"cliffAmount": 7, "allocationBreakdown": [{{"allocationName": "Team", "cliffAmount": 7}}]}}}}]}}"#
        )
    };
    let text = format!(
        "{}\n{}\n",
        version("2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"),
        version("2026-01-05T09:30:00Z", "2026-06-11T00:00:00Z")
    );
    std::fs::write(folder.path().join("x.jsonl"), text).unwrap();
    let history = History::read(folder.path(), None, at("2026-03-01")).unwrap();
    assert_eq!(history.span(), Some((at("2026-01-01"), at("2026-01-05T09:30:00Z"))));
    let run = played(&history, &compiled(RULES), "2026-01-01", "2026-02-01");
    let notified: Vec<_> = run.notifications.iter().map(|notification| (notification.at, notification.rule.as_str())).collect();
    assert_eq!(notified, [(at("2026-01-05T09:30:00Z"), "Moved")]);
}

#[test]
fn invalid_line_is_reported_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.jsonl"), "{\"at\": \"2026-01-01T00:00:00Z\", \"data\": []}\n{oops\n").unwrap();
    let error = History::read(folder.path(), None, at("2026-03-01")).unwrap_err().to_string();
    assert!(error.contains("x.jsonl:2: "), "{error}");
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(History::read(empty.path(), None, at("2026-03-01")), Err(HistoryError::Unknown(_))));
}

#[test]
fn summary_counts_messages_by_rule_receiver_and_week() {
    let folder = folder();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    let summary = BacktestSummary::of(&played(&history, &compiled(RULES), "2026-01-20", "2026-03-01"));
    assert_eq!((summary.alerts, summary.messages, summary.joined, summary.undelivered.len()), (2, 8, 0, 0));
    let rows: Vec<_> = summary.rules.iter().map(|row| (row.name.as_str(), row.alerts, row.messages)).collect();
    assert_eq!(rows, [("Big", 1, 6), ("Burned", 1, 2), ("Moved", 0, 0), ("Never", 0, 0)]);
    // 2026-02-03 is in the week of 2 Feb, 9 and 10 Feb are in the next one.
    assert_eq!(summary.weeks.first().map(ToString::to_string).as_deref(), Some("2026-01-19"));
    assert_eq!(summary.rules[0].by_week, [0, 0, 2, 4, 0, 0]);
    assert_eq!(summary.rules[0].busiest(), Some((3, 4)));
    assert_eq!(summary.receivers[1].shares, [("Big".to_owned(), 3), ("Burned".to_owned(), 1)].into());
    assert_eq!(summary.noisiest[0], ("Big".to_owned(), "XX".to_owned(), 6));
}

#[test]
fn comparison_finds_gained_lost_and_changed_messages() {
    let folder = folder();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    let now = played(&history, &compiled(RULES), "2026-01-20", "2026-03-01");
    let other = RULES
        .replace("[\"7d\", \"1d\"]", "[\"14d\", \"1d\"]")
        .replace("{{ token.id }} {{", "{{ token.symbol }} {{")
        .replace("on     = \"burn\"", "on     = \"burn\"\nreceivers = [\"ops\"]");
    let other = played(&history, &compiled(&other), "2026-01-20", "2026-03-01");
    let comparison = compare(&now, &other);
    let brief = |messages: &[BacktestMessage]| {
        let brief = messages
            .iter()
            .map(|message| format!("{} {} -> {}", message.notified[0].rule, message.notified[0].reason, message.receiver));
        brief.collect::<Vec<_>>()
    };
    // The first message of an alert at another time is a changed message.
    assert_eq!(brief(&comparison.gained), Vec::<String>::new());
    assert_eq!(brief(&comparison.lost), ["Burned added -> desk"]);
    assert_eq!((comparison.changed.len(), comparison.same), (6, 1));
    assert_eq!(compare(&now, &now), BacktestComparison { same: 8, ..BacktestComparison::default() });
}

#[test]
fn grouped_alerts_count_as_one_message() {
    let folder = folder();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    let receivers = [config::ReceiverSettings { name: "ops".into(), ..config::ReceiverSettings::default() }];
    let route = config::Route { receivers: vec!["ops".into()], group_by: Some(Vec::new()), ..config::Route::default() };
    let routes = RouteTree::build(&route, &receivers).unwrap();
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let silences = vec![model::silence::Silence {
        id: "si_1".into(),
        matchers: model::silence::read_matchers(["alertname=Burned"]).unwrap(),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: at("2026-01-01"),
        ends_at: at("2026-06-01"),
        created_at: at("2026-01-01"),
    }];
    let delivery = DeliverySetup { silences, ..DeliverySetup::default() };
    // Two rules match the same event in the same minute.
    let set = compiled(&RULES.replace(
        "alert  = \"Never\"\non     = \"funding\"",
        "alert  = \"Too\"\non     = \"unlock\"\nwithin = [\"7d\"]\nwhen   = \"cliffAmount >= 1000\"",
    ));
    let setup = BacktestSetup { rules: &set, routes: &routes, delivery: &delivery, watch: &watch, pace: Pace::default() };
    let run = run(&history, &setup, at("2026-01-20"), at("2026-03-01"), |_| {});
    let summary = BacktestSummary::of(&run);
    // Both fire in one message, one has a reminder of its own, and both resolve in one message. The burn is silenced.
    assert_eq!((summary.alerts, summary.messages, summary.joined), (3, 3, 2));
    assert_eq!(summary.undelivered, [("silenced", 1)].into());
    let rows: Vec<_> = summary.rules.iter().map(|row| (row.name.as_str(), row.alerts, row.messages, row.undelivered)).collect();
    assert_eq!(rows, [("Big", 1, 3, 0), ("Too", 1, 2, 0), ("Burned", 1, 0, 1), ("Moved", 0, 0, 0)]);
    assert_eq!(run.messages[0].title(), "x 5.00K on 10 Feb 2026 (and 1 more)");
    assert_eq!(run.undelivered[0].suppressor.as_deref(), Some("si_1"));
    let page = page(&run, &summary, None).unwrap();
    assert!(page.contains("<b>2 alerts</b>") && page.contains("not sent to ops: silenced by si_1"), "{page}");
}

#[test]
fn page_escapes_hostile_text() {
    let folder = folder();
    let history = History::read(folder.path(), Some(at("2026-01-20")), at("2026-03-01")).unwrap();
    let mut run = played(&history, &compiled(RULES), "2026-01-20", "2026-03-01");
    for message in &mut run.messages {
        for notification in &mut message.notified {
            let notification = Arc::make_mut(notification);
            notification.summary = "<script>alert(1)</script>\u{202e}\"'".into();
            notification.reason = "</svg><img src=x onerror=alert(1)>".into();
            notification.rule = "<b>".into();
        }
    }
    run.rules.push("<b>".into());
    let page = page(&run, &BacktestSummary::of(&run), Some(&compare(&run, &run))).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("<b>\"") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("<script>").count(), 1, "only our own script");
    assert_eq!(page.matches("<circle").count(), 4, "one dot per alert in a message");
    assert!(page.contains("data-rule=\"&lt;b&gt;\""));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;&#x2f;script&gt;"));
    assert!(!page.contains("http://") && !page.contains("https://"), "no external resources");
}

#[test]
fn real_corrections_are_reported_like_the_labels() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/revisions");
    let labels = labels::labels(&folder);
    let last = labels.iter().map(|label| at(&label.at)).max().expect("labels") + TimeDelta::days(3);
    let history = History::read(&folder, None, last).expect("versions");
    let (rules, routes) = (compiled(RULES), routes());
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let from = history.span().expect("versions").0;
    let mut simulation = Simulation::new(&rules, &routes, &watch, Pace::default(), from);
    let mut notified: Vec<(Timestamp, Change)> = Vec::new();
    history.replay(&mut simulation, last, |simulation| {
        notified.extend(simulation.take_changes());
        std::ops::ControlFlow::Continue(())
    });
    let (mut right, mut faults) = (0, Vec::new());
    for label in &labels {
        let same = labels.iter().filter(|other| other.token == label.token).map(|other| at(&other.at));
        let next = same.filter(|other| *other > at(&label.at)).min().unwrap_or(last);
        let is_of = |(when, change): &&(Timestamp, Change)| {
            change.token.as_ref().is_some_and(|token| token.as_str() == label.token) && *when >= at(&label.at) && *when < next
        };
        let of: Vec<Change> = notified.iter().filter(is_of).map(|(_, change)| change.clone()).collect();
        let missed = labels::faults(label, &of);
        right += usize::from(missed.is_empty());
        let said: Vec<&str> = of.iter().map(|change| change.summary.as_str()).collect();
        faults.extend(
            (!missed.is_empty()).then(|| format!("{} {}: {}\n  {said:?}\n  {missed:?}", label.token, label.at, label.sentence)),
        );
    }
    println!("{right} of {} right", labels.len());
    assert!(right * 100 >= labels.len() * 98, "{right} of {}\n{}", labels.len(), faults.join("\n"));
}
