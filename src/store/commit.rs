//! One step of a cycle, written whole or not at all.
//!
//! Cast: [`CommitWriter`] writes within one transaction. `tokens` has the token list, `records` the feeds with their records and
//! history, `schedule` those of unlocks, `alerts` changes, alerts and their notifications; here are the poll log and how far the work is.

mod alerts;
mod records;
mod schedule;
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Instant;

use chrono::TimeDelta;
use rusqlite::params;

pub(super) use self::alerts::{AlertColumns, webhook_id};
pub(super) use self::schedule::Size;
use self::schedule::{Drift, ScheduleQuestions};
use self::tokens::TokenRow;
use super::codec::{Millis, count, json};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::sql::{Connection, Transaction};
use super::{Store, StoreError, failpoint};
use model::{Commit, CommitResult, Endpoint, PollEntry, Resource, Timestamp, TokenId, wire::InvestorItem};

impl Store {
    /// Writes one step of a cycle whole, or not at all.
    pub async fn commit(&self, commit: Commit) -> Result<CommitResult, StoreError> {
        let doing = "commit a step of a cycle";
        let goes_to = self.notification_target();
        self.writer(doing)?.run(doing, move |connection| write(connection, &commit, goes_to)).await
    }

    /// Where notifications go now.
    pub(super) fn notification_target(&self) -> NotificationTarget {
        if self.0.is_dispatched.load(Ordering::SeqCst) { NotificationTarget::Dispatcher } else { NotificationTarget::Outbox }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotificationTarget {
    /// Into the outbox, each by itself.
    Outbox,
    /// They wait for the dispatcher, which groups or suppresses them.
    Dispatcher,
}

/// Writes a commit in one transaction.
fn write(connection: &mut Connection, commit: &Commit, goes_to: NotificationTarget) -> Result<CommitResult, StoreFault> {
    let begun = Instant::now();
    failpoint::pass("commit.before");
    let mut saved = connection.write(true, |transaction| {
        let saved = CommitWriter::new(transaction, commit.at, goes_to).write(commit)?;
        failpoint::pass("commit.inside");
        Ok(saved)
    })?;
    failpoint::pass("commit.after");
    saved.took = TimeDelta::from_std(begun.elapsed()).unwrap_or(TimeDelta::MAX);
    Ok(saved)
}

/// Writes within one transaction, and remembers the numbers of tokens meanwhile. What it needs to know of many rows it asks for before
/// it reads the first answer, and what it writes is not waited for: on a server a commit takes as many ways there and back as it has
/// steps, not as it has rows.
pub(super) struct CommitWriter<'a> {
    to: &'a Transaction<'a>,
    at: Timestamp,
    goes_to: NotificationTarget,
    tokens: HashMap<TokenId, TokenRow>,
    /// What was asked about schedules that are to be written.
    asked: HashMap<i64, ScheduleQuestions<'a>>,
    /// How far the sizes of tokens have drifted whose schedules are written.
    drifts: HashMap<Option<i64>, Drift>,
    /// Records that were added, less those that were taken out, of each resource.
    tally: BTreeMap<Resource, i64>,
}

impl<'a> CommitWriter<'a> {
    pub(super) fn new(to: &'a Transaction<'a>, at: Timestamp, goes_to: NotificationTarget) -> Self {
        Self { to, at, goes_to, tokens: HashMap::new(), asked: HashMap::new(), drifts: HashMap::new(), tally: BTreeMap::new() }
    }

    fn write(&mut self, commit: &Commit) -> Result<CommitResult, StoreFault> {
        let mut saved = CommitResult::default();
        self.meet(named_by(commit))?;
        self.token_list(commit)?;
        let polls = self.polls(&commit.polls)?;
        self.investors(&commit.investors)?;
        for updates in commit.feeds.chunks(READ_TOGETHER) {
            self.ask_schedules(updates)?;
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
        self.progress(commit)?;
        Ok(saved)
    }

    /// How far the work is: rules that held, times up to which things were done.
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
        for (name, slot) in &commit.jobs {
            self.to
                .prepare_cached(
                    "INSERT INTO job (name, slot) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET slot = excluded.slot",
                )?
                .execute(params![name, Millis(*slot)])?;
        }
        Ok(())
    }

    /// Writes the poll log, and answers which row each feed's last answer has in it.
    fn polls<'p>(&mut self, polls: &'p [PollEntry]) -> Result<HashMap<(Endpoint, Option<&'p TokenId>), i64>, StoreFault> {
        let mut asked = Vec::with_capacity(polls.len());
        for poll in polls {
            let token = self.token_no(poll.token.as_ref())?;
            let oddities = (!poll.oddities.is_empty()).then(|| json("the oddities of a poll", &poll.oddities)).transpose()?;
            let no = self
                .to
                .prepare_cached(
                    "INSERT INTO poll (endpoint, token_no, at, took_ms, outcome, status, requests, credits, bytes, version, records,
                     error, oddities, oddities_total) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING no",
                )?
                .ask(params![
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
                    oddities,
                    poll.oddities_total,
                ])?;
            asked.push(((poll.endpoint, poll.token.as_ref()), no));
        }
        asked.into_iter().map(|(feed, no)| Ok((feed, no.row(|row| row.get(0))?))).collect()
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

/// The tokens that a commit names, in the order in which it comes to them.
fn named_by(commit: &Commit) -> Vec<TokenId> {
    let items = commit.tokens.iter().filter_map(|item| item.id.as_str().filter(|id| !id.is_empty()).map(TokenId::from));
    let listed = commit.listed.iter().filter(|_| commit.token_list_complete);
    let polls = commit.polls.iter().filter_map(|poll| poll.token.as_ref());
    let feeds = commit.feeds.iter().filter_map(|update| update.id.token.as_ref());
    let changes = commit.changes.iter().filter_map(|change| change.token.as_ref());
    let alerts = commit.alerts.iter().filter_map(|alert| alert.token.as_ref());
    items.chain(listed.chain(polls).chain(feeds).chain(changes).chain(alerts).cloned()).collect()
}
