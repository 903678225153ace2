//! The part of daily emission ahead that the known unlocks do not explain. Pure.
//!
//! Daily emission has the whole release of each day: cliff unlocks, linear unlocks, and issuance. A cliff unlock counts on its UTC day,
//! and a linear unlock is spread evenly over its time. What remains of a day is supply that no record has. [`linear_ahead`] returns it as
//! runs of days with the same amount, so that known unlocks and runs together add up to the emission.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{Days, NaiveDate};

use model::{
    supply::{LinearAhead, LinearRun, MAX_LINEAR_RUNS, Timestamp},
    wire::{Emission, NamedOr, UnlockEvent},
};

/// The share of a day's amount below which a difference is a rounding error.
const TOLERANCE: f64 = 1e-6;
/// The share of the amount of the whole window above which the known unlocks exceed the emission.
const MIN_EXCESS: f64 = 0.01;
/// The maximum number of days.
const MAX_DAYS: i64 = 1_000;
/// The lengths of the periods, in days, over which many runs are averaged.
const AVERAGED_DAYS: [usize; 4] = [7, 14, 28, 1_000];

const SECONDS_PER_DAY: i64 = 86_400;

/// The emission and the known release of an allocation on one day, in tokens.
#[derive(Clone, Copy, Debug, Default)]
struct DayAmounts {
    emitted: f64,
    known: f64,
}

/// The amounts of each allocation by day.
#[derive(Default)]
struct AmountTable<'a> {
    names: HashMap<&'a str, usize>,
    allocations: Vec<AllocationDays<'a>>,
}

#[derive(Default)]
struct AllocationDays<'a> {
    name: &'a str,
    category: Option<&'a str>,
    days: BTreeMap<usize, DayAmounts>,
}

impl<'a> AmountTable<'a> {
    fn at(&mut self, name: &'a str, category: Option<&'a str>, day: usize) -> &mut DayAmounts {
        let next = self.allocations.len();
        let index = *self.names.entry(name).or_insert(next);
        if index == next {
            self.allocations.push(AllocationDays { name, ..AllocationDays::default() });
        }
        // The index is below the length.
        let allocation = &mut self.allocations[index];
        allocation.category = allocation.category.or(category);
        allocation.days.entry(day).or_default()
    }

    /// Returns the amounts of all allocations by day, for `days` days.
    fn totals(&self, days: usize) -> Vec<DayAmounts> {
        let mut totals = vec![DayAmounts::default(); days];
        for (day, amounts) in self.allocations.iter().flat_map(|allocation| &allocation.days) {
            if let Some(total) = totals.get_mut(*day) {
                total.emitted += amounts.emitted;
                total.known += amounts.known;
            }
        }
        totals
    }
}

/// The `count` days from `first` on.
#[derive(Clone, Copy, Debug)]
struct DayRange {
    first: NaiveDate,
    count: i64,
}

impl DayRange {
    fn index(self, at: Timestamp) -> Option<usize> {
        let day = (at.date_naive() - self.first).num_days();
        (day < self.count).then(|| usize::try_from(day).ok())?
    }

    fn day(self, index: usize) -> NaiveDate {
        self.first.checked_add_days(Days::new(index as u64)).unwrap_or(self.first)
    }
}

/// Returns the part of the daily emission `days` that the `known` unlocks do not explain, from `first` to `end` (exclusive). If the
/// emission ends early although the known unlocks continue, the result ends there.
#[must_use]
pub fn linear_ahead<'a>(
    known: impl IntoIterator<Item = &'a UnlockEvent>,
    days: &'a [Emission],
    (first, end): (NaiveDate, NaiveDate),
    read_at: Timestamp,
) -> LinearAhead {
    let range = DayRange { first, count: (end - first).num_days().clamp(0, MAX_DAYS) };
    let mut table = AmountTable::default();
    let emission_end = add_emission(&mut table, days, range);
    for event in known {
        add_cliffs(&mut table, event, range);
        add_segments(&mut table, event, range);
    }
    let mut totals = table.totals(usize::try_from(range.count).unwrap_or_default());
    // A response that ends while the schedule continues was cut.
    if totals.iter().skip(emission_end).any(|total| total.known > 0.0) {
        totals.truncate(emission_end);
    }
    let (residuals, excess) = residuals(&table, &totals);
    let (runs, is_averaged) = bounded_runs(&residuals, totals.len(), range);
    let sum = |pick: fn(&DayAmounts) -> f64| totals.iter().map(pick).sum::<f64>();
    let whole = sum(|total| total.emitted).max(sum(|total| total.known));
    LinearAhead {
        read_at,
        until: range.day(totals.len()).and_time(chrono::NaiveTime::MIN).and_utc(),
        runs,
        is_averaged,
        differs: Some(excess).filter(|excess| excess.is_finite() && *excess > MIN_EXCESS * whole),
    }
}

