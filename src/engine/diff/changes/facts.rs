//! Facts beside dates and amounts: committed claims, sources, precisions, labels.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ChangeSubject, EventSet, ExplainedChange, ScheduleComparison, distinct, record};
use crate::diff::{
    align::TranchePair,
    close, ratio_of,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{AllocationChange, ChangeKind, Fact, FieldChange},
    format,
    supply::Timestamp,
};

/// One fact that changed in one event.
pub(super) struct RevisedFact {
    pub(super) field: FieldChange,
    /// The event, by index, before and after.
    pub(super) old: usize,
    pub(super) new: usize,
    /// A fact of the whole schedule, such as its source.
    pub(super) whole_token: bool,
}

impl RevisedFact {
    /// A fact of one event.
    pub(super) fn of(field: &str, from: Value, to: Value, (old, new): (usize, usize)) -> Self {
        Self { field: FieldChange { field: field.to_owned(), from, to }, old, new, whole_token: false }
    }
}

/// Facts that changed alike in one or many events.
pub(super) struct FactRevision {
    pub(super) field: FieldChange,
    pub(super) whole_token: bool,
    count: u32,
    pub(super) old: EventSet,
    pub(super) new: EventSet,
}

/// Facts that are neither date nor amount nor recipient, gathered by what changed. `found` holds those that other steps found.
pub(super) fn other_facts(compared: &ScheduleComparison<'_>, found: Vec<RevisedFact>) -> Vec<FactRevision> {
    let mut all = found;
    for (i, j) in &compared.links.pairs {
        let (old, new) = (&compared.old[*i], &compared.new[*j]);
        let rows = (old.row, new.row);
        // A missing precision is not another one; two that were given and differ are.
        if let (Some(a), Some(b)) = (old.precision, new.precision)
            && a != b
        {
            all.push(RevisedFact::of("unlockPrecision", a.into(), b.into(), rows));
        }
        if let (None, Some(amount)) = (old.amount, new.amount) {
            let field = if new.form == TrancheForm::Cliff { "cliffAmount" } else { "linearAmount" };
            all.push(RevisedFact::of(field, Value::Null, amount.into(), rows));
        }
        if let (None, Some(end)) = (old.end_time(), new.end_time())
            && new.form == TrancheForm::Linear
        {
            all.push(RevisedFact::of("endDate", Value::Null, end.to_rfc3339().into(), rows));
        }
    }
    for (o, event) in compared.old_rows.iter().enumerate() {
        let Some(n) = compared.new_of_old[o] else { continue };
        let after = compared.new_rows[n];
        for (field, a, b) in [
            ("dataSource", &event.data_source, &after.data_source),
            ("listedMethod", &event.listed_method, &after.listed_method),
            ("tokenName", &event.token_name, &after.token_name),
            ("tokenSymbol", &event.token_symbol, &after.token_symbol),
        ] {
            if let (Some(a), Some(b)) = (a.as_str(), b.as_str())
                && a != b
            {
                all.push(RevisedFact { whole_token: true, ..RevisedFact::of(field, a.into(), b.into(), (o, n)) });
            }
        }
    }
    gather(all)
}

/// Facts that changed alike become one, in the order in which the first of each was found.
fn gather(all: Vec<RevisedFact>) -> Vec<FactRevision> {
    let mut revisions: Vec<FactRevision> = Vec::new();
    let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for RevisedFact { field, old, new, whole_token } in all {
        let key = (field.field.clone(), field.from.to_string(), field.to.to_string());
        let k = *known.entry(key).or_insert_with(|| {
            revisions.push(FactRevision { field, whole_token, count: 0, old: EventSet::new(), new: EventSet::new() });
            revisions.len() - 1
        });
        if let Some(revision) = revisions.get_mut(k) {
            revision.count += 1;
            revision.old.insert(old);
            revision.new.insert(new);
        }
    }
    revisions
}

