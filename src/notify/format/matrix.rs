//! Matrix: a message in a room, by the client-server API.
//!
//! Limits (*Client-Server API: sending events to a room*, *m.room.message msgtypes*, *User and room mentions*): 65,536 bytes per
//! event. The body is sent as plain text and as HTML, in which `&`, `<`, and `>` are escaped. The empty `m.mentions` prevents
//! mentions in any text. The transaction id is the delivery's webhook id, so that the homeserver drops a repeated request.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, html, marked};
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, ServiceResponse, WebhookFormat, WebhookRequest, with_wait};
use crate::card::Brief;
use crate::retry::Outcome;
use model::config;

const ROOM_ID: FormatKey = FormatKey { example: "!abcdef:example.org", ..FormatKey::plain("room", FormatKeyValue::Text) };

/// The token is the access token of the posting account.
const KEYS: &[FormatKey] = &[ROOM_ID.needed(), FormatKey::BEARER.needed()];

/// The room in bytes of each text. Both texts with JSON escapes stay below the limit of an event.
const ROOM: Room = Room { title_chars: 300, text: 14_000, size: str::len };

const MARKS: Marks = Marks {
    escape: html,
    strong: |text| format!("<strong>{text}</strong>"),
    link: Some(|url, words| format!("<a href=\"{}\">{words}</a>", html(url))),
};

pub(super) const SPEC: FormatSpec =
    FormatSpec { keys: KEYS, pace: Some((5, Duration::from_secs(1))), outcome, ..FormatSpec::new("matrix", read) };

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let room = receiver.format_text(ROOM_ID.name).unwrap_or_default().to_owned();
    if !room.starts_with('!') {
        return Err(KeyProblem::wrong(ROOM_ID.name, "`room` must be a room id, which begins with `!`, not a room alias"));
    }
    Ok(WebhookFormat::new(move |brief, _| {
        let id = &brief.delivery.webhook_id;
        let path = ["_matrix", "client", "v3", "rooms", &room, "send", "m.room.message", id].map(str::to_owned).to_vec();
        Ok(vec![WebhookRequest { is_put: true, path, ..WebhookRequest::json(&body(brief))? }])
    }))
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    (with_wait(by_status, response.json().get("retry_after_ms").and_then(Value::as_f64).map(|wait| wait / 1000.0)), None)
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
