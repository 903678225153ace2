//! A receiver that takes a POST. The bytes that are signed are the bytes that are sent.
//!
//! Headers are those of Standard Webhooks 1.0. No redirect is followed, no proxy of the environment is used (the address that is
//! checked is the one connected to), answers are read up to 4 KiB and never decompressed. The address and the signing secrets are
//! read at each use, and removed from everything that is recorded.

use std::{error::Error as _, net::IpAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use ring::hmac;
use url::{Host, Url};

use super::{
    Problem, message,
    network::{self, Forbidden, Guard},
    retry::{Outcome, parse_retry_after},
    text,
};
use crate::{
    config::{self, Secret},
    diagnostic,
    store::model::DueDelivery,
    supply::{ReceiverName, Timestamp},
};

/// Longest answer that is kept, bytes.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024;

/// Most of an answer that is read: what is kept, and enough behind it to find a secret that straddles the end.
const MAX_READ_BYTES: usize = MAX_ANSWER_BYTES + 2 * 1024;

/// Longest wait for the body of an answer whose status is known already.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most signing secrets at once.
const MAX_SECRETS: usize = 8;

/// Shortest piece of an address that is taken for a secret of its own.
const MIN_SECRET_PIECE: usize = 8;

/// Shape of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Our own.
    #[default]
    Cliffwatch,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 1] = [Format::Cliffwatch];

    /// The word in the config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Cliffwatch => "cliffwatch",
        }
    }

    /// The format of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

/// Shortest beginning of a secret that is looked for at the end of an answer that may be cut, bytes.
const MIN_CUT_PIECE: usize = 4;

/// A webhook receiver, checked.
#[derive(Debug)]
pub struct Webhook {
    name: ReceiverName,
    format: Format,
    address: Secret,
    signing: Secret,
    guard: Guard,
    client: reqwest::Client,
    timeout: Duration,
    external_url: Option<String>,
}

/// Why an address cannot be used. Says nothing of the address itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL.
    #[error("the address is no URL: write it like \"https://example.com/hook\"")]
    NotUrl,
    /// Another protocol.
    #[error("the address must begin with https:// (http:// is for loopback alone)")]
    Scheme,
    /// Plain text over a network.
    #[error(
        "the address must be https: over http:// anyone on the way could read and forge alerts (http:// is for loopback alone)"
    )]
    Insecure,
    /// A private address, written as it is.
    #[error("the address is in a private network: if that is meant, list the network in `allow_networks`")]
    Private,
}

/// What came back: what it means, the status, and what the receiver or the failure said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What it means.
    pub outcome: Outcome,
    /// HTTP status or SMTP code.
    pub status: Option<u16>,
    /// In words, secrets removed.
    pub text: String,
}

impl Answer {
    /// A failure of our own or of the way there: tried again.
    pub(super) fn later(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::LATER, status: None, text: text.into() }
    }
}

impl Webhook {
    /// Checks a receiver's config and makes its client. All problems are pushed to `problems`; None where there was one.
    pub(super) fn build(
        index: usize,
        receiver: &config::Receiver,
        delivery: &config::Delivery,
        external_url: Option<&str>,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut problem = |key: &'static str, message: String| problems.push(Problem { receiver: index, key, message });

        let format = match receiver.format.as_deref() {
            None => Format::default(),
            Some(word) => Format::parse(word).unwrap_or_else(|| {
                let words = Format::ALL.map(Format::as_str);
                let meant = diagnostic::closest(word, words).unwrap_or(words[0]);
                problem("format", format!("{word:?} is no format: did you mean \"{meant}\"?"));
                Format::default()
            }),
        };
        let mut allowed = Vec::new();
        for text in &receiver.allow_networks {
            match text.parse() {
                Ok(network) => allowed.push(network),
                Err(message) => problem("allow_networks", message),
            }
        }
        let guard = Guard::new(allowed);
        let address = receiver.address();
        let address_key = if receiver.url.is_none() && receiver.url_file.is_some() { "url_file" } else { "url" };
        match address.resolve() {
            Err(error) => problem(address_key, super::chain(&error)),
            Ok(None) => problem("url", "a webhook needs its address: give `url`, or `url_file`".into()),
            Ok(Some(text)) => {
                if let Err(error) = check_address(text.expose(), &guard) {
                    problem(address_key, error.to_string());
                }
            }
        }
        let signing = receiver.signing();
        let signing_key = if receiver.secret.is_none() && receiver.secret_file.is_some() { "secret_file" } else { "secret" };
        match signing.resolve() {
            Err(error) => problem(signing_key, super::chain(&error)),
            Ok(None) => {}
            Ok(Some(text)) => {
                if let Err(message) = signing_keys(text.expose()) {
                    problem(signing_key, message);
                }
            }
        }
        let certificates = match super::read_certificates(receiver) {
            Ok(pem) => pem,
            Err(message) => {
                problem("tls_ca_file", message);
                None
            }
        };
        let client = match client(guard.clone(), delivery, certificates.as_deref()) {
            Ok(client) => Some(client),
            Err(message) => {
                problem(if certificates.is_some() { "tls_ca_file" } else { "type" }, message);
                None
            }
        };
        if problems.len() > before {
            return None;
        }
        Some(Self {
            name: receiver.name.as_str().into(),
            format,
            address,
            signing,
            guard,
            client: client?,
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
        })
    }

