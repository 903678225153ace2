//! Unlocks ahead as an index has them, all in one pass: their times and sizes, without reading schedules, and whether the sums of a time
//! count them. What is asked for whole is read by its number.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, one, time};
use super::cycle::LONGEST_INTERVAL;
use super::error::StoreFault;
use super::rows::token;
use super::schedule;
use super::sql::Transaction;
use model::{SumWindow, Timestamp, UpcomingRow};

const DAY: i64 = TimeDelta::days(1).num_milliseconds();

/// The shortest interval that has a day by which it is counted.
const SHORTEST_NOMINAL: i64 = TimeDelta::weeks(1).num_milliseconds();

/// Schedules that are read at once where the day of their unlocks was not written down.
const UNDATED_AT_ONCE: usize = 64;

/// Which columns of its size are read of each: of many rows every column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    Value,
    Both,
}

/// An unlock that may lie ahead, milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedUnlock {
    pub(super) no: i64,
    pub(super) token_no: Option<i64>,
    pub(super) starts_at: i64,
    pub(super) ends_at: i64,
    /// The begin of the day by which sums count one of a month or a week, where it was written down.
    pub(super) nominal_at: Option<i64>,
    /// USD, by what is known now.
    pub(super) value: Option<f64>,
    /// Percent of the market cap; not read where it is not asked for.
    pub(super) share: Option<f64>,
}

impl IndexedUnlock {
    /// From when to when sums count it.
    pub(super) fn counted(&self) -> (i64, i64) {
        self.nominal_at.map_or((self.starts_at, self.ends_at), |day| (day, day + DAY))
    }

    /// The day by which it is counted stands in its schedule alone: whoever wrote its row did not know of that column.
    fn is_undated(&self) -> bool {
        self.nominal_at.is_none() && self.ends_at - self.starts_at >= SHORTEST_NOMINAL
    }
}

/// Reads of those that are undated by which day they are counted.
pub(super) fn date(from: &Transaction<'_>, unlocks: &mut [IndexedUnlock]) -> Result<(), StoreFault> {
    let mut undated: Vec<&mut IndexedUnlock> = unlocks.iter_mut().filter(|unlock| unlock.is_undated()).collect();
    for unlocks in undated.chunks_mut(UNDATED_AT_ONCE) {
        let days = whole(from, unlocks.iter().map(|unlock| unlock.no))?.into_iter().filter_map(|(no, read)| {
            let date = read.tracked.record.unlock()?.unlock_date.copied();
            Some((no, read.tracked.record.interval()?.nominal(date).start.timestamp_millis()))
        });
        let days: HashMap<i64, i64> = days.collect();
        unlocks.iter_mut().for_each(|unlock| unlock.nominal_at = days.get(&unlock.no).copied());
    }
    Ok(())
}

/// As [`each_ahead`], of all that may come within a window; with whether sums count it.
pub(super) fn each_placed(
    from: &Transaction<'_>,
    begin: Timestamp,
    window: SumWindow,
    sizes: Sizes,
    mut visit: impl FnMut(IndexedUnlock, bool),
) -> Result<(), StoreFault> {
    let (first, last) = (window.at.timestamp_millis(), window.until.timestamp_millis());
    let mut undated = Vec::new();
    let place = |unlock: &IndexedUnlock| {
        let (start, end) = unlock.counted();
        window.counts(start, end)
    };
    each_ahead(from, begin, window.until, sizes, |unlock| {
        // Wherever its day is, it lies within.
        let is_within = unlock.starts_at >= first && unlock.ends_at <= last;
        match unlock.is_undated() && !is_within {
            true => undated.push(unlock),
            false => visit(unlock, is_within || place(&unlock)),
        }
    })?;
    date(from, &mut undated)?;
    undated.into_iter().for_each(|unlock| visit(unlock, place(&unlock)));
    Ok(())
}

