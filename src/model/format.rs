//! Numbers and dates as people read them, for summaries and messages. Plain text; whoever shows it escapes it for its place.

use chrono::{Datelike, SecondsFormat};

use crate::{Interval, Precision, Timestamp, text::is_hostile};

/// Characters of a name from the source that a sentence shows; the rest is cut.
pub const MAX_NAME_CHARS: usize = 60;

/// Longest sentence shown.
pub const MAX_SENTENCE_CHARS: usize = 300;

/// Names that a sentence lists before it says how many more there are.
const MAX_NAMES: usize = 3;

/// US dollars in short: `$5.25M`, `$950`, `-$1.20K`.
pub fn usd(value: f64) -> String {
    if value < 0.0 { format!("-${}", short(-value)) } else { format!("${}", short(value)) }
}

/// An amount of tokens in short: `1.00B`, `92.65M`, `0.35`.
pub fn amount(value: f64) -> String {
    if value < 0.0 { format!("-{}", short(-value)) } else { short(value) }
}

/// A number that is a percentage already: `2.77%`.
pub fn percent(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.005 {
        return format!("{}%", significant(value));
    }
    format!("{value:.2}%")
}

/// A factor as people write it: `×20`, `×0.5`, `×1.2`; near one the change in percent, `+0.22%`, which says what a factor hides.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value >= 1e6 {
        return format!("×{}", short(value));
    }
    let percent = (value - 1.0) * 100.0;
    if percent != 0.0 && percent.abs() < 5.0 {
        // Two digits are enough to tell one from the other, and rounding of doubles stays out of sight.
        let decimals = if percent.abs() < 0.005 { 4 } else { 2 };
        let text = format!("{percent:+.decimals$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text != "+" && text != "-" && text != "+0" && text != "-0" {
            return format!("{text}%");
        }
    }
    format!("×{}", significant(value))
}

/// The day of an instant in UTC: `12 Mar 2026`.
pub fn day(at: Timestamp) -> String {
    at.format("%-d %b %Y").to_string()
}

/// An instant in UTC to the minute: `12 Mar 2026, 09:00 UTC`.
pub fn instant(at: Timestamp) -> String {
    at.format("%-d %b %Y, %H:%M UTC").to_string()
}

