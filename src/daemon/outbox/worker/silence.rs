//! A receiver that nothing reaches: when that is announced.

use super::Worker;
use crate::outbox::ports::{DeliveryStoreError, DownReceiver, ReceiverIncident};
use model::{Alert, Timestamp};

impl Worker {
    /// Announces that nothing has reached the receiver for long, or that it is gone, unless that was told.
    pub(super) async fn announce_silence(&mut self, now: Timestamp) -> Result<(), DeliveryStoreError> {
        let Some(ReceiverIncident { open: None, episodes: latest_episode }) = self.incident else { return Ok(()) };
        if !self.is_gone && !self.health.is_news(now) {
            return Ok(());
        }
        let store = self.shared.deps.store.clone();
        let pending = store.pending_receivers().await?;
        let down = DownReceiver {
            receiver: &self.receiver,
            since: self.health.failing_since().unwrap_or(now),
            answer: &self.answer,
            waiting: pending.into_iter().find(|(name, _)| *name == self.receiver).map_or(0, |(_, count)| count),
            latest_episode,
        };
        let announcement = self.shared.deps.announce.receiver_down(&down, now);
        self.is_gone = false;
        if let Some((alert, notice)) = announcement {
            let recipients = notice.receivers.clone();
            store.announce(now, alert.clone(), notice).await?;
            self.open_incident(alert);
            self.shared.wake_for_announcements(&recipients);
        }
        Ok(())
    }

    fn open_incident(&mut self, alert: Alert) {
        tracing::warn!(receiver = %self.receiver, answer = %self.answer, "the receiver does not take messages");
        if let Some(incident) = &mut self.incident {
            incident.episodes = alert.episode.max(incident.episodes);
            incident.open = Some(alert);
        }
    }
}