/// Facts that changed with nothing else: one change for all of them.
pub(super) fn revised(compared: &ScheduleComparison<'_>, facts: Vec<FactRevision>) -> Option<ExplainedChange> {
    let (old, new): (EventSet, EventSet) =
        (facts.iter().flat_map(|fact| fact.old.clone()).collect(), facts.iter().flat_map(|fact| fact.new.clone()).collect());
    let (o, n) = (*old.first()?, *new.first()?);
    let mut found = compared.explained(ChangeKind::Revised, &[], &[], &[]);
    found.change.old = Some(record(compared.old_rows[o]));
    found.change.new = Some(record(compared.new_rows[n]));
    found.change.count = facts.iter().map(|fact| fact.count).max().unwrap_or(1);
    (found.old, found.new) = (old, new);
    found.subject = compared.one_event(&found).map(|(_, n)| ChangeSubject::New(n));
    let fact = |value: &Value| match value {
        Value::String(text) => Some(Fact::Text(text.clone())),
        Value::Number(number) => number.as_f64().map(Fact::Amount),
        _ => None,
    };
    let mut said: Vec<String> = Vec::new();
    for revision in facts {
        if found.change.fields.is_empty() {
            found.change.from = fact(&revision.field.from);
            found.change.to = fact(&revision.field.to);
        }
        let FieldChange { field, from, to } = &revision.field;
        if said.len() < 3 {
            said.push(match (from, to) {
                (Value::Null, to) => format!("{field} is now {}", value_text(to)),
                (from, to) => format!("{field} changed from {} to {}", value_text(from), value_text(to)),
            });
        }
        found.change.fields.push(revision.field);
    }
    found.change.summary = said.join("; ");
    if found.new.len() > 1 {
        found.change.summary.push_str(&format!(" ({})", format::count(found.new.len(), "event")));
    }
    Some(found)
}

/// A value of a field, short and on one line.
pub(in crate::diff) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format::name(text),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), format::amount),
        other => format::name(&other.to_string()),
    }
}

/// Committed claims that appeared or changed: one change for all of one answer. One that is missing is quiet, since not every
/// version of the endpoint has claims.
pub(super) fn claims(compared: &ScheduleComparison<'_>) -> Option<ExplainedChange> {
    let amount = |t: &Tranche<'_>| t.claim.and_then(|claim| claim.amount.copied());
    let at = |t: &Tranche<'_>| t.claim.and_then(|claim| claim.timestamp.copied());
    let changed: Vec<TranchePair> = compared
        .links
        .pairs
        .iter()
        .copied()
        .filter(|(i, j)| {
            let (old, new) = (&compared.old[*i], &compared.new[*j]);
            let amounts = match (amount(old), amount(new)) {
                (Some(a), Some(b)) => !close(a, b, compared.tolerance),
                (None, Some(_)) => true,
                _ => false,
            };
            amounts || (at(new).is_some() && at(old) != at(new))
        })
        .collect();
    if changed.is_empty() {
        return None;
    }
    let mut found = compared.explained(ChangeKind::Committed, &changed, &[], &[]);
    let sum = |values: Vec<Option<f64>>| values.iter().any(Option::is_some).then(|| values.iter().flatten().sum::<f64>());
    let from = sum(changed.iter().map(|(i, _)| amount(&compared.old[*i])).collect());
    let to = sum(changed.iter().map(|(_, j)| amount(&compared.new[*j])).collect());
    found.change.from = from.map(Fact::Amount);
    found.change.to = to.map(Fact::Amount);
    found.change.ratio = ratio_of(from, to);
    found.change.allocations = changed
        .iter()
        .map(|(i, j)| AllocationChange {
            name: compared.new[*j].name.to_owned(),
            from: amount(&compared.old[*i]).map(Fact::Amount),
            to: amount(&compared.new[*j]).map(Fact::Amount),
            shift_days: None,
            ratio: ratio_of(amount(&compared.old[*i]), amount(&compared.new[*j])),
            count: 1,
        })
        .collect();
    let names = format::names(distinct(changed.iter().map(|(_, j)| compared.new[*j].name)));
    let times = changed.first().and_then(|(_, j)| at(&compared.new[*j])).and_then(|at| Timestamp::from_timestamp(at, 0));
    let when = times.map(|at| format!(" on {}", format::day(at))).unwrap_or_default();
    let amount = |amount: Option<f64>| amount.map_or_else(|| "an unknown amount".to_owned(), format::amount);
    found.change.summary = if from.is_some() {
        format!("committed claim of {names} changed from {} to {}{when}", amount(from), amount(to))
    } else {
        format!("{names} committed to claim {}{when}", amount(to))
    };
    found.subject = compared.one_event(&found).map(|(_, n)| ChangeSubject::New(n));
    Some(found)
}
