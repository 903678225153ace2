use proptest::prelude::*;

use super::*;
use crate::route::Sections;
use model::{Ack, Matcher, SilenceFact, SilenceRequest, config, read_matchers};

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_773_000_000 + seconds, 0).expect("a timestamp")
}

/// Builds the routes of a config.
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
const UNGROUPED: &str = "[route]\nreceivers = [\"ops\"]\n";

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
        was_notified: false,
        suppressed_before: None,
        acknowledged: None,
    }
}

fn end(no: i64, alert: &str, token: &str, since: i64) -> PendingNotification {
    PendingNotification { kind: NotificationKind::Resolved, is_end: true, ..row(no, alert, token, since) }
}

const NOTHING_SENT: ReceiverUsage =
    ReceiverUsage { last_hour: 0, oldest: None, recent: 0, batched_at: None, summed_at: None, is_new: false };

const FREE: Usage = Usage { max_per_hour: 300, sent: NOTHING_SENT };

fn used(max_per_hour: u32, sent: ReceiverUsage) -> Usage {
    Usage { max_per_hour, sent }
}

fn until(routes: &RouteTree, now: Timestamp) -> impl FnMut(&Grouping) -> Timestamp {
    let mut times = MuteTimes::default();
    move |grouping| times.until(routes, grouping, now)
}

/// Returns the messages at `now`, each with its shape, its alerts, and the numbers of counted and merged ones, and when to decide again.
fn sent_with(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    flushed_at: Option<i64>,
    usage: &Usage,
    now: i64,
) -> (Vec<String>, Option<Timestamp>) {
    let input = SortInput { routes, waiting, suppressed: &[], silences: &[], firing: &[], now: time(now) };
    let sorted = sort(&input);
    let decision = decide(&sorted.groups, &|_| flushed_at.map(time), &|_| *usage, &mut until(routes, time(now)), time(now));
    let messages = decision.messages.iter().map(|message| {
        let alerts: Vec<_> = message.notified.iter().map(|row| row.alert.as_str()).collect();
        let alerts = if alerts.len() > 5 { format!("{} alerts", alerts.len()) } else { alerts.join(" ") };
        format!("{}: {alerts} +{} ~{}", message.batch.shape.as_str(), message.counted.len(), message.merged.len())
    });
    (messages.collect(), decision.next_at)
}

fn sent(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    flushed_at: Option<i64>,
    now: i64,
) -> (Vec<String>, Option<Timestamp>) {
    sent_with(routes, waiting, flushed_at, &FREE, now)
}

const NOTHING: [String; 0] = [];

#[test]
fn group_waits_for_more_and_is_sent_in_one_message() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "apt", 5), row(3, "c", "arb", 20)];
    assert_eq!(sent(&routes, &waiting, None, 29), (NOTHING.into(), Some(time(30))));
    assert_eq!(sent(&routes, &waiting, None, 30), (vec!["group: a c +0 ~0".into()], Some(time(35))));
}

#[test]
fn unwanted_types_are_suppressed_except_about_failed_deliveries() {
    let types = vec![NotificationKind::Firing, NotificationKind::Resolved];
    let receivers = [config::ReceiverSettings { name: "ops".into(), types, ..Default::default() }];
    let routes = RouteTree::build(&config::Route::default(), &receivers).expect("a tree");
    let of_kind = |no: i64, kind: NotificationKind| PendingNotification { kind, ..row(no, &format!("al_{no}"), "arb", 0) };
    let mut about_delivery = of_kind(7, NotificationKind::Source);
    about_delivery.labels =
        [("kind", "dead_letter"), ("receiver", "desk")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let kinds = NotificationKind::ALL.into_iter().zip(1..).map(|(kind, no)| of_kind(no, kind));
    let waiting: Vec<PendingNotification> = kinds.filter(|row| row.no < 7).chain([about_delivery]).collect();
    assert!(is_about_delivery(NotificationKind::Source, &waiting[6].labels), "a message about a dead letter");
    let sorted =
        sort(&SortInput { routes: &routes, waiting: &waiting, suppressed: &[], silences: &[], firing: &[], now: time(0) });
    let suppressed: Vec<(i64, &str)> = sorted.suppressed.iter().map(|(row, by)| (row.no, by.id.as_str())).collect();
    assert_eq!(suppressed, [(2, "alert.reminder"), (4, "alert.event"), (5, "digest"), (6, "source")]);
    assert!(sorted.suppressed.iter().all(|(_, suppression)| suppression.by == Suppressor::Type));
}

#[test]
fn zero_group_wait_sends_at_once() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\ngroup_interval = \"0s\"\n"));
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "arb", 0)];
    assert_eq!(sent(&routes, &waiting, None, 0).0, ["group: a b +0 ~0"]);
    assert_eq!(sent(&routes, &waiting, Some(0), 0).0, ["group: a b +0 ~0"]);
}

