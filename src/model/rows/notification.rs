//! The state of notifications: dispatched, suppressed, acknowledged.

use serde::Serialize;

use super::{opt_out::OptOut, outbox::DeliveryState};
use crate::{Ack, Alert, AlertId, DeliveryId, NotificationId, NotificationKind, ReceiverName, Silence, Timestamp};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatchResult {
    /// Receivers with new deliveries.
    pub receivers: Vec<ReceiverName>,
    pub deliveries: u32,
    pub held: u32,
    pub waiting: u32,
    /// The time of the next pass, unless something happens before.
    pub next_at: Option<Timestamp>,
}

/// The result of an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub enum AckResult {
    /// The alert is acknowledged.
    Done(Box<Alert>),
    /// No pending or firing alert has an id with this prefix.
    Unknown,
    /// Several alerts have an id with this prefix; some of their ids.
    Several(Vec<AlertId>),
}

words! {
    /// The state of a notification for one receiver.
    NotificationState {
        /// Pending: it waits for its group or for the end of a mute interval.
        Waiting = "waiting",
        /// A silence suppresses it.
        Silenced = "silenced",
        /// Another alert suppresses it.
        Inhibited = "inhibited",
        /// An acknowledgement suppresses it.
        Acknowledged = "acknowledged",
        /// The `types` of the receiver leave it out.
        Unwanted = "unwanted",
        /// Its delivery was not attempted yet.
        Due = "due",
        /// At least one attempt of its delivery failed, and another one follows.
        Retrying = "retrying",
        /// The receiver accepted its delivery.
        Delivered = "delivered",
        /// Its delivery is a dead letter.
        Dead = "dead",
        /// An operator dropped its delivery.
        Dropped = "dropped",
        /// No route selects a receiver.
        Nobody = "nobody",
        /// The rule's `limit` left it out; a summary of the rule counts it.
        Limited = "limited",
    }
}

impl NotificationState {
    pub fn delivery(self) -> Option<DeliveryState> {
        DeliveryState::parse(self.as_str())
    }

    /// Returns whether a silence, another alert, or an acknowledgement suppresses it.
    pub fn is_suppressed(self) -> bool {
        matches!(self, NotificationState::Silenced | NotificationState::Inhibited | NotificationState::Acknowledged)
    }
}

impl From<DeliveryState> for NotificationState {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Due => NotificationState::Due,
            DeliveryState::Retrying => NotificationState::Retrying,
            DeliveryState::Delivered => NotificationState::Delivered,
            DeliveryState::Dead => NotificationState::Dead,
            DeliveryState::Dropped => NotificationState::Dropped,
        }
    }
}

words! {
    /// The part of a notification in its delivery.
    NotificationRole {
        /// As an alert of its own.
        Notified = "notified",
        /// As part of a count.
        Counted = "counted",
        /// Through a later notification of the same alert in the same delivery.
        Merged = "merged",
    }
}

/// The state of one notification for one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationStatus {
    pub notice: NotificationId,
    pub alert: AlertId,
    pub rule: String,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    /// The time of the decision.
    pub at: Timestamp,
    /// The first line of the message.
    pub summary: String,
    /// `None` if no route selects a receiver, or if the rule's `limit` left it out.
    pub receiver: Option<ReceiverName>,
    pub state: NotificationState,
    /// `None` without a delivery.
    pub role: Option<NotificationRole>,
    pub delivery: Option<DeliveryId>,
    /// The id of the silence or alert that suppresses it, or the message type that the receiver does not want. If the rule's `limit`
    /// left it out, that limit.
    #[serde(rename = "holder")]
    pub suppressor: Option<String>,
}

/// The maximum length of a message's first line in lists, in characters.
const MAX_SUMMARY_CHARS: usize = 200;

/// Returns the first line of a summary, cut to that length.
pub fn cut_summary(summary: &str) -> String {
    summary.lines().next().unwrap_or_default().chars().take(MAX_SUMMARY_CHARS).collect()
}

/// The state of an alert for one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    pub receiver: ReceiverName,
    /// Whether the receiver accepted any notification of the alert.
    pub was_notified: bool,
    /// The state of the latest notification.
    pub state: NotificationState,
}

/// Notifications of one receiver that are in no delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuppressedCount {
    pub receiver: ReceiverName,
    /// Waiting for their group or for the end of a mute interval.
    pub waiting: u64,
    /// Suppressed by a silence, for alerts that still fire.
    pub silenced: u64,
    /// Suppressed by another alert, for alerts that still fire.
    pub inhibited: u64,
    /// Suppressed since the requested time for any reason, also for resolved alerts.
    pub lately: u64,
}

/// All that suppresses notifications, with counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotificationOverview {
    /// Silences that have not ended.
    pub silences: Vec<Silence>,
    pub acks: Vec<Ack>,
    /// Notifications in no delivery, by receiver.
    pub held: Vec<SuppressedCount>,
    /// Recipients who unsubscribed from digests.
    pub opt_outs: Vec<OptOut>,
    /// The last slot of each digest, by job name.
    pub digests: Vec<(String, Timestamp)>,
    /// The slots of the last created digests, by job name.
    pub created_digests: Vec<(String, Timestamp)>,
}
