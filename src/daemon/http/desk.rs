//! The pages on which one acts: alerts and their stories, silences, rules and the playground, deliveries, digests.
//!
//! Each page is complete without scripts, and each act is a form that is posted, does its work, and leads back to a page by a
//! redirect, so that loading it again does nothing twice. The gate has admitted a form before a handler here sees it. What was done
//! is told on the page that follows by a word of its address, which is looked up in [`done_text`]: no text of a stranger's link is
//! ever shown as ours.

mod alerts;
mod chosen;
mod deliveries;
mod digests;
mod rules;
mod silences;

use axum::Router;
use axum::extract::Extension;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::HttpDeps;
use super::access::Visitor;
use super::page::PageError;
use crate::ui::page::{Flash, PageFrame, Section, href, render};
use model::Timestamp;

/// Whoever asks.
type Asked = Extension<Visitor>;
/// A page or a redirect, or why there is none.
type DeskResult = Result<Response, PageError>;

/// The pages with their forms.
pub(super) fn routes() -> Router<HttpDeps> {
    Router::new()
        .route("/alerts", get(alerts::list))
        .route("/alerts/chosen", post(chosen::preview))
        .route("/alerts/chosen/acknowledge", post(chosen::acknowledge))
        .route("/alerts/chosen/silence", post(chosen::silence))
        .route("/alerts/{id}", get(alerts::story))
        .route("/alerts/{id}/acknowledge", post(alerts::acknowledge))
        .route("/alerts/{id}/unacknowledge", post(alerts::unacknowledge))
        .route("/silences", get(silences::list).post(silences::make))
        .route("/silences/preview", post(silences::preview))
        .route("/silences/{id}/expire", post(silences::expire))
        .route("/rules", get(rules::list))
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/{id}", get(deliveries::one))
        .route("/deliveries/{id}/retry", post(deliveries::retry))
        .route("/deliveries/{id}/drop", post(deliveries::drop_one))
        .route("/deliveries/retry-dead", post(deliveries::retry_dead))
        .route("/digests", get(digests::list))
        .route("/digests/{receiver}/preview", get(digests::preview))
        .route("/digests/{receiver}/test", post(digests::test))
}

/// Those that may take longer than others.
pub(super) fn slow_routes() -> Router<HttpDeps> {
    Router::new().route("/rules/playground", get(rules::playground).post(rules::try_out))
}

/// The frame of a page for whoever asks, with what was just done.
fn frame(section: Section, visitor: &Visitor, now: Timestamp, done: &str) -> PageFrame {
    PageFrame { flash: done_text(done), ..PageFrame::of(section, now) }.seen_by(visitor)
}

/// As [`frame`], of a page on which one writes: it hears of nothing, so that no news disturbs.
fn still_frame(section: Section, visitor: &Visitor, now: Timestamp, done: &str) -> PageFrame {
    PageFrame { flash: done_text(done), at: Some(now), ..PageFrame::still(Some(section)) }.seen_by(visitor)
}

impl PageFrame {
    /// With what proves that forms are ours, the way out where there is a session, and the way in where there is none.
    #[must_use]
    pub(super) fn seen_by(mut self, visitor: &Visitor) -> Self {
        self.csrf.clone_from(&visitor.form_key);
        self.signed_in = visitor.is_logged_in;
        let here = self.nav.iter().find(|item| item.is_current).map_or("/", |item| item.href);
        self.login = (!visitor.is_logged_in).then(|| login_to(here));
        self
    }
}

/// Where one logs in to come back to `path`.
fn login_to(path: &str) -> String {
    href("/login", &[("next", path)])
}

/// What the word of an address says.
fn done_text(done: &str) -> Option<Flash> {
    let (tone, text) = match done {
        "acknowledged" => ("good", "Acknowledged. Nobody is reminded of it until its date, amount or level changes."),
        "unacknowledged" => ("good", "The acknowledgement is withdrawn. It is reminded of again."),
        "over" => ("warn", "Nothing was done: this alert does not fire any more."),
        "acknowledged-all" => (
            "good",
            "All that were chosen are acknowledged. Nobody is reminded of them until their date, amount or level changes.",
        ),
        "acknowledged-some" => ("good", "Acknowledged, but for those that do not fire any more."),
        "silenced-all" => ("good", "All that were chosen are silenced, and what is alike."),
        "over-all" => ("warn", "Nothing was done: none of those that were chosen fires any more."),
        "none-chosen" => ("warn", "Nothing was done: choose alerts in the list first."),
        "author" => ("bad", "Nothing was done: say who you are, in at most 200 characters."),
        "silenced" => ("good", "The silence is made."),
        "expired" => ("good", "The silence is ended. What it held back and still fires is told now."),
        "gone" => ("warn", "Nothing was done: this silence is over already."),
        "retried" => ("good", "It is due now, and the schedule of attempts begins anew."),
        "retried-all" => ("good", "All dead letters are due now, and their schedules begin anew."),
        "not-retried" => ("warn", "Nothing was done: what was delivered cannot be sent again."),
        "digest-tested" => ("good", "A test is in the outbox: the digest as it is now. The real one still comes at its time."),
        "dropped" => ("good", "It is taken out of the outbox and never sent."),
        "not-dropped" => ("warn", "Nothing was done: only what is due, retried or dead can be dropped."),
        _ => return None,
    };
    Some(Flash { tone, text: text.to_owned() })
}

fn shown(template: &str, frame: &PageFrame, page: &impl Serialize) -> Response {
    Html(render(template, frame, page)).into_response()
}

#[cfg(test)]
pub(super) mod tests;
