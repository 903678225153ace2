//! What lies between a decision and its delivery, as plain rows: which notifications wait or are suppressed, what receivers got lately,
//! what is known of groups, and what a pass of the dispatcher makes of all that.
//!
//! The cast: [`PendingState`] is what a pass goes by, [`Dispatch`] what it comes to; `group` and `pipeline` decide from the one to the
//! other, and whoever holds the rows (the database, or the memory of a simulation) applies it as it stands. The rows of notifications
//! that are told again are [`RepeatGroup`] and [`Repeats`]. No decision is made here.

use std::borrow::Cow;

use chrono::TimeDelta;

use crate::{
    Ack, Alert, AlertId, Batch, Labels, Notification, NotificationId, NotificationKind, NotificationRole, NotificationState,
    Precedence, ReceiverName, Silence, SilenceFact, Timestamp,
};

/// The time over which messages are counted for the storm cap of a receiver.
pub const HOUR: TimeDelta = TimeDelta::hours(1);

/// The time over which messages are counted to tell a burst.
pub const BURST_WINDOW: TimeDelta = TimeDelta::minutes(5);

/// One notification for one receiver that is in no delivery: it waits, or it is suppressed.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingNotification {
    /// Its row: the order in which it was decided.
    pub no: i64,
    pub notice: NotificationId,
    pub alert: AlertId,
    pub receiver: ReceiverName,
    pub kind: NotificationKind,
    /// Whether it tells the end of its alert.
    pub is_end: bool,
    /// The alert's labels.
    pub labels: Labels,
    /// How soon it is to be told, beside others that wait.
    pub precedence: Precedence,
    /// Since when it waits, or is suppressed.
    pub since: Timestamp,
    /// Whether its alert fires now.
    pub is_firing: bool,
    /// What suppresses it; none while it waits.
    pub suppression: Option<Suppression>,
    /// Of one that is suppressed: something later of the same alert was told to the receiver, or is pending.
    pub is_superseded: bool,
    /// Of an end that waits: whether the receiver was told anything of the alert.
    pub was_told: bool,
    /// Of an end that waits: what suppressed the last that was to be told before it.
    pub suppressed_before: Option<Suppression>,
    /// What it tells, where somebody acknowledged the alert.
    pub acknowledged: Option<(Ack, SilenceFact)>,
}

/// Why a notification is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// By what.
    pub by: Suppressor,
    /// Id of the silence or alert.
    pub id: String,
}

/// What suppresses a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suppressor {
    Silence,
    /// Another alert, by an inhibition.
    Alert,
    Ack,
}

impl Suppressor {
    /// All of them.
    pub const ALL: [Suppressor; 3] = [Suppressor::Silence, Suppressor::Alert, Suppressor::Ack];

    /// The state of a notification that it suppresses.
    pub fn state(self) -> NotificationState {
        match self {
            Suppressor::Silence => NotificationState::Silenced,
            Suppressor::Alert => NotificationState::Inhibited,
            Suppressor::Ack => NotificationState::Acknowledged,
        }
    }

    /// The word of that state.
    pub fn as_str(self) -> &'static str {
        self.state().as_str()
    }

    /// The suppressor of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suppressor| suppressor.as_str() == word)
    }
}

/// An alert that fires, as inhibition sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct FiringAlert {
    pub id: AlertId,
    pub labels: Labels,
}

/// What a receiver got lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverUsage {
    /// Messages made for it in the last [`HOUR`], summaries left aside.
    pub last_hour: u32,
    /// When the first of these was made.
    pub oldest: Option<Timestamp>,
    /// Of these, in [`BURST_WINDOW`].
    pub lately: u32,
    /// When alerts were last put together for it, in the last hour.
    pub folded_at: Option<Timestamp>,
    /// When it last got a summary, in the last hour.
    pub summed_at: Option<Timestamp>,
    /// Whether the first that it was told of any token, if anything was, is less than an hour old.
    pub is_new: bool,
}

