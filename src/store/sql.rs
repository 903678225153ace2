//! Access to both engines, SQLite and PostgreSQL, with one set of types.
//!
//! Operations are written once, with types that mirror rusqlite: [`Connection`] reads or writes, an operation
//! gets a [`Transaction`], and [`Statement`], [`ResultRows`], and [`Row`] lead from SQL to values. The values are
//! rusqlite types (`ToSql`, `FromSql`, `Value`) on both engines. `tables` reads whole tables, and `postgres` connects to a
//! server.
//!
//! The SQL is a subset that both engines understand. The PostgreSQL schema defines functions that only SQLite has, `?1`
//! parameters become `$1`, and [`Engine`] supplies the few clauses that differ.

pub(super) mod postgres;
mod tables;

use rusqlite::types::{FromSql, FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement as SqliteCached, ToSql, TransactionBehavior, types::Value};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

pub(super) use self::postgres::PgFault;
use self::postgres::{PgQuery, PgSession, PgStatement};
use super::error::StoreFault;
use super::page_facts::{self, FactsCache};
use super::read_stop::ReadStop;

/// An error of either engine.
#[derive(Debug, thiserror::Error)]
pub(super) enum SqlError {
    /// An error of SQLite, or a value of the wrong type from either engine.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// An error of PostgreSQL or of the connection to it.
    #[error(transparent)]
    Postgres(#[from] PgFault),
}

pub(super) type SqlResult<T> = Result<T, SqlError>;

/// The engine of a connection, with the few SQL clauses that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// Returns the clause that forces an index in SQLite. Empty for PostgreSQL, whose planner uses statistics.
    pub(super) fn indexed_by(self, index: &str) -> String {
        match self {
            Engine::Sqlite => format!("INDEXED BY {index}"),
            Engine::Postgres => String::new(),
        }
    }

    /// Returns an operand of `->>` for a JSON column. `NULL` if its text is damaged, which would fail the whole query in SQLite.
    pub(super) fn json(self, column: &str) -> String {
        match self {
            Engine::Sqlite => format!("(CASE WHEN json_valid({column}) THEN {column} END)"),
            Engine::Postgres => column.to_owned(),
        }
    }

    /// Returns the expression for the labels of an alert or a notification, as JSON.
    pub(super) fn labels(self) -> &'static str {
        match self {
            Engine::Sqlite => "body ->> '$.labels'",
            Engine::Postgres => "labels",
        }
    }

    /// Returns the clause that locks the selected rows. Empty for SQLite, which has a single writer.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Engine::Sqlite => "",
            Engine::Postgres => " FOR UPDATE",
        }
    }
}

/// The number of SQLite's virtual machine instructions between checks whether a read should stop: about a tenth of a millisecond.
const STOP_CHECK_INTERVAL: i32 = 4_000;

/// A connection of either engine.
#[derive(Debug)]
pub(super) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<PgSession>),
}

impl Connection {
    /// Runs `run` in one write transaction, which is rolled back if it fails. Write transactions of all processes are
    /// serialized. If `is_fenced` is set, the transaction fails unless this instance holds the lease.
    pub(super) fn write<T>(
        &mut self,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        self.write_uncounted(is_fenced, |transaction| transaction.counting(run))
    }

