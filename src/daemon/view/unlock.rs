//! An upcoming unlock.

use serde::Serialize;

use model::{Precision, Record, Timestamp, UpcomingRow, phrase};

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
    /// The days until the earliest possible time of the unlock.
    pub days_until: Option<f64>,
    /// The names of the allocations, largest share first.
    pub allocations: Vec<String>,
    pub listed_method: Option<String>,
    /// The time of the last poll that contained the record.
    pub polled_at: Option<Timestamp>,
    /// The record in the format of the API.
    pub record: serde_json::Value,
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
        Some(Self {
            token_id: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            name: row.token.name().to_owned(),
            unlock_date: event.unlock_date.copied(),
            precision: event.precision(),
            when: interval.as_ref().map_or_else(|| "not decided".to_owned(), |interval| phrase::when_at(interval, now)),
            cliff_amount: event.cliff_amount(),
            cliff_value: event.cliff_value(),
            value_to_market_cap: event.value_to_market_cap(),
            days_until: interval.map(|interval| interval.days_until(now)),
            allocations: parts.into_iter().map(|(_, name)| name.to_owned()).collect(),
            listed_method: event.listed_method.as_str().or(row.token.item.listed_method.as_str()).map(str::to_owned),
            polled_at: row.read_at,
            record: serde_json::to_value(&row.tracked.record).unwrap_or_default(),
        })
    }
}
