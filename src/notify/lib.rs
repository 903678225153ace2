//! Sends deliveries to receivers by mail, webhook, or program, and reports the outcome of each attempt.
//!
//! [`Receivers`] validates the receivers of the config; [`Receivers::send`] makes one attempt. The outbox decides when to make one.
//!
//! - Pure: `card` (the content of a message), [`message`] (webhook body), [`mod@format`] (a file per webhook format), `mail` and
//!   `picture`, `text` (sanitizes text from outside), [`retry`] (outcomes and the retry schedule), [`unsubscribe`] and [`feed_link`].
//! - Transport: `webhook`, `email`, `exec`. `pace` limits the request rate, `network` the reachable addresses, and `scrub` redacts
//!   secrets from recorded responses.
//!
//! An attempt ends shortly after `[delivery] timeout` at the latest, but a mail server gets its own time to confirm a mail. An unknown
//! outcome is reported as [`Outcome::Uncertain`]. No returned text contains a secret.
//!
//! ```
//! use model::config::{DeliverySettings, ReceiverSettings};
//! use cliffwatch_notify::Receivers;
//! use serde_json::{from_value, json};
//!
//! let delivery = DeliverySettings::default();
//! let settings = |format: &str| -> Result<ReceiverSettings, serde_json::Error> {
//!     from_value(json!({ "name": "ops", "type": "webhook", "format": format, "url": "https://hooks.example.com/T1" }))
//! };
//! let receivers = Receivers::build(&[settings("slack")?], &delivery, None).expect("a valid receiver");
//! assert!(receivers.has(&"ops".into()));
//! let problems = Receivers::build(&[settings("slak")?], &delivery, None).expect_err("an unknown format");
//! assert_eq!(problems[0].to_string(), "receiver[0].format: \"slak\" is not a format: did you mean \"slack\"?");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod allowed_addresses;
mod card;
mod credentials;
mod email;
mod exec;
pub mod feed_link;
pub mod format;
mod mail;
pub mod message;
mod pace;
mod picture;
mod problem;
mod progress;
pub mod retry;
mod scrub;
mod text;
pub mod unsubscribe;
mod webhook;

use std::{collections::BTreeMap, io::Read, time::Duration};

pub use allowed_addresses::Network;
pub use card::{Brief, change_rows};
pub use credentials::{MissingSecret, missing_secrets};
pub use mail::{Mail, compose};
pub use problem::{KeyProblem, ReceiverProblem};
pub use retry::{NextStep, Outcome, RejectedRecipient};
pub use webhook::webhook_schema;

use model::config::{self, ReceiverKind};
use model::{Attempt, BoxFuture, DueDelivery, Notification, ReceiverName, Replay, Timestamp, phrase};
use unsubscribe::DigestConsent;

const MAX_CA_BYTES: u64 = 1 << 20;

/// The validated receivers of the config.
#[derive(Debug, Default)]
pub struct Receivers {
    by_name: BTreeMap<ReceiverName, Receiver>,
}

#[derive(Debug)]
struct Receiver {
    sender: Sender,
    max_per_hour: u32,
}

#[derive(Debug)]
enum Sender {
    Webhook(Box<webhook::WebhookReceiver>),
    Email(Box<email::EmailReceiver>),
    Exec(exec::ExecReceiver),
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq)]
struct SendResult {
    outcome: Outcome,
    /// The HTTP status, SMTP code, or exit status. `None` without a response.
    status: Option<u16>,
    /// The receiver's response or the error, without secrets.
    text: String,
}

impl SendResult {
    /// A failure after which a retry can succeed.
    fn later(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::LATER, status: None, text: text.into() }
    }

    /// A failure that every retry would repeat.
    fn refused(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Refused, status: None, text: text.into() }
    }

    fn into_attempt(self, at: Timestamp, took: Duration) -> (Outcome, Attempt) {
        let attempt = Attempt {
            at,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            outcome: self.outcome.word(),
            status: self.status,
            response: self.text,
        };
        (self.outcome, attempt)
    }
}

impl Receivers {
    /// Builds all receivers. Reads certificates and secrets to check them, but opens no connection.
    ///
    /// # Errors
    ///
    /// Returns all problems of all receivers, in the order of the config.
    pub fn build(
        receivers: &[config::ReceiverSettings],
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
    ) -> Result<Self, Vec<ReceiverProblem>> {
        let mut all = Vec::new();
        let mut by_name = BTreeMap::new();
        for (index, receiver) in receivers.iter().enumerate() {
            let mut problems = Vec::new();
            if receiver.name.is_empty() {
                problems.push(KeyProblem::wrong("name", "a receiver needs a name"));
            }
            if let Some(built) = Receiver::build(receiver, delivery, external_url, &mut problems)
                && by_name.insert(ReceiverName::from(receiver.name.as_str()), built).is_some()
            {
                let message = format!("another receiver has the name {:?}: names must be unique", receiver.name);
                problems.push(KeyProblem::wrong("name", message));
            }
            all.extend(problems.into_iter().map(|problem| ReceiverProblem { receiver: index, problem }));
        }
        if all.is_empty() { Ok(Self { by_name }) } else { Err(all) }
    }

    /// Continues the unfinished deliveries of the receivers that these replace, so that a retry after a reload sends only the parts that
    /// were not accepted before.
    pub fn continue_from(&self, earlier: &Self) {
        for (name, receiver) in &self.by_name {
            match (&receiver.sender, earlier.by_name.get(name).map(|earlier| &earlier.sender)) {
                (Sender::Email(mail), Some(Sender::Email(earlier))) => mail.continue_from(earlier),
                (Sender::Webhook(webhook), Some(Sender::Webhook(earlier))) => webhook.continue_from(earlier),
                _ => {}
            }
        }
    }

