//! Queries for alerts: lists, single alerts, their notifications, and open alerts by rule.

use std::collections::HashMap;

use rusqlite::types::Value;

use super::codec::{Conditions, all, counted, from_json, list, one, one_of_words, word};
use super::counts::alert_states;
use super::error::StoreFault;
use super::list_limits::in_chunks;
use super::outbox::notification;
use super::query::at;
use super::rows::{self, ALERT_COLUMNS};
use super::sql::{Engine, Transaction};
use super::{Store, StoreError};
use model::{
    Alert, AlertCursor, AlertFilter, AlertId, AlertState, FiringAlert, GROUP_SUBJECT, GroupMembers, ListPosition, Listed,
    Notification, NumberedAlert, ReceiverName, RuleId, TokenId,
};

/// The maximum number of notifications read for one alert.
const MAX_NOTIFICATIONS: u32 = 200;

impl Store {
    /// Returns alerts, most recently updated first.
    pub async fn alerts(&self, filter: AlertFilter) -> Result<Vec<Alert>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read alerts", move |from| alerts(from, &filter, max_bytes)).await
    }

    /// Returns alerts like [`Self::alerts`], with the total count.
    pub async fn alerts_listed(&self, filter: AlertFilter) -> Result<Listed<Alert>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("list alerts", move |from| alerts_listed(from, &filter, max_bytes)).await
    }

    /// Returns alerts, newest first: in the reverse order of the commits that began them, which updates do not change. Ignores
    /// `after` of the filter.
    pub async fn alerts_by_number(
        &self,
        filter: AlertFilter,
        position: ListPosition,
    ) -> Result<Listed<NumberedAlert>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("list alerts by number", move |from| alerts_by_number(from, &filter, position, max_bytes)).await
    }

    /// Returns whether a rule, by its id or name, has alerts.
    pub async fn has_alerts_of(&self, rule: RuleId) -> Result<bool, StoreError> {
        self.read("search the alerts of a rule", move |from| {
            let sql = "SELECT EXISTS (SELECT 1 FROM alert WHERE rule = ?1) OR EXISTS (SELECT 1 FROM alert WHERE name = ?1)";
            Ok(from.prepare_cached(sql)?.query_row([rule.as_str()], |row| row.get(0))?)
        })
        .await
    }

    /// Returns an alert, or `None` if the id is unknown or was pruned.
    pub async fn alert(&self, id: AlertId) -> Result<Option<Alert>, StoreError> {
        self.read("read an alert", move |from| alert(from, &id)).await
    }

    /// Returns the stored episodes of the same rule and subject, latest first, at most `limit`.
    pub async fn episodes_of(&self, of: &Alert, limit: u32) -> Result<Vec<Alert>, StoreError> {
        let (rule, subject) = (of.rule.clone(), of.subject.clone());
        self.read("read the episodes of an alert", move |from| episodes_of(from, &rule, &subject, limit)).await
    }

    /// Returns the notifications of an alert, oldest first. Notifications can outlive their alert, and digests have no
    /// alert.
    pub async fn notifications_of(&self, alert: AlertId) -> Result<Vec<Notification>, StoreError> {
        self.read("read the notifications of an alert", move |from| notifications_of(from, &alert)).await
    }

    /// Returns the labels of all firing alerts, for inhibitions.
    pub async fn firing_labels(&self) -> Result<Vec<FiringAlert>, StoreError> {
        self.read("read the labels of firing alerts", firing_labels).await
    }

    /// Counts the alerts in each state, or only those of some groups.
    pub async fn alert_counts(&self, group: Option<GroupMembers>) -> Result<Vec<(AlertState, u64)>, StoreError> {
        self.read("count alerts", move |from| match &group {
            Some(group) => group_alert_states(from, group),
            None => alert_states(from),
        })
        .await
    }

    /// Counts the pending and firing alerts of each rule.
    pub async fn open_by_rule(&self) -> Result<Vec<(RuleId, AlertState, u64)>, StoreError> {
        self.read("count the open alerts of each rule", open_by_rule).await
    }
}

/// The maximum number of rows that are sorted. For more matches, scanning from the newest alert finds a page sooner.
const MAX_SORTED: u64 = 10_000;

