//! The credit budget: how many credits may be spent now, so that they last until the quota resets. Pure.
//!
//! The remaining credits are spread evenly over the days until `resetAt`, and unused credits of a day go to the following days. A reserve
//! is kept for near events and for removal proofs. Polls for reported changes may run ahead of the even pace, because sources correct many
//! schedules within one hour. With no credits left, nothing is polled, because the API rejects requests over the quota and requests over
//! the rate limit with the same status. The `limit` module decides when one request checks whether the API has raised its limit.
//!
//! The `ledger` reserves credits before each request and settles the actual cost. The `period` module decides when a quota period ends,
//! even with a wrong clock.

mod ledger;
mod limit;
mod period;

use chrono::{Datelike, Months, NaiveTime, TimeDelta};

pub use ledger::{Grant, ReservationRequest, Reserved, is_fresh, left, reserve, settle};
pub use limit::recheck;
use model::{CreditState, Timestamp, config};
pub use period::rolled;

/// The reason for a poll, from the most to the least urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PollReason {
    /// The feed was never read. May run ahead of the even pace, but leaves as much for reported changes. A list may use the reserve.
    First,
    /// A record was missing from an earlier response, and the poll may prove its removal. May use the reserve.
    Confirm,
    /// The last poll failed.
    Retry,
    /// A change was reported and the token's next event is near. May use the reserve.
    Near,
    /// The mark in the token list moved, or `upcoming` differs from the schedule.
    Changed,
    /// A regular poll of a list.
    Backbone,
    /// A regular poll without a reported change.
    Verify,
}

impl PollReason {
    /// Returns the label for tables and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            PollReason::First => "first read",
            PollReason::Confirm => "removal proof",
            PollReason::Retry => "retry",
            PollReason::Near => "near event",
            PollReason::Changed => "changed",
            PollReason::Backbone => "list",
            PollReason::Verify => "regular",
        }
    }
}

/// The assumed length of a quota period, in milliseconds: 30 days.
const PERIOD_MS: f64 = 30.0 * 86_400_000.0;
/// The maximum lead over the even pace for polls of reported changes, as a share of the period's credits. Bounds the effect of a source
/// that reports changes all the time.
const MAX_LEAD: f64 = 0.2;
/// The same for first reads of tokens. A few tokens are read at once, while a watch of many leaves credits for reported changes.
const MAX_FIRST_LEAD: f64 = 0.1;

/// The credits that may be spent at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Remaining credits of the period, the lower of the API's and the config's limit. `None` if no limit is known.
    pub left: Option<u64>,
    /// The part of `left` that is kept for near events and removal proofs.
    pub reserve: u64,
    /// Credits that regular polls may still spend today. `None` if no limit is known.
    pub today: Option<u64>,
    /// Credits that polls for reported changes may still spend today. `None` if no limit is known.
    pub for_changes: Option<u64>,
    /// Credits that first reads of tokens may still spend today. `None` if no limit is known.
    pub for_first_reads: Option<u64>,
    /// When the period ends.
    pub reset_at: Timestamp,
}

impl Allowance {
    /// Computes the allowance at `now` from the last state of the quota.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "credits are far below 2^53 and never negative"
    )]
    pub fn at(credit: &CreditState, budget: &config::BudgetSettings, now: Timestamp) -> Self {
        let credit = rolled(credit.clone(), budget, now);
        let reset_at = ends_at(&credit, now);
        let left = ledger::spendable(&credit, budget, now);
        let total = match (credit.limit, budget.monthly_credits) {
            (Some(api), Some(cap)) => Some(api.min(cap)),
            (one, other) => one.or(other),
        };
        // The reserve shrinks to zero at the end of the period, because unused credits expire.
        let rest = ((reset_at - now).num_milliseconds() as f64 / PERIOD_MS).clamp(0.0, 1.0);
        let reserve = total.map_or(0, |total| (reserve_of(total, budget) as f64 * rest).round() as u64);
        let is_probe = credit.exhausted || limit::is_used_up(&credit);
        let today = left.map(|left| {
            if is_probe {
                return left; // At most one.
            }
            let ordinary = left.saturating_sub(reserve);
            let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
            let days = ((reset_at - midnight).num_milliseconds() as f64 / 86_400_000.0).max(1.0);
            // The share is a part of what the day began with, so that it does not shrink during the day. The reserve is included and
            // only limits the result, so that the pace stays even while the reserve shrinks.
            let today = credit.spent_today + credit.held();
            let share = ((left + today) as f64 / days + rounding_offset(midnight.timestamp() / 86_400)).floor() as u64;
            share.saturating_sub(today).min(ordinary)
        });
        let ahead_by = |lead: f64| {
            let (left, today) = left.zip(today)?;
            let total = total.unwrap_or(left);
            let even = (total - reserve_of(total, budget)) as f64 * rest;
            let ordinary = left.saturating_sub(reserve);
            let ahead = ordinary as f64 + total as f64 * lead - even;
            // The cast turns a negative value into zero.
            Some(if is_probe { today } else { (ahead as u64).min(ordinary).max(today) })
        };
        Self { left, reserve, today, for_changes: ahead_by(MAX_LEAD), for_first_reads: ahead_by(MAX_FIRST_LEAD), reset_at }
    }

    /// Returns the credits that polls for this reason may spend now; `None` if no limit is known.
    pub fn of(&self, why: PollReason) -> Option<u64> {
        match why {
            PollReason::Confirm | PollReason::Near => self.left,
            PollReason::First => self.for_first_reads,
            PollReason::Changed => self.for_changes,
            PollReason::Retry | PollReason::Backbone | PollReason::Verify => self.today,
        }
    }

    /// Returns the allowance after `credits` more were granted.
    #[must_use]
    pub fn after(self, credits: u64) -> Self {
        Self {
            left: self.left.map(|left| left.saturating_sub(credits)),
            today: self.today.map(|today| today.saturating_sub(credits)),
            for_changes: self.for_changes.map(|for_changes| for_changes.saturating_sub(credits)),
            for_first_reads: self.for_first_reads.map(|for_first_reads| for_first_reads.saturating_sub(credits)),
            ..self
        }
    }

    /// Returns whether all credits of the period are used.
    pub fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }
}

/// Returns the rounding offset, from 0 to 1, for a number that is not a whole one. `index` counts days, or hours. The offsets are a golden
/// ratio sequence, which spreads a few credits evenly over the month.
#[expect(clippy::cast_precision_loss, reason = "hours are far below 2^53")]
pub(crate) fn rounding_offset(index: i64) -> f64 {
    const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
    (index as f64 * GOLDEN_RATIO).rem_euclid(1.0)
}

/// Returns the end of the period: the known one, else the start of the next calendar month.
pub fn ends_at(credit: &CreditState, now: Timestamp) -> Timestamp {
    credit.reset_at.max(credit.not_over_before).unwrap_or_else(|| next_month(now))
}

/// Returns the reserve at the start of a period with `total` credits.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "credits are far below 2^53"
)]
pub fn reserve_of(total: u64, budget: &config::BudgetSettings) -> u64 {
    (total as f64 * budget.reserve.fraction()).ceil() as u64
}

/// Returns the start of the next calendar month in UTC, when a quota resets by default.
fn next_month(now: Timestamp) -> Timestamp {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    midnight.with_day(1).and_then(|first| first.checked_add_months(Months::new(1))).unwrap_or(now + TimeDelta::days(31))
}

#[cfg(test)]
mod tests;
