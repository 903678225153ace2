//! Series: tranches that moved by the same shift, and linear segments whose ends moved.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, Months, TimeDelta};

use super::{
    ChangeExplanation, ChangeSubject, Comparison, in_days, known_sum, mode,
    tranche_facts::{date_change, tranche_facts, tranches_change},
};
use crate::diff::{
    align::{changed_ratio, end_moved_apart, is_stretched},
    count_of,
    index::{NewTranche, OldRow, OldTranche},
    timeline::{TranchePair, TrancheSet},
    tolerances::{DAY_MS, MIN_SERIES, MONTHS_MS, SCATTER_MS, SHIFT_MS},
    tranche::TrancheForm,
};
use model::{
    Timestamp,
    change::{AllocationChange, ChangeKind, Fact},
    phrase::changes::{ChangeClause, DateChange},
};

/// The outcome of this step.
#[derive(Default)]
pub(super) struct Moves {
    pub(super) explanations: Vec<ChangeExplanation>,
    /// Pairs of series that moved, but not by one shift: these vest with other timing.
    pub(super) retimed: BTreeSet<TranchePair>,
}

/// Explains dates that moved, grouped by their shift.
///
/// A linear unlock that begins at another time, but ends as before, did not move with others. Only if all of its event moved, or others of
/// its allocation moved by the same shift, one change reports both. Pairs in `explained` have an explanation that gives
/// their dates.
pub(super) fn explain_moves(compared: &Comparison<'_>, explained: &BTreeSet<TranchePair>) -> Moves {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let is_moved =
        |pair: &TranchePair| compared.shift(*pair) != 0 || old[pair.old].dated().is_some() != new[pair.new].dated().is_some();
    let is_explained = |pair: &TranchePair| {
        explained.contains(pair) && (compared.is_start(*pair) || is_stretched(&old[pair.old], &new[pair.new]))
    };
    let moved = compared.links.pairs.iter().copied().filter(|pair| is_moved(pair) && !is_explained(pair));
    let mut moves = Moves::default();
    let (mut moved_dates, mut starts, mut first_dates, mut last_dates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pair in moved {
        match (old[pair.old].dated(), new[pair.new].dated()) {
            (Some(_), Some(_)) if compared.is_start(pair) => starts.push(pair),
            (Some(_), Some(_)) => moved_dates.push(pair),
            (None, _) => first_dates.push(pair),
            (Some(_), None) => last_dates.push(pair),
        }
    }
    let shift = |pair: TranchePair| compared.shift(pair);
    for mut alike in by_shift(compared, &moved_dates, shift) {
        let rows: BTreeSet<OldRow> = alike.pairs.iter().map(|pair| old[pair.old].row).collect();
        let names: BTreeSet<&str> = alike.pairs.iter().map(|pair| new[pair.new].series).collect();
        let moves_with = |pair: &mut TranchePair| {
            let is_near = alike.pairs.iter().any(|other| is_same_shift(shift(*other), shift(*pair)));
            is_near && (rows.contains(&old[pair.old].row) || names.contains(new[pair.new].series))
        };
        let of_group: Vec<TranchePair> = starts.extract_if(.., moves_with).collect();
        alike.pairs.extend(of_group);
        moves = explain_alike(compared, alike, moves);
    }
    for alike in by_shift(compared, &starts, shift) {
        moves = explain_alike(compared, alike, moves);
    }
    // To and from a missing date, there is no shift. All tranches that got a date are one change, and so are all that lost theirs.
    for pairs in [first_dates, last_dates].into_iter().filter(|pairs| !pairs.is_empty()) {
        moves = explain_alike(compared, AlikeMoves { pairs, is_one_shift: true }, moves);
    }
    moves
}

fn explain_alike(compared: &Comparison<'_>, alike: AlikeMoves, mut moves: Moves) -> Moves {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let AlikeMoves { mut pairs, is_one_shift } = alike;
    pairs.sort_by_key(|pair| (old[pair.old].at, new[pair.new].at, pair.old));
    let rows: BTreeSet<OldRow> = pairs.iter().map(|pair| compared.rows(*pair).0).collect();
    let is_series = pairs.len() >= MIN_SERIES && rows.len() >= 2;
    let whole = pairs.iter().filter(|pair| !compared.is_start(**pair)).count();
    if is_series && is_one_shift && whole >= MIN_SERIES {
        moves.explanations.push(moved_change(compared, ChangeKind::SeriesShifted, &pairs));
        return moves;
    }
    if is_series {
        // No shift explains it. All other timing changes of these allocations belong to it.
        let names: BTreeSet<&str> = pairs.iter().map(|pair| new[pair.new].series).collect();
        let is_retimed = |pair: &TranchePair| {
            let (old, new) = (&old[pair.old], &new[pair.new]);
            names.contains(new.series) && (old.at, old.end) != (new.at, new.end)
        };
        moves.retimed.extend(compared.links.pairs.iter().copied().filter(is_retimed));
        return moves;
    }
    pairs.retain(|pair| {
        let is_retimed = is_stretched(&old[pair.old], &new[pair.new]) && !compared.is_resized(*pair);
        !is_retimed || !moves.retimed.insert(*pair)
    });
    if is_one_shift && rows.len() > 1 {
        moves.explanations.push(moved_change(compared, ChangeKind::Rescheduled, &pairs));
        return moves;
    }
    // The move of one event is one change, even if its tranches arrive in several.
    let mut events: BTreeMap<OldRow, Vec<TranchePair>> = BTreeMap::new();
    for pair in pairs {
        events.entry(old[pair.old].row).or_default().push(pair);
    }
    for (o, pairs) in events {
        let arrived: BTreeSet<_> = pairs.iter().map(|pair| new[pair.new].row).collect();
        let Some(n) = compared.new_of_old[o].filter(|n| arrived.contains(n)).or(arrived.first().copied()) else {
            continue;
        };
        let explanation = moved_change(compared, ChangeKind::Rescheduled, &pairs);
        moves.explanations.push(ChangeExplanation { subject: Some(ChangeSubject::New(n)), ..explanation });
    }
    moves
}

fn moved_change(compared: &Comparison<'_>, kind: ChangeKind, pairs: &[TranchePair]) -> ChangeExplanation {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let mut explanation = compared.explanation(kind, &TrancheSet::of_pairs(pairs));
    let Some(first) = pairs.first() else { return explanation };
    let is_of_several = explanation.old.len() > 1 || explanation.new.len() > 1 || kind == ChangeKind::SeriesShifted;
    let change = &mut explanation.change;
    change.from = old[first.old].dated().map(Fact::Time);
    change.to = new[first.new].dated().map(Fact::Time);
    // From or to an undated tranche, there is no number of days.
    let are_dated = pairs.iter().all(|pair| old[pair.old].dated().is_some() && new[pair.new].dated().is_some());
    let days = |ms: i64| are_dated.then(|| in_days(ms));
    let shifts = || pairs.iter().map(|pair| compared.shift(*pair));
    let (least, most) = (shifts().min().unwrap_or(0), shifts().max().unwrap_or(0));
    change.shift_days = days(mode(shifts()));
    let mut by_name: BTreeMap<&str, Vec<TranchePair>> = BTreeMap::new();
    for pair in pairs {
        by_name.entry(new[pair.new].name).or_default().push(*pair);
    }
    change.allocations = by_name
        .iter()
        .filter_map(|(name, pairs)| {
            let first = pairs.first()?;
            Some(AllocationChange {
                name: (*name).to_owned(),
                from: old[first.old].dated().map(Fact::Time),
                to: new[first.new].dated().map(Fact::Time),
                shift_days: days(mode(pairs.iter().map(|pair| compared.shift(*pair)))),
                count: count_of(pairs.len()),
                ..AllocationChange::default()
            })
        })
        .collect();
    if is_of_several {
        // The end of a linear segment moves by about the same shift as its start.
        let ends = pairs
            .iter()
            .map(|pair| (&old[pair.old], &new[pair.new]))
            .filter(|(old, new)| !end_moved_apart(old, new) && old.end != new.end)
            .filter_map(|(old, new)| Some(new.end? - old.end?));
        let (least, most) = ends.fold((least, most), |(least, most), shift| (least.min(shift), most.max(shift)));
        change.shift_days_min = days(least);
        change.shift_days_max = days(most);
    }
    change.amount = known_sum(pairs.iter().filter_map(|pair| new[pair.new].amount));
    let (starts, whole): (Vec<TranchePair>, Vec<TranchePair>) = pairs.iter().copied().partition(|pair| compared.is_start(*pair));
    let clause = whole.first().map(|first| moved_clause(compared, kind, (*first, &whole), days(least).zip(days(most))));
    explanation.clauses = clause.into_iter().chain(starts_moved(compared, &starts)).collect();
    explanation
}

/// Returns a clause for each pair of a former and a new begin.
fn starts_moved(compared: &Comparison<'_>, pairs: &[TranchePair]) -> Vec<ChangeClause> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let mut by_begins: BTreeMap<(Timestamp, Timestamp), (Vec<OldTranche>, Vec<NewTranche>)> = BTreeMap::new();
    for pair in pairs {
        let (olds, news) = by_begins.entry((old[pair.old].time(), new[pair.new].time())).or_default();
        olds.push(pair.old);
        news.push(pair.new);
    }
    let clause = |((from, to), (olds, news)): ((Timestamp, Timestamp), (Vec<OldTranche>, Vec<NewTranche>))| {
        let days = in_days((to - from).num_milliseconds());
        ChangeClause::StartMoved { tranches: tranches_change(compared, &olds, &news), from, to, shift_days: (days, days) }
    };
    by_begins.into_iter().map(clause).collect()
}

/// Explains ends of linear segments that moved by another shift than their starts. Skips pairs for which `is_explained` returns
/// `true`, because other changes explain their ends.
pub(super) fn explain_ends(
    compared: &Comparison<'_>,
    mut explanations: Vec<ChangeExplanation>,
    is_explained: impl Fn(&TranchePair) -> bool,
) -> Vec<ChangeExplanation> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let end_shift = |pair: TranchePair| {
        let (old, new) = (&old[pair.old], &new[pair.new]);
        let shift = new.end? - old.end?;
        let is_open = end_moved_apart(old, new) && !compared.is_to_be_determined(pair) && !is_explained(&pair);
        is_open.then_some(shift)
    };
    let moved: Vec<TranchePair> = compared.links.pairs.iter().copied().filter(|pair| end_shift(*pair).is_some()).collect();
    for AlikeMoves { pairs, .. } in by_shift(compared, &moved, |pair| end_shift(pair).unwrap_or(0)) {
        let Some(first) = pairs.first() else { continue };
        let (first_old, first_new) = (&old[first.old], &new[first.new]);
        let (Some(from), Some(to)) = (first_old.end_time(), first_new.end_time()) else { continue };
        let shifts = || pairs.iter().filter_map(|pair| end_shift(*pair));
        let mut by_name: BTreeMap<&str, AllocationChange> = BTreeMap::new();
        for pair in &pairs {
            let (old, new) = (&old[pair.old], &new[pair.new]);
            let allocation = by_name.entry(new.name).or_insert_with(|| AllocationChange {
                name: new.name.to_owned(),
                from: old.end_time().map(Fact::Time),
                to: new.end_time().map(Fact::Time),
                shift_days: end_shift(*pair).map(in_days),
                ..AllocationChange::default()
            });
            allocation.count += 1;
        }
        let mut explanation = compared.explanation(ChangeKind::Rescheduled, &TrancheSet::of_pairs(&pairs));
        // If the series moved too, the ends belong to that move: a segment ends where the next one begins.
        let is_move_of_series = |explanation: &&mut ChangeExplanation| {
            let change = &explanation.change;
            matches!(change.kind, ChangeKind::Rescheduled | ChangeKind::SeriesShifted)
                && by_name.keys().all(|name| change.allocations.iter().any(|allocation| allocation.name == *name))
        };
        if let Some(series) = explanations.iter_mut().find(is_move_of_series) {
            let dates = DateChange { from: (Some(from), first_old.precision()), to: (Some(to), first_new.precision()) };
            series.clauses.push(ChangeClause::SomeEndsMoved { segments: pairs.len(), dates });
            series.old.extend(explanation.old);
            series.new.extend(explanation.new);
            series.tranches.0.extend(explanation.tranches.0);
            series.tranches.1.extend(explanation.tranches.1);
            continue;
        }
        let change = &mut explanation.change;
        change.from = Some(Fact::Time(from));
        change.to = Some(Fact::Time(to));
        let common = in_days(mode(shifts()));
        change.shift_days = Some(common);
        if pairs.len() > 1 {
            change.shift_days_min = shifts().min().map(in_days);
            change.shift_days_max = shifts().max().map(in_days);
        }
        let news: Vec<NewTranche> = pairs.iter().map(|pair| pair.new).collect();
        change.amount = known_sum(news.iter().filter_map(|j| new[*j].amount));
        explanation.clauses = ends_moved(compared, &pairs);
        change.allocations = by_name.into_values().collect();
        explanation.subject = compared.single_event(&explanation);
        explanations.push(explanation);
    }
    explanations
}

