//! A change with what was before beside what is now.

use serde::Serialize;

use super::overview::{text, tone};
use model::{ChangeKind, ChangeRow, Timestamp};

/// Rows of one change.
const MAX_SIDES: usize = 24;

/// A change in a list.
#[derive(Debug, Serialize)]
pub struct ChangeItem {
    at: Timestamp,
    token: String,
    symbol: String,
    kind: ChangeKind,
    /// The kind for people: `series shifted`.
    kind_words: String,
    tone: &'static str,
    text: String,
    sides: Vec<ChangeSides>,
    /// Rows that are left out.
    more: usize,
}

/// One fact before and after.
#[derive(Debug, Serialize)]
struct ChangeSides {
    what: String,
    was: String,
    is: String,
}

/// The kind in words.
pub fn kind_words(kind: ChangeKind) -> String {
    kind.as_str().replace('_', " ")
}

/// Changes as items of a list, in their order.
pub fn items(changes: &[ChangeRow]) -> Vec<ChangeItem> {
    let item = |row: &ChangeRow| {
        let mut sides: Vec<ChangeSides> =
            notify::change_rows(&row.change).into_iter().map(|(what, was, is)| ChangeSides { what, was, is }).collect();
        let more = sides.len().saturating_sub(MAX_SIDES);
        sides.truncate(MAX_SIDES);
        ChangeItem {
            at: row.at,
            token: row.token.as_str().to_owned(),
            symbol: row.symbol.clone().filter(|symbol| !symbol.is_empty()).unwrap_or_else(|| row.token.as_str().to_owned()),
            kind: row.change.kind,
            kind_words: kind_words(row.change.kind),
            tone: tone(row.change.kind),
            text: text(row),
            sides,
            more,
        }
    };
    changes.iter().map(item).collect()
}
