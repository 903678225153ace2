//! What became of messages: read from the database for `explain` and `outbox why`, which tell it in the same words.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    alert::Alert,
    explain::Records,
    group::{Policy, Prospect},
    route::RouteTree,
    silence::{Ack, Silence},
    store::{
        Store,
        model::{AlertFilter, Fate, FateFilter, OutboxRow},
    },
    supply::{AlertId, ReceiverName, Timestamp},
};

/// Messages of one alert that are looked at.
const MAX_FATES: u32 = 500;

/// What fates are read with, whatever alert they are of.
pub(super) struct Files {
    silences: Vec<Silence>,
    acks: Vec<Ack>,
    prospects: Vec<Prospect>,
}

/// What is read for some fates.
pub(super) struct Read {
    inhibitors: Vec<Alert>,
    deliveries: Vec<OutboxRow>,
}

impl Files {
    pub async fn read(
        store: &Store,
        routes: &RouteTree,
        max_per_hour: BTreeMap<ReceiverName, u32>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let policy = Arc::new(Policy { routes: routes.clone(), max_per_hour });
        Ok(Self {
            silences: store.silences(None).await?,
            acks: store.acks().await?,
            prospects: store.prospects(policy, now).await?,
        })
    }

    /// What became of each message about an alert.
    pub async fn fates_of(&self, store: &Store, alert: &AlertId) -> anyhow::Result<Vec<Fate>> {
        Ok(store.fates(FateFilter { alert: Some(alert.clone()), limit: MAX_FATES, ..FateFilter::default() }).await?)
    }

    /// The deliveries of these messages, and the alerts that hold some of them back.
    pub async fn read_for(&self, store: &Store, fates: &[Fate]) -> anyhow::Result<Read> {
        let alerts: BTreeSet<AlertId> =
            fates.iter().filter(|fate| fate.delivery.is_some()).map(|fate| fate.alert.clone()).collect();
        let deliveries = if alerts.is_empty() { Vec::new() } else { store.deliveries_of(alerts.into_iter().collect()).await? };
        let holders: BTreeSet<&str> =
            fates.iter().filter(|fate| fate.state == "inhibited").filter_map(|fate| fate.holder.as_deref()).collect();
        let mut inhibitors = Vec::new();
        if !holders.is_empty() {
            inhibitors = store.alerts(AlertFilter { limit: u32::MAX, ..AlertFilter::default() }).await?;
            inhibitors.retain(|alert| holders.contains(alert.id.as_str()));
        }
        Ok(Read { inhibitors, deliveries })
    }

    pub fn records<'a>(&'a self, read: &'a Read) -> Records<'a> {
        Records {
            silences: &self.silences,
            inhibitors: &read.inhibitors,
            acks: &self.acks,
            prospects: &self.prospects,
            deliveries: &read.deliveries,
        }
    }
}
