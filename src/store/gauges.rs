//! What the metrics show of what is watched: what fires, and what the coming weeks are worth.

use std::collections::HashMap;

use chrono::DateTime;

use super::ahead::{Sizes, date, each_ahead};
use super::codec::{all, counted, from_json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{DomainGauges, Interval, RuleId, Timestamp, TokenId, Tone, ValueAhead};

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

/// What is worth something, each with the time from when to when sums count it.
fn ahead(from: &Transaction<'_>, now: Timestamp, until: Timestamp) -> Result<Vec<ValueAhead>, StoreFault> {
    let mut unlocks = Vec::new();
    each_ahead(from, now, until, Sizes::Value, |unlock| {
        if unlock.value.is_some_and(|value| value > 0.0) {
            unlocks.push(unlock);
        }
    })?;
    date(from, &mut unlocks)?;
    let slugs = all(&mut *from.prepare_cached("SELECT no, id FROM token")?, [], |row| {
        Ok((row.get::<_, i64>(0)?, TokenId::from(row.get::<_, String>(1)?)))
    })?;
    let slugs: HashMap<i64, TokenId> = slugs.into_iter().collect();
    let worth = unlocks.iter().filter_map(|unlock| {
        let token = slugs.get(&unlock.token_no?)?.clone();
        let (begins, ends) = unlock.counted();
        let [begins, ends] = [begins, ends].map(DateTime::from_timestamp_millis);
        Some(ValueAhead { token, begins: begins?, ends: ends?, value: unlock.value? })
    });
    Ok(worth.collect())
}
