//! What a step of a cycle writes, and what the writing came to.

use crate::wire::{InvestorItem, ParseWarning, TokenItem};
use crate::{
    Alert, Change, Endpoint, FailureKind, FeedId, FeedState, Notification, Record, RecordKey, RuleId, Timestamp, TokenId,
};
use chrono::TimeDelta;

/// Everything that one step of a cycle writes, in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The time of the step.
    pub at: Timestamp,
    /// A row of the poll log for each request, also for those that failed.
    pub polls: Vec<PollEntry>,
    /// Tokens that are new or of which more or other things are known; those not named stay as they are. Whether they are listed
    /// is said by a complete list alone.
    pub tokens: Vec<TokenItem>,
    /// The token list was complete: tokens that neither `tokens` nor `listed` names are marked as unlisted (never deleted). One
    /// that names nobody at all proves nothing, and is passed over.
    pub token_list_complete: bool,
    /// Slugs that a complete token list names, beside `tokens`: so that a large list can be written in several commits, and
    /// unchanged items not at all.
    pub listed: Vec<TokenId>,
    /// Investors whose list item is new or changed.
    pub investors: Vec<InvestorItem>,
    /// New state of feeds, and what they change in the records.
    pub feeds: Vec<FeedUpdate>,
    /// What the diff found.
    pub changes: Vec<Change>,
    /// Alerts that are new or moved on: written whole, by id.
    pub alerts: Vec<Alert>,
    /// Notifications: each receiver gets one delivery. Ids that exist are left alone.
    pub notifications: Vec<Notification>,
    /// What a rule's `limit` left out: kept without receivers, and told to nobody.
    pub left_out: Vec<Notification>,
    /// Rules that held for something, with the last time.
    pub rule_matches: Vec<(RuleId, Timestamp)>,
    /// Up to when time-relative rules have been evaluated.
    pub evaluated_until: Option<Timestamp>,
    /// Scheduled jobs that ran, with the slot they ran for.
    pub jobs: Vec<(String, Timestamp)>,
}

/// What one answer changes in a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedUpdate {
    pub id: FeedId,
    pub state: FeedState,
    /// Records to write, under the key they have from now on. Records not named stay.
    pub put: Vec<Put>,
    /// Records that are gone for good: kept in history, taken out of the snapshot.
    pub removed: Vec<RecordKey>,
    /// Payload fields beside the records (`maxSupply`, totals, name), kept with the feed. None leaves them as they are.
    pub header: Option<serde_json::Value>,
}

/// A record to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    pub key: RecordKey,
    /// What the source says.
    pub record: Record,
    /// Whether schedule facts differ from the row in the database, or it is new: then a version is kept. Price drift is none.
    pub is_new_version: bool,
}

/// What came of a request, for the poll log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollEntryOutcome {
    /// A complete answer that differed from the last one.
    Fresh,
    /// A complete answer that did not.
    Unchanged,
    /// No answer, or one that could not be used.
    Failed(FailureKind),
}

impl PollEntryOutcome {
    /// Its word: `fresh`, `unchanged`, or that of the failure.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Unchanged => "unchanged",
            Self::Failed(kind) => kind.as_str(),
        }
    }
}

/// A row of the poll log.
#[derive(Clone, Debug, PartialEq)]
pub struct PollEntry {
    /// What was asked. The token is None for feeds that are not asked per token.
    pub endpoint: Endpoint,
    /// About whom.
    pub token: Option<TokenId>,
    /// When.
    pub at: Timestamp,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    pub outcome: PollEntryOutcome,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Requests that were sent (pages, retries).
    pub requests: u32,
    pub credits: u32,
    /// Bytes of the answers, decoded.
    pub bytes: u64,
    /// Version of the endpoint that answered.
    pub version: Option<u8>,
    pub records: u32,
    /// What failed, for people; no secret in it.
    pub error: Option<String>,
    pub oddities: Vec<ParseWarning>,
    /// How many there were in all.
    pub oddities_total: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommitResult {
    /// Deliveries that were put into the outbox.
    pub deliveries: u32,
    /// Notifications that were there already.
    pub known_notifications: u32,
    pub changes: u32,
    /// How long the transaction took.
    pub took: TimeDelta,
}

/// What pruning took out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Rows of the poll log.
    pub polls: u64,
    pub changes: u64,
    /// Replaced or removed versions of records.
    pub versions: u64,
    /// Silences that are over, groups of which nothing fires.
    pub logs: u64,
    /// Alerts that ended, with their notifications.
    pub alerts: u64,
    /// Notifications without an alert, such as tests.
    pub notifications: u64,
}
