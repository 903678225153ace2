//! Changes as a person would tell them: what happened to whom, and the same thing that happened to many in one line.

use serde::Serialize;

use model::{ChangeKind, ChangeRow, Resource, Timestamp, format};

/// Tokens that a line names before it says how many more there are.
const NAMED: usize = 3;

/// Something that happened, to one token or to several.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeLine {
    /// When it was seen first.
    pub at: Timestamp,
    /// The tokens that are named: slug and ticker.
    pub tokens: Vec<(String, String)>,
    /// How many others it happened to.
    pub more: usize,
    /// What happened: `unlock moved from … to …`.
    pub text: String,
    pub kind: ChangeKind,
    /// How the page marks it: `warn` for what is gone or rewritten, `info` else.
    pub tone: &'static str,
    /// Where more of it is.
    pub href: String,
}

/// The lines of these changes, the latest first: at most `limit`. What happened to several tokens within the hour in the same words
/// is one line.
pub fn told(changes: &[ChangeRow], limit: usize) -> Vec<ChangeLine> {
    let mut lines: Vec<ChangeLine> = Vec::new();
    for row in changes {
        let symbol = row.symbol.clone().filter(|symbol| !symbol.is_empty()).unwrap_or_else(|| row.token.as_str().to_owned());
        let token = (row.token.as_str().to_owned(), symbol);
        let text = text(row);
        let same = lines.iter_mut().find(|line| {
            line.kind == row.change.kind && line.text == text && (line.at - row.at).abs() < chrono::TimeDelta::hours(1)
        });
        if let Some(line) = same {
            if line.tokens.contains(&token) {
                line.href =
                    crate::ui::page::href("/changes", &[("token", row.token.as_str()), ("kind", row.change.kind.as_str())]);
            } else if line.tokens.len() < NAMED {
                line.tokens.push(token);
                line.href = crate::ui::page::href("/changes", &[("kind", row.change.kind.as_str())]);
            } else {
                line.more += 1;
            }
            continue;
        }
        if lines.len() < limit {
            let href = crate::ui::page::href("/changes", &[("token", row.token.as_str())]);
            lines.push(ChangeLine {
                at: row.at,
                tokens: vec![token],
                more: 0,
                text,
                kind: row.change.kind,
                tone: tone(row.change.kind),
                href,
            });
        }
    }
    lines
}

/// What happened in a few words. A schedule is what most changes are of, so that only other records are named.
pub(in crate::ui) fn text(row: &ChangeRow) -> String {
    let summary = format::sentence(&row.change.summary);
    match (row.resource, row.change.kind) {
        (Resource::Unlock, _) => summary,
        (_, ChangeKind::Added) if summary.starts_with("added: ") => summary.replacen("added: ", "new ", 1),
        (_, ChangeKind::Removed) if summary.starts_with("removed: ") => summary.replacen("removed: ", "gone: ", 1),
        (Resource::Allocation, _) => format!("supply: {summary}"),
        (other, _) => format!("{other} {summary}"),
    }
}

pub(in crate::ui) fn tone(kind: ChangeKind) -> &'static str {
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
