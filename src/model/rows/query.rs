//! What commands and pages ask for.

use super::outbox::DeliveryState;
use crate::{AlertId, AlertState, ChangeKind, ReceiverName, Resource, RuleId, Timestamp, TokenId};

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
    /// Rows before the first that is asked for.
    pub offset: u32,
    /// At most so many.
    pub limit: u32,
}

/// Which alerts `alerts` shows, those that moved last first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertFilter {
    /// In one of these states; empty: in any.
    pub states: Vec<AlertState>,
    /// Of the rule of this id or `alert` name.
    pub rule: Option<RuleId>,
    pub token: Option<TokenId>,
    /// At most so many.
    pub limit: u32,
}

/// Which deliveries `outbox list` shows, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutboxFilter {
    pub receiver: Option<ReceiverName>,
    /// In one of these states; empty: in any.
    pub states: Vec<DeliveryState>,
    /// At most so many.
    pub limit: u32,
}
