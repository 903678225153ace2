//! Deliveries: what is due, what was tried, what the outbox shows.

use serde::{Deserialize, Serialize};

use crate::{Alert, DeliveryId, Labels, Notification, NotificationId, NotificationKind, ReceiverName, Timestamp, Tone};

/// An alert in the outbox, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDelivery {
    /// Row of the outbox.
    pub id: DeliveryId,
    /// `msg_…`: the same over all attempts.
    pub webhook_id: String,
    pub receiver: ReceiverName,
    /// Attempts so far, all of them.
    pub attempts: u32,
    /// Attempts since the retry schedule last began: those before a retry by hand do not count.
    pub tries: u32,
    /// When it was put into the outbox.
    pub created_at: Timestamp,
    /// When it was first due; a retry by hand begins anew.
    pub due_at: Timestamp,
    /// What it holds, the most urgent first. One notification, unless several were grouped.
    pub notifications: Vec<Notification>,
    /// What it stands for beside its notifications.
    pub bundle: Batch,
    /// Webhook ids of earlier deliveries to the same receiver that told many alerts at once, without a group, of which none fires any
    /// more now that this one tells an end: what a pager opened for them is over.
    pub over: Vec<String>,
}

/// What a delivery stands for beside its notifications: the group that it is about, and what it only counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Batch {
    /// How it came to be.
    pub shape: BatchKind,
    /// The gravest in it: what is critical is sent before everything else.
    pub tone: Tone,
    /// The group, such as `{}/{severity="critical"}:{token="arbitrum"}`: the same for all its messages. None where the alert is told
    /// by itself.
    pub group_key: Option<String>,
    /// The labels by which the group was made.
    pub group_labels: Labels,
    /// Alerts of the group that were notified before and still fire: counted, not repeated.
    pub told_before: u32,
    /// Alerts that the message stands for beyond its notifications: recorded and counted, without a text of their own.
    pub truncated: u32,
    /// A line to stand above the alerts, plain text: why many were put into one message.
    pub note: Option<String>,
    /// The first that a receiver is told: an overview, of which people are shown the beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_welcome: bool,
}

words! {
    /// How a delivery came to be.
    #[derive(Default)]
    BatchKind {
        /// One notification by itself.
        #[default]
        Single = "single",
        /// What is new in a group.
        Group = "group",
        /// Many alerts at once that no route groups, put together by rule.
        Fold = "fold",
        /// All that came above the messages which a receiver gets in an hour.
        Summary = "summary",
        Digest = "digest",
    }
}

words! {
    DeliveryState {
        /// Never tried.
        Due = "due",
        /// Tried, to be tried again.
        Retrying = "retrying",
        /// Accepted by the receiver.
        Delivered = "delivered",
        /// Given up, and announced.
        Dead = "dead",
        /// Taken out by hand.
        Dropped = "dropped",
    }
}

words! {
    /// What one try came to.
    AttemptOutcome {
        /// The receiver has it.
        Accepted = "accepted",
        /// Not now.
        Retry = "retry",
        /// The receiver will not have it, now or later.
        Refused = "refused",
        /// The receiver says that it is gone for good.
        Gone = "gone",
        /// It was handed over, but the answer never came.
        Uncertain = "uncertain",
    }
}

/// One try, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub at: Timestamp,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    pub outcome: AttemptOutcome,
    /// HTTP status, SMTP code or exit status.
    pub status: Option<u16>,
    /// What the receiver answered, at most 4 KiB, secrets removed; or the error.
    pub answer: String,
}

/// What an attempt makes of a delivery.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    pub delivery: DeliveryId,
    pub attempt: Attempt,
    /// Where the delivery stands now.
    pub state: DeliveryState,
    /// When to try again, for [`DeliveryState::Retrying`].
    pub next_attempt_at: Option<Timestamp>,
    /// Alerts to announce in the same transaction: a dead letter, a receiver that does not answer, and its recovery.
    pub alerts: Vec<Alert>,
    pub notifications: Vec<Notification>,
}

/// A row of the outbox as `outbox list` shows it. The names are those of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxRow {
    pub id: DeliveryId,
    /// `msg_…`.
    pub webhook_id: String,
    pub receiver: ReceiverName,
    pub state: DeliveryState,
    /// Tries so far.
    pub attempts: u32,
    /// When it is tried next; null where it is not.
    pub next_attempt_at: Option<Timestamp>,
    pub last_answer: Option<String>,
    /// When it was put into the outbox.
    pub created_at: Timestamp,
    /// When it was accepted.
    pub delivered_at: Option<Timestamp>,
    /// How it came to be.
    pub shape: BatchKind,
    /// Alerts that it only counts.
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
    /// Slug, where it is about a token.
    pub token: Option<String>,
    /// First line of the message.
    pub summary: String,
}

/// A delivery with all that is known of it, for `outbox show`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxDetail {
    /// As the list has it.
    pub row: OutboxRow,
    /// Its tries, the first first.
    pub attempts: Vec<Attempt>,
    pub notifications: Vec<Notification>,
    /// What it only counts.
    pub counted: Vec<OutboxAlert>,
}

impl OutboxDetail {
    /// As JSON: the row, `attemptLog`, `messages` with all facts, and `counted`.
    pub fn json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self.row);
        value["attemptLog"] = serde_json::json!(self.attempts);
        value["messages"] = self.notifications.iter().map(|notice| serde_json::json!(notice.body)).collect();
        value["counted"] = serde_json::json!(self.counted);
        value
    }
}
