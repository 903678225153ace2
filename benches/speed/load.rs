//! Measures the daemon under load, with a year of history: [`READERS`] readers of the heaviest pages and feeds, [`ALERT_RATE`] alerts a
//! second, and polls of all tokens at once. Compares it with the same alerts on a quiet daemon.
//!
//! The daemon and the alerts run in a process of their own, `speed --load …`, so that its memory includes neither readers nor source.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{BufRead, BufReader},
    net::TcpListener as Socket,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use axum::{Router, routing::post};
use chrono::TimeDelta;
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        config::{Environment, load_text},
        schedule::Job,
    },
    model::{
        AlertId, AlertState, Attempt, AttemptOutcome, AttemptRecord, Change, ChangeKind, DeliveryId, DeliveryState,
        alert::{Alert, Notification, notification_id},
        clock::Clock,
        rows::{Commit, OutboxFilter},
        supply::{Endpoint, Record, Resource, Timestamp},
    },
    service as serve,
    source::install_crypto_provider,
    store::{Access, Opening, Store},
    web,
};
use reqwest::StatusCode;
use tokio::{net::TcpListener, task::JoinSet};

use testkit::Database;

use crate::{
    cycle::{config, config_text},
    deliver::{Sink, alerts},
    made::Schedules,
    measure::{line, ms, percentile, ratio},
    process::{ALLOCATOR, Watch},
    upstream::Upstream,
};

/// The option that runs this program as the daemon.
pub const FLAG: &str = "--load";

/// The amount of data.
#[derive(Clone, Copy, Debug)]
struct HistorySize {
    tokens: usize,
    /// The rows of a year.
    changes: usize,
    past_alerts: usize,
    /// The time of one measurement.
    time: Duration,
}

/// The data of a year.
const YEAR: HistorySize = HistorySize { tokens: 2_000, changes: 50_000, past_alerts: 20_000, time: Duration::from_secs(40) };
/// With `CLIFFWATCH_LOAD=small`, for a machine without time.
const SMALL: HistorySize = HistorySize { tokens: 300, changes: 10_000, past_alerts: 3_000, time: Duration::from_secs(25) };

impl HistorySize {
    fn wanted() -> Self {
        if std::env::var("CLIFFWATCH_LOAD").is_ok_and(|size| size == "small") { SMALL } else { YEAR }
    }
}

/// The number of rows per commit.
const BATCH: usize = 1_000;
const READERS: usize = 50;
const ALERT_RATE: u32 = 100;
/// The limits that must hold under load.
const MAX_P99: Duration = Duration::from_millis(100);
const MAX_PEAK_KIB: u64 = 128 * 1024;
/// The watchdog limit. The unit has a longer one.
const WATCHDOG: Duration = Duration::from_secs(20);
/// The time until the last alerts arrive.
const SETTLE_TIME: Duration = Duration::from_secs(120);
const PAGES: [&str; 16] = [
    "/feed.atom?limit=1000",
    "/calendar.ics",
    "/api/v1/changes?limit=10000",
    "/feed.atom?kind=rescheduled,resized&limit=1000",
    "/api/v1/alerts?limit=10000",
    "/api/v1/upcoming?limit=10000",
    "/api/v1/outbox?limit=10000",
    "/api/v1/tokens?limit=10000",
    "/",
    "/?by=share",
    "/tokens",
    "/changes?offset=40000",
    "/alerts",
    "/deliveries",
    "/rules",
    "/metrics",
];

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("load");
        let size = HistorySize::wanted();
        let upstream = Upstream::start(size.tokens)?;
        make(&folder, &upstream, size).await?;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        line("load of the machine before", load.split(' ').next().unwrap_or_default(), "processes, on average of one minute");
        let quiet = measure("quiet", &folder, &upstream, 0, "off").await?;
        let polling = measure("polling", &folder, &upstream, 0, "*/2 * * * * *").await?;
        line("p99, polling to quiet", &format!("{:.1} times", ratio(polling.p99, quiet.p99)), "");
        let loaded = measure("loaded", &folder, &upstream, READERS, "*/2 * * * * *").await?;
        line("p99, loaded to quiet", &format!("{:.1} times", ratio(loaded.p99, quiet.p99)), "");
        ensure!(loaded.p99 <= MAX_P99, "p99 under load is {:.1} ms, more than {} ms", ms(loaded.p99), MAX_P99.as_millis());
        ensure!(loaded.peak_kib <= MAX_PEAK_KIB, "the memory under load is {} KiB, more than {MAX_PEAK_KIB}", loaded.peak_kib);
        ensure!(loaded.watchdog_gap > Duration::ZERO, "the watchdog was never fed");
        ensure!(loaded.watchdog_gap < WATCHDOG, "the watchdog was not fed for {:.1} s", loaded.watchdog_gap.as_secs_f64());
        Ok(())
    })
}

