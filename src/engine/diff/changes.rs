//! Explains what happened to a token's schedule: from linked tranches to as few [`ChangeExplanation`]s as possible.
//!
//! Each step looks at the whole token, returns its explanations, and leaves the remaining tranches to the next step: `names` (and
//! categories), `series` (moved starts and ends), `recipients`, `amounts` (resized, added, and removed tranches), and `forms` (the same
//! total with other timing). `join` merges equal explanations, and `facts` adds claims and all other facts. An explanation holds facts
//! alone; [`model::phrase::changes`] writes the sentences. If [more changes](are_few) are left than a reader follows, the schedule
//! was `rewritten`, and that is the only change.

mod amounts;
mod facts;
mod forms;
mod join;
mod names;
mod recipients;
mod rewritten;
mod schedules;
mod series;
mod tranche_facts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::facts::FactRevision;
use super::{
    count_of,
    index::{List, New, NewRow, NewTranche, Old, OldRow, OldTranche, RowIndex, RowOf, Side},
    link::Links,
    timeline::{Timeline, TranchePair, TrancheSet},
    tolerances::DAY_MS,
    tranche::{TrancheForm, Tranches},
};
use model::{
    change::{Change, ChangeKind},
    phrase::changes::{ChangeClause, ScheduleUnit},
    supply::{Precision, Record, Resource, Timestamp, TokenId},
    wire::UnlockEvent,
};

/// The maximum number of changes that explain a schedule better than "rewritten".
const MAX_EXPLANATIONS: usize = 2;
/// The same maximum if each change is about one event, and no two are about the same: those are independent corrections.
const MAX_SINGLE_EVENTS: usize = 4;
/// The same maximum if no two changes are about the same [aspect](Aspect) of the same allocation: those are independent corrections, too.
const MAX_APART: usize = 3;
/// The maximum ratio of a schedule to the max supply that it is compared with.
const MAX_OF_SUPPLY: f64 = 1.5;
/// The maximum number of allocations and fields listed in one change. Counts include the rest.
const MAX_LISTED: usize = 50;

/// A token's linked timeline, and what is known about its events.
pub(super) struct Comparison<'a> {
    pub(super) token: &'a TokenId,
    pub(super) timeline: &'a Timeline<'a>,
    pub(super) links: &'a Links,
    pub(super) new_of_old: &'a List<RowOf<Old>, Option<NewRow>>,
    pub(super) old_of_new: &'a List<RowOf<New>, Option<OldRow>>,
    pub(super) missing: &'a [OldRow],
    /// Events whose removal is not proven.
    pub(super) unproven: &'a BTreeSet<OldRow>,
    pub(super) tolerance: f64,
    /// The max supply. `None` if unknown.
    pub(super) supply: Option<f64>,
    /// The last visible day. `None` if all days are visible.
    pub(super) last_visible_day: Option<Timestamp>,
    pub(super) now: Timestamp,
}

/// The event that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeSubject {
    Old(OldRow),
    New(NewRow),
}

/// A change with the events that it touches. Its summary is not written yet.
#[derive(Clone, Debug)]
pub(super) struct ChangeExplanation {
    pub(super) change: Change,
    /// The facts of the summary.
    pub(super) clauses: Vec<ChangeClause>,
    /// `None` if the change is about several events.
    pub(super) subject: Option<ChangeSubject>,
    pub(super) old: BTreeSet<OldRow>,
    pub(super) new: BTreeSet<NewRow>,
    /// The tranches that the change is about, before and after.
    pub(super) tranches: (BTreeSet<OldTranche>, BTreeSet<NewTranche>),
}

/// Returns all changes of a token's schedule.
pub(super) fn explain(compared: &Comparison<'_>) -> Vec<ChangeExplanation> {
    let names = names::explain(compared);
    let transfers = recipients::explain_transfers(compared);
    let recipients = recipients::explain(compared);
    let amounts = amounts::explain(compared, recipients.remaining);
    let moves = series::explain_moves(compared, &amounts.redated);

    let mut explanations: Vec<ChangeExplanation> = names.explanation.into_iter().collect();
    explanations.extend(moves.explanations);
    explanations.extend(transfers);
    explanations.extend(recipients.explanation);
    explanations.extend(amounts.explanations);
    let is_explained = |pair: &TranchePair| amounts.redated.contains(pair) || moves.retimed.contains(pair);
    let mut explanations = series::explain_ends(compared, explanations, is_explained);
    explanations.extend(forms::explain(compared, &moves.retimed));

    let joined = join::join(explanations);
    let mut explanations = joined.explanations;
    if compared.is_rewritten(&explanations) {
        explanations = vec![rewritten::rewritten(compared, explanations)];
    } else {
        names::add_former_names(compared, &mut explanations);
    }
    let facts = facts::other_facts(compared, names.facts.into_iter().chain(joined.facts).collect());
    let (mut explanations, separate) = compared.attach_facts(explanations, facts);
    let claims = facts::claims(compared);
    let is_only_change = explanations.is_empty() && claims.is_none();
    explanations.extend(facts::revised(compared, separate, is_only_change));
    explanations.extend(claims);
    for explanation in &mut explanations {
        explanation.change.fields.truncate(MAX_LISTED);
        explanation.change.allocations.truncate(MAX_LISTED);
        schedules::add(compared, explanation);
    }
    explanations
}

