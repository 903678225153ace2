//! What became of notifications: read from the database for `explain` and `outbox why`, which tell it in the same words.

use std::collections::BTreeSet;

use engine::explain::StatusEvidence;
use engine::group::Prospect;
use engine::pipeline::{self, HourLimits};
use engine::route::RouteTree;
use model::{
    Ack, Alert, AlertFilter, AlertId, NotificationFilter, NotificationState, NotificationStatus, OutboxRow, Silence, Timestamp,
};
use store::{Store, StoreError};

/// Messages of one alert that are looked at.
const MAX_STATUSES: u32 = 500;

/// Reads what became of messages, with what that is explained by, whatever alert they are of.
#[derive(Debug)]
pub struct StatusReader {
    silences: Vec<Silence>,
    acks: Vec<Ack>,
    routes: RouteTree,
    max_per_hour: HourLimits,
    now: Timestamp,
}

/// What is read beside for some statuses.
#[derive(Debug)]
pub struct StatusRecords {
    inhibitors: Vec<Alert>,
    deliveries: Vec<OutboxRow>,
    prospects: Vec<Prospect>,
}

impl StatusReader {
    /// Reads what is the same for all messages.
    pub async fn read(store: &Store, routes: RouteTree, max_per_hour: HourLimits, now: Timestamp) -> Result<Self, StoreError> {
        Ok(Self { silences: store.silences(None).await?, acks: store.acks().await?, routes, max_per_hour, now })
    }

    /// What those of these messages that wait are waiting for: nothing of it is read where none does.
    async fn prospects(&self, store: &Store, statuses: &[NotificationStatus]) -> Result<Vec<Prospect>, StoreError> {
        if statuses.iter().all(|status| status.state != NotificationState::Waiting) {
            return Ok(Vec::new());
        }
        let (routes, limits, now) = (self.routes.clone(), self.max_per_hour.clone(), self.now);
        Ok(store.pending(move |state| pipeline::prospects(state, &routes, &limits, now), now).await?.unwrap_or_default())
    }

    /// What became of each message about an alert.
    pub async fn of_alert(&self, store: &Store, alert: &AlertId) -> Result<Vec<NotificationStatus>, StoreError> {
        let filter = NotificationFilter { alert: Some(alert.clone()), limit: MAX_STATUSES, ..NotificationFilter::default() };
        store.notification_statuses(filter).await
    }

    /// The deliveries of these messages, the alerts that hold some of them back, and what others wait for.
    pub async fn records_of(&self, store: &Store, statuses: &[NotificationStatus]) -> Result<StatusRecords, StoreError> {
        let alerts: BTreeSet<AlertId> =
            statuses.iter().filter(|status| status.delivery.is_some()).map(|status| status.alert.clone()).collect();
        let deliveries = if alerts.is_empty() { Vec::new() } else { store.deliveries_of(alerts.into_iter().collect()).await? };
        let holders: BTreeSet<&str> = statuses
            .iter()
            .filter(|status| status.state == NotificationState::Inhibited)
            .filter_map(|status| status.holder.as_deref())
            .collect();
        let mut inhibitors = Vec::new();
        if !holders.is_empty() {
            let ids = holders.into_iter().map(AlertId::from).collect();
            inhibitors = store.alerts(AlertFilter { ids, limit: u32::MAX, ..AlertFilter::default() }).await?;
        }
        Ok(StatusRecords { inhibitors, deliveries, prospects: self.prospects(store, statuses).await? })
    }

    /// All of it, as the engine wants it.
    pub fn records<'a>(&'a self, read: &'a StatusRecords) -> StatusEvidence<'a> {
        StatusEvidence {
            silences: &self.silences,
            inhibitors: &read.inhibitors,
            acks: &self.acks,
            prospects: &read.prospects,
            deliveries: &read.deliveries,
        }
    }
}
