//! What a cycle reads: whom to ask, what was known, whose time has come.

use std::cmp::Ordering;

use chrono::TimeDelta;
use rusqlite::{Row, Transaction, params};

use super::{
    codec::{Hash, Millis, all, from_json, one, small, time, word},
    commit::AlertColumns,
    error::Fault,
    model::{CreditState, PlanToken, TokenSnapshot},
};
use crate::{
    alert::{Alert, AlertState, Resolution},
    supply::{AlertId, Endpoint, FeedId, FeedState, Record, RecordKey, Resource, RuleId, Timestamp, Token, TokenId, Tracked},
    wire::InvestorItem,
};

/// No unlock stands for a longer time than a month: how far before a time one may begin that has not passed by then.
pub(super) const LONGEST_INTERVAL: TimeDelta = TimeDelta::days(31);

pub(super) const FEED_COLUMNS: &str =
    "f.baseline_at, f.read_at, f.tried_at, f.hash, f.mark, f.stale, f.failing_since, f.missing, f.held_since, f.cost";

/// Tokens with an unlock that begins in a window.
pub(super) const IN_WINDOW: &str = "SELECT DISTINCT token_no FROM record
     WHERE resource = 'unlock' AND starts_at > ?1 AND starts_at <= ?2 AND token_no IS NOT NULL";

/// Tokens with an alert that time may have changed. Left alone, SQLite would rather read all open alerts.
pub(super) const TO_RECHECK: &str = "SELECT DISTINCT token_no FROM alert INDEXED BY alert_recheck
     WHERE state IN ('pending', 'firing') AND recheck_at IS NOT NULL AND recheck_at <= ?1 AND token_no IS NOT NULL";

/// Tokens with an unlock that has not passed.
pub(super) const AHEAD: &str = "SELECT t.id FROM token t WHERE EXISTS (
     SELECT 1 FROM record r WHERE r.token_no = t.no AND r.resource = 'unlock'
     AND r.starts_at > ?2 AND r.ends_at > ?1 AND r.starts_at <= ?3) ORDER BY t.id";

/// Columns of an alert for [`alert`], from `alert AS a` with its token as `t`.
pub(super) const ALERT_COLUMNS: &str = "a.id, a.rule, a.name, a.subject, a.episode, a.state, a.resolution, t.id, a.resource, a.key, \
     a.level, a.active_at, a.starts_at, a.ends_at, a.false_since, a.recheck_at, a.updated_at, a.body";

pub(super) fn plan_tokens(from: &Transaction<'_>, endpoint: Endpoint, now: Timestamp) -> Result<Vec<PlanToken>, Fault> {
    let sql = format!(
        "SELECT t.id, t.listed, t.last_updated, t.has_burn, t.has_buyback,
         (SELECT min(r.starts_at) FROM record r WHERE r.token_no = t.no AND r.resource = 'unlock' AND r.starts_at > ?2),
         f.no, {FEED_COLUMNS} FROM token t LEFT JOIN feed f ON f.token_no = t.no AND f.endpoint = ?1 ORDER BY t.id"
    );
    all(&mut *from.prepare_cached(&sql)?, params![endpoint.as_str(), Millis(now)], |row| {
        let id: String = row.get(0)?;
        let feed = row.get::<_, Option<i64>>(6)?.map(|_| feed_state(row, 7, &id)).transpose()?;
        Ok(PlanToken {
            listed: row.get(1)?,
            last_updated: time(row.get(2)?),
            has_burn: row.get(3)?,
            has_buyback: row.get(4)?,
            next_event: time(row.get(5)?),
            feed,
            id: TokenId::from(id),
        })
    })
}

/// The state of a feed from its columns, which begin at `first`.
pub(super) fn feed_state(row: &Row<'_>, first: usize, of: &str) -> Result<FeedState, Fault> {
    let missing: String = row.get(first + 7)?;
    Ok(FeedState {
        baseline_at: time(row.get(first)?),
        read_at: time(row.get(first + 1)?),
        tried_at: time(row.get(first + 2)?),
        hash: row.get::<_, Option<Hash>>(first + 3)?.map(|Hash(hash)| hash),
        mark: time(row.get(first + 4)?),
        stale: row.get(first + 5)?,
        failing_since: time(row.get(first + 6)?),
        missing: from_json("the list of missing records", of, &missing)?,
        held_since: time(row.get(first + 8)?),
        cost: small(row.get(first + 9)?),
    })
}

