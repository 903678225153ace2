//! A receiver that takes mail by SMTP.
//!
//! The session is driven step by step, so that it is known at every instant whether the server can have
//! the mail: before the final dot it cannot ([`Outcome::Later`]), after it only its answer tells ([`Outcome::Uncertain`] without
//! one). Every step ends with the attempt's deadline. A connection over which a mail was accepted waits a while for the next one; one
//! on which anything failed is dropped, never used again, since an answer that comes late would be taken for the next one's.
//!
//! An alert is one mail to all recipients. A digest with links to stop it is a mail to each, since the link is the recipient's own;
//! who has it already does not get it again with the next attempt.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

mod letter;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use lettre::{
    Address,
    message::Mailbox,
    transport::smtp::{
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::ClientId,
        response::Response,
    },
};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::{
    Problem,
    card::Brief,
    network,
    progress::Progress,
    retry::Outcome,
    text,
    unsubscribe::{self, Subscriber, Terms},
    webhook::{Answer, Scrubber},
};
use crate::{
    config::{self, Secret},
    store::model::DueDelivery,
    supply::{ReceiverName, Timestamp},
};
use letter::Envelope;

/// Most recipients of one receiver.
const MAX_RECIPIENTS: usize = 50;

/// Bytes of a mail written at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// How long a connection waits for the next mail; servers drop theirs after minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Most connections that wait, and most mails over one: servers count both.
const MAX_IDLE: usize = 4;
const MAX_MAILS: u32 = 50;

/// Longest wait for a connection that waited to show that it still works.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest wait for a polite end, after the mail was accepted.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Tries in which a recipient who is refused for the moment keeps the mail waiting for all: grey lists let it in after minutes.
/// After them the others get it without him, and the answer names him.
const PATIENT_TRIES: u32 = 4;

/// Ports of submission.
const SUBMISSION_PORT: u16 = 587;
const SUBMISSIONS_PORT: u16 = 465;

/// An email receiver, checked.
#[derive(Debug)]
pub struct Email {
    name: String,
    server: Server,
    username: Option<String>,
    login: Secret,
    from: Mailbox,
    to: Vec<Mailbox>,
    timeout: Duration,
    external_url: Option<String>,
    idle: Idle,
    progress: Progress,
}

/// How the mail server is reached.
#[derive(Debug)]
struct Server {
    host: String,
    port: u16,
    security: Security,
}

enum Security {
    /// As it is: loopback alone.
    Plain,
    /// Plain until STARTTLS, which must succeed before anything else is said.
    StartTls(TlsParameters),
    /// From the first byte.
    Implicit(TlsParameters),
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Plain => "Plain",
            Security::StartTls(_) => "StartTls",
            Security::Implicit(_) => "Implicit",
        })
    }
}

/// User name and password.
type Login = (String, String);

/// A connection after a mail, or before the next.
struct Open {
    connection: AsyncSmtpConnection,
    /// As whom: a password that was changed takes a new connection.
    login: Option<Login>,
    /// Mails that went over it.
    mails: u32,
}

/// Connections that wait for the next mail. One is put here only after the server took a mail, so that no answer is outstanding.
#[derive(Clone, Default)]
struct Idle(Arc<Mutex<Vec<(Instant, Open)>>>);

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Idle")
    }
}

impl Idle {
    /// The one that was used last, if it belongs to this login.
    fn take(&self, login: &Option<Login>) -> Option<Open> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().rposition(|(since, open)| open.login == *login && since.elapsed() < IDLE_TIMEOUT)?;
        Some(waiting.remove(at).1)
    }

    /// Keeps one for the next mail, and sees to it that it ends where none comes.
    fn keep(&self, open: Open) {
        if open.mails >= MAX_MAILS {
            return hang_up(open.connection);
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((Instant::now(), open));
        if waiting.len() > MAX_IDLE {
            hang_up(waiting.remove(0).1.connection);
        }
        drop(waiting);
        let idle = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE_TIMEOUT).await;
            let mut waiting = idle.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, open) in waiting.extract_if(.., |(since, _)| since.elapsed() >= IDLE_TIMEOUT) {
                hang_up(open.connection);
            }
        });
    }
}

