//! Applies responses, and rows of lists, to tokens: collects what to write and what to evaluate.

use std::borrow::Cow;

use crate::diff::{self, DateWindow, RecordPoll};
use crate::ingest::{self, ListedSchedules};
use crate::late::IncompleteRecords;
use crate::plan::PlannedPoll;
use crate::removal::{self, Release, RemovalProof, ResponseQuality};
use crate::self_monitor::{FeedOutcome, FeedResult};
use crate::upcoming::{self, Reconciled};
use model::{
    Alert, Commit, Endpoint, FailureKind, FeedId, FeedState, FeedUpdate, FetchedResponse, PollFailure, PollOutcome, Record,
    RecordKey, Resource, Timestamp, Token, TokenSnapshot, Tracked, Watch, wire,
};

use super::{ScheduleFeed, TIMED, TokenUpdate, polled_at};

/// The minimum number of tokens with an upcoming unlock for which an empty `upcoming` list is a failure. A list may omit a few small
/// unlocks.
const FEW_EXPECTED: usize = 3;

/// The settings of ingest.
#[derive(Clone, Copy, Debug)]
pub struct Ingest<'a> {
    /// The watched tokens and their groups.
    pub watch: &'a Watch,
    pub settings: diff::Settings,
    /// The time of the cycle.
    pub now: Timestamp,
}

/// The outcome of responses: the rows to write, and the tokens to evaluate.
#[derive(Debug, Default)]
pub struct Work<'a> {
    pub commit: Commit,
    /// The tokens to evaluate.
    pub tokens: Vec<TokenUpdate<'a>>,
}

/// The outcome of one poll.
#[derive(Clone, Debug, Default)]
pub struct Ingested {
    /// `None` if the poll succeeded.
    pub failure: Option<PollFailure>,
    /// Whether the response is held because most known records are missing from it.
    pub is_held: bool,
    /// The reason if a hold ended with this response.
    pub released: Option<Release>,
    /// Whether the schedule must be polled again, together with its linear segments.
    pub lacks_segments: bool,
    /// The number of parse warnings.
    pub parse_warnings: u32,
}

/// The funding rounds of a token on the page of one investor, or on all pages.
#[derive(Clone, Copy)]
pub struct RoundsPage<'a> {
    pub rounds: &'a [wire::FundingRound],
    /// Returns whether a known round would be on the page.
    pub covers: &'a dyn Fn(&wire::FundingRound) -> bool,
    /// Returns whether a round is reported as new. All others are history.
    pub is_new: &'a dyn Fn(&Record) -> bool,
}

