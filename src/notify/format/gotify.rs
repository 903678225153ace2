//! Gotify: a message to an application.
//!
//! Limits (*Push messages*, *Message extras*): none are documented; the text is kept to what a phone shows. Priorities run from 0 to
//! 10, and from 4 on a phone makes itself heard. It shows plain text.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{FormatKey, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, Tone};
use model::config;

/// The application's token.
pub(super) const KEYS: &[FormatKey] = &[FormatKey::BEARER.needed()];

const ROOM: Room = Room { title_chars: 250, text: 4_000, size: chars };

/// It has no settings of its own.
#[derive(Debug)]
pub struct Gotify;

impl FormatSettings for Gotify {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let path = given.path_unless_given(&["message"]);
        Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body(brief))? }])
    }
}

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN, &ROOM);
    let priority = match brief.tone() {
        Tone::Critical => 8,
        Tone::Warning => 5,
        Tone::Info => 4,
        Tone::Good => 2,
    };
    let mut extras = json!({"client::display": {"contentType": "text/plain"}});
    if let (Some(url), Some(extras)) = (brief.page_of_all(), extras.as_object_mut()) {
        extras.insert("client::notification".to_owned(), json!({"click": {"url": url}}));
    }
    json!({"title": title, "message": text, "priority": priority, "extras": extras})
}
