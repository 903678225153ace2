use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use super::*;
use model::{
    Alert, AlertId, AlertState, DeliveryId, DeliveryState, Endpoint, FeedState, Labels, NotificationId, NotificationKind,
    NotificationRole, NotificationState, OutboxRow, Record, Resolution, SourceText, Token, TokenId, TokenSnapshot, Tracked,
    config, wire,
};
use rules::{self, RuleSet, Surroundings, aggregate::Totals};

const RULE: &str = r#"
[[rule]]
alert  = "Big"
on     = "unlock"
within = ["30d", "7d"]
when   = "(cliffValue >= 5000000 || valueToMarketCap >= 2) && !(tokenSymbol == \"XX\")"
"#;

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

fn set(text: &str) -> RuleSet {
    let source = SourceText { file: "rules.toml".into(), text: text.into() };
    let loaded =
        rules::load(&[source], &Surroundings { receivers: &["ops".to_owned()], groups: &BTreeMap::new(), now: at("2026-01-01") });
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    loaded.set
}

fn record(json: serde_json::Value) -> Tracked {
    Tracked { key: "k".into(), record: Record::Unlock(serde_json::from_value(json).unwrap()) }
}

fn event() -> serde_json::Value {
    serde_json::json!({"unlockDate": "2026-03-16T00:00:00Z", "tokenSymbol": "ARB",
        "cliffUnlocks": {"cliffAmount": 1e6, "cliffValue": 1.5e6, "valueToMarketCap": 2.5, "allocationBreakdown": []}})
}

/// The inputs of an explanation in addition to rule, record, and time.
#[derive(Default)]
struct World<'a> {
    alerts: &'a [Alert],
    statuses: &'a [NotificationStatus],
    records: StatusEvidence<'a>,
    firing: &'a [FiringAlert],
    totals: Option<&'a Totals>,
    feeds: Vec<(Endpoint, FeedState)>,
    /// Starts inside the receiver's table. Empty: all alerts go to `ops`.
    config: &'a str,
}

fn explained(rule: &str, record: &Tracked, now: &str, alerts: &[Alert]) -> (bool, String) {
    let read = FeedState { read_at: Some(at("2026-02-01")), ..FeedState::default() };
    let world = World { alerts, feeds: vec![(Endpoint::UnlockEvents, read)], ..World::default() };
    explain_in(rule, Some(record), now, &world)
}

/// Returns whether the alert fired, and the explanation as text.
fn explain_in(rule: &str, record: Option<&Tracked>, now: &str, world: &World<'_>) -> (bool, String) {
    let set = set(rule);
    let text = format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/\"\n{}", world.config);
    let config = toml::from_str::<config::Config>(&text).unwrap();
    let routes = RouteTree::of(&crate::route::Sections::from(&config)).unwrap();
    let policy = crate::pipeline::DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).unwrap();
    let token = Token::unknown(TokenId::from("arbitrum"));
    let case = ExplainCase {
        token: world.totals.is_none_or(|totals| totals.group.is_none()).then_some(&token),
        feeds: &world.feeds,
        record: record.map(Cow::Borrowed),
        totals: world.totals.cloned().map(Arc::new),
        alerts: world.alerts.iter().collect(),
        ..ExplainCase::default()
    };
    let watch = everything();
    let around = ExplainContext { watch: &watch, routes: &routes, digests: &policy.digests, firing: world.firing, now: at(now) };
    let (statuses, records) = (world.statuses, world.records);
    let explanation =
        explain(&ExplainQuery { rule: &set.rules[0], case: &case, statuses, records, corrections: &[], world: &around });
    fn lines(steps: &[ExplainStep], depth: usize, text: &mut String) {
        for step in steps {
            text.push_str(&format!("{}{} {}\n", "  ".repeat(depth), step.mark.sign(), step.text));
            lines(&step.parts, depth + 1, text);
        }
    }
    let mut text = String::new();
    lines(&explanation.steps, 0, &mut text);
    (explanation.fired, format!("{text}so: {}", explanation.so))
}

fn everything() -> Watch {
    Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups: BTreeMap::new(), ..config::WatchSettings::default() })
        .unwrap()
}

