//! A year of a fund, brought up to date: the database that `space` has, as the version before schedules were packed kept it (each event
//! and each former one a row of JSON), migrated by the real binary as a daemon does at its start. It is killed once in the midst.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cliffwatch::{
    model::{
        clock::Clock,
        supply::{Resource, TokenId},
    },
    store::{Access, Opening, Store},
};
use rusqlite::{Connection, params};

use crate::{
    cycle::config_text,
    engines::Database,
    measure::line,
    process::{Daemon, PATIENCE, binary},
    space,
};

/// The last version before schedules were packed, and how files of ours are marked.
const FORMER: usize = 9;
const APPLICATION_ID: i64 = 0x636c_6677;
/// Tables that are made from what the packed ones mean.
const OTHERWISE: [&str; 5] = ["record", "record_version", "schedule", "schedule_version", "notice"];
/// Tokens that are read at once.
const BATCH: usize = 64;
/// Bytes of the new file at which the first try is killed.
const KILLED_AT: u64 = 60_000_000;

pub fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(migrated())
}

async fn migrated() -> anyhow::Result<()> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("year");
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder)?;
    let database = folder.join("year.db");
    let versions = former(&space::corrected().await?, &database).await?;
    let before = database.metadata()?.len();
    line("a year, as it was kept before", &mb(before), &format!("{versions} former events"));

    let config = folder.join("quiet.toml");
    let text = config_text("http://127.0.0.1:9", &Database::File(database.clone()), "http://127.0.0.1:9/hook");
    fs::write(&config, text.replace("\"0 10 */6 * * *\"", "\"off\""))?;
    killed(&config, &folder, &database)?;

    let disk = Disk::watch(&folder);
    let mut daemon = Daemon::start_within(&config, &folder, PATIENCE)?;
    line("brought up to date", &format!("{:.0} s", daemon.ready.as_secs_f64()), "from exec to READY; of processor and memory:");
    daemon.watch.next("stopping");
    let most = disk.most();
    daemon.stop()?;
    let after = database.metadata()?.len();
    line("its size then", &mb(after), &format!("{} of disk at most, the old file with it", mb(most)));

    let connection = Connection::open(&database)?;
    let kept: i64 = connection.query_row(
        "SELECT (SELECT total(versions) FROM schedule_version) + (SELECT count(*) FROM record_version)",
        [],
        |row| Ok(row.get::<_, f64>(0)? as i64),
    )?;
    ensure!(kept == versions, "{kept} former events of {versions}");
    drop(connection);
    fs::remove_dir_all(&folder).ok();
    Ok(())
}

