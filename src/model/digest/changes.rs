//! The lines of what changed: the most valuable first, and what happened to many tokens alike told once.

use std::collections::{BTreeSet, HashMap};

use super::ChangedLine;
use crate::{ChangeKind, ChangeRow, Record, format};

/// Tokens to which the same must have happened for it to be told once.
const FEWEST_ALIKE: usize = 3;

/// Tokens that such a line names.
const MAX_NAMED: usize = 8;

/// Changes, the latest first, as lines.
pub(super) fn changed_lines(changes: &[ChangeRow]) -> Vec<ChangedLine> {
    let mut alike: Vec<(Option<String>, Vec<&ChangeRow>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in changes {
        let what = what_alike(row);
        let known = what.as_ref().and_then(|what| places.get(what));
        match known.and_then(|place| alike.get_mut(*place)) {
            Some((_, rows)) => rows.push(row),
            None => {
                places.extend(what.clone().map(|what| (what, alike.len())));
                alike.push((what, vec![row]));
            }
        }
    }
    let mut lines: Vec<(f64, ChangedLine)> = Vec::new();
    for (what, rows) in alike {
        let tokens: BTreeSet<&str> = rows.iter().map(|row| row.token.as_str()).collect();
        match what {
            Some(what) if tokens.len() >= FEWEST_ALIKE => lines.extend(together(&what, &rows, tokens.len())),
            _ => lines.extend(rows.into_iter().map(|row| (value_of(row), single(row)))),
        }
    }
    // Stable: of those of equal value the latest stays first.
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// What happened, where the same may have happened to other tokens: `moved by +3 days`.
fn what_alike(row: &ChangeRow) -> Option<String> {
    let change = &row.change;
    match change.kind {
        ChangeKind::Rescheduled | ChangeKind::SeriesShifted => {
            let by = match (change.shift_days_min.zip(change.shift_days_max), change.shift_days) {
                (Some((least, most)), _) => format::shifts(least, most),
                (None, days) => format::shift(days?),
            };
            Some(format!("moved by {by}"))
        }
        ChangeKind::SeriesRescaled | ChangeKind::Resized => Some(format!("amounts changed by {}", format::ratio(change.ratio?))),
        ChangeKind::Revised => Some(format!("other facts of {}s revised", row.resource)),
        _ => None,
    }
}

fn together(what: &str, rows: &[&ChangeRow], tokens: usize) -> Option<(f64, ChangedLine)> {
    let mut by_value: Vec<(f64, &str)> = rows.iter().map(|row| (value_of(row), symbol(row))).collect();
    by_value.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut named: Vec<&str> = Vec::new();
    for (_, symbol) in &by_value {
        if named.len() < MAX_NAMED && !named.contains(symbol) {
            named.push(symbol);
        }
    }
    let more = tokens.saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named: Vec<String> = named.into_iter().map(format::name).collect();
    let line = ChangedLine {
        at: rows.iter().map(|row| row.at).max()?,
        token: String::new(),
        symbol: format::count(tokens, "token"),
        text: format!("{what}: {}{more}", named.join(", ")),
    };
    Some((by_value.iter().map(|(value, _)| value).sum(), line))
}

fn single(row: &ChangeRow) -> ChangedLine {
    ChangedLine {
        at: row.at,
        token: row.token.as_str().to_owned(),
        symbol: symbol(row).to_owned(),
        text: row.change.summary.clone(),
    }
}

fn symbol(row: &ChangeRow) -> &str {
    row.symbol.as_deref().unwrap_or(row.token.as_str())
}

/// What the record is worth, before or after, USD; zero where nothing says so.
fn value_of(row: &ChangeRow) -> f64 {
    let sides = [&row.change.old, &row.change.new];
    let value = |record: &Record| match record {
        Record::Unlock(event) => event.cliff_value(),
        Record::Burn(burn) => burn.value.copied(),
        Record::Buyback(buyback) => buyback.value.copied(),
        _ => None,
    };
    sides.into_iter().flatten().filter_map(value).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
