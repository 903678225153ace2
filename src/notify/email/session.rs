//! One mail over one connection, step by step: at every instant it is known whether the server can have the mail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::response::Response;
use tokio::time::{Instant, timeout_at};

use super::pool::{OpenConnection, SmtpLogin, hang_up};
use super::{EmailReceiver, MailAttempt, PATIENT_TRIES};
use crate::{SendResult, retry::Outcome, text};
use model::text::error_chain;

/// Bytes of a mail written at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Longest wait for a connection that waited to show that it still works.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How far a session came when it ended without an acceptance.
#[derive(Debug)]
pub(super) struct SessionFailure {
    pub(super) outcome: Outcome,
    pub(super) code: Option<u16>,
    pub(super) text: String,
}

impl EmailReceiver {
    /// From the recipients to the answer after the final dot.
    pub(super) async fn transfer(
        &self,
        open: OpenConnection,
        attempt: &MailAttempt<'_>,
        message: &[u8],
        to: &[&Mailbox],
    ) -> Result<SendResult, SessionFailure> {
        let OpenConnection { mut connection, login, mails } = open;
        let deadline = attempt.deadline;
        let mut accepted: Vec<&Address> = Vec::new();
        let mut refused: Vec<(&Address, SessionFailure)> = Vec::new();
        for Mailbox { email, .. } in to.iter().copied() {
            let asked = step(deadline, "a recipient", connection.command(Rcpt::new(email.clone(), Vec::new()))).await;
            match asked {
                Ok(_) => accepted.push(email),
                // Only a reply is about this recipient; anything else is the end of the connection.
                Err(failed) if failed.code.is_some() => refused.push((email, failed)),
                Err(failed) => return Err(failed),
            }
        }
        let is_postponed = refused.iter().any(|(_, failed)| failed.outcome != Outcome::Refused);
        if accepted.is_empty() || (is_postponed && attempt.delivery.tries < PATIENT_TRIES) {
            let code = refused.iter().map(|(_, failed)| failed.code).find(Option::is_some).flatten();
            let outcome = if is_postponed { Outcome::LATER } else { Outcome::Refused };
            let nobody = if accepted.is_empty() { "no recipient was accepted" } else { "not all recipients were accepted yet" };
            hang_up(connection);
            return Err(SessionFailure { outcome, code, text: format!("{nobody}: {}", list(&refused)) });
        }
        step(deadline, "the announcement of the mail", connection.command(Data)).await?;

        // Once all chunks are taken, the final dot is on its way: from then on only the answer tells.
        let is_ended = AtomicBool::new(false);
        let chunks = message
            .chunks(CHUNK_BYTES)
            .chain(std::iter::once_with(|| is_ended.store(true, Ordering::Relaxed)).filter_map(|()| None::<&[u8]>));
        let reply = timeout_at(deadline, send_chunks(&mut connection, chunks)).await;
        let response = match reply {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.status().is_some() => return Err(failed("the mail", &error)),
            Ok(Err(error)) if is_ended.load(Ordering::Relaxed) => return Err(uncertain(&error_chain(&error))),
            Ok(Err(error)) => return Err(failed("the mail", &error)),
            Err(_) if is_ended.load(Ordering::Relaxed) => return Err(uncertain("no answer in time")),
            Err(_) => return Err(too_late("the mail")),
        };
        if !response.has_code(250) {
            return Err(uncertain(&format!("the server answered {}", said(&response))));
        }
        self.pool.keep(OpenConnection { connection, login, mails: mails + 1 });
        let mut text = said(&response);
        if to.len() > 1 {
            let names: Vec<String> = accepted.iter().map(ToString::to_string).collect();
            text = format!("{text}; taken for: {}", names.join(", "));
        }
        if !refused.is_empty() {
            tracing::warn!(receiver = %self.name, refused = refused.len(), "some recipients of a mail were refused, the others have it");
            text = format!("{text}; not delivered to: {}", list(&refused));
        }
        Ok(SendResult { outcome: Outcome::Accepted, status: Some(250), text })
    }

    /// A connection on which the sender was accepted: one that is still open, else a new one.
    pub(super) async fn open(&self, deadline: Instant, login: Option<SmtpLogin>) -> Result<OpenConnection, SessionFailure> {
        let sender = || Mail::new(Some(self.from.email.clone()), Vec::new());
        while let Some(mut open) = self.pool.take(&login) {
            // Servers end connections as they like: what does not take the sender now is let go, and nothing is lost.
            let soon = deadline.min(Instant::now() + PROBE_TIMEOUT);
            if step(soon, "the sender", open.connection.command(sender())).await.is_ok() {
                return Ok(open);
            }
        }
        let mut connection = self.server.connect(deadline).await?;
        if let Some((username, password)) = &login {
            let credentials = Credentials::new(username.clone(), password.clone());
            step(deadline, "the login", connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials)).await?;
        }
        step(deadline, "the sender", connection.command(sender())).await?;
        Ok(OpenConnection { connection, login, mails: 0 })
    }
}

/// Writes the chunks and the final dot, and reads the answer.
async fn send_chunks<'a>(
    connection: &mut AsyncSmtpConnection,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> Result<Response, lettre::transport::smtp::Error> {
    connection.message_iter(chunks).await
}

/// One step of a session before the final dot.
pub(super) async fn step<T>(
    deadline: Instant,
    what: &str,
    doing: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
) -> Result<T, SessionFailure> {
    match timeout_at(deadline, doing).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(what, &error)),
        Err(_) => Err(too_late(what)),
    }
}

/// A step that failed while the server cannot have the mail.
fn failed(what: &str, error: &lettre::transport::smtp::Error) -> SessionFailure {
    match error.status().map(u16::from) {
        Some(code) => SessionFailure {
            outcome: Outcome::of_smtp_code(code),
            code: Some(code),
            text: format!("{what} was refused: {}", error_chain(error)),
        },
        None => SessionFailure { outcome: Outcome::LATER, code: None, text: format!("{what} failed: {}", error_chain(error)) },
    }
}

fn too_late(what: &str) -> SessionFailure {
    SessionFailure { outcome: Outcome::LATER, code: None, text: format!("{what} got no answer in time") }
}

fn uncertain(why: &str) -> SessionFailure {
    let text = format!(
        "the mail was handed over, but whether it was accepted is not known: {why}; it is sent again under the same Message-ID"
    );
    SessionFailure { outcome: Outcome::Uncertain, code: None, text }
}

/// A reply in one line: `250 2.0.0 queued as 12345`.
fn said(response: &Response) -> String {
    let words: Vec<&str> = response.message().collect();
    text::line(&format!("{} {}", response.code(), words.join(" ")), text::MAX_LINE_CHARS)
}

pub(super) fn list(refused: &[(&Address, SessionFailure)]) -> String {
    let each: Vec<String> =
        refused.iter().map(|(address, failed)| format!("{address} ({})", text::line(&failed.text, 200))).collect();
    each.join(", ")
}
