use proptest::prelude::*;

use super::*;
use crate::route::Sections;
use model::{Ack, Matcher, SilenceFact, SilenceRequest, config, read_matchers};

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_773_000_000 + seconds, 0).expect("a timestamp")
}

/// Routes with the keys of a `[route]` and what stands beside it.
fn routes(toml: &str) -> RouteTree {
    #[derive(serde::Deserialize)]
    struct File {
        route: config::Route,
        #[serde(default)]
        inhibit_rules: Vec<config::InhibitRule>,
        #[serde(default)]
        time_intervals: Vec<config::TimeIntervals>,
    }
    let File { route, inhibit_rules, time_intervals } = toml::from_str(toml).expect("TOML");
    let receivers = ["ops", "desk"].map(|name| config::ReceiverSettings { name: name.into(), ..Default::default() });
    let sections =
        Sections { route: &route, receivers: &receivers, inhibit_rules: &inhibit_rules, time_intervals: &time_intervals };
    RouteTree::of(&sections).expect("a tree")
}

const BY_TOKEN: &str = "[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\n";
const ALONE: &str = "[route]\nreceivers = [\"ops\"]\n";

fn row(no: i64, alert: &str, token: &str, since: i64) -> PendingNotification {
    PendingNotification {
        no,
        notice: NotificationId::from(format!("no_{no}")),
        alert: alert.into(),
        receiver: "ops".into(),
        kind: NotificationKind::Firing,
        is_end: false,
        labels: [("alertname", "Big"), ("token", token), ("severity", "warning")]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        precedence: Precedence::default(),
        since: time(since),
        is_firing: true,
        suppression: None,
        is_superseded: false,
        was_told: false,
        suppressed_before: None,
        acknowledged: None,
    }
}

fn end(no: i64, alert: &str, token: &str, since: i64) -> PendingNotification {
    PendingNotification { kind: NotificationKind::Resolved, is_end: true, ..row(no, alert, token, since) }
}

const NOTHING_LATELY: ReceiverUsage =
    ReceiverUsage { last_hour: 0, oldest: None, lately: 0, folded_at: None, summed_at: None, is_new: false };

const FREE: Usage = Usage { max_per_hour: 300, lately: NOTHING_LATELY };

/// A receiver that may get so many messages in an hour, and got these.
fn used(max_per_hour: u32, lately: ReceiverUsage) -> Usage {
    Usage { max_per_hour, lately }
}

fn until(routes: &RouteTree, now: Timestamp) -> impl FnMut(&Grouping) -> Timestamp {
    let mut times = MuteTimes::default();
    move |grouping| times.until(routes, grouping, now)
}

/// What is told at `now`: for each message its shape, the alerts told, how many are counted and merged; and when to look again.
fn told_with(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    flushed_at: Option<i64>,
    usage: &Usage,
    now: i64,
) -> (Vec<String>, Option<Timestamp>) {
    let situation = Situation { routes, waiting, held: &[], silences: &[], firing: &[], now: time(now) };
    let sorted = sort(&situation);
    let decision = decide(&sorted.groups, &|_| flushed_at.map(time), &|_| *usage, &mut until(routes, time(now)), time(now));
    let told = decision.messages.iter().map(|message| {
        let alerts: Vec<_> = message.told.iter().map(|row| row.alert.as_str()).collect();
        let alerts = if alerts.len() > 5 { format!("{} alerts", alerts.len()) } else { alerts.join(" ") };
        format!("{}: {alerts} +{} ~{}", message.bundle.shape.as_str(), message.counted.len(), message.merged.len())
    });
    (told.collect(), decision.next_at)
}

fn told(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    flushed_at: Option<i64>,
    now: i64,
) -> (Vec<String>, Option<Timestamp>) {
    told_with(routes, waiting, flushed_at, &FREE, now)
}

const NOTHING: [String; 0] = [];

#[test]
fn a_group_waits_for_others_and_is_told_in_one_message() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "apt", 5), row(3, "c", "arb", 20)];
    assert_eq!(told(&routes, &waiting, None, 29), (NOTHING.into(), Some(time(30))));
    assert_eq!(told(&routes, &waiting, None, 30), (vec!["group: a c +0 ~0".into()], Some(time(35))));
}

