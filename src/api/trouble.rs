//! What went wrong with a request, and what that means: for the caller, for asking again, for the source as a whole.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::{
    StatusCode,
    header::{DATE, HeaderMap, RETRY_AFTER},
};

use super::{
    Failure, FailureKind,
    client::{Fetch, Inner},
    gate::{MAX_SHUT, Verdict},
    shown,
};
use crate::supply::Timestamp;

/// Longest honoured `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// How long a success vouches for the key: a 403 meanwhile is about the one thing that was asked.
const KEY_TRUST: TimeDelta = TimeDelta::minutes(10);

/// A failure with what it means for going on.
pub(super) struct Trouble {
    pub failure: Failure,
    pub again: Again,
    pub verdict: Verdict,
}

/// Whether asking again at once may help.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Again {
    No,
    AfterBackoff,
    After(Duration),
}

impl Trouble {
    /// Trouble with the one thing asked; the source is well.
    pub fn of(kind: FailureKind, message: String) -> Self {
        Self { failure: Failure { kind, message, retry_at: None }, again: Again::No, verdict: Verdict::Answered }
    }

    /// Not asked at all.
    pub fn unasked(failure: Failure) -> Self {
        Self { failure, again: Again::No, verdict: Verdict::Nothing }
    }
}

impl Inner {
    /// A request without an answer: not connected, broken off, too slow.
    pub(super) fn broken(&self, what: &str, error: reqwest::Error) -> Trouble {
        let (kind, did) = if error.is_timeout() {
            let limit = if error.is_connect() { self.source.connect_timeout } else { self.source.timeout };
            (FailureKind::Timeout, format!("{what} was not answered in time (at most {limit})"))
        } else if error.is_connect() {
            (FailureKind::Unreachable, format!("{what}: no connection"))
        } else {
            (FailureKind::Unreachable, format!("{what}: the connection broke"))
        };
        let causes = shown::causes(error);
        let message = if causes.is_empty() { did } else { format!("{did}: {causes}") };
        let message = shown::clip(&message, shown::MAX_MESSAGE);
        Trouble {
            failure: Failure { kind, message: message.clone(), retry_at: None },
            again: Again::AfterBackoff,
            verdict: Verdict::Down(kind, message),
        }
    }

    /// What an error status means, whether the server's or the envelope's.
    pub(super) fn trouble_of(
        &self,
        fetch: &Fetch<'_>,
        status: StatusCode,
        what: &str,
        answered: String,
        retry_after: Option<Duration>,
    ) -> Trouble {
        let now = self.clock.now();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let place = self.key_place();
                let message = match &fetch.key {
                    None => format!(
                        "{answered}: no key was sent; give one by source.api_key_file, source.api_key or the credential api-key"
                    ),
                    Some(_) if status == StatusCode::FORBIDDEN => {
                        format!("{answered}: the key from {place} may not ask for this; check its plan")
                    }
                    Some(_) => format!("{answered}: the key from {place} was refused; check it"),
                };
                let is_key_good = status == StatusCode::FORBIDDEN
                    && fetch.key.is_some()
                    && self.learnt().accepted_at.is_some_and(|at| now - at < KEY_TRUST && now >= at);
                let message = shown::clip(&shown::without_key(&message, fetch.key.as_ref()), shown::MAX_MESSAGE);
                let verdict = if is_key_good { Verdict::Answered } else { Verdict::Refused(message.clone()) };
                Trouble {
                    failure: Failure { kind: FailureKind::Unauthorized, message, retry_at: None },
                    again: Again::No,
                    verdict,
                }
            }
            StatusCode::TOO_MANY_REQUESTS => self.limited(what, answered, retry_after, now),
            StatusCode::NOT_FOUND => Trouble::of(FailureKind::NotFound, answered),
            StatusCode::REQUEST_TIMEOUT => Trouble {
                failure: Failure { kind: FailureKind::Timeout, message: answered.clone(), retry_at: None },
                again: Again::AfterBackoff,
                verdict: Verdict::Down(FailureKind::Timeout, answered),
            },
            status if status.is_server_error() => {
                let wait = retry_after.filter(|wait| *wait <= self.tuning.short_wait);
                let retry_at = retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()).map(|wait| now + wait);
                Trouble {
                    failure: Failure { kind: FailureKind::ServerError, message: answered.clone(), retry_at },
                    again: match (retry_after, wait) {
                        (_, Some(wait)) => Again::After(wait),
                        (Some(_), None) => Again::No,
                        (None, None) => Again::AfterBackoff,
                    },
                    verdict: Verdict::Down(FailureKind::ServerError, answered),
                }
            }
            _ => Trouble::of(FailureKind::UnexpectedStatus, answered),
        }
    }

    /// A 429: the credits are spent where the last report says so, else we were too fast.
    fn limited(&self, what: &str, answered: String, retry_after: Option<Duration>, now: Timestamp) -> Trouble {
        let credit = self.learnt().credit.clone();
        let resets = credit.as_ref().and_then(|credit| credit.reset_at.copied());
        if let Some((used, limit)) = credit.as_ref().and_then(|credit| credit.used.copied().zip(credit.limit.copied()))
            && used >= limit
            && resets.is_none_or(|resets| resets > now)
        {
            let until = resets.unwrap_or(now + MAX_SHUT);
            let message =
                format!("{answered}: {used} of {limit} credits are used; they reset at {}", until.format("%Y-%m-%d %H:%M UTC"));
            return Trouble {
                failure: Failure { kind: FailureKind::QuotaExhausted, message: message.clone(), retry_at: Some(until) },
                again: Again::No,
                verdict: Verdict::Spent(until, message),
            };
        }
        let wait = retry_after.unwrap_or(self.tuning.limited_wait);
        let until = retry_after.map(|wait| now + TimeDelta::from_std(wait).unwrap_or(MAX_SHUT));
        let message = match until {
            Some(until) => format!("{answered}: asked to come back at {}", until.format("%Y-%m-%d %H:%M:%S UTC")),
            None => answered,
        };
        let fallback = now + TimeDelta::from_std(self.tuning.limited_first).unwrap_or(MAX_SHUT);
        tracing::debug!("{what} is limited");
        Trouble {
            failure: Failure {
                kind: FailureKind::RateLimited,
                message: message.clone(),
                retry_at: Some(until.unwrap_or(fallback)),
            },
            again: if wait <= self.tuning.short_wait { Again::After(wait) } else { Again::No },
            verdict: Verdict::Limited(until, message),
        }
    }

    /// `Retry-After` as a wait: seconds, or a date by the server's own clock. At most an hour; none where it is over.
    pub(super) fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = match text.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let at = http_date(text)?;
                let from = headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(http_date);
                (at - from.unwrap_or_else(|| self.clock.now())).to_std().unwrap_or_default()
            }
        };
        Some(wait.min(MAX_RETRY_AFTER)).filter(|wait| !wait.is_zero())
    }

    /// Where the key comes from, as the operator wrote it.
    pub(super) fn key_place(&self) -> &'static str {
        if self.source.api_key.is_some() {
            "source.api_key"
        } else if self.source.api_key_file.is_some() {
            "source.api_key_file"
        } else {
            "the systemd credential api-key"
        }
    }
}

/// What the server said, quoted, for the end of a message.
pub(super) fn said(message: Option<&str>) -> String {
    message.map(|text| format!(" (\"{}\")", shown::clip(&shown::printable(text), 160))).unwrap_or_default()
}

fn http_date(text: &str) -> Option<Timestamp> {
    chrono::DateTime::parse_from_rfc2822(text).ok().map(|at| at.to_utc())
}
