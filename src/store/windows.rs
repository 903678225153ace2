//! What windows over time are summed over: the few records of a token that can lie in one.

use rusqlite::params;

use super::codec::{Millis, all_of, one_of, word};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::rows::{FEED_COLUMNS, feed_state, tracked};
use super::sql::{Question, Transaction};
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
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(READ_TOGETHER) {
        let mut number = from.prepare_cached("SELECT no FROM token WHERE id = ?1")?;
        let numbers = ids.iter().map(|id| number.ask([id.as_str()])).collect::<Result<Vec<_>, _>>()?;
        let numbers = numbers.into_iter().map(|number| one_of(number.rows()?, |row| Ok(row.get(0)?)));
        let numbers: Vec<Option<i64>> = numbers.collect::<Result<_, StoreFault>>()?;
        let asked = numbers.into_iter().map(|no| no.map(|no| ask_token(from, no, ranges)).transpose());
        for (id, asked) in ids.iter().zip(asked.collect::<Result<Vec<_>, _>>()?) {
            let nothing = WindowRecords { feeds: Vec::new(), records: Vec::new() };
            found.push(asked.map_or(Ok(nothing), |(feeds, records)| read_token(id, feeds, records, ranges))?);
        }
    }
    Ok(found)
}

/// Asks for the feeds of a token, and for the records in each range; of unlocks for the schedule.
fn ask_token<'a>(
    from: &Transaction<'a>,
    no: i64,
    ranges: &[RecordRange],
) -> Result<(Question<'a>, Vec<Question<'a>>), StoreFault> {
    let sql = format!("SELECT f.endpoint, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 ORDER BY f.no");
    let feeds = from.prepare_cached(&sql)?.ask([no])?;
    let records = ranges.iter().map(|RecordRange { resource, since, until }| match resource {
        Resource::Unlock => from.prepare_cached(schedule::OF_TOKEN)?.ask([no]),
        _ => from.prepare_cached(HAPPENED)?.ask(params![no, Millis(*since), Millis(*until), resource.as_str()]),
    });
    Ok((feeds, records.collect::<Result<_, _>>()?))
}

fn read_token(
    id: &TokenId,
    feeds: Question<'_>,
    records: Vec<Question<'_>>,
    ranges: &[RecordRange],
) -> Result<WindowRecords, StoreFault> {
    let feeds = all_of(feeds.rows()?, |row| {
        let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<_, String>(0)?, Endpoint::parse)?;
        Ok((endpoint, feed_state(row, 1, id.as_str())?))
    })?;
    let mut found = WindowRecords { feeds, records: Vec::new() };
    for (RecordRange { resource, since, until }, asked) in ranges.iter().zip(records) {
        if *resource == Resource::Unlock {
            let schedule = one_of(asked.rows()?, |row| schedule::read(row, id.as_str()))?.unwrap_or_default();
            found.records.extend(unlocks(schedule, *since, *until));
            continue;
        }
        found.records.extend(all_of(asked.rows()?, |row| tracked(row, 0, *resource, id.as_str()))?);
    }
    Ok(found)
}
