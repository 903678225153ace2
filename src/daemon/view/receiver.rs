//! The outbox of a receiver, and its digests.

use std::collections::HashSet;

use serde::Serialize;

use engine::digest_schedule::DigestPlan;
use model::{DeliveryState, NotificationOverview, OptOutSource, ReceiverCounts, Timestamp, digest};
use notify::unsubscribe::Subscriber;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxView {
    pub receiver: String,
    /// The number of pending deliveries, retries included.
    pub pending: u64,
    /// The number of pending deliveries with at least one attempt.
    pub retrying: u64,
    /// The age of the oldest pending delivery.
    pub oldest_seconds: Option<i64>,
    pub dead: u64,
    pub delivered: u64,
    /// The number of notifications that wait for their group or for the end of a mute time.
    pub waiting: u64,
    /// The number of notifications of firing alerts that are silenced now.
    pub silenced: u64,
    /// The number of notifications of firing alerts that are inhibited now.
    pub inhibited: u64,
    /// The number of notifications that were suppressed in the last day for any reason.
    pub suppressed_last_day: u64,
}

impl OutboxView {
    /// Returns the rows of all receivers of the config, then of removed receivers with pending messages.
    pub fn all(
        receivers: &[String],
        counts: &[ReceiverCounts],
        notifications: &NotificationOverview,
        now: Timestamp,
    ) -> Vec<Self> {
        let mut names = receivers.to_vec();
        names.extend(
            counts
                .iter()
                .filter(|row| row.pending() > 0 || row.of(DeliveryState::Dead) > 0)
                .map(|row| row.receiver.as_str().to_owned()),
        );
        names.extend(notifications.held.iter().map(|row| row.receiver.as_str().to_owned()));
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let of = |name: String| {
            let row = counts.iter().find(|row| row.receiver.as_str() == name);
            let held = notifications.held.iter().find(|row| row.receiver.as_str() == name);
            OutboxView {
                pending: row.map_or(0, |row| row.pending()),
                retrying: row.map_or(0, |row| row.of(DeliveryState::Retrying)),
                oldest_seconds: row.and_then(|row| row.oldest_pending).map(|at| (now - at).num_seconds().max(0)),
                dead: row.map_or(0, |row| row.of(DeliveryState::Dead)),
                delivered: row.map_or(0, |row| row.of(DeliveryState::Delivered)),
                waiting: held.map_or(0, |held| held.waiting),
                silenced: held.map_or(0, |held| held.silenced),
                inhibited: held.map_or(0, |held| held.inhibited),
                suppressed_last_day: held.map_or(0, |held| held.lately),
                receiver: name,
            }
        };
        names.into_iter().map(of).collect()
    }

    /// Formats the notifications that are in no delivery: `2 waiting, 1 silenced, 5 suppressed in the last day`. Empty if every
    /// notification is in a delivery.
    pub fn undelivered_text(&self) -> String {
        let parts = [
            (self.waiting, "waiting"),
            (self.silenced, "silenced"),
            (self.inhibited, "inhibited"),
            (self.suppressed_last_day, "suppressed in the last day"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestView {
    pub receiver: String,
    /// The schedule as text.
    pub when: String,
    /// The time of the last digest. Before the first digest, the time when the digest was set up. Null if that is not recorded
    /// yet.
    pub last_at: Option<Timestamp>,
    /// The slot of the last digest that had recipients. Null if there was none.
    pub sent_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    /// The number of mail recipients in the config. Zero for other receiver types.
    pub recipients: usize,
    /// The recipients who stopped the digest, including addresses that are no longer in the config.
    pub stopped: Vec<StoppedView>,
}

/// A recipient who stopped a digest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoppedView {
    pub address: String,
    pub at: Timestamp,
    /// `link` for the link in the mail, `hand` for the operator.
    pub via: OptOutSource,
}

impl DigestView {
    /// Returns all digests of the config.
    pub fn all(
        plans: &[DigestPlan],
        subscribers: &[Subscriber],
        notifications: &NotificationOverview,
        now: Timestamp,
    ) -> Vec<Self> {
        let of = |plan: &DigestPlan| {
            let slot_of =
                |slots: &[(String, Timestamp)], job: &str| slots.iter().find(|(name, _)| name == job).map(|(_, slot)| *slot);
            let stopped = notifications.opt_outs.iter().filter(|opt_out| opt_out.receiver == plan.receiver);
            let stopped =
                stopped.map(|opt_out| StoppedView { address: opt_out.address.clone(), at: opt_out.at, via: opt_out.via });
            Self {
                receiver: plan.receiver.as_str().to_owned(),
                when: plan.words.clone(),
                last_at: slot_of(&notifications.digests, &digest::job_name(&plan.receiver)),
                sent_at: slot_of(&notifications.created_digests, &digest::created_name(&plan.receiver)),
                next_at: plan.schedule.next(now),
                recipients: subscribers.iter().filter(|subscriber| subscriber.receiver == plan.receiver).count(),
                stopped: stopped.collect(),
            }
        };
        plans.iter().map(of).collect()
    }
}
