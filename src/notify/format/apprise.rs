//! Apprise: the gateway of that name (`/notify/KEY`), which passes a message on to the many services that it knows.
//!
//! Limits (*Apprise API: notify*): each service behind it has its own, and the gateway cuts to them; the text is kept short all the
//! same. It is sent as plain text. 424 says that some service behind it did not take the message, 204 that no service stands under
//! the key.

use serde_json::{Map, Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, Tone};
use crate::retry::Outcome;
use model::config;

/// Which of the services under the key are meant, as Apprise writes tags.
const TAG: FormatKey = FormatKey::plain("tag", FormatKeyValue::Text);

/// The token is for a proxy before it.
pub(super) const KEYS: &[FormatKey] = &[TAG, FormatKey::BEARER];

const ROOM: Room = Room { title_chars: 250, text: 4_000, size: chars };

/// Which services are meant.
#[derive(Debug)]
pub struct Apprise {
    tag: Option<String>,
}

impl FormatSettings for Apprise {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self { tag: receiver.format_text(TAG.name).map(str::to_owned) })
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let mut body = body(brief);
        body.extend(self.tag.iter().map(|tag| ("tag".to_owned(), Value::from(tag.as_str()))));
        Ok(vec![WebhookRequest::json(&body)?])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        // The status itself is not at hand here: 204 has no body, and every other answer of the gateway has one.
        match by_status {
            Outcome::Accepted if body.trim().is_empty() => {
                (Outcome::Refused, Some("the gateway has nothing configured under this key: nobody was told".to_owned()))
            }
            other => (other, None),
        }
    }
}

fn body(brief: &Brief<'_>) -> Map<String, Value> {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN, &ROOM);
    let kind = match brief.tone() {
        Tone::Critical => "failure",
        Tone::Warning => "warning",
        Tone::Info => "info",
        Tone::Good => "success",
    };
    let fields = [("title", json!(title)), ("body", json!(text)), ("type", json!(kind)), ("format", json!("text"))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
