//! The deliver loop: take what is due, send it, record what came of it.
//!
//! Before it stands the dispatcher ([`Dispatch`]), which groups what was decided, holds back what is silenced, and makes deliveries of
//! the rest; it runs when it is woken and when a wait is over. Then:
//!
//! The table holds the truth; the loop takes no input and is safe to run twice. Each receiver has a lane of its own, with its own
//! task, breaker and storm cap, so that one that hangs or refuses delays nobody else. A delivery goes through `Due` (read from the
//! ledger), `Prepared` (started, under way), an [`Outcome`], and `Recorded` (attempt, new state and what is to be announced, in one
//! transaction). The network is awaited between transactions.
//!
//! The promises: what ended is recorded at once, together with whatever else has ended by then; twice as many attempts as may be under
//! way are made and not yet recorded at most, and a process that dies repeats no more than these. What cannot be recorded is kept and
//! recorded later, and until then nothing else is sent on its lane. Of one alert, a receiver is told things in the order in which they
//! were decided.

mod carrier;
mod health;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use chrono::TimeDelta;
use tokio::{
    sync::{Mutex, Notify},
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    alert::{Alert, AlertState, Notice, NoticeKind},
    clock::Clock,
    config,
    notify::{Next, Outcome, retry},
    store::{
        Store,
        model::{Attempt, AttemptRecord, Commit, DeliveryState, Dispatched, DueDelivery},
    },
    supply::{DeliveryId, ReceiverName, RuleId, Timestamp},
    systemd::Progress,
};
pub use carrier::Carrier;
use health::Health;

/// Deliveries read at once.
const BATCH: u32 = 256;

/// How long what was read counts as still due: another process may have dropped it.
const MAX_QUEUE_AGE: Duration = Duration::from_secs(2);

/// Longest sleep: another process may have put something in.
const MAX_SLEEP: Duration = Duration::from_secs(2);

/// Shortest sleep without an event, so that a delivery that is due but withheld makes no busy loop.
const MIN_SLEEP: Duration = Duration::from_millis(100);

/// Wait before the ledger is tried again after it failed.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);

/// Waiting messages above which the dispatcher rests between two looks.
const MANY_WAITING: u32 = 1_000;

/// Most batches of deliveries to one unknown receiver that are given up at one start.
const MAX_BURIALS: usize = 1_000;

/// Most rounds of one crank over all lanes: what they announce to each other.
const MAX_ROUNDS: usize = 16;

/// Values of the label `kind` of notices about deliveries themselves: their failure is not announced, or it would never end.
pub const KINDS_ABOUT_DELIVERY: [&str; 2] = ["receiver", "dead_letter"];

/// Something that comes later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why the ledger failed.
pub type LedgerError = Box<dyn std::error::Error + Send + Sync>;

/// What the outbox reads and writes.
pub trait Ledger: Send + Sync + 'static {
    /// Deliveries of `receiver` that are due, by their time. One waits, and is not among them, while an earlier one to the same
    /// receiver tells of the same alert and is neither delivered nor given up.
    fn due(&self, receiver: &ReceiverName, now: Timestamp, limit: u32) -> Pending<'_, Result<Vec<DueDelivery>, LedgerError>>;
    /// When the next delivery of `receiver` falls due.
    fn next_due_at(&self, receiver: &ReceiverName) -> Pending<'_, Result<Option<Timestamp>, LedgerError>>;
    /// Attempts, the states they lead to, and what is announced of them, in one transaction.
    fn record_attempts(&self, records: Vec<AttemptRecord>) -> Pending<'_, Result<(), LedgerError>>;
    /// Everyone to whom something is yet to be delivered, whether the config knows them or not, with how many.
    fn pending_receivers(&self) -> Pending<'_, Result<Vec<(ReceiverName, u32)>, LedgerError>>;
    /// Makes everything that waits to be tried again with `receiver` due at `now`.
    fn hasten(&self, receiver: &ReceiverName, now: Timestamp) -> Pending<'_, Result<(), LedgerError>>;
    /// Writes an announcement that belongs to no attempt.
    fn announce(&self, at: Timestamp, alert: Alert, notice: Notice) -> Pending<'_, Result<(), LedgerError>>;
    /// The open alert with this subject that is about no token, and how many episodes `rule` has had for it.
    fn trouble(&self, rule: RuleId, subject: String) -> Pending<'_, Result<(Option<Alert>, u32), LedgerError>>;
}

