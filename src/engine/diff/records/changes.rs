//! The changes of rows: each by itself where they are few, else one for all.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    pairing::{RevisedRow, RowPairing},
    shape::RecordShape,
};
use crate::diff::{changes::value_text, count_of};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange},
    format,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId},
};

/// Fields and allocations listed in one change.
const MAX_LISTED: usize = 50;

/// Adds the changes of rows that were revised.
pub(super) fn add_revised<T>(
    pairing: &RowPairing<'_, T>,
    token: &TokenId,
    new_keys: &[Option<RecordKey>],
    pairs: Vec<RevisedRow>,
    changes: &mut Vec<Change>,
) {
    let mut by_kind: BTreeMap<ChangeKind, Vec<RevisedRow>> = BTreeMap::new();
    for pair in pairs {
        let mut split: BTreeMap<ChangeKind, Vec<FieldChange>> = BTreeMap::new();
        for field in pair.fields {
            split.entry(kind_of(pairing.shape.resource, &field.field)).or_default().push(field);
        }
        for (kind, fields) in split {
            by_kind.entry(kind).or_default().push(RevisedRow { old: pair.old, new: pair.new, fields });
        }
    }
    for (kind, pairs) in by_kind {
        if pairs.len() <= pairing.shape.alone {
            changes.extend(pairs.into_iter().map(|pair| {
                let mut change = revised(pairing, kind, token, std::slice::from_ref(&pair));
                change.key.clone_from(&new_keys[pair.new]);
                change
            }));
        } else {
            changes.push(revised(pairing, kind, token, &pairs));
        }
    }
}

/// The kind of a change of one field.
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

/// One change for rows of which the same kind of fact changed.
fn revised<T>(pairing: &RowPairing<'_, T>, kind: ChangeKind, token: &TokenId, pairs: &[RevisedRow]) -> Change {
    let RowPairing { shape, known, rows, .. } = pairing;
    let mut change = Change::of(kind, shape.resource, token);
    change.count = count_of(pairs.len());
    let Some(first) = pairs.first() else { return change };
    change.old = Some(known[first.old].2.clone());
    change.new = Some((shape.record)(rows[first.new]));
    // The amount of the whole, where amounts changed; else the first fact that did.
    let amount_field = (shape.numbers)(rows[first.new]).first().map(|(field, _)| field.clone().into_owned()).unwrap_or_default();
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
        change.ratio = (from != 0.0).then(|| to / from);
    } else if let Some(lead) = lead {
        change.from = fact(&lead.from);
        change.to = fact(&lead.to);
        if let (Some(Fact::Amount(from)), Some(Fact::Amount(to))) = (&change.from, &change.to) {
            change.ratio = (*from != 0.0).then(|| to / from);
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
                let ratio = match (&from, &to) {
                    (Some(Fact::Amount(from)), Some(Fact::Amount(to))) if *from != 0.0 => Some(to / from),
                    _ => None,
                };
                Some(AllocationChange { name: (shape.key)(rows[pair.new]), from, to, shift_days: None, ratio, count: 1 })
            })
            .collect();
    }
    let subject = describe(shape, pairs.len(), (shape.date)(rows[first.new]), &(shape.key)(rows[first.new]));
    let what = match (sums, lead) {
        (Some((from, to)), _) => {
            let times = change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
            let verb = if kind == ChangeKind::Resized { "resized" } else { "restated" };
            format!("{verb} from {} to {}{times}", format::amount(from), format::amount(to))
        }
        (None, Some(lead)) if lead.field == "allocationName" => format!("renamed from {}", value_text(&lead.from)),
        (None, Some(lead)) if lead.from.is_null() => format!("{} is now {}", lead.field, value_text(&lead.to)),
        (None, Some(lead)) => format!("{} changed from {} to {}", lead.field, value_text(&lead.from), value_text(&lead.to)),
        (None, None) => "revised".to_owned(),
    };
    change.summary = format!("{subject} {what}");
    change
}

/// The subject of a sentence about rows.
fn describe<T>(shape: &RecordShape<T>, count: usize, date: Option<Timestamp>, key: &str) -> String {
    match (count, date) {
        (1, Some(at)) => format!("{} of {}", shape.noun, format::day(at)),
        (1, None) => format!("{} {}", shape.noun, format::name(key)),
        (count, Some(at)) => format!("{} from {} on", format::count(count, shape.noun), format::day(at)),
        (count, None) => format!("{}, {} among them,", format::count(count, shape.noun), format::name(key)),
    }
}

/// A row that came or is gone.
pub(super) struct ChangedRow {
    pub(super) key: RecordKey,
    pub(super) record: Record,
    pub(super) amount: Option<f64>,
    pub(super) date: Option<Timestamp>,
}

/// Adds the changes of rows that came or are gone.
pub(super) fn add_come_or_gone<T>(
    shape: &RecordShape<T>,
    kind: ChangeKind,
    token: &TokenId,
    rows: Vec<ChangedRow>,
    changes: &mut Vec<Change>,
) {
    let size = if rows.len() <= shape.alone { 1 } else { rows.len() };
    for group in rows.chunks(size.max(1)) {
        let Some(first) = group.first() else { continue };
        let mut change = Change::of(kind, shape.resource, token);
        change.count = count_of(group.len());
        let known = group.iter().any(|row| row.amount.is_some());
        let total: f64 = group.iter().filter_map(|row| row.amount).sum();
        let fact = known.then_some(Fact::Amount(total));
        let subject = describe(shape, group.len(), first.date, first.key.as_str());
        let amount = if known { format!(", {}", format::amount(total)) } else { String::new() };
        change.summary = format!("{}: {}{amount}", kind.as_str(), subject.trim_end_matches(','));
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
}