/// Returns whether each change is about one event, and no two are about the same.
fn are_independent(explanations: &[ChangeExplanation]) -> bool {
    let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
    explanations.iter().all(|explanation| {
        explanation.old.len() <= 1
            && explanation.new.len() <= 1
            && explanation.old.iter().all(|row| old.insert(*row))
            && explanation.new.iter().all(|row| new.insert(*row))
    })
}

/// The part of an allocation that a change is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Aspect {
    Name,
    Dates,
    Amounts,
}

impl Aspect {
    fn of(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Renamed => Self::Name,
            ChangeKind::Rescheduled | ChangeKind::SeriesShifted => Self::Dates,
            _ => Self::Amounts,
        }
    }
}

/// Returns whether each change names its allocations, and no two say something about the same aspect of the same allocation.
fn are_apart(explanations: &[ChangeExplanation]) -> bool {
    let mut known = BTreeSet::new();
    explanations.iter().all(|ChangeExplanation { change, .. }| {
        let own: BTreeSet<&str> = change.allocations.iter().map(|allocation| allocation.name.as_str()).collect();
        !own.is_empty() && own.into_iter().all(|name| known.insert((Aspect::of(change.kind), name)))
    })
}

/// Returns whether so few changes explain a schedule that a reader follows each.
fn are_few(explanations: &[ChangeExplanation]) -> bool {
    match explanations.len() {
        0..=MAX_EXPLANATIONS => true,
        count => count <= MAX_SINGLE_EVENTS && are_independent(explanations) || count <= MAX_APART && are_apart(explanations),
    }
}

