//! Amounts: rescaled series, resized events, and added and removed tranches.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::{
    ChangeExplanation, ChangeSubject, Comparison, MAX_EXPLANATIONS, known_sum, record,
    tranche_facts::{tranche_facts, tranches_change},
};
use crate::diff::{
    align::changed_ratio,
    count_of,
    index::{NewRow, NewTranche, OldRow, OldTranche},
    ratio_of,
    timeline::{TranchePair, TrancheSet},
    tolerances::{self, MIN_SERIES, close},
    tranche::TrancheForm,
};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact},
    phrase::changes::ChangeClause,
    supply::Timestamp,
};

/// A removed tranche may have moved beyond the last visible day if that is at most this far ahead of it.
const MAX_POSTPONEMENT: TimeDelta = TimeDelta::days(3 * 366);

/// The outcome of this step.
#[derive(Default)]
pub(super) struct Amounts {
    pub(super) explanations: Vec<ChangeExplanation>,
    /// Linear unlocks whose change of amount is explained together with their new begins and ends.
    pub(super) redated: BTreeSet<TranchePair>,
}

impl Amounts {
    /// Adds an explanation. Its sentence gives the first begin and the last end of its tranches.
    fn add_resized(&mut self, compared: &Comparison<'_>, tranches: &TrancheSet, explanation: ChangeExplanation) {
        let (old, new) = (&compared.timeline.old, &compared.timeline.new);
        let (olds, news) = (tranches.all_old(), tranches.all_new());
        let begins = (olds.iter().map(|i| old[*i].at).min(), news.iter().map(|j| new[*j].at).min());
        let end_of_old = |i: &OldTranche| old[*i].end.unwrap_or(old[*i].at);
        let end_of_new = |j: &NewTranche| new[*j].end.unwrap_or(new[*j].at);
        let ends = (olds.iter().map(end_of_old).max(), news.iter().map(end_of_new).max());
        // A linear unlock that ends earlier because another one of its allocation continues at a new rate, or the other way around.
        let is_continued = |pair: &TranchePair| {
            let (was, is) = (&old[pair.old], &new[pair.new]);
            let by_new = tranches.unpaired_new.iter().any(|j| new[*j].series == is.series && Some(new[*j].at) == is.end);
            let by_old = tranches.unpaired_old.iter().any(|i| old[*i].series == is.series && Some(old[*i].at) == was.end);
            by_new || by_old
        };
        self.redated.extend(tranches.pairs.iter().filter(|pair| {
            let (was, is) = (&old[pair.old], &new[pair.new]);
            let has_begin = was.at == is.at || begins == (Some(was.at), Some(is.at));
            has_begin && (was.end == is.end || ends == (was.end, is.end) || is_continued(pair))
        }));
        self.explanations.push(explanation);
    }
}

/// Explains changed amounts: whole series by one ratio, single allocations, single events; then added and removed tranches.
pub(super) fn explain(compared: &Comparison<'_>, tranches: TrancheSet) -> Amounts {
    let tranches = with_duplicates(compared, tranches);
    let mut found = Amounts::default();
    let mut pairs: Vec<TranchePair> = Vec::new();
    let (rounded, others): (Vec<TranchePair>, Vec<TranchePair>) =
        tranches.pairs.into_iter().partition(|pair| compared.links.rounded.contains(pair));
    let rounded = TrancheSet::of_pairs(&rounded);
    if !rounded.is_empty() {
        found.add_resized(compared, &rounded, resized_series(compared, &rounded));
    }
    let mut by_ratio = by_ratio(compared, others);
    by_ratio.sort_by_key(|(pairs, _)| std::cmp::Reverse(pairs.len()));
    for (alike, ratio) in by_ratio {
        let rows: BTreeSet<OldRow> = alike.iter().map(|pair| compared.rows(*pair).0).collect();
        match ratio {
            Some(ratio) if rows.len() >= 2 && (alike.len() >= MIN_SERIES || compared.is_whole_allocation(&alike)) => {
                found.explanations.push(rescaled(compared, &alike, ratio));
            }
            _ => pairs.extend(alike),
        }
    }
    let (restocked, tranches) = split_restocked(compared, TrancheSet { pairs, ..tranches });
    if !restocked.is_empty() {
        found.add_resized(compared, &restocked, resized_series(compared, &restocked));
    }
    let (events, tranches) = split_events(compared, tranches);
    for (event, tranches) in events {
        match with_different_ends(compared, &tranches) {
            None => found.add_resized(compared, &tranches, resized_event(compared, event, &tranches)),
            Some(apart) => {
                for tranches in apart {
                    found.add_resized(compared, &tranches, resized_series(compared, &tranches));
                }
            }
        }
    }
    let TrancheSet { pairs, unpaired_old, unpaired_new } = tranches;
    let resized = TrancheSet::of_pairs(&pairs);
    if !resized.is_empty() {
        found.add_resized(compared, &resized, resized_series(compared, &resized));
    }
    found.explanations.extend(added(compared, unpaired_new));
    found.explanations.extend(removed(compared, unpaired_old));
    found
}

