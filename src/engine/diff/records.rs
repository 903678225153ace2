//! Records with simpler identities: burns, buybacks, emissions, rows of the allocation table, funding rounds.
//!
//! Each resource says by a [`RecordShape`] what identifies its rows and which facts count. One path serves all: rows of one identity
//! are paired, equal ones first, then in order (equal rows of one day are as many rows); what is left on both sides and agrees in all
//! but its identity is the same row restated; the rest came, or needs proof that it is gone.

mod changes;
mod facts;
mod pairing;
mod shape;

use std::collections::HashSet;

use serde_json::Value;

use self::{
    changes::{ChangedRow, add_come_or_gone, add_revised},
    facts::RecordFacts,
    pairing::{KnownRow, RevisedRow, RowPairing},
    shape::{ALLOCATION, BURN, BUYBACK, EMISSION, FUNDING, RecordShape, span},
};
use super::{Absence, DateWindow, Diff, KeyAllocator, Settings, close, count_of};
use model::{
    change::{Change, ChangeKind, Fact, FieldChange},
    format,
    rows::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::{Allocation, AllocationsData, Burn, Buyback, Emission, FundingRound, Maybe},
};

/// Rows that must vanish at once, and be more than half of all, before the answer is doubted.
const HOLD_AT_LEAST: usize = 3;
/// Rows restated in their value alone, and more than half of those that have one: the reference price drifted.
const DRIFT_AT_LEAST: usize = 3;

/// Keys for the burns of a token that is seen for the first time. This is no change.
#[must_use]
pub fn baseline_burns(after: &[Burn]) -> Vec<Put> {
    baseline(&BURN, after)
}

/// Keys for the buybacks of a token that is seen for the first time. This is no change.
#[must_use]
pub fn baseline_buybacks(after: &[Buyback]) -> Vec<Put> {
    baseline(&BUYBACK, after)
}

/// Keys for the daily or weekly emissions of a token that is seen for the first time. This is no change.
#[must_use]
pub fn baseline_emissions(after: &[Emission]) -> Vec<Put> {
    baseline(&EMISSION, after)
}

/// Keys for the allocation table of a token that is seen for the first time. This is no change.
#[must_use]
pub fn baseline_allocations(after: &[Allocation]) -> Vec<Put> {
    baseline(&ALLOCATION, after)
}

/// Keys for the funding rounds of an investor that is seen for the first time. This is no change.
#[must_use]
pub fn baseline_funding(after: &[FundingRound]) -> Vec<Put> {
    baseline(&FUNDING, after)
}

