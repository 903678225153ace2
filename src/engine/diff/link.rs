//! Links old and new tranches: series by series, under the names that allocations have now.

use std::collections::{BTreeMap, HashMap, HashSet};

use model::supply::Timestamp;

use super::{
    DateWindow,
    align::{Alignment, TrancheGroup, TranchePair, align},
    close_or_none,
    conserve::Transfer,
    rename::find_renames,
    tranche::{Tranche, TrancheForm},
};

/// A series is at least so long; of fewer tranches the border says nothing.
const SERIES_AT_LEAST: usize = 3;
/// Tranches that cross one border with their series at once.
const MAX_CROSSING: usize = 6;
/// By how much the tranches of a series that moved by months differ in days.
const SCATTER_MS: i64 = 4 * 86_400_000;

/// What became of which tranche: indices into the slices of old and new tranches.
#[derive(Debug, Default)]
pub(super) struct TrancheLinks {
    /// The same tranche before and after.
    pub(super) pairs: Vec<TranchePair>,
    /// Tranches of one allocation that became others of the same sum: cut, joined, of another form, over another time.
    pub(super) groups: Vec<TrancheGroup>,
    /// What went from one allocation to another.
    pub(super) transfers: Vec<Transfer>,
    /// Allocations that have another name now: old name, new name.
    pub(super) renames: Vec<(String, String)>,
    /// Gone.
    pub(super) gone: Vec<usize>,
    /// New.
    pub(super) come: Vec<usize>,
    /// Old ones that moved out of sight with their series, and by how much, milliseconds.
    pub(super) crossed: Vec<(usize, i64)>,
    /// New ones that moved into sight with their series, and by how much.
    pub(super) entered: Vec<(usize, i64)>,
}

