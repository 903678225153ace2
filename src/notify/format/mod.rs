//! The formats of webhook receivers: the requests for each service, and the meaning of its responses. Pure.
//!
//! A file per format implements the limits and escapes from the service's public documentation, and defines a [`FormatSpec`], which
//! config check, schema, rate limits, and sender all read. [`FormatSpec::read`] turns the config of a receiver into a
//! [`WebhookFormat`], which turns a delivery into requests, usually one. [`FormatSpec::outcome`] interprets the response, since some
//! services return 200 with an error.
//!
//! No message exceeds the limits of its service: text is cut, and omitted entries are counted. No text from outside mentions users,
//! adds links, or breaks the markup. An incident in a pager is opened and closed under the same key.

mod alertmanager;
mod alertmanager_api;
mod apprise;
mod cliffwatch;
mod discord;
mod fit;
mod googlechat;
mod gotify;
mod key;
mod marked;
mod matrix;
mod mattermost;
mod ntfy;
mod opsgenie;
mod pager_incident;
mod pagerduty;
mod pushover;
mod request;
mod response;
mod rocketchat;
mod slack;
mod teams;
mod telegram;
mod template;
mod twilio;
mod zulip;

use std::{fmt, time::Duration};

use chrono::TimeDelta;
use serde::Serialize;

use super::card::Brief;
use super::credentials::{Credentials, MissingKey};
use super::{KeyProblem, retry::Outcome};
use model::config;

pub use key::{Credential, FormatKey, FormatKeyValue, format_keys};
pub use request::{RequestError, WebhookRequest};
pub use response::ServiceResponse;
pub use template::BodyTemplate;

/// The maximum wait, in seconds, that a service can request in a response body.
const MAX_REQUESTED_WAIT_SECS: f64 = 86_400.0;

/// Returns the text of a config key, or `None` if it is not set.
pub type TextOfKey<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A format: its config keys, its limits, and how it writes requests and interprets responses.
#[derive(Debug)]
pub struct FormatSpec {
    /// The name in the config.
    pub name: &'static str,
    /// The default URL. `None` if every user has a URL of their own.
    pub address: Option<&'static str>,
    /// The config keys that this format accepts in addition to the keys of all webhooks.
    pub keys: &'static [FormatKey],
    /// The rate limit of the service: the number of requests at once, and the interval after which one more is allowed.
    pub pace: Option<(u32, Duration)>,
    /// Reads the settings of a receiver, which has all required keys, and the files that are read only once.
    read: fn(&config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem>,
    /// Checks the config before any file is read.
    check: fn(&TextOfKey<'_>) -> Result<(), KeyProblem>,
    /// Returns the outcome of a response, from the outcome by its status, and an explanation if its body has none.
    outcome: fn(Outcome, &ServiceResponse<'_>) -> (Outcome, Option<String>),
}

/// The formats, in the order of documentation and errors.
pub const FORMATS: &[FormatSpec] = &[
    cliffwatch::SPEC,
    alertmanager::SPEC,
    alertmanager_api::SPEC,
    slack::SPEC,
    discord::SPEC,
    telegram::SPEC,
    teams::SPEC,
    pagerduty::SPEC,
    opsgenie::SPEC,
    ntfy::SPEC,
    mattermost::SPEC,
    rocketchat::SPEC,
    googlechat::SPEC,
    matrix::SPEC,
    zulip::SPEC,
    gotify::SPEC,
    pushover::SPEC,
    twilio::SPEC,
    apprise::SPEC,
    template::SPEC,
];

/// The format of a receiver without `format`.
pub const DEFAULT_FORMAT: &FormatSpec = &FORMATS[0];

/// The names of the formats, in the order of [`FORMATS`].
pub const FORMAT_NAMES: [&str; FORMATS.len()] = {
    let mut names = [""; FORMATS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FORMATS[at].name;
        at += 1;
    }
    names
};

impl FormatSpec {
    const fn new(name: &'static str, read: fn(&config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem>) -> Self {
        Self { name, address: None, keys: &[], pace: None, read, check: |_| Ok(()), outcome: |by_status, _| (by_status, None) }
    }

    pub fn named(word: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == word)
    }

    /// Returns whether the format accepts a config key. All formats accept the keys that belong to no format.
    pub fn takes(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own.is_called(key)) || !format_keys().any(|known| known.is_called(key))
    }

    /// Returns the key of the format with this kind of value.
    pub fn key_for(&self, value: FormatKeyValue) -> Option<FormatKey> {
        self.keys.iter().find(|key| key.value == value).copied()
    }

    /// Returns whether requests have the headers of Standard Webhooks.
    pub fn is_signed(&self) -> bool {
        self.key_for(FormatKeyValue::SigningSecrets).is_some()
    }

    pub fn read(&self, receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
        (self.read)(receiver)
    }

    pub fn check(&self, text_of: &TextOfKey<'_>) -> Result<(), KeyProblem> {
        (self.check)(text_of)
    }

    /// Returns the outcome of a response, and an explanation if its body has none.
    pub fn outcome(&self, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
        let by_status = response.by_status();
        // A service never responds with a web page. The user's own program may; only the formats for such programs have signatures.
        if by_status == Outcome::Accepted && !self.is_signed() && response.is_web_page() {
            let why =
                "the response is a web page, not a response of the service: if the service is not under maintenance, check `url`";
            return (Outcome::Later { retry_after: response.retry_after }, Some(why.to_owned()));
        }
        (self.outcome)(by_status, response)
    }
}

/// The requests for a delivery, in sending order.
type WrittenRequests = Result<Vec<WebhookRequest>, RequestError>;

type RequestWriter = dyn Fn(&Brief<'_>, &FormatInput<'_>) -> WrittenRequests + Send + Sync;

/// A format with the settings of a receiver.
pub struct WebhookFormat(Box<RequestWriter>);

impl WebhookFormat {
    fn new(write: impl Fn(&Brief<'_>, &FormatInput<'_>) -> WrittenRequests + Send + Sync + 'static) -> Self {
        Self(Box::new(write))
    }

