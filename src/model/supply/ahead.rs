//! Coming supply: what unlocks in a time window. The one definition for pages, API, commands, digests, metrics, rules, and backtests.
//!
//! A cliff unlock counts with its whole amount if its nominal date is in the window. A linear unlock counts with the share of its
//! time that is in the window. An unlock whose month, week, or day is not over, but whose nominal date is outside the window, may
//! still happen in it: it is summed separately and never part of a total.
//!
//! Amounts are in tokens and values in USD. The value of a cliff unlock is the source's; a linear unlock is valued at the latest
//! [`ReferencePrice`] of its token.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::feed::FeedState;
use super::known::{LinearAhead, SupplyCoverage, supply_coverage};
use super::linear::LinearUnlock;
use crate::time::{Precision, SumWindow, Timestamp, span_of_days};
use crate::wire::{LinearAllocation, UnlockEvent};

const DAY_MILLIS: f64 = 86_400_000.0;

/// A cliff unlock. Times are in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CliffPiece {
    /// The first instant at which it can happen.
    pub starts_at: i64,
    /// The first instant at which it must have happened; equal to `starts_at` if the date is an instant.
    pub ends_at: i64,
    /// The source's date.
    pub nominal_at: i64,
    pub amount: Option<f64>,
    pub value: Option<f64>,
}

/// The relation of a cliff unlock to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// Its nominal date is in the window.
    Counted,
    /// The nominal date is outside the window, but the unlock may happen in it.
    Inexact,
}

impl CliffPiece {
    /// Returns the cliff unlock of an event. `None` if the event has none, or no date.
    #[must_use]
    pub fn of(event: &UnlockEvent) -> Option<Self> {
        if !event.has_cliff() {
            return None;
        }
        let parts = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let interval = event.interval()?;
        // The dates of undated parts are to be determined, so they are not part of the unlock on this date.
        let undated = || parts.iter().filter(|part| Precision::of(part.unlock_precision.as_str()) == Precision::ToBeDetermined);
        if !parts.is_empty() && undated().count() == parts.len() {
            return None;
        }
        let undated_amount: f64 = undated().filter_map(|part| part.cliff_amount.copied()).sum();
        let undated_value: f64 = undated().filter_map(|part| part.cliff_value.copied()).sum();
        Some(Self {
            starts_at: interval.start.timestamp_millis(),
            ends_at: interval.end.timestamp_millis(),
            nominal_at: event.unlock_date.copied()?.timestamp_millis(),
            amount: event.cliff_amount().map(|amount| amount - undated_amount).filter(|amount| amount.is_finite()),
            value: event.cliff_value().map(|value| value - undated_value).filter(|value| value.is_finite()),
        })
    }

    /// Returns how `window` includes the unlock. `None` if it cannot happen in the window.
    #[must_use]
    pub fn inclusion(&self, window: SumWindow) -> Option<Inclusion> {
        window.inclusion(self.starts_at, self.ends_at, self.nominal_at)
    }
}

/// A linear unlock of one allocation at a constant rate. Times are in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearPiece {
    pub starts_at: i64,
    /// Exclusive. Always after `starts_at`.
    pub ends_at: i64,
    /// The tokens over the whole time.
    pub amount: Option<f64>,
}

impl LinearPiece {
    /// Returns a linear unlock, or `None` if its end is not after its start.
    #[must_use]
    pub fn new(starts_at: i64, ends_at: i64, amount: Option<f64>) -> Option<Self> {
        (ends_at > starts_at).then_some(Self { starts_at, ends_at, amount: amount.filter(|amount| amount.is_finite()) })
    }

