//! A change in a list, with its fields before and after.

use serde::Serialize;

use super::overview::severity;
use model::{ChangeKind, ChangeRow, Timestamp, phrase};

/// The maximum number of fields shown for a change.
const MAX_FIELDS: usize = 24;

#[derive(Debug, Serialize)]
pub struct ChangeItem {
    at: Timestamp,
    token: String,
    symbol: String,
    kind: ChangeKind,
    /// The kind as text: `series shifted`.
    kind_label: String,
    severity: &'static str,
    /// The direction with its sign: `→ +5 days, later`. `None` if it has none.
    direction: Option<String>,
    text: String,
    sides: Vec<ChangeSides>,
    /// The number of fields left out.
    more: usize,
}

/// A field before and after the change.
#[derive(Debug, Serialize)]
struct ChangeSides {
    field: String,
    was: String,
    is: String,
}

/// Returns the sentence of a change without the word that its direction or kind has too.
pub(super) fn text(row: &ChangeRow) -> String {
    let text = phrase::changes::headline(row);
    let rest = stated_by_direction(row.change.kind).and_then(|word| text.strip_prefix(word)?.strip_prefix(": "));
    rest.unwrap_or(&text).to_owned()
}

fn stated_by_direction(kind: ChangeKind) -> Option<&'static str> {
    matches!(kind, ChangeKind::Added | ChangeKind::Removed).then(|| kind.as_str())
}

pub fn items(changes: &[ChangeRow]) -> Vec<ChangeItem> {
    let item = |row: &ChangeRow| {
        let mut sides: Vec<ChangeSides> =
            notify::change_rows(&row.change).into_iter().map(|(field, was, is)| ChangeSides { field, was, is }).collect();
        let more = sides.len().saturating_sub(MAX_FIELDS);
        sides.truncate(MAX_FIELDS);
        ChangeItem {
            at: row.at,
            token: row.token.as_str().to_owned(),
            symbol: row.symbol.clone().filter(|symbol| !symbol.is_empty()).unwrap_or_else(|| row.token.as_str().to_owned()),
            kind: row.change.kind,
            kind_label: phrase::words(row.change.kind.as_str()),
            severity: severity(row.change.kind),
            // The kind is next to it.
            direction: phrase::direction(&row.change).filter(|_| stated_by_direction(row.change.kind).is_none()),
            text: text(row),
            sides,
            more,
        }
    };
    changes.iter().map(item).collect()
}
