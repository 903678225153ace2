//! Lists that one poll reads completely: the token list and `upcoming`.

use std::collections::{HashMap, HashSet};

use chrono::NaiveTime;

use super::{Cycle, CycleError, TOKENS_PER_INPUT, input::Input, input::payload, source::InputBatch, stored};
use crate::live::LiveConfig;
use engine::{pipeline, plan::PlannedPoll};
use model::{
    poll::{FetchedResponse, Payload, PollOutcome, PollRequest},
    supply::{FeedState, Timestamp, TokenId},
    wire,
};

pub(super) struct ListResponse {
    pub(super) poll: PlannedPoll,
    pub(super) fetched: FetchedResponse,
    /// The known state of the feed.
    pub(super) known: FeedState,
}

impl Cycle<'_> {
    /// Returns the inputs of a batch. The last input of a list writes the state of its feed, so that a list that was not processed
    /// completely is polled again.
    pub(super) async fn inputs(&mut self, batch: InputBatch, setup: &LiveConfig) -> Result<Vec<Input>, CycleError> {
        let list = match batch {
            InputBatch::One(input) => return Ok(vec![input]),
            InputBatch::List(list) => *list,
        };
        let expected = self.expected_rows(&list, setup).await?;
        let checked = self.check_list(&list.poll, &list.fetched, list.known, expected);
        let (mut inputs, mut commit) = (Vec::new(), checked.commit);
        if let (PollOutcome::Fresh(response), None) = (list.fetched.outcome, checked.ingested.failure) {
            match response.payload {
                Payload::Tokens(items) => {
                    let rows: Vec<_> = items.into_iter().filter_map(|item| Some((id(item.id.as_str())?, item))).collect();
                    self.report.is_first_list = checked.is_baseline;
                    if !checked.is_baseline {
                        inputs = self.renames(&rows, setup).await?;
                    }
                    commit.token_list_complete = true;
                    commit.listed = rows.iter().map(|(id, _)| id.clone()).collect();
                    inputs.extend(split(rows, |rows| Input::TokenRows { rows, is_baseline: checked.is_baseline }));
                }
                Payload::Upcoming(rows) => {
                    let rows = rows.into_iter().filter_map(|row| Some((id(row.token_id.as_str())?, row)));
                    inputs = split(rows.filter(|(id, _)| setup.watch.covers(id)), Input::UpcomingRows);
                }
                _ => {}
            }
        }
        inputs.push(Input::Commit(Box::new(commit)));
        Ok(inputs)
    }

    /// Returns the number of watched tokens that an empty response of `upcoming` should contain. Zero for all other responses.
    async fn expected_rows(&self, list: &ListResponse, setup: &LiveConfig) -> Result<usize, CycleError> {
        match (&list.poll.request, payload(&list.fetched)) {
            (PollRequest::Upcoming { start, end }, Some(Payload::Upcoming(rows))) if rows.is_empty() => {
                let from = start.and_time(NaiveTime::MIN).and_utc().max(self.now);
                let until = end.and_time(NaiveTime::MIN).and_utc();
                let due = self.deps.store.tokens_due(vec![(from, until)], Timestamp::default());
                Ok(stored("read the upcoming unlocks", due).await?.iter().filter(|id| setup.watch.covers(id)).count())
            }
            _ => Ok(0),
        }
    }

    /// Returns the renames of watched tokens: a token is missing from the list, and a new row describes the same token.
    async fn renames(&self, rows: &[(TokenId, wire::TokenItem)], setup: &LiveConfig) -> Result<Vec<Input>, CycleError> {
        let listed = stored("read the previous token list", self.deps.store.token_ids(true)).await?;
        let now: HashSet<&TokenId> = rows.iter().map(|(id, _)| id).collect();
        let before: HashSet<&TokenId> = listed.iter().collect();
        let missing: Vec<TokenId> = listed.iter().filter(|id| !now.contains(id)).cloned().collect();
        let new: Vec<TokenId> = rows.iter().map(|(id, _)| id).filter(|id| !before.contains(id)).cloned().collect();
        if missing.is_empty() || new.is_empty() {
            return Ok(Vec::new());
        }
        let (missing, new) = (self.deps.known(missing, Vec::new()).await?, self.deps.known(new, Vec::new()).await?);
        let missing: Vec<wire::TokenItem> = missing.values().map(|known| known.token.item.clone()).collect();
        let is_unread = |id: &TokenId| new.get(id).is_some_and(pipeline::is_unread);
        let unread: Vec<wire::TokenItem> = rows.iter().filter(|(id, _)| is_unread(id)).map(|(_, item)| item.clone()).collect();
        let mut by_id: HashMap<&TokenId, &wire::TokenItem> = HashMap::new();
        for (id, item) in rows {
            by_id.entry(id).or_insert(item);
        }
        let rename = |(old, new): (TokenId, TokenId)| {
            let item = by_id.get(&new).filter(|_| setup.watch.covers(&new))?;
            Some(Input::Rename { old, item: Box::new((*item).clone()), new })
        };
        Ok(pipeline::renamed_tokens(&missing, &unread).into_iter().filter_map(rename).collect())
    }
}

fn id(slug: Option<&str>) -> Option<TokenId> {
    slug.map(TokenId::from)
}

fn split<T>(rows: impl IntoIterator<Item = T>, input: impl Fn(Vec<T>) -> Input) -> Vec<Input> {
    let mut rows = rows.into_iter();
    let next = || Some(rows.by_ref().take(TOKENS_PER_INPUT).collect::<Vec<T>>()).filter(|rows| !rows.is_empty());
    std::iter::from_fn(next).map(input).collect()
}
