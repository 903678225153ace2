//! Prints the messages to the demo's receivers on the terminal.

use std::{io::Write, time::Instant};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::terminal;
use model::{phrase, text::is_hostile};

pub(super) enum DemoLine {
    Webhook(Box<Value>),
    Mail {
        to: String,
        subject: String,
        bytes: usize,
    },
    /// Text of the demo itself.
    Text(String),
    /// The end of the output.
    End,
}

/// The numbers of printed messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrintedCount {
    alerts: usize,
    mails: usize,
}

impl PrintedCount {
    pub fn text(self) -> String {
        format!("{} by webhook, {} by mail", phrase::count(self.alerts, "alert"), phrase::count(self.mails, "message"))
    }
}

/// Prints lines until [`DemoLine::End`], because senders can outlive the demo.
pub(super) async fn print_lines(mut lines: mpsc::UnboundedReceiver<DemoLine>, began: Instant) -> PrintedCount {
    let width = terminal::width().map(usize::from);
    let mut printed = PrintedCount::default();
    while let Some(line) = lines.recv().await {
        let text = match line {
            DemoLine::Text(text) => text,
            DemoLine::End => break,
            DemoLine::Mail { to, subject, bytes } => {
                printed.mails += 1;
                let aside = format!("{} KiB to {}", bytes.div_ceil(1024), printable(&to));
                row(began, "mail", AnsiColor::Magenta, &printable(&subject), &aside, width)
            }
            DemoLine::Webhook(body) => {
                let rows = rows_of(&body, began, width);
                printed.alerts += rows.len();
                rows.join("\n")
            }
        };
        // Ignore a closed standard output.
        let _written = writeln!(anstream::stdout(), "{text}");
    }
    printed
}

/// The width of the columns before the text, in characters.
const INDENT: usize = 18;

/// Formats a row: time, kind, text, and `aside` on the same line if it fits.
fn row(began: Instant, word: &str, color: AnsiColor, text: &str, aside: &str, width: Option<usize>) -> String {
    let dim = Style::new().dimmed();
    let fits = width.is_none_or(|width| INDENT + text.chars().count() + 3 + aside.chars().count() <= width);
    let gap = if fits { "   ".to_owned() } else { format!("\n{:INDENT$}", "") };
    let word = format!("{word:<8}");
    format!("{:>6}  {}  {text}{gap}{dim}{aside}{dim:#}", stamp(began), colored(&word, color))
}

fn stamp(began: Instant) -> String {
    format!("{:.1}s", began.elapsed().as_secs_f64())
}

pub(super) fn colored(text: &str, color: AnsiColor) -> String {
    let style = Style::new().fg_color(Some(color.into())).bold();
    format!("{style}{text}{style:#}")
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !is_hostile(*c)).take(300).collect()
}

/// Formats a webhook message with a row for each alert.
fn rows_of(body: &Value, began: Instant, width: Option<usize>) -> Vec<String> {
    let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
    let alerts = body.pointer("/data/alerts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    alerts
        .iter()
        .map(|alert| {
            let of = |path: &str| printable(alert.pointer(path).and_then(Value::as_str).unwrap_or_default());
            let severity = of("/labels/severity");
            let (word, color) = match (kind, severity.as_str()) {
                ("alert.resolved", _) => ("resolved", AnsiColor::Green),
                (_, "critical") => ("critical", AnsiColor::Red),
                (_, "warning") => ("warning", AnsiColor::Yellow),
                (_, "") => ("alert", AnsiColor::Cyan),
                (_, other) => (other, AnsiColor::Cyan),
            };
            let aside = format!("{}, {}", of("/rule"), of("/reason"));
            row(began, word, color, &of("/annotations/summary"), &aside, width)
        })
        .collect()
}

#[cfg(test)]
mod tests;