    /// Returns the linear unlocks of an event. Parts without a date or a duration are left out.
    pub fn of(event: &UnlockEvent) -> impl Iterator<Item = Self> + '_ {
        let parts = event.linear_unlocks.get().map_or(&[][..], |linear| linear.allocation_breakdown.items());
        parts.iter().filter_map(|part| Self::of_part(part, event.unlock_date.copied()))
    }

    /// Returns the linear unlock of one allocation. `date` is the date of its event. `None` without a date or a duration.
    #[must_use]
    pub fn of_part(part: &LinearAllocation, date: Option<Timestamp>) -> Option<Self> {
        if Precision::of(part.unlock_precision.as_str()) == Precision::ToBeDetermined {
            return None;
        }
        let start = part.begin_date.copied().or(date)?;
        let duration = part.duration_of_rate.copied();
        let end = match part.end_date.copied() {
            Some(end) if end > start => end,
            _ => start.checked_add_signed(span_of_days(duration?)?)?,
        };
        let (starts_at, ends_at) = (start.timestamp_millis(), end.timestamp_millis());
        let amount = part.linear_amount.copied().or_else(|| Some(part.daily_amount.copied()? * days(ends_at - starts_at)));
        Self::new(starts_at, ends_at, amount)
    }

    /// Returns the share of the amount that unlocks in the window, from 0 to 1. `None` outside the window.
    #[must_use]
    pub fn share_in(&self, window: SumWindow) -> Option<f64> {
        let from = self.starts_at.max(window.at.timestamp_millis());
        let until = self.ends_at.min(window.until.timestamp_millis());
        (until > from).then(|| days(until - from) / days(self.ends_at - self.starts_at))
    }

    /// Returns the tokens per day.
    #[must_use]
    pub fn per_day(&self) -> Option<f64> {
        Some(self.amount? / days(self.ends_at - self.starts_at))
    }

    /// Returns whether tokens unlock at an instant, given in milliseconds since the epoch.
    #[must_use]
    pub const fn runs_at(&self, at: i64) -> bool {
        self.starts_at <= at && at < self.ends_at
    }
}

/// The knowledge about a token's linear supply besides its records.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSupply {
    pub coverage: SupplyCoverage,
    /// Linear unlocks from daily emission ahead, which the records lack.
    pub emission: Vec<LinearPiece>,
}

impl LinearSupply {
    /// Reads the linear supply from the state of a schedule's feed and the header of the feed.
    #[must_use]
    pub fn of(feed: Option<&FeedState>, header: Option<&Value>) -> Self {
        let coverage = supply_coverage(feed, header);
        let ahead = LinearAhead::of_feed(feed, header);
        Self { coverage, emission: ahead.iter().flat_map(LinearUnlock::of_emission).map(|unlock| unlock.piece).collect() }
    }
}

/// Converts milliseconds to days.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
fn days(millis: i64) -> f64 {
    millis as f64 / DAY_MILLIS
}

/// The latest price of a token in its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferencePrice {
    /// USD per token.
    pub usd: f64,
    /// `referencePriceUpdatedTime`. `None` if the source does not give it.
    pub at: Option<Timestamp>,
}

impl ReferencePrice {
    /// Returns whether a price from `at` is older than `limit`.
    #[must_use]
    pub fn is_stale(at: Timestamp, limit: TimeDelta, now: Timestamp) -> bool {
        now.signed_duration_since(at) > limit
    }

    /// Returns the time before which prices are older than `limit` at `now`.
    #[must_use]
    pub fn stale_before(limit: TimeDelta, now: Timestamp) -> Timestamp {
        now.checked_sub_signed(limit).unwrap_or(now)
    }

    /// Returns the price with the latest time in a schedule. `None` if no part of it has a price.
    #[must_use]
    pub fn latest<'e>(events: impl IntoIterator<Item = &'e UnlockEvent>) -> Option<Self> {
        let mut latest: Option<Self> = None;
        for event in events {
            let mut consider = |usd: Option<f64>, at: Option<Timestamp>| {
                let Some(usd) = usd.filter(|usd| usd.is_finite() && *usd >= 0.0) else { return };
                if latest.is_none_or(|latest| at > latest.at) {
                    latest = Some(Self { usd, at });
                }
            };
            consider(event.reference_price.copied(), event.reference_price_updated_time.copied());
            if let Some(cliffs) = event.cliff_unlocks.get() {
                consider(cliffs.reference_price.copied(), cliffs.reference_price_updated_time.copied());
                for part in cliffs.allocation_breakdown.items() {
                    consider(part.reference_price.copied(), part.reference_price_updated_time.copied());
                }
            }
            if let Some(linear) = event.linear_unlocks.get() {
                consider(linear.reference_price.copied(), linear.reference_price_updated_time.copied());
                for part in linear.allocation_breakdown.items() {
                    let implied = || Some(part.linear_value.copied()? / part.linear_amount.copied().filter(|of| *of > 0.0)?);
                    let price = part.reference_price.copied().or_else(implied);
                    consider(price, part.reference_price_updated_time.copied());
                }
            }
        }
        latest
    }
}

