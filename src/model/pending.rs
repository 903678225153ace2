//! Pending notifications: the rows that the dispatcher reads and the result of a dispatch pass.
//!
//! [`PendingState`] is the input of a pass, and [`Dispatch`] its result. `engine::group` and `engine::pipeline` decide; the store,
//! or the memory of a simulation, applies the result. [`RepeatGroup`] and [`Repeats`] are the rows of repeated notifications. No
//! decision is made here.

use std::borrow::Cow;

use chrono::TimeDelta;

use crate::{
    Ack, Alert, AlertId, Batch, Labels, Notification, NotificationId, NotificationKind, NotificationRole, NotificationState,
    Precedence, ReceiverName, Silence, SilenceFact, Timestamp,
};

/// The window for the limit of messages to one receiver, `max_per_hour`.
pub const HOUR: TimeDelta = TimeDelta::hours(1);

/// The window in which messages are counted to detect a burst.
pub const BURST_WINDOW: TimeDelta = TimeDelta::minutes(5);

/// One notification for one receiver that is not in a delivery: it is pending or suppressed.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingNotification {
    /// The row number: the order of decisions.
    pub no: i64,
    pub notice: NotificationId,
    pub alert: AlertId,
    pub receiver: ReceiverName,
    pub kind: NotificationKind,
    /// Whether it reports that the alert is resolved.
    pub is_end: bool,
    pub labels: Labels,
    pub precedence: Precedence,
    /// The instant from which it is pending or suppressed.
    pub since: Timestamp,
    /// Whether the alert fires now.
    pub is_firing: bool,
    /// `None` while it is pending.
    pub suppression: Option<Suppression>,
    /// Whether a later notification of the same alert was sent to the receiver or is pending. Only set on suppressed rows.
    pub is_superseded: bool,
    /// Whether the receiver was notified of the alert before. Only set on resolutions.
    pub was_notified: bool,
    /// The suppression of the previous notification of the alert that the receiver wants. Only set on resolutions.
    pub suppressed_before: Option<Suppression>,
    /// The acknowledgement of the alert, and the facts of this notification to compare with it. `None` without an acknowledgement.
    pub acknowledged: Option<(Ack, SilenceFact)>,
}

/// The suppressor of a notification, with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub by: Suppressor,
    /// The id of the silence or alert, or the message type.
    pub id: String,
}

/// The kind of a suppressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppressor {
    Silence,
    /// Another alert, through an inhibition.
    Alert,
    Ack,
    /// The receiver does not want messages of this type.
    Type,
}

impl Suppressor {
    pub const ALL: [Suppressor; 4] = [Suppressor::Silence, Suppressor::Alert, Suppressor::Ack, Suppressor::Type];

    /// Returns the state of a notification that it suppresses.
    pub fn state(self) -> NotificationState {
        match self {
            Suppressor::Silence => NotificationState::Silenced,
            Suppressor::Alert => NotificationState::Inhibited,
            Suppressor::Ack => NotificationState::Acknowledged,
            Suppressor::Type => NotificationState::Unwanted,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.state().as_str()
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suppressor| suppressor.as_str() == word)
    }
}

/// A firing alert, for inhibitions.
#[derive(Clone, Debug, PartialEq)]
pub struct FiringAlert {
    pub id: AlertId,
    pub labels: Labels,
}

/// The recent messages to a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverUsage {
    /// Messages created in the last [`HOUR`], without summaries.
    pub last_hour: u32,
    /// The time of the first of these messages.
    pub oldest: Option<Timestamp>,
    /// Messages created in [`BURST_WINDOW`].
    pub recent: u32,
    /// The time of the last storm batch, within the last hour.
    pub batched_at: Option<Timestamp>,
    /// The time of the last summary, within the last hour.
    pub summed_at: Option<Timestamp>,
    /// Whether the receiver got its first notification about a token less than an hour ago.
    pub is_new: bool,
}

