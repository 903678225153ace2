//! Batched lookups of the schedules that are about to change. Sequential lookups would cost a server round trip per
//! token and query.

use std::collections::HashMap;

use rusqlite::params;

use super::{CommitWriter, Drift, EventIndex, EventRow, ScheduleUpdate, Size};
use crate::codec::{Millis, all_of, one_of};
use crate::commit::SupplyRow;
use crate::error::StoreFault;
use crate::sql::PendingQuery;
use model::{FeedUpdate, Record, Resource};

/// The pending lookups of one token's schedule.
pub(crate) struct ScheduleQueries<'a> {
    body: PendingQuery<'a>,
    rows: PendingQuery<'a>,
    drift: PendingQuery<'a>,
    supply: PendingQuery<'a>,
}

/// Event rows by key.
type EventRows = HashMap<String, EventRow>;

impl<'a> CommitWriter<'a> {
    /// Sends the lookups of all schedules that `updates` change.
    pub(in crate::commit) fn query_schedules(&mut self, updates: &[FeedUpdate]) -> Result<(), StoreFault> {
        for update in updates {
            let is_removing = update.id.endpoint.resource() == Some(Resource::Unlock) && !update.removed.is_empty();
            let is_putting = update.put.iter().any(|put| matches!(put.record, Record::Unlock(_)));
            let known = update.id.token.as_ref().and_then(|id| self.tokens.get(id));
            if let (true, Some(token)) = (is_removing || is_putting, known.map(|token| token.no))
                && !self.queried.contains_key(&token)
            {
                let queries = self.query_schedule(token, Some(token))?;
                self.queried.insert(token, queries);
            }
        }
        Ok(())
    }

    fn query_schedule(&self, scope: i64, token: Option<i64>) -> Result<ScheduleQueries<'a>, StoreFault> {
        let rows = "SELECT key, no, token_no, starts_at, ends_at, version_at, value, share, nominal_at, amount FROM record
             WHERE token_no = ?1 AND resource = 'unlock' AND scope_no = ?2";
        Ok(ScheduleQueries {
            body: self.to.prepare_cached(crate::schedule::OF_TOKEN)?.send_query([scope])?,
            // The scope of a schedule is its token, whose index finds the rows.
            rows: self.to.prepare_cached(rows)?.send_query(params![token, scope])?,
            drift: self.to.prepare_cached("SELECT value, share FROM drift WHERE token_no = ?1")?.send_query([token])?,
            supply: self.query_supply(token)?,
        })
    }

    fn query_supply(&self, token: Option<i64>) -> Result<PendingQuery<'a>, StoreFault> {
        let sql = format!("SELECT {} FROM token_supply s WHERE s.token_no = ?1", SupplyRow::COLUMNS);
        Ok(self.to.prepare_cached(&sql)?.send_query([token])?)
    }

    /// Returns the supply row of a token. `None` if there is none.
    pub(in crate::commit) fn known_supply(&mut self, token: i64) -> Result<Option<SupplyRow>, StoreFault> {
        if let Some(known) = self.supplies.get(&token) {
            return Ok(known.clone());
        }
        let known = one_of(self.query_supply(Some(token))?.rows()?, |row| SupplyRow::read(row, 0, &token.to_string()))?;
        self.supplies.insert(token, known.clone());
        Ok(known)
    }

    /// Returns the packed schedule and the rows of its events.
    pub(super) fn known_schedule(&mut self, update: &ScheduleUpdate<'_>) -> Result<(Option<Vec<u8>>, EventRows), StoreFault> {
        let ScheduleQueries { body, rows, drift, supply } = match self.queried.remove(&update.scope) {
            Some(queried) => queried,
            None => self.query_schedule(update.scope, update.token)?,
        };
        let body = one_of(body.rows()?, |row| Ok(row.get(0)?))?;
        let rows = all_of(rows.rows()?, |row| {
            let version_at: Millis = row.get(5)?;
            Ok((
                row.get(0)?,
                EventRow {
                    no: row.get(1)?,
                    token: row.get(2)?,
                    index: EventIndex {
                        starts_at: row.get(3)?,
                        ends_at: row.get(4)?,
                        nominal_at: row.get(8)?,
                        amount: row.get(9)?,
                    },
                    version_at: version_at.0,
                    size: Size { value: row.get(6)?, share: row.get(7)? },
                },
            ))
        })?;
        let drift = one_of(drift.rows()?, |row| Ok(Drift { value: row.get(0)?, share: row.get(1)? }))?;
        self.drifts.insert(update.token, drift.unwrap_or(Drift::NONE));
        if let Some(token) = update.token
            && !self.supplies.contains_key(&token)
        {
            let supply = one_of(supply.rows()?, |row| SupplyRow::read(row, 0, &token.to_string()))?;
            self.supplies.insert(token, supply);
        }
        Ok((body, rows.into_iter().collect()))
    }
}
