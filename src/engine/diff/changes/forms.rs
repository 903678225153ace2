//! Other timing of the same total: tranches that were cut, joined, extended, brought forward, or changed between cliff and linear.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChangeExplanation, ChangeSubject, Comparison,
    amounts::{allocation_changes, amount_of_difference},
    in_days, known_sum,
    rewritten::{allocation_schedule, brief},
    tranche_facts::tranches_change,
};
use crate::diff::{
    count_of,
    index::{NewTranche, OldTranche},
    ratio_of,
    timeline::{TrancheGroup, TranchePair, TrancheSet},
    tolerances::close,
    tranche::TrancheForm,
};
use model::{
    Timestamp,
    change::{ChangeKind, Fact},
    phrase::changes::{ChangeClause, MAX_ROUNDING},
};

/// The maximum number of cliffs in a split or a merge. More are a restructured schedule.
const MAX_CUT: usize = 4;

/// The maximum number of clauses about allocations with other dates.
const MAX_RESTRUCTURED: usize = 4;

/// Explains groups of tranches that keep their sum, and series that vest with other timing.
pub(super) fn explain(compared: &Comparison<'_>, retimed: &BTreeSet<TranchePair>) -> Vec<ChangeExplanation> {
    let mut by_kind: BTreeMap<ChangeKind, Vec<TrancheGroup>> = BTreeMap::new();
    let series = |group: &TrancheGroup| group.old.first().map(|i| compared.timeline.old[*i].series);
    for group in &compared.links.groups {
        let of_series = compared.links.groups.iter().filter(|other| series(other) == series(group));
        let kind = match of_series.count() {
            1 => kind_of(compared, group),
            // One cliff that was cut is a split; several of one allocation are a restructured schedule.
            _ => ChangeKind::Restructured,
        };
        by_kind.entry(kind).or_default().push(group.clone());
    }
    if !retimed.is_empty() {
        let (old, new) = retimed.iter().map(|pair| (pair.old, pair.new)).unzip();
        by_kind.entry(ChangeKind::Restructured).or_default().push(TrancheGroup { old, new });
    }
    by_kind.into_iter().map(|(kind, groups)| regrouped(compared, kind, &groups)).collect()
}

/// Returns a clause for each group of allocations whose schedules begin and end alike, before and after. One clause for all, if there are
/// too many to read.
fn restructured(compared: &Comparison<'_>, set: &TrancheSet) -> Vec<ChangeClause> {
    type Span = (Option<Timestamp>, Option<Timestamp>);
    let timeline = compared.timeline;
    let (old, new) = (&set.unpaired_old, &set.unpaired_new);
    let mut by_series: BTreeMap<&str, (Vec<OldTranche>, Vec<NewTranche>)> = BTreeMap::new();
    for i in old {
        by_series.entry(timeline.old[*i].series).or_default().0.push(*i);
    }
    for j in new {
        by_series.entry(timeline.new[*j].series).or_default().1.push(*j);
    }
    let mut by_span: BTreeMap<(Span, Span), (Vec<OldTranche>, Vec<NewTranche>)> = BTreeMap::new();
    for (olds, news) in by_series.into_values() {
        let before = allocation_schedule(&olds.iter().map(|i| &timeline.old[*i]).collect::<Vec<_>>());
        let after = allocation_schedule(&news.iter().map(|j| &timeline.new[*j]).collect::<Vec<_>>());
        let group = by_span.entry(((before.begin, before.end), (after.begin, after.end))).or_default();
        group.0.extend(olds);
        group.1.extend(news);
    }
    let is_whole = |(olds, news): &(Vec<OldTranche>, Vec<NewTranche>)| !olds.is_empty() && !news.is_empty();
    if by_span.len() > MAX_RESTRUCTURED || !by_span.values().all(is_whole) {
        return vec![ChangeClause::Restructured(tranches_change(compared, old, new))];
    }
    by_span.into_values().map(|(olds, news)| ChangeClause::Restructured(tranches_change(compared, &olds, &news))).collect()
}

fn regrouped(compared: &Comparison<'_>, kind: ChangeKind, groups: &[TrancheGroup]) -> ChangeExplanation {
    let timeline = compared.timeline;
    let set = TrancheSet::from(TrancheGroup {
        old: groups.iter().flat_map(|group| group.old.iter().copied()).collect(),
        new: groups.iter().flat_map(|group| group.new.iter().copied()).collect(),
    });
    let (old, new) = (&set.unpaired_old, &set.unpaired_new);
    let mut explanation = compared.explanation(kind, &set);
    let change = &mut explanation.change;
    change.count = count_of(if kind == ChangeKind::Split { new.len() } else { old.len() });
    change.allocations = allocation_changes(compared, &set);
    let (before, after) = (brief(&timeline.old, old, compared.now), brief(&timeline.new, new, compared.now));
    change.amount = known_sum(new.iter().filter_map(|j| timeline.new[*j].amount));
    if kind == ChangeKind::Restructured {
        // This change is about timing alone. A change of the amount is reported separately.
        for allocation in &mut change.allocations {
            (allocation.from, allocation.ratio) = (allocation.to.clone(), None);
        }
        change.from = before.end.map(Fact::Time);
        change.to = after.end.map(Fact::Time);
        let shift = before.end.zip(after.end).map(|(from, to)| in_days((to - from).num_milliseconds()));
        change.shift_days = shift.filter(|days| *days != 0.0);
        explanation.clauses = restructured(compared, &set);
    } else {
        change.from = Some(Fact::Amount(before.total));
        change.to = Some(Fact::Amount(after.total));
        change.ratio = ratio_of(Some(before.total), Some(after.total));
        if kind == ChangeKind::Resized {
            change.amount = amount_of_difference(change);
        }
        explanation.clauses = match kind {
            ChangeKind::Resized => restructured(compared, &set),
            _ => vec![ChangeClause::SplitOrMerged(tranches_change(compared, old, new))],
        };
    }
    change.before = Some(before);
    change.after = Some(after);
    if let [_] = groups {
        // The event that was cut, or that others joined, continues.
        let continuing = |row| compared.new_of_old[row].filter(|n| explanation.new.contains(n));
        explanation.subject = explanation.old.iter().find_map(|row| continuing(*row)).map(ChangeSubject::New);
    }
    explanation
}

fn kind_of(compared: &Comparison<'_>, TrancheGroup { old, new }: &TrancheGroup) -> ChangeKind {
    let timeline = compared.timeline;
    let old_tranches = || old.iter().map(|i| &timeline.old[*i]);
    let new_tranches = || new.iter().map(|j| &timeline.new[*j]);
    let are_cliffs = old_tranches().map(|t| t.form).chain(new_tranches().map(|t| t.form)).all(|form| form == TrancheForm::Cliff);
    let old_dates: BTreeSet<i64> = old_tranches().map(|tranche| tranche.at).collect();
    let new_dates: BTreeSet<i64> = new_tranches().map(|tranche| tranche.at).collect();
    let before: f64 = old_tranches().filter_map(|tranche| tranche.amount).sum();
    let after: f64 = new_tranches().filter_map(|tranche| tranche.amount).sum();
    match (old.len(), new.len()) {
        _ if !close(before, after, MAX_ROUNDING.max(compared.tolerance)) => ChangeKind::Resized,
        _ if !are_cliffs => ChangeKind::Restructured,
        (1, 2..=MAX_CUT) if new_dates.len() == new.len() => ChangeKind::Split,
        (2..=MAX_CUT, 1) if old_dates.len() == old.len() => ChangeKind::Merged,
        _ => ChangeKind::Restructured,
    }
}
