//! Records with simpler identities: burns, buybacks, emissions, rows of the allocation table, and funding rounds.
//!
//! A [`RecordShape`] says for each resource which texts identify a row and which facts count. One path serves all: rows with the same
//! identity are paired, equal ones first, then in order, so that equal rows of one day stay as many rows. Rows left on both sides that
//! agree in everything but the identity are the same row, restated. All others were added, or are missing and need removal proof.

mod changes;
mod facts;
mod pairing;
mod shape;

use std::collections::HashSet;

use serde_json::Value;

use self::{
    changes::{ChangedRow, changed_rows, revised_rows},
    facts::RecordFacts,
    pairing::{GivenRecord, KnownRecord, RevisedRow, RowPairing},
    shape::{ALLOCATION, BURN, BUYBACK, EMISSION, FUNDING, RecordShape, span},
};
use super::{
    DateWindow, Diff, KeyAllocator, count_of, ratio_of,
    tolerances::{MIN_DRIFTED, close},
};
use crate::removal::RemovalProof;
use model::{
    change::{Change, ChangeKind, Fact, FieldChange},
    phrase::changes::{ChangeClause, ScheduleUnit, SupplyTotal, summary},
    rows::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::{Allocation, AllocationsData, Burn, Buyback, Emission, FundingRound, Maybe},
};

/// The poll of a feed of records.
#[derive(Clone, Copy, Debug)]
pub struct RecordPoll<'a> {
    pub token: &'a TokenId,
    /// The days that the response covers.
    pub window: &'a DateWindow,
    /// The relative difference below which two amounts are equal.
    pub tolerance: f64,
}

/// Returns the burns of the first complete response, under new keys. They make no changes.
#[must_use]
pub fn baseline_burns(after: &[Burn]) -> Vec<Put> {
    baseline(&BURN, after)
}

/// Returns the buybacks of the first complete response, under new keys. They make no changes.
#[must_use]
pub fn baseline_buybacks(after: &[Buyback]) -> Vec<Put> {
    baseline(&BUYBACK, after)
}

/// Returns the daily or weekly emissions of the first complete response, under new keys. They make no changes.
#[must_use]
pub fn baseline_emissions(after: &[Emission]) -> Vec<Put> {
    baseline(&EMISSION, after)
}

/// Returns the rows of the first complete response, under new keys. They make no changes.
#[must_use]
pub fn baseline_allocations(after: &[Allocation]) -> Vec<Put> {
    baseline(&ALLOCATION, after)
}

/// Returns the funding rounds of the first complete response, under new keys. They make no changes.
#[must_use]
pub fn baseline_funding(after: &[FundingRound]) -> Vec<Put> {
    baseline(&FUNDING, after)
}

/// Compares a complete response with the known burns of a token. Restated amounts and values are `revised`. If most values change and
/// their amounts do not, the price drifted, which is not a change.
#[must_use]
pub fn diff_burns(poll: &RecordPoll<'_>, before: &[Tracked], proof: &RemovalProof<'_>, after: &[Burn]) -> Diff {
    diff_rows(&BURN, poll, before, proof, after)
}

/// Compares a complete response with the known buybacks of a token, like [`diff_burns`].
#[must_use]
pub fn diff_buybacks(poll: &RecordPoll<'_>, before: &[Tracked], proof: &RemovalProof<'_>, after: &[Buyback]) -> Diff {
    diff_rows(&BUYBACK, poll, before, proof, after)
}

/// Compares a complete response with the known emissions of a token. Daily and weekly emissions are separate: a response covers either
/// daily or weekly ones.
#[must_use]
pub fn diff_emissions(poll: &RecordPoll<'_>, before: &[Tracked], proof: &RemovalProof<'_>, after: &[Emission]) -> Diff {
    // An emission without an end is as long as the others.
    let usual = after.iter().filter(|emission| emission.end_date.get().is_some()).map(span).max();
    let after: Vec<Emission> = after.iter().map(|emission| with_end(emission, usual)).collect();
    let after = &after[..];
    let spans: HashSet<i64> = after.iter().map(span).collect();
    let is_covered = |record: &Record| matches!(record, Record::Emission(emission) if spans.contains(&span(emission)));
    let covered: Vec<Tracked> = before.iter().filter(|tracked| is_covered(&tracked.record)).cloned().collect();
    if covered.is_empty() && after.is_empty() {
        return diff_rows(&EMISSION, poll, before, proof, after);
    }
    let mut diff = diff_rows(&EMISSION, poll, &covered, proof, after);
    diff.missing.extend(proof.uncovered(before, &covered.iter().map(|tracked| &tracked.key).collect()));
    diff
}

fn with_end(emission: &Emission, days: Option<i64>) -> Emission {
    let mut emission = emission.clone();
    if let (None, Some(start), Some(days)) = (emission.end_date.get(), emission.start_date.copied(), days) {
        emission.end_date = Maybe::or_absent(chrono::TimeDelta::try_days(days).and_then(|days| start.checked_add_signed(days)));
    }
    emission
}

