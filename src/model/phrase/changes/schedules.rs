//! The schedule of one allocation before and after a change, each in one short phrase: total, pattern, and dates.

use std::collections::{BTreeMap, BTreeSet};

use super::pace::{INTERVALS, is_close, regular_interval};
use super::tranches::{MAX_UNEQUAL, TrancheFacts, total};
use super::two_amounts;
use crate::phrase::{UNKNOWN_AMOUNT, amount, count, day, instant, month};
use crate::{AllocationSchedule, LinearSchedule, Precision, Timestamp, days};

/// Stands for the schedule of an allocation that had no tranches before the change, or has none after it.
const NONE: &str = "none";

impl AllocationSchedule {
    /// Summarizes tranches of one allocation.
    #[must_use]
    pub fn of(tranches: &[TrancheFacts]) -> Self {
        let mut cliffs: BTreeMap<Option<Timestamp>, Option<f64>> = BTreeMap::new();
        for cliff in tranches.iter().filter(|tranche| !tranche.is_linear) {
            let sum = cliffs.entry(cliff.at).or_insert(Some(0.0));
            *sum = sum.zip(cliff.amount).map(|(sum, tokens)| sum + tokens);
        }
        let amounts: Vec<f64> = cliffs.values().copied().collect::<Option<_>>().unwrap_or_default();
        let least = amounts.iter().copied().reduce(f64::min);
        let most = amounts.iter().copied().reduce(f64::max);
        let are_equal = least.zip(most).is_some_and(|(least, most)| is_close(least, most, MAX_UNEQUAL));
        let dates: Option<Vec<Timestamp>> = cliffs.keys().copied().collect();
        let period = dates.as_deref().and_then(regular_interval).map(|interval| interval.noun.to_owned());
        let precisions: BTreeSet<Precision> = tranches.iter().map(|tranche| tranche.precision).collect();
        Self {
            total: total(tranches),
            begin: tranches.iter().filter_map(|tranche| tranche.at).min(),
            end: tranches.iter().filter_map(|tranche| tranche.end.or(tranche.at)).max(),
            count: Some(u32::try_from(cliffs.len()).unwrap_or(u32::MAX)),
            each: least.filter(|_| are_equal),
            least: least.filter(|_| !are_equal),
            most: most.filter(|_| !are_equal),
            period,
            linear: LinearSchedule::of(tranches),
            precision: precisions.first().copied().filter(|_| precisions.len() == 1),
        }
    }
}

impl LinearSchedule {
    /// `None` without linear unlocks.
    fn of(tranches: &[TrancheFacts]) -> Option<Self> {
        let linears: Vec<TrancheFacts> = tranches.iter().filter(|tranche| tranche.is_linear).cloned().collect();
        let spans: BTreeSet<(Option<Timestamp>, Option<Timestamp>)> = linears.iter().map(|one| (one.at, one.end)).collect();
        let total = total(&linears);
        let length = match (spans.len(), spans.first()) {
            (1, Some((Some(begin), Some(end)))) => Some(days(*end - *begin)).filter(|days| *days > 0.0),
            _ => None,
        };
        let per_day = total.zip(length).map(|(total, days)| total / days);
        (!spans.is_empty()).then(|| Self { count: u32::try_from(spans.len()).unwrap_or(u32::MAX), total, per_day })
    }
}

/// Returns the schedules of an allocation before and after a change, as texts that differ if the schedules do: `400.00M, 36 monthly tranches of
/// 11.11M, June 2026 to May 2029`; `735.00M, linear at 201.26K per day, 11 Apr 2024 to 11 Apr 2034`; `20 May 2026, 250.00M`; `none`.
#[must_use]
pub fn schedule_change(before: Option<&AllocationSchedule>, after: Option<&AllocationSchedule>) -> (String, String) {
    let total_of = |side: Option<&AllocationSchedule>| side.and_then(|side| side.total);
    let totals = match (total_of(before), total_of(after)) {
        (Some(was), Some(is)) => two_amounts(was, is),
        (was, is) => (text_of(was), text_of(is)),
    };
    let text = |side: Option<&AllocationSchedule>, total: &str, is_exact: bool| {
        side.map_or_else(|| NONE.to_owned(), |side| schedule(side, total, is_exact))
    };
    let texts = (text(before, &totals.0, false), text(after, &totals.1, false));
    if texts.0 != texts.1 || before == after {
        return texts;
    }
    // Dates of imprecise unlocks, and times of day, only if nothing else differs.
    (text(before, &totals.0, true), text(after, &totals.1, true))
}

fn text_of(tokens: Option<f64>) -> String {
    tokens.map_or_else(|| UNKNOWN_AMOUNT.to_owned(), amount)
}

/// The schedule of an allocation, with its total as `total`. With `is_exact`, dates have their time of day, even if the source confirms only
/// the month.
fn schedule(of: &AllocationSchedule, total: &str, is_exact: bool) -> String {
    let date = |at: Timestamp| match of.precision {
        _ if is_exact && at.time() != chrono::NaiveTime::MIN => instant(at),
        Some(Precision::Month) if !is_exact => month(at),
        _ => day(at),
    };
    let dates = match (of.begin, of.end) {
        (Some(begin), Some(end)) if date(begin) != date(end) => format!("{} to {}", date(begin), date(end)),
        (Some(begin), _) => date(begin),
        (None, Some(end)) => format!("until {}", date(end)),
        (None, None) => "no date".to_owned(),
    };
    let cliffs = of.count.unwrap_or(0);
    match (&of.linear, cliffs) {
        (None, 0) => format!("{total}, {dates}"),
        (None, 1) => format!("{dates}, {total}"),
        (None, _) => format!("{total}, {}, {dates}", tranches(of)),
        (Some(linear), 0) => match linear.per_day {
            Some(rate) => format!("{total}, linear at {} per day, {dates}", amount(rate)),
            None => format!("{total}, {}, {dates}", count(linear.count, "linear unlock")),
        },
        (Some(linear), cliffs) => {
            let stepwise = of.total.zip(linear.total).map(|(total, linear)| format!("{} ", amount(total - linear)));
            let streamed = linear.total.map(|tokens| format!("{} ", amount(tokens)));
            let (stepwise, streamed) = (stepwise.unwrap_or_default(), streamed.unwrap_or_default());
            format!("{total}, {stepwise}in {} and {streamed}linear, {dates}", count(cliffs, "cliff"))
        }
    }
}

/// The cliffs of a schedule: `36 monthly tranches of 11.11M`, `6 tranches of 45.00K to 112.50K`.
fn tranches(of: &AllocationSchedule) -> String {
    let interval = INTERVALS.iter().find(|interval| of.period.as_deref() == Some(interval.noun));
    let period = interval.map(|interval| format!("{} ", interval.adjective)).unwrap_or_default();
    let sizes = match (of.each, of.least, of.most) {
        (Some(each), ..) => format!(" of {}", amount(each)),
        (None, Some(least), Some(most)) => {
            let (least, most) = two_amounts(least, most);
            format!(" of {least} to {most}")
        }
        _ => String::new(),
    };
    format!("{} {period}tranches{sizes}", of.count.unwrap_or(0))
}
