//! Copies a whole database into another, of the same or the other engine.
//!
//! `ends` opens both databases and locks out other processes. `digest` hashes tables independently of the engine. This
//! file defines what is copied, in which order, and how it is verified.
//!
//! Guarantee: the copy is one transaction, and commits only after every table was read again on both sides and has the
//! same hash. If anything fails before, the target stays empty.

mod digest;
mod ends;

use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use serde::Serialize;

use self::digest::{TableDigest, values_of};
use self::ends::{CopySource, Target};
use super::error::{ErrorKind, StoreError, StoreFault};
use super::sql::postgres::PgSession;
use super::sql::{Engine, SqlError, Transaction, quoted, row_bytes};
use super::{DatabaseLocation, DatabaseServer, PostgresUrl, Store, failpoint};
use model::Timestamp;

/// The tables, each after the tables that it references. The lease is not copied: each server database has its own.
const TABLES: [&str; 35] = [
    META,
    "token",
    "feed",
    "record",
    "schedule",
    "schedule_version",
    "drift",
    "token_supply",
    "record_version",
    "change",
    "poll",
    "credit",
    "alert",
    "notification",
    "delivery",
    "delivery_notification",
    "attempt",
    "job",
    "rule_match",
    "investor",
    "pending_notification",
    "notification_group",
    "group_alert",
    "silence",
    "ack",
    "tally",
    "opt_out",
    "held_event",
    "event_log",
    "deleted_deliveries",
    "keyed_request",
    "access_key",
    "audit",
    "note",
    "assignee",
];

const META: &str = "meta";

const COPYING: &str = "copy the database";

/// Rows of `meta` that describe the database, not its contents.
const DATABASE_KEYS: &str = "'schema', 'program', 'program_since', 'facts'";

/// Rows of `meta` that describe the machine or the instances. A copy on another machine must not have them.
pub(super) const MACHINE_KEYS: &str = "'clock', 'instances'";

/// Tables whose row numbers are visible to users. A number is never reused, even after its row is deleted.
const PERMANENT_NUMBERS: [&str; 4] = ["change", "poll", "delivery", "pending_notification"];

/// Tables whose row numbers are internal.
const INTERNAL_NUMBERS: [&str; 9] =
    ["token", "feed", "record", "schedule_version", "record_version", "attempt", "keyed_request", "audit", "note"];

/// A batch ends at this many rows or bytes.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// A table that was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopiedTable {
    pub table: String,
    /// The number of rows, equal on both sides.
    pub rows: u64,
    /// The sum of the row hashes (XXH3, 128 bits), equal on both sides.
    pub hash: String,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress<'a> {
    /// The current step: `copying` or `checking`.
    pub doing: &'static str,
    pub table: &'a str,
    /// Rows copied plus rows checked.
    pub done: u64,
    /// Rows to copy plus rows to check.
    pub total: u64,
}

impl Store {
    /// Returns the names of all tables, which are the same for both engines.
    pub fn tables() -> impl Iterator<Item = &'static str> {
        TABLES.into_iter()
    }

    /// Returns the server's name and version. Blocks.
    pub fn server(place: &PostgresUrl) -> Result<DatabaseServer, StoreError> {
        let query = || PgSession::open(&Arc::new(place.clone()), &Arc::default())?.server().map_err(SqlError::from);
        query().map_err(|error| StoreFault::from(error).during("query the server", place.name()))
    }

    /// Copies a database into an empty one, which is created if needed. Other processes are locked out of both: a file
    /// by its lock, a server database by its lease, taken as `instance`. Blocks.
    ///
    /// # Errors
    ///
    /// Fails, and leaves the target empty, if either database is in use or cannot be reached, the source is missing or
    /// has another schema, the target is not empty, or a copied table differs.
    pub fn copy(
        from: &DatabaseLocation,
        to: &DatabaseLocation,
        instance: &str,
        now: Timestamp,
        on_progress: &mut dyn FnMut(CopyProgress<'_>),
    ) -> Result<Vec<CopiedTable>, StoreError> {
        let mut source = CopySource::open(from, instance)?;
        let mut target = Target::open(to, instance, now)?;
        let copied =
            source.hold(|from| target.fill(|to| copy_all(from, to, &mut CopyMeter { on_progress, done: 0, total: 0 })))?;
        target.finish()?;
        Ok(copied)
    }
}

/// One of the two databases, within a transaction.
#[derive(Clone, Copy)]
struct CopySide<'a> {
    at: &'a Transaction<'a>,
    path: &'a Path,
}

impl CopySide<'_> {
    fn during(self, doing: &'static str, table: &str, fault: impl Into<StoreFault>) -> StoreError {
        let source = fault.into().during(doing, self.path);
        let reason = format!("the table {table} failed; the target is unchanged");
        StoreError::new(source.kind(), COPYING, self.path, reason).with_source(source)
    }

    fn columns(self, table: &str) -> Result<Vec<String>, StoreError> {
        self.at.columns(table).map_err(|fault| self.during("read the schema", table, fault))
    }

    fn count(self, table: &str) -> Result<u64, StoreError> {
        self.at.count_rows(&copied_rows(table)).map_err(|error| self.during("count the rows", table, error))
    }

    /// Visits every row of a table, with the values in the order of `columns`, normalized to what both engines can
    /// store.
    fn scan(
        self,
        table: &str,
        columns: &[String],
        mut each: impl FnMut(Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {} FROM {}", quoted(columns), copied_rows(table));
        let scanned = self.at.scan(&sql, |row| Ok(each(values_of(row, columns.len())?)?));
        scanned.map_err(|fault| match fault {
            StoreFault::Final(error) => *error,
            fault => self.during("read the rows", table, fault),
        })
    }

    fn digest(self, table: &str, columns: &[String], mut seen: impl FnMut()) -> Result<TableDigest, StoreError> {
        let mut digest = TableDigest::default();
        self.scan(table, columns, |row| {
            digest.add(&row);
            seen();
            Ok(())
        })?;
        Ok(digest)
    }
}

