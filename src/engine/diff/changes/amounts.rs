//! Amounts: rescaled series, resized events, and what came or is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChangeBuilder, ChangeSubject, MAX_EXPLANATIONS, SERIES, ScheduleComparison, recipients::UnexplainedAmounts, record, wording,
};
use crate::diff::{
    RATIO_TOLERANCE,
    align::{TranchePair, changed_ratio},
    close, count_of, ratio_of,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact},
    format,
};

impl ChangeBuilder<'_> {
    /// Amounts: whole series by one ratio, single events, single allocations; then what came and what is gone.
    pub(super) fn amounts(&mut self, amounts: UnexplainedAmounts) {
        let compared = self.compared;
        let mut left: Vec<TranchePair> = Vec::new();
        let mut by_ratio = by_ratio(compared, amounts.links);
        by_ratio.sort_by_key(|(links, _)| std::cmp::Reverse(links.len()));
        for (links, ratio) in by_ratio {
            let rows: BTreeSet<usize> = links.iter().map(|(i, _)| compared.old[*i].row).collect();
            match ratio {
                Some(ratio) if links.len() >= SERIES && rows.len() >= 2 => self.explain_rescaled(&links, ratio),
                _ => left.extend(links),
            }
        }
        let (mut gone, mut come) = (amounts.gone, amounts.come);
        self.explain_restocked(&mut left, &mut gone, &mut come);
        // What came into, or is gone from, one event that lives on is an event of another size; a whole allocation is not, that is
        // added or removed.
        let mut events: BTreeSet<(usize, usize)> =
            left.iter().map(|(i, j)| (compared.old[*i].row, compared.new[*j].row)).collect();
        let gone_home = |i: &usize| {
            let o = compared.old[*i].row;
            compared.new_of_old[o].filter(|_| !compared.has_left(compared.old[*i].series)).map(|n| (o, n))
        };
        let come_home = |j: &usize| {
            let n = compared.new[*j].row;
            compared.old_of_new[n].filter(|_| !compared.is_new(compared.new[*j].series)).map(|o| (o, n))
        };
        let homes: BTreeSet<Option<(usize, usize)>> = gone.iter().map(gone_home).chain(come.iter().map(come_home)).collect();
        let parts_of_one = homes.len() == 1 && homes.iter().all(Option::is_some);
        let (mut gone_parts, mut come_parts) = (Vec::new(), Vec::new());
        if parts_of_one {
            events.extend(homes.into_iter().flatten());
            gone_parts = std::mem::take(&mut gone);
            come_parts = std::mem::take(&mut come);
        }
        left.sort_by_key(|(i, j)| (compared.old[*i].at, compared.new[*j].at));
        if events.len() <= MAX_EXPLANATIONS {
            for event in events {
                let here = |link: &&TranchePair| (compared.old[link.0].row, compared.new[link.1].row) == event;
                let links: Vec<TranchePair> = left.iter().filter(here).copied().collect();
                let gone: Vec<usize> = gone_parts.iter().copied().filter(|i| compared.old[*i].row == event.0).collect();
                let come: Vec<usize> = come_parts.iter().copied().filter(|j| compared.new[*j].row == event.1).collect();
                self.explain_resized_event(event, &links, &gone, &come);
            }
        } else {
            gone.append(&mut gone_parts);
            come.append(&mut come_parts);
            self.explain_resized_series(&left, &[], &[]);
        }
        if !come.is_empty() {
            self.explain_come_or_gone(ChangeKind::Added, &[], &come);
        }
        if !gone.is_empty() {
            self.explain_come_or_gone(ChangeKind::Removed, &gone, &[]);
        }
    }

    /// Allocations of which some tranches changed size and others came or are gone: each has another amount as a whole.
    fn explain_restocked(&mut self, left: &mut Vec<TranchePair>, gone: &mut Vec<usize>, come: &mut Vec<usize>) {
        let compared = self.compared;
        let resized: BTreeSet<&str> = left.iter().map(|(_, j)| compared.new[*j].series).collect();
        let has_gone: BTreeSet<&str> = gone.iter().map(|i| compared.old[*i].series).collect();
        let has_come: BTreeSet<&str> = come.iter().map(|j| compared.new[*j].series).collect();
        let is_restocked = |name: &str| {
            [resized.contains(name), has_gone.contains(name), has_come.contains(name)].iter().filter(|is| **is).count() > 1
        };
        let links: Vec<TranchePair> = left.extract_if(.., |(_, j)| is_restocked(compared.new[*j].series)).collect();
        let mut went: Vec<usize> = gone.extract_if(.., |i| is_restocked(compared.old[*i].series)).collect();
        let mut came: Vec<usize> = come.extract_if(.., |j| is_restocked(compared.new[*j].series)).collect();
        if links.is_empty() && went.is_empty() && came.is_empty() {
            return;
        }
        // In one event that lives on, the event has another size.
        let rows: BTreeSet<(usize, usize)> = links
            .iter()
            .map(|(i, j)| (compared.old[*i].row, compared.new[*j].row))
            .chain(went.iter().map(|i| (compared.old[*i].row, compared.new_of_old[compared.old[*i].row].unwrap_or(usize::MAX))))
            .chain(came.iter().map(|j| (compared.old_of_new[compared.new[*j].row].unwrap_or(usize::MAX), compared.new[*j].row)))
            .collect();
        let lives_on = |(o, n): &(usize, usize)| *o != usize::MAX && *n != usize::MAX;
        if rows.len() == 1 && rows.iter().all(lives_on) {
            left.extend(links);
            gone.append(&mut went);
            come.append(&mut came);
            return;
        }
        self.explain_resized_series(&links, &went, &came);
    }

    fn explain_rescaled(&mut self, links: &[TranchePair], ratio: f64) {
        let compared = self.compared;
        let mut found = compared.explained(ChangeKind::SeriesRescaled, links, &[], &[]);
        let first = links.iter().min_by_key(|(i, _)| compared.old[*i].at);
        let amount = |amount: Option<f64>| amount.map(Fact::Amount);
        found.change.from = first.and_then(|(i, _)| amount(compared.old[*i].amount));
        found.change.to = first.and_then(|(_, j)| amount(compared.new[*j].amount));
        found.change.ratio = Some(ratio);
        found.change.allocations = parts(compared, links, &[], &[]);
        found.change.amount = amount_of_difference(&found.change);
        let sum = |of: &mut dyn Iterator<Item = Option<f64>>| of.flatten().sum::<f64>();
        let from = sum(&mut links.iter().map(|(i, _)| compared.old[*i].amount));
        let to = sum(&mut links.iter().map(|(_, j)| compared.new[*j].amount));
        found.change.summary = format!(
            "{} of {} rescaled {} (from {} to {} in all)",
            format::count(links.len(), "tranche"),
            format::names(found.change.allocations.iter().map(|part| part.name.as_str())),
            format::ratio(ratio),
            format::amount(from),
            format::amount(to)
        );
        self.explained.push(found);
    }

    fn explain_resized_event(&mut self, (o, n): (usize, usize), links: &[TranchePair], gone: &[usize], come: &[usize]) {
        let compared = self.compared;
        self.resized.extend(links);
        let mut found = compared.explained(ChangeKind::Resized, links, gone, come);
        found.old.insert(o);
        found.new.insert(n);
        found.change.old = Some(record(compared.old_rows[o]));
        found.change.new = Some(record(compared.new_rows[n]));
        found.change.allocations = parts(compared, links, gone, come);
        // Cliffs and linear segments of one event are different things: the total is that of the form that changed.
        let forms: BTreeSet<TrancheForm> = links
            .iter()
            .map(|(i, _)| compared.old[*i].form)
            .chain(gone.iter().map(|i| compared.old[*i].form))
            .chain(come.iter().map(|j| compared.new[*j].form))
            .collect();
        let form = if forms.len() == 1 { forms.first().copied() } else { None };
        let (from, to) = (compared.old_total(o, form), compared.new_total(n, form));
        found.change.from = from.map(Fact::Amount);
        found.change.to = to.map(Fact::Amount);
        found.change.ratio = ratio_of(from, to);
        let old: Vec<usize> = links.iter().map(|(i, _)| *i).chain(gone.iter().copied()).collect();
        let new: Vec<usize> = links.iter().map(|(_, j)| *j).chain(come.iter().copied()).collect();
        found.change.amount = amount_of_difference(&found.change);
        found.change.summary = resized_sentence(compared, &old, &new, (from, to));
        found.subject = Some(ChangeSubject::New(n));
        self.explained.push(found);
    }

    fn explain_resized_series(&mut self, links: &[TranchePair], gone: &[usize], come: &[usize]) {
        let compared = self.compared;
        if links.is_empty() && gone.is_empty() && come.is_empty() {
            return;
        }
        self.resized.extend(links);
        let mut found = compared.explained(ChangeKind::Resized, links, gone, come);
        found.change.allocations = parts(compared, links, gone, come);
        let old: Vec<usize> = links.iter().map(|(i, _)| *i).chain(gone.iter().copied()).collect();
        let new: Vec<usize> = links.iter().map(|(_, j)| *j).chain(come.iter().copied()).collect();
        let from: f64 = old.iter().filter_map(|i| compared.old[*i].amount).sum();
        let to: f64 = new.iter().filter_map(|j| compared.new[*j].amount).sum();
        found.change.from = Some(Fact::Amount(from));
        found.change.to = Some(Fact::Amount(to));
        found.change.ratio = ratio_of(Some(from), Some(to));
        found.change.amount = amount_of_difference(&found.change);
        found.change.summary = resized_sentence(compared, &old, &new, (Some(from), Some(to)));
        found.subject = compared.one_event(&found).map(|(_, n)| ChangeSubject::New(n));
        self.explained.push(found);
    }

    fn explain_come_or_gone(&mut self, kind: ChangeKind, gone: &[usize], come: &[usize]) {
        let compared = self.compared;
        let mut found = compared.explained(kind, &[], gone, come);
        found.change.allocations = parts(compared, &[], gone, come);
        let tranches: Vec<&Tranche<'_>> =
            gone.iter().map(|i| &compared.old[*i]).chain(come.iter().map(|j| &compared.new[*j])).collect();
        let known = tranches.iter().any(|t| t.amount.is_some());
        let total: f64 = tranches.iter().filter_map(|t| t.amount).sum();
        let fact = known.then_some(Fact::Amount(total));
        let rows = if kind == ChangeKind::Added {
            found.change.to = fact;
            &found.new
        } else {
            found.change.from = fact;
            &found.old
        };
        found.change.amount = known.then_some(total);
        let (all, of) = if kind == ChangeKind::Added { (compared.new, come) } else { (compared.old, gone) };
        let tranches = if of.len() > 1 { format!(", {}", format::count(of.len(), "tranche")) } else { String::new() };
        let due = wording::due(&of.iter().map(|k| &all[*k]).collect::<Vec<_>>());
        found.change.summary = format!("{}: {}{tranches}, {due}", kind.as_str(), wording::holding(compared, all, of));
        // An event of its own that came or is gone has a key of its own; so has the first of several.
        let is_one = rows.len() == 1;
        let first = rows.first().copied();
        if is_one || kind == ChangeKind::Added {
            found.subject = first.map(if kind == ChangeKind::Added { ChangeSubject::New } else { ChangeSubject::Old });
        }
        if kind == ChangeKind::Removed {
            found.change.new = None;
        }
        self.explained.push(found);
    }
}

