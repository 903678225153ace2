//! Parsers for option values.

use std::{net::SocketAddr, path::Path};

use super::exit::UsageError;
use daemon::database_url::{DatabaseUrlError, parse_database};
use model::{Timestamp, config::Span, silence::UNKNOWN_AUTHOR, wire};
use store::DatabaseLocation;

/// Parses a database: a file, `postgres://user@host:port/database`, or `@FILE` with such a URL in it.
pub(super) fn parse_location(text: &str, tls_ca_file: Option<&Path>) -> anyhow::Result<DatabaseLocation> {
    match parse_database(text, tls_ca_file) {
        Err(DatabaseUrlError::UnfitText(problem)) => Err(UsageError(problem.to_string()).into()),
        place => Ok(place?),
    }
}

/// Parses a time such as `2026-03-09T12:00:00Z` or `2026-03-09`.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    wire::parse_timestamp(text).ok_or_else(|| "examples: 2026-03-09T12:00:00Z, 2026-03-09".to_owned())
}

/// Parses a duration such as `36h` or `7d`.
pub(super) fn parse_span(text: &str) -> Result<Span, String> {
    text.parse()
}

pub(super) use tools::new_rule::parse_money;

/// Returns the value of `--author`, whose default is `$USER`. Without both, `$LOGNAME`, which cron sets, else a fixed text.
pub(super) fn author(given: &str) -> String {
    let name = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    let login = || std::env::var("LOGNAME").ok().and_then(name);
    name(given.to_owned()).or_else(login).unwrap_or_else(|| UNKNOWN_AUTHOR.to_owned())
}

/// Parses the socket address in an option.
pub(super) fn parse_address(text: &str, option: &str) -> anyhow::Result<SocketAddr> {
    text.parse().map_err(|_| {
        UsageError(format!("{option} {text:?} is not a valid address; example: 127.0.0.1:9798 (port 0 selects a free port)"))
            .into()
    })
}
