//! Telling people: the receivers of the config, ready to be sent to.
//!
//! The cast: [`retry`] (what an attempt came to and what follows), [`card`] (what is shown of an alert), [`message`], [`service`],
//! [`mail`] and [`picture`] (from there to what is sent; all of these pure), [`webhook`] and [`email`] (the wire), [`pace`] (how fast
//! a service is asked), [`network`] (which addresses may be reached), [`text`] (making text from outside harmless), [`unsubscribe`]
//! (the links by which digests are stopped).
//! [`Receivers::send`] is one attempt; when to make one is the outbox's business.
//!
//! The promise: an attempt ends within `[delivery] timeout` and a little, whatever the other side does; what it came to is never
//! guessed ([`retry::Outcome::Uncertain`] says so where it cannot be known); and no secret is in any text that comes back.

pub mod card;
pub mod email;
pub mod mail;
pub mod message;
pub mod network;
pub mod pace;
pub mod picture;
mod progress;
pub mod retry;
#[cfg(test)]
pub(crate) mod samples;
pub mod service;
pub mod text;
pub mod unsubscribe;
pub mod webhook;

use std::{collections::BTreeMap, fmt, io::Read};

pub use retry::{Next, Outcome};
pub use webhook::Answer;

use crate::{
    alert::NoticeKind,
    config::{self, ReceiverKind},
    store::model::{Attempt, DueDelivery},
    supply::{ReceiverName, Timestamp},
};

/// Largest file with certificates that is read, bytes.
const MAX_CA_BYTES: u64 = 1 << 20;

/// Something in a `[[receiver]]` that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which `[[receiver]]`, from zero.
    pub receiver: usize,
    /// Which key.
    pub key: &'static str,
    /// What is wrong and what to do; no secret in it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receiver[{}].{}: {}", self.receiver, self.key, self.message)
    }
}

/// The receivers of the config, checked.
#[derive(Debug, Default)]
pub struct Receivers {
    by_name: BTreeMap<ReceiverName, Receiver>,
}

#[derive(Debug)]
struct Receiver {
    wire: Wire,
    max_per_hour: u32,
    send_resolved: bool,
}

#[derive(Debug)]
enum Wire {
    Webhook(Box<webhook::Webhook>),
    Email(Box<email::Email>),
}

impl Receivers {
    /// Builds all receivers. Reads certificate files, and secrets once, to check them; connects nowhere.
    ///
    /// # Errors
    /// All problems of all receivers, in the order of the config.
    pub fn build(
        receivers: &[config::Receiver],
        delivery: &config::Delivery,
        external_url: Option<&str>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut by_name = BTreeMap::new();
        for (index, receiver) in receivers.iter().enumerate() {
            if receiver.name.is_empty() {
                problems.push(Problem { receiver: index, key: "name", message: "a receiver needs a name".into() });
            }
            let wire = match receiver.kind {
                ReceiverKind::Webhook => webhook::Webhook::build(index, receiver, delivery, external_url, &mut problems)
                    .map(|webhook| Wire::Webhook(Box::new(webhook))),
                ReceiverKind::Email => email::Email::build(index, receiver, delivery, external_url, &mut problems)
                    .map(|email| Wire::Email(Box::new(email))),
            };
            let Some(wire) = wire else { continue };
            let built = Receiver {
                wire,
                max_per_hour: receiver.max_per_hour.unwrap_or(delivery.max_per_hour),
                send_resolved: receiver.send_resolved.unwrap_or(true),
            };
            if by_name.insert(ReceiverName::from(receiver.name.as_str()), built).is_some() {
                let message = format!("another receiver is called {:?} too: names are unique", receiver.name);
                problems.push(Problem { receiver: index, key: "name", message });
            }
        }
        if problems.is_empty() { Ok(Self { by_name }) } else { Err(problems) }
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ReceiverName> {
        self.by_name.keys()
    }

    /// Whether there is a receiver of this name.
    #[must_use]
    pub fn has(&self, receiver: &ReceiverName) -> bool {
        self.by_name.contains_key(receiver)
    }

    /// Most messages in an hour; none where there is no such receiver.
    #[must_use]
    pub fn max_per_hour(&self, receiver: &ReceiverName) -> Option<u32> {
        self.by_name.get(receiver).map(|receiver| receiver.max_per_hour)
    }

    /// Whether the receiver is told how alerts end.
    #[must_use]
    pub fn sends_resolved(&self, receiver: &ReceiverName) -> bool {
        self.by_name.get(receiver).is_some_and(|receiver| receiver.send_resolved)
    }

    /// How often a receiver's template failed, and the built-in message went out, since this was last asked.
    pub fn take_template_failures(&self) -> u64 {
        let failures = self.by_name.values().map(|receiver| match &receiver.wire {
            Wire::Webhook(webhook) => webhook.take_template_failures(),
            Wire::Email(_) => 0,
        });
        failures.sum()
    }

    /// Whether a delivery asks for the terms of [`send_on`](Self::send_on): a digest by mail, which its recipients can stop.
    #[must_use]
    pub fn is_stoppable(&self, receiver: &ReceiverName, delivery: &DueDelivery) -> bool {
        let is_mail = self.by_name.get(receiver).is_some_and(|receiver| matches!(receiver.wire, Wire::Email(_)));
        is_mail && !delivery.notices.is_empty() && delivery.notices.iter().all(|notice| notice.kind == NoticeKind::Digest)
    }

    /// One attempt: sends the delivery and says what came of it. Ends within the timeout of the config and a little.
    pub async fn send(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        self.send_on(receiver, delivery, now, None).await
    }

    /// As [`send`](Self::send); a digest by mail on these terms: not to those who stopped it, and with a link to stop it. Others take
    /// no notice of them.
    pub async fn send_on(
        &self,
        receiver: &ReceiverName,
        delivery: &DueDelivery,
        now: Timestamp,
        terms: Option<&unsubscribe::Terms>,
    ) -> (Outcome, Attempt) {
        let started = std::time::Instant::now();
        let answer = match self.by_name.get(receiver).map(|receiver| &receiver.wire) {
            Some(Wire::Webhook(webhook)) => webhook.send(delivery, now).await,
            Some(Wire::Email(email)) => {
                let terms = terms.filter(|_| self.is_stoppable(receiver, delivery));
                email.send(delivery, now, terms).await
            }
            None => Answer {
                outcome: Outcome::Refused,
                status: None,
                text: format!("no receiver is called {:?} in the config", receiver.as_str()),
            },
        };
        let attempt = Attempt {
            at: now,
            took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome: answer.outcome.as_str().to_owned(),
            status: answer.status,
            answer: answer.text,
        };
        (answer.outcome, attempt)
    }
}

/// The certificates that a receiver is to trust beside the system's.
fn read_certificates(receiver: &config::Receiver) -> Result<Option<Vec<u8>>, String> {
    let Some(path) = &receiver.tls_ca_file else { return Ok(None) };
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_CA_BYTES).read_to_end(&mut pem))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(format!("{} holds no certificate: it must be a PEM file", path.display()));
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

/// An error with its causes in one line, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let part = source.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = source.source();
    }
    text
}