impl Ledger for Store {
    fn due(&self, receiver: &ReceiverName, now: Timestamp, limit: u32) -> Pending<'_, Result<Vec<DueDelivery>, LedgerError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::due(self, receiver, now, limit).await?) })
    }

    fn next_due_at(&self, receiver: &ReceiverName) -> Pending<'_, Result<Option<Timestamp>, LedgerError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::next_due_at(self, receiver).await?) })
    }

    fn record_attempts(&self, records: Vec<AttemptRecord>) -> Pending<'_, Result<(), LedgerError>> {
        Box::pin(async move { Ok(Store::record_attempts(self, records).await?) })
    }

    fn pending_receivers(&self) -> Pending<'_, Result<Vec<(ReceiverName, u32)>, LedgerError>> {
        Box::pin(async move { Ok(Store::pending_receivers(self).await?) })
    }

    fn hasten(&self, receiver: &ReceiverName, now: Timestamp) -> Pending<'_, Result<(), LedgerError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::hasten(self, receiver, now).await?) })
    }

    fn announce(&self, at: Timestamp, alert: Alert, notice: Notice) -> Pending<'_, Result<(), LedgerError>> {
        let commit = Commit { at, alerts: vec![alert], notices: vec![notice], ..Commit::default() };
        Box::pin(async move {
            self.commit(commit).await?;
            Ok(())
        })
    }

    fn trouble(&self, rule: RuleId, subject: String) -> Pending<'_, Result<(Option<Alert>, u32), LedgerError>> {
        Box::pin(async move {
            let open = self
                .source_alerts()
                .await?
                .into_iter()
                .find(|alert| alert.subject == subject && alert.state == AlertState::Firing);
            let episodes = self.episodes(vec![(rule, subject)]).await?;
            Ok((open, episodes.first().copied().unwrap_or_default()))
        })
    }
}

/// What makes deliveries of messages that wait: see [`crate::dispatch`].
pub trait Dispatch: Send + Sync + 'static {
    /// Decides about everything that waits at `now`.
    fn dispatch(&self, now: Timestamp) -> Pending<'_, Result<Dispatched, LedgerError>>;
}

/// What carries deliveries to receivers.
pub trait Transport: Send + Sync + 'static {
    /// Everyone that can be reached.
    fn names(&self) -> Vec<ReceiverName>;
    /// Most messages to a receiver in an hour.
    fn max_per_hour(&self, receiver: &ReceiverName) -> u32;
    /// One attempt, which ends in bounded time.
    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> Pending<'a, (Outcome, Attempt)>;
}

/// What is said of deliveries that fail, and to whom. None: to nobody.
pub trait Announce: Send + Sync + 'static {
    /// The rule under which trouble with receivers runs.
    fn rule(&self) -> RuleId;
    /// A delivery was given up for `reason`.
    fn dead_letter(&self, delivery: &DueDelivery, reason: &str, now: Timestamp) -> Option<(Alert, Notice)>;
    /// Nothing reaches a receiver.
    fn receiver_down(&self, down: &Down<'_>, now: Timestamp) -> Option<(Alert, Notice)>;
    /// It takes messages again: the end of `open`.
    fn receiver_back(&self, receiver: &ReceiverName, open: &Alert, now: Timestamp) -> Option<(Alert, Notice)>;
}

/// A receiver that nothing reaches.
#[derive(Clone, Copy, Debug)]
pub struct Down<'a> {
    /// Which.
    pub receiver: &'a ReceiverName,
    /// Since when.
    pub since: Timestamp,
    /// The last thing heard.
    pub answer: &'a str,
    /// Deliveries that wait for it.
    pub waiting: u32,
    /// How many such troubles it has had before.
    pub latest_episode: u32,
}

/// Who counts the attempts.
pub trait Meter: Send + Sync + 'static {
    /// An attempt ended: its outcome's word, how long it took, and how long ago the delivery was put into the outbox.
    fn attempt(&self, receiver: &ReceiverName, outcome: &'static str, took: Duration, since_created: TimeDelta);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn attempt(&self, _: &ReceiverName, _: &'static str, _: Duration, _: TimeDelta) {}
}

/// What the outbox works with.
#[derive(Clone)]
pub struct OutboxDeps {
    /// The table.
    pub ledger: Arc<dyn Ledger>,
    /// Who makes deliveries of what waits; none where everything goes straight into the table.
    pub dispatch: Option<Arc<dyn Dispatch>>,
    /// The wire.
    pub transport: Arc<dyn Transport>,
    /// Who words what is announced.
    pub announce: Arc<dyn Announce>,
    /// Who counts.
    pub meter: Arc<dyn Meter>,
    /// The time.
    pub clock: Clock,
    /// Schedule, limits.
    pub delivery: config::Delivery,
}

impl fmt::Debug for OutboxDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxDeps").field("receivers", &self.transport.names()).finish_non_exhaustive()
    }
}

/// Subject of the alert about a receiver.
#[must_use]
pub fn trouble_subject(receiver: &ReceiverName) -> String {
    format!("receiver/{receiver}")
}

/// What came of deliveries, for the log line of a command and for tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryReport {
    /// Each attempt: which delivery, to whom, the outcome's word, where it stands now.
    pub attempts: Vec<(DeliveryId, ReceiverName, String, DeliveryState)>,
    /// What the ledger failed with.
    pub errors: Vec<String>,
}

impl DeliveryReport {
    /// How many deliveries stand in `state` after it.
    #[must_use]
    pub fn count(&self, state: DeliveryState) -> usize {
        self.attempts.iter().filter(|(_, _, _, now)| *now == state).count()
    }
}

