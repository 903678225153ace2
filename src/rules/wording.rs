//! Parses durations as rules write them.

use chrono::TimeDelta;

use model::config;

/// Parses a duration, which can be negative.
pub fn span_of(text: &str) -> Result<TimeDelta, String> {
    let (negative, plain) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    plain.parse::<config::Span>().map(|span| if negative { -span.delta() } else { span.delta() })
}
