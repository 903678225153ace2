//! Measures ten thousand tokens with a million tranches: the start of the real binary, its memory in all phases, and its cycles.
//!
//! The database is created once by polling the made-up source, and stored in `target/tmp/scale` for later runs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::ensure;
use axum::{Router, http::StatusCode, routing::post};
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        schedule::Job,
    },
    model::{
        clock::Clock,
        rows::{DeliveryState, OutboxFilter},
        supply::Endpoint,
    },
    service as serve,
    source::install_crypto_provider,
};
use tokio::net::TcpListener;

use testkit::Database;

use crate::{
    cycle::{config, config_text},
    made::{Schedules, TRANCHES_EACH, tranches},
    measure::{cpu, line, ms},
    process::Daemon,
    through::{self, World},
    upstream::Upstream,
};

const TOKENS: usize = 10_000;
/// Identifies the contents of the database. A change recreates it.
const RECIPE: &str = "10000 tokens, 2";
/// The number of starts, of which the best counts.
const STARTS: usize = 3;

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure_scale())
}

async fn measure_scale() -> anyhow::Result<()> {
    let upstream = Upstream::start(TOKENS)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(async || StatusCode::NO_CONTENT));
    tokio::spawn(serve::serve(listener, router, std::future::pending()));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scale");
    let database = folder.join("scale.db");
    make(&folder, &database, &upstream, &receiver).await?;

    let quiet = folder.join("quiet.toml");
    let text = config_text(&upstream.address, &Database::File(database.clone()), &receiver);
    fs::write(&quiet, text.replace("\"0 10 */6 * * *\"", "\"off\""))?;
    let mut ready = Duration::MAX;
    for _ in 0..STARTS {
        let mut daemon = Daemon::start(&quiet, &folder)?;
        ready = ready.min(daemon.ready);
        daemon.stop()?;
    }
    line("from exec to READY", &format!("{:.0} ms", ms(ready)), &format!("best of {STARTS}"));
    // A separate source, because its prices change.
    let other = Upstream::start(TOKENS)?;
    let world = World { upstream: &other, receiver: &receiver, tokens: TOKENS, folder: folder.with_file_name("through") };
    through::run(&world).await?;
    drop(other);

    let config = config(&upstream.address, &Database::File(database), &receiver)?;
    let app = App::open(config, &folder, Clock::system(), Drive::Manual).await?;
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Evaluate).await?;
    line(
        "the first evaluation, of all upcoming events",
        &format!("{:.0} ms", ms(began.elapsed())),
        &format!("{:.0} ms of processor time; {report}", ms(cpu() - begun)),
    );
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Evaluate).await?;
    line(
        "the next evaluation",
        &format!("{:.1} ms", ms(began.elapsed())),
        &format!("{:.1} ms of processor time; {report}", ms(cpu() - begun)),
    );
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.unchanged as usize == TOKENS, "{report}");
    line(
        "a poll of all tokens, unchanged",
        &format!("{:.1} s", began.elapsed().as_secs_f64()),
        &format!("{:.1} s of processor time", (cpu() - begun).as_secs_f64()),
    );
    for (what, took) in [
        ("planning a poll", timed(app.store().plan_tokens(Endpoint::UnlockEvents, Clock::system().now())).await?),
        ("the gauges, read every ten seconds", timed(app.store().gauges()).await?),
        ("the counts of the status page", timed(app.store().counts()).await?),
    ] {
        line(what, &format!("{:.1} ms", ms(took)), "");
    }
    app.close().await?;
    Ok(())
}

/// Returns the duration of a read.
async fn timed<T, E: std::error::Error + Send + Sync + 'static>(
    read: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    read.await?;
    Ok(start.elapsed())
}

/// Creates the database by polling all feeds of the source once.
async fn make(folder: &Path, database: &Path, upstream: &Upstream, receiver: &str) -> anyhow::Result<()> {
    let marker = folder.join("recipe");
    if fs::read_to_string(&marker).is_ok_and(|recipe| recipe == RECIPE) {
        let size = fs::metadata(database)?.len();
        line("the database", &format!("{:.0} MB", size as f64 / 1e6), "from an earlier run");
        return Ok(());
    }
    fs::remove_dir_all(folder).ok();
    fs::create_dir_all(folder)?;
    let schedules = Schedules::read()?;
    let rows: usize = (0..TOKENS).map(|number| tranches(&schedules.events(number, 1.0))).sum();
    let app = App::open(
        config(&upstream.address, &Database::File(database.to_owned()), receiver)?,
        folder,
        Clock::system(),
        Drive::Manual,
    )
    .await?;
    let began = Instant::now();
    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.fresh as usize == TOKENS, "{report}");
    let took = began.elapsed();
    app.tick(Job::Evaluate).await?;
    // Drop the thousands of deliveries of the first evaluation, which are not measured.
    loop {
        let filter = OutboxFilter { states: vec![DeliveryState::Due], limit: 1_000, ..OutboxFilter::default() };
        let due: Vec<_> = app.store().outbox(filter).await?.into_iter().map(|row| row.id).collect();
        if due.is_empty() || app.store().drop_deliveries(due).await? == 0 {
            break;
        }
    }
    app.close().await?;
    let size = fs::metadata(database)?.len();
    line(
        "the database",
        &format!("{:.0} MB", size as f64 / 1e6),
        &format!("{TOKENS} tokens, {rows} tranches ({TRANCHES_EACH} each); first poll {:.0} s; {report}", took.as_secs_f64()),
    );
    fs::write(marker, RECIPE)?;
    Ok(())
}
