//! Webhook receivers: sends the requests that a [`format`](super::format) writes.
//!
//! Receivers that verify signatures get the headers of Standard Webhooks 1.0, which sign the exact bytes of the body. Redirects are not
//! followed and proxies are not used, so that the checked address is the one connected to. Responses are read up to a few KiB and never
//! decompressed. URL and secrets are read for each attempt, and redacted from everything that is recorded.

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
use super::allowed_addresses::{Forbidden, Guard};
use super::card::Brief;
use super::credentials::{Credentials, ReadError};
use super::format::{
    Credential, FormatInput, FormatKeyValue, FormatSpec, RequestError, ServiceResponse, WebhookFormat, WebhookRequest,
};
use super::pace::RequestPace;
use super::progress::AcceptedParts;
use super::retry::{Outcome, parse_retry_after};
use super::scrub::{MAX_RESPONSE_BYTES, Scrubber};
use address::{check_address, request_address};
use model::{
    DueDelivery, Timestamp,
    config::{Secret, SecretText},
    text::error_chain,
};
pub use schema::webhook_schema;
use signature::{signatures, signing_keys};

/// The maximum number of bytes read of a response: the stored part, and enough after it to find a secret that extends beyond it.
const MAX_READ_BYTES: usize = MAX_RESPONSE_BYTES + 2 * 1024;

/// The header of messages that are sent again on request.
const REPLAY_HEADER: &str = "cliffwatch-replay";

/// The timeout for the body of a response after its status arrived.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A validated webhook receiver.
#[derive(Debug)]
pub struct WebhookReceiver {
    spec: &'static FormatSpec,
    format: WebhookFormat,
    address: Credential,
    secrets: Vec<Credential>,
    guard: Guard,
    client: reqwest::Client,
    timeout: Duration,
    external_url: Option<String>,
    pace: Option<RequestPace>,
    progress: AcceptedParts,
    template_failures: AtomicU64,
}

/// The data that all requests of an attempt share.
struct WebhookAttempt<'a> {
    url: Url,
    keys: Vec<hmac::Key>,
    bearer: Option<SecretText>,
    scrub: Scrubber,
    deadline: Instant,
    webhook_id: &'a str,
    is_replay: bool,
    now: Timestamp,
}

