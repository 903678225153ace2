//! Polls: what is requested from the source, and the three possible outcomes.
//!
//! A [`PollRequest`] covers all pages of one response. Its result is a [`FetchedResponse`]. [`PollOutcome::Fresh`] and
//! [`PollOutcome::Unchanged`] are complete, valid responses, and only they can prove a removal. [`PollOutcome::Failed`] is
//! everything else, with its [`FailureKind`].

use std::time::Duration;

use chrono::NaiveDate;

use crate::{ContentHash, Endpoint, FeedId, Timestamp, TokenId, wire};

/// One poll of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PollRequest {
    TokenList,
    /// The next event of each token between two dates.
    Upcoming {
        start: NaiveDate,
        /// Inclusive.
        end: NaiveDate,
    },
    /// The records of one token. The dates apply to endpoints that accept a range.
    Token {
        /// A per-token endpoint.
        endpoint: Endpoint,
        token: TokenId,
        start: NaiveDate,
        /// Inclusive.
        end: NaiveDate,
    },
    Investors,
    Investor {
        id: String,
    },
}

impl PollRequest {
    /// Returns the endpoint for metrics and the polling schedule.
    pub fn endpoint(&self) -> Endpoint {
        match self {
            PollRequest::TokenList => Endpoint::TokenList,
            PollRequest::Upcoming { .. } => Endpoint::Upcoming,
            PollRequest::Token { endpoint, .. } => *endpoint,
            PollRequest::Investors | PollRequest::Investor { .. } => Endpoint::Investors,
        }
    }

    /// Returns the token of a per-token poll.
    pub fn token(&self) -> Option<&TokenId> {
        if let PollRequest::Token { token, .. } = self { Some(token) } else { None }
    }

    /// Returns the feed that the response belongs to.
    pub fn feed(&self) -> FeedId {
        FeedId { endpoint: self.endpoint(), token: self.token().cloned() }
    }
}

/// The outcome of a poll, with its cost.
#[derive(Clone, Debug)]
pub struct FetchedResponse {
    pub request: PollRequest,
    pub outcome: PollOutcome,
    /// Credits that all requests of the poll cost, or may have cost if it failed.
    pub credits: u32,
    /// The number of pages that the server reports; zero without a response.
    pub pages: u32,
    pub requests: u32,
    /// The quota that the last response reported.
    pub credit: Option<wire::Credit>,
    /// Decoded bytes of all responses.
    pub bytes: u64,
    pub took: Duration,
    /// The status of the last response.
    pub status: Option<u16>,
    pub version: Option<u8>,
    /// The additional poll for linear unlocks; `None` if it was not requested.
    pub segments: Option<SegmentsFetch>,
    /// The additional poll for daily emission ahead; `None` if it was not requested.
    pub ahead: Option<AheadFetch>,
    /// Instants of linear unlocks at which the newer version lists no cliff unlock.
    pub without_cliffs: Vec<Timestamp>,
}

impl FetchedResponse {
    /// Returns the response without its cost, which is counted already, to complete it with further requests.
    #[must_use]
    pub fn without_cost(self) -> Self {
        Self { credits: 0, requests: 0, bytes: 0, took: Duration::ZERO, ..self }
    }
}

/// The outcome of polling an older API version for linear unlocks, which the newer version leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentsFetch {
    /// Whether the linear unlocks are in the response.
    pub is_read: bool,
    /// Whether the source has no such version (status 404).
    pub is_absent: bool,
    /// Whether the source has no schedule of the token in [`WITH_RATE_CHANGES`] (status 404), so that [`LAST_WITH_SEGMENTS`] was polled.
    pub lacks_rate_changes: bool,
    /// The version that was polled last.
    pub version: u8,
    /// Credits of this poll. The outcome's own count includes them.
    pub credits: u32,
}

impl SegmentsFetch {
    /// Returns the outcome of a poll that read the linear unlocks.
    #[must_use]
    pub fn read(version: u8, credits: u32) -> Self {
        Self { is_read: true, is_absent: false, lacks_rate_changes: false, version, credits }
    }
}

/// The outcome of polling the coming daily emission of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct AheadFetch {
    /// The first requested day.
    pub first: NaiveDate,
    /// The last requested day, inclusive.
    pub last: NaiveDate,
    /// The emission of each day. `None` if it cannot be read.
    pub days: Option<Vec<wire::Emission>>,
    /// Whether the source has none of this token, or none for this API plan (status 404 or 403).
    pub is_absent: bool,
    /// Credits of this poll. The outcome's own count includes them.
    pub credits: u32,
}

/// The additional requests of a poll of a schedule, for linear unlocks that its version omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinearRequest {
    /// The version from which to read linear unlocks; `None` to read none. If the source lacks the token in [`WITH_RATE_CHANGES`],
    /// [`LAST_WITH_SEGMENTS`] is read instead.
    pub segments: Option<u8>,
    /// The first and the last day of daily emission to read; `None` to read none.
    pub ahead: Option<(NaiveDate, NaiveDate)>,
}

/// The last API version of the schedule endpoint that includes linear unlocks. Later versions list cliff unlocks only.
pub const LAST_WITH_SEGMENTS: u8 = 3;

/// The only API version of the schedule endpoint that includes linear unlocks which merely change a rate. It lacks tokens that are listed by AI.
pub const WITH_RATE_CHANGES: u8 = 1;

