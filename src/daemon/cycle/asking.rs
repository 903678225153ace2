//! Asking what was planned, several at a time, and gathering the answers that come.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
    vec,
};

use tokio::{
    sync::mpsc,
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
/// How long an answer waits for others to be committed with, since a commit costs one about what it costs many.
const GATHERING: Duration = Duration::from_millis(20);
/// How long requests under way may still be answered once the daemon is to stop.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Asks `in_flight` things at a time, in their order, and hands the answers over as they come, until `stopping` or until nobody takes
/// them any more.
pub(super) fn ask(
    api: &Client,
    asks: Vec<PlannedPoll>,
    claim: CreditClaim,
    in_flight: usize,
    stopping: CancellationToken,
) -> mpsc::Receiver<(PlannedPoll, FetchedAnswer)> {
    let (answered, answers) = mpsc::channel(BATCH * 2);
    let worker = AskWorker {
        stopping: stopping.clone(),
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
    answers
}

/// Hands over answers that are at hand, as if they had been asked for.
pub(super) fn at_hand(given: Vec<(PlannedPoll, FetchedAnswer)>) -> mpsc::Receiver<(PlannedPoll, FetchedAnswer)> {
    let (answered, answers) = mpsc::channel(given.len().max(1));
    for answer in given {
        // There is room for each.
        let _ = answered.try_send(answer);
    }
    answers
}

/// Asks one thing after the other, beside others that take from the same plan.
#[derive(Clone)]
struct AskWorker {
    api: Client,
    asks: Arc<Mutex<vec::IntoIter<PlannedPoll>>>,
    claim: Arc<CreditClaim>,
    answered: mpsc::Sender<(PlannedPoll, FetchedAnswer)>,
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
            if self.answered.send((ask, fetched)).await.is_err() {
                break;
            }
        }
    }
}

/// Waits for answers, and a moment longer for others to be committed with them. False once all have come.
pub(super) async fn gather(
    answers: &mut mpsc::Receiver<(PlannedPoll, FetchedAnswer)>,
    batch: &mut Vec<(PlannedPoll, FetchedAnswer)>,
) -> bool {
    gather_for(GATHERING, answers, batch).await
}

async fn gather_for(
    moment: Duration,
    answers: &mut mpsc::Receiver<(PlannedPoll, FetchedAnswer)>,
    batch: &mut Vec<(PlannedPoll, FetchedAnswer)>,
) -> bool {
    if answers.recv_many(batch, BATCH).await == 0 {
        return false;
    }
    let until = Instant::now() + moment;
    loop {
        let fresh = batch.iter().filter(|answer| is_fresh(answer)).count();
        let room = BATCH.saturating_sub(fresh).min(MOST_GATHERED.saturating_sub(batch.len()));
        if room == 0 || !matches!(timeout_at(until, answers.recv_many(batch, room)).await, Ok(1..)) {
            return true;
        }
    }
}

/// Whether an answer brings something to compare.
pub(super) fn is_fresh((_, fetched): &(PlannedPoll, FetchedAnswer)) -> bool {
    matches!(fetched.outcome, PollOutcome::Fresh(_))
}

#[cfg(test)]
mod tests;
