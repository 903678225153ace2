//! One page: a turn of the rate limiter, a request, its answer, and another try where that may help.

use std::time::Duration;

use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AGE, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use tokio::time::sleep;

use super::{
    base_server::BaseServer,
    breaker::{BreakerPermit, SourceHealth},
    client::{ClientInner, FetchCost},
    envelope::{self, AnswerPage, EnvelopeError},
    failed_request::{FailedRequest, Retry, said},
    fetch::FetchContext,
    page_walk, redact,
    route::{BaseAddress, RequestTarget},
};
use model::poll::{FailureKind, PollFailure};
use model::{config::SecretText, http_date::parse_http_date, rows::Charge, supply::ContentHash, wire::Credit};

/// The one header that carries the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Room made at once for a body of the length that the server tells, bytes; a longer one gets more as it comes.
const MAX_TRUSTED_LENGTH: usize = 1024 * 1024;

/// How much of the body of a refusal is read, bytes.
const MAX_ERROR_BODY: u64 = 64 * 1024;

impl ClientInner {
    /// Asks for one page until it comes or asking again is of no use.
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
    ) -> Result<AnswerPage, FailedRequest> {
        let mut tried = 0;
        loop {
            self.rate_limiter.turn(|| self.breaker.check(permit, what)).await.map_err(FailedRequest::unasked)?;
            cost.held.reserve(1).await.map_err(FailedRequest::unasked)?;
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
                    self.rate_limiter.hold(wait);
                    Duration::ZERO // everybody waits for the rate limiter
                }
            };
            tracing::debug!(tried, wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), "{}", failed.failure.message);
            sleep(wait).await;
        }
    }

    /// Wait before another try: four times as long each time, 30 % more or less.
    pub(super) fn backoff(&self, tried: u32) -> Duration {
        let factor = 4_u32.saturating_pow(tried.min(8));
        self.tuning.backoff.saturating_mul(factor).mul_f64(0.7 + 0.6 * fastrand::f64())
    }

    /// One request and its answer, with what it cost.
    async fn send(
        &self,
        fetch: &FetchContext<'_>,
        target: &RequestTarget,
        what: &str,
        number: u32,
        size: Option<i64>,
        cost: &mut FetchCost,
    ) -> Result<AnswerPage, FailedRequest> {
        let server = match target.base {
            BaseAddress::Current => &self.current,
            BaseAddress::Legacy => &self.legacy,
        };
        let mut request = server.http.get(server.address(target, number, self.source.page_size, size));
        if let Some(key) = &fetch.key {
            request = request.header(KEY_HEADER, self.key_header(key, what)?);
        }
        let mut credit = cost.held.spend();
        (cost.reported, cost.told_at) = (None, None);
        let answer = self.exchange(fetch, server, request, what, target.is_list, cost, &mut credit.request.charge).await;
        (credit.request.reported, credit.request.told_at) = (cost.reported.take(), cost.told_at.take());
        cost.credits += u32::from(matches!(credit.request.charge, Charge::One | Charge::Perhaps));
        answer
    }

    /// Sends a request and reads what comes. `charge` says at any time what it may have cost by then: one that was sent may have cost a
    /// credit, until it is known that it was refused.
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
    ) -> Result<AnswerPage, FailedRequest> {
        cost.requests += 1;
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                if error.is_connect() || error.is_builder() {
                    *charge = Charge::Free;
                }
                return Err(self.broken(what, error));
            }
        };
        self.hear_time(response.headers());
        let status = response.status();
        cost.status = Some(status.as_u16());
        if status != StatusCode::OK {
            let failed = self.refusal(fetch, what, server, response, cost).await;
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
                let most = self.source.max_body.0;
                let message = format!("{what} answered with more than {most} bytes; see source.max_body");
                return Err(FailedRequest::of(FailureKind::TooLarge, message));
            }
            Err(error) => return Err(self.broken(what, error)),
        };
        match read(body, content_type.as_deref(), is_list, fetch.known) {
            Ok(page) => {
                *charge = Charge::One;
                cost.told_at = page.metadata.query_date.copied();
                if let Some(credit) = page.metadata.credit.get() {
                    self.report_credit(credit, cost);
                }
                self.learnt().accepted_at = Some(self.clock.now());
                Ok(page)
            }
            Err(error) => {
                let is_refused = matches!(error, EnvelopeError::Refused { code: Some(400..), .. });
                let failed = self.no_envelope(fetch, what, error, retry_after, cost);
                if is_refused {
                    *charge = failed.charge();
                }
                Err(failed)
            }
        }
    }

    /// What time it is by the source, for a machine whose own clock is wrong.
    fn hear_time(&self, headers: &HeaderMap) {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        // What a cache has kept was true when it was made.
        let is_kept = text(AGE).is_some_and(|age| age.trim().parse().is_ok_and(|seconds: u64| seconds > 0));
        if let Some(date) = text(DATE).and_then(parse_http_date).filter(|_| !is_kept) {
            self.clock.source_told(date);
        }
    }

    /// The value of the header that carries the key.
    fn key_header(&self, key: &SecretText, what: &str) -> Result<HeaderValue, FailedRequest> {
        let Ok(mut value) = HeaderValue::from_str(key.expose().trim()) else {
            let message =
                format!("{what} was not sent: the key from {} holds characters that no header can carry", self.key_place());
            return Err(FailedRequest {
                failure: PollFailure { kind: FailureKind::Unauthorized, message: message.clone(), retry_at: None },
                retry: Retry::No,
                health: SourceHealth::KeyRefused(FailureKind::Unauthorized, message),
            });
        };
        value.set_sensitive(true);
        Ok(value)
    }

    /// A status 200 without an answer: text that is no envelope, or an envelope that refuses.
    fn no_envelope(
        &self,
        fetch: &FetchContext<'_>,
        what: &str,
        error: EnvelopeError,
        retry_after: Option<Duration>,
        cost: &mut FetchCost,
    ) -> FailedRequest {
        match error {
            EnvelopeError::Malformed { problem, is_broken } => {
                let message = redact::without_key(&format!("{what} answered {problem}"), fetch.key.as_ref());
                let retry = if is_broken { Retry::AfterBackoff } else { Retry::No };
                FailedRequest { retry, ..FailedRequest::of(FailureKind::BadAnswer, message) }
            }
            EnvelopeError::Refused { code, message, credit } => {
                if let Some(credit) = &credit {
                    self.report_credit(credit, cost);
                }
                let code = code.and_then(|code| u16::try_from(code).ok()).and_then(|code| StatusCode::from_u16(code).ok());
                let message = message.map(|text| redact::without_key(&text, fetch.key.as_ref()));
                let said = said(message.as_deref());
                match code {
                    Some(code) if code.is_client_error() || code.is_server_error() => {
                        let answered = format!("{what} answered status 200 with `status: false` and {code}{said}");
                        self.status_failure(fetch, code, what, answered, retry_after)
                    }
                    _ => FailedRequest::of(FailureKind::BadAnswer, format!("{what} answered with `status: false`{said}")),
                }
            }
        }
    }

    /// Any status but 200.
    async fn refusal(
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
            let to = target.map_or_else(|| "nowhere".to_owned(), |host| format!("to {host}"));
            let message = format!(
                "{what} answered {status}, a redirect {to}; redirects are not followed, for they would carry the key along"
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
        let answered = format!("{what} answered {status}{}", said(message.as_deref()));
        self.status_failure(fetch, status, what, answered, retry_after)
    }

    /// Reads a body up to `most` decoded bytes.
    async fn body(&self, mut response: Response, most: u64, cost: &mut FetchCost) -> Result<BoundedBody, reqwest::Error> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let told = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        let mut body = Vec::with_capacity(told.min(most).min(MAX_TRUSTED_LENGTH));
        while let Some(chunk) = response.chunk().await? {
            cost.bytes += chunk.len() as u64;
            if body.len().saturating_add(chunk.len()) > most {
                body.extend_from_slice(chunk.get(..most - body.len()).unwrap_or_default());
                return Ok(BoundedBody::Longer(body));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(BoundedBody::Whole(body))
    }

    fn report_credit(&self, credit: &Credit, cost: &mut FetchCost) {
        cost.credit = Some(credit.clone());
        cost.reported = Some(credit.clone());
        self.learnt().credit = Some(credit.clone());
    }
}

/// Reads a page: where an answer is `known`, goes through its `data` only if it is another one. One page of several is compared
/// with it once they are all here.
pub(super) fn read(
    body: Vec<u8>,
    content_type: Option<&str>,
    is_list: bool,
    known: Option<ContentHash>,
) -> Result<AnswerPage, EnvelopeError> {
    let Some(known) = known else { return envelope::read(body, content_type, is_list) };
    let body = match envelope::skim(body, is_list) {
        Ok(page) if page.metadata.total_pages.copied().is_some_and(|pages| pages > 1) => return Ok(page),
        Ok(page) if page_walk::hash(std::slice::from_ref(&page)) == known => return Ok(page),
        Ok(page) => match page.gone_through() {
            Ok(page) => return Ok(page),
            Err(body) => body,
        },
        Err(body) => body,
    };
    envelope::read(body, content_type, is_list)
}

enum BoundedBody {
    Whole(Vec<u8>),
    /// Cut off at the bound.
    Longer(Vec<u8>),
}
