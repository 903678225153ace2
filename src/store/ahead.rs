//! Unlocks ahead as an index has them, all in one pass: their times and sizes, without reading schedules. What is asked for whole is
//! read by its number.

use rusqlite::params;

use super::codec::{Millis, all, time};
use super::cycle::LONGEST_INTERVAL;
use super::error::StoreFault;
use super::rows::token;
use super::schedule;
use super::sql::Transaction;
use model::{Timestamp, UpcomingRow};

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
