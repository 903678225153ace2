//! Alerts through the durable outbox to a receiver on loopback, beside a loop that posts the same bodies and remembers nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use cliffwatch::{
    daemon::app::{App, Drive},
    engine::{
        diff::{Diff, apply, baseline_unlocks},
        evaluate::{Limits, TokenFacts, evaluate},
    },
    model::{
        alert::{Alert, Notification},
        clock::Clock,
        rows::Commit,
        supply::{Resource, Timestamp, Token},
    },
    service as serve,
    source::install_crypto_provider,
};
use tokio::{net::TcpListener, sync::Notify};

use crate::{
    cycle::config,
    engines::Database,
    made::Schedules,
    measure::{line, ms, percentile, rate, ratio, short},
};

/// Deliveries in one go.
const COUNT: usize = 2_000;
/// Alerts of the steady stream, for their latency, and how many of them come in a second.
const STREAMED: usize = 600;
const STREAM_RATE: usize = 100;
/// Goes of each kind; the best counts.
const ROUNDS: usize = 3;
/// Posts under way at once: the default of `[delivery] concurrency`.
const IN_FLIGHT: usize = 4;
/// Longer than this no step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that keeps when each body came.
#[derive(Clone, Default)]
pub struct Sink(Arc<(Mutex<Vec<IngestResult>>, Notify)>);

/// When a message came, and its body.
type IngestResult = (Instant, Bytes);

impl Sink {
    pub async fn take(State(sink): State<Sink>, body: Bytes) -> StatusCode {
        sink.0.0.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), body));
        sink.0.1.notify_one();
        StatusCode::NO_CONTENT
    }

    /// Waits for `count` bodies and takes them.
    pub async fn wait(&self, count: usize) -> anyhow::Result<Vec<(Instant, Bytes)>> {
        let all = async {
            loop {
                let woken = self.0.1.notified();
                {
                    let mut came = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
                    if came.len() >= count {
                        return std::mem::take(&mut *came);
                    }
                }
                woken.await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.context("the deliveries did not come")
    }
}

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(delivered())
}

async fn delivered() -> anyhow::Result<()> {
    let sink = Sink::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(Sink::take)).with_state(sink.clone());
    tokio::spawn(serve::serve(listener, router, std::future::pending()));

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let config = config("http://127.0.0.1:9", &Database::File(folder.path().join("deliver.db")), &address)?;
    let clock = Clock::system();
    let app = App::open(config, folder.path(), clock.clone(), Drive::Itself).await?;
    let mut alerts = alerts(&app, ROUNDS * COUNT + STREAMED)?;

    let (mut durable, mut bare) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let batch = alerts.split_off(alerts.len() - COUNT);
        let start = Instant::now();
        commit(&app, &clock, batch).await?;
        let came = sink.wait(COUNT).await?;
        // Until what was sent is also recorded, it is not done.
        idle(&app).await?;
        durable = durable.min(start.elapsed());
        bare = bare.min(post_alone(&address, &sink, came.into_iter().map(|(_, body)| body).collect()).await?);
    }
    let mut latencies = stream(&app, &clock, &sink, alerts).await?;
    line("posting alone", &format!("{} a second", short(rate(COUNT, bare))), &format!("{COUNT} messages, {IN_FLIGHT} at a time"));
    line(
        "through the outbox",
        &format!("{} a second", short(rate(COUNT, durable))),
        &format!("{:.2} times as long; from one commit of all to all recorded as delivered", ratio(durable, bare)),
    );
    line(
        "from a commit to the receiver",
        &format!("p50 {:.1} ms", ms(percentile(&mut latencies, 0.5))),
        &format!("p99 {:.1} ms, of {STREAMED} at {STREAM_RATE} a second", ms(percentile(&mut latencies, 0.99))),
    );
    app.close().await?;
    Ok(())
}

