//! One way to speak SQL to either engine.
//!
//! Operations are written once, over the types here, which mimic the few of rusqlite that they need. [`Connection`] is the one that
//! writes or reads; [`Transaction`] what an operation gets; [`Statement`], [`ResultRows`] and [`Row`] lead from SQL to values. Values are
//! rusqlite's own (`ToSql`, `FromSql`, `Value`), whichever engine keeps them.
//!
//! `bulk` moves whole tables. `postgres` speaks to a server: `postgres::translate` makes a statement out of the one that SQLite reads,
//! `postgres::value` carries values there and back. What SQL both engines understand alike is written alike everywhere; where PostgreSQL
//! has no such function, its schema brings one of the same name. Nothing here decides anything.

pub(super) mod bulk;
pub(super) mod postgres;

use rusqlite::types::{FromSql, FromSqlError, ValueRef};
use rusqlite::{CachedStatement as SqliteCached, ToSql, TransactionBehavior, types::Value};
use std::ops::{Deref, DerefMut};

pub(super) use self::postgres::PgFault;
use self::postgres::{PgQuestion, PgSession, PgStatement};
use super::error::StoreFault;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SqlError {
    /// SQLite refused, or a value is of the wrong kind, whichever engine it came from.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The server refused, or could not be reached.
    #[error(transparent)]
    Postgres(#[from] PgFault),
}

pub(super) type SqlResult<T> = Result<T, SqlError>;

/// Makes of "there is no row" an answer.
pub(super) trait OptionalExtension<T> {
    fn optional(self) -> SqlResult<Option<T>>;
}

impl<T> OptionalExtension<T> for SqlResult<T> {
    fn optional(self) -> SqlResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(SqlError::Sqlite(rusqlite::Error::QueryReturnedNoRows)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A connection to the database, of either engine.
#[derive(Debug)]
pub(super) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<PgSession>),
}

impl Connection {
    /// Runs `run` in one transaction that writes; it is committed if it succeeds and undone if not. There is one such transaction at
    /// a time, whoever runs it, and it fails where `is_fenced` asks for a lease that is not ours any more.
    pub(super) fn write<T>(
        &mut self,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(connection) => {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let value = run(&Transaction::Sqlite(&transaction))?;
                transaction.commit()?;
                Ok(value)
            }
            Connection::Postgres(session) => {
                session.begin_write(is_fenced)?;
                session.finish(run)
            }
        }
    }

    /// As [`Self::write`], for a transaction which keeps others only from those rows that it changes, or reads
    /// [`Transaction::for_update`], where the engine knows rows.
    pub(super) fn write_rows<T>(&mut self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(_) => self.write(false, run),
            Connection::Postgres(session) => {
                session.begin_rows()?;
                session.finish(run)
            }
        }
    }

    /// Runs `run` in one transaction that reads: all of it is of one moment. It fails where `is_fenced` asks for a lease that is not ours
    /// at that moment.
    pub(super) fn read<T>(
        &mut self,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        match self {
            Connection::Sqlite(connection) => {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
                run(&Transaction::Sqlite(&transaction))
            }
            Connection::Postgres(session) => {
                session.begin_read(is_fenced)?;
                session.finish_read(run)
            }
        }
    }

    /// Ends what a panic left half done.
    pub(super) fn undo_leftovers(&mut self) {
        match self {
            // Only after a panic in the midst of a transaction whose guard could not undo it.
            Connection::Sqlite(connection) if !connection.is_autocommit() => drop(connection.execute_batch("ROLLBACK")),
            Connection::Sqlite(_) => {}
            // A session undoes by itself what it was in the midst of.
            Connection::Postgres(_) => {}
        }
    }
}

#[cfg(test)]
impl Connection {
    /// The connection to a file.
    pub(super) fn sqlite(&self) -> &rusqlite::Connection {
        match self {
            Connection::Sqlite(connection) => connection,
            Connection::Postgres(_) => panic!("a connection to a server"),
        }
    }

    /// How often it has waited for a server.
    pub(super) fn round_trips(&self) -> u64 {
        match self {
            Connection::Sqlite(_) => 0,
            Connection::Postgres(session) => session.round_trips(),
        }
    }
}

/// One transaction, as an operation sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transaction<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a PgSession),
}

impl<'a> Transaction<'a> {
    /// A statement that is kept ready for the next time.
    pub(super) fn prepare_cached(&self, sql: &str) -> SqlResult<CachedStatement<'a>> {
        Ok(CachedStatement(match self {
            Transaction::Sqlite(connection) => Statement::Cached(connection.prepare_cached(sql)?),
            Transaction::Postgres(session) => Statement::Postgres(session.prepare(sql, true)?),
        }))
    }

    /// A statement for this once.
    pub(super) fn prepare(&self, sql: &str) -> SqlResult<Statement<'a>> {
        Ok(match self {
            Transaction::Sqlite(connection) => Statement::Sqlite(connection.prepare(sql)?),
            Transaction::Postgres(session) => Statement::Postgres(session.prepare(sql, false)?),
        })
    }

    /// Runs a statement for this once, as [`Statement::execute`] does.
    pub(super) fn execute(&self, sql: &str, values: impl Params) -> SqlResult<()> {
        self.prepare(sql)?.execute(values)
    }

    /// Runs a statement for this once; answers how many rows it changed.
    pub(super) fn execute_counted(&self, sql: &str, values: impl Params) -> SqlResult<usize> {
        self.prepare(sql)?.execute_counted(values)
    }

    /// The end of a question whose rows nobody else may change until the transaction ends: in a file nobody can.
    pub(super) fn for_update(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE" } else { "" }
    }

    /// Which engine keeps the data: for the few questions that are put differently.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self, Transaction::Postgres(_))
    }
}

