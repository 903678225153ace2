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

/// A stream of responses. Those in the channel and in the last batch have at most [`MAX_UNCOMMITTED_KIB`].
pub(super) struct Responses {
    channel: mpsc::Receiver<(PlannedPoll, FetchedResponse)>,
    /// The remaining KiB. `None` if the responses were given instead of polled.
    capacity: Option<Arc<Semaphore>>,
    /// The KiB of the last batch.
    taken_kib: u32,
}

/// Returns the size that counts towards [`MAX_UNCOMMITTED_KIB`]: zero unless the response is fresh, and at most a full batch.
fn size_kib(response: &(PlannedPoll, FetchedResponse)) -> u32 {
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
    api: &Client,
    (polls, incomplete): (Vec<PlannedPoll>, IncompleteResponses),
    claim: CreditClaim,
    concurrency: usize,
    stopping: CancellationToken,
) -> Responses {
    let (sender, channel) = mpsc::channel(MAX_FRESH * 2);
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
    tokio::spawn(async move {
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
    Responses { channel, capacity: Some(capacity), taken_kib: 0 }
}

/// Returns given responses as a stream.
pub(super) fn given(responses: Vec<(PlannedPoll, FetchedResponse)>) -> Responses {
    let (sender, channel) = mpsc::channel(responses.len().max(1));
    for response in responses {
        // The channel has a slot for each.
        let _ = sender.try_send(response);
    }
    Responses { channel, capacity: None, taken_kib: 0 }
}

/// Runs polls of a shared plan one after the other.
#[derive(Clone)]
struct PollWorker {
    api: Client,
    polls: Arc<Mutex<vec::IntoIter<PlannedPoll>>>,
    incomplete: Arc<Mutex<HashMap<FeedId, FetchedResponse>>>,
    claim: Arc<CreditClaim>,
    sender: mpsc::Sender<(PlannedPoll, FetchedResponse)>,
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
async fn send(
    response: (PlannedPoll, FetchedResponse),
    sender: &mpsc::Sender<(PlannedPoll, FetchedResponse)>,
    capacity: &Semaphore,
) -> bool {
    tokio::select! {
        // `Responses` returns the permits after the commit.
        taken = capacity.acquire_many(size_kib(&response)) => if let Ok(taken) = taken { taken.forget() },
        () = sender.closed() => return false,
    }
    sender.send(response).await.is_ok()
}

impl Responses {
    /// Waits for the next response. `None` at the end of the stream. The previous response must be processed by now.
    pub(super) async fn next(&mut self) -> Option<(PlannedPoll, FetchedResponse)> {
        self.return_capacity();
        let response = self.channel.recv().await?;
        self.taken_kib = size_kib(&response);
        Some(response)
    }

    /// Waits for a response, and briefly for others to process together. Returns `false` at the end of the stream. The previous batch
    /// must be processed by now.
    pub(super) async fn gather(&mut self, batch: &mut Vec<(PlannedPoll, FetchedResponse)>) -> bool {
        self.gather_for(GATHER_TIMEOUT, batch).await
    }

    async fn gather_for(&mut self, timeout: Duration, batch: &mut Vec<(PlannedPoll, FetchedResponse)>) -> bool {
        self.return_capacity();
        let (mut next, until) = (self.channel.recv().await, Instant::now() + timeout);
        let (has_any, mut fresh) = (next.is_some(), 0);
        while let Some(response) = next {
            self.taken_kib += size_kib(&response);
            fresh += usize::from(is_fresh(&response));
            batch.push(response);
            let is_full = fresh >= MAX_FRESH || batch.len() >= MAX_BATCH || self.taken_kib >= MAX_UNCOMMITTED_KIB / 2;
            next = if is_full { None } else { timeout_at(until, self.channel.recv()).await.ok().flatten() };
        }
        has_any
    }

    fn return_capacity(&mut self) {
        let taken = std::mem::take(&mut self.taken_kib);
        if let Some(capacity) = &self.capacity {
            capacity.add_permits(taken as usize);
        }
    }
}

/// Returns whether a response must be compared with known records.
pub(super) fn is_fresh((_, fetched): &(PlannedPoll, FetchedResponse)) -> bool {
    matches!(fetched.outcome, PollOutcome::Fresh(_))
}

#[cfg(test)]
mod tests;
