//! Facts other than dates, amounts, and recipients: committed claims, sources, precisions, and labels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    ChangeExplanation, Comparison, distinct, known_sum, record,
    tranche_facts::{date_change, tranche_facts},
};
use crate::diff::{
    index::{NewRow, NewTranche, OldRow},
    ratio_of,
    timeline::{TranchePair, TrancheSet},
    tolerances::close,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange},
    phrase::changes::{CategoryChange, ChangeClause},
    supply::{Timestamp, parse_timestamp},
};

const UNLOCK_DATE: &str = "unlockDate";
const UNLOCK_PRECISION: &str = "unlockPrecision";
const ALLOCATION_NAME: &str = "allocationName";
pub(super) const CATEGORY: &str = "standardAllocationName";

/// A fact that changed in one event.
pub(super) struct RevisedFact {
    pub(super) field: FieldChange,
    pub(super) old: OldRow,
    pub(super) new: NewRow,
    /// Whether it is a fact of the whole schedule, such as its source.
    pub(super) is_of_token: bool,
    /// The tranche, if its date is more or less exact than before.
    pub(super) redated: Option<TranchePair>,
    /// The allocation, if all of it is in another category than before.
    recategorized: Option<String>,
}

impl RevisedFact {
    pub(super) fn of(field: &str, from: Value, to: Value, (old, new): (OldRow, NewRow)) -> Self {
        let field = FieldChange { field: field.to_owned(), from, to };
        Self { field, old, new, is_of_token: false, redated: None, recategorized: None }
    }

    /// Returns the fact that an allocation is in another category.
    pub(super) fn of_category(allocation: String, from: &str, to: &str, rows: (OldRow, NewRow)) -> Self {
        Self { recategorized: Some(allocation), ..Self::of(CATEGORY, from.into(), to.into(), rows) }
    }
}

/// The same change of a fact in one or several events.
pub(super) struct FactRevision {
    pub(super) field: FieldChange,
    pub(super) is_of_token: bool,
    count: u32,
    pub(super) old: BTreeSet<OldRow>,
    pub(super) new: BTreeSet<NewRow>,
    /// The tranches whose dates are more or less exact than before.
    redated: Vec<TranchePair>,
    /// The allocations that are in another category than before.
    recategorized: Vec<String>,
}

impl FactRevision {
    /// Returns the sentence about a fact that matters in a text about another change: dates that are more or less exact than before,
    /// another category of an allocation, or another source of the schedule.
    pub(super) fn clause(&self, compared: &Comparison<'_>) -> Option<ChangeClause> {
        let of_token = || ChangeClause::FieldsRevised { fields: vec![self.field.clone()], events: 1, is_only_change: false };
        redated_clause(compared, &self.redated).or_else(|| self.category_clause()).or_else(|| self.is_of_token.then(of_token))
    }

    /// Returns whether dates are more or less exact than before.
    pub(super) fn is_redated(&self) -> bool {
        !self.redated.is_empty()
    }

    /// Returns whether a change is about the allocations whose dates are more or less exact. Other facts are about the whole event.
    pub(super) fn is_about_allocations_of(&self, compared: &Comparison<'_>, change: &Change) -> bool {
        let names = || change.allocations.iter().map(|allocation| allocation.name.as_str());
        let mut redated = self.redated.iter().map(|pair| compared.timeline.new[pair.new].name);
        names().next().is_none() || redated.all(|name| names().any(|other| other == name))
    }

    /// Returns whether the fact is another category of an allocation that a change names.
    pub(super) fn is_category_in(&self, change: &Change) -> bool {
        change.allocations.iter().any(|allocation| self.recategorized.contains(&allocation.name))
    }

    fn category_clause(&self) -> Option<ChangeClause> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (from, to) = (text(&self.field.from)?, text(&self.field.to)?);
        let category = CategoryChange { allocations: self.recategorized.clone(), from, to };
        let clause = ChangeClause::Renamed { names: Vec::new(), categories: vec![category], amounts: Vec::new(), tranches: 0 };
        (!self.recategorized.is_empty()).then_some(clause)
    }
}

/// Returns the fact that an allocation has a new name.
pub(super) fn name_field(from: &str, to: &str) -> FieldChange {
    FieldChange { field: ALLOCATION_NAME.to_owned(), from: from.into(), to: to.into() }
}

