//! The list of next unlocks, by date: cliff unlocks, and starts, ends, and rate changes of linear unlocks.

use chrono::NaiveDate;
use serde::Serialize;

use super::{AheadRow, NEXT_ROWS};
use daemon::view::PositionView;
use model::phrase::linear::{rates_in_tokens, rates_in_usd, step_value};
use model::{Ahead, Interval, LargestFirst, Precision, RateRow, Timestamp, UpcomingRow, phrase};

#[derive(Debug, Serialize)]
pub(super) struct NextCard {
    today: String,
    /// By day, the largest first within a day.
    rows: Vec<NextRow>,
    /// The number of all dates in the period.
    total: u64,
    has_positions: bool,
}

#[derive(Debug, Serialize)]
pub(in crate::ui) struct NextRow {
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
    /// Whether a linear unlock begins, ends, or changes its rate.
    is_linear: bool,
    /// The value of a cliff, or the difference of a linear unlock per day, with its sign.
    size: String,
    /// The unit of a difference, or the reason why there is no value.
    note: Option<String>,
    /// Percent of market cap. `None` if unknown, and for linear unlocks.
    share: Option<f64>,
    /// The CSS class of the largest recipient. `None` for linear unlocks.
    class: Option<&'static str>,
    /// The recipients of a cliff, or what happens to a linear unlock.
    what: String,
    /// The allocations that begin, end, or change.
    details: Option<String>,
    /// `None` without a position, and for readers who must not see it.
    position: Option<PositionCell>,
    /// The rates of a linear unlock in tokens, if `what` has them in USD.
    in_tokens: Option<String>,
}

/// The position in the token of a row.
#[derive(Debug, Serialize)]
pub(in crate::ui) struct PositionCell {
    /// The value, or the tokens without a price.
    size: String,
    /// The size of the unlock, as a multiple of the position. `None` for linear unlocks.
    multiple: Option<String>,
    /// The amount and its share of the circulating supply.
    details: String,
}

impl PositionCell {
    pub(in crate::ui) fn of(position: &PositionView, symbol: &str) -> Self {
        Self { size: position.size(symbol), multiple: position.multiple(), details: position.details(symbol) }
    }
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
        let rows: Vec<NextRow> = all.into_iter().map(|(_, row)| row).collect();
        let has_positions = have_positions(&rows);
        Self { today: phrase::day(now), rows, total: ahead.next_total + ahead.rates_total, has_positions }
    }
}

/// Returns the rows of cliff unlocks, in their order.
pub(in crate::ui) fn cliff_rows(cliffs: &[UpcomingRow], now: Timestamp) -> Vec<NextRow> {
    cliffs.iter().filter_map(|row| NextRow::of_cliff(row, now)).map(|(_, row)| row).collect()
}

/// Returns the rows of changes of linear unlocks, in their order.
pub(in crate::ui) fn rate_rows(rates: &[RateRow], now: Timestamp) -> Vec<NextRow> {
    rates.iter().filter_map(|row| NextRow::of_rates(row, now)).map(|(_, row)| row).collect()
}

/// Returns whether a list needs the column of positions.
pub(in crate::ui) fn have_positions(rows: &[NextRow]) -> bool {
    rows.iter().any(|row| row.position.is_some())
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
            position: unlock.position.as_ref().map(|position| PositionCell::of(position, &unlock.symbol)),
            symbol: unlock.symbol,
            is_linear: false,
            size,
            note: unlock.cliff_value.is_none().then(|| phrase::VALUE_UNKNOWN.to_owned()),
            share: unlock.value_to_market_cap,
            class: Some(class),
            what: recipients,
            details: None,
            in_tokens: None,
        };
        Some((place, own))
    }

    fn of_rates(row: &RateRow, now: Timestamp) -> Option<(NextPlace, Self)> {
        let RateRow { token, at, precision, step, price, causes } = row;
        let interval = Interval::of(*at, *precision)?;
        let in_tokens = rates_in_tokens(*step, token.symbol());
        let (size, note, what) = match price {
            Some(price) => (step_value(*step, *price), "per day", rates_in_usd(*step, *price)),
            None => ("–".to_owned(), phrase::VALUE_UNKNOWN, in_tokens.clone()),
        };
        let value = price.map(|price| (step.after - step.before).abs() * price);
        let own = Self {
            date: phrase::short_date(&interval),
            is_today: is_today(*at, *precision, now),
            confirmed: phrase::confirmed_period(*precision),
            period: phrase::confirmed_period_brief(*precision),
            token_id: token.id.as_str().to_owned(),
            symbol: token.symbol().to_owned(),
            position: PositionView::of(token, *price, None).map(|position| PositionCell::of(&position, token.symbol())),
            is_linear: true,
            size,
            note: Some(note.to_owned()),
            share: None,
            class: None,
            what,
            details: causes.clone(),
            in_tokens: price.map(|_| in_tokens),
        };
        Some(((at.date_naive(), LargestFirst(value)), own))
    }
}

fn is_today(nominal: Timestamp, precision: Precision, now: Timestamp) -> bool {
    precision <= Precision::Day && nominal.date_naive() == now.date_naive()
}
