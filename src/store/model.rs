//! What goes into the database and comes out of it, in the words of the domain. No SQL here.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    alert::{Alert, AlertState, Labels, Notice},
    change::{Change, ChangeKind},
    silence::{Ack, Silence},
    supply::{
        AlertId, ContentHash, DeliveryId, Endpoint, FeedId, FeedState, NoticeId, ReceiverName, Record, RecordKey, Resource,
        RuleId, Timestamp, Token, TokenId, Tracked,
    },
    wire::{InvestorItem, Oddity, TokenItem},
};

/// Everything that one step of a cycle writes, in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The time of the step.
    pub at: Timestamp,
    /// A row of the poll log for each request, also for those that failed.
    pub polls: Vec<PollEntry>,
    /// Quota as last reported or counted.
    pub credit: Option<CreditState>,
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
    /// What the diff told.
    pub changes: Vec<Change>,
    /// Alerts that are new or moved on: written whole, by id.
    pub alerts: Vec<Alert>,
    /// What is to be told: each receiver gets one delivery. Ids that exist are left alone.
    pub notices: Vec<Notice>,
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
    /// Which feed.
    pub id: FeedId,
    /// Its state from now on.
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
    /// Its key from now on.
    pub key: RecordKey,
    /// What the source says.
    pub record: Record,
    /// Whether schedule facts differ from the row in the database, or it is new: then a version is kept. Price drift is none.
    pub is_new_version: bool,
}

/// A row of the poll log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollEntry {
    /// What was asked. The token is None for feeds that are not asked per token.
    pub endpoint: Endpoint,
    /// About whom.
    pub token: Option<TokenId>,
    /// When.
    pub at: Timestamp,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// `fresh`, `unchanged`, or the word of a failure.
    pub outcome: String,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Requests that were sent (pages, retries).
    pub requests: u32,
    /// Credits that it cost.
    pub credits: u32,
    /// Bytes of the answers, decoded.
    pub bytes: u64,
    /// Version of the endpoint that answered.
    pub version: Option<u8>,
    /// Records in the answer.
    pub records: u32,
    /// What failed, for people; no secret in it.
    pub error: Option<String>,
    /// What was odd.
    pub oddities: Vec<Oddity>,
    /// How many were odd in all.
    pub oddities_total: u32,
}

/// Quota of the API's current period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreditState {
    /// As the API last reported; none where it never did.
    pub used: Option<u64>,
    /// As the API last reported.
    pub limit: Option<u64>,
    /// When the period ends, as the API last reported; else the first of the next month.
    pub reset_at: Option<Timestamp>,
    /// When the API last reported.
    pub reported_at: Option<Timestamp>,
    /// What this program spent in the period.
    pub spent: u64,
    /// When the period in which `spent` counts began.
    pub period_start: Option<Timestamp>,
    /// What this program spent on the UTC day of `day`.
    pub spent_today: u64,
    /// The UTC day of `spent_today`, as its midnight.
    pub day: Option<Timestamp>,
    /// The API said that nothing is left (429 while the credit was spent), until `reset_at`.
    pub exhausted: bool,
}

/// A token with all that is known of it: what a diff compares and rules see.
#[derive(Clone, Debug)]
pub struct TokenSnapshot {
    /// The token; its groups are filled by the caller, who has the config.
    pub token: Token,
    /// State of its feeds.
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
    #[must_use]
    pub fn of(token: Token) -> Self {
        Self { token, feeds: Vec::new(), headers: Vec::new(), records: Vec::new(), alerts: Vec::new() }
    }

    /// State of one of its feeds.
    #[must_use]
    pub fn feed(&self, endpoint: Endpoint) -> Option<&FeedState> {
        self.feeds.iter().find(|(of, _)| *of == endpoint).map(|(_, state)| state)
    }

    /// Its records of one resource.
    pub fn records_of(&self, resource: Resource) -> impl Iterator<Item = &Tracked> {
        self.records.iter().filter(move |tracked| tracked.record.resource() == resource)
    }
}