/// Everything that a pass of the dispatcher goes by.
#[derive(Clone, Copy)]
pub struct PendingState<'a> {
    /// What waits, by row.
    pub waiting: &'a [PendingNotification],
    /// More waits than was read.
    pub is_cut: bool,
    /// What is suppressed and not settled, by row.
    pub suppressed: &'a [PendingNotification],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    /// What is looked up where it is needed.
    pub lookup: &'a dyn PendingLookup,
}

/// What a pass looks up on its way. A lookup that fails answers as if there were nothing, and whoever asked for the pass throws it away.
pub trait PendingLookup {
    /// All alerts that fire, those that began first first.
    fn firing(&self) -> Cow<'_, [FiringAlert]>;
    /// When a group was last told.
    fn told_at(&self, receiver: &ReceiverName, key: &str) -> Option<Timestamp>;
    /// The alerts of a group that were told and still fire.
    fn told_and_firing(&self, receiver: &ReceiverName, key: &str) -> Vec<AlertId>;
    /// What a receiver got lately.
    fn usage(&self, receiver: &ReceiverName) -> ReceiverUsage;
}

/// What a pass of the dispatcher comes to. Rows that it does not name stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatch {
    /// Rows that are suppressed from now on.
    pub suppressed: Vec<(i64, Suppression)>,
    /// Rows that are no longer suppressed, and wait from now on.
    pub released: Vec<i64>,
    /// Rows that are suppressed for good.
    pub settled: Vec<i64>,
    /// Groups that are told now.
    pub groups: Vec<GroupUpdate>,
    /// Deliveries to make: their rows are pending no more.
    pub deliveries: Vec<NewDelivery>,
    /// How many still wait.
    pub waiting: u32,
    /// When time alone may have it decide otherwise.
    pub next_at: Option<Timestamp>,
    /// When to look again for whoever does not hear of everything that happens meanwhile.
    pub recheck_at: Option<Timestamp>,
}

/// A group that is told at the time of the pass.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupUpdate {
    pub receiver: ReceiverName,
    pub key: String,
    /// When it is to be told again.
    pub repeat_at: Option<Timestamp>,
    /// Alerts that are in it from now on.
    pub joined: Vec<AlertId>,
    /// Alerts that are in it no more.
    pub left: Vec<AlertId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub receiver: ReceiverName,
    /// What it tells, by row.
    pub told: Vec<(i64, NotificationId)>,
    pub counted: Vec<(i64, NotificationId)>,
    /// What something later of the same alert, in the same message, stands for.
    pub merged: Vec<(i64, NotificationId)>,
    /// Its group, its note, and what it counts.
    pub bundle: Batch,
}

impl NewDelivery {
    /// All rows of it with their roles, in their order.
    pub fn rows(&self) -> impl Iterator<Item = (i64, &NotificationId, NotificationRole)> {
        let roles = [
            (&self.told, NotificationRole::Notified),
            (&self.counted, NotificationRole::Counted),
            (&self.merged, NotificationRole::Merged),
        ];
        roles.into_iter().flat_map(|(rows, role)| rows.iter().map(move |(no, notice)| (*no, notice, role)))
    }
}

/// A group whose time to be told again has come.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatGroup {
    pub receiver: ReceiverName,
    pub key: String,
    /// What still fires in it, with the last message about each, and whether somebody acknowledged it; those that began first first.
    pub alerts: Vec<RepeatAlert>,
}

/// An alert of a [`RepeatGroup`].
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatAlert {
    pub alert: Alert,
    /// The last that was to be told of it, to whomever.
    pub last: Notification,
    /// Whether somebody acknowledged it.
    pub is_acknowledged: bool,
}

/// What is told again, and when the groups are told next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    pub notifications: Vec<Notification>,
    /// When each group is told again; none where it is not.
    pub groups: Vec<(ReceiverName, String, Option<Timestamp>)>,
}
