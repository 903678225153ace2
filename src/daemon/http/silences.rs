//! Silences and acknowledgements by HTTP: `/api/silences`, `/api/acks`. The gate has posted for the token before anything is written.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::{HttpDeps, HttpError};
use model::{
    Ack, AckResult, AlertId, Matcher, MatcherError, SilenceError, SilencePreview, SilenceRequest, SilenceView, Timestamp,
    ack_words, all_match, config::Span, read_matchers,
};
use store::StoreError;

/// What is posted to make a silence. Matchers are texts (`token="arbitrum"`) or the objects that Alertmanager's own clients send.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewSilence {
    matchers: Vec<NewMatcher>,
    #[serde(alias = "createdBy")]
    author: String,
    comment: String,
    /// Times and lengths are read as the command line reads those of `--from`, `--until` and `--for`, and may be called so.
    #[serde(default, alias = "from", deserialize_with = "time")]
    starts_at: Option<Timestamp>,
    #[serde(default, alias = "until", deserialize_with = "time")]
    ends_at: Option<Timestamp>,
    /// Instead of `endsAt`: `2h`.
    #[serde(default, alias = "for")]
    duration: Option<String>,
    /// Only say what it would hide.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NewMatcher {
    Text(String),
    #[serde(rename_all = "camelCase")]
    Parts {
        name: String,
        value: String,
        #[serde(default)]
        is_regex: bool,
        #[serde(default = "yes")]
        is_equal: bool,
    },
}

/// `2026-03-09T12:00:00Z`, or a date for its midnight, UTC.
fn time<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let at = model::wire::parse_timestamp(&text);
    at.map(Some).ok_or_else(|| serde::de::Error::custom("write a time like 2026-03-09T12:00:00Z or 2026-03-09"))
}

fn yes() -> bool {
    true
}

impl NewMatcher {
    fn read(self) -> Result<Matcher, SilenceError> {
        let (text, read) = match self {
            NewMatcher::Text(text) => (text.clone(), Matcher::parse(&text)),
            NewMatcher::Parts { name, value, is_regex, is_equal } => {
                (name.clone(), Matcher::of(&name, &value, is_regex, is_equal))
            }
        };
        read.map_err(|MatcherError { message, help }| SilenceError::Matcher {
            text,
            why: help.map_or(message.clone(), |help| format!("{message}; {help}")),
        })
    }
}

fn refused(error: &SilenceError) -> HttpError {
    HttpError::Bad(error.to_string())
}

type JsonBody<T> = Result<Json<T>, axum::extract::rejection::JsonRejection>;

fn body<T>(posted: JsonBody<T>) -> Result<T, HttpError> {
    posted.map(|Json(posted)| posted).map_err(|rejection| HttpError::Bad(rejection.body_text()))
}

/// `GET /api/silences`: those that are not over.
pub(super) async fn list(State(deps): State<HttpDeps>) -> Result<Json<Vec<SilenceView>>, HttpError> {
    let now = deps.clock.now();
    let silences = deps.store.silences(Some(now)).await?;
    Ok(Json(silences.into_iter().map(|silence| SilenceView::of(silence, now)).collect()))
}

/// `GET /api/silences/preview`: what a silence with these matchers would hide. It changes nothing, so it needs no token on loopback.
pub(super) async fn preview(State(deps): State<HttpDeps>, RawQuery(query): RawQuery) -> Result<Json<SilencePreview>, HttpError> {
    let query = query.unwrap_or_default();
    let mut texts = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "matcher" => texts.push(value.into_owned()),
            _ => {
                return Err(HttpError::Bad(format!(
                    "`{name}` is no parameter here; there is matcher, which may be given several times"
                )));
            }
        }
    }
    let matchers = read_matchers(texts.iter().map(String::as_str)).map_err(|error| refused(&error))?;
    if matchers.is_empty() {
        return Err(refused(&SilenceError::NoMatchers));
    }
    Ok(Json(hidden_by(&deps, &matchers).await?))
}