/// Adds the unchanged tranches that an added or removed one shares its allocation and dates with, as in a schedule that listed one of them
/// twice. The allocation still unlocks on that date, but another amount.
fn with_duplicates(compared: &Comparison<'_>, mut tranches: TrancheSet) -> TrancheSet {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    // Events that wait for proof may be known at a date to which another one moved: those are two events.
    let of_old: BTreeSet<_> =
        tranches.unpaired_old.iter().map(|i| &old[*i]).map(|was| (was.row, was.series, was.form, was.at, was.end)).collect();
    let of_new: BTreeSet<_> =
        tranches.unpaired_new.iter().map(|j| &new[*j]).map(|is| (is.row, is.series, is.form, is.at, is.end)).collect();
    let is_duplicate = |pair: &TranchePair| {
        let (was, is) = (&old[pair.old], &new[pair.new]);
        (was.at, was.end) == (is.at, is.end)
            && (of_old.contains(&(was.row, was.series, was.form, was.at, was.end))
                || of_new.contains(&(is.row, is.series, is.form, is.at, is.end)))
    };
    let known: BTreeSet<TranchePair> = tranches.pairs.iter().copied().collect();
    let is_unchanged = |pair: &TranchePair| changed_ratio(&old[pair.old], &new[pair.new], compared.tolerance).is_none();
    let duplicates =
        compared.links.pairs.iter().copied().filter(|pair| is_duplicate(pair) && is_unchanged(pair) && !known.contains(pair));
    tranches.pairs.extend(duplicates);
    tranches
}

/// Splits off the allocations with at least two of these: resized, added, and removed tranches. The amount of such an allocation
/// changed as a whole. Returns their tranches, and the rest.
fn split_restocked(compared: &Comparison<'_>, mut tranches: TrancheSet) -> (TrancheSet, TrancheSet) {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let resized: BTreeSet<&str> = tranches.pairs.iter().map(|pair| new[pair.new].series).collect();
    let removed: BTreeSet<&str> = tranches.unpaired_old.iter().map(|i| old[*i].series).collect();
    let added: BTreeSet<&str> = tranches.unpaired_new.iter().map(|j| new[*j].series).collect();
    let is_restocked = |name: &str| {
        [resized.contains(name), removed.contains(name), added.contains(name)].iter().filter(|has| **has).count() > 1
    };
    let restocked = TrancheSet {
        pairs: tranches.pairs.extract_if(.., |pair| is_restocked(new[pair.new].series)).collect(),
        unpaired_old: tranches.unpaired_old.extract_if(.., |i| is_restocked(old[*i].series)).collect(),
        unpaired_new: tranches.unpaired_new.extract_if(.., |j| is_restocked(new[*j].series)).collect(),
    };
    // If all of them belong to one event, that event was resized instead.
    let paired = restocked.pairs.iter().map(|pair| compared.rows(*pair)).map(|(o, n)| (Some(o), Some(n)));
    let unpaired_old = restocked.unpaired_old.iter().map(|i| old[*i].row).map(|o| (Some(o), compared.new_of_old[o]));
    let unpaired_new = restocked.unpaired_new.iter().map(|j| new[*j].row).map(|n| (compared.old_of_new[n], Some(n)));
    let events: BTreeSet<(Option<OldRow>, Option<NewRow>)> = paired.chain(unpaired_old).chain(unpaired_new).collect();
    // Next to tranches of other events, it is still the allocation.
    let is_other = |event: (Option<OldRow>, Option<NewRow>)| !events.contains(&event);
    let has_others = tranches.unpaired_old.iter().map(|i| old[*i].row).any(|o| is_other((Some(o), compared.new_of_old[o])))
        || tranches.unpaired_new.iter().map(|j| new[*j].row).any(|n| is_other((compared.old_of_new[n], Some(n))));
    if events.len() == 1 && !has_others && events.iter().all(|(o, n)| o.is_some() && n.is_some()) {
        tranches.append(restocked);
        return (TrancheSet::default(), tranches);
    }
    (restocked, tranches)
}

