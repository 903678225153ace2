//! Asking what was planned, several at a time, and gathering the answers that come.

use std::{
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
use model::poll::{FetchedAnswer, PollOutcome};
use source::Client;

/// Answers with something to compare that are committed together at most: all that is known of their tokens is in memory at once.
const BATCH: usize = 32;
/// Answers of any kind that are committed together at most.
const MOST_GATHERED: usize = 256;
/// What answers that were read may weigh together, from the moment they are handed over until they are committed, KiB of their text: what
/// is made of it takes about twice as much of memory. Half of it is in one batch at most, so that the rest can come meanwhile.
const MOST_WEIGHT: u32 = 1024;
/// How long an answer waits for others to be committed with, since a commit costs one about what it costs many.
const GATHERING: Duration = Duration::from_millis(20);
/// How long requests under way may still be answered once the daemon is to stop.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Answers as they come. What lies here weighs no more than [`MOST_WEIGHT`], with the batch that was gathered last.
pub(super) struct Answers {
    from: mpsc::Receiver<(PlannedPoll, FetchedAnswer)>,
    /// What more may be handed over; none where all answers are at hand.
    room: Option<Arc<Semaphore>>,
    /// What of it was taken by what was handed on last.
    taken: u32,
}

/// KiB that an answer counts as. One that brings nothing to compare is not worth counting; one that is larger than a batch is one.
fn weight(answer: &(PlannedPoll, FetchedAnswer)) -> u32 {
    let kib = u32::try_from(answer.1.bytes / 1024).unwrap_or(u32::MAX);
    if is_fresh(answer) { kib.min(MOST_WEIGHT / 2) } else { 0 }
}

/// Asks `in_flight` things at a time, in their order, and hands the answers over as they come, until `stopping` or until nobody takes
/// them any more.
pub(super) fn ask(
    api: &Client,
    asks: Vec<PlannedPoll>,
    claim: CreditClaim,
    in_flight: usize,
    stopping: CancellationToken,
) -> Answers {
    let (answered, from) = mpsc::channel(BATCH * 2);
    let room = Arc::new(Semaphore::new(MOST_WEIGHT as usize));
    let worker = AskWorker {
        stopping: stopping.clone(),
        room: room.clone(),
        api: api.clone(),
        asks: Arc::new(Mutex::new(asks.into_iter())),
        claim: Arc::new(claim),
        answered,
    };
    tokio::spawn(async move {
        let mut workers = JoinSet::new();
        for _ in 0..in_flight {
            workers.spawn(worker.clone().run());
        }
        let all_asked = async {
            while let Some(ended) = workers.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "a request ended without an answer");
                    workers.spawn(worker.clone().run());
                }
            }
        };
        // What is cut off is asked again after the next start.
        tokio::select! {
            () = all_asked => {}
            () = async { stopping.cancelled().await; sleep(STOP_GRACE).await } => {}
        }
    });
    Answers { from, room: Some(room), taken: 0 }
}

/// Hands over answers that are at hand, as if they had been asked for.
pub(super) fn at_hand(given: Vec<(PlannedPoll, FetchedAnswer)>) -> Answers {
    let (answered, from) = mpsc::channel(given.len().max(1));
    for answer in given {
        // There is room for each.
        let _ = answered.try_send(answer);
    }
    Answers { from, room: None, taken: 0 }
}

/// Asks one thing after the other, beside others that take from the same plan.
#[derive(Clone)]
struct AskWorker {
    api: Client,
    asks: Arc<Mutex<vec::IntoIter<PlannedPoll>>>,
    claim: Arc<CreditClaim>,
    answered: mpsc::Sender<(PlannedPoll, FetchedAnswer)>,
    room: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl AskWorker {
    async fn run(self) {
        loop {
            let next = self.asks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(ask) = next.filter(|_| !self.stopping.is_cancelled()) else { break };
            // A walk may have grown since it was last paid for.
            let most = u32::try_from(ask.cost.saturating_mul(2).saturating_add(8)).ok();
            let fetch = async {
                match ask.with_segments {
                    true => self.api.fetch_with_segments(&ask.request, most).await,
                    false => self.api.fetch(&ask.request, ask.known, most).await,
                }
            };
            let fetched = tokio::select! {
                fetched = fetch => fetched,
                // Its cycle failed: the pages that are left would be paid for, and read by nobody.
                () = self.answered.closed() => break,
            };
            self.claim.done(ask.cost);
            if !hand_over((ask, fetched), &self.answered, &self.room).await {
                break;
            }
        }
    }
}

/// Hands an answer over once there is room for it. False where nobody takes any more.
async fn hand_over(
    answer: (PlannedPoll, FetchedAnswer),
    to: &mpsc::Sender<(PlannedPoll, FetchedAnswer)>,
    room: &Semaphore,
) -> bool {
    tokio::select! {
        // Given back by whoever gathers, once it is committed.
        taken = room.acquire_many(weight(&answer)) => if let Ok(taken) = taken { taken.forget() },
        () = to.closed() => return false,
    }
    to.send(answer).await.is_ok()
}

impl Answers {
    /// The next one; none once all have come. The one before is gone by now.
    pub(super) async fn next(&mut self) -> Option<(PlannedPoll, FetchedAnswer)> {
        self.give_back();
        let answer = self.from.recv().await?;
        self.taken = weight(&answer);
        Some(answer)
    }

    /// Waits for answers, and a moment longer for others to be committed with them. False once all have come. Those of the batch before
    /// are gone by now.
    pub(super) async fn gather(&mut self, batch: &mut Vec<(PlannedPoll, FetchedAnswer)>) -> bool {
        self.gather_for(GATHERING, batch).await
    }

    async fn gather_for(&mut self, moment: Duration, batch: &mut Vec<(PlannedPoll, FetchedAnswer)>) -> bool {
        self.give_back();
        let (mut next, until) = (self.from.recv().await, Instant::now() + moment);
        let (has_any, mut fresh) = (next.is_some(), 0);
        while let Some(answer) = next {
            self.taken += weight(&answer);
            fresh += usize::from(is_fresh(&answer));
            batch.push(answer);
            let is_full = fresh >= BATCH || batch.len() >= MOST_GATHERED || self.taken >= MOST_WEIGHT / 2;
            next = if is_full { None } else { timeout_at(until, self.from.recv()).await.ok().flatten() };
        }
        has_any
    }

    /// Makes room for as much as was taken last.
    fn give_back(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if let Some(room) = &self.room {
            room.add_permits(taken as usize);
        }
    }
}

/// Whether an answer brings something to compare.
pub(super) fn is_fresh((_, fetched): &(PlannedPoll, FetchedAnswer)) -> bool {
    matches!(fetched.outcome, PollOutcome::Fresh(_))
}

#[cfg(test)]
mod tests;
