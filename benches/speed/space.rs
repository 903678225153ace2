//! Measures the disk use of a million tranches with two older versions of each event: copies the database of `scale`, corrects all
//! schedules twice, and prints the size of its tables.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::ensure;
use chrono::TimeDelta;
use cliffwatch::{
    model::{
        clock::Clock,
        rows::{Commit, FeedUpdate, Put, TokenSnapshot},
        supply::{Endpoint, FeedId, Record, Resource, Timestamp, TokenId},
    },
    store::{Access, Opening, Store},
};

use crate::{
    made::{alter, tranches},
    measure::{line, short},
};

/// The number of older versions of each event.
const CORRECTIONS: i32 = 2;
/// The number of tokens per commit.
const BATCH: usize = 64;

pub fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure_space())
}

/// Returns the database with three versions of each event, and creates it if needed.
pub(super) async fn corrected() -> anyhow::Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, path) = (folder.join("scale/scale.db"), folder.join("space/space.db"));
    ensure!(source.exists(), "run the section `scale` first, which creates the database");
    let is_newer = |path: &Path| Ok::<bool, std::io::Error>(path.metadata()?.modified()? >= source.metadata()?.modified()?);
    if path.exists() && is_newer(&path)? {
        return Ok(path);
    }
    fs::remove_dir_all(folder.join("space")).ok();
    fs::create_dir_all(folder.join("space"))?;
    let made = folder.join("space/making.db");
    fs::copy(&source, &made)?;
    let now = Clock::system().now();
    let store = Store::open(Opening { path: made.clone(), access: Access::Own, now }).await?;
    for round in 1..=CORRECTIONS {
        let at = now + TimeDelta::days(round.into());
        for ids in store.token_ids(false).await?.chunks(BATCH) {
            let known = store.tokens(ids.to_vec(), vec![Resource::Unlock]).await?;
            let feeds = known.iter().map(|known| corrections(known, f64::from(round), at)).collect();
            store.commit(Commit { at, feeds, ..Commit::default() }).await?;
        }
    }
    store.close().await?;
    fs::rename(made, &path)?;
    Ok(path)
}

/// All events of a token with changed amounts.
fn corrections(known: &TokenSnapshot, round: f64, at: Timestamp) -> FeedUpdate {
    let id: &TokenId = &known.token.id;
    let put = known.records.iter().filter_map(|tracked| {
        let mut event = tracked.record.unlock()?.clone();
        alter(&mut event, TimeDelta::zero(), 1.0 + round / 7.0, 1.0);
        event.latest_update_date = at.into();
        Some(Put { key: tracked.key.clone(), record: Record::Unlock(Arc::new(event)), is_new_version: true })
    });
    let state = known.feed(Endpoint::UnlockEvents).cloned().unwrap_or_default();
    FeedUpdate { id: FeedId::of(Endpoint::UnlockEvents, id), state, put: put.collect(), removed: Vec::new(), header: None }
}

async fn measure_space() -> anyhow::Result<()> {
    let path = corrected().await?;
    let size = fs::metadata(&path)?.len() as f64;
    let store = Store::open(Opening { path: path.clone(), access: Access::Read, now: Clock::system().now() }).await?;
    let mut rows = 0;
    for ids in store.token_ids(false).await?.chunks(BATCH) {
        let known = store.tokens(ids.to_vec(), vec![Resource::Unlock]).await?;
        let events =
            |known: &TokenSnapshot| known.records.iter().filter_map(|of| of.record.unlock().cloned()).collect::<Vec<_>>();
        rows += known.iter().map(|known| tranches(&events(known))).sum::<usize>();
    }
    line(
        "the database, each event in three versions",
        &format!("{:.0} MB", size / 1e6),
        &format!("{} tranches; {:.0} bytes for each", short(rows as f64), size / rows as f64),
    );
    store.close().await?;
    let connection = rusqlite::Connection::open(&path)?;
    let mut table_sizes = connection.prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY 1 ORDER BY 2 DESC LIMIT 16")?;
    let mut table_sizes = table_sizes.query([])?;
    while let Some(row) = table_sizes.next()? {
        let (name, bytes): (String, f64) = (row.get(0)?, row.get(1)?);
        line(&format!("  {name}"), &format!("{:.1} MB", bytes / 1e6), "");
    }
    Ok(())
}
