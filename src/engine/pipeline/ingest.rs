//! What an answer, or a row of one, makes of a token: what is written, and what the rules are to look at.

use std::borrow::Cow;

use crate::late::Waiting;
use crate::plan::PlannedPoll;
use crate::self_monitor::{FeedNews, FeedResult};
use crate::upcoming::{self, Reconciled};
use crate::{diff, ingest};
use model::{
    Alert, Commit, Endpoint, FailureKind, FeedId, FeedState, FeedUpdate, FetchedAnswer, PollFailure, PollOutcome, Record,
    RecordKey, Resource, Timestamp, Token, TokenSnapshot, Tracked, Watch, wire,
};

use super::{TIMED, TokenNews, polled_at};

/// Tokens with an unlock ahead that `upcoming` must name some of: it may well leave out a single small one.
const FEW_EXPECTED: usize = 3;

/// By what answers are ingested.
#[derive(Clone, Copy, Debug)]
pub struct Ingest<'a> {
    /// Which tokens, and which groups hold them.
    pub watch: &'a Watch,
    /// Comparison of amounts, and proof of removals.
    pub settings: diff::Settings,
    /// The time of the cycle.
    pub now: Timestamp,
}

/// What answers come to: what to write of them, and the tokens to evaluate.
#[derive(Debug, Default)]
pub struct Work<'a> {
    /// What is written, so far.
    pub commit: Commit,
    /// Tokens with something new.
    pub tokens: Vec<TokenNews<'a>>,
}

/// How an answer fared.
#[derive(Clone, Debug, Default)]
pub struct Ingested {
    /// Why nothing of it was taken.
    pub failure: Option<PollFailure>,
    /// Most of what was known is missing from it: it is held until that is confirmed.
    pub is_held: bool,
    /// Answers were held until this one; why they no longer are, for people.
    pub released: Option<String>,
    /// It is to be asked for once more, with the linear segments beside it.
    pub lacks_segments: bool,
    /// What was odd in it, and harmless.
    pub oddities: u32,
}

/// What a list says of a token's funding rounds.
#[derive(Clone, Copy)]
pub struct RoundsPage<'a> {
    pub rounds: &'a [wire::FundingRound],
    /// Whether a round that is known is one that the page speaks of.
    pub speaks_of: &'a dyn Fn(&wire::FundingRound) -> bool,
    /// Whether a round is told, rather than history.
    pub is_news: &'a dyn Fn(&Record) -> bool,
}