/// The sum of some unlocks. Unlocks without an amount or a value are counted, so that nothing unknown looks like zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnlockSum {
    /// The number of unlocks; for linear unlocks, of those that run in the window.
    pub count: u64,
    /// The tokens of the unlocks whose amount is known. Only meaningful for one token.
    pub amount: f64,
    /// USD of the unlocks whose value is known.
    pub value: f64,
    /// The number of unlocks without an amount.
    pub unsized_count: u64,
    /// The number of unlocks without a value.
    pub unvalued_count: u64,
}

impl UnlockSum {
    pub fn add(&mut self, amount: Option<f64>, value: Option<f64>) {
        self.count += 1;
        self.amount += amount.unwrap_or_default();
        self.value += value.unwrap_or_default();
        self.unsized_count += u64::from(amount.is_none());
        self.unvalued_count += u64::from(value.is_none());
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            amount: self.amount + other.amount,
            value: self.value + other.value,
            unsized_count: self.unsized_count + other.unsized_count,
            unvalued_count: self.unvalued_count + other.unvalued_count,
        }
    }

    /// Returns the tokens. `None` if there are unlocks and the amount of none of them is known.
    #[must_use]
    pub fn known_amount(&self) -> Option<f64> {
        (self.count == 0 || self.unsized_count < self.count).then_some(self.amount)
    }

    /// Returns the USD. `None` if there are unlocks and the value of none of them is known.
    #[must_use]
    pub fn known_value(&self) -> Option<f64> {
        (self.count == 0 || self.unvalued_count < self.count).then_some(self.value)
    }

    /// Returns the tokens. `None` if the amount of any unlock is unknown.
    #[must_use]
    pub fn complete_amount(&self) -> Option<f64> {
        (self.unsized_count == 0).then_some(self.amount)
    }

    /// Returns the USD. `None` if the value of any unlock is unknown.
    #[must_use]
    pub fn complete_value(&self) -> Option<f64> {
        (self.unvalued_count == 0).then_some(self.value)
    }
}

/// The supply that comes in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SupplyAhead {
    /// Cliff unlocks with a nominal date in the window.
    pub cliff: UnlockSum,
    /// The shares of linear unlocks that fall into the window.
    pub linear: UnlockSum,
    /// Cliff unlocks that may happen in the window, although their nominal date is outside. Not part of [`Self::total`].
    pub inexact: UnlockSum,
}

impl SupplyAhead {
    pub fn add_cliff(&mut self, piece: &CliffPiece, window: SumWindow) {
        match piece.inclusion(window) {
            Some(Inclusion::Counted) => self.cliff.add(piece.amount, piece.value),
            Some(Inclusion::Inexact) => self.inexact.add(piece.amount, piece.value),
            None => {}
        }
    }

    /// Adds the share of a linear unlock. `price` is in USD per token.
    pub fn add_linear(&mut self, piece: &LinearPiece, price: Option<f64>, window: SumWindow) {
        if let Some(share) = piece.share_in(window) {
            let amount = piece.amount.map(|amount| amount * share);
            self.linear.add(amount, amount.zip(price).map(|(amount, price)| amount * price));
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cliff: self.cliff.plus(other.cliff),
            linear: self.linear.plus(other.linear),
            inexact: self.inexact.plus(other.inexact),
        }
    }

    /// Returns cliff and linear unlocks together, without the inexact ones.
    #[must_use]
    pub fn total(&self) -> UnlockSum {
        self.cliff.plus(self.linear)
    }

    /// Returns the tokens that unlock linearly per day, on average over the window. `None` if no amount is known.
    #[must_use]
    pub fn linear_per_day(&self, window: SumWindow) -> Option<f64> {
        Some(self.linear.known_amount()? / window.days()?)
    }

