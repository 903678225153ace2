//! A simulation of the daemon in memory, on a simulated clock: responses in, notifications and messages out.
//!
//! A [`Simulation`] stores tokens like the database. [`Simulation::response`] adds a response, and [`Simulation::advance`] moves
//! the clock: lead times, `for` durations, and removal proofs take effect at the minute at which the daemon would evaluate them,
//! without evaluating every minute between. [`engine::pipeline`] makes all decisions, as in the daemon; this module only stores
//! their results and computes when the next evaluation is due. `cycle` evaluates and commits, `advance` moves the clock, and
//! `delivery` makes messages.
//!
//! A simulation [with delivery](Simulation::with_delivery) also makes the messages to receivers. One with
//! [monitoring](Simulation::monitoring) also reports incidents and template errors, like the daemon.
//!
//! Guarantee: the same responses at the same times give the same notifications. Nothing here reads the system clock.

mod advance;
mod clock;
mod cycle;
mod delivery;
mod digest;
mod explain;
mod memory;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;

use clock::EvaluationTimes;
use cycle::IngestedData;
pub use delivery::{DeliverySetup, Sent, UndeliveredSimulated};
use engine::diff;
use engine::evaluate::Limits;
use engine::group::MuteTimes;
use engine::ingest::ListedSchedules;
use engine::pipeline::{self, ActiveRules, DispatchPolicy, RoundsPage, Work};
use engine::plan::PlannedPoll;
use engine::route::RouteTree;
use engine::self_monitor::{FeedOutcome, FeedResult};
use memory::MemoryStore;
use model::{
    Ack, Change, ContentHash, Endpoint, FeedId, FetchedResponse, HeldEvent, Notification, Payload, PollOutcome, PollRequest,
    PollResponse, RuleId, Silence, Timestamp, TokenId, Watch, poll::WITH_RATE_CHANGES, wire,
};
use rules::RuleSet;
use rules::aggregate::{AggregateCache, FlowEntries};

/// The daemon's evaluation interval. Everything that depends on time happens at a full minute.
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// The timing of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The settings of the diff, including removal proofs.
    pub diff: diff::Settings,
    /// The time after which a held response, or one with missing records, is repeated. `None`: it is not repeated.
    pub poll_every: Option<TimeDelta>,
    /// The interval between evaluations of conditions that read the clock (`daysUntil`, `now`). One minute in the daemon.
    pub evaluate_every: TimeDelta,
}

impl Default for Pace {
    fn default() -> Self {
        Self { diff: diff::Settings::default(), poll_every: Some(TimeDelta::hours(6)), evaluate_every: TimeDelta::hours(1) }
    }
}

/// The state of a simulation: tokens, alerts, and the clock.
#[derive(Debug)]
pub struct Simulation<'a> {
    rules: &'a RuleSet,
    routes: &'a RouteTree,
    watch: &'a Watch,
    pace: Pace,
    /// The last responses about all tokens.
    listed: ListedSchedules,
    now: Timestamp,
    memory: MemoryStore,
    /// The times at which tokens are evaluated without new data.
    evaluations: EvaluationTimes,
    /// Responses that will be repeated, with the time of the repetition.
    repeats_due: BTreeMap<(Timestamp, TokenId, Endpoint), Payload>,
    /// The aggregates of tokens and groups.
    totals: AggregateCache,
    /// The dated entries of tokens, removed when a token's records change.
    flow_entries: HashMap<TokenId, FlowEntries>,
    /// The time at which group alerts are evaluated without new data.
    next_group_evaluation: Option<Timestamp>,
    /// Whether a token's totals were computed since the last evaluation of groups.
    is_recomputed: bool,
    /// The number of notifications per rule in this cycle, for `limit`.
    limits: Limits,
    /// Whether incidents are reported.
    monitors: bool,
    /// The results of the feeds in this cycle.
    seen: Vec<FeedOutcome>,
    notified: Vec<Arc<Notification>>,
    left_out: Vec<Notification>,
    /// Events of rules with a `limit` in this cycle.
    held: Vec<HeldEvent>,
    changes: Vec<(Timestamp, Change)>,
    /// The age from which a price is stale.
    stale_price: TimeDelta,
    /// `None` if the simulation makes no messages.
    delivery: Option<DispatchPolicy>,
    sent: Vec<Sent>,
    mutes: MuteTimes,
    /// The time of the next dispatch pass that is due without new notifications.
    next_pass: Option<Timestamp>,
    next_digest: Option<Timestamp>,
    template_errors: BTreeMap<RuleId, String>,
}

