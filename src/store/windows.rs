//! The records over which time windows aggregate.

use rusqlite::params;

use super::codec::{Millis, all_of, from_json, one_of, word};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::rows::{FEED_COLUMNS, feed_state, tracked};
use super::sql::{PendingQuery, Transaction};
use super::{Store, StoreError, schedule};
use model::{Endpoint, RecordRange, ReferencePrice, Resource, Timestamp, TokenId, Tracked, WindowRecords};

impl Store {
    /// Returns the records for the windows of each token, in the order of `ids`. Reads only what `ranges` needs.
    pub async fn window_records(&self, ids: Vec<TokenId>, ranges: Vec<RecordRange>) -> Result<Vec<WindowRecords>, StoreError> {
        self.read("read the records of windows", move |from| window_records(from, &ids, &ranges)).await
    }
}

/// Returns unlocks that may fall into the range, and all with linear unlocks, however long ago they started.
fn unlocks(schedule: Vec<Tracked>, since: Timestamp, until: Timestamp) -> impl Iterator<Item = Tracked> {
    schedule.into_iter().filter(move |tracked| {
        let has_segments = tracked.record.unlock().is_some_and(|event| event.linear_unlocks.get().is_some());
        tracked.record.interval().is_some_and(|of| of.start <= until && (of.end >= since || has_segments))
    })
}

/// Selects the records of a range, and the latest record before it.
const HAPPENED: &str = "SELECT key, body FROM record WHERE token_no = ?1 AND resource = ?4 AND starts_at <= ?3
     AND starts_at >= min(?2, coalesce((SELECT max(starts_at) FROM record
         WHERE token_no = ?1 AND resource = ?4 AND starts_at <= ?3), ?2))";

fn window_records(from: &Transaction<'_>, ids: &[TokenId], ranges: &[RecordRange]) -> Result<Vec<WindowRecords>, StoreFault> {
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(READ_TOGETHER) {
        let mut number = from.prepare_cached("SELECT no FROM token WHERE id = ?1")?;
        let numbers = ids.iter().map(|id| number.send_query([id.as_str()])).collect::<Result<Vec<_>, _>>()?;
        let numbers = numbers.into_iter().map(|number| one_of(number.rows()?, |row| Ok(row.get(0)?)));
        let numbers: Vec<Option<i64>> = numbers.collect::<Result<_, StoreFault>>()?;
        let queried = numbers.into_iter().map(|no| no.map(|no| query_token(from, no, ranges)).transpose());
        for (id, queried) in ids.iter().zip(queried.collect::<Result<Vec<_>, _>>()?) {
            let nothing = WindowRecords { feeds: Vec::new(), records: Vec::new(), schedule_header: None, price: None };
            found.push(queried.map_or(Ok(nothing), |(feeds, records)| read_token(id, feeds, records, ranges))?);
        }
    }
    Ok(found)
}

/// Sends the queries for a token's feeds, and for its records in each range. Unlocks come from the packed schedule.
fn query_token<'a>(
    from: &Transaction<'a>,
    no: i64,
    ranges: &[RecordRange],
) -> Result<(PendingQuery<'a>, Vec<PendingQuery<'a>>), StoreFault> {
    let sql = format!(
        "SELECT f.endpoint, CASE WHEN f.endpoint = 'unlock_events' THEN f.header END, {FEED_COLUMNS} FROM feed f
         WHERE f.token_no = ?1 ORDER BY f.no"
    );
    let feeds = from.prepare_cached(&sql)?.send_query([no])?;
    let records = ranges.iter().map(|RecordRange { resource, since, until }| match resource {
        Resource::Unlock => from.prepare_cached(schedule::OF_TOKEN)?.send_query([no]),
        _ => from.prepare_cached(HAPPENED)?.send_query(params![no, Millis(*since), Millis(*until), resource.as_str()]),
    });
    Ok((feeds, records.collect::<Result<_, _>>()?))
}

fn read_token(
    id: &TokenId,
    feeds: PendingQuery<'_>,
    records: Vec<PendingQuery<'_>>,
    ranges: &[RecordRange],
) -> Result<WindowRecords, StoreFault> {
    let feeds = all_of(feeds.rows()?, |row| {
        let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<String>(0)?, Endpoint::parse)?;
        Ok((endpoint, feed_state(row, 2, id.as_str())?, row.get::<Option<String>>(1)?))
    })?;
    let header = feeds.iter().find_map(|(_, _, header)| header.as_deref());
    let schedule_header = header.map(|text| from_json("the header of a feed", id.as_str(), text)).transpose()?;
    let feeds = feeds.into_iter().map(|(endpoint, state, _)| (endpoint, state)).collect();
    let mut found = WindowRecords { feeds, records: Vec::new(), schedule_header, price: None };
    for (RecordRange { resource, since, until }, queried) in ranges.iter().zip(records) {
        if *resource == Resource::Unlock {
            let schedule = one_of(queried.rows()?, |row| schedule::read(row, id.as_str()))?.unwrap_or_default();
            found.price = ReferencePrice::latest(schedule.iter().filter_map(|tracked| tracked.record.unlock()));
            found.records.extend(unlocks(schedule, *since, *until));
            continue;
        }
        found.records.extend(all_of(queried.rows()?, |row| tracked(row, 0, *resource, id.as_str()))?);
    }
    Ok(found)
}
