//! A poll in words: what is asked of the source, and the three answers that never look alike.
//!
//! A [`PollRequest`] asks one thing to its end, all pages included. [`FetchedAnswer`] says what came of it: [`PollOutcome::Fresh`] and
//! [`PollOutcome::Unchanged`] are complete, valid answers, and only such answers may prove that something is gone; whatever else came is
//! [`PollOutcome::Failed`], with its [`FailureKind`].

use std::time::Duration;

use crate::{ContentHash, Endpoint, FeedId, Timestamp, TokenId, wire};

/// One thing to ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PollRequest {
    TokenList,
    /// Next event of each token between two dates.
    Upcoming {
        /// First day.
        start: chrono::NaiveDate,
        /// Last day, inclusive.
        end: chrono::NaiveDate,
    },
    /// One token's records of an endpoint, between two dates where the endpoint takes dates.
    Token {
        /// A per-token endpoint.
        endpoint: Endpoint,
        token: TokenId,
        /// First day.
        start: chrono::NaiveDate,
        /// Last day, inclusive.
        end: chrono::NaiveDate,
    },
    Investors,
    Investor {
        /// Slug.
        id: String,
    },
}

impl PollRequest {
    /// Whose metrics and schedule it counts towards.
    pub fn endpoint(&self) -> Endpoint {
        match self {
            PollRequest::TokenList => Endpoint::TokenList,
            PollRequest::Upcoming { .. } => Endpoint::Upcoming,
            PollRequest::Token { endpoint, .. } => *endpoint,
            PollRequest::Investors | PollRequest::Investor { .. } => Endpoint::Investors,
        }
    }

    /// About which token, if one.
    pub fn token(&self) -> Option<&TokenId> {
        if let PollRequest::Token { token, .. } = self { Some(token) } else { None }
    }

    /// The feed that the answer belongs to.
    pub fn feed(&self) -> FeedId {
        FeedId { endpoint: self.endpoint(), token: self.token().cloned() }
    }
}

/// What came of a request, with what it cost.
#[derive(Clone, Debug)]
pub struct FetchedAnswer {
    pub request: PollRequest,
    /// What came back.
    pub outcome: PollOutcome,
    /// Credits that it cost, or may have cost: pages included, also those of a walk that failed later.
    pub credits: u32,
    /// Pages of the whole answer, as the server says; zero where none came.
    pub pages: u32,
    pub requests: u32,
    /// Quota as the last answer reported it.
    pub credit: Option<wire::Credit>,
    /// Decoded bytes of all answers.
    pub bytes: u64,
    pub took: Duration,
    /// Last HTTP status.
    pub status: Option<u16>,
    pub version: Option<u8>,
    /// What was asked beside it; none where that was not to be.
    pub segments: Option<SegmentsFetch>,
    /// Instants of segments of which the version that lists all cliffs has no row: nothing unlocks at once there.
    pub without_cliffs: Vec<Timestamp>,
}

/// What came of asking an older version for the linear segments that the answer's own version does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentsFetch {
    /// They were read whole, and stand in the answer.
    pub is_read: bool,
    /// The source has no such version of it (404).
    pub is_absent: bool,
    /// Credits of that, which the answer's own count holds too.
    pub credits: u32,
}

/// The last version of the schedule's endpoint that shows linear segments. Those after it show cliffs alone.
pub const LAST_WITH_SEGMENTS: u8 = 3;

impl FetchedAnswer {
    /// An answer of one page and one credit, as a source gives that has nothing more to say.
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
            without_cliffs: Vec::new(),
        }
    }

    /// Whether the answer speaks of linear segments; None where it is not known which version answered. What a version does not show
    /// is never proven gone by its answers.
    #[must_use]
    pub fn shows_linear(&self) -> Option<bool> {
        let has_segments = self.segments.is_some_and(|segments| segments.is_read);
        self.version.map(|version| has_segments || version <= LAST_WITH_SEGMENTS)
    }
}

