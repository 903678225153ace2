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

async fn next_event(stream: &mut UpdateStream) -> Option<&'static [u8]> {
    tokio::time::timeout(Duration::from_secs(20), stream.receiver.recv()).await.expect("in time")
}

#[tokio::test]
async fn client_gets_an_event_after_a_commit() {
    let (_directory, store) = opened().await;
    let stop = CancellationToken::new();
    let updates = Updates::start(store.clone(), stop.clone());
    let mut stream = updates.connect().expect("a slot");
    assert_eq!(next_event(&mut stream).await, Some(RETRY));
    let token = serde_json::from_str(r#"{"id": "arbitrum"}"#).expect("a token");
    store.commit(Commit { at: now() + TimeDelta::hours(1), tokens: vec![token], ..with_poll() }).await.expect("committed");
    assert_eq!(next_event(&mut stream).await, Some(UPDATE));
    stop.cancel();
    while let Some(event) = next_event(&mut stream).await {
        assert!(event == UPDATE || event == KEEP_ALIVE);
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
        parse_warnings: Vec::new(),
        parse_warnings_total: 0,
    };
    Commit { polls: vec![poll], ..Commit::default() }
}

#[tokio::test]
async fn number_of_clients_is_limited() {
    let (_directory, store) = opened().await;
    let updates = Updates::start(store, CancellationToken::new());
    let all: Vec<UpdateStream> = (0..MAX_CLIENTS).filter_map(|_| updates.connect()).collect();
    assert_eq!(all.len(), MAX_CLIENTS);
    assert!(updates.connect().is_none());
    drop(all);
    assert!(updates.connect().is_some());
}
