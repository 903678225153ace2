//! What the metrics show of what is watched: what fires, and what the coming weeks are worth.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, counted, from_json};
use super::cycle::LONGEST_INTERVAL;
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError, schedule};
use model::{DomainGauges, Interval, Precision, RuleId, Timestamp, TokenId, Tone, ValueAhead};

/// A time that is longer than a day is a week or a month.
const LONGEST_DAY: TimeDelta = TimeDelta::hours(25);

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

/// By the index alone, but for unlocks of which only the month or week is known: those count on the day that their record names.
fn ahead(from: &Transaction<'_>, now: Timestamp, until: Timestamp) -> Result<Vec<ValueAhead>, StoreFault> {
    let sql = "SELECT t.id, r.starts_at, r.ends_at, r.value * coalesce(d.value, 1.0), r.scope_no, r.key
         FROM record r INDEXED BY record_window JOIN token t ON t.no = r.token_no LEFT JOIN drift d ON d.token_no = r.token_no
         WHERE r.resource = 'unlock' AND r.starts_at > CAST(?1 AS BIGINT) - ?3 AND r.starts_at <= ?2 AND r.ends_at >= ?1 AND r.value > 0";
    let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
    let rows = all(&mut *from.prepare_cached(sql)?, params![Millis(now), Millis(until), longest], |row| {
        let (begins, ends) = (row.get::<_, Millis>(1)?.0, row.get::<_, Millis>(2)?.0);
        let ahead = ValueAhead { token: TokenId::from(row.get::<_, String>(0)?), begins, ends, value: row.get(3)? };
        Ok((row.get::<_, i64>(4)?, row.get::<_, String>(5)?, ahead))
    })?;
    let is_exact = |row: &(i64, String, ValueAhead)| row.2.ends - row.2.begins <= LONGEST_DAY;
    let (exact, vague): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_exact);
    let vague = schedule::events(from, vague)?.into_iter().map(|(ahead, tracked)| {
        let named = tracked.record.unlock().and_then(|event| event.unlock_date.copied());
        let interval = Interval { start: ahead.begins, end: ahead.ends, precision: Precision::Month }.nominal(named);
        ValueAhead { begins: interval.start, ends: interval.end, ..ahead }
    });
    Ok(exact.into_iter().map(|(.., ahead)| ahead).chain(vague).collect())
}
