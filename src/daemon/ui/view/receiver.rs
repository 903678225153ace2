//! What waits for a receiver, and the digests that it gets.

use std::collections::HashSet;

use serde::Serialize;

use engine::digest_schedule::DigestPlan;
use model::{DeliveryState, NotificationOverview, OptOutSource, ReceiverCounts, Timestamp, digest};
use notify::unsubscribe::Subscriber;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxView {
    pub receiver: String,
    /// Waiting, retries included.
    pub pending: u64,
    /// Of these, tried at least once.
    pub retrying: u64,
    /// Age of the oldest that waits, seconds.
    pub oldest_seconds: Option<i64>,
    pub dead: u64,
    /// Accepted so far.
    pub delivered: u64,
    /// Messages that are in no delivery yet: they wait for their group, or for the end of a mute time.
    pub waiting: u64,
    /// Suppressed by silences now, of alerts that fire.
    pub silenced: u64,
    /// Suppressed by other alerts now, of alerts that fire.
    pub inhibited: u64,
    /// Suppressed by whatever in the last day, of whichever alerts.
    pub held_last_day: u64,
}

impl OutboxView {
    /// The outbox of each receiver of the config, then of those that left it with messages waiting.
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
                held_last_day: held.map_or(0, |held| held.lately),
                receiver: name,
            }
        };
        names.into_iter().map(of).collect()
    }

    /// What is not in its outbox, in words: `2 waiting, 1 silenced, 5 held back in a day`; empty where nothing is.
    pub fn held_words(&self) -> String {
        let parts = [
            (self.waiting, "waiting"),
            (self.silenced, "silenced"),
            (self.inhibited, "inhibited"),
            (self.held_last_day, "held back in a day"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestView {
    pub receiver: String,
    /// When it is sent, in words.
    pub when: String,
    /// The time of the last one; before the first, the time from which on there are digests. Null where none was due yet.
    pub last_at: Option<Timestamp>,
    /// The time of the next.
    pub next_at: Option<Timestamp>,
    /// Mail recipients in the config; none for other receivers.
    pub recipients: usize,
    /// Of these, those who stopped it, with those who are gone from the config since.
    pub stopped: Vec<StoppedView>,
}

/// Somebody who stopped a digest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoppedView {
    pub address: String,
    pub at: Timestamp,
    /// `link`, or `hand` for the operator's.
    pub via: OptOutSource,
}

impl DigestView {
    /// Every digest of the config.
    pub fn all(
        plans: &[DigestPlan],
        subscribers: &[Subscriber],
        notifications: &NotificationOverview,
        now: Timestamp,
    ) -> Vec<Self> {
        let of = |plan: &DigestPlan| {
            let job = digest::job_name(&plan.receiver);
            let stopped = notifications.opt_outs.iter().filter(|wish| wish.receiver == plan.receiver);
            let stopped = stopped.map(|wish| StoppedView { address: wish.address.clone(), at: wish.at, via: wish.via });
            Self {
                receiver: plan.receiver.as_str().to_owned(),
                when: plan.words.clone(),
                last_at: notifications.digests.iter().find(|(name, _)| *name == job).map(|(_, slot)| *slot),
                next_at: plan.schedule.next(now),
                recipients: subscribers.iter().filter(|subscriber| subscriber.receiver == plan.receiver).count(),
                stopped: stopped.collect(),
            }
        };
        plans.iter().map(of).collect()
    }
}