#[test]
fn group_interval_separates_messages_of_a_group() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(2, "b", "arb", 100)];
    assert_eq!(sent(&routes, &waiting, Some(10), 309), (NOTHING.into(), Some(time(310))));
    assert_eq!(sent(&routes, &waiting, Some(10), 310).0, ["group: b +0 ~0"]);
    assert_eq!(sent(&routes, &waiting, Some(-1_000), 129), (NOTHING.into(), Some(time(130))), "`group_wait` applies again");
}

#[test]
fn latest_notification_of_an_alert_replaces_earlier_ones() {
    let routes = routes(BY_TOKEN);
    let waiting = [row(1, "a", "arb", 0), end(2, "a", "arb", 10), row(3, "b", "arb", 12)];
    assert_eq!(sent(&routes, &waiting, None, 30).0, ["group: a b +0 ~1"]);
}

#[test]
fn pending_notifications_follow_the_route_of_the_latest() {
    let routes = routes(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = [\"severity=warning\"]\ngroup_by = [\"token\"]\ngroup_wait = \"1h\"\n",
    );
    let mut higher = row(2, "a", "arb", 5);
    higher.labels.insert("severity".into(), "critical".into());
    assert_eq!(sent(&routes, &[row(1, "a", "arb", 0), higher], None, 5).0, ["single: a +0 ~1"]);
}

#[test]
fn ungrouped_alerts_are_sent_at_once_one_by_one() {
    let waiting = [row(1, "a", "arb", 0), row(2, "b", "arb", 0)];
    assert_eq!(sent(&routes(UNGROUPED), &waiting, None, 0).0, ["single: a +0 ~0", "single: b +0 ~0"]);
}

#[test]
fn message_describes_at_most_100_alerts_and_counts_the_rest() {
    let waiting: Vec<_> = (0..250).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    assert_eq!(sent(&routes(BY_TOKEN), &waiting, None, 30).0, ["group: 100 alerts +150 ~0"]);
}

#[test]
fn burst_of_ungrouped_alerts_is_batched_by_rule() {
    let mut waiting: Vec<_> = (0..10_000).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    for row in waiting.iter_mut().skip(9_980) {
        row.labels.insert("alertname".into(), "Small".into());
    }
    let routes = routes(UNGROUPED);
    assert_eq!(sent(&routes, &waiting, None, 2), (NOTHING.into(), Some(time(3))), "waits for more alerts");
    let messages = sent(&routes, &waiting, None, 3).0;
    let expected = ["100 alerts +0", "100 alerts +0", "100 alerts +0", "100 alerts +0", "100 alerts +9480", "20 alerts +0"];
    assert_eq!(messages, expected.map(|text| format!("batch: {text} ~0")), "a few messages, and no alert is lost");

    for (no, row) in waiting.iter_mut().enumerate() {
        row.labels.insert("alertname".into(), format!("Broad{}", no % 12));
    }
    let messages = sent(&routes, &waiting, None, 3).0;
    assert_eq!(messages.len(), 9, "{messages:?}");
    let all = |text: &String| text.split([' ', '+', '~']).filter_map(|word| word.parse::<usize>().ok()).sum::<usize>();
    assert_eq!(messages.iter().map(all).sum::<usize>(), 10_000, "{messages:?}");
    let soon = used(300, ReceiverUsage { recent: 6, batched_at: Some(time(0)), ..NOTHING_SENT });
    assert_eq!(sent_with(&routes, &waiting, None, &soon, 59).1, Some(time(60)), "at most one batch per minute");
    let few: Vec<_> = waiting.iter().take(24).cloned().collect();
    assert_eq!(sent_with(&routes, &few, None, &soon, 3).0.len(), 24, "alerts below the burst limit are sent at once");
}

#[test]
fn many_first_messages_of_new_receiver_become_one_welcome() {
    let new = used(300, ReceiverUsage { is_new: true, ..NOTHING_SENT });
    let waiting: Vec<_> = (0..120).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no / 4)).collect();
    for routes in [routes(BY_TOKEN), routes(UNGROUPED)] {
        // The last notification came at 29 s, so the welcome waits another 5 s plus a quarter of 29 s.
        assert_eq!(sent_with(&routes, &waiting, None, &new, 41), (NOTHING.into(), Some(time(41) + TimeDelta::milliseconds(250))));
        assert_eq!(sent_with(&routes, &waiting, None, &new, 42).0, ["batch: 100 alerts +20 ~0"]);
        // A few first messages, and many messages after the first hour, are not combined.
        let few: Vec<_> = waiting.iter().take(10).cloned().collect();
        assert_eq!(sent_with(&routes, &few, None, &new, 60).0.len(), 10);
        assert!(sent_with(&routes, &waiting, None, &FREE, 60).0.len() > 1);
    }
    // A receiver with a high hourly limit gets each message separately.
    assert_eq!(sent_with(&routes(BY_TOKEN), &waiting, None, &used(10_000, new.sent), 60).0.len(), 120);
    // Messages that were already sent count too.
    let some = used(300, ReceiverUsage { is_new: true, recent: 9, last_hour: 9, ..NOTHING_SENT });
    assert_eq!(sent_with(&routes(UNGROUPED), &waiting[..2], None, &some, 5).0, ["batch: a0 a1 +0 ~0"]);
    // The wait is bounded even if alerts keep arriving slowly.
    let slowly: Vec<_> = (0..120).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no * 10)).collect();
    assert_eq!(sent_with(&routes(BY_TOKEN), &slowly[..30], None, &new, 299).1, Some(time(300)));
    assert_eq!(sent_with(&routes(BY_TOKEN), &slowly[..31], None, &new, 300).0, ["batch: 31 alerts +0 ~0"]);
}

