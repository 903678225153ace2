//! Mattermost: incoming webhooks with a message attachment.
//!
//! Limits (*Incoming webhooks*, *Message attachments*): 16,383 characters per post. Markdown is escaped by backslashes; `@` is replaced
//! by a similar character that does not mention anyone. A successful response is `ok`.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, color, lookalikes, marked};
use super::{FormatSpec, WebhookFormat};
use crate::card::{Brief, ShareStyle};

const ROOM: Room = Room { title_chars: 300, text: 14_000, size: chars };

const MARKS: Marks = Marks {
    escape,
    strong: |text| format!("**{text}**"),
    link: Some(|url, words| format!("[{words}](<{}>)", url.replace('>', "%3E"))),
};

pub(super) const SPEC: FormatSpec = FormatSpec {
    pace: Some((10, Duration::from_secs(1))),
    ..FormatSpec::new("mattermost", |_| Ok(WebhookFormat::of_body(body)))
};

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { text, .. } = marked(brief, &MARKS, &ROOM);
    // Mattermost shows the escapes of a title that is a link, so characters are replaced instead.
    let title = lookalikes(&brief.title(ShareStyle::Long, ROOM.title_chars));
    let attachment = json!({
        "fallback": title,
        "color": color(brief.severity()),
        "title": title,
        "title_link": brief.page_of_all().unwrap_or_default(),
        "text": text,
    });
    json!({"username": "Cliffwatch", "attachments": [attachment]})
}

/// Also escapes `$`, since some servers render text between two of them as a formula.
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
