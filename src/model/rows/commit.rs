//! What one step of a cycle stores, and the result.

use crate::wire::{InvestorItem, ParseWarning, TokenItem};
use crate::{
    Alert, Change, Endpoint, FailureKind, FeedId, FeedState, HeldEvent, Notification, NotificationId, Record, RecordKey, RuleId,
    Silence, Timestamp, TokenId,
};
use chrono::TimeDelta;

/// All that one step of a cycle stores in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub at: Timestamp,
    /// The time from which new notifications wait for the dispatcher. Before `at` if the clock of an earlier active instance was ahead.
    /// `None` for `at`.
    pub waits_from: Option<Timestamp>,
    /// One row of the poll log for each poll, including failed ones.
    pub polls: Vec<PollEntry>,
    /// Tokens that are new or changed; all others stay unchanged. Only a complete list can change whether a token is listed.
    pub tokens: Vec<TokenItem>,
    /// Whether the token list was complete. Tokens in neither `tokens` nor `listed` are then marked as unlisted, never deleted. An
    /// empty list is ignored, because it proves nothing.
    pub token_list_complete: bool,
    /// Slugs of a complete token list, in addition to `tokens`. Lets a large list be stored in several commits, without unchanged
    /// items.
    pub listed: Vec<TokenId>,
    /// Investors whose list item is new or changed.
    pub investors: Vec<InvestorItem>,
    /// The new state of feeds, and the changes to their records.
    pub feeds: Vec<FeedUpdate>,
    /// Changes that the diff found.
    pub changes: Vec<Change>,
    /// Alerts that are new or changed, written by id.
    pub alerts: Vec<Alert>,
    /// Notifications. Each receiver gets one delivery. Existing ids are skipped.
    pub notifications: Vec<Notification>,
    /// Notifications that a rule's `limit` left out. They are stored without receivers and never sent.
    pub left_out: Vec<Notification>,
    /// Silences that a rename adds for the new slug. Existing ids are skipped.
    pub silences: Vec<Silence>,
    /// Events that wait for the end of `cycle`. Those with a known notification are skipped.
    pub held: Vec<HeldEvent>,
    /// The key of the cycle that decides about `held`.
    pub cycle: String,
    /// Held events that this commit notifies or leaves out, by the id of the notification.
    pub decided: Vec<NotificationId>,
    /// Rules that matched, with the latest time.
    pub rule_matches: Vec<(RuleId, Timestamp)>,
    /// The instant up to which time-dependent rules were evaluated.
    pub evaluated_until: Option<Timestamp>,
    /// The time at which the step was evaluated. The store retains the latest one. `None` if nothing was evaluated.
    pub evaluated_at: Option<Timestamp>,
    /// Scheduled jobs that ran, with their slots.
    pub jobs: Vec<(String, Timestamp)>,
}

/// The changes of one response to a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedUpdate {
    pub id: FeedId,
    pub state: FeedState,
    /// Records to write under their new keys. All others stay unchanged.
    pub put: Vec<Put>,
    /// Records whose removal is proven. They leave the snapshot and stay in the history.
    pub removed: Vec<RecordKey>,
    /// Response fields other than records (`maxSupply`, totals, name), stored with the feed. `None` leaves them unchanged.
    pub header: Option<serde_json::Value>,
}

/// A record to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    pub key: RecordKey,
    pub record: Record,
    /// Whether schedule facts are new or differ from the stored record. Then a version is kept in the history. A change of prices
    /// alone is not a new version.
    pub is_new_version: bool,
}

/// The outcome of a poll, for the poll log and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollEntryOutcome {
    /// A complete response that differs from the last one.
    Fresh,
    /// A complete response that equals the last one.
    Unchanged,
    Failed(FailureKind),
}

impl PollEntryOutcome {
    /// Returns `fresh`, `unchanged`, or the word of the failure.
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
    pub endpoint: Endpoint,
    /// `None` for feeds that are not polled per token.
    pub token: Option<TokenId>,
    pub at: Timestamp,
    /// The duration in milliseconds.
    pub took_ms: u64,
    pub outcome: PollEntryOutcome,
    /// The HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Requests that were sent, including pages and retries.
    pub requests: u32,
    pub credits: u32,
    /// Decoded bytes of all responses.
    pub bytes: u64,
    /// The version of the endpoint that responded.
    pub version: Option<u8>,
    pub records: u32,
    /// The error message. Contains no secrets.
    pub error: Option<String>,
    pub parse_warnings: Vec<ParseWarning>,
    /// The number of all parse warnings.
    pub parse_warnings_total: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommitResult {
    pub deliveries: u32,
    /// Notifications that existed already.
    pub known_notifications: u32,
    pub changes: u32,
    /// The duration of the transaction.
    pub took: TimeDelta,
}

/// The rows that pruning deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    pub polls: u64,
    pub changes: u64,
    /// Replaced or removed versions of records.
    pub versions: u64,
    /// Ended silences, and groups without firing alerts.
    pub logs: u64,
    /// Events of the event log.
    pub events: u64,
    /// Resolved alerts with their notifications.
    pub alerts: u64,
    /// Notifications without an alert, such as tests.
    pub notifications: u64,
}