impl FetchedResponse {
    /// Returns the outcome of a poll with one page that cost one credit.
    #[must_use]
    pub fn of_page(request: PollRequest, outcome: PollOutcome, version: Option<u8>) -> Self {
        Self {
            request,
            outcome,
            credits: 1,
            pages: 1,
            requests: 1,
            credit: None,
            bytes: 0,
            took: Duration::ZERO,
            status: Some(200),
            version,
            segments: None,
            ahead: None,
            without_cliffs: Vec::new(),
        }
    }

    /// Returns whether the response includes linear unlocks; `None` if its version is unknown. Records that a version leaves out
    /// are never counted as missing.
    #[must_use]
    pub fn shows_linear(&self) -> Option<bool> {
        let has_segments = self.segments.is_some_and(|segments| segments.is_read);
        self.version.map(|version| has_segments || version <= LAST_WITH_SEGMENTS)
    }
}

/// The three possible outcomes of a poll.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one to a fetch, and a fetch costs a round trip")]
pub enum PollOutcome {
    /// Complete and valid; differs from the last response.
    Fresh(PollResponse),
    /// Complete and valid; the bytes of `data` equal the last response.
    Unchanged,
    Failed(PollFailure),
}

/// A complete, valid response.
#[derive(Clone, Debug)]
pub struct PollResponse {
    /// The data of all pages.
    pub payload: Payload,
    /// A hash of the raw `data` of all pages and of the counts that the server reports.
    pub hash: ContentHash,
    /// The first hundred parse warnings.
    pub parse_warnings: Vec<wire::ParseWarning>,
    /// The number of all parse warnings.
    pub parse_warnings_total: usize,
    /// The number of records and lists that were left out because they cannot be parsed. If it is not zero, the response proves no
    /// removal.
    pub dropped: usize,
}

impl PollResponse {
    /// Returns a response without parse warnings.
    #[must_use]
    pub fn clean(payload: Payload, hash: ContentHash) -> Self {
        Self { payload, hash, parse_warnings: Vec::new(), parse_warnings_total: 0, dropped: 0 }
    }
}

/// The data of a response. Records without a usable key were left out with a parse warning.
#[derive(Clone, Debug)]
pub enum Payload {
    Tokens(Vec<wire::TokenItem>),
    /// The next event of each token.
    Upcoming(Vec<wire::UpcomingItem>),
    /// The schedule of one token.
    UnlockEvents(Vec<wire::UnlockEvent>),
    Burns(wire::BurnData),
    Buybacks(wire::BuybackData),
    Allocations(wire::AllocationsData),
    /// Daily or weekly emissions.
    Emissions(Vec<wire::Emission>),
    Investors(Vec<wire::InvestorItem>),
    Investor(wire::InvestorDetail),
}

words! {
    /// Why a poll failed: the label `outcome` of metrics, and `kind` of alerts about the source.
    #[derive(PartialOrd, Ord)]
    FailureKind {
        /// No connection, a broken connection, or a body that was cut off.
        Unreachable = "unreachable",
        Timeout = "timeout",
        /// A status from 500 to 599.
        ServerError = "server_error",
        /// Status 401 or 403, and no key is configured.
        NoKey = "no_key",
        /// No request was sent: the key cannot be read, or a header cannot contain it.
        UnusableKey = "unusable_key",
        /// Status 401 or 403: the source rejects the key.
        Unauthorized = "unauthorized",
        /// Status 403, while the key works for other endpoints: the API plan does not include this one.
        Forbidden = "forbidden",
        /// Status 429 while credits remain.
        RateLimited = "rate_limited",
        /// Status 429 because all credits are used, or no request at all for that reason.
        QuotaExhausted = "quota_exhausted",
        /// Status 404.
        NotFound = "not_found",
        /// Any other status, or a redirect.
        UnexpectedStatus = "unexpected_status",
        /// Status 200 without the expected envelope: HTML, truncated JSON, `status: false`, or data without an envelope.
        BadAnswer = "bad_answer",
        /// The response is larger than `max_body`.
        TooLarge = "too_large",
        /// The pages do not match: one is missing, `total` is not reached, or the list kept changing.
        Incomplete = "incomplete",
        /// A complete, empty response for a feed that had records.
        Emptied = "emptied",
        /// A complete response that the database rejects.
        NotStored = "not_stored",
        /// A stored row of the token is damaged, so that nothing can be compared or evaluated. Not a failure of the source.
        Unreadable = "unreadable",
        /// Not polled, because of repeated failures before.
        Suspended = "suspended",
        /// Stopped because it costs more credits than planned. It waits for a slot with enough credits. Not a failure of the
        /// source.
        Deferred = "deferred",
    }
}

impl FailureKind {
    /// Returns whether the failure ends when the operator provides another key.
    pub fn is_about_key(self) -> bool {
        matches!(self, FailureKind::NoKey | FailureKind::UnusableKey | FailureKind::Unauthorized)
    }

    /// Returns whether the failure concerns the whole source rather than the polled endpoint.
    pub fn is_source_wide(self) -> bool {
        matches!(
            self,
            FailureKind::Unreachable
                | FailureKind::Timeout
                | FailureKind::ServerError
                | FailureKind::NoKey
                | FailureKind::UnusableKey
                | FailureKind::Unauthorized
                | FailureKind::RateLimited
                | FailureKind::QuotaExhausted
                | FailureKind::Suspended
        )
    }
}

/// Why a poll has no valid response.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct PollFailure {
    pub kind: FailureKind,
    /// The request and its failure, at most 500 characters. Names the path, never the key.
    pub message: String,
    /// The instant from which the server accepts requests again.
    pub retry_at: Option<Timestamp>,
}