/// Adds the emission of each day. Returns the index after its last day.
fn add_emission<'a>(table: &mut AmountTable<'a>, days: &'a [Emission], range: DayRange) -> usize {
    let (mut end, mut seen) = (0, HashSet::new());
    for row in days {
        let Some(day) = row.start_date.copied().and_then(|at| range.index(at)).filter(|day| seen.insert(*day)) else { continue };
        end = end.max(day + 1);
        let mut rest = amount(row.unlock_amount.copied()).unwrap_or_default();
        let tolerance = TOLERANCE * rest;
        for item in row.allocations.items() {
            let NamedOr::Item(item) = item else { continue };
            let Some(amount) = amount(item.unlock_amount.copied()) else { continue };
            let name = item.allocation_name.as_str().unwrap_or_default();
            table.at(name, item.standard_allocation_name.as_str(), day).emitted += amount;
            rest -= amount;
        }
        // The allocations of a day can be incomplete, but its total counts.
        if rest > tolerance {
            table.at("", None, day).emitted += rest;
        }
    }
    end
}

fn add_cliffs<'a>(table: &mut AmountTable<'a>, event: &'a UnlockEvent, range: DayRange) {
    let Some(cliffs) = event.cliff_unlocks.get() else { return };
    let items = cliffs.allocation_breakdown.items();
    for item in items {
        let at = event.unlock_date.copied().or(item.unlock_date.copied());
        if let (Some(day), Some(amount)) = (at.and_then(|at| range.index(at)), amount(item.cliff_amount.copied())) {
            table.at(item.allocation_name.as_str().unwrap_or_default(), None, day).known += amount;
        }
    }
    if items.is_empty()
        && let (Some(day), Some(amount)) =
            (event.unlock_date.copied().and_then(|at| range.index(at)), amount(event.cliff_amount()))
    {
        table.at("", None, day).known += amount;
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few thousand years fit a double")]
fn add_segments<'a>(table: &mut AmountTable<'a>, event: &'a UnlockEvent, range: DayRange) {
    let Some(linears) = event.linear_unlocks.get() else { return };
    for item in linears.allocation_breakdown.items() {
        let (Some(begin), Some(end), Some(amount)) =
            (item.begin_date.copied(), item.end_date.copied(), amount(item.linear_amount.copied()))
        else {
            continue;
        };
        let name = item.allocation_name.as_str().unwrap_or_default();
        if end <= begin {
            if let Some(day) = range.index(begin) {
                table.at(name, None, day).known += amount;
            }
            continue;
        }
        let origin = range.first.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        let (from, until) = (begin.timestamp() - origin, end.timestamp() - origin);
        let duration = (until - from).max(1) as f64;
        let first = from.div_euclid(SECONDS_PER_DAY).max(0);
        let last = (until - 1).div_euclid(SECONDS_PER_DAY).min(range.count - 1);
        for day in first..=last {
            let seconds = until.min((day + 1) * SECONDS_PER_DAY) - from.max(day * SECONDS_PER_DAY);
            if let Ok(day) = usize::try_from(day) {
                table.at(name, None, day).known += amount * (seconds.max(0) as f64 / duration);
            }
        }
    }
}

/// Returns a usable amount: finite and positive.
fn amount(amount: Option<f64>) -> Option<f64> {
    amount.filter(|amount| amount.is_finite() && *amount > 0.0)
}

/// The unexplained amount of an allocation on each day, in tokens.
#[derive(Clone, Debug)]
struct Residual<'a> {
    name: &'a str,
    category: Option<&'a str>,
    days: BTreeMap<usize, f64>,
}

