//! Asking what was planned, several at a time, and gathering the answers that come.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
    vec,
};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    api::{Client, Fetched, Outcome},
    plan::Ask,
};

/// Answers with something to compare that are committed together at most: all that is known of their tokens is in memory at once.
const BATCH: usize = 32;
/// Answers of any kind that are committed together at most.
const MOST_GATHERED: usize = 256;
/// How long an answer waits for others to be committed with, since a commit costs one about what it costs many.
const GATHERING: Duration = Duration::from_millis(20);

/// Asks `in_flight` things at a time, in their order, and hands the answers over as they come.
pub(super) fn ask(api: &Client, asks: Vec<Ask>, in_flight: usize) -> mpsc::Receiver<(Ask, Fetched)> {
    let (answered, answers) = mpsc::channel(BATCH * 2);
    let lane = Lane { api: api.clone(), asks: Arc::new(Mutex::new(asks.into_iter())), answered };
    tokio::spawn(async move {
        let mut lanes = JoinSet::new();
        for _ in 0..in_flight {
            lanes.spawn(lane.clone().run());
        }
        while let Some(ended) = lanes.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a request ended without an answer");
                lanes.spawn(lane.clone().run());
            }
        }
    });
    answers
}

/// Asks one thing after the other, beside others that take from the same plan.
#[derive(Clone)]
struct Lane {
    api: Client,
    asks: Arc<Mutex<vec::IntoIter<Ask>>>,
    answered: mpsc::Sender<(Ask, Fetched)>,
}

impl Lane {
    async fn run(self) {
        loop {
            let next = self.asks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(ask) = next else { break };
            // A walk may have grown since it was last paid for.
            let most = u32::try_from(ask.cost.saturating_mul(2).saturating_add(8)).ok();
            let fetched = self.api.fetch(&ask.request, ask.known, most).await;
            if self.answered.send((ask, fetched)).await.is_err() {
                break;
            }
        }
    }
}

/// Waits for answers, and a moment longer for others to be committed with them. False once all have come.
pub(super) async fn gather(answers: &mut mpsc::Receiver<(Ask, Fetched)>, batch: &mut Vec<(Ask, Fetched)>) -> bool {
    gather_for(GATHERING, answers, batch).await
}

async fn gather_for(moment: Duration, answers: &mut mpsc::Receiver<(Ask, Fetched)>, batch: &mut Vec<(Ask, Fetched)>) -> bool {
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
pub(super) fn is_fresh((_, fetched): &(Ask, Fetched)) -> bool {
    matches!(fetched.outcome, Outcome::Fresh(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{Answer, Payload, Request},
        budget::Why,
        supply::ContentHash,
    };

    fn answer(outcome: Outcome) -> (Ask, Fetched) {
        let request = Request::TokenList;
        let ask = Ask { request: request.clone(), known: None, why: Why::First, cost: 1, mark: None };
        let (took, status, version) = (Duration::ZERO, Some(200), Some(5));
        (ask, Fetched { request, outcome, credits: 1, requests: 1, credit: None, bytes: 0, took, status, version })
    }

    fn fresh() -> (Ask, Fetched) {
        let (payload, hash) = (Payload::Tokens(Vec::new()), ContentHash(0));
        answer(Outcome::Fresh(Answer { payload, hash, oddities: Vec::new(), oddities_total: 0, dropped: 0 }))
    }

    /// Longer than any test may take: whoever waits for it is found out.
    const FOR_EVER: Duration = Duration::from_secs(3_600);

    /// How many of `sent` are gathered while more could come.
    async fn gathered(moment: Duration, sent: impl IntoIterator<Item = (Ask, Fetched)>) -> usize {
        let (sender, mut answers) = mpsc::channel(1_000);
        for answer in sent {
            sender.send(answer).await.expect("room");
        }
        let mut batch = Vec::new();
        let gathering = gather_for(moment, &mut answers, &mut batch);
        assert!(tokio::time::timeout(Duration::from_secs(30), gathering).await.expect("it waits no longer"));
        batch.len()
    }

    #[tokio::test]
    async fn an_answer_waits_for_others_no_longer_than_a_moment() {
        let moment = Duration::from_millis(1);
        assert_eq!(gathered(moment, [fresh()]).await, 1);
        assert_eq!(gathered(moment, (0..10).map(|_| answer(Outcome::Unchanged))).await, 10);
    }

    #[tokio::test]
    async fn no_more_is_gathered_than_may_be_in_memory_at_once() {
        assert_eq!(gathered(FOR_EVER, (0..100).map(|_| fresh())).await, BATCH);
        assert_eq!(gathered(FOR_EVER, (0..999).map(|_| answer(Outcome::Unchanged))).await, MOST_GATHERED);
        let mixed = (0..300).map(|number| if number % 4 == 0 { fresh() } else { answer(Outcome::Unchanged) });
        let count = gathered(FOR_EVER, mixed).await;
        assert!((BATCH..=4 * BATCH).contains(&count), "{count}");
    }

    #[tokio::test]
    async fn nothing_is_waited_for_once_all_have_come() {
        let (sender, mut answers) = mpsc::channel(10);
        sender.send(fresh()).await.expect("room");
        drop(sender);
        let mut batch = Vec::new();
        let gathering = gather_for(FOR_EVER, &mut answers, &mut batch);
        assert!(tokio::time::timeout(Duration::from_secs(30), gathering).await.expect("it does not wait"));
        assert_eq!(batch.len(), 1);
        assert!(!gather(&mut answers, &mut batch).await);
    }
}
