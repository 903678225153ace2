//! The log: tracing to standard error, as text or JSON, one line per event. `RUST_LOG` overrides `-v`, which overrides `[log] level`.
//! Under systemd, the journal adds the time and reads the priority from `<N>` at the start of each line, so neither is part of the
//! text.
//!
//! External text cannot forge lines or control a terminal: `fields` sanitizes text output, `escaped` sanitizes JSON.

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

/// Libraries whose messages below a warning are left out by default: at `debug`, the connection pool would hide what the daemon decides.
const LIBRARIES: [&str; 14] = [
    "h2",
    "hickory_proto",
    "hyper",
    "hyper_util",
    "lettre",
    "mio",
    "reqwest",
    "rustls",
    "tokio",
    "tokio_postgres",
    "tokio_util",
    "tower",
    "tower_http",
    "want",
];

/// Targets that are off by default. The cron scheduler logs an error for each tick that it skips on a busy machine, but
/// [`crate::schedule`] catches up on skipped ticks.
const QUIET: [&str; 1] = ["tokio_cron_scheduler=off"];

/// The maximum length of a filter, which may come from the environment.
const MAX_FILTER_BYTES: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log filter is not valid: {0}")]
    Filter(String),
    #[error("the log was started twice")]
    Twice,
}

/// Checks that `text` is a log filter: a level, or directives such as `info,cliffwatch_daemon::outbox=debug`.
pub fn check_filter(text: &str) -> Result<(), String> {
    if text.len() > MAX_FILTER_BYTES {
        return Err("the filter is too long".to_owned());
    }
    // EnvFilter would read a misspelled level as a module name and log nothing, so a single word must be a level.
    let is_level =
        |word: &str| ["off", "error", "warn", "info", "debug", "trace"].iter().any(|level| word.eq_ignore_ascii_case(level));
    for directive in text.split(',').map(str::trim) {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level.trim());
        if !is_level(level) && !directive.ends_with(']') {
            return Err(format!("{level:?} is not a valid level: expected off, error, warn, info, debug, or trace"));
        }
    }
    EnvFilter::builder().parse(text).map(drop).map_err(|_| format!("{text:?} is not a valid log filter"))
}

/// Returns the filter of the log. If `rust_log` has text, it is used without change. Otherwise `level` applies, one `-v` adds debug
/// messages of this program, further ones add trace messages, the targets in [`QUIET`] are off, and [`LIBRARIES`] log warnings only, unless
/// `level` names them.
///
/// # Errors
///
/// Fails if the text is not a valid filter.
fn filter(level: &str, verbose: u8, rust_log: Option<&str>) -> Result<EnvFilter, LogError> {
    let text = match (rust_log.map(str::trim).filter(|text| !text.is_empty()), verbose) {
        (Some(text), _) => {
            return EnvFilter::builder().parse(text).map_err(|error| LogError::Filter(error.to_string()));
        }
        (None, 0) => level.to_owned(),
        (None, 1) => format!("{level},cliffwatch=debug"),
        (None, _) => format!("{level},cliffwatch=trace"),
    };
    // A directive for the same target replaces an earlier one. A level above `info` also applies to the libraries.
    let is_verbose =
        level.split(',').any(|word| ["info", "debug", "trace"].iter().any(|level| word.trim().eq_ignore_ascii_case(level)));
    let libraries = LIBRARIES.iter().filter(|_| is_verbose).map(|library| format!("{library}=warn"));
    let quiet: Vec<String> = QUIET.iter().map(ToString::to_string).chain(libraries).collect();
    let text = format!("{},{text}", quiet.join(","));
    EnvFilter::builder().parse(&text).map_err(|error| LogError::Filter(error.to_string()))
}

/// Starts the log of the daemon.
///
/// # Errors
///
/// Fails if the filter is not valid, or if a log was started before.
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
    let started = match (format, journal) {
        (LogFormat::Json, _) => {
            builder.json().flatten_event(true).with_current_span(false).with_writer(|| EscapedStderr).try_init()
        }
        (_, true) => builder.fmt_fields(HarmlessFields).event_format(Journal).try_init(),
        (_, false) => builder.fmt_fields(HarmlessFields).with_ansi(is_terminal).with_target(false).try_init(),
    };
    started.map_err(|_| LogError::Twice)
}

/// Starts the log of a command: warnings only, unless `-v` is set. A second call has no effect.
pub fn start_quiet(verbose: u8) {
    let log = LogSettings { format: LogFormat::Human, level: "warn".to_owned() };
    let _ = start(&log, verbose);
}

/// Returns whether standard error is connected to the journal.
fn is_journal() -> bool {
    use std::os::unix::fs::MetadataExt;
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else {
        return false;
    };
    let Some((device, inode)) = stream.split_once(':') else {
        return false;
    };
    // Child processes inherit the variable even if their output goes elsewhere, so the file itself is compared.
    std::fs::metadata("/dev/stderr").is_ok_and(|file| device.parse() == Ok(file.dev()) && inode.parse() == Ok(file.ino()))
}

/// The line format for the journal: priority, message, and fields, without the time.
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
        // Each line gets a priority, because the journal splits entries at line breaks.
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
