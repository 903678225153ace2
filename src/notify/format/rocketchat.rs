//! Rocket.Chat: incoming webhooks with an attachment.
//!
//! Limits (*Incoming WebHook scripting*, *Message settings: maximum allowed characters*): 5,000 characters unless the server allows
//! more. Its markdown can escape only some marks, so all of them are replaced by similar characters. The field `success` of the
//! response decides.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, color, lookalikes, marked};
use super::{FormatSpec, ServiceResponse, WebhookFormat};
use crate::card::Brief;
use crate::retry::Outcome;

const ROOM: Room = Room { title_chars: 300, text: 4_400, size: chars };

const MARKS: Marks = Marks {
    escape: lookalikes,
    strong: |text| format!("*{text}*"),
    link: Some(|url, words| format!("[{words}]({})", url.replace(')', "%29"))),
};

pub(super) const SPEC: FormatSpec = FormatSpec {
    pace: Some((10, Duration::from_secs(1))),
    outcome,
    ..FormatSpec::new("rocketchat", |_| Ok(WebhookFormat::of_body(body)))
};

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { title, text } = marked(brief, &MARKS, &ROOM);
    let attachment = json!({
        "title": title,
        "title_link": brief.page_of_all().unwrap_or_default(),
        "text": text,
        "color": color(brief.severity()),
    });
    json!({"alias": "Cliffwatch", "attachments": [attachment]})
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    match (by_status, response.json().get("success").and_then(Value::as_bool)) {
        (Outcome::Accepted, Some(false)) => {
            (Outcome::Refused, Some("success status, but the response reports a failure".to_owned()))
        }
        (Outcome::Accepted, None) if !response.is_complete => response.unconfirmed("Rocket.Chat"),
        (other, _) => (other, None),
    }
}