/// What one attempt sends, and until when.
struct Attempt<'a> {
    delivery: &'a DueDelivery,
    now: Timestamp,
    deadline: Instant,
    login: Option<Login>,
}

/// How far a session came when it ended without an acceptance.
#[derive(Debug)]
struct Failed {
    outcome: Outcome,
    code: Option<u16>,
    text: String,
}

impl Email {
    /// Checks a receiver's config. All problems are pushed to `problems`; None where there was one.
    pub(super) fn build(
        index: usize,
        receiver: &config::Receiver,
        delivery: &config::Delivery,
        external_url: Option<&str>,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut problem = |key: &'static str, message: String| problems.push(Problem { receiver: index, key, message });

        let certificates = super::read_certificates(receiver).unwrap_or_else(|message| {
            problem("tls_ca_file", message);
            None
        });
        let server = match receiver.smtp.as_deref() {
            None => {
                problem("smtp", "an email receiver needs its server: write `smtp = \"smtp://mail.example.com:587\"`".into());
                None
            }
            Some(text) => parse_server(text, certificates.as_deref(), receiver.tls_ca_file.as_deref())
                .map_err(|(key, message)| problem(key, message))
                .ok(),
        };
        let login = receiver.login();
        if receiver.username.is_some() {
            match login.resolve() {
                Ok(Some(_)) => {}
                Ok(None) => problem("password", "a `username` needs a password: give `password_file`, or `password`".into()),
                Err(error) => problem("password_file", super::chain(&error)),
            }
        } else if receiver.password.is_some() || receiver.password_file.is_some() {
            problem("username", "a password needs a `username`".into());
        }
        let from = match receiver.from.as_deref() {
            None => {
                problem("from", "an email receiver needs a sender: write `from = \"Cliffwatch <alerts@example.com>\"`".into());
                None
            }
            Some(text) => parse_mailbox(text).map_err(|message| problem("from", message)).ok(),
        };
        let mut to = Vec::new();
        for text in &receiver.to {
            match parse_mailbox(text) {
                Ok(mailbox) => to.push(mailbox),
                Err(message) => problem("to", message),
            }
        }
        if receiver.to.is_empty() {
            problem("to", "an email receiver needs at least one recipient: write `to = [\"desk@example.com\"]`".into());
        } else if receiver.to.len() > MAX_RECIPIENTS {
            problem("to", format!("{} recipients are too many: at most {MAX_RECIPIENTS}; use a list address", receiver.to.len()));
        }
        if problems.len() > before {
            return None;
        }
        Some(Self {
            name: receiver.name.clone(),
            server: server?,
            username: receiver.username.clone(),
            login,
            from: from?,
            to,
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
            idle: Idle::default(),
            progress: Progress::default(),
        })
    }

    /// One attempt. `terms` come with a digest: who does not want it, and how the others say so.
    pub async fn send(&self, delivery: &DueDelivery, now: Timestamp, terms: Option<&Terms>) -> Answer {
        let password = match self.login.resolve() {
            Ok(password) => password,
            Err(error) => return Answer::later(super::chain(&error)),
        };
        let credentials = match (&self.username, password) {
            (Some(username), Some(password)) => Some((username.clone(), password.expose().to_owned())),
            (Some(_), None) => return Answer::later("the receiver has a `username` but no password: give `password_file`"),
            (None, _) => None,
        };
        let mut secrets = Vec::new();
        if let Some((username, password)) = &credentials {
            secrets.push(password.clone());
            secrets.push(BASE64.encode(password));
            secrets.push(BASE64.encode(format!("\0{username}\0{password}")));
        }
        let scrub = Scrubber::of(secrets);
        let attempt = Attempt { delivery, now, deadline: Instant::now() + self.timeout, login: credentials };
        let answer = match terms {
            None => self.to_all(&attempt, &self.to.iter().collect::<Vec<_>>()).await,
            Some(terms) => self.digest(&attempt, terms).await,
        };
        Answer { text: scrub.clean(&answer.text), ..answer }
    }

    /// One mail to all of `to`.
    async fn to_all(&self, attempt: &Attempt<'_>, to: &[&Mailbox]) -> Answer {
        let message = match self.message(attempt, to, None) {
            Ok(message) => message,
            Err(text) => return Answer { outcome: Outcome::Refused, status: None, text },
        };
        let sent = match self.open(attempt.deadline, attempt.login.clone()).await {
            Ok(open) => self.transfer(open, attempt, &message, to).await,
            Err(failed) => Err(failed),
        };
        sent.unwrap_or_else(|Failed { outcome, code, text }| Answer { outcome, status: code, text })
    }

