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
    let (sender, from) = mpsc::channel(1_000);
    let mut answers = Answers { from, room: None, taken: 0 };
    for answer in sent {
        sender.send(answer).await.expect("room");
    }
    let mut batch = Vec::new();
    let gathering = answers.gather_for(moment, &mut batch);
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
    let (sender, from) = mpsc::channel(10);
    let mut answers = Answers { from, room: None, taken: 0 };
    sender.send(fresh()).await.expect("room");
    drop(sender);
    let mut batch = Vec::new();
    let gathering = answers.gather_for(FOR_EVER, &mut batch);
    assert!(tokio::time::timeout(Duration::from_secs(30), gathering).await.expect("it does not wait"));
    assert_eq!(batch.len(), 1);
    assert!(!answers.gather(&mut batch).await);
}

/// An answer of so many KiB.
fn heavy(kib: u32) -> (PlannedPoll, FetchedAnswer) {
    let (ask, fetched) = fresh();
    (ask, FetchedAnswer { bytes: u64::from(kib) * 1024, ..fetched })
}

#[tokio::test]
async fn what_is_read_and_not_yet_committed_weighs_no_more_than_it_may() {
    const SENT: u32 = 60;
    let (sender, from) = mpsc::channel(BATCH * 2);
    let room = Arc::new(Semaphore::new(MOST_WEIGHT as usize));
    let mut answers = Answers { from, room: Some(room.clone()), taken: 0 };
    let mut senders = JoinSet::new();
    for lane in 0..4 {
        let (sender, room) = (sender.clone(), room.clone());
        senders.spawn(async move {
            for number in (0..SENT).skip(lane).step_by(4) {
                // Small ones, large ones, and now and then one that is larger than all may be together.
                let kib = if number % 10 == 9 { 9 * MOST_WEIGHT } else { number * 7 };
                assert!(hand_over(heavy(kib), &sender, &room).await);
            }
        });
    }
    drop(sender);
    let (mut batch, mut came) = (Vec::new(), 0);
    while tokio::time::timeout(Duration::from_secs(30), answers.gather_for(FOR_EVER, &mut batch))
        .await
        .expect("none waits for ever")
    {
        let weighs: u32 = batch.iter().map(weight).sum();
        // The last one of a batch may be of any size up to that of a batch.
        assert!(weighs <= MOST_WEIGHT && batch.len() <= BATCH, "{} of {weighs} KiB", batch.len());
        assert!(weighs as usize + room.available_permits() <= MOST_WEIGHT as usize);
        came += batch.len();
        batch.clear();
    }
    assert_eq!(came, SENT as usize);
}

#[tokio::test]
async fn whoever_waits_for_room_ends_where_nobody_takes_any_more() {
    let (sender, from) = mpsc::channel(BATCH);
    let room = Semaphore::new(0);
    let waiting = hand_over(heavy(100), &sender, &room);
    let left = async { drop(from) };
    let (is_taken, ()) =
        tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(waiting, left) }).await.expect("it ends");
    assert!(!is_taken);
}