/// Returns a clause for each pair of a former and a new end.
fn ends_moved(compared: &Comparison<'_>, pairs: &[TranchePair]) -> Vec<ChangeClause> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let mut by_ends: BTreeMap<(Timestamp, Timestamp), (Vec<OldTranche>, Vec<NewTranche>)> = BTreeMap::new();
    for pair in pairs {
        if let (Some(from), Some(to)) = (old[pair.old].end_time(), new[pair.new].end_time()) {
            let (olds, news) = by_ends.entry((from, to)).or_default();
            olds.push(pair.old);
            news.push(pair.new);
        }
    }
    let clause = |((from, to), (olds, news)): ((Timestamp, Timestamp), (Vec<OldTranche>, Vec<NewTranche>))| {
        let tranches = tranches_change(compared, &olds, &news);
        ChangeClause::EndMoved { tranches, from, to, shift_days: in_days((to - from).num_milliseconds()) }
    };
    by_ends.into_iter().map(clause).collect()
}

impl Comparison<'_> {
    /// Returns whether a linear unlock has another begin and the same end.
    fn is_start(&self, pair: TranchePair) -> bool {
        let (old, new) = (&self.timeline.old[pair.old], &self.timeline.new[pair.new]);
        new.form == TrancheForm::Linear
            && old.end == new.end
            && old.at != new.at
            && old.dated().is_some()
            && new.dated().is_some()
    }

    /// Returns whether the amount of a pair changed, other than by a transfer to another allocation.
    pub(super) fn is_resized(&self, pair: TranchePair) -> bool {
        changed_ratio(&self.timeline.old[pair.old], &self.timeline.new[pair.new], self.tolerance).is_some()
            && !self.links.transfers.iter().any(|transfer| transfer.pairs.contains(&pair))
    }
}

