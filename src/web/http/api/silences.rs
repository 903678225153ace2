//! `/api/v1/silences` and `/api/v1/acks`: silences and acknowledgements. Authorization has checked the token of each write.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::operations::SILENCE_PREVIEW;
use crate::http::HttpDeps;
use crate::http::access::ActDeps;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::idempotency::{Acted, RequestKey, perform};
use crate::http::json_body::{FieldNames, JsonBody};
use crate::http::parameters::MATCHER;
use crate::http::request_limits::ReadDeps;
use daemon::token_names::resolve_matchers;
use model::silence::{self, MAX_AUTHOR, MAX_COMMENT};
use model::{
    Ack, ActionOutcome, AlertId, Matcher, MatcherError, MatcherSets, Silence, SilenceError, SilencePreview, SilenceRequest,
    SilenceView, Timestamp, UserAction, checked_ack_texts, config::Span, read_matchers,
};
use store::StoreError;

/// The fields of the body of `POST /api/v1/silences`. The other names are those of Alertmanager, or options of `cliffwatch silence`.
const SILENCE_FIELDS: &[FieldNames] = &[
    ("matchers", None),
    ("author", Some("createdBy")),
    ("comment", None),
    ("startsAt", Some("from")),
    ("endsAt", Some("until")),
    ("duration", Some("for")),
    ("dryRun", None),
];

/// The fields of a matcher that is an object, as in the API of Alertmanager.
const MATCHER_FIELDS: &[FieldNames] = &[("name", None), ("value", None), ("isRegex", None), ("isEqual", None)];

/// The body of `POST /api/v1/silences`.
#[derive(Debug)]
struct NewSilence {
    matchers: Vec<Matcher>,
    author: String,
    comment: String,
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    /// An alternative to `ends_at`.
    duration: Option<Span>,
    /// Whether to only return a preview.
    is_dry_run: bool,
}

impl NewSilence {
    fn parse(body: JsonBody) -> Result<Self, WebError> {
        let body = body.with_fields(SILENCE_FIELDS)?;
        let duration = body.text("duration")?.map(|text| text.parse::<Span>());
        let duration = duration.transpose().map_err(|error| WebError::invalid_body(format!("duration: {error}")))?;
        Ok(Self {
            matchers: body.required_list("matchers")?.iter().map(parse_matcher).collect::<Result<_, _>>()?,
            author: body.required_text("author")?,
            comment: body.required_text("comment")?,
            starts_at: body.time("startsAt")?,
            ends_at: body.time("endsAt")?,
            duration,
            is_dry_run: body.boolean("dryRun")?,
        })
    }
}

/// Parses a matcher: a text (`token="arbitrum"`) or an object as in the API of Alertmanager.
pub(super) fn parse_matcher(value: &Value) -> Result<Matcher, WebError> {
    let (text, parsed) = if let Some(text) = value.as_str() {
        (text.to_owned(), Matcher::parse(text))
    } else {
        let expected =
            || WebError::invalid_body("matchers: expected texts such as token=\"arbitrum\", or objects with `name` and `value`");
        let body = JsonBody::try_from(value).map_err(|()| expected())?.with_fields(MATCHER_FIELDS)?;
        let (name, value) = (body.required_text("name")?, body.required_text("value")?);
        let matcher = Matcher::of(&name, &value, body.boolean("isRegex")?, body.boolean_or("isEqual", true)?);
        (name, matcher)
    };
    parsed.map_err(|MatcherError { message, help }| {
        let why = help.map_or(message.clone(), |help| format!("{message}; {help}"));
        invalid_body(&SilenceError::Matcher { text, why })
    })
}

fn invalid_body(error: &SilenceError) -> WebError {
    WebError::invalid_body(error.to_string())
}

fn invalid_parameter(error: &SilenceError) -> WebError {
    WebError::invalid_parameter(error.to_string())
}

/// `GET /api/v1/silences`: pending and active silences.
pub(super) async fn list(State(deps): State<HttpDeps>) -> Result<Json<Vec<SilenceView>>, WebError> {
    let now = deps.app.clock.now();
    let silences = deps.app.store.silences(Some(now)).await?;
    Ok(Json(silences.into_iter().map(|silence| SilenceView::of(silence, now)).collect()))
}

