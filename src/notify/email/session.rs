//! Sends one mail over one connection. A failed step returns the result of the attempt, which states whether the server can have the
//! mail.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::response::Response;
use tokio::time::{Instant, timeout_at};

use super::pool::{OpenConnection, SmtpLogin, quit};
use super::{EmailReceiver, MailAttempt};
use crate::{
    SendResult,
    retry::{Outcome, RejectedRecipient},
    text,
};
use model::text::error_chain;

const CHUNK_BYTES: usize = 16 * 1024;

/// The time for the reply to the final dot, in which servers filter the mail. RFC 5321 (4.5.3.2.6) suggests ten minutes, because a client
/// that gives up sends a copy later. Later messages about the same alert wait meanwhile, so it is less here.
pub(super) const FINAL_REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// The timeout of the first command on a reused connection, which the server may have closed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl EmailReceiver {
    /// Sends the recipients and the mail, and waits for the reply to the final dot.
    pub(super) async fn transfer(
        &self,
        open: OpenConnection,
        attempt: &MailAttempt<'_>,
        message: &[u8],
        to: &[&Mailbox],
    ) -> Result<SendResult, SendResult> {
        let OpenConnection { mut connection, login, mails } = open;
        let deadline = attempt.deadline;
        let mut accepted: Vec<&Address> = Vec::new();
        let mut rejected = RejectedRecipients::default();
        for Mailbox { email, .. } in to.iter().copied() {
            match step(deadline, "a recipient", connection.command(Rcpt::new(email.clone(), Vec::new()))).await {
                Ok(_) => accepted.push(email),
                // Only a reply concerns this recipient; any other failure ends the connection.
                Err(failed) if failed.status.is_some() => rejected.0.push((email, failed)),
                Err(failed) => return Err(failed),
            }
        }
        if accepted.is_empty() {
            quit(connection);
            return Err(rejected.result(format!("all recipients were rejected: {rejected}")));
        }
        step(deadline, "the announcement of the mail", connection.command(Data)).await?;

        // The library writes the final dot after it took the last chunk. From then on, only the reply decides.
        let ended_at = OnceLock::new();
        let note_end = || _ = ended_at.get_or_init(Instant::now);
        let chunks = message.chunks(CHUNK_BYTES).chain(std::iter::once_with(note_end).filter_map(|()| None::<&[u8]>));
        let reply = {
            let mut sending = std::pin::pin!(send_chunks(&mut connection, chunks));
            match (timeout_at(deadline, &mut sending).await, ended_at.get()) {
                (Err(_), Some(ended_at)) => timeout_at(*ended_at + self.reply_timeout, sending).await,
                (reply, _) => reply,
            }
        };
        let is_ended = ended_at.get().is_some();
        let response = match reply {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.status().is_some() => return Err(failed("the mail", &error)),
            Ok(Err(error)) if is_ended => return Err(uncertain(&error_chain(&error))),
            Ok(Err(error)) => return Err(failed("the mail", &error)),
            Err(_) if is_ended => return Err(uncertain("the reply timed out")),
            Err(_) => return Err(timed_out("the mail")),
        };
        if !response.has_code(250) {
            return Err(uncertain(&format!("the server replied {}", reply_text(&response))));
        }
        self.pool.keep(OpenConnection { connection, login, mails: mails + 1 });
        let mut text = reply_text(&response);
        let names: Vec<String> = accepted.iter().map(ToString::to_string).collect();
        if to.len() > 1 {
            text = format!("{text}; accepted for: {}", names.join(", "));
        }
        if rejected.is_temporary() && attempt.delivery.tries < self.retried_attempts {
            names.into_iter().for_each(|name| self.progress.remember(&attempt.delivery.webhook_id, name));
            return Ok(SendResult {
                outcome: Outcome::Partly,
                status: Some(250),
                text: format!("{text}; not yet for: {rejected}"),
            });
        }
        if !rejected.0.is_empty() {
            tracing::warn!(receiver = %self.name, rejected = rejected.0.len(), "mail sent, but some recipients were rejected");
            text = format!("{text}; not delivered to: {rejected}");
        }
        Ok(SendResult { outcome: rejected.accepted_except(), status: Some(250), text })
    }

    /// Returns a connection on which the server accepted the sender, from the pool or a new one.
    pub(super) async fn open(&self, deadline: Instant, login: Option<SmtpLogin>) -> Result<OpenConnection, SendResult> {
        let sender = || Mail::new(Some(self.from.email.clone()), Vec::new());
        while let Some(mut open) = self.pool.take(&login) {
            // The server may have closed an idle connection. Then the next one is tried; nothing was sent.
            let soon = deadline.min(Instant::now() + PROBE_TIMEOUT);
            if step(soon, "the sender", open.connection.command(sender())).await.is_ok() {
                return Ok(open);
            }
        }
        let mut connection = self.server.connect(deadline).await?;
        if let Some(SmtpLogin { username, password }) = &login {
            let credentials = Credentials::new(username.clone(), password.clone());
            step(deadline, "the login", connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials)).await?;
        }
        step(deadline, "the sender", connection.command(sender())).await?;
        Ok(OpenConnection { connection, login, mails: 0 })
    }
}

