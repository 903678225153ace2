//! The unsubscribe links in digests (RFC 8058). A `GET` shows a page with a button, because mail scanners open links. A `POST` by the
//! button or the mail program stops the digest, never alerts. No login: the link identifies the recipient.

use std::sync::LazyLock;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::{AutoEscape, Environment, context};

use super::HttpDeps;
use super::error::WebError;
use model::{Actor, ActorSource, OptOut, OptOutSource};
pub(super) use notify::unsubscribe::PATH;
use notify::unsubscribe::{Subscriber, owner};

/// The state that the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    Subscribed,
    /// Unsubscribed before this request.
    Stopped,
    /// Unsubscribed by this request.
    Done,
    /// No recipient has this link.
    Unknown,
}

impl Subscription {
    fn as_str(self) -> &'static str {
        match self {
            Subscription::Subscribed => "subscribed",
            Subscription::Stopped => "stopped",
            Subscription::Done => "done",
            Subscription::Unknown => "unknown",
        }
    }
}

/// `GET /unsubscribe/{tag}`: shows a page with a button.
pub(super) async fn form(State(deps): State<HttpDeps>, Path(tag): Path<String>) -> Result<Response, WebError> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Subscription::Unknown, None)) };
    let stopped = deps.app.store.opt_outs(Some(subscriber.receiver.clone())).await?;
    let has_stopped = stopped.iter().any(|opt_out| opt_out.address == subscriber.address);
    Ok(page(if has_stopped { Subscription::Stopped } else { Subscription::Subscribed }, Some(&subscriber)))
}

/// `POST /unsubscribe/{tag}`: stops the digest. Idempotent.
pub(super) async fn unsubscribe(State(deps): State<HttpDeps>, Path(tag): Path<String>) -> Result<Response, WebError> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Subscription::Unknown, None)) };
    let Subscriber { receiver, address } = subscriber.clone();
    let store = deps.app.store.acting_as(Actor { name: address.clone(), via: ActorSource::Link });
    let opt_out = OptOut { receiver, address, at: deps.app.clock.now(), via: OptOutSource::Link };
    if store.opt_out(opt_out).await? {
        tracing::info!(receiver = %subscriber.receiver, "recipient unsubscribed from the digest by link");
    }
    Ok(page(Subscription::Done, Some(&subscriber)))
}

async fn find(deps: &HttpDeps, tag: &str) -> Result<Option<Subscriber>, WebError> {
    // Without a key, no link exists.
    let key = deps.app.store.link_key().await?;
    Ok(key.and_then(|key| owner(&key, tag, &deps.app.live.load().subscribers).cloned()))
}

fn page(subscription: Subscription, subscriber: Option<&Subscriber>) -> Response {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment
    });
    let values = context! {
        status => subscription.as_str(),
        receiver => subscriber.map(|subscriber| model::text::harmless(subscriber.receiver.as_str())),
        address => subscriber.map(|subscriber| model::text::harmless(&subscriber.address)),
    };
    let status = if subscription == Subscription::Unknown { StatusCode::NOT_FOUND } else { StatusCode::OK };
    match TEMPLATES.render_named_str("unsubscribe.html", include_str!("unsubscribe.html"), values) {
        Ok(html) => {
            // This page has inline styles, because it loads nothing.
            let policy = HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
            );
            // The URL is a credential, so other sites must not get it as the referrer.
            let referrer = HeaderValue::from_static("no-referrer");
            (status, [(header::CONTENT_SECURITY_POLICY, policy), (header::REFERRER_POLICY, referrer)], Html(html)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "cannot render the unsubscribe page");
            (status, format!("{}\n", subscription.as_str())).into_response()
        }
    }
}
