//! The meaning of a failed request for the caller, for retries, and for the breaker.

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
use model::{http_date::parse_http_date, phrase, rows::Charge, supply::Timestamp};

const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// The time after a success in which a 403 means that the key is valid but has no access to the requested data.
const KEY_TRUST_PERIOD: TimeDelta = TimeDelta::days(1);

pub(super) struct FailedRequest {
    pub failure: PollFailure,
    pub retry: Retry,
    pub health: SourceHealth,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Retry {
    No,
    AfterBackoff,
    After(Duration),
}

impl FailedRequest {
    /// A failure of this request only, while the source works.
    pub fn of(kind: FailureKind, message: String) -> Self {
        Self { failure: PollFailure { kind, message, retry_at: None }, retry: Retry::No, health: SourceHealth::Responded }
    }

    /// A failure of the whole source, which may end soon.
    fn down(kind: FailureKind, message: String) -> Self {
        let health = SourceHealth::Down(kind, message.clone());
        Self { retry: Retry::AfterBackoff, health, ..Self::of(kind, message) }
    }

    pub fn key_refused(kind: FailureKind, message: String) -> Self {
        let health = SourceHealth::KeyRejected(kind, message.clone());
        Self { health, ..Self::of(kind, message) }
    }

    fn quota_spent(until: Timestamp, message: String) -> Self {
        let health = SourceHealth::QuotaExhausted(until, message.clone());
        Self { health, ..Self::of(FailureKind::QuotaExhausted, message) }.retried_at(until)
    }

    fn retried_at(mut self, at: Timestamp) -> Self {
        self.failure.retry_at = Some(at);
        self
    }

    /// Returns the charge of a rejected request.
    pub fn charge(&self) -> Charge {
        if self.failure.kind == FailureKind::QuotaExhausted { Charge::Refused } else { Charge::Free }
    }

    /// A failure before a request was sent.
    pub fn not_sent(failure: PollFailure) -> Self {
        Self { failure, retry: Retry::No, health: SourceHealth::Unknown }
    }
}

impl ClientInner {
    /// Returns the failure of a request without a complete response.
    pub(super) fn connection_failure(&self, what: &str, error: reqwest::Error) -> FailedRequest {
        let (kind, did) = if error.is_timeout() {
            let limit = if error.is_connect() { self.source.connect_timeout } else { self.source.timeout };
            (FailureKind::Timeout, format!("{what} timed out (limit {limit})"))
        } else if error.is_connect() {
            let place = error.url().and_then(|url| Some(format!(" to {}:{}", url.host_str()?, url.port_or_known_default()?)));
            (FailureKind::Unreachable, format!("{what}: cannot connect{}", place.unwrap_or_default()))
        } else {
            (FailureKind::Unreachable, format!("{what}: the connection failed"))
        };
        let causes = redact::causes(error);
        let message = if causes.is_empty() { did } else { format!("{did}: {causes}") };
        FailedRequest::down(kind, redact::message(&message))
    }

