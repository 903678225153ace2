//! Says what happened: from linked tranches to as few changes as explain them.
//!
//! A step over the whole token each: names and categories, moves, recipients, amounts, forms, what came, what is gone, other
//! facts. What one step explains the next no longer sees. Where more than [`MAX_EXPLANATIONS`] changes would be needed, the schedule
//! was rewritten, and that is the one thing told.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::{
    RATIO_TOLERANCE,
    align::{DAY_MS, Group, Pair, SCATTER_MS, changed_ratio, end_moved_apart},
    close,
    tranche::{Form, Links, Tranche},
    unlock::RowSet,
};
use crate::{
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange, ScheduleBrief},
    format,
    supply::{Precision, Record, Resource, Timestamp, TokenId},
    wire::UnlockEvent,
};

/// Changes that explain a token's new schedule better than saying that it was rewritten.
const MAX_EXPLANATIONS: usize = 2;
/// As many may be told where each is about one event, and each about another: such are corrections of their own.
const MAX_SINGLE_EVENTS: usize = 4;
/// Tranches that must move, or change, alike before it is a series.
const SERIES: usize = 3;
/// Shifts that differ by less are one: daylight saving.
const HOUR_MS: i64 = 3_700_000;
/// Shifts from this on may be counted in calendar months, and then scatter.
const MONTHS_MS: i64 = 25 * DAY_MS;
/// Allocations and fields listed in one change; what is beyond is in the counts only.
const MAX_LISTED: usize = 50;

/// What is compared: rows, tranches, links.
pub(super) struct Seen<'a> {
    pub(super) token: &'a TokenId,
    pub(super) old_rows: &'a [&'a UnlockEvent],
    pub(super) new_rows: &'a [&'a UnlockEvent],
    pub(super) old: &'a [Tranche<'a>],
    pub(super) new: &'a [Tranche<'a>],
    pub(super) links: &'a Links,
    pub(super) new_of_old: &'a [Option<usize>],
    pub(super) old_of_new: &'a [Option<usize>],
    pub(super) vanished: &'a [usize],
    /// Events whose removal is not proven.
    pub(super) unproven: &'a HashSet<usize>,
    pub(super) tolerance: f64,
    pub(super) now: Timestamp,
}

/// The event that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Old(usize),
    New(usize),
}

/// A change with the events that it touches.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) change: Change,
    pub(super) subject: Option<Subject>,
    pub(super) old: RowSet,
    pub(super) new: RowSet,
}

/// All that is to be told of a token's schedule.
pub(super) fn tell(seen: &Seen<'_>) -> Vec<Unit> {
    let mut teller = Teller { seen, units: Vec::new(), fields: Vec::new() };
    teller.names();
    teller.moves();
    teller.ends();
    let amounts = teller.recipients();
    teller.amounts(amounts);
    teller.forms();
    let mut units = teller.units;
    let fields = teller.fields;
    let claims = claims(seen);
    let facts = other_facts(seen, fields);
    // What waits for proof is told later, by itself.
    let waits = |unit: &Unit| unit.old.iter().any(|row| seen.unproven.contains(row));
    let told = units.iter().filter(|unit| !waits(unit)).count();
    let mut seen_old = RowSet::new();
    let mut seen_new = RowSet::new();
    let independent = units.iter().all(|unit| {
        unit.old.len() <= 1
            && unit.new.len() <= 1
            && unit.old.iter().all(|row| seen_old.insert(*row))
            && unit.new.iter().all(|row| seen_new.insert(*row))
    });
    let too_many = told > MAX_EXPLANATIONS && !(told <= MAX_SINGLE_EVENTS && independent);
    let replaced = !units.is_empty()
        && seen.links.gone.len() > 1
        && seen.links.gone.len() * 2 > seen.old.len()
        && seen.links.come.len() * 2 > seen.new.len();
    if too_many || replaced {
        units = vec![rewritten(seen, units)];
    }
    // A new source or precision that comes with a correction is part of it.
    let touched = |unit: &Unit, fact: &Revision| fact.whole_token || !unit.new.is_disjoint(&fact.new);
    let mut apart = Vec::new();
    for fact in facts {
        let full = units.len() >= MAX_EXPLANATIONS;
        let home = units
            .iter_mut()
            .find(|unit| unit.change.kind == ChangeKind::Rewritten || (!waits(unit) && (full || touched(unit, &fact))));
        match home {
            Some(unit) => {
                unit.change.fields.push(fact.field);
                unit.old.extend(fact.old);
                unit.new.extend(fact.new);
            }
            None => apart.push(fact),
        }
    }
    units.extend(revised(seen, apart));
    units.extend(claims);
    for unit in &mut units {
        unit.change.fields.truncate(MAX_LISTED);
        unit.change.allocations.truncate(MAX_LISTED);
    }
    units
}

/// Facts that changed alike in one or many events.
struct Revision {
    field: FieldChange,
    /// A fact of the whole schedule, such as its source.
    whole_token: bool,
    count: u32,
    old: RowSet,
    new: RowSet,
}

struct Teller<'s> {
    seen: &'s Seen<'s>,
    units: Vec<Unit>,
    /// Facts found on the way: field, from, to, old row, new row.
    fields: Vec<(String, Value, Value, usize, usize)>,
}

/// What is left to explain of amounts: pairs whose amount changed, tranches that are gone, tranches that came.
#[derive(Default)]
struct Amounts {
    links: Vec<Pair>,
    gone: Vec<usize>,
    come: Vec<usize>,
}

