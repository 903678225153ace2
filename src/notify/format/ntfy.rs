//! ntfy: a message published as JSON.
//!
//! Limits: a message of 4,096 bytes (a longer one becomes a file, which nobody reads on a watch), three buttons. It shows plain text.

use serde_json::{Value, json};

use super::fit::{cut_bytes, fit, fit_counted};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle, Tone};
use model::config;

/// Who knows the topic can read and write there, unless it is protected.
const TOPIC: FormatKey = FormatKey::secret("topic", "topic_file", FormatKeyValue::OwnSecret);

/// The topic, and a token where it is protected.
pub(super) const KEYS: &[FormatKey] = &[TOPIC.needed(), FormatKey::BEARER];

const MAX_TITLE_BYTES: usize = 250;
const MAX_TEXT_BYTES: usize = 3_700;

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Most buttons below a message.
const MAX_ACTIONS: usize = 3;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 5;

#[derive(Debug)]
pub struct Ntfy {
    topic: Credential,
}

impl FormatSettings for Ntfy {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self { topic: TOPIC.credential(receiver) })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.topic.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        Ok(vec![WebhookRequest::json(&body(brief, given.credentials.need(&self.topic)?))?])
    }
}

/// The body that tells `brief` to `topic`.
fn body(brief: &Brief<'_>, topic: &str) -> Value {
    let cards = brief.cards(MAX_LINES);
    let note = brief.note();
    let mut lines: Vec<String> = if note.is_empty() { Vec::new() } else { vec![note] };
    let above = lines.len();
    let mut shown = cards.len();
    let click = brief.page_of_all();
    let mut actions = Vec::new();
    let text = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.lines_without_links(MAX_SHARES));
            let button = |(words, url): &(&str, &str)| json!({"action": "view", "label": words, "url": url});
            actions = card.links().iter().take(MAX_ACTIONS).map(button).collect();
            fit_counted(&lines, MAX_TEXT_BYTES, str::len)
        }
        cards => {
            lines.extend(cards.iter().map(|card| format!("• {}", card.list_line())));
            let (text, count) = fit(&lines, MAX_TEXT_BYTES, str::len);
            shown = count.saturating_sub(above);
            text
        }
    };
    let rest = brief.rest(shown);
    let text = if rest.is_empty() { text } else { format!("{text}\n{rest}") };
    let (priority, tag) = match brief.tone() {
        Tone::Critical => (5, "rotating_light"),
        Tone::Warning => (4, "warning"),
        Tone::Info => (3, "information_source"),
        Tone::Good => (2, "white_check_mark"),
    };
    let title = brief.title(ShareStyle::Long, MAX_TITLE_BYTES);
    let mut body = json!({
        "topic": topic,
        "title": cut_bytes(&title, MAX_TITLE_BYTES),
        "message": text,
        "priority": priority,
        "tags": [tag],
    });
    if let Some(body) = body.as_object_mut() {
        body.extend(click.map(|click| ("click".to_owned(), click.into())));
        body.extend(Some(actions).filter(|actions| !actions.is_empty()).map(|actions| ("actions".to_owned(), actions.into())));
    }
    body
}