fn mb(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// Begins, is killed in the midst, and leaves the old file as it was.
fn killed(config: &Path, folder: &Path, database: &Path) -> anyhow::Result<()> {
    let before = (database.metadata()?.len(), version(database)?);
    let mut child = binary().args(["run", "--config"]).arg(config).stderr(std::process::Stdio::null()).spawn()?;
    let new = folder.join("year.db.packing");
    let deadline = Instant::now() + PATIENCE;
    while new.metadata().map_or(0, |new| new.len()) < KILLED_AT {
        ensure!(child.try_wait()?.is_none() && Instant::now() < deadline, "it is not packed");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    let after = (database.metadata()?.len(), version(database)?);
    ensure!(after == before, "the old file had {before:?} (bytes, version), and has {after:?}");
    line("killed in the midst", &mb(new.metadata()?.len()), "of the new file were written; the old one is as it was");
    Ok(())
}

fn version(database: &Path) -> anyhow::Result<i64> {
    let connection = Connection::open_with_flags(database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// How much of the disk a folder takes at most.
struct Disk {
    most: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Disk {
    fn watch(folder: &Path) -> Self {
        let disk = Self { most: Arc::default(), is_over: Arc::default() };
        let (most, is_over, folder) = (disk.most.clone(), disk.is_over.clone(), folder.to_owned());
        std::thread::spawn(move || {
            use std::os::unix::fs::MetadataExt;
            while !is_over.load(Ordering::Relaxed) {
                // By its number, since the old file has two names for a while.
                let files = fs::read_dir(&folder).into_iter().flatten().filter_map(|file| file.ok()?.metadata().ok());
                let files: HashMap<u64, u64> = files.map(|file| (file.ino(), file.blocks() * 512)).collect();
                most.fetch_max(files.values().sum(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        disk
    }

    fn most(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}

/// Writes what `packed` keeps as the former version did. Answers how many former events there are.
async fn former(packed: &Path, path: &Path) -> anyhow::Result<i64> {
    let mut steps: Vec<PathBuf> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations"))?
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    steps.sort();
    let mut connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")?;
    for step in steps.iter().take(FORMER) {
        connection.execute_batch(&fs::read_to_string(step)?)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMER as i64)?;
    connection.execute("ATTACH ?1 AS packed", [packed.to_str().context("a path")?])?;
    let store = Store::open(Opening { path: packed.to_owned(), access: Access::Read, now: Clock::system().now() }).await?;
    let to = connection.transaction()?;
    copy_tables(&to)?;
    for ids in store.token_ids(false).await?.chunks(BATCH) {
        for known in store.tokens(ids.to_vec(), vec![Resource::Unlock]).await? {
            let mut write = to.prepare_cached(
                "INSERT INTO main.record (no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, body)
                 SELECT r.no, r.scope_no, r.token_no, r.resource, r.key, r.starts_at, r.ends_at, r.first_seen, r.version_at, r.version_poll, ?3
                 FROM packed.record r INDEXED BY record_of_token WHERE r.token_no = (SELECT no FROM packed.token WHERE id = ?1)
                 AND r.resource = 'unlock' AND r.key = ?2",
            )?;
            for tracked in &known.records {
                let body = serde_json::to_string(tracked.record.unlock().context("an unlock")?)?;
                write.execute(params![known.token.id.as_str(), tracked.key.as_str(), body])?;
            }
            write_versions(&to, &store, &known.token.id).await?;
        }
    }
    write_messages(&to, &store).await?;
    let versions = to.query_row("SELECT count(*) FROM main.record_version", [], |row| row.get(0))?;
    to.commit()?;
    store.close().await?;
    connection.execute_batch("DETACH packed; PRAGMA journal_mode = WAL")?;
    Ok(versions)
}

/// Copies the tables that are the same, by the columns that both have.
fn copy_tables(to: &Connection) -> anyhow::Result<()> {
    let mut tables =
        to.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for table in tables.iter().filter(|table| !OTHERWISE.contains(&table.as_str())) {
        let mut columns = to.prepare(
            "SELECT '\"' || n.name || '\"' FROM pragma_table_xinfo(?1, 'main') n JOIN pragma_table_xinfo(?1, 'packed') p ON p.name = n.name
             WHERE n.hidden = 0 AND p.hidden = 0",
        )?;
        let columns: Vec<String> = columns.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let columns = columns.join(", ");
        to.execute_batch(&format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} ({columns}) SELECT {columns} FROM packed.{table}"
        ))?;
    }
    Ok(())
}

/// Former events of a token: each was replaced when the next one under its key was seen.
async fn write_versions(to: &Connection, store: &Store, token: &TokenId) -> anyhow::Result<()> {
    let mut last = HashMap::new();
    let mut write = to.prepare_cached(
        "INSERT INTO main.record_version (scope_no, token_no, resource, key, at, replaced_at, body)
         SELECT no, no, 'unlock', ?2, ?3, ?4, ?5 FROM packed.token WHERE id = ?1",
    )?;
    for next in store.versions(token.clone()).await? {
        let (key, at) = (next.key.clone(), next.at.timestamp_millis());
        if let Some(former) = last.insert(key.clone(), next) {
            let body = former.record.as_ref().and_then(|record| record.unlock()).map(serde_json::to_string).transpose()?;
            write.execute(params![token.as_str(), key.as_str(), former.at.timestamp_millis(), at, body])?;
        }
    }
    Ok(())
}

/// Messages, each with the schedule around its unlock in its body.
async fn write_messages(to: &Connection, store: &Store) -> anyhow::Result<()> {
    let mut alerts = to.prepare("SELECT DISTINCT alert FROM packed.notice")?;
    let alerts: Vec<String> = alerts.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut write = to.prepare_cached(
        "INSERT INTO main.notice (id, alert, kind, at, receivers, body) SELECT id, alert, kind, at, receivers, ?2 FROM packed.notice WHERE id = ?1",
    )?;
    for alert in alerts {
        for told in store.notifications_of(alert.as_str().into()).await? {
            write.execute(params![told.id.as_str(), serde_json::to_string(&told.body)?])?;
        }
    }
    Ok(())
}
