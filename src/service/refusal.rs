//! A request that is not answered: status, sentence, and how long to wait.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{SecondsFormat, TimeDelta};

use crate::ANSWER_TIMEOUT;
use crate::response::credit_of;
use model::Timestamp;
use model::wire::{ErrorBody, Maybe, Metadata};
use store::catalog::{CatalogError, KeyUsage};
use store::facts::FactsError;

/// What a spent rate per minute is told to wait at least, seconds.
const MIN_RETRY_AFTER_SECS: i64 = 1;

/// What is to be read from the source first is worth asking for again after this, seconds.
const NOT_YET_RETRY_AFTER_SECS: i64 = 60;

/// A request that is not answered, and why.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub message: String,
    pub retry_after: Option<i64>,
    /// How the credits of whoever asked stand, where a key is good.
    pub usage: Option<KeyUsage>,
}

impl Refusal {
    /// A question that makes no sense.
    pub fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), retry_after: None, usage: None }
    }

    /// Something that is not there.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), retry_after: None, usage: None }
    }

    /// No key, or none that opens anything: which of both is not told.
    pub fn keyless() -> Self {
        Self { status: StatusCode::UNAUTHORIZED, message: "x-api-key not found".into(), retry_after: None, usage: None }
    }

    /// Our own fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: message.into(), retry_after: None, usage: None }
    }

    pub fn busy() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "the service is busy: ask again later".into(),
            retry_after: Some(ANSWER_TIMEOUT.as_secs().cast_signed()),
            usage: None,
        }
    }

    /// A mirror was not told yet.
    pub fn not_yet(message: impl Into<String>) -> Self {
        let retry_after = Some(NOT_YET_RETRY_AFTER_SECS);
        Self { status: StatusCode::SERVICE_UNAVAILABLE, message: message.into(), retry_after, usage: None }
    }

    pub fn too_many(message: impl Into<String>, wait_secs: i64) -> Self {
        let wait = wait_secs.max(MIN_RETRY_AFTER_SECS);
        Self { status: StatusCode::TOO_MANY_REQUESTS, message: message.into(), retry_after: Some(wait), usage: None }
    }

    pub fn spent(reset_at: Timestamp, now: Timestamp) -> Self {
        let wait: TimeDelta = reset_at - now;
        Self::too_many(
            format!(
                "the credits of this period are used up; they reset at {}",
                reset_at.to_rfc3339_opts(SecondsFormat::Secs, true)
            ),
            wait.num_seconds(),
        )
    }
}

impl From<CatalogError> for Refusal {
    fn from(error: CatalogError) -> Self {
        // The cause is for whoever runs the service; who asks learns that it is not the question.
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        if error.is_lost() {
            return Self { message: "the service cannot reach its data now: ask again later".into(), ..Self::busy() };
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

/// What came from outside, short enough to be shown.
pub fn redact(text: &str) -> String {
    model::text::replaced(text, '\u{fffd}', 80)
}
