use super::*;
use engine::budget::PollReason;
use model::{
    poll::{Payload, PollRequest, PollResponse},
    supply::ContentHash,
};

fn response(outcome: PollOutcome) -> (PlannedPoll, FetchedResponse) {
    let request = PollRequest::TokenList;
    let poll = PlannedPoll { why: PollReason::First, ..PlannedPoll::for_change(request.clone()) };
    (poll, FetchedResponse::of_page(request, outcome, Some(5)))
}

fn fresh() -> (PlannedPoll, FetchedResponse) {
    let (payload, hash) = (Payload::Tokens(Vec::new()), ContentHash(0));
    response(PollOutcome::Fresh(PollResponse::clean(payload, hash)))
}

/// Longer than any test may take, so that a test fails if it waits for this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Returns the number of responses that are gathered while the channel stays open.
async fn gathered(timeout: Duration, sent: impl IntoIterator<Item = (PlannedPoll, FetchedResponse)>) -> usize {
    let (sender, mut responses) = mpsc::channel(1_000);
    for response in sent {
        sender.send(response).await.expect("room");
    }
    let gathering = gather(&mut responses, timeout);
    tokio::time::timeout(Duration::from_secs(30), gathering).await.expect("in time").expect("a batch").len()
}

#[tokio::test]
async fn gathering_ends_at_timeout() {
    let timeout = Duration::from_millis(1);
    assert_eq!(gathered(timeout, [fresh()]).await, 1);
    assert_eq!(gathered(timeout, (0..10).map(|_| response(PollOutcome::Unchanged))).await, 10);
}

#[tokio::test]
async fn batch_size_is_limited() {
    assert_eq!(gathered(TEST_TIMEOUT, (0..100).map(|_| fresh())).await, MAX_FRESH);
    assert_eq!(gathered(TEST_TIMEOUT, (0..999).map(|_| response(PollOutcome::Unchanged))).await, MAX_BATCH);
    let mixed = (0..300).map(|number| if number % 4 == 0 { fresh() } else { response(PollOutcome::Unchanged) });
    let count = gathered(TEST_TIMEOUT, mixed).await;
    assert!((MAX_FRESH..=4 * MAX_FRESH).contains(&count), "{count}");
}

#[tokio::test]
async fn gathering_ends_after_last_response() {
    let (sender, mut responses) = mpsc::channel(10);
    sender.send(fresh()).await.expect("room");
    drop(sender);
    let gathering = gather(&mut responses, TEST_TIMEOUT);
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(30), gathering).await.expect("in time").map(|batch| batch.len()),
        Some(1)
    );
    assert!(gather(&mut responses, TEST_TIMEOUT).await.is_none());
}

fn fresh_of_size(kib: u32) -> (PlannedPoll, FetchedResponse) {
    let (poll, fetched) = fresh();
    (poll, FetchedResponse { bytes: u64::from(kib) * 1024, ..fetched })
}

#[tokio::test]
async fn size_of_uncommitted_responses_is_limited() {
    const SENT: u32 = 60;
    let (sender, channel) = mpsc::channel(MAX_FRESH * 2);
    let (batch_sender, batches) = mpsc::channel(1);
    let gathering = tokio::spawn(gather_all(channel, batch_sender));
    let capacity = Arc::new(Semaphore::new(MAX_UNCOMMITTED_KIB as usize));
    let mut responses = Responses::new(batches, Some(capacity.clone()));
    let mut senders = JoinSet::new();
    for worker in 0..4 {
        let (sender, capacity) = (sender.clone(), capacity.clone());
        senders.spawn(async move {
            for number in (0..SENT).skip(worker).step_by(4) {
                // Small and large responses, and some that exceed the limit alone.
                let kib = if number % 10 == 9 { 9 * MAX_UNCOMMITTED_KIB } else { number * 7 };
                assert!(send(fresh_of_size(kib), &sender, &capacity).await);
            }
        });
    }
    drop(sender);
    let mut received = 0;
    while let Some(batch) = tokio::time::timeout(Duration::from_secs(30), responses.batch()).await.expect("in time") {
        let total: u32 = batch.iter().map(size_kib).sum();
        // The last response of a batch may have the size of a full batch.
        assert!(total <= MAX_UNCOMMITTED_KIB && batch.len() <= MAX_FRESH, "{} of {total} KiB", batch.len());
        assert!(total as usize + capacity.available_permits() <= MAX_UNCOMMITTED_KIB as usize);
        received += batch.len();
    }
    assert_eq!(received, SENT as usize);
    gathering.await.expect("the gathering ends");
}

#[tokio::test]
async fn waiting_sender_ends_when_responses_are_dropped() {
    let (sender, channel) = mpsc::channel(MAX_FRESH);
    let capacity = Semaphore::new(0);
    let waiting = send(fresh_of_size(100), &sender, &capacity);
    let dropped = async { drop(channel) };
    let (is_sent, ()) =
        tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(waiting, dropped) }).await.expect("in time");
    assert!(!is_sent);
}

#[tokio::test]
async fn gathering_ends_when_responses_are_dropped() {
    let (sender, channel) = mpsc::channel(MAX_FRESH);
    let (batch_sender, batches) = mpsc::channel(1);
    let gathering = tokio::spawn(gather_all(channel, batch_sender));
    drop(Responses::new(batches, None));
    tokio::time::timeout(Duration::from_secs(30), sender.closed()).await.expect("polls end");
    gathering.await.expect("the gathering ends");
}

#[tokio::test]
async fn given_responses_are_batches_of_limited_size_or_single_responses() {
    let mut batches = given((0..100).map(|_| fresh()).collect());
    let mut sizes = Vec::new();
    while let Some(batch) = batches.batch().await {
        sizes.push(batch.len());
    }
    assert_eq!(sizes, [MAX_FRESH, MAX_FRESH, MAX_FRESH, 100 - 3 * MAX_FRESH]);
    let (mut one_by_one, mut count) = (given((0..100).map(|_| fresh()).collect()), 0);
    while one_by_one.next().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 100);
}
