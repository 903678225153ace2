//! What became of notifications: dispatched, held back, acknowledged.

use serde::Serialize;

use super::{opt_out::OptOut, outbox::DeliveryState};
use crate::{Ack, Alert, AlertId, DeliveryId, NotificationId, NotificationKind, ReceiverName, Silence, Timestamp};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatchResult {
    /// Everyone for whom there is a new delivery.
    pub receivers: Vec<ReceiverName>,
    pub deliveries: u32,
    /// Messages that were held back.
    pub held: u32,
    /// Messages that still wait.
    pub waiting: u32,
    /// When it is to be done again, if nothing happens before.
    pub next_at: Option<Timestamp>,
}

/// What came of an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub enum AckResult {
    /// It holds.
    Done(Box<Alert>),
    /// No alert that is pending or firing has an id that begins like this.
    Unknown,
    /// Several have: some of their ids.
    Several(Vec<AlertId>),
}

words! {
    /// Where a notification stands with one receiver.
    NotificationState {
        /// It waits for its group or for the end of a mute time.
        Waiting = "waiting",
        /// A silence suppresses it.
        Silenced = "silenced",
        /// Another alert suppresses it.
        Inhibited = "inhibited",
        /// An acknowledgement suppresses it.
        Acknowledged = "acknowledged",
        /// Its delivery was never tried.
        Due = "due",
        /// Its delivery was tried and is tried again.
        Retrying = "retrying",
        /// The receiver accepted its delivery.
        Delivered = "delivered",
        /// Its delivery was given up, and announced.
        Dead = "dead",
        /// Its delivery was taken out by hand.
        Dropped = "dropped",
        /// It was recorded, and no route takes it.
        Nobody = "nobody",
        /// It was recorded, and the rule's `limit` left it out: a summary of the rule counts it.
        Limited = "limited",
    }
}

impl NotificationState {
    pub fn delivery(self) -> Option<DeliveryState> {
        DeliveryState::parse(self.as_str())
    }

    /// Whether a silence, another alert or an acknowledgement suppresses it.
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
    /// How a delivery tells a notification.
    NotificationRole {
        /// As an alert of its own.
        Notified = "told",
        /// The delivery says that there was one more.
        Counted = "counted",
        /// A later notification of the same alert in the same delivery stands for it.
        Merged = "merged",
    }
}

/// What became of one notification for one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationStatus {
    pub notice: NotificationId,
    pub alert: AlertId,
    pub rule: String,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    /// When it was decided.
    pub at: Timestamp,
    /// First line of the message.
    pub summary: String,
    /// To whom; none where it was recorded and no route takes it, or the rule's `limit` left it out.
    pub receiver: Option<ReceiverName>,
    pub state: NotificationState,
    /// How its delivery tells it; none where there is no delivery.
    pub role: Option<NotificationRole>,
    pub delivery: Option<DeliveryId>,
    /// The silence or alert that holds it back.
    pub holder: Option<String>,
}

/// The first line of a message in lists is not longer than this, in characters.
const MAX_SUMMARY_CHARS: usize = 200;

/// The first line of a summary, cut.
pub fn cut_summary(summary: &str) -> String {
    summary.lines().next().unwrap_or_default().chars().take(MAX_SUMMARY_CHARS).collect()
}

/// Where an alert stands with one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// Who was to be notified.
    pub receiver: ReceiverName,
    /// Whether any message of it was accepted there.
    pub was_told: bool,
    /// What became of the latest message.
    pub state: NotificationState,
}

/// Messages of one receiver that are in no delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuppressedCount {
    pub receiver: ReceiverName,
    /// They wait for their group or for the end of a mute time.
    pub waiting: u64,
    /// Held back by a silence, of alerts that still fire.
    pub silenced: u64,
    /// Held back by another alert, of alerts that still fire.
    pub inhibited: u64,
    /// Held back since the time that was asked for, for whatever reason, also of alerts that are over.
    pub lately: u64,
}

/// What holds messages back, and how many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotificationOverview {
    /// Silences that are not over.
    pub silences: Vec<Silence>,
    /// Alerts that somebody knows of.
    pub acks: Vec<Ack>,
    /// Messages that are in no delivery, by receiver.
    pub held: Vec<SuppressedCount>,
    /// Who stopped digests.
    pub opt_outs: Vec<OptOut>,
    /// The last slot of each digest, by the name of its job.
    pub digests: Vec<(String, Timestamp)>,
}