/// The outbox: running by itself, or turned by hand.
#[derive(Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
    /// Whether each lane has a worker.
    drives_itself: bool,
    /// The lanes, while nobody runs them.
    idle: Mutex<Vec<Lane>>,
    workers: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Shared {
    deps: OutboxDeps,
    /// The receivers as a reload last left them.
    terms: RwLock<Arc<Terms>>,
    /// Everyone who has a lane; those that the config no longer has keep theirs until what is under way has ended.
    stations: RwLock<BTreeMap<ReceiverName, Arc<Station>>>,
    dispatch_bell: Notify,
    /// Marked by the dispatcher whenever it has looked.
    dispatch_progress: Progress,
    /// When the dispatcher last began a look that went well.
    dispatched_at: std::sync::Mutex<Option<Timestamp>>,
    stop: CancellationToken,
}

/// How deliveries are carried: swapped whole by a reload. An attempt under way ends by the terms that it began with.
struct Terms {
    transport: Arc<dyn Transport>,
    delivery: config::Delivery,
    names: BTreeSet<ReceiverName>,
}

impl Terms {
    fn of(transport: Arc<dyn Transport>, delivery: config::Delivery) -> Self {
        let names = transport.names().into_iter().collect();
        Self { transport, delivery, names }
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("receivers", &self.names).finish_non_exhaustive()
    }
}

/// How a lane is reached.
#[derive(Debug, Default)]
struct Station {
    bell: Notify,
    /// Marked by the lane whenever it has looked at what is to be done.
    progress: Progress,
}

impl Shared {
    fn terms(&self) -> Arc<Terms> {
        self.terms.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn station(&self, receiver: &ReceiverName) -> Option<Arc<Station>> {
        self.stations.read().unwrap_or_else(PoisonError::into_inner).get(receiver).cloned()
    }

    fn has_lane(&self, receiver: &ReceiverName) -> bool {
        self.stations.read().unwrap_or_else(PoisonError::into_inner).contains_key(receiver)
    }

    fn wake(&self, receivers: &[ReceiverName]) {
        let stations = self.stations.read().unwrap_or_else(PoisonError::into_inner);
        for receiver in receivers {
            if let Some(station) = stations.get(receiver) {
                station.bell.notify_one();
            }
        }
    }

    /// Gives up the lane of a receiver that the config no longer has. False where it has it again by now.
    fn close_lane(&self, receiver: &ReceiverName) -> bool {
        let mut stations = self.stations.write().unwrap_or_else(PoisonError::into_inner);
        let is_closed = !self.terms().names.contains(receiver);
        if is_closed {
            stations.remove(receiver);
        }
        is_closed
    }

    /// Something was announced to them: it waits for the dispatcher, or is due.
    fn wake_for_news(&self, receivers: &[ReceiverName]) {
        if receivers.is_empty() {
            return;
        }
        match &self.deps.dispatch {
            Some(_) => self.dispatch_bell.notify_one(),
            None => self.wake(receivers),
        }
    }
}

impl Outbox {
    /// Starts a worker for each receiver.
    #[must_use]
    pub fn start(deps: OutboxDeps) -> Self {
        let mut outbox = Self::idle(deps);
        outbox.drives_itself = true;
        let workers = outbox.workers.get_mut();
        let shared = outbox.shared.clone();
        workers.spawn(async move {
            match shared.deps.dispatch.clone() {
                Some(dispatcher) => dispatch_until_stopped(&shared, dispatcher.as_ref()).await,
                None => bury_unknown(&shared, shared.deps.clock.now()).await,
            }
        });
        for lane in outbox.idle.get_mut().drain(..) {
            workers.spawn(lane.run());
        }
        outbox
    }

    /// An outbox that only moves when [`deliver_due`](Self::deliver_due) turns it.
    #[must_use]
    pub fn idle(deps: OutboxDeps) -> Self {
        let terms = Terms::of(deps.transport.clone(), deps.delivery.clone());
        let names = terms.names.clone();
        let stations = names.iter().map(|name| (name.clone(), Arc::default())).collect();
        let shared = Arc::new(Shared {
            deps,
            terms: RwLock::new(Arc::new(terms)),
            stations: RwLock::new(stations),
            dispatch_bell: Notify::new(),
            dispatch_progress: Progress::default(),
            dispatched_at: std::sync::Mutex::default(),
            stop: CancellationToken::new(),
        });
        let idle = names.into_iter().map(|name| Lane::new(name, shared.clone())).collect();
        Self { shared, drives_itself: false, idle: Mutex::new(idle), workers: Mutex::new(JoinSet::new()) }
    }

    /// Carries everything that begins from now on by other terms. Lanes go on with what they have under way; a receiver that is new
    /// gets one, and that of a receiver which is gone ends with its last attempt, after which what waits for it becomes dead letters.
    pub async fn replace(&self, transport: Arc<dyn Transport>, delivery: config::Delivery) {
        let terms = Terms::of(transport, delivery);
        let (new, gone): (Vec<ReceiverName>, Vec<ReceiverName>) = {
            let mut stations = self.shared.stations.write().unwrap_or_else(PoisonError::into_inner);
            let new: Vec<_> = terms.names.iter().filter(|name| !stations.contains_key(*name)).cloned().collect();
            let gone = stations.keys().filter(|name| !terms.names.contains(*name)).cloned().collect();
            stations.extend(new.iter().map(|name| (name.clone(), Arc::default())));
            *self.shared.terms.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(terms);
            (new, gone)
        };
        let lanes = new.into_iter().map(|name| Lane::new(name, self.shared.clone()));
        if self.drives_itself {
            let mut workers = self.workers.lock().await;
            // Those that ended need not be remembered until the daemon does.
            while workers.try_join_next().is_some() {}
            for lane in lanes {
                workers.spawn(lane.run());
            }
        } else {
            let mut idle = self.idle.lock().await;
            idle.extend(lanes);
            // Nothing is under way between two turns.
            idle.retain(|lane| !gone.contains(&lane.receiver) || !self.shared.close_lane(&lane.receiver));
            idle.sort_by(|a, b| a.receiver.cmp(&b.receiver));
        }
        self.shared.wake(&gone);
        self.wake();
    }