fn redated_clause(compared: &Comparison<'_>, redated: &[TranchePair]) -> Option<ChangeClause> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let is_coming = |pair: &&TranchePair| new[pair.new].interval().is_some_and(|at| !at.has_passed(compared.now));
    let next = redated.iter().filter(is_coming).min_by_key(|pair| new[pair.new].at);
    let example = next.or(redated.first())?;
    let tranches: Vec<NewTranche> = redated.iter().map(|pair| pair.new).collect();
    Some(ChangeClause::Redated {
        tranches: tranche_facts(new, &tranches),
        example: date_change(&old[example.old], &new[example.new]),
        is_next: next.is_some(),
    })
}

/// Returns the other facts that changed, grouped by what changed. `found` holds the facts that earlier steps found.
pub(super) fn other_facts(compared: &Comparison<'_>, found: Vec<RevisedFact>) -> Vec<FactRevision> {
    let timeline = compared.timeline;
    let mut all = found;
    for pair in &compared.links.pairs {
        let (old, new) = (&timeline.old[pair.old], &timeline.new[pair.new]);
        let rows = (old.row, new.row);
        let mut redated = compared.has_new_precision_only(*pair).then_some(*pair);
        if old.at != new.at && redated.is_some() {
            let (from, to) = (old.time().to_rfc3339(), new.time().to_rfc3339());
            all.push(RevisedFact { redated: redated.take(), ..RevisedFact::of(UNLOCK_DATE, from.into(), to.into(), rows) });
        }
        // A missing precision is not a change; two known ones that differ are.
        if let (Some(a), Some(b)) = (old.precision, new.precision)
            && a != b
        {
            all.push(RevisedFact { redated, ..RevisedFact::of(UNLOCK_PRECISION, a.into(), b.into(), rows) });
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
    for (o, event) in timeline.old_events.indexed() {
        let Some(n) = compared.new_of_old[o] else { continue };
        let after = timeline.new_events[n];
        for (field, a, b) in [
            ("dataSource", &event.data_source, &after.data_source),
            ("listedMethod", &event.listed_method, &after.listed_method),
            ("tokenName", &event.token_name, &after.token_name),
            ("tokenSymbol", &event.token_symbol, &after.token_symbol),
        ] {
            if let (Some(a), Some(b)) = (a.as_str(), b.as_str())
                && a != b
            {
                all.push(RevisedFact { is_of_token: true, ..RevisedFact::of(field, a.into(), b.into(), (o, n)) });
            }
        }
    }
    gather(all)
}

/// Joins equal changes of facts, in the order in which the first of each was found.
fn gather(all: Vec<RevisedFact>) -> Vec<FactRevision> {
    let mut revisions: Vec<FactRevision> = Vec::new();
    let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for RevisedFact { field, old, new, is_of_token, redated, recategorized } in all {
        let key = match field.field.as_str() {
            // Dates that became more or less exact are one change, although each has its own values.
            UNLOCK_DATE => (field.field.clone(), String::new(), String::new()),
            _ => (field.field.clone(), field.from.to_string(), field.to.to_string()),
        };
        let k = *known.entry(key).or_insert_with(|| {
            let (old, new) = (BTreeSet::new(), BTreeSet::new());
            let (redated, recategorized) = (Vec::new(), Vec::new());
            revisions.push(FactRevision { field, is_of_token, count: 0, old, new, redated, recategorized });
            revisions.len() - 1
        });
        if let Some(revision) = revisions.get_mut(k) {
            revision.count += 1;
            revision.redated.extend(redated);
            revision.recategorized.extend(recategorized);
            revision.old.insert(old);
            revision.new.insert(new);
        }
    }
    revisions
}

/// Explains facts that belong to no other change: one change for all of them.
pub(super) fn revised(compared: &Comparison<'_>, facts: Vec<FactRevision>, is_only_change: bool) -> Option<ChangeExplanation> {
    let old: BTreeSet<OldRow> = facts.iter().flat_map(|fact| fact.old.iter().copied()).collect();
    let new: BTreeSet<NewRow> = facts.iter().flat_map(|fact| fact.new.iter().copied()).collect();
    let (o, n) = (*old.first()?, *new.first()?);
    let mut explanation = compared.explanation(ChangeKind::Revised, &TrancheSet::default());
    let change = &mut explanation.change;
    change.old = Some(record(compared.timeline.old_events[o]));
    change.new = Some(record(compared.timeline.new_events[n]));
    change.count = facts.iter().map(|fact| fact.count).max().unwrap_or(1);
    let redated: Vec<TranchePair> = facts.iter().flat_map(|fact| fact.redated.iter().copied()).collect();
    let redated = redated_clause(compared, &redated);
    change.fields = facts.into_iter().map(|fact| fact.field).collect();
    let fact = |field: &str, value: &Value| match value {
        Value::String(text) if field == UNLOCK_DATE => parse_timestamp(text).map(Fact::Time),
        Value::String(text) => Some(Fact::Text(text.clone())),
        Value::Number(number) => number.as_f64().map(Fact::Amount),
        _ => None,
    };
    change.from = change.fields.first().and_then(|of| fact(&of.field, &of.from));
    change.to = change.fields.first().and_then(|of| fact(&of.field, &of.to));
    let is_described = |of: &FieldChange| redated.is_some() && [UNLOCK_DATE, UNLOCK_PRECISION].contains(&of.field.as_str());
    let other_fields: Vec<FieldChange> = change.fields.iter().filter(|field| !is_described(field)).cloned().collect();
    if !other_fields.is_empty() {
        explanation.clauses.push(ChangeClause::FieldsRevised { fields: other_fields, events: new.len(), is_only_change });
    }
    explanation.clauses.splice(..0, redated);
    (explanation.old, explanation.new) = (old, new);
    explanation.subject = compared.single_event(&explanation);
    Some(explanation)
}

/// Explains committed claims that appeared or changed: one change for all of one response. A claim that is missing is not a change,
/// because not every endpoint version shows claims.
pub(super) fn claims(compared: &Comparison<'_>) -> Option<ChangeExplanation> {
    fn amount<S>(tranche: &Tranche<'_, S>) -> Option<f64> {
        tranche.claim.and_then(|claim| claim.amount.copied())
    }
    fn at<S>(tranche: &Tranche<'_, S>) -> Option<i64> {
        tranche.claim.and_then(|claim| claim.timestamp.copied())
    }
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let has_changed = |pair: &TranchePair| {
        let (old, new) = (&old[pair.old], &new[pair.new]);
        let has_new_amount = match (amount(old), amount(new)) {
            (Some(a), Some(b)) => !close(a, b, compared.tolerance),
            (None, Some(_)) => true,
            _ => false,
        };
        has_new_amount || (at(new).is_some() && at(old) != at(new))
    };
    let changed: Vec<TranchePair> = compared.links.pairs.iter().copied().filter(has_changed).collect();
    let first = changed.first()?;
    let mut explanation = compared.explanation(ChangeKind::Committed, &TrancheSet::of_pairs(&changed));
    let change = &mut explanation.change;
    let from = known_sum(changed.iter().filter_map(|pair| amount(&old[pair.old])));
    let to = known_sum(changed.iter().filter_map(|pair| amount(&new[pair.new])));
    change.from = from.map(Fact::Amount);
    change.to = to.map(Fact::Amount);
    change.ratio = ratio_of(from, to);
    change.allocations = changed
        .iter()
        .map(|pair| {
            let (from, to) = (amount(&old[pair.old]), amount(&new[pair.new]));
            AllocationChange {
                name: new[pair.new].name.to_owned(),
                from: from.map(Fact::Amount),
                to: to.map(Fact::Amount),
                ratio: ratio_of(from, to),
                count: 1,
                ..AllocationChange::default()
            }
        })
        .collect();
    let names = distinct(changed.iter().map(|pair| new[pair.new].name));
    let allocations = names.into_iter().map(str::to_owned).collect();
    let tranches = tranche_facts(new, &changed.iter().map(|pair| pair.new).collect::<Vec<_>>());
    let at = at(&new[first.new]).and_then(|at| Timestamp::from_timestamp(at, 0));
    explanation.clauses = vec![ChangeClause::Committed { allocations, from, to, at, tranches }];
    explanation.subject = compared.single_event(&explanation);
    Some(explanation)
}
