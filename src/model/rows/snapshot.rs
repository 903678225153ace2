//! The known facts about tokens and their records.

use serde::Serialize;

use crate::{
    Alert, Change, Endpoint, FeedState, ListedMethod, Record, RecordKey, ReferencePrice, Resource, SegmentsRead, Timestamp,
    Token, TokenId, Tracked, VersionAbsence,
};

/// The known facts about a token: the input of the diff and of rules.
#[derive(Clone, Debug)]
pub struct TokenSnapshot {
    /// The caller fills in its groups from the config.
    pub token: Token,
    pub feeds: Vec<(Endpoint, FeedState)>,
    /// The `header` of its feeds.
    pub headers: Vec<(Endpoint, serde_json::Value)>,
    /// Records of the requested resources, by time and key.
    pub records: Vec<Tracked>,
    /// Pending and firing alerts.
    pub alerts: Vec<Alert>,
}

impl TokenSnapshot {
    /// Returns a snapshot without facts.
    pub fn of(token: Token) -> Self {
        Self { token, feeds: Vec::new(), headers: Vec::new(), records: Vec::new(), alerts: Vec::new() }
    }

    pub fn feed(&self, endpoint: Endpoint) -> Option<&FeedState> {
        self.feeds.iter().find(|(of, _)| *of == endpoint).map(|(_, state)| state)
    }

    /// Returns the header of the feed of unlock events.
    pub fn schedule_header(&self) -> Option<&serde_json::Value> {
        self.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::UnlockEvents).map(|(_, header)| header)
    }

    pub fn records_of(&self, resource: Resource) -> impl Iterator<Item = &Tracked> {
        self.records.iter().filter(move |tracked| tracked.record.resource() == resource)
    }
}

/// Selects the records of a resource for aggregates: records that start in a period, the latest record of all, and unlocks with a
/// linear part, which can start long before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    pub resource: Resource,
    pub since: Timestamp,
    /// Inclusive.
    pub until: Timestamp,
}

/// The records of one token for aggregates.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRecords {
    pub feeds: Vec<(Endpoint, FeedState)>,
    pub records: Vec<Tracked>,
    /// The header of the feed of unlock events.
    pub schedule_header: Option<serde_json::Value>,
    /// The latest price in the whole schedule.
    pub price: Option<ReferencePrice>,
}

/// The facts about a token that the planner needs. Kept small, because there can be ten thousand.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanToken {
    pub id: TokenId,
    /// Whether the last complete token list includes it.
    pub listed: bool,
    /// `lastUpdatedDate` of the token list.
    pub last_updated: Option<Timestamp>,
    /// The flag of the token list; `None` if unknown.
    pub has_burn: Option<bool>,
    /// The flag of the token list; `None` if unknown.
    pub has_buyback: Option<bool>,
    /// The method by which the source lists the token; `None` if unknown.
    pub listed_method: Option<ListedMethod>,
    /// The start of the next known unlock event.
    pub next_event: Option<Timestamp>,
    /// The cliff unlock of that event in percent of market cap; `None` if unknown.
    pub next_size: Option<f64>,
    /// The state of the planned feed.
    pub feed: Option<FeedState>,
    /// The last read of linear unlocks in addition to the schedule.
    pub segments: Option<SegmentsRead>,
    /// `None` if nothing is stored.
    pub linear: Option<Box<LinearReads>>,
}

/// The tokens that may be polled.
#[derive(Clone, Debug, Default)]
pub struct PlanTokens {
    pub tokens: Vec<PlanToken>,
    /// The tokens that cannot be polled, because a stored row of them is damaged.
    pub unreadable: Vec<UnreadableToken>,
}

/// A token with a damaged row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableToken {
    pub id: TokenId,
    /// The damaged row, and why it cannot be read.
    pub error: String,
}

/// Earlier reads that completed the linear unlocks of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinearReads {
    /// The last time that the source did not have the token in the version with all linear unlocks.
    pub rate_changes_absent: Option<VersionAbsence>,
    /// Whether daily emission ahead completes the linear unlocks. `None` if unknown.
    pub needs_ahead: Option<bool>,
    /// The last read of daily emission ahead.
    pub ahead_at: Option<Timestamp>,
    /// The last time that the source had no daily emission of the token.
    pub ahead_absent: Option<Timestamp>,
}

impl PlanToken {
    /// Returns a token of which only the slug is known.
    pub fn unknown(id: TokenId) -> Self {
        Self {
            id,
            listed: false,
            last_updated: None,
            has_burn: None,
            has_buyback: None,
            next_event: None,
            next_size: None,
            feed: None,
            segments: None,
            linear: None,
            listed_method: None,
        }
    }
}

/// A version of a record, for replays of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRow {
    pub resource: Resource,
    pub key: RecordKey,
    /// The time at which we saw it.
    pub at: Timestamp,
    /// `None` if this version is the removal.
    pub record: Option<Record>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingRow {
    /// The caller fills in its groups from the config.
    pub token: Token,
    pub tracked: Tracked,
    /// The time at which the token's schedule was last read completely.
    pub read_at: Option<Timestamp>,
}

/// An unlock for calendars and feeds, with its last modification.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarRow {
    pub row: UpcomingRow,
    /// The time of the last change of schedule facts, or of the removal.
    pub modified_at: Timestamp,
    /// Whether the schedule facts ever changed.
    pub was_modified: bool,
    /// Whether the unlock was removed. `record` is then its last version.
    pub is_removed: bool,
}

/// A change with the time of its poll, for `changes`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    pub id: i64,
    /// The time at which we saw it.
    pub at: Timestamp,
    pub token: TokenId,
    /// The token's symbol, if known.
    pub symbol: Option<String>,
    pub resource: Resource,
    pub key: Option<RecordKey>,
    pub change: Change,
}
