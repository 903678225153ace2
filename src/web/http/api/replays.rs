//! `/api/v1/replays`: sends the messages of a time range again. Authorization has checked the token.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::http::HttpDeps;
use crate::http::access::ActDeps;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::idempotency::{RequestKey, replayed, reused};
use crate::http::json_body::{FieldNames, JsonBody};
use engine::replay;
use model::{KeyedOutcome, ReceiverName, ReplayRequest, ReplayResult, ReplayState, StoredResponse};

/// The fields of the body of `POST /api/v1/replays`.
const FIELDS: &[FieldNames] =
    &[("receiver", None), ("since", Some("from")), ("until", Some("to")), ("again", None), ("dryRun", None)];

/// `POST /api/v1/replays`.
pub(super) async fn create(
    ActDeps(deps): ActDeps,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let body = body.with_fields(FIELDS)?;
    let receiver = body.required_text("receiver")?;
    check_receiver(&deps, &receiver)?;
    let now = deps.app.clock.now();
    let since = body.required_time("since")?;
    let until = body.time("until")?.unwrap_or(now);
    if until <= since {
        return Err(WebError::invalid_body("`since` is not before `until`, the end of the range"));
    }
    let (includes_recent, is_dry_run) = (body.boolean("again")?, body.boolean("dryRun")?);
    let request = ReplayRequest { receiver: ReceiverName::from(receiver.as_str()), since, until, includes_recent };
    let decide = move |state: &ReplayState| replay::plan(state, includes_recent, now);
    if is_dry_run {
        return Ok(Json(deps.app.store.preview_replay(request, decide).await?).into_response());
    }
    let result = match key.0 {
        None => deps.app.store.replay(request, decide, now).await?,
        Some(key) => match deps.app.store.replay_once(request, decide, key, now, stored).await? {
            KeyedOutcome::Outcome(result) => result,
            KeyedOutcome::Repeated(response) => return Ok(replayed(response)),
            KeyedOutcome::Different => return Err(reused()),
        },
    };
    tracing::info!(receiver, %since, %until, deliveries = result.deliveries, "replay requested");
    (deps.app.wake)();
    Ok((StatusCode::CREATED, Json(result)).into_response())
}

fn stored(result: &ReplayResult) -> StoredResponse {
    StoredResponse { status: StatusCode::CREATED.as_u16(), body: json!(result).to_string() }
}

/// Checks that the config has the receiver. One that left it could not get the messages.
fn check_receiver(deps: &HttpDeps, name: &str) -> Result<(), WebError> {
    let live = deps.app.live.load_full();
    let known = || live.config.receivers.iter().map(|receiver| receiver.name.as_str());
    if known().any(|receiver| receiver == name) {
        return Ok(());
    }
    let message = format!("the config has no receiver {name:?}");
    Err(WebError::unknown_name(ErrorCode::UnknownReceiver, message, name, known()))
}
