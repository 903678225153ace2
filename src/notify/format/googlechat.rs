//! Google Chat: incoming webhooks with a card.
//!
//! Limits (*Create messages*, *Format messages*, *Usage limits*): a message of 32,000 bytes, a request a second to a space. A
//! paragraph of a card takes a little HTML, in which `&`, `<` and `>` are escaped; cards mention nobody.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, html, marked};
use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle};
use model::config;

const MAX_TITLE_CHARS: usize = 300;

/// Bytes: lines come with `<br>` between them, and JSON escapes what HTML left.
const ROOM: Room = Room { title_chars: MAX_TITLE_CHARS, text: 14_000, size: str::len };

const MARKS: Marks = Marks { escape, strong: |text| format!("<b>{text}</b>"), link: None };

/// Quotation marks stand for themselves where no tag has attributes.
fn escape(text: &str) -> String {
    html(text).replace("&quot;", "\"")
}

/// Most buttons below a card.
const MAX_BUTTONS: usize = 3;

/// It has no settings of its own.
#[derive(Debug)]
pub struct GoogleChat;

impl FormatSettings for GoogleChat {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        Ok(vec![WebhookRequest::json(&body(brief))?])
    }
}

fn body(brief: &Brief<'_>) -> Value {
    let MarkedText { text, .. } = marked(brief, &MARKS, &ROOM);
    let title = brief.title(ShareStyle::Long, MAX_TITLE_CHARS);
    let button = |words: &str, url: &str| json!({"text": words, "onClick": {"openLink": {"url": url}}});
    let cards = brief.cards(1);
    let buttons: Vec<Value> = match cards.as_slice() {
        [card] if brief.is_single() => card.links().iter().take(MAX_BUTTONS).map(|(words, url)| button(words, url)).collect(),
        _ => brief.page_of_all().iter().map(|url| button("All alerts", url)).collect(),
    };
    let mut widgets = vec![json!({"textParagraph": {"text": text.replace('\n', "<br>")}})];
    if !buttons.is_empty() {
        widgets.push(json!({"buttonList": {"buttons": buttons}}));
    }
    // What a phone shows of it; no markup is read there.
    json!({
        "fallbackText": title,
        "cardsV2": [{"cardId": "cliffwatch", "card": {"header": {"title": title}, "sections": [{"widgets": widgets}]}}],
    })
}
