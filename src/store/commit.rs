//! One step of a cycle, committed in one transaction.
//!
//! [`CommitWriter`] writes the step: `tokens` the token list, `records` feeds with their records and history,
//! `schedule` the unlock events, `alerts` changes, alerts, and notifications, and `held` the events that wait for the end
//! of their cycle. This file writes the poll log and the progress.

mod alerts;
mod held;
mod records;
mod schedule;
mod supply;
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Instant;

use chrono::TimeDelta;
use rusqlite::params;

pub(super) use self::alerts::{AlertColumns, DELIVERY_NOTIFICATION_COLUMNS, webhook_id};
pub(super) use self::schedule::EventIndex;
use self::schedule::{Drift, ScheduleQueries};
pub(super) use self::supply::SupplyRow;
use self::tokens::TokenRow;
use super::codec::{Millis, count, json};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::silence::put_silence;
use super::sql::{Connection, Transaction};
use super::{Store, StoreError, failpoint};
use model::{Commit, CommitResult, Endpoint, PollEntry, Resource, Timestamp, TokenId, wire::InvestorItem};

impl Store {
    /// Commits one step of a cycle in one transaction.
    pub async fn commit(&self, commit: Commit) -> Result<CommitResult, StoreError> {
        let doing = "commit a step of a cycle";
        let target = self.notification_target();
        self.writer(doing)?.run(doing, move |connection| write(connection, &commit, target)).await
    }

    /// Returns where new notifications are stored.
    pub(super) fn notification_target(&self) -> NotificationTarget {
        if self.handle.is_dispatched.load(Ordering::SeqCst) { NotificationTarget::Dispatcher } else { NotificationTarget::Outbox }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotificationTarget {
    /// Each notification becomes its own delivery in the outbox.
    Outbox,
    /// Notifications wait for the dispatcher, which groups or suppresses them.
    Dispatcher,
}

fn write(connection: &mut Connection, commit: &Commit, target: NotificationTarget) -> Result<CommitResult, StoreFault> {
    let begun = Instant::now();
    failpoint::pass("commit.before");
    let mut saved = connection.write(true, |transaction| {
        let saved = CommitWriter::new(transaction, commit.at, target).write(commit)?;
        failpoint::pass("commit.inside");
        Ok(saved)
    })?;
    failpoint::pass("commit.after");
    saved.took = TimeDelta::from_std(begun.elapsed()).unwrap_or(TimeDelta::MAX);
    Ok(saved)
}

/// Writes a commit within one transaction, and caches token numbers. It sends its lookups in batches before it reads
/// the first result, and does not wait for writes. A commit therefore costs one network round trip per step, not per
/// row.
pub(super) struct CommitWriter<'a> {
    to: &'a Transaction<'a>,
    at: Timestamp,
    /// The time from which new notifications wait.
    waits_from: Timestamp,
    target: NotificationTarget,
    tokens: HashMap<TokenId, TokenRow>,
    /// Lookups sent for schedules that will be written.
    queried: HashMap<i64, ScheduleQueries<'a>>,
    /// The size drift of tokens whose schedules are written.
    drifts: HashMap<Option<i64>, Drift>,
    /// The rows of `token_supply` of these tokens. `None` if there is none.
    supplies: HashMap<i64, Option<SupplyRow>>,
    /// Records added minus records removed, by resource.
    tally: BTreeMap<Resource, i64>,
}

impl<'a> CommitWriter<'a> {
    pub(super) fn new(to: &'a Transaction<'a>, at: Timestamp, target: NotificationTarget) -> Self {
        Self {
            to,
            at,
            waits_from: at,
            target,
            tokens: HashMap::new(),
            queried: HashMap::new(),
            drifts: HashMap::new(),
            supplies: HashMap::new(),
            tally: BTreeMap::new(),
        }
    }

    fn write(&mut self, commit: &Commit) -> Result<CommitResult, StoreFault> {
        self.waits_from = commit.waits_from.unwrap_or(self.at);
        let mut saved = CommitResult::default();
        self.load_tokens(tokens_of(commit))?;
        self.token_list(commit)?;
        let polls = self.polls(&commit.polls)?;
        self.investors(&commit.investors)?;
        for updates in commit.feeds.chunks(READ_TOGETHER) {
            self.query_schedules(updates)?;
            for update in updates {
                let poll = polls.get(&(update.id.endpoint, update.id.token.as_ref())).copied();
                self.feed(update, poll)?;
            }
        }
        self.tally()?;
        saved.changes = self.changes(&commit.changes)?;
        for alert in &commit.alerts {
            self.alert(alert)?;
        }
        self.notifications(commit.notifications.iter().chain(&commit.left_out), &mut saved)?;
        for silence in &commit.silences {
            put_silence(self.to, silence)?;
        }
        for event in &commit.held {
            self.hold_event(event, &commit.cycle)?;
        }
        for notification in &commit.decided {
            self.forget_held_event(notification)?;
        }
        self.progress(commit)?;
        Ok(saved)
    }

