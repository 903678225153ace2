//! The pages behind the links in digests (RFC 8058): looking changes nothing, since programs open links too; the button, or a mail
//! program in its place, stops the digest. No login: the link itself proves to whom it was sent. Nothing here stops an alert.

use std::sync::LazyLock;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::{AutoEscape, Environment, context};

use super::{HttpDeps, HttpError};
use model::{OptOut, OptOutSource};
pub(super) use notify::unsubscribe::PATH;
use notify::unsubscribe::{Subscriber, owner};

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    /// They get digests.
    Subscribed,
    /// They do not, as they said before.
    Stopped,
    /// They just said so.
    Done,
    /// The link is nobody's.
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

/// `GET /unsubscribe/{tag}`: a page with a button.
pub(super) async fn ask(State(deps): State<HttpDeps>, Path(tag): Path<String>) -> Result<Response, HttpError> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Subscription::Unknown, None)) };
    let stopped = deps.store.opt_outs(Some(subscriber.receiver.clone())).await?;
    let has_stopped = stopped.iter().any(|wish| wish.address == subscriber.address);
    Ok(page(if has_stopped { Subscription::Stopped } else { Subscription::Subscribed }, Some(&subscriber)))
}

/// `POST /unsubscribe/{tag}`: stops the digest. Twice is once.
pub(super) async fn stop(State(deps): State<HttpDeps>, Path(tag): Path<String>) -> Result<Response, HttpError> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Subscription::Unknown, None)) };
    let Subscriber { receiver, address } = subscriber.clone();
    let wish = OptOut { receiver, address, at: deps.clock.now(), via: OptOutSource::Link };
    if deps.store.opt_out(wish).await? {
        tracing::info!(receiver = %subscriber.receiver, "a recipient stopped the digest by its link");
    }
    Ok(page(Subscription::Done, Some(&subscriber)))
}

async fn find(deps: &HttpDeps, tag: &str) -> Result<Option<Subscriber>, HttpError> {
    // Without a key no link was ever made.
    let key = deps.store.link_key().await?;
    Ok(key.and_then(|key| owner(&key, tag, &deps.live.load().subscribers).cloned()))
}

fn page(subscription: Subscription, subscriber: Option<&Subscriber>) -> Response {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment
    });
    let values = context! {
        standing => subscription.as_str(),
        receiver => subscriber.map(|subscriber| model::text::harmless(subscriber.receiver.as_str())),
        address => subscriber.map(|subscriber| model::text::harmless(&subscriber.address)),
    };
    let status = if subscription == Subscription::Unknown { StatusCode::NOT_FOUND } else { StatusCode::OK };
    match TEMPLATES.render_named_str("unsubscribe.html", include_str!("unsubscribe.html"), values) {
        Ok(html) => {
            // The only page with a form, which goes back to where it came from.
            let policy = HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
            );
            // Its address proves who reads it: nobody else is to see where they came from.
            let referrer = HeaderValue::from_static("no-referrer");
            (status, [(header::CONTENT_SECURITY_POLICY, policy), (header::REFERRER_POLICY, referrer)], Html(html)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the page to stop digests cannot be rendered");
            (status, format!("{}\n", subscription.as_str())).into_response()
        }
    }
}
