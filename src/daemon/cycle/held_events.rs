//! Events of rules with a `limit` that a cycle stored, to rank all of them when it ends.
//!
//! Each batch commits its events with the changes that caused them, so a crash loses none. A cycle decides about its own events and
//! about the events of cycles that ended without a decision: cycles that failed, were cut off, or belonged to a process that was killed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Cycle, CycleError, stored};
use engine::evaluate::Transitions;
use model::{AlertId, Commit, HeldEvent, NotificationId, Timestamp, text::error_chain};

/// The keys of the cycles that run now.
#[derive(Debug, Default)]
pub struct RunningCycles(Mutex<RunningKeys>);

#[derive(Debug, Default)]
struct RunningKeys {
    begun: u64,
    keys: BTreeSet<String>,
}

/// A cycle that runs until this value is dropped.
pub(super) struct RunningCycle<'a> {
    key: String,
    cycles: &'a RunningCycles,
}

impl RunningCycles {
    fn lock(&self) -> MutexGuard<'_, RunningKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, now: Timestamp) -> RunningCycle<'_> {
        let mut running = self.lock();
        running.begun += 1;
        let key = format!("{}/{}", now.timestamp_millis(), running.begun);
        running.keys.insert(key.clone());
        RunningCycle { key, cycles: self }
    }
}

impl RunningCycle<'_> {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    fn others(&self) -> BTreeSet<String> {
        self.cycles.lock().keys.iter().filter(|key| **key != self.key).cloned().collect()
    }
}

impl Drop for RunningCycle<'_> {
    fn drop(&mut self) {
        self.cycles.lock().keys.remove(&self.key);
    }
}

/// Splits decided events into one commit for each.
fn one_by_one(commit: Commit) -> impl Iterator<Item = Commit> {
    let Commit { alerts, notifications, left_out, decided, .. } = commit;
    let notifications = notifications.into_iter().map(|one| (Some(one), None));
    let left_out = left_out.into_iter().map(|one| (None, Some(one)));
    alerts.into_iter().zip(decided).zip(notifications.chain(left_out)).map(|((alert, decided), (notification, left_out))| {
        Commit {
            alerts: vec![alert],
            notifications: notification.into_iter().collect(),
            left_out: left_out.into_iter().collect(),
            decided: vec![decided],
            ..Commit::default()
        }
    })
}

/// The number of kept events that are committed together, in the order of their rank.
const RELEASED_TOGETHER: usize = 1_000;

impl Cycle<'_> {
    /// Ranks all held events except those of other running cycles, and notifies or leaves out each. The batch lock is held, so no event is
    /// added meanwhile.
    pub(super) async fn decide_held_events(&mut self) -> Result<(), CycleError> {
        let others = self.running.others();
        let mut last = None;
        while let Some(events) = self.next_held_events(&others, &mut last).await? {
            self.limits.rank(&events);
        }
        if last.is_none() {
            return Ok(());
        }
        let mut last = None;
        while let Some(events) = self.next_held_events(&others, &mut last).await? {
            let commit = self.limits.leave_out(events);
            self.commit_decided(commit).await?;
        }
        let (mut last, mut kept) = (None, Vec::new());
        while let Some(events) = self.next_held_events(&others, &mut last).await? {
            kept.extend(events.into_iter().filter(|event| self.limits.keeps(event)));
            if kept.len() >= RELEASED_TOGETHER {
                let commit = self.limits.release(std::mem::take(&mut kept));
                self.commit_decided(commit).await?;
            }
        }
        let commit = self.limits.release(kept);
        self.commit_decided(commit).await?;
        self.limits.end_events();
        Ok(())
    }

    /// Writes decided events. If the database rejects some of them, writes the others.
    async fn commit_decided(&mut self, commit: Commit) -> Result<(), CycleError> {
        if commit.decided.is_empty() {
            return Ok(());
        }
        match self.commit(commit.clone(), Transitions::default()).await {
            Err(error) if error.is_about_data() => {
                for event in one_by_one(commit) {
                    self.commit_one(event).await?;
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Writes one decided event. An event that the database rejects stays held, and the cycle fails after all other work.
    async fn commit_one(&mut self, event: Commit) -> Result<(), CycleError> {
        let alert = event.alerts.first().map(|alert| alert.id.clone());
        match self.commit(event, Transitions::default()).await {
            Err(error) if error.is_about_data() => {
                let alert = alert.as_ref().map_or("", AlertId::as_str);
                tracing::error!(alert, error = error_chain(&error), "an event cannot be stored, so it is not notified yet");
                self.set_aside.reject_evaluation(error);
                Ok(())
            }
            result => result,
        }
    }

    /// Reads the held events after `last`, and moves it. `None` at the end.
    async fn next_held_events(
        &self,
        others: &BTreeSet<String>,
        last: &mut Option<NotificationId>,
    ) -> Result<Option<Vec<HeldEvent>>, CycleError> {
        let events = self.deps.store.held_events(others.clone(), last.clone());
        let events = stored("read the events that wait for the end of a cycle", events).await?;
        let Some(end) = events.last() else { return Ok(None) };
        *last = Some(end.notification.id.clone());
        Ok(Some(events))
    }
}
