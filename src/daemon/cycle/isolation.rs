//! Inputs that the database rejects, for example because a text is too long for an index, and tokens with a damaged row. All other data
//! of the input is stored.
//!
//! The input is processed in parts, one token or row each. The feed of a rejected response fails, so that an incident reports it, and it is
//! polled again after growing waits instead of at each slot. Nothing is lost: a list with a rejected row is compared again at its next
//! poll, a token whose rename was rejected keeps its slug until then, and a cycle that could not store an evaluation fails, so that the
//! next one repeats it.

use std::sync::atomic::Ordering;

use super::{
    Cycle, CycleError,
    input::{Input, InvestorPage, PageScope},
    stored, unreadable_tokens,
};
use crate::live::LiveConfig;
use engine::evaluate::Transitions;
use engine::self_monitor::{FeedOutcome, FeedResult};
use model::{
    poll::{FailureKind, PollFailure, PollOutcome, PollRequest},
    rows::Commit,
    supply::{Endpoint, FeedId, TokenId},
    text::error_chain,
};

impl Input {
    /// Splits an input into inputs about one token or row each, if possible.
    fn into_parts(self, setup: &LiveConfig) -> Vec<Self> {
        match self {
            Self::Responses(endpoint, responses) => {
                responses.into_iter().map(|response| Self::Responses(endpoint, vec![response])).collect()
            }
            Self::TokenRows { rows, is_baseline } => {
                rows.into_iter().map(|row| Self::TokenRows { rows: vec![row], is_baseline }).collect()
            }
            Self::UpcomingRows(rows) => rows.into_iter().map(|row| Self::UpcomingRows(vec![row])).collect(),
            Self::Tokens(ids) => ids.into_iter().map(|id| Self::Tokens(vec![id])).collect(),
            Self::Investor(page) => {
                let part = |scope: PageScope| {
                    let InvestorPage { fetched, item, since, .. } = &*page;
                    Self::Investor(Box::new(InvestorPage { fetched: fetched.clone(), item: item.clone(), since: *since, scope }))
                };
                let rounds = page.rounds(setup).into_keys().map(|token| part(PageScope::RoundsOf(token)));
                rounds.chain([part(PageScope::Row)]).collect()
            }
            Self::Commit(mut commit) => {
                let part = |commit: Commit| Self::Commit(Box::new(commit));
                let mut parts: Vec<Self> = std::mem::take(&mut commit.investors)
                    .into_iter()
                    .map(|row| part(Commit { investors: vec![row], ..Commit::default() }))
                    .collect();
                if std::mem::take(&mut commit.token_list_complete) {
                    let listed = std::mem::take(&mut commit.listed);
                    parts.push(part(Commit { token_list_complete: true, listed, ..Commit::default() }));
                }
                parts.push(Self::Commit(commit));
                parts
            }
            Self::Rename { .. } => vec![self],
        }
    }
}

/// The data of a cycle that the database rejected.
#[derive(Default)]
pub(super) struct SetAside {
    /// Whether a list has rows that were not stored.
    has_rows: bool,
    /// The old and new slugs of tokens whose rename was not stored.
    renames: Vec<(TokenId, TokenId)>,
    /// Why rounds of the current page were not stored.
    page: Option<PollFailure>,
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

    fn is_new_slug(&self, id: &TokenId) -> bool {
        self.renames.iter().any(|(_, new)| new == id)
    }
}

