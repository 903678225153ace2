//! Dates as HTTP headers have them (RFC 9110): `Mon, 09 Mar 2026 00:01:30 GMT`, and the two older forms.

use crate::Timestamp;

/// Reads the date of a header; none where it is none.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(Timestamp::from)
}

#[cfg(test)]
mod tests;
