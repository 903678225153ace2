//! What went wrong with a request, and what that means: for the caller, for asking again, for the source as a whole.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::{
    StatusCode,
    header::{DATE, HeaderMap, RETRY_AFTER},
};

use super::{
    breaker::{MAX_OPEN, SourceHealth},
    client::ClientInner,
    fetch::FetchContext,
    redact,
};
use model::poll::{FailureKind, PollFailure};
use model::{http_date::parse_http_date, rows::Charge, supply::Timestamp};

/// Longest honoured `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// How long a success vouches for the key: a 403 meanwhile is about the one thing that was asked.
const KEY_TRUST: TimeDelta = TimeDelta::days(1);

/// A failure with what it means for going on.
pub(super) struct FailedRequest {
    pub failure: PollFailure,
    pub retry: Retry,
    pub health: SourceHealth,
}

/// Whether asking again at once may help.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Retry {
    No,
    AfterBackoff,
    After(Duration),
}

impl FailedRequest {
    /// A failure of the one thing that was asked for; the source is well.
    pub fn of(kind: FailureKind, message: String) -> Self {
        Self { failure: PollFailure { kind, message, retry_at: None }, retry: Retry::No, health: SourceHealth::Answered }
    }

    /// What it cost, where the source answered that it refuses.
    pub fn charge(&self) -> Charge {
        if self.failure.kind == FailureKind::QuotaExhausted { Charge::Refused } else { Charge::Free }
    }

    /// Not asked at all.
    pub fn unasked(failure: PollFailure) -> Self {
        Self { failure, retry: Retry::No, health: SourceHealth::Unknown }
    }
}

impl ClientInner {
    /// A request without an answer: not connected, broken off, too slow.
    pub(super) fn broken(&self, what: &str, error: reqwest::Error) -> FailedRequest {
        let (kind, did) = if error.is_timeout() {
            let limit = if error.is_connect() { self.source.connect_timeout } else { self.source.timeout };
            (FailureKind::Timeout, format!("{what} was not answered in time (at most {limit})"))
        } else if error.is_connect() {
            let place = error.url().and_then(|url| Some(format!(" to {}:{}", url.host_str()?, url.port_or_known_default()?)));
            (FailureKind::Unreachable, format!("{what}: no connection{}", place.unwrap_or_default()))
        } else {
            (FailureKind::Unreachable, format!("{what}: the connection broke"))
        };
        let causes = redact::causes(error);
        let message = if causes.is_empty() { did } else { format!("{did}: {causes}") };
        let message = redact::message(&message);
        FailedRequest {
            failure: PollFailure { kind, message: message.clone(), retry_at: None },
            retry: Retry::AfterBackoff,
            health: SourceHealth::Down(kind, message),
        }
    }

    /// What an error status means, whether the server's or the envelope's.
    pub(super) fn status_failure(
        &self,
        fetch: &FetchContext<'_>,
        status: StatusCode,
        what: &str,
        answered: String,
        retry_after: Option<Duration>,
    ) -> FailedRequest {
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
                let message = redact::message(&redact::without_key(&message, fetch.key.as_ref()));
                if is_key_good {
                    return FailedRequest::of(FailureKind::Forbidden, message);
                }
                let kind = if fetch.key.is_none() { FailureKind::NoKey } else { FailureKind::Unauthorized };
                FailedRequest {
                    failure: PollFailure { kind, message: message.clone(), retry_at: None },
                    retry: Retry::No,
                    health: SourceHealth::KeyRefused(kind, message),
                }
            }
            StatusCode::PAYMENT_REQUIRED => {
                let until = retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()).unwrap_or(MAX_OPEN);
                FailedRequest {
                    failure: PollFailure {
                        kind: FailureKind::QuotaExhausted,
                        message: answered.clone(),
                        retry_at: Some(now + until),
                    },
                    retry: Retry::No,
                    health: SourceHealth::QuotaSpent(now + until, answered),
                }
            }
            StatusCode::TOO_MANY_REQUESTS => self.limited(what, answered, retry_after, now),
            StatusCode::NOT_FOUND => FailedRequest::of(FailureKind::NotFound, answered),
            StatusCode::REQUEST_TIMEOUT => FailedRequest {
                failure: PollFailure { kind: FailureKind::Timeout, message: answered.clone(), retry_at: None },
                retry: Retry::AfterBackoff,
                health: SourceHealth::Down(FailureKind::Timeout, answered),
            },
            status if status.is_server_error() => {
                let wait = retry_after.filter(|wait| *wait <= self.tuning.short_wait);
                let retry_at = retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()).map(|wait| now + wait);
                FailedRequest {
                    failure: PollFailure { kind: FailureKind::ServerError, message: answered.clone(), retry_at },
                    retry: match (retry_after, wait) {
                        (_, Some(wait)) => Retry::After(wait),
                        (Some(_), None) => Retry::No,
                        (None, None) => Retry::AfterBackoff,
                    },
                    health: SourceHealth::Down(FailureKind::ServerError, answered),
                }
            }
            _ => FailedRequest::of(FailureKind::UnexpectedStatus, answered),
        }
    }

    /// A 429: the credits are spent where the last report says so, else we were too fast.
    fn limited(&self, what: &str, answered: String, retry_after: Option<Duration>, now: Timestamp) -> FailedRequest {
        let credit = self.learnt().credit.clone();
        let resets = credit.as_ref().and_then(|credit| credit.reset_at.copied());
        if let Some((used, limit)) = credit.as_ref().and_then(|credit| credit.used.copied().zip(credit.limit.copied()))
            && used >= limit
            && resets.is_none_or(|resets| resets > now)
        {
            let until = resets.unwrap_or(now + MAX_OPEN);
            let message =
                format!("{answered}: {used} of {limit} credits are used; they reset at {}", until.format("%Y-%m-%d %H:%M UTC"));
            return FailedRequest {
                failure: PollFailure { kind: FailureKind::QuotaExhausted, message: message.clone(), retry_at: Some(until) },
                retry: Retry::No,
                health: SourceHealth::QuotaSpent(until, message),
            };
        }
        let wait = retry_after.unwrap_or(self.tuning.limited_wait);
        let until = retry_after.map(|wait| now + TimeDelta::from_std(wait).unwrap_or(MAX_OPEN));
        let message = match until {
            Some(until) => format!("{answered}: asked to come back at {}", until.format("%Y-%m-%d %H:%M:%S UTC")),
            None => answered,
        };
        let fallback = now + TimeDelta::from_std(self.tuning.limited_first).unwrap_or(MAX_OPEN);
        tracing::debug!("{what} is limited");
        FailedRequest {
            failure: PollFailure {
                kind: FailureKind::RateLimited,
                message: message.clone(),
                retry_at: Some(until.unwrap_or(fallback)),
            },
            retry: if wait <= self.tuning.short_wait { Retry::After(wait) } else { Retry::No },
            health: SourceHealth::RateLimited(until, message),
        }
    }

    /// `Retry-After` as a wait: seconds, or a date by the server's own clock. At most an hour; none where it is over.
    pub(super) fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = match text.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let at = parse_http_date(text)?;
                let from = headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(parse_http_date);
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
    message.map(|text| format!(" (\"{}\")", redact::clip(&redact::printable(text), 160))).unwrap_or_default()
}
