use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex as Lock;

use chrono::TimeDelta;
use tokio::{sync::Notify, time::Instant};

use super::*;
use model::{
    Alert, AlertBody, AlertId, AlertState, AlertStatus, Attempt, AttemptRecord, DueDelivery, Notification, NotificationKind,
    RuleId, alert_id, notification_id,
};
use notify::Outcome;
use notify::samples::{delivery_config, due, moved, resolved, time, unlock};

/// A store in memory; while it is held, it takes no records.
#[derive(Default)]
struct Memory(Lock<State>, tokio::sync::watch::Sender<bool>);

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    incident: Option<Alert>,
    announced: Vec<Notification>,
    /// How many of the next writes fail.
    broken: usize,
    writes: usize,
}

#[derive(Clone, Debug)]
struct Row {
    delivery: DueDelivery,
    state: DeliveryState,
    next: Timestamp,
    attempts: Vec<Attempt>,
}

impl Row {
    fn is_open(&self) -> bool {
        matches!(self.state, DeliveryState::Due | DeliveryState::Retrying)
    }
}

impl State {
    /// Puts a notice in for each of its receivers, as the store does.
    fn queue(&mut self, notice: &Notification) {
        for receiver in &notice.receivers {
            let id = i64::try_from(self.rows.len()).expect("few rows") + 1;
            let delivery = due(id, receiver.as_str(), vec![notice.clone()]);
            self.rows.push(Row { next: delivery.due_at, delivery, state: DeliveryState::Due, attempts: Vec::new() });
        }
    }

    fn tell(&mut self, alert: Alert, notice: &Notification) {
        if alert.subject.starts_with("receiver/") {
            self.incident = Some(alert);
        }
        self.announced.push(notice.clone());
        self.queue(notice);
    }
}

impl Memory {
    fn with(notifications: &[Notification]) -> Arc<Self> {
        let memory = Self::default();
        let mut state = memory.0.lock().expect("a lock");
        notifications.iter().for_each(|notice| state.queue(notice));
        drop(state);
        Arc::new(memory)
    }

    fn write(&self, records: Vec<AttemptRecord>) -> Result<(), DeliveryStoreError> {
        let mut state = self.0.lock().expect("a lock");
        if state.broken > 0 {
            state.broken -= 1;
            return Err("the disk is full".into());
        }
        state.writes += 1;
        for record in records {
            let row = state.rows.iter_mut().find(|row| row.delivery.id == record.delivery).expect("a row");
            row.state = record.state;
            row.delivery.attempts += 1;
            row.delivery.tries += 1;
            row.next = record.next_attempt_at.unwrap_or(row.next);
            row.attempts.push(record.attempt);
            for (alert, notice) in record.alerts.into_iter().zip(&record.notifications) {
                state.tell(alert, notice);
            }
        }
        Ok(())
    }

    fn states(&self) -> Vec<DeliveryState> {
        self.0.lock().expect("a lock").rows.iter().map(|row| row.state).collect()
    }

    fn announced(&self) -> Vec<String> {
        self.0
            .lock()
            .expect("a lock")
            .announced
            .iter()
            .map(|notice| format!("{} {}", notice.body.status, notice.body.reason))
            .collect()
    }
}

fn alerts(delivery: &DueDelivery) -> impl Iterator<Item = &AlertId> {
    delivery.notifications.iter().map(|notice| &notice.alert)
}

