//! Email receivers, over SMTP.
//!
//! A failure before the final dot of a mail means that the server does not have it ([`Outcome::Later`]). After the dot, only the
//! server's reply decides ([`Outcome::Uncertain`] without one). The attempt's deadline applies to every step but this reply, which has
//! its own time: a server that filters a mail would otherwise get copies. A connection that delivered a mail is reused for a while. A
//! connection with any failure is dropped, since a late reply would be read as the reply to the next command.
//!
//! An alert is one mail to all recipients. A digest with unsubscribe links is one mail per recipient, since the link is personal.
//! A retry skips the recipients that already have it.

mod mime;
mod pool;
mod server;
mod session;
mod settings;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use lettre::message::Mailbox;
use tokio::time::Instant;

use super::SendResult;
use super::card::Brief;
use super::credentials::Credentials;
use super::format::Credential;
use super::progress::AcceptedParts;
use super::retry::Outcome;
use super::scrub::Scrubber;
use super::unsubscribe::{self, DigestConsent, Subscriber};
use mime::MailAddresses;
use model::{DueDelivery, ReceiverName, Timestamp, text::error_chain};
use pool::{ConnectionPool, SmtpLogin};
use server::MailServer;
use session::RejectedRecipients;

/// The maximum number of attempts for a recipient that is temporarily rejected while others have the mail: greylisting ends after minutes.
/// After that, the delivery ends, and its result names the recipient. Later messages about the same alert wait until then.
const MAX_RETRIED_ATTEMPTS: u32 = 4;

/// A validated email receiver.
#[derive(Debug)]
pub struct EmailReceiver {
    name: String,
    server: MailServer,
    username: Option<String>,
    password: Credential,
    from: Mailbox,
    to: Vec<Mailbox>,
    timeout: Duration,
    /// The time for the reply to the final dot.
    reply_timeout: Duration,
    /// The number of attempts after which temporarily rejected recipients are retried. The last attempt is not followed by another.
    retried_attempts: u32,
    external_url: Option<String>,
    pool: ConnectionPool,
    progress: AcceptedParts,
}

#[derive(Clone)]
struct MailAttempt<'a> {
    delivery: &'a DueDelivery,
    now: Timestamp,
    deadline: Instant,
    login: Option<SmtpLogin>,
}

impl EmailReceiver {
    /// Continues the unfinished deliveries of the receiver that this one replaces.
    pub(super) fn continue_from(&self, earlier: &Self) {
        self.progress.continue_from(&earlier.progress);
    }

    /// Makes one attempt. Digests come with `consent`: the recipients that unsubscribed, and the key of the unsubscribe links.
    pub(super) async fn send(&self, delivery: &DueDelivery, now: Timestamp, consent: Option<&DigestConsent>) -> SendResult {
        let read = match Credentials::read(vec![self.password.clone()]).await {
            Ok(read) => read,
            Err(error) => return SendResult::later(error_chain(&error)),
        };
        let login = match (&self.username, read.get(self.password.key)) {
            (Some(username), Some(password)) => {
                Some(SmtpLogin { username: username.clone(), password: password.expose().to_owned() })
            }
            (Some(_), None) => return SendResult::later("the receiver has a `username` but no password: set `password_file`"),
            (None, _) => None,
        };
        let mut secrets = Vec::new();
        if let Some(SmtpLogin { username, password }) = &login {
            secrets.push(password.clone());
            secrets.push(BASE64.encode(password));
            secrets.push(BASE64.encode(format!("\0{username}\0{password}")));
        }
        let scrub = Scrubber::of(secrets);
        let attempt = MailAttempt { delivery, now, deadline: Instant::now() + self.timeout, login };
        let result = match consent {
            None => self.send_to_all(&attempt, &self.to.iter().collect::<Vec<_>>()).await,
            Some(consent) => self.digest(&attempt, consent).await,
        };
        SendResult { text: scrub.clean(&result.text), ..result }
    }

    /// Sends one mail to all recipients that do not have it from an earlier attempt. All recipients are in its header.
    async fn send_to_all(&self, attempt: &MailAttempt<'_>, to: &[&Mailbox]) -> SendResult {
        let id = &attempt.delivery.webhook_id;
        let accepted = self.progress.accepted(id);
        let missing: Vec<&Mailbox> = to.iter().copied().filter(|to| !accepted.contains(&to.email.to_string())).collect();
        let earlier = || format!("accepted earlier for: {}", accepted.iter().cloned().collect::<Vec<_>>().join(", "));
        if missing.is_empty() {
            return SendResult { outcome: Outcome::Accepted, status: None, text: earlier() };
        }
        let message = match self.message(attempt, to, None) {
            Ok(message) => message,
            Err(text) => return SendResult::refused(text),
        };
        let sent = match self.open(attempt.deadline, attempt.login.clone()).await {
            Ok(open) => self.transfer(open, attempt, &message, &missing).await,
            Err(failed) => Err(failed),
        };
        let (Ok(mut result) | Err(mut result)) = sent;
        // Only a reply concerns the missing recipients; any other failure concerns the server.
        let is_about_missing = !result.outcome.is_accepted() && result.outcome != Outcome::Uncertain;
        if !accepted.is_empty() && result.status.is_some() && is_about_missing {
            let is_last = attempt.delivery.tries >= self.retried_attempts || result.outcome == Outcome::Refused;
            result.outcome = match is_last {
                true => RejectedRecipients(missing.iter().map(|to| (&to.email, result.clone())).collect()).accepted_except(),
                false => Outcome::Partly,
            };
            result.text = format!("{}; {}", result.text, earlier());
        }
        if result.outcome.is_accepted() {
            self.progress.forget(id);
        }
        result
    }