impl Seen<'_> {
    fn unit(&self, kind: ChangeKind, links: &[Pair], gone: &[usize], come: &[usize]) -> Unit {
        let mut unit = Unit {
            change: Change::of(kind, Resource::Unlock, self.token),
            subject: None,
            old: RowSet::new(),
            new: RowSet::new(),
        };
        unit.old.extend(links.iter().map(|(i, _)| self.old[*i].row).chain(gone.iter().map(|i| self.old[*i].row)));
        unit.new.extend(links.iter().map(|(_, j)| self.new[*j].row).chain(come.iter().map(|j| self.new[*j].row)));
        unit.change.count = tally(links.len() + gone.len() + come.len());
        unit.change.old = unit.old.first().map(|row| record(self.old_rows[*row]));
        unit.change.new = unit.new.first().map(|row| record(self.new_rows[*row]));
        unit
    }

    /// The one event that links are about: rows that are the same event before and after.
    fn one_event(&self, unit: &Unit) -> Option<(usize, usize)> {
        let (Some(o), Some(n)) = (unit.old.first(), unit.new.first()) else {
            return None;
        };
        (unit.old.len() == 1 && unit.new.len() == 1 && self.new_of_old[*o] == Some(*n)).then_some((*o, *n))
    }

    fn old_total(&self, row: usize, form: Option<Form>) -> Option<f64> {
        total(self.old, row, form)
    }

    fn new_total(&self, row: usize, form: Option<Form>) -> Option<f64> {
        total(self.new, row, form)
    }

    fn to_be_determined(&self, (i, j): (usize, usize)) -> bool {
        self.old[i].precision() == Precision::ToBeDetermined && self.new[j].precision() == Precision::ToBeDetermined
    }

    /// How far a link moved, milliseconds.
    fn moved(&self, (i, j): (usize, usize)) -> i64 {
        if self.to_be_determined((i, j)) { 0 } else { self.new[j].at - self.old[i].at }
    }
}