impl DeliveryStore for Memory {
    fn due(
        &self,
        receiver: &ReceiverName,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<DueDelivery>, DeliveryStoreError>> {
        let state = self.0.lock().expect("a lock");
        let is_first = |row: &Row| {
            let told: Vec<&AlertId> = alerts(&row.delivery).collect();
            !state.rows.iter().any(|other| {
                let is_before =
                    other.is_open() && other.delivery.id < row.delivery.id && other.delivery.receiver == row.delivery.receiver;
                is_before && alerts(&other.delivery).any(|alert| told.contains(&alert))
            })
        };
        let mut due: Vec<Row> = state
            .rows
            .iter()
            .filter(|row| row.is_open() && row.delivery.receiver == *receiver && row.next <= now && is_first(row))
            .cloned()
            .collect();
        due.sort_by_key(|row| (row.next, row.delivery.id));
        let due = due.into_iter().take(limit as usize).map(|row| row.delivery).collect();
        Box::pin(async move { Ok(due) })
    }

    fn next_due_at(&self, receiver: &ReceiverName) -> BoxFuture<'_, Result<Option<Timestamp>, DeliveryStoreError>> {
        let state = self.0.lock().expect("a lock");
        let next = state.rows.iter().filter(|row| row.is_open() && row.delivery.receiver == *receiver).map(|row| row.next).min();
        Box::pin(async move { Ok(next) })
    }

    fn record_attempts(&self, records: Vec<AttemptRecord>) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        Box::pin(async move {
            self.1.subscribe().wait_for(|is_held| !is_held).await.expect("a sender");
            self.write(records)
        })
    }

    fn pending_receivers(&self) -> BoxFuture<'_, Result<Vec<(ReceiverName, u32)>, DeliveryStoreError>> {
        let state = self.0.lock().expect("a lock");
        let mut counts: BTreeMap<ReceiverName, u32> = BTreeMap::new();
        for row in state.rows.iter().filter(|row| row.is_open()) {
            *counts.entry(row.delivery.receiver.clone()).or_default() += 1;
        }
        Box::pin(async move { Ok(counts.into_iter().collect()) })
    }

    fn retry_now(&self, receiver: &ReceiverName, now: Timestamp) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        let mut state = self.0.lock().expect("a lock");
        for row in state.rows.iter_mut().filter(|row| row.state == DeliveryState::Retrying && row.delivery.receiver == *receiver)
        {
            row.next = row.next.min(now);
        }
        Box::pin(async { Ok(()) })
    }

    fn announce(&self, _at: Timestamp, alert: Alert, notice: Notification) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        self.0.lock().expect("a lock").tell(alert, &notice);
        Box::pin(async { Ok(()) })
    }

    fn incident(&self, _rule: RuleId, subject: String) -> BoxFuture<'_, Result<ReceiverIncident, DeliveryStoreError>> {
        let open = self
            .0
            .lock()
            .expect("a lock")
            .incident
            .clone()
            .filter(|alert| alert.subject == subject && alert.state == AlertState::Firing);
        let episodes = open.as_ref().map_or(0, |alert| alert.episode);
        Box::pin(async move { Ok(ReceiverIncident { open, episodes }) })
    }
}

/// What a receiver does with what it gets.
#[derive(Clone)]
enum Manner {
    Answers(Outcome),
    /// One outcome for each attempt, then accepts.
    Then(Arc<Lock<VecDeque<Outcome>>>),
    Hangs,
    /// Accepts once it is told to.
    Waits(Arc<Notify>),
    Panics,
}

/// Receivers in memory, with what reached them.
struct Fakes {
    manners: BTreeMap<ReceiverName, Manner>,
    got: Lock<Vec<(String, NotificationKind, i64)>>,
    max_per_hour: u32,
    /// What the receivers themselves allow at once.
    concurrency: Lock<Option<u32>>,
    most_at_once: Lock<(usize, usize)>,
}

impl Fakes {
    fn new(manners: &[(&str, Manner)]) -> Arc<Self> {
        Self::capped(manners, 10_000)
    }

    fn capped(manners: &[(&str, Manner)], max_per_hour: u32) -> Arc<Self> {
        Arc::new(Self {
            manners: manners.iter().map(|(name, manner)| ((*name).into(), manner.clone())).collect(),
            got: Lock::default(),
            max_per_hour,
            concurrency: Lock::default(),
            most_at_once: Lock::default(),
        })
    }

    fn got(&self, receiver: &str) -> Vec<i64> {
        self.got.lock().expect("a lock").iter().filter(|(name, ..)| name == receiver).map(|(_, _, id)| *id).collect()
    }
}

