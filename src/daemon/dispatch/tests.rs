//! Simulates a week with routes, groups, mute times, silences, acknowledgements, inhibitions, storms, digests, daylight saving,
//! failing receivers, and random restarts, and then checks the state of every notification.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::TimeDelta;

use super::*;
use crate::config::{Environment, load_text};
use crate::live::LiveConfig;
use crate::outbox::{DeliverySender, Outbox, OutboxDeps};
use engine::pipeline::{ActiveRules, DispatchPolicy};
use engine::route::{RouteTree, Sections};
use model::{
    AckResult, Alert, AlertId, AlertState, AlertStatus, Attempt, BatchKind, BoxFuture, Clock, DueDelivery, Labels, Notification,
    NotificationId, NotificationKind, NotificationRole, NotificationState, NotificationStatus, Resolution, RuleId, Silence,
    SilenceRequest, Watch, alert_id, config, notification_id, read_matchers,
};
use notify::Outcome;
use rules::RuleSet;
use store::{Access, Opening};
use testkit::samples;
use testkit::time;

const CONFIG: &str = r#"
inhibit_rules = [{ source_matchers = ["alertname=Outage"], target_matchers = ["severity=info"], equal = ["token"] }]
[[receiver]]
name = "ops"
max_per_hour = 12
[[receiver]]
name = "desk"
digest = { at = "08:00", timezone = "Europe/Paris" }
[[receiver]]
name = "wall"
[[receiver]]
name = "night"
[route]
receivers = ["ops"]
group_by = ["token"]
repeat_interval = "12h"
fallback = ["night"]
[[route.routes]]
matchers = ["severity=critical"]
receivers = ["ops", "desk", "wall"]
group_by = ["..."]
group_wait = "0s"
continue = true
[[route.routes]]
matchers = ["severity=info"]
receivers = ["desk"]
group_by = ["alertname"]
group_wait = "5m"
mute_time_intervals = ["nights"]
[[time_intervals]]
name = "nights"
[[time_intervals.time_intervals]]
location = "Europe/Paris"
times = [{ start_time = "22:00", end_time = "24:00" }, { start_time = "00:00", end_time = "07:00" }]
"#;

#[derive(serde::Deserialize)]
struct File {
    receiver: Vec<config::ReceiverSettings>,
    route: config::Route,
    inhibit_rules: Vec<config::InhibitRule>,
    time_intervals: Vec<config::TimeIntervals>,
}

fn watch() -> Watch {
    let groups = [("l2".to_owned(), vec!["arb*".to_owned()])].into();
    Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups, ..config::WatchSettings::default() }).expect("valid")
}

/// Receivers in memory: `ops` and `night` accept everything, `desk` fails for hours, and `wall` rejects everything.
#[derive(Default)]
struct Fakes {
    got: Mutex<Vec<(ReceiverName, DueDelivery, Timestamp)>>,
    is_desk_down: std::sync::atomic::AtomicBool,
}

impl DeliverySender for Fakes {
    fn names(&self) -> Vec<ReceiverName> {
        ["ops", "desk", "wall", "night"].map(ReceiverName::from).to_vec()
    }

    fn max_per_hour(&self, receiver: &ReceiverName) -> u32 {
        if receiver.as_str() == "ops" { 12 } else { 300 }
    }

    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> BoxFuture<'a, (Outcome, Attempt)> {
        let outcome = match receiver.as_str() {
            "wall" => Outcome::Refused,
            "desk" if self.is_desk_down.load(std::sync::atomic::Ordering::SeqCst) => Outcome::LATER,
            _ => {
                self.got.lock().expect("a lock").push((receiver.clone(), delivery.clone(), now));
                Outcome::Accepted
            }
        };
        let attempt = Attempt { at: now, took_ms: 1, outcome: outcome.word(), status: None, response: "said".into() };
        Box::pin(async move { (outcome, attempt) })
    }
}