/// Explains a case without notifications, while no other alert fires.
fn explain_alone(rule: &Rule, case: &ExplainCase<'_>, routes: &RouteTree, now: Timestamp) -> Explanation {
    let world = ExplainContext { watch: &everything(), routes, digests: &[], firing: &[], now };
    explain(&ExplainQuery { rule, case, statuses: &[], records: StatusEvidence::default(), corrections: &[], world: &world })
}

fn assert_explains(rule: &str, event: serde_json::Value, now: &str, expected: &[&str]) {
    let (_, text) = explained(rule, &record(event), now, &[]);
    for line in expected {
        assert!(text.contains(line), "{line:?} is missing in:\n{text}");
    }
}

#[test]
fn shows_each_clause_with_value_and_truth() {
    assert_explains(
        RULE,
        event(),
        "2026-03-01",
        &[
            "✓ when: all of these must be true\n  ✓ one of these must be true\n    ✗ cliffValue >= 5000000  [cliffValue = 1,500,000]\n    ✓ valueToMarketCap >= 2  [valueToMarketCap = 2.5]\n  ✓ this must be false\n    ✗ tokenSymbol == \"XX\"  [tokenSymbol = \"ARB\"]",
            "✓ it is due on 16 Mar 2026, in 15 days: within 30d\n  ✓ 30d: since 14 Feb 2026, 00:00 UTC\n  ✗ 7d: from 9 Mar 2026",
            "so: not fired yet, although every condition is true",
        ],
    );
}

#[test]
fn conclusion_names_the_step_that_stopped_the_alert() {
    let mut small = event();
    small["cliffUnlocks"]["valueToMarketCap"] = 1.0.into();
    assert_explains(
        RULE,
        small,
        "2026-03-01",
        &[
            "so: not fired, because none of these is true: cliffValue >= 5000000  [cliffValue = 1,500,000], valueToMarketCap >= 2  [valueToMarketCap = 1]",
        ],
    );
    assert_explains(
        RULE,
        event(),
        "2026-01-01",
        &["so: not fired, because it is due on 16 Mar 2026, beyond the longest lead time, which begins 14 Feb 2026"],
    );
    assert_explains(RULE, event(), "2026-04-01", &["so: not fired, because it passed at 16 Mar 2026"]);
    assert_explains(
        &format!("{RULE}\ntokens = [\"sui\"]"),
        event(),
        "2026-03-01",
        &["so: not fired, because a filter of the rule excludes it"],
    );
    assert_explains(
        &format!("{RULE}\nexpires = \"2026-02-01\""),
        event(),
        "2026-03-01",
        &["so: not fired, because the rule expired on 1 Feb 2026"],
    );
    let mut undated = event();
    undated["unlockDate"] = serde_json::Value::Null;
    assert_explains(RULE, undated, "2026-03-01", &["so: not fired, because it has no date yet"]);
}

#[test]
fn missing_field_is_named_and_unknown() {
    let mut bare = event();
    bare["cliffUnlocks"] = serde_json::json!({"cliffAmount": 1e6});
    assert_explains(
        RULE,
        bare.clone(),
        "2026-03-01",
        &[
            "? cliffValue >= 5000000  [cliffValue is missing]",
            "so: not fired, because `cliffValue`, `valueToMarketCap` are missing",
        ],
    );
    assert_explains(
        &format!("{RULE}\nmissing = \"fire\""),
        bare,
        "2026-03-01",
        &["(cliffValue, valueToMarketCap missing, and `missing = \"fire\"`)", "so: not fired yet"],
    );
}

fn alert(state: AlertState) -> Alert {
    Alert {
        id: AlertId::from("al_1"),
        rule: "Big".into(),
        name: "Big".into(),
        subject: "unlock/arbitrum/k".into(),
        episode: 1,
        state,
        resolution: None,
        token: Some("arbitrum".into()),
        resource: Some(Resource::Unlock),
        key: Some("k".into()),
        level: None,
        labels: Labels::new(),
        annotations: BTreeMap::new(),
        notified: vec!["ops".into()],
        leads: vec!["30d".into()],
        former_labels: Vec::new(),
        members: Vec::new(),
        active_at: at("2026-02-14"),
        starts_at: Some(at("2026-02-14")),
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        text_at: None,
        updated_at: at("2026-02-14"),
    }
}

