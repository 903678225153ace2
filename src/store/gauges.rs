//! What the metrics show of what is watched: what fires, and what the coming weeks are worth.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, counted, from_json, one};
use super::cycle::LONGEST_INTERVAL;
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError, schedule};
use model::{DomainGauges, Interval, Precision, RuleId, Timestamp, TokenId, Tone, ValueAhead};

/// A time that is longer than a day is a week or a month.
const LONGEST_DAY: TimeDelta = TimeDelta::hours(25);

/// Schedules that are read at once where the day of their unlocks was not written down.
const UNDATED_AT_ONCE: usize = 64;

impl Store {
    /// What the metrics show of what is watched, unlocks up to `until`.
    pub async fn domain_gauges(&self, now: Timestamp, until: Timestamp) -> Result<DomainGauges, StoreError> {
        let read = move |from: &Transaction<'_>| {
            Ok(DomainGauges { firing: firing(from)?, next_critical: next_critical(from, now)?, ahead: ahead(from, now, until)? })
        };
        self.read("read the gauges of what is watched", read).await
    }
}

fn firing(from: &Transaction<'_>) -> Result<Vec<(RuleId, Tone, u64)>, StoreFault> {
    let sql = "SELECT rule, gravity, count(*) FROM alert INDEXED BY alert_gravity WHERE state = 'firing' GROUP BY rule, gravity";
    all(&mut *from.prepare_cached(sql)?, [], |row| {
        let tone = match row.get::<_, i64>(1)? {
            3 => Tone::Critical,
            2 => Tone::Warning,
            _ => Tone::Info,
        };
        Ok((RuleId::from(row.get::<_, String>(0)?), tone, counted(row.get(2)?)))
    })
}

/// An unlock that has begun, such as one of this month, is not the next any more.
fn next_critical(from: &Transaction<'_>, now: Timestamp) -> Result<Vec<(RuleId, Timestamp)>, StoreFault> {
    let sql = "SELECT id, rule, body ->> '$.due' FROM alert INDEXED BY alert_gravity
         WHERE state = 'firing' AND gravity = 3 AND resource = 'unlock' AND body ->> '$.due' IS NOT NULL ORDER BY rule";
    let due = all(&mut *from.prepare_cached(sql)?, [], |row| {
        let due: Interval = from_json("the time of the alert", &row.get::<_, String>(0)?, &row.get::<_, String>(2)?)?;
        Ok((RuleId::from(row.get::<_, String>(1)?), due.start))
    })?;
    let mut next: Vec<(RuleId, Timestamp)> = Vec::new();
    for (rule, at) in due.into_iter().filter(|(_, at)| *at >= now) {
        match next.last_mut().filter(|(of, _)| *of == rule) {
            Some((_, nearest)) => *nearest = at.min(*nearest),
            None => next.push((rule, at)),
        }
    }
    Ok(next)
}

/// By the index alone, but for unlocks of which only the month or week is known and whose day was not written down: those count on the day
/// that their record names.
fn ahead(from: &Transaction<'_>, now: Timestamp, until: Timestamp) -> Result<Vec<ValueAhead>, StoreFault> {
    let sql = "SELECT t.id, r.starts_at, r.ends_at, r.value * coalesce(d.value, 1.0), r.nominal_at, r.no
         FROM record r INDEXED BY record_window JOIN token t ON t.no = r.token_no LEFT JOIN drift d ON d.token_no = r.token_no
         WHERE r.resource = 'unlock' AND r.starts_at > CAST(?1 AS BIGINT) - ?3 AND r.starts_at <= ?2 AND r.ends_at >= ?1 AND r.value > 0";
    let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
    let mut undated = Vec::new();
    let mut ahead: Vec<ValueAhead> = Vec::new();
    let mut statement = from.prepare_cached(sql)?;
    let mut rows = statement.query(params![Millis(now), Millis(until), longest])?;
    while let Some(row) = rows.next()? {
        let (begins, ends) = (row.get::<_, Millis>(1)?.0, row.get::<_, Millis>(2)?.0);
        let nominal = row.get::<_, Option<Millis>>(4)?.map(|day| day.0);
        if nominal.is_none() && ends - begins > LONGEST_DAY {
            undated.push((row.get::<_, i64>(5)?, ahead.len()));
        }
        let (begins, ends) = nominal.map_or((begins, ends), |day| (day, day + TimeDelta::days(1)));
        ahead.push(ValueAhead { token: TokenId::from(row.get::<_, String>(0)?), begins, ends, value: row.get(3)? });
    }
    for some in undated.chunks(UNDATED_AT_ONCE) {
        name_days(from, some, &mut ahead)?;
    }
    Ok(ahead)
}

/// Has unlocks (their numbers, and where they stand) count on the days that their records name.
fn name_days(from: &Transaction<'_>, undated: &[(i64, usize)], ahead: &mut [ValueAhead]) -> Result<(), StoreFault> {
    let mut statement = from.prepare_cached("SELECT scope_no, key FROM record WHERE no = ?1")?;
    let mut rows = Vec::with_capacity(undated.len());
    for (no, place) in undated {
        rows.extend(one(&mut statement, [no], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, *place)))?);
    }
    for (place, tracked) in schedule::events(from, rows)? {
        let Some(of) = ahead.get_mut(place) else { continue };
        let named = tracked.record.unlock().and_then(|event| event.unlock_date.copied());
        let interval = Interval { start: of.begins, end: of.ends, precision: Precision::Month }.nominal(named);
        (of.begins, of.ends) = (interval.start, interval.end);
    }
    Ok(())
}