impl Ingest<'_> {
    /// Applies the outcome of a poll of one token's feed. The first complete response of a feed is the baseline, without changes. `listed`
    /// has the last responses about all tokens.
    pub fn response<'k>(
        &self,
        work: &mut Work<'k>,
        known: &'k TokenSnapshot,
        poll: &PlannedPoll,
        fetched: &FetchedResponse,
        listed: &ListedSchedules,
    ) -> Ingested {
        let Self { watch, settings, now } = self;
        let taken = ingest::ingest(known, poll, fetched, (settings, listed), *now);
        let entry = ingest::entry_with(fetched, taken.failure.as_ref(), &taken.parse_warnings, *now);
        let parse_warnings = entry.parse_warnings_total;
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
            work.tokens.push(TokenUpdate {
                // A reload may have removed the token from the watched ones since the request.
                is_watched: watch.covers(&token.id),
                token: Cow::Owned(token),
                records: Cow::Owned(taken.after),
                schedule: (feed.endpoint == Endpoint::UnlockEvents).then(|| ScheduleFeed {
                    state: Cow::Owned(taken.update.state.clone()),
                    header: taken.update.header.clone().map(Cow::Owned).or_else(|| known.schedule_header().map(Cow::Borrowed)),
                }),
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
        Ingested { failure: taken.failure, is_held, released, lacks_segments, parse_warnings }
    }

    /// Applies a row of the token list, in which only a change of the supply is reported. Facts that the row lacks stay as they were
    /// known. Returns the number of these gaps.
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
        let header = known.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::Allocations);
        let reported = header.and_then(|(_, header)| header.get("maxSupply")).and_then(serde_json::Value::as_f64);
        let (from, to) = (known.token.item.max_supply.copied(), item.max_supply.copied());
        let change = diff::max_supply_change(&known.token.id, from, to, self.settings.tolerance);
        if let Some(change) = change.filter(|_| reported != to) {
            work.commit.changes.push(change.clone());
            let token = self.watch.placed(Token { item: item.clone(), ..known.token.clone() });
            work.tokens.push(TokenUpdate {
                changes: vec![change],
                polled_at: vec![(Resource::Allocation, self.now)],
                ..token_update(token, &known.alerts, Vec::new(), None)
            });
        }
        gaps
    }

    /// Applies a row of the token list with a new fact that rules use: the token is evaluated with the facts of the row. `known` holds
    /// the records that depend on the time.
    pub fn moved_row<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, item: &wire::TokenItem) {
        let mut update = self.as_known(known);
        let token = update.token.to_mut();
        token.item = item.clone();
        keep_facts(&mut token.item, &known.token.item);
        if let Some(at) = work.tokens.iter().position(|other| other.token.id == known.token.id) {
            let of_row = work.tokens.remove(at);
            update.polled_at.splice(0..0, of_row.polled_at);
            update.changes = of_row.changes;
        }
        work.tokens.push(update);
    }

    /// Applies a row of `upcoming`: it has fresh valuations, and may show that the schedule must be polled again.
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
            work.tokens.push(TokenUpdate {
                schedule: ScheduleFeed::of(known),
                polled_at: vec![(Resource::Unlock, self.now)],
                ..token_update(token, &known.alerts, records, Some(Resource::Unlock))
            });
        }
        work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: None });
    }

    /// Applies the funding rounds of a token. Rounds that are history are stored without a change.
    pub fn rounds<'k>(&self, work: &mut Work<'k>, known: &'k TokenSnapshot, page: &RoundsPage<'_>) {
        let is_covered = |tracked: &&Tracked| matches!(&tracked.record, Record::Funding(round) if (page.covers)(round));
        let before: Vec<Tracked> = known.records.iter().filter(is_covered).cloned().collect();
        let token = self.watch.placed(known.token.clone());
        // One investor's page lists only some of the rounds, so a missing round is not a removal.
        let proof = RemovalProof::new(self.settings.proof, ResponseQuality::Partial, &[], None, self.now);
        let poll = RecordPoll { token: &token.id, window: &DateWindow::ALL, tolerance: self.settings.tolerance };
        let mut diff = diff::diff_funding(&poll, &before, &proof, page.rounds);
        let header = known.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::Investors).map(|(_, header)| header);
        let incomplete = IncompleteRecords::read(header, self.now);
        let is_incomplete = |key: &Option<RecordKey>| key.as_ref().is_some_and(|key| incomplete.contains(key));
        diff.changes.retain(|change| is_incomplete(&change.key) || change.new.as_ref().is_none_or(page.is_new));
        let is_new = |put: &&model::rows::Put| before.iter().all(|tracked| tracked.key != put.key) && (page.is_new)(&put.record);
        let added: Vec<Tracked> =
            diff.put.iter().filter(is_new).map(|put| Tracked { key: put.key.clone(), record: put.record.clone() }).collect();
        let rounds: Vec<Tracked> = known.records_of(Resource::Funding).cloned().collect();
        let records = diff::apply(&rounds, &diff);
        let late = incomplete.late(&before, &diff.put);
        let mut header = serde_json::Value::Object(serde_json::Map::new());
        incomplete.next(&added, &records, self.now).write(&mut header);
        work.commit.changes.extend(diff.changes.iter().cloned());
        let id = FeedId::of(Endpoint::Investors, &token.id);
        let mut state = known.feed(Endpoint::Investors).cloned().unwrap_or_default();
        state.baseline_at.get_or_insert(self.now);
        (state.read_at, state.tried_at) = (Some(self.now), Some(self.now));
        work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: Some(header) });
        work.tokens.push(TokenUpdate {
            changes: diff.changes,
            added,
            late,
            polled_at: vec![(Resource::Funding, self.now)],
            ..token_update(token, &known.alerts, records, Some(Resource::Funding))
        });
    }

    /// Returns a known token for another evaluation, because time passed or because its groups or the rules changed.
    pub fn as_known<'k>(&self, known: &'k TokenSnapshot) -> TokenUpdate<'k> {
        let token = self.watch.placed(known.token.clone());
        TokenUpdate {
            is_watched: self.watch.covers(&token.id),
            records: Cow::Borrowed(&known.records),
            schedule: ScheduleFeed::of(known),
            resources: Cow::Borrowed(&TIMED),
            polled_at: polled_at(&known.feeds),
            ..token_update(token, &known.alerts, Vec::new(), None)
        }
    }
}

