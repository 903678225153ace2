//! What an analyst would say: who, how much, from when to when, and what stayed. Every amount is the sum of the parts that it names.

use std::collections::{BTreeMap, BTreeSet};

use super::{ScheduleComparison, distinct};
use crate::diff::{
    align::{DAY_MS, SCATTER_MS, TrancheGroup},
    close,
    tranche::{Tranche, TrancheForm},
};
use model::{
    format,
    supply::{Precision, Timestamp},
};

/// A month of the calendar on average, milliseconds: rates are told by the month.
const MONTH_MS: f64 = 30.436_875 * 86_400_000.0;

/// `20.00M of Team (2.00% of supply)`; the amounts apart where they are several. The share is left out where the supply is unknown.
pub(super) fn holding(compared: &ScheduleComparison<'_>, all: &[Tranche<'_>], of: &[usize]) -> String {
    let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
    let mut is_known = false;
    for k in of {
        is_known |= all[*k].amount.is_some();
        *by_name.entry(all[*k].name).or_default() += all[*k].amount.unwrap_or(0.0);
    }
    let mut parts: Vec<(&str, f64)> = by_name.into_iter().collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let names = format::names(parts.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()));
    let total: f64 = parts.iter().map(|(_, amount)| amount).sum();
    match (is_known, names.is_empty()) {
        (true, false) => format!("{} of {names}{}", format::amount(total), share(compared, total)),
        (true, true) => format!("{}{}", format::amount(total), share(compared, total)),
        (false, false) => names,
        (false, true) => "an unknown amount".to_owned(),
    }
}

