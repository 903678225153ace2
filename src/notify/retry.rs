//! What an attempt came to, and what follows from it: done, again later, or never.
//!
//! Pure: outcome, tries, `now` and the jitter go in, the next step comes out. The schedule is data in the config.

use chrono::TimeDelta;

use model::{Attempt, AttemptOutcome, AttemptRecord, DeliveryId, DeliveryState, Timestamp, config, http_date::parse_http_date};

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Accepted,
    /// Not now: no connection, a timeout, too many requests, trouble at the other end.
    Later {
        /// How long the receiver asked to wait, where it did.
        retry_after: Option<TimeDelta>,
    },
    /// The receiver will not have it, now or later.
    Refused,
    /// The receiver says that it is gone for good.
    Gone,
    /// It was handed over, but the answer never came: it may have arrived. Tried again under the same id.
    Uncertain,
}

impl Outcome {
    /// Later, without a wish of the receiver.
    pub const LATER: Outcome = Outcome::Later { retry_after: None };

    /// The word in the database, logs and metrics.
    pub fn word(&self) -> AttemptOutcome {
        match self {
            Outcome::Accepted => AttemptOutcome::Accepted,
            Outcome::Later { .. } => AttemptOutcome::Retry,
            Outcome::Refused => AttemptOutcome::Refused,
            Outcome::Gone => AttemptOutcome::Gone,
            Outcome::Uncertain => AttemptOutcome::Uncertain,
        }
    }

    /// What an HTTP status means. A redirect is never followed, so it is a refusal.
    pub fn of_http_status(status: u16, retry_after: Option<TimeDelta>) -> Self {
        match status {
            200..=299 => Outcome::Accepted,
            408 | 425 | 429 | 500..=599 => Outcome::Later { retry_after },
            410 => Outcome::Gone,
            300..=499 => Outcome::Refused,
            // 1xx as a final answer, or a number outside the protocol: whatever answered is not a working HTTP server right now.
            _ => Outcome::Later { retry_after },
        }
    }

    /// What a negative SMTP reply means.
    pub fn of_smtp_code(code: u16) -> Self {
        if (500..=599).contains(&code) { Outcome::Refused } else { Outcome::LATER }
    }
}

/// What follows from an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing more to do.
    Delivered,
    /// Again, not before this time.
    RetryAt(Timestamp),
    /// Never again by itself.
    Dead {
        /// Why, for people.
        reason: String,
    },
}

impl NextStep {
    /// The record of the attempt that it follows from.
    pub fn record_of(&self, delivery: DeliveryId, attempt: Attempt) -> AttemptRecord {
        let (state, next_attempt_at) = match self {
            Self::Delivered => (DeliveryState::Delivered, None),
            Self::RetryAt(at) => (DeliveryState::Retrying, Some(*at)),
            Self::Dead { .. } => (DeliveryState::Dead, None),
        };
        AttemptRecord { delivery, attempt, state, next_attempt_at, alerts: Vec::new(), notifications: Vec::new() }
    }
}

/// Longest wait that is ever scheduled, whatever the config and the receiver say.
const MAX_WAIT: TimeDelta = TimeDelta::days(30);

/// What follows from `outcome`.
///
/// `tries` counts the attempts since the schedule began, this one included. `first_due` is when the first of them was due. `jitter` is
/// a random number from 0 to 1. `Retry-After` can only put an attempt off, up to `max_retry_after`: it never makes one come early, since
/// a receiver that always says "in one second" would use up all attempts in no time.
pub fn decide(
    outcome: &Outcome,
    tries: u32,
    first_due: Timestamp,
    now: Timestamp,
    jitter: f64,
    delivery: &config::DeliverySettings,
) -> NextStep {
    let retry_after = match outcome {
        Outcome::Accepted => return NextStep::Delivered,
        Outcome::Refused => {
            return NextStep::Dead { reason: "the receiver refused it".into() };
        }
        Outcome::Gone => {
            return NextStep::Dead { reason: "the receiver is gone (410)".into() };
        }
        Outcome::Later { retry_after } => *retry_after,
        Outcome::Uncertain => None,
    };
    let Some(wait) = delivery.retry.get(tries as usize) else {
        let span = describe(now - first_due);
        return NextStep::Dead {
            reason: format!("no success in {tries} {} over {span}", if tries == 1 { "attempt" } else { "attempts" }),
        };
    };
    let wait = spread(wait.delta(), delivery.jitter.fraction(), jitter);
    let asked = retry_after.unwrap_or_default().clamp(TimeDelta::zero(), delivery.max_retry_after.delta());
    let at = now.checked_add_signed(wait.max(asked).min(MAX_WAIT));
    NextStep::RetryAt(at.unwrap_or(now))
}

/// `wait` made longer or shorter by up to `share`, as `jitter` (0 to 1) says.
fn spread(wait: TimeDelta, share: f64, jitter: f64) -> TimeDelta {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let millis = wait.clamp(TimeDelta::zero(), MAX_WAIT).num_milliseconds();
    #[expect(clippy::cast_precision_loss, reason = "thirty days in milliseconds fit a double")]
    let spread = millis as f64 * (1.0 + share * (2.0 * jitter - 1.0));
    #[expect(clippy::cast_possible_truncation, reason = "at most twice thirty days in milliseconds")]
    TimeDelta::milliseconds(spread.round() as i64)
}

/// A span for people: `40 s`, `12 min`, `5 h`, `3 days`.
pub fn describe(span: TimeDelta) -> String {
    let span = span.max(TimeDelta::zero());
    match (span.num_days(), span.num_hours(), span.num_minutes()) {
        (days, _, _) if days >= 2 => format!("{days} days"),
        (_, hours, _) if hours >= 2 => format!("{hours} h"),
        (_, _, minutes) if minutes >= 2 => format!("{minutes} min"),
        _ => format!("{} s", span.num_seconds()),
    }
}

/// Reads `Retry-After`: seconds, or an HTTP date. None where it is neither.
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<TimeDelta> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for the clock still means "long".
        let seconds = value.parse::<u64>().unwrap_or(u64::MAX).min(MAX_WAIT.num_seconds().unsigned_abs());
        return TimeDelta::try_seconds(i64::try_from(seconds).ok()?);
    }
    let date = parse_http_date(value)?;
    Some((date - now).max(TimeDelta::zero()))
}

#[cfg(test)]
mod tests;
