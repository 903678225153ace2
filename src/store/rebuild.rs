//! A database whose schedules are rows of JSON becomes one in which they are packed: in a new file, in one transaction.
//!
//! The old file is only read, so that whatever goes wrong on the way leaves it as it was: it is opened again, and the next start begins
//! anew. Once the new one is whole, checked and on the disk, the old one gets a second name, `<db>.before-10`, and the new one takes its
//! first, in one step of the file system. One schedule at a time is in memory.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};
use serde::Deserialize;

use super::backup::{check, private_file, sync_directory};
use super::codec::{Millis, all, from_json, json};
use super::commit::Size;
use super::connection::{DAEMON_WRITER, beside, open_read_only};
use super::error::{StoreError, StoreFault};
use super::schedule::{self, Entry, Replaced};
use super::sql::Transaction;
use super::{failpoint, schema, series};
use model::{SeriesPoint, Timestamp, wire::UnlockEvent};

/// The first version in which schedules are packed.
pub(super) const PACKED_SINCE: i64 = 10;

/// Tables of which not all rows are the same in the new file.
const OTHERWISE: [&str; 6] = ["record", "record_version", "schedule", "schedule_version", "drift", "notice"];

/// Is told how many schedules are done, and how many there are.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// Whether a database of the version before has schedules to pack.
pub(super) fn is_needed(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM record WHERE resource = 'unlock') OR EXISTS (SELECT 1 FROM record_version WHERE resource = 'unlock')",
        [],
        |row| row.get(0),
    )
}

/// Packs the schedules of the database at `path`, which is of the version before, has no other user, and is closed. Answers under which
/// name the old one is kept.
pub(super) fn rebuild(path: &Path, now: Timestamp, progress: Progress<'_>) -> Result<PathBuf, StoreError> {
    let doing = "pack the schedules of the database";
    let failed = |source: io::Error| StoreError::RebuildFile { path: path.to_owned(), source };
    let new = beside(path, ".packing");
    remove_with_companions(&new).map_err(failed)?;
    let needed = fs::metadata(path).map_err(failed)?.len();
    refuse_without_room(path, needed, free_bytes(path).map_err(failed)?)?;
    let made = private_file(&new).map_err(failed).and_then(|()| {
        fs::set_permissions(&new, fs::metadata(path).map_err(failed)?.permissions()).map_err(failed)?;
        fill(path, &new, now, progress).map_err(|fault| fault.during(doing, path))
    });
    if let Err(error) = made {
        // What is left of it is of no use; where it stays, the next start removes it.
        let _ = remove_with_companions(&new);
        return Err(error);
    }
    failpoint::pass("rebuild.made");
    File::open(&new).and_then(|file| file.sync_all()).map_err(failed)?;
    let kept = keep(path).and_then(|kept| sync_directory(path).map(|()| kept)).map_err(failed)?;
    failpoint::pass("rebuild.kept");
    fs::rename(&new, path).and_then(|()| sync_directory(path)).map_err(failed)?;
    failpoint::pass("rebuild.done");
    Ok(kept)
}

