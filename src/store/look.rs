//! What people ask: upcoming, changes, alerts, status, history.

use std::{collections::HashMap, path::Path};

use chrono::TimeDelta;
use rusqlite::{Row, Transaction, params, types::Value};

use super::{
    codec::{Conditions, Hash, Millis, all, count, counted, from_json, list, one, small, time, word},
    cycle::{self, ALERT_COLUMNS, LONGEST_INTERVAL, feed_state, token, tracked},
    error::Fault,
    model::{
        AlertFilter, ChangeFilter, ChangeRow, Counts, DeliveryState, EndpointStat, FeedRow, Gauges, PollEntry, PollFilter,
        ReceiverCounts, RecordVersion, UpcomingFilter, UpcomingRow, Valuation, VersionRow,
    },
    threads::beside,
};
use crate::{
    alert::{Alert, AlertState},
    change::{Change, ChangeKind},
    supply::{Endpoint, FeedId, ReceiverName, Record, RecordKey, Resource, RuleId, Timestamp, Token, TokenId},
};

fn at(time: Timestamp) -> Value {
    Value::Integer(time.timestamp_millis())
}

pub(super) fn upcoming(from: &Transaction<'_>, filter: &UpcomingFilter) -> Result<Vec<UpcomingRow>, Fault> {
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
    let (sql, values) = conditions.within(
        "SELECT t.id, t.item, t.name, t.symbol, f.read_at, r.key, r.body FROM record r JOIN token t ON t.no = r.token_no
         LEFT JOIN feed f ON f.token_no = r.scope_no AND f.endpoint = 'unlock_events'",
        &format!(" ORDER BY r.starts_at, t.id, r.key LIMIT {}", filter.limit),
    );
    all(&mut from.prepare(&sql)?, values, |row| {
        let token = token(row, 0)?;
        let tracked = tracked(row, 5, Resource::Unlock, token.id.as_str())?;
        Ok(UpcomingRow { token, tracked, read_at: time(row.get(4)?) })
    })
}

pub(super) fn changes(from: &Transaction<'_>, filter: &ChangeFilter) -> Result<Vec<ChangeRow>, Fault> {
    let mut conditions = Conditions::default();
    conditions
        .and_some("t.id = ?", filter.token.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("c.kind = ?", filter.kind.map(|kind| kind.as_str().to_owned()))
        .and_some("c.resource = ?", filter.resource.map(|resource| resource.as_str().to_owned()))
        .and_some("c.at >= ?", filter.since.map(at))
        .and_some("c.at < ?", filter.until.map(at));
    let (sql, values) = conditions.within(
        "SELECT c.no, c.at, t.id, t.symbol, c.resource, c.kind, c.key, c.body, c.old_record, c.new_record
         FROM change c LEFT JOIN token t ON t.no = c.token_no",
        &format!(" ORDER BY c.at DESC, c.no DESC LIMIT {}", filter.limit),
    );
    all(&mut from.prepare(&sql)?, values, change_row)
}

fn change_row(row: &Row<'_>) -> Result<ChangeRow, Fault> {
    let id: i64 = row.get(0)?;
    let of = id.to_string();
    let (resource, kind, body): (Option<String>, String, String) = (row.get(4)?, row.get(5)?, row.get(7)?);
    let mut change: Change = from_json("the body of the change", &of, &body)?;
    change.kind = word("the kind of the change", &of, &kind, ChangeKind::parse)?;
    change.resource = resource.map(|text| word("the resource of the change", &of, &text, Resource::parse)).transpose()?;
    change.token = row.get::<_, Option<String>>(2)?.map(TokenId::from);
    change.key = row.get::<_, Option<String>>(6)?.map(RecordKey::from);
    // A change of no record in particular is one of the schedule.
    let resource = change.resource.unwrap_or(Resource::Unlock);
    let side = |text: Option<String>| text.map(|text| record(resource, "the change", &of, &text)).transpose();
    change.old = side(row.get(8)?)?;
    change.new = side(row.get(9)?)?;
    Ok(ChangeRow {
        id,
        at: row.get::<_, Millis>(1)?.0,
        token: change.token.clone().unwrap_or_else(|| TokenId::from("")),
        symbol: row.get(3)?,
        resource,
        key: change.key.clone(),
        change,
    })
}

fn record(resource: Resource, what: &str, of: &str, text: &str) -> Result<Record, Fault> {
    Record::from_json(resource, text)
        .map_err(|source| Fault::BadRow { what: format!("the record of {what} {of} cannot be read"), source: Some(source) })
}

pub(super) fn alerts(from: &Transaction<'_>, filter: &AlertFilter) -> Result<Vec<Alert>, Fault> {
    let mut conditions = Conditions::default();
    if !filter.states.is_empty() {
        conditions.and("a.state IN (SELECT value FROM json_each(?))", list(filter.states.iter().map(|state| state.as_str())));
    }
    let rule = filter.rule.as_ref().map(|rule| rule.as_str().to_owned());
    conditions
        .and_some("? IN (a.rule, a.name)", rule)
        .and_some("t.id = ?", filter.token.as_ref().map(|id| id.as_str().to_owned()));
    let (sql, values) = conditions.within(
        &format!("SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no"),
        &format!(" ORDER BY a.updated_at DESC, a.id LIMIT {}", filter.limit),
    );
    all(&mut from.prepare(&sql)?, values, cycle::alert)
}

pub(super) fn feeds(from: &Transaction<'_>) -> Result<Vec<FeedRow>, Fault> {
    let mut counted_rows: HashMap<(i64, String), u32> = HashMap::new();
    let mut statement = from.prepare_cached("SELECT scope_no, resource, count(*) FROM record GROUP BY scope_no, resource")?;
    for (scope, resource, records) in
        all(&mut statement, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, small(row.get(2)?))))?
    {
        counted_rows.insert((scope, resource), records);
    }
    let mut statement = from.prepare_cached(
        "SELECT f.endpoint, f.token_no, t.id, f.baseline_at, f.read_at, f.tried_at, f.hash, f.mark, f.stale, f.failing_since,
         f.missing, f.held_since, f.cost FROM feed f LEFT JOIN token t ON t.no = f.token_no ORDER BY t.id, f.no",
    )?;
    all(&mut statement, [], |row| {
        let scope: i64 = row.get(1)?;
        let token: Option<String> = row.get(2)?;
        let of = token.clone().unwrap_or_default();
        let endpoint = word("the endpoint of a feed", &of, &row.get::<_, String>(0)?, Endpoint::parse)?;
        let state = feed_state(row, 3, &of)?;
        let resource = endpoint.resource().map(|resource| resource.as_str().to_owned());
        let records = resource.and_then(|resource| counted_rows.get(&(scope, resource)).copied()).unwrap_or(0);
        let hash = row.get::<_, Option<Hash>>(6)?.map(|Hash(hash)| hash);
        Ok(FeedRow { id: FeedId { endpoint, token: token.map(TokenId::from) }, state, hash, records })
    })
}

