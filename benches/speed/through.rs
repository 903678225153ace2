//! Measures the peak memory of the real binary with ten thousand tokens in each phase of its life. The last line is the overall peak.

use std::{
    fs,
    net::TcpListener as Socket,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use chrono::TimeDelta;
use tokio::task::JoinSet;

use testkit::Database;

use crate::{
    cycle::config_text,
    measure::line,
    process::{Daemon, Memory, WAIT_TIMEOUT, Watch, binary},
    space,
    upstream::Upstream,
};

/// The allowed peak memory in KiB.
const MAX_PEAK_KIB: u64 = 64 * 1024;
/// The duration of the phase with only an evaluation each second.
const IDLE_TIME: Duration = Duration::from_secs(8);
/// The number of concurrent readers of pages.
const READERS: usize = 4;
/// The number of times that each reader requests all pages.
const READS: usize = 10;
const PAGES: [&str; 5] = ["/", "/tokens", "/digests", "/api/v1/upcoming", "/metrics"];

/// The environment of the daemon.
pub struct World<'a> {
    pub upstream: &'a Upstream,
    /// The URL of the receiver.
    pub receiver: &'a str,
    pub tokens: usize,
    pub folder: PathBuf,
}

impl World<'_> {
    /// Writes a config with this database and `[schedule] unlock_events`. Returns its path and the URL of the pages.
    fn config(
        &self,
        name: &str,
        database: &Path,
        schedule: &str,
        more: impl Fn(String) -> String,
    ) -> anyhow::Result<(PathBuf, String)> {
        let port = Socket::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = config_text(&self.upstream.address, &Database::File(database.to_owned()), self.receiver)
            .replace("\"0 10 */6 * * *\"", &format!("{schedule:?}"))
            .replace("listen = \"off\"", &format!("listen = \"127.0.0.1:{port}\""));
        let path = self.folder.join(name);
        fs::write(&path, more(text))?;
        Ok((path, format!("http://127.0.0.1:{port}")))
    }
}

pub async fn run(world: &World<'_>) -> anyhow::Result<()> {
    fs::remove_dir_all(&world.folder).ok();
    fs::create_dir_all(&world.folder)?;
    let database = world.folder.join("through.db");
    let mut most = first_start(world, &database).await?;
    most.extend(later_start(world, &database).await?);
    most.extend(start_with_old_rows(world).await?);
    let peak = most.iter().map(|memory| memory.peak).max().unwrap_or_default();
    line(
        "peak of all phases",
        &format!("{:.1} MiB", peak as f64 / 1024.0),
        &format!("at most {} MiB allowed", MAX_PEAK_KIB / 1024),
    );
    fs::remove_dir_all(&world.folder).ok();
    ensure!(peak <= MAX_PEAK_KIB, "the peak memory exceeds the limit");
    Ok(())
}