    /// Like [`Self::write`], but does not count changes of facts that pages keep. For databases without pages, and for copies of whole
    /// tables.
    pub(super) fn write_uncounted<T>(
        &mut self,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(connection) => {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let value = run(&Transaction::sqlite(&transaction))?;
                transaction.commit()?;
                Ok(value)
            }
            Connection::Postgres(session) => {
                session.begin_write(is_fenced)?;
                session.finish(run)
            }
        }
    }

    /// Like [`Self::write`], but on a server it locks only the rows that it changes or selects with
    /// [`Engine::for_update`].
    pub(super) fn write_rows<T>(&mut self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(_) => self.write_uncounted(false, run),
            Connection::Postgres(session) => {
                session.begin_rows()?;
                session.finish(run)
            }
        }
    }

    /// Runs `run` in one read transaction, on one snapshot.
    ///
    /// # Errors
    ///
    /// On a server, a fenced read fails unless this instance holds the lease in that snapshot. SQLite ignores `is_fenced`.
    pub(super) fn read<T>(
        &mut self,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(connection) => {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
                run(&Transaction::sqlite(&transaction))
            }
            Connection::Postgres(session) => {
                session.begin_read(is_fenced)?;
                session.finish_read(run)
            }
        }
    }

    /// Like [`Self::read`], but fails soon after the signal to stop. Readers of pages pass the facts that they keep.
    pub(super) fn read_until<T>(
        &mut self,
        stop: &ReadStop,
        is_fenced: bool,
        facts: Option<&FactsCache>,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        self.set_stop(Some(stop.clone()))?;
        let value = self.read(is_fenced, |transaction| run(&Transaction { facts, ..*transaction }));
        self.set_stop(None)?;
        value
    }

    fn set_stop(&mut self, stop: Option<ReadStop>) -> SqlResult<()> {
        match self {
            Connection::Sqlite(connection) => {
                let should_stop = stop.map(|stop| move || stop.is_stopped());
                Ok(connection.progress_handler(STOP_CHECK_INTERVAL, should_stop)?)
            }
            Connection::Postgres(session) => {
                session.set_stop(stop);
                Ok(())
            }
        }
    }

    /// Rolls back a transaction that a panic or an interrupt left open.
    pub(super) fn rollback_leftovers(&mut self) {
        match self {
            Connection::Sqlite(connection) if !connection.is_autocommit() => drop(connection.execute_batch("ROLLBACK")),
            Connection::Sqlite(_) => {}
            // A session rolls back itself.
            Connection::Postgres(_) => {}
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Returns the SQLite connection. Panics for a server.
    pub(super) fn sqlite(&self) -> &rusqlite::Connection {
        match self {
            Connection::Sqlite(connection) => connection,
            Connection::Postgres(_) => panic!("a connection to a server"),
        }
    }

    /// Returns how often the connection has waited for the server.
    pub(super) fn round_trips(&self) -> u64 {
        match self {
            Connection::Sqlite(_) => 0,
            Connection::Postgres(session) => session.round_trips(),
        }
    }
}

/// The connection of a transaction.
#[derive(Clone, Copy, Debug)]
enum Session<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a PgSession),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction<'a> {
    session: Session<'a>,
    /// Set by each statement that changes facts that pages keep. `None` if the change needs not be counted.
    changes_facts: Option<&'a Cell<bool>>,
    /// The facts that pages keep. `None` for other readers.
    facts: Option<&'a FactsCache>,
    /// Whether a read of facts that are not kept also keeps them.
    keeps_facts: bool,
}

impl<'a> Transaction<'a> {
    pub(super) fn sqlite(connection: &'a rusqlite::Connection) -> Self {
        Self { session: Session::Sqlite(connection), changes_facts: None, facts: None, keeps_facts: false }
    }

    fn postgres(session: &'a PgSession) -> Self {
        Self { session: Session::Postgres(session), changes_facts: None, facts: None, keeps_facts: false }
    }

    /// Runs `run`, and counts the change of facts that pages keep, if there is one.
    fn counting<T>(self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        let changes_facts = Cell::new(false);
        let value = run(&Transaction { changes_facts: Some(&changes_facts), ..self })?;
        if changes_facts.get() {
            page_facts::count_change(&self)?;
        }
        Ok(value)
    }