impl DeliverySender for Fakes {
    fn names(&self) -> Vec<ReceiverName> {
        self.manners.keys().cloned().collect()
    }

    fn max_per_hour(&self, _: &ReceiverName) -> u32 {
        self.max_per_hour
    }

    fn concurrency(&self, _: &ReceiverName) -> Option<u32> {
        *self.concurrency.lock().expect("a lock")
    }

    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> BoxFuture<'a, (Outcome, Attempt)> {
        Box::pin(async move {
            {
                let mut at_once = self.most_at_once.lock().expect("a lock");
                at_once.0 += 1;
                at_once.1 = at_once.1.max(at_once.0);
            }
            tokio::task::yield_now().await;
            let outcome = match &self.manners[receiver] {
                Manner::Answers(outcome) => outcome.clone(),
                Manner::Then(script) => script.lock().expect("a lock").pop_front().unwrap_or(Outcome::Accepted),
                Manner::Hangs => std::future::pending().await,
                Manner::Waits(gate) => {
                    gate.notified().await;
                    Outcome::Accepted
                }
                Manner::Panics => panic!("a fault of ours"),
            };
            self.most_at_once.lock().expect("a lock").0 -= 1;
            self.got.lock().expect("a lock").push((receiver.to_string(), delivery.notifications[0].kind, delivery.id.0));
            let attempt = Attempt { at: now, took_ms: 1, outcome: outcome.word(), status: None, answer: "said".into() };
            (outcome, attempt)
        })
    }
}

/// Announces to `fallback`, whatever it is about.
struct Herald;

fn about(subject: String, kind: &str, status: AlertStatus, reason: &str, episode: u32, now: Timestamp) -> (Alert, Notification) {
    let rule = RuleId::from("SourceTrouble");
    let id = alert_id(&rule, &subject, episode);
    let mut notice = unlock();
    notice.id = notification_id(&id, status.as_str());
    notice.alert = id.clone();
    notice.kind = NotificationKind::Source;
    notice.at = now;
    notice.receivers = vec!["fallback".into()];
    notice.body = AlertBody { id: id.clone(), status, reason: reason.into(), ..notice.body };
    notice.body.labels.insert("kind".into(), kind.into());
    let alert = Alert {
        id,
        rule,
        name: "SourceTrouble".into(),
        subject,
        episode,
        state: if status == AlertStatus::Resolved { AlertState::Resolved } else { AlertState::Firing },
        resolution: None,
        token: None,
        resource: None,
        key: None,
        level: None,
        labels: notice.body.labels.clone(),
        annotations: BTreeMap::new(),
        told: notice.receivers.clone(),
        leads: Vec::new(),
        former_labels: Vec::new(),
        members: Vec::new(),
        active_at: now,
        starts_at: Some(now),
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        updated_at: now,
    };
    (alert, notice)
}

impl Announce for Herald {
    fn rule(&self) -> RuleId {
        "SourceTrouble".into()
    }
    fn dead_letter(&self, delivery: &DueDelivery, reason: &str, now: Timestamp) -> Option<(Alert, Notification)> {
        Some(about(format!("dead/{}", delivery.id), "dead_letter", AlertStatus::Firing, reason, 1, now))
    }
    fn receiver_down(&self, down: &DownReceiver<'_>, now: Timestamp) -> Option<(Alert, Notification)> {
        let reason = format!("down: {}, {} waiting", down.answer, down.waiting);
        Some(about(incident_subject(down.receiver), "receiver", AlertStatus::Firing, &reason, down.latest_episode + 1, now))
    }
    fn receiver_back(&self, receiver: &ReceiverName, open: &Alert, now: Timestamp) -> Option<(Alert, Notification)> {
        Some(about(incident_subject(receiver), "receiver", AlertStatus::Resolved, "back", open.episode, now))
    }
}