    /// A digest to those who want it: a mail to each with a link of their own, where we have pages that links can lead to.
    async fn digest(&self, attempt: &Attempt<'_>, terms: &Terms) -> Answer {
        let to: Vec<&Mailbox> = self.to.iter().filter(|to| terms.wants(to.email.as_ref())).collect();
        if to.is_empty() {
            let text = "sent to nobody: all recipients have stopped digests (`cliffwatch digest list`)".to_owned();
            return Answer { outcome: Outcome::Accepted, status: None, text };
        }
        let link = |to: &Mailbox| {
            let address = unsubscribe::plain_address(to.email.as_ref());
            let subscriber = Subscriber { receiver: ReceiverName::from(self.name.as_str()), address };
            unsubscribe::link(self.external_url.as_deref()?, &terms.key, &subscriber)
        };
        let links: Option<Vec<String>> = to.iter().map(|to| link(to)).collect();
        match links {
            None => self.to_all(attempt, &to).await,
            Some(links) => self.to_each(attempt, to.into_iter().zip(links)).await,
        }
    }

    /// A mail to each. What one of them cannot get keeps it from no other, unless the way to the server is shut for all.
    async fn to_each(&self, attempt: &Attempt<'_>, to: impl Iterator<Item = (&Mailbox, String)>) -> Answer {
        let id = &attempt.delivery.webhook_id;
        let mut taken = self.progress.taken(id);
        let mut refused: Vec<(&Address, Failed)> = Vec::new();
        let mut last = None;
        let mut shut = None;
        for (mailbox, link) in to {
            let name = mailbox.email.to_string();
            if taken.contains(&name) {
                continue;
            }
            let message = match self.message(attempt, &[mailbox], Some(&link)) {
                Ok(message) => message,
                Err(text) => return Answer { outcome: Outcome::Refused, status: None, text },
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
            (Some(Failed { outcome, code, text }), _) if taken.is_empty() => return Answer { outcome, status: code, text },
            // Whatever shut the way, the others get it later: what was taken is not sent again.
            (Some(Failed { outcome, code, text }), _) => {
                let outcome = if outcome == Outcome::Uncertain { outcome } else { Outcome::LATER };
                return Answer { outcome, status: code, text: format!("taken for: {}; then: {text}", taken_for()) };
            }
            (None, _) if taken.is_empty() || (is_postponed && attempt.delivery.tries < PATIENT_TRIES) => {
                let outcome = if is_postponed { Outcome::LATER } else { Outcome::Refused };
                let status = refused.iter().map(|(_, failed)| failed.code).find(Option::is_some).flatten();
                let before = if taken.is_empty() { String::new() } else { format!("taken for: {}; ", taken_for()) };
                return Answer { outcome, status, text: format!("{before}not delivered to: {}", list(&refused)) };
            }
            (None, Some(answer)) => answer,
            (None, None) => Answer { outcome: Outcome::Accepted, status: None, text: "taken before".to_owned() },
        };
        self.progress.forget(id);
        let mut text = format!("{}; taken for: {}", answer.text, taken_for());
        if !refused.is_empty() {
            text = format!("{text}; not delivered to: {}", list(&refused));
        }
        Answer { text, ..answer }
    }

    /// The mail, as it goes over the wire.
    fn message(&self, attempt: &Attempt<'_>, to: &[&Mailbox], unsubscribe: Option<&str>) -> Result<Vec<u8>, String> {
        let brief = Brief { delivery: attempt.delivery, external_url: self.external_url.as_deref(), now: attempt.now };
        letter::write(&Envelope { receiver: &self.name, from: &self.from, to, unsubscribe }, &brief)
    }

    /// From the recipients to the answer after the final dot.
    async fn transfer(&self, open: Open, attempt: &Attempt<'_>, message: &[u8], to: &[&Mailbox]) -> Result<Answer, Failed> {
        let Open { mut connection, login, mails } = open;
        let deadline = attempt.deadline;
        let mut accepted: Vec<&Address> = Vec::new();
        let mut refused: Vec<(&Address, Failed)> = Vec::new();
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
            return Err(Failed { outcome, code, text: format!("{nobody}: {}", list(&refused)) });
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
            Ok(Err(error)) if is_ended.load(Ordering::Relaxed) => return Err(uncertain(&super::chain(&error))),
            Ok(Err(error)) => return Err(failed("the mail", &error)),
            Err(_) if is_ended.load(Ordering::Relaxed) => return Err(uncertain("no answer in time")),
            Err(_) => return Err(too_late("the mail")),
        };
        if !response.has_code(250) {
            return Err(uncertain(&format!("the server answered {}", said(&response))));
        }
        self.idle.keep(Open { connection, login, mails: mails + 1 });
        let mut text = said(&response);
        if to.len() > 1 {
            let names: Vec<String> = accepted.iter().map(ToString::to_string).collect();
            text = format!("{text}; taken for: {}", names.join(", "));
        }
        if !refused.is_empty() {
            tracing::warn!(receiver = %self.name, refused = refused.len(), "some recipients of a mail were refused, the others have it");
            text = format!("{text}; not delivered to: {}", list(&refused));
        }
        Ok(Answer { outcome: Outcome::Accepted, status: Some(250), text })
    }

