//! Coming supply: sums, their parts, what is not known of them, weekly values, and allocation shares.

use chrono::TimeDelta;

use super::{amount, count, day, grouped_count, list_some, name, tokens, usd, when, when_day};
use crate::{
    Interval, KnownSupply, Precision, SupplyAhead, Timestamp, TokenSupply, TotalsCoverage, UnlockSum, digest::SupplyGaps,
    wire::UnlockEvent,
};

/// Allocation shares that a line lists before it counts the others.
const MAX_SHARES: usize = 4;

/// Stands for a USD figure that needs an unknown price.
pub const VALUE_UNKNOWN: &str = "value unknown";

/// States that linear unlocks were not read.
pub const CLIFFS_ONLY: &str = "cliffs only";
/// States that a token has no cliff unlock, and that its linear unlocks were not read.
pub const NO_CLIFFS: &str = "no cliffs; linear unlocks not read";

/// States that a token has linear unlocks ahead but no cliff unlock.
pub const LINEAR_ONLY: &str = "linear only";

/// Stands for facts of a feed that was never read.
pub const NOT_READ: &str = "not read yet";

/// States that a schedule was read and has nothing in a period.
pub const NOTHING_SCHEDULED: &str = "nothing scheduled";

/// The value of a sum: `$5.00M`, `at least $5.00M` if some values are unknown, `value unknown` if all are.
pub fn sum_value(sum: &UnlockSum) -> String {
    at_least(sum.known_value().map(usd), sum.unvalued_count).unwrap_or_else(|| VALUE_UNKNOWN.to_owned())
}

/// The tokens of a sum: `5.00M ARB`, `at least 5.00M ARB` if some amounts are unknown. `None` if all are.
fn sum_tokens(sum: &UnlockSum, symbol: Option<&str>) -> Option<String> {
    at_least(sum.known_amount().map(|amount| tokens(amount, symbol)), sum.unsized_count)
}

fn at_least(known: Option<String>, unknown_count: u64) -> Option<String> {
    known.map(|text| if unknown_count > 0 { format!("at least {text}") } else { text })
}

/// The parts of a total: `$584.00M cliffs + $936.00M linear`. A part without unlocks is left out; empty if both are.
pub fn supply_parts(ahead: &SupplyAhead) -> String {
    parts(ahead, |sum| sum.known_value().map(usd), "unknown value")
}

/// [`supply_parts`] in tokens: `5.00M cliffs + 3.00M linear`.
pub fn supply_parts_in_tokens(ahead: &SupplyAhead) -> String {
    parts(ahead, |sum| sum.known_amount().map(amount), "unknown amount")
}

fn parts(ahead: &SupplyAhead, format: impl Fn(&UnlockSum) -> Option<String>, unknown: &str) -> String {
    let part = |sum: &UnlockSum, noun: &str| {
        let size = || format(sum).map_or_else(|| format!("{noun} of {unknown}"), |size| format!("{size} {noun}"));
        (sum.count > 0).then(size)
    };
    let parts: Vec<String> = part(&ahead.cliff, "cliffs").into_iter().chain(part(&ahead.linear, "linear")).collect();
    parts.join(" + ")
}

/// The name of the only part of a total. `None` if there are two.
const fn only_part(ahead: &SupplyAhead) -> Option<&'static str> {
    match (ahead.cliff.count, ahead.linear.count) {
        (_, 0) => Some("all cliffs"),
        (0, _) => Some("all linear"),
        _ => None,
    }
}

/// A figure of coming supply.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SupplyFigure {
    /// The total: in USD, else in tokens, else what is not known.
    pub total: String,
    /// The parts of the total, or the reason why it has none.
    pub parts: String,
}

/// The coming supply of one token in a period, of which `known` is known.
pub fn supply_figure(ahead: &SupplyAhead, known: KnownSupply, symbol: Option<&str>) -> SupplyFigure {
    let figure = |total: String, parts: String| SupplyFigure { total, parts };
    let sum = ahead.total();
    if known == KnownSupply::None {
        return figure(NOT_READ.to_owned(), String::new());
    }
    if sum.count == 0 {
        let parts = if known == KnownSupply::Cliffs { NO_CLIFFS } else { NOTHING_SCHEDULED };
        return figure("–".to_owned(), parts.to_owned());
    }
    let is_cliffs_only = known == KnownSupply::Cliffs;
    match (sum.known_value(), sum_tokens(&sum, symbol)) {
        (Some(_), _) if is_cliffs_only => figure(sum_value(&sum), CLIFFS_ONLY.to_owned()),
        (Some(_), _) => figure(sum_value(&sum), only_part(ahead).map_or_else(|| supply_parts(ahead), str::to_owned)),
        (None, Some(tokens)) if is_cliffs_only => figure(tokens, format!("{CLIFFS_ONLY}, {VALUE_UNKNOWN}")),
        (None, Some(tokens)) => {
            let parts = only_part(ahead).map_or_else(|| supply_parts_in_tokens(ahead), str::to_owned);
            figure(tokens, format!("{parts}, {VALUE_UNKNOWN}"))
        }
        (None, None) => figure(VALUE_UNKNOWN.to_owned(), supply_parts(ahead)),
    }
}

