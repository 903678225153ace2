//! The inputs of a cycle. Each is compared with the known facts and committed in one transaction.

use std::collections::{BTreeMap, HashMap};

use super::{Cycle, CycleError, Deps, by_token, response_batches::is_fresh, stored};
use crate::{live::LiveConfig, schedule::Job};
use engine::{
    ingest::{self, ListedSchedules},
    pipeline::{self, Ingested, RESOURCES, RenamedToken, Renaming, RoundsPage, TIMED, Work},
    plan::PlannedPoll,
};
use model::{
    poll::{FetchedResponse, Payload, PollOutcome, PollRequest},
    rows::{Commit, TokenSnapshot},
    supply::{Endpoint, Resource, Timestamp, TokenId},
    wire,
};

pub(super) enum Input {
    /// Responses of a per-token endpoint.
    Responses(Endpoint, Vec<(PlannedPoll, FetchedResponse)>),
    /// A token that the token list contains under a new slug.
    Rename { old: TokenId, new: TokenId, item: Box<wire::TokenItem> },
    /// Rows of the token list.
    TokenRows { rows: Vec<(TokenId, wire::TokenItem)>, is_baseline: bool },
    /// The next unlock of each token.
    UpcomingRows(Vec<(TokenId, wire::UpcomingItem)>),
    /// The page of an investor.
    Investor(Box<InvestorPage>),
    /// Tokens to evaluate without new facts.
    Tokens(Vec<TokenId>),
    /// Rows to write without an evaluation.
    Commit(Box<Commit>),
}

pub(super) struct InvestorPage {
    pub(super) fetched: FetchedResponse,
    /// The row of the investor list, if it changed.
    pub(super) item: Option<wire::InvestorItem>,
    /// The date of the latest round in the previous list. Older rounds are history, which is stored without a notification.
    pub(super) since: Option<Timestamp>,
    pub(super) scope: PageScope,
}

/// The part of an investor's page that an input is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageScope {
    Everything,
    /// Only the rounds of this token.
    RoundsOf(TokenId),
    /// Everything but the rounds: the row of the list, and the poll.
    Row,
}

/// The known facts that an input is compared with.
#[derive(Default)]
pub(super) struct Known {
    tokens: HashMap<TokenId, TokenSnapshot>,
    /// For rows of the token list: the tokens with new facts that rules use, with the records that depend on the time.
    moved: HashMap<TokenId, TokenSnapshot>,
    /// For a rename: the token under its new slug.
    renamed: Option<RenamedToken>,
}