#[test]
fn a_wait_of_zero_is_no_wait() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\ngroup_interval = \"0s\"\n"));
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "arb", 0)];
    assert_eq!(told(&routes, &waiting, None, 0).0, ["group: a b +0 ~0"]);
    assert_eq!(told(&routes, &waiting, Some(0), 0).0, ["group: a b +0 ~0"]);
}

#[test]
fn messages_of_a_group_keep_their_distance() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(2, "b", "arb", 100)];
    assert_eq!(told(&routes, &waiting, Some(10), 309), (NOTHING.into(), Some(time(310))));
    assert_eq!(told(&routes, &waiting, Some(10), 310).0, ["group: b +0 ~0"]);
    assert_eq!(told(&routes, &waiting, Some(-1_000), 129), (NOTHING.into(), Some(time(130))), "others may join at any time");
}

#[test]
fn of_one_alert_the_latest_is_told_and_stands_for_the_others() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(1, "a", "arb", 0), end(2, "a", "arb", 10), row(3, "b", "arb", 12)];
    assert_eq!(told(&routes, &waiting, None, 30).0, ["group: a b +0 ~1"]);
}

#[test]
fn what_waits_of_an_alert_goes_the_way_of_the_latest() {
    let routes = routes(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = [\"severity=warning\"]\ngroup_by = [\"token\"]\ngroup_wait = \"1h\"\n",
    );
    let mut higher = row(2, "a", "arb", 5);
    higher.labels.insert("severity".into(), "critical".into());
    assert_eq!(told(&routes, &[row(1, "a", "arb", 0), higher], None, 5).0, ["single: a +0 ~1"]);
}

#[test]
fn without_groups_each_alert_is_told_by_itself_at_once() {
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "arb", 0)];
    assert_eq!(told(&routes(ALONE), &waiting, None, 0).0, ["single: a +0 ~0", "single: b +0 ~0"]);
}

#[test]
fn a_message_tells_a_hundred_alerts_and_counts_the_others() {
    let waiting: Vec<_> = (0..250).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    assert_eq!(told(&routes(BY_TOKEN), &waiting, None, 30).0, ["group: 100 alerts +150 ~0"]);
}

#[test]
fn many_at_once_without_groups_are_put_together_by_rule() {
    let mut waiting: Vec<_> = (0..10_000).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    for row in waiting.iter_mut().skip(9_980) {
        row.labels.insert("alertname".into(), "Small".into());
    }
    let routes = routes(ALONE);
    assert_eq!(told(&routes, &waiting, None, 2), (NOTHING.into(), Some(time(3))), "others may come");
    let messages = told(&routes, &waiting, None, 3).0;
    let expected = ["100 alerts +0", "100 alerts +0", "100 alerts +0", "100 alerts +0", "100 alerts +9480", "20 alerts +0"];
    assert_eq!(messages, expected.map(|text| format!("fold: {text} ~0")), "a handful of messages, and none is lost");

    for (no, row) in waiting.iter_mut().enumerate() {
        row.labels.insert("alertname".into(), format!("Careless{}", no % 12));
    }
    let messages = told(&routes, &waiting, None, 3).0;
    assert_eq!(messages.len(), 9, "however many rules are careless: {messages:?}");
    let all = |text: &String| text.split([' ', '+', '~']).filter_map(|word| word.parse::<usize>().ok()).sum::<usize>();
    assert_eq!(messages.iter().map(all).sum::<usize>(), 10_000, "{messages:?}");
    let soon = used(300, ReceiverUsage { lately: 6, folded_at: Some(time(0)), ..NOTHING_LATELY });
    assert_eq!(told_with(&routes, &waiting, None, &soon, 59).1, Some(time(60)), "not again within a minute");
    let few: Vec<_> = waiting.iter().take(24).cloned().collect();
    assert_eq!(told_with(&routes, &few, None, &soon, 3).0.len(), 24, "what the burst has room for is told at once");
}