fn delivery(state: DeliveryState) -> OutboxRow {
    OutboxRow {
        id: DeliveryId(7),
        webhook_id: "msg_1".into(),
        receiver: "ops".into(),
        state,
        attempts: 3,
        next_attempt_at: None,
        last_response: Some("503 try\nlater".into()),
        created_at: at("2026-02-14"),
        delivered_at: (state == DeliveryState::Delivered).then(|| at("2026-02-14T00:00:05Z")),
        replay: None,
        alerts: Vec::new(),
        shape: Default::default(),
        truncated_alerts: 0,
    }
}

fn status(state: &str) -> NotificationStatus {
    NotificationStatus {
        notice: NotificationId::from("no_1"),
        alert: AlertId::from("al_1"),
        rule: "Big".into(),
        kind: NotificationKind::Firing,
        at: at("2026-02-14"),
        summary: "ARB".into(),
        receiver: Some("ops".into()),
        state: NotificationState::parse(state).expect("a state"),
        role: DeliveryState::parse(state).map(|_| NotificationRole::Notified),
        delivery: DeliveryState::parse(state).map(|_| DeliveryId(7)),
        suppressor: match state {
            "silenced" => Some("si_1".into()),
            "inhibited" => Some("al_9".into()),
            "limited" => Some("14".into()),
            _ => None,
        },
    }
}

#[test]
fn conclusion_states_firing_time_and_notification_status() {
    let silences = [model::silence::Silence {
        id: "si_1".into(),
        matchers: model::silence::read_matchers(["token=arbitrum"]).unwrap(),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: at("2026-02-10"),
        ends_at: at("2026-03-04"),
        created_at: at("2026-02-10"),
    }];
    let inhibitors = [Alert { id: "al_9".into(), name: "Worse".into(), ..alert(AlertState::Firing) }];
    let prospects = [crate::group::Prospect {
        notice: NotificationId::from("no_1"),
        receiver: "ops".into(),
        key: "{}:{token=\"arbitrum\"}".into(),
        wait: crate::group::Wait::Muted("nights".into()),
        until: Some(at("2026-03-01T07:00:00Z")),
    }];
    for (state, so) in [
        ("delivered", "and is firing, delivered to ops at 14 Feb 2026, 00:00 UTC"),
        ("retrying", "not yet delivered to ops (3 attempts failed)"),
        ("dead", "dead letter: ops (3 attempts failed: 503 try later)"),
        ("dropped", "never delivered to ops (dropped by an operator)"),
        (
            "silenced",
            "suppressed by silence si_1 until 4 Mar 2026, 00:00 UTC, then sent if it still fires (token=\"arbitrum\" by ann: known)",
        ),
        ("inhibited", "suppressed by alert al_9 of Worse, while it fires"),
        ("waiting", "waiting in group {}:{token=\"arbitrum\"} until 1 Mar 2026, 07:00 UTC: muted by nights (for ops)"),
        ("nobody", "sent to no receiver: no route matches"),
        ("unwanted", "not wanted by ops: its `types` do not include alert.firing"),
        ("limited", "sent to no receiver: left out by the rule's `limit` of 14; its summary counts it"),
    ] {
        let deliveries: Vec<OutboxRow> = DeliveryState::parse(state).map(delivery).into_iter().collect();
        let statuses = [status(state)];
        let alerts = [alert(AlertState::Firing)];
        let records = StatusEvidence {
            silences: &silences,
            inhibitors: &inhibitors,
            acks: &[],
            prospects: &prospects,
            deliveries: &deliveries,
        };
        let world = World { alerts: &alerts, statuses: &statuses, records, ..World::default() };
        let (fired, text) = explain_in(RULE, Some(&record(event())), "2026-03-01", &world);
        assert!(fired && text.ends_with(so), "{so}\n{text}");
        assert!(text.contains("lead times sent: 30d") && text.contains("so: fired at 14 Feb 2026, 00:00 UTC"), "{text}");
    }
    let ended =
        Alert { resolution: Some(Resolution::Passed), ends_at: Some(at("2026-03-16T06:00:00Z")), ..alert(AlertState::Resolved) };
    let (_, text) = explained(RULE, &record(event()), "2026-04-01", &[ended]);
    assert!(
        text.ends_with(
            "and resolved at 16 Mar 2026, 06:00 UTC (passed), sent to no receiver: neither the rule nor a route names one"
        ),
        "{text}"
    );
}

