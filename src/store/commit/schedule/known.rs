//! What is known of schedules that are about to change, asked for all at once: of one after the other, a server would be waited for
//! once a token and question.

use std::collections::HashMap;

use rusqlite::params;

use super::{CommitWriter, Drift, EventPlace, EventRow, ScheduleUpdate, Size};
use crate::codec::{Millis, all_of, one_of};
use crate::error::StoreFault;
use crate::sql::Question;
use model::{FeedUpdate, Record, Resource};

/// What was asked about the schedule of one token.
pub(crate) struct ScheduleQuestions<'a> {
    body: Question<'a>,
    rows: Question<'a>,
    drift: Question<'a>,
}

/// The row of an event by its key.
type EventRows = HashMap<String, EventRow>;

impl<'a> CommitWriter<'a> {
    /// Asks for what is known of the schedules that these updates change, each of which is written before anything else asks for it.
    pub(in crate::commit) fn ask_schedules(&mut self, updates: &[FeedUpdate]) -> Result<(), StoreFault> {
        for update in updates {
            let is_removing = update.id.endpoint.resource() == Some(Resource::Unlock) && !update.removed.is_empty();
            let is_putting = update.put.iter().any(|put| matches!(put.record, Record::Unlock(_)));
            let known = update.id.token.as_ref().and_then(|id| self.tokens.get(id));
            if let (true, Some(token)) = (is_removing || is_putting, known.map(|token| token.no))
                && !self.asked.contains_key(&token)
            {
                let questions = self.ask_schedule(token, Some(token))?;
                self.asked.insert(token, questions);
            }
        }
        Ok(())
    }

    fn ask_schedule(&self, scope: i64, token: Option<i64>) -> Result<ScheduleQuestions<'a>, StoreFault> {
        let rows = "SELECT key, no, token_no, starts_at, ends_at, version_at, value, share, nominal_at FROM record
             WHERE token_no = ?1 AND resource = 'unlock' AND scope_no = ?2";
        Ok(ScheduleQuestions {
            body: self.to.prepare_cached(crate::schedule::OF_TOKEN)?.ask([scope])?,
            // A schedule is that of its token; their rows are found by it.
            rows: self.to.prepare_cached(rows)?.ask(params![token, scope])?,
            drift: self.to.prepare_cached("SELECT value, share FROM drift WHERE token_no = ?1")?.ask([token])?,
        })
    }

    /// The packed schedule as it is, and the rows of its events.
    pub(super) fn known_schedule(&mut self, update: &ScheduleUpdate<'_>) -> Result<(Option<Vec<u8>>, EventRows), StoreFault> {
        let ScheduleQuestions { body, rows, drift } = match self.asked.remove(&update.scope) {
            Some(asked) => asked,
            None => self.ask_schedule(update.scope, update.token)?,
        };
        let body = one_of(body.rows()?, |row| Ok(row.get(0)?))?;
        let rows = all_of(rows.rows()?, |row| {
            let version_at: Millis = row.get(5)?;
            Ok((
                row.get(0)?,
                EventRow {
                    no: row.get(1)?,
                    token: row.get(2)?,
                    place: EventPlace { starts_at: row.get(3)?, ends_at: row.get(4)?, nominal_at: row.get(8)? },
                    version_at: version_at.0,
                    size: Size { value: row.get(6)?, share: row.get(7)? },
                },
            ))
        })?;
        let drift = one_of(drift.rows()?, |row| Ok(Drift { value: row.get(0)?, share: row.get(1)? }))?;
        self.drifts.insert(update.token, drift.unwrap_or(Drift::NONE));
        Ok((body, rows.into_iter().collect()))
    }
}
