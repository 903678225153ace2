//! Conversion of rows that several queries read.

use super::codec::{Hash, Millis, from_json, small, time, word};
use super::commit::AlertColumns;
use super::error::StoreFault;
use super::sql::Row;
use model::wire::Maybe;
use model::{
    Alert, AlertId, AlertState, FeedState, Hold, Record, RecordKey, Resolution, Resource, RuleId, Token, TokenId, Tracked,
};

/// The columns for [`alert`], from `alert AS a` joined with `token AS t`.
pub(super) const ALERT_COLUMNS: &str = "a.id, a.rule, a.name, a.subject, a.episode, a.state, a.resolution, t.id, a.resource, a.key, \
     a.level, a.active_at, a.starts_at, a.ends_at, a.false_since, a.recheck_at, a.updated_at, a.body";

/// The number of [`ALERT_COLUMNS`].
pub(super) const ALERT_COLUMN_COUNT: usize = 18;

/// Reads an alert from [`ALERT_COLUMNS`].
pub(super) fn alert(row: &Row<'_>) -> Result<Alert, StoreFault> {
    let id: String = row.get(0)?;
    let state: String = row.get(5)?;
    let resolution: Option<String> = row.get(6)?;
    let resource: Option<String> = row.get(8)?;
    let body: String = row.get(17)?;
    let columns: AlertColumns = from_json("the body of the alert", &id, &body)?;
    Ok(Alert {
        rule: RuleId::from(row.get::<String>(1)?),
        name: row.get(2)?,
        subject: row.get(3)?,
        episode: small(row.get(4)?),
        state: word("the state of the alert", &id, &state, AlertState::parse)?,
        resolution: resolution.map(|text| word("the resolution of the alert", &id, &text, Resolution::parse)).transpose()?,
        token: row.get::<Option<String>>(7)?.map(TokenId::from),
        resource: resource.map(|text| word("the resource of the alert", &id, &text, Resource::parse)).transpose()?,
        key: row.get::<Option<String>>(9)?.map(RecordKey::from),
        level: row.get::<Option<i64>>(10)?.map(small),
        labels: columns.labels,
        former_labels: columns.former_labels,
        annotations: columns.annotations,
        notified: columns.notified,
        leads: columns.leads,
        members: columns.members,
        active_at: row.get::<Millis>(11)?.0,
        starts_at: time(row.get(12)?),
        ends_at: time(row.get(13)?),
        false_since: time(row.get(14)?),
        due: columns.due,
        recheck_at: time(row.get(15)?),
        text_at: columns.text_at,
        updated_at: row.get::<Millis>(16)?.0,
        id: AlertId::from(id),
    })
}

/// The columns for [`feed_state`], from `feed AS f`.
pub(super) const FEED_COLUMNS: &str =
    "f.baseline_at, f.read_at, f.tried_at, f.hash, f.mark, f.stale, f.failing_since, f.missing, f.held_since, f.cost,
     f.findings, f.hold_accepted";

/// Reads the state of a feed from [`FEED_COLUMNS`], starting at `first`.
pub(super) fn feed_state(row: &Row<'_>, first: usize, of: &str) -> Result<FeedState, StoreFault> {
    let (missing, findings): (String, String) = (row.get(first + 7)?, row.get(first + 10)?);
    let is_accepted: bool = row.get(first + 11)?;
    Ok(FeedState {
        baseline_at: time(row.get(first)?),
        read_at: time(row.get(first + 1)?),
        tried_at: time(row.get(first + 2)?),
        hash: row.get::<Option<Hash>>(first + 3)?.map(|Hash(hash)| hash),
        mark: time(row.get(first + 4)?),
        stale: row.get(first + 5)?,
        failing_since: time(row.get(first + 6)?),
        missing: from_json("the list of missing records", of, &missing)?,
        hold: time(row.get(first + 8)?).map(|since| Hold { since, is_accepted }),
        cost: small(row.get(first + 9)?),
        findings: from_json("the findings", of, &findings)?,
    })
}

/// Reads a token from the columns `id, item, name, symbol`, starting at `first`.
pub(super) fn token(row: &Row<'_>, first: usize) -> Result<Token, StoreFault> {
    let id: String = row.get(first)?;
    let item: Option<String> = row.get(first + 1)?;
    let mut token = Token::unknown(TokenId::from(id.as_str()));
    match item {
        Some(item) => token.item = from_json("the list item", &id, &item)?,
        None => {
            let (name, symbol): (Option<String>, Option<String>) = (row.get(first + 2)?, row.get(first + 3)?);
            token.item.name = Maybe::or_absent(name.map(Into::into));
            token.item.symbol = Maybe::or_absent(symbol.map(Into::into));
        }
    }
    Ok(token)
}

/// Reads a record from the columns `key, body`, starting at `first`.
pub(super) fn tracked(row: &Row<'_>, first: usize, resource: Resource, token: &str) -> Result<Tracked, StoreFault> {
    let key: String = row.get(first)?;
    let body = row.get_ref(first + 1)?.as_str().map_err(rusqlite::Error::from)?;
    let record = Record::from_json(resource, body).map_err(|source| StoreFault::BadRow {
        what: format!("the {resource} {key} of {token} cannot be read"),
        source: Some(source),
    })?;
    Ok(Tracked { key: RecordKey::from(key), record })
}
