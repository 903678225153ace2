//! The event log: every record has its events, and a follower sees each event once and in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::support::*;
use crate::sql::Row;
use crate::{Access, DatabaseLocation, ErrorKind, LeaseStatus, Store};
use model::*;

/// Returns all events that are kept.
async fn all_events(store: &Store) -> Vec<LoggedEvent> {
    store.events(EventLogFilter { limit: 1_000_000, ..EventLogFilter::default() }).await.expect("read").events
}

fn added(at: Timestamp, token: &str, key: &str) -> Commit {
    let change = Change { key: Some(RecordKey::from(key)), ..Change::of(ChangeKind::Added, Resource::Unlock, &token.into()) };
    Commit { at, tokens: vec![token_item(token, "ARB")], changes: vec![change], ..Commit::default() }
}

fn silence_of(id: &str) -> Silence {
    Silence {
        id: id.to_owned(),
        matchers: vec![Matcher::parse("token=arbitrum").expect("a matcher")],
        author: "ops".into(),
        comment: "a planned move".into(),
        starts_at: now(),
        ends_at: now() + minutes(60),
        created_at: now(),
    }
}

#[tokio::test]
async fn everything_that_happens_is_logged_once() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    assert_eq!(store.last_event().await.expect("read"), 0);
    let alert = firing("unlock/arbitrum/a", Some("arbitrum"));
    let commit = Commit {
        alerts: vec![alert.clone()],
        notifications: vec![notification(&alert, "firing", &["ops", "desk"])],
        silences: vec![silence_of("si_1")],
        ..added(now(), "arbitrum", "a")
    };
    // The second time, all of it exists already.
    store.commit(commit.clone()).await.expect("committed");
    store.commit(commit).await.expect("committed");
    store.put_silence(silence_of("si_1")).await.expect("written");
    store.acknowledge(alert.id.to_string(), "ana".into(), "seen".into(), now()).await.expect("acknowledged");
    for _ in 0..2 {
        store.unacknowledge(alert.id.clone(), now()).await.expect("removed");
        store.expire_silence("si_1".into(), now() + minutes(1)).await.expect("ended");
    }
    let due = store.due("ops".into(), now(), 9).await.expect("read").remove(0).id;
    for (state, next) in
        [(DeliveryState::Retrying, Some(now())), (DeliveryState::Delivered, None), (DeliveryState::Delivered, None)]
    {
        store.record_attempts(vec![tried(due, now(), state, next)]).await.expect("recorded");
    }
    let other = store.due("desk".into(), now(), 9).await.expect("read").remove(0).id;
    for _ in 0..2 {
        store.record_attempts(vec![tried(other, now(), DeliveryState::Dead, None)]).await.expect("recorded");
    }
    for _ in 0..2 {
        store.drop_at(vec![other], now()).await.expect("dropped");
    }
    let resolved = Alert { state: AlertState::Resolved, resolution: Some(Resolution::Passed), ..alert };
    let incident = Alert { rule: SOURCE_TROUBLE.into(), token: None, id: "al_incident".into(), ..firing("source", None) };
    store.commit(at(Commit { alerts: vec![resolved, incident], ..Commit::default() })).await.expect("committed");
    let failed = LoggedReload { rules: None, problem: Some("rules/a.toml:1:1: unknown key".into()) };
    store.log_reload(failed, now()).await.expect("written");

    let shown: Vec<String> = all_events(&store)
        .await
        .iter()
        .map(|event| {
            let named = |name: Option<&str>| name.unwrap_or("-").to_owned();
            let (token, rule) = (event.token.as_ref().map(TokenId::as_str), event.rule.as_ref().map(RuleId::as_str));
            format!("{} {} {} {}", event.seq, event.kind, named(token), named(rule))
        })
        .collect();
    let expected = [
        "1 change arbitrum -",
        "2 alert.firing arbitrum BigCliffAhead",
        "3 notification arbitrum BigCliffAhead",
        "4 silence.created - -",
        "5 acknowledgement.added arbitrum BigCliffAhead",
        "6 acknowledgement.removed arbitrum BigCliffAhead",
        "7 silence.expired - -",
        "8 delivery.delivered - -",
        "9 delivery.dead - -",
        "10 delivery.dropped - -",
        "11 alert.resolved arbitrum BigCliffAhead",
        "12 incident.firing - SourceTrouble",
        "13 reload.failed - -",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn bodies_have_the_facts_at_the_time_of_the_event() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("unlock/arbitrum/a", Some("arbitrum"));
    store.commit(Commit { alerts: vec![alert.clone()], ..added(now(), "arbitrum", "a") }).await.expect("committed");
    let resolved = Alert { state: AlertState::Resolved, resolution: Some(Resolution::Passed), ..alert.clone() };
    store.commit(at(Commit { alerts: vec![resolved], ..Commit::default() })).await.expect("committed");
    store.put_silence(silence_of("si_1")).await.expect("written");
    store.expire_silence("si_1".into(), now() + minutes(5)).await.expect("ended");
    let events = serde_json::to_value(all_events(&store).await).expect("JSON");
    assert_eq!(events[0]["body"]["change"]["kind"], "added");
    assert_eq!(events[0]["body"]["token"], "arbitrum");
    assert_eq!((&events[1]["body"]["state"], &events[1]["body"]["resolution"]), (&"firing".into(), &serde_json::Value::Null));
    assert_eq!((&events[2]["body"]["state"], &events[2]["body"]["resolution"]), (&"resolved".into(), &"passed".into()));
    assert_eq!(events[1]["body"]["severity"], "critical");
    assert_eq!(events[3]["body"]["endsAt"], "2026-03-09T01:00:00Z");
    assert_eq!(events[4]["body"]["endsAt"], "2026-03-09T00:05:00Z");
}

