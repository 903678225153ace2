//! The rejection of a request.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{SecondsFormat, TimeDelta};

use crate::RESPONSE_TIMEOUT;
use crate::response::credit_of;
use model::Timestamp;
use model::wire::{ErrorBody, Maybe, Metadata};
use store::catalog::{CatalogError, KeyUsage};
use store::facts::FactsError;

const MIN_RETRY_AFTER_SECS: i64 = 1;

/// The wait for data that the daemon has not polled yet.
const NOT_POLLED_RETRY_AFTER_SECS: i64 = 60;

#[derive(Debug)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub message: String,
    pub retry_after: Option<i64>,
    /// The credits of a valid key.
    pub usage: Option<KeyUsage>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None, usage: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Rejects a missing or invalid key. The message does not say which.
    pub fn invalid_key() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "x-api-key not found")
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub fn busy() -> Self {
        let retry_after = Some(RESPONSE_TIMEOUT.as_secs().cast_signed());
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "the service is busy: retry later") }
    }

    /// Rejects a request for data that the daemon of a mirror has not polled yet.
    pub fn not_polled(message: impl Into<String>) -> Self {
        let retry_after = Some(NOT_POLLED_RETRY_AFTER_SECS);
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    pub fn rate_limited(message: impl Into<String>, wait_secs: i64) -> Self {
        let retry_after = Some(wait_secs.max(MIN_RETRY_AFTER_SECS));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    pub fn quota_exhausted(reset_at: Timestamp, now: Timestamp) -> Self {
        let wait: TimeDelta = reset_at - now;
        Self::rate_limited(
            format!(
                "the credits of this period are used up: the quota resets at {}",
                reset_at.to_rfc3339_opts(SecondsFormat::Secs, true)
            ),
            wait.num_seconds(),
        )
    }
}

impl From<CatalogError> for Refusal {
    fn from(error: CatalogError) -> Self {
        // The cause is only logged for the operator.
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        if error.is_lost() {
            return Self { message: "the service cannot reach its database right now: retry later".into(), ..Self::busy() };
        }
        Self::internal("the service cannot read its data")
    }
}

impl From<FactsError> for Refusal {
    fn from(error: FactsError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        Self::internal("the service cannot read its data")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let metadata = self.usage.map(|usage| Metadata { credit: credit_of(usage).into(), ..Default::default() });
        let body = ErrorBody {
            metadata: Maybe::or_absent(metadata),
            status: false.into(),
            status_code: i64::from(self.status.as_u16()).into(),
            error_message: self.message.into(),
            ..Default::default()
        };
        let text = serde_json::to_string(&body).unwrap_or_else(|_| "{\"status\":false}".into());
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}

/// Shortens and sanitizes text of a request for error messages.
pub fn redact(text: &str) -> String {
    model::text::replaced(text, '\u{fffd}', 80)
}
