//! Links the old and the new tranches of a token, series by series.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use model::supply::Timestamp;

use super::{
    DateWindow,
    align::{Alignment, Series, align},
    conserved_totals::conserve,
    index::{List, New, NewTranche, Old, OldTranche, Side, TrancheIndex},
    timeline::{IndexGroup, Pair, Timeline, TrancheGroup, TranchePair, TrancheSet},
    tolerances::{MIN_SERIES, SCATTER_MS, close_or_none},
    tranche::{Tranche, TrancheForm, Tranches},
};

/// The maximum number of tranches that cross one edge of the visibility window at once.
const MAX_CROSSING: usize = 6;

/// The maximum number of shifts that series suggest to each other.
const MAX_HINTS: usize = 3;

/// The outcome of every tranche.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    pub(super) pairs: Vec<TranchePair>,
    /// Tranches of one allocation that became others with the same sum.
    pub(super) groups: Vec<TrancheGroup>,
    /// Tranches whose tokens went from one allocation to another.
    pub(super) transfers: Vec<TrancheSet>,
    /// The pairs of `pairs` whose allocation was only [rounded](super::rounding).
    pub(super) rounded: BTreeSet<TranchePair>,
    /// Removed tranches, sorted by date.
    pub(super) removed: Vec<OldTranche>,
    /// Added tranches, sorted by date.
    pub(super) added: Vec<NewTranche>,
    pub(super) crossings: Crossings,
}

/// Tranches that moved across an edge of the visibility window with their series, each with its shift in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossings {
    pub(super) left: Vec<(OldTranche, i64)>,
    pub(super) entered: Vec<(NewTranche, i64)>,
}

impl Crossings {
    fn append(&mut self, mut other: Self) {
        self.left.append(&mut other.left);
        self.entered.append(&mut other.entered);
    }
}

/// The days that responses cover. A tranche that moved across an edge of them was neither removed nor added.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisibleDays<'a> {
    /// The days in which old tranches are visible now.
    pub(super) old: &'a DateWindow,
    /// The days in which new tranches were visible before.
    pub(super) new: &'a DateWindow,
}

impl VisibleDays<'_> {
    fn are_unbounded(&self) -> bool {
        *self.old == DateWindow::ALL && *self.new == DateWindow::ALL
    }
}

fn is_visible(window: &DateWindow, at: i64) -> bool {
    window.contains(Timestamp::from_timestamp_millis(at))
}

/// Links the old and the new tranches of a token.
pub(super) fn link(timeline: &Timeline<'_>, visible: &VisibleDays<'_>, tolerance: f64) -> Links {
    let mut crossings = Crossings::default();
    let series: Vec<TrancheGroup> = all_series(timeline)
        .into_iter()
        .map(|series| {
            let (crossed, rest) = detach_crossings(series, timeline, visible, tolerance);
            crossings.append(crossed);
            rest
        })
        .collect();
    // Twice: the shift of a long series helps to read the short ones.
    let mut alignments = align_all(&series, timeline, &[], tolerance);
    let hints = common_shifts(&alignments);
    if !hints.is_empty() {
        alignments = align_all(&series, timeline, &hints, tolerance);
    }
    let links = detach_single_crossings(joined(&series, alignments, crossings, timeline), timeline, visible);
    let mut links = conserve(links, timeline, tolerance);
    links.pairs.sort_unstable();
    links.removed.sort_by_key(|i| (timeline.old[*i].at, *i));
    links.added.sort_by_key(|j| (timeline.new[*j].at, *j));
    links
}

/// Returns the tranches of each allocation and form, sorted by start, end, and amount.
fn all_series(timeline: &Timeline<'_>) -> Vec<TrancheGroup> {
    let mut series: BTreeMap<(&str, TrancheForm), TrancheGroup> = BTreeMap::new();
    for (i, tranche) in timeline.old.indexed() {
        series.entry((tranche.series, tranche.form)).or_default().old.push(i);
    }
    for (j, tranche) in timeline.new.indexed() {
        series.entry((tranche.series, tranche.form)).or_default().new.push(j);
    }
    for group in series.values_mut() {
        sort_by_date(&timeline.old, &mut group.old);
        sort_by_date(&timeline.new, &mut group.new);
    }
    series.into_values().collect()
}

fn sort_by_date<S: Side>(all: &Tranches<'_, S>, indices: &mut [TrancheIndex<S>]) {
    let amount = |i: TrancheIndex<S>| all[i].amount.unwrap_or(f64::NEG_INFINITY);
    indices.sort_by(|a, b| (all[*a].at, all[*a].end).cmp(&(all[*b].at, all[*b].end)).then(amount(*a).total_cmp(&amount(*b))));
}

