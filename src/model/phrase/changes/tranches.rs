//! Sentences about tranches of a vesting schedule: the recipients, amounts, and dates before and after a change.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::dates::DateSpan;
use super::pace::{LINEAR, is_close, pace};
use super::{steps, times, two_or_unknown, unchanged_rest};
use crate::phrase::{MAX_SUPPLY, TO_BE_DETERMINED, UNKNOWN_AMOUNT, amount, count, day, list, month, names, share, tokens};
use crate::{Precision, Timestamp};

/// The relative difference below which the totals of two schedules of an allocation are equal. Sources round the new amounts.
pub const MAX_ROUNDING: f64 = 1e-4;

/// The relative difference below which the amounts of two tranches are equal. Sources round each amount.
pub(super) const MAX_UNEQUAL: f64 = 1e-3;

/// Split and merged events that a sentence lists before it only counts them.
const MAX_DATES: usize = 4;

/// The number of allocations of which a sentence gives the dates of each.
const MAX_HOLDINGS: usize = 3;

/// The facts of one tranche that sentences need.
#[derive(Clone, Debug, PartialEq)]
pub struct TrancheFacts {
    /// The allocation name as the source writes it. Empty if it gives none.
    pub allocation: String,
    /// Tokens. `None` if unknown.
    pub amount: Option<f64>,
    /// The instant of a cliff unlock or the start of a linear one. `None` if the source gives no date.
    pub at: Option<Timestamp>,
    /// The end of a linear unlock.
    pub end: Option<Timestamp>,
    pub precision: Precision,
    pub is_linear: bool,
}

/// The tranches that a change is about, before and after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranchesChange {
    pub before: Vec<TrancheFacts>,
    pub after: Vec<TrancheFacts>,
}

/// The unit of a token's amounts, with the base of shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScheduleUnit<'a> {
    pub symbol: Option<&'a str>,
    /// Tokens. `None` if unknown.
    pub max_supply: Option<f64>,
}