/// Compares a page of one investor with the known funding rounds. `before` holds the rounds that the page covers.
#[must_use]
pub fn diff_funding(poll: &RecordPoll<'_>, before: &[Tracked], proof: &RemovalProof<'_>, after: &[FundingRound]) -> Diff {
    diff_rows(&FUNDING, poll, before, proof, after)
}

/// Compares a complete response with the known allocation table of a token. Daily drift of unlocked and locked amounts is not a change.
///
/// `header` holds the fields of the previous response other than its rows. If `maxSupply` changed, that is one more change.
#[must_use]
pub fn diff_allocations(
    poll: &RecordPoll<'_>,
    before: &[Tracked],
    proof: &RemovalProof<'_>,
    after: &AllocationsData,
    header: Option<&Value>,
) -> Diff {
    let RecordPoll { token, tolerance, .. } = *poll;
    let rows = after.allocations.items();
    let mut diff = diff_rows(&ALLOCATION, poll, before, proof, rows);
    if diff.held {
        return diff;
    }
    let was = header.and_then(|header| header.get("maxSupply")).and_then(Value::as_f64);
    let is = after.max_supply.copied();
    if was.is_some() || is.is_some() {
        diff.changes.extend(max_supply_change(token, was, is, tolerance));
    } else {
        // The total of the table replaces the max supply.
        let sum = |amounts: &mut dyn Iterator<Item = Option<f64>>| amounts.sum::<Option<f64>>();
        let was = sum(&mut before.iter().filter_map(|t| (ALLOCATION.row)(&t.record)).map(|row| row.allocation_amount.copied()));
        let is = sum(&mut rows.iter().map(|row| row.allocation_amount.copied()));
        if diff.missing.is_empty() && !before.is_empty() {
            diff.changes.extend(supply_change(token, SupplyTotal::Allocations, was, is, tolerance));
        }
    }
    diff
}

/// Returns the change of a token's max supply, if both are known and differ. The token list and the allocation table both show it; the
/// caller compares either with itself.
#[must_use]
pub fn max_supply_change(token: &TokenId, before: Option<f64>, after: Option<f64>, tolerance: f64) -> Option<Change> {
    supply_change(token, SupplyTotal::MaxSupply, before, after, tolerance)
}

fn supply_change(token: &TokenId, of: SupplyTotal, before: Option<f64>, after: Option<f64>, tolerance: f64) -> Option<Change> {
    let (from, to) = (before?, after?);
    if close(from, to, tolerance) {
        return None;
    }
    let mut change = Change::of(ChangeKind::SupplyChanged, Resource::Allocation, token);
    change.from = Some(Fact::Amount(from));
    change.to = Some(Fact::Amount(to));
    change.ratio = ratio_of(Some(from), Some(to));
    let clause = ChangeClause::SupplyChanged { of, from, to, ratio: change.ratio };
    change.summary = summary(&[clause], &ScheduleUnit::default());
    Some(change)
}

fn baseline<T>(shape: &RecordShape<T>, after: &[T]) -> Vec<Put> {
    let mut keys = KeyAllocator::default();
    ordered(shape, after)
        .into_iter()
        .map(|row| Put { key: keys.fresh(&(shape.key)(row)), record: (shape.record)(row), is_new_version: true })
        .collect()
}

/// Returns the rows sorted by date, identity, and facts, so that their order in the response does not matter.
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

