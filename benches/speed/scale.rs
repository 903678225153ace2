//! Ten thousand tokens with a million tranches: the real binary's start and memory, and how long its ticks take.
//!
//! The database is made once by polling the made-up source, and kept under `target/tmp/scale` for the next time.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
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

use crate::{
    cycle::{config, config_text},
    engines::Database,
    made::{Schedules, TRANCHES_EACH, tranches},
    measure::{cpu, line, ms},
    upstream::Upstream,
};

/// Tokens.
const TOKENS: usize = 10_000;
/// Says how the database was made; another text makes it anew.
const RECIPE: &str = "10000 tokens, 2";
/// Starts of the binary; the best counts.
const STARTS: usize = 3;
/// How long the binary runs with an evaluation each second before its memory is read.
const WATCHED: Duration = Duration::from_secs(8);
/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// Longer than this nothing may take.
const PATIENCE: Duration = Duration::from_secs(180);

pub fn run() -> anyhow::Result<()> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(scaled())
}

async fn scaled() -> anyhow::Result<()> {
    let upstream = Upstream::start(TOKENS)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let receiver = format!("http://{}/hook", listener.local_addr()?);
    let router = Router::new().route("/hook", post(async || StatusCode::NO_CONTENT));
    tokio::spawn(serve::serve(listener, router, std::future::pending()));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scale");
    let database = folder.join("scale.db");
    make(&folder, &database, &upstream, &receiver).await?;

    let text = config_text(&upstream.address, &Database::File(database.clone()), &receiver);
    let quiet = folder.join("quiet.toml");
    fs::write(&quiet, text.replace("\"0 10 */6 * * *\"", "\"off\""))?;
    let polling = folder.join("polling.toml");
    fs::write(&polling, text.replace("\"0 10 */6 * * *\"", "\"*/2 * * * * *\""))?;

    let (mut ready, mut first, mut after) = (Duration::MAX, Memory::MAX, Memory::MAX);
    for start in 0..STARTS {
        let mut daemon = Daemon::start(&quiet, &folder)?;
        ready = ready.min(daemon.ready);
        first = first.min(daemon.memory()?);
        if start == 0 {
            std::thread::sleep(WATCHED);
            after = daemon.memory()?;
        }
        daemon.stop()?;
    }
    line("from exec to READY", &format!("{:.0} ms", ms(ready)), &format!("best of {STARTS}"));
    line("resident at READY", &first.shown(), "");
    line("resident after a few ticks", &after.shown(), &format!("peak {}", after.peak()));

    let mut daemon = Daemon::start(&polling, &folder)?;
    daemon.wait_for("unlock_events: ")?;
    let polled = daemon.memory()?;
    daemon.stop()?;
    line("resident after asking for all tokens", &polled.shown(), &format!("peak {}", polled.peak()));

    let config = config(&upstream.address, &Database::File(database), &receiver)?;
    let app = App::open(config, &folder, Clock::system(), Drive::Crank).await?;
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Evaluate).await?;
    line(
        "the first evaluation, of everything ahead",
        &format!("{:.0} ms", ms(began.elapsed())),
        &format!("{:.0} ms of processor; {report}", ms(cpu() - begun)),
    );
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Evaluate).await?;
    line(
        "an evaluation after that",
        &format!("{:.1} ms", ms(began.elapsed())),
        &format!("{:.1} ms of processor; {report}", ms(cpu() - begun)),
    );
    let (begun, began) = (cpu(), Instant::now());
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.unchanged as usize == TOKENS, "{report}");
    line(
        "a poll of all tokens, all unchanged",
        &format!("{:.1} s", began.elapsed().as_secs_f64()),
        &format!("{:.1} s of processor", (cpu() - begun).as_secs_f64()),
    );
    for (what, took) in [
        ("planning a poll", timed(app.store().plan_tokens(Endpoint::UnlockEvents, Clock::system().now())).await?),
        ("the gauges, every ten seconds", timed(app.store().gauges()).await?),
        ("the counts of the status page", timed(app.store().counts()).await?),
    ] {
        line(what, &format!("{:.1} ms", ms(took)), "");
    }
    app.close().await?;
    Ok(())
}