/// Fills the gaps of a row of the token list with known facts, and returns their number. Market cap and other supplies are valuations,
/// whose last value does not stay.
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

fn token_update(token: Token, alerts: &[Alert], records: Vec<Tracked>, resource: Option<Resource>) -> TokenUpdate<'_> {
    TokenUpdate {
        token: Cow::Owned(token),
        is_watched: true,
        records: Cow::Owned(records),
        schedule: None,
        resources: resource.into_iter().collect(),
        changes: Vec::new(),
        added: Vec::new(),
        late: Vec::new(),
        alerts,
        polled_at: Vec::new(),
    }
}

/// Returns the feeds of a token, with a new state for one of them.
fn with_feed(known: &TokenSnapshot, endpoint: Endpoint, state: &FeedState) -> Vec<(Endpoint, FeedState)> {
    let others = known.feeds.iter().filter(|(of, _)| *of != endpoint).cloned();
    others.chain([(endpoint, state.clone())]).collect()
}

/// The outcome of a poll of a list: a feed that is not polled per token.
#[derive(Debug)]
pub struct CompleteResponse {
    /// The state of the feed and the row of the poll log. Written last, after all rows of the list.
    pub commit: Commit,
    pub ingested: Ingested,
    /// Whether it is the first complete response, whose rows are not reported as new.
    pub is_baseline: bool,
}

/// Checks the response of a list. An empty response in place of a known list is a failure. `upcoming` may be empty, unless at least a few
/// tokens (`expected`) have known unlocks in its days.
pub fn complete_response(
    poll: &PlannedPoll,
    fetched: &FetchedResponse,
    known: FeedState,
    expected: usize,
    now: Timestamp,
) -> CompleteResponse {
    let id = fetched.request.feed();
    let is_baseline = known.baseline_at.is_none();
    let failure = match &fetched.outcome {
        PollOutcome::Failed(failure) => Some(failure.clone()),
        PollOutcome::Fresh(response) if ingest::record_count(&response.payload) == 0 => {
            let expects = match id.endpoint {
                Endpoint::Upcoming if expected >= FEW_EXPECTED => Some(format!("{expected} tokens have a coming unlock")),
                Endpoint::Upcoming => None,
                _ => (!is_baseline).then(|| "the previous list was not empty".to_owned()),
            };
            expects.map(|expects| PollFailure {
                kind: FailureKind::Emptied,
                message: format!("{id}: the response is complete but empty, although {expects}; it is not applied"),
                retry_at: None,
            })
        }
        _ => None,
    };
    let entry = ingest::poll_entry(fetched, failure.as_ref(), now);
    let mut state = match &failure {
        Some(failure) => ingest::state_after_failure(known, fetched, failure.kind, now),
        None => ingest::state_after_poll(known, poll, fetched, now),
    };
    if let (PollOutcome::Fresh(response), None) = (&fetched.outcome, &failure) {
        state.hash = Some(response.hash);
        state.baseline_at.get_or_insert(now);
    }
    let feed = FeedUpdate { id, state, put: Vec::new(), removed: Vec::new(), header: None };
    let parse_warnings = entry.parse_warnings_total;
    let commit = Commit { polls: vec![entry], feeds: vec![feed], ..Commit::default() };
    CompleteResponse { commit, ingested: Ingested { failure, parse_warnings, ..Ingested::default() }, is_baseline }
}

/// Returns the result of a poll for incidents of the source.
pub fn feed_outcome(feed: FeedId, ingested: &Ingested) -> FeedOutcome {
    let result = match ingested {
        Ingested { failure: Some(failure), .. } => FeedResult::Failed(failure.clone()),
        Ingested { is_held: true, .. } => FeedResult::Held(removal::describe_hold()),
        Ingested { released: Some(reason), .. } => FeedResult::Released(reason.to_string()),
        _ => FeedResult::Fine,
    };
    FeedOutcome { feed, result }
}