    /// Returns the facts that pages keep. `None` for other readers.
    pub(super) fn facts(&self) -> Option<&'a FactsCache> {
        self.facts
    }

    /// Returns this transaction for windows that begin now: a read of facts that are not kept also keeps them.
    pub(super) fn keeping_facts(&self) -> Self {
        Self { keeps_facts: true, ..*self }
    }

    pub(super) fn keeps_facts(&self) -> bool {
        self.keeps_facts
    }

    fn note_change(&self, sql: &str) {
        if let Some(changes_facts) = self.changes_facts.filter(|_| page_facts::is_changed_by(sql)) {
            changes_facts.set(true);
        }
    }

    /// Prepares a statement and caches it.
    pub(super) fn prepare_cached(&self, sql: &str) -> SqlResult<CachedStatement<'a>> {
        self.note_change(sql);
        Ok(CachedStatement(match self.session {
            Session::Sqlite(connection) => Statement::Cached(connection.prepare_cached(sql)?),
            Session::Postgres(session) => Statement::Postgres(session.prepare(sql, true)?),
        }))
    }

    /// Prepares a statement without caching it.
    pub(super) fn prepare(&self, sql: &str) -> SqlResult<Statement<'a>> {
        self.note_change(sql);
        Ok(match self.session {
            Session::Sqlite(connection) => Statement::Sqlite(connection.prepare(sql)?),
            Session::Postgres(session) => Statement::Postgres(session.prepare(sql, false)?),
        })
    }

    /// Runs a statement once, like [`Statement::execute`].
    pub(super) fn execute(&self, sql: &str, values: impl Params) -> SqlResult<()> {
        self.prepare(sql)?.execute(values)
    }

    /// Runs a statement once. Returns the number of changed rows.
    pub(super) fn execute_counted(&self, sql: &str, values: impl Params) -> SqlResult<usize> {
        self.prepare(sql)?.execute_counted(values)
    }

    /// Inserts rows, each with one value per column. Stops at the first row that fails. On a server, the call does not
    /// wait for the result; see [`Statement::execute`].
    pub(super) fn insert_many(&self, table: &str, columns: &[impl AsRef<str>], rows: Vec<Vec<Value>>) -> SqlResult<()> {
        match self.session {
            Session::Sqlite(_) if rows.is_empty() => Ok(()),
            Session::Sqlite(_) => {
                let mut statement = self.prepare_cached(&insert_sql(table, columns))?;
                rows.into_iter().try_for_each(|row| statement.execute(row))
            }
            Session::Postgres(session) => {
                self.note_change(&insert_sql(table, columns));
                session.insert_many(table, columns, rows)
            }
        }
    }

    /// Waits until all statements sent so far have succeeded.
    pub(super) fn flush(&self) -> SqlResult<()> {
        match self.session {
            Session::Sqlite(_) => Ok(()),
            Session::Postgres(session) => session.flush(),
        }
    }

    pub(super) fn engine(&self) -> Engine {
        match self.session {
            Session::Sqlite(_) => Engine::Sqlite,
            Session::Postgres(_) => Engine::Postgres,
        }
    }
}

