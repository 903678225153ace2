//! Other amounts on the same dates: runs of equal changes, the first ones in full.

use std::collections::BTreeMap;

use super::pace::{is_close, regular_interval};
use super::tranches::{MAX_UNEQUAL, TrancheFacts, TranchesChange, on};
use super::two_amounts;
use crate::phrase::{count, day, month};
use crate::{Precision, Timestamp};

/// The number of changed amounts that a sentence names.
const MAX_RUNS: usize = 3;

/// The amount of one date, or of one linear unlock, before and after the change.
struct Step<'a> {
    tranche: &'a TrancheFacts,
    from: f64,
    to: f64,
}

/// Tokens by instant and end, with one of their tranches.
type AmountsByDate<'a> = BTreeMap<(Option<Timestamp>, Option<Timestamp>), (f64, &'a TrancheFacts)>;

/// The amounts that changed on the same dates: `112.50K in May 2026 instead of 56.25K, then 45.00K instead of 56.25K per quarter`. `None` if an
/// amount is not known, if nothing changed, or if too many amounts changed differently.
pub(super) fn other_amounts(TranchesChange { before, after }: &TranchesChange) -> Option<String> {
    let (was, is) = (by_date(before)?, by_date(after)?);
    let steps: Vec<Step<'_>> =
        is.iter().filter_map(|(at, (to, tranche))| Some(Step { tranche, from: was.get(at)?.0, to: *to })).collect();
    let mut runs: Vec<Vec<Step<'_>>> = Vec::new();
    let mut is_continued = false;
    for step in steps {
        if is_close(step.from, step.to, MAX_UNEQUAL) {
            is_continued = false;
            continue;
        }
        let is_alike = |last: &Step<'_>| {
            is_close(last.from, step.from, MAX_UNEQUAL) && is_close(last.to, step.to, MAX_UNEQUAL) && !step.tranche.is_linear
        };
        match runs.last_mut().filter(|run| is_continued && run.last().is_some_and(is_alike)) {
            Some(run) => run.push(step),
            None => runs.push(vec![step]),
        }
        is_continued = true;
    }
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return summary(&runs);
    }
    Some(runs.iter().map(|run| text(run)).collect::<Vec<_>>().join(", then "))
}

fn by_date(tranches: &[TrancheFacts]) -> Option<AmountsByDate<'_>> {
    let mut amounts: AmountsByDate<'_> = BTreeMap::new();
    for tranche in tranches {
        amounts.entry((tranche.at, tranche.end)).or_insert((0.0, tranche)).0 += tranche.amount?;
    }
    Some(amounts)
}

/// `112.50K in May 2026 instead of 56.25K`, `45.00K instead of 56.25K per quarter`.
fn text(run: &[Step<'_>]) -> String {
    let [first, .., last] = run else {
        return run.first().map(single).unwrap_or_default();
    };
    let (from, to) = two_amounts(first.from, first.to);
    let dates: Option<Vec<Timestamp>> = run.iter().map(|step| step.tranche.at).collect();
    match dates.as_deref().and_then(regular_interval) {
        Some(interval) => format!("{to} instead of {from} per {}", interval.noun),
        None => {
            format!("{to} instead of {from} on each of {} between {} and {}", count(run.len(), "date"), date(first), date(last))
        }
    }
}

fn single(step: &Step<'_>) -> String {
    let (from, to) = two_amounts(step.from, step.to);
    match (step.tranche.is_linear, step.tranche.end) {
        (true, Some(_)) => format!("{to} linearly instead of {from}"),
        _ => format!("{to} {} instead of {from}", on(step.tranche)),
    }
}

/// The changed amounts of many dates: `56.25K to 112.50K instead of 45.00K on 12 dates`. `None` if nothing changed.
fn summary(runs: &[Vec<Step<'_>>]) -> Option<String> {
    let steps: Vec<&Step<'_>> = runs.iter().flatten().collect();
    let range = |side: fn(&Step<'_>) -> f64| {
        let amounts = || steps.iter().map(|step| side(step));
        let (least, most) = (amounts().reduce(f64::min)?, amounts().reduce(f64::max)?);
        let (least, most) = two_amounts(least, most);
        Some(if least == most { least } else { format!("{least} to {most}") })
    };
    let (from, to) = (range(|step| step.from)?, range(|step| step.to)?);
    Some(format!("{to} instead of {from} on {}", count(steps.len(), "date")))
}

fn date(step: &Step<'_>) -> String {
    match (step.tranche.at, step.tranche.precision) {
        (Some(at), Precision::Month) => month(at),
        (Some(at), _) => day(at),
        (None, _) => "no date".to_owned(),
    }
}