impl Cycle<'_> {
    /// Adapts an input to what was set aside before: a list with rejected rows is compared again at its next poll, a token whose rename was
    /// rejected keeps its slug, a page with a rejected round counts as failed, and rules count as evaluated only if all evaluations are
    /// stored.
    pub(super) fn adapt(&mut self, input: &mut Input) {
        let aside = &mut self.set_aside;
        match input {
            Input::TokenRows { rows, .. } => rows.retain(|(id, _)| !aside.is_new_slug(id)),
            Input::Investor(page) if page.scope == PageScope::Row => {
                if let Some(failure) = aside.page.take() {
                    page.fetched.outcome = PollOutcome::Failed(failure);
                }
            }
            Input::Commit(commit) => {
                if commit.token_list_complete {
                    commit.listed.retain(|id| !aside.is_new_slug(id));
                    commit.listed.extend(aside.renames.iter().map(|(old, _)| old.clone()));
                }
                if aside.has_rows {
                    commit.feeds.iter_mut().for_each(|feed| feed.state.hash = None);
                }
                if aside.evaluation.is_some() {
                    commit.evaluated_until = None;
                }
            }
            _ => {}
        }
    }

    /// Processes the parts of an input that failed with `error`, because the database rejected it or a row is damaged.
    pub(super) async fn process_parts(&mut self, input: Input, error: &CycleError, setup: &LiveConfig) -> Result<(), CycleError> {
        let is_known = matches!(&input, Input::Tokens(ids) if ids.iter().all(|id| self.deps.unreadable_tokens.contains(id)));
        if !is_known {
            tracing::warn!(
                job = self.report.job.as_str(),
                cycle = self.report.id(),
                error = error_chain(error),
                "a batch cannot be processed: processing its parts one by one"
            );
        }
        for mut part in input.into_parts(setup) {
            self.adapt(&mut part);
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
                let feeds: Vec<FeedId> = responses.iter().map(|(_, fetched)| fetched.request.feed()).collect();
                match self.attempt(&mut Input::Responses(endpoint, responses), setup).await {
                    // The state of the feed cannot be read either.
                    Err(error) if error.is_unreadable() => {
                        feeds.into_iter().for_each(|feed| self.report_unreadable(feed, &error_chain(&error)));
                    }
                    result => return result,
                }
            }
            Input::TokenRows { rows, .. } => {
                rows.iter().for_each(|(id, _)| self.row_failed(Endpoint::TokenList, id.as_str(), &error));
            }
            Input::UpcomingRows(rows) => {
                rows.iter().for_each(|(id, _)| self.row_failed(Endpoint::Upcoming, id.as_str(), &error));
            }
            Input::Rename { old, new, .. } => {
                self.list_failed(Endpoint::TokenList, &format!("the new slug {new} of {old}"), &error);
                self.set_aside.renames.push((old, new));
            }
            Input::Investor(page) => return self.set_page_aside(*page, error, setup).await,
            Input::Tokens(ids) if error.is_unreadable() => {
                for id in ids {
                    self.report_unreadable(unreadable_tokens::feed_of(&id), &error_chain(&error));
                    self.deps.unreadable_tokens.note(id);
                }
            }
            Input::Tokens(ids) => {
                let token = ids.first().map_or("", |id| id.as_str());
                tracing::error!(token, error = error_chain(&error), "the evaluation of a token cannot be stored");
                self.set_aside.reject_evaluation(error);
                // An alert that was held for a limit is only found by evaluating all tokens.
                self.deps.reevaluate.store(true, Ordering::SeqCst);
            }
            Input::Commit(commit) => match commit.investors.first() {
                Some(row) => self.row_failed(Endpoint::Investors, row.investor_id.as_str().unwrap_or_default(), &error),
                None if commit.token_list_complete => {
                    self.list_failed(Endpoint::TokenList, "the absence of tokens", &error);
                    return self.store_arrivals(*commit).await;
                }
                None => return Err(error),
            },
        }
        Ok(())
    }

    /// Stores which tokens are in the list. Tokens that left it stay listed.
    async fn store_arrivals(&mut self, mut commit: Commit) -> Result<(), CycleError> {
        commit.listed.extend(stored("read the previous token list", self.deps.store.token_ids(true)).await?);
        self.commit(commit, Transitions::default()).await
    }

    /// Continues without a part of an investor's page. The page counts as failed, and waits before it is polled again.
    async fn set_page_aside(&mut self, mut page: InvestorPage, error: CycleError, setup: &LiveConfig) -> Result<(), CycleError> {
        let PollRequest::Investor { id } = &page.fetched.request else { return Err(error) };
        let failure = not_stored(&format!("the page of {id} in {}", page.fetched.request.feed()), &error);
        self.deps.rejected_pages.note(id, failure.clone(), self.now);
        self.set_aside.has_rows = true;
        if matches!(page.scope, PageScope::RoundsOf(_)) {
            self.set_aside.page = Some(failure);
            return Ok(());
        }
        page.fetched.outcome = PollOutcome::Failed(failure);
        self.attempt(&mut Input::Investor(Box::new(page)), setup).await
    }

    /// Skips the page of an investor that was rejected and is not due yet, and returns whether it did. The incident stays open, and the
    /// list is compared again at its next poll.
    pub(super) fn skip_rejected_page(&mut self, investor: &str) -> bool {
        let Some(failure) = self.deps.rejected_pages.waiting(investor, self.now) else { return false };
        self.set_aside.has_rows = true;
        self.outcomes.push(FeedOutcome { feed: FeedId::whole(Endpoint::Investors), result: FeedResult::Failed(failure) });
        true
    }

    /// Closes the incidents of tokens that can be evaluated again.
    pub(super) fn count_evaluations(&mut self, input: &Input) {
        let Input::Tokens(ids) = input else { return };
        for id in ids.iter().filter(|id| self.deps.unreadable_tokens.evaluated(id)) {
            self.outcomes.push(FeedOutcome { feed: unreadable_tokens::feed_of(id), result: FeedResult::Fine });
        }
    }

    /// Reports a feed with a damaged row.
    pub(super) fn report_unreadable(&mut self, feed: FeedId, error: &str) {
        let message = format!("{feed}: {error}");
        self.report_failure(feed, PollFailure { kind: FailureKind::Unreadable, message, retry_at: None });
    }

    /// Reports a feed that failed without a response that is counted.
    pub(super) fn report_failure(&mut self, feed: FeedId, failure: PollFailure) {
        self.report.failed.push((feed.clone(), failure.clone()));
        self.outcomes.push(FeedOutcome { feed, result: FeedResult::Failed(failure) });
    }

    /// Reports a row of a list that cannot be stored.
    fn row_failed(&mut self, endpoint: Endpoint, name: &str, error: &CycleError) {
        self.list_failed(endpoint, &format!("the row of {name}"), error);
    }

    /// Reports a part of a list that cannot be stored.
    fn list_failed(&mut self, endpoint: Endpoint, what: &str, error: &CycleError) {
        self.set_aside.has_rows = true;
        let feed = FeedId::whole(endpoint);
        let failure = not_stored(&format!("{what} in {feed}"), error);
        self.report_failure(feed, failure);
    }
}

fn not_stored(what: &str, error: &CycleError) -> PollFailure {
    let kind = if error.is_unreadable() { FailureKind::Unreadable } else { FailureKind::NotStored };
    PollFailure { kind, message: format!("{what}: {}", error_chain(error)), retry_at: None }
}
