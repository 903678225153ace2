//! Dates in HTTP headers (RFC 9110): `Mon, 09 Mar 2026 00:01:30 GMT`, and the two obsolete forms.

use chrono::Datelike;

use crate::Timestamp;

/// Parses the date of a header.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(Timestamp::from)
}

/// Formats a date for a header; `None` if its year is before 1970 or after 9999.
pub fn format_http_date(at: Timestamp) -> Option<String> {
    (1970..=9999).contains(&at.year()).then(|| httpdate::fmt_http_date(at.into()))
}

#[cfg(test)]
mod tests;