/// Returns the facts of a move. `first` is the first of `pairs`.
fn moved_clause(
    compared: &Comparison<'_>,
    kind: ChangeKind,
    (first, pairs): (TranchePair, &[TranchePair]),
    shift_days: Option<(f64, f64)>,
) -> ChangeClause {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let news: Vec<NewTranche> = pairs.iter().map(|pair| pair.new).collect();
    let rows: BTreeSet<OldRow> = pairs.iter().map(|pair| old[pair.old].row).collect();
    if kind == ChangeKind::SeriesShifted || rows.len() > 1 {
        let is_coming = |pair: &&TranchePair| old[pair.old].time().max(new[pair.new].time()) > compared.now;
        let next = pairs.iter().find(is_coming).copied();
        let example = next.unwrap_or(first);
        return ChangeClause::SeriesMoved {
            tranches: tranche_facts(new, &news),
            is_whole_schedule: pairs.len() == old.len() && pairs.len() == new.len(),
            shift_days,
            months: whole_months(compared, pairs),
            example: date_change(&old[example.old], &new[example.new]),
            is_next: next.is_some(),
        };
    }
    let dates = date_change(&old[first.old], &new[first.new]);
    ChangeClause::EventMoved { tranches: tranche_facts(new, &news), dates, shift_days }
}

