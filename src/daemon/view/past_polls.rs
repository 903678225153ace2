//! Past polls as JSON.

use serde::Serialize;

use model::{Endpoint, PastPoll, PastPollState, PastPolls, Timestamp};

/// The polls of an endpoint in its last cycles, newest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastPollsView {
    endpoint: Endpoint,
    cycles: Vec<PastPollView>,
}

/// The polls of an endpoint in one cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastPollView {
    at: Timestamp,
    state: PastPollState,
    /// The number of polls, at most 1,000.
    polls: u64,
    failed: u64,
    /// The token of the first failed poll, if it is about one.
    token: Option<String>,
    error: Option<String>,
}

impl PastPollsView {
    pub fn of(polls: PastPolls) -> Self {
        Self { endpoint: polls.endpoint, cycles: polls.cycles.into_iter().map(PastPollView::of).collect() }
    }
}

impl PastPollView {
    fn of(cycle: PastPoll) -> Self {
        let state = cycle.state();
        let PastPoll { at, polls, failed, failure, .. } = cycle;
        let (token, error) = failure.map(|failure| (failure.token, Some(failure.message))).unwrap_or_default();
        Self { at, state, polls, failed, token, error }
    }
}