fn total(all: &[Tranche<'_>], row: usize, form: Option<Form>) -> Option<f64> {
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
    Record::Unlock(Box::new(event.clone()))
}

fn tally(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn in_days(ms: i64) -> f64 {
    ms as f64 / DAY_MS as f64
}

fn ratio_of(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    let (from, to) = (from?, to?);
    (from != 0.0).then(|| to / from).filter(|ratio| ratio.is_finite())
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

/// A date before and one after, both as exactly as the change needs.
fn dates(from: &Tranche<'_>, to: &Tranche<'_>) -> String {
    from_to(from.time(), from.precision(), to.time(), to.precision())
}

fn from_to(from: Timestamp, from_precision: Precision, to: Timestamp, to_precision: Precision) -> String {
    if from.date_naive() == to.date_naive() {
        return format!("from {} to {}", format::instant(from), format::instant(to));
    }
    let say = |at: Timestamp, precision: Precision| match precision {
        Precision::Month if !format::same_month(from, to) => format::month(at),
        Precision::ToBeDetermined => "a date to be determined".to_owned(),
        _ if at.timestamp() == 0 => "no date".to_owned(),
        _ => format::day(at),
    };
    format!("from {} to {}", say(from, from_precision), say(to, to_precision))
}

impl Teller<'_> {
    /// Allocations under another name or in another category.
    fn names(&mut self) {
        let seen = self.seen;
        let mut by_name: BTreeMap<(&str, &str), Vec<Pair>> = BTreeMap::new();
        for (i, j) in &seen.links.pairs {
            by_name.entry((seen.old[*i].name, seen.new[*j].name)).or_default().push((*i, *j));
        }
        for (from, to) in &seen.links.renames {
            by_name.entry((from, to)).or_default();
        }
        let mut touched: Vec<Pair> = Vec::new();
        let mut regrouped: Vec<usize> = Vec::new();
        let mut parts: Vec<AllocationChange> = Vec::new();
        let mut renamed: Vec<(&str, &str)> = Vec::new();
        let mut filed: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for ((from, to), links) in &by_name {
            let is_renamed = from != to;
            // A category moves with the allocation where all its tranches agree; else it is a fact of single tranches.
            let mut categories = distinct(links.iter().filter_map(|(i, j)| {
                let (a, b) = (seen.old[*i].standard?, seen.new[*j].standard?);
                (a != b).then_some(b)
            }));
            let before = distinct(links.iter().filter_map(|(i, _)| seen.old[*i].standard));
            let all_changed = links.iter().all(|(i, j)| seen.old[*i].standard != seen.new[*j].standard);
            let category = if categories.len() == 1 && before.len() == 1 && all_changed { categories.pop() } else { None };
            if let (Some(category), [was]) = (category, &before[..]) {
                if is_renamed {
                    for (i, j) in links {
                        self.fields.push((
                            "standardAllocationName".into(),
                            (*was).into(),
                            category.into(),
                            seen.old[*i].row,
                            seen.new[*j].row,
                        ));
                    }
                } else {
                    filed.entry((was, category)).or_default().push(to);
                    parts.push(AllocationChange {
                        name: (*to).to_owned(),
                        from: Some(Fact::Text((*was).to_owned())),
                        to: Some(Fact::Text(category.to_owned())),
                        count: tally(links.len()),
                        ..AllocationChange::default()
                    });
                    touched.extend(links);
                }
            } else {
                for (i, j) in links {
                    if let (Some(a), Some(b)) = (seen.old[*i].standard, seen.new[*j].standard)
                        && a != b
                    {
                        self.fields.push((
                            "standardAllocationName".into(),
                            a.into(),
                            b.into(),
                            seen.old[*i].row,
                            seen.new[*j].row,
                        ));
                    }
                }
            }
            if is_renamed {
                renamed.push((from, to));
                let all: Vec<usize> = (0..seen.new.len()).filter(|j| seen.new[*j].name == *to).collect();
                parts.push(AllocationChange {
                    name: (*to).to_owned(),
                    from: Some(Fact::Text((*from).to_owned())),
                    to: Some(Fact::Text((*to).to_owned())),
                    count: tally(all.len()),
                    ..AllocationChange::default()
                });
                touched.extend(links);
                regrouped.extend(all);
            }
        }
        if touched.is_empty() && regrouped.is_empty() {
            return;
        }
        let mut unit = seen.unit(ChangeKind::Renamed, &touched, &[], &regrouped);
        unit.change.count = parts.iter().map(|part| part.count).sum();
        unit.change.from = parts.first().and_then(|part| part.from.clone());
        unit.change.to = parts.first().and_then(|part| part.to.clone());
        let tranches = format::count(unit.change.count as usize, "tranche");
        let mut said: Vec<String> = Vec::new();
        match &renamed[..] {
            [] => {}
            [(a, b), (c, d)] if a == d && b == c => {
                said.push(format!("{} and {} changed names", format::name(a), format::name(b)))
            }
            [(from, to)] => said.push(format!("{} renamed {}", format::name(from), format::name(to))),
            several => {
                let pairs: Vec<String> =
                    several.iter().take(3).map(|(from, to)| format!("{} → {}", format::name(from), format::name(to))).collect();
                let more = if several.len() > 3 { format!(" and {} more", several.len() - 3) } else { String::new() };
                said.push(format!("{} renamed: {}{more}", format::count(several.len(), "allocation"), pairs.join("; ")));
            }
        }
        for ((was, category), names) in &filed {
            said.push(format!(
                "{} filed under {} instead of {}",
                format::names(names.iter().copied()),
                format::name(category),
                format::name(was)
            ));
        }
        unit.change.summary = format!("{} ({tranches})", said.join("; "));
        unit.change.allocations = parts;
        self.units.push(unit);
    }

    /// Dates that moved, gathered by their step.
    fn moves(&mut self) {
        let seen = self.seen;
        let moved: Vec<Pair> = seen.links.pairs.iter().copied().filter(|link| seen.moved(*link) != 0).collect();
        for block in by_step(&moved, |link| seen.moved(*link), |(_, j)| (seen.new[*j].series, seen.new[*j].form)) {
            self.tell_moved(block);
        }
    }

    fn tell_moved(&mut self, block: Block) {
        let seen = self.seen;
        let mut links = block.links;
        links.sort_by_key(|(i, j)| (seen.old[*i].at, seen.new[*j].at, *i));
        let rows: BTreeSet<usize> = links.iter().map(|(i, _)| seen.old[*i].row).collect();
        let is_series = links.len() >= SERIES && rows.len() >= 2;
        if is_series {
            let kind = if block.one_step { ChangeKind::SeriesShifted } else { ChangeKind::Rescheduled };
            let unit = self.moved_unit(kind, &links);
            self.units.push(unit);
            return;
        }
        // What leaves one event is one thing, also where its parts arrive in several.
        let mut events: BTreeMap<usize, Vec<Pair>> = BTreeMap::new();
        for (i, j) in links {
            events.entry(seen.old[i].row).or_default().push((i, j));
        }
        for (o, links) in events {
            let arrived: BTreeSet<usize> = links.iter().map(|(_, j)| seen.new[*j].row).collect();
            let Some(n) = seen.new_of_old[o].filter(|n| arrived.contains(n)).or(arrived.first().copied()) else {
                continue;
            };
            let mut unit = self.moved_unit(ChangeKind::Rescheduled, &links);
            unit.subject = Some(Subject::New(n));
            // What went to another event than the rest is that part alone.
            let whole = seen.new_of_old[o] == Some(n) && seen.old.iter().filter(|t| t.row == o).count() == links.len();
            if !whole {
                let names = distinct(links.iter().map(|(_, j)| seen.new[*j].name));
                unit.change.summary = format!("{} {}", format::names(names), unit.change.summary);
            }
            self.units.push(unit);
        }
    }

    fn moved_unit(&self, kind: ChangeKind, links: &[Pair]) -> Unit {
        let seen = self.seen;
        let mut unit = seen.unit(kind, links, &[], &[]);
        let Some((i, j)) = links.first().copied() else { return unit };
        let (first, then) = (&seen.old[i], &seen.new[j]);
        unit.change.from = first.dated().map(Fact::Time);
        unit.change.to = then.dated().map(Fact::Time);
        // Between a date and none there are no days.
        let is_dated = links.iter().all(|(i, j)| seen.old[*i].dated().is_some() && seen.new[*j].dated().is_some());
        let days = |ms: i64| is_dated.then(|| in_days(ms));
        let steps = || links.iter().map(|link| seen.moved(*link));
        let common = mode(steps());
        let (least, most) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
        unit.change.shift_days = days(common);
        let mut by_name: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
        for link in links {
            by_name.entry(seen.new[link.1].name).or_default().push(*link);
        }
        unit.change.allocations = by_name
            .iter()
            .filter_map(|(name, links)| {
                let (i, j) = links.first()?;
                Some(AllocationChange {
                    name: (*name).to_owned(),
                    from: seen.old[*i].dated().map(Fact::Time),
                    to: seen.new[*j].dated().map(Fact::Time),
                    shift_days: days(mode(links.iter().map(|link| seen.moved(*link)))),
                    ratio: None,
                    count: tally(links.len()),
                })
            })
            .collect();
        let events = unit.old.len();
        if events == 1 && kind == ChangeKind::Rescheduled && unit.new.len() == 1 {
            let by = days(common).map(|days| format!(" ({})", format::shift(days))).unwrap_or_default();
            unit.change.summary = format!("moved {}{by}", dates(first, then));
        } else {
            unit.change.shift_days_min = days(least);
            unit.change.shift_days_max = days(most);
            let by = if is_dated { format!(" by {}", format::shifts(in_days(least), in_days(most))) } else { String::new() };
            unit.change.summary = format!(
                "{} of {} moved{by} (the first {})",
                format::count(links.len(), "tranche"),
                format::names(by_name.keys().copied()),
                dates(first, then)
            );
        }
        unit
    }

    /// Ends of linear segments that moved otherwise than their begins.
    fn ends(&mut self) {
        let seen = self.seen;
        let ended = |link: &(usize, usize)| {
            let (from, to) = (seen.old[link.0].end?, seen.new[link.1].end?);
            (end_moved_apart(&seen.old[link.0], &seen.new[link.1]) && !seen.to_be_determined(*link)).then_some(to - from)
        };
        let moved: Vec<Pair> = seen.links.pairs.iter().copied().filter(|link| ended(link).is_some()).collect();
        for block in by_step(&moved, |link| ended(link).unwrap_or(0), |(_, j)| (seen.new[*j].series, seen.new[*j].form)) {
            let mut unit = seen.unit(ChangeKind::Rescheduled, &block.links, &[], &[]);
            let steps = || block.links.iter().filter_map(ended);
            let common = mode(steps());
            let mut by_name: BTreeMap<&str, AllocationChange> = BTreeMap::new();
            for link in &block.links {
                let (old, new) = (&seen.old[link.0], &seen.new[link.1]);
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
            let Some((i, j)) = block.links.first() else { continue };
            let (Some(from), Some(to)) = (seen.old[*i].end_time(), seen.new[*j].end_time()) else {
                continue;
            };
            // Segments of a series that moved end otherwise where the next begins: that belongs to the move.
            let moved_series = |unit: &Unit| {
                matches!(unit.change.kind, ChangeKind::Rescheduled | ChangeKind::SeriesShifted)
                    && by_name.keys().all(|name| unit.change.allocations.iter().any(|part| part.name == *name))
            };
            if let Some(home) = self.units.iter_mut().find(|unit| moved_series(unit)) {
                home.change.summary.push_str(&format!(
                    "; the end of {} moved {}",
                    format::count(block.links.len(), "linear segment"),
                    from_to(from, seen.old[*i].precision(), to, seen.new[*j].precision())
                ));
                home.old.extend(unit.old);
                home.new.extend(unit.new);
                continue;
            }
            unit.change.from = Some(Fact::Time(from));
            unit.change.to = Some(Fact::Time(to));
            unit.change.shift_days = Some(in_days(common));
            if block.links.len() > 1 {
                unit.change.shift_days_min = steps().min().map(in_days);
                unit.change.shift_days_max = steps().max().map(in_days);
            }
            unit.change.summary = format!(
                "the end of {} moved {} ({})",
                if block.links.len() > 1 {
                    format!(
                        "{} of {}",
                        format::count(block.links.len(), "linear segment"),
                        format::names(by_name.keys().copied())
                    )
                } else {
                    format::names(by_name.keys().copied())
                },
                from_to(from, seen.old[*i].precision(), to, seen.new[*j].precision()),
                format::shift(in_days(common))
            );
            unit.change.allocations = by_name.into_values().collect();
            unit.subject = seen.one_event(&unit).map(|(_, n)| Subject::New(n));
            self.units.push(unit);
        }
    }

    /// Events of the same total with other recipients. Returns what is left to explain of amounts.
    fn recipients(&mut self) -> Amounts {
        let seen = self.seen;
        let mut by_event: BTreeMap<(usize, Form), Amounts> = BTreeMap::new();
        let links: Vec<Pair> = seen
            .links
            .pairs
            .iter()
            .copied()
            .filter(|(i, j)| changed_ratio(&seen.old[*i], &seen.new[*j], seen.tolerance).is_some())
            .collect();
        for (i, j) in &links {
            let (old, new) = (&seen.old[*i], &seen.new[*j]);
            if seen.new_of_old[old.row] == Some(new.row) {
                by_event.entry((old.row, old.form)).or_default().links.push((*i, *j));
            }
        }
        for i in &seen.links.gone {
            by_event.entry((seen.old[*i].row, seen.old[*i].form)).or_default().gone.push(*i);
        }
        for j in &seen.links.come {
            if let Some(row) = seen.old_of_new[seen.new[*j].row] {
                by_event.entry((row, seen.new[*j].form)).or_default().come.push(*j);
            }
        }
        let mut amounts = Amounts::default();
        let (mut all_links, mut all_gone, mut all_come) = (Vec::new(), Vec::new(), Vec::new());
        for ((row, _), Amounts { links, gone, come }) in by_event {
            let before: Option<f64> =
                links.iter().map(|(i, _)| seen.old[*i].amount).chain(gone.iter().map(|i| seen.old[*i].amount)).sum();
            let after: Option<f64> =
                links.iter().map(|(_, j)| seen.new[*j].amount).chain(come.iter().map(|j| seen.new[*j].amount)).sum();
            let parts = links.len() + gone.len() + come.len();
            let same = matches!((before, after), (Some(a), Some(b)) if a > 0.0 && close(a, b, seen.tolerance.max(1e-6)));
            if same && parts >= 2 && seen.new_of_old[row].is_some() {
                all_links.extend(links);
                all_gone.extend(gone);
                all_come.extend(come);
            }
        }
        let used: BTreeSet<(usize, usize)> = all_links.iter().copied().collect();
        amounts.links.extend(links.into_iter().filter(|link| !used.contains(link)));
        let used: BTreeSet<usize> = all_gone.iter().copied().collect();
        amounts.gone.extend(seen.links.gone.iter().copied().filter(|i| !used.contains(i)));
        let used: BTreeSet<usize> = all_come.iter().copied().collect();
        amounts.come.extend(seen.links.come.iter().copied().filter(|j| !used.contains(j)));
        if all_links.len() + all_gone.len() + all_come.len() > 0 {
            let mut unit = seen.unit(ChangeKind::Reallocated, &all_links, &all_gone, &all_come);
            unit.change.allocations = parts(seen, &all_links, &all_gone, &all_come);
            let total = |rows: &RowSet, of: &dyn Fn(usize) -> Option<f64>| rows.iter().filter_map(|row| of(*row)).sum::<f64>();
            let (from, to) =
                (total(&unit.old, &|row| seen.old_total(row, None)), total(&unit.new, &|row| seen.new_total(row, None)));
            unit.change.from = Some(Fact::Amount(from));
            unit.change.to = Some(Fact::Amount(to));
            unit.change.ratio = ratio_of(Some(from), Some(to));
            let names = |side: fn(&AllocationChange) -> bool| {
                format::names(unit.change.allocations.iter().filter(|part| side(part)).map(|part| part.name.as_str()))
            };
            let grows = |part: &AllocationChange| part.ratio.map_or(part.from.is_none(), |ratio| ratio > 1.0);
            let shrinks = |part: &AllocationChange| part.ratio.map_or(part.to.is_none(), |ratio| ratio < 1.0);
            unit.change.summary = format!(
                "{} of the same total with other recipients: more to {}, less to {}",
                format::count(unit.new.len(), "event"),
                names(grows),
                names(shrinks)
            );
            unit.subject = seen.one_event(&unit).map(|(_, n)| Subject::New(n));
            self.units.push(unit);
        }
        amounts
    }

    /// Amounts: whole series by one ratio, single events, single allocations; then what came and what is gone.
    fn amounts(&mut self, amounts: Amounts) {
        let seen = self.seen;
        let mut left: Vec<Pair> = Vec::new();
        let mut by_ratio = by_ratio(seen, amounts.links);
        by_ratio.sort_by_key(|(links, _)| std::cmp::Reverse(links.len()));
        for (links, ratio) in by_ratio {
            let rows: BTreeSet<usize> = links.iter().map(|(i, _)| seen.old[*i].row).collect();
            match ratio {
                Some(ratio) if links.len() >= SERIES && rows.len() >= 2 => self.tell_rescaled(&links, ratio),
                _ => left.extend(links),
            }
        }
        // What came into, or is gone from, one event that lives on is an event of another size.
        let (mut gone, mut come) = (amounts.gone, amounts.come);
        let mut events: BTreeSet<(usize, usize)> = left.iter().map(|(i, j)| (seen.old[*i].row, seen.new[*j].row)).collect();
        let homes: BTreeSet<Option<(usize, usize)>> = gone
            .iter()
            .map(|i| seen.new_of_old[seen.old[*i].row].map(|n| (seen.old[*i].row, n)))
            .chain(come.iter().map(|j| seen.old_of_new[seen.new[*j].row].map(|o| (o, seen.new[*j].row))))
            .collect();
        let parts_of_one = homes.len() == 1 && homes.iter().all(Option::is_some);
        let (mut gone_parts, mut come_parts) = (Vec::new(), Vec::new());
        if parts_of_one {
            events.extend(homes.into_iter().flatten());
            gone_parts = std::mem::take(&mut gone);
            come_parts = std::mem::take(&mut come);
        }
        left.sort_by_key(|(i, j)| (seen.old[*i].at, seen.new[*j].at));
        if events.len() <= MAX_EXPLANATIONS {
            for event in events {
                let here = |link: &&(usize, usize)| (seen.old[link.0].row, seen.new[link.1].row) == event;
                let links: Vec<Pair> = left.iter().filter(here).copied().collect();
                let gone: Vec<usize> = gone_parts.iter().copied().filter(|i| seen.old[*i].row == event.0).collect();
                let come: Vec<usize> = come_parts.iter().copied().filter(|j| seen.new[*j].row == event.1).collect();
                self.tell_resized_event(event, &links, &gone, &come);
            }
        } else {
            gone.append(&mut gone_parts);
            come.append(&mut come_parts);
            let mut by_name: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
            for link in left {
                by_name.entry(seen.new[link.1].name).or_default().push(link);
            }
            for (_, links) in by_name {
                self.tell_resized_series(&links);
            }
        }
        if !come.is_empty() {
            self.tell_come_or_gone(ChangeKind::Added, &[], &come);
        }
        if !gone.is_empty() {
            self.tell_come_or_gone(ChangeKind::Removed, &gone, &[]);
        }
    }

    fn tell_rescaled(&mut self, links: &[Pair], ratio: f64) {
        let seen = self.seen;
        let mut unit = seen.unit(ChangeKind::SeriesRescaled, links, &[], &[]);
        let first = links.iter().min_by_key(|(i, _)| seen.old[*i].at);
        let amount = |amount: Option<f64>| amount.map(Fact::Amount);
        unit.change.from = first.and_then(|(i, _)| amount(seen.old[*i].amount));
        unit.change.to = first.and_then(|(_, j)| amount(seen.new[*j].amount));
        unit.change.ratio = Some(ratio);
        unit.change.allocations = parts(seen, links, &[], &[]);
        let sum = |of: &mut dyn Iterator<Item = Option<f64>>| of.flatten().sum::<f64>();
        let from = sum(&mut links.iter().map(|(i, _)| seen.old[*i].amount));
        let to = sum(&mut links.iter().map(|(_, j)| seen.new[*j].amount));
        unit.change.summary = format!(
            "{} of {} rescaled {} (from {} to {} in all)",
            format::count(links.len(), "tranche"),
            format::names(unit.change.allocations.iter().map(|part| part.name.as_str())),
            format::ratio(ratio),
            format::amount(from),
            format::amount(to)
        );
        self.units.push(unit);
    }

    fn tell_resized_event(&mut self, (o, n): (usize, usize), links: &[Pair], gone: &[usize], come: &[usize]) {
        let seen = self.seen;
        let mut unit = seen.unit(ChangeKind::Resized, links, gone, come);
        unit.old.insert(o);
        unit.new.insert(n);
        unit.change.old = Some(record(seen.old_rows[o]));
        unit.change.new = Some(record(seen.new_rows[n]));
        unit.change.allocations = parts(seen, links, gone, come);
        // Cliffs and linear segments of one event are different things: the total is that of the form that changed.
        let forms: BTreeSet<Form> = links
            .iter()
            .map(|(i, _)| seen.old[*i].form)
            .chain(gone.iter().map(|i| seen.old[*i].form))
            .chain(come.iter().map(|j| seen.new[*j].form))
            .collect();
        let form = if forms.len() == 1 { forms.first().copied() } else { None };
        let (from, to) = (seen.old_total(o, form), seen.new_total(n, form));
        unit.change.from = from.map(Fact::Amount);
        unit.change.to = to.map(Fact::Amount);
        unit.change.ratio = ratio_of(from, to);
        let times = unit.change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
        unit.change.summary = format!(
            "{}resized from {} to {}{times}: {}",
            if form == Some(Form::Linear) { "linear unlock " } else { "" },
            format::amount(from.unwrap_or(0.0)),
            format::amount(to.unwrap_or(0.0)),
            format::names(unit.change.allocations.iter().map(|part| part.name.as_str()))
        );
        unit.subject = Some(Subject::New(n));
        self.units.push(unit);
    }

    fn tell_resized_series(&mut self, links: &[Pair]) {
        let seen = self.seen;
        let mut unit = seen.unit(ChangeKind::Resized, links, &[], &[]);
        unit.change.allocations = parts(seen, links, &[], &[]);
        let from: f64 = links.iter().filter_map(|(i, _)| seen.old[*i].amount).sum();
        let to: f64 = links.iter().filter_map(|(_, j)| seen.new[*j].amount).sum();
        unit.change.from = Some(Fact::Amount(from));
        unit.change.to = Some(Fact::Amount(to));
        unit.change.ratio = ratio_of(Some(from), Some(to));
        let times = unit.change.ratio.map(|ratio| format!(" ({})", format::ratio(ratio))).unwrap_or_default();
        unit.change.summary = format!(
            "{} of {} resized from {} to {} in all{times}",
            format::count(links.len(), "tranche"),
            format::names(unit.change.allocations.iter().map(|part| part.name.as_str())),
            format::amount(from),
            format::amount(to)
        );
        unit.subject = seen.one_event(&unit).map(|(_, n)| Subject::New(n));
        self.units.push(unit);
    }

    fn tell_come_or_gone(&mut self, kind: ChangeKind, gone: &[usize], come: &[usize]) {
        let seen = self.seen;
        let mut unit = seen.unit(kind, &[], gone, come);
        unit.change.allocations = parts(seen, &[], gone, come);
        let tranches: Vec<&Tranche<'_>> = gone.iter().map(|i| &seen.old[*i]).chain(come.iter().map(|j| &seen.new[*j])).collect();
        let known = tranches.iter().any(|t| t.amount.is_some());
        let total: f64 = tranches.iter().filter_map(|t| t.amount).sum();
        let fact = known.then_some(Fact::Amount(total));
        let rows = if kind == ChangeKind::Added {
            unit.change.to = fact;
            &unit.new
        } else {
            unit.change.from = fact;
            &unit.old
        };
        let span = match (tranches.iter().min_by_key(|t| t.at), tranches.iter().max_by_key(|t| t.at)) {
            (Some(first), Some(last)) if first.at == last.at => on(first),
            (Some(first), Some(last)) => format!("{} to {}", format::day(first.time()), format::day(last.time())),
            _ => String::new(),
        };
        let names = format::names(distinct(tranches.iter().map(|t| t.name)));
        let what = if tranches.len() == 1 { names } else { format!("{} of {names}", format::count(tranches.len(), "tranche")) };
        let amount = if known { format!(", {}", format::amount(total)) } else { String::new() };
        unit.change.summary = format!("{}: {what}{amount}, {span}", kind.as_str());
        // An event of its own that came or is gone has a key of its own; so has the first of several.
        let is_one = rows.len() == 1;
        let first = rows.first().copied();
        if is_one || kind == ChangeKind::Added {
            unit.subject = first.map(if kind == ChangeKind::Added { Subject::New } else { Subject::Old });
        }
        if kind == ChangeKind::Removed {
            unit.change.new = None;
        }
        self.units.push(unit);
    }

    /// Tranches that were cut, joined, or changed between cliff and linear.
    fn forms(&mut self) {
        let seen = self.seen;
        let mut by_kind: BTreeMap<ChangeKind, Vec<&Group>> = BTreeMap::new();
        for group in &seen.links.groups {
            let rows = |all: &[Tranche<'_>], of: &[usize]| of.iter().map(|i| all[*i].row).collect::<BTreeSet<_>>().len();
            let (before, after) = (rows(seen.old, &group.0), rows(seen.new, &group.1));
            let kind = match (before.cmp(&after), group.0.len().cmp(&group.1.len())) {
                (std::cmp::Ordering::Less, _) => ChangeKind::Split,
                (std::cmp::Ordering::Greater, _) => ChangeKind::Merged,
                _ => ChangeKind::Revised,
            };
            by_kind.entry(kind).or_default().push(group);
        }
        for (kind, groups) in by_kind {
            let gone: Vec<usize> = groups.iter().flat_map(|group| group.0.iter().copied()).collect();
            let come: Vec<usize> = groups.iter().flat_map(|group| group.1.iter().copied()).collect();
            let mut unit = seen.unit(kind, &[], &gone, &come);
            unit.change.count = tally(if kind == ChangeKind::Split { come.len() } else { gone.len() });
            unit.change.allocations = parts(seen, &[], &gone, &come);
            let sum = |all: &[Tranche<'_>], of: &[usize]| of.iter().filter_map(|i| all[*i].amount).sum::<f64>();
            let (from, to) = (sum(seen.old, &gone), sum(seen.new, &come));
            unit.change.from = Some(Fact::Amount(from));
            unit.change.to = Some(Fact::Amount(to));
            unit.change.ratio = ratio_of(Some(from), Some(to));
            let forms = |all: &[Tranche<'_>], of: &[usize]| {
                let forms: BTreeSet<Form> = of.iter().map(|i| all[*i].form).collect();
                match (forms.len(), forms.first()) {
                    (1, Some(Form::Cliff)) => "cliff",
                    (1, Some(Form::Linear)) => "linear segment",
                    _ => "tranche",
                }
            };
            let names = format::names(distinct(come.iter().map(|j| seen.new[*j].name)));
            unit.change.summary = format!(
                "{names}: {} became {}, {} in all",
                format::count(gone.len(), forms(seen.old, &gone)),
                format::count(come.len(), forms(seen.new, &come)),
                format::amount(to)
            );
            if kind == ChangeKind::Revised {
                unit.change.fields = vec![FieldChange {
                    field: "allocationBreakdown".into(),
                    from: forms(seen.old, &gone).into(),
                    to: forms(seen.new, &come).into(),
                }];
            }
            // The event that lived on: the one that was cut, or the one that others joined.
            unit.subject = if groups.len() > 1 {
                None
            } else {
                unit.old.iter().find_map(|row| seen.new_of_old[*row].filter(|n| unit.new.contains(n))).map(Subject::New)
            };
            self.units.push(unit);
        }
    }
}

fn on(t: &Tranche<'_>) -> String {
    if t.at == 0 {
        return "without a date".to_owned();
    }
    crate::supply::Interval::of(t.time(), t.precision())
        .map_or_else(|| "on a date to be determined".to_owned(), |interval| format::when(&interval))
}

/// One step, and who made it.
struct Block {
    links: Vec<Pair>,
    /// Whether it is one step; else a series whose tranches moved each by its own.
    one_step: bool,
}

/// Gathers links by the step they made: a series as a whole where its steps scatter no more than months do; across series where
/// the steps are alike.
fn by_step<'a>(
    links: &[Pair],
    step: impl Fn(&(usize, usize)) -> i64,
    series: impl Fn(&(usize, usize)) -> (&'a str, Form),
) -> Vec<Block> {
    let mut by_series: BTreeMap<(&str, Form), Vec<Pair>> = BTreeMap::new();
    for link in links {
        by_series.entry(series(link)).or_default().push(*link);
    }
    let mut blocks: Vec<(i64, Vec<Pair>)> = Vec::new();
    let mut scattered = Vec::new();
    for mut links in by_series.into_values() {
        links.sort_by_key(|link| step(link));
        let mut runs: Vec<Vec<Pair>> = Vec::new();
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
            scattered.push(Block { links: runs.into_iter().flatten().collect(), one_step: false });
        } else {
            blocks.extend(runs.into_iter().map(|run| (mode(run.iter().map(&step)), run)));
        }
    }
    blocks.sort_by_key(|(at, _)| *at);
    let mut merged: Vec<(i64, Vec<Pair>)> = Vec::new();
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
    merged.into_iter().map(|(_, links)| Block { links, one_step: true }).chain(scattered).collect()
}

/// Gathers links by the ratio of their amounts; what has no ratio comes last, without one.
fn by_ratio(seen: &Seen<'_>, links: Vec<Pair>) -> Vec<(Vec<Pair>, Option<f64>)> {
    let mut with: Vec<(f64, (usize, usize))> = Vec::new();
    let mut without = Vec::new();
    for link in links {
        match changed_ratio(&seen.old[link.0], &seen.new[link.1], seen.tolerance)
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        {
            Some(ratio) => with.push((ratio, link)),
            None => without.push(link),
        }
    }
    with.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut groups: Vec<Vec<(f64, (usize, usize))>> = Vec::new();
    for (ratio, link) in with {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|(first, _)| close(*first, ratio, RATIO_TOLERANCE)) => {
                group.push((ratio, link))
            }
            _ => groups.push(vec![(ratio, link)]),
        }
    }
    let mut all: Vec<(Vec<Pair>, Option<f64>)> = groups
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
fn parts(seen: &Seen<'_>, links: &[Pair], gone: &[usize], come: &[usize]) -> Vec<AllocationChange> {
    #[derive(Default)]
    struct Part {
        from: Option<f64>,
        to: Option<f64>,
        count: usize,
    }
    let mut by_name: BTreeMap<&str, Part> = BTreeMap::new();
    let add = |sum: &mut Option<f64>, amount: Option<f64>| {
        if let Some(amount) = amount {
            *sum = Some(sum.unwrap_or(0.0) + amount);
        }
    };
    for (i, j) in links {
        let part = by_name.entry(seen.new[*j].name).or_default();
        add(&mut part.from, seen.old[*i].amount);
        add(&mut part.to, seen.new[*j].amount);
        part.count += 1;
    }
    for i in gone {
        let part = by_name.entry(seen.old[*i].series).or_default();
        add(&mut part.from, seen.old[*i].amount);
        part.count += 1;
    }
    for j in come {
        let part = by_name.entry(seen.new[*j].name).or_default();
        add(&mut part.to, seen.new[*j].amount);
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
            count: tally(part.count),
        })
        .collect()
}

/// Committed claims that appeared or changed: one change for all of one answer. One that is missing is quiet, since not every
/// version of the endpoint tells claims.
fn claims(seen: &Seen<'_>) -> Option<Unit> {
    let amount = |t: &Tranche<'_>| t.claim.and_then(|claim| claim.amount.copied());
    let at = |t: &Tranche<'_>| t.claim.and_then(|claim| claim.timestamp.copied());
    let changed: Vec<Pair> = seen
        .links
        .pairs
        .iter()
        .copied()
        .filter(|(i, j)| {
            let (old, new) = (&seen.old[*i], &seen.new[*j]);
            let amounts = match (amount(old), amount(new)) {
                (Some(a), Some(b)) => !close(a, b, seen.tolerance),
                (None, Some(_)) => true,
                _ => false,
            };
            amounts || (at(new).is_some() && at(old) != at(new))
        })
        .collect();
    if changed.is_empty() {
        return None;
    }
    let mut unit = seen.unit(ChangeKind::Committed, &changed, &[], &[]);
    let sum = |values: Vec<Option<f64>>| values.iter().any(Option::is_some).then(|| values.iter().flatten().sum::<f64>());
    let from = sum(changed.iter().map(|(i, _)| amount(&seen.old[*i])).collect());
    let to = sum(changed.iter().map(|(_, j)| amount(&seen.new[*j])).collect());
    unit.change.from = from.map(Fact::Amount);
    unit.change.to = to.map(Fact::Amount);
    unit.change.ratio = ratio_of(from, to);
    unit.change.allocations = changed
        .iter()
        .map(|(i, j)| AllocationChange {
            name: seen.new[*j].name.to_owned(),
            from: amount(&seen.old[*i]).map(Fact::Amount),
            to: amount(&seen.new[*j]).map(Fact::Amount),
            shift_days: None,
            ratio: ratio_of(amount(&seen.old[*i]), amount(&seen.new[*j])),
            count: 1,
        })
        .collect();
    let names = format::names(distinct(changed.iter().map(|(_, j)| seen.new[*j].name)));
    let times = changed.first().and_then(|(_, j)| at(&seen.new[*j])).and_then(|at| Timestamp::from_timestamp(at, 0));
    let when = times.map(|at| format!(" on {}", format::day(at))).unwrap_or_default();
    let amount = |amount: Option<f64>| amount.map_or_else(|| "an unknown amount".to_owned(), format::amount);
    unit.change.summary = if from.is_some() {
        format!("committed claim of {names} changed from {} to {}{when}", amount(from), amount(to))
    } else {
        format!("{names} committed to claim {}{when}", amount(to))
    };
    unit.subject = seen.one_event(&unit).map(|(_, n)| Subject::New(n));
    Some(unit)
}

/// Facts that are neither date nor amount nor recipient, gathered by what changed.
fn other_facts(seen: &Seen<'_>, found: Vec<(String, Value, Value, usize, usize)>) -> Vec<Revision> {
    let mut all: Vec<(String, Value, Value, usize, usize, bool)> =
        found.into_iter().map(|(field, from, to, o, n)| (field, from, to, o, n, false)).collect();
    for (i, j) in &seen.links.pairs {
        let (old, new) = (&seen.old[*i], &seen.new[*j]);
        // Missing is not another precision; but two that were told and differ are.
        if let (Some(a), Some(b)) = (old.precision, new.precision)
            && a != b
        {
            all.push(("unlockPrecision".into(), a.into(), b.into(), old.row, new.row, false));
        }
        if let (None, Some(amount)) = (old.amount, new.amount) {
            let field = if new.form == Form::Cliff { "cliffAmount" } else { "linearAmount" };
            all.push((field.into(), Value::Null, amount.into(), old.row, new.row, false));
        }
        if let (None, Some(end)) = (old.end_time(), new.end_time())
            && new.form == Form::Linear
        {
            all.push(("endDate".into(), Value::Null, end.to_rfc3339().into(), old.row, new.row, false));
        }
    }
    for (o, event) in seen.old_rows.iter().enumerate() {
        let Some(n) = seen.new_of_old[o] else { continue };
        let after = seen.new_rows[n];
        for (field, a, b) in [
            ("dataSource", &event.data_source, &after.data_source),
            ("listedMethod", &event.listed_method, &after.listed_method),
            ("tokenName", &event.token_name, &after.token_name),
            ("tokenSymbol", &event.token_symbol, &after.token_symbol),
        ] {
            if let (Some(a), Some(b)) = (a.as_str(), b.as_str())
                && a != b
            {
                all.push((field.into(), a.into(), b.into(), o, n, true));
            }
        }
    }
    let mut revisions: Vec<Revision> = Vec::new();
    let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for (field, from, to, o, n, whole_token) in all {
        let key = (field.clone(), from.to_string(), to.to_string());
        let k = *known.entry(key).or_insert_with(|| {
            let field = FieldChange { field, from, to };
            revisions.push(Revision { field, whole_token, count: 0, old: RowSet::new(), new: RowSet::new() });
            revisions.len() - 1
        });
        if let Some(revision) = revisions.get_mut(k) {
            revision.count += 1;
            revision.old.insert(o);
            revision.new.insert(n);
        }
    }
    revisions
}

/// Facts that changed with nothing else: one change for all of them.
fn revised(seen: &Seen<'_>, facts: Vec<Revision>) -> Option<Unit> {
    let (old, new): (RowSet, RowSet) =
        (facts.iter().flat_map(|fact| fact.old.clone()).collect(), facts.iter().flat_map(|fact| fact.new.clone()).collect());
    let (o, n) = (*old.first()?, *new.first()?);
    let mut unit = seen.unit(ChangeKind::Revised, &[], &[], &[]);
    unit.change.old = Some(record(seen.old_rows[o]));
    unit.change.new = Some(record(seen.new_rows[n]));
    unit.change.count = facts.iter().map(|fact| fact.count).max().unwrap_or(1);
    (unit.old, unit.new) = (old, new);
    unit.subject = seen.one_event(&unit).map(|(_, n)| Subject::New(n));
    let fact = |value: &Value| match value {
        Value::String(text) => Some(Fact::Text(text.clone())),
        Value::Number(number) => number.as_f64().map(Fact::Amount),
        _ => None,
    };
    let mut said: Vec<String> = Vec::new();
    for revision in facts {
        if unit.change.fields.is_empty() {
            unit.change.from = fact(&revision.field.from);
            unit.change.to = fact(&revision.field.to);
        }
        let FieldChange { field, from, to } = &revision.field;
        if said.len() < 3 {
            said.push(match (from, to) {
                (Value::Null, to) => format!("{field} is now {}", shown(to)),
                (from, to) => format!("{field} changed from {} to {}", shown(from), shown(to)),
            });
        }
        unit.change.fields.push(revision.field);
    }
    unit.change.summary = said.join("; ");
    if unit.new.len() > 1 {
        unit.change.summary.push_str(&format!(" ({})", format::count(unit.new.len(), "event")));
    }
    Some(unit)
}

/// A value of a field, short and on one line.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format::name(text),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), format::amount),
        other => format::name(&other.to_string()),
    }
}

