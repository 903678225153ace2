//! Requests a page, with rate limit, credit, and retries.

use std::time::Duration;

use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AGE, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use tokio::time::sleep;

use super::{
    base_server::BaseServer,
    breaker::BreakerPermit,
    client::{ClientInner, FetchCost},
    envelope::{self, EnvelopeError, ResponsePage},
    failed_request::{FailedRequest, Retry, quoted},
    fetch::FetchContext,
    page_walk, redact,
    route::{BaseAddress, RequestTarget},
};
use model::poll::FailureKind;
use model::{config::SecretText, http_date::parse_http_date, rows::Charge, supply::ContentHash, wire::Credit};

/// The header that contains the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// The maximum number of bytes allocated in advance because of `Content-Length`.
const MAX_TRUSTED_LENGTH: usize = 1024 * 1024;

/// The number of bytes read of an error body.
const MAX_ERROR_BODY: u64 = 64 * 1024;

impl ClientInner {
    /// Requests a page, and retries while that may help.
    #[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename them")]
    pub(super) async fn page(
        &self,
        fetch: &FetchContext<'_>,
        target: &RequestTarget,
        what: &str,
        number: u32,
        size: Option<i64>,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<ResponsePage, FailedRequest> {
        let mut tried = 0;
        loop {
            self.rate_limiter.acquire(|| self.breaker.check(permit, what)).await.map_err(FailedRequest::not_sent)?;
            cost.reserved.reserve(1).await.map_err(FailedRequest::not_sent)?;
            let mut failed = match self.send(fetch, target, what, number, size, cost).await {
                Ok(page) => return Ok(page),
                Err(failed) => failed,
            };
            tried += 1;
            failed.failure.message = redact::message(&redact::without_key(&failed.failure.message, fetch.key.as_ref()));
            let wait = match failed.retry {
                Retry::No => return Err(failed),
                _ if tried >= self.tuning.tries.max(1) => {
                    if tried > 1 {
                        let message = format!("{} (tried {tried} times)", failed.failure.message);
                        failed.failure.message = redact::message(&message);
                    }
                    return Err(failed);
                }
                Retry::AfterBackoff => self.backoff(tried - 1),
                Retry::After(wait) => {
                    self.rate_limiter.block_for(wait);
                    Duration::ZERO // all fetches wait for the rate limiter
                }
            };
            tracing::debug!(tried, wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), "{}", failed.failure.message);
            sleep(wait).await;
        }
    }

    /// Returns the wait before a retry: four times as long each time, with a jitter of 30 %.
    pub(super) fn backoff(&self, tried: u32) -> Duration {
        let factor = 4_u32.saturating_pow(tried.min(8));
        self.tuning.backoff.saturating_mul(factor).mul_f64(0.7 + 0.6 * fastrand::f64())
    }

    /// Sends a request and records its cost.
    async fn send(
        &self,
        fetch: &FetchContext<'_>,
        target: &RequestTarget,
        what: &str,
        number: u32,
        size: Option<i64>,
        cost: &mut FetchCost,
    ) -> Result<ResponsePage, FailedRequest> {
        let server = match target.base {
            BaseAddress::Current => &self.current,
            BaseAddress::Legacy => &self.legacy,
        };
        let mut request = server.http.get(server.address(target, number, self.source.page_size, size));
        if let Some(key) = &fetch.key {
            request = request.header(KEY_HEADER, self.key_header(key, what)?);
        }
        let mut credit = cost.reserved.spend(fetch.key.as_ref());
        (cost.reported, cost.query_date) = (None, None);
        let response = self.exchange(fetch, server, request, what, target.is_list, cost, &mut credit.request.charge).await;
        (credit.request.reported, credit.request.api_time) = (cost.reported.take(), cost.query_date.take());
        cost.credits += u32::from(matches!(credit.request.charge, Charge::One | Charge::Perhaps));
        response
    }