pub(super) fn feed(from: &Transaction<'_>, id: &FeedId) -> Result<FeedState, Fault> {
    let sql = format!(
        "SELECT {FEED_COLUMNS} FROM feed f WHERE f.endpoint = ?1
         AND f.token_no = CASE WHEN ?2 IS NULL THEN 0 ELSE (SELECT no FROM token WHERE id = ?2) END"
    );
    let token = id.token.as_ref().map(TokenId::as_str);
    let state =
        one(&mut *from.prepare_cached(&sql)?, params![id.endpoint.as_str(), token], |row| feed_state(row, 0, &id.to_string()))?;
    Ok(state.unwrap_or_default())
}

pub(super) fn credit(from: &Transaction<'_>) -> Result<CreditState, Fault> {
    let state = one(&mut *from.prepare_cached("SELECT state FROM credit")?, [], |row| {
        from_json("the state", "the quota", &row.get::<_, String>(0)?)
    })?;
    Ok(state.unwrap_or_default())
}

/// A token from the columns `id, item, name, symbol`, which begin at `first`.
pub(super) fn token(row: &Row<'_>, first: usize) -> Result<Token, Fault> {
    let id: String = row.get(first)?;
    let item: Option<String> = row.get(first + 1)?;
    let mut token = Token::unknown(TokenId::from(id.as_str()));
    match item {
        Some(item) => token.item = from_json("the list item", &id, &item)?,
        None => {
            let (name, symbol): (Option<String>, Option<String>) = (row.get(first + 2)?, row.get(first + 3)?);
            token.item.name = crate::wire::Maybe::or_absent(name);
            token.item.symbol = crate::wire::Maybe::or_absent(symbol);
        }
    }
    Ok(token)
}

pub(super) fn tokens(from: &Transaction<'_>, ids: &[TokenId], resources: &[Resource]) -> Result<Vec<TokenSnapshot>, Fault> {
    ids.iter().map(|id| token_snapshot(from, id, resources)).collect()
}

/// Tokens with the state of one feed and nothing else, not even their names.
pub(super) fn tokens_with_feed(
    from: &Transaction<'_>,
    ids: Vec<TokenId>,
    endpoint: Endpoint,
) -> Result<Vec<TokenSnapshot>, Fault> {
    let sql = format!("SELECT {FEED_COLUMNS} FROM token t JOIN feed f ON f.token_no = t.no AND f.endpoint = ?2 WHERE t.id = ?1");
    let mut statement = from.prepare_cached(&sql)?;
    let read = |id: TokenId| {
        let state = one(&mut statement, params![id.as_str(), endpoint.as_str()], |row| feed_state(row, 0, id.as_str()))?;
        Ok(TokenSnapshot {
            feeds: state.map(|state| (endpoint, state)).into_iter().collect(),
            ..TokenSnapshot::of(Token::unknown(id))
        })
    };
    ids.into_iter().map(read).collect()
}

fn token_snapshot(from: &Transaction<'_>, id: &TokenId, resources: &[Resource]) -> Result<TokenSnapshot, Fault> {
    let known =
        one(&mut *from.prepare_cached("SELECT no, id, item, name, symbol FROM token WHERE id = ?1")?, [id.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, token(row, 1)?))
        })?;
    let Some((no, token)) = known else {
        return Ok(TokenSnapshot::of(Token::unknown(id.clone())));
    };
    let mut snapshot = TokenSnapshot::of(token);

    let sql = format!("SELECT f.endpoint, f.header, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 ORDER BY f.no");
    let feeds = all(&mut *from.prepare_cached(&sql)?, [no], |row| {
        let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<_, String>(0)?, Endpoint::parse)?;
        let header = row.get::<_, Option<String>>(1)?;
        let header = header.map(|text| from_json("the header of a feed", id.as_str(), &text)).transpose()?;
        Ok((endpoint, feed_state(row, 2, id.as_str())?, header))
    })?;
    for (endpoint, state, header) in feeds {
        snapshot.feeds.push((endpoint, state));
        snapshot.headers.extend(header.map(|header| (endpoint, header)));
    }

    let mut records = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        if resources.iter().take(index).any(|earlier| earlier == resource) {
            continue;
        }
        let mut statement = from.prepare_cached(
            "SELECT starts_at, key, body FROM record WHERE token_no = ?1 AND resource = ?2 ORDER BY starts_at, key",
        )?;
        records.extend(all(&mut statement, params![no, resource.as_str()], |row| {
            let starts_at: Option<i64> = row.get(0)?;
            Ok((starts_at, tracked(row, 1, *resource, id.as_str())?))
        })?);
    }
    records.sort_by(|(a_at, a), (b_at, b)| undated_last(*a_at, *b_at).then_with(|| a.key.cmp(&b.key)));
    snapshot.records = records.into_iter().map(|(_, tracked)| tracked).collect();

    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a JOIN token t ON t.no = a.token_no
         WHERE a.token_no = ?1 AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
    );
    snapshot.alerts = all(&mut *from.prepare_cached(&sql)?, [no], alert)?;
    Ok(snapshot)
}