/// The coming supply of several tokens in a period.
pub fn supply_total_figure(ahead: &SupplyAhead, coverage: &TotalsCoverage) -> SupplyFigure {
    match coverage.known() {
        KnownSupply::None if coverage.tokens > 0 => SupplyFigure { total: NOT_READ.to_owned(), parts: String::new() },
        KnownSupply::None => SupplyFigure { total: "–".to_owned(), parts: "no tokens are watched yet".to_owned() },
        // The others can have unlocks.
        _ if ahead.total().count == 0 && coverage.unread > 0 => {
            SupplyFigure { total: "–".to_owned(), parts: format!("{} {NOT_READ}", grouped_count(coverage.unread, "token")) }
        }
        // Amounts of different tokens do not add up.
        _ if ahead.total().known_value().is_none() => {
            SupplyFigure { total: VALUE_UNKNOWN.to_owned(), parts: supply_parts(ahead) }
        }
        known => supply_figure(ahead, known, None),
    }
}

/// The gaps of a total over several tokens: `2 tokens not read yet`, `3 tokens with cliffs only`. `until` is the end of its longest
/// period, `stale_price` the age from which prices are stale.
pub fn supply_gaps(coverage: &TotalsCoverage, until: Timestamp, stale_price: TimeDelta) -> Vec<String> {
    let of = |tokens: u64, what: &str| (tokens > 0).then(|| format!("{} {what}", grouped_count(tokens, "token")));
    let early = coverage.linear_until.filter(|end| *end < until);
    let oldest = coverage.oldest_price.map(|at| format!("; the oldest is from {}", day(at))).unwrap_or_default();
    let stale = format!("with prices older than {}{oldest}", super::duration(stale_price));
    [
        unread(coverage.unread),
        cliffs_only(coverage.cliffs_only),
        of(coverage.without_price, &format!("without a price ({VALUE_UNKNOWN})")),
        of(coverage.stale_prices, &stale),
        early.map(known_only_until),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// [`supply_gaps`] without prices: which supply before `until` can be missing.
pub fn missing_supply(gaps: &SupplyGaps, until: Timestamp) -> Vec<String> {
    let early = gaps.linear_until.filter(|end| *end < until);
    [unread(gaps.unread), cliffs_only(gaps.cliffs_only), early.map(known_only_until)].into_iter().flatten().collect()
}

fn unread(tokens: u64) -> Option<String> {
    (tokens > 0).then(|| format!("{} {NOT_READ}", grouped_count(tokens, "token")))
}

fn cliffs_only(tokens: u64) -> Option<String> {
    (tokens > 0).then(|| format!("{} with {CLIFFS_ONLY}, because linear unlocks were not read", grouped_count(tokens, "token")))
}

fn known_only_until(end: Timestamp) -> String {
    format!("linear unlocks are known only until {} for at least one token", day(end))
}

/// The end of known linear supply: `linear known until 5 Dec 2026`.
pub fn linear_known_until(end: Timestamp) -> String {
    format!("linear known until {}", day(end))
}

/// Linear release per day: in USD, else in tokens. `None` if nothing is released or the amount is unknown.
pub fn per_day(tokens_per_day: Option<f64>, price: Option<f64>, symbol: Option<&str>) -> Option<String> {
    let per_day = tokens_per_day.filter(|per_day| *per_day > 0.0)?;
    Some(price.map_or_else(|| tokens(per_day, symbol), |price| usd(per_day * price)))
}

/// The linear release of a token per day now: `$31.20M`, `5.00M ARB` without a price, or the reason for no figure.
pub fn linear_per_day(supply: &TokenSupply, symbol: Option<&str>) -> String {
    match supply.known {
        KnownSupply::None => NOT_READ.to_owned(),
        KnownSupply::Cliffs => CLIFFS_ONLY.to_owned(),
        KnownSupply::All => {
            let price = supply.price.map(|price| price.usd);
            let no_figure = || if supply.rate.running > 0 { "unknown amount" } else { "–" };
            per_day(supply.linear_per_day(), price, symbol).unwrap_or_else(|| no_figure().to_owned())
        }
    }
}

/// The next change of a linear release per day: `$2.00M from 1 Dec 2026`, `ends on 1 Dec 2026`. `None` if no change is known.
pub fn rate_change(supply: &TokenSupply, symbol: Option<&str>) -> Option<String> {
    let at = supply.rate.changes_at.filter(|_| supply.known == KnownSupply::All)?;
    let next = per_day(supply.rate.then_per_day, supply.price.map(|price| price.usd), symbol);
    Some(next.map_or_else(|| format!("ends on {}", day(at)), |next| format!("{next} from {}", day(at))))
}

/// The period that the source confirms instead of a day: `the source confirms only the month`. `None` for a day or an instant.
pub fn confirmed_period(precision: Precision) -> Option<&'static str> {
    match precision {
        Precision::Month => Some("the source confirms only the month"),
        Precision::Week => Some("the source confirms only the week"),
        _ => None,
    }
}

/// [`confirmed_period`] for a table: `month only`.
pub fn confirmed_period_brief(precision: Precision) -> Option<&'static str> {
    match precision {
        Precision::Month => Some("month only"),
        Precision::Week => Some("week only"),
        _ => None,
    }
}

