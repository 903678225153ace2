//! Stores changes of a vesting schedule: one row for the packed schedule, one row for all replaced versions, and only
//! the index rows that changed. `known` looks up the stored schedules.

mod known;

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use rusqlite::params;
use rusqlite::types::Value;

pub(super) use self::known::ScheduleQueries;
use super::CommitWriter;
use crate::ahead::UNKNOWN_AMOUNT;
use crate::codec::{Millis, json};
use crate::error::StoreFault;
use crate::schedule::{self, Entry, Replaced};
use crate::sql::{SqlResult, row_of};
use model::{CliffPiece, FeedUpdate, Interval, Put, Record, RecordKey, Resource, Timestamp, Tracked, wire::UnlockEvent};

/// The age up to which a past unlock keeps its size. Longer than a month, the longest imprecise date.
const SIZED_FOR: TimeDelta = TimeDelta::days(32);

/// The relative error up to which sizes count as moved by the same factor. Sums are exact to the cent.
const DRIFT_TOLERANCE: f64 = 1e-9;

const UNLOCK_COLUMNS: [&str; 13] = [
    "scope_no",
    "token_no",
    "resource",
    "key",
    "starts_at",
    "ends_at",
    "nominal_at",
    "first_seen",
    "version_at",
    "version_poll",
    "value",
    "share",
    "amount",
];

/// The changes of one token's schedule.
pub(super) struct ScheduleUpdate<'u> {
    pub(super) scope: i64,
    pub(super) token: Option<i64>,
    pub(super) put: Vec<PutEvent<'u>>,
    pub(super) removed: &'u [RecordKey],
    pub(super) poll: Option<i64>,
}

/// An event to store, with its interval, which is expensive to compute.
#[derive(Clone, Copy)]
pub(super) struct PutEvent<'u> {
    put: &'u Put,
    event: &'u UnlockEvent,
    interval: Option<Interval>,
}

impl<'u> PutEvent<'u> {
    fn of(put: &'u Put, event: &'u UnlockEvent) -> Self {
        Self { put, event, interval: event.interval() }
    }

    fn key(&self) -> &'u str {
        self.put.key.as_str()
    }

    fn entry(&self) -> Entry<'u> {
        let starts_at = self.interval.map(|interval| interval.start.timestamp_millis());
        Entry { key: self.key(), event: self.event, starts_at }
    }
}

struct EventRow {
    no: i64,
    token: Option<i64>,
    index: EventIndex,
    version_at: Timestamp,
    size: Size,
}

/// The columns of an event in the index, without its value and share. Times are in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EventIndex {
    pub(crate) starts_at: Option<i64>,
    pub(crate) ends_at: Option<i64>,
    /// The source's date, by which windows count the event. `None` if it is `starts_at`.
    pub(crate) nominal_at: Option<i64>,
    /// Tokens of the cliff unlock, or [`UNKNOWN_AMOUNT`]. `None` without one, and for past events.
    pub(crate) amount: Option<f64>,
}

impl EventIndex {
    pub(crate) fn of(event: &UnlockEvent, interval: Option<Interval>, now: Timestamp) -> Self {
        let Some(interval) = interval else { return Self::default() };
        let starts_at = interval.start.timestamp_millis();
        let nominal_at = event.unlock_date.copied().map(|date| date.timestamp_millis());
        Self {
            starts_at: Some(starts_at),
            ends_at: Some(interval.end.timestamp_millis()),
            nominal_at: nominal_at.filter(|nominal| *nominal != starts_at),
            amount: CliffPiece::of(event)
                .filter(|_| is_sized(Some(interval), now))
                .map(|piece| piece.amount.unwrap_or(UNKNOWN_AMOUNT)),
        }
    }
}

/// Returns whether the index has the sizes of an event.
fn is_sized(interval: Option<Interval>, now: Timestamp) -> bool {
    interval.is_some_and(|interval| interval.end > now - SIZED_FOR)
}

/// The value (USD) and the share of market cap (percent) of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) value: Option<f64>,
    pub(crate) share: Option<f64>,
}

