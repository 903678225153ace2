//! The lines of changes in a digest, largest value first. The same change of many tokens is one line.

use std::collections::{BTreeSet, HashMap};

use super::ChangedLine;
use crate::{ChangeRow, Record, phrase};

/// The minimum number of tokens with the same change that share a line.
const FEWEST_ALIKE: usize = 3;

/// The maximum number of tokens that a shared line names.
const MAX_NAMED: usize = 8;

/// Returns the lines of changes, which are given latest first.
pub(super) fn changed_lines(changes: &[ChangeRow]) -> Vec<ChangedLine> {
    let mut alike: Vec<(Option<String>, Vec<&ChangeRow>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in changes {
        let what = phrase::changes::shared_change(&row.change);
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
    // A stable sort keeps the latest first among equal values.
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines.into_iter().map(|(_, line)| line).collect()
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
    let others = tokens.saturating_sub(named.len());
    let named: Vec<String> = named.into_iter().map(phrase::name).collect();
    let line = ChangedLine {
        at: rows.iter().map(|row| row.at).max()?,
        token: String::new(),
        symbol: phrase::count(tokens, "token"),
        text: format!("{what}: {}", phrase::list_some(&named, MAX_NAMED, others)),
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

/// Returns the value of the record before or after, whichever is larger, in USD; zero if unknown.
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
