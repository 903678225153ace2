//! Amounts: rescaled series, resized events, and what came or is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChangeBuilder, ChangeSubject, MAX_EXPLANATIONS, SERIES, ScheduleComparison, distinct, recipients::UnexplainedAmounts, record,
};
use crate::diff::{
    RATIO_TOLERANCE,
    align::{TranchePair, changed_ratio},
    close, count_of, ratio_of,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{AllocationChange, ChangeKind, Fact},
    format,
    supply::Interval,
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
        // What came into, or is gone from, one event that lives on is an event of another size.
        let (mut gone, mut come) = (amounts.gone, amounts.come);
        let mut events: BTreeSet<(usize, usize)> =
            left.iter().map(|(i, j)| (compared.old[*i].row, compared.new[*j].row)).collect();
        let homes: BTreeSet<Option<(usize, usize)>> = gone
            .iter()
            .map(|i| compared.new_of_old[compared.old[*i].row].map(|n| (compared.old[*i].row, n)))
            .chain(come.iter().map(|j| compared.old_of_new[compared.new[*j].row].map(|o| (o, compared.new[*j].row))))
            .collect();
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
            let mut by_name: BTreeMap<&str, Vec<TranchePair>> = BTreeMap::new();
            for link in left {
                by_name.entry(compared.new[link.1].name).or_default().push(link);
            }
            for (_, links) in by_name {
                self.explain_resized_series(&links);
            }
        }
        if !come.is_empty() {
            self.explain_come_or_gone(ChangeKind::Added, &[], &come);
        }
        if !gone.is_empty() {
            self.explain_come_or_gone(ChangeKind::Removed, &gone, &[]);
        }
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
        let times = found.change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
        found.change.summary = format!(
            "{}resized from {} to {}{times}: {}",
            if form == Some(TrancheForm::Linear) { "linear unlock " } else { "" },
            format::amount(from.unwrap_or(0.0)),
            format::amount(to.unwrap_or(0.0)),
            format::names(found.change.allocations.iter().map(|part| part.name.as_str()))
        );
        found.subject = Some(ChangeSubject::New(n));
        self.explained.push(found);
    }

    fn explain_resized_series(&mut self, links: &[TranchePair]) {
        let compared = self.compared;
        let mut found = compared.explained(ChangeKind::Resized, links, &[], &[]);
        found.change.allocations = parts(compared, links, &[], &[]);
        let from: f64 = links.iter().filter_map(|(i, _)| compared.old[*i].amount).sum();
        let to: f64 = links.iter().filter_map(|(_, j)| compared.new[*j].amount).sum();
        found.change.from = Some(Fact::Amount(from));
        found.change.to = Some(Fact::Amount(to));
        found.change.ratio = ratio_of(Some(from), Some(to));
        let times = found.change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
        found.change.summary = format!(
            "{} of {} resized from {} to {} in all{times}",
            format::count(links.len(), "tranche"),
            format::names(found.change.allocations.iter().map(|part| part.name.as_str())),
            format::amount(from),
            format::amount(to)
        );
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
        let span = match (tranches.iter().min_by_key(|t| t.at), tranches.iter().max_by_key(|t| t.at)) {
            (Some(first), Some(last)) if first.at == last.at => on(first),
            (Some(first), Some(last)) => format!("{} to {}", format::day(first.time()), format::day(last.time())),
            _ => String::new(),
        };
        let names = format::names(distinct(tranches.iter().map(|t| t.name)));
        let what = if tranches.len() == 1 { names } else { format!("{} of {names}", format::count(tranches.len(), "tranche")) };
        let amount = if known { format!(", {}", format::amount(total)) } else { String::new() };
        found.change.summary = format!("{}: {what}{amount}, {span}", kind.as_str());
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

/// When a tranche is due, for a sentence.
fn on(t: &Tranche<'_>) -> String {
    if t.at == 0 {
        return "without a date".to_owned();
    }
    Interval::of(t.time(), t.precision())
        .map_or_else(|| "on a date to be determined".to_owned(), |interval| format::when(&interval))
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
