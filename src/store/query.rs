//! Queries for lists and searches: changes, history, and tokens. Alerts are in `alerts`, upcoming unlocks in `upcoming`.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::types::Value;

use super::codec::{Conditions, Millis, all, counted, from_json, list, one, word};
use super::error::StoreFault;
use super::list_limits::{CHUNK_ROWS, in_chunks};
use super::rows::token;
use super::sql::{Row, Transaction};
use super::{Store, StoreError, schedule};
use model::time::LONGEST_INTERVAL;
use model::{
    Change, ChangeFilter, ChangeKind, ChangeRow, Listed, Record, RecordKey, Resource, RuleId, Timestamp, Token, TokenId,
    TokenNames, Tracked, UpcomingFilter, VersionRow,
};

impl Store {
    /// Returns changes, newest first.
    pub async fn changes(&self, filter: ChangeFilter) -> Result<Vec<ChangeRow>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read changes", move |from| Ok(changes(from, &filter, max_bytes)?.0)).await
    }

    /// Returns changes like [`Self::changes`], with the total count.
    pub async fn changes_listed(&self, filter: ChangeFilter) -> Result<Listed<ChangeRow>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("list changes", move |from| {
            let (rows, is_cut) = changes(from, &filter, max_bytes)?;
            Ok(Listed { rows, total: count_changes(from, &filter)?, is_cut })
        })
        .await
    }

    /// Passes changes with their tokens to `select`, newest first, until it has returned `max` values. Returns these values. Only one
    /// chunk of changes is in memory at a time.
    pub async fn select_changes<T: Send + 'static>(
        &self,
        filter: ChangeFilter,
        max: usize,
        select: impl FnMut(&ChangeRow, Option<&Token>) -> Option<T> + Send + 'static,
    ) -> Result<Vec<T>, StoreError> {
        self.read("select changes", move |from| select_changes(from, &filter, max, select)).await
    }

    /// Returns all stored versions of all records of a token, oldest first.
    pub async fn versions(&self, token: TokenId) -> Result<Vec<VersionRow>, StoreError> {
        self.read("read the history of a token", move |from| versions(from, &token)).await
    }

    /// Returns when each rule last matched.
    pub async fn rule_matches(&self) -> Result<Vec<(RuleId, Timestamp)>, StoreError> {
        self.read("read the rule matches", rule_matches).await
    }

    /// Returns the slugs of all tokens, or only of those on the last complete list.
    pub async fn token_ids(&self, only_listed: bool) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the slugs of tokens", move |from| token_ids(from, only_listed)).await
    }

    /// Returns the tokens that have `text` as slug, ticker, or name, in any case of ASCII letters. Only the token with this exact slug, if
    /// there is one.
    pub async fn tokens_named(&self, text: &str) -> Result<Vec<TokenNames>, StoreError> {
        let text = text.trim().to_owned();
        self.read("find a token", move |from| tokens_named(from, &text)).await
    }

    /// Returns the names of all tokens.
    pub async fn token_names(&self) -> Result<Vec<TokenNames>, StoreError> {
        self.read("read the names of tokens", |from| {
            all(&mut *from.prepare_cached("SELECT id, symbol, name FROM token ORDER BY id")?, [], names)
        })
        .await
    }
}

pub(super) fn at(time: Timestamp) -> Value {
    Value::Integer(time.timestamp_millis())
}

/// Returns the conditions of an unlock filter.
pub(super) fn upcoming_conditions(filter: &UpcomingFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions
        .and("r.resource = 'unlock' AND r.ends_at > ?", at(filter.from))
        .and("r.starts_at > ?", at(filter.from - LONGEST_INTERVAL - TimeDelta::milliseconds(1)))
        .and_some("r.starts_at <= ?", filter.until.map(at));
    if let Some(tokens) = &filter.tokens {
        conditions.and(
            "r.token_no IN (SELECT no FROM token WHERE id IN (SELECT value FROM json_each(?)))",
            list(tokens.iter().map(TokenId::as_str)),
        );
    }
    conditions
}

