//! Data for calendar feeds: upcoming cliff unlocks with their modification times, and removed ones. Linear unlocks are in
//! `calendar_linear`.

use std::collections::HashMap;

use super::ahead::IS_CLIFF;
use super::codec::{Conditions, Millis, all, list, time};
use super::error::StoreFault;
use super::query::{at, upcoming_conditions};
use super::rows::{token, tracked};
use super::sql::Transaction;
use super::{Store, StoreError, schedule};
use model::{CalendarRow, Interval, Resource, Timestamp, TokenId, UpcomingFilter, UpcomingRow};

impl Store {
    /// Returns upcoming cliff unlocks, next first, and those removed since `removed_since`, latest first. At most
    /// `filter.limit` of each.
    pub async fn calendar(&self, filter: UpcomingFilter, removed_since: Timestamp) -> Result<Vec<CalendarRow>, StoreError> {
        self.read("read the calendar", move |from| {
            let mut rows = ahead(from, &filter)?;
            let removed = removed_events(from, &filter, removed_since)?;
            rows.extend(removed.into_iter().filter(|row| is_removed_cliff(row, &filter)));
            Ok(rows)
        })
        .await
    }

    /// Returns the tickers of those tokens that have one.
    pub async fn tickers(&self, ids: Vec<TokenId>) -> Result<HashMap<TokenId, String>, StoreError> {
        self.read("read tickers", move |from| {
            let mut statement = from.prepare_cached(
                "SELECT id, symbol FROM token WHERE id IN (SELECT value FROM json_each(?1)) AND symbol IS NOT NULL AND symbol <> ''",
            )?;
            let rows = all(&mut statement, [list(ids.iter().map(TokenId::as_str))], |row| {
                Ok((TokenId::from(row.get::<String>(0)?), row.get(1)?))
            })?;
            Ok(rows.into_iter().collect())
        })
        .await
    }

    /// Returns the slugs that are known.
    pub async fn known_tokens(&self, ids: Vec<TokenId>) -> Result<Vec<TokenId>, StoreError> {
        self.read("look for tokens", move |from| {
            let mut statement =
                from.prepare_cached("SELECT id FROM token WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id")?;
            all(&mut statement, [list(ids.iter().map(TokenId::as_str))], |row| Ok(TokenId::from(row.get::<String>(0)?)))
        })
        .await
    }
}

/// Reads upcoming unlocks. An unlock counts as modified if it has a newer version, or if it was removed and added
/// again. Replacing an `upcoming` entry by the full schedule is not a modification.
fn ahead(from: &Transaction<'_>, filter: &UpcomingFilter) -> Result<Vec<CalendarRow>, StoreFault> {
    let mut conditions = upcoming_conditions(filter);
    conditions.and_plain(IS_CLIFF);
    let (sql, values) = conditions.within(
        "SELECT t.id, t.item, t.name, t.symbol, f.read_at, r.scope_no, r.key, r.version_at, r.version_at > r.first_seen OR EXISTS (
             SELECT 1 FROM record_version v WHERE v.token_no = r.token_no AND v.resource = 'unlock' AND v.key = r.key
             AND v.replaced_at < r.first_seen)
         FROM record r JOIN token t ON t.no = r.token_no
         LEFT JOIN feed f ON f.token_no = r.scope_no AND f.endpoint = 'unlock_events'",
        &format!(" ORDER BY r.starts_at, t.id, r.key LIMIT {}", filter.limit),
    );
    let rows = all(&mut from.prepare(&sql)?, values, |row| {
        let (modified_at, was_modified): (Millis, bool) = (row.get(7)?, row.get(8)?);
        Ok((row.get(5)?, row.get(6)?, (token(row, 0)?, time(row.get(4)?), modified_at.0, was_modified)))
    })?;
    let calendar = |((token, read_at, modified_at, was_modified), tracked)| CalendarRow {
        row: UpcomingRow { token, tracked, read_at },
        modified_at,
        was_modified,
        is_removed: false,
    };
    Ok(schedule::events(from, rows)?.into_iter().map(calendar).collect())
}

/// Reads the last version of removed unlock events, whatever their date: a linear unlock can end long after it.
pub(super) fn removed_events(
    from: &Transaction<'_>,
    filter: &UpcomingFilter,
    since: Timestamp,
) -> Result<Vec<CalendarRow>, StoreFault> {
    let mut conditions = Conditions::default();
    conditions.and("v.resource = 'unlock' AND v.body IS NOT NULL AND v.replaced_at > ?", at(since));
    if let Some(tokens) = &filter.tokens {
        conditions.and("t.id IN (SELECT value FROM json_each(?))", list(tokens.iter().map(TokenId::as_str)));
    }
    let (sql, values) = conditions.within(
        "SELECT id, item, name, symbol, NULL, key, body, replaced_at FROM (
         SELECT t.id, t.item, t.name, t.symbol, v.key, v.body, v.replaced_at,
         row_number() OVER (PARTITION BY v.scope_no, v.key ORDER BY v.replaced_at DESC, v.no DESC) AS place FROM record_version v
         JOIN token t ON t.no = v.token_no",
        &format!(
            " AND NOT EXISTS (SELECT 1 FROM record r WHERE r.token_no = v.scope_no AND r.resource = 'unlock' AND r.key = v.key)
             ) latest WHERE place = 1 ORDER BY replaced_at DESC, id, key LIMIT {}",
            filter.limit
        ),
    );
    all(&mut from.prepare(&sql)?, values, |row| {
        let token = token(row, 0)?;
        let tracked = tracked(row, 5, Resource::Unlock, token.id.as_str())?;
        Ok(CalendarRow {
            row: UpcomingRow { token, tracked, read_at: None },
            modified_at: row.get::<Millis>(7)?.0,
            was_modified: true,
            is_removed: true,
        })
    })
}

/// Returns whether a removed event has a cliff unlock in the window of the filter.
fn is_removed_cliff(row: &CalendarRow, filter: &UpcomingFilter) -> bool {
    let record = &row.row.tracked.record;
    let is_in = |of: Interval| of.end > filter.from && filter.until.is_none_or(|until| of.start <= until);
    record.interval().is_some_and(is_in) && record.unlock().is_some_and(|event| event.has_cliff())
}
