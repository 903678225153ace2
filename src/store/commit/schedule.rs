//! What an answer changes in a schedule: one row for all of it, one for the versions that others took the place of, and of the rows by
//! which all tokens are asked at once no more than what moved. What was known is asked for by `known`.

mod known;

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use rusqlite::params;

pub(super) use self::known::ScheduleQuestions;
use super::CommitWriter;
use crate::codec::{Millis, json};
use crate::error::StoreFault;
use crate::schedule::{self, Entry, Replaced};
use model::{Interval, Put, Record, RecordKey, Resource, Timestamp, Tracked, wire::UnlockEvent};

/// Unlocks that passed longer ago than this are asked for by their size no more, not even those of a month.
const SIZED_FOR: TimeDelta = TimeDelta::days(32);

/// Sizes that drifted together: the part by which one may differ from what the others say. Less than pages show.
const DRIFT_TOLERANCE: f64 = 1e-4;

/// What changes in the schedule of one token.
pub(super) struct ScheduleUpdate<'u> {
    pub(super) scope: i64,
    pub(super) token: Option<i64>,
    pub(super) put: Vec<PutEvent<'u>>,
    pub(super) removed: &'u [RecordKey],
    pub(super) poll: Option<i64>,
}

/// An event that is put, with the time that it stands for: worked out once for all that ask.
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

/// The row of an event.
struct EventRow {
    no: i64,
    token: Option<i64>,
    place: EventPlace,
    version_at: Timestamp,
    size: Size,
}

/// Where an event stands in time, milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EventPlace {
    starts_at: Option<i64>,
    ends_at: Option<i64>,
    /// Of a month or a week the begin of the day by which sums count it.
    nominal_at: Option<i64>,
}

impl EventPlace {
    fn of(event: &UnlockEvent, interval: Option<Interval>) -> Self {
        let Some(interval) = interval else { return Self::default() };
        let counted = interval.nominal(event.unlock_date.copied());
        Self {
            starts_at: Some(interval.start.timestamp_millis()),
            ends_at: Some(interval.end.timestamp_millis()),
            nominal_at: (counted != interval).then(|| counted.start.timestamp_millis()),
        }
    }
}

/// What an event is worth (USD), and what of the market cap (percent).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) value: Option<f64>,
    pub(crate) share: Option<f64>,
}

impl Size {
    /// Of an event that is asked for by its size.
    pub(crate) fn of(event: &UnlockEvent, now: Timestamp) -> Self {
        Self::within(event, event.interval(), now)
    }