#[tokio::test]
async fn damaged_change_does_not_end_the_log() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for key in ["a", "b", "c"] {
        store.commit(added(now(), "arbitrum", key)).await.expect("committed");
    }
    change(&store, "UPDATE change SET kind = 'unknown' WHERE key = 'b'");
    let bodies: Vec<(i64, bool)> = all_events(&store).await.iter().map(|event| (event.seq, event.body.is_some())).collect();
    assert_eq!(bodies, [(1, true), (2, false), (3, true)]);
}

#[tokio::test]
async fn page_ends_at_its_limit_and_skips_other_types() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for index in 0..250 {
        let alert = firing(&format!("unlock/arbitrum/{index}"), Some("arbitrum"));
        let alerts = if index % 50 == 0 { vec![alert] } else { Vec::new() };
        store.commit(Commit { alerts, ..added(now(), "arbitrum", &format!("k{index}")) }).await.expect("committed");
    }
    let page = async |after: Option<i64>, kinds: Vec<EventType>, limit: u32| {
        store.events(EventLogFilter { after, kinds, limit }).await.expect("read")
    };
    let first = page(None, Vec::new(), 120).await;
    assert_eq!((first.events.len(), first.next, first.range.last), (120, 120, 255));
    let rest = page(Some(first.next), Vec::new(), 200).await;
    assert_eq!((rest.events.len(), rest.next), (135, 255));
    let alerts = page(None, vec![EventType::AlertFiring], 3).await;
    assert_eq!(alerts.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 53, 104]);
    assert_eq!(alerts.next, 104, "the third alert");
    let alerts = page(Some(alerts.next), vec![EventType::AlertFiring], 3).await;
    assert_eq!((alerts.events.len(), alerts.next), (2, 255), "the rest has no alert");
    assert_eq!(page(Some(255), Vec::new(), 9).await.next, 255);
}

#[tokio::test]
async fn pruning_leaves_no_gap_and_numbers_go_on() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for minute in [0, 10, 90, 20, 30] {
        store.commit(added(now() + minutes(minute), "arbitrum", &format!("k{minute}"))).await.expect("committed");
    }
    let hour = Duration::from_secs(3_600);
    let pruned = store.prune(now() + minutes(100), hour, hour).await.expect("pruned");
    assert_eq!(pruned.events, 2, "an event that was committed after a later one stays");
    let page = store.events(EventLogFilter { limit: 9, ..EventLogFilter::default() }).await.expect("read");
    assert_eq!(page.range, EventLogRange { first: 3, last: 5 });
    assert!(page.events[1].body.is_none() && page.events[0].body.is_some(), "its change is deleted: {page:?}");
    assert_eq!(page.range.check(1), Err(EventCursorProblem::Expired));
    assert_eq!(page.range.check(2), Ok(()));
    assert_eq!(page.range.check(5), Ok(()));
    assert_eq!(page.range.check(6), Err(EventCursorProblem::Unknown));
    store.prune(now() + minutes(1_000), hour, hour).await.expect("pruned");
    assert_eq!(all_events(&store).await.iter().map(|event| event.seq).collect::<Vec<_>>(), [5], "the newest one stays");
    store.close().await.expect("closed");
    let store = owned(&directory).await;
    store.commit(added(now() + minutes(1_000), "arbitrum", "later")).await.expect("committed");
    assert_eq!(all_events(&store).await.iter().map(|event| event.seq).collect::<Vec<_>>(), [5, 6]);
}