    /// A connection on which the sender was accepted: one that is still open, else a new one.
    async fn open(&self, deadline: Instant, login: Option<Login>) -> Result<Open, Failed> {
        let sender = || Mail::new(Some(self.from.email.clone()), Vec::new());
        while let Some(mut open) = self.idle.take(&login) {
            // Servers end connections as they like: what does not take the sender now is let go, and nothing is lost.
            let soon = deadline.min(Instant::now() + PROBE_TIMEOUT);
            if step(soon, "the sender", open.connection.command(sender())).await.is_ok() {
                return Ok(open);
            }
        }
        let mut connection = self.connect(deadline).await?;
        if let Some((username, password)) = &login {
            let credentials = Credentials::new(username.clone(), password.clone());
            step(deadline, "the login", connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials)).await?;
        }
        step(deadline, "the sender", connection.command(sender())).await?;
        Ok(Open { connection, login, mails: 0 })
    }

    /// A new connection on which mail may be sent: greeted, and encrypted where that is asked for.
    async fn connect(&self, deadline: Instant) -> Result<AsyncSmtpConnection, Failed> {
        let Server { host, port, security } = &self.server;
        let hello = ClientId::default();
        let implicit = if let Security::Implicit(tls) = security { Some(tls.clone()) } else { None };
        let address = (host.as_str(), *port);
        let connecting = AsyncSmtpConnection::connect_tokio1(address, None, &hello, implicit, None);
        let mut connection = step(deadline, "the greeting", connecting).await?;
        if let Security::StartTls(tls) = security {
            if !connection.can_starttls() {
                hang_up(connection);
                let text = "the mail server offers no STARTTLS, and nothing is sent in plain text over a network: use a server or port \
                            that does, or smtps://";
                return Err(Failed { outcome: Outcome::LATER, code: None, text: text.into() });
            }
            step(deadline, "STARTTLS", connection.starttls(tls.clone(), &hello)).await?;
        }
        Ok(connection)
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
async fn step<T>(
    deadline: Instant,
    what: &str,
    doing: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
) -> Result<T, Failed> {
    match timeout_at(deadline, doing).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(what, &error)),
        Err(_) => Err(too_late(what)),
    }
}

/// A step that failed while the server cannot have the mail.
fn failed(what: &str, error: &lettre::transport::smtp::Error) -> Failed {
    match error.status().map(u16::from) {
        Some(code) => Failed {
            outcome: Outcome::of_smtp_code(code),
            code: Some(code),
            text: format!("{what} was refused: {}", super::chain(error)),
        },
        None => Failed { outcome: Outcome::LATER, code: None, text: format!("{what} failed: {}", super::chain(error)) },
    }
}

fn too_late(what: &str) -> Failed {
    Failed { outcome: Outcome::LATER, code: None, text: format!("{what} got no answer in time") }
}

fn uncertain(why: &str) -> Failed {
    let text = format!(
        "the mail was handed over, but whether it was accepted is not known: {why}; it is sent again under the same Message-ID"
    );
    Failed { outcome: Outcome::Uncertain, code: None, text }
}

