//! Telegram: the method `sendMessage` of a bot, with HTML.
//!
//! Limits: 4,096 UTF-16 code units per message, not counting markup. `&`, `<`, and `>` are escaped. The field `ok` of the response
//! decides, not the status; `parameters.retry_after` is the requested wait.

use std::time::Duration;

use serde_json::{Value, json};

use super::fit::{fit, fit_counted, utf16};
use super::marked::html;
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, ServiceResponse, WebhookFormat, WebhookRequest, with_wait};
use crate::card::{Brief, ShareStyle, list_lines};
use crate::retry::Outcome;
use model::config;

const TOKEN: FormatKey = FormatKey::secret("token", "token_file", FormatKeyValue::OwnSecret);
const CHAT_ID: FormatKey = FormatKey::plain("chat_id", FormatKeyValue::TextOrNumber);
const THREAD_ID: FormatKey = FormatKey::plain("thread_id", FormatKeyValue::PositiveNumber);

const MAX_TITLE_CHARS: usize = 300;

/// The room for lines below the title, in UTF-16 code units of escaped text, which is never shorter than what Telegram counts.
const MAX_TEXT: usize = 3_500;

const MAX_LINES: usize = 40;
const MAX_SHARES: usize = 8;

/// 20 requests per minute and group.
pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://api.telegram.org"),
    keys: &[
        TOKEN.needed(),
        FormatKey { example: "`chat_id = \"-1001234567890\"`, or `\"@channel\"` for a public channel", ..CHAT_ID.needed() },
        THREAD_ID,
    ],
    pace: Some((5, Duration::from_secs(3))),
    outcome,
    ..FormatSpec::new("telegram", read)
};

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let chat_id = receiver.format_text(CHAT_ID.name).unwrap_or_default().to_owned();
    let thread_id: Option<i64> = receiver
        .format_text(THREAD_ID.name)
        .map(str::parse)
        .transpose()
        .map_err(|_| KeyProblem::wrong(THREAD_ID.name, "`thread_id` must be an integer"))?;
    Ok(WebhookFormat::new(move |brief, input| {
        let path = vec![format!("bot{}", input.secret(TOKEN)?), "sendMessage".to_owned()];
        Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body(brief, &chat_id, thread_id))? }])
    }))
}

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    // A response that was cut to the read limit is not valid JSON, but its beginning is enough.
    let begin: String = response.body.chars().filter(|c| !c.is_whitespace()).take(16).collect();
    let parsed = response.json();
    let parameter = |name: &str| parsed.pointer(&format!("/parameters/{name}"));
    let note = parameter("migrate_to_chat_id")
        .and_then(Value::as_i64)
        .map(|id| format!("the group became a supergroup: set `chat_id = \"{id}\"`"));
    let wait = parameter("retry_after").and_then(Value::as_f64);
    let outcome = match by_status {
        Outcome::Accepted if begin.starts_with("{\"ok\":false") => {
            let code = parsed.get("error_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            match Outcome::of_http_status(code.unwrap_or(400), None) {
                Outcome::Accepted => Outcome::Refused,
                other => other,
            }
        }
        Outcome::Accepted if !begin.starts_with("{\"ok\":true") => return response.unconfirmed("Telegram's Bot API"),
        other => other,
    };
    (with_wait(outcome, wait), note)
}

fn body(brief: &Brief<'_>, chat: &str, thread: Option<i64>) -> Value {
    let cards = brief.cards(MAX_LINES);
    let title = brief.title(ShareStyle::Long, MAX_TITLE_CHARS);
    let mut lines: Vec<String> = brief.note().iter().map(|note| format!("<b>{}</b>", html(note))).collect();
    let above = lines.len();
    let (mut text, shown) = match cards.as_slice() {
        [card] if brief.is_single() => {
            lines.extend(card.words_below(&title).iter().map(|line| html(line)));
            let rows = card.rows(MAX_SHARES);
            if !lines.is_empty() && !rows.is_empty() {
                lines.push(String::new());
            }
            lines.extend(rows.iter().map(|(name, value)| format!("{}: <b>{}</b>", html(name), html(value))));
            lines.extend([String::new(), format!("<i>{}</i>", html(&card.footer()))]);
            (fit_counted(&lines, MAX_TEXT, utf16), cards.len())
        }
        cards => {
            lines.extend(list_lines(cards, MAX_TEXT).iter().map(|line| format!("• {}", html(line))));
            let (text, count) = fit(&lines, MAX_TEXT, utf16);
            (text, count.saturating_sub(above))
        }
    };
    if let Some(rest) = brief.rest(shown) {
        text = format!("{text}\n\n{}", html(&rest));
    }
    let links: Vec<String> =
        brief.links(&cards).iter().map(|(words, url)| format!("<a href=\"{}\">{words}</a>", html(url))).collect();
    if !links.is_empty() {
        text = format!("{text}\n{}", links.join(" · "));
    }
    let mut body = json!({
        "chat_id": chat,
        "text": format!("<b>{}</b>\n{text}", html(&title)),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    });
    if let Some(thread) = thread {
        body["message_thread_id"] = thread.into();
    }
    body
}