#[tokio::test]
async fn transaction_that_fails_uses_no_number() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(added(now(), "arbitrum", "a")).await.expect("committed");
    change(&store, "CREATE TABLE only_once (x INTEGER PRIMARY KEY)");
    for expected in [2, 2, 3] {
        let id = format!("si_{expected}");
        let failed = store.act("fail", move |to| {
            crate::silence::put_silence(to, &silence_of("si_lost"))?;
            to.execute("INSERT INTO only_once (x) VALUES (1), (1)", [])?;
            Ok(())
        });
        failed.await.expect_err("the second row repeats the first");
        store.put_silence(silence_of(&id)).await.expect("written");
        assert_eq!(store.last_event().await.expect("read"), expected);
    }
}

/// Two handles of one database that both write. On a server, both can become the active instance.
struct Writers {
    handles: [Store; 2],
    active: usize,
}

impl Writers {
    async fn open(directory: &TempDir) -> Self {
        let owner = owned(directory).await;
        let other = match server_place(directory.path()) {
            Some(place) => Store::open_in(DatabaseLocation::Server(place), Access::Own, now()).await.expect("opens"),
            None => Store::open(opening(&directory.path().join("cliffwatch.db"), Access::Write)).await.expect("opens"),
        };
        Self { handles: [owner, other], active: 0 }
    }

    fn active(&self) -> &Store {
        &self.handles[self.active]
    }

    fn other(&self) -> &Store {
        &self.handles[1 - self.active]
    }

    /// Makes the other handle the active instance while the former one still believes to be active. Does nothing on a file.
    async fn take_over(&mut self) {
        if !self.active().is_shared() {
            return;
        }
        change(self.other(), "UPDATE lease SET renewed_at = '-infinity'");
        assert_eq!(self.other().maintain_lease("another").await.expect("maintained"), LeaseStatus::Active);
        let late = added(now(), "arbitrum", "late");
        assert_eq!(self.active().commit(late).await.expect_err("fenced out").kind(), ErrorKind::NotActive);
        self.active = 1 - self.active;
    }
}

/// One random write. Returns after it is committed.
async fn write_something(writers: &mut Writers, random: &mut fastrand::Rng, step: usize) {
    let (active, other) = (writers.active().clone(), writers.other().clone());
    let alert = |index: usize| firing(&format!("unlock/arbitrum/{index}"), Some("arbitrum"));
    match random.u8(0..8) {
        0 => writers.take_over().await,
        1 => {
            let due = active.due("ops".into(), now(), 5).await.expect("read");
            let states = [DeliveryState::Delivered, DeliveryState::Dead, DeliveryState::Retrying];
            let attempts = due.iter().map(|delivery| {
                let state = states[random.usize(0..3)];
                tried(delivery.id, now(), state, (state == DeliveryState::Retrying).then(now))
            });
            active.record_attempts(attempts.collect()).await.expect("recorded");
        }
        2 => {
            let earlier = alert(random.usize(0..=step));
            let resolved = Alert { state: AlertState::Resolved, resolution: Some(Resolution::Passed), ..earlier };
            active.commit(at(Commit { alerts: vec![resolved], ..Commit::default() })).await.expect("committed");
        }
        _ => {
            // A cycle of the active instance, and actions of users on the other, at the same time.
            let alerts: Vec<Alert> = (0..random.usize(0..4)).map(|index| alert(step * 10 + index)).collect();
            let notifications = alerts.iter().map(|alert| notification(alert, "firing", &["ops"])).collect();
            let commit = Commit { alerts, notifications, ..added(now(), "arbitrum", &format!("k{step}")) };
            let id = format!("si_{step}");
            let acts = async {
                other.put_silence(silence_of(&id)).await.expect("written");
                other.expire_silence(id.clone(), now() + minutes(1)).await.expect("ended");
                let message = notification(&firing(&format!("test/{step}"), None), "test", &["desk"]);
                other.enqueue(message, now()).await.expect("written");
            };
            let (committed, ()) = tokio::join!(active.commit(commit), acts);
            committed.expect("committed");
        }
    }
}

