//! Measures commits of records: new ones, and ones with only a changed price.

use std::time::Instant;

use cliffwatch::{
    engine::{
        diff::{Diff, UnlockPoll, baseline_unlocks, diff_unlocks},
        removal::{ProofPolicy, RemovalProof, ResponseQuality},
    },
    model::{
        rows::{Commit, FeedUpdate},
        supply::{Endpoint, FeedId, FeedState, Resource, Timestamp},
    },
    store::{Access, Opening, Store},
};

use crate::{
    made::{Schedules, tranches},
    measure::{line, rate, short},
};

/// The number of tokens, with about a hundred thousand tranches.
const TOKENS: usize = 1_000;
/// The number of tokens per commit, as in a cycle.
const BATCH: usize = 32;

pub fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure_commits())
}

async fn measure_commits() -> anyhow::Result<()> {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let schedules = Schedules::read()?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = Store::open(Opening { path: folder.path().join("commit.db"), access: Access::Own, now }).await?;
    let (mut rows, mut records) = (0, 0);
    for price in [1.0, 1.01] {
        let mut took = std::time::Duration::ZERO;
        let mut reading = std::time::Duration::ZERO;
        for first in (0..TOKENS).step_by(BATCH) {
            let numbers: Vec<usize> = (first..TOKENS.min(first + BATCH)).collect();
            let start = Instant::now();
            let before =
                store.tokens(numbers.iter().map(|number| Schedules::id(*number)).collect(), vec![Resource::Unlock]).await?;
            reading += start.elapsed();
            let mut commit = Commit { at: now, ..Commit::default() };
            for (number, snapshot) in numbers.into_iter().zip(before) {
                let events = schedules.events(number, price);
                let diff = if snapshot.records.is_empty() {
                    rows += tranches(&events);
                    Diff { put: baseline_unlocks(&[], &events, now), ..Diff::default() }
                } else {
                    let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &[], None, now);
                    diff_unlocks(&UnlockPoll::of(&snapshot.token.id, now), &snapshot.records, &proof, &events)
                };
                records += diff.put.len();
                let state = FeedState { baseline_at: Some(now), read_at: Some(now), ..FeedState::default() };
                let id = FeedId::of(Endpoint::UnlockEvents, &snapshot.token.id);
                commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: diff.removed, header: None });
            }
            let start = Instant::now();
            store.commit(commit).await?;
            took += start.elapsed();
        }
        if price > 1.0 {
            line("reading the known records", &format!("{} tranches/s", short(rate(rows, reading))), &format!("{TOKENS} tokens"));
        }
        let what = if price > 1.0 { "committing new prices" } else { "committing new records" };
        let more =
            format!("{} records/s; {records} records, {rows} tranches, {BATCH} tokens per commit", short(rate(records, took)));
        line(what, &format!("{} tranches/s", short(rate(rows, took))), &more);
        records = 0;
    }
    store.close().await?;
    Ok(())
}