/// A first start with an empty database, the baselines, and later cycles.
async fn first_start(world: &World<'_>, database: &Path) -> anyhow::Result<Vec<Memory>> {
    let rules = world.folder.join("rules");
    fs::create_dir_all(&rules)?;
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    for file in fs::read_dir(&shipped)? {
        let file = file?;
        if file.path().extension().is_some_and(|extension| extension == "toml") {
            fs::copy(file.path(), rules.join(file.file_name()))?;
        }
    }
    let own_rules = |text: String| text.replace(shipped.to_str().unwrap_or_default(), rules.to_str().unwrap_or_default());
    let (config, address) = world.config("polling.toml", database, "*/2 * * * * *", own_rules)?;

    let mut most = Vec::new();
    let mut daemon = Daemon::start(&config, &world.folder)?;
    most.push(daemon.watch.next("first poll of all tokens"));
    wait_for_responses(&mut daemon, world.tokens, "fresh")?;
    most.push(daemon.watch.next("poll of all tokens, unchanged"));
    wait_for_responses(&mut daemon, world.tokens, "unchanged")?;
    most.push(daemon.watch.next("poll of all tokens, all prices changed"));
    world.upstream.reprice().await?;
    wait_for_responses(&mut daemon, world.tokens, "fresh")?;
    wait_for_responses(&mut daemon, world.tokens, "unchanged")?;
    most.push(daemon.watch.next("reload and full evaluation"));
    fs::write(rules.join("another.toml"), ANOTHER)?;
    daemon.signal(rustix::process::Signal::HUP)?;
    daemon.wait_for("reloaded config and rules")?;
    wait_for_evaluation(&mut daemon)?;
    most.push(daemon.watch.next("pages with four readers during a poll"));
    read_pages(&address).await?;
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// The number of tokens from which an evaluation counts as a full one.
const MIN_FULL_EVALUATION: usize = 1_000;

/// A new rule, which causes a full evaluation.
const ANOTHER: &str = r#"
[[rule]]
alert  = "AnythingLarge"
on     = "unlock"
when   = "cliffValue > 250000000"
within = ["3d"]
labels = { severity = "info" }
"#;

/// A start with an existing database, and a backup while the daemon runs.
async fn later_start(world: &World<'_>, database: &Path) -> anyhow::Result<Vec<Memory>> {
    let (config, address) = world.config("quiet.toml", database, "off", |text| text)?;
    let mut most = Vec::new();
    let mut daemon = Daemon::start(&config, &world.folder)?;
    most.push(daemon.watch.next("first evaluation after a start"));
    wait_for_evaluation(&mut daemon)?;
    most.push(daemon.watch.next("idle"));
    std::thread::sleep(IDLE_TIME);
    most.push(daemon.watch.next("pages with four readers"));
    read_pages(&address).await?;
    most.push(daemon.watch.next("during a backup"));
    let copy = world.folder.join("copy.db");
    let mut backup = binary().args(["backup", "--config"]).arg(&config).arg(&copy).spawn()?;
    let mut watch = Watch::start(backup.id(), "the backup command");
    let copied = backup.wait()?;
    most.push(watch.next(""));
    ensure!(copied.success(), "the backup failed");
    fs::remove_file(copy)?;
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// A start with expired rows, which the daemon prunes.
async fn start_with_old_rows(world: &World<'_>) -> anyhow::Result<Vec<Memory>> {
    let database = world.folder.join("old.db");
    fs::copy(space::corrected().await?, &database)?;
    age(&database)?;
    let (config, _) = world.config("old.toml", &database, "*/2 * * * * *", |text| text)?;
    let mut daemon = Daemon::start(&config, &world.folder)?;
    let mut most = vec![daemon.watch.next("pruning during a poll")];
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let connection = rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        if count(&connection, "schedule_version WHERE replaced_at")? + count(&connection, "alert WHERE updated_at")? == 0 {
            break;
        }
        ensure!(Instant::now() < deadline, "the old rows were not pruned in time");
    }
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// A time in 2017, before every retention limit, in milliseconds since the epoch.
const YEARS_AGO: i64 = 1_500_000_000_000;

/// The number of rows before [`YEARS_AGO`]. `what` is a table and a condition on its time column.
fn count(connection: &rusqlite::Connection, what: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("SELECT count(*) FROM {what} < ?1"), [YEARS_AGO], |row| row.get(0))
}

/// Backdates all rows that can be pruned.
fn age(database: &Path) -> anyhow::Result<()> {
    let connection = rusqlite::Connection::open(database)?;
    let past = YEARS_AGO - TimeDelta::days(300).num_milliseconds();
    connection.execute_batch(&format!(
        "UPDATE schedule_version SET replaced_at = {past} + no; UPDATE record_version SET replaced_at = {past};
         UPDATE poll SET at = {past} + no; UPDATE change SET at = {past} + no; UPDATE notification SET at = {past};
         UPDATE alert SET updated_at = {past}, state = 'event'; UPDATE delivery SET state = 'dropped', delivered_at = NULL, updated_at = {past};
         DELETE FROM pending_notification;"
    ))?;
    ensure!(count(&connection, "schedule_version WHERE replaced_at")? > 0, "there is nothing to prune");
    Ok(())
}

/// Waits until all tokens got a response of this kind.
pub fn wait_for_responses(daemon: &mut Daemon, tokens: usize, kind: &str) -> anyhow::Result<()> {
    let mut seen = 0;
    while seen < tokens {
        // Skip progress lines.
        let line = daemon
            .wait_until("unlock_events: … polled", |line| line.contains("unlock_events: ") && line.contains(" polled, "))?;
        seen += number_before(&line, kind).with_context(|| format!("no count in {line:?}"))?;
    }
    Ok(())
}

/// Waits for a full evaluation.
fn wait_for_evaluation(daemon: &mut Daemon) -> anyhow::Result<()> {
    while number_before(&daemon.wait_for("evaluate: ")?, "tokens").is_none_or(|tokens| tokens < MIN_FULL_EVALUATION) {}
    Ok(())
}

/// The number directly before a word in a log line. `None` if there is none.
fn number_before(line: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let at = words.iter().position(|of| *of == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

/// Requests all pages with several concurrent readers.
async fn read_pages(address: &str) -> anyhow::Result<()> {
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let address = address.to_owned();
        readers.spawn(async move {
            let client = reqwest::Client::new();
            for page in PAGES.iter().cycle().take(PAGES.len() * READS) {
                client.get(format!("{address}{page}")).send().await?.error_for_status()?.bytes().await?;
            }
            Ok::<(), reqwest::Error>(())
        });
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    Ok(())
}