fn deps(memory: &Arc<Memory>, fakes: &Arc<Fakes>, now: Timestamp) -> OutboxDeps {
    OutboxDeps {
        dispatcher: None,
        store: memory.clone(),
        sender: fakes.clone(),
        announce: Arc::new(Herald),
        metrics: None,
        clock: Clock::manual(now),
        delivery: config::DeliverySettings { jitter: config::Percent(0.0), ..delivery_config() },
    }
}

fn to(receivers: &[&str], notice: Notification) -> Notification {
    Notification { receivers: receivers.iter().map(|name| (*name).into()).collect(), ..notice }
}

/// `count` notifications of as many alerts.
fn many(receiver: &str, count: usize) -> Vec<Notification> {
    (0..count)
        .map(|at| {
            let alert = AlertId::from(format!("al_{at:04}"));
            Notification { id: notification_id(&alert, "firing"), alert, ..to(&[receiver], unlock()) }
        })
        .collect()
}

const START: &str = "2026-03-16T13:00:00Z";

fn after(seconds: i64) -> Timestamp {
    time(START) + TimeDelta::seconds(seconds)
}

#[tokio::test]
async fn what_is_due_is_delivered_once() {
    let memory = Memory::with(&[to(&["ops", "desk"], unlock()), to(&["ops"], moved())]);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Accepted)), ("desk", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let report = outbox.deliver_due(after(0)).await;
    assert_eq!(report.count(DeliveryState::Delivered), 3);
    assert_eq!(outbox.deliver_due(after(60)).await, DeliveryReport::default());
    assert_eq!(memory.states(), [DeliveryState::Delivered; 3]);
}

#[tokio::test]
async fn a_delivery_that_is_not_due_waits_for_its_time() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let script = VecDeque::from([Outcome::LATER, Outcome::Uncertain]);
    let fakes = Fakes::new(&[("ops", Manner::Then(Arc::new(Lock::new(script))))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    assert_eq!(outbox.deliver_due(after(0)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(4)).await.attempts, []);
    assert_eq!(outbox.deliver_due(after(5)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(64)).await.attempts, []);
    assert_eq!(outbox.deliver_due(after(65)).await.count(DeliveryState::Delivered), 1);
}

#[tokio::test]
async fn an_end_never_overtakes_its_beginning() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], resolved()), to(&["ops"], moved())]);
    let fakes = Fakes::new(&[("ops", Manner::Then(Arc::new(Lock::new(VecDeque::from([Outcome::LATER])))))]);
    let mut deps = deps(&memory, &fakes, after(0));
    deps.delivery.concurrency = 1;
    let outbox = Outbox::idle(deps);
    outbox.deliver_due(after(0)).await;
    assert_eq!(fakes.got("ops"), [1, 3], "the beginning failed, its end waits, others do not");
    outbox.deliver_due(after(5)).await;
    assert_eq!(fakes.got("ops"), [1, 3, 1, 2]);
    assert_eq!(memory.states(), [DeliveryState::Delivered; 3]);
}

#[tokio::test]
async fn a_dead_beginning_does_not_hold_back_its_end() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], resolved())]);
    let fakes = Fakes::new(&[("ops", Manner::Then(Arc::new(Lock::new(VecDeque::from([Outcome::Refused])))))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    assert_eq!(memory.states()[..2], [DeliveryState::Dead, DeliveryState::Delivered]);
}

#[tokio::test]
async fn a_dead_letter_is_announced_once_and_never_in_a_loop() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Refused)), ("fallback", Manner::Answers(Outcome::Refused))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    outbox.deliver_due(after(3_600)).await;
    assert_eq!(memory.announced(), ["firing the receiver refused it: said"]);
    assert_eq!(memory.states(), [DeliveryState::Dead; 2]);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_given_up_and_told() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Gone)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    assert_eq!(memory.announced(), ["firing the receiver is gone (410): said", "firing down: said, 0 waiting"]);
    assert_eq!(memory.states(), [DeliveryState::Dead, DeliveryState::Delivered, DeliveryState::Delivered]);
}