/// A storm of alerts soon after the first message must not call itself the first message.
#[test]
fn only_the_first_message_is_a_welcome() {
    let routes = routes(BY_TOKEN);
    let waiting: Vec<_> = (0..40).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), 0)).collect();
    let batches = |usage: &Usage| -> Vec<Batch> {
        let input = SortInput { routes: &routes, waiting: &waiting, suppressed: &[], silences: &[], firing: &[], now: time(60) };
        let sorted = sort(&input);
        let decision = decide(&sorted.groups, &|_| None, &|_| *usage, &mut until(&routes, time(60)), time(60));
        decision.messages.into_iter().map(|message| message.batch).collect()
    };
    let new = ReceiverUsage { is_new: true, ..NOTHING_SENT };
    let first = batches(&used(300, new));
    assert!(first.len() == 1 && first[0].is_welcome, "{first:?}");
    for sent in [ReceiverUsage { last_hour: 1, ..new }, ReceiverUsage { last_hour: 3, recent: 2, ..new }] {
        let later = batches(&used(300, sent));
        assert!(later.len() == 1 && !later[0].is_welcome, "{later:?}");
        let note = later[0].note.as_deref().unwrap_or_default();
        assert!(note.starts_with("40 alerts") && !note.contains("first"), "{note}");
    }
}

#[test]
fn source_incident_does_not_wait_for_the_welcome() {
    let new = used(300, ReceiverUsage { is_new: true, ..NOTHING_SENT });
    let mut waiting: Vec<_> = (0..20).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), 0)).collect();
    waiting.push(PendingNotification { kind: NotificationKind::Source, ..row(20, "incident", "", 0) });
    assert_eq!(sent_with(&routes(UNGROUPED), &waiting, None, &new, 0).0, ["single: incident +0 ~0"]);
}

