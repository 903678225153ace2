//! Everything from one database into another, of whichever engine.
//!
//! Cast: `ends` opens both databases and keeps everybody else away from them; `digest` says what is in a table, in words that do not
//! depend on the engine. Here is what is copied, in which order, and what must hold afterwards.
//!
//! Promise: the copy is one transaction, and it counts only after every table was read again on both sides and came to the same rows.
//! Whatever fails before that, or dies, leaves the target as empty as it was.

mod digest;
mod ends;

use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use serde::Serialize;

use self::digest::{TableDigest, values_of};
use self::ends::{Source, Target};
use super::error::{StoreError, StoreFault};
use super::sql::bulk::quoted;
use super::sql::postgres::PgSession;
use super::sql::{SqlError, Transaction, row_bytes};
use super::{DatabaseServer, Place, PostgresPlace, Store, failpoint};
use model::Timestamp;

/// The tables, each after those that it refers to. All but the lease, of which a database on a server has its own.
const TABLES: [&str; 26] = [
    META,
    "token",
    "feed",
    "record",
    "schedule",
    "schedule_version",
    "drift",
    "record_version",
    "change",
    "poll",
    "credit",
    "alert",
    "notice",
    "delivery",
    "delivery_notice",
    "attempt",
    "job",
    "rule_match",
    "investor",
    "telling",
    "told_group",
    "group_alert",
    "silence",
    "ack",
    "tally",
    "opt_out",
];

const META: &str = "meta";

/// Rows of `meta` that say something of the database itself, not of what it knows.
const ABOUT_ITSELF: &str = "'schema', 'program', 'program_since'";

/// Tables whose numbers are known outside: none of them is given twice, also where its row is gone.
const NUMBERED_FOR_GOOD: [&str; 4] = ["change", "poll", "delivery", "telling"];

/// Tables whose numbers nobody outside knows.
const NUMBERED: [&str; 6] = ["token", "feed", "record", "schedule_version", "record_version", "attempt"];

/// Rows that are written at once: as many as this, or as take so much of memory.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// A table that was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopiedTable {
    /// Its name.
    pub table: String,
    /// How many rows it has, on both sides.
    pub rows: u64,
    /// What the hashes of its rows (XXH3, 128 bits) add up to, on both sides.
    pub hash: String,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress<'a> {
    /// What is done now: `copying` or `checking`.
    pub doing: &'static str,
    /// With which table.
    pub table: &'a str,
    /// Rows that are done, copied and checked together.
    pub done: u64,
    /// Rows that are to be done.
    pub total: u64,
}

impl Store {
    /// The tables of a database, whichever engine keeps it.
    pub fn tables() -> impl Iterator<Item = &'static str> {
        TABLES.into_iter()
    }

    /// What the server of a database says of itself. Blocks. Fails where it cannot be reached.
    pub fn server(place: &PostgresPlace) -> Result<DatabaseServer, StoreError> {
        let ask = || PgSession::open(&Arc::new(place.clone()), &Arc::default())?.server().map_err(SqlError::from);
        ask().map_err(|error| StoreFault::from(error).during("ask the server", place.name()))
    }

    /// Copies all that a database holds into another one, which is made where it is not there. Both are kept from everybody else
    /// meanwhile: a file by its lock, a database on a server by its lease, which is taken as `holder`. Blocks; run it where that
    /// harms nobody.
    /// Fails, with the target as empty as it was, where either is in use or cannot be reached, the source is missing or of another
    /// schema, the target is not empty, or a table does not come out as it went in.
    pub fn copy(
        from: &Place,
        to: &Place,
        holder: &str,
        now: Timestamp,
        tell: &mut dyn FnMut(CopyProgress<'_>),
    ) -> Result<Vec<CopiedTable>, StoreError> {
        let mut source = Source::open(from, holder)?;
        let mut target = Target::open(to, holder, now)?;
        let copied = source.hold(|from| target.fill(|to| copy_all(from, to, &mut CopyMeter { tell, done: 0, total: 0 })))?;
        target.finish()?;
        Ok(copied)
    }
}

/// One of the two databases, within its transaction.
#[derive(Clone, Copy)]
struct Side<'a> {
    at: &'a Transaction<'a>,
    path: &'a Path,
}