/// How long a read takes.
async fn timed<T, E: std::error::Error + Send + Sync + 'static>(
    read: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    read.await?;
    Ok(start.elapsed())
}

/// Makes the database by asking the source for everything, once.
async fn make(folder: &Path, database: &Path, upstream: &Upstream, receiver: &str) -> anyhow::Result<()> {
    let marker = folder.join("recipe");
    if fs::read_to_string(&marker).is_ok_and(|recipe| recipe == RECIPE) {
        let size = fs::metadata(database)?.len();
        line("the database", &format!("{:.0} MB", size as f64 / 1e6), "made by an earlier run");
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
        Drive::Crank,
    )
    .await?;
    let began = Instant::now();
    app.tick(Job::Poll(Endpoint::TokenList)).await?;
    let report = app.tick(Job::Poll(Endpoint::UnlockEvents)).await?;
    ensure!(report.fresh as usize == TOKENS, "{report}");
    let took = began.elapsed();
    app.tick(Job::Evaluate).await?;
    // The thousands of alerts of this first evaluation are not what is measured: nobody is told.
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
        &format!(
            "{TOKENS} tokens, {rows} tranches ({TRANCHES_EACH} each); first poll of all {:.0} s; {report}",
            took.as_secs_f64()
        ),
    );
    fs::write(marker, RECIPE)?;
    Ok(())
}

/// Resident memory, KiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Memory {
    resident: u64,
    anonymous: u64,
    highest: u64,
}

impl Memory {
    const MAX: Memory = Memory { resident: u64::MAX, anonymous: u64::MAX, highest: u64::MAX };

    fn shown(self) -> String {
        format!("{:.1} MiB", self.resident as f64 / 1024.0)
    }

    fn peak(self) -> String {
        format!("{:.1} MiB, {:.1} MiB of it our own now", self.highest as f64 / 1024.0, self.anonymous as f64 / 1024.0)
    }
}

/// The real binary, running.
struct Daemon {
    child: Child,
    ready: Duration,
    lines: mpsc::Receiver<String>,
}

impl Daemon {
    /// Starts it and waits until it says that it is ready, as systemd would.
    fn start(config: &Path, folder: &Path) -> anyhow::Result<Self> {
        let address = folder.join("notify");
        fs::remove_file(&address).ok();
        let socket = UnixDatagram::bind(&address)?;
        socket.set_read_timeout(Some(READY_WITHIN))?;
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
            .args(["run", "--config"])
            .arg(config)
            .env("NOTIFY_SOCKET", &address)
            .env("RUST_LOG", "cliffwatch=debug")
            // As the unit in systemd/ has it.
            .envs(
                [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")]
                    .map(|(name, set)| (name, std::env::var(name).unwrap_or_else(|_| set.into()))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("its log")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut daemon = Self { child, ready: Duration::ZERO, lines };
        let mut message = [0; 4096];
        loop {
            let length = socket
                .recv(&mut message)
                .with_context(|| format!("it is not ready: {:?}", daemon.lines.try_iter().collect::<Vec<_>>()))?;
            if String::from_utf8_lossy(message.get(..length).unwrap_or_default()).lines().any(|line| line == "READY=1") {
                daemon.ready = began.elapsed();
                return Ok(daemon);
            }
        }
    }

    fn wait_for(&mut self, text: &str) -> anyhow::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .with_context(|| format!("no {text:?} in the log"))?;
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    fn memory(&self) -> anyhow::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap_or_default()
        };
        Ok(Memory { resident: of("VmRSS"), anonymous: of("RssAnon"), highest: of("VmHWM") })
    }

    /// Asks it to stop and waits until it has.
    fn stop(&mut self) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).context("its number")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Stopped in good order long ago, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
