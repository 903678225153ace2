//! Digests: who gets them, when, and the next one as it would be sent now.

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;

use super::alerts::DoneQuery;
use super::{Asked, DeskResult, shown, still_frame};
use crate::dispatch::{digest_now, digest_test};
use crate::http::access::login::see;
use crate::http::page::PageError;
use crate::http::{CONTENT_POLICY, HttpDeps};
use crate::live::LiveConfig;
use crate::ui::page::Section;
use crate::ui::template::segment;
use crate::ui::view::DigestView;
use engine::digest_schedule::DigestPlan;
use model::{Batch, BatchKind, Commit, DeliveryId, DueDelivery, ReceiverName, Timestamp, digest};
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
    /// Where the mail stands as HTML.
    frame: Option<String>,
    /// Where a test of it is sent from.
    test: String,
}

pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> DeskResult {
    let now = deps.clock.now();
    let live = deps.live.load_full();
    let overview = deps.store.notification_overview(now, now - digest::DAY).await?;
    let mut digests = Vec::new();
    for (plan, view) in live.policy.digests.iter().zip(DigestView::all(&live.policy.digests, &live.subscribers, &overview, now)) {
        let mail = next(&deps, plan, now).await?;
        let frame = format!("/digests/{}/preview", segment(plan.receiver.as_str()));
        let (subject, text, has_html) = mail.map(|mail| (mail.subject, mail.text, mail.html.is_some())).unwrap_or_default();
        let test = format!("/digests/{}/test", segment(plan.receiver.as_str()));
        digests.push(NextDigest { test, view, subject, text, frame: has_html.then_some(frame) });
    }
    let mut response = shown("digests.html", &still_frame(Section::Digests, &visitor, now, &done), &DigestsPage { now, digests });
    // The only page with a frame in it: the mail, from here.
    if let Ok(policy) = HeaderValue::try_from(format!("{CONTENT_POLICY}; frame-src 'self'")) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// `GET /digests/{receiver}/preview`: the HTML of the mail, for a frame on the page: styled by itself, and able to do nothing.
pub(super) async fn preview(State(deps): State<HttpDeps>, Path(receiver): Path<String>) -> DeskResult {
    let now = deps.clock.now();
    let live = deps.live.load_full();
    let mail = next(&deps, plan_of(&live, &receiver)?, now).await?;
    Ok(framed(mail.and_then(|mail| mail.html).unwrap_or_default()))
}

/// `POST /digests/{receiver}/test`: sends the digest to its receiver as it would be now, marked as a test.
pub(super) async fn test(State(deps): State<HttpDeps>, Path(receiver): Path<String>) -> DeskResult {
    let (now, live) = (deps.clock.now(), deps.live.load_full());
    let notice = digest_test(&deps.store, &live.watch, plan_of(&live, &receiver)?, now).await?;
    deps.store.commit(Commit { at: now, notifications: vec![notice], ..Commit::default() }).await?;
    (deps.wake)();
    tracing::info!(receiver, "a test of a digest was sent by hand");
    Ok(see("/digests?done=digest-tested"))
}

fn plan_of<'l>(live: &'l LiveConfig, receiver: &str) -> Result<&'l DigestPlan, PageError> {
    let plan = live.policy.digests.iter().find(|plan| plan.receiver.as_str() == receiver);
    plan.ok_or_else(|| PageError::NotFound {
        title: "No such digest".to_owned(),
        text: "No receiver of this name gets a digest.".to_owned(),
        search: None,
    })
}

fn framed(html: String) -> Response {
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox",
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response()
}

/// The mail that the next digest would be if its time came now.
async fn next(deps: &HttpDeps, plan: &DigestPlan, now: Timestamp) -> Result<Option<Mail>, StoreError> {
    let digest = digest_now(&deps.store, &deps.live.load_full().watch, plan, now).await?;
    let notification = digest.notice(&plan.receiver, now);
    let delivery = DueDelivery {
        id: DeliveryId(0),
        webhook_id: String::new(),
        receiver: ReceiverName::from(plan.receiver.as_str()),
        attempts: 0,
        tries: 0,
        created_at: now,
        due_at: now,
        notifications: vec![notification],
        bundle: Batch { shape: BatchKind::Digest, ..Batch::default() },
        over: Vec::new(),
    };
    let external = deps.external_url.as_ref().map(url::Url::as_str);
    Ok(compose(&Brief { delivery: &delivery, external_url: external, now }, None))
}