impl TrancheLinks {
    /// Takes the ends off a series that moved as a whole, where they moved out of sight and into it. Else the series would seem to
    /// have moved the other way, by nearly a step, since behind borders the first that is seen is another one each time.
    fn cross_with_series(
        &mut self,
        old: &[Tranche<'_>],
        new: &[Tranche<'_>],
        (from, to): (&mut Vec<usize>, &mut Vec<usize>),
        borders: &Borders<'_>,
        tolerance: f64,
    ) {
        if borders.are_open() || from.len().min(to.len()) < SERIES_AT_LEAST {
            return;
        }
        let is_alike = |i: usize, j: usize| close_or_none(old[i].amount, new[j].amount, tolerance);
        // Most of it stayed: what is at its ends is no matter of a shift. A series that moves by just a step looks like this as well.
        let dates: HashSet<i64> = from.iter().map(|i| old[*i].at).collect();
        if to.iter().filter(|j| dates.contains(&new[**j].at)).count() * 2 >= to.len() {
            return;
        }
        let mut best: Option<(i64, usize, usize)> = None;
        for (skip_old, skip_new) in (0..=MAX_CROSSING).map(|k| (k, 0)).chain((1..=MAX_CROSSING).map(|k| (0, k))) {
            let (a, b) = (from.get(skip_old..).unwrap_or_default(), to.get(skip_new..).unwrap_or_default());
            let count = a.len().min(b.len());
            if count < SERIES_AT_LEAST || !a.iter().zip(b).all(|(i, j)| is_alike(*i, *j)) {
                continue;
            }
            let moves = || a.iter().zip(b).map(|(i, j)| new[*j].at - old[*i].at);
            let (least, most) = (moves().min().unwrap_or(0), moves().max().unwrap_or(0));
            // Steps of a month are of unequal length.
            if most - least > SCATTER_MS {
                continue;
            }
            let (before, after) = (moves().next().unwrap_or(0), moves().next_back().unwrap_or(0));
            let are_out = from[..skip_old].iter().all(|i| !is_seen(borders.old, old[*i].at + before))
                && a[count..].iter().all(|i| !is_seen(borders.old, old[*i].at + after))
                && to[..skip_new].iter().all(|j| !is_seen(borders.new, new[*j].at - before))
                && b[count..].iter().all(|j| !is_seen(borders.new, new[*j].at - after));
            let by = least.abs().max(most.abs());
            if are_out && best.is_none_or(|(least, ..)| by < least) {
                best = Some((by, skip_old, skip_new));
            }
        }
        let Some((_, skip_old, skip_new)) = best else { return };
        let count = (from.len() - skip_old).min(to.len() - skip_new);
        let step = |i: usize, j: usize| new[j].at - old[i].at;
        let (before, after) = (step(from[skip_old], to[skip_new]), step(from[skip_old + count - 1], to[skip_new + count - 1]));
        self.crossed.extend(from.drain(skip_old + count..).map(|i| (i, after)));
        self.entered.extend(to.drain(skip_new + count..).map(|j| (j, after)));
        self.crossed.extend(from.drain(..skip_old).map(|i| (i, before)));
        self.entered.extend(to.drain(..skip_new).map(|j| (j, before)));
    }

    /// How each series moved, where it did.
    pub(super) fn moves<'a>(&self, old: &[Tranche<'a>], new: &[Tranche<'_>]) -> SeriesMoves<'a> {
        let mut moves: HashMap<(&str, TrancheForm), Vec<(i64, i64)>> = HashMap::new();
        for (i, j) in &self.pairs {
            moves.entry((old[*i].series, old[*i].form)).or_default().push((old[*i].at, new[*j].at));
        }
        SeriesMoves { moves }
    }

    /// Takes out of what is gone and what came whatever moved across a border with the rest of its series: by as much as the tranche
    /// next to it did.
    fn cross(&mut self, old: &[Tranche<'_>], new: &[Tranche<'_>], borders: &Borders<'_>) {
        if borders.are_open() {
            return;
        }
        let moves = self.moves(old, new);
        let (crossed, entered) = (&mut self.crossed, &mut self.entered);
        self.gone.retain(|i| {
            let by = moves.next_to(&old[*i], |(from, _)| *from).filter(|by| !is_seen(borders.old, old[*i].at + by));
            crossed.extend(by.map(|by| (*i, by)));
            by.is_none()
        });
        self.come.retain(|j| {
            let by = moves.next_to(&new[*j], |(_, to)| *to).filter(|by| !is_seen(borders.new, new[*j].at - by));
            entered.extend(by.map(|by| (*j, by)));
            by.is_none()
        });
    }
}

/// The days that answers speak of. A tranche that moved across a border has neither gone nor come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Borders<'a> {
    /// Where old tranches can be seen now.
    pub(super) old: &'a DateWindow,
    /// Where new tranches could be seen before.
    pub(super) new: &'a DateWindow,
}

impl Borders<'_> {
    fn are_open(&self) -> bool {
        *self.old == DateWindow::ALL && *self.new == DateWindow::ALL
    }
}

fn is_seen(window: &DateWindow, at: i64) -> bool {
    window.contains(Timestamp::from_timestamp_millis(at))
}

/// How the tranches of each series moved.
pub(super) struct SeriesMoves<'a> {
    moves: HashMap<(&'a str, TrancheForm), Vec<(i64, i64)>>,
}

impl SeriesMoves<'_> {
    /// By how much the tranche next to this one moved; `end` says whether it is looked for where tranches were or where they are.
    fn next_to(&self, tranche: &Tranche<'_>, end: fn(&(i64, i64)) -> i64) -> Option<i64> {
        let moves = self.moves.get(&(tranche.series, tranche.form))?;
        let (from, to) = moves.iter().min_by_key(|pair| (end(pair) - tranche.at).abs())?;
        Some(to - from).filter(|by| *by != 0)
    }

    /// By how much an event that is out of sight moved, where all its tranches moved alike with their series.
    pub(super) fn of_hidden(&self, parts: &[Tranche<'_>]) -> Option<i64> {
        let mut by = parts.iter().map(|part| self.next_to(part, |(from, _)| *from));
        let first = by.next()??;
        by.all(|other| other == Some(first)).then_some(first)
    }
}

