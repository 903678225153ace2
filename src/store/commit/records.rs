//! Stores the result of a poll: the feed state, the records, and their previous versions.

use std::collections::HashSet;

use rusqlite::params;
use rusqlite::types::Value;

use super::schedule::{ScheduleUpdate, split_unlocks};
use super::{CommitWriter, tokens::TokenRow};
use crate::codec::{Hash, Millis, json, millis, one_of};
use crate::cycle::READ_TOGETHER;
use crate::error::StoreFault;
use crate::sql::{PendingQuery, row_of};
use model::{FeedId, FeedUpdate, Put, Record, RecordKey, Resource, TokenId};

/// The columns of a record, without its key.
struct RecordRow {
    token: Option<i64>,
    starts: Option<Millis>,
    ends: Option<Millis>,
    body: String,
}

impl RecordRow {
    fn of(put: &Put, token: Option<i64>) -> Result<Self, StoreFault> {
        let interval = put.record.interval();
        let (starts, ends) = (millis(interval.map(|i| i.start)), millis(interval.map(|i| i.end)));
        Ok(Self { token, starts, ends, body: json("a record", &put.record)? })
    }
}

/// A record to store, and the lookup of its row. `known` is `None` if an earlier record of the same batch has the same
/// key.
struct RecordQuery<'a> {
    row: RecordRow,
    known: Option<PendingQuery<'a>>,
}

impl<'a> CommitWriter<'a> {
    pub(super) fn feed(&mut self, update: &FeedUpdate, poll: Option<i64>) -> Result<(), StoreFault> {
        let owner = update.id.token.as_ref().map(|id| self.token(id)).transpose()?;
        let scope = owner.map_or(0, |token| token.no);
        self.feed_state(update, scope)?;
        if let (Some(token), Some(id)) = (owner, &update.id.token)
            && token.is_nameless
        {
            self.name(token.no, id, update)?;
        }
        let (unlocks, others) = split_unlocks(&update.put);
        let resource = update.id.endpoint.resource();
        let of_schedule = if resource == Some(Resource::Unlock) { update.removed.as_slice() } else { &[] };
        let token = owner.map(|owner| owner.no);
        self.schedule(&ScheduleUpdate { scope, token, put: unlocks, removed: of_schedule, poll }, update)?;
        // First, so that a key that is removed and reused in one response ends with its new record.
        if let Some(resource) = resource.filter(|resource| *resource != Resource::Unlock) {
            for key in &update.removed {
                self.remove(scope, resource, key, poll)?;
            }
        }
        for puts in others.chunks(READ_TOGETHER) {
            let mut added = Vec::new();
            for (put, queried) in self.query_records(scope, owner, puts)? {
                self.put(scope, put, queried, poll, &mut added)?;
            }
            self.add_records(added)?;
        }
        Ok(())
    }

