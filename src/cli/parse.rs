//! Values of options, as people write them.

use std::{net::SocketAddr, path::Path};

use super::exit::UsageError;
use daemon::place::{PlaceProblem, place_named};
use model::{Timestamp, config::Span, wire};
use store::Place;

/// A database: a file, `postgres://user@host:port/database`, or `@FILE` with such an address in it.
pub(super) fn parse_place(text: &str, tls_ca_file: Option<&Path>) -> anyhow::Result<Place> {
    match place_named(text, tls_ca_file) {
        Err(PlaceProblem::UnfitText(problem)) => Err(UsageError(problem.to_string()).into()),
        place => Ok(place?),
    }
}

/// `2026-03-09T12:00:00Z`, `2026-03-09`.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    wire::parse_timestamp(text).ok_or_else(|| "write it like 2026-03-09T12:00:00Z or 2026-03-09".to_owned())
}

/// `36h`, `7d`.
pub(super) fn parse_span(text: &str) -> Result<Span, String> {
    text.parse()
}

/// `5M`, `250k`, `1.5B`, `5000000`.
pub(super) fn parse_money(text: &str) -> Result<f64, String> {
    let text = text.trim().trim_start_matches('$').replace('_', "");
    let (number, factor) = match text.chars().last().map(|c| c.to_ascii_lowercase()) {
        Some('k') => (text.get(..text.len() - 1), 1e3),
        Some('m') => (text.get(..text.len() - 1), 1e6),
        Some('b') => (text.get(..text.len() - 1), 1e9),
        _ => (Some(text.as_str()), 1.0),
    };
    let number =
        number.and_then(|number| number.trim().parse::<f64>().ok()).filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number * factor).ok_or_else(|| "write it like 5000000, 250k, 5M or 1.5B".to_owned())
}

/// The address that an option gives.
pub(super) fn parse_address(text: &str, option: &str) -> anyhow::Result<SocketAddr> {
    text.parse().map_err(|_| {
        UsageError(format!("{option} {text:?} is no address: write it like 127.0.0.1:9798 (port 0 takes a free one)")).into()
    })
}
