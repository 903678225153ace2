//! Microsoft Teams: an adaptive card for a workflow that waits for webhook requests (and for the older connectors).
//!
//! Limit: 28 KB for the whole message; lines that find no room are counted. All text from outside stands in text runs, which read no
//! markdown. The older connectors answer 200 also where Teams refused, and name its status in the text.

use serde_json::{Value, json};

use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, Card, ShareStyle, Tone};
use crate::retry::Outcome;
use model::config;

/// Largest body, bytes: below the 28 KB of Teams.
const MAX_BYTES: usize = 26 * 1024;

const MAX_TITLE_CHARS: usize = 300;

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 8;

/// Most lines of a description.
const MAX_DESCRIPTION_LINES: usize = 60;

/// It has no settings of its own.
#[derive(Debug)]
pub struct Teams;

impl FormatSettings for Teams {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        Ok(vec![WebhookRequest::json(&body(brief))?])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        if by_status != Outcome::Accepted {
            return (by_status, None);
        }
        let lower = body.to_ascii_lowercase();
        let Some(at) = lower.find("http error") else {
            let is_failure = lower.contains("webhook message delivery failed");
            return (if is_failure { Outcome::LATER } else { Outcome::Accepted }, None);
        };
        let digits: String = lower
            .chars()
            .skip(lower.get(..at).unwrap_or_default().chars().count() + "http error".len())
            .skip_while(|c| !c.is_ascii_digit())
            .take(3)
            .collect();
        let outcome = match digits.parse().map(|status: u16| Outcome::of_http_status(status, None)) {
            Ok(Outcome::Accepted) | Err(_) => Outcome::LATER,
            Ok(other) => other,
        };
        (outcome, Some("the connector says yes, Teams said no".to_owned()))
    }
}

/// The body that tells `brief`.
fn body(brief: &Brief<'_>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let rows: Vec<Value> = match cards.as_slice() {
        [card] if brief.is_single() => detail(card),
        cards => cards.iter().map(|card| line(vec![run(&format!("• {}", card.list_line()), false)])).collect(),
    };
    let mut shown = rows.len();
    loop {
        let shown_alerts = if brief.is_single() { cards.len() } else { shown.min(cards.len()) };
        let message = message(brief, rows.get(..shown).unwrap_or(&rows), shown_alerts, cards.first());
        let size = serde_json::to_vec(&message).map_or(0, |bytes| bytes.len());
        if size <= MAX_BYTES || shown == 0 {
            return message;
        }
        // The rows are alike in length: what is too much by a half loses a half.
        shown = (shown * MAX_BYTES / size).min(shown - 1);
    }
}

fn message(brief: &Brief<'_>, rows: &[Value], shown_alerts: usize, first: Option<&Card>) -> Value {
    let title = brief.title(ShareStyle::Long, MAX_TITLE_CHARS);
    let color = match brief.tone() {
        Tone::Good => "Good",
        Tone::Info => "Accent",
        Tone::Warning => "Warning",
        Tone::Critical => "Attention",
    };
    let mut body = vec![json!({
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "text": title, "weight": "Bolder", "size": "Medium", "color": color}],
    })];
    let note = brief.note();
    if !note.is_empty() {
        body.push(line(vec![run(&note, true)]));
    }
    body.extend(rows.iter().cloned());
    let rest = brief.rest(shown_alerts);
    if !rest.is_empty() {
        body.push(line(vec![subtle(&rest)]));
    }
    let links: Vec<(&str, String)> = match first {
        Some(card) if brief.is_single() => card.links().into_iter().map(|(words, url)| (words, url.to_owned())).collect(),
        _ => brief.page_of_all().map(|url| ("All alerts", url)).into_iter().collect(),
    };
    let actions: Vec<Value> =
        links.iter().map(|(title, url)| json!({"type": "Action.OpenUrl", "title": title, "url": url})).collect();
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "fallbackText": title,
                "msteams": {"width": "Full"},
                "body": body,
                "actions": actions,
            },
        }],
    })
}

fn detail(card: &Card) -> Vec<Value> {
    let words = card.words();
    let words = words.iter().filter(|text| !text.is_empty()).take(MAX_DESCRIPTION_LINES);
    let mut rows: Vec<Value> = words.map(|text| line(vec![run(text, false)])).collect();
    rows.extend(card.rows(MAX_SHARES).iter().map(|(name, value)| line(vec![run(&format!("{name}: "), false), run(value, true)])));
    rows.push(line(vec![subtle(&card.footer())]));
    rows
}

fn line(inlines: Vec<Value>) -> Value {
    json!({"type": "RichTextBlock", "spacing": "Small", "inlines": inlines})
}

fn run(text: &str, is_strong: bool) -> Value {
    json!({"type": "TextRun", "text": text, "weight": if is_strong { "Bolder" } else { "Default" }})
}

fn subtle(text: &str) -> Value {
    json!({"type": "TextRun", "text": text, "isSubtle": true, "size": "Small"})
}