    /// Returns the names of all receivers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ReceiverName> {
        self.by_name.keys()
    }

    pub fn has(&self, receiver: &ReceiverName) -> bool {
        self.by_name.contains_key(receiver)
    }

    /// Returns the maximum number of messages per hour, or `None` if the receiver does not exist.
    pub fn max_per_hour(&self, receiver: &ReceiverName) -> Option<u32> {
        self.by_name.get(receiver).map(|receiver| receiver.max_per_hour)
    }

    /// Returns the maximum number of concurrent attempts, or `None` if the receiver has no limit of its own.
    pub fn concurrency(&self, receiver: &ReceiverName) -> Option<u32> {
        match &self.by_name.get(receiver)?.sender {
            Sender::Exec(exec) => Some(exec.concurrency()),
            Sender::Webhook(_) | Sender::Email(_) => None,
        }
    }

    /// Returns the number of failed templates since the last call, and resets it.
    pub fn take_template_failures(&self) -> u64 {
        let failures = self.by_name.values().map(|receiver| match &receiver.sender {
            Sender::Webhook(webhook) => webhook.take_template_failures(),
            Sender::Email(_) | Sender::Exec(_) => 0,
        });
        failures.sum()
    }

    /// Returns whether the delivery is a digest by mail, which recipients can unsubscribe from. Such a delivery is sent by
    /// [`send_digest`](Self::send_digest).
    pub fn is_stoppable(&self, receiver: &ReceiverName, delivery: &DueDelivery) -> bool {
        let is_mail = self.by_name.get(receiver).is_some_and(|receiver| matches!(receiver.sender, Sender::Email(_)));
        is_mail && !delivery.notifications.is_empty() && delivery.notifications.iter().all(Notification::is_digest)
    }

    /// Makes one attempt to send the delivery. Ends shortly after the configured timeout at the latest, or, for mails, after the time in
    /// which the server confirms them.
    pub async fn send(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        self.attempt(receiver, delivery, now, None).await
    }

    /// Like [`send`](Self::send), for a digest by mail: skips unsubscribed recipients and adds unsubscribe links.
    pub async fn send_digest(
        &self,
        receiver: &ReceiverName,
        delivery: &DueDelivery,
        now: Timestamp,
        consent: &DigestConsent,
    ) -> (Outcome, Attempt) {
        self.attempt(receiver, delivery, now, Some(consent)).await
    }

    fn attempt<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
        consent: Option<&'a DigestConsent>,
    ) -> BoxFuture<'a, (Outcome, Attempt)> {
        Box::pin(async move {
            let started = std::time::Instant::now();
            let marked = delivery.replay.map(|replay| marked_as_replay(delivery, replay));
            let delivery = marked.as_ref().unwrap_or(delivery);
            let result = match self.by_name.get(receiver).map(|receiver| &receiver.sender) {
                Some(Sender::Webhook(webhook)) => webhook.send(delivery, now).await,
                Some(Sender::Email(email)) => {
                    let consent = consent.filter(|_| self.is_stoppable(receiver, delivery));
                    email.send(delivery, now, consent).await
                }
                Some(Sender::Exec(exec)) => exec.send(delivery).await,
                None => SendResult::refused(format!("the config has no receiver {:?}", receiver.as_str())),
            };
            result.into_attempt(now, started.elapsed())
        })
    }
}

/// Returns the delivery with a note that it is a replay, so that people see it in every format.
fn marked_as_replay(delivery: &DueDelivery, replay: Replay) -> DueDelivery {
    let mut marked = delivery.clone();
    let note = phrase::replay_note(replay, delivery.created_at);
    marked.batch.note = Some(match delivery.batch.note.as_deref() {
        Some(text) => format!("{note}. {text}"),
        None => note,
    });
    marked
}

impl Receiver {
    /// Pushes all problems to `problems`, and returns `None` if there were any.
    fn build(
        receiver: &config::ReceiverSettings,
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
        problems: &mut Vec<KeyProblem>,
    ) -> Option<Self> {
        let sender = match receiver.kind {
            ReceiverKind::Webhook => {
                Sender::Webhook(Box::new(webhook::WebhookReceiver::build(receiver, delivery, external_url, problems)?))
            }
            ReceiverKind::Email => {
                Sender::Email(Box::new(email::EmailReceiver::build(receiver, delivery, external_url, problems)?))
            }
            ReceiverKind::Exec => Sender::Exec(exec::ExecReceiver::build(receiver, delivery, external_url, problems)?),
        };
        Some(Self { sender, max_per_hour: receiver.max_per_hour.unwrap_or(delivery.max_per_hour) })
    }
}

/// Reads the certificates that the receiver trusts in addition to the certificates of the system.
fn read_certificates(receiver: &config::ReceiverSettings) -> Result<Option<Vec<u8>>, KeyProblem> {
    const KEY: &str = "tls_ca_file";
    let Some(path) = &receiver.tls_ca_file else { return Ok(None) };
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_CA_BYTES).read_to_end(&mut pem))
        .map_err(|error| KeyProblem::unreadable(KEY, format!("cannot read {}: {error}", path.display())))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(KeyProblem::wrong(KEY, format!("{} contains no certificate: expected a PEM file", path.display())));
    }
    Ok(Some(pem))
}

/// Returns a URL below `external_url`, or `None` if that is not an HTTP URL.
fn link_below(external_url: &str, segments: &[&str]) -> Option<String> {
    let mut url = url::Url::parse(external_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    url.set_query(None);
    url.set_fragment(None);
    Some(url.into())
}

/// Installs the TLS provider of the process. Building a client without one panics.
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster, which is fine.
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
}
