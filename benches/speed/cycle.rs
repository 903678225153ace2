//! Compares a whole cycle over loopback with fetching and discarding the same bytes with the same client library.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        config::{Environment, load_text},
        cycle::CycleReport,
        schedule::Job,
    },
    model::{clock::Clock, config::Config, supply::Endpoint},
    source::install_crypto_provider,
};
use tokio::task::JoinSet;

use testkit::Database;

use crate::{
    measure::{cpu, line, ms, ratio},
    upstream::Upstream,
};

/// The number of tokens.
pub const TOKENS: usize = 1_000;
/// The number of rounds, of which the best counts.
const ROUNDS: usize = 3;
/// The number of concurrent requests, as configured below.
const IN_FLIGHT: usize = 4;

/// Processor time, except for `wall`.
pub struct Cycles {
    requests: usize,
    bytes: usize,
    pub bare: Duration,
    pub unchanged: Duration,
    /// The duration of the cycle without changes.
    wall: Duration,
    pub repriced: Duration,
    pub first: Duration,
}

pub fn run() -> anyhow::Result<()> {
    let cycles = measure(TOKENS)?;
    let figure = |took| format!("{:.2} times the fetch", ratio(took, cycles.bare));
    line(
        "a bare fetch",
        &format!("{:.0} ms of processor time", ms(cycles.bare)),
        &format!("{} requests, {:.0} MB", cycles.requests, cycles.bytes as f64 / 1e6),
    );
    line(
        "a cycle, all responses unchanged",
        &figure(cycles.unchanged),
        &format!("{:.0} ms of processor time, {:.0} ms in total", ms(cycles.unchanged), ms(cycles.wall)),
    );
    line("a cycle, all prices changed", &figure(cycles.repriced), &format!("{:.0} ms of processor time", ms(cycles.repriced)));
    line("the first cycle", &figure(cycles.first), &format!("{:.0} ms of processor time", ms(cycles.first)));
    Ok(())
}

/// Measures cycles of this number of tokens, and the bare fetch of the same URLs.
pub fn measure(tokens: usize) -> anyhow::Result<Cycles> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(cycles(tokens))
}

/// A config with the starter rules that polls `source` without a rate limit.
pub fn config(source: &str, database: &Database, receiver: &str) -> anyhow::Result<Config> {
    let loaded =
        load_text(None, &config_text(source, database, receiver), &Environment { variables: Vec::new(), credentials: None });
    loaded.config.with_context(|| format!("{:?}", loaded.diagnostics))
}

/// The config text of [`config`].
pub fn config_text(source: &str, database: &Database, receiver: &str) -> String {
    let database = database.setting();
    format!(
        r#"
[source]
base_url = "{source}"
legacy_base_url = "{source}"
requests_per_minute = 60000
history = "9000d"
horizon = "18000d"

[schedule]
token_list = "0 0 5 1 1 *"
upcoming = "off"
unlock_events = "0 10 */6 * * *"
burn = "off"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"

[store]
{database}

[rules]
paths = [{rules:?}]

[http]
listen = "off"

[delivery]
max_per_hour = 1000000

[[receiver]]
name = "ops"
type = "webhook"
url = "{receiver}"

[route]
receivers = ["ops"]
"#,
        rules = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/*.toml"),
    )
}

async fn cycles(tokens: usize) -> anyhow::Result<Cycles> {
    let upstream = Upstream::start(tokens)?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let database = Database::File(folder.path().join("cycle.db"));
    let config = config(&upstream.address, &database, "http://127.0.0.1:9/hook")?;
    let clock = Clock::system();
    let app = App::open(config, folder.path(), clock, Drive::Manual).await?;
    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let (_, first, _) = timed(&app, tokens).await?;
    let paths: Arc<Vec<String>> =
        Arc::new(upstream.paths().await?.iter().map(|path| format!("{}{path}", upstream.address)).collect());

    let (mut bare, mut bytes) = (Duration::MAX, 0);
    for _ in 0..ROUNDS {
        let start = cpu();
        bytes = fetch(&paths).await?;
        bare = bare.min(cpu() - start);
    }
    let (mut unchanged, mut wall) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (report, took, elapsed) = timed(&app, tokens).await?;
        ensure!(report.unchanged as usize == tokens, "{report}");
        unchanged = unchanged.min(took);
        wall = wall.min(elapsed);
    }
    let mut repriced = Duration::MAX;
    for _ in 0..ROUNDS {
        upstream.reprice().await?;
        let (report, took, _) = timed(&app, tokens).await?;
        ensure!(
            report.fresh as usize == tokens && report.changes.is_empty(),
            "{report}: {:#?}",
            report.changes.iter().take(3).collect::<Vec<_>>()
        );
        repriced = repriced.min(took);
    }
    app.close().await?;
    Ok(Cycles { requests: paths.len(), bytes, bare, unchanged, wall, repriced, first })
}

/// Runs a cycle of this number of tokens. Returns its report, processor time, and duration.
pub async fn timed(app: &App, tokens: usize) -> anyhow::Result<(CycleReport, Duration, Duration)> {
    let (start, began) = (cpu(), std::time::Instant::now());
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.requested as usize >= tokens && report.failed.is_empty(), "{report}: {:?}", report.failed.first());
    Ok((report, cpu() - start, began.elapsed()))
}

/// Fetches each URL once, several at a time, and returns the number of bytes.
async fn fetch(paths: &Arc<Vec<String>>) -> anyhow::Result<usize> {
    let client = reqwest::Client::builder().build()?;
    let mut tasks = JoinSet::new();
    for worker in 0..IN_FLIGHT {
        let (client, paths) = (client.clone(), paths.clone());
        tasks.spawn(async move {
            let mut bytes = 0;
            for path in paths.iter().skip(worker).step_by(IN_FLIGHT) {
                bytes += client.get(path).send().await?.error_for_status()?.bytes().await?.len();
            }
            Ok::<usize, reqwest::Error>(bytes)
        });
    }
    let mut bytes = 0;
    while let Some(done) = tasks.join_next().await {
        bytes += done??;
    }
    Ok(bytes)
}