    /// A format whose deliveries are one request each, with a JSON body.
    fn of_body<B: Serialize + 'static>(body: fn(&Brief<'_>) -> B) -> Self {
        Self::new(move |brief, _| Ok(vec![WebhookRequest::json(&body(brief))?]))
    }

    /// Returns the requests for a delivery, in sending order.
    ///
    /// # Errors
    ///
    /// Fails if the delivery has no notifications, or a secret is missing.
    pub fn requests(&self, brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
        if brief.notifications().is_empty() {
            return Err(RequestError::Nothing);
        }
        (self.0)(brief, input)
    }
}

impl fmt::Debug for WebhookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookFormat")
    }
}

/// The input of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct FormatInput<'a> {
    pub credentials: &'a Credentials,
    /// Whether the configured URL has a path. If so, the format adds none.
    pub has_path: bool,
}

impl FormatInput<'_> {
    /// Returns the path of the service, or an empty one if the configured URL has a path.
    fn default_path(&self, segments: &[&str]) -> Vec<String> {
        if self.has_path { Vec::new() } else { segments.iter().map(|segment| (*segment).to_owned()).collect() }
    }

    fn secret(&self, key: FormatKey) -> Result<&str, MissingKey> {
        self.credentials.need(key.name)
    }
}

/// Converts the requested wait to at most [`MAX_REQUESTED_WAIT_SECS`].
fn requested_wait(seconds: f64) -> Option<TimeDelta> {
    #[expect(clippy::cast_possible_truncation, reason = "within bounds")]
    (seconds.is_finite() && seconds >= 0.0)
        .then(|| TimeDelta::milliseconds((seconds.min(MAX_REQUESTED_WAIT_SECS) * 1000.0).ceil() as i64))
}

/// Adds the wait from the response body to an outcome without one from the headers.
fn with_wait(outcome: Outcome, seconds: Option<f64>) -> Outcome {
    match outcome {
        Outcome::Later { retry_after: None } => Outcome::Later { retry_after: seconds.and_then(requested_wait) },
        other => other,
    }
}

#[cfg(test)]
mod tests;