impl Size {
    fn within(event: &UnlockEvent, interval: Option<Interval>, now: Timestamp) -> Self {
        let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
        match is_sized(interval, now) {
            true => {
                Self { value: CliffPiece::of(event).and_then(|piece| piece.value), share: finite(event.value_to_market_cap()) }
            }
            false => Self::default(),
        }
    }

    fn times(self, drift: Drift) -> Self {
        Self { value: self.value.map(|value| value * drift.value), share: self.share.map(|share| share * drift.share) }
    }

    fn over(self, drift: Drift) -> Self {
        Self { value: self.value.map(|value| value / drift.value), share: self.share.map(|share| share / drift.share) }
    }
}

/// The factors by which all sizes of a token changed since their rows were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    value: f64,
    share: f64,
}

impl Drift {
    const NONE: Self = Self { value: 1.0, share: 1.0 };
}

/// Returns the common factor of pairs of an old and a new size, measured on the pair with the largest old size. Deviations up to
/// `DRIFT_TOLERANCE` of the new size, or `min_tolerance`, are accepted. Returns 1 if no pair can be measured, and `None` if a pair deviates
/// or only one of its sizes is known.
fn common_factor(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)> + Clone, min_tolerance: f64) -> Option<f64> {
    let largest = pairs.clone().filter_map(|(was, is)| Some((was?, is?))).max_by(|a, b| a.0.total_cmp(&b.0));
    let factor = largest.filter(|(was, is)| *was > 0.0 && *is > 0.0).map_or(1.0, |(was, is)| is / was);
    let fits = |(was, is): (Option<f64>, Option<f64>)| match (was, is) {
        (Some(was), Some(is)) => (was * factor - is).abs() <= (is * DRIFT_TOLERANCE).max(min_tolerance),
        (None, None) => true,
        _ => false,
    };
    let fits = factor.is_finite() && pairs.into_iter().all(fits);
    fits.then_some(factor)
}