/// All of it is one thing: the schedule was rewritten.
fn rewritten(seen: &Seen<'_>, units: Vec<Unit>) -> Unit {
    let mut whole = seen.unit(ChangeKind::Rewritten, &[], &[], &[]);
    let (before, after) = (brief(seen.old_rows, seen.old, seen.now), brief(seen.new_rows, seen.new, seen.now));
    whole.change.count = units.iter().map(|unit| unit.change.count).fold(0, u32::saturating_add);
    let mut names: BTreeMap<String, AllocationChange> = BTreeMap::new();
    for unit in units {
        whole.old.extend(unit.old);
        whole.new.extend(unit.new);
        for part in unit.change.allocations {
            names.entry(part.name.clone()).or_insert(AllocationChange { name: part.name, ..AllocationChange::default() });
        }
    }
    // Who vanished or came belongs to it, also where no tranche says so.
    whole.old.extend(seen.vanished);
    // Of each allocation, what it has in all before and after.
    for (all, is_old) in [(seen.old, true), (seen.new, false)] {
        for t in all {
            if let Some(part) = names.get_mut(t.series) {
                let sum = if is_old { &mut part.from } else { &mut part.to };
                if let Some(amount) = t.amount {
                    *sum = Some(Fact::Amount(sum.as_ref().and_then(Fact::amount).unwrap_or(0.0) + amount));
                }
                if !is_old {
                    part.count += 1;
                }
            }
        }
    }
    for part in names.values_mut() {
        part.ratio = ratio_of(part.from.as_ref().and_then(Fact::amount), part.to.as_ref().and_then(Fact::amount));
    }
    whole.change.allocations = names.into_values().collect();
    whole.change.from = Some(Fact::Amount(before.total));
    whole.change.to = Some(Fact::Amount(after.total));
    whole.change.ratio = ratio_of(Some(before.total), Some(after.total));
    let end = |brief: &ScheduleBrief| brief.end.map_or_else(|| "no date".to_owned(), format::day);
    let step = |from: String, to: String, what: &str| {
        if from == to { format!("{to}{what} as before") } else { format!("{from} to {to}{what}") }
    };
    whole.change.summary = format!(
        "schedule rewritten: {}, {}, end {}",
        step(before.events.to_string(), after.events.to_string(), " events"),
        step(format::amount(before.total), format::amount(after.total), " tokens in all"),
        step(end(&before), end(&after), "")
    );
    whole.change.before = Some(before);
    whole.change.after = Some(after);
    whole.change.old = None;
    whole.change.new = None;
    whole
}

/// A schedule in brief.
fn brief(rows: &[&UnlockEvent], tranches: &[Tranche<'_>], now: Timestamp) -> ScheduleBrief {
    let mut coming: BTreeMap<Timestamp, f64> = BTreeMap::new();
    for t in tranches {
        if t.time() > now {
            *coming.entry(t.time()).or_default() += t.amount.unwrap_or(0.0);
        }
    }
    ScheduleBrief {
        total: tranches.iter().filter_map(|t| t.amount).sum(),
        events: tally(rows.len()),
        tranches: tally(tranches.len()),
        next: coming.into_iter().take(3).collect(),
        end: tranches.iter().map(|t| t.end_time().unwrap_or_else(|| t.time())).max(),
    }
}