impl ScheduleUnit<'_> {
    /// An amount in tokens: `11.31M ARB`.
    fn tokens(&self, value: f64) -> String {
        tokens(value, self.symbol)
    }

    /// The share of an amount in parentheses: ` (2.00% of max supply)`. Empty if the supply is unknown.
    fn share(&self, value: f64) -> String {
        self.percent(value).map_or_else(String::new, |share| format!(" ({share})"))
    }

    /// An amount with its share: `20.00M ARB (2.00% of max supply)`.
    pub(super) fn amount_and_share(&self, value: f64) -> String {
        format!("{}{}", self.tokens(value), self.share(value))
    }

    fn percent(&self, value: f64) -> Option<String> {
        let supply = self.max_supply.filter(|supply| *supply > 0.0)?;
        let percent = value / supply * 100.0;
        percent.is_finite().then(|| share(percent, MAX_SUPPLY))
    }

    /// The tokens of some tranches: `20.00M ARB of Team (2.00% of max supply)`.
    pub(super) fn holding(&self, tranches: &[TrancheFacts]) -> String {
        let names = names(by_allocation(tranches).into_iter().map(|(name, _)| name).filter(|name| !name.is_empty()));
        match (total(tranches), names.is_empty()) {
            (Some(total), false) => format!("{} of {names}{}", self.tokens(total), self.share(total)),
            (Some(total), true) => format!("{}{}", self.tokens(total), self.share(total)),
            (None, false) => names,
            (None, true) => UNKNOWN_AMOUNT.to_owned(),
        }
    }

    /// Tranches with their dates: `20.00M ARB of Team, 2 tranches, between 1 Mar 2026 and 1 Apr 2026`.
    ///
    /// Each of a few allocations has its own dates, if these differ: `20.00M ARB of Team, on 1 Mar 2026; 5.00M ARB of Farm, on 1 May 2027`.
    pub(super) fn holding_when_due(&self, tranches: &[TrancheFacts]) -> String {
        let names = by_allocation(tranches);
        let parts: Vec<Vec<TrancheFacts>> = names
            .iter()
            .map(|(name, _)| tranches.iter().filter(|tranche| tranche.allocation == *name).cloned().collect())
            .collect();
        if (2..=MAX_HOLDINGS).contains(&parts.len()) && parts.iter().any(|part| due(part) != due(tranches)) {
            return parts.iter().map(|part| self.holding_when_due(part)).collect::<Vec<_>>().join("; ");
        }
        let of_several = if tranches.len() > 1 && !are_linear(tranches) {
            format!(", {}", count(tranches.len(), "tranche"))
        } else {
            String::new()
        };
        format!("{}{of_several}, {}", self.holding(tranches), due(tranches))
    }

    /// The subject of a sentence about a series: `20.00M ARB of Team, 2 tranches,`, `the whole schedule (480.00M)`.
    pub(super) fn series(&self, tranches: &[TrancheFacts], is_whole_schedule: bool) -> String {
        if is_whole_schedule {
            let total = total(tranches).map(|total| format!(" ({})", amount(total)));
            return format!("the whole schedule{}", total.unwrap_or_default());
        }
        let holding = self.holding(tranches);
        if tranches.len() > 1 { format!("{holding}, {},", count(tranches.len(), "tranche")) } else { holding }
    }

    /// Cliff unlocks that were split or merged: `Team: 30.00M ARB on 1 Mar 2026 were split into 10.00M ARB on 1 Mar 2026 and 20.00M ARB on
    /// 1 Apr 2026`.
    pub(super) fn split_or_merged(&self, TranchesChange { before, after }: &TranchesChange) -> String {
        let side = |tranches: &[TrancheFacts]| {
            let mut by_date: BTreeMap<Option<Timestamp>, (f64, &TrancheFacts)> = BTreeMap::new();
            for tranche in tranches {
                by_date.entry(tranche.at).or_insert((0.0, tranche)).0 += tranche.amount.unwrap_or(0.0);
            }
            if by_date.len() > MAX_DATES {
                return count(by_date.len(), "unlock");
            }
            list(&by_date.values().map(|(sum, tranche)| format!("{} {}", self.tokens(*sum), on(tranche))).collect::<Vec<_>>())
        };
        let verb = if before.len() <= after.len() { "split" } else { "merged" };
        format!("{}: {} were {verb} into {}", allocation_names(after), side(before), side(after))
    }

    /// The same tokens on other dates: `Team: ends on 1 Jun 2031 instead of 1 Jun 2027, 10.00M per month instead of 25.00M per month; the
    /// total of 480.00M ARB (4.80% of max supply) is unchanged`.
    pub(super) fn restructured(&self, tranches: &TranchesChange) -> String {
        let TranchesChange { before, after } = tranches;
        let names = allocation_names(after);
        let (Some(old), Some(new)) = (DateSpan::of(before), DateSpan::of(after)) else { return format!("{names}: other dates") };
        if instants(before) == instants(after)
            && let Some(amounts) = steps::other_amounts(tranches)
        {
            return format!("{names}: {amounts}; {}", self.same_dates_and_total(before, after));
        }
        if let (Some(single), true) = (single_cliff(after), are_linear(before)) {
            return format!("{names}: {}", self.cliff_instead_of_linear(single, tranches));
        }
        let pace = tranches.pace_change();
        let timing = match (old.changes(&new, TimeDelta::zero()), pace.strip_prefix(", ")) {
            (dates, _) if !dates.is_empty() => format!("{}{pace}", dates.join(", ")),
            (_, Some(pace)) => format!("{pace}, {}", new.as_before()),
            (_, None) => format!("other dates in between, {}", new.as_before()),
        };
        format!("{names}: {timing}{}", self.total_change(before, after))
    }

    /// `; the total of 480.00M ARB (4.80% of max supply) is unchanged`. Empty if the totals are not known.
    fn total_change(&self, before: &[TrancheFacts], after: &[TrancheFacts]) -> String {
        match (total(before), total(after)) {
            (Some(was), Some(is)) if is_close(was, is, 1e-6) => {
                format!("; the total of {}{} is unchanged", self.tokens(is), self.share(is))
            }
            (Some(was), Some(is)) if is_close(was, is, MAX_ROUNDING) => {
                format!("; the total of {}{} is unchanged except for rounding", self.tokens(is), self.share(is))
            }
            (Some(was), Some(is)) => format!("; {} in total instead of {}", self.tokens(is), amount(was)),
            _ => String::new(),
        }
    }

    /// `same dates and total (337.50K GGP, 1.50% of max supply)`.
    fn same_dates_and_total(&self, before: &[TrancheFacts], after: &[TrancheFacts]) -> String {
        let share = |value: f64| self.percent(value).map_or_else(String::new, |share| format!(", {share}"));
        match (total(before), total(after)) {
            (Some(was), Some(is)) if is_close(was, is, MAX_ROUNDING) => {
                let rounding = if is_close(was, is, 1e-6) { "" } else { ", except for rounding" };
                format!("same dates and total ({}{}{rounding})", self.tokens(is), share(is))
            }
            (Some(was), Some(is)) => format!("same dates, {} in total instead of {}", self.tokens(is), amount(was)),
            _ => "same dates".to_owned(),
        }
    }

    /// `600.00M ARB in one cliff on 17 Apr 2027 instead of 750.00M linearly at 15.62M per month, between 17 Apr 2023 and 17 Apr 2027`.
    fn cliff_instead_of_linear(&self, single: &TrancheFacts, TranchesChange { before, after }: &TranchesChange) -> String {
        let span = DateSpan::of(before);
        let dates =
            span.map(|span| format!(", between {} and {}", span.text(span.begin), span.text(span.end))).unwrap_or_default();
        let (was, is) = (total(before), total(after));
        let is_kept = was.zip(is).is_some_and(|(was, is)| is_close(was, is, MAX_ROUNDING));
        let tokens = is.map_or_else(|| UNKNOWN_AMOUNT.to_owned(), |is| self.tokens(is));
        let former = was.filter(|_| !is_kept).map(|was| format!("{} ", amount(was))).unwrap_or_default();
        let pace = pace(before);
        let kept = if is_kept { self.total_change(before, after) } else { String::new() };
        format!("{tokens} in one cliff {} instead of {former}{pace}{dates}{kept}", on(single))
    }

    /// Tokens that go to other allocations: `1.50M ARB of New Order Treasury (0.15% of max supply) now go to Treasury`.
    pub(super) fn transfer(&self, value: f64, from: &str, to: &str) -> String {
        format!("{} of {from}{} now go to {to}", self.tokens(value), self.share(value))
    }
}