/// `GET /api/v1/silences/{id}`: a pending or active silence.
pub(super) async fn show(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Json<SilenceView>, WebError> {
    let now = deps.app.clock.now();
    let found = deps.app.store.silences(Some(now)).await?.into_iter().find(|silence| silence.id == id);
    Ok(Json(SilenceView::of(found.ok_or_else(unknown_silence)?, now)))
}

/// `GET /api/v1/silences/preview`: the alerts that a silence would suppress. A read, so it needs no token on loopback.
pub(super) async fn preview(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Json<SilencePreview>, WebError> {
    let query = SILENCE_PREVIEW.query(&uri)?;
    let matchers = read_matchers(query.all(MATCHER)).map_err(|error| invalid_parameter(&error))?;
    silence::check_count(&matchers).map_err(|error| invalid_parameter(&error))?;
    let matchers = resolve_matchers(&deps.app.store, matchers).await?;
    Ok(Json(preview_matchers(&deps, &matchers).await?))
}

/// Returns the open alerts and the notifications of the last week that a silence would suppress.
pub(in crate::http) async fn preview_matchers(deps: &HttpDeps, matchers: &[Matcher]) -> Result<SilencePreview, StoreError> {
    deps.app.store.preview(MatcherSets::new([matchers.to_vec()]), deps.app.clock.now()).await
}

impl NewSilence {
    /// Returns the request, with the slugs of the tokens that the matchers name.
    async fn resolve(self, deps: &HttpDeps, starts_at: Timestamp) -> Result<SilenceRequest, WebError> {
        let ends_at = match (self.ends_at, self.duration) {
            (Some(_), Some(_)) => {
                return Err(WebError::invalid_body("`endsAt` and `duration` exclude each other: use one of them"));
            }
            (Some(ends_at), None) => ends_at,
            (None, Some(span)) => SilenceRequest::end_after(self.starts_at.unwrap_or(starts_at), span),
            (None, None) => {
                return Err(WebError::invalid_body("the end is missing: set `endsAt`, or `duration` such as \"2h\""));
            }
        };
        silence::check_count(&self.matchers).map_err(|error| invalid_body(&error))?;
        let matchers = resolve_matchers(&deps.app.store, self.matchers).await?;
        Ok(SilenceRequest { matchers, author: self.author, comment: self.comment, starts_at: self.starts_at, ends_at })
    }
}

fn silence_json(silence: Silence, hides: &SilencePreview, now: Timestamp) -> Value {
    json!({ "id": silence.id, "silenceID": silence.id, "silence": SilenceView::of(silence, now), "hides": hides })
}

/// `POST /api/v1/silences`.
pub(super) async fn create(
    ActDeps(deps): ActDeps,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let posted = NewSilence::parse(body)?;
    let (now, is_dry_run) = (deps.app.clock.now(), posted.is_dry_run);
    let silence = posted.resolve(&deps, now).await?.into_silence(now).map_err(|error| invalid_body(&error))?;
    let hides = preview_matchers(&deps, &silence.matchers).await?;
    if is_dry_run {
        return Ok(Json(json!({ "silence": SilenceView::of(silence, now), "hides": hides })).into_response());
    }
    let made = silence_json(silence.clone(), &hides, now);
    let action = UserAction::CreateSilence(silence.clone());
    let acted = perform(&deps, key, action, move |_| (StatusCode::CREATED, made)).await?;
    tracing::info!(silence = silence.id, author = silence.author, matchers = silence.matchers_line(), "silence created");
    response(acted)
}

/// `PUT /api/v1/silences/{id}`: replaces the values of a silence that has not expired. It keeps its id, and its start once it has begun.
pub(super) async fn update(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let posted = NewSilence::parse(body)?;
    let (now, is_dry_run) = (deps.app.clock.now(), posted.is_dry_run);
    let former = deps.app.store.silences(Some(now)).await?.into_iter().find(|silence| silence.id == id);
    let former = former.ok_or_else(unknown_silence)?;
    let request = posted.resolve(&deps, former.starts_at.max(now)).await?;
    let hides = preview_matchers(&deps, &request.matchers).await?;
    if is_dry_run {
        let silence = request.into_update(&former, now).map_err(|error| invalid_body(&error))?;
        return Ok(Json(json!({ "silence": SilenceView::of(silence, now), "hides": hides })).into_response());
    }
    let action = UserAction::UpdateSilence { id: id.clone(), request };
    let acted = perform(&deps, key, action, move |outcome| {
        let body = match outcome {
            ActionOutcome::SilenceUpdated(silence) => silence_json(silence.clone(), &hides, now),
            _ => Value::Null,
        };
        (StatusCode::OK, body)
    });
    let response = match acted.await? {
        Acted::Response(response) => response,
        Acted::Failed(ActionOutcome::InvalidSilence(error)) => return Err(invalid_body(&error)),
        Acted::Failed(_) => return Err(unknown_silence()),
    };
    tracing::info!(silence = id, "silence updated");
    Ok(response)
}

pub(super) fn unknown_silence() -> WebError {
    WebError::new(ErrorCode::UnknownSilence, "no active or pending silence has this id")
}

fn response(acted: Acted) -> Result<Response, WebError> {
    match acted {
        Acted::Response(response) => Ok(response),
        Acted::Failed(_) => Err(unknown_silence()),
    }
}

/// `DELETE /api/v1/silences/{id}`.
pub(super) async fn expire(ActDeps(deps): ActDeps, Path(id): Path<String>) -> Result<Response, WebError> {
    if deps.app.store.expire_silence(id.clone(), deps.app.clock.now()).await? {
        tracing::info!(silence = id, "silence expired");
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Err(unknown_silence())
}

/// `GET /api/v1/acks`.
pub(super) async fn acks(State(deps): State<HttpDeps>) -> Result<Json<Vec<Ack>>, WebError> {
    Ok(Json(deps.app.store.acks().await?))
}

/// The fields of the body of `POST /api/v1/acks`.
const ACK_FIELDS: &[FieldNames] = &[("alert", None), ("author", None), ("comment", None)];

/// `POST /api/v1/acks`.
pub(super) async fn acknowledge(
    ActDeps(deps): ActDeps,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let body = body.with_fields(ACK_FIELDS)?;
    let (alert, author) = (body.required_text("alert")?, body.required_text("author")?);
    let comment = body.text("comment")?.unwrap_or_default();
    let texts = checked_ack_texts(&author, &comment);
    let (author, comment) = texts.map_err(|_| {
        let limits = format!("`author` has 1 to {MAX_AUTHOR} characters, and `comment` at most {MAX_COMMENT}");
        WebError::invalid_body(limits)
    })?;
    let action = UserAction::Acknowledge { alert, author, comment };
    let acted = perform(&deps, key, action, |outcome| match outcome {
        ActionOutcome::Acknowledged(alert) => (StatusCode::CREATED, json!({ "alert": alert })),
        _ => (StatusCode::CREATED, Value::Null),
    });
    match acted.await? {
        Acted::Response(response) => Ok(response),
        Acted::Failed(ActionOutcome::Ambiguous(ids)) => {
            let listed = ids.iter().map(AlertId::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("several alerts have an id with this beginning: {listed}");
            Err(WebError::new(ErrorCode::AmbiguousAlert, message).with_suggestions(&ids))
        }
        Acted::Failed(_) => Err(WebError::new(ErrorCode::UnknownAlert, "no pending or firing alert has this id")),
    }
}

/// `DELETE /api/v1/acks/{id}`: removes the acknowledgement of an alert, so that its reminders resume.
pub(super) async fn unacknowledge(ActDeps(deps): ActDeps, Path(id): Path<String>) -> Result<Response, WebError> {
    if deps.app.store.unacknowledge(AlertId::from(id.as_str()), deps.app.clock.now()).await? {
        tracing::info!(alert = id, "acknowledgement removed");
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Err(WebError::new(ErrorCode::UnknownAcknowledgement, "the alert with this id is not acknowledged"))
}
