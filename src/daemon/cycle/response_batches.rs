//! Runs planned polls in parallel, and gathers the responses into batches.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
    vec,
};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::PollThread;
use crate::ledger::CreditClaim;
use engine::plan::PlannedPoll;
use model::{
    poll::{FetchedResponse, PollOutcome},
    supply::FeedId,
};
use source::Client;

/// The maximum number of fresh responses in a batch. The known facts of all their tokens are in memory at once.
const MAX_FRESH: usize = 32;
/// The maximum number of responses of any kind in a batch.
const MAX_BATCH: usize = 256;
/// The maximum total size of fresh responses that are not committed yet. The parsed data takes about twice the size of the text. A
/// batch contains at most half of it, so that further responses can arrive meanwhile.
const MAX_UNCOMMITTED_KIB: u32 = 1024;
/// The time that a response waits for others, because a commit of one costs about as much as a commit of many.
const GATHER_TIMEOUT: Duration = Duration::from_millis(20);
/// The time that requests in flight may take after a stop request.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// A response and its planned poll.
type Polled = (PlannedPoll, FetchedResponse);

/// A stream of responses. Those in the channels and in the last batch have at most [`MAX_UNCOMMITTED_KIB`].
pub(super) struct Responses {
    batches: mpsc::Receiver<Vec<Polled>>,
    /// The rest of a batch whose responses are taken one by one.
    rest: vec::IntoIter<Polled>,
    /// The remaining KiB. `None` if the responses were given instead of polled.
    capacity: Option<Arc<Semaphore>>,
    /// The KiB of the last batch.
    taken_kib: u32,
}

/// Returns the size that counts towards [`MAX_UNCOMMITTED_KIB`]: zero unless the response is fresh, and at most a full batch.
fn size_kib(response: &Polled) -> u32 {
    let kib = u32::try_from(response.1.bytes / 1024).unwrap_or(u32::MAX);
    if is_fresh(response) { kib.min(MAX_UNCOMMITTED_KIB / 2) } else { 0 }
}

/// The maximum number of responses with changed cliffs that are kept until their linear unlocks are fetched.
const MAX_INCOMPLETE: usize = 64;
/// The maximum decoded size, in bytes, of these responses.
const MAX_INCOMPLETE_BYTES: u64 = 1024 * 1024;

/// Schedules to poll again with their linear unlocks, and the responses about their cliffs, as far as they are kept.
#[derive(Default)]
pub(super) struct IncompleteSchedules {
    pub(super) polls: Vec<PlannedPoll>,
    pub(super) cliffs: IncompleteResponses,
}

/// Responses about cliffs by feed. Their cost is counted already.
#[derive(Default)]
pub(super) struct IncompleteResponses {
    of: HashMap<FeedId, FetchedResponse>,
    bytes: u64,
}

impl IncompleteSchedules {
    pub(super) fn add(&mut self, poll: &PlannedPoll, fetched: &FetchedResponse) {
        let is_kept = self.cliffs.keep(fetched);
        self.polls.push(poll.with_segments(is_kept));
    }
}

impl IncompleteResponses {
    /// Keeps a response. Returns `false` if there are too many.
    fn keep(&mut self, fetched: &FetchedResponse) -> bool {
        let bytes = self.bytes.saturating_add(fetched.bytes);
        if self.of.len() >= MAX_INCOMPLETE || bytes > MAX_INCOMPLETE_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.of.insert(fetched.request.feed(), fetched.clone().without_cost());
        true
    }
}

/// Runs polls in order, `concurrency` at a time, until all are done, `stopping` is cancelled, or the responses are dropped. Completes
/// `incomplete` responses instead of fetching them again.
pub(super) fn poll(
    (api, thread): (&Client, &PollThread),
    (polls, incomplete): (Vec<PlannedPoll>, IncompleteResponses),
    claim: CreditClaim,
    concurrency: usize,
    stopping: CancellationToken,
) -> Responses {
    let (sender, responses) = mpsc::channel(MAX_FRESH * 2);
    let (batch_sender, batches) = mpsc::channel(1);
    let capacity = Arc::new(Semaphore::new(MAX_UNCOMMITTED_KIB as usize));
    let worker = PollWorker {
        stopping: stopping.clone(),
        capacity: capacity.clone(),
        api: api.clone(),
        polls: Arc::new(Mutex::new(polls.into_iter())),
        incomplete: Arc::new(Mutex::new(incomplete.of)),
        claim: Arc::new(claim),
        sender,
    };
    thread.spawn(async move {
        let mut workers = JoinSet::new();
        for _ in 0..concurrency {
            workers.spawn(worker.clone().run());
        }
        let all_polls = async {
            while let Some(ended) = workers.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "a poll panicked");
                    workers.spawn(worker.clone().run());
                }
            }
        };
        // Polls that are cut off are repeated after the next start.
        tokio::select! {
            () = all_polls => {}
            () = async { stopping.cancelled().await; sleep(STOP_TIMEOUT).await } => {}
        }
    });
    thread.spawn(gather_all(responses, batch_sender));
    Responses::new(batches, Some(capacity))
}