    /// Stores rule matches, job slots, the time up to which rules were evaluated, and the latest time of an evaluation.
    fn progress(&self, commit: &Commit) -> Result<(), StoreFault> {
        for (rule, at) in &commit.rule_matches {
            self.to
                .prepare_cached(
                    "INSERT INTO rule_match (rule, at) VALUES (?1, ?2) ON CONFLICT (rule) DO UPDATE SET at = excluded.at",
                )?
                .execute(params![rule.as_str(), Millis(*at)])?;
        }
        if let Some(until) = commit.evaluated_until {
            self.to
                .prepare_cached(
                    "INSERT INTO meta (key, value) VALUES ('evaluated_until', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                )?
                .execute([until.timestamp_millis().to_string()])?;
        }
        if let Some(at) = commit.evaluated_at {
            self.to
                .prepare_cached(
                    "INSERT INTO meta (key, value) VALUES ('evaluated_at', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value
                     WHERE CAST(excluded.value AS BIGINT) > CAST(meta.value AS BIGINT)",
                )?
                .execute([at.timestamp_millis().to_string()])?;
        }
        for (name, slot) in &commit.jobs {
            self.to
                .prepare_cached(
                    "INSERT INTO job (name, slot) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET slot = excluded.slot",
                )?
                .execute(params![name, Millis(*slot)])?;
        }
        Ok(())
    }

    /// Writes the poll log and returns the row number of each feed's poll.
    fn polls<'p>(&mut self, polls: &'p [PollEntry]) -> Result<HashMap<(Endpoint, Option<&'p TokenId>), i64>, StoreFault> {
        let mut queried = Vec::with_capacity(polls.len());
        for poll in polls {
            let token = self.token_no(poll.token.as_ref())?;
            let parse_warnings = (!poll.parse_warnings.is_empty())
                .then(|| json("the parse warnings of a poll", &poll.parse_warnings))
                .transpose()?;
            let no = self
                .to
                .prepare_cached(
                    "INSERT INTO poll (endpoint, token_no, at, took_ms, outcome, status, requests, credits, bytes, version, records,
                     error, parse_warnings, parse_warnings_total) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING no",
                )?
                .send_query(params![
                    poll.endpoint.as_str(),
                    token,
                    Millis(poll.at),
                    count(poll.took_ms),
                    poll.outcome.as_str(),
                    poll.status,
                    poll.requests,
                    poll.credits,
                    count(poll.bytes),
                    poll.version,
                    poll.records,
                    poll.error,
                    parse_warnings,
                    poll.parse_warnings_total,
                ])?;
            queried.push(((poll.endpoint, poll.token.as_ref()), no));
        }
        queried.into_iter().map(|(feed, no)| Ok((feed, no.row(|row| row.get(0))?))).collect()
    }

    fn investors(&self, items: &[InvestorItem]) -> Result<(), StoreFault> {
        for item in items {
            let Some(id) = item.investor_id.as_str().filter(|id| !id.is_empty()) else {
                continue;
            };
            self.to
                .prepare_cached(
                    "INSERT INTO investor (id, item, seen) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET item = excluded.item, seen = excluded.seen",
                )?
                .execute(params![id, json("an investor", item)?, Millis(self.at)])?;
        }
        Ok(())
    }
}

/// Returns the tokens of a commit, in the order in which they are written.
fn tokens_of(commit: &Commit) -> Vec<TokenId> {
    let items = commit.tokens.iter().filter_map(|item| item.id.as_str().filter(|id| !id.is_empty()).map(TokenId::from));
    let listed = commit.listed.iter().filter(|_| commit.token_list_complete);
    let polls = commit.polls.iter().filter_map(|poll| poll.token.as_ref());
    let feeds = commit.feeds.iter().filter_map(|update| update.id.token.as_ref());
    let changes = commit.changes.iter().filter_map(|change| change.token.as_ref());
    let alerts = commit.alerts.iter().filter_map(|alert| alert.token.as_ref());
    items.chain(listed.chain(polls).chain(feeds).chain(changes).chain(alerts).cloned()).collect()
}
