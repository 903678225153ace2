//! The log: tracing to standard error, for people or as JSON, one line for each thing worth knowing.
//!
//! `RUST_LOG` wins over `-v`, which wins over `[log] level`. Under systemd the journal has the time already and reads the priority from
//! a `<N>` in front of each line, so neither is written twice.
//!
//! No text from outside writes lines of its own or steers a terminal: `fields` writes what people read, `escaped` what programs do.

mod escaped;
mod fields;

use std::{fmt, io::IsTerminal};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use escaped::EscapedStderr;
use fields::HarmlessFields;
use model::config::{LogFormat, LogSettings};

/// The ticker tells of itself, and at `error` of a shot that it lost on a busy machine: the guard of [`crate::schedule`] takes that slot.
const QUIET: [&str; 1] = ["tokio_cron_scheduler=off"];

/// Longest filter, bytes: it may come from the environment.
const MAX_FILTER_BYTES: usize = 4096;

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log filter cannot be used: {0}")]
    Filter(String),
    #[error("the log was begun twice")]
    Twice,
}

/// Whether `text` is a log filter: a level, or directives such as `info,cliffwatch_daemon::outbox=debug`.
pub fn check_filter(text: &str) -> Result<(), String> {
    if text.len() > MAX_FILTER_BYTES {
        return Err("the filter is too long".to_owned());
    }
    // EnvFilter takes a misspelt level for the name of a module, which then logs nothing: a bare word must be a level here.
    let is_level =
        |word: &str| ["off", "error", "warn", "info", "debug", "trace"].iter().any(|level| word.eq_ignore_ascii_case(level));
    for directive in text.split(',').map(str::trim) {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level.trim());
        if !is_level(level) && !directive.ends_with(']') {
            return Err(format!("{level:?} is no level"));
        }
    }
    EnvFilter::builder().parse(text).map(drop).map_err(|_| format!("{text:?} is no filter"))
}

/// The filter of a run: `RUST_LOG`, else as many steps above `level` as there are `-v`, with what talks too much kept down.
fn filter(level: &str, verbose: u8, rust_log: Option<&str>) -> Result<EnvFilter, LogError> {
    let text = match (rust_log.map(str::trim).filter(|text| !text.is_empty()), verbose) {
        (Some(text), _) => {
            return EnvFilter::builder().parse(text).map_err(|error| LogError::Filter(error.to_string()));
        }
        (None, 0) => level.to_owned(),
        (None, 1) => format!("{level},cliffwatch=debug"),
        (None, _) => format!("{level},cliffwatch=trace"),
    };
    let text = QUIET.iter().fold(text, |text, quiet| format!("{quiet},{text}"));
    EnvFilter::builder().parse(&text).map_err(|error| LogError::Filter(error.to_string()))
}

/// Begins the log of the daemon. Fails where the filter cannot be read, or a log was begun before.
pub fn start(log: &LogSettings, verbose: u8) -> Result<(), LogError> {
    let rust_log = std::env::var("RUST_LOG").ok();
    let filter = filter(&log.level, verbose, rust_log.as_deref())?;
    let journal = is_journal();
    let is_terminal = std::io::stderr().is_terminal();
    let format = match log.format {
        LogFormat::Auto if is_terminal || journal => LogFormat::Human,
        LogFormat::Auto => LogFormat::Json,
        chosen => chosen,
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let begun = match (format, journal) {
        (LogFormat::Json, _) => {
            builder.json().flatten_event(true).with_current_span(false).with_writer(|| EscapedStderr).try_init()
        }
        (_, true) => builder.fmt_fields(HarmlessFields).event_format(Journal).try_init(),
        (_, false) => builder.fmt_fields(HarmlessFields).with_ansi(is_terminal).with_target(false).try_init(),
    };
    begun.map_err(|_| LogError::Twice)
}

/// Begins the log of a command at hand: warnings only, unless `-v` asks for more. A second call changes nothing.
pub fn start_quiet(verbose: u8) {
    let log = LogSettings { format: LogFormat::Human, level: "warn".to_owned() };
    let _ = start(&log, verbose);
}

/// Whether standard error goes to the journal.
fn is_journal() -> bool {
    use std::os::unix::fs::MetadataExt;
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else {
        return false;
    };
    let Some((device, inode)) = stream.split_once(':') else {
        return false;
    };
    // The variable is inherited by children whose output goes elsewhere, so the file itself is asked.
    std::fs::metadata("/dev/stderr").is_ok_and(|file| device.parse() == Ok(file.dev()) && inode.parse() == Ok(file.ino()))
}

/// A line for the journal: priority, message, fields; no time.
struct Journal;

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        // Each line gets its priority: the journal cuts at line breaks.
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        for line in text.lines() {
            writeln!(writer, "<{priority}>{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