/// Returns the shift in calendar months, if all dates moved by the same whole number of months. The last day of a month stays the last day.
fn whole_months(compared: &Comparison<'_>, pairs: &[TranchePair]) -> Option<i32> {
    let (old, new) = (&compared.timeline.old, &compared.timeline.new);
    let dates = |pair: &TranchePair| Some((old[pair.old].dated()?, new[pair.new].dated()?));
    let in_months = |at: Timestamp| at.year() * 12 + at.month() as i32;
    let (first_from, first_to) = dates(pairs.first()?)?;
    let months = in_months(first_to) - in_months(first_from);
    let count = Months::new(months.unsigned_abs());
    let is_moved = |pair: &TranchePair| {
        dates(pair).is_some_and(|(from, to)| {
            let moved = if months < 0 { from.checked_sub_months(count) } else { from.checked_add_months(count) };
            let is_last_day = |at: Timestamp| (at + TimeDelta::days(1)).month() != at.month();
            let are_last_days = is_last_day(from) && is_last_day(to) && in_months(to) - in_months(from) == months;
            moved == Some(to) || are_last_days && from.time() == to.time()
        })
    };
    (months != 0 && pairs.iter().all(is_moved)).then_some(months)
}

/// Pairs that are explained as one move.
struct AlikeMoves {
    pairs: Vec<TranchePair>,
    /// Whether one shift explains all pairs. If not, they are a series in which each tranche has a different shift.
    is_one_shift: bool,
}

