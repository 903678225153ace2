//! Metrics of the watched tokens: firing alerts and coming supply.

use super::codec::{all, counted, from_json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::supply::supply_totals;
use super::{Store, StoreError};
use model::{DomainGauges, Interval, RuleId, Severity, SumWindow, Timestamp, Watch};

impl Store {
    /// Returns the metrics of the watched tokens, with the coming supply in `windows` from `now`.
    pub async fn domain_gauges(&self, now: Timestamp, windows: Vec<SumWindow>, watch: Watch) -> Result<DomainGauges, StoreError> {
        let read = move |from: &Transaction<'_>| {
            let (watched, groups) = supply_totals(from, now, &windows, &watch, Timestamp::MIN_UTC)?;
            Ok(DomainGauges { firing: firing(from)?, next_critical: next_critical(from, now)?, watched, groups })
        };
        self.read("read the gauges of watched tokens", read).await
    }
}

fn firing(from: &Transaction<'_>) -> Result<Vec<(RuleId, Severity, u64)>, StoreFault> {
    let indexed = from.engine().indexed_by("alert_state_severity");
    let sql = format!("SELECT rule, severity, count(*) FROM alert {indexed} WHERE state = 'firing' GROUP BY rule, severity");
    all(&mut *from.prepare_cached(&sql)?, [], |row| {
        let severity = match row.get::<i64>(1)? {
            3 => Severity::Critical,
            2 => Severity::Warning,
            _ => Severity::Info,
        };
        Ok((RuleId::from(row.get::<String>(0)?), severity, counted(row.get(2)?)))
    })
}

/// Returns the next critical unlock of each rule. Unlocks that have started are excluded.
fn next_critical(from: &Transaction<'_>, now: Timestamp) -> Result<Vec<(RuleId, Timestamp)>, StoreFault> {
    let sql = format!(
        "SELECT id, rule, body ->> '$.due' FROM alert {}
         WHERE state = 'firing' AND severity = 3 AND resource = 'unlock' AND body ->> '$.due' IS NOT NULL ORDER BY rule",
        from.engine().indexed_by("alert_state_severity")
    );
    let due = all(&mut *from.prepare_cached(&sql)?, [], |row| {
        let due: Interval = from_json("the time of the alert", &row.get::<String>(0)?, &row.get::<String>(2)?)?;
        Ok((RuleId::from(row.get::<String>(1)?), due.start))
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
