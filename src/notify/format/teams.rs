//! Microsoft Teams: an adaptive card for a workflow with a webhook trigger, or for the older connectors.
//!
//! Limit: 28 KB per message; omitted lines are counted. Text from outside goes into text runs, which do not interpret markdown. The
//! older connectors return 200 even if Teams rejected the message, with the status of Teams in the body.

use std::time::Duration;

use serde_json::{Value, json};

use super::{FormatSpec, ServiceResponse, WebhookFormat};
use crate::card::{Brief, Card, Severity, ShareStyle, list_lines};
use crate::retry::Outcome;

/// The size limit of a body in bytes, below the 28 KB of Teams.
const MAX_BYTES: usize = 26 * 1024;

const MAX_TITLE_CHARS: usize = 300;

const MAX_LINES: usize = 40;
const MAX_SHARES: usize = 8;
const MAX_DESCRIPTION_LINES: usize = 60;

/// 4 requests per second.
pub(super) const SPEC: FormatSpec = FormatSpec {
    pace: Some((4, Duration::from_millis(250))),
    outcome,
    ..FormatSpec::new("teams", |_| Ok(WebhookFormat::of_body(body)))
};

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    if by_status != Outcome::Accepted {
        return (by_status, None);
    }
    let lower = response.body.to_ascii_lowercase();
    let Some(at) = lower.find("http error") else {
        let is_failure = lower.contains("webhook message delivery failed");
        return match is_failure {
            true => (Outcome::LATER, None),
            false if !response.is_complete => response.unconfirmed("Teams"),
            false => (Outcome::Accepted, None),
        };
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
    (outcome, Some("success status of the connector, but Teams rejected the message".to_owned()))
}

fn body(brief: &Brief<'_>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let rows: Vec<Value> = match cards.as_slice() {
        [card] if brief.is_single() => detail(card, &brief.title(ShareStyle::Long, MAX_TITLE_CHARS)),
        cards => list_lines(cards, MAX_BYTES / 2).iter().map(|text| line(vec![run(&format!("• {text}"), false)])).collect(),
    };
    let mut shown = rows.len();
    loop {
        let shown_alerts = if brief.is_single() { cards.len() } else { shown.min(cards.len()) };
        let message = message(brief, rows.get(..shown).unwrap_or(&rows), shown_alerts, &cards);
        let size = serde_json::to_vec(&message).map_or(0, |bytes| bytes.len());
        if size <= MAX_BYTES || shown == 0 {
            return message;
        }
        // Rows have similar lengths, so the number of rows is reduced in proportion to the size.
        shown = (shown * MAX_BYTES / size).min(shown - 1);
    }
}

fn message(brief: &Brief<'_>, rows: &[Value], shown_alerts: usize, cards: &[Card]) -> Value {
    let title = brief.title(ShareStyle::Long, MAX_TITLE_CHARS);
    let color = match brief.severity() {
        Severity::Good => "Good",
        Severity::Info => "Accent",
        Severity::Warning => "Warning",
        Severity::Critical => "Attention",
    };
    let mut body = vec![json!({
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "text": title, "weight": "Bolder", "size": "Medium", "color": color}],
    })];
    body.extend(brief.note().map(|note| line(vec![run(&note, true)])));
    body.extend(rows.iter().cloned());
    body.extend(brief.rest(shown_alerts).map(|rest| line(vec![subtle(&rest)])));
    let links = brief.links(cards);
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

fn detail(card: &Card, title: &str) -> Vec<Value> {
    let words = card.words_below(title);
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
