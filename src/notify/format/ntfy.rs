//! ntfy: a message published as JSON, as plain text.
//!
//! Limits: 4,096 bytes per message (a longer one becomes an attachment), three buttons.

use std::time::Duration;

use serde_json::{Value, json};

use super::fit::{cut_bytes, fit, fit_counted};
use super::{FormatInput, FormatKey, FormatKeyValue, FormatSpec, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::card::{Brief, Severity, ShareStyle, list_lines};

/// The topic is secret: anyone who knows it can read and write, unless it is protected.
const TOPIC: FormatKey = FormatKey::secret("topic", "topic_file", FormatKeyValue::OwnSecret);

/// The token is for protected topics.
const KEYS: &[FormatKey] = &[TOPIC.needed(), FormatKey::BEARER];

const MAX_TITLE_BYTES: usize = 250;
const MAX_TEXT_BYTES: usize = 3_700;

const MAX_LINES: usize = 40;
const MAX_ACTIONS: usize = 3;
const MAX_SHARES: usize = 5;

/// 60 requests at once, then one every 5 s. Applies to ntfy.sh and to own servers.
pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://ntfy.sh"),
    keys: KEYS,
    pace: Some((60, Duration::from_secs(5))),
    ..FormatSpec::new("ntfy", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    Ok(vec![WebhookRequest::json(&body(brief, input.secret(TOPIC)?))?])
}

fn body(brief: &Brief<'_>, topic: &str) -> Value {
    let cards = brief.cards(MAX_LINES);
    let title = brief.title(ShareStyle::Long, MAX_TITLE_BYTES);
    let mut lines: Vec<String> = brief.note().into_iter().collect();
    let above = lines.len();
    let mut shown = cards.len();
    let mut actions = Vec::new();
    let text = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.lines_below(cut_bytes(&title, MAX_TITLE_BYTES), MAX_SHARES));
            let button = |(words, url): &(&str, &str)| json!({"action": "view", "label": words, "url": url});
            actions = card.links().iter().take(MAX_ACTIONS).map(button).collect();
            fit_counted(&lines, MAX_TEXT_BYTES, str::len)
        }
        cards => {
            lines.extend(list_lines(cards, MAX_TEXT_BYTES).iter().map(|line| format!("• {line}")));
            let (text, count) = fit(&lines, MAX_TEXT_BYTES, str::len);
            shown = count.saturating_sub(above);
            text
        }
    };
    let text = match brief.rest(shown) {
        Some(rest) => format!("{text}\n{rest}"),
        None => text,
    };
    let (priority, tag) = match brief.severity() {
        Severity::Critical => (5, "rotating_light"),
        Severity::Warning => (4, "warning"),
        Severity::Info => (3, "information_source"),
        Severity::Good => (2, "white_check_mark"),
    };
    let mut body = json!({
        "topic": topic,
        "title": cut_bytes(&title, MAX_TITLE_BYTES),
        "message": text,
        "priority": priority,
        "tags": [tag],
    });
    if let Some(url) = brief.page_of_all() {
        body["click"] = url.into();
    }
    if !actions.is_empty() {
        body["actions"] = actions.into();
    }
    body
}