/// The results of one run.
struct LoadResult {
    p99: Duration,
    peak_kib: u64,
    watchdog_gap: Duration,
}

/// Creates the database: a first poll, and then the changes, alerts, and deliveries of a year.
async fn make(folder: &Path, upstream: &Upstream, size: HistorySize) -> anyhow::Result<()> {
    // Identifies the contents of the database.
    let wanted = format!("{size:?}, 3");
    let (marker, database) = (folder.join("recipe"), folder.join("load.db"));
    if fs::read_to_string(&marker).is_ok_and(|recipe| recipe == wanted) {
        return Ok(());
    }
    fs::remove_dir_all(folder).ok();
    fs::create_dir_all(folder)?;
    let config = config(&upstream.address, &Database::File(database.clone()), "http://127.0.0.1:9/hook")?;
    let app = App::open(config, folder, Clock::system(), Drive::Manual).await?;
    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.fresh as usize == size.tokens, "{report}");
    app.tick(Job::Evaluate).await?;
    let templates = alerts(&app, BATCH)?;
    app.close().await?;

    let now = Clock::system().now();
    let store = Store::open(Opening { path: database, access: Access::Own, now }).await?;
    let start = now - TimeDelta::days(364);
    let at = |number: usize, of: usize| {
        start + TimeDelta::days(363) * i32::try_from(number).unwrap_or(0) / i32::try_from(of).unwrap_or(1)
    };
    let schedules = Schedules::read()?;
    for first in (0..size.changes).step_by(BATCH) {
        let changes = (first..first + BATCH).map(|number| change(&schedules, number, size.tokens)).collect();
        store.commit(Commit { at: at(first, size.changes), changes, ..Commit::default() }).await?;
    }
    for first in (0..size.past_alerts).step_by(BATCH) {
        let at = at(first, size.past_alerts);
        let (alerts, notifications) =
            templates.iter().zip(first..).map(|(template, number)| copy(template, &format!("past{number}"), at)).unzip();
        store.commit(Commit { at, alerts, notifications, ..Commit::default() }).await?;
    }
    // Nothing is due, because a backlog would delay the measured alerts.
    loop {
        let filter = OutboxFilter { states: vec![DeliveryState::Due], limit: u32::try_from(BATCH)?, ..OutboxFilter::default() };
        let due = store.delivery_ids(filter).await?;
        if due.is_empty() {
            break;
        }
        store.record_attempts(due.into_iter().map(|id| delivered(id, now)).collect()).await?;
    }
    store.close().await?;
    fs::write(marker, wanted)?;
    Ok(())
}

fn change(schedules: &Schedules, number: usize, tokens: usize) -> Change {
    let token = number % tokens;
    let kind = if number.is_multiple_of(2) { ChangeKind::Rescheduled } else { ChangeKind::Resized };
    let mut change = Change::of(kind, Resource::Unlock, &Schedules::id(token));
    change.summary = format!("unlock number {number} moved by 3 days");
    let events = schedules.events(token, 1.0);
    let record = events.into_iter().nth(number / tokens).map(|event| Record::Unlock(Arc::new(event)));
    (change.old, change.new) = (record.clone(), record);
    change
}

/// Copies an alert and its notification under another id, as one about an event. An alert about a state would be resolved by the next
/// evaluation, which finds no such record, and thousands of them would be a backlog that no daemon has.
fn copy((alert, notification): &(Alert, Notification), id: &str, at: Timestamp) -> (Alert, Notification) {
    let (mut alert, mut notification) = (alert.clone(), notification.clone());
    alert.id = AlertId::from(format!("al_{id}"));
    alert.subject = format!("{}/{id}", alert.subject);
    (alert.state, alert.recheck_at, alert.updated_at) = (AlertState::Event, None, at);
    notification.id = notification_id(&alert.id, "copy");
    notification.alert = alert.id.clone();
    notification.at = at;
    notification.body.id = alert.id.clone();
    (alert, notification)
}

fn delivered(delivery: DeliveryId, at: Timestamp) -> AttemptRecord {
    AttemptRecord {
        delivery,
        attempt: Attempt { at, took_ms: 15, outcome: AttemptOutcome::Accepted, status: Some(200), response: "ok".to_owned() },
        state: DeliveryState::Delivered,
        next_attempt_at: None,
        alerts: Vec::new(),
        notifications: Vec::new(),
    }
}

