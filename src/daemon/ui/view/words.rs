//! Sizes, ages and changes in words.

use model::{ChangeRow, format};

/// A change in a line: token, what happened.
pub fn change_line(row: &ChangeRow) -> String {
    let token = row.symbol.as_deref().unwrap_or(row.token.as_str());
    format!("{token}: {} {}", row.resource, row.change.summary)
}

/// A length of time in short, for ages: `12 s`, `5 min`, `3 h`, `12 d`.
pub fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How far ahead something is, for people, no more exact than its date in words: `in 3 days`, `now`, `some time this month`.
pub fn ahead(days_until: f64, when: &str) -> String {
    format::nearness(days_until.max(0.0), format::precision_told(when)).unwrap_or_default()
}

/// A size for people: `12.3 MiB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(count: u64) -> String {
    let mut size = count as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}
