//! Operations on whole tables: columns, rows, and row numbers. Only one batch of rows is in memory at a time.

use super::{Engine, Row, Session, SqlResult, Transaction};
use crate::codec::all;
use crate::error::StoreFault;

impl Transaction<'_> {
    /// Extends the timeouts of this transaction.
    pub(crate) fn allow_long(&self) -> SqlResult<()> {
        match self.session {
            Session::Sqlite(_) => Ok(()),
            Session::Postgres(session) => session.allow_long(),
        }
    }

    /// Returns the sorted column names of a table, without generated columns.
    pub(crate) fn columns(&self, table: &str) -> Result<Vec<String>, StoreFault> {
        let sql = if self.engine() == Engine::Postgres {
            "SELECT column_name::text FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name::text = ?1 AND is_generated = 'NEVER'"
        } else {
            "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0"
        };
        let mut columns: Vec<String> = all(&mut self.prepare(sql)?, [table], |row| Ok(row.get(0)?))?;
        columns.sort_unstable();
        Ok(columns)
    }

    /// Counts the rows of `from`, a table with an optional condition.
    pub(crate) fn count_rows(&self, from: &str) -> SqlResult<u64> {
        let count: i64 = self.prepare(&format!("SELECT count(*) FROM {from}"))?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Passes every row of a query without parameters to `each`. Only some rows are in memory at a time.
    pub(crate) fn scan(&self, sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<(), StoreFault>) -> Result<(), StoreFault> {
        match self.session {
            Session::Sqlite(_) => {
                let mut statement = self.prepare(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    each(&row)?;
                }
                Ok(())
            }
            Session::Postgres(session) => session.scan(sql, |row| each(&Row::Owned(row))),
        }
    }

    /// Returns the highest number that a table has assigned to its column `no`. Includes deleted rows if the engine
    /// remembers them.
    pub(crate) fn last_number(&self, table: &str) -> SqlResult<Option<i64>> {
        let highest = format!(r#"SELECT max(no) FROM "{table}""#);
        let highest: Option<i64> = self.prepare(&highest)?.query_row([], |row| row.get(0))?;
        let remembered: Option<Option<i64>> = if self.engine() == Engine::Postgres {
            let sql = format!("SELECT CASE WHEN is_called THEN last_value END FROM \"{table}_no_seq\"");
            self.prepare(&sql)?.query_optional([], |row| row.get(0))?
        } else {
            let sql = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1";
            self.prepare(sql)?.query_optional([table], |row| row.get(0))?
        };
        Ok(highest.max(remembered.flatten()))
    }

    /// Makes the next row number larger than `last`.
    pub(crate) fn set_last_number(&self, table: &str, last: i64) -> SqlResult<()> {
        if self.engine() == Engine::Postgres {
            // `setval` is not transactional: a rollback leaves a gap in the numbers.
            let sql = format!("SELECT setval('\"{table}_no_seq\"', ?1)");
            return self.prepare(&sql)?.query_row([last], |row| row.get::<i64>(0)).map(drop);
        }
        self.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))
    }
}
