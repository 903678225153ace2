//! `/api/v2/silences` and `/api/v2/silence/{id}`. Authorization has checked the token of each write.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::{filters, query, resolved, silence_json};
use crate::http::HttpDeps;
use crate::http::access::ActDeps;
use crate::http::api::silences::{self, parse_matcher};
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::idempotency::{Acted, RequestKey, perform};
use crate::http::json_body::{FieldNames, JsonBody};
use model::{Labels, Matcher, Silence, SilenceRequest, Timestamp, UserAction, all_match, silence};

/// The fields of the body of `POST /api/v2/silences`.
const FIELDS: &[FieldNames] =
    &[("id", None), ("matchers", None), ("startsAt", None), ("endsAt", None), ("createdBy", None), ("comment", None)];

/// `GET /api/v2/silences`: all stored silences, also expired ones. A filter compares the matchers of a silence as if they were labels, as
/// Alertmanager does.
pub(super) async fn list(State(deps): State<HttpDeps>, uri: Uri) -> Result<Json<Vec<Value>>, WebError> {
    let filters = filters(&deps, &query(&[], &uri)?).await?;
    let now = deps.app.clock.now();
    let silences = deps.app.store.silences(None).await?;
    let selected = silences.iter().filter(|silence| all_match(&filters, &labels_of(silence)));
    Ok(Json(selected.map(|silence| silence_json(silence, now)).collect()))
}

fn labels_of(silence: &Silence) -> Labels {
    silence.matchers.iter().map(|matcher| (matcher.label().to_owned(), matcher.parts().0.to_owned())).collect()
}

/// `GET /api/v2/silence/{id}`.
pub(super) async fn show(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Json<Value>, WebError> {
    let now = deps.app.clock.now();
    let silences = deps.app.store.silences(None).await?;
    let found = silences.iter().find(|silence| silence.id == id);
    Ok(Json(silence_json(found.ok_or_else(unknown_silence)?, now)))
}

fn unknown_silence() -> WebError {
    WebError::new(ErrorCode::UnknownSilence, "no silence has this id")
}

/// `POST /api/v2/silences`. With `id`, the new silence replaces that one, and gets another id.
pub(super) async fn create(
    ActDeps(deps): ActDeps,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let body = body.with_fields(FIELDS)?;
    let replaced = body.text("id")?.filter(|id| !id.is_empty());
    let now = deps.app.clock.now();
    let silence = requested(&deps, &body, now).await?;
    let (id, matchers) = (silence.id.clone(), silence.matchers_line());
    let made = json!({ "silenceID": id });
    let action = match replaced {
        Some(id) => UserAction::ReplaceSilence { id, silence },
        None => UserAction::CreateSilence(silence),
    };
    let Acted::Response(response) = perform(&deps, key, action, move |_| (StatusCode::OK, made)).await? else {
        let message = "no active or pending silence has this `id`: leave it out to create a silence";
        return Err(WebError::new(ErrorCode::UnknownSilence, message));
    };
    (deps.app.wake)();
    tracing::info!(silence = id, matchers, "silence created");
    Ok(response)
}

/// Returns the silence in the body of a request.
async fn requested(deps: &HttpDeps, body: &JsonBody, now: Timestamp) -> Result<Silence, WebError> {
    let matchers: Vec<Matcher> = body.required_list("matchers")?.iter().map(parse_matcher).collect::<Result<_, _>>()?;
    let invalid = |error: model::SilenceError| WebError::invalid_body(error.to_string());
    silence::check_count(&matchers).map_err(invalid)?;
    let request = SilenceRequest {
        matchers: resolved(deps, matchers).await?,
        author: body.required_text("createdBy")?,
        comment: body.required_text("comment")?,
        starts_at: Some(body.required_time("startsAt")?),
        ends_at: body.required_time("endsAt")?,
    };
    request.into_silence(now).map_err(invalid)
}

/// `DELETE /api/v2/silence/{id}`.
pub(super) async fn expire(ActDeps(deps): ActDeps, Path(id): Path<String>) -> Result<StatusCode, WebError> {
    if !deps.app.store.expire_silence(id.clone(), deps.app.clock.now()).await? {
        return Err(silences::unknown_silence());
    }
    tracing::info!(silence = id, "silence expired");
    (deps.app.wake)();
    Ok(StatusCode::OK)
}
