//! Slack: incoming webhooks with blocks.
//!
//! Limits: a header of 150 characters, sections of 3,000, ten fields of 2,000 in a section, fifty blocks. `&`, `<` and `>` are
//! escaped everywhere, so that nothing mentions people or makes links; `verbatim` keeps Slack from making links of its own. Its
//! answer is `ok`; other words, also with status 200, are refusals.

use serde_json::{Value, json};

use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest, fit::fit, fit::fit_counted, put_off};
use crate::card::{Brief, Card, ShareStyle};
use crate::retry::Outcome;
use model::config;

const MAX_HEADER_CHARS: usize = 150;
const MAX_SECTION_CHARS: usize = 2_900;
const MAX_FIELD_CHARS: usize = 1_900;
const MAX_FIELDS: usize = 10;

/// Most alerts of a group that are listed.
const MAX_LINES: usize = 40;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 6;

/// Answers that mean "not now".
const LATER: [&str; 7] =
    ["ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "rollup_error"];

/// It has no settings of its own.
#[derive(Debug)]
pub struct Slack;

impl FormatSettings for Slack {
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
        let body = body.trim();
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let flag = |name: &str| parsed.as_ref().and_then(|value| value.get(name)).and_then(Value::as_bool);
        if body.is_empty() || body.eq_ignore_ascii_case("ok") || flag("ok") == Some(true) || flag("success") == Some(true) {
            return (Outcome::Accepted, None);
        }
        let error = parsed.as_ref().and_then(|value| value.get("error")).and_then(Value::as_str).unwrap_or(body);
        let outcome = if LATER.contains(&error) { put_off(Outcome::LATER, None) } else { Outcome::Refused };
        (outcome, Some("the status says yes, the answer is not \"ok\"".to_owned()))
    }
}

/// The body that tells `brief`.
fn body(brief: &Brief<'_>) -> Value {
    let title = brief.title(ShareStyle::Long, MAX_HEADER_CHARS);
    let header = clip(&escape(&title), MAX_HEADER_CHARS);
    let mut blocks = vec![json!({"type": "header", "text": {"type": "plain_text", "text": header, "emoji": false}})];
    let note = brief.note();
    if !note.is_empty() {
        blocks.push(section(&escape(&note)));
    }
    let cards = brief.cards(MAX_LINES);
    match cards.as_slice() {
        [card] if brief.is_single() => {
            let words: Vec<String> = card.words().iter().map(|line| escape(line)).collect();
            let words = fit_counted(&words, MAX_SECTION_CHARS, chars);
            if !words.is_empty() {
                blocks.push(section(&words));
            }
            let fields: Vec<Value> = card
                .rows(MAX_SHARES)
                .iter()
                .map(|(name, value)| mrkdwn(&clip(&format!("*{}*\n{}", escape(name), escape(value)), MAX_FIELD_CHARS)))
                .collect();
            blocks.extend(fields.chunks(MAX_FIELDS).map(|fields| json!({"type": "section", "fields": fields})));
            let links: Vec<String> = card.links().iter().map(|(words, url)| link(url, words)).collect();
            if !links.is_empty() {
                blocks.push(section(&links.join("  ·  ")));
            }
            blocks.push(json!({"type": "context", "elements": [mrkdwn(&escape(&card.footer()))]}));
        }
        cards => {
            let lines: Vec<String> = cards.iter().map(line).collect();
            let mut rest = lines.as_slice();
            while !rest.is_empty() {
                let (text, count) = fit(rest, MAX_SECTION_CHARS, chars);
                blocks.push(section(&text));
                rest = rest.get(count.max(1)..).unwrap_or_default();
            }
        }
    }
    let rest = brief.rest(cards.len());
    if !rest.is_empty() {
        blocks.push(json!({"type": "context", "elements": [mrkdwn(&escape(&rest))]}));
    }
    let all = brief.page_of_all().filter(|_| !brief.is_single()).map(|url| link(&url, "All alerts"));
    let own = brief.link().map(|url| link(&url, "Open Cliffwatch"));
    let links: Vec<String> = all.into_iter().chain(own).collect();
    if !links.is_empty() {
        blocks.push(json!({"type": "context", "elements": [mrkdwn(&links.join("  ·  "))]}));
    }
    json!({"text": escape(&title), "blocks": blocks, "unfurl_links": false, "unfurl_media": false})
}

/// An alert of several: its line leads to its page.
fn line(card: &Card) -> String {
    match &card.page {
        Some(page) => format!("• {}", link(page, &escape(&card.list_line()))),
        None => format!("• {}", escape(&card.list_line())),
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": mrkdwn(text)})
}

fn mrkdwn(text: &str) -> Value {
    json!({"type": "mrkdwn", "text": text, "verbatim": true})
}

fn link(url: &str, words: &str) -> String {
    format!("<{}|{words}>", escape(&url.replace('|', "%7C")))
}

/// At most `max` characters of an escaped text, no escape cut in two.
fn clip(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max).collect();
    match (cut.rfind('&'), cut.rfind(';')) {
        (Some(open), close) if cut.len() < text.len() && close.is_none_or(|close| close < open) => {
            cut.get(..open).unwrap_or_default().to_owned()
        }
        _ => cut,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_is_never_cut_in_two() {
        assert_eq!(clip("ab&amp;cd", 4), "ab");
        assert_eq!(clip("ab&amp;cd", 7), "ab&amp;");
        assert_eq!(clip("ab&amp;cd", 8), "ab&amp;c");
        assert_eq!(clip("abc", 3), "abc");
    }
}
