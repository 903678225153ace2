//! A store in memory and a sender with scripted outcomes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex as Lock;

use tokio::sync::Notify;

use super::super::*;
use crate::config::{Environment, load_text};
use crate::live::LiveConfig;
use model::{
    Alert, AlertId, AlertState, Attempt, AttemptRecord, DueDelivery, Notification, NotificationKind, RuleId, notification_id,
};
use notify::Outcome;
use rules::RuleSet;
use testkit::samples::{delivery_config, due, unlock};

/// A store in memory. While the watch channel is `true`, it stores no records.
#[derive(Default)]
pub(super) struct Memory(pub(super) Lock<State>, pub(super) tokio::sync::watch::Sender<bool>);

#[derive(Default)]
pub(super) struct State {
    pub(super) rows: Vec<Row>,
    pub(super) incident: Option<Alert>,
    pub(super) announced: Vec<Notification>,
    /// The number of next writes that fail.
    pub(super) failing_writes: usize,
    pub(super) writes: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) delivery: DueDelivery,
    pub(super) state: DeliveryState,
    pub(super) next: Timestamp,
    pub(super) attempts: Vec<Attempt>,
}

impl Row {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, DeliveryState::Due | DeliveryState::Retrying)
    }
}

impl State {
    /// Adds a delivery for each receiver of a notification, as the store does.
    pub(super) fn queue(&mut self, notification: &Notification) {
        for receiver in &notification.receivers {
            let id = i64::try_from(self.rows.len()).expect("few rows") + 1;
            let delivery = due(id, receiver.as_str(), vec![notification.clone()]);
            self.rows.push(Row { next: delivery.due_at, delivery, state: DeliveryState::Due, attempts: Vec::new() });
        }
    }

    pub(super) fn notify(&mut self, alert: Alert, notice: &Notification) {
        if alert.subject.starts_with("receiver/") {
            self.incident = Some(alert);
        }
        // As in the database, a notification with a known id is not stored again.
        if self.announced.iter().any(|known| known.id == notice.id) {
            return;
        }
        self.announced.push(notice.clone());
        self.queue(notice);
    }
}

impl Memory {
    pub(super) fn with(notifications: &[Notification]) -> Arc<Self> {
        let memory = Self::default();
        let mut state = memory.0.lock().expect("a lock");
        notifications.iter().for_each(|notice| state.queue(notice));
        drop(state);
        Arc::new(memory)
    }

    pub(super) fn write(&self, records: Vec<AttemptRecord>) -> Result<(), DeliveryStoreError> {
        let mut state = self.0.lock().expect("a lock");
        if state.failing_writes > 0 {
            state.failing_writes -= 1;
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
                state.notify(alert, notice);
            }
        }
        Ok(())
    }

    pub(super) fn states(&self) -> Vec<DeliveryState> {
        self.0.lock().expect("a lock").rows.iter().map(|row| row.state).collect()
    }

    pub(super) fn announced(&self) -> Vec<String> {
        self.0
            .lock()
            .expect("a lock")
            .announced
            .iter()
            .map(|notice| format!("{} {}", notice.body.status, notice.body.reason))
            .collect()
    }
}

impl Memory {
    /// Returns the texts of all alerts about deliveries.
    pub(super) fn texts(&self) -> String {
        let state = self.0.lock().expect("a lock");
        state.announced.iter().flat_map(|notice| notice.body.annotations.values()).map(|text| format!("{text}\n")).collect()
    }
}

