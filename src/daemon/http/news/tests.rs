use chrono::TimeDelta;

use super::*;
use model::{Commit, Endpoint, PollEntry, PollEntryOutcome, Timestamp};
use store::{Access, Opening};

fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

async fn opened() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    let store = Store::open(Opening { path, access: Access::Own, now: now() }).await.expect("a store");
    (directory, store)
}

async fn heard(listening: &mut NewsListener) -> Option<&'static [u8]> {
    tokio::time::timeout(Duration::from_secs(20), listening.heard.recv()).await.expect("in time")
}

#[tokio::test]
async fn a_listener_hears_that_something_is_new_and_nothing_more() {
    let (_directory, store) = opened().await;
    let ending = CancellationToken::new();
    let news = News::start(store.clone(), ending.clone());
    let mut listening = news.listen().expect("a place");
    assert_eq!(heard(&mut listening).await, Some(WELCOME));
    let token = serde_json::from_str(r#"{"id": "arbitrum"}"#).expect("a token");
    store.commit(Commit { at: now() + TimeDelta::hours(1), tokens: vec![token], ..with_poll() }).await.expect("committed");
    assert_eq!(heard(&mut listening).await, Some(NEWS));
    ending.cancel();
    while let Some(said) = heard(&mut listening).await {
        assert!(said == NEWS || said == SIGN);
    }
}

fn with_poll() -> Commit {
    let poll = PollEntry {
        endpoint: Endpoint::TokenList,
        token: None,
        at: now(),
        took_ms: 5,
        outcome: PollEntryOutcome::Fresh,
        status: Some(200),
        requests: 1,
        credits: 1,
        bytes: 100,
        version: Some(1),
        records: 1,
        error: None,
        oddities: Vec::new(),
        oddities_total: 0,
    };
    Commit { polls: vec![poll], ..Commit::default() }
}

#[tokio::test]
async fn listeners_are_bounded_and_leave_their_places() {
    let (_directory, store) = opened().await;
    let news = News::start(store, CancellationToken::new());
    let all: Vec<NewsListener> = (0..MAX_LISTENERS).filter_map(|_| news.listen()).collect();
    assert_eq!(all.len(), MAX_LISTENERS);
    assert!(news.listen().is_none());
    drop(all);
    assert!(news.listen().is_some());
}
