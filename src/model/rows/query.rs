//! What commands and pages ask for.

use std::fmt;

use super::outbox::DeliveryState;
use crate::{Alert, AlertId, AlertState, ChangeKind, DeliveryId, ReceiverName, Resource, RuleId, SumWindow, Timestamp, TokenId};

/// Which statuses are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotificationFilter {
    pub alert: Option<AlertId>,
    pub receiver: Option<ReceiverName>,
    /// Decided at this time or later.
    pub since: Option<Timestamp>,
    /// Only what was held back, or waits.
    pub undelivered: bool,
    /// At most so many.
    pub limit: u32,
}

/// Which unlocks `upcoming` shows: those that have not passed at `from`, the next first.
#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingFilter {
    /// Of these tokens; none: of all.
    pub tokens: Option<Vec<TokenId>>,
    /// The time from which on.
    pub from: Timestamp,
    /// Those that begin at this time or before; none: all.
    pub until: Option<Timestamp>,
    /// At most so many.
    pub limit: u32,
}

/// Which changes `changes` shows, the latest first. None and an empty value let everything in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeFilter {
    pub token: Option<TokenId>,
    pub kind: Option<ChangeKind>,
    /// Of these records.
    pub resource: Option<Resource>,
    /// Seen at this time or later.
    pub since: Option<Timestamp>,
    /// Seen before this time.
    pub until: Option<Timestamp>,
    /// Those that were seen before this one, by its number.
    pub after: Option<i64>,
    /// Rows before the first that is asked for.
    pub offset: u32,
    /// At most so many.
    pub limit: u32,
}

/// Which unlocks a digest tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestAheadFilter {
    /// What has passed then is left out.
    pub from: Timestamp,
    /// The days of the digest.
    pub window: SumWindow,
}

/// Which alerts `alerts` shows, those that moved last first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertFilter {
    /// In one of these states; empty: in any.
    pub states: Vec<AlertState>,
    /// Of the rule of this id or `alert` name.
    pub rule: Option<RuleId>,
    pub token: Option<TokenId>,
    /// With these ids; empty: with any.
    pub ids: Vec<AlertId>,
    /// With this label `severity`.
    pub severity: Option<String>,
    /// Only what is acknowledged, or only what is not.
    pub acknowledged: Option<bool>,
    /// Of which something was to be told to this receiver.
    pub receiver: Option<ReceiverName>,
    /// Moved at this time or later.
    pub since: Option<Timestamp>,
    /// Moved before this time.
    pub until: Option<Timestamp>,
    /// Those that come after this place.
    pub after: Option<AlertPlace>,
    /// At most so many.
    pub limit: u32,
}

/// A place in the list of alerts, which what moves meanwhile does not shift: an alert, by when it moved last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertPlace {
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    pub id: AlertId,
}

impl AlertPlace {
    pub fn of(alert: &Alert) -> Self {
        Self { updated_ms: alert.updated_at.timestamp_millis(), id: alert.id.clone() }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (updated_ms, id) = text.split_once('.')?;
        Some(Self { updated_ms: updated_ms.parse().ok()?, id: AlertId::from(id) })
    }
}

impl fmt::Display for AlertPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_ms, self.id)
    }
}

/// Rows of a list from a place on, and how many the whole list has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed<T> {
    pub rows: Vec<T>,
    /// That pass the filter, wherever the list was begun.
    pub total: u64,
}

/// Which deliveries `outbox list` shows, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutboxFilter {
    pub receiver: Option<ReceiverName>,
    /// In one of these states; empty: in any.
    pub states: Vec<DeliveryState>,
    /// Queued at this time or later.
    pub since: Option<Timestamp>,
    /// Queued before this time.
    pub until: Option<Timestamp>,
    /// Those that are older than this one.
    pub after: Option<DeliveryId>,
    /// At most so many.
    pub limit: u32,
}