#[test]
fn what_a_new_receiver_is_told_first_is_one_welcome_where_it_would_be_many_messages() {
    let new = used(300, ReceiverUsage { is_new: true, ..NOTHING_LATELY });
    let waiting: Vec<_> = (0..120).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no / 4)).collect();
    for routes in [routes(BY_TOKEN), routes(ALONE)] {
        // The last came at 29 s: five seconds and a quarter of that later nothing more has come.
        assert_eq!(told_with(&routes, &waiting, None, &new, 41), (NOTHING.into(), Some(time(41) + TimeDelta::milliseconds(250))));
        assert_eq!(told_with(&routes, &waiting, None, &new, 42).0, ["fold: 100 alerts +20 ~0"]);
        // Few are told as ever, and what comes after the first hour too.
        let few: Vec<_> = waiting.iter().take(10).cloned().collect();
        assert_eq!(told_with(&routes, &few, None, &new, 60).0.len(), 10);
        assert!(told_with(&routes, &waiting, None, &FREE, 60).0.len() > 1);
    }
    // Whoever takes thousands in an hour wants each by itself.
    assert_eq!(told_with(&routes(BY_TOKEN), &waiting, None, &used(10_000, new.lately), 60).0.len(), 120);
    // Those that were told one by one, before there were many, count.
    let some = used(300, ReceiverUsage { is_new: true, lately: 9, last_hour: 9, ..NOTHING_LATELY });
    assert_eq!(told_with(&routes(ALONE), &waiting[..2], None, &some, 5).0, ["fold: a0 a1 +0 ~0"]);
    // However slowly they come, it does not wait for ever.
    let slowly: Vec<_> = (0..120).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no * 10)).collect();
    assert_eq!(told_with(&routes(BY_TOKEN), &slowly[..30], None, &new, 299).1, Some(time(300)));
    assert_eq!(told_with(&routes(BY_TOKEN), &slowly[..31], None, &new, 300).0, ["fold: 31 alerts +0 ~0"]);
}

#[test]
fn trouble_of_the_source_waits_for_no_welcome() {
    let new = used(300, ReceiverUsage { is_new: true, ..NOTHING_LATELY });
    let mut waiting: Vec<_> = (0..20).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), 0)).collect();
    waiting.push(PendingNotification { kind: NotificationKind::Source, ..row(20, "trouble", "", 0) });
    assert_eq!(told_with(&routes(ALONE), &waiting, None, &new, 0).0, ["single: trouble +0 ~0"]);
}

#[test]
fn above_the_messages_of_an_hour_there_is_one_summary() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting: Vec<_> = (0..6).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no)).collect();
    let usage = used(5, ReceiverUsage { last_hour: 2, oldest: Some(time(-100)), ..NOTHING_LATELY });
    let expected = ["group: a0 +0 ~0", "group: a1 +0 ~0", "group: a2 +0 ~0", "summary: a3 a4 a5 +0 ~0"];
    assert_eq!(told_with(&routes, &waiting, None, &usage, 6).0, expected);
    let full = used(5, ReceiverUsage { last_hour: 5, summed_at: Some(time(0)), ..usage.lately });
    let (messages, next_at) = told_with(&routes, &waiting, None, &full, 6);
    assert_eq!((messages.len(), next_at), (0, Some(time(3_500))), "until the hour has room, or the next summary");
    assert_eq!(
        told_with(&routes, &waiting, None, &full, 3_600).0,
        ["summary: a0 a1 a2 a3 a4 +1 ~0".replace("a0 a1 a2 a3 a4 +1", "6 alerts +0")]
    );
}

fn critical(no: i64, alert: &str, token: &str, since: i64) -> PendingNotification {
    PendingNotification {
        precedence: Precedence { tone: Tone::Critical, value: None, due: None },
        ..row(no, alert, token, since)
    }
}

