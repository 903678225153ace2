//! Events of rules with a `limit`: stored by a batch of a cycle, and decided at the end of the cycle.

use std::collections::BTreeSet;

use rusqlite::params;

use super::CommitWriter;
use crate::codec::{all, from_json, json};
use crate::error::StoreFault;
use crate::{Store, StoreError};
use model::{HeldEvent, NotificationId};

/// The number of events that one query reads.
const PAGE: i64 = 64;

impl Store {
    /// Returns the next held events after `after`, by the id of their notification, except those of the cycles in `excluded`. Empty at
    /// the end.
    pub async fn held_events(
        &self,
        excluded: BTreeSet<String>,
        after: Option<NotificationId>,
    ) -> Result<Vec<HeldEvent>, StoreError> {
        self.read("read the events that wait for the end of a cycle", move |from| {
            let mut last = after.map(|id| id.to_string()).unwrap_or_default();
            loop {
                let mut statement = from.prepare_cached(
                    "SELECT notification, cycle, body FROM held_event WHERE notification > ?1 ORDER BY notification LIMIT ?2",
                )?;
                let rows: Vec<(String, String, String)> =
                    all(&mut statement, params![last, PAGE], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                let Some((id, ..)) = rows.last() else { return Ok(Vec::new()) };
                last.clone_from(id);
                let others = rows.iter().filter(|(_, cycle, _)| !excluded.contains(cycle));
                let events: Vec<HeldEvent> =
                    others.map(|(id, _, body)| from_json("a held event", id, body)).collect::<Result<_, _>>()?;
                if !events.is_empty() {
                    return Ok(events);
                }
            }
        })
        .await
    }
}

impl CommitWriter<'_> {
    /// Stores an event until its cycle ends, unless its notification is known.
    pub(super) fn hold_event(&self, event: &HeldEvent, cycle: &str) -> Result<(), StoreFault> {
        self.to
            .prepare_cached(
                "INSERT INTO held_event (notification, cycle, body) SELECT ?1, ?2, ?3
                 WHERE NOT EXISTS (SELECT 1 FROM notification WHERE id = ?1) ON CONFLICT DO NOTHING",
            )?
            .execute(params![event.notification.id.as_str(), cycle, json("a held event", event)?])?;
        Ok(())
    }

    /// Deletes an event that was decided.
    pub(super) fn forget_held_event(&self, notification: &NotificationId) -> Result<(), StoreFault> {
        self.to.prepare_cached("DELETE FROM held_event WHERE notification = ?1")?.execute([notification.as_str()])?;
        Ok(())
    }
}