/// Names of the tranches' allocations, the largest first.
pub(super) fn names_of(all: &[Tranche<'_>], of: &[usize]) -> String {
    let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
    for k in of {
        *by_name.entry(all[*k].name).or_default() += all[*k].amount.unwrap_or(0.0);
    }
    let mut parts: Vec<(&str, f64)> = by_name.into_iter().filter(|(name, _)| !name.is_empty()).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let names = format::names(parts.iter().map(|(name, _)| *name));
    if names.is_empty() { "the unlock".to_owned() } else { names }
}

/// ` (2.00% of supply)`, where the supply is known.
pub(super) fn share(compared: &ScheduleComparison<'_>, amount: f64) -> String {
    let share = compared.supply.filter(|supply| *supply > 0.0).map(|supply| amount / supply * 100.0);
    share.filter(|share| share.is_finite()).map_or_else(String::new, |share| format!(" ({} of supply)", format::percent(share)))
}

/// Cliffs that were cut or joined: `Team: 30.00M on 1 Mar 2026 became 10.00M on 1 Mar 2026 and 20.00M on 1 Apr 2026`.
pub(super) fn cut_or_joined(compared: &ScheduleComparison<'_>, old: &[usize], new: &[usize]) -> String {
    let side = |all: &[Tranche<'_>], of: &[usize]| {
        let mut by_date: BTreeMap<i64, (f64, &Tranche<'_>)> = BTreeMap::new();
        for k in of {
            by_date.entry(all[*k].at).or_insert((0.0, &all[*k])).0 += all[*k].amount.unwrap_or(0.0);
        }
        let said: Vec<String> = by_date.values().map(|(sum, t)| format!("{} {}", format::amount(*sum), on(t))).collect();
        match &said[..] {
            [] => String::new(),
            [one] => one.clone(),
            several if several.len() <= 4 => {
                let (last, first) =
                    several.split_last().map_or((String::new(), String::new()), |(l, f)| (l.clone(), f.join(", ")));
                format!("{first} and {last}")
            }
            several => format!("{} unlocks", several.len()),
        }
    };
    format!("{}: {} became {}", names_of(compared.new, new), side(compared.old, old), side(compared.new, new))
}

/// `Team: until 1 Jun 2031 instead of 1 Jun 2027, 10.00M a month instead of 25.00M a month; total (480.00M) as before`.
pub(super) fn restructured(compared: &ScheduleComparison<'_>, groups: &[TrancheGroup]) -> String {
    let old: Vec<usize> = groups.iter().flat_map(|group| group.0.iter().copied()).collect();
    let new: Vec<usize> = groups.iter().flat_map(|group| group.1.iter().copied()).collect();
    let (from, to) = (span(compared.old, &old), span(compared.new, &new));
    let (Some((begin, end)), Some((new_begin, new_end))) = (from, to) else {
        return format!("{}: timed otherwise", names_of(compared.new, &new));
    };
    let day = |at: i64| {
        Timestamp::from_timestamp_millis(at).filter(|at| at.timestamp() != 0).map_or_else(|| "no date".to_owned(), format::day)
    };
    let when = if day(end) != day(new_end) && day(begin) != day(new_begin) {
        format!("from {} to {} instead of from {} to {}", day(new_begin), day(new_end), day(begin), day(end))
    } else if day(end) != day(new_end) {
        format!("until {} instead of {}", day(new_end), day(end))
    } else if day(begin) != day(new_begin) {
        format!("from {} on instead of {}", day(new_begin), day(begin))
    } else {
        format!("otherwise until {}", day(end))
    };
    let how = other_pace(compared, &old, &new);
    let sum = |all: &[Tranche<'_>], of: &[usize]| of.iter().filter_map(|k| all[*k].amount).sum::<f64>();
    let (before, after) = (sum(compared.old, &old), sum(compared.new, &new));
    let total = if close(before, after, 1e-6) {
        format!("total ({}{}) as before", format::amount(after), share(compared, after).replace(" (", ", ").replace(')', ""))
    } else {
        // The other amount is told apart.
        format!("{} in all", format::amount(after))
    };
    format!("{}: {when}{how}; {total}", names_of(compared.new, &new))
}

/// First and last instant of tranches, ends of linear segments included.
fn span(all: &[Tranche<'_>], of: &[usize]) -> Option<(i64, i64)> {
    let begin = of.iter().map(|k| all[*k].at).min()?;
    let end = of.iter().map(|k| all[*k].end.unwrap_or(all[*k].at)).max()?;
    Some((begin, end))
}

/// `, 10.00M a month instead of 25.00M a month`; empty where it is as before.
pub(super) fn other_pace(compared: &ScheduleComparison<'_>, old: &[usize], new: &[usize]) -> String {
    let (before, after) = (pace(compared.old, old), pace(compared.new, new));
    // Where both are even nobody needs to hear it twice.
    let plain = |pace: &str| pace.trim_start_matches("evenly ").to_owned();
    match before.starts_with("evenly ") && after.starts_with("evenly ") {
        _ if before == after => String::new(),
        true => format!(", {} instead of {}", plain(&after), plain(&before)),
        false => format!(", {after} instead of {before}"),
    }
}

/// How tranches unlock: `all at once`, `25.00M a month`, `evenly 25.00M a month`, `2.50M at once and the rest evenly`, `in 12 steps`.
fn pace(all: &[Tranche<'_>], of: &[usize]) -> String {
    let linears: Vec<&Tranche<'_>> = of.iter().map(|k| &all[*k]).filter(|t| t.form == TrancheForm::Linear).collect();
    let mut cliffs: BTreeMap<i64, f64> = BTreeMap::new();
    for t in of.iter().map(|k| &all[*k]).filter(|t| t.form == TrancheForm::Cliff) {
        *cliffs.entry(t.at).or_default() += t.amount.unwrap_or(0.0);
    }
    let segments: BTreeSet<(i64, Option<i64>)> = linears.iter().map(|t| (t.at, t.end)).collect();
    let evenly = || {
        let amount: f64 = linears.iter().filter_map(|t| t.amount).sum();
        match (segments.len(), linears.first().and_then(|t| Some((t.at, t.end?)))) {
            (1, Some((at, end))) => rate(amount, end - at),
            (n, _) => format!("in {n} linear segments"),
        }
    };
    match (cliffs.len(), segments.len()) {
        (0, _) => evenly(),
        (1, 0) => "all at once".to_owned(),
        (_, 0) => {
            let step = steps(&cliffs.keys().copied().collect::<Vec<_>>());
            let amounts: Vec<f64> = cliffs.values().copied().collect();
            let first = amounts.first().copied().unwrap_or(0.0);
            let are_equal = amounts.iter().all(|amount| close(*amount, first, 0.02));
            match step {
                Some((each, _)) if are_equal => format!("{} {each}", format::amount(first)),
                Some((_, every)) => format!("in {} unequal {every} steps", cliffs.len()),
                None if are_equal => format!("in {} steps of {}", cliffs.len(), format::amount(first)),
                None => format!("in {} steps", cliffs.len()),
            }
        }
        (1, _) => format!("{} at once and the rest evenly", format::amount(cliffs.values().sum())),
        (n, _) => format!("in {n} steps and {}", format::count(segments.len(), "linear segment")),
    }
}

/// An amount over a time: `evenly 10.00M a month`, `evenly 43.10M a day` below two months.
fn rate(amount: f64, over_ms: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
    let (over, day) = (over_ms as f64, DAY_MS as f64);
    if over <= 0.0 {
        return "all at once".to_owned();
    }
    if over >= 2.0 * MONTH_MS {
        format!("evenly {} a month", format::amount(amount / over * MONTH_MS))
    } else if over > day {
        format!("evenly {} a day", format::amount(amount / over * day))
    } else {
        "within a day".to_owned()
    }
}

/// The regular step of dates, in words: `a month`, `monthly`. None where there is none.
fn steps(dates: &[i64]) -> Option<(&'static str, &'static str)> {
    let gaps: Vec<i64> = dates.windows(2).map(|two| two[1] - two[0]).collect();
    let is_about = |days: i64, slack: i64| gaps.iter().all(|gap| (gap - days * DAY_MS).abs() <= slack * DAY_MS);
    [
        ("a day", "daily", 1, 0),
        ("a week", "weekly", 7, 1),
        ("a month", "monthly", 30, 3),
        ("a quarter", "quarterly", 91, 4),
        ("every half year", "half-yearly", 182, 5),
        ("a year", "yearly", 365, 3),
    ]
    .into_iter()
    .find(|(_, _, days, slack)| !gaps.is_empty() && is_about(*days, *slack))
    .map(|(each, adjective, ..)| (each, adjective))
}

/// `until 19 Sep 2034 instead of 29 Nov 2027`, where the tranches end on another day; empty where they do not.
pub(super) fn other_end(compared: &ScheduleComparison<'_>, old: &[usize], new: &[usize]) -> String {
    let (Some((begin, end)), Some((new_begin, new_end))) = (span(compared.old, old), span(compared.new, new)) else {
        return String::new();
    };
    let day = |at: i64| Timestamp::from_timestamp_millis(at).map_or_else(String::new, format::day);
    let mut said = String::new();
    if (begin - new_begin).abs() >= DAY_MS {
        said.push_str(&format!(", from {} on instead of {}", day(new_begin), day(begin)));
    }
    if (end - new_end).abs() >= DAY_MS {
        said.push_str(&format!(", until {} instead of {}", day(new_end), day(end)));
    }
    said
}

/// When a tranche is due, for a sentence.
pub(super) fn on(t: &Tranche<'_>) -> String {
    if t.at == 0 {
        return "without a date".to_owned();
    }
    match t.precision() {
        Precision::Month => format!("in {}", format::month(t.time())),
        Precision::ToBeDetermined => "on a date to be determined".to_owned(),
        _ => format!("on {}", format::day(t.time())),
    }
}

/// When several tranches are due: `on 5 Sep 2022`, `from 16 Jun 2021 to 1 Jul 2025`.
pub(super) fn due(tranches: &[&Tranche<'_>]) -> String {
    let Some(first) = tranches.iter().min_by_key(|t| t.at) else { return String::new() };
    let last = tranches.iter().map(|t| t.end.unwrap_or(t.at)).max().unwrap_or(first.at);
    if first.at == last {
        return on(first);
    }
    let day = |at: i64| Timestamp::from_timestamp_millis(at).map_or_else(String::new, format::day);
    format!("from {} to {}", if first.at == 0 { "no date".to_owned() } else { day(first.at) }, day(last))
}

/// A date before and one after, both as exactly as the change needs.
pub(super) fn dates(from: &Tranche<'_>, to: &Tranche<'_>) -> String {
    from_to((from.time(), from.precision()), (to.time(), to.precision()))
}

/// `from 1 to 15 May 2027`, `from 12 Mar 2026, 09:00 UTC to …` within a day, `from March 2026 to May 2026` where only months are known.
pub(super) fn from_to((from, from_precision): (Timestamp, Precision), (to, to_precision): (Timestamp, Precision)) -> String {
    if from.date_naive() == to.date_naive() {
        return format!("from {} to {}", format::instant(from), format::instant(to));
    }
    let say = |at: Timestamp, precision: Precision| match precision {
        Precision::Month if !format::same_month(from, to) => format::month(at),
        Precision::ToBeDetermined => "a date to be determined".to_owned(),
        _ if at.timestamp() == 0 => "no date".to_owned(),
        _ => format::day(at),
    };
    let is_day = |precision: Precision| !matches!(precision, Precision::ToBeDetermined);
    if from < to && format::same_month(from, to) && from.timestamp() != 0 && is_day(from_precision) && is_day(to_precision) {
        return format!("from {} to {}", from.format("%-d"), format::day(to));
    }
    format!("from {} to {}", say(from, from_precision), say(to, to_precision))
}

/// The names of givers and receivers: `1.50M of New Order Treasury go to Treasury`.
pub(super) fn transfer(compared: &ScheduleComparison<'_>, amount: f64, givers: &[&str], receivers: &[&str]) -> String {
    let names = |names: &[&str]| format::names(distinct(names.iter().copied()));
    format!("{} of {}{} go to {}", format::amount(amount), names(givers), share(compared, amount), names(receivers))
}

/// Whether begin and end of a linear segment both moved, and not together.
pub(super) fn is_stretched(old: &Tranche<'_>, new: &Tranche<'_>) -> bool {
    let (Some(from), Some(to)) = (old.end, new.end) else { return false };
    let (begin, end) = (new.at - old.at, to - from);
    begin != 0 && end != 0 && (end - begin).abs() > SCATTER_MS
}
