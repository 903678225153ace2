//! Slack: incoming webhooks with blocks.
//!
//! Limits in characters: header 150, section 3,000, 10 fields of 2,000 per section; at most 50 blocks. Escaping `&`, `<`, and `>`
//! prevents mentions and links; `verbatim` keeps Slack from adding links itself. A successful response is `ok`; any other text is a
//! rejection, even with status 200.

use std::time::Duration;

use serde_json::{Value, json};

use super::marked::{chars, html_text};
use super::{FormatSpec, ServiceResponse, WebhookFormat, fit::fit, fit::fit_counted};
use crate::card::{Brief, Card, ShareStyle, list_lines};
use crate::retry::Outcome;

const MAX_HEADER_CHARS: usize = 150;
const MAX_SECTION_CHARS: usize = 2_900;
const MAX_FIELD_CHARS: usize = 1_900;
const MAX_FIELDS: usize = 10;

/// The room for complete lines in a list of alerts.
const MAX_LIST_CHARS: usize = 2 * MAX_SECTION_CHARS;

const MAX_LINES: usize = 40;
const MAX_SHARES: usize = 6;

/// Errors after which a retry can succeed.
const LATER: [&str; 7] =
    ["ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "rollup_error"];

pub(super) const SPEC: FormatSpec = FormatSpec {
    pace: Some((5, Duration::from_secs(1))),
    outcome,
    ..FormatSpec::new("slack", |_| Ok(WebhookFormat::of_body(body)))
};

fn outcome(by_status: Outcome, response: &ServiceResponse<'_>) -> (Outcome, Option<String>) {
    if by_status != Outcome::Accepted {
        return (by_status, None);
    }
    let (body, parsed) = (response.body.trim(), response.json());
    let flag = |name: &str| parsed.get(name).and_then(Value::as_bool);
    let is_empty = body.is_empty() && response.is_complete;
    if is_empty || body.eq_ignore_ascii_case("ok") || flag("ok") == Some(true) || flag("success") == Some(true) {
        return (Outcome::Accepted, None);
    }
    if !response.is_complete {
        return response.unconfirmed("Slack");
    }
    let error = parsed.get("error").and_then(Value::as_str).unwrap_or(body);
    let outcome = if LATER.contains(&error) { Outcome::LATER } else { Outcome::Refused };
    (outcome, Some("success status, but the response is not \"ok\"".to_owned()))
}

fn body(brief: &Brief<'_>) -> Value {
    let title = brief.title(ShareStyle::Long, MAX_HEADER_CHARS);
    let header = clip(&html_text(&title), MAX_HEADER_CHARS);
    let mut blocks = vec![json!({"type": "header", "text": {"type": "plain_text", "text": header, "emoji": false}})];
    blocks.extend(brief.note().map(|note| section(&html_text(&note))));
    let cards = brief.cards(MAX_LINES);
    match cards.as_slice() {
        [card] if brief.is_single() => {
            let words: Vec<String> = card.words_below(&title).iter().map(|line| html_text(line)).collect();
            let words = fit_counted(&words, MAX_SECTION_CHARS, chars);
            if !words.is_empty() {
                blocks.push(section(&words));
            }
            let fields: Vec<Value> = card
                .rows(MAX_SHARES)
                .iter()
                .map(|(name, value)| mrkdwn(&clip(&format!("*{}*\n{}", html_text(name), html_text(value)), MAX_FIELD_CHARS)))
                .collect();
            blocks.extend(fields.chunks(MAX_FIELDS).map(|fields| json!({"type": "section", "fields": fields})));
            let links: Vec<String> = card.links().iter().map(|(words, url)| link(url, words)).collect();
            if !links.is_empty() {
                blocks.push(section(&links.join("  ·  ")));
            }
            blocks.push(context(&html_text(&card.footer())));
        }
        cards => {
            let texts = list_lines(cards, MAX_LIST_CHARS);
            let lines: Vec<String> = cards.iter().zip(&texts).map(|(card, text)| line(card, text)).collect();
            let mut rest = lines.as_slice();
            while !rest.is_empty() {
                let (text, count) = fit(rest, MAX_SECTION_CHARS, chars);
                blocks.push(section(&text));
                rest = rest.get(count.max(1)..).unwrap_or_default();
            }
        }
    }
    blocks.extend(brief.rest(cards.len()).map(|rest| context(&html_text(&rest))));
    let all = brief.page_of_all().filter(|_| !brief.is_single()).map(|url| link(&url, "All alerts"));
    let own = brief.link().map(|url| link(&url, "Open Cliffwatch"));
    let links: Vec<String> = all.into_iter().chain(own).collect();
    if !links.is_empty() {
        blocks.push(context(&links.join("  ·  ")));
    }
    json!({"text": html_text(&title), "blocks": blocks, "unfurl_links": false, "unfurl_media": false})
}

/// Returns the line of a list of alerts, linked to the alert's page.
fn line(card: &Card, text: &str) -> String {
    match &card.page {
        Some(page) => format!("• {}", link(page, &html_text(text))),
        None => format!("• {}", html_text(text)),
    }
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": mrkdwn(text)})
}

fn context(text: &str) -> Value {
    json!({"type": "context", "elements": [mrkdwn(text)]})
}

fn mrkdwn(text: &str) -> Value {
    json!({"type": "mrkdwn", "text": text, "verbatim": true})
}

fn link(url: &str, words: &str) -> String {
    format!("<{}|{words}>", html_text(&url.replace('|', "%7C")))
}

/// Returns at most `max` characters of an escaped text, without cutting an escape in two.
fn clip(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max).collect();
    match (cut.rfind('&'), cut.rfind(';')) {
        (Some(open), close) if cut.len() < text.len() && close.is_none_or(|close| close < open) => {
            cut.get(..open).unwrap_or_default().to_owned()
        }
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_not_cut_in_two() {
        assert_eq!(clip("ab&amp;cd", 4), "ab");
        assert_eq!(clip("ab&amp;cd", 7), "ab&amp;");
        assert_eq!(clip("ab&amp;cd", 8), "ab&amp;c");
        assert_eq!(clip("abc", 3), "abc");
    }
}
