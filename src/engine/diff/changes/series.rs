//! Series: tranches that moved by one step, and linear segments whose ends moved.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeBuilder, ChangeSubject, ExplainedChange, SERIES, ScheduleComparison, in_days, mode, wording};
use crate::diff::{
    align::{DAY_MS, SCATTER_MS, TrancheGroup, TranchePair, changed_ratio, end_moved_apart},
    count_of,
    tranche::TrancheForm,
};
use model::{
    change::{AllocationChange, ChangeKind, Fact},
    format,
};

/// Shifts that differ by less are one: daylight saving.
const HOUR_MS: i64 = 3_700_000;
/// Shifts from this on may be counted in calendar months, and then scatter.
const MONTHS_MS: i64 = 25 * DAY_MS;

impl ChangeBuilder<'_> {
    /// Dates that moved, gathered by their step. Returns the tranches of series that did not move by a step: those vest otherwise.
    pub(super) fn moves(&mut self) -> TrancheGroup {
        let compared = self.compared;
        let moved: Vec<TranchePair> = compared.links.pairs.iter().copied().filter(|link| compared.moved(*link) != 0).collect();
        for alike in by_step(&moved, |link| compared.moved(*link), |(_, j)| (compared.new[*j].series, compared.new[*j].form)) {
            self.explain_moves(alike);
        }
        (self.timed_otherwise.iter().map(|(i, _)| *i).collect(), self.timed_otherwise.iter().map(|(_, j)| *j).collect())
    }

    fn explain_moves(&mut self, alike: AlikeMoves) {
        let compared = self.compared;
        let mut links = alike.links;
        links.sort_by_key(|(i, j)| (compared.old[*i].at, compared.new[*j].at, *i));
        let rows: BTreeSet<usize> = links.iter().map(|(i, _)| compared.old[*i].row).collect();
        let is_series = links.len() >= SERIES && rows.len() >= 2;
        if is_series && alike.one_step {
            let found = self.moved_change(ChangeKind::SeriesShifted, &links);
            self.explained.push(found);
            return;
        }
        if is_series {
            // No step explains it. With them goes whatever else is timed otherwise in these allocations.
            let names: BTreeSet<&str> = links.iter().map(|(_, j)| compared.new[*j].series).collect();
            let is_timed_otherwise = |(i, j): &TranchePair| {
                let (old, new) = (&compared.old[*i], &compared.new[*j]);
                names.contains(new.series) && (old.at, old.end) != (new.at, new.end)
            };
            self.timed_otherwise.extend(compared.links.pairs.iter().copied().filter(is_timed_otherwise));
            return;
        }
        links.retain(|link| {
            let is_stretched = wording::is_stretched(&compared.old[link.0], &compared.new[link.1]) && !compared.is_resized(*link);
            !is_stretched || !self.timed_otherwise.insert(*link)
        });
        if alike.one_step && rows.len() > 1 {
            let found = self.moved_change(ChangeKind::Rescheduled, &links);
            self.explained.push(found);
            return;
        }
        // What leaves one event is one thing, also where its parts arrive in several.
        let mut events: BTreeMap<usize, Vec<TranchePair>> = BTreeMap::new();
        for (i, j) in links {
            events.entry(compared.old[i].row).or_default().push((i, j));
        }
        for (o, links) in events {
            let arrived: BTreeSet<usize> = links.iter().map(|(_, j)| compared.new[*j].row).collect();
            let Some(n) = compared.new_of_old[o].filter(|n| arrived.contains(n)).or(arrived.first().copied()) else {
                continue;
            };
            let mut found = self.moved_change(ChangeKind::Rescheduled, &links);
            found.subject = Some(ChangeSubject::New(n));
            self.explained.push(found);
        }
    }

    fn moved_change(&self, kind: ChangeKind, links: &[TranchePair]) -> ExplainedChange {
        let compared = self.compared;
        let mut found = compared.explained(kind, links, &[], &[]);
        let Some((i, j)) = links.first().copied() else { return found };
        let (first, then) = (&compared.old[i], &compared.new[j]);
        found.change.from = first.dated().map(Fact::Time);
        found.change.to = then.dated().map(Fact::Time);
        // Between a date and none there are no days.
        let is_dated = links.iter().all(|(i, j)| compared.old[*i].dated().is_some() && compared.new[*j].dated().is_some());
        let days = |ms: i64| is_dated.then(|| in_days(ms));
        let steps = || links.iter().map(|link| compared.moved(*link));
        let common = mode(steps());
        let (least, most) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
        found.change.shift_days = days(common);
        let mut by_name: BTreeMap<&str, Vec<TranchePair>> = BTreeMap::new();
        for link in links {
            by_name.entry(compared.new[link.1].name).or_default().push(*link);
        }
        found.change.allocations = by_name
            .iter()
            .filter_map(|(name, links)| {
                let (i, j) = links.first()?;
                Some(AllocationChange {
                    name: (*name).to_owned(),
                    from: compared.old[*i].dated().map(Fact::Time),
                    to: compared.new[*j].dated().map(Fact::Time),
                    shift_days: days(mode(links.iter().map(|link| compared.moved(*link)))),
                    ratio: None,
                    count: count_of(links.len()),
                })
            })
            .collect();
        if found.old.len() > 1 || found.new.len() > 1 || kind == ChangeKind::SeriesShifted {
            // Ends of linear segments move with their begins, or nearly so.
            let ends = links
                .iter()
                .filter(|(i, j)| !end_moved_apart(&compared.old[*i], &compared.new[*j]))
                .filter_map(|(i, j)| Some(compared.new[*j].end? - compared.old[*i].end?));
            let (least, most) = ends.fold((least, most), |(least, most), step| (least.min(step), most.max(step)));
            found.change.shift_days_min = days(least);
            found.change.shift_days_max = days(most);
        }
        let amounts: Vec<f64> = links.iter().filter_map(|(_, j)| compared.new[*j].amount).collect();
        found.change.amount = (!amounts.is_empty()).then(|| amounts.iter().sum());
        found.change.summary = moved_sentence(compared, kind, links, (least, most), is_dated);
        found
    }

    /// Ends of linear segments that moved otherwise than their begins.
    pub(super) fn ends(&mut self) {
        let compared = self.compared;
        let ended = |link: &TranchePair| {
            let (from, to) = (compared.old[link.0].end?, compared.new[link.1].end?);
            // Where the amount changed too, the end is told with it.
            (end_moved_apart(&compared.old[link.0], &compared.new[link.1])
                && !compared.to_be_determined(*link)
                && !self.resized.contains(link)
                && !self.timed_otherwise.contains(link))
            .then_some(to - from)
        };
        let moved: Vec<TranchePair> = compared.links.pairs.iter().copied().filter(|link| ended(link).is_some()).collect();
        for alike in by_step(&moved, |link| ended(link).unwrap_or(0), |(_, j)| (compared.new[*j].series, compared.new[*j].form)) {
            let mut found = compared.explained(ChangeKind::Rescheduled, &alike.links, &[], &[]);
            let steps = || alike.links.iter().filter_map(ended);
            let common = mode(steps());
            let mut by_name: BTreeMap<&str, AllocationChange> = BTreeMap::new();
            for link in &alike.links {
                let (old, new) = (&compared.old[link.0], &compared.new[link.1]);
                by_name
                    .entry(new.name)
                    .or_insert_with(|| AllocationChange {
                        name: new.name.to_owned(),
                        from: old.end_time().map(Fact::Time),
                        to: new.end_time().map(Fact::Time),
                        shift_days: ended(link).map(in_days),
                        ratio: None,
                        count: 0,
                    })
                    .count += 1;
            }
            let Some((i, j)) = alike.links.first() else { continue };
            let (Some(from), Some(to)) = (compared.old[*i].end_time(), compared.new[*j].end_time()) else {
                continue;
            };
            // Segments of a series that moved end otherwise where the next begins: that belongs to the move.
            let moved_series = |found: &ExplainedChange| {
                matches!(found.change.kind, ChangeKind::Rescheduled | ChangeKind::SeriesShifted)
                    && by_name.keys().all(|name| found.change.allocations.iter().any(|part| part.name == *name))
            };
            if let Some(home) = self.explained.iter_mut().find(|found| moved_series(found)) {
                let end = wording::from_to((from, compared.old[*i].precision()), (to, compared.new[*j].precision()));
                let segments = format::count(alike.links.len(), "linear segment");
                home.change.summary.push_str(&format!("; the end of {segments} moved {end}"));
                home.old.extend(found.old);
                home.new.extend(found.new);
                continue;
            }
            found.change.from = Some(Fact::Time(from));
            found.change.to = Some(Fact::Time(to));
            found.change.shift_days = Some(in_days(common));
            if alike.links.len() > 1 {
                found.change.shift_days_min = steps().min().map(in_days);
                found.change.shift_days_max = steps().max().map(in_days);
            }
            let new: Vec<usize> = alike.links.iter().map(|(_, j)| *j).collect();
            found.change.amount = Some(new.iter().filter_map(|j| compared.new[*j].amount).sum());
            let old: Vec<usize> = alike.links.iter().map(|(i, _)| *i).collect();
            found.change.summary = format!(
                "{}: until {} instead of {} ({}){}",
                wording::holding(compared, compared.new, &new),
                format::day(to),
                format::day(from),
                format::shift(in_days(common)),
                wording::other_pace(compared, &old, &new)
            );
            found.change.allocations = by_name.into_values().collect();
            found.subject = compared.one_event(&found).map(|(_, n)| ChangeSubject::New(n));
            self.explained.push(found);
        }
    }
}

