//! Mattermost: incoming webhooks with a message attachment.
//!
//! Limits (*Incoming webhooks*, *Message attachments*): a post of 16,383 characters. Its markdown takes a backslash before any mark; an
//! at sign gives way to one that mentions nobody. Its answer is `ok`.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, color, lookalikes, marked};
use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle};
use model::config;

const ROOM: Room = Room { title_chars: 300, text: 14_000, size: chars };

const MARKS: Marks = Marks {
    escape,
    strong: |text| format!("**{text}**"),
    link: Some(|url, words| format!("[{words}](<{}>)", url.replace('>', "%3E"))),
};

/// It has no settings of its own.
#[derive(Debug)]
pub struct Mattermost;

impl FormatSettings for Mattermost {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        Ok(vec![WebhookRequest::json(&body(brief))?])
    }
}

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { text, .. } = marked(brief, &MARKS, &ROOM);
    // A title with a link is shown as it stands, escapes and all; one without may hold links.
    let title = lookalikes(&brief.title(ShareStyle::Long, ROOM.title_chars));
    let attachment = json!({
        "fallback": title,
        "color": color(brief.tone()),
        "title": title,
        "title_link": brief.page_of_all().unwrap_or_default(),
        "text": text,
    });
    json!({"username": "Cliffwatch", "attachments": [attachment]})
}

/// The dollar sign too: between two of them a server may read a formula.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '>' | '[' | ']' | '#' | '$' | '!') {
            escaped.push('\\');
        }
        escaped.push(if c == '@' { '＠' } else { c });
    }
    escaped
}
