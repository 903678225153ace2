//! Telegram: `sendMessage` of a bot, in its HTML.
//!
//! Limits: 4,096 characters after the markup is read, counted as UTF-16. `&`, `<` and `>` are escaped. The answer's `ok` decides,
//! not the status; `parameters.retry_after` says how long to wait.

use serde_json::{Value, json};

use super::fit::{fit, fit_counted, utf16};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest, put_off};
use crate::card::{Brief, ShareStyle};
use crate::retry::Outcome;
use model::config;

const TOKEN: FormatKey = FormatKey::secret("token", "token_file", FormatKeyValue::OwnSecret);
const CHAT_ID: FormatKey = FormatKey::plain("chat_id", FormatKeyValue::TextOrNumber);
const THREAD_ID: FormatKey = FormatKey::plain("thread_id", FormatKeyValue::PositiveNumber);

/// The bot's token, its chat, and a topic within the chat.
pub(super) const KEYS: &[FormatKey] = &[
    TOKEN.needed(),
    FormatKey { example: "`chat_id = \"-1001234567890\"`, or `\"@channel\"` for a public channel", ..CHAT_ID.needed() },
    THREAD_ID,
];

const MAX_TITLE_CHARS: usize = 300;

/// Room for lines below the title, UTF-16 units of escaped text: the escapes only make what is counted shorter.
const MAX_TEXT: usize = 3_500;

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 8;

/// A bot and where it writes.
#[derive(Debug)]
pub struct Telegram {
    token: Credential,
    /// `-1001234567890` or `@channel`.
    chat_id: String,
    thread_id: Option<i64>,
}

impl FormatSettings for Telegram {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        let thread_id = receiver.format_text(THREAD_ID.name).map(str::parse).transpose();
        Ok(Self {
            token: TOKEN.credential(receiver),
            chat_id: receiver.format_text(CHAT_ID.name).unwrap_or_default().to_owned(),
            thread_id: thread_id.map_err(|_| KeyProblem::wrong(THREAD_ID.name, "it must be a whole number"))?,
        })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.token.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let path = vec![format!("bot{}", given.credentials.need(&self.token)?), "sendMessage".to_owned()];
        Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body(brief, &self.chat_id, self.thread_id))? }])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        // An answer that is longer than what is read of it is no JSON any more, but begins with what counts.
        let begin: String = body.chars().filter(|c| !c.is_whitespace()).take(16).collect();
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        let parameter = |name: &str| parsed.pointer(&format!("/parameters/{name}"));
        let note = parameter("migrate_to_chat_id")
            .and_then(Value::as_i64)
            .map(|id| format!("the group became a supergroup: write `chat_id = \"{id}\"`"));
        let wait = parameter("retry_after").and_then(Value::as_f64);
        let outcome = match by_status {
            Outcome::Accepted if begin.starts_with("{\"ok\":false") => {
                let code = parsed.get("error_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
                match Outcome::of_http_status(code.unwrap_or(400), None) {
                    // It says no, whatever number it gives.
                    Outcome::Accepted => Outcome::Refused,
                    other => other,
                }
            }
            Outcome::Accepted if !begin.is_empty() && !begin.starts_with("{\"ok\":true") => {
                return (Outcome::Refused, Some("this is no answer of Telegram's Bot API: check `url`".to_owned()));
            }
            other => other,
        };
        (put_off(outcome, wait), note)
    }
}

/// The body that tells `brief` to `chat`.
fn body(brief: &Brief<'_>, chat: &str, thread: Option<i64>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let mut lines = Vec::new();
    let note = brief.note();
    if !note.is_empty() {
        lines.push(format!("<b>{}</b>", escape(&note)));
    }
    let mut shown = cards.len();
    match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.words().iter().map(|line| escape(line)));
            let rows = card.rows(MAX_SHARES);
            if !lines.is_empty() && !rows.is_empty() {
                lines.push(String::new());
            }
            lines.extend(rows.iter().map(|(name, value)| format!("{}: <b>{}</b>", escape(name), escape(value))));
            lines.extend([String::new(), format!("<i>{}</i>", escape(&card.footer()))]);
        }
        cards => lines.extend(cards.iter().map(|card| format!("• {}", escape(&card.list_line())))),
    }
    let above = lines.len() - if brief.is_single() { 0 } else { cards.len() };
    let (mut text, count) = fit(&lines, MAX_TEXT, utf16);
    if brief.is_single() {
        text = fit_counted(&lines, MAX_TEXT, utf16);
    } else {
        shown = count.saturating_sub(above);
    }
    let rest = brief.rest(shown);
    if !rest.is_empty() {
        text = format!("{text}\n\n{}", escape(&rest));
    }
    let links: Vec<String> = match cards.as_slice() {
        [card] if brief.is_single() => card.links().iter().map(|(words, url)| link(url, words)).collect(),
        _ => brief.page_of_all().iter().map(|url| link(url, "All alerts")).collect(),
    };
    if !links.is_empty() {
        text = format!("{text}\n{}", links.join(" · "));
    }
    let title = escape(&brief.title(ShareStyle::Long, MAX_TITLE_CHARS));
    let mut body = json!({
        "chat_id": chat,
        "text": format!("<b>{title}</b>\n{text}"),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    });
    if let (Some(thread), Some(body)) = (thread, body.as_object_mut()) {
        body.insert("message_thread_id".into(), thread.into());
    }
    body
}

fn link(url: &str, words: &str) -> String {
    format!("<a href=\"{}\">{words}</a>", escape(url))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
