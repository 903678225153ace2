//! Turns changed rows into changes: one for each row if they are few, otherwise one for all.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    pairing::{RevisedRow, RowPairing},
    shape::RecordShape,
};
use crate::diff::{count_of, ratio_of};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange},
    phrase::changes::{ChangeClause, RowChange, RowSubject, ScheduleUnit, summary},
    supply::{Record, RecordKey, Resource, Timestamp, TokenId},
};

/// The maximum number of fields and allocations listed in one change.
const MAX_LISTED: usize = 50;

/// Returns the changes of revised rows.
pub(super) fn revised_rows<T>(pairing: &RowPairing<'_, T>, token: &TokenId, rows: Vec<RevisedRow>) -> Vec<Change> {
    let mut by_kind: BTreeMap<ChangeKind, Vec<RevisedRow>> = BTreeMap::new();
    for RevisedRow { old, new, fields } in rows {
        let mut split: BTreeMap<ChangeKind, Vec<FieldChange>> = BTreeMap::new();
        for field in fields {
            split.entry(kind_of(pairing.shape.resource, &field.field)).or_default().push(field);
        }
        for (kind, fields) in split {
            by_kind.entry(kind).or_default().push(RevisedRow { old, new, fields });
        }
    }
    let mut changes = Vec::new();
    for (kind, rows) in by_kind {
        if rows.len() > pairing.shape.max_separate {
            changes.push(revised(pairing, kind, token, &rows));
            continue;
        }
        changes.extend(rows.iter().map(|row| {
            let change = revised(pairing, kind, token, std::slice::from_ref(row));
            Change { key: Some(pairing.known[row.old].key.clone()), ..change }
        }));
    }
    changes
}

fn kind_of(resource: Resource, field: &str) -> ChangeKind {
    match (resource, field) {
        (Resource::Allocation, "allocationAmount") => ChangeKind::Resized,
        (Resource::Allocation, "allocationName" | "standardAllocationName") => ChangeKind::Renamed,
        _ => ChangeKind::Revised,
    }
}

fn fact(value: &Value) -> Option<Fact> {
    match value {
        Value::Number(number) => number.as_f64().map(Fact::Amount),
        Value::String(text) => Some(model::wire::parse_timestamp(text).map_or_else(|| Fact::Text(text.clone()), Fact::Time)),
        _ => None,
    }
}

/// Returns one change for rows whose facts of the same kind changed.
fn revised<T>(pairing: &RowPairing<'_, T>, kind: ChangeKind, token: &TokenId, pairs: &[RevisedRow]) -> Change {
    let RowPairing { shape, known, given, .. } = pairing;
    let mut change = Change::of(kind, shape.resource, token);
    change.count = count_of(pairs.len());
    let Some(first) = pairs.first() else { return change };
    let first_row = given[first.new].row;
    change.old = Some(known[first.old].record.clone());
    change.new = Some((shape.record)(first_row));
    // The total, if amounts changed; otherwise the first fact that did.
    let amount_field = (shape.numbers)(first_row).first().map(|(field, _)| field.clone().into_owned()).unwrap_or_default();
    let mut sums: Option<(f64, f64)> = None;
    for pair in pairs {
        for field in &pair.fields {
            if field.field == amount_field
                && let (Some(from), Some(to)) = (field.from.as_f64(), field.to.as_f64())
            {
                let sum = sums.get_or_insert((0.0, 0.0));
                sum.0 += from;
                sum.1 += to;
            }
        }
    }
    let lead = first.fields.first();
    if let Some((from, to)) = sums {
        change.from = Some(Fact::Amount(from));
        change.to = Some(Fact::Amount(to));
        change.ratio = ratio_of(Some(from), Some(to));
    } else if let Some(lead) = lead {
        change.from = fact(&lead.from);
        change.to = fact(&lead.to);
        if let (Some(Fact::Amount(from)), Some(Fact::Amount(to))) = (&change.from, &change.to) {
            change.ratio = ratio_of(Some(*from), Some(*to));
        }
        if let (Some(Fact::Time(from)), Some(Fact::Time(to))) = (&change.from, &change.to) {
            change.shift_days = Some(model::supply::days(*to - *from));
        }
    }
    change.fields = pairs.iter().flat_map(|pair| pair.fields.iter().cloned()).take(MAX_LISTED).collect();
    if shape.resource == Resource::Allocation {
        change.allocations = pairs
            .iter()
            .take(MAX_LISTED)
            .filter_map(|pair| {
                let lead = pair.fields.first()?;
                let (from, to) = (fact(&lead.from), fact(&lead.to));
                let ratio = ratio_of(from.as_ref().and_then(Fact::amount), to.as_ref().and_then(Fact::amount));
                let name = (shape.key)(given[pair.new].row);
                Some(AllocationChange { name, from, to, ratio, count: 1, ..AllocationChange::default() })
            })
            .collect();
    }
    let rows = row_subject(shape, pairs.len(), (shape.date)(first_row), &(shape.key)(first_row));
    let ratio = change.ratio;
    let what = match (sums, lead) {
        (Some((from, to)), _) if kind == ChangeKind::Resized => RowChange::Resized { from, to, ratio },
        (Some((from, to)), _) => RowChange::Restated { from, to, ratio },
        (None, Some(lead)) => RowChange::Field(lead.clone()),
        (None, None) => RowChange::Other,
    };
    change.summary = summary_of_rows(rows, what);
    change
}

