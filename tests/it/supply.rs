//! Every figure of coming supply, compared with a recomputation that reads only the responses of the data service
//! (`tests/supply/recompute.py`), for all bundled tokens at random times.

use std::{io::Write, process::Command};

use chrono::{TimeDelta, Timelike};
use cliffwatch::daemon::app::App;
use cliffwatch::model::{clock::Clock, supply::Timestamp};
use cliffwatch::service::{self as serve, AccessPolicy, Options, Service};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::it::support::{open, time};

/// The number of random times. `CLIFFWATCH_SUPPLY_TIMES` replaces it.
const TIMES: usize = 6;

/// The first and the last random time. Bundled schedules have unlocks, rate changes, and ends in all of it.
const TIMES_BETWEEN: (&str, &str) = ("2025-11-10T00:00:00Z", "2027-06-30T00:00:00Z");

async fn served() -> (std::net::SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    (listener.local_addr().expect("bound"), listener)
}

/// Returns a random instant, every second one a midnight.
fn random_time(random: &mut fastrand::Rng, round: usize) -> Timestamp {
    let (first, last) = (time(TIMES_BETWEEN.0), time(TIMES_BETWEEN.1));
    let at = first + TimeDelta::seconds(random.i64(0..(last - first).num_seconds()));
    if round.is_multiple_of(2) { at - TimeDelta::seconds(i64::from(at.num_seconds_from_midnight())) } else { at }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_equals_an_independent_recomputation() {
    if Command::new("python3").arg("--version").output().is_err() {
        let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!is_required, "python3 is missing");
        // Write directly to stderr, because the harness hides the output of passing tests.
        writeln!(std::io::stderr(), "SKIPPED: the recomputation of coming supply needs python3").ok();
        return;
    }
    cliffwatch::source::install_crypto_provider();
    let times = std::env::var("CLIFFWATCH_SUPPLY_TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(TIMES);
    let mut random = fastrand::Rng::with_seed(0x5077);
    let mut failed = Vec::new();
    for round in 0..times {
        let now = random_time(&mut random, round);
        if let Err(differences) = compare(now).await {
            failed.push(format!("{now}:\n{differences}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Polls all bundled tokens with a new daemon at `now`. Returns the differences that the recomputation found.
async fn compare(now: Timestamp) -> Result<(), String> {
    let (clock, ending) = (Clock::manual(now), CancellationToken::new());
    let options = Options { access: AccessPolicy::Open, clock: clock.clone(), ..Options::default() };
    let service = Service::in_memory(options).expect("a service");
    service.import(serve::bundled(), |_| {}).expect("the bundled schedules");
    let (source, listener) = served().await;
    tokio::spawn(serve::serve(listener, service.legacy_router(), ending.clone().cancelled_owned()));
    // Released again: the daemon reports the port that it binds only in its log.
    let (pages, free) = served().await;
    drop(free);
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("cliffwatch.toml");
    let text = format!(
        "[source]\nbase_url = \"http://{source}\"\nlegacy_base_url = \"http://{source}\"\nrequests_per_minute = 60000\n\
         [watch]\ntokens = [\"*\"]\n[store]\npath = \"test.db\"\n[rules]\npaths = []\n[http]\nlisten = \"{pages}\"\n\
         [[receiver]]\nname = \"desk\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\ndigest = {{ at = \"08:00\" }}\n\
         [route]\nreceivers = [\"desk\"]\n"
    );
    std::fs::write(&config, text).expect("written");
    let loaded = cliffwatch::daemon::config::load(Some(&config), &cliffwatch::daemon::config::Environment::default());
    let app: App = open(&loaded.config.expect("a config"), folder.path(), &clock).await;
    for job in app.jobs() {
        app.tick(job).await.expect("a cycle");
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, started) = tokio::sync::oneshot::channel();
    let serve_web = cliffwatch::web::serve;
    let running = tokio::spawn(app.run(serve_web, async move { drop(stopped.await) }, move |_| ready.send(()).expect("waits")));
    started.await.expect("started");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/supply/recompute.py");
    let arguments = [script, &format!("http://{source}"), &format!("http://{pages}"), &now.to_rfc3339()].map(str::to_owned);
    let run = move || Command::new("python3").args(arguments).output().expect("python3 runs");
    let output = tokio::task::spawn_blocking(run).await.expect("ended");
    stop.send(()).expect("waits");
    running.await.expect("ended").expect("stopped");
    ending.cancel();
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}