pub(super) fn alerts(delivery: &DueDelivery) -> impl Iterator<Item = &AlertId> {
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
            let notified: Vec<&AlertId> = alerts(&row.delivery).collect();
            !state.rows.iter().any(|other| {
                let is_before =
                    other.is_open() && other.delivery.id < row.delivery.id && other.delivery.receiver == row.delivery.receiver;
                is_before && alerts(&other.delivery).any(|alert| notified.contains(&alert))
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
        self.0.lock().expect("a lock").notify(alert, &notice);
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

/// The response of a receiver.
#[derive(Clone)]
pub(super) enum Behavior {
    Always(Outcome),
    /// One outcome per attempt, then accepts.
    Sequence(Arc<Lock<VecDeque<Outcome>>>),
    Hangs,
    /// Accepts after a notification.
    Waits(Arc<Notify>),
    Panics,
}

/// Receivers in memory, with the deliveries they got.
pub(super) struct Fakes {
    pub(super) manners: BTreeMap<ReceiverName, Behavior>,
    pub(super) got: Lock<Vec<(String, NotificationKind, i64)>>,
    pub(super) max_per_hour: u32,
    /// The receivers' own limit of parallel attempts.
    pub(super) concurrency: Lock<Option<u32>>,
    /// The current and the highest number of parallel attempts.
    pub(super) in_flight: Lock<(usize, usize)>,
}

impl Fakes {
    pub(super) fn new(manners: &[(&str, Behavior)]) -> Arc<Self> {
        Self::capped(manners, 10_000)
    }

    pub(super) fn capped(manners: &[(&str, Behavior)], max_per_hour: u32) -> Arc<Self> {
        Arc::new(Self {
            manners: manners.iter().map(|(name, manner)| ((*name).into(), manner.clone())).collect(),
            got: Lock::default(),
            max_per_hour,
            concurrency: Lock::default(),
            in_flight: Lock::default(),
        })
    }

    pub(super) fn got(&self, receiver: &str) -> Vec<i64> {
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
                let mut in_flight = self.in_flight.lock().expect("a lock");
                in_flight.0 += 1;
                in_flight.1 = in_flight.1.max(in_flight.0);
            }
            tokio::task::yield_now().await;
            let outcome = match &self.manners[receiver] {
                Behavior::Always(outcome) => outcome.clone(),
                Behavior::Sequence(script) => script.lock().expect("a lock").pop_front().unwrap_or(Outcome::Accepted),
                Behavior::Hangs => std::future::pending().await,
                Behavior::Waits(gate) => {
                    gate.notified().await;
                    Outcome::Accepted
                }
                Behavior::Panics => panic!("a bug"),
            };
            self.in_flight.lock().expect("a lock").0 -= 1;
            self.got.lock().expect("a lock").push((receiver.to_string(), delivery.notifications[0].kind, delivery.id.0));
            let attempt = Attempt { at: now, took_ms: 1, outcome: outcome.word(), status: None, response: "said".into() };
            (outcome, attempt)
        })
    }
}

/// The active config, whose alerts about deliveries go to the receiver `fallback`.
pub(super) fn live() -> Arc<Live> {
    let text = "[route]\nreceivers = [\"fallback\"]\nfallback = [\"fallback\"]\n\
                [[receiver]]\nname = \"fallback\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n";
    let config = load_text(None, text, &Environment::default()).config.expect("a config");
    Arc::new(Live::from_pointee(LiveConfig::build_now(config, RuleSet::default()).expect("builds")))
}

pub(super) fn deps(memory: &Arc<Memory>, fakes: &Arc<Fakes>, now: Timestamp) -> OutboxDeps {
    OutboxDeps {
        dispatcher: None,
        store: memory.clone(),
        sender: fakes.clone(),
        live: live(),
        metrics: None,
        clock: Clock::manual(now),
        delivery: config::DeliverySettings { jitter: config::Percent(0.0), ..delivery_config() },
    }
}

pub(super) fn to(receivers: &[&str], notice: Notification) -> Notification {
    Notification { receivers: receivers.iter().map(|name| (*name).into()).collect(), ..notice }
}

/// Returns `count` notifications of different alerts.
pub(super) fn many(receiver: &str, count: usize) -> Vec<Notification> {
    (0..count)
        .map(|at| {
            let alert = AlertId::from(format!("al_{at:04}"));
            Notification { id: notification_id(&alert, "firing"), alert, ..to(&[receiver], unlock()) }
        })
        .collect()
}
