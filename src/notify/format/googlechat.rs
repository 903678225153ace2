//! Google Chat: incoming webhooks with a card.
//!
//! Limits (*Create messages*, *Format messages*, *Usage limits*): 32,000 bytes per message, one request per second and space. A
//! paragraph of a card allows some HTML, in which `&`, `<`, and `>` are escaped. Text in cards cannot mention users.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, html_text, marked};
use super::{FormatSpec, WebhookFormat};
use crate::card::{Brief, ShareStyle};

const MAX_TITLE_CHARS: usize = 300;

/// The room in bytes, which leaves space for `<br>` between lines and for JSON escapes.
const ROOM: Room = Room { title_chars: MAX_TITLE_CHARS, text: 14_000, size: str::len };

const MARKS: Marks = Marks { escape: html_text, strong: |text| format!("<b>{text}</b>"), link: None };

const MAX_BUTTONS: usize = 3;

/// One request per second and space.
pub(super) const SPEC: FormatSpec =
    FormatSpec { pace: Some((1, Duration::from_secs(1))), ..FormatSpec::new("googlechat", |_| Ok(WebhookFormat::of_body(body))) };

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { text, .. } = marked(brief, &MARKS, &ROOM);
    let title = brief.title(ShareStyle::Long, MAX_TITLE_CHARS);
    let links = brief.links(&brief.cards(1));
    let buttons: Vec<Value> = links
        .iter()
        .take(MAX_BUTTONS)
        .map(|(words, url)| json!({"text": words, "onClick": {"openLink": {"url": url}}}))
        .collect();
    let mut widgets = vec![json!({"textParagraph": {"text": text.replace('\n', "<br>")}})];
    if !buttons.is_empty() {
        widgets.push(json!({"buttonList": {"buttons": buttons}}));
    }
    // `fallbackText` is for notifications on phones, without markup.
    json!({
        "fallbackText": title,
        "cardsV2": [{"cardId": "cliffwatch", "card": {"header": {"title": title}, "sections": [{"widgets": widgets}]}}],
    })
}
