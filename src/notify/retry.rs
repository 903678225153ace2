//! The outcome of an attempt, and the next step by the retry schedule of the config. Pure.

use chrono::TimeDelta;

use model::{
    Attempt, AttemptOutcome, AttemptRecord, DeliveryId, DeliveryState, Timestamp, config, http_date::parse_http_date, phrase,
};

/// The outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// The server accepted the mail for some recipients. The others will not get it.
    AcceptedExcept {
        rejected: Vec<RejectedRecipient>,
    },
    /// The server accepted the mail for some recipients. The others are retried.
    Partly,
    /// A temporary failure: no connection, a timeout, too many requests, or a server error.
    Later {
        /// The wait that the receiver requested.
        retry_after: Option<TimeDelta>,
    },
    /// The receiver rejected the message, so a retry would fail too.
    Refused,
    /// The receiver no longer exists.
    Gone,
    /// The message was sent, but no response came, so it may have arrived. It is sent again under the same id.
    Uncertain,
}

/// A recipient that a mail server rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecipient {
    pub address: String,
    /// The reply of the server.
    pub reply: String,
}

impl Outcome {
    /// A temporary failure without a requested wait.
    pub const LATER: Outcome = Outcome::Later { retry_after: None };

    /// Returns whether the delivery is complete.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Outcome::Accepted | Outcome::AcceptedExcept { .. })
    }

    /// Returns the outcome for the database, logs, and metrics.
    pub fn word(&self) -> AttemptOutcome {
        match self {
            Outcome::Accepted | Outcome::AcceptedExcept { .. } => AttemptOutcome::Accepted,
            Outcome::Later { .. } | Outcome::Partly => AttemptOutcome::Retry,
            Outcome::Refused => AttemptOutcome::Refused,
            Outcome::Gone => AttemptOutcome::Gone,
            Outcome::Uncertain => AttemptOutcome::Uncertain,
        }
    }

    /// Returns the meaning of an HTTP status. Redirects are not followed, so they count as rejections.
    pub fn of_http_status(status: u16, retry_after: Option<TimeDelta>) -> Self {
        match status {
            200..=299 => Outcome::Accepted,
            408 | 425 | 429 | 500..=599 => Outcome::Later { retry_after },
            410 => Outcome::Gone,
            300..=499 => Outcome::Refused,
            // A final 1xx status, or one outside the protocol, means that the server is currently broken.
            _ => Outcome::Later { retry_after },
        }
    }

    /// Returns the meaning of a negative SMTP reply.
    pub fn of_smtp_code(code: u16) -> Self {
        if (500..=599).contains(&code) { Outcome::Refused } else { Outcome::LATER }
    }
}

/// The next step after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    Delivered,
    /// The earliest time of the next attempt.
    RetryAt(Timestamp),
    /// No more automatic attempts.
    Dead {
        reason: String,
    },
}

impl NextStep {
    /// Returns the record of the attempt before this step.
    pub fn record_of(&self, delivery: DeliveryId, attempt: Attempt) -> AttemptRecord {
        let (state, next_attempt_at) = match self {
            Self::Delivered => (DeliveryState::Delivered, None),
            Self::RetryAt(at) => (DeliveryState::Retrying, Some(*at)),
            Self::Dead { .. } => (DeliveryState::Dead, None),
        };
        AttemptRecord { delivery, attempt, state, next_attempt_at, alerts: Vec::new(), notifications: Vec::new() }
    }
}

/// The upper limit of any wait, including waits from the config and from receivers.
const MAX_WAIT: TimeDelta = TimeDelta::days(30);

/// Returns the next step after an attempt.
///
/// `tries` counts the attempts since the schedule began, including this one. `first_due` is when the first of them was due. `jitter`
/// is a random number from 0 to 1. `Retry-After` can delay an attempt, up to `max_retry_after`, but never advance it: a receiver that
/// always requests one second would use up all attempts at once.
pub fn decide(
    outcome: &Outcome,
    tries: u32,
    first_due: Timestamp,
    now: Timestamp,
    jitter: f64,
    delivery: &config::DeliverySettings,
) -> NextStep {
    let retry_after = match outcome {
        Outcome::Accepted | Outcome::AcceptedExcept { .. } => return NextStep::Delivered,
        Outcome::Refused => {
            return NextStep::Dead { reason: "the receiver rejected the message".into() };
        }
        Outcome::Gone => {
            return NextStep::Dead { reason: "the receiver no longer exists".into() };
        }
        Outcome::Later { retry_after } => *retry_after,
        Outcome::Uncertain | Outcome::Partly => None,
    };
    let Some(wait) = delivery.retry.get(tries as usize) else {
        let (attempts, span) = (phrase::count(tries, "attempt"), phrase::duration(now - first_due));
        return NextStep::Dead { reason: format!("no success in {attempts} over {span}") };
    };
    let wait = spread(wait.delta(), delivery.jitter.fraction(), jitter);
    let requested = retry_after.unwrap_or_default().clamp(TimeDelta::zero(), delivery.max_retry_after.delta());
    let at = now.checked_add_signed(wait.max(requested).min(MAX_WAIT));
    NextStep::RetryAt(at.unwrap_or(now))
}

/// Lengthens or shortens `wait` by up to `share`. A `jitter` of 0.5 leaves it unchanged.
fn spread(wait: TimeDelta, share: f64, jitter: f64) -> TimeDelta {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let millis = wait.clamp(TimeDelta::zero(), MAX_WAIT).num_milliseconds();
    #[expect(clippy::cast_precision_loss, reason = "thirty days in milliseconds fit a double")]
    let spread = millis as f64 * (1.0 + share * (2.0 * jitter - 1.0));
    #[expect(clippy::cast_possible_truncation, reason = "at most twice thirty days in milliseconds")]
    TimeDelta::milliseconds(spread.round() as i64)
}

/// Parses `Retry-After`, which is a number of seconds or an HTTP date.
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<TimeDelta> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A huge number still means a long wait.
        let seconds = value.parse::<u64>().unwrap_or(u64::MAX).min(MAX_WAIT.num_seconds().unsigned_abs());
        return TimeDelta::try_seconds(i64::try_from(seconds).ok()?);
    }
    let date = parse_http_date(value)?;
    Some((date - now).max(TimeDelta::zero()))
}

#[cfg(test)]
mod tests;