pub(super) fn polls(from: &Transaction<'_>, filter: &PollFilter) -> Result<Vec<PollEntry>, Fault> {
    let mut conditions = Conditions::default();
    conditions
        .and_some("p.endpoint = ?", filter.endpoint.map(|endpoint| endpoint.as_str().to_owned()))
        .and_some("t.id = ?", filter.token.as_ref().map(|id| id.as_str().to_owned()));
    let (sql, values) = conditions.within(
        "SELECT p.no, p.endpoint, t.id, p.at, p.took_ms, p.outcome, p.status, p.requests, p.credits, p.bytes, p.version, p.records,
         p.error, p.oddities, p.oddities_total FROM poll p LEFT JOIN token t ON t.no = p.token_no",
        &format!(" ORDER BY p.at DESC, p.no DESC LIMIT {}", filter.limit),
    );
    all(&mut from.prepare(&sql)?, values, |row| {
        let of = row.get::<_, i64>(0)?.to_string();
        let oddities: Option<String> = row.get(13)?;
        Ok(PollEntry {
            endpoint: word("the endpoint of the poll", &of, &row.get::<_, String>(1)?, Endpoint::parse)?,
            token: row.get::<_, Option<String>>(2)?.map(TokenId::from),
            at: row.get::<_, Millis>(3)?.0,
            took_ms: counted(row.get(4)?),
            outcome: row.get(5)?,
            status: row.get(6)?,
            requests: small(row.get(7)?),
            credits: small(row.get(8)?),
            bytes: counted(row.get(9)?),
            version: row.get(10)?,
            records: small(row.get(11)?),
            error: row.get(12)?,
            oddities: oddities.map(|text| from_json("the oddities of the poll", &of, &text)).transpose()?.unwrap_or_default(),
            oddities_total: small(row.get(14)?),
        })
    })
}

pub(super) fn history(
    from: &Transaction<'_>,
    token: &TokenId,
    resource: Resource,
    key: &RecordKey,
) -> Result<Vec<RecordVersion>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT v.at, p.no, v.body FROM (
             SELECT no, at, poll, body FROM record_version
             WHERE token_no = (SELECT no FROM token WHERE id = ?1) AND resource = ?2 AND key = ?3
             UNION ALL
             SELECT 9223372036854775807, version_at, version_poll, body FROM record
             WHERE token_no = (SELECT no FROM token WHERE id = ?1) AND resource = ?2 AND key = ?3
         ) v LEFT JOIN poll p ON p.no = v.poll ORDER BY v.no",
    )?;
    all(&mut statement, params![token.as_str(), resource.as_str(), key.as_str()], |row| {
        let body: Option<String> = row.get(2)?;
        let body = body.map(|text| record(resource, resource.as_str(), key.as_str(), &text)).transpose()?;
        Ok(RecordVersion { at: row.get::<_, Millis>(0)?.0, poll: row.get(1)?, record: body })
    })
}

