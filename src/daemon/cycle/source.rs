//! The sources of batches, one for each kind of job.

use super::{
    Cycle, CycleError, due::DueTokens, input::Input, investors::InvestorPages, lists::ListResponse, response_batches::Responses,
};
use crate::schedule::Job;
use model::Endpoint;

/// The inputs that are processed under one lock.
pub(super) enum InputBatch {
    One(Input),
    /// A list, which is split into inputs under the lock.
    List(Box<ListResponse>),
}

/// Yields the batches of a job.
pub(super) enum Source {
    /// The responses of a per-token endpoint.
    Tokens(Endpoint, Responses),
    /// The token list or `upcoming`. `None` after its response.
    List(Option<Endpoint>),
    Investors(InvestorPages),
    Due(DueTokens),
}

impl Source {
    /// Returns the source of a job's batches. For a per-token endpoint, plans the polls and starts them. For a list, [`Self::next`] polls
    /// it. If `is_forced` is set, an evaluation covers all tokens that rules may concern.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    pub(super) async fn new(cycle: &mut Cycle<'_>, job: Job, is_forced: bool) -> Result<Self, CycleError> {
        Ok(match job {
            Job::Evaluate => Self::Due(DueTokens::read(cycle, is_forced).await?),
            Job::Poll(endpoint @ (Endpoint::TokenList | Endpoint::Upcoming)) => Self::List(Some(endpoint)),
            Job::Poll(Endpoint::Investors) => Self::Investors(InvestorPages::List),
            Job::Poll(endpoint) => Self::Tokens(endpoint, cycle.poll_endpoint(endpoint).await?),
        })
    }

    /// Waits for the next batch. Returns `None` at the end.
    pub(super) async fn next(&mut self, cycle: &mut Cycle<'_>) -> Result<Option<InputBatch>, CycleError> {
        Ok(match self {
            Self::Tokens(endpoint, responses) => next_responses(*endpoint, responses, cycle).await?.map(InputBatch::One),
            Self::List(endpoint) => match endpoint.take() {
                Some(endpoint) => cycle.poll_list(endpoint).await?.map(|list| InputBatch::List(Box::new(list))),
                None => None,
            },
            Self::Investors(pages) => pages.next(cycle).await?.map(InputBatch::One),
            Self::Due(tokens) => tokens.next(cycle).map(InputBatch::One),
        })
    }
}

/// Gathers the next responses. After the last one, completes changed schedules for which only cliff unlocks were requested. So
/// changes are only reported together with the linear segments. Returns `None` at the end.
async fn next_responses(
    endpoint: Endpoint,
    responses: &mut Responses,
    cycle: &mut Cycle<'_>,
) -> Result<Option<Input>, CycleError> {
    let batch = loop {
        if let Some(batch) = responses.batch().await {
            break batch;
        }
        let incomplete = std::mem::take(&mut cycle.incomplete);
        if incomplete.polls.is_empty() {
            return Ok(None);
        }
        *responses = cycle.complete_schedules(incomplete).await?;
    };
    cycle.follow_clock().await;
    Ok(Some(Input::Responses(endpoint, batch)))
}
