//! Dates as HTTP headers have them (RFC 9110): `Mon, 09 Mar 2026 00:01:30 GMT`, and the two older forms.

use chrono::Datelike;

use crate::Timestamp;

/// Reads the date of a header; none where it is none.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(Timestamp::from)
}

/// The date of a header; none where the year is before 1970 or has not four digits.
pub fn format_http_date(at: Timestamp) -> Option<String> {
    (1970..=9999).contains(&at.year()).then(|| httpdate::fmt_http_date(at.into()))
}

#[cfg(test)]
mod tests;