    /// Of an event whose interval is known.
    fn within(event: &UnlockEvent, interval: Option<Interval>, now: Timestamp) -> Self {
        let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
        let is_asked_for = interval.is_some_and(|interval| interval.end > now - SIZED_FOR);
        match is_asked_for {
            true => Self { value: finite(event.cliff_value()), share: finite(event.value_to_market_cap()) },
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

/// By how much all sizes of a token moved since their rows were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    value: f64,
    share: f64,
}

impl Drift {
    const NONE: Self = Self { value: 1.0, share: 1.0 };
}

/// The one factor by which sizes moved; none where they did not move together.
fn factor(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)> + Clone, least: f64) -> Option<f64> {
    let largest = pairs.clone().filter_map(|(was, is)| Some((was?, is?))).max_by(|a, b| a.0.total_cmp(&b.0));
    let factor = largest.filter(|(was, is)| *was > 0.0 && *is > 0.0).map_or(1.0, |(was, is)| is / was);
    let fits = |(was, is): (Option<f64>, Option<f64>)| match (was, is) {
        (Some(was), Some(is)) => (was * factor - is).abs() <= (is * DRIFT_TOLERANCE).max(least),
        (None, None) => true,
        _ => false,
    };
    let fits = factor.is_finite() && pairs.into_iter().all(fits);
    fits.then_some(factor)
}

impl CommitWriter<'_> {
    /// Writes what an answer changes in a schedule.
    pub(super) fn schedule(&mut self, update: &ScheduleUpdate<'_>) -> Result<(), StoreFault> {
        if update.put.is_empty() && update.removed.is_empty() {
            return Ok(());
        }
        let scope = update.scope;
        let (body, mut rows) = self.known_schedule(update)?;
        let before = match &body {
            Some(body) => what_is_read_of(body, update).ok_or_else(|| schedule::damaged("the schedule", &scope.to_string()))?,
            None => Vec::new(),
        };
        let mut before: HashMap<&str, &Tracked> = before.iter().map(|tracked| (tracked.key.as_str(), tracked)).collect();

        // First, so that a key that is given up and taken anew in one answer ends up with its record.
        for key in update.removed {
            if let (Some(row), Some(tracked)) = (rows.remove(key.as_str()), before.remove(key.as_str())) {
                self.remove_event(update, &row, tracked)?;
            }
        }
        let put: HashMap<&str, &PutEvent<'_>> = update.put.iter().map(|put| (put.key(), put)).collect();
        self.keep_replaced(update, &rows, &before)?;
        self.size_rows(update.token, &rows, &put)?;
        for put in &update.put {
            self.place_row(update, put, rows.get(put.key()), before.get(put.key()).copied())?;
        }

        let kept = before.values().filter(|tracked| !put.contains_key(tracked.key.as_str()));
        let kept = kept.filter_map(|tracked| Some(Entry::of(tracked.key.as_str(), tracked.record.unlock()?)));
        let mut entries: Vec<Entry<'_>> = kept.chain(update.put.iter().map(PutEvent::entry)).collect();
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        self.write_schedule(scope, &entries, body.as_deref())
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

    /// Moves an event that is gone for good into the history: as it last was, and that it went.
    fn remove_event(&mut self, update: &ScheduleUpdate<'_>, row: &EventRow, last: &Tracked) -> Result<(), StoreFault> {
        let (scope, resource, key) = (update.scope, Resource::Unlock.as_str(), last.key.as_str());
        let body = json("a record", &last.record)?;
        let versions = [(row.version_at, Some(body)), (self.at, None)];
        for (at, body) in versions {
            self.to
                .prepare_cached(
                    "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, poll, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute(params![scope, row.token, resource, key, Millis(at), Millis(self.at), update.poll, body])?;
        }
        self.to.prepare_cached("DELETE FROM record WHERE no = ?1")?.execute([row.no])?;
        *self.tally.entry(Resource::Unlock).or_default() -= 1;
        Ok(())
    }

    /// Keeps what takes another shape, all of it in one row.
    fn keep_replaced(
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

    /// Writes what is new about the row of an event: that it is there, where it stands, since when it is what it is.
    fn place_row(
        &mut self,
        update: &ScheduleUpdate<'_>,
        PutEvent { put, event, interval }: &PutEvent<'_>,
        row: Option<&EventRow>,
        last: Option<&Tracked>,
    ) -> Result<(), StoreFault> {
        let place = EventPlace::of(event, *interval);
        let Some(row) = row else {
            let size = Size::within(event, *interval, self.at).over(self.drift(update.token));
            self.to
                .prepare_cached(
                    "INSERT INTO record (scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll,
                     value, share, nominal_at) VALUES (?1, ?2, 'unlock', ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10)",
                )?
                .execute(params![
                    update.scope,
                    update.token,
                    put.key.as_str(),
                    place.starts_at,
                    place.ends_at,
                    Millis(self.at),
                    update.poll,
                    size.value,
                    size.share,
                    place.nominal_at
                ])?;
            *self.tally.entry(Resource::Unlock).or_default() += 1;
            return Ok(());
        };
        if put.is_new_version && last.is_none_or(|last| last.record.unlock() != Some(*event)) {
            self.to.prepare_cached("UPDATE record SET version_at = ?2, version_poll = ?3 WHERE no = ?1")?.execute(params![
                row.no,
                Millis(self.at),
                update.poll
            ])?;
        }
        if (row.token, row.place) != (update.token, place) {
            self.to
                .prepare_cached("UPDATE record SET token_no = ?2, starts_at = ?3, ends_at = ?4, nominal_at = ?5 WHERE no = ?1")?
                .execute(params![row.no, update.token, place.starts_at, place.ends_at, place.nominal_at])?;
        }
        Ok(())
    }

    /// Keeps the sizes of rows that are there. Where all moved together, as prices move them, only the drift of the token is written.
    fn size_rows(
        &mut self,
        token: Option<i64>,
        rows: &HashMap<String, EventRow>,
        put: &HashMap<&str, &PutEvent<'_>>,
    ) -> Result<(), StoreFault> {
        let known = self.drift(token);
        let is = |(key, row): (&String, &EventRow)| match put.get(key.as_str()) {
            Some(put) => Size::within(put.event, put.interval, self.at),
            None => row.size.times(known),
        };
        let sizes: Vec<(&EventRow, Size)> = rows.iter().map(|(key, row)| (row, is((key, row)))).collect();
        // What passed meanwhile says nothing: nobody asks.
        let begin = (self.at - SIZED_FOR).timestamp_millis();
        let ahead = sizes.iter().filter(|(row, _)| row.place.ends_at.is_none_or(|end| end > begin));
        let pairs = ahead.map(|(row, is)| (row.size, *is)).filter(|(_, is)| *is != Size::default());
        let value = factor(pairs.clone().map(|(was, is)| (was.value, is.value)), 0.01);
        let share = factor(pairs.clone().map(|(was, is)| (was.share, is.share)), 1e-6);
        let drift = match (value, share, token) {
            (Some(value), Some(share), Some(_)) => Drift { value, share },
            _ => Drift::NONE,
        };
        let moved_together = value.is_some() && share.is_some() && token.is_some();
        if !moved_together {
            for (row, is) in sizes {
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

    /// The drift of a token whose schedule is being written.
    fn drift(&self, token: Option<i64>) -> Drift {
        self.drifts.get(&token).copied().unwrap_or(Drift::NONE)
    }
}

/// What was there before, as far as it is needed: where every event is put and none of them is another version, as prices do it,
/// nothing is. None where it is damaged.
fn what_is_read_of(body: &[u8], update: &ScheduleUpdate<'_>) -> Option<Vec<Tracked>> {
    let has_facts = !update.removed.is_empty() || update.put.iter().any(|put| put.put.is_new_version);
    let put: HashSet<&str> = if has_facts { HashSet::new() } else { update.put.iter().map(PutEvent::key).collect() };
    let is_repriced = !has_facts && schedule::keys(body)?.iter().all(|key| put.contains(key));
    if is_repriced { Some(Vec::new()) } else { schedule::unpack(body) }
}

/// The unlock events among what is put, each key once, and the rest.
pub(super) fn parted(put: &[Put]) -> (Vec<PutEvent<'_>>, Vec<&Put>) {
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