/// Posts bodies and remembers nothing; how long it takes until all have come.
async fn post_alone(address: &str, sink: &Sink, bodies: Vec<Bytes>) -> anyhow::Result<Duration> {
    let client = reqwest::Client::builder().build()?;
    let start = Instant::now();
    let lanes = (0..IN_FLIGHT).map(|lane| {
        let (client, address) = (client.clone(), address.to_owned());
        let bodies: Vec<Bytes> = bodies.iter().skip(lane).step_by(IN_FLIGHT).cloned().collect();
        tokio::spawn(async move {
            for body in bodies {
                client.post(&address).header("content-type", "application/json").body(body).send().await?.error_for_status()?;
            }
            Ok::<(), reqwest::Error>(())
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await??;
    }
    sink.wait(bodies.len()).await?;
    Ok(start.elapsed())
}

/// Commits alerts at a steady rate, one at a time, and answers how long after the end of its commit each came to the receiver.
async fn stream(app: &App, clock: &Clock, sink: &Sink, alerts: Vec<(Alert, Notification)>) -> anyhow::Result<Vec<Duration>> {
    let mut beat = tokio::time::interval(Duration::from_secs(1) / u32::try_from(STREAM_RATE)?);
    let mut committed: HashMap<String, Instant> = HashMap::with_capacity(alerts.len());
    for alert in alerts {
        beat.tick().await;
        let id = alert.0.id.as_str().to_owned();
        commit(app, clock, vec![alert]).await?;
        committed.insert(id, Instant::now());
    }
    let mut latencies = Vec::with_capacity(committed.len());
    for (at, body) in sink.wait(committed.len()).await? {
        let body: serde_json::Value = serde_json::from_slice(&body)?;
        let told = body.pointer("/data/alerts").and_then(serde_json::Value::as_array).context("a message tells alerts")?;
        for alert in told {
            let id = alert.get("id").and_then(serde_json::Value::as_str).context("an alert has an id")?;
            latencies.push(at.saturating_duration_since(*committed.get(id).context("an alert of the stream")?));
        }
    }
    ensure!(latencies.len() == committed.len(), "{} alerts came of {}", latencies.len(), committed.len());
    Ok(latencies)
}

/// Waits until nothing is undelivered.
pub async fn idle(app: &App) -> anyhow::Result<()> {
    let done = async {
        while !app.store().pending_receivers().await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, done).await.context("the deliveries were not recorded")?
}

pub async fn commit(app: &App, clock: &Clock, alerts: Vec<(Alert, Notification)>) -> anyhow::Result<()> {
    let (alerts, notifications) = alerts.into_iter().unzip();
    app.store().commit(Commit { at: clock.now(), alerts, notifications, ..Commit::default() }).await?;
    app.deps().outbox.wake();
    Ok(())
}

/// Alerts as the starter rules raise them over made-up tokens.
pub fn alerts(app: &App, count: usize) -> anyhow::Result<Vec<(Alert, Notification)>> {
    let now: Timestamp = "2025-06-01T00:00:00Z".parse()?;
    let schedules = Schedules::read()?;
    let active = app.deps().active();
    let mut made = Vec::with_capacity(count);
    for number in 0.. {
        if made.len() >= count {
            break;
        }
        ensure!(number < 100 * count, "the rules raise too few alerts");
        let token = Token { item: Schedules::item(number)?, ..Token::unknown(Schedules::id(number)) };
        let records = apply(&[], &Diff { put: baseline_unlocks(&[], &schedules.events(number, 1.0), now), ..Diff::default() });
        let facts = TokenFacts {
            token: &token,
            is_watched: true,
            records: &records,
            resources: &[Resource::Unlock],
            changes: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        };
        let draft = evaluate(&[facts], &active.context(now), &mut Limits::default());
        let openings = draft.openings().len();
        let verdict = draft.assign_episodes(&vec![0; openings]);
        for notice in verdict.notifications {
            let alert = verdict.alerts.iter().find(|alert| alert.id == notice.alert).context("a notice has an alert")?;
            made.push((alert.clone(), notice));
        }
    }
    made.truncate(count);
    Ok(made)
}
