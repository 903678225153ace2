//! Queries of commands and pages.

use std::fmt;

use super::outbox::DeliveryState;
use crate::{
    Alert, AlertId, AlertState, ChangeKind, DigestSelection, ReceiverName, Resource, RuleId, SumWindow, Timestamp, TokenId,
};

/// Selects the states of notifications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotificationFilter {
    pub alert: Option<AlertId>,
    pub receiver: Option<ReceiverName>,
    /// Decided at this time or later.
    pub since: Option<Timestamp>,
    /// Whether to select only suppressed and pending notifications.
    pub undelivered: bool,
    /// The maximum number of rows.
    pub limit: u32,
}

/// Selects upcoming unlocks, soonest first.
#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingFilter {
    /// `None` selects all tokens.
    pub tokens: Option<Vec<TokenId>>,
    /// Unlocks that have passed at this time are left out.
    pub from: Timestamp,
    /// Unlocks that start later are left out.
    pub until: Option<Timestamp>,
    /// The maximum number of rows.
    pub limit: u32,
}

/// A part of a list in the order of the commits, newest first, whose rows have numbers. A row of this number need not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListPosition {
    /// Rows after the row with this number in the list: older ones.
    pub after: Option<i64>,
    /// Rows before the row with this number in the list: newer ones. With a limit, the nearest ones.
    pub before: Option<i64>,
}

impl ListPosition {
    #[must_use]
    pub fn after(number: i64) -> Self {
        Self { after: Some(number), before: None }
    }

    #[must_use]
    pub fn before(number: i64) -> Self {
        Self { after: None, before: Some(number) }
    }

    /// Returns whether a limit selects the rows that are nearest to `before`, instead of the first ones of the list.
    #[must_use]
    pub fn is_from_before(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Returns the position of the rows that follow when rows up to this one are read, in the direction of the limit.
    #[must_use]
    pub fn past(self, number: i64) -> Self {
        if self.is_from_before() { Self::before(number) } else { Self { after: Some(number), ..self } }
    }
}

/// Selects changes, newest first: in the reverse order of their commits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeFilter {
    /// `None` selects all tokens.
    pub tokens: Option<Vec<TokenId>>,
    /// Empty selects all kinds.
    pub kinds: Vec<ChangeKind>,
    /// Empty selects all resources.
    pub resources: Vec<Resource>,
    /// Seen at this time or later.
    pub since: Option<Timestamp>,
    /// Seen before this time.
    pub until: Option<Timestamp>,
    /// By the numbers of changes.
    pub position: ListPosition,
    /// The number of rows to skip.
    pub offset: u32,
    /// The maximum number of rows.
    pub limit: u32,
}

/// Selects the unlocks of a digest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DigestAheadFilter {
    /// Unlocks that have passed at this time are left out.
    pub from: Timestamp,
    /// The period of the digest.
    pub window: SumWindow,
    /// Older prices are stale.
    pub stale_before: Timestamp,
    pub selection: DigestSelection,
}

/// The groups of `[watch.groups]` to which a list is narrowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupMembers {
    /// The names of the groups, for alerts about a group as a whole, which have no token.
    pub names: Vec<String>,
    /// The known watched tokens that are in any of the groups.
    pub tokens: Vec<TokenId>,
}

/// Selects alerts: most recently updated first, or newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertFilter {
    /// Empty selects all states.
    pub states: Vec<AlertState>,
    /// The rule's id or `alert` name.
    pub rule: Option<RuleId>,
    pub token: Option<TokenId>,
    /// Alerts about tokens of the groups, or about one of the groups as a whole.
    pub group: Option<GroupMembers>,
    /// Empty selects all ids.
    pub ids: Vec<AlertId>,
    /// The value of the label `severity`.
    pub severity: Option<String>,
    /// Whether to select acknowledged alerts only, or unacknowledged ones only.
    pub acknowledged: Option<bool>,
    /// Alerts that are assigned to this person.
    pub assignee: Option<String>,
    /// Alerts with a notification for this receiver.
    pub receiver: Option<ReceiverName>,
    /// Updated at this time or later.
    pub since: Option<Timestamp>,
    /// Updated before this time.
    pub until: Option<Timestamp>,
    /// Alerts after this position. Only for lists by the time of the update.
    pub after: Option<AlertCursor>,
    /// The maximum number of rows.
    pub limit: u32,
}

/// A position in the list of alerts: the last alert before it, with its update time. Updates of other alerts do not shift it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertCursor {
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    pub id: AlertId,
}

impl AlertCursor {
    pub fn of(alert: &Alert) -> Self {
        Self { updated_ms: alert.updated_at.timestamp_millis(), id: alert.id.clone() }
    }

    /// Parses the form that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (updated_ms, id) = text.split_once('.')?;
        Some(Self { updated_ms: updated_ms.parse().ok()?, id: AlertId::from(id) })
    }
}

impl fmt::Display for AlertCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_ms, self.id)
    }
}

/// An alert with its number in the order of the commits that began alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedAlert {
    pub number: i64,
    pub alert: Alert,
}

/// One page of a list, and the number of all rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed<T> {
    pub rows: Vec<T>,
    /// The number of rows that match the filter, on all pages.
    pub total: u64,
    /// Whether the size limit of a list left out rows that the filter allows on this page.
    pub is_cut: bool,
}

/// Selects deliveries, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutboxFilter {
    pub receiver: Option<ReceiverName>,
    /// Empty selects all states.
    pub states: Vec<DeliveryState>,
    /// Queued at this time or later.
    pub since: Option<Timestamp>,
    /// Queued before this time.
    pub until: Option<Timestamp>,
    /// By the numbers of deliveries.
    pub position: ListPosition,
    /// The maximum number of rows.
    pub limit: u32,
}