impl Ingest<'_> {
    /// A complete answer about a token, or why there is none. The first one of a feed is the baseline and tells no change.
    pub fn answer<'k>(
        &self,
        work: &mut Work<'k>,
        known: &'k TokenSnapshot,
        ask: &PlannedPoll,
        fetched: &FetchedAnswer,
    ) -> Ingested {
        let Self { watch, settings, now } = self;
        let taken = ingest::ingest(known, ask, fetched, settings, *now);
        let entry = ingest::entry_with(fetched, taken.failure.as_ref(), &taken.oddities, *now);
        let oddities = entry.oddities_total;
        work.commit.polls.push(entry);
        work.commit.changes.extend(taken.changes.iter().cloned());
        if taken.failure.is_none() && !matches!(fetched.outcome, PollOutcome::Unchanged) {
            let mut token = watch.placed(known.token.clone());
            if let (Some((name, symbol)), true) = (taken.named, token.item.name.is_absent()) {
                token.item.name = name.into();
                token.item.symbol = symbol.into();
                work.commit.tokens.push(token.item.clone());
            }
            let feed = &taken.update.id;
            work.tokens.push(TokenNews {
                // Not any more, where a reload came between the question and the answer.
                is_watched: watch.covers(&token.id),
                token: Cow::Owned(token),
                records: Cow::Owned(taken.after),
                resources: feed.endpoint.resource().into_iter().collect(),
                changes: taken.changes,
                added: taken.added,
                late: taken.late,
                alerts: &known.alerts,
                polled_at: polled_at(&with_feed(known, feed.endpoint, &taken.update.state)),
            });
        }
        work.commit.feeds.push(taken.update);
        let (is_held, released, lacks_segments) = (taken.is_held, taken.released, taken.lacks_segments);
        Ingested { failure: taken.failure, is_held, released, lacks_segments, oddities }
    }

    /// A row of the token list: only the supply is a fact that changes are told of. What the row lacks of its facts stays as it was
    /// known; gives how many these are.
    pub fn token_row<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, item: &wire::TokenItem, is_baseline: bool) -> u32 {
        let mut item = item.clone();
        let gaps = keep_facts(&mut item, &known.token.item);
        let item = &item;
        if known.token.item != *item {
            work.commit.tokens.push(item.clone());
        }
        if is_baseline || !self.watch.covers(&known.token.id) {
            return gaps;
        }
        let told = known.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::Allocations);
        let told = told.and_then(|(_, header)| header.get("maxSupply")).and_then(serde_json::Value::as_f64);
        let (from, to) = (known.token.item.max_supply.copied(), item.max_supply.copied());
        let change = diff::max_supply_change(&known.token.id, from, to, &self.settings);
        if let Some(change) = change.filter(|_| told != to) {
            work.commit.changes.push(change.clone());
            let token = self.watch.placed(Token { item: item.clone(), ..known.token.clone() });
            work.tokens.push(TokenNews {
                changes: vec![change],
                polled_at: vec![(Resource::Allocation, self.now)],
                ..news(token, &known.alerts, Vec::new(), None)
            });
        }
        gaps
    }

    /// A row of the token list that moved something that rules read: they look at the token as the row has it, in one with what the row
    /// tells. `known` has what time changes.
    pub fn moved_row<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, item: &wire::TokenItem) {
        let mut news = self.as_known(known);
        let token = news.token.to_mut();
        token.item = item.clone();
        keep_facts(&mut token.item, &known.token.item);
        if let Some(at) = work.tokens.iter().position(|told| told.token.id == known.token.id) {
            let told = work.tokens.remove(at);
            news.polled_at.splice(0..0, told.polled_at);
            news.changes = told.changes;
        }
        work.tokens.push(news);
    }

    /// The row that tells a token's next unlock: fresh valuations, and whether its schedule should be read again.
    pub fn upcoming_row<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, row: &wire::UpcomingItem) {
        let reconciled = upcoming::reconcile(known, row, self.settings.tolerance, self.now);
        if reconciled == Reconciled::default() {
            return;
        }
        let mut token = self.watch.placed(known.token.clone());
        if token.item.name.is_absent() {
            token.item.name = row.token_name.clone();
            token.item.symbol = row.token_symbol.clone();
            token.item.market_cap = row.market_cap;
            work.commit.tokens.push(token.item.clone());
        }
        let id = FeedId::of(Endpoint::UnlockEvents, &token.id);
        let mut state = known.feed(Endpoint::UnlockEvents).cloned().unwrap_or_default();
        state.stale |= reconciled.is_stale;
        let diff = diff::Diff { put: reconciled.put, ..Default::default() };
        if !diff.put.is_empty() {
            let records = diff::apply(&known.records, &diff);
            work.tokens.push(TokenNews {
                polled_at: vec![(Resource::Unlock, self.now)],
                ..news(token, &known.alerts, records, Some(Resource::Unlock))
            });
        }
        work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: None });
    }

    /// Rounds of a token. What is not news is kept, and told to nobody.
    pub fn rounds<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, page: &RoundsPage<'_>) {
        let is_meant = |tracked: &&Tracked| matches!(&tracked.record, Record::Funding(round) if (page.speaks_of)(round));
        let before: Vec<Tracked> = known.records.iter().filter(is_meant).cloned().collect();
        let token = self.watch.placed(known.token.clone());
        let mut diff = diff::diff_funding(&token.id, &before, &[], page.rounds, &self.settings, &diff::DateWindow::ALL);
        // Absence is no proof here: one investor's page speaks for itself alone.
        diff.removed.clear();
        let header = known.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::Investors).map(|(_, header)| header);
        let waiting = Waiting::read(header, self.now);
        let is_awaited = |key: &Option<RecordKey>| key.as_ref().is_some_and(|key| waiting.has(key));
        diff.changes.retain(|change| is_awaited(&change.key) || change.new.as_ref().is_none_or(page.is_news));
        let is_new = |put: &&model::rows::Put| before.iter().all(|tracked| tracked.key != put.key) && (page.is_news)(&put.record);
        let added: Vec<Tracked> =
            diff.put.iter().filter(is_new).map(|put| Tracked { key: put.key.clone(), record: put.record.clone() }).collect();
        let rounds: Vec<Tracked> = known.records_of(Resource::Funding).cloned().collect();
        let records = diff::apply(&rounds, &diff);
        let late = waiting.late(&before, &diff.put);
        let mut header = serde_json::Value::Object(serde_json::Map::new());
        waiting.next(&added, &records, self.now).write(&mut header);
        work.commit.changes.extend(diff.changes.iter().cloned());
        let id = FeedId::of(Endpoint::Investors, &token.id);
        let mut state = known.feed(Endpoint::Investors).cloned().unwrap_or_default();
        state.baseline_at.get_or_insert(self.now);
        (state.read_at, state.tried_at) = (Some(self.now), Some(self.now));
        work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: Some(header) });
        work.tokens.push(TokenNews {
            changes: diff.changes,
            added,
            late,
            polled_at: vec![(Resource::Funding, self.now)],
            ..news(token, &known.alerts, records, Some(Resource::Funding))
        });
    }

    /// A token as it is known, where only time, its place or the rules may have changed.
    pub fn as_known<'k>(&self, known: &'k TokenSnapshot) -> TokenNews<'k> {
        let token = self.watch.placed(known.token.clone());
        TokenNews {
            is_watched: self.watch.covers(&token.id),
            records: Cow::Borrowed(&known.records),
            resources: Cow::Borrowed(&TIMED),
            polled_at: polled_at(&known.feeds),
            ..news(token, &known.alerts, Vec::new(), None)
        }
    }
}