/// Splits the tranches of an event by allocation, if they are linear unlocks that got different ends: then no sentence about all of them is
/// true. `None` if they belong together.
fn with_different_ends(compared: &Comparison<'_>, tranches: &TrancheSet) -> Option<Vec<TrancheSet>> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let ends: BTreeSet<_> = tranches.pairs.iter().map(|pair| (old[pair.old].end, new[pair.new].end)).collect();
    let are_moved = tranches.pairs.iter().all(|pair| old[pair.old].end != new[pair.new].end);
    let mut by_series: BTreeMap<&str, Vec<TranchePair>> = BTreeMap::new();
    for pair in &tranches.pairs {
        by_series.entry(new[pair.new].series).or_default().push(*pair);
    }
    let is_of_pairs = tranches.unpaired_old.is_empty() && tranches.unpaired_new.is_empty();
    let are_apart = is_of_pairs && are_moved && ends.len() > 1 && (2..=MAX_EXPLANATIONS).contains(&by_series.len());
    are_apart.then(|| by_series.values().map(|pairs| TrancheSet::of_pairs(pairs)).collect())
}

/// An event before and after.
type Event = (OldRow, NewRow);

/// Splits off the tranches of single events, if these are few. Returns them by event, and the rest, sorted by date.
///
/// Tranches that were added to one event, or removed from it, resize that event if other amounts of it changed as well. Otherwise, they
/// were added or removed.
fn split_events(compared: &Comparison<'_>, mut tranches: TrancheSet) -> (Vec<(Event, TrancheSet)>, TrancheSet) {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let event_of_old = |i: &OldTranche| {
        let o = old[*i].row;
        compared.new_of_old[o].filter(|_| !compared.is_removed(old[*i].series)).map(|n| (o, n))
    };
    let event_of_new = |j: &NewTranche| {
        let n = new[*j].row;
        compared.old_of_new[n].filter(|_| !compared.is_new(new[*j].series)).map(|o| (o, n))
    };
    let unpaired_old = tranches.unpaired_old.iter().map(event_of_old);
    let of_unpaired: BTreeSet<Option<Event>> = unpaired_old.chain(tranches.unpaired_new.iter().map(event_of_new)).collect();
    let mut events: BTreeSet<Event> = tranches.pairs.iter().map(|pair| compared.rows(*pair)).collect();
    let are_replaced = !tranches.unpaired_old.is_empty() && !tranches.unpaired_new.is_empty();
    let is_resized = |event: &Event| are_replaced || events.contains(event);
    let are_of_one_event = of_unpaired.len() == 1 && of_unpaired.iter().all(|event| event.as_ref().is_some_and(is_resized));
    if are_of_one_event {
        events.extend(of_unpaired.into_iter().flatten());
    }
    tranches.pairs.sort_by_key(|pair| (old[pair.old].at, new[pair.new].at));
    if events.len() > MAX_EXPLANATIONS {
        return (Vec::new(), tranches);
    }
    let (mut unpaired_old, mut unpaired_new) = (Vec::new(), Vec::new());
    if are_of_one_event {
        unpaired_old = std::mem::take(&mut tranches.unpaired_old);
        unpaired_new = std::mem::take(&mut tranches.unpaired_new);
    }
    let pairs = std::mem::take(&mut tranches.pairs);
    let of_event = |event: Event| TrancheSet {
        pairs: pairs.iter().copied().filter(|pair| compared.rows(*pair) == event).collect(),
        unpaired_old: unpaired_old.iter().copied().filter(|i| old[*i].row == event.0).collect(),
        unpaired_new: unpaired_new.iter().copied().filter(|j| new[*j].row == event.1).collect(),
    };
    (events.into_iter().map(|event| (event, of_event(event))).collect(), tranches)
}