impl Comparison<'_> {
    /// Returns the unit of the token's amounts.
    pub(super) fn unit(&self) -> ScheduleUnit<'_> {
        let Timeline { old_events, new_events, new, .. } = self.timeline;
        let symbol = new_events.iter().chain(old_events.iter()).find_map(|event| event.token_symbol.as_str());
        // After a redenomination, the max supply is that of the former unit until the source publishes another one.
        let total: f64 = new.iter().filter_map(|tranche| tranche.amount).sum();
        let max_supply = self.supply.filter(|supply| total <= supply * MAX_OF_SUPPLY);
        ScheduleUnit { symbol, max_supply }
    }

    /// Returns whether a change waits for removal proof. It is then reported later.
    fn is_waiting(&self, explanation: &ChangeExplanation) -> bool {
        !explanation.old.is_disjoint(self.unproven)
    }

    /// Returns whether so much changed that only the whole schedule explains it.
    fn is_rewritten(&self, explanations: &[ChangeExplanation]) -> bool {
        let (removed, added) = (&self.links.removed, &self.links.added);
        // Changes that wait for proof count too: otherwise one correction would be reported as two.
        let is_replaced = !explanations.is_empty()
            && removed.len() > 1
            && removed.len() * 2 > self.timeline.old.len()
            && added.len() * 2 > self.timeline.new.len();
        !are_few(explanations) || is_replaced
    }

    /// Adds facts to the changes that they belong to. A fact of the whole schedule, such as its source, and a date that is more or less
    /// exact in only some of the events of a change are changes of their own, if there is room for another change. Returns the changes, and
    /// the facts that belong to none of them.
    fn attach_facts(
        &self,
        mut explanations: Vec<ChangeExplanation>,
        facts: Vec<FactRevision>,
    ) -> (Vec<ChangeExplanation>, Vec<FactRevision>) {
        let has_two = explanations.len() >= MAX_EXPLANATIONS;
        let is_full = explanations.len() >= MAX_APART || has_two && !are_apart(&explanations);
        let touches = |explanation: &ChangeExplanation, fact: &FactRevision| {
            !fact.is_of_token
                && !explanation.new.is_disjoint(&fact.new)
                && fact.is_about_allocations_of(self, &explanation.change)
                && (has_two || !fact.is_redated() || explanation.new.is_subset(&fact.new))
        };
        let mut separate = Vec::new();
        for fact in facts {
            // A new category belongs to the change of its allocation.
            let names = |explanation: &ChangeExplanation| fact.is_category_in(&explanation.change);
            let fits = |explanation: &ChangeExplanation| {
                explanation.change.kind == ChangeKind::Rewritten
                    || (!self.is_waiting(explanation) && (is_full || fact.is_of_token && has_two || touches(explanation, &fact)))
            };
            let named = explanations.iter().position(|explanation| fits(explanation) && names(explanation));
            let position = named.or_else(|| explanations.iter().position(fits));
            match position.and_then(|position| explanations.get_mut(position)) {
                Some(explanation) => {
                    if explanation.change.kind != ChangeKind::Rewritten {
                        explanation.clauses.extend(fact.clause(self));
                    }
                    if !explanation.change.fields.contains(&fact.field) {
                        explanation.change.fields.push(fact.field);
                    }
                    explanation.old.extend(fact.old);
                    explanation.new.extend(fact.new);
                }
                None => separate.push(fact),
            }
        }
        (explanations, separate)
    }

    /// Returns a change of these tranches, with their first events before and after.
    fn explanation(&self, kind: ChangeKind, tranches: &TrancheSet) -> ChangeExplanation {
        let old: BTreeSet<OldRow> = tranches.all_old().into_iter().map(|i| self.timeline.old[i].row).collect();
        let new: BTreeSet<NewRow> = tranches.all_new().into_iter().map(|j| self.timeline.new[j].row).collect();
        let mut change = Change::of(kind, Resource::Unlock, self.token);
        change.count = count_of(tranches.len());
        change.old = old.first().map(|row| record(self.timeline.old_events[*row]));
        change.new = new.first().map(|row| record(self.timeline.new_events[*row]));
        let tranches = (tranches.all_old().into_iter().collect(), tranches.all_new().into_iter().collect());
        ChangeExplanation { change, clauses: Vec::new(), subject: None, old, new, tranches }
    }

    /// Returns the event that a change is about, if it is about one event before and after.
    fn single_event(&self, explanation: &ChangeExplanation) -> Option<ChangeSubject> {
        let (o, n) = (*explanation.old.first()?, *explanation.new.first()?);
        let is_one = explanation.old.len() == 1 && explanation.new.len() == 1 && self.new_of_old[o] == Some(n);
        is_one.then_some(ChangeSubject::New(n))
    }

    fn old_total(&self, row: OldRow, form: Option<TrancheForm>) -> Option<f64> {
        event_total(&self.timeline.old, row, form)
    }

    fn new_total(&self, row: NewRow, form: Option<TrancheForm>) -> Option<f64> {
        event_total(&self.timeline.new, row, form)
    }

    /// Returns the events of a pair, before and after.
    fn rows(&self, pair: TranchePair) -> (OldRow, NewRow) {
        (self.timeline.old[pair.old].row, self.timeline.new[pair.new].row)
    }

    fn is_to_be_determined(&self, pair: TranchePair) -> bool {
        self.timeline.old[pair.old].precision() == Precision::ToBeDetermined
            && self.timeline.new[pair.new].precision() == Precision::ToBeDetermined
    }

    /// Returns whether a pair has no date before and after. Dates that only stand for a missing one may still differ.
    fn is_undated(&self, pair: TranchePair) -> bool {
        self.timeline.old[pair.old].dated().is_none() && self.timeline.new[pair.new].dated().is_none()
    }

    /// Returns the shift of a pair, in milliseconds.
    fn shift(&self, pair: TranchePair) -> i64 {
        if self.is_undated(pair) || self.has_new_precision_only(pair) {
            return 0;
        }
        self.timeline.new[pair.new].at - self.timeline.old[pair.old].at
    }

    /// Returns whether the date of a pair is only more or less exact than before: one of its intervals contains the other.
    fn has_new_precision_only(&self, pair: TranchePair) -> bool {
        let (old, new) = (&self.timeline.old[pair.old], &self.timeline.new[pair.new]);
        let intervals = old.interval().zip(new.interval());
        intervals.is_some_and(|(a, b)| a.precision != b.precision && (a.contains(&b) || b.contains(&a)))
    }
}

/// Returns the sum of the known amounts of an event, or `None` if no amount is known.
fn event_total<S: Side>(all: &Tranches<'_, S>, row: RowIndex<S>, form: Option<TrancheForm>) -> Option<f64> {
    let own = all.suffix_from(|tranche| tranche.row < row).iter().take_while(|tranche| tranche.row == row);
    let amounts = own.filter(|tranche| form.is_none_or(|form| form == tranche.form)).filter_map(|tranche| tranche.amount);
    known_sum(amounts)
}

/// Returns the sum, or `None` without amounts.
fn known_sum(amounts: impl Iterator<Item = f64>) -> Option<f64> {
    amounts.fold(None, |sum, amount| Some(sum.unwrap_or(0.0) + amount))
}

fn record(event: &UnlockEvent) -> Record {
    Record::Unlock(Arc::new(event.clone()))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn in_days(ms: i64) -> f64 {
    ms as f64 / DAY_MS as f64
}

/// Returns the most frequent value; of equally frequent ones, the smallest.
fn mode(values: impl Iterator<Item = i64>) -> i64 {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value))).map_or(0, |(value, _)| value)
}

/// Returns each name once, in order of appearance.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(*name)).collect()
}
