//! Rows that are inserted one after the other, gathered into one statement.
//!
//! A schedule is inserted row by row, in a loop that is written once for both engines. To a server each row would be a statement, with all
//! that goes with one, there and here. So rows that one statement inserts are kept for as long as nothing else is asked, and go out as
//! columns of one that inserts them all. It does what they would have done, in their order; where one of them would have failed, so does it.

use std::sync::Arc;

use tokio_postgres::types::Type;

use super::value::Parameter;

/// Rows, and bytes of their values, that one statement inserts at most.
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 128 << 10;

/// Rows of one statement that wait for their end.
pub(super) struct Gathered {
    /// What inserts one of them, and what inserts many.
    pub(super) single: tokio_postgres::Statement,
    pub(super) many: Arc<str>,
    /// The values of each parameter, row by row.
    columns: Vec<Vec<Parameter>>,
    rows: usize,
    pub(super) bytes: usize,
}

impl Gathered {
    pub(super) fn new(single: tokio_postgres::Statement, many: Arc<str>) -> Self {
        let columns = single.params().iter().map(|_| Vec::new()).collect();
        Self { single, many, columns, rows: 0, bytes: 0 }
    }

    /// Adds a row, which has as many values as the statement.
    pub(super) fn add(&mut self, values: Vec<Parameter>, bytes: usize) {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
        self.rows += 1;
        self.bytes += bytes;
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= MOST_ROWS || self.bytes >= MOST_BYTES
    }

    /// The values of the only row; else all of them, by columns.
    pub(super) fn into_values(self) -> Result<Vec<Parameter>, Vec<Vec<Parameter>>> {
        if self.rows == 1 { Ok(self.columns.into_iter().flatten().collect()) } else { Err(self.columns) }
    }
}

/// Of `INSERT INTO table (columns) VALUES ($1, 'word', $2)` the statement that inserts many such rows, of which it is given the columns.
/// None for any other statement: one that answers something, or goes by what is there already.
pub(super) fn inserts_many(sql: &str, parameters: &[Type]) -> Option<String> {
    let (head, values) = sql.trim().split_once(" VALUES (")?;
    let values = values.strip_suffix(')').filter(|values| !values.contains(['(', ')', '"']))?;
    if !head.starts_with("INSERT INTO ") || head.contains('$') || parameters.is_empty() {
        return None;
    }
    let value = |value: &str| -> Option<String> {
        let value = value.trim();
        let word = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
        let is_word = word.is_some_and(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match value.strip_prefix('$') {
            Some(number) => is_number(number).then(|| format!("v{number}")),
            None => (is_word || is_number(value) || value == "NULL").then(|| value.to_owned()),
        }
    };
    let values: Option<Vec<String>> = values.split(',').map(value).collect();
    let arrays: Vec<String> = (1..).zip(parameters).map(|(at, ty)| format!("${at}::{}[]", ty.name())).collect();
    let names: Vec<String> = (1..=parameters.len()).map(|at| format!("v{at}")).collect();
    Some(format!("{head} SELECT {} FROM unnest({}) AS given ({})", values?.join(", "), arrays.join(", "), names.join(", ")))
}

#[cfg(test)]
mod tests;