fn rescaled(compared: &Comparison<'_>, pairs: &[TranchePair], ratio: f64) -> ChangeExplanation {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let tranches = TrancheSet::of_pairs(pairs);
    let mut explanation = compared.explanation(ChangeKind::SeriesRescaled, &tranches);
    let change = &mut explanation.change;
    let first = pairs.iter().min_by_key(|pair| old[pair.old].at);
    change.from = first.and_then(|pair| old[pair.old].amount).map(Fact::Amount);
    change.to = first.and_then(|pair| new[pair.new].amount).map(Fact::Amount);
    change.ratio = Some(ratio);
    change.allocations = allocation_changes(compared, &tranches);
    change.amount = amount_of_difference(change);
    let from: f64 = pairs.iter().filter_map(|pair| old[pair.old].amount).sum();
    let to: f64 = pairs.iter().filter_map(|pair| new[pair.new].amount).sum();
    let allocations = change.allocations.iter().map(|allocation| allocation.name.clone()).collect();
    explanation.clauses = vec![ChangeClause::Rescaled { allocations, tranches: pairs.len(), ratio, from, to }];
    explanation
}

fn resized_event(compared: &Comparison<'_>, (o, n): Event, tranches: &TrancheSet) -> ChangeExplanation {
    let timeline = compared.timeline;
    let mut explanation = compared.explanation(ChangeKind::Resized, tranches);
    explanation.old.insert(o);
    explanation.new.insert(n);
    explanation.subject = Some(ChangeSubject::New(n));
    // The total covers only the form that changed: cliffs and linear segments of one event are different things.
    let old_forms = tranches.all_old().into_iter().map(|i| timeline.old[i].form);
    let forms: BTreeSet<TrancheForm> = old_forms.chain(tranches.unpaired_new.iter().map(|j| timeline.new[*j].form)).collect();
    let form = if forms.len() == 1 { forms.first().copied() } else { None };
    let totals = (compared.old_total(o, form), compared.new_total(n, form));
    let change = &mut explanation.change;
    change.old = Some(record(timeline.old_events[o]));
    change.new = Some(record(timeline.new_events[n]));
    resize(compared, &mut explanation, tranches, totals);
    explanation
}

fn resized_series(compared: &Comparison<'_>, tranches: &TrancheSet) -> ChangeExplanation {
    let timeline = compared.timeline;
    let mut explanation = compared.explanation(ChangeKind::Resized, tranches);
    let from: f64 = tranches.all_old().into_iter().filter_map(|i| timeline.old[i].amount).sum();
    let to: f64 = tranches.all_new().into_iter().filter_map(|j| timeline.new[j].amount).sum();
    resize(compared, &mut explanation, tranches, (Some(from), Some(to)));
    explanation.subject = compared.single_event(&explanation);
    explanation
}

/// Fills in the facts of a resize. `whole` holds the totals of the whole event or series, before and after.
fn resize(
    compared: &Comparison<'_>,
    explanation: &mut ChangeExplanation,
    tranches: &TrancheSet,
    whole: (Option<f64>, Option<f64>),
) {
    let (from, to) = explained_totals(compared, tranches, whole);
    let change = &mut explanation.change;
    change.allocations = allocation_changes(compared, tranches);
    change.from = from.map(Fact::Amount);
    change.to = to.map(Fact::Amount);
    change.ratio = ratio_of(from, to);
    change.amount = amount_of_difference(change);
    explanation.clauses = resized_clauses(compared, tranches, (from, to));
}

/// Returns the amounts before and after a change of some tranches: the totals of the whole events, if the other tranches of these events have
/// the same amount as before. Otherwise, the totals of the tranches alone, because the events changed for another reason, too.
pub(super) fn explained_totals(
    compared: &Comparison<'_>,
    tranches: &TrancheSet,
    whole: (Option<f64>, Option<f64>),
) -> (Option<f64>, Option<f64>) {
    let own = own_totals(compared, tranches);
    let (Some(before), Some(after)) = whole else { return own };
    let others = (before - own.0.unwrap_or(0.0), after - own.1.unwrap_or(0.0));
    if (others.0 - others.1).abs() <= tolerances::TOTAL * before.max(after) { whole } else { own }
}

/// Returns the known amounts of some tranches, before and after.
fn own_totals(compared: &Comparison<'_>, tranches: &TrancheSet) -> (Option<f64>, Option<f64>) {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let before = known_sum(tranches.all_old().iter().filter_map(|i| old[*i].amount));
    (before, known_sum(tranches.all_new().iter().filter_map(|j| new[*j].amount)))
}