/// A live value. The dispatcher only reads its rules, routes, digests, and tokens.
fn live(active: Arc<ActiveRules>, receivers: &[config::ReceiverSettings], delivery: &config::DeliverySettings) -> Arc<Live> {
    let config = load_text(None, "", &Environment::default()).config.expect("the defaults");
    let live = LiveConfig::build_now(config, RuleSet::default()).expect("builds");
    let policy = DispatchPolicy::of(receivers, delivery, model::config::SourceSettings::default().stale_price).expect("a policy");
    let subscribers = notify::unsubscribe::subscribers(receivers);
    Arc::new(Live::from_pointee(LiveConfig { active, policy, subscribers, watch: watch(), ..live }))
}

/// The parts that a restart replaces.
struct Running {
    store: Store,
    outbox: Outbox,
}

impl Running {
    async fn start(path: &std::path::Path, fakes: &Arc<Fakes>, active: &Arc<ActiveRules>, file: &File, now: Timestamp) -> Self {
        let store = Store::open(Opening { path: path.to_owned(), access: Access::Own, now }).await.expect("opens");
        let delivery = samples::delivery_config();
        let live = live(active.clone(), &file.receiver, &delivery);
        let dispatcher = Dispatcher::new(store.clone(), live.clone());
        let outbox = Outbox::idle(OutboxDeps {
            store: Arc::new(store.clone()),
            dispatcher: Some(Arc::new(dispatcher)),
            sender: fakes.clone(),
            live,
            metrics: None,
            clock: Clock::manual(now),
            delivery,
        });
        Self { store, outbox }
    }

    async fn stop(self) {
        self.store.close().await.expect("closes");
    }
}

fn alert(name: &str, token: &str, severity: &str, serial: u32, state: AlertState, now: Timestamp) -> Alert {
    let rule = RuleId::from(name);
    let subject = format!("unlock/{token}/{serial}");
    let labels = [("alertname", name), ("token", token), ("severity", severity)];
    let mut alert = engine::evaluate::blank(rule.clone(), name, subject.clone(), state, now);
    alert.id = alert_id(&rule, &subject, 1);
    alert.episode = 1;
    alert.labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    alert.annotations.insert("summary".to_owned(), format!("{name} {token} {serial}"));
    alert.starts_at = Some(now);
    alert
}

fn notice(alert: &Alert, transition: &str, receivers: Vec<ReceiverName>, now: Timestamp) -> Notification {
    let kind = match (alert.state, transition) {
        (AlertState::Resolved, _) => NotificationKind::Resolved,
        (AlertState::Event, _) => NotificationKind::Event,
        (_, "firing") => NotificationKind::Firing,
        _ => NotificationKind::Reminder,
    };
    let status = if kind == NotificationKind::Resolved { AlertStatus::Resolved } else { AlertStatus::Firing };
    let mut body = engine::evaluate::plain_body(alert, status, transition, now);
    body.record = Some(serde_json::json!({ "amount": 1.0 }));
    Notification { id: notification_id(&alert.id, transition), alert: alert.id.clone(), kind, at: now, receivers, body }
}

/// The state of the simulation: the firing alerts, and the notifications that were decided.
struct World {
    dice: fastrand::Rng,
    serial: u32,
    open: Vec<Alert>,
    decided: HashMap<(NotificationId, ReceiverName), (AlertId, Labels, usize)>,
    silences: Vec<Silence>,
}

impl World {
    fn receivers(&self, routes: &RouteTree, labels: &Labels) -> Vec<ReceiverName> {
        routes.route(labels)
    }

    /// Simulates one evaluation, in which some alerts fire, send a reminder, or resolve.
    fn evaluate(&mut self, routes: &RouteTree, now: Timestamp, count: u32) -> Commit {
        let mut commit = Commit { at: now, ..Commit::default() };
        for _ in 0..count {
            self.serial += 1;
            let token = ["arb", "apt", "sui", "op"][self.dice.usize(..4)];
            let severity = ["critical", "warning", "warning", "info", "info"][self.dice.usize(..5)];
            let name = ["Cliff", "Burned", "Moved"][self.dice.usize(..3)];
            let state = if name == "Cliff" { AlertState::Firing } else { AlertState::Event };
            let mut alert = alert(name, token, severity, self.serial, state, now);
            self.notify(&mut commit, routes, &mut alert, if state == AlertState::Event { "event" } else { "firing" }, now);
        }
        for _ in 0..self.dice.usize(..2) {
            if self.open.is_empty() {
                break;
            }
            let index = self.dice.usize(..self.open.len());
            let mut alert = self.open.swap_remove(index);
            if self.dice.bool() {
                alert.state = AlertState::Resolved;
                alert.resolution = Some(Resolution::Cleared);
                alert.ends_at = Some(now);
                self.notify(&mut commit, routes, &mut alert, "resolved", now);
            } else {
                let transition = format!("lead {}", now.timestamp());
                self.notify(&mut commit, routes, &mut alert, &transition, now);
            }
        }
        commit
    }

