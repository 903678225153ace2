//! Statements that the server holds ready, and what comes of them.

use rusqlite::ToSql;

use super::live::Prepared;
use super::pipeline::Reply;
use super::value::{ColumnValue, Parameter};
use super::{PgFault, PgSession};
use crate::sql::{OwnedRow, SqlResult};

/// A statement that the server holds ready, in its session.
pub(crate) struct PgStatement<'a> {
    session: &'a PgSession,
    pub(super) prepared: Prepared,
}

impl<'a> PgStatement<'a> {
    pub(super) fn of(session: &'a PgSession, prepared: Prepared) -> Self {
        Self { session, prepared }
    }

    /// Has it run. That it went well is known when something else is answered, or the transaction has ended.
    pub(in crate::sql) fn execute(&self, values: &[&dyn ToSql]) -> SqlResult<()> {
        let Some(many) = self.prepared.many.as_ref().filter(|_| values.len() == self.prepared.statement.params().len()) else {
            return self.send_changing(values, false).map(drop);
        };
        let (values, bytes) = parameters(values)?;
        Ok(self.session.with_live(|live| live.gather(&self.prepared, many, values, bytes))?)
    }

    /// Runs it; answers how many rows it changed.
    pub(in crate::sql) fn execute_counted(&self, values: &[&dyn ToSql]) -> SqlResult<usize> {
        let number = self.send_changing(values, true)?;
        let changed = self.session.with_live(|live| live.answer(number))?.changed;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn send_changing(&self, values: &[&dyn ToSql], is_kept: bool) -> SqlResult<u64> {
        let ((values, bytes), statement) = (parameters(values)?, self.prepared.statement.clone());
        Ok(self.session.with_live(|live| live.send(live.changing(statement, values), bytes, is_kept))?)
    }

    /// Asks for its rows, which are read later.
    pub(in crate::sql) fn ask(&self, values: &[&dyn ToSql]) -> SqlResult<PgQuestion<'a>> {
        let ((values, bytes), statement) = (parameters(values)?, self.prepared.statement.clone());
        let number = self.session.with_live(|live| {
            let client = live.client.clone();
            let answer = async move {
                let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                let rows = client.query(&statement, &values).await?;
                Ok(Reply { rows, ..Reply::default() })
            };
            live.send(Box::pin(answer), bytes, true)
        })?;
        Ok(PgQuestion { session: self.session, number })
    }

    pub(in crate::sql) fn query(&self, values: &[&dyn ToSql]) -> SqlResult<Vec<OwnedRow>> {
        self.ask(values)?.rows()
    }
}

/// A question that is on its way.
pub(crate) struct PgQuestion<'a> {
    session: &'a PgSession,
    number: u64,
}

impl PgQuestion<'_> {
    /// Waits for its rows.
    pub(in crate::sql) fn rows(self) -> SqlResult<Vec<OwnedRow>> {
        let answer = self.session.with_live(|live| live.answer(self.number))?;
        answer.rows.iter().map(read_row).collect()
    }
}
fn parameters(values: &[&dyn ToSql]) -> SqlResult<(Vec<Parameter>, usize)> {
    let values: Vec<Parameter> = values.iter().map(|value| Ok(Parameter::of(value.to_sql()?)?)).collect::<SqlResult<_>>()?;
    let bytes = values.iter().map(Parameter::bytes).sum();
    Ok((values, bytes))
}

/// A row of an answer, in values that either engine could have given.
fn read_row(row: &tokio_postgres::Row) -> SqlResult<OwnedRow> {
    let read = |at| Ok(row.try_get::<_, ColumnValue>(at).map_err(PgFault::Refused)?.0);
    (0..row.len()).map(read).collect::<SqlResult<_>>().map(OwnedRow)
}
