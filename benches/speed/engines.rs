//! The same work on each engine that keeps the data: cycles, deliveries, and copies of the large database from one to the other.
//!
//! `CLIFFWATCH_TEST_POSTGRES=postgres://user@host:port/database` names a server; `tests/postgres/run cargo bench --bench speed --
//! scale space engines` starts one. Without it there are the rows of SQLite alone. The server's own processor time is not ours: there
//! the clock counts.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use axum::{Router, routing::post};
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        place::place_named,
        schedule::Job,
    },
    model::{
        clock::Clock,
        rows::{DeliveryState, OutboxFilter},
        supply::Endpoint,
    },
    service as serve,
    source::install_crypto_provider,
    store::Store,
};
use tokio::net::TcpListener;

use crate::{
    cycle::{TOKENS, config, timed},
    deliver::{Sink, alerts, commit, idle},
    measure::{line, ms, rate, short},
    space,
    upstream::Upstream,
};

/// Rounds of each kind; the best counts.
const ROUNDS: usize = 3;
/// Messages of one go: turned by hand, the outbox sends one after the other.
const MESSAGES: usize = 200;

/// Where a bench keeps its data.
pub enum Database {
    File(PathBuf),
    /// The address of a schema of its own.
    Server(String),
}

impl Database {
    /// The line of `[store]` that names it.
    pub fn setting(&self) -> String {
        match self {
            Self::File(path) => format!("path = {path:?}"),
            Self::Server(url) => format!("url = {url:?}"),
        }
    }

    /// An empty one on each engine that there is; files lie in `folder`.
    fn each(folder: &Path) -> anyhow::Result<Vec<(&'static str, Self)>> {
        let mut all = vec![("SQLite", Self::File(folder.join("engines.db")))];
        if let Some(url) = server() {
            all.push(("PostgreSQL", Self::Server(schema(&url)?)));
        }
        Ok(all)
    }
}

/// The server that the benches may use.
fn server() -> Option<String> {
    std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// The address of an empty schema on the server.
fn schema(url: &str) -> anyhow::Result<String> {
    let schema = format!("bench_{:x}", fastrand::u64(..));
    let made = Command::new("psql").args([url, "-X", "-q", "-c", &format!("CREATE SCHEMA {schema}")]).status()?;
    ensure!(made.success(), "no schema on {url}");
    Ok(format!("{url}?options=-csearch_path%3D{schema}"))
}

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        for (engine, database) in Database::each(folder.path())? {
            println!(" {engine}");
            worked(&database, folder.path()).await?;
        }
        if let Some(url) = server() {
            return copied(&url, folder.path()).await;
        }
        println!(" no server is named: nothing is copied, and nothing was run on one");
        Ok(())
    })
}

/// Cycles and deliveries.
async fn worked(database: &Database, folder: &Path) -> anyhow::Result<()> {
    let sink = Sink::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(Sink::take)).with_state(sink.clone());
    tokio::spawn(serve::serve(listener, router, std::future::pending()));
    let upstream = Upstream::start(TOKENS)?;
    let clock = Clock::system();
    let app = App::open(config(&upstream.address, database, &receiver)?, folder, clock.clone(), Drive::Crank).await?;

    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let (_, first, first_wall) = timed(&app).await?;
    let (mut unchanged, mut unchanged_wall) = (Duration::MAX, Duration::MAX);
    let (mut moved, mut moved_wall) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (report, took, wall) = timed(&app).await?;
        ensure!(report.unchanged as usize == TOKENS, "{report}");
        (unchanged, unchanged_wall) = (unchanged.min(took), unchanged_wall.min(wall));
    }
    for _ in 0..ROUNDS {
        upstream.reprice().await?;
        let (report, took, wall) = timed(&app).await?;
        ensure!(report.fresh as usize == TOKENS && report.changes.is_empty(), "{report}");
        (moved, moved_wall) = (moved.min(took), moved_wall.min(wall));
    }
    let cycle = |what: &str, took: Duration, wall: Duration| {
        line(what, &format!("{:.0} ms", ms(wall)), &format!("{:.0} ms of our processor; {TOKENS} tokens", ms(took)));
    };
    cycle("the first cycle of all", first, first_wall);
    cycle("a cycle, all answers unchanged", unchanged, unchanged_wall);
    cycle("a cycle, all prices moved", moved, moved_wall);

    // What the cycles told is out of the way before deliveries are timed.
    let filter = OutboxFilter { states: vec![DeliveryState::Due], limit: 10_000, ..OutboxFilter::default() };
    let due = app.store().outbox(filter).await?.into_iter().map(|row| row.id).collect();
    app.store().drop_deliveries(due).await?;
    let mut alerts = alerts(&app, ROUNDS * MESSAGES)?;
    let mut took = Duration::MAX;
    for _ in 0..ROUNDS {
        let batch = alerts.split_off(alerts.len() - MESSAGES);
        let start = Instant::now();
        commit(&app, &clock, batch).await?;
        app.deliver().await;
        sink.wait(MESSAGES).await?;
        idle(&app).await?;
        took = took.min(start.elapsed());
    }
    line(
        "through the outbox, one after the other",
        &format!("{} a second", short(rate(MESSAGES, took))),
        &format!("{MESSAGES} messages, from one commit of all to all recorded as delivered"),
    );
    app.close().await?;
    Ok(())
}

/// The large database to the server and back.
async fn copied(url: &str, folder: &Path) -> anyhow::Result<()> {
    let source = space::corrected().await?;
    let size = source.metadata()?.len() as f64 / 1e6;
    let server = schema(url)?;
    let place = |text: &str| place_named(text, None).map_err(|problem| anyhow::anyhow!("{problem:?}"));
    let file = place(source.to_str().context("a path")?)?;
    let back = folder.join("back.db");
    let (there, back) = (place(&server)?, place(back.to_str().context("a path")?)?);
    println!(" `store copy` of a million tranches, each event in three versions: {size:.0} MB");
    for (what, from, to) in [("from SQLite to PostgreSQL", &file, &there), ("and back", &there, &back)] {
        let (from, to) = (from.clone(), to.clone());
        let start = Instant::now();
        let now = Clock::system().now();
        let tables = tokio::task::spawn_blocking(move || Store::copy(&from, &to, "a bench", now, &mut |_| {})).await??;
        let rows: u64 = tables.iter().map(|table| table.rows).sum();
        line(what, &format!("{:.0} s", start.elapsed().as_secs_f64()), &format!("{} rows, compared", short(rows as f64)));
    }
    Ok(())
}