pub(super) fn versions(from: &Transaction<'_>, token: &TokenId) -> Result<Vec<VersionRow>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT resource, key, at, body FROM (
             SELECT no, resource, key, at, body FROM record_version WHERE token_no = (SELECT no FROM token WHERE id = ?1)
             UNION ALL
             SELECT 9223372036854775807, resource, key, version_at, body FROM record
             WHERE token_no = (SELECT no FROM token WHERE id = ?1)
         ) ORDER BY at, no",
    )?;
    all(&mut statement, params![token.as_str()], |row| {
        let (word_of, key): (String, String) = (row.get(0)?, row.get(1)?);
        let resource = word("the resource of a record", &key, &word_of, Resource::parse)?;
        let body: Option<String> = row.get(3)?;
        let body = body.map(|text| record(resource, resource.as_str(), &key, &text)).transpose()?;
        Ok(VersionRow { resource, key: RecordKey::from(key), at: row.get::<_, Millis>(2)?.0, record: body })
    })
}

pub(super) fn counts(from: &Transaction<'_>, path: &Path) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    (counts.tokens, counts.tokens_listed) = from
        .prepare_cached("SELECT count(*), coalesce(sum(listed), 0) FROM token")?
        .query_row([], |row| Ok((counted(row.get(0)?), counted(row.get(1)?))))?;

    let mut records: HashMap<String, u64> = HashMap::new();
    let mut statement = from.prepare_cached("SELECT resource, records FROM tally")?;
    records.extend(all(&mut statement, [], |row| Ok((row.get(0)?, counted(row.get(1)?))))?);
    counts.records =
        Resource::ALL.into_iter().map(|resource| (resource, records.get(resource.as_str()).copied().unwrap_or(0))).collect();

    counts.alerts = alert_states(from)?;
    counts.outbox = receivers(from)?;
    (counts.removals_held, counts.removals_awaiting_proof, counts.feeds_failing) = from
        .prepare_cached("SELECT count(held_since), coalesce(sum(json_array_length(missing)), 0), count(failing_since) FROM feed")?
        .query_row([], |row| Ok((counted(row.get(0)?), counted(row.get(1)?), counted(row.get(2)?))))?;
    counts.database_bytes = [path.to_owned(), beside(path, "-wal")]
        .iter()
        .filter_map(|file| std::fs::metadata(file).ok())
        .map(|file| file.len())
        .sum();
    Ok(counts)
}

pub(super) fn gauges(from: &Transaction<'_>) -> Result<Gauges, Fault> {
    let removals_held =
        from.prepare_cached("SELECT count(held_since) FROM feed")?.query_row([], |row| Ok(counted(row.get(0)?)))?;
    let mut statement = from.prepare_cached(
        "SELECT endpoint, max(read_at) FROM feed WHERE read_at IS NOT NULL GROUP BY endpoint ORDER BY endpoint",
    )?;
    let last_success = all(&mut statement, [], |row| {
        let endpoint: String = row.get(0)?;
        Ok((word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?, row.get::<_, Millis>(1)?.0))
    })?;
    Ok(Gauges { alerts: alert_states(from)?, outbox: receivers(from)?, removals_held, last_success })
}

fn alert_states(from: &Transaction<'_>) -> Result<Vec<(AlertState, u64)>, Fault> {
    let mut states: HashMap<String, u64> = HashMap::new();
    let mut statement = from.prepare_cached("SELECT state, count(*) FROM alert GROUP BY state")?;
    states.extend(all(&mut statement, [], |row| Ok((row.get(0)?, counted(row.get(1)?))))?);
    Ok(AlertState::ALL.into_iter().map(|state| (state, states.get(state.as_str()).copied().unwrap_or(0))).collect())
}

