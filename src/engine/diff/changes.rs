//! Says what happened to a token's schedule: from linked tranches to as few [`ExplainedChange`]s as explain them.
//!
//! Each step looks at the whole token: `names` (and categories), `series` (moved begins and ends), `recipients`, `amounts` (sizes,
//! what came, what is gone), `forms` (the same total, timed otherwise), `join` (equal explanations are one), `facts` (claims and all
//! others). `wording` has the sentences. What one step explains, the next no
//! longer sees. Where more than [`MAX_EXPLANATIONS`] changes would be needed, the schedule was rewritten (`rewritten`), and that is
//! the only change.

mod amounts;
mod facts;
mod forms;
mod join;
mod names;
mod recipients;
mod rewritten;
mod series;
mod wording;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use self::facts::{FactRevision, RevisedFact};
use super::{
    align::{DAY_MS, TranchePair},
    count_of,
    link::TrancheLinks,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{Change, ChangeKind},
    supply::{Precision, Record, Resource, Timestamp, TokenId},
    wire::UnlockEvent,
};

pub(super) use facts::value_text;

/// Changes that explain a token's new schedule better than saying that it was rewritten.
const MAX_EXPLANATIONS: usize = 2;
/// So many are allowed where each is about one event, and each about another: those are independent corrections.
const MAX_SINGLE_EVENTS: usize = 4;
/// Tranches that must move, or change, alike before it is a series.
const SERIES: usize = 3;
/// Allocations and fields listed in one change; the counts include the rest.
const MAX_LISTED: usize = 50;

/// Events that a change touches, by index.
pub(super) type EventSet = BTreeSet<usize>;

/// A token's schedule before and after: events, tranches, links.
pub(super) struct ScheduleComparison<'a> {
    pub(super) token: &'a TokenId,
    pub(super) old_rows: &'a [&'a UnlockEvent],
    pub(super) new_rows: &'a [&'a UnlockEvent],
    pub(super) old: &'a [Tranche<'a>],
    pub(super) new: &'a [Tranche<'a>],
    pub(super) links: &'a TrancheLinks,
    pub(super) new_of_old: &'a [Option<usize>],
    pub(super) old_of_new: &'a [Option<usize>],
    pub(super) vanished: &'a [usize],
    /// Events whose removal is not proven.
    pub(super) unproven: &'a HashSet<usize>,
    pub(super) tolerance: f64,
    /// Tokens that there will ever be; None where unknown.
    pub(super) supply: Option<f64>,
    pub(super) now: Timestamp,
}

/// The event that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeSubject {
    Old(usize),
    New(usize),
}

/// A change with the events that it touches.
#[derive(Debug)]
pub(super) struct ExplainedChange {
    pub(super) change: Change,
    pub(super) subject: Option<ChangeSubject>,
    pub(super) old: EventSet,
    pub(super) new: EventSet,
}

/// All changes of a token's schedule.
pub(super) fn explain_changes(compared: &ScheduleComparison<'_>) -> Vec<ExplainedChange> {
    let mut builder = ChangeBuilder {
        compared,
        explained: Vec::new(),
        fields: Vec::new(),
        timed_otherwise: BTreeSet::new(),
        resized: BTreeSet::new(),
    };
    builder.names();
    let timed_otherwise = builder.moves();
    builder.transfers();
    let amounts = builder.recipients();
    builder.amounts(amounts);
    builder.ends();
    builder.forms(timed_otherwise);
    builder.join();
    let ChangeBuilder { mut explained, fields, .. } = builder;
    if compared.is_rewritten(&explained) {
        explained = vec![rewritten::rewritten(compared, explained)];
    }
    let apart = compared.attach_facts(&mut explained, facts::other_facts(compared, fields));
    explained.extend(facts::revised(compared, apart));
    explained.extend(facts::claims(compared));
    for found in &mut explained {
        found.change.fields.truncate(MAX_LISTED);
        found.change.allocations.truncate(MAX_LISTED);
    }
    explained
}

/// Gathers the changes, one step after the other; each step adds methods in a file of its own.
struct ChangeBuilder<'s> {
    compared: &'s ScheduleComparison<'s>,
    explained: Vec<ExplainedChange>,
    /// Facts found on the way.
    fields: Vec<RevisedFact>,
    /// Tranches that moved, and not by one step.
    timed_otherwise: BTreeSet<TranchePair>,
    /// Tranches of another amount that was told together with their dates.
    resized: BTreeSet<TranchePair>,
}