impl ScheduleComparison<'_> {
    /// Whether a link's amount changed otherwise than by going to another allocation.
    pub(super) fn is_resized(&self, link: TranchePair) -> bool {
        changed_ratio(&self.old[link.0], &self.new[link.1], self.tolerance).is_some()
            && !self.links.transfers.iter().any(|transfer| transfer.links.contains(&link))
    }
}

fn moved_sentence(
    compared: &ScheduleComparison<'_>,
    kind: ChangeKind,
    links: &[TranchePair],
    (least, most): (i64, i64),
    is_dated: bool,
) -> String {
    let Some((i, j)) = links.first().copied() else { return String::new() };
    let new: Vec<usize> = links.iter().map(|(_, j)| *j).collect();
    let by = if is_dated { format!(" by {}", format::shifts(in_days(least), in_days(most))) } else { String::new() };
    if kind == ChangeKind::SeriesShifted || links.iter().any(|(k, _)| compared.old[*k].row != compared.old[i].row) {
        let who = if links.len() == compared.old.len() && links.len() == compared.new.len() {
            format!("the whole schedule ({})", format::amount(new.iter().filter_map(|j| compared.new[*j].amount).sum()))
        } else {
            let holding = wording::holding(compared, compared.new, &new);
            if links.len() > 1 { format!("{holding}, {},", format::count(links.len(), "tranche")) } else { holding }
        };
        let coming = links.iter().find(|(i, j)| compared.old[*i].time().max(compared.new[*j].time()) > compared.now);
        let (word, (i, j)) = coming.map_or(("first", (i, j)), |link| ("next", *link));
        return format!("{who} moved{by}; the {word} {}", wording::dates(&compared.old[i], &compared.new[j]));
    }
    let by = if is_dated { format!(" ({})", format::shifts(in_days(least), in_days(most))) } else { String::new() };
    let holding = wording::holding(compared, compared.new, &new);
    let (old, then) = (&compared.old[i], &compared.new[j]);
    if then.form == TrancheForm::Linear && old.end == then.end && is_dated {
        let before: Vec<usize> = links.iter().map(|(i, _)| *i).collect();
        let pace = wording::other_pace(compared, &before, &new);
        return format!("{holding}: from {} on instead of {}{by}{pace}", format::day(then.time()), format::day(old.time()));
    }
    format!("{holding} moved {}{by}", wording::dates(old, then))
}

