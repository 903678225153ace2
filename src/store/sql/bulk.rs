//! Whole tables: which there are, their rows out and in, and the numbers that they gave out. However large a table is, no more than a
//! batch of its rows is in memory.

use rusqlite::types::Value;

use super::{OptionalExtension, Row, SqlResult, Transaction};
use crate::codec::all;
use crate::error::StoreFault;

impl Transaction<'_> {
    /// Lets this transaction take its time, also between two statements.
    pub(crate) fn allow_long(&self) -> SqlResult<()> {
        match self {
            Transaction::Sqlite(_) => Ok(()),
            Transaction::Postgres(session) => session.allow_long(),
        }
    }

    /// Names of the columns of a table that are written, by name; those that the engine computes are not among them.
    pub(crate) fn columns(&self, table: &str) -> Result<Vec<String>, StoreFault> {
        let sql = if self.is_postgres() {
            "SELECT column_name::text FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name::text = ?1 AND is_generated = 'NEVER'"
        } else {
            "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0"
        };
        let mut columns: Vec<String> = all(&mut self.prepare(sql)?, [table], |row| Ok(row.get(0)?))?;
        columns.sort_unstable();
        Ok(columns)
    }

    /// How many rows there are `from` somewhere.
    pub(crate) fn count_rows(&self, from: &str) -> SqlResult<u64> {
        let count: i64 = self.prepare(&format!("SELECT count(*) FROM {from}"))?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Gives every row of a question without values to `each`; of the answer some rows are in memory at a time.
    pub(crate) fn scan(&self, sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<(), StoreFault>) -> Result<(), StoreFault> {
        match self {
            Transaction::Sqlite(_) => {
                let mut statement = self.prepare(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    each(&row)?;
                }
                Ok(())
            }
            Transaction::Postgres(session) => session.scan(sql, |row| each(&Row::Owned(row))),
        }
    }

    /// Writes rows, each with a value for each of the columns.
    pub(crate) fn insert_rows(&self, table: &str, columns: &[String], rows: Vec<Vec<Value>>) -> SqlResult<()> {
        match self {
            Transaction::Sqlite(_) => {
                let places: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
                let sql = format!(r#"INSERT INTO "{table}" ({}) VALUES ({})"#, quoted(columns), places.join(", "));
                let mut statement = self.prepare_cached(&sql)?;
                rows.into_iter().try_for_each(|row| statement.execute(row))
            }
            Transaction::Postgres(session) => session.copy_in(table, &quoted(columns), rows),
        }
    }

    /// The highest number that a table with a column `no` gave to a row, as far as is known: one that is gone meanwhile counts where the
    /// engine remembers it.
    pub(crate) fn last_number(&self, table: &str) -> SqlResult<Option<i64>> {
        let highest = format!(r#"SELECT max(no) FROM "{table}""#);
        let highest: Option<i64> = self.prepare(&highest)?.query_row([], |row| row.get(0))?;
        let remembered: Option<Option<i64>> = if self.is_postgres() {
            let sql = format!("SELECT CASE WHEN is_called THEN last_value END FROM \"{table}_no_seq\"");
            self.prepare(&sql)?.query_row([], |row| row.get(0)).optional()?
        } else {
            let sql = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1";
            self.prepare(sql)?.query_row([table], |row| row.get(0)).optional()?
        };
        Ok(highest.max(remembered.flatten()))
    }

    /// Has a table give its next row a number above `last`.
    pub(crate) fn set_last_number(&self, table: &str, last: i64) -> SqlResult<()> {
        if self.is_postgres() {
            // Never undone: after a transaction that fails, numbers are left out.
            let sql = format!("SELECT setval('\"{table}_no_seq\"', ?1)");
            return self.prepare(&sql)?.query_row([last], |row| row.get::<_, i64>(0)).map(drop);
        }
        self.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))
    }
}

/// A list of columns in a statement.
pub(crate) fn quoted(columns: &[String]) -> String {
    columns.iter().map(|column| format!(r#""{column}""#)).collect::<Vec<_>>().join(", ")
}
