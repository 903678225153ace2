//! Replays: makes deliveries due again that a receiver may have missed. The caller supplies the decision.

use rusqlite::params;

use crate::codec::{Millis, all, counted, json, one, time, word};
use crate::error::StoreFault;
use crate::event_log::{NewEvent, log_event};
use crate::keyed_request::once;
use crate::sql::{Row, Transaction};
use crate::{Store, StoreError};
use model::{
    DeliveryId, DeliveryState, EventType, KeyedOutcome, KeyedRequest, NotificationKind, Replay, ReplayCandidate, ReplayPlan,
    ReplayRequest, ReplayResult, ReplayState, RequestedReplay, StoredResponse, Timestamp,
};

impl Store {
    /// Returns what [`Self::replay`] would do.
    pub async fn preview_replay(
        &self,
        request: ReplayRequest,
        decide: impl FnOnce(&ReplayState) -> ReplayPlan + Send + 'static,
    ) -> Result<ReplayResult, StoreError> {
        self.read("preview a replay", move |from| Ok(planned(from, &request, decide)?.1)).await
    }

    /// Makes the deliveries due that `decide` selects, with a new retry schedule. Their webhook ids stay the same. The decision and its
    /// effect are one transaction, so requests at the same time send no delivery twice. Any process may do so: the active instance sends them.
    pub async fn replay(
        &self,
        request: ReplayRequest,
        decide: impl FnOnce(&ReplayState) -> ReplayPlan + Send + 'static,
        now: Timestamp,
    ) -> Result<ReplayResult, StoreError> {
        self.act("replay deliveries", move |to| replay_deliveries(to, &request, decide, now)).await
    }

    /// Like [`Self::replay`], unless a request with this key did so. The effect and the response are stored together, or neither is.
    pub async fn replay_once(
        &self,
        request: ReplayRequest,
        decide: impl FnOnce(&ReplayState) -> ReplayPlan + Send + 'static,
        keyed: KeyedRequest,
        now: Timestamp,
        respond: impl FnOnce(&ReplayResult) -> StoredResponse + Send + 'static,
    ) -> Result<KeyedOutcome<ReplayResult>, StoreError> {
        self.act("replay deliveries", move |to| {
            once(to, &keyed, now, || {
                let result = replay_deliveries(to, &request, decide, now)?;
                let response = respond(&result);
                Ok((result, Some(response)))
            })
        })
        .await
    }
}

/// Reads the replay of a delivery from the columns `replayed_at, first_delivered_at`, starting at `first`.
pub(super) fn replay(row: &Row<'_>, first: usize) -> Result<Option<Replay>, StoreFault> {
    let Some(requested_at) = time(row.get(first)?) else { return Ok(None) };
    Ok(Some(Replay { requested_at, first_delivered_at: time(row.get(first + 1)?) }))
}

fn replay_deliveries(
    to: &Transaction<'_>,
    request: &ReplayRequest,
    decide: impl FnOnce(&ReplayState) -> ReplayPlan,
    now: Timestamp,
) -> Result<ReplayResult, StoreFault> {
    let (plan, result) = planned(to, request, decide)?;
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'due', tries = 0, due_at = ?2, next_attempt_at = ?2, updated_at = ?2, replayed_at = ?2,
         first_delivered_at = coalesce(first_delivered_at, delivered_at), delivered_at = NULL WHERE no = ?1",
    )?;
    for id in &plan.deliveries {
        statement.execute(params![id.0, Millis(now)])?;
    }
    if !plan.deliveries.is_empty() {
        let requested = RequestedReplay {
            receiver: request.receiver.clone(),
            since: request.since,
            until: request.until,
            deliveries: result.deliveries,
        };
        let event = NewEvent::of(EventType::ReplayRequested, request.receiver.to_string());
        log_event(to, now, &NewEvent { body: Some(json("the body of an event", &requested)?), ..event })?;
    }
    Ok(result)
}