fn added(compared: &Comparison<'_>, tranches: Vec<NewTranche>) -> Option<ChangeExplanation> {
    let new = &compared.timeline.new;
    let set = TrancheSet { unpaired_new: tranches, ..TrancheSet::default() };
    let tranches = &set.unpaired_new;
    let mut explanation = compared.explanation(ChangeKind::Added, &set);
    explanation.subject = Some(ChangeSubject::New(*explanation.new.first()?));
    let change = &mut explanation.change;
    change.allocations = allocation_changes(compared, &set);
    change.amount = known_sum(tranches.iter().filter_map(|j| new[*j].amount));
    change.to = change.amount.map(Fact::Amount);
    let row = *explanation.new.first()?;
    let before = compared.old_of_new[row].and_then(|o| compared.old_total(o, None));
    let rest = rest_of_event(explanation.new.len(), before, compared.new_total(row, None), change.amount);
    explanation.clauses = vec![ChangeClause::Added { tranches: tranche_facts(new, tranches), rest }];
    Some(explanation)
}

fn removed(compared: &Comparison<'_>, tranches: Vec<OldTranche>) -> Option<ChangeExplanation> {
    let old = &compared.timeline.old;
    let set = TrancheSet { unpaired_old: tranches, ..TrancheSet::default() };
    let tranches = &set.unpaired_old;
    let mut explanation = compared.explanation(ChangeKind::Removed, &set);
    let first = *explanation.old.first()?;
    explanation.subject = (explanation.old.len() == 1).then_some(ChangeSubject::Old(first));
    let change = &mut explanation.change;
    change.allocations = allocation_changes(compared, &set);
    change.amount = known_sum(tranches.iter().filter_map(|i| old[*i].amount));
    change.from = change.amount.map(Fact::Amount);
    // Farther ahead than teams postpone unlocks, nothing hides behind the last visible day.
    let last = tranches.iter().map(|i| old[*i].time()).max();
    let is_near = |day: &Timestamp| last.is_some_and(|last| *day - last <= MAX_POSTPONEMENT);
    let last_visible_day = compared.last_visible_day.filter(is_near);
    let after = compared.new_of_old[first].and_then(|n| compared.new_total(n, None));
    let rest = rest_of_event(explanation.old.len(), after, compared.old_total(first, None), change.amount);
    explanation.clauses = vec![ChangeClause::Removed { tranches: tranche_facts(old, tranches), last_visible_day, rest }];
    Some(explanation)
}

/// Returns the unchanged rest of the one event to which an amount was added, or from which it was removed. `less` and `more` are the totals
/// of the event without and with that amount. `None` if there is no rest, or if it changed as well.
fn rest_of_event(events: usize, less: Option<f64>, more: Option<f64>, amount: Option<f64>) -> Option<f64> {
    let (less, more, amount) = (less?, more?, amount?);
    (events == 1 && less > 0.0 && close(less + amount, more, tolerances::TOTAL)).then_some(less)
}

impl Comparison<'_> {
    /// Returns whether pairs are all tranches of one allocation, before and after.
    fn is_whole_allocation(&self, pairs: &[TranchePair]) -> bool {
        let (old, new) = (&self.timeline.old, &self.timeline.new);
        let Some(name) = pairs.first().map(|pair| new[pair.new].series) else { return false };
        let count = |of: usize| of == pairs.len();
        pairs.iter().all(|pair| new[pair.new].series == name)
            && count(old.iter().filter(|tranche| tranche.series == name).count())
            && count(new.iter().filter(|tranche| tranche.series == name).count())
    }

    /// Returns whether an allocation had no tranche before.
    fn is_new(&self, name: &str) -> bool {
        !self.timeline.old.iter().any(|tranche| tranche.series == name)
    }

    /// Returns whether an allocation has no tranche left.
    fn is_removed(&self, name: &str) -> bool {
        !self.timeline.new.iter().any(|tranche| tranche.series == name)
    }
}