/// Returns the conditions of a change filter, without its position.
fn change_conditions(filter: &ChangeFilter) -> Conditions {
    let mut conditions = Conditions::default();
    // With one value, an index returns the changes in order.
    match filter.tokens.as_deref() {
        None => &mut conditions,
        Some([one]) => conditions.and("c.token_no = (SELECT no FROM token WHERE id = ?)", one.as_str().to_owned()),
        Some(tokens) => conditions.and(
            "c.token_no IN (SELECT no FROM token WHERE id IN (SELECT value FROM json_each(?)))",
            list(tokens.iter().map(TokenId::as_str)),
        ),
    };
    match filter.kinds.as_slice() {
        [] => &mut conditions,
        [one] => conditions.and("c.kind = ?", one.as_str().to_owned()),
        kinds => conditions.and("c.kind IN (SELECT value FROM json_each(?))", list(kinds.iter().map(|kind| kind.as_str()))),
    };
    if !filter.resources.is_empty() {
        let resources = list(filter.resources.iter().map(|resource| resource.as_str()));
        conditions.and("c.resource IN (SELECT value FROM json_each(?))", resources);
    }
    conditions.and_some("c.at >= ?", filter.since.map(at)).and_some("c.at < ?", filter.until.map(at));
    conditions
}

fn count_changes(from: &Transaction<'_>, filter: &ChangeFilter) -> Result<u64, StoreFault> {
    let (sql, values) = change_conditions(filter).within("SELECT count(*) FROM change c", "");
    Ok(from.prepare(&sql)?.query_row(values, |row| row.get(0)).map(counted)?)
}

/// Returns changes, and whether the size limit left out any.
fn changes(from: &Transaction<'_>, filter: &ChangeFilter, max_bytes: usize) -> Result<(Vec<ChangeRow>, bool), StoreFault> {
    let numbers = change_numbers(from, filter)?;
    let mut left = numbers.as_slice();
    let (mut rows, is_cut) = in_chunks(filter.limit, max_bytes, |_, limit| {
        let (chunk, rest) = left.split_at_checked(limit as usize).unwrap_or((left, &[]));
        left = rest;
        change_chunk(from, chunk)
    })?;
    if filter.position.is_from_before() {
        rows.reverse();
    }
    Ok((rows, is_cut))
}

/// Returns the numbers of changes from the start of the limit, which is the end of the list for changes before a position. An index
/// returns them without reading the changes.
fn change_numbers(from: &Transaction<'_>, filter: &ChangeFilter) -> Result<Vec<i64>, StoreFault> {
    let ChangeFilter { position, limit, offset, .. } = filter;
    let mut conditions = change_conditions(filter);
    conditions.and_some("c.no < ?", position.after).and_some("c.no > ?", position.before);
    let order = if position.is_from_before() { "ASC" } else { "DESC" };
    // Without statistics, SQLite would scan the table in the order of the numbers, also if few changes are in the time range.
    let is_by_time = (filter.since.or(filter.until)).is_some() && filter.tokens.is_none() && filter.kinds.is_empty();
    let indexed = if is_by_time { from.engine().indexed_by("change_age") } else { String::new() };
    let (sql, values) = conditions.within(
        &format!("SELECT c.no FROM change c {indexed}"),
        &format!(" ORDER BY c.no {order} LIMIT {limit} OFFSET {offset}"),
    );
    all(&mut from.prepare(&sql)?, values, |row| Ok(row.get(0)?))
}