/// The only cliff of some tranches. `None` if they have several dates or linear unlocks.
fn single_cliff(tranches: &[TrancheFacts]) -> Option<&TrancheFacts> {
    let first = tranches.first()?;
    tranches.iter().all(|tranche| !tranche.is_linear && tranche.at == first.at).then_some(first)
}

/// The distinct instants and spans of tranches.
pub(super) fn instants(tranches: &[TrancheFacts]) -> BTreeSet<(Option<Timestamp>, Option<Timestamp>)> {
    tranches.iter().map(|tranche| (tranche.at, tranche.end)).collect()
}

/// The names of the tranches' allocations, the largest first, or `the unlock` if none has a name.
fn allocation_names(tranches: &[TrancheFacts]) -> String {
    let names = names(by_allocation(tranches).into_iter().map(|(name, _)| name).filter(|name| !name.is_empty()));
    if names.is_empty() { "the unlock".to_owned() } else { names }
}

impl TranchesChange {
    /// `, ends on 19 Sep 2034 instead of 29 Nov 2027`. Empty if the tranches start and end on the same days as before.
    pub(super) fn span_change(&self) -> String {
        let (Some(old), Some(new)) = (DateSpan::of(&self.before), DateSpan::of(&self.after)) else { return String::new() };
        old.changes(&new, TimeDelta::days(1)).into_iter().map(|change| format!(", {change}")).collect()
    }

