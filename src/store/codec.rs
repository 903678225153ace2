//! Conversion between values and columns. A value that this program never writes is an error, not a panic or a silent
//! default.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use chrono::DateTime;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use serde::{Serialize, de::DeserializeOwned};

use super::error::StoreFault;
use super::sql::{Params, ResultRows, Row, Statement};
use model::{ContentHash, Timestamp};

/// A time column, in whole milliseconds. Finer parts are truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Millis(pub(super) Timestamp);

impl ToSql for Millis {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.timestamp_millis().into())
    }
}

impl FromSql for Millis {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let millis = value.as_i64()?;
        DateTime::from_timestamp_millis(millis).map(Millis).ok_or(FromSqlError::OutOfRange(millis))
    }
}

pub(super) fn millis(at: Option<Timestamp>) -> Option<Millis> {
    at.map(Millis)
}

pub(super) fn time(millis: Option<Millis>) -> Option<Timestamp> {
    millis.map(|Millis(at)| at)
}

/// A hash column: 16 bytes, big-endian.
pub(super) struct Hash(pub(super) ContentHash);

impl ToSql for Hash {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.0.to_be_bytes().to_vec().into())
    }
}

impl FromSql for Hash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        let bytes = <[u8; 16]>::try_from(bytes)
            .map_err(|_| FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: bytes.len() })?;
        Ok(Hash(ContentHash(u128::from_be_bytes(bytes))))
    }
}

/// Converts a count for a column. Counts never exceed 2^63.
pub(super) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts a count from a column. Negative numbers become 0.
pub(super) fn counted(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Converts a small count from a column, clamped to `u32`.
pub(super) fn small(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

/// Serializes a value for a JSON column.
pub(super) fn json<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<String, StoreFault> {
    serde_json::to_string(value).map_err(|source| StoreFault::Unwritable { what, source })
}

/// Parses a JSON column. `what` and `of` identify the row in the error.
pub(super) fn from_json<T: DeserializeOwned>(what: &'static str, of: &str, text: &str) -> Result<T, StoreFault> {
    serde_json::from_str(text)
        .map_err(|source| StoreFault::BadRow { what: format!("{what} of {of} cannot be read"), source: Some(source) })
}

/// Parses an enum column. `what` and `of` identify the row in the error.
pub(super) fn word<T>(what: &'static str, of: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreFault> {
    parse(text).ok_or_else(|| StoreFault::BadRow { what: format!("{what} of {of} has the unknown value {text:?}"), source: None })
}

/// Reads all rows of a query.
pub(super) fn all<T>(
    statement: &mut Statement<'_>,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, StoreFault>,
) -> Result<Vec<T>, StoreFault> {
    all_of(statement.query(values)?, read)
}

/// Reads all rows of a query except damaged ones, which are logged.
pub(super) fn all_readable<T>(
    statement: &mut Statement<'_>,
    values: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreFault>,
) -> Result<Vec<T>, StoreFault> {
    let rows = all(statement, values, |row| readable(read(row)))?;
    Ok(rows.into_iter().flatten().collect())
}

/// Returns `None` for a damaged row, and logs it.
pub(super) fn readable<T>(read: Result<T, StoreFault>) -> Result<Option<T>, StoreFault> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(fault) => {
            let Some(damage) = fault.unreadable() else { return Err(fault) };
            log_damage(damage);
            Ok(None)
        }
    }
}

/// The maximum number of damaged rows that are logged.
const MAX_LOGGED: usize = 1_000;

/// Logs a damaged row, once until the next start: most rows are read every few seconds.
fn log_damage(damage: String) {
    static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED && !logged.contains(&damage) {
        tracing::error!(damage, "a row of the database is damaged and left out; restore a backup to repair it");
        logged.insert(damage);
    }
}

/// Reads all rows of a result.
pub(super) fn all_of<T>(
    mut rows: ResultRows<'_>,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreFault>,
) -> Result<Vec<T>, StoreFault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&row)?);
    }
    Ok(found)
}

/// Reads the row of a query that returns at most one.
pub(super) fn one<T>(
    statement: &mut Statement<'_>,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreFault>,
) -> Result<Option<T>, StoreFault> {
    one_of(statement.query(values)?, read)
}

/// Reads the row of a result that has at most one.
pub(super) fn one_of<T>(
    mut rows: ResultRows<'_>,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreFault>,
) -> Result<Option<T>, StoreFault> {
    match rows.next()? {
        Some(row) => read(&row).map(Some),
        None => Ok(None),
    }
}

/// Returns a JSON array of texts for `IN (SELECT value FROM json_each(?))`.
pub(super) fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> Value {
    Value::Text(serde_json::Value::from(texts.into_iter().collect::<Vec<_>>()).to_string())
}

/// Returns the condition that a column has one of some words of this program. Unlike a list in a parameter, a server can use an index.
pub(super) fn one_of_words<'w>(column: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("'{word}'")).collect();
    format!("{column} IN ({})", words.join(", "))
}

/// The `WHERE` conditions of a query, with their values.
#[derive(Default)]
pub(super) struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition. Each `?` in it refers to `value`.
    pub(super) fn and(&mut self, clause: &str, value: impl Into<Value>) -> &mut Self {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.values.push(value.into());
        self.sql.push_str(&clause.replace('?', &format!("?{}", self.values.len())));
        self
    }

    /// Adds a condition in which each `?` refers to the next one of several values.
    pub(super) fn and_all(&mut self, clause: &str, values: impl IntoIterator<Item = Value>) -> &mut Self {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        let mut values = values.into_iter();
        for (at, part) in clause.split('?').enumerate() {
            if at > 0 {
                self.values.extend(values.next());
                self.sql.push_str(&format!("?{}", self.values.len()));
            }
            self.sql.push_str(part);
        }
        self
    }

    /// Adds a condition without a value.
    pub(super) fn and_plain(&mut self, clause: &str) -> &mut Self {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(clause);
        self
    }

    /// Adds a condition if there is a value.
    pub(super) fn and_some<V: Into<Value>>(&mut self, clause: &str, value: Option<V>) -> &mut Self {
        if let Some(value) = value {
            self.and(clause, value);
        }
        self
    }

    /// Returns the statement, with the conditions between `head` and `tail`, and its values.
    pub(super) fn within(self, head: &str, tail: &str) -> (String, impl Params + use<>) {
        (format!("{head}{}{tail}", self.sql), self.values)
    }
}