/// Groups pairs by their shift. A series stays in one group if its shifts scatter no more than the lengths of months do. Series with
/// nearly equal shifts share a group.
fn by_shift(compared: &Comparison<'_>, pairs: &[TranchePair], shift: impl Fn(TranchePair) -> i64) -> Vec<AlikeMoves> {
    let mut by_series: BTreeMap<(&str, TrancheForm), Vec<TranchePair>> = BTreeMap::new();
    for pair in pairs {
        let tranche = &compared.timeline.new[pair.new];
        by_series.entry((tranche.series, tranche.form)).or_default().push(*pair);
    }
    let (mut blocks, mut scattered): (Vec<(i64, Vec<TranchePair>)>, Vec<AlikeMoves>) = (Vec::new(), Vec::new());
    for mut pairs in by_series.into_values() {
        pairs.sort_by_key(|pair| shift(*pair));
        let runs = runs_of_one_shift(pairs, &shift);
        if runs.len() > 2 {
            scattered.push(AlikeMoves { pairs: runs.into_iter().flatten().collect(), is_one_shift: false });
        } else {
            blocks.extend(runs.into_iter().map(|run| (mode(run.iter().map(|pair| shift(*pair))), run)));
        }
    }
    blocks.sort_by_key(|(at, _)| *at);
    let mut merged: Vec<(i64, Vec<TranchePair>)> = Vec::new();
    for (at, run) in blocks {
        match merged.last_mut() {
            Some((first, pairs)) if is_same_shift(*first, at) => pairs.extend(run),
            _ => merged.push((at, run)),
        }
    }
    merged.into_iter().map(|(_, pairs)| AlikeMoves { pairs, is_one_shift: true }).chain(scattered).collect()
}

/// Returns whether two shifts are equal, apart from daylight saving time and the lengths of months.
fn is_same_shift(one: i64, other: i64) -> bool {
    let difference = (other - one).abs();
    difference <= SHIFT_MS || (difference <= SCATTER_MS && one.abs().min(other.abs()) >= MONTHS_MS)
}

/// Cuts pairs, sorted by their shift, into runs of nearly equal shifts.
fn runs_of_one_shift(pairs: Vec<TranchePair>, shift: impl Fn(TranchePair) -> i64) -> Vec<Vec<TranchePair>> {
    let mut runs: Vec<Vec<TranchePair>> = Vec::new();
    for pair in pairs {
        let at = shift(pair);
        let is_alike = |run: &Vec<TranchePair>| {
            run.first().map(|first| shift(*first)).is_some_and(|from| {
                from.signum() == at.signum()
                    && (at - from <= SHIFT_MS || (at - from <= SCATTER_MS && from.abs().max(at.abs()) >= DAY_MS))
            })
        };
        match runs.last_mut().filter(|run| is_alike(run)) {
            Some(run) => run.push(pair),
            None => runs.push(vec![pair]),
        }
    }
    runs
}
