//! A receiver that takes mail by SMTP.
//!
//! The session is driven step by step, so that it is known at every instant whether the server can have
//! the mail: before the final dot it cannot ([`Outcome::Later`]), after it only its answer tells ([`Outcome::Uncertain`] without
//! one). Every step ends with the attempt's deadline. A connection over which a mail was accepted waits a while for the next one; one
//! on which anything failed is dropped, never used again, since an answer that comes late would be taken for the next one's.
//!
//! An alert is one mail to all recipients. A digest with links to stop it is a mail to each, since the link is the recipient's own;
//! who has it already does not get it again with the next attempt.

mod letter;
mod pool;
mod server;
mod session;
mod settings;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use lettre::{Address, message::Mailbox};
use tokio::time::Instant;

use super::SendResult;
use super::card::Brief;
use super::credentials::Credentials;
use super::format::Credential;
use super::progress::TakenParts;
use super::retry::Outcome;
use super::scrub::Scrubber;
use super::unsubscribe::{self, DigestConsent, Subscriber};
use letter::LetterAddresses;
use model::{DueDelivery, ReceiverName, Timestamp, text::error_chain};
use pool::{ConnectionPool, SmtpLogin};
use server::MailServer;
use session::{SessionFailure, list};

/// Tries in which a recipient who is refused for the moment keeps the mail waiting for all: grey lists let it in after minutes.
/// After them the others get it without him, and the answer names him.
const PATIENT_TRIES: u32 = 4;

/// An email receiver of the config, checked.
#[derive(Debug)]
pub struct EmailReceiver {
    name: String,
    server: MailServer,
    username: Option<String>,
    password: Credential,
    from: Mailbox,
    to: Vec<Mailbox>,
    timeout: Duration,
    external_url: Option<String>,
    pool: ConnectionPool,
    progress: TakenParts,
}

/// What one attempt sends, and until when.
struct MailAttempt<'a> {
    delivery: &'a DueDelivery,
    now: Timestamp,
    deadline: Instant,
    login: Option<SmtpLogin>,
}

impl EmailReceiver {
    /// One attempt. `consent` comes with a digest: who does not want it, and how the others say so.
    pub(super) async fn send(&self, delivery: &DueDelivery, now: Timestamp, consent: Option<&DigestConsent>) -> SendResult {
        let read = match Credentials::read(vec![self.password.clone()]).await {
            Ok(read) => read,
            Err(error) => return SendResult::later(error_chain(&error)),
        };
        let login = match (&self.username, read.get(&self.password)) {
            (Some(username), Some(password)) => Some((username.clone(), password.expose().to_owned())),
            (Some(_), None) => return SendResult::later("the receiver has a `username` but no password: give `password_file`"),
            (None, _) => None,
        };
        let mut secrets = Vec::new();
        if let Some((username, password)) = &login {
            secrets.push(password.clone());
            secrets.push(BASE64.encode(password));
            secrets.push(BASE64.encode(format!("\0{username}\0{password}")));
        }
        let scrub = Scrubber::of(secrets);
        let attempt = MailAttempt { delivery, now, deadline: Instant::now() + self.timeout, login };
        let result = match consent {
            None => self.to_all(&attempt, &self.to.iter().collect::<Vec<_>>()).await,
            Some(consent) => self.digest(&attempt, consent).await,
        };
        SendResult { text: scrub.clean(&result.text), ..result }
    }

    /// One mail to all of `to`.
    async fn to_all(&self, attempt: &MailAttempt<'_>, to: &[&Mailbox]) -> SendResult {
        let message = match self.message(attempt, to, None) {
            Ok(message) => message,
            Err(text) => return SendResult::refused(text),
        };
        let sent = match self.open(attempt.deadline, attempt.login.clone()).await {
            Ok(open) => self.transfer(open, attempt, &message, to).await,
            Err(failed) => Err(failed),
        };
        sent.unwrap_or_else(|SessionFailure { outcome, code, text }| SendResult { outcome, status: code, text })
    }

