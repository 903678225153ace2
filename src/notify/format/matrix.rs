//! Matrix: a message in a room, by the client-server API.
//!
//! Limits (*Client-Server API: sending events to a room*, *m.room.message msgtypes*, *User and room mentions*): an event of 65,536
//! bytes; the body as plain text and as HTML, in which `&`, `<` and `>` are escaped. An empty `m.mentions` says that nobody is
//! mentioned, whatever the text holds. The transaction is the message's own id, so that a homeserver drops a repeat.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, html, marked};
use super::{FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest, put_off};
use crate::card::Brief;
use crate::retry::Outcome;
use model::config;

/// `!abcdef:example.org`.
const ROOM_ID: FormatKey = FormatKey { example: "!abcdef:example.org", ..FormatKey::plain("room", FormatKeyValue::Text) };

/// The room, and the access token of the account that writes there.
pub(super) const KEYS: &[FormatKey] = &[ROOM_ID.needed(), FormatKey::BEARER.needed()];

/// Bytes: both texts, and what JSON adds, stay below what an event may have.
const ROOM: Room = Room { title_chars: 300, text: 14_000, size: str::len };

const MARKS: Marks = Marks {
    escape: html,
    strong: |text| format!("<strong>{text}</strong>"),
    link: Some(|url, words| format!("<a href=\"{}\">{words}</a>", html(url))),
};

/// A room.
#[derive(Debug)]
pub struct Matrix {
    room: String,
}

impl FormatSettings for Matrix {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        let room = receiver.format_text(ROOM_ID.name).unwrap_or_default();
        if !room.starts_with('!') {
            return Err(KeyProblem::wrong(
                ROOM_ID.name,
                "it must be the id of a room, which begins with `!`, not one of its names",
            ));
        }
        Ok(Self { room: room.to_owned() })
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let id = &brief.delivery.webhook_id;
        let path = ["_matrix", "client", "v3", "rooms", &self.room, "send", "m.room.message", id].map(str::to_owned).to_vec();
        Ok(vec![WebhookRequest { is_put: true, path, ..WebhookRequest::json(&body(brief))? }])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        (put_off(by_status, parsed.get("retry_after_ms").and_then(Value::as_f64).map(|wait| wait / 1000.0)), None)
    }
}

fn body(brief: &Brief<'_>) -> Value {
    let plain = marked(brief, &Marks::PLAIN, &ROOM);
    let MarkedText { title, text } = marked(brief, &MARKS, &ROOM);
    json!({
        "msgtype": "m.text",
        "body": format!("{}\n{}", plain.title, plain.text),
        "format": "org.matrix.custom.html",
        "formatted_body": format!("<strong>{title}</strong><br>{}", text.replace('\n', "<br>")),
        "m.mentions": {},
    })
}
