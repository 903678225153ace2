//! Rocket.Chat: incoming webhooks with an attachment.
//!
//! Limits (*Incoming WebHook scripting*, *Message settings: maximum allowed characters*): 5,000 characters unless the server allows more.
//! Its markdown has escapes for some marks only, so all of them give way to characters that look alike. The answer's `success` decides.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, color, lookalikes, marked};
use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::Brief;
use crate::retry::Outcome;
use model::config;

const ROOM: Room = Room { title_chars: 300, text: 4_400, size: chars };

const MARKS: Marks = Marks {
    escape: lookalikes,
    strong: |text| format!("*{text}*"),
    link: Some(|url, words| format!("[{words}]({})", url.replace(')', "%29"))),
};

/// It has no settings of its own.
#[derive(Debug)]
pub struct RocketChat;

impl FormatSettings for RocketChat {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let MarkedText { title, text } = marked(brief, &MARKS, &ROOM);
        let attachment = json!({
            "title": title,
            "title_link": brief.page_of_all().unwrap_or_default(),
            "text": text,
            "color": color(brief.tone()),
        });
        Ok(vec![WebhookRequest::json(&json!({"alias": "Cliffwatch", "attachments": [attachment]}))?])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        match (by_status, parsed.get("success").and_then(Value::as_bool)) {
            (Outcome::Accepted, Some(false)) => (Outcome::Refused, Some("the status says yes, the answer says no".to_owned())),
            (other, _) => (other, None),
        }
    }
}
