//! Zulip: a message in a channel, by a bot.
//!
//! Limits (*REST API: send a message*): 10,000 characters per message, 60 per topic. Its markdown has no escapes, so marks are replaced
//! by similar characters. The response has `result` and, with status 429, `retry-after`.

use std::time::Duration;

use serde_json::Value;

use super::marked::{MarkedText, Marks, Room, chars, lookalikes, marked};
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, ServiceResponse, WebhookFormat, WebhookRequest, with_wait};
use crate::retry::Outcome;
use model::config;

const BOT_EMAIL: FormatKey =
    FormatKey { example: "cliffwatch-bot@example.zulipchat.com", ..FormatKey::plain("bot_email", FormatKeyValue::Text) };
const API_KEY: FormatKey = FormatKey::secret("api_key", "api_key_file", FormatKeyValue::OwnSecret);
const CHANNEL: FormatKey = FormatKey { example: "unlocks", ..FormatKey::plain("channel", FormatKeyValue::Text) };
/// The topic. "Subject" is its former name in the API.
const SUBJECT: FormatKey = FormatKey::plain("subject", FormatKeyValue::Text);

const MAX_TOPIC_CHARS: usize = 60;

const DEFAULT_TOPIC: &str = "Cliffwatch";

const ROOM: Room = Room { title_chars: 300, text: 9_000, size: chars };

const MARKS: Marks = Marks {
    escape: lookalikes,
    strong: |text| format!("**{text}**"),
    link: Some(|url, words| format!("[{words}]({})", url.replace(')', "%29"))),
};

pub(super) const SPEC: FormatSpec = FormatSpec {
    keys: &[BOT_EMAIL.needed(), API_KEY.needed(), CHANNEL.needed(), SUBJECT],
    pace: Some((5, Duration::from_secs(1))),
    outcome,
    ..FormatSpec::new("zulip", read)
};

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let text = |key: FormatKey| receiver.format_text(key.name).map(str::to_owned);
    let topic = text(SUBJECT).unwrap_or_else(|| DEFAULT_TOPIC.to_owned());
    if topic.is_empty() || chars(&topic) > MAX_TOPIC_CHARS {
        return Err(KeyProblem::wrong(SUBJECT.name, format!("a topic must have 1 to {MAX_TOPIC_CHARS} characters")));
    }
    let (bot_email, channel) = (text(BOT_EMAIL).unwrap_or_default(), text(CHANNEL).unwrap_or_default());
    Ok(WebhookFormat::new(move |brief, input| {
        let MarkedText { title, text } = marked(brief, &MARKS, &ROOM);
        let content = format!("**{title}**\n{text}");
        let form = [("type", "stream"), ("to", channel.as_str()), ("topic", topic.as_str()), ("content", content.as_str())];
        let authorization = Some(WebhookRequest::basic(&bot_email, input.secret(API_KEY)?));
        let path = input.default_path(&["api", "v1", "messages"]);
        Ok(vec![WebhookRequest { path, authorization, ..WebhookRequest::form(&form) }])
    }))
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    let parsed = response.json();
    let wait = parsed.get("retry-after").and_then(Value::as_f64);
    match (with_wait(by_status, wait), parsed.get("result").and_then(Value::as_str)) {
        (Outcome::Accepted, Some("success")) => (Outcome::Accepted, None),
        (Outcome::Accepted, _) => response.unconfirmed("Zulip"),
        (other, _) => (other, None),
    }
}