#[test]
fn what_is_critical_is_named_and_waits_for_no_hour() {
    // In one group, and beyond what one message has room for.
    let mut waiting: Vec<_> = (0..300).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    waiting.extend((300..450).map(|no| critical(no, &format!("c{no}"), "arb", 0)));
    assert_eq!(told(&routes(BY_TOKEN), &waiting, None, 30).0, ["group: 100 alerts +0 ~0", "group: 100 alerts +250 ~0"]);
    assert_eq!(
        told(&routes(ALONE), &waiting[298..301], None, 0).0,
        ["single: c300 +0 ~0", "single: a298 +0 ~0", "single: a299 +0 ~0"]
    );
    // Put together by rule, more than a rule gets messages.
    let waiting: Vec<_> = (0..1_050).map(|no| critical(no, &format!("c{no}"), "arb", 0)).collect();
    let messages = told(&routes(ALONE), &waiting, None, 3).0;
    assert_eq!((messages.len(), messages.last().map(String::as_str)), (11, Some("fold: 50 alerts +0 ~0")));
    // While the hour is full.
    let full = ReceiverUsage { last_hour: 5, oldest: Some(time(-100)), summed_at: Some(time(-60)), ..NOTHING_LATELY };
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting = [row(1, "a", "arb", 0), critical(2, "c", "apt", 0), critical(3, "d", "sui", 0)];
    let (messages, next_at) = told_with(&routes, &waiting, None, &used(5, full), 0);
    assert_eq!((messages, next_at), (vec!["fold: c d +0 ~0".into()], Some(time(3_500))));
    let soon = ReceiverUsage { folded_at: Some(time(-10)), ..full };
    assert_eq!(told_with(&routes, &waiting, None, &used(5, soon), 0), (NOTHING.into(), Some(time(50))), "a message a minute");
}

#[test]
fn the_last_message_before_a_pause_says_how_many_wait() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting: Vec<_> = (0..4).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), 0)).collect();
    let situation = Situation { routes: &routes, waiting: &waiting, held: &[], silences: &[], firing: &[], now: time(0) };
    let sorted = sort(&situation);
    let usage =
        used(5, ReceiverUsage { last_hour: 3, oldest: Some(time(-3_000)), summed_at: Some(time(-600)), ..NOTHING_LATELY });
    let decision = decide(&sorted.groups, &|_| None, &|_| usage, &mut until(&routes, time(0)), time(0));
    let notes: Vec<_> = decision.messages.iter().map(|message| message.bundle.note.as_deref()).collect();
    let note = "2 alerts wait until 8 Mar 2026, 20:10 UTC: the limit of 5 messages an hour is reached";
    assert_eq!(notes, [None, Some(note)]);
}

#[test]
fn a_summary_says_what_it_stands_for() {
    let routes = routes(ALONE);
    let waiting: Vec<_> = (0..3).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    let situation = Situation { routes: &routes, waiting: &waiting, held: &[], silences: &[], firing: &[], now: time(0) };
    let sorted = sort(&situation);
    let full = used(300, ReceiverUsage { last_hour: 300, ..NOTHING_LATELY });
    let decision = decide(&sorted.groups, &|_| None, &|_| full, &mut until(&routes, time(0)), time(0));
    let [message] = decision.messages.as_slice() else { panic!("one message, not {}", decision.messages.len()) };
    assert_eq!(message.bundle.note.as_deref(), Some("3 alerts above the limit of 300 messages an hour, in one message"));
}

