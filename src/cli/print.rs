//! Prints lists as tables, JSON, or CSV. Hostile characters are escaped in each format.

use std::io::Write;

use comfy_table::{Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::{Invocation, OutputFormat, width};
use model::text::{harmless, harmless_json, harmless_lines};
use model::{Timestamp, phrase};

/// The terminal width below which rows are printed as blocks, because a table would be unreadable.
const MIN_TABLE_WIDTH: u16 = 72;

/// A column, with its heading in tables and its name in CSV.
struct Column<'a, T> {
    heading: &'static str,
    name: &'static str,
    is_numbers: bool,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
}

/// A value as shown in tables, and as written to CSV.
pub(super) struct Cell {
    shown: String,
    raw: String,
}

impl Cell {
    /// Returns a cell with the same text for both.
    pub fn text(text: impl ToString) -> Self {
        let text = text.to_string();
        Self { shown: text.clone(), raw: text }
    }

    /// Returns a cell with an optional text.
    pub fn maybe(text: Option<&str>) -> Self {
        Self { shown: text.unwrap_or("–").to_owned(), raw: text.unwrap_or_default().to_owned() }
    }

    /// Returns a cell with an optional number, formatted by `format` in tables.
    pub fn number(number: Option<f64>, format: impl Fn(f64) -> String) -> Self {
        Self {
            shown: number.map_or_else(|| "–".to_owned(), format),
            raw: number.map(|number| number.to_string()).unwrap_or_default(),
        }
    }

    /// Returns a cell with an optional time, to the minute in tables.
    pub fn time(at: Option<Timestamp>) -> Self {
        Self {
            shown: at.map_or_else(|| "–".to_owned(), phrase::instant_iso),
            raw: at.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)).unwrap_or_default(),
        }
    }

    /// Returns a cell with different texts for tables and CSV.
    pub fn both(shown: impl Into<String>, raw: impl Into<String>) -> Self {
        Self { shown: shown.into(), raw: raw.into() }
    }
}

/// A list of rows, printed as a table or CSV with these columns, or serialized as JSON.
pub(super) struct Listing<'a, T> {
    rows: &'a [T],
    columns: Vec<Column<'a, T>>,
}

impl<'a, T> Listing<'a, T> {
    pub fn of(rows: &'a [T]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a left-aligned column.
    pub fn left_column(self, heading: &'static str, name: &'static str, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.column(Column { heading, name, is_numbers: false, cell: Box::new(cell) })
    }

    /// Adds a right-aligned column.
    pub fn right_column(self, heading: &'static str, name: &'static str, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.column(Column { heading, name, is_numbers: true, cell: Box::new(cell) })
    }

    fn column(mut self, column: Column<'a, T>) -> Self {
        self.columns.push(column);
        self
    }

    /// Prints the list in the selected format. If it is empty, prints `empty_reason` on standard error.
    pub fn print(&self, empty_reason: &str, invocation: &Invocation) -> anyhow::Result<()>
    where
        T: Serialize,
    {
        if self.rows.is_empty() {
            anstream::eprintln!("{empty_reason}");
        }
        let page = match invocation.format {
            OutputFormat::Json => json(&self.rows)?,
            OutputFormat::Csv => self.csv(),
            OutputFormat::Table if self.rows.is_empty() => return Ok(()),
            OutputFormat::Table => self.table(width()),
        };
        out(&page)
    }

    /// Formats CSV by RFC 4180, with a quote before cells that a spreadsheet would treat as a formula.
    pub fn csv(&self) -> String {
        let mut page = self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",");
        page.push_str("\r\n");
        for row in self.rows {
            page.push_str(&self.columns.iter().map(|column| csv_cell(&(column.cell)(row).raw)).collect::<Vec<_>>().join(","));
            page.push_str("\r\n");
        }
        page
    }

    /// Formats a table that fits `width` characters. `None`: unlimited width.
    pub fn table(&self, width: Option<u16>) -> String {
        if width.is_some_and(|width| width < MIN_TABLE_WIDTH) {
            return self.blocks();
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if let Some(width) = width {
            table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        }
        table.set_header(self.columns.iter().map(|column| TableCell::new(column.heading)));
        for row in self.rows {
            table.add_row(self.columns.iter().map(|column| TableCell::new(harmless(&(column.cell)(row).shown))));
        }
        for (index, column) in self.columns.iter().enumerate() {
            if let Some(of_table) = table.column_mut(index) {
                of_table.set_padding((0, 2));
                if column.is_numbers {
                    of_table.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let mut page = table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
        page.push('\n');
        page
    }

    fn blocks(&self) -> String {
        let mut page = String::new();
        for row in self.rows {
            for column in &self.columns {
                let cell = (column.cell)(row);
                if cell.shown != "–" && !cell.shown.is_empty() {
                    page.push_str(&format!("{}: {}\n", column.heading, harmless(&cell.shown)));
                }
            }
            page.push('\n');
        }
        page
    }
}

/// Writes to standard output. Escapes hostile characters again, in case a caller did not. A closed pipe is an error that
/// `print_error` ignores.
pub(super) fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(harmless_lines(text).as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Truncates a list that was read with one extra row to `limit`, and reports that there are more.
pub(super) fn keep_first<T>(rows: &mut Vec<T>, limit: u32, noun: &str) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if rows.len() > limit {
        rows.truncate(limit);
        anstream::eprintln!("showing the first {limit} {noun}; use --limit for more");
    }
}

/// Formats a value as JSON with a final line break and escaped hostile characters.
pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<String> {
    page_of_json(&serde_json::to_value(value)?)
}

/// Not generic, so that the formatter is compiled once.
fn page_of_json(value: &serde_json::Value) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(format!("{}\n", harmless_json(&text)))
}

fn csv_cell(text: &str) -> String {
    let mut text = harmless(text);
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) && text.parse::<f64>().is_err();
    if is_formula {
        text.insert(0, '\'');
    }
    if text.contains([',', '"']) || text.starts_with(' ') || text.ends_with(' ') {
        text = format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests;