    /// `, on 1 Jun 2027 instead of on 1 May 2027`: the dates of tokens that went from some allocations to others. Empty if they are the same.
    /// If the givers have other dates as well, `, ends on 1 Jun 2027 instead of 1 May 2027`.
    pub(super) fn transfer_dates(&self, from: &[String], to: &[String]) -> String {
        let of = |side: &[TrancheFacts], names: &[String]| -> Vec<TrancheFacts> {
            side.iter().filter(|tranche| names.contains(&tranche.allocation)).cloned().collect()
        };
        let amount_at = |side: &[TrancheFacts], at: &TrancheFacts| -> f64 {
            let same = side.iter().filter(|other| (&other.allocation, other.at, other.end) == (&at.allocation, at.at, at.end));
            same.filter_map(|tranche| tranche.amount).sum()
        };
        let is_given = |tranche: &TrancheFacts| amount_at(&self.after, tranche) <= amount_at(&self.before, tranche);
        if !of(&self.before, from).iter().chain(&of(&self.after, from)).all(is_given) {
            return self.span_change();
        }
        let (was, is) = (due(&of(&self.before, from)), due(&of(&self.after, to)));
        if was == is || was.is_empty() || is.is_empty() { String::new() } else { format!(", {is} instead of {was}") }
    }

    /// A date before and after the change, no more exact than the source.
    pub(super) fn date_texts(&self, from: Timestamp, to: Timestamp) -> (String, String) {
        let is_in_one_month = month(from) == month(to);
        let text = |at: Timestamp, of: &[TrancheFacts], others: &[TrancheFacts]| {
            let is_month = are_months(of) && !(is_in_one_month && are_months(others));
            if is_month { month(at) } else { day(at) }
        };
        (text(from, &self.before, &self.after), text(to, &self.after, &self.before))
    }

    /// `, until 5 Mar 2029 as before`: the common end of linear unlocks that begin at another time. Empty if they have several ends.
    pub(super) fn same_end(&self) -> String {
        let ends: BTreeSet<Option<Timestamp>> = self.before.iter().chain(&self.after).map(|tranche| tranche.end).collect();
        let span = DateSpan::of(&self.after).filter(|_| ends.len() == 1 && !ends.contains(&None));
        span.map(|span| format!(", until {} as before", span.text(span.end))).unwrap_or_default()
    }

    /// `, from 18 Sep 2026 as before`: the common begin of linear unlocks that end at another time. Empty if they have several begins.
    pub(super) fn same_begin(&self) -> String {
        let begins: BTreeSet<Option<Timestamp>> = self.before.iter().chain(&self.after).map(|tranche| tranche.at).collect();
        let span = DateSpan::of(&self.after).filter(|_| begins.len() == 1 && !begins.contains(&None));
        span.map(|span| format!(", from {} as before", span.text(span.begin))).unwrap_or_default()
    }

    /// `, 10.00M per month instead of 25.00M per month`. Empty if the pace is unchanged.
    pub(super) fn pace_change(&self) -> String {
        let (was, is) = (pace(&self.before), pace(&self.after));
        if was == is {
            return String::new();
        }
        // If both are linear, the word adds nothing.
        let (was, is) = was.strip_prefix(LINEAR).zip(is.strip_prefix(LINEAR)).unwrap_or((&was, &is));
        format!(", {is} instead of {was}")
    }

