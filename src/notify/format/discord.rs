//! Discord: webhooks with one embed.
//!
//! Limits of an embed, in characters: title 256, description 4,096, 25 fields (name 256, value 1,024), footer 2,048, all together
//! 6,000. The empty `allowed_mentions` prevents mentions in any text. Markdown is escaped by backslashes. With `wait=true`, the
//! response reports whether the message was posted.

use std::time::Duration;

use serde_json::{Value, json};

use super::fit::{fit, fit_counted, utf16};
use super::{FormatInput, FormatSpec, ServiceResponse, WebhookFormat, WebhookRequest, WrittenRequests, with_wait};
use crate::card::{Brief, ShareStyle, color, list_lines};
use crate::retry::Outcome;

const MAX_TITLE: usize = 256;
/// A title of this length always fits: escaping, or counting in UTF-16, at most doubles it.
const MIN_TITLE_CHARS: usize = 100;
const MAX_DESCRIPTION: usize = 3_500;
const MAX_FIELDS: usize = 20;
const MAX_FIELD_NAME: usize = 80;
const MAX_FIELD_VALUE: usize = 500;
/// The size of all fields together. With the description, they stay below the 6,000 of an embed.
const MAX_FIELDS_TEXT: usize = 1_800;
const MAX_FOOTER_CHARS: usize = 400;

const MAX_LINES: usize = 40;
const MAX_SHARES: usize = 8;

/// The error code for a deleted webhook.
const UNKNOWN_WEBHOOK: u64 = 10_015;

/// 30 requests per minute and channel.
pub(super) const SPEC: FormatSpec = FormatSpec {
    pace: Some((5, Duration::from_secs(2))),
    outcome,
    ..FormatSpec::new("discord", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, _: &FormatInput<'_>) -> WrittenRequests {
    Ok(vec![WebhookRequest { query: Some(("wait", "true")), ..WebhookRequest::json(&body(brief))? }])
}

/// A deleted webhook is gone. The response body contains the wait of a rate limit.
fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    let parsed = response.json();
    if by_status == Outcome::Refused && parsed.get("code").and_then(Value::as_u64) == Some(UNKNOWN_WEBHOOK) {
        return (Outcome::Gone, None);
    }
    (with_wait(by_status, parsed.get("retry_after").and_then(Value::as_f64)), None)
}

fn body(brief: &Brief<'_>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let mut lines: Vec<String> = brief.note().iter().map(|note| format!("**{}**", escape(note))).collect();
    let mut fields = Vec::new();
    let mut footer = String::new();
    let mut shown = cards.len();
    let description = match cards.as_slice() {
        [card] if brief.is_single() => {
            let uncut = brief.title(ShareStyle::Long, MAX_TITLE);
            let above = if escape(&uncut) == title(brief) { uncut.as_str() } else { "" };
            lines.extend(card.words_below(above).iter().map(|line| escape(line)));
            // In angle brackets, a closing parenthesis in the URL does not end the link.
            let links = card.links();
            let links: Vec<String> =
                links.iter().map(|(words, url)| format!("[{words}](<{}>)", url.replace('>', "%3E"))).collect();
            lines.extend(Some(links.join(" · ")).filter(|links| !links.is_empty()));
            let mut room = MAX_FIELDS_TEXT;
            for (name, value) in card.rows(MAX_SHARES).iter().take(MAX_FIELDS) {
                let (name, value) = (clip(name, MAX_FIELD_NAME), clip(value, MAX_FIELD_VALUE));
                let needed = utf16(&name) + utf16(&value);
                if needed > room {
                    break;
                }
                room -= needed;
                fields.push(json!({"name": name, "value": value, "inline": true}));
            }
            footer = card.footer();
            fit_counted(&lines, MAX_DESCRIPTION, utf16)
        }
        cards => {
            let above = lines.len();
            lines.extend(list_lines(cards, MAX_DESCRIPTION).iter().map(|line| format!("- {}", escape(line))));
            let (text, count) = fit(&lines, MAX_DESCRIPTION, utf16);
            shown = count.saturating_sub(above);
            text
        }
    };
    if let Some(rest) = brief.rest(shown) {
        footer = if footer.is_empty() { rest } else { format!("{footer} · {rest}") };
    }
    let mut embed = json!({
        "title": title(brief),
        "color": color(brief.severity()),
        "description": description,
        "fields": fields,
        "footer": {"text": footer.chars().take(MAX_FOOTER_CHARS).collect::<String>()},
    });
    if let Some(url) = brief.page_of_all() {
        embed["url"] = url.into();
    }
    json!({"username": "Cliffwatch", "embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// Returns the escaped title, cut to the limit.
fn title(brief: &Brief<'_>) -> String {
    let mut max = MAX_TITLE;
    loop {
        let title = escape(&brief.title(ShareStyle::Long, max));
        let length = utf16(&title);
        if length <= MAX_TITLE || max <= MIN_TITLE_CHARS {
            return title;
        }
        max = max.saturating_sub(length - MAX_TITLE).max(MIN_TITLE_CHARS);
    }
}

/// Returns at most `max` characters, escaped, and never an empty text, which Discord rejects.
fn clip(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max / 2).collect();
    if cut.is_empty() { "–".to_owned() } else { escape(&cut) }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '[' | ']' | '#') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
