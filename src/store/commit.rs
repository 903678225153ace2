//! One step of a cycle, written whole or not at all: snapshot, history, changes, alerts, and in the outbox one delivery for each
//! notice and receiver.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Instant,
};

use chrono::{NaiveTime, TimeDelta};
use ring::digest;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::{
    codec::{Hash, Millis, all, count, json, millis},
    error::Fault,
    model::{Commit, DeliveryState, FeedUpdate, PollEntry, Put, Saved},
    telling,
};
use crate::{
    alert::{Alert, Labels, Notice},
    change::Change,
    failpoint,
    supply::{Endpoint, FeedId, Interval, ReceiverName, Record, RecordKey, Resource, Timestamp, TokenId},
    wire::{InvestorItem, UnlockEvent},
};

/// Writes a commit in one transaction.
pub(super) fn commit(connection: &mut Connection, commit: &Commit, way: Way) -> Result<Saved, Fault> {
    let begun = Instant::now();
    failpoint::pass("commit.before");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut saved = Scribe::new(&transaction, commit.at, way).write(commit)?;
    failpoint::pass("commit.inside");
    transaction.commit()?;
    failpoint::pass("commit.after");
    saved.took = TimeDelta::from_std(begun.elapsed()).unwrap_or(TimeDelta::MAX);
    Ok(saved)
}

/// What the JSON column of an alert holds beside its own columns.
#[derive(Serialize, Deserialize)]
pub(super) struct AlertColumns {
    pub(super) labels: Labels,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former_labels: Vec<Labels>,
    pub(super) annotations: std::collections::BTreeMap<String, String>,
    pub(super) told: Vec<ReceiverName>,
    pub(super) leads: Vec<String>,
    #[serde(default)]
    pub(super) members: Vec<String>,
    pub(super) due: Option<Interval>,
}

/// A token as the writer needs to know it.
#[derive(Clone, Copy)]
struct TokenRow {
    no: i64,
    /// Nothing but its slug is known: a record may tell its name.
    is_nameless: bool,
}

/// Where what is to be told goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// Straight into the outbox, each notice by itself.
    #[default]
    Straight,
    /// It waits for the dispatcher, who groups it or holds it back.
    Waits,
}

/// Writes within one transaction, and remembers the numbers of tokens meanwhile.
pub(super) struct Scribe<'a> {
    to: &'a Transaction<'a>,
    at: Timestamp,
    way: Way,
    tokens: HashMap<TokenId, TokenRow>,
    /// Records that were added, less those that were taken out, of each resource.
    tally: BTreeMap<Resource, i64>,
}

impl<'a> Scribe<'a> {
    pub(super) fn new(to: &'a Transaction<'a>, at: Timestamp, way: Way) -> Self {
        Self { to, at, way, tokens: HashMap::new(), tally: BTreeMap::new() }
    }

    fn write(&mut self, commit: &Commit) -> Result<Saved, Fault> {
        let mut saved = Saved::default();
        self.token_list(commit)?;
        let polls = self.polls(&commit.polls)?;
        if let Some(credit) = &commit.credit {
            let state = json("the credit state", credit)?;
            self.to
                .prepare_cached(
                    "INSERT INTO credit (one, state) VALUES (1, ?1) ON CONFLICT DO UPDATE SET state = excluded.state",
                )?
                .execute([state])?;
        }
        self.investors(&commit.investors)?;
        for update in &commit.feeds {
            let poll = polls.get(&(update.id.endpoint, update.id.token.as_ref())).copied();
            self.feed(update, poll)?;
        }
        self.tally()?;
        for change in &commit.changes {
            saved.changes += u32::from(self.change(change)?);
        }
        for alert in &commit.alerts {
            self.alert(alert)?;
        }
        for notice in &commit.notices {
            self.notice(notice, &mut saved)?;
        }
        for (rule, at) in &commit.rule_matches {
            self.to
                .prepare_cached("INSERT INTO rule_match (rule, at) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET at = excluded.at")?
                .execute(params![rule.as_str(), Millis(*at)])?;
        }
        if let Some(until) = commit.evaluated_until {
            self.to
                .prepare_cached(
                    "INSERT INTO meta (key, value) VALUES ('evaluated_until', ?1) ON CONFLICT DO UPDATE SET value = excluded.value",
                )?
                .execute([until.timestamp_millis().to_string()])?;
        }
        for (name, slot) in &commit.jobs {
            self.to
                .prepare_cached("INSERT INTO job (name, slot) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET slot = excluded.slot")?
                .execute(params![name, Millis(*slot)])?;
        }
        Ok(saved)
    }