    /// `Team resized from 10.00M to 5.00M (×0.5), on 1 Mar 2026; the other 10.00M of that unlock remain`, `linear unlock of Team (1 Mar 2026 to
    /// 1 Mar 2028) resized from 10.00M to 5.00M (×0.5)`.
    pub(super) fn resized(&self, ratio: Option<f64>, rest: Option<f64>) -> String {
        let Self { before, after } = self;
        let shown = if after.is_empty() { before } else { after };
        let (names, due, span) = (allocation_names(shown), due(shown), linear_span(shown));
        let rest = unchanged_rest(rest);
        let of_several = |tokens: f64, verb: &str| match &span {
            Some(span) => format!("linear unlock of {names} ({}, {span}) {verb}{rest}", amount(tokens)),
            None if due.starts_with("between") => format!("{names} ({}) {verb} the unlocks {due}{rest}", amount(tokens)),
            None => format!("{names} ({}) {verb} the unlock {due}{rest}", amount(tokens)),
        };
        match (total(before), total(after)) {
            (Some(from), None) => of_several(from, if span.is_some() { "removed" } else { "taken out of" }),
            (None, Some(to)) => of_several(to, if span.is_some() { "added" } else { "added to" }),
            (from, to) => {
                let dates = if before.is_empty() || after.is_empty() { String::new() } else { self.span_change() };
                let (names, dates) = match span {
                    Some(span) if dates.is_empty() => (format!("linear unlock of {names} ({span})"), dates),
                    Some(_) => (format!("linear unlock of {names}"), dates),
                    None if dates.is_empty() => (names, format!(", {due}")),
                    None => (names, dates),
                };
                let (from, to) = two_or_unknown(from, to);
                format!("{names} resized from {from} to {to}{}{dates}{rest}", times(ratio))
            }
        }
    }
}

/// The date of one tranche: `on 5 Sep 2022`, `in March 2026`, `without a date`.
pub(super) fn on(tranche: &TrancheFacts) -> String {
    match (tranche.at, tranche.precision) {
        (_, Precision::ToBeDetermined) => TO_BE_DETERMINED.to_owned(),
        (None, _) => "without a date".to_owned(),
        (Some(at), Precision::Month) => format!("in {}", month(at)),
        (Some(at), _) => format!("on {}", day(at)),
    }
}

/// The dates of several tranches: `on 5 Sep 2022`, `between 16 Jun 2021 and 1 Jul 2025`, `linearly between 16 Jun 2021 and 1 Jul 2025`. Not
/// "from … to …", which would read like a move.
fn due(tranches: &[TrancheFacts]) -> String {
    match (tranches.iter().min_by_key(|tranche| tranche.at), DateSpan::of(tranches)) {
        (Some(first), Some(span)) if span.begin == span.end => on(first),
        (_, Some(span)) => {
            let how = if are_linear(tranches) { "linearly " } else { "" };
            format!("{how}between {} and {}", span.text(span.begin), span.text(span.end))
        }
        _ => String::new(),
    }
}

/// Returns whether all of some tranches are linear unlocks.
pub(super) fn are_linear(tranches: &[TrancheFacts]) -> bool {
    !tranches.is_empty() && tranches.iter().all(|tranche| tranche.is_linear)
}

/// The span of linear unlocks: `28 Jun 2022 to 28 Jun 2026`. `None` for other tranches.
fn linear_span(tranches: &[TrancheFacts]) -> Option<String> {
    let span = DateSpan::of(tranches).filter(|_| are_linear(tranches))?;
    Some(format!("{} to {}", span.text(span.begin), span.text(span.end)))
}

/// Returns whether the source gives only the months of all tranches.
pub(super) fn are_months(tranches: &[TrancheFacts]) -> bool {
    !tranches.is_empty() && tranches.iter().all(|tranche| tranche.precision == Precision::Month)
}

/// Tokens by allocation, the largest first.
fn by_allocation(tranches: &[TrancheFacts]) -> Vec<(&str, f64)> {
    let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
    for tranche in tranches {
        *by_name.entry(&tranche.allocation).or_default() += tranche.amount.unwrap_or(0.0);
    }
    let mut all: Vec<(&str, f64)> = by_name.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    all
}

/// The sum of the known amounts, or `None` if all are unknown.
pub(super) fn total(tranches: &[TrancheFacts]) -> Option<f64> {
    let known: Vec<f64> = tranches.iter().filter_map(|tranche| tranche.amount).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}