/// Separates the tranches at both ends of a series that crossed an edge of the visibility window when the whole series moved. Returns
/// them, each with the shift of the nearest tranche that stayed visible, and the rest of the series. If nothing crossed an edge, the
/// rest is the whole series.
///
/// Otherwise the series would seem to have moved the other way by nearly a step, because a different tranche is the first visible one
/// each time.
fn detach_crossings(
    series: TrancheGroup,
    timeline: &Timeline<'_>,
    visible: &VisibleDays<'_>,
    tolerance: f64,
) -> (Crossings, TrancheGroup) {
    let Some((skip_old, skip_new)) = hidden_at_begin(&series, timeline, visible, tolerance) else {
        return (Crossings::default(), series);
    };
    let TrancheGroup { old: mut from, new: mut to } = series;
    let count = (from.len() - skip_old).min(to.len() - skip_new);
    let shift = |i: OldTranche, j: NewTranche| timeline.new[j].at - timeline.old[i].at;
    let first = shift(from[skip_old], to[skip_new]);
    let last = shift(from[skip_old + count - 1], to[skip_new + count - 1]);
    let mut crossings = Crossings::default();
    crossings.left.extend(from.drain(skip_old + count..).map(|i| (i, last)));
    crossings.entered.extend(to.drain(skip_new + count..).map(|j| (j, last)));
    crossings.left.extend(from.drain(..skip_old).map(|i| (i, first)));
    crossings.entered.extend(to.drain(..skip_new).map(|j| (j, first)));
    (crossings, IndexGroup { old: from, new: to })
}

/// Returns how many tranches at the start of the old and of the new series crossed an edge of the visibility window. `None` if the
/// series crossed no edge.
fn hidden_at_begin(
    TrancheGroup { old: from, new: to }: &TrancheGroup,
    timeline: &Timeline<'_>,
    visible: &VisibleDays<'_>,
    tolerance: f64,
) -> Option<(usize, usize)> {
    let (old, new) = (&timeline.old, &timeline.new);
    if visible.are_unbounded() || from.len().min(to.len()) < MIN_SERIES {
        return None;
    }
    // If at least half of the dates stayed, the series did not move. A series that moved by exactly one step has the same dates.
    let dates: HashSet<i64> = from.iter().map(|i| old[*i].at).collect();
    if to.iter().filter(|j| dates.contains(&new[**j].at)).count() * 2 >= to.len() {
        return None;
    }
    let mut best: Option<(i64, usize, usize)> = None;
    for (skip_old, skip_new) in (0..=MAX_CROSSING).map(|k| (k, 0)).chain((1..=MAX_CROSSING).map(|k| (0, k))) {
        let (a, b) = (from.get(skip_old..).unwrap_or_default(), to.get(skip_new..).unwrap_or_default());
        let count = a.len().min(b.len());
        let are_alike = || a.iter().zip(b).all(|(i, j)| close_or_none(old[*i].amount, new[*j].amount, tolerance));
        if count < MIN_SERIES || !are_alike() {
            continue;
        }
        let shifts: Vec<i64> = a.iter().zip(b).map(|(i, j)| new[*j].at - old[*i].at).collect();
        let (Some(least), Some(most)) = (shifts.iter().min(), shifts.iter().max()) else { continue };
        if most - least > SCATTER_MS {
            continue;
        }
        let (first, last) = (shifts[0], shifts[count - 1]);
        let are_hidden = from[..skip_old].iter().all(|i| !is_visible(visible.old, old[*i].at + first))
            && a[count..].iter().all(|i| !is_visible(visible.old, old[*i].at + last))
            && to[..skip_new].iter().all(|j| !is_visible(visible.new, new[*j].at - first))
            && b[count..].iter().all(|j| !is_visible(visible.new, new[*j].at - last));
        let size = least.abs().max(most.abs());
        if are_hidden && best.is_none_or(|(smallest, ..)| size < smallest) {
            best = Some((size, skip_old, skip_new));
        }
    }
    best.map(|(_, skip_old, skip_new)| (skip_old, skip_new))
}

fn align_all(series: &[TrancheGroup], timeline: &Timeline<'_>, hints: &[i64], tolerance: f64) -> Vec<Alignment> {
    let align_one = |group: &TrancheGroup| {
        let old: Series<'_, '_, Old> = group.old.iter().map(|i| &timeline.old[*i]).collect();
        let new: Series<'_, '_, New> = group.new.iter().map(|j| &timeline.new[*j]).collect();
        align(&old, &new, hints, tolerance)
    };
    series.iter().map(align_one).collect()
}

/// Returns the shifts that explain most pairs.
fn common_shifts(alignments: &[Alignment]) -> Vec<i64> {
    let mut votes: BTreeMap<i64, usize> = BTreeMap::new();
    for alignment in alignments.iter().filter(|alignment| alignment.shift != 0) {
        *votes.entry(alignment.shift).or_default() += alignment.shifted;
    }
    let mut votes: Vec<(i64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(shift, pairs)| (std::cmp::Reverse(*pairs), *shift));
    votes.into_iter().take(MAX_HINTS).map(|(shift, _)| shift).collect()
}