fn undated_last(a: Option<i64>, b: Option<i64>) -> Ordering {
    (a.is_none(), a).cmp(&(b.is_none(), b))
}

/// A record from the columns `key, body`, which begin at `first`.
pub(super) fn tracked(row: &Row<'_>, first: usize, resource: Resource, token: &str) -> Result<Tracked, Fault> {
    let key: String = row.get(first)?;
    let body = row.get_ref(first + 1)?.as_str().map_err(rusqlite::Error::from)?;
    let record = Record::from_json(resource, body).map_err(|source| Fault::BadRow {
        what: format!("the {resource} {key} of {token} cannot be read"),
        source: Some(source),
    })?;
    Ok(Tracked { key: RecordKey::from(key), record })
}

/// An alert from [`ALERT_COLUMNS`].
pub(super) fn alert(row: &Row<'_>) -> Result<Alert, Fault> {
    let id: String = row.get(0)?;
    let state: String = row.get(5)?;
    let resolution: Option<String> = row.get(6)?;
    let resource: Option<String> = row.get(8)?;
    let body: String = row.get(17)?;
    let columns: AlertColumns = from_json("the body of the alert", &id, &body)?;
    Ok(Alert {
        rule: RuleId::from(row.get::<_, String>(1)?),
        name: row.get(2)?,
        subject: row.get(3)?,
        episode: small(row.get(4)?),
        state: word("the state of the alert", &id, &state, AlertState::parse)?,
        resolution: resolution.map(|text| word("the reason of the alert", &id, &text, Resolution::parse)).transpose()?,
        token: row.get::<_, Option<String>>(7)?.map(TokenId::from),
        resource: resource.map(|text| word("the resource of the alert", &id, &text, Resource::parse)).transpose()?,
        key: row.get::<_, Option<String>>(9)?.map(RecordKey::from),
        level: row.get::<_, Option<i64>>(10)?.map(small),
        labels: columns.labels,
        former_labels: columns.former_labels,
        annotations: columns.annotations,
        told: columns.told,
        leads: columns.leads,
        members: columns.members,
        active_at: row.get::<_, Millis>(11)?.0,
        starts_at: time(row.get(12)?),
        ends_at: time(row.get(13)?),
        false_since: time(row.get(14)?),
        due: columns.due,
        recheck_at: time(row.get(15)?),
        updated_at: row.get::<_, Millis>(16)?.0,
        id: AlertId::from(id),
    })
}

pub(super) fn tokens_due(
    from: &Transaction<'_>,
    windows: &[(Timestamp, Timestamp)],
    now: Timestamp,
) -> Result<Vec<TokenId>, Fault> {
    let mut numbers = std::collections::BTreeSet::new();
    let mut in_window = from.prepare_cached(IN_WINDOW)?;
    for (after, until) in windows {
        numbers.extend(all(&mut in_window, params![Millis(*after), Millis(*until)], |row| Ok(row.get::<_, i64>(0)?))?);
    }
    let mut to_recheck = from.prepare_cached(TO_RECHECK)?;
    numbers.extend(all(&mut to_recheck, [Millis(now)], |row| Ok(row.get::<_, i64>(0)?))?);
    let mut name = from.prepare_cached("SELECT id FROM token WHERE no = ?1")?;
    let mut ids = Vec::with_capacity(numbers.len());
    for no in numbers {
        ids.extend(one(&mut name, [no], |row| Ok(TokenId::from(row.get::<_, String>(0)?)))?);
    }
    ids.sort();
    Ok(ids)
}

pub(super) fn tokens_with_unlocks_ahead(
    from: &Transaction<'_>,
    now: Timestamp,
    until: Option<Timestamp>,
) -> Result<Vec<TokenId>, Fault> {
    let mut statement = from.prepare_cached(AHEAD)?;
    let begins_after = Millis(now - LONGEST_INTERVAL - TimeDelta::milliseconds(1));
    let until = until.map_or(i64::MAX, |until| until.timestamp_millis());
    all(&mut statement, params![Millis(now), begins_after, until], |row| Ok(TokenId::from(row.get::<_, String>(0)?)))
}

