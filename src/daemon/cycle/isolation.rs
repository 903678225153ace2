//! Inputs that the database rejects, for example because a text is too long for an index: all other data of the input is stored.
//!
//! The input is processed in parts, one token each. The feed of a rejected response fails, so that an incident reports it, and it is
//! polled again after growing waits instead of at each slot. Nothing is lost: a list with a rejected row is compared again at its next
//! poll, and a cycle that could not store an evaluation fails, so that the next one repeats it.

use std::sync::atomic::Ordering;

use super::{Cycle, CycleError, input::Input};
use crate::live::LiveConfig;
use engine::self_monitor::{FeedOutcome, FeedResult};
use model::{
    poll::{FailureKind, PollFailure, PollOutcome},
    supply::{Endpoint, FeedId},
    text::error_chain,
};

impl Input {
    /// Splits an input into inputs about one token each, if possible.
    fn into_parts(self) -> Vec<Self> {
        match self {
            Self::Responses(endpoint, responses) => {
                responses.into_iter().map(|response| Self::Responses(endpoint, vec![response])).collect()
            }
            Self::TokenRows { rows, is_baseline } => {
                rows.into_iter().map(|row| Self::TokenRows { rows: vec![row], is_baseline }).collect()
            }
            Self::UpcomingRows(rows) => rows.into_iter().map(|row| Self::UpcomingRows(vec![row])).collect(),
            Self::Tokens(ids) => ids.into_iter().map(|id| Self::Tokens(vec![id])).collect(),
            Self::Rename { .. } | Self::Investor(_) | Self::Commit(_) => vec![self],
        }
    }
}

/// The data of a cycle that the database rejected.
#[derive(Default)]
pub(super) struct SetAside {
    /// Whether a list has rows that were not stored.
    has_rows: bool,
    /// The error of the last evaluation that was not stored.
    evaluation: Option<CycleError>,
}

impl SetAside {
    /// Records an evaluation that was not stored.
    pub(super) fn reject_evaluation(&mut self, error: CycleError) {
        self.evaluation = Some(error);
    }

    /// Returns the error of an evaluation that was not stored.
    pub(super) fn into_result(self) -> Result<(), CycleError> {
        self.evaluation.map_or(Ok(()), Err)
    }
}

impl Cycle<'_> {
    /// Adapts the final rows of a job: a list with rejected rows is compared again at its next poll, and rules count as evaluated only if
    /// all evaluations are stored.
    pub(super) fn adapt_final_rows(&self, input: &mut Input) {
        let Input::Commit(commit) = input else { return };
        if self.set_aside.has_rows {
            commit.feeds.iter_mut().for_each(|feed| feed.state.hash = None);
        }
        if self.set_aside.evaluation.is_some() {
            commit.evaluated_until = None;
        }
    }

    /// Processes the parts of an input that the database rejected with `error`.
    pub(super) async fn process_parts(&mut self, input: Input, error: &CycleError, setup: &LiveConfig) -> Result<(), CycleError> {
        tracing::warn!(
            job = self.report.job.as_str(),
            cycle = self.report.id(),
            error = error_chain(error),
            "the database rejected a batch: storing its parts one by one"
        );
        for mut part in input.into_parts() {
            match self.attempt(&mut part, setup).await {
                Err(error) if error.is_about_data() => self.set_aside(part, error, setup).await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Continues without a part that the database rejected.
    async fn set_aside(&mut self, part: Input, error: CycleError, setup: &LiveConfig) -> Result<(), CycleError> {
        match part {
            Input::Responses(endpoint, mut responses) => {
                for (_, fetched) in &mut responses {
                    fetched.outcome = PollOutcome::Failed(not_stored(&fetched.request.feed().to_string(), &error));
                }
                return self.attempt(&mut Input::Responses(endpoint, responses), setup).await;
            }
            Input::TokenRows { rows, .. } => {
                rows.iter().for_each(|(id, _)| self.row_failed(Endpoint::TokenList, id.as_str(), &error));
            }
            Input::UpcomingRows(rows) => {
                rows.iter().for_each(|(id, _)| self.row_failed(Endpoint::Upcoming, id.as_str(), &error));
            }
            Input::Tokens(ids) => {
                let token = ids.first().map_or("", |id| id.as_str());
                tracing::error!(token, error = error_chain(&error), "the evaluation of a token cannot be stored");
                self.set_aside.reject_evaluation(error);
                // An alert that was held for a limit is only found by evaluating all tokens.
                self.deps.reevaluate.store(true, Ordering::SeqCst);
            }
            Input::Rename { .. } | Input::Investor(_) | Input::Commit(_) => return Err(error),
        }
        Ok(())
    }

    /// Reports a row of a list that cannot be stored.
    fn row_failed(&mut self, endpoint: Endpoint, token: &str, error: &CycleError) {
        self.set_aside.has_rows = true;
        let feed = FeedId::whole(endpoint);
        let failure = not_stored(&format!("the row of {token} in {feed}"), error);
        self.report.failed.push((feed.clone(), failure.clone()));
        self.outcomes.push(FeedOutcome { feed, result: FeedResult::Failed(failure) });
    }
}

fn not_stored(what: &str, error: &CycleError) -> PollFailure {
    PollFailure { kind: FailureKind::NotStored, message: format!("{what}: {}", error_chain(error)), retry_at: None }
}
