//! Senders: from a delivery and the config of its receiver to mail or an HTTP request, and to what came of it.
//!
//! **The cast.** [`Receivers`] are the receivers of the config, each a webhook, mail or a program, checked once. [`mod@format`] has
//! the table of webhook formats and a file for each; `card` says what is shown of an alert, [`message`], `mail` and `picture` go from
//! there to what is sent, [`retry`] says what an attempt came to and what follows: all of these are pure. `webhook` and `email` are
//! the wire, `exec` runs a program; `pace` says how fast a service is asked, `network` which addresses may be reached, `scrub` keeps
//! secrets out of what is recorded, `text` makes text from outside harmless, [`unsubscribe`] makes the links by which digests are
//! stopped, [`feed_link`] those by which calendars subscribe.
//!
//! **The path.** Text of a config, then plain settings ([`config::ReceiverSettings`]), then [`Receivers`], which cannot be wrong.
//! [`Receivers::send`] is one attempt; when to make one is the outbox's business.
//!
//! **The promise.** An attempt ends within `[delivery] timeout` and a little, whatever the other side does; what it came to is never
//! guessed ([`Outcome::Uncertain`] says so where it cannot be known); and no secret is in any text that comes back.
//!
//! ```
//! use model::config::{DeliverySettings, ReceiverSettings};
//! use cliffwatch_notify::Receivers;
//! use serde_json::{from_value, json};
//!
//! let delivery: DeliverySettings = from_value(json!({
//!     "retry": ["0s", "5s"], "jitter": "20%", "max_retry_after": "1h", "timeout": "15s", "concurrency": 4, "max_per_hour": 300
//! }))?;
//! let settings = |format: &str| -> Result<ReceiverSettings, serde_json::Error> {
//!     from_value(json!({ "name": "ops", "type": "webhook", "format": format, "url": "https://hooks.example.com/T1" }))
//! };
//! let receivers = Receivers::build(&[settings("slack")?], &delivery, None).expect("it has what it needs");
//! assert!(receivers.has(&"ops".into()));
//! let problems = Receivers::build(&[settings("slak")?], &delivery, None).expect_err("there is no such format");
//! assert_eq!(problems[0].to_string(), "receiver[0].format: \"slak\" is no format: did you mean \"slack\"?");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod card;
mod credentials;
mod email;
mod exec;
pub mod feed_link;
pub mod format;
mod mail;
pub mod message;
mod network;
mod pace;
mod picture;
mod problem;
mod progress;
pub mod retry;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod scrub;
mod text;
pub mod unsubscribe;
mod webhook;

use std::{collections::BTreeMap, io::Read, time::Duration};

pub use card::{Brief, change_rows};
pub use credentials::{MissingSecret, missing_secrets};
pub use mail::{Mail, compose};
pub use network::Network;
pub use problem::{KeyProblem, ReceiverProblem};
pub use retry::{NextStep, Outcome};
pub use webhook::webhook_schema;

use model::config::{self, ReceiverKind};
use model::{Attempt, BoxFuture, DueDelivery, Notification, ReceiverName, Timestamp};
use unsubscribe::DigestConsent;

/// Largest file with certificates that is read, bytes.
const MAX_CA_BYTES: u64 = 1 << 20;

/// The receivers of the config, checked.
#[derive(Debug, Default)]
pub struct Receivers {
    by_name: BTreeMap<ReceiverName, Receiver>,
}

/// A receiver of the config, checked: it has what it needs.
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

/// What came of one attempt: what it means, the status, and what the receiver or the failure said.
#[derive(Clone, Debug, PartialEq)]
struct SendResult {
    outcome: Outcome,
    /// HTTP status, SMTP code or exit status.
    status: Option<u16>,
    /// In words, secrets removed.
    text: String,
}

impl SendResult {
    /// A failure of our own or of the way there: tried again.
    fn later(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::LATER, status: None, text: text.into() }
    }

    /// What cannot be sent, now or later.
    fn refused(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Refused, status: None, text: text.into() }
    }

    /// As the record of an attempt.
    fn into_attempt(self, at: Timestamp, took: Duration) -> (Outcome, Attempt) {
        let attempt = Attempt {
            at,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            outcome: self.outcome.word(),
            status: self.status,
            answer: self.text,
        };
        (self.outcome, attempt)
    }
}