    /// Says that something may be due. It saves time, no more: the table holds the truth.
    pub fn wake(&self) {
        if self.shared.deps.dispatch.is_some() {
            // It wakes those for whom there is something.
            self.shared.dispatch_bell.notify_one();
            return;
        }
        for station in self.shared.stations.read().unwrap_or_else(PoisonError::into_inner).values() {
            station.bell.notify_one();
        }
    }

    /// When the dispatcher last began a look at what waits that went well: what was decided before has its deliveries, or is to wait.
    #[must_use]
    pub fn dispatched_at(&self) -> Option<Timestamp> {
        *self.shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker for each lane: it rises at least every few seconds for as long as the lane lives, whatever its receiver does.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        let dispatcher = self.shared.deps.dispatch.is_some().then(|| self.shared.dispatch_progress.clone());
        let stations = self.shared.stations.read().unwrap_or_else(PoisonError::into_inner);
        stations.values().map(|station| station.progress.clone()).chain(dispatcher).collect()
    }

    /// Attempts everything that is due at `now` once, and what is announced on the way. For an outbox that was not started; one that
    /// was delivers by itself, and the report is empty.
    pub async fn deliver_due(&self, now: Timestamp) -> DeliveryReport {
        let mut lanes = self.idle.lock().await;
        let mut report = DeliveryReport::default();
        if lanes.is_empty() {
            return report;
        }
        let mut tried = HashSet::new();
        for _ in 0..MAX_ROUNDS {
            let before = report.attempts.len();
            if let Some(dispatcher) = &self.shared.deps.dispatch
                && let Err(error) = dispatcher.dispatch(now).await
            {
                report.errors.push(error.to_string());
            }
            bury_unknown(&self.shared, now).await;
            // Receivers wait for each other here no more than in the daemon.
            let mut turns = JoinSet::new();
            for mut lane in lanes.drain(..) {
                let mut tried = tried.clone();
                turns.spawn(async move {
                    let report = lane.turn(now, &mut tried).await;
                    (lane, report)
                });
            }
            while let Some(turn) = turns.join_next().await {
                match turn {
                    Ok((lane, turned)) => {
                        tried.extend(turned.attempts.iter().map(|(id, ..)| *id));
                        report.attempts.extend(turned.attempts);
                        report.errors.extend(turned.errors);
                        lanes.push(lane);
                    }
                    Err(error) => report.errors.push(format!("a lane of the outbox ended abnormally: {error}")),
                }
            }
            lanes.sort_by(|a, b| a.receiver.cmp(&b.receiver));
            if report.attempts.len() == before {
                break;
            }
        }
        report.attempts.sort_by_key(|(id, ..)| *id);
        report
    }