/// Returns given responses as a stream.
pub(super) fn given(responses: Vec<Polled>) -> Responses {
    let (sender, batches) = mpsc::channel(responses.len().max(1));
    let mut batch = GrowingBatch::default();
    let mut responses = responses.into_iter().peekable();
    while let Some(response) = responses.next() {
        batch.add(response);
        if batch.is_full() || responses.peek().is_none() {
            // The channel has a slot for each.
            let _ = sender.try_send(std::mem::take(&mut batch).responses);
        }
    }
    Responses::new(batches, None)
}

/// Runs polls of a shared plan one after the other.
#[derive(Clone)]
struct PollWorker {
    api: Client,
    polls: Arc<Mutex<vec::IntoIter<PlannedPoll>>>,
    incomplete: Arc<Mutex<HashMap<FeedId, FetchedResponse>>>,
    claim: Arc<CreditClaim>,
    sender: mpsc::Sender<Polled>,
    capacity: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl PollWorker {
    async fn run(self) {
        loop {
            let next = self.polls.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(poll) = next.filter(|_| !self.stopping.is_cancelled()) else { break };
            // The feed may have more pages than in its last poll.
            let max_credits = u32::try_from(poll.cost.saturating_mul(2).saturating_add(8)).ok();
            let cliffs = self.incomplete.lock().unwrap_or_else(PoisonError::into_inner).remove(&poll.request.feed());
            let fetch = async {
                match (poll.linear_request(), cliffs) {
                    (Some(linear), Some(cliffs)) => self.api.complete_linear(cliffs, linear, max_credits).await,
                    (Some(linear), None) => self.api.fetch_with_linear(&poll.request, linear, max_credits).await,
                    (None, _) => self.api.fetch(&poll.request, poll.known, max_credits).await,
                }
            };
            let fetched = tokio::select! {
                fetched = fetch => fetched,
                // The cycle failed, so its remaining pages would cost credits for nothing.
                () = self.sender.closed() => break,
            };
            self.claim.release(poll.cost);
            if !send((poll, fetched), &self.sender, &self.capacity).await {
                break;
            }
        }
    }
}

/// Sends a response once there is capacity for it. Returns `false` if the receiving side was dropped.
async fn send(response: Polled, sender: &mpsc::Sender<Polled>, capacity: &Semaphore) -> bool {
    tokio::select! {
        // `Responses` returns the permits after the commit.
        taken = capacity.acquire_many(size_kib(&response)) => if let Ok(taken) = taken { taken.forget() },
        () = sender.closed() => return false,
    }
    sender.send(response).await.is_ok()
}

impl Responses {
    fn new(batches: mpsc::Receiver<Vec<Polled>>, capacity: Option<Arc<Semaphore>>) -> Self {
        Self { batches, rest: Vec::new().into_iter(), capacity, taken_kib: 0 }
    }

    /// Waits for the next response. `None` at the end of the stream. The previous response must be processed by now.
    pub(super) async fn next(&mut self) -> Option<Polled> {
        loop {
            if let Some(response) = self.rest.next() {
                return Some(response);
            }
            self.rest = self.batch().await?.into_iter();
        }
    }

    /// Waits for the next batch of responses, which are processed together. `None` at the end of the stream. The previous batch must be
    /// processed by now.
    pub(super) async fn batch(&mut self) -> Option<Vec<Polled>> {
        if let Some(capacity) = &self.capacity {
            capacity.add_permits(std::mem::take(&mut self.taken_kib) as usize);
        }
        let batch = self.batches.recv().await?;
        self.taken_kib = batch.iter().map(size_kib).sum();
        Some(batch)
    }
}

/// Gathers responses into batches until the stream ends or the batches are dropped. Runs where the responses arrive, so that the cycle is
/// not woken for each of them. The next batch is gathered while one waits to be taken, but not two.
async fn gather_all(mut responses: mpsc::Receiver<Polled>, batches: mpsc::Sender<Vec<Polled>>) {
    while let Ok(slot) = batches.reserve().await {
        let batch = tokio::select! {
            batch = gather(&mut responses, GATHER_TIMEOUT) => batch,
            () = batches.closed() => return,
        };
        let Some(batch) = batch else { return };
        slot.send(batch);
    }
}

/// Waits for a response, and at most `timeout` for others. Returns `None` at the end of the stream.
async fn gather(responses: &mut mpsc::Receiver<Polled>, timeout: Duration) -> Option<Vec<Polled>> {
    let mut batch = GrowingBatch::default();
    batch.add(responses.recv().await?);
    let until = Instant::now() + timeout;
    while !batch.is_full()
        && let Ok(Some(response)) = timeout_at(until, responses.recv()).await
    {
        batch.add(response);
    }
    Some(batch.responses)
}

#[derive(Default)]
struct GrowingBatch {
    responses: Vec<Polled>,
    fresh: usize,
    kib: u32,
}

impl GrowingBatch {
    fn add(&mut self, response: Polled) {
        self.fresh += usize::from(is_fresh(&response));
        self.kib = self.kib.saturating_add(size_kib(&response));
        self.responses.push(response);
    }

    fn is_full(&self) -> bool {
        self.fresh >= MAX_FRESH || self.responses.len() >= MAX_BATCH || self.kib >= MAX_UNCOMMITTED_KIB / 2
    }
}

/// Returns whether a response must be compared with known records.
pub(super) fn is_fresh((_, fetched): &Polled) -> bool {
    matches!(fetched.outcome, PollOutcome::Fresh(_))
}

#[cfg(test)]
mod tests;
