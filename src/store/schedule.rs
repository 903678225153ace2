//! The packed format of vesting schedules: all unlock events of a token in one row, and replaced versions. Events are
//! sorted by time and key, undated ones last.

use std::collections::HashMap;
use std::sync::Arc;

use super::codec::{one, one_of};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::sql::{Row, Transaction};
use model::{Record, RecordKey, Timestamp, Tracked, wire};
use wire::{Pack, Packer, Unpacker};

/// The version of the format.
const FORMAT: u64 = 1;

/// An event with its key and sort time.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) event: &'a wire::UnlockEvent,
    pub(super) starts_at: Option<i64>,
}

impl<'a> Entry<'a> {
    pub(super) fn of(key: &'a str, event: &'a wire::UnlockEvent) -> Self {
        Self { key, event, starts_at: event.interval().map(|interval| interval.start.timestamp_millis()) }
    }

    /// Returns the sort key: time, then key, undated events last.
    pub(super) fn order(&self) -> (bool, Option<i64>, &'a str) {
        (self.starts_at.is_none(), self.starts_at, self.key)
    }
}

/// An event version that was replaced.
pub(super) struct Replaced<'a> {
    pub(super) key: &'a str,
    /// When this version was first seen.
    pub(super) at: Timestamp,
    pub(super) event: &'a wire::UnlockEvent,
}

/// Packs a sorted schedule.
pub(super) fn pack(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut to = Packer::default();
    to.count(FORMAT);
    to.count(entries.len() as u64);
    entries.iter().for_each(|entry| to.literal(entry.key));
    entries.iter().for_each(|entry| entry.event.pack(&mut to));
    to.into_bytes()
}

/// Returns the keys of a packed schedule, or `None` if it is damaged.
pub(super) fn keys(body: &[u8]) -> Option<Vec<&str>> {
    keys_of(&mut Unpacker::new(body))
}

fn keys_of<'b>(from: &mut Unpacker<'b>) -> Option<Vec<&'b str>> {
    from.count().filter(|format| *format == FORMAT)?;
    (0..from.length()?).map(|_| from.literal()).collect()
}

/// Unpacks a schedule, or returns `None` if it is damaged.
pub(super) fn unpack(body: &[u8]) -> Option<Vec<Tracked>> {
    let mut from = Unpacker::new(body);
    let mut records = Vec::new();
    for key in keys_of(&mut from)? {
        let record = Record::Unlock(Arc::new(Pack::unpack(&mut from)?));
        records.push(Tracked { key: RecordKey::from(key), record });
    }
    from.is_done().then_some(records)
}

/// Unpacks only the wanted events, and passes each with its index from `wanted`. Stops after the last one, because
/// upcoming unlocks are seldom at the end. Returns `false` if the schedule is damaged.
fn unpack_some(body: &[u8], wanted: &HashMap<&str, usize>, mut found: impl FnMut(usize, Tracked)) -> bool {
    let mut from = Unpacker::new(body);
    let Some(keys) = keys_of(&mut from) else { return false };
    let mut missing = wanted.len();
    for key in keys {
        if missing == 0 {
            return true;
        }
        let Some(event) = Pack::unpack(&mut from) else { return false };
        if let Some(place) = wanted.get(key) {
            found(*place, Tracked { key: RecordKey::from(key), record: Record::Unlock(Arc::new(event)) });
            missing -= 1;
        }
    }
    true
}

/// Packs event versions that were replaced at the same time.
pub(super) fn pack_replaced(versions: &[Replaced<'_>]) -> Vec<u8> {
    let mut to = Packer::default();
    to.count(FORMAT);
    to.count(versions.len() as u64);
    for version in versions {
        to.literal(version.key);
        to.time(version.at);
        version.event.pack(&mut to);
    }
    to.into_bytes()
}

/// Unpacks replaced event versions with the time each was first seen, or returns `None` if they are damaged.
pub(super) fn unpack_replaced(body: &[u8]) -> Option<Vec<(Timestamp, Tracked)>> {
    let mut from = Unpacker::new(body);
    from.count().filter(|format| *format == FORMAT)?;
    let mut versions = Vec::new();
    for _ in 0..from.length()? {
        let key = RecordKey::from(from.literal()?);
        let at = from.time()?;
        versions.push((at, Tracked { key, record: Record::Unlock(Arc::new(Pack::unpack(&mut from)?)) }));
    }
    from.is_done().then_some(versions)
}

/// Returns the error for a row that cannot be unpacked.
pub(super) fn damaged(what: &str, of: &str) -> StoreFault {
    StoreFault::BadRow { what: format!("{what} of {of} cannot be unpacked"), source: None }
}

/// Selects the schedule of a token.
pub(super) const OF_TOKEN: &str = "SELECT body FROM schedule WHERE scope_no = ?1";

/// Reads a token's schedule, sorted. `of` names the token in errors.
pub(super) fn of_token(from: &Transaction<'_>, no: i64, of: &str) -> Result<Vec<Tracked>, StoreFault> {
    let mut statement = from.prepare_cached(OF_TOKEN)?;
    Ok(one(&mut statement, [no], |row| read(row, of))?.unwrap_or_default())
}

/// Unpacks the schedule in the first column of a row. `of` names the token in errors.
pub(super) fn read(row: &Row<'_>, of: &str) -> Result<Vec<Tracked>, StoreFault> {
    unpack(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?).ok_or_else(|| damaged("the schedule", of))
}

/// Reads an event that must exist.
pub(super) fn event(from: &Transaction<'_>, no: i64, key: &str, of: &str) -> Result<Tracked, StoreFault> {
    let rows = events(from, vec![(no, key.to_owned(), ())])?;
    rows.into_iter().next().map(|((), tracked)| tracked).ok_or_else(|| damaged("an event", of))
}

/// Reads the events of `rows`, in their order. Unpacks each schedule once, and waits once for a batch of schedules.
pub(super) fn events<T>(from: &Transaction<'_>, rows: Vec<(i64, String, T)>) -> Result<Vec<(T, Tracked)>, StoreFault> {
    let mut by_token: HashMap<i64, HashMap<&str, usize>> = HashMap::new();
    for (at, (no, key, _)) in rows.iter().enumerate() {
        by_token.entry(*no).or_default().insert(key, at);
    }
    let mut found: Vec<Option<Tracked>> = Vec::new();
    found.resize_with(rows.len(), || None);
    let by_token: Vec<(i64, HashMap<&str, usize>)> = by_token.into_iter().collect();
    for together in by_token.chunks(READ_TOGETHER) {
        let queries = together.iter().map(|(no, _)| from.prepare_cached(OF_TOKEN)?.send_query([*no]));
        let queries = queries.collect::<Result<Vec<_>, _>>()?;
        for ((no, keys), query) in together.iter().zip(queries) {
            let put = |place: usize, tracked: Tracked| {
                if let Some(place) = found.get_mut(place) {
                    *place = Some(tracked);
                }
            };
            let is_sound = one_of(query.rows()?, |row| {
                Ok(unpack_some(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?, keys, put))
            })?;
            if is_sound == Some(false) {
                return Err(damaged("the schedule", &format!("token {no}")));
            }
        }
    }
    let is_there = |((no, _, row), tracked): ((i64, String, T), Option<Tracked>)| {
        tracked.map(|tracked| (row, tracked)).ok_or_else(|| damaged("an event", &format!("token {no}")))
    };
    rows.into_iter().zip(found).map(is_there).collect()
}