/// What a complete answer changes in the burns of a token. Amounts and values that were restated are `revised`; where most values
/// of at least three rows change and their amounts do not, the price drifted, which is no change.
#[must_use]
pub fn diff_burns(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Burn],
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    diff_rows(&BURN, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the buybacks of a token; as [`diff_burns`].
#[must_use]
pub fn diff_buybacks(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Buyback],
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    diff_rows(&BUYBACK, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the emissions of a token. Daily and weekly ones stand side by side: an answer speaks only of
/// those that last as long as its own.
#[must_use]
pub fn diff_emissions(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[Emission],
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    // One that lacks its end lasts as long as the others.
    let usual = after.iter().filter(|emission| emission.end_date.get().is_some()).map(span).max();
    let after: Vec<Emission> = after.iter().map(|emission| with_end(emission, usual)).collect();
    let after = &after[..];
    // What is not in question is handed on neither as known nor as missing; keys of other spans differ by their ending.
    let spans: HashSet<i64> = after.iter().map(span).collect();
    let concerns = |record: &Record| matches!(record, Record::Emission(emission) if spans.contains(&span(emission)));
    let (asked, others): (Vec<&Tracked>, Vec<&Tracked>) = before.iter().partition(|tracked| concerns(&tracked.record));
    if asked.is_empty() && after.is_empty() {
        return diff_rows(&EMISSION, token, before, missing, after, settings, window);
    }
    let asked: Vec<Tracked> = asked.into_iter().cloned().collect();
    let mut diff = diff_rows(&EMISSION, token, &asked, missing, after, settings, window);
    let others: HashSet<&RecordKey> = others.into_iter().map(|tracked| &tracked.key).collect();
    diff.missing.extend(missing.iter().filter(|(key, _)| others.contains(key)).cloned());
    diff
}

fn with_end(emission: &Emission, days: Option<i64>) -> Emission {
    let mut emission = emission.clone();
    if let (None, Some(start), Some(days)) = (emission.end_date.get(), emission.start_date.copied(), days) {
        emission.end_date = Maybe::or_absent(chrono::TimeDelta::try_days(days).and_then(|days| start.checked_add_signed(days)));
    }
    emission
}

/// What a complete answer changes in the funding rounds of one investor. `before` holds that investor's rounds.
#[must_use]
pub fn diff_funding(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[FundingRound],
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    diff_rows(&FUNDING, token, before, missing, after, settings, window)
}

/// What a complete answer changes in the allocation table of a token. Unlocked and locked amounts drift daily and are no change.
///
/// `header` is the payload beside the rows as it was kept from the last answer (`maxSupply` is read from it): where the maximum
/// supply changed, that is one change, found here.
#[must_use]
pub fn diff_allocations(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &AllocationsData,
    header: Option<&Value>,
    settings: &Settings,
) -> Diff {
    let rows = after.allocations.items();
    let mut diff = diff_rows(&ALLOCATION, token, before, missing, rows, settings, &DateWindow::ALL);
    if diff.held {
        return diff;
    }
    let was = header.and_then(|header| header.get("maxSupply")).and_then(Value::as_f64);
    let is = after.max_supply.copied();
    if was.is_some() || is.is_some() {
        diff.changes.extend(max_supply_change(token, was, is, settings));
    } else {
        // Without a maximum supply, the total of the table stands for it.
        let sum = |amounts: &mut dyn Iterator<Item = Option<f64>>| amounts.sum::<Option<f64>>();
        let was = sum(&mut before.iter().filter_map(|t| (ALLOCATION.row)(&t.record)).map(|row| row.allocation_amount.copied()));
        let is = sum(&mut rows.iter().map(|row| row.allocation_amount.copied()));
        if diff.missing.is_empty() && !before.is_empty() {
            diff.changes.extend(supply_change(token, "total of the allocations", was, is, settings));
        }
    }
    diff
}

/// The change of a token's maximum supply, where both are known and differ. Of the two places that have it (token list and allocation
/// table) the caller compares one with itself, not with the other.
#[must_use]
pub fn max_supply_change(token: &TokenId, before: Option<f64>, after: Option<f64>, settings: &Settings) -> Option<Change> {
    supply_change(token, "maximum supply", before, after, settings)
}

fn supply_change(token: &TokenId, what: &str, before: Option<f64>, after: Option<f64>, settings: &Settings) -> Option<Change> {
    let (from, to) = (before?, after?);
    if close(from, to, settings.tolerance) {
        return None;
    }
    let mut change = Change::of(ChangeKind::SupplyChanged, Resource::Allocation, token);
    change.from = Some(Fact::Amount(from));
    change.to = Some(Fact::Amount(to));
    change.ratio = (from != 0.0).then(|| to / from);
    let times = change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
    change.summary = format!("{what} changed from {} to {}{times}", format::amount(from), format::amount(to));
    Some(change)
}

fn baseline<T>(shape: &RecordShape<T>, after: &[T]) -> Vec<Put> {
    let mut keys = KeyAllocator::default();
    ordered(shape, after)
        .into_iter()
        .map(|row| Put { key: keys.fresh(&(shape.key)(row)), record: (shape.record)(row), is_new_version: true })
        .collect()
}

/// Rows in an order that does not depend on that of the answer: date, identity, facts.
fn ordered<'a, T>(shape: &RecordShape<T>, rows: &'a [T]) -> Vec<&'a T> {
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = serde_json::to_string(&(shape.record)(row)).unwrap_or_default();
            (((shape.date)(row), (shape.identity)(row), text), row)
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// What a complete answer changes in the rows of one resource.
fn diff_rows<T: Clone>(
    shape: &RecordShape<T>,
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[T],
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    let absence = Absence::new(missing, settings);
    let known: Vec<KnownRow<'_, T>> = before
        .iter()
        .filter_map(|tracked| Some((&tracked.key, (shape.row)(&tracked.record)?, &tracked.record)))
        .filter(|(_, row, _)| window.contains((shape.date)(row)))
        .collect();
    let mut diff = Diff::default();
    if after.is_empty() {
        diff.missing = known.iter().map(|(key, _, _)| absence.counted(key)).collect();
        diff.held = !known.is_empty();
        return diff;
    }
    diff.odd.reordered = count_reordered(shape, after);
    let pairing = RowPairing::of(shape, known, ordered(shape, after), settings.tolerance);
    let known = &pairing.known;

    let vanished = pairing.vanished();
    let doubted = vanished.iter().any(|o| absence.is_doubted(known[*o].0));
    if vanished.len() >= HOLD_AT_LEAST && vanished.len() * 2 > known.len() && doubted {
        diff.missing = vanished.iter().map(|o| absence.counted(known[*o].0)).collect();
        diff.held = true;
        return diff;
    }

    let mut pairs = pairing.revised();
    forget_drift(&pairing, &mut pairs);
    put_revised(&pairing, &mut pairs, &mut diff.put);
    let mut new_keys: Vec<Option<RecordKey>> = pairing.old_of_new.iter().map(|o| o.map(|o| known[o].0.clone())).collect();
    let mut keys = KeyAllocator::taken(before.iter().filter(|t| t.record.resource() == shape.resource).map(|t| &t.key));
    let mut came = Vec::new();
    for (n, row) in pairing.rows.iter().enumerate().filter(|(n, _)| pairing.old_of_new[*n].is_none()) {
        let (key, record) = (keys.fresh(&(shape.key)(row)), (shape.record)(row));
        new_keys[n] = Some(key.clone());
        diff.put.push(Put { key: key.clone(), record: record.clone(), is_new_version: true });
        came.push(ChangedRow { key, record, amount: pairing.new_facts[n].amount(), date: (shape.date)(row) });
    }
    let mut gone = Vec::new();
    for o in vanished {
        let (key, row, record) = known[o];
        if absence.is_proven(key) {
            diff.removed.push(key.clone());
            let amount = pairing.old_facts[o].amount();
            gone.push(ChangedRow { key: key.clone(), record: record.clone(), amount, date: (shape.date)(row) });
        } else {
            diff.missing.push(absence.counted(key));
        }
    }
    // What this answer does not speak of keeps the count that it had.
    let in_window: HashSet<&RecordKey> = known.iter().map(|(key, _, _)| *key).collect();
    let exists: HashSet<&RecordKey> = before.iter().map(|tracked| &tracked.key).collect();
    diff.missing.extend(missing.iter().filter(|(key, _)| exists.contains(key) && !in_window.contains(key)).cloned());

    pairs.retain(|pair| !pair.fields.is_empty());
    add_revised(&pairing, token, &new_keys, pairs, &mut diff.changes);
    add_come_or_gone(shape, ChangeKind::Added, token, came, &mut diff.changes);
    add_come_or_gone(shape, ChangeKind::Removed, token, gone, &mut diff.changes);
    diff
}

/// How many rows stand out of order. Sources list newest first or oldest first; only a mixture counts, and which of the two it is
/// shows in the first and the last row.
fn count_reordered<T>(shape: &RecordShape<T>, after: &[T]) -> u32 {
    let date = |row: &T| (shape.date)(row);
    let (Some(first), Some(last)) = (after.first().and_then(date), after.last().and_then(date)) else { return 0 };
    let out_of_order = after.windows(2).filter(
        |two| matches!((date(&two[0]), date(&two[1])), (Some(a), Some(b)) if (first <= last && a > b) || (first > last && a < b)),
    );
    count_of(out_of_order.count())
}

/// Drops changes of fields that follow a price, where most rows changed in nothing else: the price drifted.
fn forget_drift<T>(pairing: &RowPairing<'_, T>, pairs: &mut [RevisedRow]) {
    for field in pairing.shape.drifting {
        let alone = |pair: &&RevisedRow| {
            pair.fields.len() == 1 && pair.fields.iter().all(|change| change.field == *field && !change.from.is_null())
        };
        let drifted = pairs.iter().filter(alone).count();
        let has_value = |facts: &&RecordFacts| facts.numbers.iter().any(|(name, value)| name == field && value.is_some());
        let valued = pairing.old_facts.iter().filter(has_value).count();
        if drifted >= DRIFT_AT_LEAST && drifted * 2 > valued {
            for pair in &mut *pairs {
                pair.fields.retain(|change| change.field != *field);
            }
        }
    }
}

/// What to write for rows that were known. Adds the facts that identify a row, its date and its texts, where they changed.
/// A fact that the answer lacks stays as it was known.
fn put_revised<T: Clone>(pairing: &RowPairing<'_, T>, pairs: &mut [RevisedRow], put: &mut Vec<Put>) {
    let shape = pairing.shape;
    for pair in pairs {
        let (key, old_row, old_record) = pairing.known[pair.old];
        let new_row: &T = pairing.rows[pair.new];
        let (was, is) = ((shape.date)(old_row), (shape.date)(new_row));
        if was != is && is.is_some() {
            let date = |at: Option<Timestamp>| {
                at.map_or(Value::Null, |at| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true).into())
            };
            pair.fields.insert(0, FieldChange { field: shape.date_field.to_owned(), from: date(was), to: date(is) });
        }
        let identities = (shape.identity)(old_row).into_iter().zip((shape.identity)(new_row));
        for (field, (a, b)) in shape.identity_fields.iter().zip(identities).filter(|(_, (a, b))| a != b && !b.is_empty()) {
            pair.fields.push(FieldChange { field: (*field).to_owned(), from: a.into_owned().into(), to: b.into_owned().into() });
        }
        let mut completed = new_row.clone();
        (shape.fill)(&mut completed, old_row);
        let record = (shape.record)(&completed);
        if record != *old_record {
            let same_facts = pairing.old_facts[pair.old].same(&RecordFacts::of(shape, &completed), pairing.tolerance);
            put.push(Put { key: key.clone(), record, is_new_version: !pair.fields.is_empty() || !same_facts });
        }
    }
}
