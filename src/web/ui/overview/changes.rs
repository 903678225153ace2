//! The list of latest changes. Equal changes of several tokens share a line.

use serde::Serialize;

use crate::ui::change;
use crate::ui::page::href;
use model::{ChangeKind, ChangeRow, Timestamp, phrase};

/// The maximum number of tokens that a line names.
const MAX_TOKENS: usize = 3;

/// A change of one or more tokens.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChangeLine {
    pub at: Timestamp,
    /// The slugs and symbols of the named tokens.
    pub tokens: Vec<(String, String)>,
    /// The number of further tokens.
    pub more: usize,
    pub text: String,
    /// The direction with its sign: `→ +5 days, later`. `None` if it has none.
    pub direction: Option<String>,
    pub kind: ChangeKind,
    /// `warn`, `info`, or empty.
    pub severity: &'static str,
    /// The link to the list of these changes.
    pub href: String,
}

/// Returns at most `limit` lines, latest first. Changes of the same kind and text within an hour share a line.
pub(super) fn change_lines(changes: &[ChangeRow], limit: usize) -> Vec<ChangeLine> {
    let mut lines: Vec<ChangeLine> = Vec::new();
    for row in changes {
        let symbol = row.symbol.clone().filter(|symbol| !symbol.is_empty()).unwrap_or_else(|| row.token.as_str().to_owned());
        let token = (row.token.as_str().to_owned(), symbol);
        let text = change::text(row);
        let same = lines.iter_mut().find(|line| {
            line.kind == row.change.kind && line.text == text && (line.at - row.at).abs() < chrono::TimeDelta::hours(1)
        });
        if let Some(line) = same {
            if line.tokens.contains(&token) {
                line.href = href("/changes", &[("token", row.token.as_str()), ("kind", row.change.kind.as_str())]);
            } else if line.tokens.len() < MAX_TOKENS {
                line.tokens.push(token);
                line.href = href("/changes", &[("kind", row.change.kind.as_str())]);
            } else {
                line.more += 1;
            }
            continue;
        }
        if lines.len() < limit {
            let link = href("/changes", &[("token", row.token.as_str())]);
            lines.push(ChangeLine {
                at: row.at,
                tokens: vec![token],
                more: 0,
                direction: phrase::direction(&row.change),
                text,
                kind: row.change.kind,
                severity: severity(row.change.kind),
                href: link,
            });
        }
    }
    lines
}

pub(in crate::ui) fn severity(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Removed | ChangeKind::Rewritten | ChangeKind::SeriesRescaled => "warn",
        ChangeKind::Rescheduled
        | ChangeKind::Resized
        | ChangeKind::SeriesShifted
        | ChangeKind::Restructured
        | ChangeKind::Added => "info",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