fn row_subject<T>(shape: &RecordShape<T>, count: usize, date: Option<Timestamp>, key: &str) -> RowSubject {
    RowSubject { noun: shape.noun, count, date, key: key.to_owned() }
}

fn summary_of_rows(rows: RowSubject, change: RowChange) -> String {
    summary(&[ChangeClause::Rows { rows, change }], &ScheduleUnit::default())
}

/// A row that was added or removed.
pub(super) struct ChangedRow {
    pub(super) key: RecordKey,
    pub(super) record: Record,
    pub(super) amount: Option<f64>,
    pub(super) date: Option<Timestamp>,
}

/// Returns the changes of rows that were added or removed, as `kind` says.
pub(super) fn changed_rows<T>(shape: &RecordShape<T>, kind: ChangeKind, token: &TokenId, rows: &[ChangedRow]) -> Vec<Change> {
    let mut changes = Vec::new();
    let size = if rows.len() <= shape.max_separate { 1 } else { rows.len() };
    for group in rows.chunks(size.max(1)) {
        let Some(first) = group.first() else { continue };
        let mut change = Change::of(kind, shape.resource, token);
        change.count = count_of(group.len());
        let known = group.iter().any(|row| row.amount.is_some());
        let total: f64 = group.iter().filter_map(|row| row.amount).sum();
        let fact = known.then_some(Fact::Amount(total));
        let amount = known.then_some(total);
        let what = if kind == ChangeKind::Added { RowChange::Added { amount } } else { RowChange::Removed { amount } };
        change.summary = summary_of_rows(row_subject(shape, group.len(), first.date, first.key.as_str()), what);
        if group.len() == 1 {
            change.key = Some(first.key.clone());
        }
        if kind == ChangeKind::Added {
            change.to = fact;
            change.new = Some(first.record.clone());
        } else {
            change.from = fact;
            change.old = Some(first.record.clone());
        }
        if shape.resource == Resource::Allocation {
            change.allocations = group
                .iter()
                .take(MAX_LISTED)
                .map(|row| {
                    let fact = row.amount.map(Fact::Amount);
                    let name = row.key.as_str().to_owned();
                    let (from, to) = if kind == ChangeKind::Added { (None, fact) } else { (fact, None) };
                    AllocationChange { name, from, to, count: 1, ..AllocationChange::default() }
                })
                .collect();
        }
        changes.push(change);
    }
    changes
}
