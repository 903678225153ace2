//! Past polls of each endpoint, from the poll log. All polls of a cycle have the same time.

use rusqlite::params;

use super::codec::{Millis, all, counted, one};
use super::error::StoreFault;
use super::sql::{Engine, Transaction};
use super::{Store, StoreError};
use model::{Endpoint, PastPoll, PastPolls, PollProblem};

impl Store {
    /// Returns the last cycles of each endpoint that was ever polled, at most `limit` per endpoint.
    pub async fn past_polls(&self, limit: u32) -> Result<Vec<PastPolls>, StoreError> {
        self.read("read the log of polls", move |from| past_polls(from, limit)).await
    }
}

/// Selects the last cycles of an endpoint, one index lookup each, with the outcome of each cycle. Reads at most
/// `MOST_COUNTED` polls per cycle, because a cycle can poll thousands of tokens.
fn cycles_sql(engine: Engine) -> String {
    let indexed = engine.indexed_by("poll_failed");
    format!("WITH RECURSIVE cycle (at, n) AS (
        SELECT (SELECT max(at) FROM poll WHERE endpoint = ?1), 1
        UNION ALL
        SELECT (SELECT max(p.at) FROM poll p WHERE p.endpoint = ?1 AND p.at < c.at), c.n + 1 FROM cycle c WHERE c.at IS NOT NULL AND c.n < CAST(?2 AS BIGINT))
    SELECT c.at,
        (SELECT count(*) FROM (SELECT 1 FROM poll p WHERE p.endpoint = ?1 AND p.at = c.at LIMIT ?3) few),
        (SELECT count(*) FROM poll p {indexed}
         WHERE p.endpoint = ?1 AND p.at = c.at AND p.outcome NOT IN ('fresh', 'unchanged') AND p.outcome <> 'deferred'),
        (SELECT count(*) FROM poll p {indexed}
         WHERE p.endpoint = ?1 AND p.at = c.at AND p.outcome NOT IN ('fresh', 'unchanged') AND p.outcome = 'deferred'),
        EXISTS (SELECT 1 FROM (SELECT p.records, p.outcome FROM poll p WHERE p.endpoint = ?1 AND p.at = c.at LIMIT ?3) few
                WHERE few.records > 0 OR few.outcome <> 'fresh')
    FROM cycle c WHERE c.at IS NOT NULL ORDER BY c.at DESC")
}

/// Selects the first failure of a cycle.
fn problem_sql(engine: Engine) -> String {
    format!("SELECT coalesce(nullif(t.symbol, ''), t.id), coalesce(p.error, p.outcome)
    FROM poll p {} LEFT JOIN token t ON t.no = p.token_no
    WHERE p.endpoint = ?1 AND p.at = ?2 AND p.outcome NOT IN ('fresh', 'unchanged') AND p.outcome <> 'deferred' ORDER BY p.no LIMIT 1", engine.indexed_by("poll_failed"))
}

fn past_polls(from: &Transaction<'_>, limit: u32) -> Result<Vec<PastPolls>, StoreFault> {
    let mut found = Vec::new();
    for endpoint in Endpoint::ALL {
        let values = params![endpoint.as_str(), limit, i64::try_from(PastPoll::MOST_COUNTED).unwrap_or(i64::MAX)];
        let mut cycles = all(&mut *from.prepare_cached(&cycles_sql(from.engine()))?, values, |row| {
            let polls = counted(row.get(1)?);
            Ok(PastPoll {
                at: row.get::<Millis>(0)?.0,
                polls,
                failed: counted(row.get(2)?).min(polls),
                deferred: counted(row.get(3)?).min(polls),
                is_empty: !row.get::<bool>(4)?,
                failure: None,
            })
        })?;
        for cycle in cycles.iter_mut().filter(|cycle| cycle.failed > 0) {
            let mut problem = from.prepare_cached(&problem_sql(from.engine()))?;
            cycle.failure = one(&mut problem, params![endpoint.as_str(), Millis(cycle.at)], |row| {
                Ok(PollProblem { token: row.get(0)?, message: row.get(1)? })
            })?;
        }
        if !cycles.is_empty() {
            found.push(PastPolls { endpoint, cycles });
        }
    }
    Ok(found)
}
