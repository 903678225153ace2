//! Data for calendar feeds: upcoming cliff unlocks with their modification times, and removed ones. Linear unlocks are in
//! `calendar_linear`.

use std::collections::HashMap;

use super::codec::{Conditions, Millis, all, list, time};
use super::error::StoreFault;
use super::list_limits::CHUNK_ROWS;
use super::query::at;
use super::rows::{token, tracked};
use super::schedule_reader::ScheduleReader;
use super::sql::Transaction;
use super::upcoming::first_cliffs;
use super::{Store, StoreError, schedule};
use model::{CalendarRow, Interval, Resource, Timestamp, TokenId, TokenSnapshot, UnlockListFilter, UpcomingFilter, UpcomingRow};

impl Store {
    /// Passes upcoming cliff unlocks to `select`, next first, and then those removed since `removed_since`, latest first: at most
    /// the row limit of each. Stops after `max` values, and returns them. Of the upcoming ones, only one chunk is in memory at
    /// a time. `min_value` does not apply to removed unlocks, and `kind` and `after` have no effect. `select` gets the schedule of the
    /// token if `with_schedules` is set.
    pub async fn calendar<T: Send + 'static>(
        &self,
        filter: UnlockListFilter,
        removed_since: Timestamp,
        max: usize,
        with_schedules: bool,
        mut select: impl FnMut(CalendarRow, Option<&TokenSnapshot>) -> Option<T> + Send + 'static,
    ) -> Result<Vec<T>, StoreError> {
        self.read("read the calendar", move |from| {
            let mut schedules = ScheduleReader::new(from, with_schedules);
            let mut select = |row: CalendarRow| {
                let id = row.row.token.id.clone();
                Ok::<_, StoreFault>(select(row, schedules.of(&id)?))
            };
            let mut selected = Vec::new();
            let numbers = first_cliffs(from, &filter, usize::try_from(filter.unlocks.limit).unwrap_or(usize::MAX))?;
            for chunk in numbers.chunks(CHUNK_ROWS as usize) {
                if selected.len() >= max {
                    break;
                }
                for row in ahead(from, chunk)? {
                    selected.extend(select(row)?);
                }
            }
            if selected.len() < max {
                let unlocks = &filter.unlocks;
                each_removed_event(from, unlocks, removed_since, |row| {
                    if is_removed_cliff(&row, unlocks) {
                        selected.extend(select(row)?);
                    }
                    Ok(())
                })?;
            }
            selected.truncate(max);
            Ok(selected)
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

/// Reads upcoming unlocks by their record numbers, by time, token, and key. An unlock counts as modified if it has a newer version, or if
/// it was removed and added again. Replacing an `upcoming` entry by the full schedule is not a modification.
fn ahead(from: &Transaction<'_>, places: &[(i64, i64)]) -> Result<Vec<CalendarRow>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT t.id, t.item, t.name, t.symbol, f.read_at, r.scope_no, r.key, r.version_at, r.version_at > r.first_seen OR EXISTS (
             SELECT 1 FROM record_version v WHERE v.token_no = r.token_no AND v.resource = 'unlock' AND v.key = r.key
             AND v.replaced_at < r.first_seen)
         FROM record r JOIN token t ON t.no = r.token_no
         LEFT JOIN feed f ON f.token_no = r.scope_no AND f.endpoint = 'unlock_events'
         WHERE r.no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY r.starts_at, t.id, r.key",
    )?;
    let numbers: Vec<i64> = places.iter().map(|(_, no)| *no).collect();
    let rows = all(&mut statement, [serde_json::Value::from(numbers).to_string()], |row| {
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

/// Visits the last version of removed unlock events, latest first, whatever their date: a linear unlock can end long after it.
pub(super) fn each_removed_event(
    from: &Transaction<'_>,
    filter: &UpcomingFilter,
    since: Timestamp,
    mut visit: impl FnMut(CalendarRow) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
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
    let mut statement = from.prepare(&sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let token = token(&row, 0)?;
        let tracked = tracked(&row, 5, Resource::Unlock, token.id.as_str())?;
        visit(CalendarRow {
            row: UpcomingRow { token, tracked, read_at: None },
            modified_at: row.get::<Millis>(7)?.0,
            was_modified: true,
            is_removed: true,
        })?;
    }
    Ok(())
}

/// Returns whether a removed event has a cliff unlock in the window of the filter.
fn is_removed_cliff(row: &CalendarRow, filter: &UpcomingFilter) -> bool {
    let record = &row.row.tracked.record;
    let is_in = |of: Interval| of.end > filter.from && filter.until.is_none_or(|until| of.start <= until);
    record.interval().is_some_and(is_in) && record.unlock().is_some_and(|event| event.has_cliff())
}
