//! What windows over time are summed over: the few records of a token that can lie in one.

use rusqlite::params;

use super::codec::{Millis, all, one, word};
use super::error::StoreFault;
use super::rows::{FEED_COLUMNS, feed_state, tracked};
use super::sql::{Row, Transaction};
use super::{Store, StoreError, schedule};
use model::{Endpoint, RecordRange, Resource, Timestamp, TokenId, Tracked, WindowRecords};

impl Store {
    /// What the windows of tokens are summed over, in the order of `ids`: of each resource no more records than `ranges` wants.
    pub async fn window_records(&self, ids: Vec<TokenId>, ranges: Vec<RecordRange>) -> Result<Vec<WindowRecords>, StoreError> {
        self.read("read what windows hold", move |from| window_records(from, &ids, &ranges)).await
    }
}

/// Unlocks that may lie ahead, and those with a linear segment, however long ago it began.
fn unlocks(schedule: Vec<Tracked>, since: Timestamp, until: Timestamp) -> impl Iterator<Item = Tracked> {
    schedule.into_iter().filter(move |tracked| {
        let has_segments = tracked.record.unlock().is_some_and(|event| event.linear_unlocks.get().is_some());
        tracked.record.interval().is_some_and(|of| of.start <= until && (of.end >= since || has_segments))
    })
}

/// What happened in a span of time, and the latest before it.
const HAPPENED: &str = "SELECT key, body FROM record WHERE token_no = ?1 AND resource = ?4 AND starts_at <= ?3
     AND starts_at >= min(?2, coalesce((SELECT max(starts_at) FROM record
         WHERE token_no = ?1 AND resource = ?4 AND starts_at <= ?3), ?2))";

fn window_records(from: &Transaction<'_>, ids: &[TokenId], ranges: &[RecordRange]) -> Result<Vec<WindowRecords>, StoreFault> {
    ids.iter().map(|id| of_token(from, id, ranges)).collect()
}

fn of_token(from: &Transaction<'_>, id: &TokenId, ranges: &[RecordRange]) -> Result<WindowRecords, StoreFault> {
    let mut found = WindowRecords { feeds: Vec::new(), records: Vec::new() };
    let no =
        one(&mut *from.prepare_cached("SELECT no FROM token WHERE id = ?1")?, [id.as_str()], |row| Ok(row.get::<_, i64>(0)?))?;
    let Some(no) = no else { return Ok(found) };
    let sql = format!("SELECT f.endpoint, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 ORDER BY f.no");
    found.feeds = all(&mut *from.prepare_cached(&sql)?, [no], |row| {
        let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<_, String>(0)?, Endpoint::parse)?;
        Ok((endpoint, feed_state(row, 1, id.as_str())?))
    })?;
    for RecordRange { resource, since, until } in ranges {
        let read = |row: &Row<'_>| tracked(row, 0, *resource, id.as_str());
        if *resource == Resource::Unlock {
            found.records.extend(unlocks(schedule::of_token(from, no, id.as_str())?, *since, *until));
            continue;
        }
        let values = params![no, Millis(*since), Millis(*until), resource.as_str()];
        found.records.extend(all(&mut *from.prepare_cached(HAPPENED)?, values, read)?);
    }
    Ok(found)
}