/// An error before the first request.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Secrets(#[from] ReadError),
    #[error("the receiver has no URL: set `url` or `url_file`")]
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
    /// Continues the unfinished deliveries of the receiver that this one replaces, unless it sends to another service or account, which
    /// has accepted nothing yet.
    pub(super) fn continue_from(&self, earlier: &Self) {
        let source = |credential: &Credential| {
            let Secret { inline, file, .. } = &credential.secret;
            (credential.key, inline.clone(), file.clone())
        };
        let sources = |of: &Self| std::iter::once(&of.address).chain(&of.secrets).map(source).collect::<Vec<_>>();
        if std::ptr::eq(self.spec, earlier.spec) && sources(self) == sources(earlier) {
            self.progress.continue_from(&earlier.progress);
        }
    }

    pub(super) fn take_template_failures(&self) -> u64 {
        self.template_failures.swap(0, Ordering::Relaxed)
    }

    /// Makes one attempt: sends the requests of the delivery in order until one is not accepted.
    pub(super) async fn send(&self, delivery: &DueDelivery, now: Timestamp) -> SendResult {
        let (attempt, requests) = match self.prepare(delivery, now).await {
            Ok(prepared) => prepared,
            Err(error) => return error.into(),
        };
        let accepted = self.progress.accepted(&delivery.webhook_id);
        let (count, mut done) = (requests.len(), accepted.len());
        let mut last = None;
        for request in requests.into_iter().filter(|request| !accepted.contains(&request.key)) {
            if let Some(error) = &request.template_error {
                self.template_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(receiver = %delivery.receiver, error, "a receiver's template failed, sending the built-in message");
            }
            let key = request.key.clone();
            let result = self.post(&attempt, request).await;
            if result.outcome != Outcome::Accepted {
                let text =
                    if count > 1 { format!("{done} of {count} requests accepted; then: {}", result.text) } else { result.text };
                return SendResult { text, ..result };
            }
            done += 1;
            if count > 1 {
                self.progress.remember(&delivery.webhook_id, key);
            }
            last = Some(result);
        }
        self.progress.forget(&delivery.webhook_id);
        // Earlier attempts sent all requests, but the last one was not recorded.
        last.unwrap_or_else(|| SendResult {
            outcome: Outcome::Accepted,
            status: None,
            text: format!("all {count} requests were accepted earlier"),
        })
    }

    async fn prepare<'a>(
        &self,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> Result<(WebhookAttempt<'a>, Vec<WebhookRequest>), PrepareError> {
        let credentials = Credentials::read(std::iter::once(&self.address).chain(&self.secrets).cloned().collect()).await?;
        let text_of = |value| credentials.get(self.spec.key_for(value)?.name).map(SecretText::expose);
        let address = credentials.get(self.address.key).map(SecretText::expose).or(self.spec.address);
        let address = address.ok_or(PrepareError::NoAddress)?;
        let url = check_address(address, &self.guard)?;
        let signing = text_of(FormatKeyValue::SigningSecrets);
        let keys = signing.map(signing_keys).transpose().map_err(PrepareError::Signing)?.unwrap_or_default();
        let brief = Brief { delivery, external_url: self.external_url.as_deref(), now };
        let input = FormatInput { credentials: &credentials, has_path: url.path().len() > 1 };
        let requests = self.format.requests(&brief, &input)?;
        let secrets = self.secrets.iter().filter_map(|secret| credentials.get(secret.key)).map(SecretText::expose);
        let attempt = WebhookAttempt {
            scrub: Scrubber::of_webhook(address, &url, signing, secrets),
            url,
            keys,
            bearer: text_of(FormatKeyValue::BearerToken).map(|token| format!("Bearer {token}").into()),
            deadline: Instant::now() + self.timeout,
            webhook_id: &delivery.webhook_id,
            is_replay: delivery.replay.is_some(),
            now,
        };
        Ok((attempt, requests))
    }

    async fn post(&self, attempt: &WebhookAttempt<'_>, request: WebhookRequest) -> SendResult {
        if let Err(wait) = self.wait_for_pace(attempt.deadline).await {
            let retry_after = chrono::TimeDelta::from_std(wait).ok();
            let text = "not sent yet: the rate limit of the service is reached".to_owned();
            return SendResult { outcome: Outcome::Later { retry_after }, status: None, text };
        }
        let headers = match self.headers(attempt, &request) {
            Ok(headers) => headers,
            Err(why) => return SendResult::refused(why),
        };
        let Some(url) = request_address(&attempt.url, &request) else {
            return SendResult::refused("the receiver's URL cannot have a path");
        };
        let method = if request.is_put { Method::PUT } else { Method::POST };
        let sending = self.client.request(method, url).headers(headers).body(request.body).send();
        let response = match tokio::time::timeout_at(attempt.deadline, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return SendResult::later(attempt.scrub.clean(&describe(error.without_url(), self.timeout))),
            Err(_) => return SendResult::later(format!("no response within {:?}", self.timeout)),
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| parse_retry_after(text, attempt.now));
        let (body, is_complete) = read_response(response).await;
        let (outcome, note) = self.spec.outcome(&ServiceResponse { status, retry_after, body: &body, is_complete });
        let text = attempt.scrub.clean(&body);
        let text = match (status, text.is_empty()) {
            (300..=399, _) => format!("status {status} is a redirect, which is not followed: set the final URL"),
            (_, true) => format!("status {status} with an empty body"),
            (_, false) => text,
        };
        let text = note.map_or(text.clone(), |note| format!("{note}: {text}"));
        SendResult { outcome, status: Some(status), text }
    }

    /// Waits for the rate limit, or returns the wait if it would end after the deadline.
    async fn wait_for_pace(&self, deadline: Instant) -> Result<(), Duration> {
        if let Some(pace) = &self.pace {
            tokio::time::sleep_until(pace.take(Instant::now(), deadline)?).await;
        }
        Ok(())
    }

    fn headers(&self, attempt: &WebhookAttempt<'_>, request: &WebhookRequest) -> Result<HeaderMap, &'static str> {
        let mut headers = HeaderMap::new();
        let content_type =
            HeaderValue::from_str(&request.content_type).map_err(|_| "the content type is not a valid header value")?;
        headers.insert(CONTENT_TYPE, content_type);
        if let Some(authorization) = request.authorization.as_ref().or(attempt.bearer.as_ref()) {
            let mut value = HeaderValue::from_str(authorization.expose())
                .map_err(|_| "the receiver's token or key contains characters that are not valid in a header")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if attempt.is_replay {
            headers.insert(HeaderName::from_static(REPLAY_HEADER), HeaderValue::from_static("true"));
        }
        if self.spec.is_signed() {
            let timestamp = attempt.now.timestamp();
            let id = HeaderValue::from_str(attempt.webhook_id).map_err(|_| "the webhook id is not a valid header value")?;
            headers.insert(HeaderName::from_static("webhook-id"), id);
            headers.insert(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(timestamp));
            if let Some(signature) = signatures(&attempt.keys, attempt.webhook_id, timestamp, &request.body) {
                let signature = HeaderValue::try_from(signature).map_err(|_| "the signature is not a valid header value")?;
                headers.insert(HeaderName::from_static("webhook-signature"), signature);
            }
        }
        Ok(headers)
    }
}

fn describe(error: reqwest::Error, timeout: Duration) -> String {
    let mut cause = error.source();
    while let Some(source) = cause {
        if let Some(forbidden) = source.downcast_ref::<Forbidden>() {
            return forbidden.to_string();
        }
        cause = source.source();
    }
    if error.is_timeout() && error.is_connect() {
        return "the connection timed out".into();
    }
    if error.is_timeout() {
        return format!("no response within {timeout:?}");
    }
    error_chain(&error)
}

/// Reads the beginning of the response body. Returns it, and whether it is the whole body: errors, timeouts, and the limit shorten it.
async fn read_response(mut response: reqwest::Response) -> (String, bool) {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < MAX_READ_BYTES {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(chunk.get(..MAX_READ_BYTES - bytes.len()).unwrap_or(&chunk)),
                end => return end.is_ok(),
            }
        }
        false
    };
    // After a timeout, the bytes read so far are used.
    let is_complete = tokio::time::timeout(RESPONSE_TIMEOUT, read).await.unwrap_or(false);
    (String::from_utf8_lossy(&bytes).into_owned(), is_complete)
}

#[cfg(test)]
pub mod tests;
