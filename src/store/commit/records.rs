//! What an answer changes: the state of its feed, the records of the snapshot, and the versions that they had.

use rusqlite::params;

use super::schedule::{ScheduleUpdate, parted};
use super::{CommitWriter, tokens::TokenRow};
use crate::codec::{Hash, Millis, json, millis};
use crate::error::StoreFault;
use crate::sql::OptionalExtension;
use model::{FeedId, FeedUpdate, Put, Record, RecordKey, Resource, TokenId};

impl CommitWriter<'_> {
    pub(super) fn feed(&mut self, update: &FeedUpdate, poll: Option<i64>) -> Result<(), StoreFault> {
        let owner = update.id.token.as_ref().map(|id| self.token(id)).transpose()?;
        let scope = owner.map_or(0, |token| token.no);
        self.feed_state(update, scope)?;
        if let (Some(token), Some(id)) = (owner, &update.id.token)
            && token.is_nameless
        {
            self.name(token.no, id, update)?;
        }
        let (unlocks, others) = parted(&update.put);
        let resource = update.id.endpoint.resource();
        let of_schedule = if resource == Some(Resource::Unlock) { update.removed.as_slice() } else { &[] };
        let token = owner.map(|owner| owner.no);
        self.schedule(&ScheduleUpdate { scope, token, put: unlocks, removed: of_schedule, poll })?;
        // First, so that a key that is given up and taken anew in one answer ends up with its record.
        if let Some(resource) = resource.filter(|resource| *resource != Resource::Unlock) {
            for key in &update.removed {
                self.remove(scope, resource, key, poll)?;
            }
        }
        for put in others {
            self.put(scope, owner, put, poll)?;
        }
        Ok(())
    }

    fn feed_state(&self, update: &FeedUpdate, scope: i64) -> Result<(), StoreFault> {
        let FeedUpdate { id: FeedId { endpoint, .. }, state, header, .. } = update;
        let header = header.as_ref().map(|header| json("the header of a feed", header)).transpose()?;
        self.to
            .prepare_cached(
                "INSERT INTO feed (endpoint, token_no, baseline_at, read_at, tried_at, hash, mark, stale, failing_since, missing,
                 held_since, cost, header, findings) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (token_no, endpoint) DO UPDATE SET baseline_at = excluded.baseline_at, read_at = excluded.read_at,
                 tried_at = excluded.tried_at, hash = excluded.hash, mark = excluded.mark, stale = excluded.stale,
                 failing_since = excluded.failing_since, missing = excluded.missing, held_since = excluded.held_since,
                 cost = excluded.cost, header = coalesce(excluded.header, feed.header), findings = excluded.findings",
            )?
            .execute(params![
                endpoint.as_str(),
                scope,
                millis(state.baseline_at),
                millis(state.read_at),
                millis(state.tried_at),
                state.hash.map(Hash),
                millis(state.mark),
                state.stale,
                millis(state.failing_since),
                json("the missing records of a feed", &state.missing)?,
                millis(state.held_since),
                state.cost,
                header,
                json("what reading a feed found", &state.findings)?,
            ])?;
        Ok(())
    }

    fn put(&mut self, scope: i64, owner: Option<TokenRow>, put: &Put, poll: Option<i64>) -> Result<(), StoreFault> {
        let token = match (owner, &put.record) {
            (Some(owner), _) => Some(owner.no),
            // A feed that is not asked per token: the round says whose it is.
            (None, Record::Funding(round)) => {
                let id = round.token_id.as_str().filter(|id| !id.is_empty()).map(TokenId::from);
                self.token_no(id.as_ref())?
            }
            (None, _) => None,
        };
        let resource = put.record.resource().as_str();
        let interval = put.record.interval();
        let (starts, ends) = (millis(interval.map(|i| i.start)), millis(interval.map(|i| i.end)));
        let body = json("a record", &put.record)?;
        let known: Option<(i64, bool, bool)> = self
            .to
            .prepare_cached(
                "SELECT no, body = ?4, token_no IS NOT DISTINCT FROM ?5 AND starts_at IS NOT DISTINCT FROM ?6
                 AND ends_at IS NOT DISTINCT FROM ?7 FROM record WHERE scope_no = ?1 AND resource = ?2 AND key = ?3 AND body IS NOT NULL",
            )?
            .query_row(params![scope, resource, put.key.as_str(), body, token, starts, ends], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        match known {
            Some((_, true, true)) => {}
            Some((no, _, has_same_place)) => {
                if put.is_new_version {
                    self.keep_version(no)?;
                    self.to
                        .prepare_cached("UPDATE record SET version_at = ?2, version_poll = ?3 WHERE no = ?1")?
                        .execute(params![no, Millis(self.at), poll])?;
                }
                // What is not named here is not written again, nor are the indexes on it: mostly prices alone have moved.
                match has_same_place {
                    true => self.to.prepare_cached("UPDATE record SET body = ?2 WHERE no = ?1")?.execute(params![no, body])?,
                    false => self
                        .to
                        .prepare_cached("UPDATE record SET token_no = ?2, starts_at = ?3, ends_at = ?4, body = ?5 WHERE no = ?1")?
                        .execute(params![no, token, starts, ends, body])?,
                };
            }
            None => {
                self.to
                    .prepare_cached(
                        "INSERT INTO record (scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at,
                         version_poll, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9)",
                    )?
                    .execute(params![scope, token, resource, put.key.as_str(), starts, ends, Millis(self.at), poll, body])?;
                *self.tally.entry(put.record.resource()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Keeps the count of records.
    pub(super) fn tally(&mut self) -> Result<(), StoreFault> {
        for (resource, more) in std::mem::take(&mut self.tally).into_iter().filter(|(_, more)| *more != 0) {
            let values = params![resource.as_str(), more];
            let known =
                self.to.prepare_cached("UPDATE tally SET records = records + ?2 WHERE resource = ?1")?.execute_counted(values)?;
            if known == 0 {
                self.to.prepare_cached("INSERT INTO tally (resource, records) VALUES (?1, ?2)")?.execute(values)?;
            }
        }
        Ok(())
    }

    /// Moves what the snapshot holds of a record into the history.
    fn keep_version(&self, no: i64) -> Result<(), StoreFault> {
        self.to
            .prepare_cached(
                "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, poll, body)
                 SELECT scope_no, token_no, resource, key, version_at, ?2, version_poll, body FROM record WHERE no = ?1",
            )?
            .execute(params![no, Millis(self.at)])?;
        Ok(())
    }

    fn remove(&mut self, scope: i64, resource: Resource, key: &RecordKey, poll: Option<i64>) -> Result<(), StoreFault> {
        let no: Option<i64> = self
            .to
            .prepare_cached("SELECT no FROM record WHERE scope_no = ?1 AND resource = ?2 AND key = ?3 AND body IS NOT NULL")?
            .query_row(params![scope, resource.as_str(), key.as_str()], |row| row.get(0))
            .optional()?;
        let Some(no) = no else { return Ok(()) };
        self.keep_version(no)?;
        self.to
            .prepare_cached(
                "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, poll, body)
                 SELECT scope_no, token_no, resource, key, ?2, ?2, ?3, NULL FROM record WHERE no = ?1",
            )?
            .execute(params![no, Millis(self.at), poll])?;
        self.to.prepare_cached("DELETE FROM record WHERE no = ?1")?.execute([no])?;
        *self.tally.entry(resource).or_default() -= 1;
        Ok(())
    }
}
