//! Discord: webhooks with one embed.
//!
//! Limits: in an embed a title of 256 characters, a description of 4,096, 25 fields (names of 256, values of 1,024), a footer of
//! 2,048, all together 6,000. `allowed_mentions` is empty, so that nobody is mentioned whatever a text holds; markdown is escaped by
//! backslashes. `wait=true` makes it answer what became of the message.

use serde_json::{Value, json};

use super::fit::{fit, fit_counted, utf16};
use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest, put_off};
use crate::card::{Brief, ShareStyle, color};
use crate::retry::Outcome;
use model::config;

const MAX_TITLE: usize = 256;
/// So many find room in any case: of each at most a backslash more, or the two halves of a character.
const MIN_TITLE_CHARS: usize = 100;
const MAX_DESCRIPTION: usize = 3_500;
const MAX_FIELDS: usize = 20;
const MAX_FIELD_NAME: usize = 80;
const MAX_FIELD_VALUE: usize = 300;
/// All fields together: with the description they stay below the 6,000 of an embed.
const MAX_FIELDS_TEXT: usize = 1_800;
const MAX_FOOTER_CHARS: usize = 400;

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 8;

/// Its code for a webhook that was deleted.
const UNKNOWN_WEBHOOK: u64 = 10_015;

/// It has no settings of its own.
#[derive(Debug)]
pub struct Discord;

impl FormatSettings for Discord {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        Ok(vec![WebhookRequest { query: Some(("wait", "true")), ..WebhookRequest::json(&body(brief))? }])
    }

    /// A webhook that was deleted is gone; the wait stands in the body too.
    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        if by_status == Outcome::Refused && parsed.get("code").and_then(Value::as_u64) == Some(UNKNOWN_WEBHOOK) {
            return (Outcome::Gone, None);
        }
        (put_off(by_status, parsed.get("retry_after").and_then(Value::as_f64)), None)
    }
}

/// The body that tells `brief`.
fn body(brief: &Brief<'_>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let mut lines = Vec::new();
    let note = brief.note();
    if !note.is_empty() {
        lines.push(format!("**{}**", escape(&note)));
    }
    let mut fields = Vec::new();
    let mut footer = String::new();
    let mut shown = cards.len();
    let description = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.words().iter().map(|line| escape(line)));
            // Angle brackets end the address, so that no bracket within it does.
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
            lines.extend(cards.iter().map(|card| format!("- {}", escape(&card.list_line()))));
            let (text, count) = fit(&lines, MAX_DESCRIPTION, utf16);
            shown = count.saturating_sub(above);
            text
        }
    };
    let rest = brief.rest(shown);
    if !rest.is_empty() {
        footer = if footer.is_empty() { rest } else { format!("{footer} · {rest}") };
    }
    let mut embed = json!({
        "title": title(brief),
        "color": color(brief.tone()),
        "description": description,
        "fields": fields,
        "footer": {"text": footer.chars().take(MAX_FOOTER_CHARS).collect::<String>()},
    });
    if let (Some(url), Some(embed)) = (brief.page_of_all(), embed.as_object_mut()) {
        embed.insert("url".into(), url.into());
    }
    json!({"username": "Cliffwatch", "embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// The title, escaped, as much of it as there is room for.
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

/// At most `max` characters, escaped; a field must not be empty.
fn clip(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max / 2).collect();
    if cut.is_empty() { "–".to_owned() } else { escape(&cut) }
}

/// Text that markdown shows as it is.
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
