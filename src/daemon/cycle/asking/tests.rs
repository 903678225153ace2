use super::*;
use engine::budget::PollReason;
use model::{
    poll::{Payload, PollAnswer, PollRequest},
    supply::ContentHash,
};

fn answer(outcome: PollOutcome) -> (PlannedPoll, FetchedAnswer) {
    let request = PollRequest::TokenList;
    let ask = PlannedPoll {
        request: request.clone(),
        known: None,
        why: PollReason::First,
        cost: 1,
        mark: None,
        listed_at: None,
        with_segments: false,
        may_add_segments: false,
    };
    (ask, FetchedAnswer::of_page(request, outcome, Some(5)))
}

fn fresh() -> (PlannedPoll, FetchedAnswer) {
    let (payload, hash) = (Payload::Tokens(Vec::new()), ContentHash(0));
    answer(PollOutcome::Fresh(PollAnswer::clean(payload, hash)))
}

/// Longer than any test may take: whoever waits for it is found out.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// How many of `sent` are gathered while more could come.
async fn gathered(moment: Duration, sent: impl IntoIterator<Item = (PlannedPoll, FetchedAnswer)>) -> usize {
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
    assert_eq!(gathered(moment, (0..10).map(|_| answer(PollOutcome::Unchanged))).await, 10);
}

#[tokio::test]
async fn no_more_is_gathered_than_may_be_in_memory_at_once() {
    assert_eq!(gathered(FOR_EVER, (0..100).map(|_| fresh())).await, BATCH);
    assert_eq!(gathered(FOR_EVER, (0..999).map(|_| answer(PollOutcome::Unchanged))).await, MOST_GATHERED);
    let mixed = (0..300).map(|number| if number % 4 == 0 { fresh() } else { answer(PollOutcome::Unchanged) });
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