impl Receivers {
    /// Builds all receivers. Reads certificate files, and secrets once, to check them; connects nowhere.
    /// Fails with all problems of all receivers, in the order of the config.
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
                let message = format!("another receiver is called {:?} too: names are unique", receiver.name);
                problems.push(KeyProblem::wrong("name", message));
            }
            all.extend(problems.into_iter().map(|problem| ReceiverProblem { receiver: index, problem }));
        }
        if all.is_empty() { Ok(Self { by_name }) } else { Err(all) }
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ReceiverName> {
        self.by_name.keys()
    }

    /// Whether there is a receiver of this name.
    pub fn has(&self, receiver: &ReceiverName) -> bool {
        self.by_name.contains_key(receiver)
    }

    /// Most messages in an hour; none where there is no such receiver.
    pub fn max_per_hour(&self, receiver: &ReceiverName) -> Option<u32> {
        self.by_name.get(receiver).map(|receiver| receiver.max_per_hour)
    }

    /// Most attempts at once, where the receiver itself says so.
    pub fn concurrency(&self, receiver: &ReceiverName) -> Option<u32> {
        match &self.by_name.get(receiver)?.sender {
            Sender::Exec(exec) => Some(exec.concurrency()),
            Sender::Webhook(_) | Sender::Email(_) => None,
        }
    }

    /// How often a receiver's template failed, and the built-in message went out, since this was last asked.
    pub fn take_template_failures(&self) -> u64 {
        let failures = self.by_name.values().map(|receiver| match &receiver.sender {
            Sender::Webhook(webhook) => webhook.take_template_failures(),
            Sender::Email(_) | Sender::Exec(_) => 0,
        });
        failures.sum()
    }

    /// Whether a delivery is a digest by mail, which its recipients can stop: then it is [sent](Self::send_digest) with their wishes.
    pub fn is_stoppable(&self, receiver: &ReceiverName, delivery: &DueDelivery) -> bool {
        let is_mail = self.by_name.get(receiver).is_some_and(|receiver| matches!(receiver.sender, Sender::Email(_)));
        is_mail && !delivery.notifications.is_empty() && delivery.notifications.iter().all(Notification::is_digest)
    }

    /// One attempt: sends the delivery and says what came of it. Ends within the timeout of the config and a little.
    pub async fn send(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        self.attempt(receiver, delivery, now, None).await
    }

    /// As [`send`](Self::send), for a digest by mail: not to those who stopped it, and with a link to stop it.
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
            let result = match self.by_name.get(receiver).map(|receiver| &receiver.sender) {
                Some(Sender::Webhook(webhook)) => webhook.send(delivery, now).await,
                Some(Sender::Email(email)) => {
                    let consent = consent.filter(|_| self.is_stoppable(receiver, delivery));
                    email.send(delivery, now, consent).await
                }
                Some(Sender::Exec(exec)) => exec.send(delivery).await,
                None => SendResult::refused(format!("no receiver is called {:?} in the config", receiver.as_str())),
            };
            result.into_attempt(now, started.elapsed())
        })
    }
}

impl Receiver {
    /// All problems are pushed to `problems`; None where there was one.
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

/// The certificates that a receiver is to trust beside the system's.
fn read_certificates(receiver: &config::ReceiverSettings) -> Result<Option<Vec<u8>>, KeyProblem> {
    const KEY: &str = "tls_ca_file";
    let Some(path) = &receiver.tls_ca_file else { return Ok(None) };
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_CA_BYTES).read_to_end(&mut pem))
        .map_err(|error| KeyProblem::unreadable(KEY, format!("cannot read {}: {error}", path.display())))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(KeyProblem::wrong(KEY, format!("{} holds no certificate: it must be a PEM file", path.display())));
    }
    Ok(Some(pem))
}

/// Chooses the TLS provider of the process, unless that was done: building a client without one panics.
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Err: another thread was faster, which is as good.
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
}
