//! Links old and new tranches: series by series, under the names that allocations have now.

use std::collections::BTreeMap;

use model::supply::Timestamp;

use super::{
    DateWindow,
    align::{Alignment, TrancheGroup, TranchePair, align},
    conserve::Transfer,
    rename::find_renames,
    tranche::{Tranche, TrancheForm},
};

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
    /// Takes out of what is gone and what came whatever moved across a border with the rest of its series: by as much as the tranche
    /// next to it did.
    fn cross(&mut self, old: &[Tranche<'_>], new: &[Tranche<'_>], borders: &Borders<'_>) {
        if *borders.old == DateWindow::ALL && *borders.new == DateWindow::ALL {
            return;
        }
        let mut moved: BTreeMap<(&str, TrancheForm), Vec<(i64, i64)>> = BTreeMap::new();
        for (i, j) in self.pairs.iter().filter(|(i, j)| old[*i].at != new[*j].at) {
            moved.entry((old[*i].series, old[*i].form)).or_default().push((old[*i].at, new[*j].at));
        }
        let nearest = |tranche: &Tranche<'_>, end: fn(&(i64, i64)) -> i64| {
            let pairs = moved.get(&(tranche.series, tranche.form))?;
            let (from, to) = pairs.iter().min_by_key(|pair| (end(pair) - tranche.at).abs())?;
            Some(to - from)
        };
        let is_seen = |window: &DateWindow, at: i64| window.contains(Timestamp::from_timestamp_millis(at));
        let (crossed, entered) = (&mut self.crossed, &mut self.entered);
        self.gone.retain(|i| {
            let by = nearest(&old[*i], |(from, _)| *from).filter(|by| !is_seen(borders.old, old[*i].at + by));
            crossed.extend(by.map(|by| (*i, by)));
            by.is_none()
        });
        self.come.retain(|j| {
            let by = nearest(&new[*j], |(_, to)| *to).filter(|by| !is_seen(borders.new, new[*j].at - by));
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