/// Returns the clauses about changed amounts. `total` is the total of the whole event or series, before and after. Allocations that were
/// taken out of an event, or added to it, have clauses of their own next to those whose amounts changed.
fn resized_clauses(compared: &Comparison<'_>, tranches: &TrancheSet, total: (Option<f64>, Option<f64>)) -> Vec<ChangeClause> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let (from, to) = own_totals(compared, tranches);
    let others = total.0.zip(total.1).map(|(before, after)| (before - from.unwrap_or(0.0), after - to.unwrap_or(0.0)));
    let rest =
        others.filter(|(before, after)| close(*before, *after, tolerances::TOTAL) && *after > 1e-9 * total.1.unwrap_or(0.0));

    let before: BTreeSet<&str> = tranches.all_old().into_iter().map(|i| old[i].series).collect();
    let after: BTreeSet<&str> = tranches.all_new().into_iter().map(|j| new[j].series).collect();
    let (taken_out, kept_old) = tranches.unpaired_old.iter().partition(|i| !after.contains(old[**i].series));
    let (added, kept_new) = tranches.unpaired_new.iter().partition(|j| !before.contains(new[**j].series));
    let parts = [
        TrancheSet { pairs: tranches.pairs.clone(), unpaired_old: kept_old, unpaired_new: kept_new },
        TrancheSet { unpaired_old: taken_out, ..TrancheSet::default() },
        TrancheSet { unpaired_new: added, ..TrancheSet::default() },
    ];
    let clause = |part: &TrancheSet| {
        let (from, to) = own_totals(compared, part);
        let tranches = tranches_change(compared, &part.all_old(), &part.all_new());
        ChangeClause::Resized { tranches, ratio: ratio_of(from, to), rest: None }
    };
    let mut clauses: Vec<ChangeClause> = parts.iter().filter(|part| !part.is_empty()).map(clause).collect();
    if let Some(ChangeClause::Resized { rest: of_last, .. }) = clauses.last_mut() {
        *of_last = rest.map(|(_, after)| after);
    }
    clauses
}

/// Returns the sum of the differences of the named allocations, each without its sign.
pub(super) fn amount_of_difference(change: &Change) -> Option<f64> {
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount).unwrap_or(0.0);
    known_sum(change.allocations.iter().map(|allocation| (amount(&allocation.to) - amount(&allocation.from)).abs()))
}

/// Groups pairs by the ratio of their amounts. Pairs without a ratio come last.
fn by_ratio(compared: &Comparison<'_>, pairs: Vec<TranchePair>) -> Vec<(Vec<TranchePair>, Option<f64>)> {
    let timeline = compared.timeline;
    let mut with: Vec<(f64, TranchePair)> = Vec::new();
    let mut without = Vec::new();
    for pair in pairs {
        match changed_ratio(&timeline.old[pair.old], &timeline.new[pair.new], compared.tolerance)
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        {
            Some(ratio) => with.push((ratio, pair)),
            None => without.push(pair),
        }
    }
    with.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut groups: Vec<Vec<(f64, TranchePair)>> = Vec::new();
    for (ratio, pair) in with {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|(first, _)| close(*first, ratio, tolerances::RATIO)) => {
                group.push((ratio, pair))
            }
            _ => groups.push(vec![(ratio, pair)]),
        }
    }
    let mut all: Vec<(Vec<TranchePair>, Option<f64>)> = groups
        .into_iter()
        .map(|group| {
            let median = group.get(group.len() / 2).map(|(ratio, _)| *ratio);
            (group.into_iter().map(|(_, pair)| pair).collect(), median)
        })
        .collect();
    if !without.is_empty() {
        all.push((without, None));
    }
    all
}

/// Returns the amounts of each allocation before and after.
pub(super) fn allocation_changes(compared: &Comparison<'_>, tranches: &TrancheSet) -> Vec<AllocationChange> {
    #[derive(Default)]
    struct Sums {
        from: Option<f64>,
        to: Option<f64>,
        pairs: usize,
        old: usize,
        new: usize,
    }
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let mut by_name: BTreeMap<&str, Sums> = BTreeMap::new();
    let add = |sum: &mut Option<f64>, amount: Option<f64>| {
        if let Some(amount) = amount {
            *sum = Some(sum.unwrap_or(0.0) + amount);
        }
    };
    for pair in &tranches.pairs {
        let amounts = by_name.entry(new[pair.new].name).or_default();
        add(&mut amounts.from, old[pair.old].amount);
        add(&mut amounts.to, new[pair.new].amount);
        amounts.pairs += 1;
    }
    for i in &tranches.unpaired_old {
        let amounts = by_name.entry(old[*i].series).or_default();
        add(&mut amounts.from, old[*i].amount);
        amounts.old += 1;
    }
    for j in &tranches.unpaired_new {
        let amounts = by_name.entry(new[*j].name).or_default();
        add(&mut amounts.to, new[*j].amount);
        amounts.new += 1;
    }
    by_name
        .into_iter()
        .map(|(name, amounts)| AllocationChange {
            name: name.to_owned(),
            from: amounts.from.map(Fact::Amount),
            to: amounts.to.map(Fact::Amount),
            ratio: ratio_of(amounts.from, amounts.to),
            // Tranches that became others count once.
            count: count_of(amounts.pairs + if amounts.old > 0 { amounts.old } else { amounts.new }),
            ..AllocationChange::default()
        })
        .collect()
}