/// Joins the alignments of all series. Every tranche that is in none of them and crossed no edge was removed or added.
fn joined(series: &[TrancheGroup], alignments: Vec<Alignment>, crossings: Crossings, timeline: &Timeline<'_>) -> Links {
    let (mut pairs, mut groups) = (Vec::new(), Vec::new());
    for (TrancheGroup { old, new }, alignment) in series.iter().zip(alignments) {
        let (old, new): (List<_, OldTranche>, List<_, NewTranche>) = (old.clone().into(), new.clone().into());
        pairs.extend(alignment.pairs.iter().map(|pair| Pair { old: old[pair.old], new: new[pair.new] }));
        groups.extend(alignment.groups.iter().map(|group| IndexGroup {
            old: group.old.iter().map(|place| old[*place]).collect(),
            new: group.new.iter().map(|place| new[*place]).collect(),
        }));
    }
    let (mut old_linked, mut new_linked) = (List::filled(false, timeline.old.len()), List::filled(false, timeline.new.len()));
    let grouped_old = groups.iter().flat_map(|group| &group.old).chain(crossings.left.iter().map(|(i, _)| i));
    let grouped_new = groups.iter().flat_map(|group| &group.new).chain(crossings.entered.iter().map(|(j, _)| j));
    pairs.iter().map(|pair| &pair.old).chain(grouped_old).for_each(|i| old_linked[*i] = true);
    pairs.iter().map(|pair| &pair.new).chain(grouped_new).for_each(|j| new_linked[*j] = true);
    let removed = timeline.old.indices().filter(|i| !old_linked[*i]).collect();
    let added = timeline.new.indices().filter(|j| !new_linked[*j]).collect();
    Links { pairs, groups, transfers: Vec::new(), rounded: BTreeSet::new(), removed, added, crossings }
}

/// Turns removed and added tranches into crossings if the shift of the nearest tranche of their series moves them across an edge of
/// the visibility window.
fn detach_single_crossings(links: Links, timeline: &Timeline<'_>, visible: &VisibleDays<'_>) -> Links {
    if visible.are_unbounded() {
        return links;
    }
    let moves = links.moves(timeline);
    let mut links = links;
    links.removed.retain(|i| {
        let tranche = &timeline.old[*i];
        let shift = moves.next_to(tranche, |(from, _)| *from).filter(|shift| !is_visible(visible.old, tranche.at + shift));
        links.crossings.left.extend(shift.map(|shift| (*i, shift)));
        shift.is_none()
    });
    links.added.retain(|j| {
        let tranche = &timeline.new[*j];
        let shift = moves.next_to(tranche, |(_, to)| *to).filter(|shift| !is_visible(visible.new, tranche.at - shift));
        links.crossings.entered.extend(shift.map(|shift| (*j, shift)));
        shift.is_none()
    });
    links
}

/// The old and the new dates of the paired tranches of each series, in milliseconds.
pub(super) struct SeriesMoves<'a> {
    moves: HashMap<(&'a str, TrancheForm), Vec<(i64, i64)>>,
}

impl Links {
    pub(super) fn moves<'a>(&self, timeline: &Timeline<'a>) -> SeriesMoves<'a> {
        let mut moves: HashMap<(&str, TrancheForm), Vec<(i64, i64)>> = HashMap::new();
        for pair in &self.pairs {
            let (old, new) = (&timeline.old[pair.old], &timeline.new[pair.new]);
            moves.entry((old.series, old.form)).or_default().push((old.at, new.at));
        }
        SeriesMoves { moves }
    }
}

impl SeriesMoves<'_> {
    /// Returns the shift, in milliseconds, of the paired tranche of the same series that is nearest by date. `None` if that tranche did
    /// not move. `date` selects the old or the new date of a pair.
    fn next_to<S>(&self, tranche: &Tranche<'_, S>, date: fn(&(i64, i64)) -> i64) -> Option<i64> {
        let moves = self.moves.get(&(tranche.series, tranche.form))?;
        let (from, to) = moves.iter().min_by_key(|pair| (date(pair) - tranche.at).abs())?;
        Some(to - from).filter(|shift| *shift != 0)
    }

    /// Returns the shift, in milliseconds, of an event outside the visibility window. `None` unless the series of all its tranches
    /// moved by the same shift.
    pub(super) fn of_hidden(&self, tranches: &Tranches<'_, Old>) -> Option<i64> {
        let mut shifts = tranches.iter().map(|tranche| self.next_to(tranche, |(from, _)| *from));
        let first = shifts.next()??;
        shifts.all(|other| other == Some(first)).then_some(first)
    }
}
