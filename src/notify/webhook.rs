//! A receiver that takes a POST, or a PUT where its service wants that. The bytes that are signed are the bytes that are sent.
//!
//! What is sent, and what an answer means, is the business of [`format`](super::format); this is the way there. Headers are those of
//! Standard Webhooks 1.0, where the receiver is one's own. No redirect is followed, no proxy of the environment is used (the address
//! that is checked is the one connected to), answers are read up to 4 KiB and never decompressed. The address and all secrets are read
//! at each attempt, and removed from everything that is recorded.

mod address;
mod schema;
mod settings;
mod signature;

use std::error::Error as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use ring::hmac;
use tokio::time::Instant;
use url::Url;

use super::SendResult;
use super::card::Brief;
use super::credentials::{Credentials, ReadError};
use super::format::{Credential, FormatSpec, Given, RequestError, WebhookFormat, WebhookRequest};
use super::network::{Forbidden, Guard};
use super::pace::RequestPace;
use super::progress::TakenParts;
use super::retry::{Outcome, parse_retry_after};
use super::scrub::{MAX_ANSWER_BYTES, Scrubber};
use address::{check_address, request_address};
use model::{DueDelivery, Timestamp, config::SecretText, text::error_chain};
pub use schema::webhook_schema;
use signature::{signatures, signing_keys};

/// Most of an answer that is read: what is kept, and enough behind it to find a secret that straddles the end.
const MAX_READ_BYTES: usize = MAX_ANSWER_BYTES + 2 * 1024;

/// Longest wait for the body of an answer whose status is known already.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A webhook receiver of the config, checked.
#[derive(Debug)]
pub struct WebhookReceiver {
    spec: &'static FormatSpec,
    format: WebhookFormat,
    address: Credential,
    bearer: Option<Credential>,
    signing: Option<Credential>,
    guard: Guard,
    client: reqwest::Client,
    timeout: Duration,
    external_url: Option<String>,
    pace: Option<RequestPace>,
    /// Of deliveries that take several requests: those that were taken. The service knows a repeat by its key.
    progress: TakenParts,
    template_failures: AtomicU64,
}

/// What all requests of an attempt share.
struct WebhookAttempt<'a> {
    url: Url,
    keys: Vec<hmac::Key>,
    bearer: Option<SecretText>,
    scrub: Scrubber,
    deadline: Instant,
    webhook_id: &'a str,
    now: Timestamp,
}