#[test]
fn messages_beyond_the_hourly_limit_become_one_summary() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting: Vec<_> = (0..6).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), no)).collect();
    let usage = used(5, ReceiverUsage { last_hour: 2, oldest: Some(time(-100)), ..NOTHING_SENT });
    let expected = ["group: a0 +0 ~0", "group: a1 +0 ~0", "group: a2 +0 ~0", "summary: a3 a4 a5 +0 ~0"];
    assert_eq!(sent_with(&routes, &waiting, None, &usage, 6).0, expected);
    let full = used(5, ReceiverUsage { last_hour: 5, summed_at: Some(time(0)), ..usage.sent });
    let (messages, next_at) = sent_with(&routes, &waiting, None, &full, 6);
    assert_eq!((messages.len(), next_at), (0, Some(time(3_500))), "until the limit allows a message, or until the next summary");
    assert_eq!(
        sent_with(&routes, &waiting, None, &full, 3_600).0,
        ["summary: a0 a1 a2 a3 a4 +1 ~0".replace("a0 a1 a2 a3 a4 +1", "6 alerts +0")]
    );
}

fn critical(no: i64, alert: &str, token: &str, since: i64) -> PendingNotification {
    PendingNotification {
        precedence: Precedence { severity: Severity::Critical, value: None, due: None },
        ..row(no, alert, token, since)
    }
}

#[test]
fn critical_alerts_are_all_described_and_skip_the_hourly_limit() {
    // In one group, more alerts than one message can describe.
    let mut waiting: Vec<_> = (0..300).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    waiting.extend((300..450).map(|no| critical(no, &format!("c{no}"), "arb", 0)));
    assert_eq!(sent(&routes(BY_TOKEN), &waiting, None, 30).0, ["group: 100 alerts +0 ~0", "group: 100 alerts +250 ~0"]);
    assert_eq!(
        sent(&routes(UNGROUPED), &waiting[298..301], None, 0).0,
        ["single: c300 +0 ~0", "single: a298 +0 ~0", "single: a299 +0 ~0"]
    );
    // In a batch, more alerts than the messages of a rule can describe.
    let waiting: Vec<_> = (0..1_050).map(|no| critical(no, &format!("c{no}"), "arb", 0)).collect();
    let messages = sent(&routes(UNGROUPED), &waiting, None, 3).0;
    assert_eq!((messages.len(), messages.last().map(String::as_str)), (11, Some("batch: 50 alerts +0 ~0")));
    // While the hourly limit is reached.
    let full = ReceiverUsage { last_hour: 5, oldest: Some(time(-100)), summed_at: Some(time(-60)), ..NOTHING_SENT };
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting = [row(1, "a", "arb", 0), critical(2, "c", "apt", 0), critical(3, "d", "sui", 0)];
    let (messages, next_at) = sent_with(&routes, &waiting, None, &used(5, full), 0);
    assert_eq!((messages, next_at), (vec!["batch: c d +0 ~0".into()], Some(time(3_500))));
    let soon = ReceiverUsage { batched_at: Some(time(-10)), ..full };
    assert_eq!(sent_with(&routes, &waiting, None, &used(5, soon), 0), (NOTHING.into(), Some(time(50))), "one batch per minute");
}

#[test]
fn last_message_before_a_pause_reports_the_number_of_waiting_alerts() {
    let routes = routes(&format!("{BY_TOKEN}group_wait = \"0s\"\n"));
    let waiting: Vec<_> = (0..4).map(|no| row(no, &format!("a{no}"), &format!("t{no}"), 0)).collect();
    let input = SortInput { routes: &routes, waiting: &waiting, suppressed: &[], silences: &[], firing: &[], now: time(0) };
    let sorted = sort(&input);
    let usage = used(5, ReceiverUsage { last_hour: 3, oldest: Some(time(-3_000)), summed_at: Some(time(-600)), ..NOTHING_SENT });
    let decision = decide(&sorted.groups, &|_| None, &|_| usage, &mut until(&routes, time(0)), time(0));
    let notes: Vec<_> = decision.messages.iter().map(|message| message.batch.note.as_deref()).collect();
    let note = "2 alerts wait until 8 Mar 2026, 20:10 UTC: the limit of 5 messages an hour is reached";
    assert_eq!(notes, [None, Some(note)]);
}