#[test]
fn conclusion_uses_the_last_notification_to_each_receiver() {
    let silences: [model::silence::Silence; 0] = [];
    let rows = [delivery(DeliveryState::Delivered)];
    let statuses = [
        status("delivered"),
        NotificationStatus { at: at("2026-02-20"), kind: NotificationKind::Reminder, ..status("silenced") },
    ];
    let records = StatusEvidence { silences: &silences, deliveries: &rows, ..StatusEvidence::default() };
    let alerts = [alert(AlertState::Firing)];
    let world = World { alerts: &alerts, statuses: &statuses, records, ..World::default() };
    let (_, text) = explain_in(RULE, Some(&record(event())), "2026-03-01", &world);
    assert!(text.ends_with("and is firing, suppressed by silence si_1"), "{text}");
    assert!(text.contains("✓ delivered to ops") && text.contains("✗ suppressed for ops: silence si_1"), "{text}");
}

#[test]
fn shows_what_would_suppress_an_alert_before_it_fires() {
    let config = "digest = { at = \"08:00\" }\n[route]\nreceivers = [\"ops\"]\n[[route.routes]]\ngroup_by = [\"token\"]\n\
        mute_time_intervals = [\"nights\"]\nmatchers = ['alertname=Big']\n\
        [[time_intervals]]\nname = \"nights\"\ntime_intervals = [{ times = [{ start_time = \"00:00\", end_time = \"07:00\" }] }]\n\
        [[inhibit_rules]]\nsource_matchers = ['severity=critical']\ntarget_matchers = ['alertname=Big']\nequal = [\"token\"]\n";
    let silences = [model::silence::Silence {
        id: "si_1".into(),
        matchers: model::silence::read_matchers(["alertname=Big"]).unwrap(),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: at("2026-02-10"),
        ends_at: at("2026-03-04"),
        created_at: at("2026-02-10"),
    }];
    let labels = [("alertname", "Worse"), ("severity", "critical"), ("token", "arbitrum")];
    let labels: Labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let firing = [FiringAlert { id: "al_9".into(), labels }];
    let records = StatusEvidence { silences: &silences, ..StatusEvidence::default() };
    let world = World { config, records, firing: &firing, ..World::default() };
    let (_, text) = explain_in(RULE, Some(&record(event())), "2026-03-01", &world);
    for part in [
        "ops: route {}/{alertname=\"Big\"}, grouped by token, sent after 30 s and then at most every 5 min",
        "✗ muted by nights until 1 Mar 2026, 07:00 UTC",
        "the next digest is due 1 Mar 2026, 08:00 UTC",
        "✗ silence si_1 suppresses it until 4 Mar 2026",
        "✗ alert al_9 (Worse) fires and inhibits it",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

const PRESSURE: &str = r#"
[[rule]]
alert = "Pressure"
on    = "portfolio"
tokens = ["@desk"]
when  = 'ahead("30d").value > burned("30d").value'
"#;

#[test]
fn rule_on_group_shows_sums_and_members_without_data() {
    let source = SourceText { file: "rules.toml".into(), text: PRESSURE.into() };
    let groups = BTreeMap::from([("desk".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    let around = Surroundings { receivers: &["ops".to_owned()], groups: &groups, now: at("2026-01-01") };
    let loaded = rules::load(&[source], &around);
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    let set = loaded.set;
    let now = at("2026-03-01");
    let mut cache = rules::aggregate::AggregateCache::default();
    cache.reset(set.reads.clone());
    for (id, knows_burns) in [("x", true), ("y", false)] {
        let groups: std::sync::Arc<[String]> = vec!["desk".to_owned()].into();
        let token = Token { groups, ..Token::unknown(TokenId::from(id)) };
        let entries =
            rules::aggregate::FlowEntries::of([&record(event())], |resource| resource == Resource::Unlock || knows_burns);
        let computed = cache.compute(&token, &entries, rules::aggregate::Recheck::Longest, now);
        cache.keep(computed);
    }
    cache.complete(now);
    let totals = cache.group("@desk", Some("desk"), |_, _| false).unwrap();
    let receivers = [config::ReceiverSettings { name: "ops".into(), ..config::ReceiverSettings::default() }];
    let routes = RouteTree::build(&config::Route::default(), &receivers).unwrap();
    let case = ExplainCase { totals: Some(totals), ..ExplainCase::default() };
    let explanation = explain_alone(&set.rules[0], &case, &routes, now);
    let text: String = explanation.steps.iter().map(|step| format!("{step:?}\n")).collect();
    assert_eq!(explanation.about, "Pressure for the group desk");
    assert!(text.contains("2 tokens in the group desk: x and y"), "{text}");
    assert!(text.contains("ahead(\\\"30d\\\"): $3.00M"), "{text}");
    assert!(text.contains("never read, so the sum is missing: y"), "{text}");
    assert!(text.contains("= 3,000,000"), "the clause shows the sum it read: {text}");
    assert!(
        !explanation.fired && explanation.so.starts_with("not fired, because") && explanation.so.contains("missing"),
        "{}",
        explanation.so
    );
}

#[test]
fn day_without_event_is_reported_with_the_nearest_events() {
    let set = set(RULE);
    let on = |date: &str, key: &str| {
        let mut event = event();
        event["unlockDate"] = format!("{date}T00:00:00Z").into();
        Tracked { key: key.into(), ..record(event) }
    };
    let mut snapshot = TokenSnapshot::of(Token::unknown(TokenId::from("arbitrum")));
    snapshot.records = vec![on("2026-01-16", "a"), on("2026-03-16", "b"), on("2026-04-16", "c"), on("2026-05-16", "d")];
    // An event that moved away from 1 April keeps its alert.
    let notified = Alert { key: Some("b".into()), ..alert(AlertState::Firing) };
    let explain_absent = |target: &ExplainTarget| absent_record(&set.rules[0], &snapshot, Resource::Unlock, target, &[&notified]);
    let of_day = ExplainTarget { day: Some(at("2026-04-01T00:00:00Z")), ..ExplainTarget::default() };
    let absent = explain_absent(&of_day).expect("no event on that day");
    assert!(!absent.fired);
    let expected = "there is no unlock of arbitrum for 1 Apr 2026; the nearest are on 16 Mar 2026, 16 Apr 2026, 16 May 2026";
    assert!(absent.so.contains(expected), "{}", absent.so);
    let of_key =
        |key: &str| ExplainTarget { key: Some(key.to_owned()), resource: Some(Resource::Unlock), ..ExplainTarget::default() };
    assert!(explain_absent(&of_key("2026-04-20T00:00:00Z")).is_some_and(|absent| absent.so.contains("16 Apr 2026")));
    assert_eq!(explain_absent(&of_key("b")), None, "a removed event is explained by its alerts");
}

#[test]
fn pending_alert_shows_when_it_fires() {
    let pending = Alert { starts_at: None, active_at: at("2026-03-01"), notified: Vec::new(), ..alert(AlertState::Pending) };
    let (fired, text) = explained(&format!("{RULE}\nfor = \"2h\""), &record(event()), "2026-03-01T01:00:00Z", &[pending]);
    assert!(!fired && text.contains("`for` is 2 h: it fires at 1 Mar 2026, 02:00 UTC, if it still matches"), "{text}");
}

#[test]
fn burns_are_zero_if_the_token_list_denies_them_and_else_missing() {
    let now = at("2026-03-01");
    let set = set("[[rule]]\nalert = \"Quiet\"\non = \"token\"\nwhen = 'burned(\"30d\").amount < 1'\n");
    let mut cache = rules::aggregate::AggregateCache::default();
    cache.reset(set.reads.clone());
    for (has_burn, said) in [
        (Some(false), "the token list reports no burn records, so the sum is zero"),
        (None, "burn records were never read, so the sum is missing, not zero"),
    ] {
        let mut token = Token::unknown(TokenId::from("x"));
        token.item.has_burn = has_burn.map(Into::into).unwrap_or_default();
        let is_known = |resource| rules::aggregate::is_known(resource, &[], &token.item);
        let entries = rules::aggregate::FlowEntries::of(std::iter::empty(), is_known);
        let computed = cache.compute(&token, &entries, rules::aggregate::Recheck::Longest, now);
        let totals = Arc::new(computed.totals().clone());
        let case = ExplainCase { token: Some(&token), totals: Some(totals), ..ExplainCase::default() };
        let explanation = explain_alone(&set.rules[0], &case, &RouteTree::default(), now);
        let text: Vec<_> = explanation.steps.iter().map(|step| step.text.as_str()).collect();
        assert!(text.contains(&said), "{text:#?}");
        assert_eq!(explanation.so.contains("missing"), has_burn.is_none(), "{}", explanation.so);
    }
}

#[test]
fn change_is_explained_by_its_own_alerts() {
    let row = |id: i64, kind: model::ChangeKind| {
        let token = TokenId::from("arbitrum");
        let change = model::Change::of(kind, Resource::Unlock, &token);
        model::ChangeRow { id, at: at("2026-02-14"), token, symbol: None, resource: Resource::Unlock, key: None, change }
    };
    use model::ChangeKind::{SeriesRescaled, SeriesShifted};
    // Latest first, all from one response.
    let rows = [row(3, SeriesRescaled), row(2, SeriesShifted), row(1, SeriesRescaled)];
    let named = |kind: &str, ordinal: u32| Alert {
        subject: format!("change/old-slug/unlock/{kind}/series/2026-02-14T00:00:00Z#{ordinal}"),
        key: None,
        ..alert(AlertState::Event)
    };
    let alerts = [named("series_rescaled", 2), named("series_shifted", 1)];
    let alerts: Vec<&Alert> = alerts.iter().collect();
    let snapshot = TokenSnapshot::of(Token::unknown(TokenId::from("arbitrum")));
    let target =
        |alert: Option<&Alert>| ExplainTarget { day: Some(at("2026-02-14")), alert: alert.cloned(), ..ExplainTarget::default() };
    let found = |target: &ExplainTarget| -> Vec<(i64, Vec<String>)> {
        let cases = change_cases(&snapshot, &rows, target, &alerts);
        let id = |case: &ExplainCase<'_>| {
            rows.iter().find(|row| case.change.is_some_and(|(of, _)| std::ptr::eq(of, &row.change))).map_or(0, |row| row.id)
        };
        cases.iter().map(|case| (id(case), case.alerts.iter().map(|alert| alert.subject.clone()).collect())).collect()
    };
    let subject = |index: usize| vec![alerts[index].subject.clone()];
    assert_eq!(found(&target(None)), [(3, subject(0)), (2, subject(1)), (1, Vec::new())]);
    assert_eq!(found(&target(Some(alerts[1]))), [(2, subject(1))], "the page of an alert explains its change");
    assert_eq!(found(&target(Some(alerts[0]))), [(3, subject(0))]);
}

#[test]
fn change_of_several_events_is_found_by_each_of_their_days() {
    let token = TokenId::from("arbitrum");
    let event = |date: &str| {
        let event: model::wire::UnlockEvent =
            serde_json::from_value(serde_json::json!({"unlockDate": date, "unlockPrecision": "day"})).expect("an event");
        Some(model::Record::Unlock(Arc::new(event)))
    };
    let mut change = model::Change::of(model::ChangeKind::SeriesShifted, Resource::Unlock, &token);
    (change.count, change.old, change.new) = (12, event("2026-04-01T00:00:00Z"), event("2026-05-01T00:00:00Z"));
    let snapshot = TokenSnapshot::of(Token::unknown(token.clone()));
    let found = |count: u32, day: &str, key: Option<&str>| {
        let change = model::Change { count, ..change.clone() };
        let row = model::ChangeRow {
            id: 1,
            at: at("2026-03-09"),
            token: token.clone(),
            symbol: None,
            resource: Resource::Unlock,
            key: None,
            change,
        };
        let target = ExplainTarget { day: Some(at(day)), key: key.map(Into::into), ..ExplainTarget::default() };
        change_cases(&snapshot, &[row], &target, &[]).len()
    };
    assert_eq!(found(12, "2026-06-01", None), 1);
    assert_eq!(found(12, "2026-06-01", Some("2026-06-01")), 1, "a series has no key");
    assert_eq!(found(12, "2026-03-20", None), 0, "before all of its events");
    assert_eq!(found(1, "2026-06-01", None), 0);
}