impl CommitWriter<'_> {
    /// Writes the changed events of a schedule, then the supply that follows from it and from `feed`.
    pub(super) fn schedule(&mut self, update: &ScheduleUpdate<'_>, feed: &FeedUpdate) -> Result<(), StoreFault> {
        if update.put.is_empty() && update.removed.is_empty() {
            return update.token.map_or(Ok(()), |token| self.supply(feed, token, None));
        }
        let scope = update.scope;
        let (body, mut rows) = self.known_schedule(update)?;
        let before = match &body {
            Some(body) => stored_events(body, update).ok_or_else(|| schedule::damaged("the schedule", &scope.to_string()))?,
            None => Vec::new(),
        };
        let mut before: HashMap<&str, &Tracked> = before.iter().map(|tracked| (tracked.key.as_str(), tracked)).collect();

        // First, so that a key that is removed and reused in one response ends with its new record.
        for key in update.removed {
            if let (Some(row), Some(tracked)) = (rows.remove(key.as_str()), before.remove(key.as_str())) {
                self.remove_event(update, &row, tracked)?;
            }
        }
        let put: HashMap<&str, &PutEvent<'_>> = update.put.iter().map(|put| (put.key(), put)).collect();
        self.store_replaced(update, &rows, &before)?;
        self.update_sizes(update.token, &rows, &put)?;
        let mut added = Vec::new();
        for put in &update.put {
            match rows.get(put.key()) {
                Some(row) => self.update_row(update, put, row, before.get(put.key()).copied())?,
                None => added.push(self.new_row(update, put)?),
            }
        }
        *self.tally.entry(Resource::Unlock).or_default() += added.len() as i64;
        self.to.insert_many("record", &UNLOCK_COLUMNS, added)?;

        let kept = before.values().filter(|tracked| !put.contains_key(tracked.key.as_str()));
        let kept = kept.filter_map(|tracked| Some(Entry::of(tracked.key.as_str(), tracked.record.unlock()?)));
        let mut entries: Vec<Entry<'_>> = kept.chain(update.put.iter().map(PutEvent::entry)).collect();
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        self.write_schedule(scope, &entries, body.as_deref())?;
        update.token.map_or(Ok(()), |token| self.supply(feed, token, Some(&entries)))
    }

    fn write_schedule(&self, scope: i64, entries: &[Entry<'_>], before: Option<&[u8]>) -> Result<(), StoreFault> {
        if entries.is_empty() {
            self.to.prepare_cached("DELETE FROM schedule WHERE scope_no = ?1")?.execute([scope])?;
            return Ok(());
        }
        let packed = schedule::pack(entries);
        if before != Some(packed.as_slice()) {
            self.to
                .prepare_cached(
                    "INSERT INTO schedule (scope_no, body) VALUES (?1, ?2) ON CONFLICT (scope_no) DO UPDATE SET body = excluded.body",
                )?
                .execute(params![scope, packed])?;
        }
        Ok(())
    }

    /// Moves a removed event into the history: its last version, and a version without a body.
    fn remove_event(&mut self, update: &ScheduleUpdate<'_>, row: &EventRow, last: &Tracked) -> Result<(), StoreFault> {
        let (scope, resource, key) = (update.scope, Resource::Unlock.as_str(), last.key.as_str());
        let body = json("a record", &last.record)?;
        let version = |at: Timestamp, body: Option<String>| {
            row_of(params![scope, row.token, resource, key, Millis(at), Millis(self.at), update.poll, body])
        };
        let versions = vec![version(row.version_at, Some(body))?, version(self.at, None)?];
        let columns = ["scope_no", "token_no", "resource", "key", "at", "replaced_at", "poll", "body"];
        self.to.insert_many("record_version", &columns, versions)?;
        self.to.prepare_cached("DELETE FROM record WHERE no = ?1")?.execute([row.no])?;
        *self.tally.entry(Resource::Unlock).or_default() -= 1;
        Ok(())
    }

    /// Stores all replaced versions in one row.
    fn store_replaced(
        &self,
        update: &ScheduleUpdate<'_>,
        rows: &HashMap<String, EventRow>,
        before: &HashMap<&str, &Tracked>,
    ) -> Result<(), StoreFault> {
        let replaced: Vec<Replaced<'_>> = update
            .put
            .iter()
            .filter_map(|PutEvent { put, event, .. }| {
                let (row, last) = (rows.get(put.key.as_str())?, before.get(put.key.as_str())?.record.unlock()?);
                (put.is_new_version && last != *event).then_some(Replaced {
                    key: put.key.as_str(),
                    at: row.version_at,
                    event: last,
                })
            })
            .collect();
        if replaced.is_empty() {
            return Ok(());
        }
        let (count, body) = (replaced.len() as i64, schedule::pack_replaced(&replaced));
        self.to
            .prepare_cached("INSERT INTO schedule_version (scope_no, replaced_at, versions, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![update.scope, Millis(self.at), count, body])?;
        Ok(())
    }

    /// Returns the row of a new event.
    fn new_row(&self, update: &ScheduleUpdate<'_>, PutEvent { put, event, interval }: &PutEvent<'_>) -> SqlResult<Vec<Value>> {
        let index = EventIndex::of(event, *interval, self.at);
        let size = Size::within(event, *interval, self.at).over(self.drift(update.token));
        row_of(params![
            update.scope,
            update.token,
            Resource::Unlock.as_str(),
            put.key.as_str(),
            index.starts_at,
            index.ends_at,
            index.nominal_at,
            Millis(self.at),
            Millis(self.at),
            update.poll,
            size.value,
            size.share,
            index.amount,
        ])
    }

    /// Updates the version, token, and times of a known row.
    fn update_row(
        &mut self,
        update: &ScheduleUpdate<'_>,
        PutEvent { put, event, interval }: &PutEvent<'_>,
        row: &EventRow,
        last: Option<&Tracked>,
    ) -> Result<(), StoreFault> {
        let index = EventIndex::of(event, *interval, self.at);
        if put.is_new_version && last.is_none_or(|last| last.record.unlock() != Some(*event)) {
            self.to.prepare_cached("UPDATE record SET version_at = ?2, version_poll = ?3 WHERE no = ?1")?.execute(params![
                row.no,
                Millis(self.at),
                update.poll
            ])?;
        }
        if (row.token, row.index) != (update.token, index) {
            self.to
                .prepare_cached(
                    "UPDATE record SET token_no = ?2, starts_at = ?3, ends_at = ?4, nominal_at = ?5, amount = ?6 WHERE no = ?1",
                )?
                .execute(params![row.no, update.token, index.starts_at, index.ends_at, index.nominal_at, index.amount])?;
        }
        Ok(())
    }

    /// Updates the sizes of known rows. If all changed by one factor, as price changes do, only the token's drift is
    /// written.
    fn update_sizes(
        &mut self,
        token: Option<i64>,
        rows: &HashMap<String, EventRow>,
        put: &HashMap<&str, &PutEvent<'_>>,
    ) -> Result<(), StoreFault> {
        let known = self.drift(token);
        let size_of = |(key, row): (&String, &EventRow)| match put.get(key.as_str()) {
            Some(put) => Size::within(put.event, put.interval, self.at),
            None => row.size.times(known),
        };
        // Past events are ignored, because no query reads their sizes. An event is past if it was and still is.
        let begin = (self.at - SIZED_FOR).timestamp_millis();
        let is_read = |(key, row): (&String, &EventRow)| {
            row.index.ends_at.is_none_or(|end| end > begin)
                || put.get(key.as_str()).is_some_and(|put| is_sized(put.interval, self.at))
        };
        let sizes: Vec<(&EventRow, Size, bool)> =
            rows.iter().map(|(key, row)| (row, size_of((key, row)), is_read((key, row)))).collect();
        let pairs = sizes.iter().filter(|(_, _, is_read)| *is_read).map(|(row, is, _)| (row.size, *is));
        let value = common_factor(pairs.clone().map(|(was, is)| (was.value, is.value)), 0.01);
        let share = common_factor(pairs.clone().map(|(was, is)| (was.share, is.share)), 1e-6);
        let drift = match (value, share, token) {
            (Some(value), Some(share), Some(_)) => Drift { value, share },
            _ => Drift::NONE,
        };
        let moved_together = value.is_some() && share.is_some() && token.is_some();
        if !moved_together {
            for (row, is, _) in sizes {
                if row.size != is {
                    self.to
                        .prepare_cached("UPDATE record SET value = ?2, share = ?3 WHERE no = ?1")?
                        .execute(params![row.no, is.value, is.share])?;
                }
            }
        }
        if let (Some(token), true) = (token, drift != known) {
            self.to
                .prepare_cached(
                    "INSERT INTO drift (token_no, value, share) VALUES (?1, ?2, ?3)
                     ON CONFLICT (token_no) DO UPDATE SET value = excluded.value, share = excluded.share",
                )?
                .execute(params![token, drift.value, drift.share])?;
            self.drifts.insert(Some(token), drift);
        }
        Ok(())
    }

    /// Returns the drift of a token whose schedule is being written.
    fn drift(&self, token: Option<i64>) -> Drift {
        self.drifts.get(&token).copied().unwrap_or(Drift::NONE)
    }
}

/// Unpacks the stored events. Returns an empty list if only prices change: all events are replaced, none by a new
/// version. Returns `None` if the stored schedule is damaged.
fn stored_events(body: &[u8], update: &ScheduleUpdate<'_>) -> Option<Vec<Tracked>> {
    let has_facts = !update.removed.is_empty() || update.put.iter().any(|put| put.put.is_new_version);
    let put: HashSet<&str> = if has_facts { HashSet::new() } else { update.put.iter().map(PutEvent::key).collect() };
    let is_repriced = !has_facts && schedule::keys(body)?.iter().all(|key| put.contains(key));
    if is_repriced { Some(Vec::new()) } else { schedule::unpack(body) }
}

/// Splits the records into unlock events, the last one of each key, and other records.
pub(super) fn split_unlocks(put: &[Put]) -> (Vec<PutEvent<'_>>, Vec<&Put>) {
    let (mut unlocks, mut others): (Vec<PutEvent<'_>>, _) = (Vec::with_capacity(put.len()), Vec::new());
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(put.len());
    for put in put {
        match &put.record {
            Record::Unlock(event) => match places.get(put.key.as_str()).and_then(|at| unlocks.get_mut(*at)) {
                Some(earlier) => *earlier = PutEvent::of(put, event),
                None => {
                    places.insert(put.key.as_str(), unlocks.len());
                    unlocks.push(PutEvent::of(put, event));
                }
            },
            _ => others.push(put),
        }
    }
    (unlocks, others)
}