    /// The row of a token, made if it is not there.
    fn token(&mut self, id: &TokenId) -> Result<TokenRow, Fault> {
        if let Some(row) = self.tokens.get(id) {
            return Ok(*row);
        }
        let known = self
            .to
            .prepare_cached("SELECT no, item IS NULL AND name IS NULL AND symbol IS NULL FROM token WHERE id = ?1")?
            .query_row([id.as_str()], |row| Ok(TokenRow { no: row.get(0)?, is_nameless: row.get(1)? }))
            .optional()?;
        let row = match known {
            Some(row) => row,
            None => {
                self.to
                    .prepare_cached("INSERT INTO token (id, first_seen) VALUES (?1, ?2)")?
                    .execute(params![id.as_str(), Millis(self.at)])?;
                TokenRow { no: self.to.last_insert_rowid(), is_nameless: true }
            }
        };
        self.tokens.insert(id.clone(), row);
        Ok(row)
    }

    fn token_no(&mut self, id: Option<&TokenId>) -> Result<Option<i64>, Fault> {
        id.map(|id| self.token(id).map(|row| row.no)).transpose()
    }

    fn token_list(&mut self, commit: &Commit) -> Result<(), Fault> {
        let mut named = HashSet::with_capacity(commit.tokens.len() + commit.listed.len());
        for item in &commit.tokens {
            // An item without a slug names nobody; reading the answer has reported it.
            let Some(id) = item.id.as_str().filter(|id| !id.is_empty()) else {
                continue;
            };
            let no = self.token(&TokenId::from(id))?.no;
            named.insert(no);
            self.tokens.insert(TokenId::from(id), TokenRow { no, is_nameless: false });
            let text = json("an item of the token list", item)?;
            self.to
                .prepare_cached(
                    "UPDATE token SET item = ?2, name = ?3, symbol = ?4, last_updated = ?5, has_burn = ?6, has_buyback = ?7
                     WHERE no = ?1 AND item IS NOT ?2",
                )?
                .execute(params![
                    no,
                    text,
                    item.name.as_str(),
                    item.symbol.as_str(),
                    millis(item.last_updated_date.copied()),
                    item.has_burn.copied(),
                    item.has_buyback.copied(),
                ])?;
            self.valuation(no, None, item.market_cap.copied())?;
        }
        if !commit.token_list_complete {
            return Ok(());
        }
        for id in &commit.listed {
            named.insert(self.token(id)?.no);
        }
        // A complete list that names nobody at all is no proof that every token was withdrawn.
        if named.is_empty() {
            return Ok(());
        }
        let known = all(&mut *self.to.prepare_cached("SELECT no, listed FROM token")?, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
        })?;
        for (no, was_listed) in known {
            let is_listed = named.contains(&no);
            if is_listed != was_listed {
                self.to.prepare_cached("UPDATE token SET listed = ?2, unlisted_at = ?3 WHERE no = ?1")?.execute(params![
                    no,
                    is_listed,
                    (!is_listed).then_some(Millis(self.at))
                ])?;
            }
        }
        Ok(())
    }

    /// Keeps the day's last price and market cap, where one of them differs from what is known.
    fn valuation(&self, token: i64, price: Option<f64>, market_cap: Option<f64>) -> Result<(), Fault> {
        if price.is_none() && market_cap.is_none() {
            return Ok(());
        }
        let known: (Option<f64>, Option<f64>) = self
            .to
            .prepare_cached("SELECT reference_price, market_cap FROM valuation WHERE token_no = ?1 ORDER BY day DESC LIMIT 1")?
            .query_row([token], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .unwrap_or_default();
        let present = (price.or(known.0), market_cap.or(known.1));
        if present == known {
            return Ok(());
        }
        let day = self.at.date_naive().and_time(NaiveTime::MIN).and_utc();
        self.to
            .prepare_cached(
                "INSERT INTO valuation (token_no, day, at, reference_price, market_cap) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET at = excluded.at, reference_price = excluded.reference_price, market_cap = excluded.market_cap",
            )?
            .execute(params![token, Millis(day), Millis(self.at), present.0, present.1])?;
        Ok(())
    }

    /// Writes the poll log, and answers which row each feed's last answer has in it.
    fn polls<'p>(&mut self, polls: &'p [PollEntry]) -> Result<HashMap<(Endpoint, Option<&'p TokenId>), i64>, Fault> {
        let mut rows = HashMap::with_capacity(polls.len());
        for poll in polls {
            let token = self.token_no(poll.token.as_ref())?;
            let oddities = (!poll.oddities.is_empty()).then(|| json("the oddities of a poll", &poll.oddities)).transpose()?;
            self.to
                .prepare_cached(
                    "INSERT INTO poll (endpoint, token_no, at, took_ms, outcome, status, requests, credits, bytes, version, records,
                     error, oddities, oddities_total) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                )?
                .execute(params![
                    poll.endpoint.as_str(),
                    token,
                    Millis(poll.at),
                    count(poll.took_ms),
                    poll.outcome,
                    poll.status,
                    poll.requests,
                    poll.credits,
                    count(poll.bytes),
                    poll.version,
                    poll.records,
                    poll.error,
                    oddities,
                    poll.oddities_total,
                ])?;
            rows.insert((poll.endpoint, poll.token.as_ref()), self.to.last_insert_rowid());
            if poll.credits > 0 {
                self.to
                    .prepare_cached("INSERT INTO credit_log (at, endpoint, token_no, credits) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![Millis(poll.at), poll.endpoint.as_str(), token, poll.credits])?;
            }
        }
        Ok(rows)
    }

    fn investors(&self, items: &[InvestorItem]) -> Result<(), Fault> {
        for item in items {
            let Some(id) = item.investor_id.as_str().filter(|id| !id.is_empty()) else {
                continue;
            };
            self.to
                .prepare_cached(
                    "INSERT INTO investor (id, item, seen) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET item = excluded.item, seen = excluded.seen",
                )?
                .execute(params![id, json("an investor", item)?, Millis(self.at)])?;
        }
        Ok(())
    }

    fn feed(&mut self, update: &FeedUpdate, poll: Option<i64>) -> Result<(), Fault> {
        let owner = update.id.token.as_ref().map(|id| self.token(id)).transpose()?;
        let scope = owner.map_or(0, |token| token.no);
        self.feed_state(update, scope)?;
        if let (Some(token), Some(id)) = (owner, &update.id.token)
            && token.is_nameless
        {
            self.name(token.no, id, update)?;
        }
        // First, so that a key that is given up and taken anew in one answer ends up with its record.
        if let Some(resource) = update.id.endpoint.resource() {
            for key in &update.removed {
                self.remove(scope, resource, key, poll)?;
            }
        }
        for put in &update.put {
            self.put(scope, owner, put, poll)?;
        }
        if let Some(token) = owner {
            self.valuation(token.no, reference_price(&update.put), None)?;
        }
        Ok(())
    }

    fn feed_state(&self, update: &FeedUpdate, scope: i64) -> Result<(), Fault> {
        let FeedUpdate { id: FeedId { endpoint, .. }, state, header, .. } = update;
        let header = header.as_ref().map(|header| json("the header of a feed", header)).transpose()?;
        self.to
            .prepare_cached(
                "INSERT INTO feed (endpoint, token_no, baseline_at, read_at, tried_at, hash, mark, stale, failing_since, missing,
                 held_since, cost, header) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                 ON CONFLICT (token_no, endpoint) DO UPDATE SET baseline_at = excluded.baseline_at, read_at = excluded.read_at,
                 tried_at = excluded.tried_at, hash = excluded.hash, mark = excluded.mark, stale = excluded.stale,
                 failing_since = excluded.failing_since, missing = excluded.missing, held_since = excluded.held_since,
                 cost = excluded.cost, header = coalesce(excluded.header, header)",
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
            ])?;
        Ok(())
    }

    /// A token that no list named: its name as its records or the head of its answer tell it.
    fn name(&mut self, no: i64, id: &TokenId, update: &FeedUpdate) -> Result<(), Fault> {
        let of_record = update.put.iter().find_map(|put| match &put.record {
            Record::Unlock(event) => both(event.token_name.as_str(), event.token_symbol.as_str()),
            Record::Emission(emission) => both(emission.token_name.as_str(), emission.token_symbol.as_str()),
            _ => None,
        });
        let of_header = || {
            let header = update.header.as_ref()?;
            let text = |names: [&str; 2]| names.iter().find_map(|name| header.get(*name)?.as_str());
            both(text(["tokenName", "name"]), text(["tokenSymbol", "symbol"]))
        };
        if let Some((name, symbol)) = of_record.or_else(of_header) {
            self.to
                .prepare_cached("UPDATE token SET name = ?2, symbol = ?3 WHERE no = ?1")?
                .execute(params![no, name, symbol])?;
            self.tokens.insert(id.clone(), TokenRow { no, is_nameless: false });
        }
        Ok(())
    }

    fn put(&mut self, scope: i64, owner: Option<TokenRow>, put: &Put, poll: Option<i64>) -> Result<(), Fault> {
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
                "SELECT no, body = ?4, token_no IS ?5 AND starts_at IS ?6 AND ends_at IS ?7 FROM record
                 WHERE scope_no = ?1 AND resource = ?2 AND key = ?3",
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
                if has_same_place {
                    // Mostly prices, which no index is on: what is not named here is not written again.
                    self.to.prepare_cached("UPDATE record SET body = ?2 WHERE no = ?1")?.execute(params![no, body])?;
                } else {
                    self.to
                        .prepare_cached("UPDATE record SET token_no = ?2, starts_at = ?3, ends_at = ?4, body = ?5 WHERE no = ?1")?
                        .execute(params![no, token, starts, ends, body])?;
                }
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
    fn tally(&mut self) -> Result<(), Fault> {
        for (resource, more) in std::mem::take(&mut self.tally).into_iter().filter(|(_, more)| *more != 0) {
            let values = params![resource.as_str(), more];
            let known = self.to.prepare_cached("UPDATE tally SET records = records + ?2 WHERE resource = ?1")?.execute(values)?;
            if known == 0 {
                self.to.prepare_cached("INSERT INTO tally (resource, records) VALUES (?1, ?2)")?.execute(values)?;
            }
        }
        Ok(())
    }

    /// Moves what the snapshot holds of a record into the history.
    fn keep_version(&self, no: i64) -> Result<(), Fault> {
        self.to
            .prepare_cached(
                "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, poll, body)
                 SELECT scope_no, token_no, resource, key, version_at, ?2, version_poll, body FROM record WHERE no = ?1",
            )?
            .execute(params![no, Millis(self.at)])?;
        Ok(())
    }

    fn remove(&mut self, scope: i64, resource: Resource, key: &RecordKey, poll: Option<i64>) -> Result<(), Fault> {
        let no: Option<i64> = self
            .to
            .prepare_cached("SELECT no FROM record WHERE scope_no = ?1 AND resource = ?2 AND key = ?3")?
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

    /// Writes a change, unless the very same one stands there from a commit of the same instant.
    fn change(&mut self, change: &Change) -> Result<bool, Fault> {
        let token = self.token_no(change.token.as_ref())?;
        let resource = change.resource.map(Resource::as_str);
        let key = change.key.as_ref().map(RecordKey::as_str);
        let body = json("a change", change)?;
        let side = |record: &Option<Record>| record.as_ref().map(|record| json("the record of a change", record)).transpose();
        let (old, new) = (side(&change.old)?, side(&change.new)?);
        let mut hasher = Xxh3Default::new();
        hasher.update(&self.at.timestamp_millis().to_be_bytes());
        hasher.update(&token.unwrap_or(0).to_be_bytes());
        for part in [resource, key, Some(body.as_str()), old.as_deref(), new.as_deref()] {
            let part = part.unwrap_or_default();
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let written = self
            .to
            .prepare_cached(
                "INSERT INTO change (at, token_no, resource, kind, key, body, old_record, new_record, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (digest) DO NOTHING",
            )?
            .execute(params![
                Millis(self.at),
                token,
                resource,
                change.kind.as_str(),
                key,
                body,
                old,
                new,
                hasher.digest128().to_be_bytes().as_slice(),
            ])?;
        Ok(written > 0)
    }

    /// Writes an alert whole.
    pub(super) fn alert(&mut self, alert: &Alert) -> Result<(), Fault> {
        let token = self.token_no(alert.token.as_ref())?;
        let columns = AlertColumns {
            labels: alert.labels.clone(),
            former_labels: alert.former_labels.clone(),
            annotations: alert.annotations.clone(),
            told: alert.told.clone(),
            leads: alert.leads.clone(),
            members: alert.members.clone(),
            due: alert.due,
        };
        self.to
            .prepare_cached(
                "INSERT INTO alert (id, rule, name, subject, episode, state, resolution, token_no, resource, key, level, active_at,
                 starts_at, ends_at, false_since, recheck_at, updated_at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
                 ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, name = excluded.name, subject = excluded.subject,
                 episode = excluded.episode, state = excluded.state, resolution = excluded.resolution, token_no = excluded.token_no,
                 resource = excluded.resource, key = excluded.key, level = excluded.level, active_at = excluded.active_at,
                 starts_at = excluded.starts_at, ends_at = excluded.ends_at, false_since = excluded.false_since,
                 recheck_at = excluded.recheck_at, updated_at = excluded.updated_at, body = excluded.body",
            )?
            .execute(params![
                alert.id.as_str(),
                alert.rule.as_str(),
                alert.name,
                alert.subject,
                alert.episode,
                alert.state.as_str(),
                alert.resolution.map(crate::alert::Resolution::as_str),
                token,
                alert.resource.map(Resource::as_str),
                alert.key.as_ref().map(RecordKey::as_str),
                alert.level,
                Millis(alert.active_at),
                millis(alert.starts_at),
                millis(alert.ends_at),
                millis(alert.false_since),
                millis(alert.recheck_at),
                Millis(alert.updated_at),
                json("an alert", &columns)?,
            ])?;
        Ok(())
    }

    /// Writes a notice with its deliveries, due at once, or as waiting; one whose id exists is left alone.
    pub(super) fn notice(&self, notice: &Notice, saved: &mut Saved) -> Result<(), Fault> {
        let written = self
            .to
            .prepare_cached(
                "INSERT INTO notice (id, alert, kind, at, receivers, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                notice.id.as_str(),
                notice.alert.as_str(),
                notice.kind.as_str(),
                Millis(notice.at),
                json("the receivers of a notice", &notice.receivers)?,
                json("a notice", &notice.body)?,
            ])?;
        if written == 0 {
            saved.known_notices += 1;
            return Ok(());
        }
        for (index, receiver) in notice.receivers.iter().enumerate() {
            if notice.receivers.iter().take(index).any(|earlier| earlier == receiver) {
                continue;
            }
            match self.way {
                Way::Straight => self.deliver(notice, receiver)?,
                Way::Waits => telling::wait(self.to, notice, receiver, self.at)?,
            }
            saved.deliveries += 1;
        }
        Ok(())
    }
}

impl Scribe<'_> {
    /// Puts a notice into the outbox by itself.
    fn deliver(&self, notice: &Notice, receiver: &ReceiverName) -> Result<(), Fault> {
        self.to
            .prepare_cached(
                "INSERT INTO delivery (webhook_id, receiver, state, attempts, tries, created_at, due_at, next_attempt_at, updated_at)
                 VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?4, ?4)",
            )?
            .execute(params![
                webhook_id([notice.id.as_str()], receiver),
                receiver.as_str(),
                DeliveryState::Due.as_str(),
                Millis(self.at)
            ])?;
        let delivery = self.to.last_insert_rowid();
        self.to
            .prepare_cached("INSERT INTO delivery_notice (delivery_no, ordinal, notice, receiver) VALUES (?1, 0, ?2, ?3)")?
            .execute(params![delivery, notice.id.as_str(), receiver.as_str()])?;
        Ok(())
    }
}