fn select_changes<T>(
    from: &Transaction<'_>,
    filter: &ChangeFilter,
    max: usize,
    mut select: impl FnMut(&ChangeRow, Option<&Token>) -> Option<T>,
) -> Result<Vec<T>, StoreFault> {
    let mut selected = Vec::new();
    for numbers in change_numbers(from, filter)?.chunks(CHUNK_ROWS as usize) {
        if selected.len() >= max {
            break;
        }
        let chunk = change_chunk(from, numbers)?;
        let ids = chunk.iter().map(|(row, _)| row.token.as_str());
        let mut statement =
            from.prepare_cached("SELECT id, item, name, symbol FROM token WHERE id IN (SELECT value FROM json_each(?1))")?;
        let tokens = all(&mut statement, [list(ids)], |row| token(row, 0))?;
        let tokens: HashMap<&TokenId, &Token> = tokens.iter().map(|token| (&token.id, token)).collect();
        for (row, _) in &chunk {
            if selected.len() < max {
                selected.extend(select(row, tokens.get(&row.token).copied()));
            }
        }
    }
    Ok(selected)
}

/// Reads changes with their sizes, in one statement and in the order of their numbers in the list.
fn change_chunk(from: &Transaction<'_>, numbers: &[i64]) -> Result<Vec<(ChangeRow, usize)>, StoreFault> {
    let order = if numbers.is_sorted() { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT {CHANGE_COLUMNS} FROM change c LEFT JOIN token t ON t.no = c.token_no
         WHERE c.no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY c.no {order}"
    );
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let numbers = list(texts.iter().map(String::as_str));
    all(&mut *from.prepare_cached(&sql)?, [numbers], |row| Ok((change_row(row)?, row.text_bytes())))
}

/// The columns for [`change_row`], from `change AS c` joined with `token AS t`.
pub(super) const CHANGE_COLUMNS: &str =
    "c.no, c.at, t.id, t.symbol, c.resource, c.kind, c.key, c.body, c.old_record, c.new_record";

/// Reads a change from [`CHANGE_COLUMNS`]. A change without a resource is
/// read as a change of the schedule.
pub(super) fn change_row(row: &Row<'_>) -> Result<ChangeRow, StoreFault> {
    let id: i64 = row.get(0)?;
    let of = id.to_string();
    let (resource, kind, body): (Option<String>, String, String) = (row.get(4)?, row.get(5)?, row.get(7)?);
    let mut change: Change = from_json("the body of the change", &of, &body)?;
    change.kind = word("the kind of the change", &of, &kind, ChangeKind::parse)?;
    change.resource = resource.map(|text| word("the resource of the change", &of, &text, Resource::parse)).transpose()?;
    change.token = row.get::<Option<String>>(2)?.map(TokenId::from);
    change.key = row.get::<Option<String>>(6)?.map(RecordKey::from);
    // A change without a resource is about the schedule.
    let resource = change.resource.unwrap_or(Resource::Unlock);
    let side = |text: Option<String>| text.map(|text| record(resource, "the change", &of, &text)).transpose();
    change.old = side(row.get(8)?)?;
    change.new = side(row.get(9)?)?;
    Ok(ChangeRow {
        id,
        at: row.get::<Millis>(1)?.0,
        token: change.token.clone().unwrap_or_else(|| TokenId::from("")),
        symbol: row.get(3)?,
        resource,
        key: change.key.clone(),
        change,
    })
}

fn record(resource: Resource, what: &str, of: &str, text: &str) -> Result<Record, StoreFault> {
    Record::from_json(resource, text)
        .map_err(|source| StoreFault::BadRow { what: format!("the record of {what} {of} cannot be read"), source: Some(source) })
}