    /// One attempt.
    pub async fn send(&self, delivery: &DueDelivery, now: Timestamp) -> Answer {
        let (address, secrets) = match (self.address.resolve(), self.signing.resolve()) {
            (Ok(Some(address)), Ok(secrets)) => (address, secrets),
            (Ok(None), _) => return Answer::later("the receiver has no address: give `url`, or `url_file`"),
            (Err(error), _) | (_, Err(error)) => return Answer::later(super::chain(&error)),
        };
        let url = match check_address(address.expose(), &self.guard) {
            Ok(url) => url,
            Err(error) => return Answer::later(error.to_string()),
        };
        let keys = match secrets.as_ref().map(|secrets| signing_keys(secrets.expose())).transpose() {
            Ok(keys) => keys.unwrap_or_default(),
            Err(message) => return Answer::later(message),
        };
        let body = match self.format {
            Format::Cliffwatch => message::webhook_body(delivery, self.external_url.as_deref()),
        };
        let body = match body {
            Ok(Some(body)) => body,
            Ok(None) => {
                return Answer { outcome: Outcome::Refused, status: None, text: "the delivery holds no notice".into() };
            }
            Err(error) => {
                return Answer {
                    outcome: Outcome::Refused,
                    status: None,
                    text: format!("cannot write the message as JSON: {error}"),
                };
            }
        };
        let scrub = Scrubber::new(address.expose(), &url, secrets.as_ref().map(config::SecretText::expose));

        let timestamp = now.timestamp();
        let mut request = self.client.post(url).header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let Ok(id) = HeaderValue::from_str(&delivery.webhook_id) else {
            return Answer { outcome: Outcome::Refused, status: None, text: "the delivery's id is no header value".into() };
        };
        request = request
            .header(HeaderName::from_static("webhook-id"), id)
            .header(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(timestamp));
        if let Some(signature) = signatures(&keys, &delivery.webhook_id, timestamp, &body) {
            request = request.header(HeaderName::from_static("webhook-signature"), signature);
        }
        let response = match tokio::time::timeout(self.timeout, request.body(body).send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Answer::later(scrub.clean(&describe(error.without_url(), self.timeout))),
            Err(_) => return Answer::later(format!("no answer within {:?}", self.timeout)),
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| parse_retry_after(text, now));
        let outcome = Outcome::of_http_status(status, retry_after);
        let text = scrub.clean(&read_answer(response).await);
        let text = match (status, text.is_empty()) {
            (300..=399, _) => format!("answered with a redirect ({status}), which is never followed: give the final address"),
            (_, true) => format!("answered {status} without a text"),
            (_, false) => text,
        };
        Answer { outcome, status: Some(status), text }
    }
}

