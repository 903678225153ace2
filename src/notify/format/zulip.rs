//! Zulip: a message in a channel, by a bot.
//!
//! Limits (*REST API: send a message*): a message of 10,000 characters, a topic of 60. Its markdown has no escapes, so marks give way to
//! characters that look alike. What it answers beside 200 says `result` and, for 429, `retry-after`.

use serde_json::Value;

use super::marked::{MarkedText, Marks, Room, chars, lookalikes, marked};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest, put_off};
use crate::card::Brief;
use crate::retry::Outcome;
use model::config;

const BOT_EMAIL: FormatKey =
    FormatKey { example: "cliffwatch-bot@example.zulipchat.com", ..FormatKey::plain("bot_email", FormatKeyValue::Text) };
const API_KEY: FormatKey = FormatKey::secret("api_key", "api_key_file", FormatKeyValue::OwnSecret);
const CHANNEL: FormatKey = FormatKey { example: "unlocks", ..FormatKey::plain("channel", FormatKeyValue::Text) };
/// The topic, by the name that the API had for it first.
const SUBJECT: FormatKey = FormatKey::plain("subject", FormatKeyValue::Text);

pub(super) const KEYS: &[FormatKey] = &[BOT_EMAIL.needed(), API_KEY.needed(), CHANNEL.needed(), SUBJECT];

const MAX_TOPIC_CHARS: usize = 60;

const DEFAULT_TOPIC: &str = "Cliffwatch";

const ROOM: Room = Room { title_chars: 300, text: 9_000, size: chars };

const MARKS: Marks = Marks {
    escape: lookalikes,
    strong: |text| format!("**{text}**"),
    link: Some(|url, words| format!("[{words}]({})", url.replace(')', "%29"))),
};

/// A bot and where it writes.
#[derive(Debug)]
pub struct Zulip {
    bot_email: String,
    api_key: Credential,
    channel: String,
    topic: String,
}

impl FormatSettings for Zulip {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        let text = |key: FormatKey| receiver.format_text(key.name).map(str::to_owned);
        let topic = text(SUBJECT).unwrap_or_else(|| DEFAULT_TOPIC.to_owned());
        if topic.is_empty() || chars(&topic) > MAX_TOPIC_CHARS {
            return Err(KeyProblem::wrong(SUBJECT.name, format!("a topic has 1 to {MAX_TOPIC_CHARS} characters")));
        }
        let bot_email = text(BOT_EMAIL).unwrap_or_default();
        Ok(Self { bot_email, api_key: API_KEY.credential(receiver), channel: text(CHANNEL).unwrap_or_default(), topic })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.api_key.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let MarkedText { title, text } = marked(brief, &MARKS, &ROOM);
        let content = format!("**{title}**\n{text}");
        let form =
            [("type", "stream"), ("to", self.channel.as_str()), ("topic", self.topic.as_str()), ("content", content.as_str())];
        let authorization = Some(WebhookRequest::basic(&self.bot_email, given.credentials.need(&self.api_key)?));
        let path = given.path_unless_given(&["api", "v1", "messages"]);
        Ok(vec![WebhookRequest { path, authorization, ..WebhookRequest::form(&form) }])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        let wait = parsed.get("retry-after").and_then(Value::as_f64);
        match (put_off(by_status, wait), parsed.get("result").and_then(Value::as_str)) {
            (Outcome::Accepted, Some("success")) => (Outcome::Accepted, None),
            (Outcome::Accepted, _) => {
                (Outcome::Refused, Some("this is no answer of Zulip that says yes: check `url`".to_owned()))
            }
            (other, _) => (other, None),
        }
    }
}