#[tokio::test]
async fn a_receiver_that_was_gone_and_works_again_raises_nothing_more() {
    let memory = Memory::with(&[]);
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::Gone, Outcome::Gone])));
    let fakes = Fakes::new(&[("ops", Manner::Then(script)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for (minute, notice) in many("ops", 4).iter().enumerate() {
        memory.0.lock().expect("a lock").queue(notice);
        outbox.deliver_due(after(60 * i64::try_from(minute).expect("few"))).await;
    }
    let gone = "firing the receiver is gone (410): said";
    assert_eq!(memory.announced(), [gone, "firing down: said, 0 waiting", gone, "resolved back"]);
}

#[tokio::test]
async fn the_span_until_a_dead_letter_counts_from_the_retry_by_hand() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    {
        let mut state = memory.0.lock().expect("a lock");
        let delivery = &mut state.rows[0].delivery;
        (delivery.created_at, delivery.due_at, delivery.tries) = (after(-864_000), after(0), 99);
    }
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::LATER)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert_eq!(memory.announced(), ["firing no success in 100 attempts over 0 s: said"]);
}

#[tokio::test]
async fn what_is_critical_is_sent_though_the_hour_is_full() {
    let memory = Memory::with(&many("ops", 5));
    memory.0.lock().expect("a lock").rows[4].delivery.bundle.tone = model::Tone::Critical;
    let fakes = Fakes::capped(&[("ops", Manner::Answers(Outcome::Accepted))], 2);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    // The store gives what is critical first; here it comes last.
    memory.0.lock().expect("a lock").rows[4].next = after(-9_000_000);
    outbox.deliver_due(after(0)).await;
    assert_eq!(fakes.got("ops").len(), 3, "{:?}", fakes.got("ops"));
    memory.0.lock().expect("a lock").queue(&many("ops", 6)[5]);
    {
        let mut state = memory.0.lock().expect("a lock");
        let last = state.rows.last_mut().expect("a row");
        last.delivery.bundle.tone = model::Tone::Critical;
        last.next = after(-9_000_000);
    }
    outbox.deliver_due(after(1)).await;
    assert!(fakes.got("ops").contains(&6), "{:?}", fakes.got("ops"));
}

#[tokio::test]
async fn the_silence_of_a_receiver_is_told_once_and_so_is_its_return() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::LATER; 5])));
    let fakes = Fakes::new(&[("ops", Manner::Then(script)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for second in (0..=899).step_by(5) {
        outbox.deliver_due(after(second)).await;
    }
    assert_eq!(memory.announced(), [] as [&str; 0]);
    // No attempt is due at that time; it is told all the same.
    for second in (900..12_000).step_by(60) {
        outbox.deliver_due(after(second)).await;
    }
    assert_eq!(memory.announced(), ["firing down: said, 1 waiting", "resolved back"]);
    assert!(memory.states().iter().all(|state| *state == DeliveryState::Delivered));
}

#[tokio::test]
async fn a_return_after_a_restart_is_told_too() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    memory.0.lock().expect("a lock").incident =
        Some(about("receiver/ops".into(), "receiver", AlertStatus::Firing, "down", 3, after(-3_600)).0);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Accepted)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert_eq!(memory.announced(), ["resolved back"]);
}

#[tokio::test]
async fn while_a_receiver_is_down_others_tries_do_not_burn() {
    let memory = Memory::with(&many("ops", 50));
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::LATER)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for second in 0..600 {
        outbox.deliver_due(after(second)).await;
    }
    let attempts: usize = fakes.got("ops").len();
    assert!(attempts < 20, "{attempts} attempts in ten minutes");
    let untouched = memory.states().iter().filter(|state| **state == DeliveryState::Due).count();
    assert!(untouched > 30, "{untouched} are still untried");
}