/// Returns the statement that inserts one row.
fn insert_sql(table: &str, columns: &[impl AsRef<str>]) -> String {
    let placeholders: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    format!(r#"INSERT INTO "{table}" ({}) VALUES ({})"#, quoted(columns), placeholders.join(", "))
}

/// Returns a quoted list of column names.
pub(super) fn quoted(columns: &[impl AsRef<str>]) -> String {
    columns.iter().map(|column| format!(r#""{}""#, column.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Converts values to a row for [`Transaction::insert_many`].
pub(super) fn row_of(values: &[&dyn ToSql]) -> SqlResult<Vec<Value>> {
    values.iter().map(|value| owned_value(value.to_sql()?)).collect()
}

fn owned_value(value: ToSqlOutput<'_>) -> SqlResult<Value> {
    match value {
        ToSqlOutput::Owned(value) => Ok(value),
        ToSqlOutput::Borrowed(value) => Ok(Value::try_from(value).map_err(rusqlite::Error::from)?),
        _ => Err(rusqlite::Error::ToSqlConversionFailure("a value of an unknown kind".into()).into()),
    }
}

/// A statement that returns to the cache when dropped.
pub(super) struct CachedStatement<'a>(Statement<'a>);

impl<'a> Deref for CachedStatement<'a> {
    type Target = Statement<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for CachedStatement<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

pub(super) enum Statement<'a> {
    Cached(SqliteCached<'a>),
    Sqlite(rusqlite::Statement<'a>),
    Postgres(PgStatement<'a>),
}

impl<'a> Statement<'a> {
    /// Runs the statement. On a server, the call does not wait for the result: an error is returned by a later call
    /// that waits, at the latest by the commit.
    pub(super) fn execute(&mut self, values: impl Params) -> SqlResult<()> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(statement.execute(values).map(drop)?),
            Statement::Sqlite(statement) => Ok(statement.execute(values).map(drop)?),
            Statement::Postgres(statement) => statement.execute(values),
        })
    }

    /// Runs the statement and returns the number of changed rows.
    pub(super) fn execute_counted(&mut self, values: impl Params) -> SqlResult<usize> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(statement.execute(values)?),
            Statement::Sqlite(statement) => Ok(statement.execute(values)?),
            Statement::Postgres(statement) => statement.execute_counted(values),
        })
    }

    /// Sends a query and returns without waiting for its rows. Several queries sent in a row cost one round trip. The
    /// rows reflect the time of this call, not later writes.
    pub(super) fn send_query(&mut self, values: impl Params) -> SqlResult<PendingQuery<'a>> {
        if let Statement::Postgres(statement) = self {
            return Ok(PendingQuery::Postgres(values.lend(|values| statement.send_query(values))?));
        }
        let mut rows = self.query(values)?;
        let mut owned = Vec::new();
        while let Some(row) = rows.next()? {
            owned.push(row.into_owned()?);
        }
        Ok(PendingQuery::Finished(owned))
    }

    /// Runs a query and returns its rows.
    pub(super) fn query(&mut self, values: impl Params) -> SqlResult<ResultRows<'_>> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(ResultRows::Sqlite(statement.query(values)?)),
            Statement::Sqlite(statement) => Ok(ResultRows::Sqlite(statement.query(values)?)),
            Statement::Postgres(statement) => Ok(ResultRows::Owned(statement.query(values)?.into_iter())),
        })
    }

    /// Returns the first row, converted by `read`. Fails if the result is empty.
    pub(super) fn query_row<T>(&mut self, values: impl Params, read: impl FnOnce(&Row<'_>) -> SqlResult<T>) -> SqlResult<T> {
        self.query(values)?.first(read)
    }

    /// Returns the first row, converted by `read`, or `None` if the result is empty.
    pub(super) fn query_optional<T>(
        &mut self,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        self.query(values)?.next()?.map(|row| read(&row)).transpose()
    }
}

/// A query whose rows were not read yet.
pub(super) enum PendingQuery<'a> {
    Finished(Vec<OwnedRow>),
    Postgres(PgQuery<'a>),
}

impl PendingQuery<'_> {
    /// Waits for the rows.
    pub(super) fn rows(self) -> SqlResult<ResultRows<'static>> {
        let rows = match self {
            PendingQuery::Finished(rows) => rows,
            PendingQuery::Postgres(query) => query.rows()?,
        };
        Ok(ResultRows::Owned(rows.into_iter()))
    }

    /// Waits for the first row, converted by `read`. Fails if the result is empty.
    pub(super) fn row<T>(self, read: impl FnOnce(&Row<'_>) -> SqlResult<T>) -> SqlResult<T> {
        self.rows()?.first(read)
    }
}

/// The rows of a result.
pub(super) enum ResultRows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Owned(std::vec::IntoIter<OwnedRow>),
}