    /// Stops taking deliveries, waits for those under way until `patience` is over, drops the rest: they are sent again after a
    /// restart, under the same id. Says how many lanes had to be cut off.
    pub async fn stop(&self, patience: Duration) -> usize {
        self.shared.stop.cancel();
        let mut workers = self.workers.lock().await;
        let ended = tokio::time::timeout(patience, async { while workers.join_next().await.is_some() {} }).await;
        let cut = if ended.is_ok() { 0 } else { workers.len() };
        workers.shutdown().await;
        cut
    }
}

/// The dispatcher's worker: whenever it is woken, when a wait is over, and now and then, since another process may have made a silence.
async fn dispatch_until_stopped(shared: &Shared, dispatcher: &dyn Dispatch) {
    let mut is_first = true;
    let mut is_failing = false;
    while !shared.stop.is_cancelled() {
        let now = shared.deps.clock.now();
        let began = Instant::now();
        let looked = dispatcher.dispatch(now).await;
        // A table that cannot be read is told elsewhere; it is no reason to be killed.
        shared.dispatch_progress.mark();
        let (nap, pause) = match looked {
            Ok(done) => {
                *shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                shared.wake(&done.receivers);
                if is_first || done.receivers.iter().any(|receiver| !shared.has_lane(receiver)) {
                    bury_unknown(shared, now).await;
                }
                is_first = false;
                if std::mem::take(&mut is_failing) {
                    tracing::info!("messages that wait are dispatched again");
                }
                let wait = done.next_at.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
                // Many wait, as in a storm: each look costs, and others need the database too.
                let pause = if done.waiting > MANY_WAITING { (began.elapsed() * 2).min(MAX_SLEEP) } else { Duration::ZERO };
                (wait.clamp(MIN_SLEEP, MAX_SLEEP), pause)
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::error!(%error, "messages that wait cannot be dispatched; it is tried again every second");
                }
                (LEDGER_PAUSE, Duration::ZERO)
            }
        };
        let woken = async {
            tokio::time::sleep(pause).await;
            tokio::select! {
                () = shared.dispatch_bell.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        };
        tokio::select! {
            () = woken => {}
            () = shared.stop.cancelled() => {}
        }
    }
}

/// Gives up what is addressed to receivers that the config no longer has: visibly, rather than leaving it due for ever.
async fn bury_unknown(shared: &Shared, now: Timestamp) {
    let deps = &shared.deps;
    let pending = match deps.ledger.pending_receivers().await {
        Ok(pending) => pending,
        Err(error) => {
            tracing::error!(error = %error, "the outbox cannot look for deliveries to receivers that are gone from the config");
            return;
        }
    };
    for receiver in pending.into_iter().map(|(receiver, _)| receiver).filter(|receiver| !shared.has_lane(receiver)) {
        let reason = format!("no receiver is called \"{receiver}\" in the config any more");
        // Not only those whose retry falls due now: nobody will look at the others later. What waits behind an earlier delivery of
        // the same alert shows in the next batch.
        let mut buried = 0_usize;
        for _ in 0..MAX_BURIALS {
            let due = match deps.ledger.due(&receiver, now + TimeDelta::days(36_500), BATCH).await {
                Ok(due) if due.is_empty() => break,
                Ok(due) => due,
                Err(error) => {
                    tracing::error!(%receiver, error = %error, "deliveries to a receiver that is gone from the config cannot be read");
                    break;
                }
            };
            buried += due.len();
            let records: Vec<AttemptRecord> = due
                .iter()
                .map(|delivery| {
                    let attempt =
                        Attempt { at: now, took_ms: 0, outcome: "refused".into(), status: None, answer: reason.clone() };
                    let mut record = AttemptRecord {
                        delivery: delivery.id,
                        attempt,
                        state: DeliveryState::Dead,
                        next_attempt_at: None,
                        alerts: Vec::new(),
                        notices: Vec::new(),
                    };
                    tell(
                        &mut record,
                        is_worth_telling(delivery).then(|| deps.announce.dead_letter(delivery, &reason, now)).flatten(),
                    );
                    record
                })
                .collect();
            let told: Vec<ReceiverName> = told(&records);
            if let Err(error) = deps.ledger.record_attempts(records).await {
                tracing::error!(%receiver, error = %error, "deliveries to a receiver that is gone from the config could not be given up");
                break;
            }
            shared.wake_for_news(&told);
        }
        tracing::warn!(%receiver, count = buried, "deliveries to a receiver that is gone from the config are dead letters now");
    }
}

/// Adds an announcement to a record.
fn tell(record: &mut AttemptRecord, announcement: Option<(Alert, Notice)>) {
    if let Some((alert, notice)) = announcement {
        record.alerts.push(alert);
        record.notices.push(notice);
    }
}

/// Everyone that hears of something in these records.
fn told(records: &[AttemptRecord]) -> Vec<ReceiverName> {
    records.iter().flat_map(|record| &record.notices).flat_map(|notice| notice.receivers.iter().cloned()).collect()
}

/// Whether the end of a delivery is to be announced: not where it was a test by hand, or itself about deliveries.
fn is_worth_telling(delivery: &DueDelivery) -> bool {
    let is_own = |notice: &Notice| {
        let kind = notice.body.labels.get("kind").map(String::as_str).unwrap_or_default();
        notice.kind == NoticeKind::Test || (notice.kind == NoticeKind::Source && KINDS_ABOUT_DELIVERY.contains(&kind))
    };
    !delivery.notices.iter().all(is_own)
}

/// A delivery that is under way.
#[derive(Debug)]
struct Prepared {
    delivery: Arc<DueDelivery>,
    began: Instant,
}

/// Attempts that are being written, and the task that writes them.
#[derive(Debug)]
struct Recording {
    records: Vec<AttemptRecord>,
    task: JoinHandle<Result<(), LedgerError>>,
}

/// How an attempt ended; none where it ended abnormally.
type Ended = (Id, Option<(Outcome, Attempt)>);

/// One receiver's deliveries.
#[derive(Debug)]
struct Lane {
    receiver: ReceiverName,
    shared: Arc<Shared>,
    health: Health,
    /// The last thing heard.
    answer: String,
    /// The open alert about the receiver, and its episodes; None until they were read.
    trouble: Option<(Option<Alert>, u32)>,
    /// Read, not yet started.
    queue: VecDeque<DueDelivery>,
    /// When the queue was read; None where it must be read again.
    read_at: Option<Instant>,
    tasks: JoinSet<(Outcome, Attempt)>,
    prepared: HashMap<Id, Prepared>,
    /// Ended, but not in the ledger yet.
    unrecorded: Vec<AttemptRecord>,
    /// On its way into the ledger: one transaction at a time.
    recording: Option<Recording>,
    /// When the ledger last failed to take records, until it takes them again.
    refused_at: Option<Instant>,
    /// It said that it is gone, which is yet to be told.
    is_gone: bool,
    /// It was down and is back: what waits for its next try need not wait any longer.
    is_back: bool,
    is_ledger_failing: bool,
}

impl Lane {
    fn new(receiver: ReceiverName, shared: Arc<Shared>) -> Self {
        Self {
            receiver,
            shared,
            health: Health::default(),
            answer: String::new(),
            trouble: None,
            queue: VecDeque::new(),
            read_at: None,
            tasks: JoinSet::new(),
            prepared: HashMap::new(),
            unrecorded: Vec::new(),
            recording: None,
            refused_at: None,
            is_gone: false,
            is_back: false,
            is_ledger_failing: false,
        }
    }