/// Compares a complete response with the known rows of one resource.
fn diff_rows<T: Clone>(
    shape: &RecordShape<T>,
    poll: &RecordPoll<'_>,
    before: &[Tracked],
    proof: &RemovalProof<'_>,
    after: &[T],
) -> Diff {
    let RecordPoll { token, window, tolerance } = *poll;
    let known: Vec<(&RecordKey, &T, &Record)> = before
        .iter()
        .filter_map(|tracked| Some((&tracked.key, (shape.row)(&tracked.record)?, &tracked.record)))
        .filter(|(_, row, _)| window.contains((shape.date)(row)))
        .collect();
    let held = |missing: &[&RecordKey], diff: Diff| Diff {
        held: !missing.is_empty(),
        missing: missing.iter().map(|key| proof.counted(key)).collect(),
        ..diff
    };
    if after.is_empty() {
        return held(&known.iter().map(|(key, ..)| *key).collect::<Vec<_>>(), Diff::default());
    }
    let mut diff = Diff::default();
    diff.anomalies.reordered = count_reordered(shape, after);
    let with_facts = |(key, row, record)| KnownRecord { key, row, record, facts: RecordFacts::of(shape, row) };
    let given = ordered(shape, after).into_iter().map(|row| GivenRecord { row, facts: RecordFacts::of(shape, row) });
    let pairing = RowPairing::new(shape, known.into_iter().map(with_facts).collect(), given.collect(), tolerance);
    let known = &pairing.known;

    let missing = pairing.missing();
    let missing_keys: Vec<&RecordKey> = missing.iter().map(|o| known[*o].key).collect();
    if proof.must_hold(&missing_keys, known.len()) {
        return held(&missing_keys, diff);
    }

    let (mut revised, puts) = complete_revised(&pairing, without_drift(&pairing, pairing.revised()));
    revised.retain(|revised| !revised.fields.is_empty());
    diff.put = puts;
    let mut keys = KeyAllocator::taken(before.iter().filter(|t| t.record.resource() == shape.resource).map(|t| &t.key));
    let mut added = Vec::new();
    for n in pairing.added() {
        let GivenRecord { row, facts } = &pairing.given[n];
        let (key, record) = (keys.fresh(&(shape.key)(row)), (shape.record)(row));
        diff.put.push(Put { key: key.clone(), record: record.clone(), is_new_version: true });
        added.push(ChangedRow { key, record, amount: facts.amount(), date: (shape.date)(row) });
    }
    let mut removed = Vec::new();
    for o in missing {
        let KnownRecord { key, row, record, facts } = &known[o];
        if proof.is_proven(key) {
            diff.removed.push((*key).clone());
            let (key, record) = ((*key).clone(), (*record).clone());
            removed.push(ChangedRow { key, record, amount: facts.amount(), date: (shape.date)(row) });
        } else {
            diff.missing.push(proof.counted(key));
        }
    }
    let covered: HashSet<&RecordKey> = known.iter().map(|known| known.key).collect();
    diff.missing.extend(proof.uncovered(before, &covered));

    diff.changes = revised_rows(&pairing, token, revised);
    diff.changes.extend(changed_rows(shape, ChangeKind::Added, token, &added));
    diff.changes.extend(changed_rows(shape, ChangeKind::Removed, token, &removed));
    diff
}

/// Counts rows out of order. Sources list the newest or the oldest row first, as the first and the last row show; only a mixture counts.
fn count_reordered<T>(shape: &RecordShape<T>, after: &[T]) -> u32 {
    let date = |row: &T| (shape.date)(row);
    let (Some(first), Some(last)) = (after.first().and_then(date), after.last().and_then(date)) else { return 0 };
    let out_of_order = after.windows(2).filter(
        |two| matches!((date(&two[0]), date(&two[1])), (Some(a), Some(b)) if (first <= last && a > b) || (first > last && a < b)),
    );
    count_of(out_of_order.count())
}

/// Drops changes of values that follow a price, if most rows changed in nothing else: the price drifted.
fn without_drift<T>(pairing: &RowPairing<'_, T>, mut rows: Vec<RevisedRow>) -> Vec<RevisedRow> {
    for field in pairing.shape.drifting {
        let is_alone = |row: &&RevisedRow| {
            row.fields.len() == 1 && row.fields.iter().all(|change| change.field == *field && !change.from.is_null())
        };
        let drifted = rows.iter().filter(is_alone).count();
        let has_value =
            |known: &&KnownRecord<'_, T>| known.facts.numbers.iter().any(|(name, value)| name == field && value.is_some());
        let valued = pairing.known.iter().filter(has_value).count();
        if drifted >= MIN_DRIFTED && drifted * 2 > valued {
            rows.iter_mut().for_each(|row| row.fields.retain(|change| change.field != *field));
        }
    }
    rows
}

/// Adds changes of the date and of the identity to revised rows. Also returns the records to write, in which known facts fill the gaps of
/// the response.
fn complete_revised<T: Clone>(pairing: &RowPairing<'_, T>, mut rows: Vec<RevisedRow>) -> (Vec<RevisedRow>, Vec<Put>) {
    let shape = pairing.shape;
    let mut puts = Vec::new();
    for RevisedRow { old, new, fields } in &mut rows {
        let (known, given) = (&pairing.known[*old], &pairing.given[*new]);
        let (was, is) = ((shape.date)(known.row), (shape.date)(given.row));
        if was != is && is.is_some() {
            let date = |at: Option<Timestamp>| {
                at.map_or(Value::Null, |at| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true).into())
            };
            fields.insert(0, FieldChange { field: shape.date_field.to_owned(), from: date(was), to: date(is) });
        }
        let identities = (shape.identity)(known.row).into_iter().zip((shape.identity)(given.row));
        for (field, (a, b)) in shape.identity_fields.iter().zip(identities).filter(|(_, (a, b))| a != b && !b.is_empty()) {
            fields.push(FieldChange { field: (*field).to_owned(), from: a.into_owned().into(), to: b.into_owned().into() });
        }
        let mut completed = given.row.clone();
        (shape.fill)(&mut completed, known.row);
        let record = (shape.record)(&completed);
        if record != *known.record {
            let has_same_facts = known.facts.same(&RecordFacts::of(shape, &completed), pairing.tolerance);
            puts.push(Put { key: known.key.clone(), record, is_new_version: !fields.is_empty() || !has_same_facts });
        }
    }
    (rows, puts)
}
