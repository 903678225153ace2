//! A receiver that takes mail by SMTP.
//!
//! The session is driven step by step, so that it is known at every instant whether the server can have
//! the mail: before the final dot it cannot ([`Outcome::Later`]), after it only its answer tells ([`Outcome::Uncertain`] without
//! one). Every step ends with the attempt's deadline. A connection over which a mail was accepted waits a while for the next one; one
//! on which anything failed is dropped, never used again, since an answer that comes late would be taken for the next one's.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use lettre::{
    Address, Message,
    message::{
        Attachment, Mailbox, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
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
    mail, network,
    retry::Outcome,
    text,
    webhook::{Answer, Scrubber},
};
use crate::{
    alert::{Notice, NoticeKind},
    config::{self, Secret},
    store::model::DueDelivery,
    supply::Timestamp,
};

/// Most recipients of one receiver.
const MAX_RECIPIENTS: usize = 50;

/// Most threads that one mail belongs to: longer headers are cut by some servers.
const MAX_THREADS: usize = 10;

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
        })
    }

    /// One attempt.
    pub async fn send(&self, delivery: &DueDelivery, now: Timestamp) -> Answer {
        let password = match self.login.resolve() {
            Ok(password) => password,
            Err(error) => return Answer::later(super::chain(&error)),
        };
        let credentials = match (&self.username, password) {
            (Some(username), Some(password)) => Some((username.clone(), password.expose().to_owned())),
            (Some(_), None) => return Answer::later("the receiver has a `username` but no password: give `password_file`"),
            (None, _) => None,
        };
        let message = match self.message(delivery, now) {
            Ok(message) => message,
            Err(text) => {
                return Answer { outcome: Outcome::Refused, status: None, text };
            }
        };
        let mut secrets = Vec::new();
        if let Some((username, password)) = &credentials {
            secrets.push(password.clone());
            secrets.push(BASE64.encode(password));
            secrets.push(BASE64.encode(format!("\0{username}\0{password}")));
        }
        let scrub = Scrubber::of(secrets);
        let deadline = Instant::now() + self.timeout;
        let answer = match self.session(deadline, credentials, &message, delivery.tries).await {
            Ok(answer) => answer,
            Err(Failed { outcome, code, text }) => Answer { outcome, status: code, text },
        };
        Answer { text: scrub.clean(&answer.text), ..answer }
    }

    /// The mail, as it goes over the wire.
    fn message(&self, delivery: &DueDelivery, now: Timestamp) -> Result<Vec<u8>, String> {
        let brief = Brief { delivery, external_url: self.external_url.as_deref(), now };
        let mail = mail::compose(&brief).ok_or("the delivery holds no notice")?;
        let domain = format!("cliffwatch.{}", self.from.email.domain());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(mail.subject)
            .date(SystemTime::from(now))
            .message_id(Some(message_id(&delivery.webhook_id, &domain)));
        for to in &self.to {
            builder = builder.to(to.clone());
        }
        // One thread for all that is told of an event, by whichever rule: all refer to a root that was never sent.
        let mut roots: Vec<String> = Vec::new();
        for notice in &delivery.notices {
            let root = message_id(&thread_of(notice), &domain);
            if roots.len() < MAX_THREADS && !roots.contains(&root) {
                roots.push(root);
            }
        }
        if let Some(first) = roots.first() {
            builder = builder.in_reply_to(first.clone()).references(roots.join(" "));
        }
        let list = format!("<{}.{domain}>", header_atom(&self.name));
        for (name, value) in
            [("Auto-Submitted", "auto-generated"), ("X-Auto-Response-Suppress", "All"), ("List-Id", list.as_str())]
        {
            let name = HeaderName::new_from_ascii(name.to_owned()).map_err(|_| "a header's name is not ASCII".to_owned())?;
            builder = builder.raw_header(HeaderValue::new(name, value.to_owned()));
        }
        if delivery.notices.iter().any(|notice| notice.kind == NoticeKind::Digest) {
            // Who sends the digest stops it; the list's own address is the sender's.
            let subject: String = url::form_urlencoded::byte_serialize(format!("unsubscribe {}", self.name).as_bytes()).collect();
            let target = format!("<mailto:{}?subject={}>", self.from.email, subject.replace('+', "%20"));
            builder = builder.raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("List-Unsubscribe"), target));
        }
        let message = match mail.html {
            Some(html) if mail.pictures.is_empty() => builder.multipart(MultiPart::alternative_plain_html(mail.text, html)),
            Some(html) => {
                let png: ContentType = "image/png".parse().map_err(|_| "PNG has no content type".to_owned())?;
                let mut related = MultiPart::related().singlepart(SinglePart::html(html));
                for (at, picture) in (1..).zip(mail.pictures) {
                    let cid = format!("schedule-{at}");
                    related = related.singlepart(Attachment::new_inline(cid).body(picture, png.clone()));
                }
                builder.multipart(MultiPart::alternative().singlepart(SinglePart::plain(mail.text)).multipart(related))
            }
            None => builder.singlepart(SinglePart::plain(mail.text)),
        };
        message.map(|message| message.formatted()).map_err(|error| format!("cannot build the mail: {error}"))
    }

    /// From the connection to the answer after the final dot.
    async fn session(&self, deadline: Instant, credentials: Option<Login>, message: &[u8], tries: u32) -> Result<Answer, Failed> {
        let Open { mut connection, login, mails } = self.open(deadline, credentials).await?;
        let mut accepted: Vec<&Address> = Vec::new();
        let mut refused: Vec<(&Address, Failed)> = Vec::new();
        for Mailbox { email, .. } in &self.to {
            let asked = step(deadline, "a recipient", connection.command(Rcpt::new(email.clone(), Vec::new()))).await;
            match asked {
                Ok(_) => accepted.push(email),
                // Only a reply is about this recipient; anything else is the end of the connection.
                Err(failed) if failed.code.is_some() => refused.push((email, failed)),
                Err(failed) => return Err(failed),
            }
        }
        let is_postponed = refused.iter().any(|(_, failed)| failed.outcome != Outcome::Refused);
        if accepted.is_empty() || (is_postponed && tries < PATIENT_TRIES) {
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
        if self.to.len() > 1 {
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

/// What a message belongs to: the event that it is about, else the alert.
fn thread_of(notice: &Notice) -> String {
    match &notice.body.event {
        // Names of the source are no message ids: their digest is.
        Some(event) => format!("ev_{}", digest(event)),
        None => notice.alert.as_str().to_owned(),
    }
}

/// 80 bits of SHA-256, in hexadecimal.
fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

/// `<id@domain>`, whatever the id holds.
fn message_id(id: &str, domain: &str) -> String {
    format!("<{}@{domain}>", header_atom(id))
}

/// The characters of a text that may stand in a message id.
fn header_atom(text: &str) -> String {
    let atom: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(100).collect();
    if atom.is_empty() { "unnamed".into() } else { atom }
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