/// A statement of the cache.
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

/// A prepared statement.
pub(super) enum Statement<'a> {
    Cached(SqliteCached<'a>),
    Sqlite(rusqlite::Statement<'a>),
    Postgres(PgStatement<'a>),
}

impl<'a> Statement<'a> {
    /// Runs it. On a server nobody waits for that: where it fails, the next that is answered fails with its error, at the latest the
    /// transaction.
    pub(super) fn execute(&mut self, values: impl Params) -> SqlResult<()> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(statement.execute(values).map(drop)?),
            Statement::Sqlite(statement) => Ok(statement.execute(values).map(drop)?),
            Statement::Postgres(statement) => statement.execute(values),
        })
    }

    /// Runs it and waits for how many rows it changed.
    pub(super) fn execute_counted(&mut self, values: impl Params) -> SqlResult<usize> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(statement.execute(values)?),
            Statement::Sqlite(statement) => Ok(statement.execute(values)?),
            Statement::Postgres(statement) => statement.execute_counted(values),
        })
    }

    /// Asks for its rows, which are read later: of several questions that are put before the first is read, a server answers all in
    /// the time of one. The rows are those of now, whatever is written until they are read.
    pub(super) fn ask(&mut self, values: impl Params) -> SqlResult<Question<'a>> {
        if let Statement::Postgres(statement) = self {
            return Ok(Question::Postgres(values.lend(|values| statement.ask(values))?));
        }
        let mut rows = self.query(values)?;
        let mut owned = Vec::new();
        while let Some(row) = rows.next()? {
            owned.push(row.into_owned()?);
        }
        Ok(Question::Answered(owned))
    }

    /// Runs it and gives its rows.
    pub(super) fn query(&mut self, values: impl Params) -> SqlResult<ResultRows<'_>> {
        values.lend(|values| match self {
            Statement::Cached(statement) => Ok(ResultRows::Sqlite(statement.query(values)?)),
            Statement::Sqlite(statement) => Ok(ResultRows::Sqlite(statement.query(values)?)),
            Statement::Postgres(statement) => Ok(ResultRows::Owned(statement.query(values)?.into_iter())),
        })
    }

    /// Its first row, read by `read`. Fails where there is none.
    pub(super) fn query_row<T>(&mut self, values: impl Params, read: impl FnOnce(&Row<'_>) -> SqlResult<T>) -> SqlResult<T> {
        self.query(values)?.first(read)
    }
}

/// A question that was put and is not read yet.
pub(super) enum Question<'a> {
    Answered(Vec<OwnedRow>),
    Postgres(PgQuestion<'a>),
}

impl Question<'_> {
    /// Its rows.
    pub(super) fn rows(self) -> SqlResult<ResultRows<'static>> {
        let rows = match self {
            Question::Answered(rows) => rows,
            Question::Postgres(question) => question.rows()?,
        };
        Ok(ResultRows::Owned(rows.into_iter()))
    }

    /// Its first row, read by `read`. Fails where there is none.
    pub(super) fn row<T>(self, read: impl FnOnce(&Row<'_>) -> SqlResult<T>) -> SqlResult<T> {
        self.rows()?.first(read)
    }
}

/// The rows of an answer, one after the other.
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

/// A row that belongs to nobody, in values that either engine could have given.
pub(super) struct OwnedRow(Vec<Value>);

impl OwnedRow {
    fn value(&self, at: usize) -> SqlResult<ValueRef<'_>> {
        self.0.get(at).map(ValueRef::from).ok_or_else(|| rusqlite::Error::InvalidColumnIndex(at).into())
    }
}

/// One row.
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

    /// The value of a column, by its place from zero.
    pub(super) fn get<I: ColumnIndex, T: FromSql>(&self, at: I) -> SqlResult<T> {
        let at = at.place();
        match self {
            Row::Sqlite(row) => Ok(row.get(at)?),
            Row::Owned(row) => {
                let value = row.value(at)?;
                T::column_result(value).map_err(|error| SqlError::Sqlite(wrong_kind(at, value, error)))
            }
        }
    }

    /// The value of a column as it lies there.
    pub(super) fn get_ref(&self, at: usize) -> SqlResult<ValueRef<'_>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(at)?),
            Row::Owned(row) => row.value(at),
        }
    }
}

/// What a row takes of memory, about, bytes.
pub(super) fn row_bytes(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Blob(blob) => blob.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
    };
    row.iter().map(|value| size_of::<Value>() + bytes(value)).sum()
}

/// What names a column: rusqlite's `get` has a parameter for it, which calls leave open.
pub(super) trait ColumnIndex {
    fn place(self) -> usize;
}

impl ColumnIndex for usize {
    fn place(self) -> usize {
        self
    }
}

/// The error that rusqlite gives for a value of the wrong kind.
fn wrong_kind(at: usize, value: ValueRef<'_>, error: FromSqlError) -> rusqlite::Error {
    match error {
        FromSqlError::InvalidType => rusqlite::Error::InvalidColumnType(at, format!("column {at}"), value.data_type()),
        FromSqlError::OutOfRange(number) => rusqlite::Error::IntegralValueOutOfRange(at, number),
        error => rusqlite::Error::FromSqlConversionFailure(at, value.data_type(), Box::new(error)),
    }
}

/// Values for a statement.
pub(super) trait Params {
    /// Lends them, in their order, to `run`.
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
