//! Writes a mail as MIME: headers, text and HTML parts, pictures.

use std::time::SystemTime;

use lettre::Message;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};

use crate::{card::Brief, mail};
use model::Notification;

/// The maximum number of threads that one mail belongs to. Some servers cut longer headers.
const MAX_THREADS: usize = 10;

pub(super) struct MailAddresses<'a> {
    /// The name of the receiver in the config.
    pub(super) receiver: &'a str,
    pub(super) from: &'a Mailbox,
    pub(super) to: &'a [&'a Mailbox],
    /// The unsubscribe link of a digest. If set, the mail has exactly one recipient.
    pub(super) unsubscribe: Option<&'a str>,
}

/// Writes a delivery as a MIME message: text, and HTML with inline charts if there is any, with headers for threads. A digest also
/// gets the headers for unsubscribing.
///
/// # Errors
///
/// Fails with a description if the delivery has no notifications or a header is not valid.
pub(super) fn write(addresses: &MailAddresses<'_>, brief: &Brief<'_>) -> Result<Vec<u8>, String> {
    let MailAddresses { receiver, from, to, unsubscribe } = *addresses;
    let delivery = brief.delivery;
    let mail = mail::compose(brief, unsubscribe).ok_or("the delivery has no notifications")?;
    let domain = format!("cliffwatch.{}", from.email.domain());
    // A personal mail has an id of its own, which is the same on every attempt.
    let id = match (unsubscribe, to.first()) {
        (Some(_), Some(only)) => format!("{}_{}", delivery.webhook_id, digest(only.email.as_ref())),
        _ => delivery.webhook_id.clone(),
    };
    let mut builder = Message::builder()
        .from(from.clone())
        // A mail program would decode an encoded word from the source, and show what was removed from its texts.
        .subject(mail.subject.replace("=?", "= ?"))
        .date(SystemTime::from(brief.now))
        .message_id(Some(message_id(&id, &domain)));
    for to in to {
        builder = builder.to((*to).clone());
    }
    // All mails about an event refer to the same root message, which is never sent, so that mail programs show one thread.
    let mut roots: Vec<String> = Vec::new();
    for notice in &delivery.notifications {
        let root = message_id(&thread_of(notice), &domain);
        if roots.len() < MAX_THREADS && !roots.contains(&root) {
            roots.push(root);
        }
    }
    if let Some(first) = roots.first() {
        builder = builder.in_reply_to(first.clone()).references(roots.join(" "));
    }
    let mut headers = vec![
        ("Auto-Submitted", "auto-generated".to_owned()),
        ("X-Auto-Response-Suppress", "All".to_owned()),
        ("List-Id", format!("<{}.{domain}>", header_atom(receiver))),
    ];
    if delivery.replay.is_some() {
        headers.push(("Cliffwatch-Replay", "true".to_owned()));
    }
    if delivery.notifications.iter().any(Notification::is_digest) {
        let subject: String = url::form_urlencoded::byte_serialize(format!("unsubscribe {receiver}").as_bytes()).collect();
        let by_mail = format!("<mailto:{}?subject={}>", from.email, subject.replace('+', "%20"));
        match unsubscribe {
            Some(link) => headers.push(("List-Unsubscribe", format!("<{link}>, {by_mail}"))),
            None => headers.push(("List-Unsubscribe", by_mail)),
        }
        // RFC 8058 requires HTTPS. Without it, the link still opens a page with a button.
        if unsubscribe.is_some_and(|link| link.starts_with("https://")) {
            headers.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
    }
    for (name, value) in headers {
        let name = HeaderName::new_from_ascii(name.to_owned()).map_err(|_| "a header name is not ASCII".to_owned())?;
        builder = builder.raw_header(HeaderValue::new(name, value));
    }
    let message = match mail.html {
        Some(html) if mail.pictures.is_empty() => builder.multipart(MultiPart::alternative_plain_html(mail.text, html)),
        Some(html) => {
            let png: ContentType = "image/png".parse().map_err(|_| "image/png is not a valid content type".to_owned())?;
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

/// Returns the thread id of a notification: its event, else its alert.
fn thread_of(notice: &Notification) -> String {
    match &notice.body.event {
        // Event ids contain text of the source, which may not be valid in a message id.
        Some(event) => format!("ev_{}", digest(event)),
        None => notice.alert.as_str().to_owned(),
    }
}

/// Returns the first 80 bits of SHA-256, in hexadecimal.
fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    model::text::hex(digest.as_ref().get(..10).unwrap_or_default())
}

/// Returns `<id@domain>`, without characters that a message id cannot contain.
fn message_id(id: &str, domain: &str) -> String {
    format!("<{}@{domain}>", header_atom(id))
}

fn header_atom(text: &str) -> String {
    let atom: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(100).collect();
    if atom.is_empty() { "unnamed".into() } else { atom }
}