impl ScheduleComparison<'_> {
    /// Whether an allocation had no tranche before.
    fn is_new(&self, name: &str) -> bool {
        !self.old.iter().any(|t| t.series == name)
    }

    /// Whether an allocation has no tranche any more.
    pub(in crate::diff) fn has_left(&self, name: &str) -> bool {
        !self.new.iter().any(|t| t.series == name)
    }
}

/// `Team resized from 10.00M to 5.00M (×0.5), on 1 Mar 2026; the other 10.00M of that unlock stay`.
fn resized_sentence(
    compared: &ScheduleComparison<'_>,
    old: &[usize],
    new: &[usize],
    event: (Option<f64>, Option<f64>),
) -> String {
    let sum = |all: &[Tranche<'_>], of: &[usize]| {
        let amounts: Vec<f64> = of.iter().filter_map(|k| all[*k].amount).collect();
        (!amounts.is_empty()).then(|| amounts.iter().sum::<f64>())
    };
    let (from, to) = (sum(compared.old, old), sum(compared.new, new));
    let names = if new.is_empty() { wording::names_of(compared.old, old) } else { wording::names_of(compared.new, new) };
    // Other parts of the unlock, where they stay.
    let others = event.0.zip(event.1).map(|(before, after)| (before - from.unwrap_or(0.0), after - to.unwrap_or(0.0)));
    let rest = match others {
        Some((before, after)) if close(before, after, 1e-6) && after > 1e-9 * event.1.unwrap_or(0.0) => {
            format!("; the other {} of that unlock stay", format::amount(after))
        }
        _ => String::new(),
    };
    let due = wording::due(&if new.is_empty() {
        old.iter().map(|i| &compared.old[*i]).collect::<Vec<_>>()
    } else {
        new.iter().map(|j| &compared.new[*j]).collect::<Vec<_>>()
    });
    match (from, to) {
        (Some(from), None) => format!("{names} ({}) taken out of the unlock {due}{rest}", format::amount(from)),
        (None, Some(to)) => format!("{names} ({}) added to the unlock {due}{rest}", format::amount(to)),
        (from, to) => {
            let times = ratio_of(from, to).map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
            let say = |amount: Option<f64>| amount.map_or_else(|| "an unknown amount".to_owned(), format::amount);
            let when = if old.is_empty() || new.is_empty() { String::new() } else { wording::other_end(compared, old, new) };
            let due = if when.is_empty() { format!(", {due}") } else { when };
            format!("{names} resized from {} to {}{times}{due}{rest}", say(from), say(to))
        }
    }
}

