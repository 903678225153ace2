//! `/api/silences` and `/api/acks`: silences and acknowledgements. Authorization has checked the token of each write.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::operations::SILENCE_PREVIEW;
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::parameters::MATCHER;
use crate::http::request_limits::ReadDeps;
use model::{
    Ack, AckResult, AlertId, Matcher, MatcherError, SilenceError, SilencePreview, SilenceRequest, SilenceView, Timestamp,
    all_match, checked_ack_texts, config::Span, read_matchers,
};
use store::StoreError;

/// The body of `POST /api/silences`. A matcher is a text (`token="arbitrum"`) or an object as in the API of Alertmanager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewSilence {
    matchers: Vec<NewMatcher>,
    #[serde(alias = "createdBy")]
    author: String,
    comment: String,
    /// The aliases are the options of `cliffwatch silence`, with the same formats.
    #[serde(default, alias = "from", deserialize_with = "time")]
    starts_at: Option<Timestamp>,
    #[serde(default, alias = "until", deserialize_with = "time")]
    ends_at: Option<Timestamp>,
    /// An alternative to `endsAt`, such as `2h`.
    #[serde(default, alias = "for")]
    duration: Option<String>,
    /// Whether to only return a preview.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NewMatcher {
    Text(String),
    #[serde(rename_all = "camelCase")]
    Object {
        name: String,
        value: String,
        #[serde(default)]
        is_regex: bool,
        #[serde(default = "default_true")]
        is_equal: bool,
    },
}

/// Accepts an instant such as `2026-03-09T12:00:00Z`, or a date, which means midnight UTC.
fn time<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let at = model::wire::parse_timestamp(&text);
    at.map(Some)
        .ok_or_else(|| serde::de::Error::custom("not a valid time: expected a value such as 2026-03-09T12:00:00Z or 2026-03-09"))
}

fn default_true() -> bool {
    true
}

impl NewMatcher {
    fn parse(self) -> Result<Matcher, SilenceError> {
        let (text, parsed) = match self {
            NewMatcher::Text(text) => (text.clone(), Matcher::parse(&text)),
            NewMatcher::Object { name, value, is_regex, is_equal } => {
                (name.clone(), Matcher::of(&name, &value, is_regex, is_equal))
            }
        };
        parsed.map_err(|MatcherError { message, help }| SilenceError::Matcher {
            text,
            why: help.map_or(message.clone(), |help| format!("{message}; {help}")),
        })
    }
}

fn bad_request(error: &SilenceError) -> WebError {
    WebError::bad_request(error.to_string())
}

type JsonBody<T> = Result<Json<T>, axum::extract::rejection::JsonRejection>;

fn body<T>(posted: JsonBody<T>) -> Result<T, WebError> {
    posted.map(|Json(posted)| posted).map_err(|rejection| WebError::bad_request(rejection.body_text()))
}

/// `GET /api/silences`: pending and active silences.
pub(super) async fn list(State(deps): State<HttpDeps>) -> Result<Json<Vec<SilenceView>>, WebError> {
    let now = deps.app.clock.now();
    let silences = deps.app.store.silences(Some(now)).await?;
    Ok(Json(silences.into_iter().map(|silence| SilenceView::of(silence, now)).collect()))
}

/// `GET /api/silences/preview`: the alerts that a silence would suppress. A read, so it needs no token on loopback.
pub(super) async fn preview(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Json<SilencePreview>, WebError> {
    let query = SILENCE_PREVIEW.query(&uri)?;
    let matchers = read_matchers(query.all(MATCHER)).map_err(|error| bad_request(&error))?;
    if matchers.is_empty() {
        return Err(bad_request(&SilenceError::NoMatchers));
    }
    Ok(Json(preview_matchers(&deps, &matchers).await?))
}

/// Returns the open alerts and the notifications of the last week that a silence would suppress.
pub(in crate::http) async fn preview_matchers(deps: &HttpDeps, matchers: &[Matcher]) -> Result<SilencePreview, StoreError> {
    let matchers = matchers.to_vec();
    deps.app.store.preview(move |labels| all_match(&matchers, labels), deps.app.clock.now()).await
}

/// `POST /api/silences`.
pub(super) async fn create(State(deps): State<HttpDeps>, posted: JsonBody<NewSilence>) -> Result<Response, WebError> {
    let posted = body(posted)?;
    let now = deps.app.clock.now();
    let matchers = posted.matchers.into_iter().map(NewMatcher::parse).collect::<Result<Vec<_>, _>>();
    let matchers = matchers.map_err(|error| bad_request(&error))?;
    let starts_at = posted.starts_at.unwrap_or(now);
    let ends_at = match (posted.ends_at, posted.duration) {
        (Some(_), Some(_)) => return Err(WebError::bad_request("`endsAt` and `duration` exclude each other: use one of them")),
        (Some(ends_at), None) => ends_at,
        (None, Some(duration)) => {
            let span: Span = duration.parse().map_err(|error| WebError::bad_request(format!("duration: {error}")))?;
            SilenceRequest::end_after(starts_at, span)
        }
        (None, None) => return Err(WebError::bad_request("the end is missing: set `endsAt`, or `duration` such as \"2h\"")),
    };
    let request =
        SilenceRequest { matchers, author: posted.author, comment: posted.comment, starts_at: posted.starts_at, ends_at };
    let silence = request.into_silence(now).map_err(|error| bad_request(&error))?;
    let hides = preview_matchers(&deps, &silence.matchers).await?;
    if posted.dry_run {
        return Ok(Json(json!({ "silence": SilenceView::of(silence, now), "hides": hides })).into_response());
    }
    deps.app.store.put_silence(silence.clone()).await?;
    tracing::info!(silence = silence.id, author = silence.author, matchers = silence.matchers_line(), "silence created");
    let response = json!({ "id": silence.id, "silenceID": silence.id, "silence": SilenceView::of(silence, now), "hides": hides });
    Ok((StatusCode::CREATED, Json(response)).into_response())
}

/// `DELETE /api/silences/{id}`.
pub(super) async fn expire(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, WebError> {
    if deps.app.store.expire_silence(id.clone(), deps.app.clock.now()).await? {
        tracing::info!(silence = id, "silence expired");
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Err(WebError::not_found("No such silence", "no active or pending silence has this id"))
}

/// `GET /api/acks`.
pub(super) async fn acks(State(deps): State<HttpDeps>) -> Result<Json<Vec<Ack>>, WebError> {
    Ok(Json(deps.app.store.acks().await?))
}

/// The body of `POST /api/acks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAck {
    alert: String,
    author: String,
    #[serde(default)]
    comment: String,
}

/// `POST /api/acks`.
pub(super) async fn acknowledge(State(deps): State<HttpDeps>, posted: JsonBody<NewAck>) -> Result<Response, WebError> {
    let NewAck { alert, author, comment } = body(posted)?;
    let (author, comment) = checked_ack_texts(&author, &comment).map_err(|error| bad_request(&error))?;
    match deps.app.store.acknowledge(alert, author, comment, deps.app.clock.now()).await? {
        AckResult::Done(alert) => Ok((StatusCode::CREATED, Json(json!({ "alert": alert.id }))).into_response()),
        AckResult::Unknown => Err(WebError::not_found("No such alert", "no pending or firing alert has this id")),
        AckResult::Several(ids) => {
            let ids = ids.iter().map(AlertId::as_str).collect::<Vec<_>>().join(", ");
            Err(WebError::bad_request(format!("the id is ambiguous: it is the start of {ids}")))
        }
    }
}
