//! Reads the states of notifications for `explain` and `outbox why`.

use std::collections::BTreeSet;

use engine::explain::StatusEvidence;
use engine::group::Prospect;
use engine::pipeline::{self, HourLimits};
use engine::route::RouteTree;
use model::{
    Ack, Alert, AlertFilter, AlertId, NotificationFilter, NotificationState, NotificationStatus, OutboxRow, Silence, Timestamp,
};
use store::{Store, StoreError};

/// The maximum number of notifications to read for an alert.
const MAX_STATUSES: u32 = 500;

/// Reads the states of notifications, and the silences, acknowledgements, and limits that explain them.
#[derive(Debug)]
pub struct StatusReader {
    silences: Vec<Silence>,
    acks: Vec<Ack>,
    routes: RouteTree,
    max_per_hour: HourLimits,
    now: Timestamp,
}

/// The records that explain a list of statuses.
#[derive(Debug)]
pub struct StatusRecords {
    inhibitors: Vec<Alert>,
    deliveries: Vec<OutboxRow>,
    prospects: Vec<Prospect>,
}

impl StatusReader {
    /// Reads the facts that all notifications share.
    pub async fn read(store: &Store, routes: RouteTree, max_per_hour: HourLimits, now: Timestamp) -> Result<Self, StoreError> {
        Ok(Self { silences: store.silences(None).await?, acks: store.acks().await?, routes, max_per_hour, now })
    }

    /// Returns what the pending notifications wait for. Reads nothing if none is pending.
    async fn prospects(&self, store: &Store, statuses: &[NotificationStatus]) -> Result<Vec<Prospect>, StoreError> {
        if statuses.iter().all(|status| status.state != NotificationState::Waiting) {
            return Ok(Vec::new());
        }
        let (routes, limits, now) = (self.routes.clone(), self.max_per_hour.clone(), self.now);
        Ok(store.pending(move |state| pipeline::prospects(state, &routes, &limits, now), now).await?.unwrap_or_default())
    }

    /// Returns the status of each notification of an alert.
    pub async fn of_alert(&self, store: &Store, alert: &AlertId) -> Result<Vec<NotificationStatus>, StoreError> {
        let filter = NotificationFilter { alert: Some(alert.clone()), limit: MAX_STATUSES, ..NotificationFilter::default() };
        store.notification_statuses(filter).await
    }

    /// Reads the deliveries of these notifications, the alerts that inhibit them, and what pending ones wait for.
    pub async fn records_of(&self, store: &Store, statuses: &[NotificationStatus]) -> Result<StatusRecords, StoreError> {
        let alerts: BTreeSet<AlertId> =
            statuses.iter().filter(|status| status.delivery.is_some()).map(|status| status.alert.clone()).collect();
        let deliveries = if alerts.is_empty() { Vec::new() } else { store.deliveries_of(alerts.into_iter().collect()).await? };
        let suppressors: BTreeSet<&str> = statuses
            .iter()
            .filter(|status| status.state == NotificationState::Inhibited)
            .filter_map(|status| status.suppressor.as_deref())
            .collect();
        let mut inhibitors = Vec::new();
        if !suppressors.is_empty() {
            let ids = suppressors.into_iter().map(AlertId::from).collect();
            inhibitors = store.alerts(AlertFilter { ids, limit: u32::MAX, ..AlertFilter::default() }).await?;
        }
        Ok(StatusRecords { inhibitors, deliveries, prospects: self.prospects(store, statuses).await? })
    }

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