    fn notify(&mut self, commit: &mut Commit, routes: &RouteTree, alert: &mut Alert, transition: &str, now: Timestamp) {
        alert.updated_at = now;
        let receivers =
            if alert.state == AlertState::Resolved { alert.notified.clone() } else { self.receivers(routes, &alert.labels) };
        alert.notified.clone_from(&receivers);
        let notice = notice(alert, transition, receivers.clone(), now);
        for receiver in receivers {
            let order = self.decided.len();
            self.decided.insert((notice.id.clone(), receiver), (alert.id.clone(), alert.labels.clone(), order));
        }
        if alert.state == AlertState::Firing {
            self.open.push(alert.clone());
        }
        commit.alerts.push(alert.clone());
        commit.notifications.push(notice);
    }
}

#[tokio::test]
async fn every_notification_of_a_week_ends() {
    let file: File = toml::from_str(CONFIG).expect("TOML");
    let sections = Sections {
        route: &file.route,
        receivers: &file.receiver,
        inhibit_rules: &file.inhibit_rules,
        time_intervals: &file.time_intervals,
    };
    let active = Arc::new(ActiveRules {
        rules: RuleSet::default(),
        routes: RouteTree::of(&sections).expect("routes"),
        ..ActiveRules::default()
    });
    let routes = &active.routes;
    let fakes = Arc::new(Fakes::default());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("week.db");
    // Clocks go forward in Paris on 29 March 2026.
    let (begin, end) = (time("2026-03-24T00:00:00Z"), time("2026-03-31T00:00:00Z"));
    let mut world =
        World { dice: fastrand::Rng::with_seed(7), serial: 0, open: Vec::new(), decided: HashMap::new(), silences: Vec::new() };
    let mut running = Running::start(&path, &fakes, &active, &file, begin).await;
    let (mut restarts, mut acks, mut now) = (0, 0, begin);
    let mut outage = alert("Outage", "sui", "warning", 0, AlertState::Firing, begin);

    while now < end + TimeDelta::days(2) {
        let is_over = now >= end;
        let hours = (now - begin).num_hours();
        fakes.is_desk_down.store((40..46).contains(&hours), std::sync::atomic::Ordering::SeqCst);
        let count = match now {
            _ if is_over => 0,
            // A storm by a careless rule.
            _ if now == begin + TimeDelta::hours(100) => 1_500,
            _ => world.dice.u32(..6) / 4,
        };
        if !is_over {
            let mut commit = world.evaluate(routes, now, count);
            if now == begin + TimeDelta::hours(20) || now == begin + TimeDelta::hours(60) {
                outage.state = if outage.notified.is_empty() { AlertState::Firing } else { AlertState::Resolved };
                outage.ends_at = (outage.state == AlertState::Resolved).then_some(now);
                let transition = if outage.state == AlertState::Firing { "firing" } else { "resolved" };
                world.notify(&mut commit, routes, &mut outage, transition, now);
                world.open.retain(|open| open.id != outage.id);
            }
            running.store.commit(commit).await.expect("committed");
        } else if !world.open.is_empty() {
            // The week is over: all firing alerts resolve.
            let mut commit = Commit { at: now, ..Commit::default() };
            for mut alert in std::mem::take(&mut world.open) {
                alert.state = AlertState::Resolved;
                alert.ends_at = Some(now);
                world.notify(&mut commit, routes, &mut alert, "resolved", now);
            }
            running.store.commit(commit).await.expect("committed");
        }
        if hours % 30 == 7 && now.timestamp() % 3_600 == 0 && !is_over {
            let token = ["arb", "apt"][world.dice.usize(..2)];
            let request = SilenceRequest {
                matchers: read_matchers([format!("token={token}").as_str(), "severity!=critical"]).expect("matchers"),
                author: "ann".into(),
                comment: "known".into(),
                starts_at: None,
                ends_at: now + TimeDelta::hours(8),
            };
            let silence = request.into_silence(now).expect("granted");
            running.store.put_silence(silence.clone()).await.expect("written");
            world.silences.push(silence);
        }
        if world.dice.u32(..12) == 0
            && let Some(known) = world.open.first()
        {
            let known = known.id.as_str().to_owned();
            let done = running.store.acknowledge(known, "bob".into(), String::new(), now).await.expect("written");
            assert!(matches!(done, AckResult::Done(_)), "{done:?}");
            acks += 1;
        }
        // Kills the process between a commit and its dispatch pass.
        if world.dice.u32(..25) == 0 {
            running.stop().await;
            running = Running::start(&path, &fakes, &active, &file, now).await;
            restarts += 1;
        }
        let report = running.outbox.deliver_due(now).await;
        assert_eq!(report.errors, [""; 0]);
        now += TimeDelta::minutes(20);
    }
    assert!(restarts > 10 && acks > 10, "{restarts} restarts, {acks} acknowledgements");

    let statuses = running
        .store
        .notification_statuses(model::rows::NotificationFilter { limit: 1_000_000, ..Default::default() })
        .await
        .expect("read");
    let deliveries = created_deliveries(&running.store).await;
    check_states(&world, &statuses);
    check_deliveries(&world, &statuses, &fakes, &deliveries);
    check_digests(&fakes);
    running.stop().await;
}