impl ResultRows<'_> {
    fn first<T>(mut self, read: impl FnOnce(&Row<'_>) -> SqlResult<T>) -> SqlResult<T> {
        match self.next()? {
            Some(row) => read(&row),
            None => Err(rusqlite::Error::QueryReturnedNoRows.into()),
        }
    }

    pub(super) fn next(&mut self) -> SqlResult<Option<Row<'_>>> {
        Ok(match self {
            ResultRows::Sqlite(rows) => rows.next()?.map(Row::Sqlite),
            ResultRows::Owned(rows) => rows.next().map(Row::Owned),
        })
    }
}

/// A row in memory, independent of the engine.
pub(super) struct OwnedRow(Vec<Value>);

impl OwnedRow {
    fn value(&self, at: usize) -> SqlResult<ValueRef<'_>> {
        self.0.get(at).map(ValueRef::from).ok_or_else(|| rusqlite::Error::InvalidColumnIndex(at).into())
    }
}

pub(super) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Owned(OwnedRow),
}

impl Row<'_> {
    fn into_owned(self) -> SqlResult<OwnedRow> {
        match self {
            Row::Sqlite(row) => {
                let columns = row.as_ref().column_count();
                (0..columns).map(|at| Ok(row.get(at)?)).collect::<SqlResult<_>>().map(OwnedRow)
            }
            Row::Owned(row) => Ok(row),
        }
    }

    /// Returns the value of a column, by its index from 0.
    pub(super) fn get<T: FromSql>(&self, at: usize) -> SqlResult<T> {
        match self {
            Row::Sqlite(row) => Ok(row.get(at)?),
            Row::Owned(row) => {
                let value = row.value(at)?;
                T::column_result(value).map_err(|error| SqlError::Sqlite(wrong_kind(at, value, error)))
            }
        }
    }

    /// Returns the size of the texts and blobs in the row, in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        let columns = match self {
            Row::Sqlite(row) => row.as_ref().column_count(),
            Row::Owned(row) => row.0.len(),
        };
        let bytes = |at| match self.get_ref(at) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => bytes.len(),
            _ => 0,
        };
        (0..columns).map(bytes).sum()
    }

    /// Returns the raw value of a column.
    pub(super) fn get_ref(&self, at: usize) -> SqlResult<ValueRef<'_>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(at)?),
            Row::Owned(row) => row.value(at),
        }
    }
}

/// Returns the approximate memory size of a row, in bytes.
pub(super) fn row_bytes(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Blob(blob) => blob.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
    };
    row.iter().map(|value| size_of::<Value>() + bytes(value)).sum()
}

/// Returns the error that rusqlite would return for a value of the wrong type.
fn wrong_kind(at: usize, value: ValueRef<'_>, error: FromSqlError) -> rusqlite::Error {
    match error {
        FromSqlError::InvalidType => rusqlite::Error::InvalidColumnType(at, format!("column {at}"), value.data_type()),
        FromSqlError::OutOfRange(number) => rusqlite::Error::IntegralValueOutOfRange(at, number),
        error => rusqlite::Error::FromSqlConversionFailure(at, value.data_type(), Box::new(error)),
    }
}

/// The parameters of a statement.
pub(super) trait Params {
    /// Passes the parameters, in order, to `run`.
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R;
}

impl Params for &[&dyn ToSql] {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(self)
    }
}

impl Params for [&(dyn ToSql + Send + Sync); 0] {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(&[])
    }
}

impl<T: ToSql> Params for [T; 1] {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        let [a] = &self;
        run(&[a])
    }
}

impl<T: ToSql> Params for [T; 2] {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        let [a, b] = &self;
        run(&[a, b])
    }
}

impl<A: ToSql, B: ToSql> Params for (A, B) {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(&[&self.0, &self.1])
    }
}

impl Params for Vec<Value> {
    fn lend<R>(self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(&self.iter().map(|value| value as &dyn ToSql).collect::<Vec<_>>())
    }
}