impl Input {
    pub(super) async fn read_known(&self, deps: &Deps, setup: &LiveConfig, now: Timestamp) -> Result<Known, CycleError> {
        let mut known = Known::default();
        match self {
            Input::Responses(endpoint, responses) => {
                // Only a fresh response is compared with records; for others, the state of the feed is enough.
                let ids = |fresh: bool| -> Vec<TokenId> {
                    let responses = responses.iter().filter(|response| is_fresh(response) == fresh);
                    responses.filter_map(|(_, fetched)| fetched.request.token().cloned()).collect()
                };
                let (fresh, other) = (ids(true), ids(false));
                if !other.is_empty() {
                    let other = stored("read the known facts", deps.store.tokens_with_feed(other, *endpoint)).await?;
                    known.tokens.extend(by_token(other));
                }
                if !fresh.is_empty() {
                    known.tokens.extend(deps.known(fresh, endpoint.resource().into_iter().collect()).await?);
                }
            }
            Input::Rename { old, new, item } => {
                known.tokens = deps.known(vec![old.clone(), new.clone()], RESOURCES.to_vec()).await?;
                if let (Some(from), Some(to)) = (known.tokens.get(old), known.tokens.get(new)) {
                    let global = stored("read the open alerts of no token", deps.store.global_alerts()).await?;
                    let silences = stored("read the silences", deps.store.silences(Some(now))).await?;
                    let renaming = Renaming::of(from, to, item, &global, &silences);
                    let latest = stored("read episodes", deps.store.episodes(renaming.openings())).await?;
                    known.renamed = Some(renaming.into_token(&latest, to, now));
                }
            }
            Input::TokenRows { rows, .. } => {
                known.tokens = deps.known(ids(rows), Vec::new()).await?;
                // A market cap or a supply that a rule uses can change its result without a change of the schedule.
                let is_moved = |(id, item): &&(TokenId, wire::TokenItem)| {
                    let index = &setup.active.rules.index;
                    let is_moved = |known: &TokenSnapshot| index.changes_read_field(&known.token.item, item);
                    setup.watch.covers(id) && known.tokens.get(id).is_some_and(is_moved)
                };
                let moved: Vec<TokenId> = rows.iter().filter(is_moved).map(|(id, _)| id.clone()).collect();
                if !moved.is_empty() {
                    known.moved = deps.known(moved, TIMED.to_vec()).await?;
                }
            }
            Input::UpcomingRows(rows) => known.tokens = deps.known(ids(rows), vec![Resource::Unlock]).await?,
            Input::Investor(page) => {
                let ids = page.rounds(setup).into_keys().collect();
                known.tokens = deps.known(ids, vec![Resource::Funding]).await?;
            }
            Input::Tokens(ids) => known.tokens = deps.known(ids.clone(), TIMED.to_vec()).await?,
            Input::Commit(_) => {}
        }
        Ok(known)
    }
}

