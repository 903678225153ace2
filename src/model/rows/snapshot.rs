//! What is known of tokens and their records.

use serde::{Deserialize, Serialize};

use crate::{Alert, Change, Endpoint, FeedState, Record, RecordKey, Resource, Timestamp, Token, TokenId, Tracked};

/// A token with all that is known of it: what a diff compares and rules see.
#[derive(Clone, Debug)]
pub struct TokenSnapshot {
    /// The token; its groups are filled by the caller, who has the config.
    pub token: Token,
    pub feeds: Vec<(Endpoint, FeedState)>,
    /// `header` of its feeds.
    pub headers: Vec<(Endpoint, serde_json::Value)>,
    /// Its records of the resources that were asked for, in the order of time and key.
    pub records: Vec<Tracked>,
    /// Its alerts that are pending or firing.
    pub alerts: Vec<Alert>,
}

impl TokenSnapshot {
    /// A token of which nothing else is known.
    pub fn of(token: Token) -> Self {
        Self { token, feeds: Vec::new(), headers: Vec::new(), records: Vec::new(), alerts: Vec::new() }
    }

    pub fn feed(&self, endpoint: Endpoint) -> Option<&FeedState> {
        self.feeds.iter().find(|(of, _)| *of == endpoint).map(|(_, state)| state)
    }

    pub fn records_of(&self, resource: Resource) -> impl Iterator<Item = &Tracked> {
        self.records.iter().filter(move |tracked| tracked.record.resource() == resource)
    }
}

/// Which records of a resource a look at windows wants: those that begin in a span of time, and beside them the latest one, and
/// unlocks with a linear segment, which may have begun long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// Of what.
    pub resource: Resource,
    pub since: Timestamp,
    /// Up to then.
    pub until: Timestamp,
}

/// What the windows of one token are summed over.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRecords {
    pub feeds: Vec<(Endpoint, FeedState)>,
    /// Its records, as far as they were asked for.
    pub records: Vec<Tracked>,
}

/// What planning a cycle needs to know of a token: small, since there may be ten thousand.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanToken {
    /// Slug.
    pub id: TokenId,
    /// Whether the last complete token list names it.
    pub listed: bool,
    /// Its mark of change in the token list.
    pub last_updated: Option<Timestamp>,
    /// Flag of the token list; none where unknown.
    pub has_burn: Option<bool>,
    /// Flag of the token list; none where unknown.
    pub has_buyback: Option<bool>,
    /// Start of its next unlock event after now, if one is known.
    pub next_event: Option<Timestamp>,
    /// What of its market cap that event's cliff is, percent; none where unknown.
    pub next_size: Option<f64>,
    /// State of the feed that is planned.
    pub feed: Option<FeedState>,
    /// When linear segments were last read beside the cliffs of its schedule, or the source had no version that shows them.
    pub segments: Option<SegmentsRead>,
}

/// When, and for which mark of its token, the linear segments of a schedule were read beside its cliffs. Kept with the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SegmentsRead {
    pub at: Timestamp,
    /// The token's `lastUpdatedDate` then; none where the list has none.
    pub mark: Option<Timestamp>,
}

impl PlanToken {
    /// A token of which nothing is known but its slug.
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
        }
    }
}

/// A version of any record of a token, for replaying what was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRow {
    /// What it is.
    pub resource: Resource,
    pub key: RecordKey,
    /// When it was seen.
    pub at: Timestamp,
    /// The record; none where this version is its removal.
    pub record: Option<Record>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingRow {
    /// Of which token; its groups are filled by the caller, who has the config.
    pub token: Token,
    pub tracked: Tracked,
    /// When the token's schedule was last read whole.
    pub read_at: Option<Timestamp>,
}

/// An unlock with what those who subscribed to it must know.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarRow {
    pub row: UpcomingRow,
    /// When its schedule facts were last another; of one that was removed, when that was.
    pub modified_at: Timestamp,
    /// Whether they ever were.
    pub was_modified: bool,
    /// Whether it is gone from the schedule: then it is shown as it last was.
    pub is_removed: bool,
}

/// A change with the time of the poll that brought it, for `changes`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    pub id: i64,
    /// When it was seen.
    pub at: Timestamp,
    pub token: TokenId,
    /// Its ticker, where known.
    pub symbol: Option<String>,
    /// To what.
    pub resource: Resource,
    pub key: Option<RecordKey>,
    pub change: Change,
}
