//! Turns changed rows into changes: one for each row if they are few, otherwise one for all rows with the same changed field. Such a change
//! states only facts that are true of each of its rows.

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
        let groups: Vec<Vec<RevisedRow>> = match rows.len() > pairing.shape.max_separate {
            true => by_field(pairing, rows),
            false => rows.into_iter().map(|row| vec![row]).collect(),
        };
        changes.extend(groups.iter().map(|group| {
            let change = revised(pairing, kind, token, group);
            let key = if let [row] = group.as_slice() { Some(pairing.known[row.old].key.clone()) } else { change.key.clone() };
            Change { key, ..change }
        }));
    }
    changes
}

/// Groups rows by the field that their change is about. Only rows with an amount before and after can be added up.
fn by_field<T>(pairing: &RowPairing<'_, T>, rows: Vec<RevisedRow>) -> Vec<Vec<RevisedRow>> {
    let mut groups: BTreeMap<(String, bool), Vec<RevisedRow>> = BTreeMap::new();
    for row in rows {
        let lead = lead_of(pairing, &row);
        let is_amount = |lead: &FieldChange| lead.field == amount_field(pairing.shape, pairing.given[row.new].row);
        let has_amounts = lead.is_some_and(|lead| is_amount(lead) && amounts(lead).is_some());
        let field = lead.map(|lead| lead.field.clone()).unwrap_or_default();
        groups.entry((field, has_amounts)).or_default().push(row);
    }
    groups.into_values().collect()
}

/// Returns the fact that the change of a row is about: its amount, if that changed, else the first fact that did.
fn lead_of<'r, T>(pairing: &RowPairing<'_, T>, row: &'r RevisedRow) -> Option<&'r FieldChange> {
    let amount_field = amount_field(pairing.shape, pairing.given[row.new].row);
    row.fields.iter().find(|field| field.field == amount_field && amounts(field).is_some()).or(row.fields.first())
}

fn amount_field<T>(shape: &RecordShape<T>, row: &T) -> String {
    (shape.numbers)(row).first().map(|(field, _)| field.clone().into_owned()).unwrap_or_default()
}

/// Returns the numbers before and after. `None` unless both are known.
fn amounts(field: &FieldChange) -> Option<(f64, f64)> {
    field.from.as_f64().zip(field.to.as_f64())
}

/// Returns the value that all items have. `None` if they differ, or if one has none.
fn common<V: PartialEq>(mut items: impl Iterator<Item = Option<V>>) -> Option<V> {
    let first = items.next()??;
    items.all(|item| item.as_ref() == Some(&first)).then_some(first)
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

/// Returns one change for rows whose facts of the same kind changed. Several rows differ in the same field.
fn revised<T>(pairing: &RowPairing<'_, T>, kind: ChangeKind, token: &TokenId, rows: &[RevisedRow]) -> Change {
    let RowPairing { shape, known, given, .. } = pairing;
    let mut change = Change::of(kind, shape.resource, token);
    change.count = count_of(rows.len());
    let Some(first) = rows.first() else { return change };
    let first_row = given[first.new].row;
    change.old = Some(known[first.old].record.clone());
    change.new = Some((shape.record)(first_row));
    // The total, if amounts changed; otherwise the fact that changed, if it is the same in all rows.
    let leads: Vec<&FieldChange> = rows.iter().filter_map(|row| lead_of(pairing, row)).collect();
    let is_amount = leads.first().is_some_and(|lead| lead.field == amount_field(shape, first_row));
    let sums = leads.iter().filter(|_| is_amount).filter_map(|lead| amounts(lead));
    let sums = sums.reduce(|(from, to), (other_from, other_to)| (from + other_from, to + other_to));
    let common_fact = |side: fn(&FieldChange) -> &Value| common(leads.iter().map(|lead| fact(side(lead))));
    if let Some((from, to)) = sums {
        change.from = Some(Fact::Amount(from));
        change.to = Some(Fact::Amount(to));
        change.ratio = ratio_of(Some(from), Some(to));
    } else {
        change.from = common_fact(|lead| &lead.from);
        change.to = common_fact(|lead| &lead.to);
        if let (Some(Fact::Amount(from)), Some(Fact::Amount(to))) = (&change.from, &change.to) {
            change.ratio = ratio_of(Some(*from), Some(*to));
        }
        change.shift_days = common(leads.iter().map(|lead| match (fact(&lead.from), fact(&lead.to)) {
            (Some(Fact::Time(from)), Some(Fact::Time(to))) => Some(model::supply::days(to - from)),
            _ => None,
        }));
    }
    change.fields = rows.iter().flat_map(|row| row.fields.iter().cloned()).take(MAX_LISTED).collect();
    if shape.resource == Resource::Allocation {
        change.allocations = rows
            .iter()
            .take(MAX_LISTED)
            .filter_map(|row| {
                let lead = lead_of(pairing, row)?;
                let (from, to) = (fact(&lead.from), fact(&lead.to));
                let ratio = ratio_of(from.as_ref().and_then(Fact::amount), to.as_ref().and_then(Fact::amount));
                let name = (shape.key)(given[row.new].row);
                Some(AllocationChange { name, from, to, ratio, count: 1, ..AllocationChange::default() })
            })
            .collect();
    }
    let date = rows.iter().filter_map(|row| (shape.date)(given[row.new].row)).min();
    let subject = row_subject(shape, rows.len(), date, &(shape.key)(first_row));
    let ratio = change.ratio;
    let what = match (sums, leads.first()) {
        (Some((from, to)), _) if kind == ChangeKind::Resized => RowChange::Resized { from, to, ratio },
        (Some((from, to)), _) => RowChange::Restated { from, to, ratio },
        (None, Some(lead)) if leads.iter().all(|other| other == lead) => RowChange::Field((*lead).clone()),
        (None, Some(lead)) => RowChange::Fields(lead.field.clone()),
        (None, None) => RowChange::Other,
    };
    change.summary = summary_of_rows(subject, what);
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
        let date = group.iter().filter_map(|row| row.date).min();
        change.summary = summary_of_rows(row_subject(shape, group.len(), date, first.key.as_str()), what);
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