    fn feed_state(&self, update: &FeedUpdate, scope: i64) -> Result<(), StoreFault> {
        let FeedUpdate { id: FeedId { endpoint, .. }, state, header, .. } = update;
        let header = header.as_ref().map(|header| json("the header of a feed", header)).transpose()?;
        self.to
            .prepare_cached(
                "INSERT INTO feed (endpoint, token_no, baseline_at, read_at, tried_at, hash, mark, stale, failing_since, missing,
                 held_since, cost, header, findings, hold_accepted)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                 ON CONFLICT (token_no, endpoint) DO UPDATE SET baseline_at = excluded.baseline_at, read_at = excluded.read_at,
                 tried_at = excluded.tried_at, hash = excluded.hash, mark = excluded.mark, stale = excluded.stale,
                 failing_since = excluded.failing_since, missing = excluded.missing, held_since = excluded.held_since,
                 cost = excluded.cost, header = coalesce(excluded.header, feed.header), findings = excluded.findings,
                 hold_accepted = excluded.hold_accepted",
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
                millis(state.hold.map(|hold| hold.since)),
                state.cost,
                header,
                json("the findings of a feed", &state.findings)?,
                state.hold.is_some_and(|hold| hold.is_accepted),
            ])?;
        Ok(())
    }

    /// Sends the lookups of a batch of records before any of them is written.
    fn query_records<'p>(
        &mut self,
        scope: i64,
        owner: Option<TokenRow>,
        puts: &[&'p Put],
    ) -> Result<Vec<(&'p Put, RecordQuery<'a>)>, StoreFault> {
        // Funding feeds are polled per investor, so the round names the token.
        let round_of = |put: &Put| match &put.record {
            Record::Funding(round) if owner.is_none() => round.token_id.as_str().filter(|id| !id.is_empty()).map(TokenId::from),
            _ => None,
        };
        self.load_tokens(puts.iter().filter_map(|put| round_of(put)))?;
        let mut keys = HashSet::new();
        let send_query = |put: &&'p Put| {
            let of_round = round_of(put).and_then(|id| self.tokens.get(&id));
            let row = RecordRow::of(put, owner.or(of_round.copied()).map(|token| token.no))?;
            // A duplicate key is looked up only after the first record is written.
            let is_first = keys.insert((put.record.resource(), put.key.as_str()));
            let known = is_first.then(|| self.query_record(scope, put, &row)).transpose()?;
            Ok((*put, RecordQuery { row, known }))
        };
        puts.iter().map(send_query).collect()
    }

    /// Looks up a record. Returns its number, whether its body is unchanged, and whether its token and times are.
    /// Returns no row if the record is new.
    fn query_record(&self, scope: i64, put: &Put, row: &RecordRow) -> Result<PendingQuery<'a>, StoreFault> {
        let RecordRow { token, starts, ends, body } = row;
        let mut statement = self.to.prepare_cached(
            "SELECT no, body = ?4, token_no IS NOT DISTINCT FROM ?5 AND starts_at IS NOT DISTINCT FROM ?6
             AND ends_at IS NOT DISTINCT FROM ?7 FROM record WHERE scope_no = ?1 AND resource = ?2 AND key = ?3 AND body IS NOT NULL",
        )?;
        Ok(statement.send_query(params![scope, put.record.resource().as_str(), put.key.as_str(), body, token, starts, ends])?)
    }

    /// Updates a known record. A new record is appended to `added`.
    fn put(
        &mut self,
        scope: i64,
        put: &Put,
        queried: RecordQuery<'_>,
        poll: Option<i64>,
        added: &mut Vec<Vec<Value>>,
    ) -> Result<(), StoreFault> {
        let RecordQuery { row, known } = queried;
        let known = match known {
            Some(known) => known,
            None => {
                self.add_records(std::mem::take(added))?;
                self.query_record(scope, put, &row)?
            }
        };
        let RecordRow { token, starts, ends, body } = row;
        let resource = put.record.resource().as_str();
        let known: Option<(i64, bool, bool)> = one_of(known.rows()?, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        match known {
            Some((_, true, true)) => {}
            Some((no, _, has_same_place)) => {
                if put.is_new_version {
                    self.archive_version(no)?;
                    self.to
                        .prepare_cached("UPDATE record SET version_at = ?2, version_poll = ?3 WHERE no = ?1")?
                        .execute(params![no, Millis(self.at), poll])?;
                }
                // Write only the body if possible, to avoid index updates: usually only prices change.
                match has_same_place {
                    true => self.to.prepare_cached("UPDATE record SET body = ?2 WHERE no = ?1")?.execute(params![no, body])?,
                    false => self
                        .to
                        .prepare_cached("UPDATE record SET token_no = ?2, starts_at = ?3, ends_at = ?4, body = ?5 WHERE no = ?1")?
                        .execute(params![no, token, starts, ends, body])?,
                };
            }
            None => {
                let at = Millis(self.at);
                added.push(row_of(params![scope, token, resource, put.key.as_str(), starts, ends, at, at, poll, body])?);
                *self.tally.entry(put.record.resource()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn add_records(&self, rows: Vec<Vec<Value>>) -> Result<(), StoreFault> {
        let columns = [
            "scope_no",
            "token_no",
            "resource",
            "key",
            "starts_at",
            "ends_at",
            "first_seen",
            "version_at",
            "version_poll",
            "body",
        ];
        Ok(self.to.insert_many("record", &columns, rows)?)
    }

    /// Updates the record counts.
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

    /// Copies the current version of a record to the history.
    fn archive_version(&self, no: i64) -> Result<(), StoreFault> {
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
            .query_optional(params![scope, resource.as_str(), key.as_str()], |row| row.get(0))?;
        let Some(no) = no else { return Ok(()) };
        self.archive_version(no)?;
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