/// Which records of a resource a look at windows wants: those that begin in a span of time, and beside them the latest one, and
/// unlocks with a linear segment, which may have begun long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Of what.
    pub resource: Resource,
    /// From then on.
    pub since: Timestamp,
    /// Up to then.
    pub until: Timestamp,
}

/// What the windows of one token are summed over.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries {
    /// State of its feeds.
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
    /// State of the feed that is planned.
    pub feed: Option<FeedState>,
}

impl PlanToken {
    /// A token of which nothing is known but its slug.
    #[must_use]
    pub fn unknown(id: TokenId) -> Self {
        Self { id, listed: false, last_updated: None, has_burn: None, has_buyback: None, next_event: None, feed: None }
    }
}

/// An alert in the outbox, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDelivery {
    /// Row of the outbox.
    pub id: DeliveryId,
    /// `msg_…`: the same over all attempts.
    pub webhook_id: String,
    /// To whom.
    pub receiver: ReceiverName,
    /// Attempts so far, all of them.
    pub attempts: u32,
    /// Attempts since the retry schedule last began: those before a retry by hand do not count.
    pub tries: u32,
    /// When it was put into the outbox.
    pub created_at: Timestamp,
    /// When it was first due; a retry by hand begins anew.
    pub due_at: Timestamp,
    /// What it tells, in the order in which it was decided. One notice, unless several were grouped.
    pub notices: Vec<Notice>,
    /// What it stands for beside its notices.
    pub bundle: Bundle,
}

/// What a delivery stands for beside its notices: the group that it tells of, and what it counts rather than tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bundle {
    /// How it came to be.
    pub shape: Shape,
    /// The group, such as `{}/{severity="critical"}:{token="arbitrum"}`: the same for all its messages. None where the alert is told
    /// by itself.
    pub group_key: Option<String>,
    /// The labels by which the group was made.
    pub group_labels: Labels,
    /// Alerts of the group that were told before and still fire: counted, not repeated.
    pub told_before: u32,
    /// Alerts that the message stands for beyond its notices: recorded and counted, not told one by one.
    pub truncated: u32,
    /// A line to stand above the alerts, plain text: why many were put into one message.
    pub note: Option<String>,
}

/// How a delivery came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// One notice, told by itself.
    #[default]
    Single,
    /// What is new in a group.
    Group,
    /// Many alerts at once that no route groups, put together by rule.
    Fold,
    /// All that came above the messages which a receiver gets in an hour.
    Summary,
    /// The digest of a receiver.
    Digest,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 5] = [Shape::Single, Shape::Group, Shape::Fold, Shape::Summary, Shape::Digest];

    /// The shape of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.as_str() == word)
    }

    /// The word in the database and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Shape::Single => "single",
            Shape::Group => "group",
            Shape::Fold => "fold",
            Shape::Summary => "summary",
            Shape::Digest => "digest",
        }
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// Never tried.
    Due,
    /// Tried, to be tried again.
    Retrying,
    /// Accepted by the receiver.
    Delivered,
    /// Given up, and announced.
    Dead,
    /// Taken out by hand.
    Dropped,
}

impl DeliveryState {
    /// All of them.
    pub const ALL: [DeliveryState; 5] =
        [DeliveryState::Due, DeliveryState::Retrying, DeliveryState::Delivered, DeliveryState::Dead, DeliveryState::Dropped];

    /// The word in JSON, tables and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Due => "due",
            DeliveryState::Retrying => "retrying",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
            DeliveryState::Dropped => "dropped",
        }
    }

    /// The state of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// One try, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// `accepted`, `retry`, `refused`, `gone`, `uncertain`.
    pub outcome: String,
    /// HTTP status or SMTP code.
    pub status: Option<u16>,
    /// What the receiver answered, at most 4 KiB, secrets removed; or the error.
    pub answer: String,
}

/// What an attempt makes of a delivery.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The try.
    pub attempt: Attempt,
    /// Where the delivery stands now.
    pub state: DeliveryState,
    /// When to try again, for [`DeliveryState::Retrying`].
    pub next_attempt_at: Option<Timestamp>,
    /// Alerts to announce in the same transaction: a dead letter, a receiver that does not answer, and its recovery.
    pub alerts: Vec<Alert>,
    /// What to tell of them.
    pub notices: Vec<Notice>,
}