/// Removes a database file that is of no use, and what SQLite may have made beside it.
fn remove_with_companions(path: &Path) -> io::Result<()> {
    for companion in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(beside(path, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Bytes that may still be written to the disk on which a file lies.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let room = rustix::fs::statvfs(directory)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Fails where there is less room than the old file takes: the new one is smaller, but by how much nobody knows before.
fn refuse_without_room(path: &Path, needed: u64, free: u64) -> Result<(), StoreError> {
    if free < needed { Err(StoreError::NoRoom { path: path.to_owned(), needed, free }) } else { Ok(()) }
}

/// Gives the old file its second name: a link, or a copy where the file system has none.
fn keep(path: &Path) -> io::Result<PathBuf> {
    let number = |number: u32| match number {
        1 => format!(".before-{PACKED_SINCE}"),
        _ => format!(".before-{PACKED_SINCE}-{number}"),
    };
    let old = fs::metadata(path)?;
    for name in (1..u32::MAX).map(|at| beside(path, &number(at))) {
        match fs::hard_link(path, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // An earlier try came just as far.
                let there = fs::symlink_metadata(&name)?;
                if (there.dev(), there.ino()) == (old.dev(), old.ino()) {
                    return Ok(name);
                }
            }
            Err(_) => {
                fs::copy(path, &name)?;
                File::open(&name)?.sync_all()?;
                return Ok(name);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes the new file.
fn fill(path: &Path, new: &Path, now: Timestamp, progress: Progress<'_>) -> Result<(), StoreFault> {
    let old = open_read_only(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(new, flags)?;
    DAEMON_WRITER.apply(&connection)?;
    // Nobody reads it before it is whole, and one that is cut off is thrown away.
    let _: String = connection.query_row("PRAGMA journal_mode = OFF", [], |row| row.get(0))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    schema::DAEMON.migrate(&mut connection, 0).map_err(|failed| failed.source)?;
    let name = path.to_str().ok_or_else(|| StoreError::BackupRefused { path: path.to_owned(), why: "its name is not UTF-8" })?;
    connection.execute("ATTACH ?1 AS old", [name])?;
    let transaction = connection.transaction()?;
    let (from, to) = (Transaction::Sqlite(&old), Transaction::Sqlite(&transaction));
    copy_tables(&to)?;
    copy_records(&transaction)?;
    pack_schedules(&from, &to, now, progress)?;
    pack_versions(&from, &to)?;
    pack_messages(&from, &to)?;
    failpoint::pass("rebuild.inside");
    transaction.commit()?;
    connection.execute_batch("DETACH old")?;
    check(&connection, new)
}

/// Copies every table but those that are written otherwise, and how far their numbers are.
fn copy_tables(to: &Transaction<'_>) -> Result<(), StoreFault> {
    let sql = "SELECT name FROM old.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'";
    let tables = all(&mut to.prepare(sql)?, [], |row| Ok(row.get::<_, String>(0)?))?;
    for table in tables.iter().filter(|table| !OTHERWISE.contains(&table.as_str())) {
        let columns = columns(to, table)?;
        to.execute(&format!("DELETE FROM main.{table}"), [])?;
        to.execute(&format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM old.{table}"), [])?;
    }
    to.execute("DELETE FROM main.sqlite_sequence", [])?;
    to.execute("INSERT INTO main.sqlite_sequence (name, seq) SELECT name, seq FROM old.sqlite_sequence", [])?;
    Ok(())
}

/// The columns of a table that are written, not reckoned.
fn columns(of: &Transaction<'_>, table: &str) -> Result<String, StoreFault> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1, 'old') WHERE hidden = 0";
    let names = all(&mut of.prepare(sql)?, [table], |row| Ok(format!("\"{}\"", row.get::<_, String>(0)?)))?;
    Ok(names.join(", "))
}

/// Copies records that are no unlocks as they are, with their history.
fn copy_records(to: &Connection) -> Result<(), StoreFault> {
    to.execute_batch(
        "INSERT INTO main.record (no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, body)
             SELECT no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, body
             FROM old.record WHERE resource <> 'unlock';
         INSERT INTO main.record_version (no, scope_no, token_no, resource, key, at, replaced_at, poll, body)
             SELECT no, scope_no, token_no, resource, key, at, replaced_at, poll, body
             FROM old.record_version WHERE resource <> 'unlock';",
    )?;
    Ok(())
}

/// Packs what is.
fn pack_schedules(old: &Transaction<'_>, to: &Transaction<'_>, now: Timestamp, progress: Progress<'_>) -> Result<(), StoreFault> {
    let sql = "SELECT DISTINCT scope_no FROM record WHERE resource = 'unlock' ORDER BY scope_no";
    let scopes = all(&mut old.prepare(sql)?, [], |row| Ok(row.get::<_, i64>(0)?))?;
    let mut events = old.prepare("SELECT no, key, body FROM record WHERE scope_no = ?1 AND resource = 'unlock'")?;
    for (done, scope) in scopes.iter().enumerate() {
        progress(done, scopes.len());
        let events = all(&mut events, [scope], |row| {
            let (no, key): (i64, String) = (row.get(0)?, row.get(1)?);
            let event: UnlockEvent =
                from_json("an unlock event", &key, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
            Ok((no, key, event))
        })?;
        let mut entries: Vec<Entry<'_>> = events.iter().map(|(_, key, event)| Entry::of(key, event)).collect();
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        let body = schedule::pack(&entries);
        let read = schedule::unpack(&body).ok_or_else(|| schedule::damaged("the packed schedule", &scope.to_string()))?;
        let is_same = read.iter().map(|read| read.record.unlock()).eq(entries.iter().map(|entry| Some(entry.event)));
        if !is_same {
            return Err(schedule::damaged("the packed schedule", &scope.to_string()));
        }
        to.prepare_cached("INSERT INTO main.schedule (scope_no, body) VALUES (?1, ?2)")?.execute(params![scope, body])?;
        for (no, _, event) in &events {
            let size = Size::of(event, now);
            to.prepare_cached(
                "INSERT INTO main.record (no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at,
                 version_poll, value, share)
                 SELECT no, scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, ?2, ?3
                 FROM old.record WHERE no = ?1",
            )?
            .execute(params![no, size.value, size.share])?;
        }
    }
    progress(scopes.len(), scopes.len());
    Ok(())
}

/// A version of an event that was replaced.
struct OldVersion {
    no: i64,
    key: String,
    at: Timestamp,
    replaced_at: i64,
    body: Option<String>,
}

/// Packs what was, by token and by the time at which it was replaced. What was removed stays a row, and so does what belongs to no token.
fn pack_versions(old: &Transaction<'_>, to: &Transaction<'_>) -> Result<(), StoreFault> {
    let sql = "SELECT DISTINCT token_no FROM record_version WHERE resource = 'unlock'";
    let tokens = all(&mut old.prepare(sql)?, [], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    let mut versions = old.prepare(
        "SELECT no, key, at, replaced_at, body, scope_no IS token_no FROM record_version
         WHERE token_no IS ?1 AND resource = 'unlock' ORDER BY replaced_at, no",
    )?;
    for token in tokens {
        let rows = all(&mut versions, [token], |row| {
            let at: Millis = row.get(2)?;
            let version = OldVersion { no: row.get(0)?, key: row.get(1)?, at: at.0, replaced_at: row.get(3)?, body: row.get(4)? };
            Ok((version, row.get::<_, bool>(5)?))
        })?;
        pack_versions_of(to, token, rows)?;
    }
    Ok(())
}

/// Packs the versions of one token, in the order in which they were replaced; each with whether it lies in that token's own schedule.
fn pack_versions_of(to: &Transaction<'_>, token: Option<i64>, rows: Vec<(OldVersion, bool)>) -> Result<(), StoreFault> {
    let gone = rows.iter().filter(|(version, _)| version.body.is_none());
    let gone: HashSet<(String, i64)> = gone.map(|(version, _)| (version.key.clone(), version.replaced_at)).collect();
    let mut groups: BTreeMap<i64, Vec<(OldVersion, UnlockEvent)>> = BTreeMap::new();
    for (version, is_of_token) in rows {
        match &version.body {
            Some(body) if is_of_token && !gone.contains(&(version.key.clone(), version.replaced_at)) => {
                let event = from_json("a version of an unlock event", &version.key, body)?;
                groups.entry(version.replaced_at).or_default().push((version, event));
            }
            _ => copy_version(to, version.no)?,
        }
    }
    for (replaced_at, group) in groups {
        let replaced = group.iter().map(|(version, event)| Replaced { key: &version.key, at: version.at, event });
        let replaced: Vec<Replaced<'_>> = replaced.collect();
        to.prepare_cached("INSERT INTO main.schedule_version (scope_no, replaced_at, versions, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![token, replaced_at, replaced.len() as i64, schedule::pack_replaced(&replaced)])?;
    }
    Ok(())
}

/// Copies messages, with the schedules around their unlocks packed beside them.
fn pack_messages(old: &Transaction<'_>, to: &Transaction<'_>) -> Result<(), StoreFault> {
    let mut messages = old.prepare("SELECT id, alert, kind, at, receivers, body FROM notice ORDER BY rowid")?;
    let mut messages = messages.query([])?;
    while let Some(row) = messages.next()? {
        let text = |at: usize| row.get::<_, String>(at);
        let (id, body) = (text(0)?, text(5)?);
        let mut fields: serde_json::Map<String, serde_json::Value> = from_json("the body of the notice", &id, &body)?;
        // What is no schedule stays where it is.
        let points = fields.get("series").and_then(|points| Vec::<SeriesPoint>::deserialize(points).ok());
        let packed = points.and_then(|points| series::pack(&points));
        let body = match packed {
            Some(_) => {
                fields.shift_remove("series");
                json("the body of a notice", &fields)?
            }
            None => body,
        };
        to.prepare_cached(
            "INSERT INTO main.notice (id, alert, kind, at, receivers, body, series) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![id, text(1)?, text(2)?, row.get::<_, i64>(3)?, text(4)?, body, packed])?;
    }
    Ok(())
}

fn copy_version(to: &Transaction<'_>, no: i64) -> Result<(), StoreFault> {
    to.prepare_cached(
        "INSERT INTO main.record_version (no, scope_no, token_no, resource, key, at, replaced_at, poll, body)
         SELECT no, scope_no, token_no, resource, key, at, replaced_at, poll, body FROM old.record_version WHERE no = ?1",
    )?
    .execute([no])?;
    Ok(())
}

#[cfg(test)]
mod tests;