fn receivers(from: &Transaction<'_>) -> Result<Vec<ReceiverCounts>, Fault> {
    let mut statement =
        from.prepare_cached("SELECT receiver, state, count(*) FROM delivery GROUP BY receiver, state ORDER BY receiver")?;
    let rows = all(&mut statement, [], |row| {
        let receiver: String = row.get(0)?;
        let state = word("the state of a delivery to", &receiver, &row.get::<_, String>(1)?, DeliveryState::parse)?;
        Ok((receiver, state, counted(row.get(2)?)))
    })?;
    let mut receivers: Vec<ReceiverCounts> = Vec::new();
    for (name, state, number) in rows {
        if receivers.last().is_none_or(|last| last.receiver.as_str() != name) {
            let states = DeliveryState::ALL.into_iter().map(|state| (state, 0)).collect();
            receivers.push(ReceiverCounts { receiver: ReceiverName::from(name), states, oldest_pending: None });
        }
        if let Some((_, count)) = receivers.last_mut().and_then(|last| last.states.iter_mut().find(|(of, _)| *of == state)) {
            *count = number;
        }
    }
    let mut oldest =
        from.prepare_cached("SELECT min(created_at) FROM delivery WHERE receiver = ?1 AND state IN ('due', 'retrying')")?;
    for receiver in &mut receivers {
        receiver.oldest_pending = one(&mut oldest, [receiver.receiver.as_str()], |row| Ok(time(row.get(0)?)))?.flatten();
    }
    Ok(receivers)
}

pub(super) fn endpoint_stats(from: &Transaction<'_>) -> Result<Vec<EndpointStat>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT endpoint, count(*), count(failing_since), min(failing_since), max(read_at), max(tried_at) FROM feed GROUP BY endpoint",
    )?;
    let mut stats = all(&mut statement, [], |row| {
        let endpoint: String = row.get(0)?;
        Ok(EndpointStat {
            endpoint: word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?,
            feeds: counted(row.get(1)?),
            failing: counted(row.get(2)?),
            failing_since: time(row.get(3)?),
            last_success: time(row.get(4)?),
            last_try: time(row.get(5)?),
            last_error: None,
        })
    })?;
    let mut last_error = from.prepare_cached(
        "SELECT at, coalesce(error, outcome) FROM poll INDEXED BY poll_failed
         WHERE endpoint = ?1 AND outcome NOT IN ('fresh', 'unchanged') ORDER BY at DESC, no DESC LIMIT 1",
    )?;
    for stat in &mut stats {
        stat.last_error = one(&mut last_error, [stat.endpoint.as_str()], |row| Ok((row.get::<_, Millis>(0)?.0, row.get(1)?)))?;
    }
    stats.sort_by_key(|stat| stat.endpoint);
    Ok(stats)
}

pub(super) fn rule_matches(from: &Transaction<'_>) -> Result<Vec<(RuleId, Timestamp)>, Fault> {
    all(&mut *from.prepare_cached("SELECT rule, at FROM rule_match ORDER BY rule")?, [], |row| {
        Ok((RuleId::from(row.get::<_, String>(0)?), row.get::<_, Millis>(1)?.0))
    })
}

pub(super) fn token_ids(from: &Transaction<'_>, only_listed: bool) -> Result<Vec<TokenId>, Fault> {
    all(&mut *from.prepare_cached("SELECT id FROM token WHERE listed >= ?1 ORDER BY id")?, [only_listed], |row| {
        Ok(TokenId::from(row.get::<_, String>(0)?))
    })
}

pub(super) fn find_token(from: &Transaction<'_>, text: &str) -> Result<Vec<Token>, Fault> {
    let text = text.trim();
    // The first of these that finds any: people mean the slug where there is one.
    for clause in ["id = ?1", "id = ?1 COLLATE NOCASE", "symbol = ?1 COLLATE NOCASE", "name = ?1 COLLATE NOCASE"] {
        let sql = format!("SELECT id, item, name, symbol FROM token WHERE {clause} ORDER BY listed DESC, id");
        let found = all(&mut *from.prepare_cached(&sql)?, [text], |row| token(row, 0))?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

pub(super) fn valuations(from: &Transaction<'_>, token: &TokenId, since: Timestamp) -> Result<Vec<Valuation>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT at, reference_price, market_cap FROM valuation
         WHERE token_no = (SELECT no FROM token WHERE id = ?1) AND at >= ?2 ORDER BY day",
    )?;
    all(&mut statement, params![token.as_str(), Millis(since)], |row| {
        Ok(Valuation { at: row.get::<_, Millis>(0)?.0, reference_price: row.get(1)?, market_cap: row.get(2)? })
    })
}

pub(super) fn credits_spent(from: &Transaction<'_>, since: Timestamp) -> Result<Vec<(Endpoint, u64)>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT endpoint, sum(credits) FROM credit_log WHERE at >= ?1 GROUP BY endpoint ORDER BY sum(credits) DESC",
    )?;
    all(&mut statement, [count(0).max(since.timestamp_millis())], |row| {
        let endpoint: String = row.get(0)?;
        Ok((word("the endpoint of a poll", &endpoint, &endpoint, Endpoint::parse)?, counted(row.get(1)?)))
    })
}
