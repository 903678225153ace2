//! Many rows out of a server and in.

use rusqlite::types::Value;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::value::Parameter;
use super::{ANSWER, PgSession};
use crate::error::StoreFault;
use crate::sql::{OwnedRow, SqlResult, row_bytes};

/// What one answer of many rows may take, bytes: as many rows are asked for as have taken that so far.
const FETCH_BYTES: usize = 1 << 20;

/// Rows of the first answer, of whose size nothing is known, and of any.
const FIRST_FETCH: usize = 16;
const LARGEST_FETCH: usize = 1000;

/// How long a process may think between two statements of a transaction that moves whole tables: it reads or writes another database
/// meanwhile. Nobody else waits for its locks, since nobody else is at work.
const LONG_TRANSACTION: &str = "SET LOCAL idle_in_transaction_session_timeout = '15min'; SET LOCAL statement_timeout = '15min'";

impl PgSession {
    /// Lets this transaction take its time.
    pub(in crate::sql) fn allow_long(&self) -> SqlResult<()> {
        self.simple(LONG_TRANSACTION)?;
        Ok(())
    }

    /// Gives every row of a question to `each`, asked for by some at a time.
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

    /// Writes rows into the named columns of a table. Fails where the server takes one of them not.
    pub(in crate::sql) fn copy_in(&self, table: &str, columns: &str, rows: Vec<Vec<Value>>) -> SqlResult<()> {
        let types: Vec<Type> = {
            let question = self.prepare(&format!(r#"SELECT {columns} FROM "{table}""#), false)?;
            question.prepared.statement.columns().iter().map(|column| column.type_().clone()).collect()
        };
        let rows: Vec<Vec<Parameter>> = rows.into_iter().map(|row| row.into_iter().map(Parameter::from).collect()).collect();
        let sql = format!(r#"COPY "{table}" ({columns}) FROM STDIN BINARY"#);
        self.with_live(|live| {
            let writing = async {
                let mut writer = std::pin::pin!(BinaryCopyInWriter::new(live.client.copy_in(&sql).await?, &types));
                for row in &rows {
                    let row: Vec<&(dyn ToSql + Sync)> = row.iter().map(|value| value as _).collect();
                    writer.as_mut().write(&row).await?;
                }
                writer.finish().await
            };
            live.ask(writing, ANSWER)
        })?;
        Ok(())
    }
}
