//! One record in a sentence: how much, what happens, when.

use super::linear::rate_step;
use super::{MARKET_CAP, UNKNOWN_AMOUNT, amount, day, share, size, time_until, tokens, usd, when, when_at};
use crate::{Interval, Precision, RateStep, Record, Timestamp, wire::UnlockEvent};

/// A record in a sentence without its token: `$33.15M (2.77% of market cap) unlocks on 16 Mar 2026 (in 7 days)`.
pub fn record(record: &Record, symbol: Option<&str>, now: Timestamp) -> String {
    let interval = record.interval();
    match record {
        Record::Unlock(event) => unlock(event, interval.as_ref(), symbol, now),
        _ => dated(record, symbol, &date(interval.as_ref(), now)),
    }
}

/// [`record`] for a text that is stored at `now` and stays true later: `$33.15M (2.77% of market cap) scheduled to unlock on 16 Mar 2026`.
pub fn stored_record(record: &Record, symbol: Option<&str>, now: Timestamp) -> String {
    let interval = record.interval();
    let date = stored_date(interval.as_ref());
    let Record::Unlock(event) = record else { return dated(record, symbol, &date) };
    if interval.is_some_and(|interval| interval.has_passed(now)) {
        return unlock(event, interval.as_ref(), symbol, now);
    }
    let verb = if is_linear(event) { "scheduled to begin to unlock" } else { "scheduled to unlock" };
    format!("{} {verb} {date}", unlock_size(event, symbol))
}

/// A record other than an unlock, with its date as text.
fn dated(record: &Record, symbol: Option<&str>, date: &str) -> String {
    match record {
        Record::Unlock(event) => format!("{} {date}", unlock_size(event, symbol)),
        Record::Burn(burn) => {
            let size = size(burn.value.copied(), burn.amount.copied(), symbol);
            format!("{size} burned {date}{}", label(burn.burn_event_label.as_str()))
        }
        Record::Buyback(buyback) => {
            let size = size(buyback.value.copied(), buyback.token_amount.copied(), symbol);
            format!("{size} bought back {date}{}", label(buyback.buyback_event_label.as_str()))
        }
        Record::Emission(emission) => {
            let size = size(emission.unlock_value.copied(), emission.unlock_amount.copied(), symbol);
            let day = emission.start_date.copied().map_or_else(|| "an unknown day".to_owned(), day);
            format!("{size} emitted on {day}")
        }
        Record::Allocation(row) => {
            let name = row.allocation_name.as_str().unwrap_or("unnamed");
            let total = row.allocation_amount.copied().map_or_else(|| UNKNOWN_AMOUNT.to_owned(), |total| tokens(total, symbol));
            let locked = row.allocation_locked_amount.copied().map_or_else(|| UNKNOWN_AMOUNT.to_owned(), amount);
            format!("allocation {name}: {total}, {locked} locked")
        }
        Record::Funding(round) => {
            let name = round.round_name.as_str().unwrap_or("funding round");
            let raised = round.total_amount_raised.copied().map_or_else(|| UNKNOWN_AMOUNT.to_owned(), usd);
            let investor = round.investor_name.as_str().map(|name| format!(", with {name}")).unwrap_or_default();
            format!("{name}: {raised} raised {date}{investor}")
        }
    }
}

fn is_linear(event: &UnlockEvent) -> bool {
    event.cliff_amount().is_none() && event.linear_unlocks.get().is_some()
}

/// Value and amount of an unlock.
fn sizes(event: &UnlockEvent) -> (Option<f64>, Option<f64>) {
    match event.linear_unlocks.get().filter(|_| event.cliff_amount().is_none()) {
        Some(linear) => (linear.linear_value.copied(), linear.linear_amount.copied()),
        None => (event.cliff_value(), event.cliff_amount()),
    }
}

/// The size of an unlock with its share: `$33.15M (2.77% of market cap)`.
fn unlock_size(event: &UnlockEvent, symbol: Option<&str>) -> String {
    let (value, amount) = sizes(event);
    let of_market_cap =
        event.value_to_market_cap().map(|percent| format!(" ({})", share(percent, MARKET_CAP))).unwrap_or_default();
    format!("{}{of_market_cap}", size(value, amount, symbol))
}

fn unlock(event: &UnlockEvent, interval: Option<&Interval>, symbol: Option<&str>, now: Timestamp) -> String {
    let (value, amount) = sizes(event);
    let is_plural = value.is_none() && amount.is_some();
    let verb = match (interval.is_some_and(|interval| interval.has_passed(now)), is_linear(event), is_plural) {
        (true, true, _) => "began to unlock",
        (true, false, _) => "unlocked",
        (false, true, true) => "begin to unlock",
        (false, true, false) => "begins to unlock",
        (false, false, true) => "unlock",
        (false, false, false) => "unlocks",
    };
    format!("{} {verb} {}{}", unlock_size(event, symbol), date(interval, now), distance(interval, now))
}

/// The end of linear unlocks in a sentence without its token: `vesting falls from 1.20M to 0 per day (−$3.40M per day) on 12 Mar 2026 (in 7
/// days)`. `price` is in USD per token.
pub fn linear_end(step: Option<RateStep>, price: Option<f64>, interval: Option<&Interval>, now: Timestamp) -> String {
    let is_past = interval.is_some_and(|interval| interval.has_passed(now));
    format!("{} {}{}", rate_step(step, price, is_past), date(interval, now), distance(interval, now))
}

/// [`linear_end`] for a text that is stored at `now` and stays true later.
pub fn stored_linear_end(step: Option<RateStep>, price: Option<f64>, interval: Option<&Interval>, now: Timestamp) -> String {
    let is_past = interval.is_some_and(|interval| interval.has_passed(now));
    format!("{} {}", rate_step(step, price, is_past), stored_date(interval))
}

/// The time until a date: ` (in 7 days)`. Empty if it has passed or is inexact.
fn distance(interval: Option<&Interval>, now: Timestamp) -> String {
    // The text of a month or week says as much as is known.
    let is_exact = |interval: &&Interval| !matches!(interval.precision, Precision::Month | Precision::Week);
    let ahead = interval.filter(is_exact).map(|interval| (interval.days_until(now), interval.precision));
    let distance = ahead.filter(|(days, _)| *days > 0.0).and_then(|(days, precision)| time_until(days, precision));
    distance.map(|distance| format!(" ({distance})")).unwrap_or_default()
}

/// The date of a record at `now`: [`when_at`], or `on a date to be determined`.
pub fn date(interval: Option<&Interval>, now: Timestamp) -> String {
    interval.map_or_else(|| super::TO_BE_DETERMINED.to_owned(), |interval| when_at(interval, now))
}

/// [`date`] for a text that is stored and stays true later.
pub fn stored_date(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| super::TO_BE_DETERMINED.to_owned(), when)
}

fn label(text: Option<&str>) -> String {
    text.filter(|text| !text.trim().is_empty()).map(|text| format!(" ({})", text.trim())).unwrap_or_default()
}