    /// The worker: until it is told to stop or its receiver is gone from the config, then until what is under way has ended.
    async fn run(mut self) {
        let shared = self.shared.clone();
        let Some(station) = shared.station(&self.receiver) else {
            return;
        };
        let clock = shared.deps.clock.clone();
        loop {
            let now = clock.now();
            let is_leaving = shared.stop.is_cancelled();
            let is_stopping = is_leaving || !shared.terms().names.contains(&self.receiver);
            let mut nap = MAX_SLEEP;
            match self.advance(now, is_stopping).await {
                Ok(()) => nap = if is_stopping { MAX_SLEEP } else { self.nap(now).await },
                Err(error) => {
                    self.note_ledger(Err(&error));
                    nap = nap.min(LEDGER_PAUSE);
                }
            }
            station.progress.mark();
            if is_leaving && self.tasks.is_empty() && self.recording.is_none() {
                return;
            }
            // What came of the last attempt must be known before the rest is given up.
            let is_done = self.tasks.is_empty() && self.awaiting_record().next().is_none();
            if is_stopping && is_done && shared.close_lane(&self.receiver) {
                bury_unknown(&shared, now).await;
                return;
            }
            tokio::select! {
                Some(ended) = next_ended(&mut self.tasks), if !self.tasks.is_empty() => self.settle(ended, &clock),
                Some(done) = recorded(&mut self.recording), if self.recording.is_some() => self.note_recorded(done),
                () = station.bell.notified() => self.read_at = None,
                () = tokio::time::sleep(nap) => self.read_at = None,
                () = shared.stop.cancelled(), if !is_leaving => {}
            }
        }
    }

    /// Attempts everything that is due at `now` and not in `tried`.
    async fn turn(&mut self, now: Timestamp, tried: &mut HashSet<DeliveryId>) -> DeliveryReport {
        let clock = Clock::manual(now);
        let mut report = DeliveryReport::default();
        loop {
            self.read_at = None;
            self.refused_at = None;
            self.begin_recording();
            if let Some(done) = recorded(&mut self.recording).await {
                report.errors.extend(done.as_ref().err().map(ToString::to_string));
                self.note_recorded(done);
            }
            if let Err(error) = self.advance_but(now, false, tried).await {
                report.errors.push(error.to_string());
                // What is under way still ends, and is recorded by the next turn.
            }
            if self.tasks.is_empty() {
                return report;
            }
            let Some(ended) = next_ended(&mut self.tasks).await else {
                return report;
            };
            let before = self.unrecorded.len();
            self.settle(ended, &clock);
            for record in self.unrecorded.iter().skip(before) {
                tried.insert(record.delivery);
                report.attempts.push((record.delivery, self.receiver.clone(), record.attempt.outcome.clone(), record.state));
            }
        }
    }

    async fn advance(&mut self, now: Timestamp, is_stopping: bool) -> Result<(), LedgerError> {
        self.advance_but(now, is_stopping, &HashSet::new()).await
    }

    /// Begins to record what has ended, reads what is due, starts what there is room for.
    async fn advance_but(&mut self, now: Timestamp, is_stopping: bool, tried: &HashSet<DeliveryId>) -> Result<(), LedgerError> {
        let ledger = self.shared.deps.ledger.clone();
        if self.trouble.is_none() {
            let rule = self.shared.deps.announce.rule();
            self.trouble = Some(ledger.trouble(rule, trouble_subject(&self.receiver)).await?);
        }
        if self.is_back {
            ledger.hasten(&self.receiver, now).await?;
            self.is_back = false;
            self.read_at = None;
        }
        self.begin_recording();
        // Where it cannot be known what was sent, nothing else is.
        if self.refused_at.is_some() {
            return Ok(());
        }
        if !is_stopping {
            self.tell_silence(now).await?;
            self.read(now, tried).await?;
            self.start(now);
        }
        self.note_ledger(Ok(()));
        Ok(())
    }

    /// Hands what has ended to the ledger, unless it is busy with what ended before, or has just refused it.
    fn begin_recording(&mut self) {
        let is_refused = self.refused_at.is_some_and(|at| at.elapsed() < LEDGER_PAUSE);
        if self.recording.is_some() || self.unrecorded.is_empty() || is_refused {
            return;
        }
        let records = std::mem::take(&mut self.unrecorded);
        let (ledger, written) = (self.shared.deps.ledger.clone(), records.clone());
        let task = tokio::spawn(async move { ledger.record_attempts(written).await });
        self.recording = Some(Recording { records, task });
    }