/// What dispatching came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatched {
    /// Everyone for whom there is a new delivery.
    pub receivers: Vec<ReceiverName>,
    /// Deliveries that were made.
    pub deliveries: u32,
    /// Messages that were held back.
    pub held: u32,
    /// Messages that still wait.
    pub waiting: u32,
    /// When it is to be done again, if nothing happens before.
    pub next_at: Option<Timestamp>,
}

/// A group that is to be told again.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// To whom.
    pub receiver: ReceiverName,
    /// Its key.
    pub key: String,
    /// What still fires in it, with the last message about each.
    pub alerts: Vec<(Alert, Notice)>,
}

/// What came of an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub enum Acknowledged {
    /// It holds.
    Done(Box<Alert>),
    /// No alert that is pending or firing has an id that begins like this.
    Unknown,
    /// Several have: some of their ids.
    Several(Vec<AlertId>),
}

/// Which fates are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FateFilter {
    /// Of this alert.
    pub alert: Option<AlertId>,
    /// To this receiver.
    pub receiver: Option<ReceiverName>,
    /// Decided at this time or later.
    pub since: Option<Timestamp>,
    /// Only what was held back, or waits.
    pub undelivered: bool,
    /// At most so many.
    pub limit: u32,
}

/// What became of one message: one notice for one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fate {
    /// The notice.
    pub notice: NoticeId,
    /// Of which alert.
    pub alert: AlertId,
    /// Name of the rule.
    pub rule: String,
    /// Kind of message: `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was decided.
    pub at: Timestamp,
    /// First line of the message.
    pub summary: String,
    /// To whom; none where it was recorded and told to nobody.
    pub receiver: Option<ReceiverName>,
    /// `waiting`, `silenced`, `inhibited`, `acknowledged`; the state of its delivery (`due`, `retrying`, `delivered`, `dead`,
    /// `dropped`); `nobody`.
    pub state: String,
    /// `told`, `counted` (the delivery says that there was one more) or `merged` (a later message of the same alert in the same
    /// delivery stands for it); none where there is no delivery.
    pub role: Option<String>,
    /// The delivery.
    pub delivery: Option<DeliveryId>,
    /// The silence or alert that holds it back.
    pub holder: Option<String>,
}

/// Where an alert stands with one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Who was to be told.
    pub receiver: ReceiverName,
    /// Whether any message of it was accepted there.
    pub was_told: bool,
    /// What became of the latest message: the words of [`Fate::state`].
    pub state: String,
}

/// Messages of one receiver that are in no delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCount {
    /// To whom.
    pub receiver: ReceiverName,
    /// They wait for their group or for the end of a mute time.
    pub waiting: u64,
    /// Held back by a silence, of alerts that still fire.
    pub silenced: u64,
    /// Held back by another alert, of alerts that still fire.
    pub inhibited: u64,
    /// Held back since the time that was asked for, for whatever reason, also of alerts that are over.
    pub lately: u64,
}

/// What holds messages back, and how many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telling {
    /// Silences that are not over.
    pub silences: Vec<Silence>,
    /// Alerts that somebody knows of.
    pub acks: Vec<Ack>,
    /// Messages that are in no delivery, by receiver.
    pub held: Vec<HeldCount>,
    /// Who stopped digests.
    pub opt_outs: Vec<OptOut>,
    /// The last slot of each digest, by the name of its job.
    pub digests: Vec<(String, Timestamp)>,
}

/// Somebody who wants no digests of a receiver any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptOut {
    /// Of which receiver.
    pub receiver: ReceiverName,
    /// Mail address in lower case, without a name.
    pub address: String,
    /// Since when.
    pub at: Timestamp,
    /// How it was said.
    pub via: Via,
}

/// How somebody said that they want no digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// By the link in a digest.
    Link,
    /// By the operator's hand.
    Hand,
}

impl Via {
    /// The word in the database and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Via::Link => "link",
            Via::Hand => "hand",
        }
    }

    /// The way of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Via::Link, Via::Hand].into_iter().find(|via| via.as_str() == word)
    }
}