pub(super) fn tokens_to_rejudge(from: &Transaction<'_>, resources: &[Resource]) -> Result<Vec<TokenId>, Fault> {
    let id = |row: &Row<'_>| Ok(TokenId::from(row.get::<_, String>(0)?));
    let open = "SELECT DISTINCT t.id FROM alert a JOIN token t ON t.no = a.token_no WHERE a.state IN ('pending', 'firing')";
    let mut ids = all(&mut *from.prepare_cached(open)?, [], id)?;
    let holding = "SELECT t.id FROM token t
         WHERE EXISTS (SELECT 1 FROM record r WHERE r.token_no = t.no AND r.resource = ?1)";
    for resource in resources {
        ids.extend(all(&mut *from.prepare_cached(holding)?, [resource.as_str()], id)?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

pub(super) fn episodes(from: &Transaction<'_>, pairs: &[(RuleId, String)]) -> Result<Vec<u32>, Fault> {
    let mut latest = from.prepare_cached("SELECT coalesce(max(episode), 0) FROM alert WHERE rule = ?1 AND subject = ?2")?;
    pairs
        .iter()
        .map(|(rule, subject)| Ok(latest.query_row(params![rule.as_str(), subject], |row| row.get(0)).map(small)?))
        .collect()
}

/// Open alerts that belong to no token: of the source, and of groups of tokens.
pub(super) fn alerts_of_no_token(from: &Transaction<'_>) -> Result<Vec<Alert>, Fault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.token_no IS NULL AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
    );
    all(&mut *from.prepare_cached(&sql)?, [], alert)
}

/// Those of them that are about the source, receivers and this program itself.
pub(super) fn source_alerts(from: &Transaction<'_>) -> Result<Vec<Alert>, Fault> {
    let mut alerts = alerts_of_no_token(from)?;
    alerts.retain(|alert| alert.rule.as_str() == crate::alert::SOURCE_TROUBLE);
    Ok(alerts)
}

pub(super) fn evaluated_until(from: &Transaction<'_>) -> Result<Option<Timestamp>, Fault> {
    let mut statement = from.prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'evaluated_until'")?;
    one(&mut statement, [], |row| Ok(row.get::<_, Millis>(0)?.0))
}

pub(super) fn investors(from: &Transaction<'_>) -> Result<Vec<InvestorItem>, Fault> {
    all(&mut *from.prepare_cached("SELECT id, item FROM investor ORDER BY id")?, [], |row| {
        from_json("the list item of the investor", &row.get::<_, String>(0)?, &row.get::<_, String>(1)?)
    })
}

pub(super) fn job_slots(from: &Transaction<'_>) -> Result<Vec<(String, Timestamp)>, Fault> {
    all(&mut *from.prepare_cached("SELECT name, slot FROM job ORDER BY name")?, [], |row| {
        Ok((row.get(0)?, row.get::<_, Millis>(1)?.0))
    })
}

/// Records that a feed keeps, with the token that each is about.
pub(super) fn feed_records(from: &Transaction<'_>, id: &FeedId) -> Result<Vec<(Option<TokenId>, Tracked)>, Fault> {
    let Some(resource) = id.endpoint.resource() else {
        return Ok(Vec::new());
    };
    let mut statement = from.prepare_cached(
        "SELECT t.id, r.key, r.body FROM record r LEFT JOIN token t ON t.no = r.token_no WHERE r.resource = ?1
         AND r.scope_no = CASE WHEN ?2 IS NULL THEN 0 ELSE (SELECT no FROM token WHERE id = ?2) END ORDER BY r.key",
    )?;
    all(&mut statement, params![resource.as_str(), id.token.as_ref().map(TokenId::as_str)], |row| {
        let token: Option<String> = row.get(0)?;
        let tracked = tracked(row, 1, resource, token.as_deref().unwrap_or("no token"))?;
        Ok((token.map(TokenId::from), tracked))
    })
}

pub(super) fn good_rules(from: &Transaction<'_>) -> Result<Option<String>, Fault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'good_rules'")?;
    let mut rows = statement.query([])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

pub(super) fn keep_good_rules(to: &Transaction<'_>, texts: &str) -> Result<(), Fault> {
    to.prepare_cached(
        "INSERT INTO meta (key, value) VALUES ('good_rules', ?1) ON CONFLICT DO UPDATE SET value = excluded.value",
    )?
    .execute([texts])?;
    Ok(())
}