/// What the named allocations have more or less, all together.
fn amount_of_difference(change: &Change) -> Option<f64> {
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount).unwrap_or(0.0);
    let differences: Vec<f64> = change.allocations.iter().map(|part| (amount(&part.to) - amount(&part.from)).abs()).collect();
    (!differences.is_empty()).then(|| differences.iter().sum())
}

/// Gathers links by the ratio of their amounts; what has no ratio comes last, without one.
fn by_ratio(compared: &ScheduleComparison<'_>, links: Vec<TranchePair>) -> Vec<(Vec<TranchePair>, Option<f64>)> {
    let mut with: Vec<(f64, TranchePair)> = Vec::new();
    let mut without = Vec::new();
    for link in links {
        match changed_ratio(&compared.old[link.0], &compared.new[link.1], compared.tolerance)
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        {
            Some(ratio) => with.push((ratio, link)),
            None => without.push(link),
        }
    }
    with.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut groups: Vec<Vec<(f64, TranchePair)>> = Vec::new();
    for (ratio, link) in with {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|(first, _)| close(*first, ratio, RATIO_TOLERANCE)) => {
                group.push((ratio, link))
            }
            _ => groups.push(vec![(ratio, link)]),
        }
    }
    let mut all: Vec<(Vec<TranchePair>, Option<f64>)> = groups
        .into_iter()
        .map(|group| {
            let middle = group.get(group.len() / 2).map(|(ratio, _)| *ratio);
            (group.into_iter().map(|(_, link)| link).collect(), middle)
        })
        .collect();
    if !without.is_empty() {
        all.push((without, None));
    }
    all
}

