//! Prepared statements and their results.

use rusqlite::ToSql;

use super::pipeline::Reply;
use super::value::{ColumnValue, SqlParameter};
use super::{PgFault, PgSession};
use crate::sql::{OwnedRow, SqlResult, row_bytes, row_of};

/// A prepared statement of a session.
pub(crate) struct PgStatement<'a> {
    session: &'a PgSession,
    pub(super) prepared: tokio_postgres::Statement,
}

impl<'a> PgStatement<'a> {
    pub(super) fn of(session: &'a PgSession, prepared: tokio_postgres::Statement) -> Self {
        Self { session, prepared }
    }

    /// Sends the statement. A later response, or the end of the transaction, reports whether it succeeded.
    pub(in crate::sql) fn execute(&self, values: &[&dyn ToSql]) -> SqlResult<()> {
        self.send_changing(values, false).map(drop)
    }

    /// Runs the statement and returns the number of changed rows.
    pub(in crate::sql) fn execute_counted(&self, values: &[&dyn ToSql]) -> SqlResult<usize> {
        let number = self.send_changing(values, true)?;
        let changed = self.session.with_live(|live| live.response(number))?.changed;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn send_changing(&self, values: &[&dyn ToSql], is_kept: bool) -> SqlResult<u64> {
        let ((values, bytes), statement) = (parameters(values)?, self.prepared.clone());
        Ok(self.session.with_live(|live| live.send(live.execution(statement, values), bytes, is_kept))?)
    }

    /// Sends a query. Its rows are read later.
    pub(in crate::sql) fn send_query(&self, values: &[&dyn ToSql]) -> SqlResult<PgQuery<'a>> {
        let ((values, bytes), statement) = (parameters(values)?, self.prepared.clone());
        let number = self.session.with_live(|live| {
            let client = live.client.clone();
            let response = async move {
                let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                let rows = client.query(&statement, &values).await?;
                Ok(Reply { rows, ..Reply::default() })
            };
            live.send(Box::pin(response), bytes, true)
        })?;
        Ok(PgQuery { session: self.session, number })
    }

    pub(in crate::sql) fn query(&self, values: &[&dyn ToSql]) -> SqlResult<Vec<OwnedRow>> {
        self.send_query(values)?.rows()
    }
}

/// A query that was sent.
pub(crate) struct PgQuery<'a> {
    session: &'a PgSession,
    number: u64,
}

impl PgQuery<'_> {
    /// Waits for the rows.
    pub(in crate::sql) fn rows(self) -> SqlResult<Vec<OwnedRow>> {
        let response = self.session.with_live(|live| live.response(self.number))?;
        response.rows.iter().map(read_row).collect()
    }
}

fn parameters(values: &[&dyn ToSql]) -> SqlResult<(Vec<SqlParameter>, usize)> {
    let values = row_of(values)?;
    let bytes = row_bytes(&values);
    Ok((values.into_iter().map(SqlParameter::from).collect(), bytes))
}

/// Converts a row to engine-independent values.
fn read_row(row: &tokio_postgres::Row) -> SqlResult<OwnedRow> {
    let read = |at| Ok(row.try_get::<_, ColumnValue>(at).map_err(PgFault::Refused)?.0);
    (0..row.len()).map(read).collect::<SqlResult<_>>().map(OwnedRow)
}