#[test]
fn summary_note_explains_the_limit() {
    let routes = routes(UNGROUPED);
    let waiting: Vec<_> = (0..3).map(|no| row(no, &format!("a{no}"), "arb", 0)).collect();
    let input = SortInput { routes: &routes, waiting: &waiting, suppressed: &[], silences: &[], firing: &[], now: time(0) };
    let sorted = sort(&input);
    let full = used(300, ReceiverUsage { last_hour: 300, ..NOTHING_SENT });
    let decision = decide(&sorted.groups, &|_| None, &|_| full, &mut until(&routes, time(0)), time(0));
    let [message] = decision.messages.as_slice() else { panic!("one message, not {}", decision.messages.len()) };
    assert_eq!(message.batch.note.as_deref(), Some("3 alerts beyond the limit of 300 messages an hour, in one message"));
}

#[test]
fn muted_route_holds_messages_until_it_opens_again() {
    let routes = routes(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = [\"severity=warning\"]\nmute_time_intervals = [\"night\"]\n\
         [[time_intervals]]\nname = \"night\"\ntime_intervals = [{ times = [{ start_time = \"20:00\", end_time = \"24:00\" }] }]\n",
    );
    // 1 773 000 000 is 20:00 UTC.
    assert_eq!(time(0).format("%H:%M").to_string(), "20:00");
    let waiting = [row(1, "a", "arb", 0), end(2, "a", "arb", 600)];
    assert_eq!(sent(&routes, &waiting, None, 601), (NOTHING.into(), Some(time(4 * 3_600))));
    assert_eq!(sent(&routes, &waiting, None, 4 * 3_600).0, ["single: a +0 ~1"]);
}

fn suppressed(
    routes: &RouteTree,
    waiting: &[PendingNotification],
    held: &[PendingNotification],
    silences: &[Silence],
    firing: &[FiringAlert],
) -> (Vec<String>, Vec<i64>) {
    let held: Vec<&PendingNotification> = held.iter().collect();
    let input = SortInput { routes, waiting, suppressed: &held, silences, firing, now: time(0) };
    let sorted = sort(&input);
    let texts = sorted.suppressed.iter().map(|(row, by)| format!("{} {} {}", row.no, by.by.as_str(), by.id)).collect();
    (texts, sorted.released)
}

fn silence(matcher: &str) -> Silence {
    let request = SilenceRequest {
        matchers: read_matchers([matcher]).expect("matchers"),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: time(3_600),
    };
    Silence { id: "si_1".into(), ..request.into_silence(time(-60)).expect("granted") }
}

#[test]
fn silences_inhibitions_and_acknowledgements_suppress_notifications() {
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
    let (suppressed, _) = suppressed(&routes, &waiting, &[], &[silence("token=arb")], &firing);
    let expected = ["1 silenced si_1", "2 inhibited c", "3 acknowledged d", "6 silenced si_0"];
    assert_eq!(suppressed, expected, "a reminder with changed facts and the resolution of an acknowledged alert are sent");
}

#[test]
fn suppressed_notification_is_released_when_nothing_suppresses_it() {
    let routes = routes(UNGROUPED);
    let held = [row(1, "a", "arb", -600), row(2, "b", "apt", -600)];
    assert_eq!(suppressed(&routes, &[], &held, &[silence("token=arb")], &[]).1, [2]);
}

#[test]
fn silenced_reminder_is_not_released_if_its_alert_is_acknowledged() {
    let fact = SilenceFact::of(None, Some(&serde_json::json!({ "amount": 1.0 })));
    let ack = Ack { alert: "a".into(), author: "ann".into(), comment: String::new(), at: time(-60), fact: fact.clone() };
    let reminder =
        PendingNotification { kind: NotificationKind::Reminder, acknowledged: Some((ack, fact)), ..row(1, "a", "arb", -600) };
    assert_eq!(suppressed(&routes(UNGROUPED), &[], &[reminder], &[], &[]), (vec!["1 acknowledged a".to_owned()], Vec::new()));
}

#[test]
fn silence_suppresses_everything_but_tests_and_digests() {
    let routes = routes(UNGROUPED);
    let of = |no, kind| PendingNotification { kind, ..row(no, &format!("a{no}"), "arb", 0) };
    let waiting = [
        of(1, NotificationKind::Test),
        of(2, NotificationKind::Digest),
        of(3, NotificationKind::Source),
        of(4, NotificationKind::Event),
    ];
    assert_eq!(suppressed(&routes, &waiting, &[], &[silence("token=arb")], &[]).0, ["3 silenced si_1", "4 silenced si_1"]);
}

#[test]
fn delivery_incidents_and_orphans_skip_grouping() {
    let routes = routes(BY_TOKEN);
    let mut dead = PendingNotification { kind: NotificationKind::Source, ..row(1, "a", "arb", 0) };
    dead.labels.insert("kind".into(), "dead_letter".into());
    assert_eq!(sent(&routes, &[dead], None, 0).0, ["single: a +0 ~0"]);
    let gone = PendingNotification { receiver: "gone".into(), ..row(1, "a", "arb", 0) };
    assert_eq!(sent(&routes, &[gone], None, 0).0, ["single: a +0 ~0"], "becomes a visible dead letter");
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
    fn each_notification_ends_in_exactly_one_place(
        rows in proptest::collection::vec(any_row(), 0..200),
        is_grouped in any::<bool>(),
        is_silenced in any::<bool>(),
        max_per_hour in 1_u32..40,
        last_hour in 0_u32..40,
        summed_at in proptest::option::of(-4_000_i64..900),
    ) {
        let routes = routes(if is_grouped { BY_TOKEN } else { UNGROUPED });
        let waiting: Vec<PendingNotification> = (1..).zip(rows).map(|(no, row)| PendingNotification { no, ..row }).collect();
        let silences = if is_silenced { vec![Silence { matchers: vec![Matcher::parse("token=t1").expect("a matcher")], ..silence("a=b") }] } else { vec![] };
        let now = time(900);
        let input = SortInput { routes: &routes, waiting: &waiting, suppressed: &[], silences: &silences, firing: &[], now };
        let sorted = sort(&input);
        let usage = used(max_per_hour, ReceiverUsage { last_hour, summed_at: summed_at.map(time), ..NOTHING_SENT });
        let decision = decide(&sorted.groups, &|_| None, &|_| usage, &mut until(&routes, now), now);
        let flushed: HashSet<usize> = decision.flushed.iter().copied().collect();
        prop_assert_eq!(flushed.len(), decision.flushed.len(), "no group is sent twice");
        let mut places: Vec<i64> = sorted.suppressed.iter().map(|(row, _)| row.no).collect();
        for message in &decision.messages {
            prop_assert!(message.notified.len() <= MAX_ALERTS);
            let alerts: HashSet<&AlertId> = message.notified.iter().chain(&message.counted).map(|row| &row.alert).collect();
            prop_assert_eq!(alerts.len(), message.notified.len() + message.counted.len(), "each alert once in a message");
            places.extend(message.notified.iter().chain(&message.counted).chain(&message.merged).map(|row| row.no));
        }
        for (index, group) in sorted.groups.iter().enumerate().filter(|(index, _)| !flushed.contains(index)) {
            prop_assert!(decision.next_at.is_some(), "group {index} would wait forever");
            places.extend(group.rows.iter().map(|row| row.no));
        }
        places.sort_unstable();
        prop_assert_eq!(places, (1..=i64::try_from(waiting.len()).expect("few")).collect::<Vec<_>>());
        let made = decision.messages.iter().filter(|message| message.receiver.as_str() == "ops").count();
        prop_assert!(made <= max_per_hour.saturating_sub(last_hour) as usize + 1);
    }
}
