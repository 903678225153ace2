//! Past polls, as the log has them: what an endpoint answered to each of its last cycles.

use crate::{Endpoint, Timestamp};

/// What an endpoint answered in one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct PastPoll {
    /// The time of the cycle, which all of its polls bear.
    pub at: Timestamp,
    /// Polls of it, up to [`PastPoll::MOST_COUNTED`].
    pub polls: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Of these, those that were put off before their end: they cost more than was planned.
    pub deferred: u64,
    /// Whether every answer was complete and held nothing.
    pub is_empty: bool,
    /// What failed first.
    pub failure: Option<PollProblem>,
}

/// What failed, and for whom.
#[derive(Clone, Debug, PartialEq)]
pub struct PollProblem {
    /// Ticker of the token that was asked about, its slug where it has none; none where it was no token.
    pub token: Option<String>,
    /// What was attempted and what came of it.
    pub message: String,
}

words! {
    /// How a cycle's polls of an endpoint went, together.
    PastPollState {
        /// Each was answered.
        Good = "good",
        /// Each was answered, and nothing was there.
        Empty = "empty",
        /// None was read to its end, and none failed.
        Deferred = "deferred",
        /// Some failed.
        Partly = "partly",
        /// All failed.
        Failed = "failed",
    }
}

impl PastPoll {
    /// Polls of a cycle up to which they are counted.
    pub const MOST_COUNTED: u64 = 1_000;

    pub fn state(&self) -> PastPollState {
        match self {
            Self { failed: 0, deferred, polls, .. } if deferred == polls => PastPollState::Deferred,
            Self { failed: 0, is_empty: true, .. } => PastPollState::Empty,
            Self { failed: 0, .. } => PastPollState::Good,
            Self { failed, polls, .. } if failed < polls => PastPollState::Partly,
            _ => PastPollState::Failed,
        }
    }
}

/// The last cycles in which an endpoint was asked, the latest first.
#[derive(Clone, Debug, PartialEq)]
pub struct PastPolls {
    pub endpoint: Endpoint,
    pub cycles: Vec<PastPoll>,
}