/// Why an attempt ends before anything is sent.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Secrets(#[from] ReadError),
    #[error("the receiver has no address: give `url`, or `url_file`")]
    NoAddress,
    #[error(transparent)]
    Address(#[from] address::AddressError),
    #[error("{0}")]
    Signing(String),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl From<PrepareError> for SendResult {
    fn from(error: PrepareError) -> Self {
        match &error {
            PrepareError::Request(request) if !request.is_transient() => SendResult::refused(error_chain(&error)),
            _ => SendResult::later(error_chain(&error)),
        }
    }
}

impl WebhookReceiver {
    /// How often its template failed since this was last asked.
    pub(super) fn take_template_failures(&self) -> u64 {
        self.template_failures.swap(0, Ordering::Relaxed)
    }

    /// One attempt: all requests of the delivery, in their order, until one is not taken.
    pub(super) async fn send(&self, delivery: &DueDelivery, now: Timestamp) -> SendResult {
        let (attempt, requests) = match self.prepare(delivery, now).await {
            Ok(prepared) => prepared,
            Err(error) => return error.into(),
        };
        let taken = self.progress.taken(&delivery.webhook_id);
        let (count, mut done) = (requests.len(), taken.len());
        let mut last = None;
        for request in requests.into_iter().filter(|request| !taken.contains(&request.key)) {
            if let Some(error) = &request.template_error {
                self.template_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(receiver = %delivery.receiver, error, "a receiver's template failed: the built-in message goes out");
            }
            let key = request.key.clone();
            let result = self.post(&attempt, request).await;
            if result.outcome != Outcome::Accepted {
                let text = if count > 1 { format!("{done} of {count} were taken; then: {}", result.text) } else { result.text };
                return SendResult { text, ..result };
            }
            done += 1;
            if count > 1 {
                self.progress.remember(&delivery.webhook_id, key);
            }
            last = Some(result);
        }
        self.progress.forget(&delivery.webhook_id);
        // None: all of it was taken by earlier attempts, the last of which did not come to its end.
        last.unwrap_or_else(|| SendResult {
            outcome: Outcome::Accepted,
            status: None,
            text: format!("all {count} were taken before"),
        })
    }

    /// Reads the secrets, and makes the requests of the delivery.
    async fn prepare<'a>(
        &self,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> Result<(WebhookAttempt<'a>, Vec<WebhookRequest>), PrepareError> {
        let own = self.format.credentials();
        let secrets: Vec<Credential> =
            std::iter::once(&self.address).chain(&self.signing).chain(&self.bearer).chain(&own).cloned().collect();
        let credentials = Credentials::read(secrets).await?;
        let text_of = |credential: &Option<Credential>| credentials.get(credential.as_ref()?);
        let address = credentials.get(&self.address).map(SecretText::expose).or(self.spec.address);
        let address = address.ok_or(PrepareError::NoAddress)?;
        let url = check_address(address, &self.guard)?;
        let signing = text_of(&self.signing).map(SecretText::expose);
        let keys = signing.map(signing_keys).transpose().map_err(PrepareError::Signing)?.unwrap_or_default();
        let brief = Brief { delivery, external_url: self.external_url.as_deref(), now };
        let given = Given { credentials: &credentials, has_path: url.path().len() > 1 };
        let requests = self.format.requests(&brief, &given)?;
        let others = own.iter().chain(&self.bearer).filter_map(|credential| credentials.get(credential)).map(SecretText::expose);
        let attempt = WebhookAttempt {
            scrub: Scrubber::of_webhook(address, &url, signing, others),
            url,
            keys,
            bearer: text_of(&self.bearer).map(|token| format!("Bearer {}", token.expose()).into()),
            deadline: Instant::now() + self.timeout,
            webhook_id: &delivery.webhook_id,
            now,
        };
        Ok((attempt, requests))
    }

    async fn post(&self, attempt: &WebhookAttempt<'_>, request: WebhookRequest) -> SendResult {
        if let Err(wait) = self.wait_for_pace(attempt.deadline).await {
            let retry_after = chrono::TimeDelta::from_std(wait).ok();
            let text = "not sent yet: more at once than the service takes".to_owned();
            return SendResult { outcome: Outcome::Later { retry_after }, status: None, text };
        }
        let headers = match self.headers(attempt, &request) {
            Ok(headers) => headers,
            Err(why) => return SendResult::refused(why),
        };
        let Some(url) = request_address(&attempt.url, &request) else {
            return SendResult::refused("the receiver's address takes no path");
        };
        let method = if request.is_put { Method::PUT } else { Method::POST };
        let sending = self.client.request(method, url).headers(headers).body(request.body).send();
        let response = match tokio::time::timeout_at(attempt.deadline, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return SendResult::later(attempt.scrub.clean(&describe(error.without_url(), self.timeout))),
            Err(_) => return SendResult::later(format!("no answer within {:?}", self.timeout)),
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| parse_retry_after(text, attempt.now));
        let body = read_answer(response).await;
        let (outcome, note) = self.spec.outcome(status, retry_after, &body);
        let text = attempt.scrub.clean(&body);
        let text = match (status, text.is_empty()) {
            (300..=399, _) => format!("answered with a redirect ({status}), which is never followed: give the final address"),
            (_, true) => format!("answered {status} without a text"),
            (_, false) => text,
        };
        let text = note.map_or(text.clone(), |note| format!("{note}: {text}"));
        SendResult { outcome, status: Some(status), text }
    }

    /// Waits for the service's pace; says how long the wait is where it ends after the deadline.
    async fn wait_for_pace(&self, deadline: Instant) -> Result<(), Duration> {
        if let Some(pace) = &self.pace {
            tokio::time::sleep_until(pace.take(Instant::now(), deadline)?).await;
        }
        Ok(())
    }

    /// The headers of a request; those of Standard Webhooks where the format has them.
    fn headers(&self, attempt: &WebhookAttempt<'_>, request: &WebhookRequest) -> Result<HeaderMap, &'static str> {
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_str(&request.content_type).map_err(|_| "the content type is no header value")?;
        headers.insert(CONTENT_TYPE, content_type);
        if let Some(authorization) = request.authorization.as_ref().or(attempt.bearer.as_ref()) {
            let mut value = HeaderValue::from_str(authorization.expose())
                .map_err(|_| "the receiver's token or key holds what no header may hold")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if self.spec.is_signed() {
            let timestamp = attempt.now.timestamp();
            let id = HeaderValue::from_str(attempt.webhook_id).map_err(|_| "the delivery's id is no header value")?;
            headers.insert(HeaderName::from_static("webhook-id"), id);
            headers.insert(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(timestamp));
            if let Some(signature) = signatures(&attempt.keys, attempt.webhook_id, timestamp, &request.body) {
                let signature = HeaderValue::try_from(signature).map_err(|_| "the signature is no header value")?;
                headers.insert(HeaderName::from_static("webhook-signature"), signature);
            }
        }
        Ok(headers)
    }
}

/// What went wrong on the way, cause by cause.
fn describe(error: reqwest::Error, timeout: Duration) -> String {
    let mut cause = error.source();
    while let Some(source) = cause {
        if let Some(forbidden) = source.downcast_ref::<Forbidden>() {
            return forbidden.to_string();
        }
        cause = source.source();
    }
    if error.is_timeout() && error.is_connect() {
        return "no connection in time".into();
    }
    if error.is_timeout() {
        return format!("no answer within {timeout:?}");
    }
    error_chain(&error)
}

/// The beginning of the answer's body. Its status is known and decides: what cannot be read in time is left out.
async fn read_answer(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < MAX_READ_BYTES {
            let Ok(Some(chunk)) = response.chunk().await else { break };
            bytes.extend_from_slice(chunk.get(..MAX_READ_BYTES - bytes.len()).unwrap_or(&chunk));
        }
    };
    // Elapsed: what came so far is the answer.
    let _elapsed = tokio::time::timeout(ANSWER_TIMEOUT, read).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
pub mod tests;