/// The parts of a change of amounts, by allocation.
pub(super) fn parts(
    compared: &ScheduleComparison<'_>,
    links: &[TranchePair],
    gone: &[usize],
    come: &[usize],
) -> Vec<AllocationChange> {
    #[derive(Default)]
    struct AllocationSum {
        from: Option<f64>,
        to: Option<f64>,
        count: usize,
    }
    let mut by_name: BTreeMap<&str, AllocationSum> = BTreeMap::new();
    let add = |sum: &mut Option<f64>, amount: Option<f64>| {
        if let Some(amount) = amount {
            *sum = Some(sum.unwrap_or(0.0) + amount);
        }
    };
    for (i, j) in links {
        let part = by_name.entry(compared.new[*j].name).or_default();
        add(&mut part.from, compared.old[*i].amount);
        add(&mut part.to, compared.new[*j].amount);
        part.count += 1;
    }
    for i in gone {
        let part = by_name.entry(compared.old[*i].series).or_default();
        add(&mut part.from, compared.old[*i].amount);
        part.count += 1;
    }
    for j in come {
        let part = by_name.entry(compared.new[*j].name).or_default();
        add(&mut part.to, compared.new[*j].amount);
        part.count += 1;
    }
    by_name
        .into_iter()
        .map(|(name, part)| AllocationChange {
            name: name.to_owned(),
            from: part.from.map(Fact::Amount),
            to: part.to.map(Fact::Amount),
            shift_days: None,
            ratio: ratio_of(part.from, part.to),
            count: count_of(part.count),
        })
        .collect()
}
