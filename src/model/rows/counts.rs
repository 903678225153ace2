//! Counts of rows, for `status` and metrics.

use std::collections::BTreeMap;

use super::{outbox::DeliveryState, supply::SupplyTotals};
use crate::{AlertState, Endpoint, Findings, ReceiverName, Resource, RuleId, Severity, Timestamp, TokenId};

/// Counts of all rows, for `status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreCounts {
    pub tokens: u64,
    /// Tokens in the last complete token list.
    pub tokens_listed: u64,
    /// Records in the snapshot by resource, in the order of [`Resource::ALL`].
    pub records: Vec<(Resource, u64)>,
    /// Alerts by state, in the order of [`AlertState::ALL`].
    pub alerts: Vec<(AlertState, u64)>,
    /// Receivers that have deliveries, by name.
    pub outbox: Vec<ReceiverCounts>,
    /// Feeds with a held response, in which most of a token's records are missing.
    pub removals_held: u64,
    /// Missing records whose removal is not proven yet.
    pub removals_awaiting_proof: u64,
    pub feeds_failing: u64,
    /// Bytes of the database on disk, including its WAL.
    pub database_bytes: u64,
}

/// Counts for metrics: only counts that can be read every few seconds in a large database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreGauges {
    /// Alerts by state, in the order of [`AlertState::ALL`].
    pub alerts: Vec<(AlertState, u64)>,
    /// Receivers that have deliveries, by name.
    pub outbox: Vec<ReceiverCounts>,
    /// Feeds with a held response, in which most of a token's records are missing.
    pub removals_held: u64,
    /// The last complete response of each endpoint that ever gave one.
    pub last_success: Vec<(Endpoint, Timestamp)>,
}

/// Metrics about the watched tokens rather than the daemon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainGauges {
    /// The number of firing alerts by rule and severity.
    pub firing: Vec<(RuleId, Severity, u64)>,
    /// For each rule with a firing critical alert about an unlock: the start of the next of these unlocks.
    pub next_critical: Vec<(RuleId, Timestamp)>,
    /// The coming supply of all watched tokens, in the windows of the metrics.
    pub watched: SupplyTotals,
    /// The coming supply of each group of the config, including those without unlocks.
    pub groups: BTreeMap<String, SupplyTotals>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverCounts {
    pub receiver: ReceiverName,
    /// Deliveries by state, in the order of [`DeliveryState::ALL`].
    pub states: Vec<(DeliveryState, u64)>,
    /// The time at which the oldest due or retrying delivery was queued.
    pub oldest_pending: Option<Timestamp>,
}

impl ReceiverCounts {
    /// Returns the number of deliveries in `state`.
    pub fn of(&self, state: DeliveryState) -> u64 {
        self.states.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count)
    }

    /// Returns the number of due and retrying deliveries.
    pub fn pending(&self) -> u64 {
        self.of(DeliveryState::Due) + self.of(DeliveryState::Retrying)
    }
}

/// The reads of an endpoint's feeds in the current quota period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodReads {
    /// The start of the period, or of the poll log if that is later.
    pub since: Timestamp,
    /// Reads by time.
    pub reads: Vec<(TokenId, Timestamp)>,
}

/// The state of an endpoint over all its feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointStat {
    pub endpoint: Endpoint,
    /// Feeds that were polled at least once.
    pub feeds: u64,
    /// Feeds that fail now.
    pub failing: u64,
    /// The instant from which the first of them fails.
    pub failing_since: Option<Timestamp>,
    /// The time of the last complete, valid response.
    pub last_success: Option<Timestamp>,
    /// The time of the last poll.
    pub last_try: Option<Timestamp>,
    /// Time and message of the last failure in the poll log.
    pub last_error: Option<(Timestamp, String)>,
    /// Parse warnings in the responses of the last day before `last_success`: missing or unreadable fields, and duplicate or
    /// unordered rows.
    pub parse_warnings: u64,
    /// Polls in the current quota period, including failed ones.
    pub polls: u64,
    /// Credits of these polls.
    pub credits: u64,
    /// The statistics of polls, over all feeds since their baselines.
    pub findings: Findings,
}

impl EndpointStat {
    /// Adds the statistics of other feeds of the endpoint.
    pub fn add_feeds(&mut self, other: &Self) {
        self.feeds += other.feeds;
        self.failing += other.failing;
        self.failing_since = self.failing_since.into_iter().chain(other.failing_since).min();
        self.last_success = self.last_success.max(other.last_success);
        self.last_try = self.last_try.max(other.last_try);
        self.findings.add_counts(&other.findings);
    }
}
