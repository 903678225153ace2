//! Deliveries: due ones, their attempts, and the rows of `outbox`.

use serde::{Deserialize, Serialize};

use super::replay::Replay;
use crate::{Alert, DeliveryId, Labels, Notification, NotificationId, NotificationKind, ReceiverName, Severity, Timestamp};

/// The maximum number of alerts in one message. The rest are counted.
pub const MAX_ALERTS: usize = 100;

/// The maximum number of deliveries that one command or one button retries or drops.
pub const MAX_DELIVERIES_PER_ACTION: u32 = 100_000;

/// A delivery that is ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDelivery {
    pub id: DeliveryId,
    /// `msg_…`; the same for all attempts.
    pub webhook_id: String,
    pub receiver: ReceiverName,
    /// All attempts so far.
    pub attempts: u32,
    /// Attempts of the current retry schedule. A manual retry restarts it.
    pub tries: u32,
    /// The time at which it was queued.
    pub created_at: Timestamp,
    /// The time at which it was first due, or of the last manual retry.
    pub due_at: Timestamp,
    /// The notifications, highest precedence first. More than one only in groups and batches.
    pub notifications: Vec<Notification>,
    pub batch: Batch,
    /// Webhook ids of earlier batches to the same receiver whose alerts have all ended with this delivery. Pagers close the
    /// incidents that these opened.
    pub over: Vec<String>,
    /// `None` unless it is sent again on request.
    pub replay: Option<Replay>,
}

/// The message that a delivery makes of its notifications: its group, and the alerts that it only counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Batch {
    /// The reason why the notifications form one delivery.
    pub shape: BatchKind,
    /// The highest severity in it. Critical deliveries are sent first.
    #[serde(rename = "severity")]
    pub severity: Severity,
    /// The group, such as `{}/{severity="critical"}:{token="arbitrum"}`; the same for all its messages. `None` if the delivery has
    /// a single alert without a group.
    pub group_key: Option<String>,
    /// The labels that define the group.
    pub group_labels: Labels,
    /// Alerts of the group that were sent before and still fire. They are counted, not repeated.
    pub notified_before: u32,
    /// Alerts in addition to `notifications`, which the message only counts.
    pub truncated: u32,
    /// A line above the alerts, in plain text: why many alerts are in one message.
    pub note: Option<String>,
    /// Whether this is the first message to a new receiver. People see only its beginning, as an overview.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_welcome: bool,
}

words! {
    /// The reason why notifications form one delivery.
    #[derive(Default)]
    BatchKind {
        #[default]
        Single = "single",
        /// The new notifications of a group.
        Group = "group",
        /// A storm batch: many alerts at once that no route groups, combined by rule.
        Batch = "batch",
        /// A summary of all alerts above the hourly limit of the receiver.
        Summary = "summary",
        Digest = "digest",
    }
}

words! {
    DeliveryState {
        /// Not attempted yet.
        Due = "due",
        /// At least one attempt failed, and another one follows.
        Retrying = "retrying",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// A dead letter: all attempts failed.
        Dead = "dead",
        /// An operator dropped it.
        Dropped = "dropped",
    }
}

words! {
    /// The outcome of one attempt.
    AttemptOutcome {
        /// The receiver accepted the delivery.
        Accepted = "accepted",
        /// The receiver may accept it later.
        Retry = "retry",
        /// The receiver rejects the delivery for good.
        Refused = "refused",
        /// The receiver no longer exists, as its response says.
        Gone = "gone",
        /// The request was sent, but no response arrived.
        Uncertain = "uncertain",
        /// No attempt was made, because the receiver left the config. If it returns, the delivery is sent.
        Orphaned = "orphaned",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub at: Timestamp,
    /// The duration in milliseconds.
    pub took_ms: u64,
    pub outcome: AttemptOutcome,
    /// The HTTP status, SMTP code, or exit status.
    pub status: Option<u16>,
    /// The receiver's response without secrets, at most 4 KiB, or the error.
    #[serde(rename = "answer")]
    pub response: String,
}

/// The changes of an attempt to a delivery.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    pub delivery: DeliveryId,
    pub attempt: Attempt,
    /// The new state of the delivery.
    pub state: DeliveryState,
    /// The time of the next attempt, for [`DeliveryState::Retrying`].
    pub next_attempt_at: Option<Timestamp>,
    /// Alerts to store in the same transaction: a dead letter, a receiver outage, or its end.
    pub alerts: Vec<Alert>,
    pub notifications: Vec<Notification>,
}

/// A row of `outbox list`. The fields have the names of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxRow {
    pub id: DeliveryId,
    /// `msg_…`.
    pub webhook_id: String,
    pub receiver: ReceiverName,
    pub state: DeliveryState,
    pub attempts: u32,
    /// `None` if no attempt is planned.
    pub next_attempt_at: Option<Timestamp>,
    #[serde(rename = "lastAnswer")]
    pub last_response: Option<String>,
    /// The time at which it was queued.
    pub created_at: Timestamp,
    /// The time at which the receiver accepted it.
    pub delivered_at: Option<Timestamp>,
    /// `None` unless it was sent again on request.
    pub replay: Option<Replay>,
    pub shape: BatchKind,
    /// Alerts that the message only counts.
    pub truncated_alerts: u32,
    pub alerts: Vec<OutboxAlert>,
}

/// An alert of an [`OutboxRow`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxAlert {
    pub id: String,
    pub notice: NotificationId,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    pub rule: String,
    /// The token's slug; `None` if the alert is not about a token.
    pub token: Option<String>,
    /// The first line of the message.
    pub summary: String,
}

/// A delivery with all its details, for `outbox show`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxDetail {
    pub row: OutboxRow,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    pub notifications: Vec<Notification>,
    /// Alerts that the message only counts.
    pub counted: Vec<OutboxAlert>,
}

impl OutboxDetail {
    /// Returns the JSON: the row, `attemptLog`, `messages` with all facts, and `counted`.
    pub fn json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self.row);
        value["attemptLog"] = serde_json::json!(self.attempts);
        value["messages"] = self.notifications.iter().map(|notice| serde_json::json!(notice.body)).collect();
        value["counted"] = serde_json::json!(self.counted);
        value
    }
}
