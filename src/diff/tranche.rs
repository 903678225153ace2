//! Unlock events taken apart: one [`Tranche`] for each recipient's cliff or linear segment.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    align::{Group, Pair, align},
    close,
};
use crate::{
    supply::{Precision, Timestamp},
    wire::{CommittedClaim, UnlockEvent},
};

/// Names up to which each gone name is compared with each new one.
const MAX_RENAME_CANDIDATES: usize = 200;

/// At once, or over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Form {
    Cliff,
    Linear,
}

/// One recipient's part of an event.
#[derive(Clone, Debug)]
pub(super) struct Tranche<'a> {
    /// Index of its event.
    pub(super) row: usize,
    pub(super) form: Form,
    /// Allocation as the source names it; empty where it does not.
    pub(super) name: &'a str,
    /// Allocation under its present name: what series are made of.
    pub(super) series: &'a str,
    /// When it unlocks or begins to, Unix milliseconds; the epoch where undated, which is also what sources put there.
    pub(super) at: i64,
    pub(super) end: Option<i64>,
    pub(super) amount: Option<f64>,
    pub(super) standard: Option<&'a str>,
    pub(super) precision: Option<&'a str>,
    pub(super) claim: Option<&'a CommittedClaim>,
}

impl Tranche<'_> {
    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_timestamp_millis(self.at).unwrap_or_default()
    }

    /// Its date, where it has one.
    pub(super) fn dated(&self) -> Option<Timestamp> {
        Some(self.time()).filter(|at| at.timestamp() != 0)
    }

    pub(super) fn end_time(&self) -> Option<Timestamp> {
        Timestamp::from_timestamp_millis(self.end?)
    }

    pub(super) fn precision(&self) -> Precision {
        Precision::of(self.precision)
    }
}

/// Takes events apart. An event that only gives totals is one tranche without a name.
pub(super) fn take_apart<'a>(events: &[&'a UnlockEvent], with_linear: bool) -> Vec<Tranche<'a>> {
    let mut tranches = Vec::new();
    for (row, event) in events.iter().enumerate() {
        let date = event.unlock_date.copied();
        if let Some(cliffs) = event.cliff_unlocks.get() {
            let parts = cliffs.allocation_breakdown.items();
            for part in parts {
                let name = part.allocation_name.as_str().unwrap_or_default();
                tranches.push(Tranche {
                    row,
                    form: Form::Cliff,
                    name,
                    series: name,
                    at: date.or(part.unlock_date.copied()).map_or(0, |at| at.timestamp_millis()),
                    end: None,
                    amount: part.cliff_amount.copied(),
                    standard: part.standard_allocation_name.as_str(),
                    precision: part.unlock_precision.as_str(),
                    claim: part.committed_claim.get(),
                });
            }
            if parts.is_empty()
                && let Some(amount) = event.cliff_amount()
            {
                tranches.push(whole(row, Form::Cliff, date, amount));
            }
        }
        if with_linear && let Some(linears) = event.linear_unlocks.get() {
            let parts = linears.allocation_breakdown.items();
            for part in parts {
                let name = part.allocation_name.as_str().unwrap_or_default();
                tranches.push(Tranche {
                    row,
                    form: Form::Linear,
                    name,
                    series: name,
                    at: part.begin_date.copied().or(date).map_or(0, |at| at.timestamp_millis()),
                    end: part.end_date.copied().map(|at| at.timestamp_millis()),
                    amount: part.linear_amount.copied(),
                    standard: part.standard_allocation_name.as_str(),
                    precision: part.unlock_precision.as_str(),
                    claim: None,
                });
            }
            if parts.is_empty()
                && let Some(amount) = linears.linear_amount.copied()
            {
                tranches.push(whole(row, Form::Linear, date, amount));
            }
        }
    }
    tranches
}

fn whole<'a>(row: usize, form: Form, date: Option<Timestamp>, amount: f64) -> Tranche<'a> {
    Tranche {
        row,
        form,
        name: "",
        series: "",
        at: date.map_or(0, |at| at.timestamp_millis()),
        end: None,
        amount: Some(amount),
        standard: None,
        precision: None,
        claim: None,
    }
}