/// A client that goes nowhere but where it is told.
fn client(guard: Guard, delivery: &config::Delivery, certificates: Option<&[u8]>) -> Result<reqwest::Client, String> {
    super::install_tls_provider();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("cliffwatch/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .dns_resolver(guard)
        .connect_timeout(CONNECT_TIMEOUT.min(delivery.timeout.0))
        .timeout(delivery.timeout.0)
        .pool_max_idle_per_host(delivery.concurrency as usize);
    if let Some(pem) = certificates {
        let certificates = reqwest::Certificate::from_pem_bundle(pem)
            .map_err(|error| format!("not a PEM file with certificates: {}", super::chain(&error)))?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| format!("cannot make the HTTP client: {}", super::chain(&error.without_url())))
}

/// Whether an address may be used; says why not without repeating it.
fn check_address(text: &str, guard: &Guard) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|_| AddressError::NotUrl)?;
    let host = url.host().ok_or(AddressError::NotUrl)?;
    let is_loopback = network::is_loopback_host(&host);
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => return Err(AddressError::Insecure),
        _ => return Err(AddressError::Scheme),
    }
    let literal = match host {
        Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
        Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
        Host::Domain(_) => None,
    };
    if let Some(address) = literal {
        guard.admit(address, true).map_err(|_| AddressError::Private)?;
    }
    Ok(url)
}

/// The keys of a secret: one a line, `whsec_` and base64, or plain text.
fn signing_keys(text: &str) -> Result<Vec<hmac::Key>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("the signing secret is empty: leave `secret` out if messages are not to be signed".into());
    }
    if lines.len() > MAX_SECRETS {
        return Err(format!("{} signing secrets are too many: at most {MAX_SECRETS}, one a line", lines.len()));
    }
    let key = |line: &&str| match line.strip_prefix("whsec_") {
        None => Ok(hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes())),
        Some(encoded) => BASE64
            .decode(encoded)
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
            .ok_or_else(|| "what follows `whsec_` in the signing secret is no base64".to_owned()),
    };
    lines.iter().map(key).collect()
}

/// The header `webhook-signature`: one signature for each key. None without a key.
fn signatures(keys: &[hmac::Key], id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let signature = |key: &hmac::Key| {
        let mut context = hmac::Context::with_key(key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", BASE64.encode(context.sign()))
    };
    let all: Vec<String> = keys.iter().map(signature).collect();
    (!all.is_empty()).then(|| all.join(" "))
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
    super::chain(&error)
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

/// Takes secrets out of a text that came from outside.
pub(super) struct Scrubber {
    /// Longest first, so that a secret within a secret leaves nothing behind.
    secrets: Vec<String>,
}

impl Scrubber {
    /// For a webhook: its address, the pieces of it that could be secrets of their own, and the signing secrets.
    fn new(address: &str, url: &Url, signing: Option<&str>) -> Self {
        let mut secrets = vec![address.trim().to_owned(), url.to_string()];
        let path = url.path();
        if path.len() > 1 {
            secrets.push(path.to_owned());
            if let Some(query) = url.query() {
                secrets.push(format!("{path}?{query}"));
            }
        }
        let pairs = url.query_pairs();
        let pieces = path
            .split('/')
            .map(str::to_owned)
            .chain(url.query().map(str::to_owned))
            .chain(pairs.map(|(_, value)| value.into_owned()));
        secrets.extend(pieces.filter(|piece| piece.len() >= MIN_SECRET_PIECE));
        secrets.extend(url.password().filter(|password| !password.is_empty()).map(str::to_owned));
        for line in signing.unwrap_or_default().lines().map(str::trim) {
            secrets.push(line.to_owned());
            secrets.extend(line.strip_prefix("whsec_").map(str::to_owned));
        }
        Self::of(secrets)
    }

    /// For these secrets, also as JSON writes their slashes.
    pub(super) fn of(mut secrets: Vec<String>) -> Self {
        let escaped: Vec<String> =
            secrets.iter().filter(|text| text.contains('/')).map(|text| text.replace('/', "\\/")).collect();
        secrets.extend(escaped);
        secrets.retain(|text| text.len() > 1);
        secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without secrets and control characters, at most [`MAX_ANSWER_BYTES`].
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "•••");
            }
        }
        // A secret that is cut by the end of what was read.
        for secret in &self.secrets {
            let mut ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= MIN_CUT_PIECE).rev();
            let cut = ends.find(|at| secret.get(..*at).is_some_and(|head| text.ends_with(head)));
            if let Some(cut) = cut {
                text.truncate(text.len() - cut);
                text.push_str("•••");
            }
        }
        text::answer(&text, MAX_ANSWER_BYTES)
    }
}

#[cfg(test)]
mod tests;