/// Returns the positive residuals, and the amount by which the known unlocks exceed the emission.
///
/// Opposite residuals offset each other, so that no release counts twice. On one day, those of two allocations come from two names for the
/// same release. On consecutive days, those of one allocation come from a release near midnight.
fn residuals<'a>(table: &AmountTable<'a>, totals: &[DayAmounts]) -> (Vec<Residual<'a>>, f64) {
    let tolerance: Vec<f64> = totals.iter().map(|total| TOLERANCE * total.emitted.max(total.known)).collect();
    let mut all: Vec<Residual<'a>> = table
        .allocations
        .iter()
        .map(|allocation| {
            let days = allocation.days.iter().filter_map(|(day, amounts)| {
                let residual = amounts.emitted - amounts.known;
                tolerance.get(*day).filter(|tolerance| residual.abs() > **tolerance).map(|_| (*day, residual))
            });
            Residual { name: allocation.name, category: allocation.category, days: days.collect() }
        })
        .collect();
    all.iter_mut().for_each(|residual| offset_neighbors(&mut residual.days));
    let (mut net, mut positive) = (vec![0.0; totals.len()], vec![0.0; totals.len()]);
    for (day, residual) in all.iter().flat_map(|residual| &residual.days) {
        net[*day] += *residual;
        positive[*day] += residual.max(0.0);
    }
    let excess = net.iter().zip(&tolerance).map(|(net, tolerance)| if *net < -tolerance { -net } else { 0.0 }).sum();
    for residual in &mut all {
        residual.days.retain(|day, residual| {
            *residual *= net[*day] / positive[*day];
            residual.is_finite() && *residual > 0.0 && net[*day] > tolerance[*day]
        });
    }
    (all, excess)
}

/// Lets opposite residuals of two days in a row explain each other.
fn offset_neighbors(days: &mut BTreeMap<usize, f64>) {
    let indices: Vec<usize> = days.keys().copied().collect();
    for day in indices {
        let (Some(this), Some(next)) = (days.get(&day).copied(), days.get(&(day + 1)).copied()) else { continue };
        if this * next < 0.0 {
            let common = this.abs().min(next.abs());
            days.insert(day, this - common.copysign(this));
            days.insert(day + 1, next - common.copysign(next));
        }
    }
}

/// Returns the residuals as runs, and whether they were averaged because there were too many.
fn bounded_runs(residuals: &[Residual<'_>], day_count: usize, range: DayRange) -> (Vec<LinearRun>, bool) {
    let runs_of = |residuals: &[Residual<'_>], step: usize| {
        let mut runs: Vec<LinearRun> =
            residuals.iter().flat_map(|residual| runs(&averaged(residual, step, day_count), range)).collect();
        runs.sort_by(|a, b| (a.start, &a.allocation).cmp(&(b.start, &b.allocation)));
        runs
    };
    let exact = runs_of(residuals, 1);
    if exact.len() <= MAX_LINEAR_RUNS {
        return (exact, false);
    }
    let averaged = AVERAGED_DAYS.iter().map(|step| runs_of(residuals, *step)).find(|runs| runs.len() <= MAX_LINEAR_RUNS);
    if let Some(averaged) = averaged {
        return (averaged, true);
    }
    let mut all = Residual { name: "", category: None, days: BTreeMap::new() };
    for (day, amount) in residuals.iter().flat_map(|residual| &residual.days) {
        *all.days.entry(*day).or_default() += amount;
    }
    (runs_of(&[all], 7), true)
}

/// Spreads the amounts of each `step` days evenly over them.
#[expect(clippy::cast_precision_loss, reason = "at most a thousand days")]
fn averaged<'a>(residual: &Residual<'a>, step: usize, day_count: usize) -> Residual<'a> {
    if step == 1 {
        return residual.clone();
    }
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (day, amount) in &residual.days {
        *sums.entry(day / step * step).or_default() += amount;
    }
    let spread = |(start, sum): (usize, f64)| {
        let end = (start + step).min(day_count);
        (start..end).map(move |day| (day, sum / (end - start) as f64))
    };
    Residual { days: sums.into_iter().flat_map(spread).collect(), ..residual.clone() }
}

/// Joins days in a row with the same amount.
#[expect(clippy::cast_precision_loss, reason = "at most a thousand days")]
fn runs(residual: &Residual<'_>, range: DayRange) -> Vec<LinearRun> {
    let days: Vec<(usize, f64)> = residual.days.iter().map(|(day, amount)| (*day, *amount)).collect();
    let mut joined: Vec<&[(usize, f64)]> = Vec::new();
    let mut rest = &days[..];
    while let Some((start, first)) = rest.first().copied() {
        let is_same = |(index, (day, amount)): &(usize, &(usize, f64))| {
            *day == start + index && (amount - first).abs() <= TOLERANCE * first
        };
        let count = rest.iter().enumerate().take_while(is_same).count().max(1);
        let (run, after) = rest.split_at(count);
        joined.push(run);
        rest = after;
    }
    let run_of = |run: &[(usize, f64)]| {
        let (start, _) = run.first()?;
        Some(LinearRun {
            allocation: residual.name.to_owned(),
            category: residual.category.map(str::to_owned),
            start: range.day(*start),
            end: range.day(start + run.len()),
            per_day: run.iter().map(|(_, amount)| amount).sum::<f64>() / run.len() as f64,
        })
    };
    joined.into_iter().filter_map(run_of).collect()
}

#[cfg(test)]
mod tests;