    /// Returns the failure of an error status, from HTTP or from the envelope.
    pub(super) fn status_failure(
        &self,
        fetch: &FetchContext<'_>,
        status: StatusCode,
        what: &str,
        description: String,
        retry_after: Option<Duration>,
    ) -> FailedRequest {
        let now = self.clock.now();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let place = self.key_origin();
                let message = match &fetch.key {
                    None => match &self.source.api_key_file {
                        Some(path) if self.source.api_key.is_none() => {
                            format!("{description}: no key was sent, because {} is empty", path.display())
                        }
                        _ => format!(
                            "{description}: no key was sent; set source.api_key_file, source.api_key, or the credential api-key"
                        ),
                    },
                    Some(_) if status == StatusCode::FORBIDDEN => {
                        format!("{description}: the key from {place} has no access to this; check its plan")
                    }
                    Some(_) => format!("{description}: the key from {place} was rejected; check it"),
                };
                let is_key_good = status == StatusCode::FORBIDDEN
                    && fetch.key.is_some()
                    && self.learned().accepted_at.is_some_and(|at| now - at < KEY_TRUST_PERIOD && now >= at);
                let message = redact::message(&redact::without_key(&message, fetch.key.as_ref()));
                if is_key_good {
                    return FailedRequest::of(FailureKind::Forbidden, message);
                }
                let kind = if fetch.key.is_none() { FailureKind::NoKey } else { FailureKind::Unauthorized };
                FailedRequest::key_refused(kind, message)
            }
            StatusCode::PAYMENT_REQUIRED => {
                let wait = retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()).unwrap_or(MAX_OPEN);
                FailedRequest::quota_spent(now + wait, description)
            }
            StatusCode::TOO_MANY_REQUESTS => self.limited(what, description, retry_after, now),
            StatusCode::NOT_FOUND => FailedRequest::of(FailureKind::NotFound, description),
            StatusCode::REQUEST_TIMEOUT => FailedRequest::down(FailureKind::Timeout, description),
            status if status.is_server_error() => {
                let mut failed = FailedRequest::down(FailureKind::ServerError, description);
                if let Some(wait) = retry_after {
                    failed.retry = if wait <= self.tuning.short_wait { Retry::After(wait) } else { Retry::No };
                    failed.failure.retry_at = TimeDelta::from_std(wait).ok().map(|wait| now + wait);
                }
                failed
            }
            _ => FailedRequest::of(FailureKind::UnexpectedStatus, description),
        }
    }

    /// Returns the failure of a 429: an exhausted quota if the last report says so, else a rate limit.
    fn limited(&self, what: &str, description: String, retry_after: Option<Duration>, now: Timestamp) -> FailedRequest {
        let credit = self.learned().credit.clone();
        let resets = credit.as_ref().and_then(|credit| credit.reset_at.copied());
        if let Some((used, limit)) = credit.as_ref().and_then(|credit| credit.used.copied().zip(credit.limit.copied()))
            && used >= limit
            && resets.is_none_or(|resets| resets > now)
        {
            let until = resets.unwrap_or(now + MAX_OPEN);
            let message =
                format!("{description}: {used} of {limit} credits used; the quota resets at {}", phrase::instant_iso(until));
            return FailedRequest::quota_spent(until, message);
        }
        let wait = retry_after.unwrap_or(self.tuning.limited_wait);
        let until = retry_after.map(|wait| now + TimeDelta::from_std(wait).unwrap_or(MAX_OPEN));
        let message = match until {
            Some(until) => format!("{description}: retry after {}", phrase::instant_iso_seconds(until)),
            None => description,
        };
        let fallback = now + TimeDelta::from_std(self.tuning.limited_first).unwrap_or(MAX_OPEN);
        tracing::debug!(request = what, "rate limited by the source");
        FailedRequest {
            retry: if wait <= self.tuning.short_wait { Retry::After(wait) } else { Retry::No },
            health: SourceHealth::RateLimited(until, message.clone()),
            ..FailedRequest::of(FailureKind::RateLimited, message)
        }
        .retried_at(until.unwrap_or(fallback))
    }

    /// Parses `Retry-After`: seconds, or a date by the server's clock. At most an hour. `None` if the header is missing or not valid, or if
    /// its time has passed.
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

    /// Returns the origin of the key, for messages.
    pub(super) fn key_origin(&self) -> &'static str {
        if self.source.api_key.is_some() {
            "source.api_key"
        } else if self.source.api_key_file.is_some() {
            "source.api_key_file"
        } else {
            "the systemd credential api-key"
        }
    }
}

/// Quotes the server's message for the end of an error.
pub(super) fn quoted(message: Option<&str>) -> String {
    message.map(|text| format!(" (\"{}\")", redact::clip(&redact::printable(text), 160))).unwrap_or_default()
}
