//! Lists as tables, JSON or CSV. What comes from the source is shown harmlessly in each.

use std::io::Write;

use comfy_table::{Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::{Invocation, OutputFormat, width};
use model::Timestamp;
use model::text::{harmless, harmless_json, harmless_lines};

/// Below this many columns a table becomes a list of small blocks: on a phone, five columns of one letter help nobody.
const NARROW: u16 = 72;

/// A column: heading in tables, name in CSV, whether it holds numbers, and what stands in it.
struct Column<'a, T> {
    heading: &'static str,
    name: &'static str,
    is_numbers: bool,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
}

/// A value: as people read it, as programs read it.
pub(super) struct Cell {
    shown: String,
    raw: String,
}

impl Cell {
    /// The same for both.
    pub fn text(text: impl ToString) -> Self {
        let text = text.to_string();
        Self { shown: text.clone(), raw: text }
    }

    /// A text that may be missing.
    pub fn maybe(text: Option<&str>) -> Self {
        Self { shown: text.unwrap_or("–").to_owned(), raw: text.unwrap_or_default().to_owned() }
    }

    /// A number that may be missing, shown by `format`.
    pub fn number(number: Option<f64>, format: impl Fn(f64) -> String) -> Self {
        Self {
            shown: number.map_or_else(|| "–".to_owned(), format),
            raw: number.map(|number| number.to_string()).unwrap_or_default(),
        }
    }

    /// An instant that may be missing, to the minute for people.
    pub fn time(at: Option<Timestamp>) -> Self {
        Self {
            shown: at.map_or_else(|| "–".to_owned(), |at| at.format("%Y-%m-%d %H:%M").to_string()),
            raw: at.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)).unwrap_or_default(),
        }
    }

    /// Something else for people than for programs.
    pub fn both(shown: impl Into<String>, raw: impl Into<String>) -> Self {
        Self { shown: shown.into(), raw: raw.into() }
    }
}

/// A list: a row for each of `rows` as table and CSV, and as it is in JSON.
pub(super) struct Listing<'a, T> {
    rows: &'a [T],
    columns: Vec<Column<'a, T>>,
}

impl<'a, T> Listing<'a, T> {
    pub fn of(rows: &'a [T]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// With a column of words.
    pub fn words(self, heading: &'static str, name: &'static str, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.column(Column { heading, name, is_numbers: false, cell: Box::new(cell) })
    }

    /// With a column of numbers: they stand to the right.
    pub fn numbers(self, heading: &'static str, name: &'static str, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.column(Column { heading, name, is_numbers: true, cell: Box::new(cell) })
    }

    fn column(mut self, column: Column<'a, T>) -> Self {
        self.columns.push(column);
        self
    }

    /// Prints it on standard output as the command line asks; `nothing` is said on standard error when it is empty.
    pub fn print(&self, nothing: &str, invocation: &Invocation) -> anyhow::Result<()>
    where
        T: Serialize,
    {
        if self.rows.is_empty() {
            anstream::eprintln!("{nothing}");
        }
        let page = match invocation.format {
            OutputFormat::Json => json(&self.rows)?,
            OutputFormat::Csv => self.csv(),
            OutputFormat::Table if self.rows.is_empty() => return Ok(()),
            OutputFormat::Table => self.table(width()),
        };
        out(&page)
    }

    /// RFC 4180, with cells that a spreadsheet would take for a formula made plain.
    pub fn csv(&self) -> String {
        let mut page = self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",");
        page.push_str("\r\n");
        for row in self.rows {
            page.push_str(&self.columns.iter().map(|column| csv_cell(&(column.cell)(row).raw)).collect::<Vec<_>>().join(","));
            page.push_str("\r\n");
        }
        page
    }

    /// A table that fits `width` columns; as wide as it likes where there is none.
    pub fn table(&self, width: Option<u16>) -> String {
        if width.is_some_and(|width| width < NARROW) {
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

/// Writes to standard output; a closed pipe is an error that `print_error` knows. Nothing passes here that steers a terminal, whatever
/// was forgotten before.
pub(super) fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(harmless_lines(text).as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Keeps the first rows of a list that was asked for one more, and says that there are others.
pub(super) fn keep_first<T>(rows: &mut Vec<T>, limit: u32, noun: &str) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if rows.len() > limit {
        rows.truncate(limit);
        anstream::eprintln!("there are more than {limit} {noun}: --limit shows more");
    }
}

/// A value as JSON with a line break. Control and direction characters of the source are escaped, so that a terminal can show it.
pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<String> {
    page_of_json(&serde_json::to_value(value)?)
}

/// Of any value: writing prettily is compiled for this one alone.
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