    /// A digest to those who want it: a mail to each with a link of their own, where we have pages that links can lead to.
    async fn digest(&self, attempt: &MailAttempt<'_>, consent: &DigestConsent) -> SendResult {
        let to: Vec<&Mailbox> = self.to.iter().filter(|to| consent.wants(to.email.as_ref())).collect();
        if to.is_empty() {
            let text = "sent to nobody: all recipients have stopped digests (`cliffwatch digest list`)".to_owned();
            return SendResult { outcome: Outcome::Accepted, status: None, text };
        }
        let link = |to: &Mailbox| {
            let address = unsubscribe::plain_address(to.email.as_ref());
            let subscriber = Subscriber { receiver: ReceiverName::from(self.name.as_str()), address };
            unsubscribe::link(self.external_url.as_deref()?, &consent.key, &subscriber)
        };
        let links: Option<Vec<String>> = to.iter().map(|to| link(to)).collect();
        match links {
            None => self.to_all(attempt, &to).await,
            Some(links) => self.to_each(attempt, to.into_iter().zip(links)).await,
        }
    }

    /// A mail to each. What one of them cannot get keeps it from no other, unless the way to the server is shut for all.
    async fn to_each(&self, attempt: &MailAttempt<'_>, to: impl Iterator<Item = (&Mailbox, String)>) -> SendResult {
        let id = &attempt.delivery.webhook_id;
        let mut taken = self.progress.taken(id);
        let mut refused: Vec<(&Address, SessionFailure)> = Vec::new();
        let mut last = None;
        let mut shut = None;
        for (mailbox, link) in to {
            let name = mailbox.email.to_string();
            if taken.contains(&name) {
                continue;
            }
            let message = match self.message(attempt, &[mailbox], Some(&link)) {
                Ok(message) => message,
                Err(text) => return SendResult::refused(text),
            };
            let open = match self.open(attempt.deadline, attempt.login.clone()).await {
                Ok(open) => open,
                Err(failed) => {
                    shut = Some(failed);
                    break;
                }
            };
            match self.transfer(open, attempt, &message, &[mailbox]).await {
                Ok(answer) => {
                    self.progress.remember(id, name.clone());
                    taken.insert(name);
                    last = Some(answer);
                }
                Err(failed) if failed.code.is_some() => refused.push((&mailbox.email, failed)),
                Err(failed) => {
                    shut = Some(failed);
                    break;
                }
            }
        }
        let taken_for = || taken.iter().cloned().collect::<Vec<_>>().join(", ");
        let is_postponed = refused.iter().any(|(_, failed)| failed.outcome != Outcome::Refused);
        let answer = match (shut, last) {
            (Some(SessionFailure { outcome, code, text }), _) if taken.is_empty() => {
                return SendResult { outcome, status: code, text };
            }
            // Whatever shut the way, the others get it later: what was taken is not sent again.
            (Some(SessionFailure { outcome, code, text }), _) => {
                let outcome = if outcome == Outcome::Uncertain { outcome } else { Outcome::LATER };
                return SendResult { outcome, status: code, text: format!("taken for: {}; then: {text}", taken_for()) };
            }
            (None, _) if taken.is_empty() || (is_postponed && attempt.delivery.tries < PATIENT_TRIES) => {
                let outcome = if is_postponed { Outcome::LATER } else { Outcome::Refused };
                let status = refused.iter().map(|(_, failed)| failed.code).find(Option::is_some).flatten();
                let before = if taken.is_empty() { String::new() } else { format!("taken for: {}; ", taken_for()) };
                return SendResult { outcome, status, text: format!("{before}not delivered to: {}", list(&refused)) };
            }
            (None, Some(answer)) => answer,
            (None, None) => SendResult { outcome: Outcome::Accepted, status: None, text: "taken before".to_owned() },
        };
        self.progress.forget(id);
        let mut text = format!("{}; taken for: {}", answer.text, taken_for());
        if !refused.is_empty() {
            text = format!("{text}; not delivered to: {}", list(&refused));
        }
        SendResult { text, ..answer }
    }

    /// The mail, as it goes over the wire.
    fn message(&self, attempt: &MailAttempt<'_>, to: &[&Mailbox], unsubscribe: Option<&str>) -> Result<Vec<u8>, String> {
        let brief = Brief { delivery: attempt.delivery, external_url: self.external_url.as_deref(), now: attempt.now };
        letter::write(&LetterAddresses { receiver: &self.name, from: &self.from, to, unsubscribe }, &brief)
    }
}

#[cfg(test)]
mod tests;
