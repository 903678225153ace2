use tempfile::TempDir;

use super::support::*;
use model::{FailureKind, PastPollState as State, *};

fn failed(token: &str, kind: FailureKind, what: &str) -> PollEntry {
    let outcome = PollEntryOutcome::Failed(kind);
    PollEntry { outcome, error: Some(what.to_owned()), records: 0, ..poll(Endpoint::UnlockEvents, Some(token)) }
}

async fn logged(cycles: Vec<Vec<PollEntry>>) -> (TempDir, crate::Store) {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tokens = vec![token_item("aptos", "APT"), token_item("arbitrum", "")];
    store.commit(at(Commit { tokens, ..Commit::default() })).await.expect("committed");
    for (minute, polls) in (1_i64..).zip(cycles) {
        let polls = polls.into_iter().map(|poll| PollEntry { at: now() + minutes(minute), ..poll }).collect();
        store.commit(at(Commit { polls, ..Commit::default() })).await.expect("committed");
    }
    (directory, store)
}

#[tokio::test]
async fn polls_of_a_cycle_are_grouped_with_first_failure() {
    let fresh = |token: &str| poll(Endpoint::UnlockEvents, Some(token));
    let unchanged = PollEntry { outcome: PollEntryOutcome::Unchanged, records: 0, ..fresh("aptos") };
    let empty = |token: &str| PollEntry { records: 0, ..fresh(token) };
    let (_directory, store) = logged(vec![
        vec![fresh("aptos"), fresh("arbitrum")],
        vec![empty("aptos"), empty("arbitrum")],
        vec![unchanged],
        vec![fresh("aptos"), failed("arbitrum", FailureKind::NotFound, "404"), failed("aptos", FailureKind::Timeout, "late")],
        vec![failed("aptos", FailureKind::ServerError, "503")],
        vec![failed("aptos", FailureKind::Deferred, "waits")],
        vec![poll(Endpoint::TokenList, None)],
    ])
    .await;
    let all = store.past_polls(40).await.expect("read");
    assert_eq!(all.iter().map(|of| of.endpoint).collect::<Vec<_>>(), [Endpoint::TokenList, Endpoint::UnlockEvents]);
    let cycles = &all[1].cycles;
    let notified: Vec<_> = cycles.iter().map(|cycle| (cycle.state(), cycle.polls, cycle.failed)).collect();
    let expected = [(State::Deferred, 1, 0), (State::Failed, 1, 1), (State::Partly, 3, 2), (State::Good, 1, 0)];
    assert_eq!(notified, [&expected[..], &[(State::Empty, 2, 0), (State::Good, 2, 0)]].concat());
    assert_eq!(cycles[0].at, now() + minutes(6), "latest first");
    let problem = |at: usize| cycles[at].failure.clone().map(|of| (of.token, of.message));
    assert_eq!(problem(2), Some((Some("arbitrum".to_owned()), "404".to_owned())), "the slug if there is no ticker");
    assert_eq!((problem(1), problem(0)), (Some((Some("APT".to_owned()), "503".to_owned())), None));
}

#[tokio::test]
async fn cycles_and_counted_polls_are_limited() {
    let cycle = |polls: usize| vec![poll(Endpoint::Burn, Some("aptos")); polls];
    let (_directory, store) = logged(vec![cycle(1), cycle(2), cycle(1_200)]).await;
    let all = store.past_polls(2).await.expect("read");
    let counts: Vec<_> = all[0].cycles.iter().map(|cycle| cycle.polls).collect();
    assert_eq!(counts, [PastPoll::MOST_COUNTED, 2]);
}
