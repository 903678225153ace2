//! Gotify: a message to an application, as plain text.
//!
//! Limits (*Push messages*, *Message extras*): none documented; the text is cut to what a phone shows. Priorities range from 0 to 10;
//! phones make a sound from 4.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{FormatInput, FormatKey, FormatSpec, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::card::{Brief, Severity};

const ROOM: Room = Room { title_chars: 250, text: 4_000, size: chars };

pub(super) const SPEC: FormatSpec =
    FormatSpec { keys: &[FormatKey::BEARER.needed()], ..FormatSpec::new("gotify", |_| Ok(WebhookFormat::new(requests))) };

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    let path = input.default_path(&["message"]);
    Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body(brief))? }])
}

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN, &ROOM);
    let priority = match brief.severity() {
        Severity::Critical => 8,
        Severity::Warning => 5,
        Severity::Info => 4,
        Severity::Good => 2,
    };
    let mut extras = json!({"client::display": {"contentType": "text/plain"}});
    if let Some(url) = brief.page_of_all() {
        extras["client::notification"] = json!({"click": {"url": url}});
    }
    json!({"title": title, "message": text, "priority": priority, "extras": extras})
}