/// A cliff unlock whose nominal date has passed although it can still happen: `expected 16 Nov, not confirmed`.
pub fn expected(nominal: Timestamp, now: Timestamp) -> String {
    if nominal.date_naive() == now.date_naive() {
        return "expected today, not confirmed".to_owned();
    }
    format!("expected {}, not confirmed", nominal.format("%-d %b"))
}

/// Unlocks that may fall into a period: `plus up to 2 unlocks ($5.00M) with an inexact date`. `None` for an empty sum.
pub fn inexact_unlocks(sum: &UnlockSum) -> Option<String> {
    (sum.count > 0).then(|| format!("plus up to {} ({}) with an inexact date", count(sum.count, "unlock"), sum_value(sum)))
}

/// The supply of each coming week, by the first day of the week: `By week: 9 Mar $1.20M, 6 Apr $3.10M`. In tokens if no value is known.
pub fn weeks_ahead(weeks: &[SupplyAhead], known: KnownSupply, now: Timestamp) -> String {
    if known == KnownSupply::None {
        return super::capitalized(NOT_READ);
    }
    let in_tokens = is_in_tokens(weeks);
    let week = |(index, week): (usize, &SupplyAhead)| {
        let sum = week.total();
        if sum.count == 0 {
            return None;
        }
        let first_day = now.checked_add_signed(TimeDelta::weeks(i64::try_from(index).ok()?))?;
        let size = if in_tokens { sum_tokens(&sum, None) } else { None };
        Some(format!("{} {}", first_day.format("%-d %b"), size.unwrap_or_else(|| sum_value(&sum))))
    };
    let sizes: Vec<String> = weeks.iter().enumerate().filter_map(week).collect();
    let note = if known == KnownSupply::Cliffs { ", cliffs only" } else { "" };
    if sizes.is_empty() {
        return format!("{} in the next {} weeks{note}", super::capitalized(NOTHING_SCHEDULED), weeks.len());
    }
    format!("By week{note}: {}", sizes.join(", "))
}

/// Returns whether sums are shown in tokens, because none of their values is known.
pub fn is_in_tokens(sums: &[SupplyAhead]) -> bool {
    let all = sums.iter().fold(UnlockSum::default(), |all, sum| all.plus(sum.total()));
    all.known_value().is_none() && all.known_amount().is_some()
}

/// The allocation shares of an event, largest first: `Team 92.65M and Investors 30.00M until 1 Jan 2027`. A linear unlock states its
/// end.
pub fn allocation_shares(event: &UnlockEvent) -> String {
    let cliffs = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let linears = event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
    let share = |allocation: Option<&str>, tokens: Option<f64>, end: Option<Timestamp>| {
        let tokens = tokens.unwrap_or_default();
        let end = end.map(|end| format!(" until {}", day(end))).unwrap_or_default();
        (tokens, format!("{} {}{end}", name(allocation.unwrap_or_default()), amount(tokens)))
    };
    let cliffs = cliffs.iter().map(|row| share(row.allocation_name.as_str(), row.cliff_amount.copied(), None));
    let linears =
        linears.iter().map(|row| share(row.allocation_name.as_str(), row.linear_amount.copied(), row.end_date.copied()));
    let mut shares: Vec<(f64, String)> = cliffs.chain(linears).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shares: Vec<String> = shares.into_iter().map(|(_, text)| text).collect();
    list_some(&shares, MAX_SHARES, 0)
}

/// The next cliff unlock: `next: 3.00M, $5.00M, on 9 Mar 2026, 12:00 UTC`.
pub fn next_cliff(tokens: f64, value_usd: Option<f64>, interval: &Interval) -> String {
    let value = value_usd.map(|value| format!(", {}", usd(value))).unwrap_or_default();
    format!("next: {}{value}, {}", amount(tokens), when(interval))
}

/// [`next_cliff`] without value and time of day: `next: 3.00M, on 9 Mar 2026`.
pub fn next_cliff_short(tokens: f64, interval: &Interval) -> String {
    format!("next: {}, {}", amount(tokens), when_day(interval))
}
