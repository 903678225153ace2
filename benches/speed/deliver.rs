//! Compares deliveries through the durable outbox to a receiver on loopback with posting the same bodies without storing anything.

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

use testkit::Database;

use crate::{
    cycle::config,
    made::Schedules,
    measure::{line, ms, percentile, rate, ratio, short},
};

/// The number of deliveries per round.
const COUNT: usize = 2_000;
/// The number of alerts in the steady stream, which measures latency.
const STREAMED: usize = 600;
/// The number of streamed alerts per second.
const STREAM_RATE: usize = 100;
/// The number of rounds, of which the best counts.
const ROUNDS: usize = 3;
/// The number of concurrent requests: the default of `[delivery] concurrency`.
const IN_FLIGHT: usize = 4;
/// The time limit of each step.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A receiver that records the arrival time of each body.
#[derive(Clone, Default)]
pub struct Sink(Arc<(Mutex<Vec<ReceivedMessage>>, Notify)>);

/// The arrival time and the body of a message.
type ReceivedMessage = (Instant, Bytes);

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
                    let mut received = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
                    if received.len() >= count {
                        return std::mem::take(&mut *received);
                    }
                }
                woken.await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, all).await.context("the deliveries did not arrive in time")
    }
}

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure_deliveries())
}

async fn measure_deliveries() -> anyhow::Result<()> {
    let sink = Sink::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(Sink::take)).with_state(sink.clone());
    tokio::spawn(serve::serve(listener, router, std::future::pending()));

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let config = config("http://127.0.0.1:9", &Database::File(folder.path().join("deliver.db")), &address)?;
    let clock = Clock::system();
    let app = App::open(config, folder.path(), clock.clone(), Drive::Schedule).await?;
    let mut alerts = alerts(&app, ROUNDS * COUNT + STREAMED)?;

    let (mut durable, mut bare) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let batch = alerts.split_off(alerts.len() - COUNT);
        let start = Instant::now();
        commit(&app, &clock, batch).await?;
        let received = sink.wait(COUNT).await?;
        // Wait until all deliveries are recorded.
        idle(&app).await?;
        durable = durable.min(start.elapsed());
        bare = bare.min(post_only(&address, &sink, received.into_iter().map(|(_, body)| body).collect()).await?);
    }
    let mut latencies = stream(&app, &clock, &sink, alerts).await?;
    line(
        "posting only",
        &format!("{} per second", short(rate(COUNT, bare))),
        &format!("{COUNT} messages, {IN_FLIGHT} at a time"),
    );
    line(
        "through the outbox",
        &format!("{} per second", short(rate(COUNT, durable))),
        &format!("{:.2} times as long; from one commit of all alerts until all deliveries are recorded", ratio(durable, bare)),
    );
    line(
        "from a commit to the receiver",
        &format!("p50 {:.1} ms", ms(percentile(&mut latencies, 0.5))),
        &format!("p99 {:.1} ms, of {STREAMED} at {STREAM_RATE} per second", ms(percentile(&mut latencies, 0.99))),
    );
    app.close().await?;
    Ok(())
}

/// Posts bodies without storing anything. Returns the time until all have arrived.
async fn post_only(address: &str, sink: &Sink, bodies: Vec<Bytes>) -> anyhow::Result<Duration> {
    let client = reqwest::Client::builder().build()?;
    let start = Instant::now();
    let workers = (0..IN_FLIGHT).map(|worker| {
        let (client, address) = (client.clone(), address.to_owned());
        let bodies: Vec<Bytes> = bodies.iter().skip(worker).step_by(IN_FLIGHT).cloned().collect();
        tokio::spawn(async move {
            for body in bodies {
                client.post(&address).header("content-type", "application/json").body(body).send().await?.error_for_status()?;
            }
            Ok::<(), reqwest::Error>(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    sink.wait(bodies.len()).await?;
    Ok(start.elapsed())
}

/// Commits single alerts at a steady rate. Returns the delays from each commit to the arrival.
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
        let notified = body.pointer("/data/alerts").and_then(serde_json::Value::as_array).context("a message without alerts")?;
        for alert in notified {
            let id = alert.get("id").and_then(serde_json::Value::as_str).context("an alert without an id")?;
            latencies.push(at.saturating_duration_since(*committed.get(id).context("an unknown alert")?));
        }
    }
    ensure!(latencies.len() == committed.len(), "{} of {} alerts arrived", latencies.len(), committed.len());
    Ok(latencies)
}

/// Waits until the outbox is empty.
pub async fn idle(app: &App) -> anyhow::Result<()> {
    let done = async {
        while !app.store().pending_receivers().await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    };
    tokio::time::timeout(WAIT_TIMEOUT, done).await.context("the deliveries were not recorded")?
}

pub async fn commit(app: &App, clock: &Clock, alerts: Vec<(Alert, Notification)>) -> anyhow::Result<()> {
    let (alerts, notifications) = alerts.into_iter().unzip();
    app.store().commit(Commit { at: clock.now(), alerts, notifications, ..Commit::default() }).await?;
    app.deps().outbox.wake();
    Ok(())
}

/// Creates alerts with the starter rules on made-up tokens.
pub fn alerts(app: &App, count: usize) -> anyhow::Result<Vec<(Alert, Notification)>> {
    let now: Timestamp = "2025-06-01T00:00:00Z".parse()?;
    let schedules = Schedules::read()?;
    let active = app.deps().active();
    let mut made = Vec::with_capacity(count);
    for number in 0.. {
        if made.len() >= count {
            break;
        }
        ensure!(number < 100 * count, "the rules fire too few alerts");
        let token = Token { item: Schedules::item(number)?, ..Token::unknown(Schedules::id(number)) };
        let records = apply(&[], &Diff { put: baseline_unlocks(&[], &schedules.events(number, 1.0), now), ..Diff::default() });
        let facts = TokenFacts {
            token: &token,
            is_watched: true,
            records: &records,
            linear: None,
            resources: &[Resource::Unlock],
            changes: &[],
            corrections: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        };
        let transitions = evaluate(&[facts], &active.context(now), &mut Limits::default());
        let openings = transitions.openings().len();
        let decision = transitions.assign_episodes(&vec![0; openings]);
        for notification in decision.notifications {
            let alert =
                decision.alerts.iter().find(|alert| alert.id == notification.alert).context("a notification without an alert")?;
            made.push((alert.clone(), notification));
        }
    }
    made.truncate(count);
    Ok(made)
}
