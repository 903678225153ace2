//! How many credits may be spent now, so that they last until the quota resets. Pure: values and `now` in, a decision out.
//!
//! What is left is spread evenly over the days to `resetAt`; what a day leaves over goes to the days after it. A share stays in
//! reserve for events that are near and for proof of what an earlier answer left open. Nothing is asked once nothing is left, since
//! a refusal for an exhausted quota cannot be told from one for haste.

use chrono::{Datelike, Months, NaiveTime, TimeDelta};

use model::{CreditState, Timestamp, config, wire};

/// Why something is asked; the earlier ones come first, and may spend more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PollReason {
    /// It was never read: asked while any credit is left.
    First,
    /// An earlier answer left a record out, and this one proves or disproves that it is gone. May use the reserve.
    Confirm,
    /// The last try failed. May use the reserve; only success costs.
    Retry,
    /// An event is near, and something says that it changed or it was not read for a while. May use the reserve.
    Near,
    /// The source's mark of change moved, `upcoming` disagrees, or there is no mark to go by.
    Changed,
    /// The regular walk of a list that tells what to ask.
    Backbone,
    /// Nothing says that it changed; credits that would expire are spent on looking again, the longest unread first.
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

/// What may be spent at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Credits left of the period: the least of what the API reports and what `monthly_credits` leaves. None: no limit is known.
    pub left: Option<u64>,
    /// Of these, kept for near events and proof.
    pub reserve: u64,
    /// What ordinary reads may still spend today.
    pub today: Option<u64>,
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
        let credit = rolled(credit.clone(), now);
        let reset_at = credit.reset_at.unwrap_or_else(|| next_month(now));
        let by_api = credit.limit.map(|limit| limit.saturating_sub(credit.used.unwrap_or(0)));
        let by_config = budget.monthly_credits.map(|cap| cap.saturating_sub(credit.spent));
        let left = match (by_api, by_config) {
            _ if credit.exhausted => Some(0),
            (Some(api), Some(cap)) => Some(api.min(cap)),
            (one, other) => one.or(other),
        };
        let total = match (credit.limit, budget.monthly_credits) {
            (Some(api), Some(cap)) => Some(api.min(cap)),
            (one, other) => one.or(other),
        };
        // The reserve melts to the end of the period, since what is left of it then expires.
        let rest = ((reset_at - now).num_milliseconds() as f64 / PERIOD_MS).clamp(0.0, 1.0);
        let reserve = total.map_or(0, |total| (reserve_of(total, budget) as f64 * rest).ceil() as u64);
        let today = left.map(|left| {
            let ordinary = left.saturating_sub(reserve);
            let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
            let days = ((reset_at - midnight).num_milliseconds() as f64 / 86_400_000.0).max(1.0);
            // Today's share is of what the day began with, so that it does not shrink as it is spent.
            let share = ((ordinary + credit.spent_today) as f64 / days).floor() as u64;
            share.saturating_sub(credit.spent_today).min(ordinary)
        });
        Self { left, reserve, today, reset_at }
    }

    /// Most credits that asks of this kind may spend now; none where no limit is known.
    pub fn of(&self, why: PollReason) -> Option<u64> {
        match why {
            PollReason::First | PollReason::Confirm | PollReason::Retry | PollReason::Near => self.left,
            PollReason::Changed | PollReason::Backbone | PollReason::Verify => self.today,
        }
    }

    /// What is left after `credits` more were granted.
    #[must_use]
    pub fn after(self, credits: u64) -> Self {
        Self {
            left: self.left.map(|left| left.saturating_sub(credits)),
            today: self.today.map(|today| today.saturating_sub(credits)),
            ..self
        }
    }

    /// Whether nothing at all may be asked.
    pub fn is_spent(&self) -> bool {
        self.left == Some(0)
    }
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

/// The state at `now`: a period that ended begins anew, a day that ended too.
pub fn rolled(mut credit: CreditState, now: Timestamp) -> CreditState {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    if credit.reset_at.is_some_and(|reset_at| now >= reset_at) {
        // The new period's end is unknown until the API reports it; months are what such quotas count in.
        let reset_at = credit.reset_at.map(|mut reset_at| {
            while reset_at <= now {
                reset_at = reset_at.checked_add_months(Months::new(1)).unwrap_or(now + TimeDelta::days(31));
            }
            reset_at
        });
        credit.period_start = credit.reset_at;
        credit.reset_at = reset_at;
        credit.used = credit.used.map(|_| 0);
        credit.spent = 0;
        credit.spent_today = 0;
        credit.exhausted = false;
    }
    if credit.reset_at.is_none() {
        let month = midnight.with_day(1).unwrap_or(midnight);
        if credit.period_start.is_none_or(|start| start < month) {
            credit.period_start = Some(month);
            credit.spent = 0;
            credit.exhausted = false;
        }
    }
    if credit.day != Some(midnight) {
        credit.day = Some(midnight);
        credit.spent_today = 0;
    }
    credit
}

/// The state after a fetch that cost `credits` and reported `reported`.
pub fn settle(credit: CreditState, credits: u32, reported: Option<&wire::Credit>, now: Timestamp) -> CreditState {
    let mut state = rolled(credit, now);
    state.spent += u64::from(credits);
    state.spent_today += u64::from(credits);
    if let Some(reported) = reported {
        let count = |field: &wire::Maybe<i64>| field.copied().and_then(|count| u64::try_from(count).ok());
        if let Some(reset_at) = reported.reset_at.copied().filter(|reset_at| *reset_at > now) {
            if state.reset_at.is_some_and(|known| reset_at > known + TimeDelta::days(1)) && state.reported_at.is_some() {
                // The API began a new period before we thought that it would.
                state.period_start = Some(now);
                state.spent = u64::from(credits);
            }
            state.reset_at = Some(reset_at);
        }
        state.used = count(&reported.used).or(state.used);
        state.limit = count(&reported.limit).or(state.limit);
        state.reported_at = Some(now);
        state.exhausted = false;
    } else if credits > 0 {
        state.used = state.used.map(|used| used + u64::from(credits));
    }
    state
}

/// The first instant of the next calendar month, UTC: when a quota resets if nobody says otherwise.
fn next_month(now: Timestamp) -> Timestamp {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    midnight.with_day(1).and_then(|first| first.checked_add_months(Months::new(1))).unwrap_or(now + TimeDelta::days(31))
}

#[cfg(test)]
mod tests;
