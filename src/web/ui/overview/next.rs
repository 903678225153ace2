//! The list of what comes next, by date: cliff unlocks, and starts, ends, and rate changes of linear unlocks.

use chrono::NaiveDate;
use serde::Serialize;

use super::{AheadRow, NEXT_ROWS};
use model::phrase::linear::{rates_in_tokens, rates_in_usd};
use model::{Ahead, Interval, LargestFirst, Precision, RateRow, Timestamp, UpcomingRow, phrase};

#[derive(Debug, Serialize)]
pub(super) struct NextCard {
    today: String,
    /// By day, the largest first within a day.
    rows: Vec<NextRow>,
    /// The number of all dates in the period.
    total: u64,
}

#[derive(Debug, Serialize)]
struct NextRow {
    /// The nominal date, with a mark if it is inexact.
    date: String,
    /// Whether the nominal date is the current day.
    is_today: bool,
    /// The period that the source confirms. `None` if it confirms the day.
    confirmed: Option<&'static str>,
    /// The same period as a short text.
    period: Option<&'static str>,
    token_id: String,
    symbol: String,
    /// The value of a cliff, or the rates of a linear unlock per day.
    size: String,
    /// The rates in tokens, or the reason why there is no value.
    note: Option<String>,
    /// Percent of market cap. `None` if unknown, and for linear unlocks.
    share: Option<f64>,
    /// The CSS class of the largest recipient. `None` for linear unlocks.
    class: Option<&'static str>,
    /// The recipients of a cliff, or what happens to linear unlocks.
    what: String,
}

/// The position of a row in the list.
type NextPlace = (NaiveDate, LargestFirst);

impl NextCard {
    pub(super) fn of(ahead: &Ahead, now: Timestamp) -> Self {
        let cliffs = ahead.next.iter().filter_map(|row| NextRow::of_cliff(row, now));
        let rates = ahead.rates.iter().filter_map(|row| NextRow::of_rates(row, now));
        let mut all: Vec<(NextPlace, NextRow)> = cliffs.chain(rates).collect();
        all.sort_by_key(|(place, _)| *place);
        all.truncate(usize::try_from(NEXT_ROWS).unwrap_or(usize::MAX));
        let rows = all.into_iter().map(|(_, row)| row).collect();
        Self { today: phrase::day(now), rows, total: ahead.next_total + ahead.rates_total }
    }
}

impl NextRow {
    fn of_cliff(row: &UpcomingRow, now: Timestamp) -> Option<(NextPlace, Self)> {
        let date = phrase::short_date(&row.tracked.record.interval()?);
        let AheadRow { class, recipients, size, unlock, .. } = AheadRow::of(row, now)?;
        let (nominal, precision) = (unlock.unlock_date?, unlock.precision);
        let place = (nominal.date_naive(), LargestFirst(unlock.cliff_value));
        let own = Self {
            date,
            is_today: is_today(nominal, precision, now),
            confirmed: phrase::confirmed_period(precision),
            period: phrase::confirmed_period_brief(precision),
            token_id: unlock.token_id,
            symbol: unlock.symbol,
            size,
            note: unlock.cliff_value.is_none().then(|| phrase::VALUE_UNKNOWN.to_owned()),
            share: unlock.value_to_market_cap,
            class: Some(class),
            what: recipients,
        };
        Some((place, own))
    }

    fn of_rates(row: &RateRow, now: Timestamp) -> Option<(NextPlace, Self)> {
        let RateRow { token, at, precision, step, price, causes } = row;
        let interval = Interval::of(*at, *precision)?;
        let in_tokens = rates_in_tokens(*step, token.symbol());
        let (size, note) = match price {
            Some(price) => (rates_in_usd(*step, *price), in_tokens),
            None => (in_tokens, phrase::VALUE_UNKNOWN.to_owned()),
        };
        let value = price.map(|price| (step.after - step.before).abs() * price);
        let own = Self {
            date: phrase::short_date(&interval),
            is_today: is_today(*at, *precision, now),
            confirmed: phrase::confirmed_period(*precision),
            period: phrase::confirmed_period_brief(*precision),
            token_id: token.id.as_str().to_owned(),
            symbol: token.symbol().to_owned(),
            size,
            note: Some(note),
            share: None,
            class: None,
            what: causes.as_ref().map_or_else(|| "vesting".to_owned(), |causes| format!("vesting: {causes}")),
        };
        Some(((at.date_naive(), LargestFirst(value)), own))
    }
}

fn is_today(nominal: Timestamp, precision: Precision, now: Timestamp) -> bool {
    precision <= Precision::Day && nominal.date_naive() == now.date_naive()
}
