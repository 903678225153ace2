//! Actions on deliveries and on held responses.

use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::lists::{delivery_id, unknown_delivery};
use crate::http::HttpDeps;
use crate::http::access::ActDeps;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::idempotency::{Acted, RequestKey, perform};
use daemon::token_names::find_token;
use model::{ActionOutcome, DeliveryState, UserAction};

/// `POST /api/v1/outbox/{id}/retry`: makes a delivery due, with its webhook id and a new retry schedule.
pub(super) async fn retry(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
) -> Result<Response, WebError> {
    let id = delivery_id(&id)?;
    let body = json!({ "delivery": id.0, "state": DeliveryState::Due });
    let acted = act(&deps, key, UserAction::RetryDelivery(id), body, "retried").await?;
    (deps.app.wake)();
    tracing::info!(delivery = id.0, "delivery retry requested");
    Ok(acted)
}

/// `POST /api/v1/outbox/{id}/drop`: removes a delivery from the outbox without sending it.
pub(super) async fn drop_delivery(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
) -> Result<Response, WebError> {
    let id = delivery_id(&id)?;
    let body = json!({ "delivery": id.0, "state": DeliveryState::Dropped });
    let acted = act(&deps, key, UserAction::DropDelivery(id), body, "dropped").await?;
    tracing::info!(delivery = id.0, "delivery dropped");
    Ok(acted)
}

/// `POST /api/v1/tokens/{id}/accept`: applies the held responses of a token. Records that are missing from the next one count as removed.
pub(super) async fn accept(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
) -> Result<Response, WebError> {
    let token = find_token(&deps.app.store, &id).await?;
    let body = json!({ "token": token });
    let acted = act(&deps, key, UserAction::AcceptHeld(token.clone()), body, "accepted").await?;
    tracing::info!(%token, "held response accepted");
    Ok(acted)
}

/// Performs an action whose response is `body`. `done` names the action in an error.
async fn act(
    deps: &HttpDeps,
    key: RequestKey,
    action: UserAction,
    body: Value,
    done: &'static str,
) -> Result<Response, WebError> {
    match perform(deps, key, action, move |_| (StatusCode::OK, body)).await? {
        Acted::Response(response) => Ok(response),
        Acted::Failed(ActionOutcome::WrongState(state)) => {
            let message = format!("the delivery has the state `{state}`, so it cannot be {done}");
            Err(WebError::new(ErrorCode::WrongState, message))
        }
        Acted::Failed(ActionOutcome::NothingHeld) => {
            let message = "no response of this token is held; `removalsHeld` in /api/v1/status counts held responses";
            Err(WebError::new(ErrorCode::NothingHeld, message))
        }
        Acted::Failed(_) => Err(unknown_delivery()),
    }
}