/// An instant as JSON and logs have it, for programs and for searching: `2026-03-12T09:00:00.250Z`.
pub fn exact(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The month of an instant: `March 2026`.
pub fn month(at: Timestamp) -> String {
    at.format("%B %Y").to_string()
}

/// When something is due, as exactly as the source knows: `in March 2026`, `on 12 Mar 2026`, `on 12 Mar 2026, 09:00 UTC`.
pub fn when(interval: &Interval) -> String {
    match interval.precision {
        Precision::Month => format!("in {}", month(interval.start)),
        Precision::Week => format!("in the week of {}", day(interval.start)),
        Precision::Day => format!("on {}", day(interval.start)),
        Precision::Second | Precision::Hour => {
            if interval.start.time() == chrono::NaiveTime::MIN {
                format!("on {}", day(interval.start))
            } else {
                format!("on {}", instant(interval.start))
            }
        }
        Precision::ToBeDetermined => "on a date to be determined".to_owned(),
    }
}

/// How far ahead something is that begins in `days` (zero: it has begun and is not over), no more exact than its date: `in 7 days`,
/// `in 3 h`, `now`; of a month `the month begins in 9 days`, `some time this month`. None where it is over. Hours are told of an instant
/// alone.
pub fn nearness(days: f64, precision: Precision) -> Option<String> {
    let days = Some(days).filter(|days| days.is_finite() && *days >= 0.0)?;
    let span = match precision {
        Precision::Month => Some("month"),
        Precision::Week => Some("week"),
        _ => None,
    };
    let whole = |days: f64| format!("in {days:.0} {}", if days.round() <= 1.0 { "day" } else { "days" });
    if let Some(span) = span {
        return Some(match days {
            0.0 => format!("some time this {span}"),
            _ if days < 1.0 => format!("the {span} begins in less than a day"),
            _ => format!("the {span} begins {}", whole(days)),
        });
    }
    let hours = days * 24.0;
    let is_instant = matches!(precision, Precision::Second | Precision::Hour);
    Some(if days == 0.0 {
        "now".to_owned()
    } else if hours < 1.0 && is_instant {
        "within the hour".to_owned()
    } else if hours < 36.0 && is_instant {
        format!("in {hours:.0} h")
    } else if days < 1.0 {
        "in less than a day".to_owned()
    } else {
        whole(days)
    })
}

/// The precision that the words of [`when`] tell.
pub fn precision_told(when: &str) -> Precision {
    if when.starts_with("in the week of ") {
        Precision::Week
    } else if when.starts_with("in ") {
        Precision::Month
    } else if when.contains(':') {
        Precision::Second
    } else {
        Precision::Day
    }
}

/// A shift in days, signed: `+4 days`, `-1 day`, `+1.5 days`, `-3 h`, `+30 min`.
pub fn shift(days: f64) -> String {
    let sign = if days < 0.0 { '-' } else { '+' };
    let size = days.abs();
    let minutes = (size * 1440.0).round();
    if minutes < 1.0 {
        return format!("{sign}{} s", whole(size * 86_400.0));
    }
    if minutes < 60.0 {
        return format!("{sign}{} min", whole(minutes));
    }
    if minutes < 1440.0 {
        return format!("{sign}{} h", tenths(size * 24.0));
    }
    // An hour more or less (daylight saving, a corrected time of day) is noise beside weeks.
    let text = if size >= 14.0 { whole(size) } else { tenths(size) };
    if text == "1" { format!("{sign}1 day") } else { format!("{sign}{text} days") }
}

/// A range of shifts in days, signed: `+30 to +33 days`; one shift where both read alike.
pub fn shifts(least: f64, most: f64) -> String {
    let (from, to) = (shift(least), shift(most));
    if from == to {
        return to;
    }
    // The unit once, where it is the same.
    let from = from.strip_suffix(" days").filter(|_| to.ends_with(" days")).unwrap_or(&from);
    format!("{from} to {to}")
}

/// A count with its noun: `1 tranche`, `12 tranches`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// An amount of tokens with its unit: `92.65M tokens`, `1 token`.
pub fn tokens(of: f64) -> String {
    let text = amount(of);
    if text == "1" { "1 token".to_owned() } else { format!("{text} tokens") }
}

/// A name from the source, fit for one line: control and formatting characters become spaces, and it is cut at
/// [`MAX_NAME_CHARS`]. A missing name is said to be missing.
pub fn name(text: &str) -> String {
    one_line(text, MAX_NAME_CHARS)
}

/// A sentence that may hold names from the source, fit for one line as [`name`] makes it, cut at [`MAX_SENTENCE_CHARS`].
pub fn sentence(text: &str) -> String {
    one_line(text, MAX_SENTENCE_CHARS)
}

fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::with_capacity(text.len().min(max_chars * 4));
    for (length, c) in text.trim().chars().enumerate() {
        if length == max_chars {
            line.push('…');
            break;
        }
        line.push(if is_hostile(c) { ' ' } else { c });
    }
    if line.trim().is_empty() { "(unnamed)".to_owned() } else { line }
}

/// A list of names from the source: `Team, Investors and 3 more`.
pub fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    let shown = if all.len() > MAX_NAMES + 1 { MAX_NAMES } else { all.len() };
    let mut text = all.iter().take(shown).map(|text| name(text)).collect::<Vec<_>>().join(", ");
    if all.len() > shown {
        text.push_str(&format!(" and {} more", all.len() - shown));
    }
    text
}

/// A word of an enumeration as people read it: `treasury buyback` for `TREASURY_BUYBACK`; any other text as it is.
pub fn constant(text: &str) -> String {
    let is_constant = text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if is_constant { text.to_ascii_lowercase().replace('_', " ") } else { text.to_owned() }
}

/// Whether two instants lie in one calendar month.
pub fn same_month(a: Timestamp, b: Timestamp) -> bool {
    (a.year(), a.month()) == (b.year(), b.month())
}

/// A number that is not negative, with a unit of thousands.
fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")];
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    // Also that below zero, which a sum of nothing is.
    if value == 0.0 {
        return "0".to_owned();
    }
    for (scale, unit) in UNITS {
        // What would be shown as 1000.00K is 1.00M.
        if value >= scale * 0.999_995 && value >= 999.995 {
            let scaled = value / scale;
            return if scaled >= 1e6 { format!("{scaled:.2e}{unit}") } else { format!("{scaled:.2}{unit}") };
        }
    }
    if value >= 1.0 {
        let text = format!("{value:.2}");
        text.strip_suffix(".00").map_or_else(|| text.clone(), str::to_owned)
    } else {
        significant(value)
    }
}

/// Three significant digits, without trailing zeros.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if magnitude >= 2.0 {
        return format!("{value:.0}");
    }
    if magnitude < -9.0 {
        return format!("{value:.2e}");
    }
    let decimals = (0_u8..=12).find(|d| f64::from(*d) >= 2.0 - magnitude).unwrap_or(12);
    let text = format!("{value:.*}", usize::from(decimals));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests;