fn versions(from: &Transaction<'_>, token: &TokenId) -> Result<Vec<VersionRow>, StoreFault> {
    let of = token.as_str();
    let no = one(&mut *from.prepare_cached("SELECT no FROM token WHERE id = ?1")?, [of], |row| Ok(row.get::<i64>(0)?))?;
    let Some(no) = no else { return Ok(Vec::new()) };
    // Each version with its replacement time. `None` for current versions.
    let mut found: Vec<(Option<Timestamp>, VersionRow)> = Vec::new();
    let unlock = |at: Timestamp, tracked: Tracked| VersionRow {
        resource: Resource::Unlock,
        key: tracked.key,
        at,
        record: Some(tracked.record),
    };

    let mut statement =
        from.prepare_cached("SELECT replaced_at, body FROM schedule_version WHERE scope_no = ?1 ORDER BY replaced_at, no")?;
    let groups = all(&mut statement, [no], |row| {
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let events = schedule::unpack_replaced(body).ok_or_else(|| schedule::damaged("the history of the schedule", of))?;
        Ok((row.get::<Millis>(0)?.0, events))
    })?;
    for (replaced_at, events) in groups {
        // If the clock was wrong, `at` may be later than the replacement.
        found.extend(events.into_iter().map(|(at, tracked)| (Some(replaced_at), unlock(at.min(replaced_at), tracked))));
    }

    let mut statement = from.prepare_cached(
        "SELECT replaced_at, resource, key, at, body FROM record_version WHERE token_no = ?1
         UNION ALL
         SELECT NULL, resource, key, version_at, body FROM record WHERE token_no = ?1 AND resource <> 'unlock'",
    )?;
    found.extend(all(&mut statement, [no], |row| {
        let (word_of, key): (String, String) = (row.get(1)?, row.get(2)?);
        let resource = word("the resource of a record", &key, &word_of, Resource::parse)?;
        let body: Option<String> = row.get(4)?;
        let body = body.map(|text| record(resource, resource.as_str(), &key, &text)).transpose()?;
        let replaced_at = row.get::<Option<Millis>>(0)?.map(|Millis(at)| at);
        Ok((replaced_at, VersionRow { resource, key: RecordKey::from(key), at: row.get::<Millis>(3)?.0, record: body }))
    })?);

    let mut statement = from.prepare_cached("SELECT key, version_at FROM record WHERE token_no = ?1 AND resource = 'unlock'")?;
    let since = all(&mut statement, [no], |row| Ok((row.get::<String>(0)?, row.get::<Millis>(1)?.0)))?;
    let since: HashMap<String, Timestamp> = since.into_iter().collect();
    for tracked in schedule::of_token(from, no, of)? {
        let at = since.get(tracked.key.as_str()).ok_or_else(|| schedule::damaged("an event", of))?;
        found.push((None, unlock(*at, tracked)));
    }
    found.sort_by_key(|(replaced_at, version)| (version.at, replaced_at.is_none(), *replaced_at));
    Ok(found.into_iter().map(|(_, version)| version).collect())
}

fn rule_matches(from: &Transaction<'_>) -> Result<Vec<(RuleId, Timestamp)>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT rule, at FROM rule_match ORDER BY rule")?, [], |row| {
        Ok((RuleId::from(row.get::<String>(0)?), row.get::<Millis>(1)?.0))
    })
}

fn token_ids(from: &Transaction<'_>, only_listed: bool) -> Result<Vec<TokenId>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT id FROM token WHERE listed >= ?1 ORDER BY id")?, [only_listed], |row| {
        Ok(TokenId::from(row.get::<String>(0)?))
    })
}

fn tokens_named(from: &Transaction<'_>, text: &str) -> Result<Vec<TokenNames>, StoreFault> {
    // The exact slug decides alone, and has an index.
    for clause in ["id = ?1", "lower(id) = lower(?1) OR lower(symbol) = lower(?1) OR lower(name) = lower(?1)"] {
        let sql = format!("SELECT id, symbol, name FROM token WHERE {clause} ORDER BY id");
        let found = all(&mut *from.prepare_cached(&sql)?, [text], names)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn names(row: &Row<'_>) -> Result<TokenNames, StoreFault> {
    let text = |value: Option<String>| value.unwrap_or_default();
    Ok(TokenNames { id: TokenId::from(row.get::<String>(0)?), symbol: text(row.get(1)?), name: text(row.get(2)?) })
}
