//! Notes on alerts, and their assignees. Authorization has checked the token.

use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::http::access::ActDeps;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::idempotency::{Acted, RequestKey, perform};
use crate::http::json_body::{FieldNames, JsonBody};
use model::note::{MAX_NOTES, NoteError, checked_assignment, checked_note};
use model::{ActionOutcome, AlertId, UserAction};

const NOTE_FIELDS: &[FieldNames] = &[("author", None), ("text", None)];
const ASSIGNMENT_FIELDS: &[FieldNames] = &[("author", None), ("assignee", None)];

/// `POST /api/v1/alerts/{id}/notes`: adds a note to an alert.
pub(super) async fn add_note(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let body = body.with_fields(NOTE_FIELDS)?;
    let (author, text) = (body.required_text("author")?, body.required_text("text")?);
    let note = checked_note(AlertId::from(id.as_str()), &author, &text).map_err(invalid)?;
    let response = json!({ "alert": id });
    acted(perform(&deps, key, UserAction::AddNote(note), move |_| (StatusCode::CREATED, response)).await?)
}

/// `POST /api/v1/alerts/{id}/assign`: assigns an alert to a person, or removes its assignee if `assignee` is missing.
pub(super) async fn assign(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(key): Extension<RequestKey>,
    body: JsonBody,
) -> Result<Response, WebError> {
    let body = body.with_fields(ASSIGNMENT_FIELDS)?;
    let (author, assignee) = (body.required_text("author")?, body.text("assignee")?.unwrap_or_default());
    let new = checked_assignment(AlertId::from(id.as_str()), &author, &assignee).map_err(invalid)?;
    let response = json!({ "alert": id });
    acted(perform(&deps, key, UserAction::Assign(new), move |_| (StatusCode::OK, response)).await?)
}

fn invalid(error: NoteError) -> WebError {
    WebError::invalid_body(error.to_string())
}

fn acted(acted: Acted) -> Result<Response, WebError> {
    match acted {
        Acted::Response(response) => Ok(response),
        Acted::Failed(ActionOutcome::TooManyNotes) => {
            Err(WebError::new(ErrorCode::WrongState, format!("the alert has {MAX_NOTES} notes, which is the maximum")))
        }
        Acted::Failed(_) => Err(WebError::new(ErrorCode::UnknownAlert, "no alert has this id")),
    }
}