/// The id that a receiver sees at every attempt, derived so that the same notices can never reach it under two.
pub(super) fn webhook_id<'n>(notices: impl IntoIterator<Item = &'n str>, receiver: &'n ReceiverName) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in notices.into_iter().chain([receiver.as_str()]) {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    let hex: String = context.finish().as_ref().iter().take(14).map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

fn both<'t>(name: Option<&'t str>, symbol: Option<&'t str>) -> Option<(Option<&'t str>, Option<&'t str>)> {
    let filled = |text: Option<&'t str>| text.filter(|text| !text.is_empty());
    let (name, symbol) = (filled(name), filled(symbol));
    (name.is_some() || symbol.is_some()).then_some((name, symbol))
}

/// The newest reference price in an answer: every event of it repeats the token's price.
fn reference_price(puts: &[Put]) -> Option<f64> {
    let of_event = |event: &UnlockEvent| {
        let cliffs = event.cliff_unlocks.get();
        let parts = cliffs.map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        std::iter::once((event.reference_price_updated_time.copied(), event.reference_price.copied()))
            .chain(cliffs.map(|cliffs| (cliffs.reference_price_updated_time.copied(), cliffs.reference_price.copied())))
            .chain(parts.iter().map(|part| (part.reference_price_updated_time.copied(), part.reference_price.copied())))
            .filter_map(|(at, price)| price.map(|price| (at, price)))
            .max_by_key(|(at, _)| *at)
    };
    puts.iter()
        .filter_map(|put| if let Record::Unlock(event) = &put.record { of_event(event) } else { None })
        .max_by_key(|(at, _)| *at)
        .map(|(_, price)| price)
}
