//! The real binary through a whole run with ten thousand tokens, from the first start on: what it takes of memory at most, phase by
//! phase. The last line says what no phase exceeded.

use std::{
    fs,
    net::TcpListener as Socket,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use chrono::TimeDelta;
use tokio::task::JoinSet;

use crate::{
    cycle::config_text,
    engines::Database,
    measure::line,
    process::{Daemon, Memory, PATIENCE, Watch, binary},
    space,
    upstream::Upstream,
};

/// No phase may take more, KiB: what it took last, and a little that the machine may add.
const MOST: u64 = 72 * 1024;
/// How long it runs with an evaluation each second and nothing else to do.
const QUIET: Duration = Duration::from_secs(8);
/// Who reads pages at once, and how often each reads all of them.
const READERS: usize = 4;
const READS: usize = 10;
const PAGES: [&str; 5] = ["/", "/tokens", "/digests", "/api/upcoming", "/metrics"];

/// A world to run in.
pub struct World<'a> {
    pub upstream: &'a Upstream,
    /// Where alerts go.
    pub receiver: &'a str,
    pub tokens: usize,
    pub folder: PathBuf,
}

impl World<'_> {
    /// Writes a config for a database of this folder; `[schedule] unlock_events` as given.
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

/// Goes through all phases.
pub async fn run(world: &World<'_>) -> anyhow::Result<()> {
    fs::remove_dir_all(&world.folder).ok();
    fs::create_dir_all(&world.folder)?;
    let database = world.folder.join("through.db");
    let mut most = from_nothing(world, &database).await?;
    most.extend(again(world, &database).await?);
    most.extend(old(world).await?);
    let highest = most.iter().map(|memory| memory.highest).max().unwrap_or_default();
    line("no phase exceeded", &format!("{:.1} MiB", highest as f64 / 1024.0), &format!("{} MiB is what it may", MOST / 1024));
    fs::remove_dir_all(&world.folder).ok();
    ensure!(highest <= MOST, "more than it may");
    Ok(())
}

/// A first start with an empty database, what comes of asking for everything, and how that goes on.
async fn from_nothing(world: &World<'_>, database: &Path) -> anyhow::Result<Vec<Memory>> {
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
    most.push(daemon.watch.next("asking for everything, for the first time"));
    answered(&mut daemon, world.tokens, "fresh")?;
    most.push(daemon.watch.next("everything unchanged"));
    answered(&mut daemon, world.tokens, "unchanged")?;
    most.push(daemon.watch.next("everything asked again, all prices moved"));
    world.upstream.reprice().await?;
    answered(&mut daemon, world.tokens, "fresh")?;
    answered(&mut daemon, world.tokens, "unchanged")?;
    most.push(daemon.watch.next("a reload, and everything evaluated by other rules"));
    fs::write(rules.join("another.toml"), ANOTHER)?;
    daemon.signal(rustix::process::Signal::HUP)?;
    daemon.wait_for("the rules were reloaded")?;
    evaluated(&mut daemon)?;
    most.push(daemon.watch.next("pages, read by four while everything is asked for"));
    pages(&address).await?;
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// An evaluation of more tokens than this is one of everything ahead.
const MANY: usize = 1_000;

/// A rule that is new: everything is evaluated by it.
const ANOTHER: &str = r#"
[[rule]]
alert  = "AnythingLarge"
on     = "unlock"
when   = "cliffValue > 250000000"
within = ["3d"]
labels = { severity = "info" }
"#;

/// A start with all that is known, and a copy that somebody makes beside it.
async fn again(world: &World<'_>, database: &Path) -> anyhow::Result<Vec<Memory>> {
    let (config, address) = world.config("quiet.toml", database, "off", |text| text)?;
    let mut most = Vec::new();
    let mut daemon = Daemon::start(&config, &world.folder)?;
    most.push(daemon.watch.next("the first evaluation after a start"));
    evaluated(&mut daemon)?;
    most.push(daemon.watch.next("ticks"));
    std::thread::sleep(QUIET);
    most.push(daemon.watch.next("pages, read by four"));
    pages(&address).await?;
    most.push(daemon.watch.next("a copy made beside it"));
    let copy = world.folder.join("copy.db");
    let mut backup = binary().args(["backup", "--config"]).arg(&config).arg(&copy).spawn()?;
    let mut watch = Watch::start(backup.id(), "the command that copies");
    let copied = backup.wait()?;
    most.push(watch.next(""));
    ensure!(copied.success(), "no copy");
    fs::remove_file(copy)?;
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// A start with a year behind it: what is old is forgotten.
async fn old(world: &World<'_>) -> anyhow::Result<Vec<Memory>> {
    let database = world.folder.join("old.db");
    fs::copy(space::corrected().await?, &database)?;
    age(&database)?;
    let (config, _) = world.config("old.toml", &database, "*/2 * * * * *", |text| text)?;
    let mut daemon = Daemon::start(&config, &world.folder)?;
    let mut most = vec![daemon.watch.next("what is old is forgotten, while everything is asked for")];
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let connection = rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        if count(&connection, "schedule_version WHERE replaced_at")? + count(&connection, "alert WHERE updated_at")? == 0 {
            break;
        }
        ensure!(Instant::now() < deadline, "what is old is still there");
    }
    most.push(daemon.watch.next("stopping"));
    daemon.stop()?;
    Ok(most)
}

/// A time that lies behind everything that is kept, milliseconds since the epoch: in 2017.
const YEARS_AGO: i64 = 1_500_000_000_000;

/// Rows before then.
fn count(connection: &rusqlite::Connection, what: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("SELECT count(*) FROM {what} < ?1"), [YEARS_AGO], |row| row.get(0))
}

/// Dates back whatever may be forgotten.
fn age(database: &Path) -> anyhow::Result<()> {
    let connection = rusqlite::Connection::open(database)?;
    let past = YEARS_AGO - TimeDelta::days(300).num_milliseconds();
    connection.execute_batch(&format!(
        "UPDATE schedule_version SET replaced_at = {past} + no; UPDATE record_version SET replaced_at = {past};
         UPDATE poll SET at = {past} + no; UPDATE change SET at = {past} + no; UPDATE notice SET at = {past};
         UPDATE alert SET updated_at = {past}, state = 'event'; UPDATE delivery SET state = 'dropped', delivered_at = NULL, updated_at = {past};
         DELETE FROM telling;"
    ))?;
    ensure!(count(&connection, "schedule_version WHERE replaced_at")? > 0, "there is nothing to forget");
    Ok(())
}

/// Waits until as many answers of this sort came as there are tokens.
fn answered(daemon: &mut Daemon, tokens: usize, sort: &str) -> anyhow::Result<()> {
    let mut came = 0;
    while came < tokens {
        // Not how far it is, which is told of a long one.
        let line = daemon
            .wait_until("unlock_events: … asked", |line| line.contains("unlock_events: ") && line.contains(" asked, "))?;
        came += before(&line, sort).with_context(|| format!("no number in {line:?}"))?;
    }
    Ok(())
}

/// Waits for an evaluation of many tokens at once.
fn evaluated(daemon: &mut Daemon) -> anyhow::Result<()> {
    while before(&daemon.wait_for("evaluate: ")?, "tokens").is_none_or(|tokens| tokens < MANY) {}
    Ok(())
}

/// The number before a word, in a line of the log.
fn before(line: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let at = words.iter().position(|of| *of == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

/// Has all pages read by several at once.
async fn pages(address: &str) -> anyhow::Result<()> {
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