    /// Sends a request and reads the response. Updates `charge` at each step, so that it is correct even if the task is canceled: a
    /// sent request may have cost a credit until the response shows otherwise.
    #[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename them")]
    async fn exchange(
        &self,
        fetch: &FetchContext<'_>,
        server: &BaseServer,
        request: RequestBuilder,
        what: &str,
        is_list: bool,
        cost: &mut FetchCost,
        charge: &mut Charge,
    ) -> Result<ResponsePage, FailedRequest> {
        cost.requests += 1;
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                if error.is_connect() || error.is_builder() {
                    *charge = Charge::Free;
                }
                return Err(self.connection_failure(what, error));
            }
        };
        self.record_server_time(response.headers());
        let status = response.status();
        cost.status = Some(status.as_u16());
        if status != StatusCode::OK {
            let failed = self.error_status(fetch, what, server, response, cost).await;
            if !status.is_success() {
                *charge = failed.charge();
            }
            return Err(failed);
        }
        let content_type =
            response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let retry_after = self.retry_after(response.headers());
        let body = match self.body(response, self.source.max_body.0, cost).await {
            Ok(BoundedBody::Whole(body)) => body,
            Ok(BoundedBody::Longer(_)) => {
                let max_bytes = self.source.max_body.0;
                let message = format!("the response to {what} exceeds {max_bytes} bytes; see source.max_body");
                return Err(FailedRequest::of(FailureKind::TooLarge, message));
            }
            Err(error) => return Err(self.connection_failure(what, error)),
        };
        match read(body, content_type.as_deref(), is_list, fetch.known) {
            Ok(page) => {
                *charge = Charge::One;
                cost.query_date = page.metadata.query_date.copied();
                if let Some(credit) = page.metadata.credit.get() {
                    self.report_credit(credit, cost);
                }
                self.learned().accepted_at = Some(self.clock.now());
                Ok(page)
            }
            Err(error) => {
                let is_refused = matches!(error, EnvelopeError::Refused { code: Some(400..), .. });
                let failed = self.invalid_envelope(fetch, what, error, retry_after, cost);
                if is_refused {
                    *charge = failed.charge();
                }
                Err(failed)
            }
        }
    }

    /// Records the time of the source, in case the clock of this machine is wrong.
    fn record_server_time(&self, headers: &HeaderMap) {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        // A cached response has the time of its creation.
        let is_kept = text(AGE).is_some_and(|age| age.trim().parse().is_ok_and(|seconds: u64| seconds > 0));
        if let Some(date) = text(DATE).and_then(parse_http_date).filter(|_| !is_kept) {
            self.clock.record_source_time(date);
        }
    }

    fn key_header(&self, key: &SecretText, what: &str) -> Result<HeaderValue, FailedRequest> {
        let Ok(mut value) = HeaderValue::from_str(key.expose().trim()) else {
            let message = format!(
                "the key from {} contains characters that are not valid in a header; {what} was not sent",
                self.key_origin()
            );
            return Err(FailedRequest::key_refused(FailureKind::UnusableKey, message));
        };
        value.set_sensitive(true);
        Ok(value)
    }

    /// Returns the failure of a response with status 200 but without a valid envelope.
    fn invalid_envelope(
        &self,
        fetch: &FetchContext<'_>,
        what: &str,
        error: EnvelopeError,
        retry_after: Option<Duration>,
        cost: &mut FetchCost,
    ) -> FailedRequest {
        match error {
            EnvelopeError::Malformed { problem, is_broken } => {
                let message = redact::without_key(&format!("{what} returned {problem}"), fetch.key.as_ref());
                let retry = if is_broken { Retry::AfterBackoff } else { Retry::No };
                FailedRequest { retry, ..FailedRequest::of(FailureKind::BadAnswer, message) }
            }
            EnvelopeError::Refused { code, message, credit } => {
                if let Some(credit) = &credit {
                    self.report_credit(credit, cost);
                }
                let code = code.and_then(|code| u16::try_from(code).ok()).and_then(|code| StatusCode::from_u16(code).ok());
                let message = message.map(|text| redact::without_key(&text, fetch.key.as_ref()));
                let quoted = quoted(message.as_deref());
                match code {
                    Some(code) if code.is_client_error() || code.is_server_error() => {
                        let description = format!("{what} returned status 200 with `status: false` and {code}{quoted}");
                        self.status_failure(fetch, code, what, description, retry_after)
                    }
                    _ => FailedRequest::of(FailureKind::BadAnswer, format!("{what} returned `status: false`{quoted}")),
                }
            }
        }
    }

    /// Returns the failure of a response with another status than 200.
    async fn error_status(
        &self,
        fetch: &FetchContext<'_>,
        what: &str,
        server: &BaseServer,
        response: Response,
        cost: &mut FetchCost,
    ) -> FailedRequest {
        let status = response.status();
        let retry_after = self.retry_after(response.headers());
        if status.is_redirection() {
            let target = response
                .headers()
                .get(LOCATION)
                .and_then(|value| value.to_str().ok())
                .and_then(|target| server.base.join(target).ok())
                .and_then(|target| target.host_str().map(redact::excerpt));
            let to = target.map_or_else(|| "without a target".to_owned(), |host| format!("to {host}"));
            let message = format!(
                "{what} returned {status}, a redirect {to}; redirects are not followed, because they would forward the key"
            );
            return FailedRequest::of(FailureKind::UnexpectedStatus, message);
        }
        let body = match self.body(response, MAX_ERROR_BODY, cost).await {
            Ok(BoundedBody::Whole(body) | BoundedBody::Longer(body)) => body,
            Err(_) => Vec::new(), // the status says enough
        };
        let (message, credit) = envelope::read_error(&body);
        if let Some(credit) = &credit {
            self.report_credit(credit, cost);
        }
        let message = message.map(|text| redact::without_key(&text, fetch.key.as_ref()));
        let description = format!("{what} returned {status}{}", quoted(message.as_deref()));
        self.status_failure(fetch, status, what, description, retry_after)
    }

    /// Reads at most `max_bytes` decoded bytes of a body.
    async fn body(&self, mut response: Response, max_bytes: u64, cost: &mut FetchCost) -> Result<BoundedBody, reqwest::Error> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        let mut body = self.buffers.take(announced.min(max_bytes).min(MAX_TRUSTED_LENGTH));
        while let Some(chunk) = response.chunk().await? {
            cost.bytes += chunk.len() as u64;
            if body.len().saturating_add(chunk.len()) > max_bytes {
                body.extend_from_slice(chunk.get(..max_bytes - body.len()).unwrap_or_default());
                return Ok(BoundedBody::Longer(body));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(BoundedBody::Whole(body))
    }

    fn report_credit(&self, credit: &Credit, cost: &mut FetchCost) {
        cost.credit = Some(credit.clone());
        cost.reported = Some(credit.clone());
        self.learned().credit = Some(credit.clone());
    }
}

/// Parses a page. If a hash is `known`, validates `data` only if the hash differs. Several pages are compared when all are read.
pub(super) fn read(
    body: Vec<u8>,
    content_type: Option<&str>,
    is_list: bool,
    known: Option<ContentHash>,
) -> Result<ResponsePage, EnvelopeError> {
    let Some(known) = known else { return envelope::read(body, content_type, is_list) };
    let body = match envelope::skim(body, is_list) {
        Ok(page) if page.metadata.total_pages.copied().is_some_and(|pages| pages > 1) => return Ok(page),
        Ok(page) if page_walk::hash(std::slice::from_ref(&page)) == known => return Ok(page),
        Ok(page) => match page.validated() {
            Ok(page) => return Ok(page),
            Err(body) => body,
        },
        Err(body) => body,
    };
    envelope::read(body, content_type, is_list)
}

enum BoundedBody {
    Whole(Vec<u8>),
    /// The beginning of a longer body.
    Longer(Vec<u8>),
}