/// Fills a row of the token list with what was known. Market cap and other supplies are valuations: without one there is none.
fn keep_facts(item: &mut wire::TokenItem, known: &wire::TokenItem) -> u32 {
    fn keep<T: Clone>(field: &mut wire::Maybe<T>, known: &wire::Maybe<T>) -> u32 {
        let is_gap = field.get().is_none() && known.get().is_some();
        if is_gap {
            field.clone_from(known);
        }
        u32::from(is_gap)
    }
    keep(&mut item.max_supply, &known.max_supply)
        + keep(&mut item.last_updated_date, &known.last_updated_date)
        + keep(&mut item.name, &known.name)
        + keep(&mut item.symbol, &known.symbol)
}

fn news(token: Token, alerts: &[Alert], records: Vec<Tracked>, resource: Option<Resource>) -> TokenNews<'_> {
    TokenNews {
        token: Cow::Owned(token),
        is_watched: true,
        records: Cow::Owned(records),
        resources: resource.into_iter().collect(),
        changes: Vec::new(),
        added: Vec::new(),
        late: Vec::new(),
        alerts,
        polled_at: Vec::new(),
    }
}

/// The feeds of a token, one of them as it is from now on.
fn with_feed(known: &TokenSnapshot, endpoint: Endpoint, state: &FeedState) -> Vec<(Endpoint, FeedState)> {
    let others = known.feeds.iter().filter(|(of, _)| *of != endpoint).cloned();
    others.chain([(endpoint, state.clone())]).collect()
}

/// What came of a feed that is asked once for everything.
#[derive(Debug)]
pub struct WholeAnswer {
    /// Its state and the row of the poll log: written last, once everything else of the answer is.
    pub commit: Commit,
    pub ingested: Ingested,
    /// It is the first one: what it names is known from now on, and no news.
    pub is_baseline: bool,
}

/// An answer of a feed that is asked once for everything. One that is empty where there was a list is taken for a failure; so is one of
/// `upcoming`, which may well be empty, where at least a few tokens (`expected`) are known to unlock in the days that it speaks of.
pub fn whole_answer(
    ask: &PlannedPoll,
    fetched: &FetchedAnswer,
    known: FeedState,
    expected: usize,
    now: Timestamp,
) -> WholeAnswer {
    let id = fetched.request.feed();
    let is_baseline = known.baseline_at.is_none();
    let failure = match &fetched.outcome {
        PollOutcome::Failed(failure) => Some(failure.clone()),
        PollOutcome::Fresh(answer) if ingest::rows(&answer.payload) == 0 => {
            let expects = match id.endpoint {
                Endpoint::Upcoming if expected >= FEW_EXPECTED => Some(format!("{expected} tokens have an unlock ahead")),
                Endpoint::Upcoming => None,
                _ => (!is_baseline).then(|| "there was a list before".to_owned()),
            };
            expects.map(|expects| PollFailure {
                kind: FailureKind::Emptied,
                message: format!("{id}: the answer is complete but empty, where {expects}; nothing of it is believed"),
                retry_at: None,
            })
        }
        _ => None,
    };
    let entry = ingest::poll_entry(fetched, failure.as_ref(), now);
    let mut state = match &failure {
        Some(failure) => ingest::failed(known, fetched, failure.kind, now),
        None => ingest::read(known, ask, fetched, now),
    };
    if let (PollOutcome::Fresh(answer), None) = (&fetched.outcome, &failure) {
        state.hash = Some(answer.hash);
        state.baseline_at.get_or_insert(now);
    }
    let feed = FeedUpdate { id, state, put: Vec::new(), removed: Vec::new(), header: None };
    let oddities = entry.oddities_total;
    let commit = Commit { polls: vec![entry], feeds: vec![feed], ..Commit::default() };
    WholeAnswer { commit, ingested: Ingested { failure, oddities, ..Ingested::default() }, is_baseline }
}

/// What incidents of the source go by: how a feed fared.
pub fn feed_news(feed: FeedId, ingested: &Ingested) -> FeedNews {
    let held = "more than half of what lies ahead is missing from a complete answer; nothing is taken out before at least four answers \
                over 24 hours say so, or `cliffwatch accept` with the token does";
    let result = match ingested {
        Ingested { failure: Some(failure), .. } => FeedResult::Failed(failure.clone()),
        Ingested { is_held: true, .. } => FeedResult::Held(held.to_owned()),
        Ingested { released: Some(why), .. } => FeedResult::Released(why.clone()),
        _ => FeedResult::Fine,
    };
    FeedNews { feed, result }
}