/// Three answers that never look alike.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one to a fetch, and a fetch costs a round trip")]
pub enum PollOutcome {
    /// Complete and valid; the bytes differ from the last ones.
    Fresh(PollAnswer),
    /// Complete and valid; the bytes of `data` are those of the last answer.
    Unchanged,
    /// Not an answer.
    Failed(PollFailure),
}

/// A complete, valid answer.
#[derive(Clone, Debug)]
pub struct PollAnswer {
    /// The payload of all pages together.
    pub payload: Payload,
    /// Hash over the raw spans of `data`, page by page, and what the server counts.
    pub hash: ContentHash,
    /// Parse warnings, the first hundred.
    pub oddities: Vec<wire::ParseWarning>,
    /// How many parse warnings in all.
    pub oddities_total: usize,
    /// Records, or lists of them, that could not be used and were left out. While there are any, nothing that is missing is
    /// proven gone.
    pub dropped: usize,
}

impl PollAnswer {
    /// An answer in which nothing was odd.
    #[must_use]
    pub fn clean(payload: Payload, hash: ContentHash) -> Self {
        Self { payload, hash, oddities: Vec::new(), oddities_total: 0, dropped: 0 }
    }
}

/// What an answer holds. Records without a usable key have been dropped, with a parse warning.
#[derive(Clone, Debug)]
pub enum Payload {
    Tokens(Vec<wire::TokenItem>),
    /// Next events.
    Upcoming(Vec<wire::UpcomingItem>),
    /// A token's schedule.
    UnlockEvents(Vec<wire::UnlockEvent>),
    Burns(wire::BurnData),
    Buybacks(wire::BuybackData),
    Allocations(wire::AllocationsData),
    /// Daily or weekly emission.
    Emissions(Vec<wire::Emission>),
    Investors(Vec<wire::InvestorItem>),
    Investor(wire::InvestorDetail),
}

words! {
    /// What kind of trouble: the label `outcome` of the metrics and `kind` of source alerts.
    #[derive(PartialOrd, Ord)]
    FailureKind {
        /// No connection, a broken one, a cut body.
        Unreachable = "unreachable",
        /// A time limit ran out.
        Timeout = "timeout",
        /// 5xx.
        ServerError = "server_error",
        /// 401 or 403 without a key: none was given.
        NoKey = "no_key",
        /// 401 or 403: the key is refused.
        Unauthorized = "unauthorized",
        /// 403 while the key is good for other things: its plan does not cover this one.
        Forbidden = "forbidden",
        /// 429 while credits are left.
        RateLimited = "rate_limited",
        /// 429, or no request at all, because the credits are spent.
        QuotaExhausted = "quota_exhausted",
        /// 404.
        NotFound = "not_found",
        /// Any other status, or a redirect.
        UnexpectedStatus = "unexpected_status",
        /// 200 that is not the envelope: HTML, cut JSON, `status: false`, a bare payload.
        BadAnswer = "bad_answer",
        /// More bytes than `max_body`.
        TooLarge = "too_large",
        /// Pages that do not fit together: a number missing, `total` not reached, a list that kept changing under the walk.
        Incomplete = "incomplete",
        /// Complete, but empty where there were records: decided by the cycle, which knows what there was.
        Emptied = "emptied",
        /// Not asked: the breaker is open after repeated failures.
        Suspended = "suspended",
        /// Not read to its end: it costs more than was planned, and waits for a slot that plans as much. No failure of the source.
        Deferred = "deferred",
    }
}

impl FailureKind {
    /// Whether it says something of the source as a whole rather than of the one thing asked.
    pub fn is_source_wide(self) -> bool {
        matches!(
            self,
            FailureKind::Unreachable
                | FailureKind::Timeout
                | FailureKind::ServerError
                | FailureKind::NoKey
                | FailureKind::Unauthorized
                | FailureKind::RateLimited
                | FailureKind::QuotaExhausted
                | FailureKind::Suspended
        )
    }
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct PollFailure {
    pub kind: FailureKind,
    /// What was attempted and what came of it, for people: names the path, never the key, at most 500 characters.
    pub message: String,
    /// When the server asked to come back.
    pub retry_at: Option<Timestamp>,
}