/// Returns when each delivery was created, for which receiver, and its kind.
async fn created_deliveries(store: &Store) -> HashMap<i64, (Timestamp, ReceiverName, BatchKind)> {
    let filter = model::rows::OutboxFilter { limit: 1_000_000, ..Default::default() };
    let rows = store.outbox(filter).await.expect("read");
    rows.into_iter().map(|row| (row.id.0, (row.created_at, row.receiver, row.shape))).collect()
}

/// Checks that each notification has exactly one state, which is final.
fn check_states(world: &World, statuses: &[NotificationStatus]) {
    let mut table: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut seen = HashSet::new();
    for status in statuses {
        let Some(receiver) = &status.receiver else { continue };
        assert!(seen.insert((status.notice.clone(), receiver.clone())), "twice: {status:?}");
        let role = status.role.map_or("held", NotificationRole::as_str);
        *table.entry((receiver.to_string(), format!("{} ({role})", status.state))).or_default() += 1;
        let is_end =
            status.state.is_suppressed() || matches!(status.state, NotificationState::Delivered | NotificationState::Dead);
        assert!(is_end, "still open two days later: {status:?}");
    }
    for key in world.decided.keys() {
        assert!(seen.contains(key), "lost: {key:?}");
    }
    let all: usize = table.values().sum();
    println!("{} messages decided by the script, {all} with repeats, digests and announcements:", world.decided.len());
    for ((receiver, state), count) in &table {
        println!("  {receiver:<6} {state:<24} {count:>5}");
    }
    for wanted in [
        "delivered (notified)",
        "delivered (counted)",
        "delivered (merged)",
        "dead (notified)",
        "silenced (held)",
        "inhibited (held)",
        "acknowledged (held)",
    ] {
        assert!(table.keys().any(|(_, state)| state == wanted), "the week has no {wanted}: {table:#?}");
    }
}

