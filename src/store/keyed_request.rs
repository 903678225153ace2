//! Requests with an `Idempotency-Key`. Each is known for a day after its effect; the oldest ones are deleted first.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, one};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError, failpoint};
use model::{KeyedOutcome, KeyedRequest, KnownRequest, StoredResponse, Timestamp};

/// The time for which a request is known.
const RETENTION: TimeDelta = TimeDelta::hours(24);

/// The maximum number of requests that are known.
pub(super) const MAX_REQUESTS: i64 = 10_000;

impl Store {
    /// Returns whether a request had an effect before.
    pub async fn known_request(&self, request: KeyedRequest, now: Timestamp) -> Result<KnownRequest, StoreError> {
        self.read("find a request", move |from| find(from, &request, now)).await
    }

    /// Stores the response to a request whose effect is not a write to the database.
    pub async fn remember_request(
        &self,
        request: KeyedRequest,
        response: StoredResponse,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.act("store the response to a request", move |to| remember(to, &request, &response, now)).await
    }
}

/// Runs the effect of a request unless a request with its key had one. `run` returns the outcome, and the response to store if there was
/// an effect.
pub(super) fn once<T>(
    to: &Transaction<'_>,
    request: &KeyedRequest,
    now: Timestamp,
    run: impl FnOnce() -> Result<(T, Option<StoredResponse>), StoreFault>,
) -> Result<KeyedOutcome<T>, StoreFault> {
    match find(to, request, now)? {
        KnownRequest::New => {}
        KnownRequest::Repeated(response) => return Ok(KeyedOutcome::Repeated(response)),
        KnownRequest::Different => return Ok(KeyedOutcome::Different),
    }
    let (outcome, response) = run()?;
    if let Some(response) = response {
        failpoint::pass("action.inside");
        remember(to, request, &response, now)?;
    }
    Ok(KeyedOutcome::Outcome(outcome))
}

fn find(from: &Transaction<'_>, request: &KeyedRequest, now: Timestamp) -> Result<KnownRequest, StoreFault> {
    let mut statement =
        from.prepare_cached("SELECT hash, status, body FROM keyed_request WHERE client = ?1 AND key = ?2 AND at > ?3")?;
    let KeyedRequest { client, key, hash } = request;
    let known = one(&mut statement, params![client, key, Millis(oldest(now))], |row| {
        let status = row.get::<i64>(1)?;
        let response = StoredResponse { status: u16::try_from(status).unwrap_or_default(), body: row.get(2)? };
        Ok((row.get::<Vec<u8>>(0)?, response))
    })?;
    Ok(match known {
        None => KnownRequest::New,
        Some((known, response)) if known == *hash => KnownRequest::Repeated(response),
        Some(_) => KnownRequest::Different,
    })
}

/// Returns the time of the oldest request that is known.
fn oldest(now: Timestamp) -> Timestamp {
    now.checked_sub_signed(RETENTION).unwrap_or(now)
}

/// Stores a request, and deletes the oldest ones.
fn remember(to: &Transaction<'_>, request: &KeyedRequest, response: &StoredResponse, now: Timestamp) -> Result<(), StoreFault> {
    let KeyedRequest { client, key, hash } = request;
    to.prepare_cached("DELETE FROM keyed_request WHERE at <= ?1")?.execute([Millis(oldest(now))])?;
    to.prepare_cached(
        "INSERT INTO keyed_request (client, key, hash, at, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (client, key) DO UPDATE SET hash = excluded.hash, at = excluded.at, status = excluded.status, body = excluded.body",
    )?
    .execute(params![client, key, hash, Millis(now), i64::from(response.status), response.body])?;
    to.prepare_cached("DELETE FROM keyed_request WHERE no <= (SELECT max(no) FROM keyed_request) - CAST(?1 AS BIGINT)")?
        .execute([MAX_REQUESTS])?;
    Ok(())
}