impl<'a> Simulation<'a> {
    /// Creates an empty simulation at `start`.
    pub fn new(rules: &'a RuleSet, routes: &'a RouteTree, watch: &'a Watch, pace: Pace, start: Timestamp) -> Self {
        let mut simulation = Self {
            rules,
            routes,
            watch,
            pace,
            listed: ListedSchedules::default(),
            now: start,
            memory: MemoryStore::default(),
            evaluations: EvaluationTimes::of(rules, pace.evaluate_every.max(MINUTE)),
            repeats_due: BTreeMap::new(),
            totals: AggregateCache::default(),
            flow_entries: HashMap::new(),
            next_group_evaluation: None,
            is_recomputed: true,
            limits: Limits::default(),
            monitors: false,
            seen: Vec::new(),
            notified: Vec::new(),
            left_out: Vec::new(),
            held: Vec::new(),
            changes: Vec::new(),
            stale_price: ActiveRules::default().stale_price,
            delivery: None,
            sent: Vec::new(),
            mutes: MuteTimes::default(),
            next_pass: None,
            next_digest: None,
            template_errors: BTreeMap::new(),
        };
        simulation.forget_totals();
        simulation
    }

    /// Enables the report of incidents and template errors.
    #[must_use]
    pub fn monitoring(mut self) -> Self {
        self.monitors = true;
        self
    }

    pub fn rules(&self) -> &RuleSet {
        self.rules
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the notifications since the last call, in order.
    pub fn take_notified(&mut self) -> Vec<Arc<Notification>> {
        std::mem::take(&mut self.notified)
    }

    /// Returns the notifications above a rule's `limit` since the last call, in order.
    pub fn take_omitted(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.left_out)
    }

    /// Returns the messages since the last call, in order. Empty without delivery.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the suppressed and pending notifications.
    pub fn undelivered(&self) -> Vec<UndeliveredSimulated> {
        self.memory.undelivered()
    }

    /// Returns the changes since the last call, each with its time.
    pub fn take_changes(&mut self) -> Vec<(Timestamp, Change)> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the rules whose templates failed, each with its first error.
    pub fn template_errors(&self) -> &BTreeMap<RuleId, String> {
        &self.template_errors
    }

    /// Ingests a row of the token list.
    pub fn token(&mut self, item: &wire::TokenItem) {
        self.tokens(std::slice::from_ref(item));
    }

    /// Ingests rows of one token list response. The first row of a token is its baseline and makes no change.
    pub fn tokens(&mut self, items: &[wire::TokenItem]) {
        self.seen.push(FeedOutcome { feed: FeedId::whole(Endpoint::TokenList), result: FeedResult::Fine });
        let named = items.iter().filter_map(|item| Some((TokenId::from(item.id.as_str()?), item)));
        let rows: Vec<(TokenId, &wire::TokenItem)> = named.filter(|(id, _)| self.watch.covers(id)).collect();
        let is_new = |(id, _): &&(TokenId, &wire::TokenItem)| !self.memory.tokens.contains_key(id);
        let new: BTreeSet<TokenId> = rows.iter().filter(is_new).map(|(id, _)| id.clone()).collect();
        for id in &new {
            self.memory.token(id, self.watch);
        }
        let (by, mut work, mut moved) = (self.ingestor(), Work::default(), BTreeMap::new());
        for (id, item) in rows {
            let Some(known) = self.memory.tokens.get(&id) else { continue };
            let is_new = new.contains(&id);
            by.token_row(&mut work, known, item, is_new);
            // A new market cap or supply can change the result of a rule without a change of the schedule.
            if !is_new && self.rules.index.changes_read_field(&known.token.item, item) {
                moved.insert(id, true);
            }
        }
        let evaluated = self.evaluate(&work);
        self.commit(IngestedData::of(work), evaluated);
        if !moved.is_empty() {
            moved.keys().for_each(|id| drop(self.flow_entries.remove(id)));
            self.check_at(moved);
        }
    }

    /// Ingests a complete response about a token. The first response of a feed is its baseline and makes no change.
    pub fn response(&mut self, token: &TokenId, endpoint: Endpoint, payload: Payload) {
        self.ingest(vec![poll_response(token, endpoint, payload, self.now)]);
    }

