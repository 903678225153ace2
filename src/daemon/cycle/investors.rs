//! The investor list, and the pages of investors with a new round.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::{
    Cycle, CycleError, input::Input, input::InvestorPage, input::PageScope, input::payload, lists::ListResponse,
    response_batches::Responses, stored,
};
use engine::{pipeline::CompleteResponse, plan};
use model::poll::{Payload, PollRequest};
use model::rows::{Commit, FeedUpdate};
use model::{Endpoint, Timestamp, wire};

/// The time after an incomplete round during which its investor is polled again, even if the list does not change. Rules look back by the
/// same time by default.
const INCOMPLETE_ROUND_WINDOW: TimeDelta = TimeDelta::days(7);

/// Yields the investor list, then the page of each investor whose latest round changed. The first list is a baseline without pages.
pub(super) enum InvestorPages {
    List,
    Plan { changes: ListChanges, has_failed: bool },
    Pages { changes: ListChanges, responses: Responses },
    Done,
}

/// The changed rows of the investor list.
pub(super) struct ListChanges {
    rows: Vec<wire::InvestorItem>,
    /// The date of each investor's latest round in the previous list.
    latest: HashMap<String, Option<Timestamp>>,
    /// The number of changed rows whose page was not read yet.
    unread: usize,
    /// The state of the feed once all pages are read. Until then it is stored without its hash, so that the list is parsed again. Else a
    /// page that failed, was deferred, or was cut off would only be polled after the next change of the list.
    complete: Option<Box<FeedUpdate>>,
}

impl InvestorPages {
    pub(super) async fn next(&mut self, cycle: &mut Cycle<'_>) -> Result<Option<Input>, CycleError> {
        loop {
            match std::mem::replace(self, Self::Done) {
                Self::List => {
                    let Some(list) = cycle.poll_list(Endpoint::Investors).await? else { return Ok(None) };
                    let (commit, next) = Self::read_list(cycle, list).await?;
                    *self = next;
                    return Ok(Some(Input::Commit(Box::new(commit))));
                }
                Self::Plan { changes, has_failed } => {
                    let responses = cycle.poll_investors(&changes, has_failed).await?;
                    *self = Self::Pages { changes, responses };
                }
                Self::Pages { mut changes, mut responses } => {
                    let Some((poll, fetched)) = responses.next().await else {
                        let feed = changes.complete.filter(|_| changes.unread == 0);
                        return Ok(feed.map(|feed| Input::Commit(Box::new(Commit { feeds: vec![*feed], ..Commit::default() }))));
                    };
                    let page = match &poll.request {
                        PollRequest::Investor { id } => {
                            let item = changes.rows.iter().find(|item| item.investor_id.as_str() == Some(id)).cloned();
                            let is_read = payload(&fetched).is_some() && item.is_some();
                            changes.unread = changes.unread.saturating_sub(usize::from(is_read));
                            let since = changes.latest.get(id.as_str()).copied().flatten();
                            Some(Input::Investor(Box::new(InvestorPage { fetched, item, since, scope: PageScope::Everything })))
                        }
                        _ => None,
                    };
                    *self = Self::Pages { changes, responses };
                    if page.is_some() {
                        return Ok(page);
                    }
                }
                Self::Done => return Ok(None),
            }
        }
    }

    /// Compares the list with the previous one. Returns the rows to write and the next stage.
    async fn read_list(cycle: &mut Cycle<'_>, list: ListResponse) -> Result<(Commit, Self), CycleError> {
        let CompleteResponse { mut commit, ingested, is_baseline } = cycle.check_list(&list.poll, &list.fetched, list.known, 0);
        let before = stored("read the investors", cycle.deps.store.investors()).await?;
        let date = |item: &wire::InvestorItem| Some((item.investor_id.as_str()?.to_owned(), item.latest_funding_date.copied()));
        let latest: HashMap<String, Option<Timestamp>> = before.iter().filter_map(date).collect();
        let is_changed =
            |item: &&wire::InvestorItem| date(item).is_some_and(|(id, date)| latest.get(&id).is_none_or(|known| *known != date));
        let rows: Vec<wire::InvestorItem> = match (payload(&list.fetched), &ingested.failure) {
            (Some(Payload::Investors(items)), None) => items.iter().filter(is_changed).cloned().collect(),
            _ => Vec::new(),
        };
        if is_baseline {
            commit.investors = rows;
            return Ok((commit, Self::Done));
        }
        let complete = match &mut commit.feeds[..] {
            [feed] if !rows.is_empty() => {
                let complete = Box::new(feed.clone());
                feed.state.hash.take().map(|_| complete)
            }
            _ => None,
        };
        let changes = ListChanges { unread: rows.len(), rows, latest, complete };
        Ok((commit, Self::Plan { changes, has_failed: ingested.failure.is_some() }))
    }
}

impl Cycle<'_> {
    /// Polls the investors with changed rows, as far as the credits allow. Also polls the investors with an incomplete round in the last
    /// [`INCOMPLETE_ROUND_WINDOW`], unless the poll of the list failed (`has_failed`).
    async fn poll_investors(&mut self, changes: &ListChanges, has_failed: bool) -> Result<Responses, CycleError> {
        let mut ids: Vec<String> = changes.rows.iter().filter_map(|item| item.investor_id.as_str().map(str::to_owned)).collect();
        if !has_failed {
            let since = self.now.checked_sub_signed(INCOMPLETE_ROUND_WINDOW).unwrap_or(self.now);
            let awaited = stored("read the incomplete rounds", self.deps.store.awaited_investors(since)).await?;
            let is_changed = |id: &String| changes.rows.iter().any(|item| item.investor_id.as_str() == Some(id));
            ids.extend(awaited.into_iter().filter(|id| !is_changed(id)));
        }
        ids.retain(|id| !self.skip_rejected_page(id));
        let _planning = self.deps.ledger.planning.lock().await;
        let basis = self.basis().await?;
        Ok(self.poll(plan::plan_investors(ids, &basis)))
    }
}
