//! What the daemon shows: views ([`view`]) to the status page, which is made here, and to a [`calendar`]. Pure: values in, text out.
//!
//! The page's template escapes everything that it shows, since names come from the source. The page needs no script, reads well on a phone and
//! in the dark, and refreshes itself.

pub mod atom;
pub mod calendar;
pub mod view;

use std::sync::OnceLock;

use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

use model::{OutboxRow, format};
use view::{AlertView, StatusView, UnlockView};

const TEMPLATE: &str = include_str!("ui/status.html");

#[derive(Clone, Debug, Serialize)]
pub struct StatusPage {
    /// How everything stands.
    pub status: StatusView,
    pub upcoming: Vec<UnlockView>,
    pub alerts: Vec<AlertView>,
    pub changes: Vec<ChangeLine>,
    pub deliveries: Vec<OutboxRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ChangeLine {
    /// When it was seen, in words.
    pub at: String,
    /// Token and what happened.
    pub text: String,
}

/// The page as HTML. Should the template ever fail, the page says so instead.
pub fn render(page: &StatusPage) -> String {
    static TEMPLATES: OnceLock<Environment<'static>> = OnceLock::new();
    let templates = TEMPLATES.get_or_init(templates);
    let rendered =
        templates.get_template("status.html").and_then(|template| template.render(minijinja::Value::from(Serde(page))));
    rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "the status page cannot be rendered");
        "<!doctype html><title>Cliffwatch</title><p>The status page cannot be rendered; the log says why.".to_owned()
    })
}

fn templates() -> Environment<'static> {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("usd", |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format::usd));
    templates.add_filter("amount", |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format::amount));
    templates.add_filter("percent", |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format::percent));
    templates
        .add_filter("ahead", |days: Option<f64>, when: String| days.map(|days| view::ahead(days, &when)).unwrap_or_default());
    templates.add_filter("age", |seconds: Option<i64>| seconds.map_or_else(|| "never".to_owned(), view::age));
    templates.add_filter("bytes", view::bytes);
    templates.add_filter("time", |text: Option<String>| text.map(|text| short_time(&text)).unwrap_or_default());
    templates.add_filter("calm", |text: String| model::text::harmless(&text));
    if let Err(error) = templates.add_template("status.html", TEMPLATE) {
        tracing::error!(%error, "the template of the status page is broken");
    }
    templates
}

/// `2026-03-09T12:00:00Z` as `2026-03-09 12:00`.
fn short_time(text: &str) -> String {
    text.get(..16).unwrap_or(text).replace('T', " ")
}

#[cfg(test)]
mod tests;
