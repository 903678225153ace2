//! Apprise: a gateway (`/notify/KEY`) to many other services.
//!
//! Limits (*Apprise API: notify*): each service has its own limits, and the gateway cuts the text to them; the text is kept short all
//! the same. It is sent as plain text. Status 424 means that a service rejected the message, 204 that no service is configured under
//! the key.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, ServiceResponse, WebhookFormat, WebhookRequest};
use crate::card::{Brief, Severity};
use crate::retry::Outcome;
use model::config;

/// The Apprise tags that select services under the key.
const TAG: FormatKey = FormatKey::plain("tag", FormatKeyValue::Text);

/// The token is for a proxy in front of the gateway.
const KEYS: &[FormatKey] = &[TAG, FormatKey::BEARER];

/// The status of the gateway for a key without services.
const NO_SERVICE: u16 = 204;

const ROOM: Room = Room { title_chars: 250, text: 4_000, size: chars };

pub(super) const SPEC: FormatSpec = FormatSpec { keys: KEYS, outcome, ..FormatSpec::new("apprise", read) };

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let tag = receiver.format_text(TAG.name).map(str::to_owned);
    Ok(WebhookFormat::new(move |brief, _| {
        let mut body = body(brief);
        if let Some(tag) = &tag {
            body["tag"] = tag.as_str().into();
        }
        Ok(vec![WebhookRequest::json(&body)?])
    }))
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    match by_status {
        Outcome::Accepted if response.status == NO_SERVICE => {
            (Outcome::Refused, Some("not sent: the gateway has no service under this key".to_owned()))
        }
        Outcome::Accepted if !response.is_complete => response.unconfirmed("Apprise"),
        other => (other, None),
    }
}

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN, &ROOM);
    let kind = match brief.severity() {
        Severity::Critical => "failure",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::Good => "success",
    };
    json!({"title": title, "body": text, "type": kind, "format": "text"})
}
