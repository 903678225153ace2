//! Past polls of an endpoint, by cycle, from the poll log.

use crate::{Endpoint, Timestamp};

/// The polls of an endpoint in one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct PastPoll {
    /// The time of the cycle; all its polls have the same.
    pub at: Timestamp,
    /// The number of polls, at most [`PastPoll::MOST_COUNTED`].
    pub polls: u64,
    pub failed: u64,
    /// Polls that stopped because they cost more credits than planned.
    pub deferred: u64,
    /// Whether all responses were complete and empty.
    pub is_empty: bool,
    /// The first failure.
    pub failure: Option<PollProblem>,
}

/// A failure and its token.
#[derive(Clone, Debug, PartialEq)]
pub struct PollProblem {
    /// The token's symbol, or its slug without one; `None` if the poll was not about a token.
    pub token: Option<String>,
    /// The request and its failure, for people.
    pub message: String,
}

words! {
    /// The outcome of all polls of an endpoint in a cycle.
    PastPollState {
        /// All have a response.
        Good = "good",
        /// All have an empty response.
        Empty = "empty",
        /// No poll was completed, and no poll failed.
        Deferred = "deferred",
        Partly = "partly",
        Failed = "failed",
    }
}

impl PastPoll {
    /// The maximum number of polls of a cycle that are counted.
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

/// The latest cycles that polled an endpoint, latest first.
#[derive(Clone, Debug, PartialEq)]
pub struct PastPolls {
    pub endpoint: Endpoint,
    pub cycles: Vec<PastPoll>,
}