/// Runs the daemon with readers and a poll schedule, and prints its latency and memory.
async fn measure(
    what: &'static str,
    folder: &Path,
    upstream: &Upstream,
    readers: usize,
    polls: &str,
) -> anyhow::Result<LoadResult> {
    let copied = folder.join("run.db");
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(folder.join(format!("run.db{suffix}"))).ok();
    }
    fs::copy(folder.join("load.db"), &copied)?;
    let (watchdog, address) = (Watchdog::listen(&folder.join("notify"))?, folder.join("notify"));
    let mut child = Command::new(std::env::current_exe()?)
        .args([FLAG.as_ref(), upstream.address.as_ref(), copied.as_os_str(), polls.as_ref()])
        .envs(ALLOCATOR)
        .env("NOTIFY_SOCKET", address)
        .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut daemon_memory = Watch::start(child.id(), "start");
    let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    let mut child = KilledOnDrop(child);
    let web = lines.next().context("the daemon did not start")??;
    daemon_memory.next(what);
    let reading = Reading::start(&web, readers);
    let result = tokio::task::spawn_blocking(move || lines.next().context("no result")).await???;
    let memory = daemon_memory.next("stopping");
    let read = reading.stop()?;
    let gap = watchdog.longest_gap();
    ensure!(child.0.wait()?.success(), "the daemon failed");
    let micros: Vec<u64> = result.split(' ').map(str::parse).collect::<Result<_, _>>().context(result.clone())?;
    let [count, p50, p99, most] = micros.as_slice() else { anyhow::bail!("{result}") };
    let (p50, p99, most) = (Duration::from_micros(*p50), Duration::from_micros(*p99), Duration::from_micros(*most));
    line(
        &format!("{what}: from a commit to the receiver"),
        &format!("p99 {:.1} ms", ms(p99)),
        &format!(
            "p50 {:.1} ms, at most {:.0} ms, of {count} at {ALERT_RATE} per second; watchdog fed every {:.1} s at least",
            ms(p50),
            ms(most),
            gap.as_secs_f64()
        ),
    );
    if readers > 0 {
        line(&format!("{what}: {readers} readers"), &read, "");
    }
    Ok(LoadResult { p99, peak_kib: memory.peak, watchdog_gap: gap })
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Usually it has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Receives the notifications for systemd and measures the time between those for the watchdog.
struct Watchdog {
    longest_gap: Arc<AtomicU64>,
}

