//! The investor list, and the rounds of those whose latest one is new.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::{Cycle, CycleError, payload, stored};
use engine::{
    ingest,
    pipeline::{Ingested, RoundsPage, Work},
    plan,
};
use model::poll::{FetchedAnswer, Payload, PollOutcome, PollRequest};
use model::rows::Commit;
use model::{Endpoint, Resource, Timestamp, TokenId, wire};

/// How long after a round that lacks facts came its investor is asked again, whatever the list says: as long as rules look back by
/// default.
const AWAITED_FOR: TimeDelta = TimeDelta::days(7);

impl Cycle<'_> {
    /// Asks for the investor list, then for the rounds of those whose latest one is new. The first list is a baseline.
    pub(super) async fn investors(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::Investors).await? else { return Ok(()) };
        let deps = self.deps;
        let mut last = self.whole_update(&ask, &fetched, known, 0);
        let (is_baseline, has_failed) = (last.is_baseline, last.ingested.failure.is_some());
        let mut listed = Vec::new();
        if let (Some(Payload::Investors(items)), None) = (payload(&fetched), &last.ingested.failure) {
            listed.clone_from(items);
        }
        let before = stored("read the investors", deps.store.investors()).await?;
        let latest: HashMap<&str, Option<Timestamp>> =
            before.iter().filter_map(|item| Some((item.investor_id.as_str()?, item.latest_funding_date.copied()))).collect();
        let is_new = |item: &&wire::InvestorItem| {
            item.investor_id
                .as_str()
                .is_some_and(|id| latest.get(id).is_none_or(|date| *date != item.latest_funding_date.copied()))
        };
        let news: Vec<wire::InvestorItem> = listed.iter().filter(is_new).cloned().collect();
        // The list counts as read only once every page that it points to was: until then it is parsed again, whatever its hash. A page
        // that failed, was left for later or was cut off by an end of the process would else be asked for only when the list changes.
        let hash = match &mut last.commit.feeds[..] {
            [feed] if !is_baseline && !news.is_empty() => feed.state.hash.take().map(|hash| (feed.clone(), hash)),
            _ => None,
        };
        {
            let _turn = deps.turn.lock().await;
            let investors = if is_baseline { news.clone() } else { Vec::new() };
            self.evaluate_and_commit(Work { commit: Commit { investors, ..last.commit }, tokens: Vec::new() }).await?;
        }
        if is_baseline {
            return Ok(());
        }
        let mut asked: Vec<String> = news.iter().filter_map(|item| item.investor_id.as_str().map(str::to_owned)).collect();
        if !has_failed {
            let since = self.now.checked_sub_signed(AWAITED_FOR).unwrap_or(self.now);
            let awaited = stored("read whose rounds wait for facts", deps.store.awaited_investors(since)).await?;
            asked.extend(awaited.into_iter().filter(|id| news.iter().all(|item| item.investor_id.as_str() != Some(id))));
        }
        let mut answers = {
            let _planning = deps.ledger.planning.lock().await;
            let basis = self.basis(Endpoint::Investors).await?;
            self.ask(plan::plan_investors(asked, &basis))
        };
        let mut unread = news.len();
        while let Some((ask, fetched)) = answers.next().await {
            let _turn = deps.turn.lock().await;
            let PollRequest::Investor { id } = &ask.request else { continue };
            let since = latest.get(id.as_str()).copied().flatten();
            let item = news.iter().find(|item| item.investor_id.as_str() == Some(id));
            if self.investor(&fetched, item, since).await? && item.is_some() {
                unread = unread.saturating_sub(1);
            }
        }
        if let (Some((mut feed, hash)), 0) = (hash, unread) {
            feed.state.hash = Some(hash);
            let _turn = deps.turn.lock().await;
            self.evaluate_and_commit(Work { commit: Commit { feeds: vec![feed], ..Commit::default() }, tokens: Vec::new() })
                .await?;
        }
        Ok(())
    }

    /// Ingests the rounds of one investor for the tokens that are watched. Rounds that are older than what the list knew are
    /// history: they are kept, and told to nobody. Answers whether the page was read.
    async fn investor(
        &mut self,
        fetched: &FetchedAnswer,
        item: Option<&wire::InvestorItem>,
        since: Option<Timestamp>,
    ) -> Result<bool, CycleError> {
        let deps = self.deps;
        let setup = deps.setup();
        let failure = match &fetched.outcome {
            PollOutcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let entry = ingest::poll_entry(fetched, failure.as_ref(), self.now);
        self.note(fetched, &Ingested { failure, oddities: entry.oddities_total, ..Ingested::default() });
        let mut work = Work { commit: Commit { polls: vec![entry], ..Commit::default() }, tokens: Vec::new() };
        let mut rounds: HashMap<TokenId, Vec<wire::FundingRound>> = HashMap::new();
        let known;
        if let Some(Payload::Investor(detail)) = payload(fetched) {
            work.commit.investors.extend(item.cloned());
            for round in detail.funding_rounds.items() {
                let Some(token) = round.token_id.as_str().map(TokenId::from) else { continue };
                if setup.watch.covers(&token) {
                    let mut round = round.clone();
                    round.investor_id = detail.investor_id.clone();
                    round.investor_name = detail.investor_name.clone();
                    rounds.entry(token).or_default().push(round);
                }
            }
            known = deps.known(rounds.keys().cloned().collect(), vec![Resource::Funding]).await?;
            let ingest = self.ingest(&setup);
            for (token, rounds) in &rounds {
                let Some(known) = known.get(token) else { continue };
                let page = RoundsPage {
                    rounds,
                    speaks_of: &|round| round.investor_id == detail.investor_id,
                    is_news: &|record| since.is_none_or(|since| record.interval().is_some_and(|at| at.start > since)),
                };
                ingest.rounds(&mut work, known, &page);
            }
        }
        let is_read = payload(fetched).is_some();
        self.evaluate_and_commit(work).await?;
        Ok(is_read)
    }
}