    /// Takes note of whether the ledger has what it was given; what it has not is given to it again.
    fn note_recorded(&mut self, done: Result<(), LedgerError>) {
        let Some(Recording { records, .. }) = self.recording.take() else { return };
        match done {
            Ok(()) => {
                self.refused_at = None;
                self.shared.wake_for_news(&told(&records));
                if self.queue.is_empty() {
                    // One that waited for its turn may be due now.
                    self.read_at = None;
                }
            }
            Err(error) => {
                let later = std::mem::replace(&mut self.unrecorded, records);
                self.unrecorded.extend(later);
                self.refused_at = Some(Instant::now());
                self.note_ledger(Err(&error));
            }
        }
    }

    /// Attempts that are not in the ledger, though they were made.
    fn awaiting_record(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.unrecorded.iter().chain(self.recording.iter().flat_map(|recording| &recording.records))
    }

    /// Announces that nothing has reached the receiver for long, or that it is gone, unless that was told.
    async fn tell_silence(&mut self, now: Timestamp) -> Result<(), LedgerError> {
        let Some((None, latest_episode)) = self.trouble else {
            return Ok(());
        };
        if !self.is_gone && !self.health.is_news(now) {
            return Ok(());
        }
        let ledger = self.shared.deps.ledger.clone();
        let pending = ledger.pending_receivers().await?;
        let down = Down {
            receiver: &self.receiver,
            since: self.health.failing_since().unwrap_or(now),
            answer: &self.answer,
            waiting: pending.into_iter().find(|(name, _)| *name == self.receiver).map_or(0, |(_, count)| count),
            latest_episode,
        };
        let announcement = self.shared.deps.announce.receiver_down(&down, now);
        self.is_gone = false;
        if let Some((alert, notice)) = announcement {
            let told = notice.receivers.clone();
            ledger.announce(now, alert.clone(), notice).await?;
            self.open(alert);
            self.shared.wake_for_news(&told);
        }
        Ok(())
    }

    fn open(&mut self, alert: Alert) {
        tracing::warn!(receiver = %self.receiver, answer = %self.answer, "the receiver does not take messages");
        if let Some((open, episodes)) = &mut self.trouble {
            *episodes = alert.episode.max(*episodes);
            *open = Some(alert);
        }
    }

    /// Reads what is due, unless what was read is fresh enough or there is no room for it.
    async fn read(&mut self, now: Timestamp, tried: &HashSet<DeliveryId>) -> Result<(), LedgerError> {
        let is_fresh = self.read_at.is_some_and(|at| at.elapsed() < MAX_QUEUE_AGE);
        if is_fresh || self.room(now) == 0 {
            return Ok(());
        }
        // Those under way, those that are yet to be recorded and those tried in this turn are still due as far as the ledger knows.
        let under_way = self.prepared.values().map(|prepared| prepared.delivery.id);
        let known: HashSet<DeliveryId> = under_way.chain(self.awaiting_record().map(|record| record.delivery)).collect();
        let more = u32::try_from(known.len() + tried.len()).unwrap_or(u32::MAX);
        let due = self.shared.deps.ledger.due(&self.receiver, now, BATCH.saturating_add(more)).await?;
        self.read_at = Some(Instant::now());
        self.queue = due.into_iter().filter(|delivery| !known.contains(&delivery.id) && !tried.contains(&delivery.id)).collect();
        Ok(())
    }

    fn room(&mut self, now: Timestamp) -> usize {
        let terms = self.shared.terms();
        let concurrency = terms.delivery.concurrency;
        let max_per_hour = terms.transport.max_per_hour(&self.receiver);
        let most_unrecorded = (concurrency.max(1) as usize).saturating_mul(2);
        let unrecorded = self.tasks.len() + self.awaiting_record().count();
        let room = self.health.room(now, self.tasks.len(), concurrency, max_per_hour);
        room.min(most_unrecorded.saturating_sub(unrecorded))
    }

    /// Starts what there is room for. Of two deliveries that tell of the same alert the ledger gives the later one only once the
    /// earlier has come to its end, so none of them can overtake another here.
    fn start(&mut self, now: Timestamp) {
        if self.queue.is_empty() {
            return;
        }
        let room = self.room(now).min(self.queue.len());
        let starting: Vec<DueDelivery> = self.queue.drain(..room).collect();
        for delivery in starting {
            self.prepare(Arc::new(delivery), now);
        }
    }

    fn prepare(&mut self, delivery: Arc<DueDelivery>, now: Timestamp) {
        let transport = self.shared.terms().transport.clone();
        let receiver = self.receiver.clone();
        let sent = delivery.clone();
        let handle = self.tasks.spawn(async move { transport.send(&receiver, &sent, now).await });
        self.prepared.insert(handle.id(), Prepared { delivery, began: Instant::now() });
    }

    /// Takes in an attempt that has ended, and all others that have by now.
    fn settle(&mut self, ended: Ended, clock: &Clock) {
        let mut ended = Some(ended);
        while let Some((id, done)) = ended {
            if let Some(prepared) = self.prepared.remove(&id) {
                let now = clock.now();
                let (outcome, attempt) = done.unwrap_or_else(|| (Outcome::LATER, abnormal(now)));
                let record = self.record(&prepared, &outcome, attempt, now);
                self.unrecorded.push(record);
            }
            ended = self.tasks.try_join_next_with_id().map(sort_out);
        }
        if self.queue.is_empty() {
            // One that waited for its turn may be due now.
            self.read_at = None;
        }
    }