/// Returns the part of a table that is copied.
fn copied_rows(table: &str) -> String {
    if table == META { format!("{META} WHERE key NOT IN ({DATABASE_KEYS}, {MACHINE_KEYS})") } else { format!(r#""{table}""#) }
}

struct CopyMeter<'a> {
    on_progress: &'a mut dyn FnMut(CopyProgress<'_>),
    done: u64,
    total: u64,
}

impl CopyMeter<'_> {
    fn step(&mut self, doing: &'static str, table: &str, rows: usize) {
        self.done += rows as u64;
        (self.on_progress)(CopyProgress { doing, table, done: self.done, total: self.total });
    }
}

/// Copies every table and its last row number, then verifies the copy.
fn copy_all(from: CopySide<'_>, to: CopySide<'_>, meter: &mut CopyMeter<'_>) -> Result<Vec<CopiedTable>, StoreError> {
    check_empty(to)?;
    let mut layout = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let columns = from.columns(table)?;
        check_equal(table, &columns.join(", "), &to.columns(table)?.join(", "))?;
        meter.total += from.count(table)? * 2;
        layout.push((table, columns));
    }
    for (table, columns) in &layout {
        copy_table(from, to, table, columns, meter)?;
    }
    copy_numbers(from, to)?;
    analyze(to)?;
    failpoint::pass("copy.filled");
    let mut copied = Vec::with_capacity(layout.len());
    for (table, columns) in &layout {
        let there = from.digest(table, columns, || {})?;
        let here = to.digest(table, columns, || meter.step("checking", table, 1))?;
        check_equal(table, &there.to_string(), &here.to_string())?;
        copied.push(CopiedTable { table: (*table).to_owned(), rows: here.rows(), hash: here.hash() });
    }
    failpoint::pass("copy.checked");
    Ok(copied)
}

/// Fails if any table has rows.
fn check_empty(to: CopySide<'_>) -> Result<(), StoreError> {
    for table in TABLES {
        let rows = to.count(table)?;
        if rows > 0 {
            let reason = format!("the table {table} has {rows} rows; choose a new file, or an empty database or schema");
            return Err(StoreError::new(ErrorKind::Rejected, COPYING, to.path, reason));
        }
    }
    Ok(())
}

fn check_equal(table: &str, from: &str, to: &str) -> Result<(), StoreError> {
    if from == to {
        return Ok(());
    }
    let reason = format!("the table {table} differs ({from} in the source, {to} in the target); the target is unchanged");
    Err(StoreError::new(ErrorKind::Other, COPYING, Path::new(""), reason))
}

fn copy_table(
    from: CopySide<'_>,
    to: CopySide<'_>,
    table: &str,
    columns: &[String],
    meter: &mut CopyMeter<'_>,
) -> Result<(), StoreError> {
    let mut write = |rows: Vec<Vec<Value>>| {
        let count = rows.len();
        to.at.insert_many(table, columns, rows).map_err(|error| to.during("write rows", table, error))?;
        meter.step("copying", table, count);
        Ok(())
    };
    let (mut batch, mut bytes) = (Vec::new(), 0);
    from.scan(table, columns, |row| {
        bytes += row_bytes(&row);
        batch.push(row);
        if batch.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            return Ok(());
        }
        bytes = 0;
        write(std::mem::take(&mut batch))
    })?;
    write(batch)?;
    // Flush here, so that an error names this table.
    to.at.flush().map_err(|error| to.during("write rows", table, error))
}

/// Continues the row numbers of the copy where the source stopped.
fn copy_numbers(from: CopySide<'_>, to: CopySide<'_>) -> Result<(), StoreError> {
    for table in PERMANENT_NUMBERS.into_iter().chain(INTERNAL_NUMBERS) {
        let read =
            |side: CopySide<'_>| side.at.last_number(table).map_err(|error| side.during("read the last number", table, error));
        // SQLite derives the next number of these tables from their rows.
        if to.at.engine() == Engine::Sqlite && INTERNAL_NUMBERS.contains(&table) {
            continue;
        }
        let Some(last) = read(from)? else { continue };
        to.at.set_last_number(table, last).map_err(|error| to.during("set the last number", table, error))?;
        check_equal(table, &format!("number {last}"), &format!("number {}", read(to)?.unwrap_or_default()))?;
    }
    Ok(())
}

/// Makes the server gather statistics about each table. Without them, its plans for pages are up to forty times slower, until it gathers
/// them by itself some minutes later.
fn analyze(to: CopySide<'_>) -> Result<(), StoreError> {
    if to.at.engine() == Engine::Sqlite {
        return Ok(());
    }
    for table in TABLES {
        let analyzed = to.at.execute(&format!(r#"ANALYZE "{table}""#), []).and_then(|()| to.at.flush());
        analyzed.map_err(|error| to.during("gather statistics", table, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