impl Cycle<'_> {
    /// Compares an input with the known facts. Also returns the outcomes of its responses, to count them after the commit.
    pub(super) fn ingest<'k>(
        &mut self,
        input: &mut Input,
        known: &'k Known,
        (setup, listed): (&LiveConfig, &ListedSchedules),
    ) -> (Work<'k>, Vec<Option<Ingested>>) {
        let ingest = self.ingest_settings(setup);
        let (mut work, mut ingested) = (Work::default(), Vec::new());
        match input {
            Input::Responses(_, responses) => {
                ingested.extend(responses.iter().map(|(poll, fetched)| {
                    let known = fetched.request.token().and_then(|id| known.tokens.get(id))?;
                    Some(ingest.response(&mut work, known, poll, fetched, listed))
                }));
            }
            Input::Rename { old, new, .. } => {
                let (from, to) = (known.tokens.get(old), known.tokens.get(new));
                if let (Some(from), Some(to), Some(renamed)) = (from, to, &known.renamed) {
                    ingest.renamed(&mut work, from, to, renamed);
                    tracing::info!(from = old.as_str(), to = new.as_str(), "the token list contains a token under a new slug");
                }
            }
            Input::TokenRows { rows, is_baseline } => {
                for (id, item) in rows.iter() {
                    let Some(token) = known.tokens.get(id) else { continue };
                    if pipeline::is_renamed(token) {
                        ingest.relisted(&mut work, token);
                    }
                    self.gaps += ingest.token_row(&mut work, token, item, *is_baseline);
                    if let Some(moved) = known.moved.get(id) {
                        ingest.moved_row(&mut work, moved, item);
                    }
                }
            }
            Input::UpcomingRows(rows) => {
                for (id, row) in rows.iter() {
                    if let Some(known) = known.tokens.get(id) {
                        ingest.upcoming_row(&mut work, known, row);
                    }
                }
            }
            Input::Investor(page) => (work, ingested) = self.ingest_investor(page, known, setup),
            Input::Tokens(ids) => {
                work.tokens.extend(ids.iter().filter_map(|id| known.tokens.get(id)).map(|known| ingest.as_known(known)));
            }
            Input::Commit(commit) => {
                work.commit = Commit::clone(commit);
                // A part without a row of the poll log leaves the number to the part that has it.
                let gaps = if work.commit.polls.is_empty() { 0 } else { std::mem::take(&mut self.gaps) };
                if let (gaps @ 1.., Job::Poll(endpoint)) = (gaps, self.report.job) {
                    work.commit.polls.iter_mut().for_each(|poll| poll.parse_warnings_total += gaps);
                    self.deps.metrics.parse_warnings(endpoint, gaps);
                }
            }
        }
        (work, ingested)
    }

    /// Counts the polls of an input after its commit.
    pub(super) fn count_polls(&mut self, input: &Input, ingested: &[Option<Ingested>]) {
        if let (Input::Investor(page), [Some(ingested)]) = (input, ingested) {
            self.count_poll(&page.fetched, ingested);
            if let (None, PollRequest::Investor { id }) = (&ingested.failure, &page.fetched.request) {
                self.deps.rejected_pages.stored(id);
            }
        }
        let Input::Responses(_, responses) = input else { return };
        for ((poll, fetched), ingested) in responses.iter().zip(ingested) {
            let Some(ingested) = ingested else { continue };
            if ingested.lacks_segments {
                self.incomplete.add(poll, fetched);
            }
            self.count_poll(fetched, ingested);
        }
    }

    fn ingest_investor<'k>(
        &mut self,
        page: &InvestorPage,
        known: &'k Known,
        setup: &LiveConfig,
    ) -> (Work<'k>, Vec<Option<Ingested>>) {
        let (rounds, fetched) = (page.rounds(setup), &page.fetched);
        let failure = match &fetched.outcome {
            PollOutcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let (mut work, mut ingested) = (Work::default(), Vec::new());
        if !matches!(page.scope, PageScope::RoundsOf(_)) {
            let entry = ingest::poll_entry(fetched, failure.as_ref(), self.now);
            ingested.push(Some(Ingested { failure, parse_warnings: entry.parse_warnings_total, ..Ingested::default() }));
            work.commit.polls.push(entry);
            work.commit.investors.extend(page.item.clone().filter(|_| payload(fetched).is_some()));
        }
        if let Some(Payload::Investor(detail)) = payload(fetched) {
            let ingest = self.ingest_settings(setup);
            let since = page.since;
            for (token, rounds) in &rounds {
                let Some(known) = known.tokens.get(token) else { continue };
                let page = RoundsPage {
                    rounds,
                    covers: &|round| round.investor_id == detail.investor_id,
                    is_new: &|record| since.is_none_or(|since| record.interval().is_some_and(|at| at.start > since)),
                };
                ingest.rounds(&mut work, known, &page);
            }
        }
        (work, ingested)
    }
}

impl InvestorPage {
    /// Returns the rounds of watched tokens.
    pub(super) fn rounds(&self, setup: &LiveConfig) -> BTreeMap<TokenId, Vec<wire::FundingRound>> {
        let mut rounds: BTreeMap<TokenId, Vec<wire::FundingRound>> = BTreeMap::new();
        let Some(Payload::Investor(detail)) = payload(&self.fetched) else { return rounds };
        for round in detail.funding_rounds.items() {
            let Some(token) = round.token_id.as_str().map(TokenId::from).filter(|id| setup.watch.covers(id)) else { continue };
            match &self.scope {
                PageScope::Everything => {}
                PageScope::RoundsOf(only) if *only == token => {}
                PageScope::RoundsOf(_) | PageScope::Row => continue,
            }
            let mut round = round.clone();
            round.investor_id = detail.investor_id.clone();
            round.investor_name = detail.investor_name.clone();
            rounds.entry(token).or_default().push(round);
        }
        rounds
    }
}

/// Returns the data of a fresh response.
pub(super) fn payload(fetched: &FetchedResponse) -> Option<&Payload> {
    if let PollOutcome::Fresh(response) = &fetched.outcome { Some(&response.payload) } else { None }
}

fn ids<T>(rows: &[(TokenId, T)]) -> Vec<TokenId> {
    rows.iter().map(|(id, _)| id.clone()).collect()
}
