//! The event log: everything that happened, numbered without gaps in the order of the commits.

use serde::{Deserialize, Serialize};

use super::outbox::DeliveryState;
use super::replay::Replay;
use super::snapshot::ChangeRow;
use crate::{
    Alert, AlertId, AlertState, NotificationId, NotificationKind, ReceiverName, Resolution, RuleId, SOURCE_TROUBLE, Silence,
    Timestamp, TokenId,
};

words! {
    /// The type of an event, which decides the form of its body.
    EventType {
        /// The source changed a record.
        Change = "change",
        /// The condition of a rule became true, and `for` is running.
        AlertPending = "alert.pending",
        AlertFiring = "alert.firing",
        AlertResolved = "alert.resolved",
        /// A rule matched something that happens once.
        AlertEvent = "alert.event",
        /// A problem of the source, a receiver, or the daemon began.
        IncidentFiring = "incident.firing",
        IncidentResolved = "incident.resolved",
        /// A notification was decided.
        Notification = "notification",
        /// A receiver accepted a delivery.
        DeliveryDelivered = "delivery.delivered",
        /// A delivery became a dead letter.
        DeliveryDead = "delivery.dead",
        /// A user dropped a delivery.
        DeliveryDropped = "delivery.dropped",
        /// A user made a delivery due again.
        DeliveryRetried = "delivery.retried",
        /// A user requested to send deliveries again.
        ReplayRequested = "replay.requested",
        AcknowledgementAdded = "acknowledgement.added",
        AcknowledgementRemoved = "acknowledgement.removed",
        /// A user added a note to an alert.
        NoteAdded = "note.added",
        /// A user assigned an alert to a person, or removed its assignee.
        AlertAssigned = "alert.assigned",
        SilenceCreated = "silence.created",
        /// A user changed the matchers, texts, or times of a silence.
        SilenceUpdated = "silence.updated",
        /// A user ended a silence before its end.
        SilenceExpired = "silence.expired",
        /// A user accepted the held responses of a token.
        ResponseAccepted = "response.accepted",
        /// A recipient or an operator stopped the digests to an address.
        DigestStopped = "digest.stopped",
        DigestResumed = "digest.resumed",
        /// A user requested a test message to a receiver.
        TestRequested = "test.requested",
        /// A user saved a rule on the pages.
        RuleSaved = "rule.saved",
        AccessKeyAdded = "access-key.added",
        AccessKeyRevoked = "access-key.revoked",
        /// A user requested a reload by the API.
        ReloadRequested = "reload.requested",
        ReloadSucceeded = "reload.succeeded",
        ReloadFailed = "reload.failed",
    }
}

impl EventType {
    /// The types of actions of users, which the audit log records.
    pub const OF_USERS: [Self; 18] = [
        Self::AcknowledgementAdded,
        Self::AcknowledgementRemoved,
        Self::NoteAdded,
        Self::AlertAssigned,
        Self::SilenceCreated,
        Self::SilenceUpdated,
        Self::SilenceExpired,
        Self::DeliveryRetried,
        Self::DeliveryDropped,
        Self::ReplayRequested,
        Self::TestRequested,
        Self::ResponseAccepted,
        Self::DigestStopped,
        Self::DigestResumed,
        Self::RuleSaved,
        Self::ReloadRequested,
        Self::AccessKeyAdded,
        Self::AccessKeyRevoked,
    ];

    /// The words of [`Self::OF_USERS`], in the same order.
    pub const WORDS_OF_USERS: [&'static str; Self::OF_USERS.len()] = {
        let mut words = [""; Self::OF_USERS.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = Self::OF_USERS[at].as_str();
            at += 1;
        }
        words
    };

    /// Returns the type of the transition of an alert to `state`.
    #[must_use]
    pub fn of_alert(rule: &RuleId, state: AlertState) -> Self {
        let is_incident = rule.as_str() == SOURCE_TROUBLE;
        match state {
            AlertState::Firing if is_incident => Self::IncidentFiring,
            AlertState::Resolved if is_incident => Self::IncidentResolved,
            AlertState::Pending => Self::AlertPending,
            AlertState::Firing => Self::AlertFiring,
            AlertState::Resolved => Self::AlertResolved,
            AlertState::Event => Self::AlertEvent,
        }
    }

