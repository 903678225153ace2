//! How many credits may be spent now, so that they last until the quota resets. Pure: values and `now` in, a decision out.
//!
//! What is left is spread evenly over the days to `resetAt`; what a day leaves over goes to the days after it. A share stays in
//! reserve for events that are near and for proof of what an earlier answer left open. What was told to have changed may run ahead of
//! the even pace, since sources correct many schedules in one hour. Nothing is asked once nothing is left, since a refusal for an
//! exhausted quota cannot be told from one for haste.
//!
//! The `ledger` counts: each request is reserved before it is sent, and settled at what it cost, or may have cost. The `period` says
//! when counting begins anew, whatever the clocks say.

mod ledger;
mod period;

use chrono::{Datelike, Months, NaiveTime, TimeDelta};

pub use ledger::{Booked, Booking, Grant, book, left, settle};
use model::{CreditState, Timestamp, config};
pub use period::rolled;

/// Why something is asked; the earlier ones come first, and may spend more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PollReason {
    /// It was never read: asked while any credit is left.
    First,
    /// An earlier answer left a record out, and this one proves or disproves that it is gone. May use the reserve.
    Confirm,
    /// The last try failed.
    Retry,
    /// An event is near, and something told that it changed. May use the reserve.
    Near,
    /// The source's mark of change moved, or `upcoming` disagrees.
    Changed,
    /// The regular walk of a list that tells what to ask.
    Backbone,
    /// Nothing says that it changed; it is looked at again where that is worth most.
    Verify,
}

impl PollReason {
    /// For tables and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            PollReason::First => "first read",
            PollReason::Confirm => "proof of a removal",
            PollReason::Retry => "retry",
            PollReason::Near => "event near",
            PollReason::Changed => "changed",
            PollReason::Backbone => "list",
            PollReason::Verify => "look again",
        }
    }
}

/// How long a period is taken to be, milliseconds: a month.
const PERIOD_MS: f64 = 30.0 * 86_400_000.0;
/// How far looks at what changed may run ahead of an even pace, as a share of the period's credits: a source that never stops telling
/// of changes slows the rest of the period by no more.
const ADVANCE: f64 = 0.2;

/// What may be spent at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Credits left of the period: the least of what the API reports and what `monthly_credits` leaves. None: no limit is known.
    pub left: Option<u64>,
    /// Of these, kept for near events and proof.
    pub reserve: u64,
    /// What ordinary reads may still spend today.
    pub today: Option<u64>,
    /// What looks at what was told to have changed may still spend today.
    pub told: Option<u64>,
    /// When the period ends.
    pub reset_at: Timestamp,
}

impl Allowance {
    /// Computes it from the last state of the quota.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "credits are far below 2^53 and never negative"
    )]
    pub fn at(credit: &CreditState, budget: &config::BudgetSettings, now: Timestamp) -> Self {
        let credit = rolled(credit.clone(), budget, now);
        let reset_at = ends_at(&credit, now);
        let left = left(&credit, budget, now);
        let total = match (credit.limit, budget.monthly_credits) {
            (Some(api), Some(cap)) => Some(api.min(cap)),
            (one, other) => one.or(other),
        };
        // The reserve melts to the end of the period, since what is left of it then expires.
        let rest = ((reset_at - now).num_milliseconds() as f64 / PERIOD_MS).clamp(0.0, 1.0);
        let reserve = total.map_or(0, |total| (reserve_of(total, budget) as f64 * rest).round() as u64);
        let today = left.map(|left| {
            if credit.exhausted {
                return left; // at most one, to see whether that is over
            }
            let ordinary = left.saturating_sub(reserve);
            let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
            let days = ((reset_at - midnight).num_milliseconds() as f64 / 86_400_000.0).max(1.0);
            // Today's share is of what the day began with, so that it does not shrink as it is spent. The reserve is no part of what
            // is spread: it only must not be touched, so that the pace stays even while it melts.
            let today = credit.spent_today + credit.held();
            let share = ((left + today) as f64 / days + turn_of(midnight)).floor() as u64;
            share.saturating_sub(today).min(ordinary)
        });
        let told = left.zip(today).map(|(left, today)| {
            let total = total.unwrap_or(left);
            let even = (total - reserve_of(total, budget)) as f64 * rest;
            let ordinary = left.saturating_sub(reserve);
            let ahead = ordinary as f64 + total as f64 * ADVANCE - even;
            // Negative is none.
            if credit.exhausted { today } else { (ahead as u64).min(ordinary).max(today) }
        });
        Self { left, reserve, today, told, reset_at }
    }

    /// Most credits that asks of this kind may spend now; none where no limit is known.
    pub fn of(&self, why: PollReason) -> Option<u64> {
        match why {
            PollReason::First | PollReason::Confirm | PollReason::Near => self.left,
            PollReason::Changed => self.told,
            PollReason::Retry | PollReason::Backbone | PollReason::Verify => self.today,
        }
    }

    /// What is left after `credits` more were granted.
    #[must_use]
    pub fn after(self, credits: u64) -> Self {
        Self {
            left: self.left.map(|left| left.saturating_sub(credits)),
            today: self.today.map(|today| today.saturating_sub(credits)),
            told: self.told.map(|told| told.saturating_sub(credits)),
            ..self
        }
    }

    /// Whether nothing at all may be asked.
    pub fn is_spent(&self) -> bool {
        self.left == Some(0)
    }
}

/// From which part of a credit on a day gets the whole of it: steps of the golden section, so that a few credits a month come at an even
/// pace, and not all at its end.
#[expect(clippy::cast_precision_loss, reason = "days are far below 2^53")]
fn turn_of(midnight: Timestamp) -> f64 {
    const GOLDEN_SECTION: f64 = 0.618_033_988_749_895;
    ((midnight.timestamp() / 86_400) as f64 * GOLDEN_SECTION).rem_euclid(1.0)
}

/// When the period ends, as far as is known.
pub fn ends_at(credit: &CreditState, now: Timestamp) -> Timestamp {
    credit.reset_at.max(credit.not_over_before).unwrap_or_else(|| next_month(now))
}

/// What of a period's credits is kept at its beginning for near events and proof.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "credits are far below 2^53"
)]
pub fn reserve_of(total: u64, budget: &config::BudgetSettings) -> u64 {
    (total as f64 * budget.reserve.fraction()).ceil() as u64
}

/// The first instant of the next calendar month, UTC: when a quota resets if nobody says otherwise.
fn next_month(now: Timestamp) -> Timestamp {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    midnight.with_day(1).and_then(|first| first.checked_add_months(Months::new(1))).unwrap_or(now + TimeDelta::days(31))
}

#[cfg(test)]
mod tests;