/// A program that follows the log and is killed at random. It stores what it saw together with its cursor, as the documentation
/// recommends.
#[derive(Default)]
struct Follower {
    cursor: i64,
    seen: Vec<(i64, EventType)>,
    kills: usize,
}

impl Follower {
    async fn step(&mut self, store: &Store, random: &mut fastrand::Rng) {
        let filter = EventLogFilter { after: Some(self.cursor), kinds: Vec::new(), limit: random.u32(1..40) };
        let page = store.events(filter).await.expect("read");
        assert_eq!(page.range.check(self.cursor), Ok(()));
        if random.u8(0..4) == 0 {
            // Killed before it stored anything.
            self.kills += 1;
            return;
        }
        self.seen.extend(page.events.iter().map(|event| (event.seq, event.kind)));
        self.cursor = page.next;
    }
}

/// Returns how often each type must be in the log, from the records alone.
fn expected_counts(store: &Store) -> BTreeMap<String, i64> {
    let count = |sql: &str| rows(store, sql, |row: &Row<'_>| row.get::<i64>(0).expect("a number")).remove(0);
    let counts = [
        ("change", count("SELECT count(*) FROM change")),
        ("notification", count("SELECT count(*) FROM notification")),
        ("delivery.delivered", count("SELECT count(*) FROM delivery WHERE state = 'delivered'")),
        ("delivery.dead", count("SELECT count(*) FROM delivery WHERE state = 'dead'")),
        ("silence.created", count("SELECT count(*) FROM silence")),
        ("silence.expired", count("SELECT count(*) FROM silence WHERE ends_at < 1773018000000")),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(kind, count)| (kind.to_owned(), count)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_each_event_once_and_in_order() {
    for seed in 0..4 {
        let directory = TempDir::new().expect("a directory");
        let mut writers = Writers::open(&directory).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let followers: Vec<_> = (0..3)
            .map(|number| {
                let (store, is_over) = (writers.handles[number % 2].for_pages(), is_over.clone());
                tokio::spawn(async move {
                    let (mut follower, mut random) = (Follower::default(), fastrand::Rng::with_seed(seed * 10 + number as u64));
                    while !is_over.load(Ordering::SeqCst) {
                        follower.step(&store, &mut random).await;
                    }
                    while follower.cursor < store.last_event().await.expect("read") {
                        follower.step(&store, &mut random).await;
                    }
                    follower
                })
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..60 {
            write_something(&mut writers, &mut random, step).await;
        }
        is_over.store(true, Ordering::SeqCst);
        let logged: Vec<(i64, EventType)> =
            all_events(writers.active()).await.iter().map(|event| (event.seq, event.kind)).collect();
        assert!(logged.len() > 100 && logged.iter().map(|(seq, _)| *seq).eq(1..=logged.len() as i64), "seed {seed}: {logged:?}");
        for follower in followers {
            let follower = follower.await.expect("followed");
            assert_eq!(follower.seen, logged, "seed {seed}, after {} kills", follower.kills);
            assert!(follower.kills > 0);
        }
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (_, kind) in &logged {
            *counts.entry(kind.to_string()).or_default() += 1;
        }
        // An alert can be resolved and fire again in this test, so the last states are compared instead.
        counts.retain(|kind, _| !kind.starts_with("alert."));
        assert_eq!(counts, expected_counts(writers.active()), "seed {seed}");
        assert_eq!(last_states(writers.active()).await, stored_states(writers.active()), "seed {seed}");
    }
}

/// Returns the state of each alert after its last event.
async fn last_states(store: &Store) -> BTreeSet<(String, String)> {
    let mut states = BTreeMap::new();
    for event in all_events(store).await {
        if let (EventType::AlertFiring | EventType::AlertResolved, Some(EventBody::Facts(body))) = (event.kind, event.body) {
            let transition: LoggedAlert = serde_json::from_value(body).expect("a transition");
            states.insert(transition.alert.to_string(), transition.state.to_string());
        }
    }
    states.into_iter().collect()
}

fn stored_states(store: &Store) -> BTreeSet<(String, String)> {
    let read = |row: &Row<'_>| (row.get(0).expect("an id"), row.get(1).expect("a state"));
    rows(store, "SELECT id, state FROM alert", read).into_iter().collect()
}