impl Side<'_> {
    fn during(self, doing: &'static str, table: &str, fault: impl Into<StoreFault>) -> StoreError {
        StoreError::CopyFailed { table: table.to_owned(), source: Box::new(fault.into().during(doing, self.path)) }
    }

    fn columns(self, table: &str) -> Result<Vec<String>, StoreError> {
        self.at.columns(table).map_err(|fault| self.during("read the schema", table, fault))
    }

    fn count(self, table: &str) -> Result<u64, StoreError> {
        self.at.count_rows(&of_interest(table)).map_err(|error| self.during("count the rows", table, error))
    }

    /// Every row of a table, its values in the order of `columns` and as both engines have them.
    fn scan(
        self,
        table: &str,
        columns: &[String],
        mut each: impl FnMut(Vec<Value>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {} FROM {}", quoted(columns), of_interest(table));
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

/// What of a table is copied.
fn of_interest(table: &str) -> String {
    if table == META { format!("{META} WHERE key NOT IN ({ABOUT_ITSELF})") } else { format!(r#""{table}""#) }
}

/// Tells how far it is.
struct CopyMeter<'a> {
    tell: &'a mut dyn FnMut(CopyProgress<'_>),
    done: u64,
    total: u64,
}

impl CopyMeter<'_> {
    fn step(&mut self, doing: &'static str, table: &str, rows: usize) {
        self.done += rows as u64;
        (self.tell)(CopyProgress { doing, table, done: self.done, total: self.total });
    }
}

/// Copies every table and the numbers that they gave, and compares.
fn copy_all(from: Side<'_>, to: Side<'_>, tell: &mut CopyMeter<'_>) -> Result<Vec<CopiedTable>, StoreError> {
    refuse_filled(to)?;
    let mut layout = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let columns = from.columns(table)?;
        refuse_unless_equal(table, &columns.join(", "), &to.columns(table)?.join(", "))?;
        tell.total += from.count(table)? * 2;
        layout.push((table, columns));
    }
    for (table, columns) in &layout {
        copy_table(from, to, table, columns, tell)?;
    }
    copy_numbers(from, to)?;
    failpoint::pass("copy.filled");
    let mut copied = Vec::with_capacity(layout.len());
    for (table, columns) in &layout {
        let there = from.digest(table, columns, || {})?;
        let here = to.digest(table, columns, || tell.step("checking", table, 1))?;
        refuse_unless_equal(table, &there.to_string(), &here.to_string())?;
        copied.push(CopiedTable { table: (*table).to_owned(), rows: here.rows(), hash: here.hash() });
    }
    failpoint::pass("copy.checked");
    Ok(copied)
}

/// Fails where anything is known here.
fn refuse_filled(to: Side<'_>) -> Result<(), StoreError> {
    for table in TABLES {
        let rows = to.count(table)?;
        if rows > 0 {
            return Err(StoreError::NotEmpty { path: to.path.to_owned(), table: table.to_owned(), rows });
        }
    }
    Ok(())
}

fn refuse_unless_equal(table: &str, from: &str, to: &str) -> Result<(), StoreError> {
    if from == to {
        return Ok(());
    }
    Err(StoreError::CopyDiffers { table: table.to_owned(), from: from.to_owned(), to: to.to_owned() })
}

fn copy_table(from: Side<'_>, to: Side<'_>, table: &str, columns: &[String], tell: &mut CopyMeter<'_>) -> Result<(), StoreError> {
    let mut write = |rows: Vec<Vec<Value>>| {
        let count = rows.len();
        to.at.insert_rows(table, columns, rows).map_err(|error| to.during("write rows", table, error))?;
        tell.step("copying", table, count);
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
    write(batch)
}

/// Has the copy give numbers where the source stopped.
fn copy_numbers(from: Side<'_>, to: Side<'_>) -> Result<(), StoreError> {
    for table in NUMBERED_FOR_GOOD.into_iter().chain(NUMBERED) {
        let read = |side: Side<'_>| side.at.last_number(table).map_err(|error| side.during("read the last number", table, error));
        // A file finds the next number of the latter by itself.
        if !to.at.is_postgres() && NUMBERED.contains(&table) {
            continue;
        }
        let Some(last) = read(from)? else { continue };
        to.at.set_last_number(table, last).map_err(|error| to.during("set the last number", table, error))?;
        refuse_unless_equal(table, &format!("number {last}"), &format!("number {}", read(to)?.unwrap_or_default()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