    /// Sends a digest to the recipients that have not unsubscribed: one mail each if `external_url` allows a personal link, else
    /// one mail to all.
    async fn digest(&self, attempt: &MailAttempt<'_>, consent: &DigestConsent) -> SendResult {
        let to: Vec<&Mailbox> = self.to.iter().filter(|to| consent.wants(to.email.as_ref())).collect();
        if to.is_empty() {
            let text = "not sent: all recipients unsubscribed from digests (see `cliffwatch digest list`)".to_owned();
            return SendResult { outcome: Outcome::Accepted, status: None, text };
        }
        let link = |to: &Mailbox| {
            let address = unsubscribe::plain_address(to.email.as_ref());
            let subscriber = Subscriber { receiver: ReceiverName::from(self.name.as_str()), address };
            unsubscribe::link(self.external_url.as_deref()?, &consent.key, &subscriber)
        };
        let links: Option<Vec<String>> = to.iter().map(|to| link(to)).collect();
        match links {
            None => self.send_to_all(attempt, &to).await,
            Some(links) => self.send_to_each(attempt, to.into_iter().zip(links)).await,
        }
    }

    /// Sends a mail to each recipient. A rejected recipient does not affect the others; a failed connection ends the attempt.
    async fn send_to_each(&self, attempt: &MailAttempt<'_>, to: impl Iterator<Item = (&Mailbox, String)>) -> SendResult {
        let id = &attempt.delivery.webhook_id;
        let mut accepted = self.progress.accepted(id);
        let mut rejected = RejectedRecipients::default();
        let mut last = None;
        let mut connection_failure = None;
        for (mailbox, link) in to {
            let name = mailbox.email.to_string();
            if accepted.contains(&name) {
                continue;
            }
            // The time in which the server confirmed the earlier mails does not count.
            let attempt = &MailAttempt { deadline: Instant::now() + self.timeout, ..attempt.clone() };
            let message = match self.message(attempt, &[mailbox], Some(&link)) {
                Ok(message) => message,
                Err(text) => return SendResult::refused(text),
            };
            let open = match self.open(attempt.deadline, attempt.login.clone()).await {
                Ok(open) => open,
                Err(failed) => {
                    connection_failure = Some(failed);
                    break;
                }
            };
            match self.transfer(open, attempt, &message, &[mailbox]).await {
                Ok(result) => {
                    self.progress.remember(id, name.clone());
                    accepted.insert(name);
                    last = Some(result);
                }
                Err(failed) if failed.status.is_some() => rejected.0.push((&mailbox.email, failed)),
                Err(failed) => {
                    connection_failure = Some(failed);
                    break;
                }
            }
        }
        let accepted_for = || accepted.iter().cloned().collect::<Vec<_>>().join(", ");
        let result = match (connection_failure, last) {
            (Some(failed), _) if accepted.is_empty() => return failed,
            // The next attempt sends only to the remaining recipients.
            (Some(failed), _) => {
                let outcome = if failed.outcome == Outcome::Uncertain { failed.outcome } else { Outcome::LATER };
                let text = format!("accepted for: {}; then: {}", accepted_for(), failed.text);
                return SendResult { outcome, text, ..failed };
            }
            (None, _) if accepted.is_empty() || (rejected.is_temporary() && attempt.delivery.tries < self.retried_attempts) => {
                let before = if accepted.is_empty() { String::new() } else { format!("accepted for: {}; ", accepted_for()) };
                let failed = rejected.result(format!("{before}not delivered to: {rejected}"));
                // The server works, so its outage is not reported.
                let outcome = if accepted.is_empty() { failed.outcome } else { Outcome::Partly };
                return SendResult { outcome, ..failed };
            }
            (None, Some(result)) => result,
            (None, None) => SendResult { outcome: Outcome::Accepted, status: None, text: "accepted earlier".to_owned() },
        };
        self.progress.forget(id);
        let mut text = format!("{}; accepted for: {}", result.text, accepted_for());
        if !rejected.0.is_empty() {
            text = format!("{text}; not delivered to: {rejected}");
        }
        SendResult { text, outcome: rejected.accepted_except(), ..result }
    }

    fn message(&self, attempt: &MailAttempt<'_>, to: &[&Mailbox], unsubscribe: Option<&str>) -> Result<Vec<u8>, String> {
        let brief = Brief { delivery: attempt.delivery, external_url: self.external_url.as_deref(), now: attempt.now };
        mime::write(&MailAddresses { receiver: &self.name, from: &self.from, to, unsubscribe }, &brief)
    }
}

#[cfg(test)]
mod tests;