/// Returns the conditions of a filter, without its cursor. `notified` contains the receiver sets that include the
/// filter's receiver.
fn conditions(filter: &AlertFilter, notified: Option<&ReceiverSets>) -> Conditions {
    let mut conditions = Conditions::default();
    if !filter.states.is_empty() {
        conditions.and_plain(&one_of_words("a.state", filter.states.iter().map(|state| state.as_str())));
    }
    if !filter.ids.is_empty() {
        conditions.and("a.id IN (SELECT value FROM json_each(?))", list(filter.ids.iter().map(AlertId::as_str)));
    }
    conditions
        .and_some("? IN (a.rule, a.name)", filter.rule.as_ref().map(|rule| rule.as_str().to_owned()))
        .and_some("a.token_no = (SELECT no FROM token WHERE id = ?)", filter.token.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("a.body ->> '$.labels.severity' = ?", filter.severity.clone())
        .and_some("a.updated_at >= ?", filter.since.map(at))
        .and_some("a.updated_at < ?", filter.until.map(at));
    if let Some(group) = &filter.group {
        in_group(&mut conditions, group);
    }
    match filter.acknowledged {
        // Acknowledged alerts are few, so the query starts with them.
        Some(true) => conditions.and_plain("a.id IN (SELECT alert FROM ack)"),
        Some(false) => conditions.and_plain("a.id NOT IN (SELECT alert FROM ack)"),
        None => &mut conditions,
    };
    conditions.and_some("a.id IN (SELECT alert FROM assignee WHERE name = ?)", filter.assignee.clone());
    if let Some(ReceiverSets { by, sets, is_rare }) = notified {
        // Concatenation disables the index. If the receiver got most alerts, scanning by time is faster.
        let set = if *is_rare { format!("({by})") } else { format!("(({by}) || '')") };
        conditions.and(&format!("{set} IN (SELECT value FROM json_each(?))"), list(sets.iter().map(String::as_str)));
    }
    conditions
}

/// Adds the condition that an alert is about a token of the groups, or about one of the groups as a whole.
pub(super) fn in_group(conditions: &mut Conditions, group: &GroupMembers) {
    let subjects: Vec<String> = group.names.iter().map(|name| format!("{GROUP_SUBJECT}{name}")).collect();
    let values = [list(group.tokens.iter().map(TokenId::as_str)), list(subjects.iter().map(String::as_str))];
    conditions.and_all(
        "(a.token_no IN (SELECT no FROM token WHERE id IN (SELECT value FROM json_each(?)))
          OR a.subject IN (SELECT value FROM json_each(?)))",
        values.map(Value::from),
    );
}

fn group_alert_states(from: &Transaction<'_>, group: &GroupMembers) -> Result<Vec<(AlertState, u64)>, StoreFault> {
    let mut conditions = Conditions::default();
    in_group(&mut conditions, group);
    let (sql, values) = conditions.within("SELECT a.state, count(*) FROM alert a", " GROUP BY a.state");
    let counts: HashMap<String, u64> =
        all(&mut from.prepare(&sql)?, values, |row| Ok((row.get(0)?, counted(row.get(1)?))))?.into_iter().collect();
    Ok(AlertState::ALL.into_iter().map(|state| (state, counts.get(state.as_str()).copied().unwrap_or(0))).collect())
}

/// The distinct receiver sets that include a given receiver. There are few sets, however many alerts exist.
struct ReceiverSets {
    /// The indexed SQL expression that identifies a receiver set.
    by: &'static str,
    /// The values of `by` for the matching sets.
    sets: Vec<String>,
    /// Whether few enough alerts match to start with the index on `by`.
    is_rare: bool,
}

impl ReceiverSets {
    /// Skips from one distinct set to the next, in index order.
    fn read(from: &Transaction<'_>, receiver: &ReceiverName) -> Result<Self, StoreFault> {
        // PostgreSQL limits the size of an index entry, so the server stores a digest of the set.
        let by = if from.engine() == Engine::Postgres { "a.receiver_set" } else { "a.body ->> '$.notified'" };
        let sql = format!("SELECT {by}, a.body ->> '$.notified' FROM alert a WHERE {by} > ?1 ORDER BY 1 LIMIT 1");
        let mut next = from.prepare_cached(&sql)?;
        let (mut sets, mut last) = (Vec::new(), String::new());
        while let Some((key, set)) = one(&mut next, [&last], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)))? {
            if from_json::<Vec<ReceiverName>>("the receivers of alerts", "", &set)?.contains(receiver) {
                sets.push(key.clone());
            }
            last = key;
        }
        Ok(Self { by, sets, is_rare: true })
    }
}

