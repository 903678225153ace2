//! The pages behind the links in digests (RFC 8058): looking changes nothing, since programs open links too; the button, or a mail
//! program in its place, stops the digest. No login: the link itself proves to whom it was sent. Nothing here stops an alert.

use std::sync::LazyLock;

use axum::{
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use minijinja::{AutoEscape, Environment, context};

use super::{Deps, Refusal};
pub(super) use crate::notify::unsubscribe::PATH;
use crate::{
    notify::unsubscribe::{Subscriber, owner},
    store::model::{OptOut, Via},
};

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// They get digests.
    Subscribed,
    /// They do not, as they said before.
    Stopped,
    /// They just said so.
    Done,
    /// The link is nobody's.
    Unknown,
}

impl Standing {
    fn as_str(self) -> &'static str {
        match self {
            Standing::Subscribed => "subscribed",
            Standing::Stopped => "stopped",
            Standing::Done => "done",
            Standing::Unknown => "unknown",
        }
    }
}

/// `GET /unsubscribe/{tag}`: a page with a button.
pub(super) async fn ask(State(deps): State<Deps>, Path(tag): Path<String>) -> Result<Response, Refusal> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Standing::Unknown, None)) };
    let stopped = deps.store.opt_outs(Some(subscriber.receiver.clone())).await?;
    let has_stopped = stopped.iter().any(|wish| wish.address == subscriber.address);
    Ok(page(if has_stopped { Standing::Stopped } else { Standing::Subscribed }, Some(&subscriber)))
}

/// `POST /unsubscribe/{tag}`: stops the digest. Twice is once.
pub(super) async fn stop(State(deps): State<Deps>, Path(tag): Path<String>) -> Result<Response, Refusal> {
    let Some(subscriber) = find(&deps, &tag).await? else { return Ok(page(Standing::Unknown, None)) };
    let Subscriber { receiver, address } = subscriber.clone();
    let wish = OptOut { receiver, address, at: deps.clock.now(), via: Via::Link };
    if deps.store.opt_out(wish).await? {
        tracing::info!(receiver = %subscriber.receiver, "a recipient stopped the digest by its link");
    }
    Ok(page(Standing::Done, Some(&subscriber)))
}

async fn find(deps: &Deps, tag: &str) -> Result<Option<Subscriber>, Refusal> {
    // Without a key no link was ever made.
    let key = deps.store.link_key().await?;
    Ok(key.and_then(|key| owner(&key, tag, &(deps.audience)().subscribers).cloned()))
}

fn page(standing: Standing, subscriber: Option<&Subscriber>) -> Response {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment
    });
    let values = context! {
        standing => standing.as_str(),
        receiver => subscriber.map(|subscriber| crate::diagnostic::harmless(subscriber.receiver.as_str())),
        address => subscriber.map(|subscriber| crate::diagnostic::harmless(&subscriber.address)),
    };
    let status = if standing == Standing::Unknown { StatusCode::NOT_FOUND } else { StatusCode::OK };
    match TEMPLATES.render_named_str("unsubscribe.html", include_str!("unsubscribe.html"), values) {
        Ok(html) => {
            // The only page with a form, which goes back to where it came from.
            let policy = HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
            );
            (status, [(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the page to stop digests cannot be rendered");
            (status, format!("{}\n", standing.as_str())).into_response()
        }
    }
}