/// Ends a session politely, without making anyone wait for it.
fn hang_up(mut connection: AsyncSmtpConnection) {
    tokio::spawn(async move {
        // Whatever comes of it, the connection is dropped.
        let _ended = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
    });
}

/// A reply in one line: `250 2.0.0 queued as 12345`.
fn said(response: &Response) -> String {
    let words: Vec<&str> = response.message().collect();
    text::line(&format!("{} {}", response.code(), words.join(" ")), text::MAX_LINE_CHARS)
}

fn list(refused: &[(&Address, Failed)]) -> String {
    let each: Vec<String> =
        refused.iter().map(|(address, failed)| format!("{address} ({})", text::line(&failed.text, 200))).collect();
    each.join(", ")
}

/// Reads an address of a mailbox: `Name <user@example.com>` or `user@example.com`.
fn parse_mailbox(text: &str) -> Result<Mailbox, String> {
    // A control character in a name would make the library panic when it writes the header.
    if text.chars().any(char::is_control) {
        return Err("an address holds no line breaks or other control characters".into());
    }
    let shown = text::line(text, 100);
    let mailbox: Mailbox = text.trim().parse().map_err(|_| {
        format!("{shown:?} is no mail address: write it like \"Desk <desk@example.com>\" or \"desk@example.com\"")
    })?;
    let address: &str = mailbox.email.as_ref();
    if !address.is_ascii() {
        return Err(format!(
            "{shown:?} has letters in its address that not every mail server takes: use an ASCII address (the domain in its xn-- form)"
        ));
    }
    Ok(mailbox)
}

/// Reads `smtp`: what is wrong comes back with the key it belongs to.
fn parse_server(text: &str, certificates: Option<&[u8]>, file: Option<&Path>) -> Result<Server, (&'static str, String)> {
    let wrong =
        |why: &str| ("smtp", format!("{why}: write it like \"smtp://mail.example.com:587\" or \"smtps://mail.example.com:465\""));
    // A password in it is a mistake that must not be repeated in a message, so the text never is.
    let url = Url::parse(text.trim()).map_err(|_| wrong("this is no address of a mail server"))?;
    if !matches!(url.scheme(), "smtp" | "smtps") {
        return Err(wrong("a mail server's address begins with smtp:// or smtps://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a mail server's address holds no login: give `username` and `password_file`"));
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("a mail server's address is a host and a port, nothing behind them"));
    }
    let name = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("the mail server's address names no host"))?;
    // A scheme that the URL standard does not know leaves the host unread.
    let host = Host::parse(name).map_err(|_| wrong("the mail server's host is no host name"))?;
    let is_loopback = network::is_loopback_host(&match &host {
        Host::Domain(name) => Host::Domain(name.as_str()),
        Host::Ipv4(v4) => Host::Ipv4(*v4),
        Host::Ipv6(v6) => Host::Ipv6(*v6),
    });
    let host = match host {
        Host::Domain(name) => name,
        Host::Ipv4(v4) => v4.to_string(),
        Host::Ipv6(v6) => v6.to_string(),
    };
    let tls = || {
        let mut builder = TlsParameters::builder(host.clone());
        if let Some(pem) = certificates {
            let certificate = Certificate::from_pem(pem).map_err(|error| {
                let file = file.map(|file| file.display().to_string()).unwrap_or_default();
                ("tls_ca_file", format!("{file} is no PEM file with certificates: {}", super::chain(&error)))
            })?;
            builder = builder.add_root_certificate(certificate);
        }
        builder.build().map_err(|error| ("smtp", format!("cannot prepare TLS for the mail server: {}", super::chain(&error))))
    };
    let (port, security) = match url.scheme() {
        "smtps" => (SUBMISSIONS_PORT, Security::Implicit(tls()?)),
        // On this machine nobody listens in between; a certificate of one's own asks for TLS all the same.
        _ if is_loopback && certificates.is_none() => (SUBMISSION_PORT, Security::Plain),
        _ => (SUBMISSION_PORT, Security::StartTls(tls()?)),
    };
    Ok(Server { port: url.port().unwrap_or(port), host, security })
}

#[cfg(test)]
mod tests;