#[tokio::test]
async fn when_a_receiver_is_back_what_it_missed_follows_at_once() {
    let memory = Memory::with(&many("ops", 20));
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::LATER; 12])));
    let fakes = Fakes::new(&[("ops", Manner::Then(script)), ("fallback", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let is_all_there = || memory.states().iter().all(|state| *state == DeliveryState::Delivered);
    let mut back_at = None;
    for second in 0..7_200 {
        let report = outbox.deliver_due(after(second)).await;
        if back_at.is_none() && report.count(DeliveryState::Delivered) > 0 {
            back_at = Some(second);
        }
        if back_at.is_some() && is_all_there() {
            break;
        }
    }
    let attempts: Vec<usize> = memory.0.lock().expect("a lock").rows.iter().map(|row| row.attempts.len()).collect();
    assert!(is_all_there(), "back after {back_at:?} s, attempts {attempts:?}");
    let state = memory.0.lock().expect("a lock");
    let last = state.rows.iter().filter_map(|row| row.attempts.last()).map(|attempt| attempt.at).max();
    assert_eq!(last, back_at.map(after), "all in the same turn");
}

#[tokio::test]
async fn deliveries_to_a_receiver_that_left_the_config_become_visible_dead_letters() {
    let memory = Memory::with(&[to(&["old"], unlock()), to(&["old"], resolved()), to(&["fallback"], moved())]);
    let fakes = Fakes::new(&[("fallback", Manner::Answers(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert_eq!(memory.states()[..3], [DeliveryState::Dead, DeliveryState::Dead, DeliveryState::Delivered]);
    assert_eq!(memory.announced().len(), 2);
    assert!(memory.announced()[0].contains("no receiver is called \"old\""), "{:?}", memory.announced());
}

#[tokio::test]
async fn no_more_than_the_storm_cap_goes_out_in_an_hour() {
    let memory = Memory::with(&many("ops", 10));
    let fakes = Fakes::capped(&[("ops", Manner::Answers(Outcome::Accepted))], 4);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for (second, so_far) in [(0, 5), (3_599, 5), (3_600, 10)] {
        outbox.deliver_due(after(second)).await;
        assert_eq!(fakes.got("ops").len(), so_far, "after {second} s");
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_sent_again() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], moved())]);
    memory.0.lock().expect("a lock").broken = 2;
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let report = outbox.deliver_due(after(0)).await;
    assert!(!report.errors.is_empty());
    outbox.deliver_due(after(1)).await;
    outbox.deliver_due(after(2)).await;
    outbox.deliver_due(after(3)).await;
    assert_eq!(memory.states(), [DeliveryState::Delivered; 2]);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert_eq!(got, [1, 2], "each was sent once");
}

#[tokio::test]
async fn a_fault_of_ours_costs_one_attempt_and_not_the_lane() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Manner::Panics)]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    assert_eq!(outbox.deliver_due(after(0)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(5)).await.count(DeliveryState::Retrying), 1);
}