fn planned(
    from: &Transaction<'_>,
    request: &ReplayRequest,
    decide: impl FnOnce(&ReplayState) -> ReplayPlan,
) -> Result<(ReplayPlan, ReplayResult), StoreFault> {
    let state = ReplayState { candidates: candidates(from, request)?, unfinished: unfinished(from, request)? };
    let plan = decide(&state);
    let ReplayRequest { receiver, since, until, .. } = request;
    let result = ReplayResult {
        receiver: receiver.clone(),
        since: *since,
        until: *until,
        deliveries: plan.deliveries.len() as u64,
        pending: plan.pending,
        recently_replayed: plan.recently_replayed,
        dropped: plan.dropped,
        deleted: deleted(from, request)?,
    };
    Ok((plan, result))
}

fn candidates(from: &Transaction<'_>, request: &ReplayRequest) -> Result<Vec<ReplayCandidate>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT no, state, updated_at, replayed_at FROM delivery WHERE receiver = ?1 AND created_at >= ?2 AND created_at < ?3
         AND EXISTS (SELECT 1 FROM delivery_notification d JOIN notification n ON n.id = d.notification
                     WHERE d.delivery_no = delivery.no AND n.kind <> ?4) ORDER BY no",
    )?;
    let ReplayRequest { receiver, since, until, .. } = request;
    let values = params![receiver.as_str(), Millis(*since), Millis(*until), NotificationKind::Test.as_str()];
    all(&mut statement, values, |row| {
        let id = DeliveryId(row.get(0)?);
        let state = word("the state of the delivery", &id.to_string(), &row.get::<String>(1)?, DeliveryState::parse)?;
        Ok(ReplayCandidate { id, state, updated_at: row.get::<Millis>(2)?.0, replayed_at: time(row.get(3)?) })
    })
}

fn unfinished(from: &Transaction<'_>, request: &ReplayRequest) -> Result<Vec<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT DISTINCT replayed_at FROM delivery WHERE receiver = ?1 AND replayed_at IS NOT NULL AND state IN ('due', 'retrying')",
    )?;
    all(&mut statement, [request.receiver.as_str()], |row| Ok(row.get::<Millis>(0)?.0))
}

const HOUR_MILLIS: i64 = 3_600_000;

/// Returns the hour of an instant, since 1970.
fn hour_of(at: Timestamp) -> i64 {
    at.timestamp_millis().div_euclid(HOUR_MILLIS)
}

fn deleted(from: &Transaction<'_>, request: &ReplayRequest) -> Result<u64, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT coalesce(CAST(sum(deliveries) AS BIGINT), 0) FROM deleted_deliveries WHERE receiver = ?1 AND hour >= ?2 AND hour <= ?3",
    )?;
    // `until` is exclusive.
    let last = hour_of(request.until - chrono::TimeDelta::milliseconds(1));
    let values = params![request.receiver.as_str(), hour_of(request.since), last];
    Ok(one(&mut statement, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0))
}

/// Counts a delivery that retention deletes.
pub(crate) fn count_deleted(to: &Transaction<'_>, receiver: &str, created_at: Timestamp) -> Result<(), StoreFault> {
    to.prepare_cached(
        "INSERT INTO deleted_deliveries (receiver, hour, deliveries) VALUES (?1, ?2, 1)
         ON CONFLICT (receiver, hour) DO UPDATE SET deliveries = deleted_deliveries.deliveries + 1",
    )?
    .execute(params![receiver, hour_of(created_at)])?;
    Ok(())
}

/// The hours for which counts of deleted deliveries are kept, before the time before which deliveries are deleted: a year.
const COUNTED_HOURS: i64 = 366 * 24;

/// Deletes counts of hours that are long past. Returns the number deleted.
pub(crate) fn delete_old_counts(to: &Transaction<'_>, before: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached("DELETE FROM deleted_deliveries WHERE hour < ?1")?;
    Ok(statement.execute_counted([hour_of(before) - COUNTED_HOURS])?)
}
