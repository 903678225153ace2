//! Reading and inserting many rows.

use rusqlite::types::Value;
use tokio_postgres::types::Type;

use super::PgSession;
use super::value::SqlParameter;
use crate::error::StoreFault;
use crate::sql::{OwnedRow, SqlResult, insert_sql, quoted, row_bytes};

/// The maximum number of rows, and of the bytes of their values, that one statement inserts.
const MAX_INSERT_ROWS: usize = 256;
const MAX_INSERT_BYTES: usize = 128 << 10;

/// The target size of one fetch, in bytes. The row count of a fetch follows from the previous row sizes.
const FETCH_BYTES: usize = 1 << 20;

/// The number of rows of the first fetch, and the maximum of any.
const FIRST_FETCH: usize = 16;
const LARGEST_FETCH: usize = 1000;

/// The timeouts of a transaction that copies whole tables and waits for another database in between. No other process
/// waits for its locks, because a copy has exclusive access.
const LONG_TRANSACTION: &str = "SET LOCAL idle_in_transaction_session_timeout = '15min'; SET LOCAL statement_timeout = '15min'";

impl PgSession {
    /// Extends the timeouts of this transaction.
    pub(in crate::sql) fn allow_long(&self) -> SqlResult<()> {
        self.simple(LONG_TRANSACTION)?;
        Ok(())
    }

    /// Passes every row of a query to `each`, in several fetches.
    pub(in crate::sql) fn scan(
        &self,
        sql: &str,
        mut each: impl FnMut(OwnedRow) -> Result<(), StoreFault>,
    ) -> Result<(), StoreFault> {
        self.prepare(&format!("DECLARE scanned NO SCROLL CURSOR FOR {sql}"), false)?.execute(&[])?;
        let mut count = FIRST_FETCH;
        loop {
            let rows = self.prepare(&format!("FETCH FORWARD {count} FROM scanned"), false)?.query(&[])?;
            if rows.is_empty() {
                break;
            }
            let (rows_read, bytes) = (rows.len(), rows.iter().map(|row| row_bytes(&row.0)).sum::<usize>());
            rows.into_iter().try_for_each(&mut each)?;
            count = (FETCH_BYTES / (bytes / rows_read).max(1)).clamp(1, LARGEST_FETCH);
        }
        self.prepare("CLOSE scanned", false)?.execute(&[])?;
        Ok(())
    }

    /// Inserts rows with one array parameter per column, so that a row needs no statement of its own.
    pub(in crate::sql) fn insert_many(&self, table: &str, columns: &[impl AsRef<str>], rows: Vec<Vec<Value>>) -> SqlResult<()> {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let single = self.prepare(&insert_sql(table, columns), true)?.prepared;
        let many_sql = insert_arrays_sql(table, columns, single.params());
        while let Some(first) = rows.next() {
            let mut bytes = row_bytes(&first);
            let mut batch = vec![first];
            while let Some(row) = rows.next_if(|_| batch.len() < MAX_INSERT_ROWS && bytes < MAX_INSERT_BYTES) {
                bytes += row_bytes(&row);
                batch.push(row);
            }
            if batch.len() == 1 {
                let values = batch.into_iter().flatten().map(SqlParameter::from).collect();
                self.with_live(|live| live.send(live.execution(single.clone(), values), bytes, false))?;
            } else {
                let many = self.prepare(&many_sql, true)?.prepared;
                self.with_live(|live| live.send(live.execution(many, into_columns(batch)), bytes, false))?;
            }
        }
        Ok(())
    }
}

/// Returns the statement that inserts many rows from one array per column.
fn insert_arrays_sql(table: &str, columns: &[impl AsRef<str>], types: &[Type]) -> String {
    let arrays: Vec<String> = (1..).zip(types).map(|(number, ty)| format!("?{number}::{}[]", ty.name())).collect();
    format!(r#"INSERT INTO "{table}" ({}) SELECT * FROM unnest({})"#, quoted(columns), arrays.join(", "))
}

fn into_columns(rows: Vec<Vec<Value>>) -> Vec<Vec<SqlParameter>> {
    let mut columns: Vec<Vec<SqlParameter>> = Vec::new();
    for row in rows {
        columns.resize_with(row.len(), Vec::new);
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value.into());
        }
    }
    columns
}