/// What matchers take of what is open, and of last week's messages.
pub(super) async fn hidden_by(deps: &HttpDeps, matchers: &[Matcher]) -> Result<SilencePreview, StoreError> {
    let matchers = matchers.to_vec();
    deps.store.preview(move |labels| all_match(&matchers, labels), deps.clock.now()).await
}

/// `POST /api/silences`.
pub(super) async fn add(State(deps): State<HttpDeps>, posted: JsonBody<NewSilence>) -> Result<Response, HttpError> {
    let posted = body(posted)?;
    let now = deps.clock.now();
    let matchers = posted.matchers.into_iter().map(NewMatcher::read).collect::<Result<Vec<_>, _>>();
    let matchers = matchers.map_err(|error| refused(&error))?;
    let begin = posted.starts_at.unwrap_or(now);
    let ends_at = match (posted.ends_at, posted.duration) {
        (Some(_), Some(_)) => return Err(HttpError::Bad("give `endsAt` or `duration`, not both".to_owned())),
        (Some(ends_at), None) => ends_at,
        (None, Some(duration)) => {
            let span: Span = duration.parse().map_err(|error| HttpError::Bad(format!("duration: {error}")))?;
            SilenceRequest::end_after(begin, span)
        }
        (None, None) => return Err(HttpError::Bad("give `endsAt`, or `duration` such as \"2h\"".to_owned())),
    };
    let wish = SilenceRequest { matchers, author: posted.author, comment: posted.comment, starts_at: posted.starts_at, ends_at };
    let silence = wish.grant(now).map_err(|error| refused(&error))?;
    let hides = hidden_by(&deps, &silence.matchers).await?;
    if posted.dry_run {
        return Ok(Json(json!({ "silence": SilenceView::of(silence, now), "hides": hides })).into_response());
    }
    deps.store.put_silence(silence.clone()).await?;
    tracing::info!(silence = silence.id, author = silence.author, matchers = silence.matchers_line(), "a silence was made");
    let answer = json!({ "id": silence.id, "silenceID": silence.id, "silence": SilenceView::of(silence, now), "hides": hides });
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// `DELETE /api/silences/{id}`.
pub(super) async fn expire(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, HttpError> {
    if deps.store.expire_silence(id.clone(), deps.clock.now()).await? {
        tracing::info!(silence = id, "a silence was ended");
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let problem = json!({ "error": "no silence of this id holds" });
    Ok((StatusCode::NOT_FOUND, Json(problem)).into_response())
}

/// `GET /api/acks`.
pub(super) async fn acks(State(deps): State<HttpDeps>) -> Result<Json<Vec<Ack>>, HttpError> {
    Ok(Json(deps.store.acks().await?))
}

/// What is posted to acknowledge an alert.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAck {
    alert: String,
    author: String,
    #[serde(default)]
    comment: String,
}

/// `POST /api/acks`.
pub(super) async fn acknowledge(State(deps): State<HttpDeps>, posted: JsonBody<NewAck>) -> Result<Response, HttpError> {
    let NewAck { alert, author, comment } = body(posted)?;
    let (author, comment) = ack_words(&author, &comment).map_err(|error| refused(&error))?;
    match deps.store.acknowledge(alert, author, comment, deps.clock.now()).await? {
        AckResult::Done(alert) => Ok((StatusCode::CREATED, Json(json!({ "alert": alert.id }))).into_response()),
        AckResult::Unknown => {
            Ok((StatusCode::NOT_FOUND, Json(json!({ "error": "no alert of this id is pending or fires" }))).into_response())
        }
        AckResult::Several(ids) => {
            let ids = ids.iter().map(AlertId::as_str).collect::<Vec<_>>().join(", ");
            Err(HttpError::Bad(format!("several alerts have ids that begin like this: {ids}")))
        }
    }
}
