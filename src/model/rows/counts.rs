//! How much there is of everything.

use super::outbox::DeliveryState;
use crate::{AlertState, Endpoint, Findings, ReceiverName, Resource, RuleId, Timestamp, TokenId, Tone};

/// How much there is of everything, for `status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreCounts {
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
    pub feeds_failing: u64,
    /// Size of the database on disk, its WAL included, bytes.
    pub database_bytes: u64,
}

/// What the metrics show of the database: only what can be read every few seconds, however much there is of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreGauges {
    /// Alerts in each state, in the order of [`AlertState::ALL`].
    pub alerts: Vec<(AlertState, u64)>,
    /// Deliveries of each receiver that has any, by name.
    pub outbox: Vec<ReceiverCounts>,
    /// Feeds whose answer is held, because most of a token's records vanished at once.
    pub removals_held: u64,
    /// When each endpoint last gave a complete answer; those that never did are left out.
    pub last_success: Vec<(Endpoint, Timestamp)>,
}

/// What the metrics show of what is watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainGauges {
    /// How many alerts of each rule and tone fire.
    pub firing: Vec<(RuleId, Tone, u64)>,
    /// For each rule of which a critical alert about an unlock fires, when the next of these unlocks begins.
    pub next_critical: Vec<(RuleId, Timestamp)>,
    /// Unlocks ahead whose value is known.
    pub ahead: Vec<ValueAhead>,
}

/// What one unlock ahead is worth, and when it counts in a sum: of a month or a week on the day that the source names.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueAhead {
    pub token: TokenId,
    pub begins: Timestamp,
    /// Equal to `begins` for a time that is exact, else the first instant after.
    pub ends: Timestamp,
    /// USD.
    pub value: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverCounts {
    pub receiver: ReceiverName,
    /// Deliveries in each state, in the order of [`DeliveryState::ALL`].
    pub states: Vec<(DeliveryState, u64)>,
    /// When the oldest one that is due or retrying was put into the outbox.
    pub oldest_pending: Option<Timestamp>,
}

impl ReceiverCounts {
    /// How many are in `state`.
    pub fn of(&self, state: DeliveryState) -> u64 {
        self.states.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count)
    }

    /// How many are due or retrying.
    pub fn pending(&self) -> u64 {
        self.of(DeliveryState::Due) + self.of(DeliveryState::Retrying)
    }
}

/// When feeds of an endpoint were read in the quota's period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodReads {
    /// When the period began, or where the poll log does if that is later.
    pub since: Timestamp,
    /// Whose feed was read when, in the order of time.
    pub reads: Vec<(TokenId, Timestamp)>,
}

/// How an endpoint fares over all its feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointStat {
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
    /// Last row of the poll log that has a failure, while it is kept: when, and what failed.
    pub last_error: Option<(Timestamp, String)>,
    /// What was odd in its answers of the last day before its last success, and harmless: parts that were missing or unreadable, rows
    /// that came twice or out of order.
    pub oddities: u64,
    /// Looks of the poll log since the quota's period began, answered or not.
    pub looks: u64,
    /// Credits of these.
    pub credits: u64,
    /// What its looks found, over all feeds and since each was first read.
    pub findings: Findings,
}
