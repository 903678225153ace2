//! Digests: recipients, schedules, and a preview of the next one.

use std::sync::Arc;

use axum::extract::{Extension, Path, Query};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use chrono::TimeDelta;
use serde::Serialize;

use super::alerts::DoneQuery;
use super::{ActionResult, RequestVisitor, render_page, static_frame};
use crate::http::access::{ActDeps, Visitor, login::redirect};
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::page_cache::{DataVersion, PageCache};
use crate::http::request_limits::ReadDeps;
use crate::http::{CONTENT_POLICY, HttpDeps};
use crate::ui::page::Section;
use crate::ui::template::segment;
use daemon::digest_positions::add_positions;
use daemon::dispatch::{digest_now, digest_test};
use daemon::live::LiveConfig;
use daemon::view::DigestView;
use engine::digest_schedule::DigestPlan;
use model::{Batch, BatchKind, Commit, DeliveryId, DueDelivery, EventType, LoggedAction, ReceiverName, Timestamp, digest};
use notify::{Brief, Mail, compose};
use store::StoreError;

#[derive(Serialize)]
struct DigestsPage {
    now: Timestamp,
    digests: Vec<NextDigest>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NextDigest {
    view: DigestView,
    subject: String,
    text: String,
    /// The path of the HTML preview. `None` if the mail has no HTML.
    frame: Option<String>,
    /// The path of the form that sends a test.
    test: String,
    /// The patterns and groups of the tokens that the digest is about. Empty for all watched tokens.
    tokens: Vec<String>,
    /// The unlocks that are listed, as text.
    listed: String,
    has_positions: bool,
}

pub(super) async fn list(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): RequestVisitor,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let overview = deps.app.store.notification_overview(now, now - digest::SUPPRESSED_WINDOW).await?;
    let mut digests = Vec::new();
    for (plan, view) in live.policy.digests.iter().zip(DigestView::all(&live.policy.digests, &live.subscribers, &overview, now)) {
        let mail = current_mail(&deps, &visitor, (&live, plan), now).await?;
        let frame = format!("/digests/{}/preview", segment(plan.receiver.as_str()));
        let (subject, text, has_html) =
            (*mail).as_ref().map(|mail| (mail.subject.clone(), mail.text.clone(), mail.html.is_some())).unwrap_or_default();
        let test = format!("/digests/{}/test", segment(plan.receiver.as_str()));
        let frame = has_html.then_some(frame);
        let (tokens, listed, has_positions) = (plan.tokens.clone(), plan.selection.label(), plan.has_positions);
        digests.push(NextDigest { test, view, subject, text, frame, tokens, listed, has_positions });
    }
    let mut response =
        render_page("digests.html", &static_frame(Section::Digests, &visitor, now, &done), &DigestsPage { now, digests });
    // Only this page contains a frame, for the preview of the mail.
    if let Ok(policy) = HeaderValue::try_from(format!("{CONTENT_POLICY}; frame-src 'self'")) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// `GET /digests/{receiver}/preview`: the HTML of the mail for a sandboxed frame.
pub(super) async fn preview(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): RequestVisitor,
    Path(receiver): Path<String>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let mail = current_mail(&deps, &visitor, (&live, plan_of(&live, &receiver)?), now).await?;
    Ok(sandboxed((*mail).as_ref().and_then(|mail| mail.html.clone()).unwrap_or_default()))
}

/// `POST /digests/{receiver}/test`: sends the current digest to its receiver, marked as a test.
pub(super) async fn test(ActDeps(deps): ActDeps, Path(receiver): Path<String>) -> ActionResult {
    let (now, live) = (deps.app.clock.now(), deps.app.live.load_full());
    let notice = digest_test(&deps.app.store, (&live.watch, &live.active), plan_of(&live, &receiver)?, now).await?;
    deps.app.store.commit(Commit { at: now, notifications: vec![notice], ..Commit::default() }).await?;
    let action = LoggedAction::new(receiver.as_str(), None);
    deps.app.store.log_action(EventType::TestRequested, action, now).await?;
    (deps.app.wake)();
    tracing::info!(receiver, "test digest requested");
    Ok(redirect("/digests?done=digest-tested"))
}

fn plan_of<'l>(live: &'l LiveConfig, receiver: &str) -> Result<&'l DigestPlan, WebError> {
    let plan = live.policy.digests.iter().find(|plan| plan.receiver.as_str() == receiver);
    plan.ok_or_else(|| WebError::new(ErrorCode::NotFound, "no receiver with this name gets a digest"))
}

fn sandboxed(html: String) -> Response {
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox",
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response()
}

/// The latest mail of each receiver, for visitors who see positions and for others.
pub type DigestCache = PageCache<(ReceiverName, bool), DataVersion, Option<Mail>>;

/// The maximum age of a mail. New data in the database replaces it earlier.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

/// Returns the digest as it would be sent now, without positions if the visitor must not see them. The page and the preview in its frame
/// show the same mail.
async fn current_mail(
    deps: &HttpDeps,
    visitor: &Visitor,
    (live, plan): (&Arc<LiveConfig>, &DigestPlan),
    now: Timestamp,
) -> Result<Arc<Option<Mail>>, StoreError> {
    let version = DataVersion { pulse: deps.app.store.pulse().await?, live: live.clone() };
    let key = (plan.receiver.clone(), visitor.sees_positions);
    deps.digests.get((key, version), now, MAX_AGE, compose_now(deps, visitor, (live, plan), now)).await
}

async fn compose_now(
    deps: &HttpDeps,
    visitor: &Visitor,
    (live, plan): (&LiveConfig, &DigestPlan),
    now: Timestamp,
) -> Result<Option<Mail>, StoreError> {
    let digest = digest_now(&deps.app.store, (&live.watch, &live.active), plan, now).await?;
    let mut notification = digest.notification(&plan.receiver, now);
    if let Some(added) = add_positions(&deps.app.store, &visitor.watch(&live.watch), plan, &notification).await? {
        notification = added;
    }
    let delivery = DueDelivery {
        id: DeliveryId(0),
        webhook_id: String::new(),
        receiver: ReceiverName::from(plan.receiver.as_str()),
        attempts: 0,
        tries: 0,
        created_at: now,
        due_at: now,
        notifications: vec![notification],
        batch: Batch { shape: BatchKind::Digest, ..Batch::default() },
        over: Vec::new(),
        replay: None,
    };
    let external = deps.app.external_url.as_ref().map(url::Url::as_str);
    Ok(compose(&Brief { delivery: &delivery, external_url: external, now }, None))
}
