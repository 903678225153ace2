//! What an answer changes: the state of its feed, the records of the snapshot, and the versions that they had.

use std::collections::HashSet;

use rusqlite::params;

use super::schedule::{ScheduleUpdate, parted};
use super::{CommitWriter, tokens::TokenRow};
use crate::codec::{Hash, Millis, json, millis, one_of};
use crate::cycle::READ_TOGETHER;
use crate::error::StoreFault;
use crate::sql::{OptionalExtension, Question};
use model::{FeedId, FeedUpdate, Put, Record, RecordKey, Resource, TokenId};

/// What is written of a record beside its key.
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

/// A record that is put, and what was asked about it; nothing was where another of its key is put before it.
struct RecordQuestion<'a> {
    row: RecordRow,
    known: Option<Question<'a>>,
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
        for puts in others.chunks(READ_TOGETHER) {
            for (put, asked) in self.ask_records(scope, owner, puts)? {
                self.put(scope, put, asked, poll)?;
            }
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

    /// Asks for the rows of records that are put, before any of them is written.
    fn ask_records<'p>(
        &mut self,
        scope: i64,
        owner: Option<TokenRow>,
        puts: &[&'p Put],
    ) -> Result<Vec<(&'p Put, RecordQuestion<'a>)>, StoreFault> {
        // A feed that is not asked per token: the round says whose it is.
        let round_of = |put: &Put| match &put.record {
            Record::Funding(round) if owner.is_none() => round.token_id.as_str().filter(|id| !id.is_empty()).map(TokenId::from),
            _ => None,
        };
        self.meet(puts.iter().filter_map(|put| round_of(put)))?;
        let mut keys = HashSet::new();
        let ask = |put: &&'p Put| {
            let of_round = round_of(put).and_then(|id| self.tokens.get(&id));
            let row = RecordRow::of(put, owner.or(of_round.copied()).map(|token| token.no))?;
            // What comes twice in one answer finds what the first left.
            let is_first = keys.insert((put.record.resource(), put.key.as_str()));
            let known = is_first.then(|| self.ask_record(scope, put, &row)).transpose()?;
            Ok((*put, RecordQuestion { row, known }))
        };
        puts.iter().map(ask).collect()
    }

    /// Asks for the number of a record, whether it is what it was, and stands where it stood; no row where it is not there.
    fn ask_record(&self, scope: i64, put: &Put, row: &RecordRow) -> Result<Question<'a>, StoreFault> {
        let RecordRow { token, starts, ends, body } = row;
        let mut statement = self.to.prepare_cached(
            "SELECT no, body = ?4, token_no IS NOT DISTINCT FROM ?5 AND starts_at IS NOT DISTINCT FROM ?6
             AND ends_at IS NOT DISTINCT FROM ?7 FROM record WHERE scope_no = ?1 AND resource = ?2 AND key = ?3 AND body IS NOT NULL",
        )?;
        Ok(statement.ask(params![scope, put.record.resource().as_str(), put.key.as_str(), body, token, starts, ends])?)
    }

    fn put(&mut self, scope: i64, put: &Put, asked: RecordQuestion<'_>, poll: Option<i64>) -> Result<(), StoreFault> {
        let RecordQuestion { row, known } = asked;
        let known = known.map_or_else(|| self.ask_record(scope, put, &row), Ok)?;
        let RecordRow { token, starts, ends, body } = row;
        let resource = put.record.resource().as_str();
        let known: Option<(i64, bool, bool)> = one_of(known.rows()?, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
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