/// Goes through all that begins by `until` and has not passed at `begin`, in no order that counts.
pub(super) fn each_ahead(
    from: &Transaction<'_>,
    begin: Timestamp,
    until: Timestamp,
    sizes: Sizes,
    mut visit: impl FnMut(IndexedUnlock),
) -> Result<(), StoreFault> {
    let drifts = Drifts::read(from)?;
    let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
    let share = if sizes == Sizes::Both { "share" } else { "NULL" };
    let sql = format!(
        "SELECT no, token_no, starts_at, ends_at, nominal_at, value, {share} FROM record INDEXED BY record_window
         WHERE resource = 'unlock' AND starts_at > CAST(?1 AS BIGINT) - ?3 AND starts_at <= ?2 AND ends_at > ?1"
    );
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query(params![Millis(begin), Millis(until), longest])?;
    while let Some(row) = rows.next()? {
        let token_no: Option<i64> = row.get(1)?;
        let (value, share) = drifts.of(token_no);
        visit(IndexedUnlock {
            no: row.get(0)?,
            token_no,
            starts_at: row.get(2)?,
            ends_at: row.get(3)?,
            nominal_at: row.get(4)?,
            value: row.get::<_, Option<f64>>(5)?.map(|of| of * value),
            share: row.get::<_, Option<f64>>(6)?.map(|of| of * share),
        });
    }
    Ok(())
}

/// All of one token that begins by `last` and has not passed at `begin`, milliseconds since the epoch, by its value; each dated.
pub(super) fn ahead_of(from: &Transaction<'_>, token: i64, begin: i64, last: i64) -> Result<Vec<IndexedUnlock>, StoreFault> {
    let mut drift = from.prepare_cached("SELECT value FROM drift WHERE token_no = ?1")?;
    let drift: f64 = one(&mut drift, [token], |row| Ok(row.get(0)?))?.unwrap_or(1.0);
    let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
    let mut statement = from.prepare_cached(
        "SELECT no, starts_at, ends_at, nominal_at, value FROM record WHERE token_no = ?1 AND resource = 'unlock'
         AND starts_at > CAST(?2 AS BIGINT) - ?3 AND starts_at <= ?4 AND ends_at > ?2",
    )?;
    let mut unlocks = all(&mut statement, params![token, begin, longest, last], |row| {
        Ok(IndexedUnlock {
            no: row.get(0)?,
            token_no: Some(token),
            starts_at: row.get(1)?,
            ends_at: row.get(2)?,
            nominal_at: row.get(3)?,
            value: row.get::<_, Option<f64>>(4)?.map(|value| value * drift),
            share: None,
        })
    })?;
    date(from, &mut unlocks)?;
    Ok(unlocks)
}

/// By how much the sizes of each token moved since they were written, by its number: numbers are given one after the other, so that a
/// list is shorter than a map.
struct Drifts(Vec<(f64, f64)>);

impl Drifts {
    fn read(from: &Transaction<'_>) -> Result<Self, StoreFault> {
        let mut drifts = Vec::new();
        let mut statement = from.prepare_cached("SELECT token_no, value, share FROM drift ORDER BY token_no")?;
        for (no, drift) in all(&mut statement, [], |row| Ok((row.get::<_, i64>(0)?, (row.get(1)?, row.get(2)?))))? {
            let no = usize::try_from(no).unwrap_or_default();
            drifts.resize(drifts.len().max(no), (1.0, 1.0));
            drifts.push(drift);
        }
        Ok(Self(drifts))
    }

    fn of(&self, token: Option<i64>) -> (f64, f64) {
        token.and_then(|no| self.0.get(usize::try_from(no).ok()?)).copied().unwrap_or((1.0, 1.0))
    }
}

/// The unlocks of these numbers, whole, in no order.
pub(super) fn whole(
    from: &Transaction<'_>,
    numbers: impl IntoIterator<Item = i64>,
) -> Result<Vec<(i64, UpcomingRow)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT r.no, t.id, t.item, t.name, t.symbol, f.read_at, r.scope_no, r.key FROM record r JOIN token t ON t.no = r.token_no
         LEFT JOIN feed f ON f.token_no = r.scope_no AND f.endpoint = 'unlock_events'
         WHERE r.no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
    )?;
    let numbers: Vec<i64> = numbers.into_iter().collect();
    let rows = all(&mut statement, [serde_json::Value::from(numbers).to_string()], |row| {
        Ok((row.get(6)?, row.get(7)?, (row.get::<_, i64>(0)?, token(row, 1)?, time(row.get(5)?))))
    })?;
    let rows = schedule::events(from, rows)?;
    Ok(rows.into_iter().map(|((no, token, read_at), tracked)| (no, UpcomingRow { token, tracked, read_at })).collect())
}
