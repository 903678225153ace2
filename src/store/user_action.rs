//! Actions of users in one transaction each, together with the key of a request that must have its effect only once.

use rusqlite::params;

use super::codec::{one, word};
use super::cycle::accept_held;
use super::error::StoreFault;
use super::keyed_request::once;
use super::note::{add_note, assign};
use super::outbox::list::{drop_deliveries, retry};
use super::silence::{acknowledge, put_silence, replace_silence, unacknowledge, update_silence};
use super::sql::Transaction;
use super::{Store, StoreError, failpoint};
use model::{
    AckResult, ActionOutcome, DeliveryId, DeliveryState, KeyedOutcome, KeyedRequest, StoredResponse, Timestamp, UserAction,
};

impl Store {
    /// Performs an action.
    pub async fn perform(&self, action: UserAction, now: Timestamp) -> Result<ActionOutcome, StoreError> {
        self.act("perform an action", move |to| perform(to, action, now)).await
    }

    /// Performs an action unless a request with this key did so. `respond` returns the response to an action that is done. The effect and
    /// the response are stored together, or neither is.
    pub async fn perform_once(
        &self,
        action: UserAction,
        request: KeyedRequest,
        now: Timestamp,
        respond: impl FnOnce(&ActionOutcome) -> StoredResponse + Send + 'static,
    ) -> Result<KeyedOutcome<ActionOutcome>, StoreError> {
        self.act("perform an action", move |to| {
            once(to, &request, now, || {
                let outcome = perform(to, action, now)?;
                let response = outcome.is_done().then(|| respond(&outcome));
                Ok((outcome, response))
            })
        })
        .await
        .inspect(|_| failpoint::pass("action.after"))
    }
}

fn perform(to: &Transaction<'_>, action: UserAction, now: Timestamp) -> Result<ActionOutcome, StoreFault> {
    let done_if = |done: bool| if done { ActionOutcome::Done } else { ActionOutcome::Unknown };
    match action {
        UserAction::CreateSilence(silence) => put_silence(to, &silence).map(|()| ActionOutcome::Done),
        UserAction::ReplaceSilence { id, silence } => replace_silence(to, &id, &silence, now).map(done_if),
        UserAction::UpdateSilence { id, request } => update_silence(to, &id, request, now),
        UserAction::Acknowledge { alert, author, comment } => Ok(match acknowledge(to, &alert, &author, &comment, now)? {
            AckResult::Done(alert) => ActionOutcome::Acknowledged(alert.id),
            AckResult::Unknown => ActionOutcome::Unknown,
            AckResult::Several(ids) => ActionOutcome::Ambiguous(ids),
        }),
        UserAction::RemoveAcknowledgement(alert) => unacknowledge(to, alert, now).map(done_if),
        UserAction::AddNote(note) => add_note(to, &note, now),
        UserAction::Assign(assignment) => assign(to, &assignment, now),
        UserAction::RetryDelivery(id) => delivery_outcome(to, id, retry(to, &[id], now)?),
        UserAction::DropDelivery(id) => delivery_outcome(to, id, drop_deliveries(to, &[id], now)?),
        UserAction::AcceptHeld(token) => {
            Ok(if accept_held(to, &token, now)? > 0 { ActionOutcome::Done } else { ActionOutcome::NothingHeld })
        }
    }
}

/// Returns the outcome of an action that changed this number of deliveries.
fn delivery_outcome(from: &Transaction<'_>, id: DeliveryId, changed: usize) -> Result<ActionOutcome, StoreFault> {
    if changed > 0 {
        return Ok(ActionOutcome::Done);
    }
    let mut statement = from.prepare_cached("SELECT state FROM delivery WHERE no = ?1")?;
    let state = one(&mut statement, params![id.0], |row| {
        word("the state of the delivery", &id.to_string(), &row.get::<String>(0)?, DeliveryState::parse)
    })?;
    Ok(state.map_or(ActionOutcome::Unknown, ActionOutcome::WrongState))
}