    /// Ingests the responses or failures of one cycle, at most one for each feed.
    pub fn ingest(&mut self, responses: Vec<(PlannedPoll, FetchedResponse)>) {
        let watch = self.watch;
        for token in responses.iter().filter_map(|(_, fetched)| fetched.request.token()).filter(|token| watch.covers(token)) {
            self.memory.token(token, watch);
        }
        let (by, mut work, mut unproven) = (self.ingestor(), Work::default(), Vec::new());
        for (poll, fetched) in &responses {
            let Some(known) = fetched.request.token().and_then(|token| self.memory.tokens.get(token)) else { continue };
            let ingested = by.response(&mut work, known, poll, fetched, &self.listed);
            let misses = work.commit.feeds.last().is_some_and(|update| !update.state.missing.is_empty());
            unproven.push((fetched.request.feed(), misses || ingested.is_held));
            self.seen.push(pipeline::feed_outcome(fetched.request.feed(), &ingested));
        }
        let evaluated = self.evaluate(&work);
        self.commit(IngestedData::of(work), evaluated);
        for (_, fetched) in responses {
            let feed = fetched.request.feed();
            let is_unproven = unproven.iter().any(|(of, is_unproven)| *of == feed && *is_unproven);
            self.schedule_repeat(feed, fetched.outcome, is_unproven);
        }
    }

    /// Schedules the repetition of a response with missing records, like a source that really removed them.
    fn schedule_repeat(&mut self, feed: FeedId, outcome: PollOutcome, is_unproven: bool) {
        let FeedId { endpoint, token: Some(token) } = feed else { return };
        self.repeats_due.retain(|(_, of, by), _| *of != token || *by != endpoint);
        if let (true, PollOutcome::Fresh(response)) = (is_unproven, outcome)
            && let Some(at) = self.pace.poll_every.and_then(|every| self.now.checked_add_signed(every))
        {
            self.repeats_due.insert((at, token, endpoint), response.payload);
        }
    }

    /// Ingests all public funding rounds of a token. The first list is the baseline.
    pub fn rounds(&mut self, token: &TokenId, rounds: &[wire::FundingRound]) {
        if !self.watch.covers(token) {
            return;
        }
        self.memory.token(token, self.watch);
        let Some(known) = self.memory.tokens.get(token) else { return };
        let is_baseline = known.feed(Endpoint::Investors).is_none();
        let page = RoundsPage { rounds, covers: &|_| true, is_new: &|_| !is_baseline };
        let mut work = Work::default();
        self.ingestor().rounds(&mut work, known, &page);
        let evaluated = self.evaluate(&work);
        self.commit(IngestedData::of(work), evaluated);
    }

    /// Replaces the rules and routes. The next evaluation covers all tokens.
    pub fn reload(&mut self, rules: &'a RuleSet, routes: &'a RouteTree) {
        (self.rules, self.routes) = (rules, routes);
        self.mutes = MuteTimes::default();
        self.evaluations = EvaluationTimes::of(rules, self.pace.evaluate_every.max(MINUTE));
        self.forget_totals();
        self.memory.tokens.keys().for_each(|id| self.evaluations.wake(id, self.now));
        self.is_recomputed = true;
        self.memory.has_changed = true;
    }

    pub fn put_silence(&mut self, silence: Silence) {
        self.memory.put_silence(silence);
    }

    pub fn put_ack(&mut self, ack: Ack) {
        self.memory.put_ack(ack);
    }

    fn forget_totals(&mut self) {
        self.totals.reset(self.rules.reads.clone());
    }
}

/// Makes a request and its response, like the client.
fn poll_response(token: &TokenId, endpoint: Endpoint, payload: Payload, now: Timestamp) -> (PlannedPoll, FetchedResponse) {
    let request =
        PollRequest::Token { endpoint, token: token.clone(), start: chrono::NaiveDate::MIN, end: chrono::NaiveDate::MAX };
    let poll = PlannedPoll { mark: Some(now), ..PlannedPoll::for_change(request.clone()) };
    // A schedule with explicit nulls reports segments; any other does not. Recorded schedules omit no rate change.
    let version = match &payload {
        Payload::UnlockEvents(events) if events.iter().any(|event| !event.linear_unlocks.is_absent()) => Some(WITH_RATE_CHANGES),
        _ => None,
    };
    let response = PollResponse::clean(payload, ContentHash(0));
    let fetched = FetchedResponse::of_page(request, PollOutcome::Fresh(response), version);
    (poll, fetched)
}
