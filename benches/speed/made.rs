//! Made-up tokens from the bundled schedules, shifted in time and scaled in size. The same number always gives the same token.

use std::{fs, path::PathBuf};

use anyhow::Context;
use chrono::TimeDelta;
use cliffwatch::model::{
    supply::{Timestamp, TokenId},
    wire::{Maybe, TokenItem, UnlockEvent},
};

/// The average number of tranches per made-up token.
pub const TRANCHES_EACH: usize = 100;

/// Bundled schedules, longest first.
pub struct Schedules(Vec<Vec<UnlockEvent>>);

/// The folder of the bundled schedules.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/unlock-events")
}

/// All bundled schedules: token, events, and file text.
pub fn bundled() -> anyhow::Result<Vec<(TokenId, Vec<UnlockEvent>, String)>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let read = |path: PathBuf| {
        let token = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path)?;
        let events = serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        Ok((TokenId::from(token), events, text))
    };
    files.into_iter().map(read).collect()
}

/// The number of tranches in a schedule.
pub fn tranches(events: &[UnlockEvent]) -> usize {
    let of = |event: &UnlockEvent| {
        event.cliff_unlocks.get().map_or(0, |cliffs| cliffs.allocation_breakdown.items().len())
            + event.linear_unlocks.get().map_or(0, |linears| linears.allocation_breakdown.items().len())
    };
    events.iter().map(of).sum()
}

impl Schedules {
    /// Reads the longest bundled schedules, so many that they have [`TRANCHES_EACH`] tranches on average.
    pub fn read() -> anyhow::Result<Self> {
        let mut schedules: Vec<Vec<UnlockEvent>> = bundled()?.into_iter().map(|(_, events, _)| events).collect();
        schedules.sort_by_key(|events| std::cmp::Reverse(tranches(events)));
        let mut total = 0;
        let enough = schedules.iter().enumerate().position(|(index, events)| {
            total += tranches(events);
            total < TRANCHES_EACH * (index + 1)
        });
        schedules.truncate(enough.unwrap_or(schedules.len()));
        Ok(Self(schedules))
    }

    /// The slug of a made-up token.
    pub fn id(number: usize) -> TokenId {
        TokenId::from(format!("token-{number:05}"))
    }

    /// The row of a made-up token in the token list.
    pub fn item(number: usize) -> anyhow::Result<TokenItem> {
        Ok(serde_json::from_value(serde_json::json!({
            "id": Self::id(number).as_str(), "name": format!("Token {number}"), "symbol": format!("T{number}"), "listedMethod": "INTERNAL",
            "marketCap": 1e8, "circulatingSupply": 1e9, "maxSupply": 1e10, "hasBurn": false, "hasBuyback": false,
            "lastUpdatedDate": "2026-01-01T00:00:00Z",
        }))?)
    }

    /// The schedule of a made-up token, with all prices multiplied by `price`.
    pub fn events(&self, number: usize, price: f64) -> Vec<UnlockEvent> {
        let (copy, source) = (number / self.0.len(), number % self.0.len());
        let by = TimeDelta::days(i64::try_from(copy % 365).unwrap_or_default());
        let size = 1.0 + (copy % 97) as f64 / 100.0;
        let mut events = self.0.get(source).cloned().unwrap_or_default();
        for event in &mut events {
            event.token_name = format!("Token {number}").into();
            event.token_symbol = format!("T{number}").into();
            alter(event, by, size, price);
        }
        events
    }
}

/// Shifts an event in time, and multiplies its amounts by `size` and its prices by `price`.
pub fn alter(event: &mut UnlockEvent, by: TimeDelta, size: f64, price: f64) {
    let moved = |at: &mut Maybe<Timestamp>| {
        if let Some(at) = at.get_mut() {
            *at += by;
        }
    };
    let times = |number: &mut Maybe<f64>, factor: f64| {
        if let Some(number) = number.get_mut() {
            *number *= factor;
        }
    };
    moved(&mut event.unlock_date);
    if let Some(cliffs) = event.cliff_unlocks.get_mut() {
        times(&mut cliffs.cliff_amount, size);
        times(&mut cliffs.cliff_value, size * price);
        times(&mut cliffs.value_to_market_cap, size);
        for part in cliffs.allocation_breakdown.get_mut().into_iter().flatten() {
            moved(&mut part.unlock_date);
            times(&mut part.cliff_amount, size);
            times(&mut part.cliff_value, size * price);
            times(&mut part.reference_price, price);
        }
    }
    if let Some(linears) = event.linear_unlocks.get_mut() {
        times(&mut linears.linear_amount, size);
        times(&mut linears.linear_value, size * price);
        for part in linears.allocation_breakdown.get_mut().into_iter().flatten() {
            moved(&mut part.begin_date);
            moved(&mut part.end_date);
            times(&mut part.linear_amount, size);
            times(&mut part.linear_value, size * price);
            times(&mut part.reference_price, price);
        }
    }
}