/// Checks that deliveries were sent once, in order, not during a silence, and within the hourly limit.
fn check_deliveries(
    world: &World,
    statuses: &[NotificationStatus],
    fakes: &Fakes,
    deliveries: &HashMap<i64, (Timestamp, ReceiverName, BatchKind)>,
) {
    let got = fakes.got.lock().expect("a lock");
    let mut sent: HashMap<(NotificationId, ReceiverName), usize> = HashMap::new();
    let mut last: HashMap<(AlertId, ReceiverName), usize> = HashMap::new();
    for (receiver, delivery, _) in got.iter() {
        assert!(delivery.notifications.len() <= model::rows::MAX_ALERTS);
        for notice in &delivery.notifications {
            let key = (notice.id.clone(), receiver.clone());
            *sent.entry(key.clone()).or_default() += 1;
            let Some((alert, _, order)) = world.decided.get(&key) else { continue };
            let before = last.insert((alert.clone(), receiver.clone()), *order);
            assert!(before.is_none_or(|before| before < *order), "out of order: {key:?}");
        }
    }
    assert!(sent.values().all(|count| *count == 1), "sent twice");
    let notified = statuses
        .iter()
        .filter(|status| status.state == NotificationState::Delivered && status.role == Some(NotificationRole::Notified));
    let notified: HashSet<_> =
        notified.map(|status| (status.notice.clone(), status.receiver.clone().expect("a receiver"))).collect();
    assert_eq!(notified, sent.into_keys().collect(), "recorded and sent notifications differ");

    for status in statuses.iter().filter(|status| status.role == Some(NotificationRole::Notified)) {
        let key = (status.notice.clone(), status.receiver.clone().expect("a receiver"));
        let Some((_, labels, _)) = world.decided.get(&key) else { continue };
        let (at, ..) = deliveries[&status.delivery.expect("a delivery").0];
        let violated = world.silences.iter().find(|silence| silence.suppresses(labels, at));
        assert!(violated.is_none(), "{status:?} was sent at {at} during {violated:?}");
    }
    let ops: Vec<Timestamp> =
        deliveries.values().filter(|(_, receiver, _)| receiver.as_str() == "ops").map(|(at, ..)| *at).collect();
    for at in &ops {
        let hour = ops.iter().filter(|other| **other > *at - TimeDelta::hours(1) && **other <= *at).count();
        assert!(hour <= 13, "{hour} messages in the hour before {at}");
    }
    assert!(deliveries.values().any(|(_, _, shape)| *shape == BatchKind::Summary), "the week has no storm");
}

/// Checks that there is one digest each morning at 08:00 in Paris, before and after the clock change.
fn check_digests(fakes: &Fakes) {
    let got = fakes.got.lock().expect("a lock");
    let digests: BTreeSet<String> = got
        .iter()
        .filter(|(_, delivery, _)| delivery.batch.shape == BatchKind::Digest)
        .map(|(receiver, delivery, _)| format!("{receiver} {}", delivery.notifications[0].body.starts_at.format("%d %H:%M")))
        .collect();
    let expected = ["24 07:00", "25 07:00", "26 07:00", "27 07:00", "28 07:00", "29 06:00", "30 06:00", "31 06:00", "01 06:00"];
    assert_eq!(digests, expected.iter().map(|slot| format!("desk {slot}")).collect());
    let count = got.iter().filter(|(_, delivery, _)| delivery.batch.shape == BatchKind::Digest).count();
    assert_eq!(count, expected.len(), "each once");
}

/// Returns the dispatcher and the store of a mail receiver with two recipients and a daily digest.
async fn mail_digest_setup(directory: &std::path::Path, begin: Timestamp) -> (Store, Dispatcher) {
    let path = directory.join("morning.db");
    let store = Store::open(Opening { path, access: Access::Own, now: begin }).await.expect("opens");
    let desk = config::ReceiverSettings {
        name: "desk".into(),
        kind: config::ReceiverKind::Email,
        to: vec!["Desk <Desk@example.com>".into(), "risk@example.com".into()],
        digest: Some(config::DigestSettings { at: "08:00".into(), ..Default::default() }),
        ..Default::default()
    };
    let route = config::Route { receivers: vec!["desk".into()], ..Default::default() };
    let sections = Sections { route: &route, receivers: std::slice::from_ref(&desk), inhibit_rules: &[], time_intervals: &[] };
    let active =
        ActiveRules { rules: RuleSet::default(), routes: RouteTree::of(&sections).expect("routes"), ..ActiveRules::default() };
    let live = live(Arc::new(active), &[desk], &samples::delivery_config());
    (store.clone(), Dispatcher::new(store, live))
}