/// The key that signs the links in digests. It is made at random for this database, opens nothing else, and who can read it could
/// change what it protects anyway; it is not shown all the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkKey([u8; 32]);

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkKey(…)")
    }
}

impl LinkKey {
    /// A key of these bytes, which are to come from the system's generator.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for signing.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// A row of the outbox as `outbox list` shows it. The names are those of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxRow {
    /// Row.
    pub id: DeliveryId,
    /// `msg_…`.
    pub webhook_id: String,
    /// To whom.
    pub receiver: ReceiverName,
    /// Where it stands.
    pub state: DeliveryState,
    /// Tries so far.
    pub attempts: u32,
    /// When it is tried next; null where it is not.
    pub next_attempt_at: Option<Timestamp>,
    /// The last answer or error.
    pub last_answer: Option<String>,
    /// When it was put into the outbox.
    pub created_at: Timestamp,
    /// When it was accepted.
    pub delivered_at: Option<Timestamp>,
    /// How it came to be.
    pub shape: Shape,
    /// Alerts that it counts and does not tell.
    pub truncated_alerts: u32,
    /// The alerts in it.
    pub alerts: Vec<OutboxAlert>,
}

/// An alert of an [`OutboxRow`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxAlert {
    /// Id of the alert.
    pub id: String,
    /// Id of what is told of it.
    pub notice: NoticeId,
    /// Kind of message: `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the rule.
    pub rule: String,
    /// Slug, where it is about a token.
    pub token: Option<String>,
    /// First line of the message.
    pub summary: String,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// Deliveries that were put into the outbox.
    pub deliveries: u32,
    /// Notices that were there already.
    pub known_notices: u32,
    /// Changes that were written.
    pub changes: u32,
    /// How long the transaction took.
    pub took: TimeDelta,
}

/// A change with the time of the poll that brought it, for `changes`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    /// Row.
    pub id: i64,
    /// When it was seen.
    pub at: Timestamp,
    /// Of which token.
    pub token: TokenId,
    /// Its ticker, where known.
    pub symbol: Option<String>,
    /// To what.
    pub resource: Resource,
    /// The record, where it is about one.
    pub key: Option<RecordKey>,
    /// What happened.
    pub change: Change,
}

/// A version of a record, for looking back.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordVersion {
    /// When it was seen.
    pub at: Timestamp,
    /// The row of the poll log that brought it, while it is kept.
    pub poll: Option<i64>,
    /// The record; none where this version is its removal.
    pub record: Option<Record>,
}

/// A version of any record of a token, for replaying what was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRow {
    /// What it is.
    pub resource: Resource,
    /// Under which key.
    pub key: RecordKey,
    /// When it was seen.
    pub at: Timestamp,
    /// The record; none where this version is its removal.
    pub record: Option<Record>,
}

/// Summary of one feed for `status`.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedRow {
    /// Which feed.
    pub id: FeedId,
    /// Its state.
    pub state: FeedState,
    /// Hash of its last answer.
    pub hash: Option<ContentHash>,
    /// Records of the token and resource.
    pub records: u32,
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

/// An unlock ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct UpcomingRow {
    /// Of which token; its groups are filled by the caller, who has the config.
    pub token: Token,
    /// The unlock.
    pub tracked: Tracked,
    /// When the token's schedule was last read whole.
    pub read_at: Option<Timestamp>,
}

/// Which changes `changes` shows, the latest first. None and an empty value let everything in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeFilter {
    /// Of this token.
    pub token: Option<TokenId>,
    /// Of this kind.
    pub kind: Option<ChangeKind>,
    /// Of these records.
    pub resource: Option<Resource>,
    /// Seen at this time or later.
    pub since: Option<Timestamp>,
    /// Seen before this time.
    pub until: Option<Timestamp>,
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
    /// Of this token.
    pub token: Option<TokenId>,
    /// At most so many.
    pub limit: u32,
}

/// Which deliveries `outbox list` shows, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutboxFilter {
    /// To this receiver.
    pub receiver: Option<ReceiverName>,
    /// In one of these states; empty: in any.
    pub states: Vec<DeliveryState>,
    /// At most so many.
    pub limit: u32,
}

