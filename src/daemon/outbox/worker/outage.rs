//! Reports receiver outages.

use super::Worker;
use crate::outbox::ports::{DeliveryStoreError, ReceiverIncident};
use engine::self_monitor;
use model::{Alert, Timestamp};

impl Worker {
    /// Raises an alert if all attempts have failed for `REPORT_AFTER` or the receiver no longer exists, unless an alert is open.
    pub(super) async fn announce_outage(&mut self, now: Timestamp) -> Result<(), DeliveryStoreError> {
        let Some(ReceiverIncident { open: None, episodes: latest_episode }) = self.incident else { return Ok(()) };
        if !self.is_gone && !self.health.should_report(now) {
            return Ok(());
        }
        let store = self.shared.deps.store.clone();
        let pending = store.pending_receivers().await?;
        let waiting = pending.into_iter().find(|(name, _)| *name == self.receiver).map_or(0, |(_, count)| count);
        let since = self.health.failing_since().unwrap_or(now);
        let active = self.shared.deps.live.load().active.clone();
        let context = active.context(now);
        let (alert, notification) =
            self_monitor::receiver_dead(&self.receiver, &self.response, waiting, since, latest_episode, &context);
        self.is_gone = false;
        let recipients = notification.receivers.clone();
        store.announce(now, alert.clone(), notification).await?;
        self.open_incident(alert);
        self.shared.wake_for_announcements(&recipients);
        Ok(())
    }

    fn open_incident(&mut self, alert: Alert) {
        tracing::warn!(receiver = %self.receiver, response = %self.response, "receiver outage");
        if let Some(incident) = &mut self.incident {
            incident.episodes = alert.episode.max(incident.episodes);
            incident.open = Some(alert);
        }
    }
}
