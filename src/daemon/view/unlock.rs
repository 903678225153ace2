//! Upcoming unlocks, cliff and linear.

use serde::Serialize;

use super::PositionView;
use model::phrase::linear::{VestingSpan, vests};
use model::{CliffPiece, LinearRow, ListedUnlock, Precision, Record, ReferencePrice, SumWindow, Timestamp, UpcomingRow, phrase};

/// A row of the list of upcoming unlocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ListedUnlockView {
    Cliff(CliffView),
    Linear(LinearView),
}

impl ListedUnlockView {
    /// Returns `None` if the record is not an unlock.
    #[must_use]
    pub fn of(row: &ListedUnlock, window: SumWindow, now: Timestamp) -> Option<Self> {
        Some(match row {
            ListedUnlock::Cliff(row) => {
                let unlock = UnlockView::of(row, now)?;
                let days_until = unlock.days_until.map(|days| listed_days(days, unlock.precision));
                Self::Cliff(CliffView { unlock: UnlockView { days_until, ..unlock }, counted: row.is_counted(window) })
            }
            ListedUnlock::Linear(row) => {
                let view = LinearView::of(row, now);
                let days_until = view.days_until.map(|days| listed_days(days, view.precision));
                Self::Linear(LinearView { days_until, ..view })
            }
        })
    }
}

/// Returns the number of days in a list: whole days, rounded up, if the time of day is unknown.
fn listed_days(days: f64, precision: Precision) -> f64 {
    // Adding zero turns -0 into 0.
    if precision >= Precision::Day { days.ceil() + 0.0 } else { days }
}

/// A cliff unlock in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CliffView {
    #[serde(flatten)]
    pub unlock: UnlockView,
    /// Whether sums of the window include it. `false` if its date is inexact and its nominal date is outside.
    pub counted: bool,
}

/// A linear unlock in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearView {
    /// The slug of the token.
    pub token_id: String,
    pub symbol: String,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    /// Whether it ends at `end`. `false` if nothing is known about the time from then on.
    pub end_known: bool,
    pub precision: Precision,
    /// The span and rate as text, such as `vests until 3 Mar 2027, 1.20M ARB per day`.
    pub when: String,
    /// Tokens per day.
    pub per_day: Option<f64>,
    /// USD per day at the latest price.
    pub per_day_value: Option<f64>,
    /// The tokens that unlock in the window; without a window, all tokens that are left.
    pub amount_in_window: Option<f64>,
    /// USD of these tokens at the latest price.
    pub value_in_window: Option<f64>,
    /// The time of the price.
    pub price_as_of: Option<Timestamp>,
    /// The value in the window as a percentage of the market cap.
    pub value_to_market_cap: Option<f64>,
    /// The days until the start; zero if it runs.
    pub days_until: Option<f64>,
    /// The name of the allocation; empty if the source does not name it.
    pub allocations: Vec<String>,
    /// The time of the last complete poll of the schedule.
    pub polled_at: Option<Timestamp>,
    /// Only for readers who may see positions. Its multiple is of the tokens that unlock in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionView>,
}

impl LinearView {
    fn of(row: &LinearRow, now: Timestamp) -> Self {
        let LinearRow { starts_at, ends_at, is_end_known, precision, .. } = *row;
        let span = VestingSpan { starts_at, ends_at, is_end_known, precision };
        let value = row.value_of(row.amount);
        let market_cap = row.token.market_cap().filter(|cap| *cap > 0.0);
        Self {
            token_id: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            name: row.token.name().to_owned(),
            start: starts_at,
            end: ends_at,
            end_known: is_end_known,
            precision,
            when: vests(&span, row.per_day, row.token.symbol(), now),
            per_day: row.per_day,
            per_day_value: row.value_of(row.per_day),
            amount_in_window: row.amount,
            value_in_window: value,
            price_as_of: row.price.and_then(|price| price.at),
            value_to_market_cap: value.zip(market_cap).map(|(value, cap)| value / cap * 100.0),
            days_until: Some(model::days(starts_at.max(now) - now)),
            allocations: Some(row.allocation.clone()).filter(|name| !name.is_empty()).into_iter().collect(),
            polled_at: row.read_at,
            position: PositionView::of(&row.token, row.price.map(|price| price.usd), row.amount),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnlockView {
    /// The slug of the token.
    pub token_id: String,
    pub symbol: String,
    pub name: String,
    /// The date of the source, as exact as `precision` says.
    pub unlock_date: Option<Timestamp>,
    pub precision: Precision,
    /// The date as text, such as `in March 2026`.
    pub when: String,
    /// The number of tokens in the cliff unlock.
    pub cliff_amount: Option<f64>,
    /// The value of the cliff unlock in USD.
    pub cliff_value: Option<f64>,
    /// The value as a percentage of the market cap.
    pub value_to_market_cap: Option<f64>,
    /// The days until the earliest possible time of the unlock. In a list, whole days if the time of day is unknown.
    pub days_until: Option<f64>,
    /// The names of the allocations, largest share first.
    pub allocations: Vec<String>,
    pub listed_method: Option<String>,
    /// The time of the last poll that contained the record.
    pub polled_at: Option<Timestamp>,
    /// The record in the format of the API.
    pub record: serde_json::Value,
    /// Only for readers who may see positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionView>,
}

impl UnlockView {
    /// Returns `None` if the record is not an unlock.
    pub fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let Record::Unlock(event) = &row.tracked.record else {
            return None;
        };
        let interval = event.interval();
        let mut parts: Vec<(f64, &str)> = event
            .cliff_unlocks
            .get()
            .map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items())
            .iter()
            .filter_map(|part| Some((part.cliff_amount.copied().unwrap_or_default(), part.allocation_name.as_str()?)))
            .collect();
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Parts without a date are not part of this unlock.
        let dated = CliffPiece::of(event);
        let price = ReferencePrice::latest([&**event]);
        Some(Self {
            token_id: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            name: row.token.name().to_owned(),
            unlock_date: event.unlock_date.copied(),
            precision: event.precision(),
            when: interval.as_ref().map_or_else(|| "not decided".to_owned(), |interval| phrase::when_at(interval, now)),
            cliff_amount: dated.map_or(event.cliff_amount(), |piece| piece.amount),
            cliff_value: dated.map_or(event.cliff_value(), |piece| piece.value),
            value_to_market_cap: event.value_to_market_cap(),
            days_until: interval.map(|interval| interval.days_until(now)),
            allocations: parts.into_iter().map(|(_, name)| name.to_owned()).collect(),
            listed_method: event.listed_method.as_str().or(row.token.item.listed_method.as_str()).map(str::to_owned),
            polled_at: row.read_at,
            record: serde_json::to_value(&row.tracked.record).unwrap_or_default(),
            position: PositionView::of(&row.token, price.map(|price| price.usd), event.amount()),
        })
    }
}
