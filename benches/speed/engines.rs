//! Measures the same work on both database engines: cycles, deliveries, and copies of the large database.
//!
//! `CLIFFWATCH_TEST_POSTGRES=postgres://user@host:port/database` is the server; `tests/postgres/run cargo bench --bench speed -- scale
//! space engines` starts one. Without a server, only SQLite is measured. Compare wall-clock times, because the processor time of the
//! server is not included.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use axum::{Router, routing::post};
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        database_url::parse_database,
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
use testkit::{Database, create_schema};
use tokio::net::TcpListener;

use crate::{
    cycle::{TOKENS, config, timed},
    deliver::{Sink, alerts, commit, idle},
    measure::{line, ms, rate, short},
    space,
    upstream::Upstream,
};

/// The number of rounds, of which the best counts.
const ROUNDS: usize = 3;
/// The number of messages per round. A manually driven outbox sends them one after another.
const MESSAGES: usize = 200;

/// Creates an empty database on each available engine, with files in `folder`.
fn databases(folder: &Path) -> Vec<(&'static str, Database)> {
    let server = create_schema().map(|url| ("PostgreSQL", Database::Server(url)));
    [("SQLite", Database::File(folder.join("engines.db")))].into_iter().chain(server).collect()
}

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        for (engine, database) in databases(folder.path()) {
            println!(" {engine}");
            measure_work(&database, folder.path()).await?;
        }
        if let Some(url) = create_schema() {
            return measure_copies(&url, folder.path()).await;
        }
        println!(" no server is configured: PostgreSQL and copies are not measured");
        Ok(())
    })
}

/// Measures cycles and deliveries.
async fn measure_work(database: &Database, folder: &Path) -> anyhow::Result<()> {
    let sink = Sink::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(Sink::take)).with_state(sink.clone());
    tokio::spawn(serve::serve(listener, router, std::future::pending()));
    let upstream = Upstream::start(TOKENS)?;
    let clock = Clock::system();
    let app = App::open(config(&upstream.address, database, &receiver)?, folder, clock.clone(), Drive::Manual).await?;

    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let (_, first, first_wall) = timed(&app, TOKENS).await?;
    let (mut unchanged, mut unchanged_wall) = (Duration::MAX, Duration::MAX);
    let (mut repriced, mut repriced_wall) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (report, took, wall) = timed(&app, TOKENS).await?;
        ensure!(report.unchanged as usize == TOKENS, "{report}");
        (unchanged, unchanged_wall) = (unchanged.min(took), unchanged_wall.min(wall));
    }
    for _ in 0..ROUNDS {
        upstream.reprice().await?;
        let (report, took, wall) = timed(&app, TOKENS).await?;
        ensure!(report.fresh as usize == TOKENS && report.changes.is_empty(), "{report}");
        (repriced, repriced_wall) = (repriced.min(took), repriced_wall.min(wall));
    }
    let cycle = |what: &str, took: Duration, wall: Duration| {
        line(what, &format!("{:.0} ms", ms(wall)), &format!("{:.0} ms of our processor time; {TOKENS} tokens", ms(took)));
    };
    cycle("the first cycle", first, first_wall);
    cycle("a cycle, all responses unchanged", unchanged, unchanged_wall);
    cycle("a cycle, all prices changed", repriced, repriced_wall);

    // Drop the deliveries of the cycles before measuring.
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
        "through the outbox, one after another",
        &format!("{} per second", short(rate(MESSAGES, took))),
        &format!("{MESSAGES} messages, from one commit of all alerts until all deliveries are recorded"),
    );
    app.close().await?;
    Ok(())
}

/// Measures copies of the large database to the server and back.
async fn measure_copies(url: &str, folder: &Path) -> anyhow::Result<()> {
    let source = space::corrected().await?;
    let size = source.metadata()?.len() as f64 / 1e6;
    let place = |text: &str| parse_database(text, None).map_err(|problem| anyhow::anyhow!("{problem:?}"));
    let file = place(source.to_str().context("a path")?)?;
    let back = folder.join("back.db");
    let (there, back) = (place(url)?, place(back.to_str().context("a path")?)?);
    println!(" `store copy` of a million tranches, each event in three versions: {size:.0} MB");
    for (what, from, to) in [("from SQLite to PostgreSQL", &file, &there), ("from PostgreSQL to SQLite", &there, &back)] {
        let (from, to) = (from.clone(), to.clone());
        let start = Instant::now();
        let now = Clock::system().now();
        let tables = tokio::task::spawn_blocking(move || Store::copy(&from, &to, "a bench", now, &mut |_| {})).await??;
        let rows: u64 = tables.iter().map(|table| table.rows).sum();
        line(what, &format!("{:.0} s", start.elapsed().as_secs_f64()), &format!("{} rows, compared", short(rows as f64)));
    }
    Ok(())
}