/// The input of a dispatch pass.
#[derive(Clone, Copy)]
pub struct PendingState<'a> {
    /// Pending notifications, by row.
    pub waiting: &'a [PendingNotification],
    /// Whether there are more pending notifications than were read.
    pub is_cut: bool,
    /// Suppressed notifications that can still be released, by row.
    pub suppressed: &'a [PendingNotification],
    /// Silences that have not ended.
    pub silences: &'a [Silence],
    /// Reads further rows on demand.
    pub lookup: &'a dyn PendingLookup,
}

/// Reads rows during a dispatch pass. After a failed read it returns no rows, and the caller discards the pass.
pub trait PendingLookup {
    /// Returns all firing alerts, oldest first.
    fn firing(&self) -> Cow<'_, [FiringAlert]>;
    /// Returns the time of the last message of a group.
    fn notified_at(&self, receiver: &ReceiverName, key: &str) -> Option<Timestamp>;
    /// Returns the alerts of a group that were sent and still fire.
    fn notified_and_firing(&self, receiver: &ReceiverName, key: &str) -> Vec<AlertId>;
    fn usage(&self, receiver: &ReceiverName) -> ReceiverUsage;
}

/// The result of a dispatch pass. Rows that it does not name stay unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatch {
    /// Rows that are now suppressed.
    pub suppressed: Vec<(i64, Suppression)>,
    /// Rows that are no longer suppressed and are pending again.
    pub released: Vec<i64>,
    /// Rows that stay suppressed for good.
    pub settled: Vec<i64>,
    /// Groups of which a message is sent now.
    pub groups: Vec<GroupUpdate>,
    /// Deliveries to create. Their rows are no longer pending.
    pub deliveries: Vec<NewDelivery>,
    /// The number of rows that are still pending.
    pub waiting: u32,
    /// The next instant at which a pass can decide differently without new rows.
    pub next_at: Option<Timestamp>,
    /// When to repeat the pass, for callers that are not notified of every change.
    pub recheck_at: Option<Timestamp>,
}

/// A group of which a message is sent in this pass.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupUpdate {
    pub receiver: ReceiverName,
    pub key: String,
    /// The time of the next repeat.
    pub repeat_at: Option<Timestamp>,
    /// Alerts that are new in the group.
    pub joined: Vec<AlertId>,
    /// Alerts that left the group.
    pub left: Vec<AlertId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub receiver: ReceiverName,
    /// Its notifications, by row.
    pub notified: Vec<(i64, NotificationId)>,
    pub counted: Vec<(i64, NotificationId)>,
    /// Notifications that a later one of the same alert, in the same message, replaces.
    pub merged: Vec<(i64, NotificationId)>,
    /// Its group, its note, and the alerts that it only counts.
    pub batch: Batch,
}

impl NewDelivery {
    /// Returns all rows of the delivery with their roles, in order.
    pub fn rows(&self) -> impl Iterator<Item = (i64, &NotificationId, NotificationRole)> {
        let roles = [
            (&self.notified, NotificationRole::Notified),
            (&self.counted, NotificationRole::Counted),
            (&self.merged, NotificationRole::Merged),
        ];
        roles.into_iter().flat_map(|(rows, role)| rows.iter().map(move |(no, notice)| (*no, notice, role)))
    }
}

/// A group whose repeat is due.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatGroup {
    pub receiver: ReceiverName,
    pub key: String,
    /// The firing alerts of the group, oldest first.
    pub alerts: Vec<RepeatAlert>,
}

/// An alert of a [`RepeatGroup`].
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatAlert {
    pub alert: Alert,
    /// The last notification of the alert, for any receiver.
    pub last: Notification,
    /// Whether an operator acknowledged the alert.
    pub is_acknowledged: bool,
}

/// Repeats to send, and when each group repeats next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    pub notifications: Vec<Notification>,
    /// The next repeat of each group; `None` if it does not repeat.
    pub groups: Vec<(ReceiverName, String, Option<Timestamp>)>,
}