/// Links the old and the new tranches of a token.
pub(super) fn link<'a>(old: &mut [Tranche<'a>], new: &[Tranche<'a>], borders: &Borders<'_>, tolerance: f64) -> TrancheLinks {
    let mut links = TrancheLinks::default();
    let renames = find_renames(old, new, tolerance);
    for tranche in old.iter_mut() {
        if let Some(to) = renames.get(tranche.name) {
            tranche.series = to;
        }
    }
    links.renames = renames.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();

    let mut series: BTreeMap<(&str, TrancheForm), TrancheGroup> = BTreeMap::new();
    for (i, tranche) in old.iter().enumerate() {
        series.entry((tranche.series, tranche.form)).or_default().0.push(i);
    }
    for (j, tranche) in new.iter().enumerate() {
        series.entry((tranche.series, tranche.form)).or_default().1.push(j);
    }
    for (from, to) in series.values_mut() {
        sort_by_date(old, from);
        sort_by_date(new, to);
        links.cross_with_series(old, new, (from, to), borders, tolerance);
    }
    let align_all = |hints: &[i64]| -> Vec<Alignment> {
        let tranches = |(from, to): &TrancheGroup| -> (Vec<&Tranche<'_>>, Vec<&Tranche<'_>>) {
            (from.iter().map(|i| &old[*i]).collect(), to.iter().map(|j| &new[*j]).collect())
        };
        series.values().map(tranches).map(|(old, new)| align(&old, &new, hints, tolerance)).collect()
    };
    // Twice: what a long series says of its shift helps to read the short ones.
    let mut aligned = align_all(&[]);
    let hints = common_shifts(&aligned);
    if !hints.is_empty() {
        aligned = align_all(&hints);
    }
    let (mut old_linked, mut new_linked) = (vec![false; old.len()], vec![false; new.len()]);
    for ((from, to), alignment) in series.values().zip(aligned) {
        for (a, b) in alignment.pairs {
            old_linked[from[a]] = true;
            new_linked[to[b]] = true;
            links.pairs.push((from[a], to[b]));
        }
        for (a, b) in alignment.groups {
            let group: TrancheGroup = (a.iter().map(|a| from[*a]).collect(), b.iter().map(|b| to[*b]).collect());
            group.0.iter().for_each(|i| old_linked[*i] = true);
            group.1.iter().for_each(|j| new_linked[*j] = true);
            links.groups.push(group);
        }
    }
    links.crossed.iter().for_each(|(i, _)| old_linked[*i] = true);
    links.entered.iter().for_each(|(j, _)| new_linked[*j] = true);
    links.gone.extend((0..old.len()).filter(|i| !old_linked[*i]));
    links.come.extend((0..new.len()).filter(|j| !new_linked[*j]));
    links.cross(old, new, borders);
    links.conserve(old, new, tolerance);
    links.pairs.sort_unstable();
    links.gone.sort_by_key(|i| (old[*i].at, *i));
    links.come.sort_by_key(|j| (new[*j].at, *j));
    links
}

/// Sorts tranches by begin, end and amount.
fn sort_by_date(all: &[Tranche<'_>], indices: &mut [usize]) {
    let amount = |i: usize| all[i].amount.unwrap_or(f64::NEG_INFINITY);
    indices.sort_by(|a, b| (all[*a].at, all[*a].end).cmp(&(all[*b].at, all[*b].end)).then(amount(*a).total_cmp(&amount(*b))));
}

/// The three shifts that explain most pairs.
fn common_shifts(aligned: &[Alignment]) -> Vec<i64> {
    let mut votes: BTreeMap<i64, usize> = BTreeMap::new();
    for one in aligned.iter().filter(|one| one.shift != 0) {
        *votes.entry(one.shift).or_default() += one.pairs.len();
    }
    let mut votes: Vec<(i64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(shift, pairs)| (std::cmp::Reverse(*pairs), *shift));
    votes.into_iter().take(3).map(|(shift, _)| shift).collect()
}