#[test]
fn a_muted_route_keeps_its_messages_until_it_is_heard_again() {
    let routes = routes(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = [\"severity=warning\"]\nmute_time_intervals = [\"night\"]\n\
         [[time_intervals]]\nname = \"night\"\ntime_intervals = [{ times = [{ start_time = \"20:00\", end_time = \"24:00\" }] }]\n",
    );
    // 1 773 000 000 is 20:00 UTC.
    assert_eq!(time(0).format("%H:%M").to_string(), "20:00");
    let waiting = [row(1, "a", "arb", 0), end(2, "a", "arb", 600)];
    assert_eq!(told(&routes, &waiting, None, 601), (NOTHING.into(), Some(time(4 * 3_600))));
    assert_eq!(told(&routes, &waiting, None, 4 * 3_600).0, ["single: a +0 ~1"]);
}

fn hidden(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    held: &[PendingNotification],
    silences: &[Silence],
    firing: &[FiringAlert],
) -> (Vec<String>, Vec<i64>) {
    let held: Vec<&PendingNotification> = held.iter().collect();
    let situation = Situation { routes, waiting, held: &held, silences, firing, now: time(0) };
    let sorted = sort(&situation);
    let hidden = sorted.held.iter().map(|(row, held)| format!("{} {} {}", row.no, held.by.as_str(), held.id)).collect();
    (hidden, sorted.released)
}

fn silence(matcher: &str) -> Silence {
    let wish = SilenceRequest {
        matchers: read_matchers([matcher]).expect("matchers"),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: time(3_600),
    };
    Silence { id: "si_1".into(), ..wish.grant(time(-60)).expect("granted") }
}

#[test]
fn silences_inhibitions_and_acknowledgements_hold_back_and_say_so() {
    let routes = routes(
        "[route]\nreceivers = [\"ops\"]\n[[inhibit_rules]]\nsource_matchers = [\"severity=critical\"]\ntarget_matchers = [\"severity=warning\"]\nequal = [\"token\"]\n",
    );
    let critical = Labels::from([("severity".into(), "critical".into()), ("token".into(), "apt".into())]);
    let firing = [FiringAlert { id: "c".into(), labels: critical }];
    let fact = |amount: f64| SilenceFact::of(None, Some(&serde_json::json!({ "amount": amount })));
    let ack = Ack { alert: "d".into(), author: "ann".into(), comment: String::new(), at: time(-60), fact: fact(1.0) };
    let reminder = |no, now| PendingNotification {
        kind: NotificationKind::Reminder,
        acknowledged: Some((ack.clone(), fact(now))),
        ..row(no, "d", "sui", 0)
    };
    let waiting = [
        row(1, "a", "arb", 0),
        row(2, "b", "apt", 0),
        reminder(3, 1.0),
        reminder(4, 2.0),
        PendingNotification { acknowledged: Some((ack.clone(), fact(1.0))), ..end(5, "d", "sui", 0) },
        PendingNotification {
            suppressed_before: Some(Suppression { by: Suppressor::Silence, id: "si_0".into() }),
            ..end(6, "e", "op", 0)
        },
    ];
    let (hidden, _) = hidden(&routes, &waiting, &[], &[silence("token=arb")], &firing);
    let expected = ["1 silenced si_1", "2 inhibited c", "3 acknowledged d", "6 silenced si_0"];
    assert_eq!(hidden, expected, "a changed fact is told, and so is the end of an acknowledged alert");
}

#[test]
fn what_was_held_back_is_let_go_when_nothing_speaks_against_it_any_more() {
    let routes = routes(ALONE);
    let held = [row(1, "a", "arb", -600), row(2, "b", "apt", -600)];
    assert_eq!(hidden(&routes, &[], &held, &[silence("token=arb")], &[]).1, [2]);
}

#[test]
fn a_reminder_that_a_silence_held_back_is_not_let_go_where_somebody_knows_of_its_alert() {
    let fact = SilenceFact::of(None, Some(&serde_json::json!({ "amount": 1.0 })));
    let ack = Ack { alert: "a".into(), author: "ann".into(), comment: String::new(), at: time(-60), fact: fact.clone() };
    let reminder =
        PendingNotification { kind: NotificationKind::Reminder, acknowledged: Some((ack, fact)), ..row(1, "a", "arb", -600) };
    assert_eq!(hidden(&routes(ALONE), &[], &[reminder], &[], &[]), (vec!["1 acknowledged a".to_owned()], Vec::new()));
}

#[test]
fn a_silence_speaks_for_everything_but_tests_and_digests() {
    let routes = routes(ALONE);
    let of = |no, kind| PendingNotification { kind, ..row(no, &format!("a{no}"), "arb", 0) };
    let waiting = [
        of(1, NotificationKind::Test),
        of(2, NotificationKind::Digest),
        of(3, NotificationKind::Source),
        of(4, NotificationKind::Event),
    ];
    assert_eq!(hidden(&routes, &waiting, &[], &[silence("token=arb")], &[]).0, ["3 silenced si_1", "4 silenced si_1"]);
}

#[test]
fn news_about_deliveries_wait_for_no_group() {
    let routes = routes(BY_TOKEN);
    let mut dead = PendingNotification { kind: NotificationKind::Source, ..row(1, "a", "arb", 0) };
    dead.labels.insert("kind".into(), "dead_letter".into());
    assert_eq!(told(&routes, &[dead], None, 0).0, ["single: a +0 ~0"]);
    let gone = PendingNotification { receiver: "gone".into(), ..row(1, "a", "arb", 0) };
    assert_eq!(told(&routes, &[gone], None, 0).0, ["single: a +0 ~0"], "it becomes a dead letter, visibly");
}

fn any_row() -> impl Strategy<Value = PendingNotification> {
    (0_u8..12, 0_u8..4, 0_u8..2, 0_i64..900, 0_u8..6).prop_map(|(alert, token, receiver, since, kind)| {
        let mut row = row(0, &format!("a{alert}"), &format!("t{token}"), since);
        row.receiver = ["ops", "gone"][usize::from(receiver)].into();
        row.kind = [
            NotificationKind::Firing,
            NotificationKind::Reminder,
            NotificationKind::Resolved,
            NotificationKind::Event,
            NotificationKind::Source,
            NotificationKind::Digest,
        ][usize::from(kind)];
        row.is_end = row.kind == NotificationKind::Resolved;
        row
    })
}

proptest! {
    #[test]
    fn each_message_is_in_exactly_one_place_afterwards(
        rows in proptest::collection::vec(any_row(), 0..200),
        is_grouped in any::<bool>(),
        is_silenced in any::<bool>(),
        max_per_hour in 1_u32..40,
        last_hour in 0_u32..40,
        summed_at in proptest::option::of(-4_000_i64..900),
    ) {
        let routes = routes(if is_grouped { BY_TOKEN } else { ALONE });
        let waiting: Vec<PendingNotification> = (1..).zip(rows).map(|(no, row)| PendingNotification { no, ..row }).collect();
        let silences = if is_silenced { vec![Silence { matchers: vec![Matcher::parse("token=t1").expect("a matcher")], ..silence("a=b") }] } else { vec![] };
        let now = time(900);
        let situation = Situation { routes: &routes, waiting: &waiting, held: &[], silences: &silences, firing: &[], now };
        let sorted = sort(&situation);
        let usage = used(max_per_hour, ReceiverUsage { last_hour, summed_at: summed_at.map(time), ..NOTHING_LATELY });
        let decision = decide(&sorted.groups, &|_| None, &|_| usage, &mut until(&routes, now), now);
        let flushed: HashSet<usize> = decision.flushed.iter().copied().collect();
        prop_assert_eq!(flushed.len(), decision.flushed.len(), "no group is told twice");
        let mut places: Vec<i64> = sorted.held.iter().map(|(row, _)| row.no).collect();
        for message in &decision.messages {
            prop_assert!(message.told.len() <= MAX_ALERTS);
            let alerts: HashSet<&AlertId> = message.told.iter().chain(&message.counted).map(|row| &row.alert).collect();
            prop_assert_eq!(alerts.len(), message.told.len() + message.counted.len(), "each alert once in a message");
            places.extend(message.told.iter().chain(&message.counted).chain(&message.merged).map(|row| row.no));
        }
        for (index, group) in sorted.groups.iter().enumerate().filter(|(index, _)| !flushed.contains(index)) {
            prop_assert!(decision.next_at.is_some(), "group {index} would wait for ever");
            places.extend(group.rows.iter().map(|row| row.no));
        }
        places.sort_unstable();
        prop_assert_eq!(places, (1..=i64::try_from(waiting.len()).expect("few")).collect::<Vec<_>>());
        let made = decision.messages.iter().filter(|message| message.receiver.as_str() == "ops").count();
        prop_assert!(made <= max_per_hour.saturating_sub(last_hour) as usize + 1);
    }
}