/// A delivery with all that is known of it, for `outbox show`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxDetail {
    /// As the list has it.
    pub row: OutboxRow,
    /// Its tries, the first first.
    pub attempts: Vec<Attempt>,
    /// What it tells.
    pub notices: Vec<Notice>,
}

/// Which rows of the poll log are shown, the latest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollFilter {
    /// Of this endpoint.
    pub endpoint: Option<Endpoint>,
    /// Of this token.
    pub token: Option<TokenId>,
    /// At most so many.
    pub limit: u32,
}

/// How much there is of everything, for `status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Tokens known.
    pub tokens: u64,
    /// Of these, named by the last complete token list.
    pub tokens_listed: u64,
    /// Records in the snapshot, for each resource, in the order of [`Resource::ALL`].
    pub records: Vec<(Resource, u64)>,
    /// Alerts in each state, in the order of [`AlertState::ALL`].
    pub alerts: Vec<(AlertState, u64)>,
    /// Deliveries of each receiver that has any, by name.
    pub outbox: Vec<ReceiverCounts>,
    /// Feeds whose answer is held, because most of a token's records vanished at once.
    pub removals_held: u64,
    /// Records that complete answers left out, not often enough yet to be gone.
    pub removals_awaiting_proof: u64,
    /// Feeds that fail.
    pub feeds_failing: u64,
    /// Size of the database on disk, its WAL included, bytes.
    pub database_bytes: u64,
}

/// What the metrics show of the database: only what can be read every few seconds, however much there is of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Alerts in each state, in the order of [`AlertState::ALL`].
    pub alerts: Vec<(AlertState, u64)>,
    /// Deliveries of each receiver that has any, by name.
    pub outbox: Vec<ReceiverCounts>,
    /// Feeds whose answer is held, because most of a token's records vanished at once.
    pub removals_held: u64,
    /// When each endpoint last gave a complete answer; those that never did are left out.
    pub last_success: Vec<(Endpoint, Timestamp)>,
}

/// Deliveries to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverCounts {
    /// Which receiver.
    pub receiver: ReceiverName,
    /// Deliveries in each state, in the order of [`DeliveryState::ALL`].
    pub states: Vec<(DeliveryState, u64)>,
    /// When the oldest one that is due or retrying was put into the outbox.
    pub oldest_pending: Option<Timestamp>,
}

impl ReceiverCounts {
    /// How many are in `state`.
    #[must_use]
    pub fn of(&self, state: DeliveryState) -> u64 {
        self.states.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count)
    }

    /// How many are due or retrying.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.of(DeliveryState::Due) + self.of(DeliveryState::Retrying)
    }
}

/// How an endpoint fares over all its feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointStat {
    /// Which endpoint.
    pub endpoint: Endpoint,
    /// Feeds of it that were ever tried.
    pub feeds: u64,
    /// Of these, those that fail.
    pub failing: u64,
    /// Since when the first of them fails.
    pub failing_since: Option<Timestamp>,
    /// Last complete, valid answer of any of them.
    pub last_success: Option<Timestamp>,
    /// Last try of any of them.
    pub last_try: Option<Timestamp>,
    /// Last row of the poll log that tells of a failure, while it is kept: when, and what failed.
    pub last_error: Option<(Timestamp, String)>,
}

/// The last price and market cap of a UTC day.
#[derive(Clone, Debug, PartialEq)]
pub struct Valuation {
    /// When they were seen.
    pub at: Timestamp,
    /// USD per token.
    pub reference_price: Option<f64>,
    /// USD.
    pub market_cap: Option<f64>,
}

/// What pruning took out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows of the poll log.
    pub polls: u64,
    /// Changes.
    pub changes: u64,
    /// Replaced or removed versions of records.
    pub versions: u64,
    /// Days of prices, rows of the credit log, silences that are over, groups of which nothing fires.
    pub logs: u64,
    /// Alerts that ended, with all that was told of them.
    pub alerts: u64,
    /// Notices without an alert, such as tests.
    pub notices: u64,
}