/// What became of which tranche: indices into the slices of old and new tranches.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The same tranche before and after.
    pub(super) pairs: Vec<Pair>,
    /// Cut or joined tranches, or a cliff that became linear: same allocation, same sum, other form.
    pub(super) groups: Vec<Group>,
    /// Allocations that have another name now: old name, new name.
    pub(super) renames: Vec<(String, String)>,
    /// Gone.
    pub(super) gone: Vec<usize>,
    /// New.
    pub(super) come: Vec<usize>,
}

/// Links old and new tranches of a token.
pub(super) fn link<'a>(old: &mut [Tranche<'a>], new: &[Tranche<'a>], tolerance: f64) -> Links {
    let mut links = Links::default();
    let renames = find_renames(old, new, tolerance);
    for tranche in old.iter_mut() {
        if let Some(to) = renames.get(tranche.name) {
            tranche.series = to;
        }
    }
    links.renames = renames.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();

    let mut series: BTreeMap<(&str, Form), Group> = BTreeMap::new();
    for (i, tranche) in old.iter().enumerate() {
        series.entry((tranche.series, tranche.form)).or_default().0.push(i);
    }
    for (j, tranche) in new.iter().enumerate() {
        series.entry((tranche.series, tranche.form)).or_default().1.push(j);
    }
    let order = |all: &[Tranche<'_>], indices: &mut Vec<usize>| {
        let amount = |i: usize| all[i].amount.unwrap_or(f64::NEG_INFINITY);
        indices.sort_by(|a, b| (all[*a].at, all[*a].end).cmp(&(all[*b].at, all[*b].end)).then(amount(*a).total_cmp(&amount(*b))));
    };
    for (from, to) in series.values_mut() {
        order(old, from);
        order(new, to);
    }
    // Twice: what a long series says of its shift helps to read the short ones.
    let mut hints: Vec<i64> = Vec::new();
    let mut aligned = Vec::new();
    for round in 0..2 {
        aligned.clear();
        for (from, to) in series.values() {
            let old: Vec<&Tranche<'_>> = from.iter().map(|i| &old[*i]).collect();
            let new: Vec<&Tranche<'_>> = to.iter().map(|j| &new[*j]).collect();
            aligned.push(align(&old, &new, &hints, tolerance));
        }
        if round == 0 {
            let mut votes: HashMap<i64, usize> = HashMap::new();
            for one in &aligned {
                if one.shift != 0 {
                    *votes.entry(one.shift).or_default() += one.pairs.len();
                }
            }
            let mut votes: Vec<(i64, usize)> = votes.into_iter().collect();
            votes.sort_by_key(|(shift, pairs)| (std::cmp::Reverse(*pairs), *shift));
            hints = votes.into_iter().take(3).map(|(shift, _)| shift).collect();
            if hints.is_empty() {
                break;
            }
        }
    }
    let (mut old_linked, mut new_linked) = (vec![false; old.len()], vec![false; new.len()]);
    for ((from, to), alignment) in series.values().zip(aligned) {
        for (a, b) in alignment.pairs {
            old_linked[from[a]] = true;
            new_linked[to[b]] = true;
            links.pairs.push((from[a], to[b]));
        }
        for (a, b) in alignment.groups {
            let group: Group = (a.iter().map(|a| from[*a]).collect(), b.iter().map(|b| to[*b]).collect());
            group.0.iter().for_each(|i| old_linked[*i] = true);
            group.1.iter().for_each(|j| new_linked[*j] = true);
            links.groups.push(group);
        }
    }
    // The rest of an allocation may have changed its form: cliffs that became a segment, a segment that became cliffs.
    let mut rest: BTreeMap<&str, Group> = BTreeMap::new();
    for i in (0..old.len()).filter(|i| !old_linked[*i]) {
        rest.entry(old[i].series).or_default().0.push(i);
    }
    for j in (0..new.len()).filter(|j| !new_linked[*j]) {
        rest.entry(new[j].series).or_default().1.push(j);
    }
    for (mut from, mut to) in rest.into_values() {
        order(old, &mut from);
        order(new, &mut to);
        let sum = |all: &[Tranche<'_>], of: &[usize]| of.iter().map(|i| all[*i].amount).sum::<Option<f64>>();
        let conserved = !from.is_empty()
            && !to.is_empty()
            && matches!((sum(old, &from), sum(new, &to)), (Some(a), Some(b)) if a > 0.0 && close(a, b, tolerance.max(1e-6)));
        if conserved {
            links.groups.push((from, to));
        } else {
            links.gone.extend(from);
            links.come.extend(to);
        }
    }
    links.pairs.sort_unstable();
    links.gone.sort_by_key(|i| (old[*i].at, *i));
    links.come.sort_by_key(|j| (new[*j].at, *j));
    links
}

/// What a tranche is without its name: form, begin, end, amount.
type Mark = (Form, i64, Option<i64>, Option<f64>);

/// Finds allocations that carry another name: a name that is gone and one that is new, with the same tranches, or with much the
/// same name and comparable tranches; and names that changed places.
fn find_renames<'a>(old: &[Tranche<'a>], new: &[Tranche<'a>], tolerance: f64) -> BTreeMap<&'a str, &'a str> {
    let gather = |all: &[Tranche<'a>]| {
        let mut by_name: BTreeMap<&'a str, Vec<Mark>> = BTreeMap::new();
        for t in all {
            by_name.entry(t.name).or_default().push((t.form, t.at, t.end, t.amount));
        }
        for tranches in by_name.values_mut() {
            tranches.sort_by(|a, b| {
                let amount = |t: &Mark| t.3.unwrap_or(f64::NEG_INFINITY);
                (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)).then(amount(a).total_cmp(&amount(b)))
            });
        }
        by_name
    };
    let (before, after) = (gather(old), gather(new));
    let same_dates =
        |a: &[Mark], b: &[Mark]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a.0, a.1, a.2) == (b.0, b.1, b.2));
    let same_amounts = |a: &[Mark], b: &[Mark]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| match (a.3, b.3) {
                (Some(x), Some(y)) => a.0 == b.0 && close(x, y, tolerance),
                (None, None) => a.0 == b.0,
                _ => false,
            })
    };
    let mut renames = BTreeMap::new();
    let gone: Vec<&&str> = before.keys().filter(|name| !after.contains_key(**name) && !name.is_empty()).collect();
    let come: Vec<&&str> = after.keys().filter(|name| !before.contains_key(**name) && !name.is_empty()).collect();
    if gone.len() <= MAX_RENAME_CANDIDATES && come.len() <= MAX_RENAME_CANDIDATES {
        let mut candidates = Vec::new();
        for from in &gone {
            for to in &come {
                let (a, b) = (&before[**from], &after[**to]);
                let (plain_from, plain_to) = (plain(from), plain(to));
                let likeness = strsim::jaro_winkler(&plain_from, &plain_to);
                let (dates, amounts) = (same_dates(a, b), same_amounts(a, b));
                let spelled_alike = plain_from == plain_to;
                let contained = plain_from.len() >= 4
                    && plain_to.len() >= 4
                    && (plain_from.contains(&plain_to) || plain_to.contains(&plain_from));
                let likely = (dates && amounts)
                    || spelled_alike
                    || (dates && (likeness >= 0.8 || contained))
                    || (amounts && likeness >= 0.8);
                if likely {
                    let score = likeness + f64::from(u8::from(dates && amounts)) * 2.0 + f64::from(u8::from(spelled_alike)) * 2.0;
                    candidates.push((score, **from, **to));
                }
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)).then(a.2.cmp(b.2)));
        let mut taken = BTreeSet::new();
        for (_, from, to) in candidates {
            if !renames.contains_key(from) && taken.insert(to) {
                renames.insert(from, to);
            }
        }
    }
    // Two names that changed places.
    let both: Vec<&&str> = before.keys().filter(|name| after.contains_key(**name)).collect();
    if both.len() <= MAX_RENAME_CANDIDATES {
        let same = |a: &[Mark], b: &[Mark]| same_dates(a, b) && same_amounts(a, b);
        for (k, one) in both.iter().enumerate() {
            if same(&before[**one], &after[**one]) {
                continue;
            }
            for other in both.iter().skip(k + 1) {
                if same(&before[**one], &after[**other]) && same(&before[**other], &after[**one]) {
                    renames.insert(**one, **other);
                    renames.insert(**other, **one);
                }
            }
        }
    }
    renames
}

/// A name without case, blanks and punctuation, `&` read as `and`.
fn plain(name: &str) -> String {
    name.replace('&', "and").chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