#[tokio::test]
async fn digest_is_created_while_a_recipient_is_subscribed() {
    let directory = tempfile::tempdir().expect("a directory");
    let day = |n: i64| time("2026-03-09T07:00:00Z") + TimeDelta::days(n);
    let (store, dispatcher) = mail_digest_setup(directory.path(), day(0)).await;
    let after_eight = TimeDelta::hours(2);
    dispatcher.dispatch(day(0)).await.expect("a dispatch");
    let opt_out = |address: &str| model::rows::OptOut {
        receiver: "desk".into(),
        address: address.to_owned(),
        at: day(0),
        via: model::rows::OptOutSource::Link,
    };
    let deliveries_after = async |n: i64| {
        dispatcher.dispatch(day(n) + after_eight).await.expect("a dispatch");
        store.outbox(model::rows::OutboxFilter { limit: 99, ..Default::default() }).await.expect("read").len()
    };
    let created_at = async || {
        let created = store.notification_overview(day(3), day(3)).await.expect("read").created_digests;
        created.into_iter().map(|(_, slot)| slot).max()
    };
    assert_eq!(created_at().await, None, "a digest that was only set up");
    store.opt_out(opt_out("desk@example.com")).await.expect("written");
    assert_eq!(deliveries_after(0).await, 1, "one recipient is subscribed");
    let first = created_at().await;
    assert!(first.is_some_and(|slot| slot >= day(0)), "{first:?}");
    store.opt_out(opt_out("risk@example.com")).await.expect("written");
    assert_eq!(deliveries_after(1).await, 1, "no recipient is subscribed");
    assert_eq!(created_at().await, first, "a slot without recipients");
    store.opt_in("desk".into(), "desk@example.com".to_owned(), day(1)).await.expect("written");
    assert_eq!(deliveries_after(1).await, 1, "the slot of the day has passed");
    assert_eq!(deliveries_after(2).await, 2);
    store.close().await.expect("closes");
}