    /// Returns the USD that unlock linearly per day, on average over the window. `None` if no value is known.
    #[must_use]
    pub fn linear_value_per_day(&self, window: SumWindow) -> Option<f64> {
        Some(self.linear.known_value()? / window.days()?)
    }
}

/// The dated unlocks of one token, and its price.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenPieces {
    pub cliffs: Vec<CliffPiece>,
    pub linear: Vec<LinearPiece>,
    pub price: Option<ReferencePrice>,
}

impl TokenPieces {
    /// Returns the pieces of a whole schedule.
    #[must_use]
    pub fn of<'e>(events: impl IntoIterator<Item = &'e UnlockEvent> + Clone) -> Self {
        Self {
            cliffs: events.clone().into_iter().filter_map(CliffPiece::of).collect(),
            linear: LinearUnlock::of_schedule(events.clone().into_iter().map(|event| ("", event)))
                .into_iter()
                .map(|of| of.piece)
                .collect(),
            price: ReferencePrice::latest(events),
        }
    }

    #[must_use]
    pub fn sum(&self, window: SumWindow) -> SupplyAhead {
        let mut sum = SupplyAhead::default();
        self.cliffs.iter().for_each(|piece| sum.add_cliff(piece, window));
        let price = self.price.map(|price| price.usd);
        self.linear.iter().for_each(|piece| sum.add_linear(piece, price, window));
        sum
    }

    /// Returns the linear release at an instant. The schedule is known completely.
    #[must_use]
    pub fn rate_at(&self, at: Timestamp) -> LinearRate {
        LinearRate::at(&self.linear, at, None)
    }
}

/// The linear release of a token at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearRate {
    /// Tokens per day of the linear unlocks whose amount is known.
    pub per_day: f64,
    /// The number of linear unlocks that run.
    pub running: u64,
    /// The next instant at which the rate changes. `None` if no change is known.
    pub changes_at: Option<Timestamp>,
    /// Tokens per day from then on. `None` if no change is known.
    pub then_per_day: Option<f64>,
}

/// The relative difference up to which two rates count as equal.
pub(super) const RATE_TOLERANCE: f64 = 1e-6;

impl LinearRate {
    /// Returns the rate at `at`. A boundary at which the rate stays the same is not a change. `known_until` is the end of the known
    /// linear supply: what comes then is not known, so it is not a change either.
    #[must_use]
    pub fn at(pieces: &[LinearPiece], at: Timestamp, known_until: Option<Timestamp>) -> Self {
        let at = at.timestamp_millis();
        let running = || pieces.iter().filter(|piece| piece.runs_at(at));
        // Not `sum`, which is minus zero without any rate.
        let per_day = running().filter_map(LinearPiece::per_day).fold(0.0, |sum, rate| sum + rate);
        let steps = pieces.iter().filter_map(|piece| Some((piece, piece.per_day()?)));
        let steps = steps.flat_map(|(piece, rate)| [(piece.starts_at, rate), (piece.ends_at, -rate)]);
        let is_known = |edge: i64| known_until.is_none_or(|until| edge < until.timestamp_millis());
        let mut steps: Vec<(i64, f64)> = steps.filter(|(edge, _)| *edge > at && is_known(*edge)).collect();
        steps.sort_by_key(|(edge, _)| *edge);
        let mut then = per_day;
        for of_edge in steps.chunk_by(|(a, _), (b, _)| a == b) {
            then += of_edge.iter().map(|(_, step)| step).sum::<f64>();
            let is_change = (then - per_day).abs() > RATE_TOLERANCE * per_day.abs().max(then.abs());
            if let Some((edge, _)) = of_edge.first().filter(|_| is_change) {
                let changes_at = Timestamp::from_timestamp_millis(*edge);
                return Self { per_day, running: running().count() as u64, changes_at, then_per_day: Some(then.max(0.0)) };
            }
        }
        Self { per_day, running: running().count() as u64, changes_at: None, then_per_day: None }
    }
}

#[cfg(test)]
mod tests;
