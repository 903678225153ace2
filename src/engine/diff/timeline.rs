//! The timeline of a token: its schedule before and after a response, tranche by tranche.

use std::collections::BTreeMap;

use super::{
    allocation_renames::{find_renames, marks_by_name},
    index::{New, NewTranche, Old, OldTranche},
    relisted::{RelistedNames, find_relisted, relist},
    tranche::{Events, Tranches, take_apart},
};

/// The old and the new schedule of a token: events, and the tranches that they consist of.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    pub(super) old_events: Events<'a, Old>,
    pub(super) new_events: Events<'a, New>,
    pub(super) old: Tranches<'a, Old>,
    pub(super) new: Tranches<'a, New>,
    /// The new name of each renamed allocation.
    pub(super) renames: BTreeMap<&'a str, &'a str>,
    /// Allocations that are listed together or apart. Their old tranches are listed as the new ones are.
    pub(super) relisted: Vec<RelistedNames<'a>>,
}

impl<'a> Timeline<'a> {
    /// Takes both schedules apart, and gives the old tranches the new names of their allocations.
    pub(super) fn new(old_events: Events<'a, Old>, new_events: Events<'a, New>, with_linear: bool, tolerance: f64) -> Self {
        let old = take_apart(&old_events, with_linear);
        let new = take_apart(&new_events, with_linear);
        let (before, after) = (marks_by_name(&old), marks_by_name(&new));
        let relisted = find_relisted(&before, &after, tolerance);
        let renames = find_renames((&old, &before), (&new, &after), &relisted, tolerance);
        let mut old = relist(old, &new, &relisted);
        for tranche in old.iter_mut() {
            if let Some(to) = renames.get(tranche.name) {
                tranche.series = to;
            }
        }
        Self { old_events, new_events, old, new, renames, relisted }
    }

    /// Returns each old name of an allocation with its new one. If it is listed apart now, it has several.
    pub(super) fn new_names(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let renamed = self.renames.iter().map(|(from, to)| (*from, *to));
        let pairs = |one: &RelistedNames<'a>| {
            let pairs = one.from.iter().flat_map(|from| one.to.iter().map(|to| (*from, *to)));
            pairs.collect::<Vec<_>>()
        };
        renamed.chain(self.relisted.iter().flat_map(pairs))
    }

    /// Returns the series of an allocation that had this name. If it is listed apart now, it is the first of its series.
    pub(super) fn series_of(&self, name: &'a str) -> &'a str {
        self.new_names().find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
    }
}

/// An old item and the new one that it became.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair<I, J> {
    pub(super) old: I,
    pub(super) new: J,
}

/// The same tranche before and after.
pub(super) type TranchePair = Pair<OldTranche, NewTranche>;

/// Old items that became new ones with the same sum: one was cut, several were joined, or the timing changed.
#[derive(Clone, Debug)]
pub(super) struct IndexGroup<I, J> {
    pub(super) old: Vec<I>,
    pub(super) new: Vec<J>,
}

impl<I, J> Default for IndexGroup<I, J> {
    fn default() -> Self {
        Self { old: Vec::new(), new: Vec::new() }
    }
}

pub(super) type TrancheGroup = IndexGroup<OldTranche, NewTranche>;

/// Tranches that a change is about.
#[derive(Clone, Debug, Default)]
pub(super) struct TrancheSet {
    pub(super) pairs: Vec<TranchePair>,
    pub(super) unpaired_old: Vec<OldTranche>,
    pub(super) unpaired_new: Vec<NewTranche>,
}

impl TrancheSet {
    pub(super) fn of_pairs(pairs: &[TranchePair]) -> Self {
        Self { pairs: pairs.to_vec(), ..Self::default() }
    }

    /// Returns the number of affected tranches. Old tranches that became new ones count once.
    pub(super) fn len(&self) -> usize {
        let unpaired = if self.unpaired_old.is_empty() { self.unpaired_new.len() } else { self.unpaired_old.len() };
        self.pairs.len() + unpaired
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.unpaired_old.is_empty() && self.unpaired_new.is_empty()
    }

    /// Returns the old tranches, paired ones first.
    pub(super) fn all_old(&self) -> Vec<OldTranche> {
        self.pairs.iter().map(|pair| pair.old).chain(self.unpaired_old.iter().copied()).collect()
    }

    /// Returns the new tranches, paired ones first.
    pub(super) fn all_new(&self) -> Vec<NewTranche> {
        self.pairs.iter().map(|pair| pair.new).chain(self.unpaired_new.iter().copied()).collect()
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.pairs.append(&mut other.pairs);
        self.unpaired_old.append(&mut other.unpaired_old);
        self.unpaired_new.append(&mut other.unpaired_new);
    }
}

impl From<TrancheGroup> for TrancheSet {
    fn from(group: TrancheGroup) -> Self {
        Self { pairs: Vec::new(), unpaired_old: group.old, unpaired_new: group.new }
    }
}
