//! Lengths of time and numbers, as people write and read them.

use chrono::TimeDelta;

use model::config;

/// A length of time as people write it, for arithmetic on instants.
pub fn span_of(text: &str) -> Result<TimeDelta, String> {
    let (negative, plain) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    plain.parse::<config::Span>().map(|span| if negative { -span.delta() } else { span.delta() })
}

/// `7 days`, `1 day`, `5 hours`, `20 minutes`: rounded to what matters at that distance. The sign is left out.
pub fn days_in_words(days: f64) -> String {
    let days = days.abs();
    let (number, unit) = if days >= 1.5 || (days - 1.0).abs() < 1e-9 {
        (days.round(), "day")
    } else if days * 24.0 >= 1.0 {
        ((days * 24.0).round(), "hour")
    } else {
        ((days * 1440.0).round(), "minute")
    };
    format!("{number:.0} {unit}{}", if (number - 1.0).abs() < f64::EPSILON { "" } else { "s" })
}

/// A number with its whole digits in groups of three: `5250000.5` becomes `5,250,000.5`.
pub fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (digits, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push_str(rest);
    grouped
}