impl ScheduleComparison<'_> {
    /// Whether a change waits for proof of a removal: it follows later, by itself.
    fn waits(&self, found: &ExplainedChange) -> bool {
        found.old.iter().any(|row| self.unproven.contains(row))
    }

    /// Whether each change is about one event, and each about another.
    fn are_independent(&self, explained: &[ExplainedChange]) -> bool {
        let (mut old, mut new) = (EventSet::new(), EventSet::new());
        explained.iter().all(|found| {
            found.old.len() <= 1
                && found.new.len() <= 1
                && found.old.iter().all(|row| old.insert(*row))
                && found.new.iter().all(|row| new.insert(*row))
        })
    }

    /// Whether so much changed that only the whole schedule explains it.
    fn is_rewritten(&self, explained: &[ExplainedChange]) -> bool {
        let told = explained.iter().filter(|found| !self.waits(found)).count();
        let independent = self.are_independent(explained);
        let too_many = told > MAX_EXPLANATIONS && !(told <= MAX_SINGLE_EVENTS && independent);
        let replaced = !explained.is_empty()
            && self.links.gone.len() > 1
            && self.links.gone.len() * 2 > self.old.len()
            && self.links.come.len() * 2 > self.new.len();
        too_many || replaced
    }

    /// Adds facts to the changes that they belong to: a new source or precision that comes with a correction is part of it. Returns
    /// the facts that belong to no change.
    fn attach_facts(&self, explained: &mut [ExplainedChange], facts: Vec<FactRevision>) -> Vec<FactRevision> {
        let full = explained.len() >= MAX_EXPLANATIONS;
        let touches = |found: &ExplainedChange, fact: &FactRevision| fact.whole_token || !found.new.is_disjoint(&fact.new);
        let mut apart = Vec::new();
        for fact in facts {
            let home = explained.iter_mut().find(|found| {
                found.change.kind == ChangeKind::Rewritten || (!self.waits(found) && (full || touches(found, &fact)))
            });
            match home {
                Some(found) => {
                    found.change.fields.push(fact.field);
                    found.old.extend(fact.old);
                    found.new.extend(fact.new);
                }
                None => apart.push(fact),
            }
        }
        apart
    }

    /// A change of these tranches, with the first event before and after.
    fn explained(&self, kind: ChangeKind, links: &[TranchePair], gone: &[usize], come: &[usize]) -> ExplainedChange {
        let mut found = ExplainedChange {
            change: Change::of(kind, Resource::Unlock, self.token),
            subject: None,
            old: EventSet::new(),
            new: EventSet::new(),
        };
        found.old.extend(links.iter().map(|(i, _)| self.old[*i].row).chain(gone.iter().map(|i| self.old[*i].row)));
        found.new.extend(links.iter().map(|(_, j)| self.new[*j].row).chain(come.iter().map(|j| self.new[*j].row)));
        found.change.count = count_of(links.len() + gone.len() + come.len());
        found.change.old = found.old.first().map(|row| record(self.old_rows[*row]));
        found.change.new = found.new.first().map(|row| record(self.new_rows[*row]));
        found
    }

    /// The one event that links are about: rows that are the same event before and after.
    fn one_event(&self, found: &ExplainedChange) -> Option<(usize, usize)> {
        let (Some(o), Some(n)) = (found.old.first(), found.new.first()) else {
            return None;
        };
        (found.old.len() == 1 && found.new.len() == 1 && self.new_of_old[*o] == Some(*n)).then_some((*o, *n))
    }

    fn old_total(&self, row: usize, form: Option<TrancheForm>) -> Option<f64> {
        total(self.old, row, form)
    }

    fn new_total(&self, row: usize, form: Option<TrancheForm>) -> Option<f64> {
        total(self.new, row, form)
    }

    fn to_be_determined(&self, (i, j): TranchePair) -> bool {
        self.old[i].precision() == Precision::ToBeDetermined && self.new[j].precision() == Precision::ToBeDetermined
    }

    /// How far a link moved, milliseconds.
    fn moved(&self, (i, j): TranchePair) -> i64 {
        if self.to_be_determined((i, j)) { 0 } else { self.new[j].at - self.old[i].at }
    }
}

fn total(all: &[Tranche<'_>], row: usize, form: Option<TrancheForm>) -> Option<f64> {
    // Tranches stand in the order of their rows.
    let from = all.partition_point(|t| t.row < row);
    let mut known = None;
    for t in all[from..].iter().take_while(|t| t.row == row) {
        if form.is_none_or(|form| form == t.form)
            && let Some(amount) = t.amount
        {
            known = Some(known.unwrap_or(0.0) + amount);
        }
    }
    known
}

fn record(event: &UnlockEvent) -> Record {
    Record::Unlock(Arc::new(event.clone()))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn in_days(ms: i64) -> f64 {
    ms as f64 / DAY_MS as f64
}

/// The value that occurs most, of equals the least.
fn mode(values: impl Iterator<Item = i64>) -> i64 {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value))).map_or(0, |(value, _)| value)
}

/// Names, each once, in order of appearance.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(*name)).collect()
}
