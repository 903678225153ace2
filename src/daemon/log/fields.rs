//! Formats the fields of a text log line. Each value is one line.

use std::{error::Error, fmt};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use model::text::{error_chain, harmless};

/// The indentation of continued lines of a message. No log entry starts with it.
const CONTINUED: &str = "\n    ";

/// Writes the message, then each field as `name=value`, sanitized. A multi-line message is indented.
pub(super) struct HarmlessFields;

impl<'w> FormatFields<'w> for HarmlessFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = FieldLine { writer, is_begun: false, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct FieldLine<'w> {
    writer: Writer<'w>,
    is_begun: bool,
    result: fmt::Result,
}

impl FieldLine<'_> {
    fn add(&mut self, field: &Field, value: &str) {
        let name = field.name();
        if self.result.is_err() || name.starts_with("log.") {
            return;
        }
        let gap = if std::mem::replace(&mut self.is_begun, true) { " " } else { "" };
        self.result = if name == "message" {
            let lines: Vec<String> = value.lines().map(harmless).collect();
            write!(self.writer, "{gap}{}", lines.join(CONTINUED))
        } else {
            let name = name.trim_start_matches("r#");
            let (before, between) =
                if self.writer.has_ansi_escapes() { ("\u{1b}[3m", "\u{1b}[0m\u{1b}[2m=\u{1b}[0m") } else { ("", "=") };
            write!(self.writer, "{gap}{before}{name}{between}{}", harmless(value))
        };
    }
}

impl Visit for FieldLine<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" { self.add(field, value) } else { self.add(field, &format!("{value:?}")) }
    }

    /// Writes an error with its causes.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, &error_chain(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}