#[tokio::test]
async fn repeat_renders_groups_of_token() {
    let text = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n\
                [route]\nreceivers = [\"ops\"]\nrepeat_interval = \"12h\"\n[watch]\ngroups = { l2 = [\"arb*\"] }\n";
    let config = crate::config::load_text(None, text, &crate::config::Environment::default()).config.expect("a config");
    let rule = "[[rule]]\nalert = \"Cliff\"\non = \"unlock\"\n\
                annotations = { summary = \"{{ token.symbol }} of {{ token.groups | join('+') }}\" }\n";
    let source = model::diagnostic::SourceText { file: "cliff.toml".into(), text: rule.to_owned() };
    let begin = time("2026-03-09T07:00:00Z");
    let read = crate::reload::compile(&config, vec![source], Vec::new(), begin);
    assert!(read.problem.is_none(), "{}", read.problem.expect("a problem").full);
    let routes = RouteTree::of(&Sections::from(&config)).expect("routes");
    let active = Arc::new(ActiveRules { rules: read.set, routes, ..ActiveRules::default() });
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("again.db");
    let store = Store::open(Opening { path, access: Access::Own, now: begin }).await.expect("opens");
    let delivery = samples::delivery_config();
    let dispatcher = Dispatcher::new(store.clone(), live(active, &config.receivers, &delivery));

    let event = serde_json::json!({ "unlockDate": "2026-03-20T00:00:00Z", "tokenSymbol": "ARB" });
    let record = model::supply::Record::Unlock(serde_json::from_value(event).expect("an event"));
    let mut cliff = alert("Cliff", "arbitrum", "warning", 1, AlertState::Firing, begin);
    (cliff.token, cliff.resource, cliff.key) =
        (Some("arbitrum".into()), Some(model::supply::Resource::Unlock), Some("one".into()));
    let notified = notice(&cliff, "firing", vec!["ops".into()], begin);
    let feed = model::rows::FeedUpdate {
        id: model::supply::FeedId { endpoint: model::supply::Endpoint::UnlockEvents, token: Some("arbitrum".into()) },
        state: model::supply::FeedState::default(),
        put: vec![model::rows::Put { key: "one".into(), record, is_new_version: true }],
        removed: Vec::new(),
        header: None,
    };
    let commit = Commit { at: begin, alerts: vec![cliff], notifications: vec![notified], feeds: vec![feed], ..Commit::default() };
    store.commit(commit).await.expect("committed");
    dispatcher.dispatch(begin).await.expect("a dispatch");
    dispatcher.dispatch(begin + TimeDelta::hours(13)).await.expect("a dispatch");
    let rows = store.outbox(model::rows::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read");
    let summaries: Vec<&str> = rows.iter().flat_map(|row| &row.alerts).map(|alert| alert.summary.as_str()).collect();
    assert_eq!(summaries, ["ARB of l2", "Cliff arbitrum 1"], "the repeat uses the rule's template, with groups");
    store.close().await.expect("closes");
}

/// A schedule with one unlock of `value` USD.
fn unlocking(token: &str, date: Timestamp, precision: &str, value: f64) -> model::rows::FeedUpdate {
    let event = serde_json::json!({"unlockDate": date, "tokenSymbol": token.to_uppercase(), "cliffUnlocks": {"cliffValue": value,
        "allocationBreakdown": [{"cliffValue": value, "unlockPrecision": precision}]}});
    let record = model::supply::Record::Unlock(serde_json::from_value(event).expect("an event"));
    model::rows::FeedUpdate {
        id: model::supply::FeedId { endpoint: model::supply::Endpoint::UnlockEvents, token: Some(token.into()) },
        state: model::supply::FeedState::default(),
        put: vec![model::rows::Put { key: "one".into(), record, is_new_version: true }],
        removed: Vec::new(),
        header: None,
    }
}

#[tokio::test]
async fn digest_ranks_all_unlocks_of_its_period() {
    let directory = tempfile::tempdir().expect("a directory");
    let begin = time("2026-03-09T07:00:00Z");
    let (store, dispatcher) = mail_digest_setup(directory.path(), begin).await;
    // The largest unlocks come after more than a thousand small ones: one with an exact day, one with a month whose nominal date is in
    // the period, and one with a month whose nominal date is not.
    let mut feeds: Vec<_> =
        (0..1_200).map(|i| unlocking(&format!("t{i:04}"), begin + TimeDelta::minutes(200 + i), "second", 1e3)).collect();
    feeds.push(unlocking("large", begin + TimeDelta::days(6), "second", 9e6));
    feeds.push(unlocking("month", begin + TimeDelta::days(5), "month", 5e6));
    feeds.push(unlocking("later", begin + TimeDelta::days(20), "month", 7e6));
    store.commit(Commit { at: begin, feeds, ..Commit::default() }).await.expect("committed");
    dispatcher.dispatch(begin - TimeDelta::days(1)).await.expect("a dispatch");
    dispatcher.dispatch(begin + TimeDelta::hours(2)).await.expect("a dispatch");
    let rows = store.outbox(model::rows::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read");
    let summary = rows.first().and_then(|row| row.alerts.first()).map(|alert| alert.summary.clone());
    assert_eq!(
        summary.as_deref(),
        Some("Digest: 1202 unlocks ($15.20M) in the next 7 days, incomplete, 1 more possible ($7.00M), 0 changes")
    );

    // A digest of some tokens counts these alone.
    let change = |token: &str| model::Change::of(model::ChangeKind::Removed, model::Resource::Unlock, &token.into());
    let changes = vec![change("month"), change("large"), change("t0001")];
    store.commit(Commit { at: begin + TimeDelta::minutes(90), changes, ..Commit::default() }).await.expect("committed");
    let digest =
        config::DigestSettings { at: "08:00".into(), tokens: vec!["large".into(), "t000?".into()], ..Default::default() };
    let desk = config::ReceiverSettings { name: "desk".into(), digest: Some(digest), ..Default::default() };
    let plans = engine::digest_schedule::plans(&[desk], config::SourceSettings::default().stale_price).expect("a digest");
    let watch =
        Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups: [].into(), ..config::WatchSettings::default() })
            .expect("patterns");
    let digest =
        digest_now(&store, (&watch, &ActiveRules::default()), &plans[0], begin + TimeDelta::hours(2)).await.expect("read");
    assert_eq!((digest.ahead_value, digest.changes_count, digest.gaps.tokens), (Some(9_010_000.0), 2, 11), "{digest:#?}");
    store.close().await.expect("closes");
}