/// Waits until `is_so`, at most ten seconds.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_hung_receiver_delays_no_other_and_is_cut_off_at_the_end() {
    let mut notifications = many("hung", 10);
    notifications.extend(many("ops", 100));
    let memory = Memory::with(&notifications);
    let fakes = Fakes::new(&[("hung", Manner::Hangs), ("ops", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    until("all messages to the healthy receiver", || fakes.got("ops").len() == 100).await;
    assert_eq!(outbox.stop(Duration::from_millis(50)).await, 1);
    let states = memory.states();
    assert!(states[..10].iter().all(|state| *state == DeliveryState::Due), "what was cut off is still due");
    assert!(states[10..].iter().all(|state| *state == DeliveryState::Delivered), "what was accepted is recorded");
}

#[tokio::test]
async fn while_the_ledger_is_busy_no_more_is_sent_than_a_dying_process_may_repeat() {
    let memory = Memory::with(&many("ops", 100));
    memory.1.send_replace(true);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    until("twice as many as may be under way", || fakes.got("ops").len() == 8).await;
    for _ in 0..1_000 {
        // Were there room for more, they would go out now.
        tokio::task::yield_now().await;
    }
    assert_eq!(fakes.got("ops").len(), 8);
    memory.1.send_replace(false);
    until("all messages", || memory.states() == [DeliveryState::Delivered; 100]).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "each was sent once");
    assert!(memory.0.lock().expect("a lock").writes < 100, "what ended meanwhile is recorded together");
}

#[tokio::test]
async fn a_running_outbox_is_woken_keeps_its_concurrency_and_stops_cleanly() {
    let memory = Memory::with(&[]);
    let fakes = Fakes::new(&[("ops", Manner::Answers(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    {
        let mut state = memory.0.lock().expect("a lock");
        many("ops", 1_000).iter().for_each(|notice| state.queue(notice));
    }
    outbox.wake();
    until("a thousand messages", || fakes.got("ops").len() == 1_000).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    assert_eq!(memory.states(), [DeliveryState::Delivered; 1_000]);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "each was sent once");
    assert!(fakes.most_at_once.lock().expect("a lock").1 <= 4);
    assert!(memory.0.lock().expect("a lock").writes <= 1_000);
}

#[tokio::test]
async fn a_receiver_gets_no_more_at_once_than_it_and_the_config_allow() {
    for (own, most) in [(1, 1), (2, 2), (9, 4)] {
        let gate = Arc::new(Notify::new());
        let memory = Memory::with(&many("ops", 12));
        let fakes = Fakes::new(&[("ops", Manner::Waits(gate.clone()))]);
        *fakes.concurrency.lock().expect("a lock") = Some(own);
        let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
        for sent in 1..=12 {
            until("all that may be under way", || fakes.most_at_once.lock().expect("a lock").0 >= most.min(13 - sent)).await;
            gate.notify_one();
            until("the end of one", || fakes.got("ops").len() == sent).await;
        }
        assert_eq!(fakes.most_at_once.lock().expect("a lock").1, most, "{own} at once");
        assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    }
}

#[tokio::test]
async fn other_terms_leave_alone_what_is_under_way_and_bury_what_waits_for_a_receiver_that_is_gone() {
    let gate = Arc::new(Notify::new());
    let mut notifications = many("old", 6);
    notifications.extend(many("ops", 1));
    let memory = Memory::with(&notifications);
    let before = Fakes::new(&[("old", Manner::Waits(gate.clone())), ("ops", Manner::Waits(gate.clone()))]);
    let outbox = Outbox::start(deps(&memory, &before, after(0)));
    // Four at once to one receiver, and one to the other.
    until("all that may be under way", || before.most_at_once.lock().expect("a lock").0 == 5).await;

    let accepts = || Manner::Answers(Outcome::Accepted);
    let now = Fakes::new(&[("ops", accepts()), ("new", accepts()), ("fallback", accepts())]);
    outbox.replace(now.clone(), delivery_config()).await;
    {
        let mut state = memory.0.lock().expect("a lock");
        many("new", 3).iter().chain(&many("ops", 3)[1..]).for_each(|notice| state.queue(notice));
    }
    outbox.wake();
    until("the receiver that is new, and the new way to the old one", || now.got("new").len() == 3 && now.got("ops").len() == 2)
        .await;
    assert_eq!(memory.states()[..7], [DeliveryState::Due; 7], "what is under way is neither repeated nor given up");
    for _ in 0..5 {
        gate.notify_one();
    }
    until("the end of it", || memory.states()[..7].iter().all(|state| *state != DeliveryState::Due)).await;
    let states = memory.states();
    assert_eq!(states[..6].iter().filter(|state| **state == DeliveryState::Delivered).count(), 4, "{states:?}");
    assert_eq!(states[..6].iter().filter(|state| **state == DeliveryState::Dead).count(), 2, "what waited is given up, visibly");
    assert_eq!(states[6], DeliveryState::Delivered);
    assert_eq!((before.got("old").len(), before.got("ops").len()), (4, 1), "all by the terms that they began with");
    until("the announcements", || now.got("fallback").len() == 2).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    assert_eq!(outbox.progress().len(), 3, "one worker for each receiver that there is");
}
