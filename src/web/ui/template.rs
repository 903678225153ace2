//! The templates of all pages, and their filters.
//!
//! Every value is sanitized and escaped by default, because it may contain names from the source. The only exceptions are the text of the
//! templates and the HTML that the filters here produce.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, Value};

use super::asset::{CHART, DISPLAY, ICON, SCRIPT, STYLE, UPLOT, UPLOT_STYLE};
use chart::svg::escaped;
use model::{Timestamp, phrase, time::parse_timestamp};

const TEMPLATES: [(&str, &str); 22] = [
    ("base.html", include_str!("html/base.html")),
    ("parts.html", include_str!("html/parts.html")),
    ("error.html", include_str!("html/error.html")),
    ("calendar.html", include_str!("html/calendar.html")),
    ("new-rule.html", include_str!("html/new-rule.html")),
    ("overview.html", include_str!("html/overview.html")),
    ("tokens.html", include_str!("html/tokens.html")),
    ("token.html", include_str!("html/token.html")),
    ("changes.html", include_str!("html/changes.html")),
    ("compare.html", include_str!("html/compare.html")),
    ("alert.html", include_str!("html/alert.html")),
    ("alerts.html", include_str!("html/alerts.html")),
    ("chosen.html", include_str!("html/chosen.html")),
    ("code.html", include_str!("html/code.html")),
    ("audit.html", include_str!("html/audit.html")),
    ("deliveries.html", include_str!("html/deliveries.html")),
    ("delivery.html", include_str!("html/delivery.html")),
    ("digests.html", include_str!("html/digests.html")),
    ("login.html", include_str!("html/login.html")),
    ("playground.html", include_str!("html/playground.html")),
    ("rules.html", include_str!("html/rules.html")),
    ("silences.html", include_str!("html/silences.html")),
];

pub(crate) static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut pages = Environment::new();
    pages.set_auto_escape_callback(|_| AutoEscape::Html);
    pages.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        // Unlike the formatter of minijinja, `escaped` does not escape slashes.
        Some(shown) => out.write_str(&escaped(shown)).map_err(minijinja::Error::from),
        None => minijinja::escape_formatter(out, state, value),
    });
    pages.add_global("style_href", STYLE.href.as_str());
    pages.add_global("display_href", DISPLAY.href.as_str());
    pages.add_global("script_href", SCRIPT.href.as_str());
    pages.add_global("chart_href", CHART.href.as_str());
    pages.add_global("uplot_href", UPLOT.href.as_str());
    pages.add_global("uplot_style_href", UPLOT_STYLE.href.as_str());
    pages.add_global("icon_href", ICON.href.as_str());
    add_filters(&mut pages);
    for (name, source) in TEMPLATES {
        if let Err(error) = pages.add_template(name, source) {
            tracing::error!(%error, name, "cannot compile a template");
        }
    }
    pages
});

fn add_filters(pages: &mut Environment<'static>) {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    pages.add_filter("usd", move |value: Option<f64>| or_dash(value.map(phrase::usd)));
    pages.add_filter("amount", move |value: Option<f64>| or_dash(value.map(phrase::amount)));
    pages.add_filter("percent", move |value: Option<f64>| or_dash(value.map(phrase::percent)));
    pages.add_filter("age", |seconds: Option<i64>| seconds.map_or_else(|| "never".to_owned(), phrase::duration_secs));
    pages.add_filter("bytes", phrase::bytes);
    pages.add_filter("count", |count: u64| phrase::grouped(count));
    pages.add_filter("counted", |count: u64, noun: String| phrase::grouped_count(count, &noun));
    pages.add_filter("time", |at: Option<String>| at.as_deref().map(minute).unwrap_or_default());
    pages.add_filter("day", |at: Option<String>| at.as_deref().map(day).unwrap_or_default());
    pages.add_filter("ago", |at: Option<String>, now: Option<String>| ago(at.as_deref(), now.as_deref()));
    pages.add_filter("name", |name: Option<String>| name.map(|name| phrase::name(&name)).unwrap_or_default());
    pages.add_filter("sentence", |text: Option<String>| text.map(|text| phrase::one_line(&text)).unwrap_or_default());
    pages.add_filter("capital", |text: String| phrase::capitalized(&text));
    pages.add_filter("words", |word: String| phrase::capitalized(&phrase::words(&word)));
    pages.add_filter("segment", |text: String| segment(&text));
    pages.add_filter("class", |word: String| class(&word));
    pages.add_filter("token_href", |id: String| token_href(&id));
    pages.add_filter("lines", |text: String| Value::from_safe_string(lines(&text)));
}

/// Formats `2026-03-09T12:00:30Z` as `2026-03-09 12:00 UTC`. Returns any other text unchanged.
fn minute(text: &str) -> String {
    parse_timestamp(text).map_or_else(|| text.to_owned(), phrase::instant_iso)
}

fn day(text: &str) -> String {
    parse_timestamp(text).map_or_else(|| text.to_owned(), phrase::day)
}

/// Formats the time from `at` to `now`: `3 h ago`, or `in 5 days` for a future time. Empty if either is not a valid time.
fn ago(at: Option<&str>, now: Option<&str>) -> String {
    let known = |text: Option<&str>| -> Option<Timestamp> { parse_timestamp(text?) };
    let (Some(at), Some(now)) = (known(at), known(now)) else { return String::new() };
    phrase::ago(at, now)
}

/// Returns a word as a CSS class.
fn class(word: &str) -> String {
    word.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// Returns the URL of a token's page. The slug may contain any characters.
pub fn token_href(id: &str) -> String {
    // Browsers resolve these segments as relative paths.
    if id.is_empty() || matches!(id, "." | "..") {
        return "/tokens".to_owned();
    }
    format!("/tokens/{}", segment(id))
}

/// Percent-encodes a text as one segment of a path.
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

/// Escapes a text and keeps its line breaks, for `<pre>` and `<textarea>`.
fn lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(escaped).collect::<Vec<_>>().join("\t");
    text.split('\n').map(|text| line(text.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
