//! A receiver that takes a POST. The bytes that are signed are the bytes that are sent.
//!
//! What is sent, and what an answer means, is [`service`]'s business; this is the way there. Headers are those of Standard Webhooks
//! 1.0, where the receiver is one's own. No redirect is followed, no proxy of the environment is used (the address that is
//! checked is the one connected to), answers are read up to 4 KiB and never decompressed. The address and the signing secrets are
//! read at each use, and removed from everything that is recorded.

use std::{
    error::Error as _,
    io::Read,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use ring::hmac;
use tokio::time::Instant;
use url::{Host, Url};

use super::{
    Problem,
    card::Brief,
    network::{self, Forbidden, Guard},
    pace::Pace,
    progress::Progress,
    retry::{Outcome, parse_retry_after},
    service::{
        self, Format, Means, Need, Post,
        template::{BodyTemplate, MAX_TEMPLATE_BYTES},
    },
    text,
};
use crate::{
    config::{self, Secret, SecretError, SecretText},
    diagnostic,
    store::model::DueDelivery,
    supply::Timestamp,
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

/// Shortest beginning of a secret that is looked for at the end of an answer that may be cut, bytes.
const MIN_CUT_PIECE: usize = 4;

/// A webhook receiver, checked.
#[derive(Debug)]
pub struct Webhook {
    format: Format,
    address: Secret,
    signing: Secret,
    needs: Needs,
    guard: Guard,
    client: reqwest::Client,
    timeout: Duration,
    external_url: Option<String>,
    pace: Option<Pace>,
    /// Of deliveries that take several requests: those that were taken. The service knows a repeat by its key.
    progress: Progress,
    template_failures: AtomicU64,
}

/// What is read at each use beside the address.
#[derive(Debug)]
struct Needs {
    token: Secret,
    routing_key: Secret,
    api_key: Secret,
    topic: Secret,
    chat_id: Option<String>,
    thread_id: Option<i64>,
    template: Option<Arc<BodyTemplate>>,
}

impl Needs {
    fn read(&self) -> Result<Means, SecretError> {
        Ok(Means {
            token: self.token.resolve()?,
            routing_key: self.routing_key.resolve()?,
            api_key: self.api_key.resolve()?,
            topic: self.topic.resolve()?,
            chat_id: self.chat_id.clone(),
            thread_id: self.thread_id,
            template: self.template.clone(),
        })
    }
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
                let meant = diagnostic::closest(word, Format::WORDS).unwrap_or(Format::default().as_str());
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
            Ok(None) if format.address().is_some() => {}
            Ok(None) => problem("url", "a webhook needs its address: give `url`, or `url_file`".into()),
            Ok(Some(text)) => {
                if let Err(error) = check_address(text.expose(), &guard) {
                    problem(address_key, error.to_string());
                }
            }
        }
        let template = match read_template(receiver) {
            Ok(template) => template,
            Err((key, message)) => {
                problem(key, message);
                None
            }
        };
        let needs = Needs {
            token: receiver.means("token"),
            routing_key: receiver.means("routing_key"),
            api_key: receiver.means("api_key"),
            topic: receiver.means("topic"),
            chat_id: receiver.chat_id.clone(),
            thread_id: receiver.thread_id,
            template,
        };
        match needs.read() {
            Err(error) => problem(format.needs().first().map_or("token", |need| need.key()), super::chain(&error)),
            Ok(means) => {
                for need in format.needs() {
                    let is_there = match need {
                        Need::Token => means.token.is_some(),
                        Need::RoutingKey => means.routing_key.is_some(),
                        Need::ApiKey => means.api_key.is_some(),
                        Need::Topic => means.topic.is_some(),
                        Need::ChatId => means.chat_id.is_some(),
                        // Its own trouble is told above.
                        Need::Template => receiver.template.is_some() || receiver.template_file.is_some(),
                    };
                    if !is_there {
                        problem(need.key(), format!("a receiver of format {:?} needs `{}`", format.as_str(), need.key()));
                    }
                }
                if let Some(bad) = means.secrets().find(|text| text.is_empty() || text.chars().any(char::is_control)) {
                    let why = if bad.is_empty() { "is empty" } else { "holds a line break or another control character" };
                    problem(format.needs().first().map_or("token", |need| need.key()), format!("a secret of the receiver {why}"));
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
            format,
            address,
            signing,
            needs,
            guard,
            client: client?,
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
            pace: format.pace().map(|(burst, pause)| Pace::new(burst, pause)),
            progress: Progress::default(),
            template_failures: AtomicU64::new(0),
        })
    }

    /// How often its template failed since this was last asked.
    pub(super) fn take_template_failures(&self) -> u64 {
        self.template_failures.swap(0, Ordering::Relaxed)
    }

    /// One attempt: all requests of the delivery, in their order, until one is not taken.
    pub async fn send(&self, delivery: &DueDelivery, now: Timestamp) -> Answer {
        let (address, secrets, means) = match (self.address.resolve(), self.signing.resolve(), self.needs.read()) {
            (Ok(address), Ok(secrets), Ok(means)) => (address, secrets, means),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return Answer::later(super::chain(&error)),
        };
        let address = address.as_ref().map(SecretText::expose).or(self.format.address());
        let Some(address) = address else { return Answer::later("the receiver has no address: give `url`, or `url_file`") };
        let url = match check_address(address, &self.guard) {
            Ok(url) => url,
            Err(error) => return Answer::later(error.to_string()),
        };
        let keys = match secrets.as_ref().map(|secrets| signing_keys(secrets.expose())).transpose() {
            Ok(keys) => keys.unwrap_or_default(),
            Err(message) => return Answer::later(message),
        };
        let brief = Brief { delivery, external_url: self.external_url.as_deref(), now };
        let posts = match service::posts(self.format, &brief, &means, url.path().len() > 1) {
            Ok(posts) => posts,
            Err(error) if error.is_transient() => return Answer::later(super::chain(&error)),
            Err(error) => return Answer { outcome: Outcome::Refused, status: None, text: super::chain(&error) },
        };
        let scrub = Scrubber::new(address, &url, secrets.as_ref().map(SecretText::expose), means.secrets());
        let route = Route { url: &url, keys: &keys, scrub: &scrub, deadline: Instant::now() + self.timeout };
        let taken = self.progress.taken(&delivery.webhook_id);
        let (count, mut done) = (posts.len(), taken.len());
        let mut last = None;
        for post in posts.into_iter().filter(|post| !taken.contains(&post.key)) {
            if let Some(error) = &post.template_error {
                self.template_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(receiver = %delivery.receiver, error, "a receiver's template failed: the built-in message goes out");
            }
            let key = post.key.clone();
            let answer = self.post(&route, post, &delivery.webhook_id, now).await;
            if answer.outcome != Outcome::Accepted {
                let text = if count > 1 { format!("{done} of {count} were taken; then: {}", answer.text) } else { answer.text };
                return Answer { text, ..answer };
            }
            done += 1;
            if count > 1 {
                self.progress.remember(&delivery.webhook_id, key);
            }
            last = Some(answer);
        }
        self.progress.forget(&delivery.webhook_id);
        // None: all of it was taken by earlier attempts, the last of which did not come to its end.
        last.unwrap_or_else(|| Answer {
            outcome: Outcome::Accepted,
            status: None,
            text: format!("all {count} were taken before"),
        })
    }

    /// One request.
    async fn post(&self, route: &Route<'_>, post: Post, webhook_id: &str, now: Timestamp) -> Answer {
        if let Some(pace) = &self.pace {
            match pace.take(Instant::now(), route.deadline) {
                Ok(at) => tokio::time::sleep_until(at).await,
                Err(wait) => {
                    let retry_after = chrono::TimeDelta::from_std(wait).ok();
                    let text = "not sent yet: more at once than the service takes".to_owned();
                    return Answer { outcome: Outcome::Later { retry_after }, status: None, text };
                }
            }
        }
        let refused = |text: &str| Answer { outcome: Outcome::Refused, status: None, text: text.to_owned() };
        let Ok(content_type) = HeaderValue::from_str(&post.content_type) else {
            return refused("the content type is no header value");
        };
        let Some(url) = extended(route.url, &post) else { return refused("the receiver's address takes no path") };
        let mut request = self.client.post(url).header(CONTENT_TYPE, content_type);
        if let Some(authorization) = &post.authorization {
            let Ok(mut value) = HeaderValue::from_str(authorization.expose()) else {
                return refused("the receiver's token or key holds what no header may hold");
            };
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if self.format.is_signed() {
            let timestamp = now.timestamp();
            let Ok(id) = HeaderValue::from_str(webhook_id) else { return refused("the delivery's id is no header value") };
            request = request
                .header(HeaderName::from_static("webhook-id"), id)
                .header(HeaderName::from_static("webhook-timestamp"), HeaderValue::from(timestamp));
            if let Some(signature) = signatures(route.keys, webhook_id, timestamp, &post.body) {
                request = request.header(HeaderName::from_static("webhook-signature"), signature);
            }
        }
        let response = match tokio::time::timeout_at(route.deadline, request.body(post.body).send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Answer::later(route.scrub.clean(&describe(error.without_url(), self.timeout))),
            Err(_) => return Answer::later(format!("no answer within {:?}", self.timeout)),
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| parse_retry_after(text, now));
        let body = read_answer(response).await;
        let (outcome, note) = service::judge(self.format, status, retry_after, &body);
        let text = route.scrub.clean(&body);
        let text = match (status, text.is_empty()) {
            (300..=399, _) => format!("answered with a redirect ({status}), which is never followed: give the final address"),
            (_, true) => format!("answered {status} without a text"),
            (_, false) => text,
        };
        let text = note.map_or(text.clone(), |note| format!("{note}: {text}"));
        Answer { outcome, status: Some(status), text }
    }
}

/// What all requests of an attempt share.
struct Route<'a> {
    url: &'a Url,
    keys: &'a [hmac::Key],
    scrub: &'a Scrubber,
    deadline: Instant,
}

/// The address of one request.
fn extended(url: &Url, post: &Post) -> Option<Url> {
    let mut url = url.clone();
    if !post.path.is_empty() {
        url.path_segments_mut().ok()?.pop_if_empty().extend(&post.path);
    }
    if let Some((name, value)) = post.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Some(url)
}

/// The operator's own body, from the config or its file.
///
/// # Errors
/// What is wrong with it, with the key that it belongs to.
pub fn read_template(receiver: &config::Receiver) -> Result<Option<Arc<BodyTemplate>>, (&'static str, String)> {
    let content_type = receiver.content_type.as_deref();
    let (key, source) = match (&receiver.template, &receiver.template_file) {
        (Some(template), _) => ("template", template.clone()),
        (None, Some(path)) => {
            let mut source = String::new();
            std::fs::File::open(path)
                .and_then(|file| file.take(MAX_TEMPLATE_BYTES as u64 + 1).read_to_string(&mut source))
                .map_err(|error| ("template_file", format!("cannot read {}: {error}", path.display())))?;
            ("template_file", source)
        }
        (None, None) => return Ok(None),
    };
    BodyTemplate::new(&source, content_type).map(|template| Some(Arc::new(template))).map_err(|error| (key, error.to_string()))
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
    /// For a webhook: its address, the pieces of it that could be secrets of their own, the signing secrets, and others.
    fn new<'a>(address: &str, url: &Url, signing: Option<&str>, others: impl Iterator<Item = &'a str>) -> Self {
        let mut secrets = vec![address.trim().to_owned(), url.to_string()];
        secrets.extend(others.map(str::to_owned));
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
pub(crate) mod tests;