    /// What an outcome makes of a delivery.
    fn record(&mut self, prepared: &Prepared, outcome: &Outcome, attempt: Attempt, now: Timestamp) -> AttemptRecord {
        let Prepared { delivery, began } = prepared;
        let (deps, terms) = (self.shared.deps.clone(), self.shared.terms());
        deps.meter.attempt(&self.receiver, outcome.as_str(), began.elapsed(), now - delivery.created_at);
        let (was_failing, was_down) = (self.health.failing_since().is_some(), self.health.is_down());
        self.health.note(outcome, now, terms.delivery.max_retry_after.delta());
        self.answer.clone_from(&attempt.answer);
        let tries = delivery.tries.saturating_add(1);
        let next = retry::decide(outcome, tries, delivery.created_at, now, fastrand::f64(), &terms.delivery);
        let (state, next_attempt_at) = match &next {
            Next::Delivered => (DeliveryState::Delivered, None),
            Next::RetryAt(at) => (DeliveryState::Retrying, Some(*at)),
            Next::Dead { .. } => (DeliveryState::Dead, None),
        };
        let mut record =
            AttemptRecord { delivery: delivery.id, attempt, state, next_attempt_at, alerts: Vec::new(), notices: Vec::new() };
        let answer = &record.attempt.answer;
        match &next {
            Next::Dead { reason } => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %reason, %answer, "a delivery is given up");
                let reason = format!("{reason}: {answer}");
                let announcement =
                    is_worth_telling(delivery).then(|| deps.announce.dead_letter(delivery, &reason, now)).flatten();
                tell(&mut record, announcement);
            }
            Next::RetryAt(at) if !was_failing => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %answer, next = %at, "a delivery failed, and is tried again");
            }
            Next::RetryAt(_) | Next::Delivered => {
                tracing::debug!(receiver = %self.receiver, delivery = %delivery.id, outcome = outcome.as_str(), %answer, "attempt");
            }
        }
        if *outcome == Outcome::Accepted {
            if was_failing {
                tracing::info!(receiver = %self.receiver, "the receiver takes messages again");
            }
            if let Some((open, _)) = &mut self.trouble
                && let Some(alert) = open.take()
            {
                tell(&mut record, deps.announce.receiver_back(&self.receiver, &alert, now));
            }
        }
        self.is_gone |= *outcome == Outcome::Gone;
        self.is_back |= *outcome == Outcome::Accepted && was_down;
        record
    }

    /// How long nothing will be due.
    async fn nap(&mut self, now: Timestamp) -> Duration {
        if self.refused_at.is_some() {
            return LEDGER_PAUSE;
        }
        if !self.tasks.is_empty() || self.recording.is_some() {
            // The end of an attempt is an event; and those under way are still due as far as the ledger knows.
            return MAX_SLEEP;
        }
        let max_per_hour = self.shared.terms().transport.max_per_hour(&self.receiver);
        let opens_at = self.health.opens_at(now, max_per_hour);
        let next = match opens_at {
            Some(at) => Some(at),
            // Not knowing costs a look in two seconds.
            None => self.shared.deps.ledger.next_due_at(&self.receiver).await.ok().flatten(),
        };
        let wait = next.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
        wait.clamp(MIN_SLEEP, MAX_SLEEP)
    }

    /// The first failure of the ledger and its recovery are news; what lies between is not.
    fn note_ledger(&mut self, result: Result<(), &LedgerError>) {
        match result {
            Err(error) if !self.is_ledger_failing => {
                tracing::error!(receiver = %self.receiver, %error, "the outbox cannot read or write its table, and tries again every second");
            }
            Ok(()) if self.is_ledger_failing => {
                tracing::info!(receiver = %self.receiver, "the outbox reads and writes its table again")
            }
            _ => {}
        }
        self.is_ledger_failing = result.is_err();
    }
}

async fn next_ended(tasks: &mut JoinSet<(Outcome, Attempt)>) -> Option<Ended> {
    tasks.join_next_with_id().await.map(sort_out)
}

/// Waits until the ledger has taken what it was given, or refused it; none where it was given nothing.
async fn recorded(recording: &mut Option<Recording>) -> Option<Result<(), LedgerError>> {
    let done = (&mut recording.as_mut()?.task).await;
    Some(done.unwrap_or_else(|error| Err(error.into())))
}

fn sort_out(joined: Result<(Id, (Outcome, Attempt)), JoinError>) -> Ended {
    match joined {
        Ok((id, done)) => (id, Some(done)),
        Err(error) => (error.id(), None),
    }
}

/// The record of an attempt that ended in a fault of this program.
fn abnormal(now: Timestamp) -> Attempt {
    let answer = "the attempt ended abnormally: a fault of this program, please report it".to_owned();
    Attempt { at: now, took_ms: 0, outcome: Outcome::LATER.as_str().to_owned(), status: None, answer }
}

#[cfg(test)]
mod tests;
