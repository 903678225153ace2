//! Pushover: a message to a phone.
//!
//! Limits (*Message API*): 1,024 characters per message, 250 per title, 512 per URL; plain text. Status 429 means that the monthly
//! quota of the application is exhausted.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{
    FormatInput, FormatKey, FormatKeyValue, FormatSpec, ServiceResponse, WebhookFormat, WebhookRequest, WrittenRequests,
};
use crate::card::{Brief, Severity};
use crate::retry::Outcome;

const TOKEN: FormatKey = FormatKey::secret("token", "token_file", FormatKeyValue::OwnSecret);
/// The key of a user or group.
const USER_KEY: FormatKey = FormatKey::secret("user_key", "user_key_file", FormatKeyValue::OwnSecret);

const ROOM: Room = Room { title_chars: 250, text: 1_000, size: chars };

const MAX_URL_CHARS: usize = 512;

/// 2 requests at once.
pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://api.pushover.net"),
    keys: &[TOKEN.needed(), USER_KEY.needed()],
    pace: Some((2, Duration::from_millis(500))),
    outcome,
    ..FormatSpec::new("pushover", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    let path = input.default_path(&["1", "messages.json"]);
    let body = body(brief, input.secret(TOKEN)?, input.secret(USER_KEY)?);
    Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body)? }])
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    match (by_status, response.json().get("status").and_then(Value::as_i64)) {
        (Outcome::Accepted, Some(1)) => (Outcome::Accepted, None),
        (Outcome::Accepted, _) => response.unconfirmed("Pushover"),
        (other, _) => (other, None),
    }
}

fn body(brief: &Brief<'_>, token: &str, user: &str) -> Value {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN_WITHOUT_LINKS, &ROOM);
    // Priority 1 ignores quiet hours. Priority 2, which repeats until acknowledged, is left to pagers.
    let priority = match brief.severity() {
        Severity::Critical => 1,
        Severity::Warning | Severity::Info => 0,
        Severity::Good => -1,
    };
    let mut body = json!({"token": token, "user": user, "title": title, "message": text, "priority": priority});
    if let Some(url) = brief.page_of_all().filter(|url| chars(url) <= MAX_URL_CHARS) {
        body["url"] = url.into();
        body["url_title"] = brief.page_label().into();
    }
    body
}