impl Watchdog {
    fn listen(address: &Path) -> anyhow::Result<Self> {
        fs::remove_file(address).ok();
        let socket = UnixDatagram::bind(address)?;
        socket.set_read_timeout(Some(WATCHDOG * 3))?;
        let longest_gap = Arc::new(AtomicU64::new(0));
        let gap = longest_gap.clone();
        std::thread::spawn(move || {
            let (mut message, mut last) = ([0; 4096], None::<Instant>);
            while let Ok(length) = socket.recv(&mut message) {
                let text = String::from_utf8_lossy(message.get(..length).unwrap_or_default()).into_owned();
                if text.contains("WATCHDOG=1") {
                    let now = Instant::now();
                    let since = last.replace(now).map_or(Duration::ZERO, |last| now - last);
                    gap.fetch_max(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
            }
        });
        Ok(Self { longest_gap })
    }

    fn longest_gap(&self) -> Duration {
        Duration::from_millis(self.longest_gap.load(Ordering::Relaxed))
    }
}

/// Readers that request pages without a pause. Real readers use other machines, so these have the lowest priority on this one.
struct Reading {
    is_over: Arc<AtomicBool>,
    readers: std::thread::JoinHandle<anyhow::Result<StatusCounts>>,
}

/// The number of responses of each status.
type StatusCounts = BTreeMap<String, usize>;

impl Reading {
    fn start(address: &str, count: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (address, is_ended) = (address.to_owned(), is_over.clone());
        let readers = std::thread::spawn(move || {
            rustix::process::setpriority_process(None, 19)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let read = (0..count).map(|reader| read_pages(address.clone(), reader, is_ended.clone()));
            let counts = runtime.block_on(async { read.collect::<JoinSet<_>>().join_all().await });
            let mut all = StatusCounts::new();
            counts.into_iter().flatten().for_each(|(status, count)| *all.entry(status).or_default() += count);
            Ok(all)
        });
        Self { is_over, readers }
    }

    /// Ends the readers. Returns the number of responses of each status.
    fn stop(self) -> anyhow::Result<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let all = self.readers.join().map_err(|_| anyhow::anyhow!("the readers panicked"))??;
        Ok(all.into_iter().map(|(result, count)| format!("{count} × {result}")).collect::<Vec<_>>().join(", "))
    }
}

/// Requests all pages in turn until `is_over`, beginning with the page number `first`.
async fn read_pages(address: String, first: usize, is_over: Arc<AtomicBool>) -> StatusCounts {
    let client = reqwest::Client::new();
    let mut results = StatusCounts::new();
    for page in PAGES.iter().cycle().skip(first) {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let result = match client.get(format!("{address}{page}")).send().await {
            Ok(response) => {
                let status = response.status();
                let is_expected = status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE;
                match response.text().await {
                    Ok(_) if is_expected => status.as_u16().to_string(),
                    Ok(body) => {
                        eprintln!("{page}: {status}: {}", body.chars().take(2_000).collect::<String>());
                        status.as_u16().to_string()
                    }
                    Err(_) => "broken".to_owned(),
                }
            }
            Err(_) => "failed".to_owned(),
        };
        *results.entry(result).or_default() += 1;
    }
    results
}

/// Runs the daemon with a stream of alerts. Prints the address of the pages, and then the latencies in microseconds.
pub fn serve(args: &[String]) -> anyhow::Result<()> {
    install_crypto_provider();
    let [source, database, polls] = args else { anyhow::bail!("expected source, database, and poll schedule") };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(stream_alerts(source, Path::new(database), polls))
}

async fn stream_alerts(source: &str, database: &Path, polls: &str) -> anyhow::Result<()> {
    let sink = Sink::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(Sink::take)).with_state(sink.clone());
    tokio::spawn(serve::serve(listener, router, std::future::pending()));
    let port = Socket::bind("127.0.0.1:0")?.local_addr()?.port();
    let text = config_text(source, &Database::File(database.to_owned()), &receiver)
        .replace("\"0 10 */6 * * *\"", &format!("{polls:?}"))
        .replace("listen = \"off\"", &format!("listen = \"127.0.0.1:{port}\""));
    let loaded = load_text(None, &text, &Environment { variables: Vec::new(), credentials: None });
    let config = loaded.config.with_context(|| format!("{:?}", loaded.diagnostics))?;
    let clock = Clock::system();
    let app = App::open(config, database.parent().context("no folder")?, clock.clone(), Drive::Schedule).await?;
    let templates = alerts(&app, 50)?;
    let (store, outbox) = (app.store().clone(), app.deps().outbox.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (started, is_started) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(app.run(web::serve, async { _ = stopped.await }, |_| _ = started.send(())));
    is_started.await.context("the daemon did not start")?;
    // Lets the first evaluation and its alerts pass.
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("http://127.0.0.1:{port}");

    let mut beat = tokio::time::interval(Duration::from_secs(1) / ALERT_RATE);
    let (mut committed, mut latencies): (HashMap<String, Instant>, Vec<Duration>) = (HashMap::new(), Vec::new());
    let began = Instant::now();
    for (number, template) in templates.iter().cycle().enumerate() {
        if began.elapsed() >= HistorySize::wanted().time {
            break;
        }
        beat.tick().await;
        let (alert, notification) = copy(template, &format!("load{number}"), clock.now());
        let id = alert.id.as_str().to_owned();
        store
            .commit(Commit { at: clock.now(), alerts: vec![alert], notifications: vec![notification], ..Commit::default() })
            .await?;
        outbox.wake();
        committed.insert(id, Instant::now());
        // Received messages must not count as memory of the daemon.
        if number % 50 == 0 {
            latencies.extend(received(&sink, &committed).await?);
        }
    }
    let deadline = Instant::now() + SETTLE_TIME;
    while latencies.len() < committed.len() {
        ensure!(Instant::now() < deadline, "{} of {} alerts arrived", latencies.len(), committed.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
        latencies.extend(received(&sink, &committed).await?);
    }
    let count = latencies.len();
    let figures = [percentile(&mut latencies, 0.5), percentile(&mut latencies, 0.99), percentile(&mut latencies, 1.0)];
    println!("{count} {}", figures.map(|figure| figure.as_micros().to_string()).join(" "));
    stop.send(()).ok();
    running.await??;
    Ok(())
}

/// Takes the messages that arrived, and returns the latency of each alert in them.
async fn received(sink: &Sink, committed: &HashMap<String, Instant>) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    for (at, body) in sink.wait(0).await? {
        let body: serde_json::Value = serde_json::from_slice(&body)?;
        let notified = body.pointer("/data/alerts").and_then(serde_json::Value::as_array);
        let ids = notified.into_iter().flatten().filter_map(|alert| alert.get("id").and_then(serde_json::Value::as_str));
        latencies.extend(ids.filter_map(|id| committed.get(id)).map(|since| at.saturating_duration_since(*since)));
    }
    Ok(latencies)
}