fn alerts_listed(from: &Transaction<'_>, filter: &AlertFilter, max_bytes: usize) -> Result<Listed<Alert>, StoreFault> {
    let (notified, total) = counted_sets(from, filter)?;
    let (rows, is_cut) = matching_alerts(from, filter, notified.as_ref(), max_bytes)?;
    Ok(Listed { rows, total, is_cut })
}

fn alerts_by_number(
    from: &Transaction<'_>,
    filter: &AlertFilter,
    position: ListPosition,
    max_bytes: usize,
) -> Result<Listed<NumberedAlert>, StoreFault> {
    let (notified, total) = counted_sets(from, filter)?;
    let mut conditions = conditions(filter, notified.as_ref());
    conditions.and_some("a.number < ?", position.after).and_some("a.number > ?", position.before);
    // If many alerts match, scanning from the newest one finds a page sooner than sorting them.
    let indexed = if total > MAX_SORTED { from.engine().indexed_by("alert_number") } else { String::new() };
    let order = if position.is_from_before() { "ASC" } else { "DESC" };
    let (sql, values) = conditions.within(
        &format!("SELECT a.number FROM alert a {indexed}"),
        &format!(" ORDER BY a.number {order} LIMIT {}", filter.limit),
    );
    let numbers: Vec<i64> = all(&mut from.prepare(&sql)?, values, |row| Ok(row.get(0)?))?;
    let mut left = numbers.as_slice();
    let (mut rows, is_cut) = in_chunks(filter.limit, max_bytes, |_, limit| {
        let (chunk, rest) = left.split_at_checked(limit as usize).unwrap_or((left, &[]));
        left = rest;
        numbered_chunk(from, chunk, order)
    })?;
    if position.is_from_before() {
        rows.reverse();
    }
    Ok(Listed { rows, total, is_cut })
}

/// Reads alerts with their sizes, in one statement.
fn numbered_chunk(from: &Transaction<'_>, numbers: &[i64], order: &str) -> Result<Vec<(NumberedAlert, usize)>, StoreFault> {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let sql = format!(
        "SELECT {ALERT_COLUMNS}, a.number FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.number IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY a.number {order}"
    );
    all(&mut *from.prepare_cached(&sql)?, [list(texts.iter().map(String::as_str))], |row| {
        let number = row.get(rows::ALERT_COLUMN_COUNT)?;
        Ok((NumberedAlert { number, alert: rows::alert(row)? }, row.text_bytes()))
    })
}

/// Returns the receiver sets that the filter selects, and the number of matching alerts.
fn counted_sets(from: &Transaction<'_>, filter: &AlertFilter) -> Result<(Option<ReceiverSets>, u64), StoreFault> {
    let mut notified = filter.receiver.as_ref().map(|receiver| ReceiverSets::read(from, receiver)).transpose()?;
    if let Some(notified) = notified.as_mut().filter(|_| !filter.states.is_empty()) {
        // Both counts use an index only. The query then starts with the smaller side.
        let of_states = AlertFilter { states: filter.states.clone(), ..AlertFilter::default() };
        notified.is_rare = alerts_total(from, &AlertFilter::default(), Some(notified))? <= alerts_total(from, &of_states, None)?;
    }
    let total = alerts_total(from, filter, notified.as_ref())?;
    if let Some(notified) = &mut notified {
        notified.is_rare &= total <= MAX_SORTED;
    }
    Ok((notified, total))
}

fn alerts(from: &Transaction<'_>, filter: &AlertFilter, max_bytes: usize) -> Result<Vec<Alert>, StoreFault> {
    let notified = filter.receiver.as_ref().map(|receiver| ReceiverSets::read(from, receiver)).transpose()?;
    Ok(matching_alerts(from, filter, notified.as_ref(), max_bytes)?.0)
}