/// One step, and who made it.
struct AlikeMoves {
    links: Vec<TranchePair>,
    /// Whether it is one step; else a series whose tranches moved each by its own.
    one_step: bool,
}

/// Gathers links by the step they made: a series as a whole where its steps scatter no more than months do; across series where
/// the steps are alike.
fn by_step<'a>(
    links: &[TranchePair],
    step: impl Fn(&TranchePair) -> i64,
    series: impl Fn(&TranchePair) -> (&'a str, TrancheForm),
) -> Vec<AlikeMoves> {
    let mut by_series: BTreeMap<(&str, TrancheForm), Vec<TranchePair>> = BTreeMap::new();
    for link in links {
        by_series.entry(series(link)).or_default().push(*link);
    }
    let mut blocks: Vec<(i64, Vec<TranchePair>)> = Vec::new();
    let mut scattered = Vec::new();
    for mut links in by_series.into_values() {
        links.sort_by_key(|link| step(link));
        let mut runs: Vec<Vec<TranchePair>> = Vec::new();
        for link in links {
            let at = step(&link);
            match runs.last_mut() {
                Some(run)
                    if run.first().is_some_and(|first| {
                        let from = step(first);
                        from.signum() == at.signum()
                            && (at - from <= HOUR_MS || (at - from <= SCATTER_MS && from.abs().max(at.abs()) >= DAY_MS))
                    }) =>
                {
                    run.push(link);
                }
                _ => runs.push(vec![link]),
            }
        }
        if runs.len() > 2 {
            scattered.push(AlikeMoves { links: runs.into_iter().flatten().collect(), one_step: false });
        } else {
            blocks.extend(runs.into_iter().map(|run| (mode(run.iter().map(&step)), run)));
        }
    }
    blocks.sort_by_key(|(at, _)| *at);
    let mut merged: Vec<(i64, Vec<TranchePair>)> = Vec::new();
    for (at, run) in blocks {
        match merged.last_mut() {
            Some((first, links))
                if at - *first <= HOUR_MS || (at - *first <= SCATTER_MS && at.abs().min(first.abs()) >= MONTHS_MS) =>
            {
                links.extend(run);
            }
            _ => merged.push((at, run)),
        }
    }
    merged.into_iter().map(|(_, links)| AlikeMoves { links, one_step: true }).chain(scattered).collect()
}