/// Writes the chunks and the final dot, and reads the reply.
async fn send_chunks<'a>(
    connection: &mut AsyncSmtpConnection,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> Result<Response, lettre::transport::smtp::Error> {
    connection.message_iter(chunks).await
}

/// Runs one step of a session before the final dot.
pub(super) async fn step<T>(
    deadline: Instant,
    what: &str,
    command: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
) -> Result<T, SendResult> {
    match timeout_at(deadline, command).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(what, &error)),
        Err(_) => Err(timed_out(what)),
    }
}

/// The failure of a step before the final dot: the server does not have the mail.
fn failed(what: &str, error: &lettre::transport::smtp::Error) -> SendResult {
    match error.status().map(u16::from) {
        Some(code) => SendResult {
            outcome: Outcome::of_smtp_code(code),
            status: Some(code),
            text: format!("the server rejected {what}: {}", error_chain(error)),
        },
        None => SendResult::later(format!("{what} failed: {}", error_chain(error))),
    }
}

fn timed_out(what: &str) -> SendResult {
    SendResult::later(format!("{what} timed out"))
}

fn uncertain(why: &str) -> SendResult {
    let text =
        format!("the mail was sent, but it is unknown whether the server accepted it: {why}; retrying with the same Message-ID");
    SendResult { outcome: Outcome::Uncertain, status: None, text }
}

/// Formats a reply as one line: `250 2.0.0 queued as 12345`.
fn reply_text(response: &Response) -> String {
    let words: Vec<&str> = response.message().collect();
    text::line(&format!("{} {}", response.code(), words.join(" ")), model::phrase::MAX_LINE_CHARS)
}

/// The shown part of a server's reply about a recipient.
const MAX_REPLY_CHARS: usize = 200;

/// Recipients that the server rejected, with its replies.
#[derive(Default)]
pub(super) struct RejectedRecipients<'a>(pub(super) Vec<(&'a Address, SendResult)>);

impl RejectedRecipients<'_> {
    /// Returns whether the server may accept one of them later.
    pub(super) fn is_temporary(&self) -> bool {
        self.0.iter().any(|(_, failed)| failed.outcome != Outcome::Refused)
    }

    /// Returns the outcome of a mail that was accepted for all other recipients, if these are not retried.
    pub(super) fn accepted_except(&self) -> Outcome {
        let of = |(address, failed): &(&Address, SendResult)| RejectedRecipient {
            address: address.to_string(),
            reply: text::line(&failed.text, MAX_REPLY_CHARS),
        };
        let rejected: Vec<_> = self.0.iter().map(of).collect();
        if rejected.is_empty() { Outcome::Accepted } else { Outcome::AcceptedExcept { rejected } }
    }

    /// Returns the result of an attempt that failed because of them.
    pub(super) fn result(&self, text: String) -> SendResult {
        let outcome = if self.is_temporary() { Outcome::LATER } else { Outcome::Refused };
        SendResult { outcome, status: self.0.iter().find_map(|(_, failed)| failed.status), text }
    }
}

impl fmt::Display for RejectedRecipients<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(address, failed)| format!("{address} ({})", text::line(&failed.text, MAX_REPLY_CHARS)));
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}