    /// Returns the type of the end of a delivery. `None` if it has not ended.
    #[must_use]
    pub const fn of_delivery(state: DeliveryState) -> Option<Self> {
        match state {
            DeliveryState::Delivered => Some(Self::DeliveryDelivered),
            DeliveryState::Dead => Some(Self::DeliveryDead),
            DeliveryState::Dropped => Some(Self::DeliveryDropped),
            DeliveryState::Due | DeliveryState::Retrying => None,
        }
    }
}

/// An event as the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedEvent {
    /// The number of the event: 1 for the first, then without gaps.
    #[serde(rename = "id")]
    pub seq: i64,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub at: Timestamp,
    pub token: Option<TokenId>,
    pub rule: Option<RuleId>,
    /// `None` if the record of the event was deleted since, or is damaged.
    pub body: Option<EventBody>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventBody {
    Change(Box<ChangeRow>),
    /// Facts of another record at the time of the event: one of the structs below as JSON.
    Facts(serde_json::Value),
}

/// The body of the events of an alert or an incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedAlert {
    pub alert: AlertId,
    pub name: String,
    pub subject: String,
    pub state: AlertState,
    pub resolution: Option<Resolution>,
    /// The label `severity`.
    pub severity: Option<String>,
}

impl LoggedAlert {
    #[must_use]
    pub fn of(alert: &Alert) -> Self {
        Self {
            alert: alert.id.clone(),
            name: alert.name.clone(),
            subject: alert.subject.clone(),
            state: alert.state,
            resolution: alert.resolution,
            severity: alert.labels.get("severity").cloned(),
        }
    }
}

/// The body of the event of a notification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidedNotification {
    pub notification: NotificationId,
    pub alert: AlertId,
    pub kind: NotificationKind,
}

/// The body of the events of a delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedDelivery {
    pub delivery: i64,
    pub webhook_id: String,
    pub receiver: ReceiverName,
    pub state: DeliveryState,
    /// `None` unless it was sent again on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// The body of the events of an acknowledgement. Author and comment are `None` if it was removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AcknowledgedAlert {
    pub alert: AlertId,
    pub author: Option<String>,
    pub comment: Option<String>,
}

/// The body of the events of a silence, with its end at the time of the event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedSilence {
    pub silence: String,
    pub author: String,
    pub comment: String,
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
}

impl LoggedSilence {
    #[must_use]
    pub fn of(silence: &Silence) -> Self {
        Self {
            silence: silence.id.clone(),
            author: silence.author.clone(),
            comment: silence.comment.clone(),
            starts_at: silence.starts_at,
            ends_at: silence.ends_at,
        }
    }
}

/// The body of the other events of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedAction {
    /// The receiver, rule, access key, or token that the action is about. Empty for a reload.
    pub subject: String,
    /// The address whose digests were stopped, the file of a rule, or the role of an access key. `None` for other actions.
    pub detail: Option<String>,
}

impl LoggedAction {
    pub fn new(subject: impl Into<String>, detail: Option<String>) -> Self {
        Self { subject: subject.into(), detail }
    }
}

/// The body of the events of a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedReload {
    /// The number of active rules. `None` if the reload failed.
    pub rules: Option<u32>,
    /// The first errors, one per line. `None` if the reload succeeded.
    pub problem: Option<String>,
}

/// Selects events, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLogFilter {
    /// Starts with the event after this number. `None` starts with the oldest one.
    pub after: Option<i64>,
    /// Empty selects all types.
    pub kinds: Vec<EventType>,
    /// The maximum number of events.
    pub limit: u32,
}

/// The events that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventLogRange {
    /// The number of the oldest event, or 1 if there never was one.
    pub first: i64,
    /// The number of the newest event, or 0 if there never was one.
    pub last: i64,
}

/// The reason why a cursor cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventCursorProblem {
    /// Events after the cursor were deleted.
    Expired,
    /// The log has no event with this number: the cursor is of another database, or of this one before a backup was restored.
    Unknown,
}

impl EventLogRange {
    /// Checks that all events after `after` are kept.
    ///
    /// # Errors
    ///
    /// Fails if some of them were deleted, or if the log ends before the cursor.
    pub fn check(self, after: i64) -> Result<(), EventCursorProblem> {
        match after {
            after if after > self.last => Err(EventCursorProblem::Unknown),
            after if after < self.first - 1 => Err(EventCursorProblem::Expired),
            _ => Ok(()),
        }
    }
}

/// A part of the event log.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLogPage {
    pub range: EventLogRange,
    pub events: Vec<LoggedEvent>,
    /// The cursor of the next page. It can be later than the last event of this page, because the filter left out events.
    pub next: i64,
}
