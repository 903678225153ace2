//! Validates the config of an email receiver.

use lettre::message::Mailbox;

use super::{EmailReceiver, MAX_RETRIED_ATTEMPTS, pool::ConnectionPool, server::MailServer, session::FINAL_REPLY_TIMEOUT};
use crate::{KeyProblem, format::Credential, progress::AcceptedParts, text};
use model::{config, text::error_chain};

const MAX_RECIPIENTS: usize = 50;

impl EmailReceiver {
    /// Validates a receiver's config. Pushes all problems to `problems`, and returns `None` if there were any.
    pub(crate) fn build(
        receiver: &config::ReceiverSettings,
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
        problems: &mut Vec<KeyProblem>,
    ) -> Option<Self> {
        let before = problems.len();
        let server = server_of(receiver, problems);
        let password = password_of(receiver, problems);
        let from = sender_of(receiver, problems);
        let to = recipients_of(receiver, problems);
        if problems.len() > before {
            return None;
        }
        Some(Self {
            name: receiver.name.clone(),
            server: server?,
            username: receiver.username.clone(),
            password,
            from: from?,
            to,
            timeout: delivery.timeout.0,
            reply_timeout: FINAL_REPLY_TIMEOUT,
            retried_attempts: u32::try_from(delivery.retry.len().saturating_sub(1)).unwrap_or(u32::MAX).min(MAX_RETRIED_ATTEMPTS),
            external_url: external_url.map(str::to_owned),
            pool: ConnectionPool::default(),
            progress: AcceptedParts::default(),
        })
    }
}

fn server_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> Option<MailServer> {
    let certificates = crate::read_certificates(receiver).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    let Some(text) = receiver.smtp.as_deref() else {
        let message = "an email receiver needs a mail server: add `smtp = \"smtp://mail.example.com:587\"`";
        problems.push(KeyProblem::wrong("smtp", message));
        return None;
    };
    let server = MailServer::parse(text, certificates.as_deref(), receiver.tls_ca_file.as_deref());
    server.map_err(|problem| problems.push(problem)).ok()
}

fn password_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> Credential {
    let password = Credential { key: "password", given_as: "password_file", secret: receiver.login() };
    if receiver.username.is_some() {
        match password.secret.resolve() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let credential = format!("{}-password", receiver.name);
                let message =
                    format!("a `username` needs a password: set `password_file`, `password`, or the credential `{credential}`");
                problems.push(KeyProblem::absent("password", message));
            }
            Err(error) => problems.push(KeyProblem::unreadable("password_file", error_chain(&error))),
        }
    } else if receiver.password.is_some() || receiver.password_file.is_some() {
        problems.push(KeyProblem::wrong("username", "a password needs a `username`"));
    }
    password
}

fn sender_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> Option<Mailbox> {
    let from = match receiver.from.as_deref() {
        None => Err("an email receiver needs a sender: add `from = \"Cliffwatch <alerts@example.com>\"`".to_owned()),
        Some(text) => parse_mailbox(text),
    };
    from.map_err(|message| problems.push(KeyProblem::wrong("from", message))).ok()
}

fn recipients_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> Vec<Mailbox> {
    let mut wrong = |message: String| problems.push(KeyProblem::wrong("to", message));
    let to = receiver.to.iter().filter_map(|text| parse_mailbox(text).map_err(&mut wrong).ok()).collect();
    if receiver.to.is_empty() {
        wrong("an email receiver needs at least one recipient: add `to = [\"desk@example.com\"]`".to_owned());
    } else if receiver.to.len() > MAX_RECIPIENTS {
        wrong(format!("{} recipients exceed the limit of {MAX_RECIPIENTS}: use a mailing list", receiver.to.len()));
    }
    to
}

/// Parses `Name <user@example.com>` or `user@example.com`.
fn parse_mailbox(text: &str) -> Result<Mailbox, String> {
    // The library panics on a control character in a name when it writes the header.
    if text.chars().any(char::is_control) {
        return Err("a mail address must not contain line breaks or other control characters".into());
    }
    let shown = text::line(text, 100);
    let mailbox: Mailbox = text.trim().parse().map_err(|_| {
        format!("{shown:?} is not a valid mail address; example: \"Desk <desk@example.com>\" or \"desk@example.com\"")
    })?;
    let address: &str = mailbox.email.as_ref();
    if !address.is_ascii() {
        return Err(format!(
            "{shown:?} has non-ASCII letters, which not every mail server accepts: use an ASCII address (the xn-- form of the domain)"
        ));
    }
    Ok(mailbox)
}
