//! The HTML pages and their forms.
//!
//! Each page works without scripts. Each action is a posted form that ends with a redirect, so that reloading the page does not repeat it.
//! Authorization has checked a form before its handler runs. The redirect passes the result as a code in `?done=`, which [`flash`]
//! translates, so that a link cannot inject text into a page.

mod alerts;
mod audit;
mod bulk;
mod calendar;
mod changes;
mod compare;
mod deliveries;
pub(super) mod digests;
mod new_rule;
pub(super) mod overview;
mod rules;
mod silences;
mod tokens;

use axum::Router;
use axum::extract::Extension;
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::HttpDeps;
use super::access::Visitor;
use super::error::PageResult;
use super::group::keep_group;
use super::parameters::STATE;
use super::query::ListQuery;
use crate::ui::page::{Choice, Flash, PageFrame, Section, href, render};
use model::{AccessRole, Timestamp};

type RequestVisitor = Extension<Visitor>;
/// A page or a redirect.
type ActionResult = PageResult<Response>;

/// Returns the routes of the pages, and of their forms.
pub(super) fn routes(deps: &HttpDeps) -> Router<HttpDeps> {
    Router::new()
        .route("/", get(overview::overview))
        .route("/calendar", get(calendar::show))
        .route("/tokens", get(tokens::list))
        .route("/tokens/{id}", get(tokens::show))
        .route("/changes", get(changes::list))
        .route("/compare", get(compare::show))
        .route("/alerts", get(alerts::list))
        .route("/alerts/chosen", post(bulk::preview))
        .route("/alerts/chosen/acknowledge", post(bulk::acknowledge))
        .route("/alerts/chosen/silence", post(bulk::silence))
        .route("/alerts/{id}", get(alerts::show))
        .route("/alerts/{id}/acknowledge", post(alerts::acknowledge))
        .route("/alerts/{id}/unacknowledge", post(alerts::unacknowledge))
        .route("/alerts/{id}/notes", post(alerts::add_note))
        .route("/alerts/{id}/assign", post(alerts::assign))
        .route("/silences", get(silences::list).post(silences::create))
        .route("/silences/preview", post(silences::preview))
        .route("/silences/{id}/expire", post(silences::expire))
        .route("/rules", get(rules::list))
        .route("/rules/new", get(new_rule::show).post(new_rule::save))
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/{id}", get(deliveries::show))
        .route("/deliveries/{id}/retry", post(deliveries::retry))
        .route("/deliveries/{id}/drop", post(deliveries::drop_one))
        .route("/deliveries/retry-dead", post(deliveries::retry_dead))
        .route("/digests", get(digests::list))
        .route("/digests/{receiver}/preview", get(digests::preview))
        .route("/digests/{receiver}/test", post(digests::test))
        .route("/audit", get(audit::list))
        .layer(from_fn_with_state(deps.clone(), keep_group))
}

/// The routes with a longer timeout.
pub(super) fn slow_routes(deps: &HttpDeps) -> Router<HttpDeps> {
    Router::new()
        .route("/rules/playground", get(rules::playground).post(rules::run_trial))
        .layer(from_fn_with_state(deps.clone(), keep_group))
}

/// Returns the frame of a page, with the result of the last action.
fn frame(section: Section, visitor: &Visitor, now: Timestamp, done: &str) -> PageFrame {
    PageFrame { flash: flash(done), ..PageFrame::of(section, now) }.for_visitor(visitor)
}

/// Like [`frame`], but without live updates, which would discard what the user types.
fn static_frame(section: Section, visitor: &Visitor, now: Timestamp, done: &str) -> PageFrame {
    PageFrame { flash: flash(done), at: Some(now), ..PageFrame::still(Some(section)) }.for_visitor(visitor)
}

impl PageFrame {
    /// Adds the CSRF token, the visitor, and the link to log in or out.
    #[must_use]
    pub(super) fn for_visitor(mut self, visitor: &Visitor) -> Self {
        self.csrf.clone_from(&visitor.csrf_token);
        self.signed_in = visitor.may(AccessRole::Act);
        self.has_session = visitor.session.is_some();
        visitor.name().clone_into(&mut self.user);
        let path = self.nav.iter().find(|item| item.is_current).map_or("/", |item| item.href);
        self.login = (!visitor.may(AccessRole::Act)).then(|| login_url(path));
        self
    }
}

/// Returns the URL of the login page that redirects to `path`.
fn login_url(path: &str) -> String {
    href("/login", &[("next", path)])
}

/// Returns the message for the code of a result.
fn flash(done: &str) -> Option<Flash> {
    let (severity, text) = match done {
        "acknowledged" => ("good", "Acknowledged. No reminders until the date, amount, or level changes."),
        "unacknowledged" => ("good", "Acknowledgement removed. Reminders are sent again."),
        "noted" => ("good", "The note is added."),
        "no-note" => ("bad", "Nothing changed: enter your name and a note of at most 2,000 characters."),
        "not-noted" => ("warn", "Nothing changed: this alert was deleted, or has as many notes as it can."),
        "assigned" => ("good", "The alert is assigned."),
        "unassigned" => ("good", "The alert has no assignee."),
        "over" => ("warn", "Nothing changed: this alert no longer fires."),
        "acknowledged-all" => {
            ("good", "All selected alerts are acknowledged. No reminders until their date, amount, or level changes.")
        }
        "acknowledged-some" => ("good", "Acknowledged, except for alerts that no longer fire."),
        "silenced-all" => ("good", "All selected alerts and similar ones are silenced."),
        "over-all" => ("warn", "Nothing changed: none of the selected alerts fires."),
        "none-chosen" => ("warn", "Nothing changed: select alerts in the list first."),
        "author" => ("bad", "Nothing changed: enter your name, at most 200 characters."),
        "silenced" => ("good", "Silence created."),
        "expired" => ("good", "Silence expired. Suppressed alerts that still fire are sent now."),
        "gone" => ("warn", "Nothing changed: this silence has already expired."),
        "retried" => ("good", "The delivery is due now, and its retry schedule restarts."),
        "retried-all" => ("good", "All dead letters are due now, and their retry schedules restart."),
        "not-retried" => ("warn", "Nothing changed: a completed delivery cannot be retried."),
        "digest-tested" => ("good", "A test digest is in the outbox. The regular digest is sent on schedule."),
        "rule-saved" => ("good", "The rule is saved and active."),
        "dropped" => ("good", "The delivery is dropped and will not be sent."),
        "not-dropped" => ("warn", "Nothing changed: only due, retrying, and dead deliveries can be dropped."),
        _ => return None,
    };
    Some(Flash { severity, text: text.to_owned() })
}

/// Returns the links that filter a list by state, with the number of rows in each state.
fn state_choices(query: &ListQuery, path: &str, counts: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Choice> {
    let choice = |name: &str, state: &str| {
        Choice::new(name, query.clone().with(STATE, state).first_page(path), query.value_or_empty(STATE) == state)
    };
    let counted = |(state, count): (&'static str, u64)| {
        let (first, rest) = state.split_at(1);
        Choice { count: Some(count), ..choice(&format!("{}{rest}", first.to_uppercase()), state) }
    };
    std::iter::once(choice("All", "")).chain(counts.into_iter().map(counted)).collect()
}

fn render_page(template: &str, frame: &PageFrame, page: &impl Serialize) -> Response {
    Html(render(template, frame, page)).into_response()
}

#[cfg(test)]
pub(super) mod tests;
