//! Upcoming unlocks, read from an index in one pass: times and sizes without unpacking schedules, and whether a time
//! window counts each unlock. `upcoming_rows` reads complete unlocks by row number.

use rusqlite::params;

use super::codec::{Millis, all, one_of, time};
use super::error::StoreFault;
use super::page_facts;
use super::rows::token;
use super::schedule;
use super::sql::{PendingQuery, Transaction};
use model::time::LONGEST_INTERVAL;
use model::{CliffPiece, Inclusion, SumWindow, Timestamp, UpcomingRow};

/// The size columns to read for each unlock. Reading fewer columns is measurably faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    Value,
    Both,
}

/// An unlock that has not ended. Times are in milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedUnlock {
    pub(super) no: i64,
    pub(super) token_no: Option<i64>,
    pub(super) starts_at: i64,
    pub(super) ends_at: i64,
    /// The source's date.
    pub(super) nominal_at: i64,
    /// Tokens.
    pub(super) amount: Option<f64>,
    /// USD, at current prices.
    pub(super) value: Option<f64>,
    /// Percent of market cap; `None` if not read ([`Sizes::Value`]).
    pub(super) share: Option<f64>,
    /// Whether the event has a cliff unlock. Others only begin linear unlocks.
    pub(super) is_cliff: bool,
}

/// The stored amount of a cliff unlock whose amount is unknown. An event without a cliff unlock has `NULL`.
pub(super) const UNKNOWN_AMOUNT: f64 = -1e300;

/// Selects the events with a cliff unlock, as [`IndexedUnlock::is_cliff`] does. Others only begin linear unlocks.
pub(super) const IS_CLIFF: &str = "(r.amount IS NOT NULL OR r.value IS NOT NULL)";

fn known_amount(amount: Option<f64>) -> Option<f64> {
    amount.filter(|amount| *amount > UNKNOWN_AMOUNT)
}

impl IndexedUnlock {
    /// Returns the unlock as part of a sum.
    pub(super) fn piece(&self) -> CliffPiece {
        let Self { starts_at, ends_at, nominal_at, amount, value, .. } = *self;
        CliffPiece { starts_at, ends_at, nominal_at, amount, value }
    }
}

/// Like [`each_ahead`] for one window. Also passes how the window includes the unlock.
pub(super) fn each_in_window(
    from: &Transaction<'_>,
    begin: Timestamp,
    window: SumWindow,
    sizes: Sizes,
    mut visit: impl FnMut(IndexedUnlock, Inclusion),
) -> Result<(), StoreFault> {
    each_ahead(from, begin, window.until, sizes, |unlock| {
        if let Some(inclusion) = unlock.piece().inclusion(window) {
            visit(unlock, inclusion);
        }
    })
}

/// Visits, in no particular order, each unlock that starts no later than `until` and ends after `begin`.
pub(super) fn each_ahead(
    from: &Transaction<'_>,
    begin: Timestamp,
    until: Timestamp,
    sizes: Sizes,
    visit: impl FnMut(IndexedUnlock),
) -> Result<(), StoreFault> {
    let Some(facts) = page_facts::current(from, begin, until)? else { return scan_ahead(from, begin, until, sizes, visit) };
    facts.each_ahead(begin.timestamp_millis(), until.timestamp_millis(), visit);
    Ok(())
}

/// [`each_ahead`] from the index of the database.
pub(super) fn scan_ahead(
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
        "SELECT no, token_no, starts_at, ends_at, coalesce(nominal_at, starts_at), value, amount, {share} FROM record {}
         WHERE resource = 'unlock' AND starts_at > CAST(?1 AS BIGINT) - ?3 AND starts_at <= ?2 AND ends_at > ?1",
        from.engine().indexed_by("record_window")
    );
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query(params![Millis(begin), Millis(until), longest])?;
    while let Some(row) = rows.next()? {
        let token_no: Option<i64> = row.get(1)?;
        let (value, share) = drifts.of(token_no);
        let amount: Option<f64> = row.get(6)?;
        let own_value: Option<f64> = row.get(5)?;
        visit(IndexedUnlock {
            no: row.get(0)?,
            token_no,
            starts_at: row.get(2)?,
            ends_at: row.get(3)?,
            nominal_at: row.get(4)?,
            value: own_value.map(|of| of * value),
            amount: known_amount(amount),
            is_cliff: amount.is_some() || own_value.is_some(),
            share: row.get::<Option<f64>>(7)?.map(|of| of * share),
        });
    }
    Ok(())
}

/// The pending lookup of one token's unlocks that start no later than `last` and end after `begin` (milliseconds since the epoch), without
/// their share. Several lookups that are sent in a row cost one round trip.
pub(super) struct AheadQuery<'a> {
    token: i64,
    drift: PendingQuery<'a>,
    unlocks: PendingQuery<'a>,
}

impl<'a> AheadQuery<'a> {
    pub(super) fn send(from: &Transaction<'a>, token: i64, begin: i64, last: i64) -> Result<Self, StoreFault> {
        let drift = from.prepare_cached("SELECT value FROM drift WHERE token_no = ?1")?.send_query([token])?;
        let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
        let mut statement = from.prepare_cached(
            "SELECT no, starts_at, ends_at, coalesce(nominal_at, starts_at), value, amount FROM record WHERE token_no = ?1 AND resource = 'unlock'
             AND starts_at > CAST(?2 AS BIGINT) - ?3 AND starts_at <= ?4 AND ends_at > ?2",
        )?;
        let unlocks = statement.send_query(params![token, begin, longest, last])?;
        Ok(Self { token, drift, unlocks })
    }

    pub(super) fn read(self) -> Result<Vec<IndexedUnlock>, StoreFault> {
        let drift: f64 = one_of(self.drift.rows()?, |row| Ok(row.get(0)?))?.unwrap_or(1.0);
        let mut rows = self.unlocks.rows()?;
        let mut unlocks = Vec::new();
        while let Some(row) = rows.next()? {
            let (value, amount): (Option<f64>, Option<f64>) = (row.get(4)?, row.get(5)?);
            unlocks.push(IndexedUnlock {
                no: row.get(0)?,
                token_no: Some(self.token),
                starts_at: row.get(1)?,
                ends_at: row.get(2)?,
                nominal_at: row.get(3)?,
                value: value.map(|value| value * drift),
                amount: known_amount(amount),
                is_cliff: amount.is_some() || value.is_some(),
                share: None,
            });
        }
        Ok(unlocks)
    }
}

/// The price drift of each token since its sizes were written, indexed by token number. Numbers are consecutive, so a
/// vector is smaller than a map.
struct Drifts(Vec<(f64, f64)>);

impl Drifts {
    fn read(from: &Transaction<'_>) -> Result<Self, StoreFault> {
        let mut drifts = Vec::new();
        let mut statement = from.prepare_cached("SELECT token_no, value, share FROM drift ORDER BY token_no")?;
        for (no, drift) in all(&mut statement, [], |row| Ok((row.get::<i64>(0)?, (row.get(1)?, row.get(2)?))))? {
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

/// Reads complete unlocks by row number, in no particular order.
pub(super) fn upcoming_rows(
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
        Ok((row.get(6)?, row.get(7)?, (row.get::<i64>(0)?, token(row, 1)?, time(row.get(5)?))))
    })?;
    let rows = schedule::events(from, rows)?;
    Ok(rows.into_iter().map(|((no, token, read_at), tracked)| (no, UpcomingRow { token, tracked, read_at })).collect())
}
