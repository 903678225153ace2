//! The templates of all pages, and what they can do with a value.
//!
//! **Whatever a template shows is made harmless first, and then escaped**: names come from the source, and no page has to remember to
//! say so. What a template says itself is safe, and so is what a filter here makes as HTML.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, Value};

use super::asset::{ICON, SCRIPT, STYLE};
use super::chart::svg::escaped;
use super::view;
use model::{Timestamp, format, time::parse_timestamp};

/// The pages and what they share, by the names under which they extend and import each other.
const TEMPLATES: [(&str, &str); 7] = [
    ("base.html", include_str!("html/base.html")),
    ("parts.html", include_str!("html/parts.html")),
    ("error.html", include_str!("html/error.html")),
    ("overview.html", include_str!("html/overview.html")),
    ("tokens.html", include_str!("html/tokens.html")),
    ("token.html", include_str!("html/token.html")),
    ("changes.html", include_str!("html/changes.html")),
];

/// Those of the pages on which one acts.
const DESK_TEMPLATES: [(&str, &str); 11] = [
    ("alert.html", include_str!("html/alert.html")),
    ("alerts.html", include_str!("html/alerts.html")),
    ("chosen.html", include_str!("html/chosen.html")),
    ("code.html", include_str!("html/code.html")),
    ("deliveries.html", include_str!("html/deliveries.html")),
    ("delivery.html", include_str!("html/delivery.html")),
    ("digests.html", include_str!("html/digests.html")),
    ("login.html", include_str!("html/login.html")),
    ("playground.html", include_str!("html/playground.html")),
    ("rules.html", include_str!("html/rules.html")),
    ("silences.html", include_str!("html/silences.html")),
];

/// Compiled once.
pub(crate) static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut pages = Environment::new();
    pages.set_auto_escape_callback(|_| AutoEscape::Html);
    pages.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        // Ours leaves slashes as they are, so that addresses stay short.
        Some(shown) => out.write_str(&escaped(shown)).map_err(minijinja::Error::from),
        None => minijinja::escape_formatter(out, state, value),
    });
    pages.add_global("style_href", STYLE.href.as_str());
    pages.add_global("script_href", SCRIPT.href.as_str());
    pages.add_global("icon_href", ICON.href.as_str());
    add_filters(&mut pages);
    for (name, source) in TEMPLATES.into_iter().chain(DESK_TEMPLATES) {
        if let Err(error) = pages.add_template(name, source) {
            tracing::error!(%error, name, "a template is broken");
        }
    }
    pages
});

fn add_filters(pages: &mut Environment<'static>) {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    pages.add_filter("usd", move |value: Option<f64>| or_dash(value.map(format::usd)));
    pages.add_filter("amount", move |value: Option<f64>| or_dash(value.map(format::amount)));
    pages.add_filter("percent", move |value: Option<f64>| or_dash(value.map(format::percent)));
    pages.add_filter("ahead", |days: Option<f64>, when: String| days.map(|days| view::ahead(days, &when)).unwrap_or_default());
    pages.add_filter("age", |seconds: Option<i64>| seconds.map_or_else(|| "never".to_owned(), view::age));
    pages.add_filter("bytes", view::bytes);
    pages.add_filter("count", |count: u64| grouped(count));
    pages.add_filter("time", |at: Option<String>| at.as_deref().map(minute).unwrap_or_default());
    pages.add_filter("day", |at: Option<String>| at.as_deref().map(day).unwrap_or_default());
    pages.add_filter("ago", |at: Option<String>, now: Option<String>| ago(at.as_deref(), now.as_deref()));
    pages.add_filter("name", |name: Option<String>| name.map(|name| format::name(&name)).unwrap_or_default());
    pages.add_filter("sentence", |text: Option<String>| text.map(|text| format::sentence(&text)).unwrap_or_default());
    pages.add_filter("capital", |text: String| capital(&text));
    pages.add_filter("words", |word: String| words(&word));
    pages.add_filter("segment", |text: String| segment(&text));
    pages.add_filter("class", |word: String| class(&word));
    pages.add_filter("token_href", |id: String| token_href(&id));
    pages.add_filter("lines", |text: String| Value::from_safe_string(lines(&text)));
}

/// `2026-03-09T12:00:30Z` as `9 Mar 2026 12:00`; what is no instant stays as it is.
fn minute(text: &str) -> String {
    parse_timestamp(text).map_or_else(|| text.to_owned(), |at| at.format("%-d %b %Y %H:%M").to_string())
}

fn day(text: &str) -> String {
    parse_timestamp(text).map_or_else(|| text.to_owned(), format::day)
}

/// How long ago `at` was at `now`, or how far ahead it is: `3 h ago`, `in 5 d`; nothing where either is unknown.
fn ago(at: Option<&str>, now: Option<&str>) -> String {
    let known = |text: Option<&str>| -> Option<Timestamp> { parse_timestamp(text?) };
    let (Some(at), Some(now)) = (known(at), known(now)) else { return String::new() };
    let seconds = (now - at).num_seconds();
    if seconds >= 0 { format!("{} ago", view::age(seconds)) } else { format!("in {}", view::age(-seconds)) }
}

/// A count with its thousands apart: `12,345`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A word of ours as people read it, at the begin of a line: `Unlock events` for `unlock_events`.
fn words(word: &str) -> String {
    capital(&word.replace('_', " "))
}

/// A text with a capital letter at its begin.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A word as the name of a class: the sheet knows some of them, the others change nothing.
fn class(word: &str) -> String {
    word.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// The address of a token's page, whatever its slug holds.
pub fn token_href(id: &str) -> String {
    // A slug that a browser would take for a step in the path cannot be named in one.
    if id.is_empty() || matches!(id, "." | "..") {
        return "/tokens".to_owned();
    }
    format!("/tokens/{}", segment(id))
}

/// A text as one segment of a path: whatever is no plain letter or digit is written as its bytes.
pub fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => path.push(char::from(byte)),
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path
}

/// A text whose line breaks are kept, as HTML: for `<pre>` and `<textarea>`.
fn lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(escaped).collect::<Vec<_>>().join("\t");
    text.split('\n').map(|text| line(text.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