/// Returns alerts, and whether the size limit left out any.
fn matching_alerts(
    from: &Transaction<'_>,
    filter: &AlertFilter,
    notified: Option<&ReceiverSets>,
    max_bytes: usize,
) -> Result<(Vec<Alert>, bool), StoreFault> {
    in_chunks(filter.limit, max_bytes, |last: Option<&Alert>, limit| {
        alert_chunk(from, filter, notified, last.map(AlertCursor::of).or_else(|| filter.after.clone()), limit)
    })
}

/// Reads alerts with their sizes, in one statement.
fn alert_chunk(
    from: &Transaction<'_>,
    filter: &AlertFilter,
    notified: Option<&ReceiverSets>,
    after: Option<AlertCursor>,
    limit: u32,
) -> Result<Vec<(Alert, usize)>, StoreFault> {
    let mut conditions = conditions(filter, notified);
    if let Some(after) = after {
        conditions
            .and("a.updated_at <= ?", after.updated_ms)
            .and(&format!("(a.updated_at < {} OR a.id > ?)", after.updated_ms), after.id.as_str().to_owned());
    }
    let (sql, values) = conditions.within(
        &format!("SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no"),
        &format!(" ORDER BY a.updated_at DESC, a.id LIMIT {limit}"),
    );
    all(&mut from.prepare(&sql)?, values, |row| Ok((rows::alert(row)?, row.text_bytes())))
}

fn alerts_total(from: &Transaction<'_>, filter: &AlertFilter, notified: Option<&ReceiverSets>) -> Result<u64, StoreFault> {
    if filter.acknowledged == Some(false) {
        // Acknowledged alerts are few: subtracting them from the total is faster.
        let with = |acknowledged| AlertFilter { acknowledged, ..filter.clone() };
        let (all, some) = (alerts_total(from, &with(None), notified)?, alerts_total(from, &with(Some(true)), notified)?);
        return Ok(all.saturating_sub(some));
    }
    let (sql, values) = conditions(filter, notified).within("SELECT count(*) FROM alert a", "");
    Ok(one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0))
}

fn alert(from: &Transaction<'_>, id: &AlertId) -> Result<Option<Alert>, StoreFault> {
    let sql = format!("SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no WHERE a.id = ?1");
    one(&mut *from.prepare_cached(&sql)?, [id.as_str()], rows::alert)
}

fn episodes_of(from: &Transaction<'_>, rule: &RuleId, subject: &str, limit: u32) -> Result<Vec<Alert>, StoreFault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.rule = ?1 AND a.subject = ?2 ORDER BY a.episode DESC LIMIT ?3"
    );
    all(&mut *from.prepare_cached(&sql)?, rusqlite::params![rule.as_str(), subject, limit], rows::alert)
}

fn notifications_of(from: &Transaction<'_>, alert: &AlertId) -> Result<Vec<Notification>, StoreFault> {
    let sql = format!(
        "SELECT id, alert, kind, at, receivers, body, series FROM notification WHERE alert = ?1 ORDER BY at, id LIMIT {MAX_NOTIFICATIONS}"
    );
    all(&mut *from.prepare_cached(&sql)?, [alert.as_str()], notification)
}

fn firing_labels(from: &Transaction<'_>) -> Result<Vec<FiringAlert>, StoreFault> {
    let mut statement =
        from.prepare_cached("SELECT id, body ->> '$.labels' FROM alert WHERE state = 'firing' ORDER BY updated_at DESC, id")?;
    all(&mut statement, [], |row| {
        let id: String = row.get(0)?;
        let labels = from_json("the labels of the alert", &id, &row.get::<String>(1)?)?;
        Ok(FiringAlert { id: AlertId::from(id), labels })
    })
}

fn open_by_rule(from: &Transaction<'_>) -> Result<Vec<(RuleId, AlertState, u64)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT rule, state, count(*) FROM alert WHERE state IN ('pending', 'firing') GROUP BY rule, state ORDER BY rule, state",
    )?;
    all(&mut statement, [], |row| {
        let (rule, state): (String, String) = (row.get(0)?, row.get(1)?);
        let state = word("the state of alerts of", &rule, &state, AlertState::parse)?;
        Ok((RuleId::from(rule), state, counted(row.get(2)?)))
    })
}
