//! The path of the program in memory, over a clock that is moved by hand: answers in, what is told and sent out.
//!
//! A [`Simulation`] knows tokens as the database would. [`Simulation::answer`] gives it an answer, and [`Simulation::advance`] lets time
//! pass: whatever a rule, a lead time, a `for` or a proof of removal waits for happens at its own minute, as the daemon's evaluation
//! would see it, without looking at the minutes between. All decisions are those of [`engine::pipeline`], which the daemon asks too; here
//! are only a memory that takes in what they come to, and a clock that knows when the next thing may happen. Rule tests and backtests
//! are made of this. `cycle` evaluates and commits, `passing` lets time pass, `delivery` makes messages.
//!
//! A simulation [with delivery](Simulation::with_delivery) goes on to the messages that receivers would get. One that [monitors
//! itself](Simulation::monitoring) tells of the source and of templates that fail, as the daemon does.
//!
//! Promise: the same answers at the same times tell the same, whatever the machine and whatever the time of day. Pure.

mod clock;
mod cycle;
mod delivery;
mod explain;
mod memory;
mod passing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;

use clock::Turns;
use cycle::Owned;
pub use delivery::{DeliverySetup, Sent, UndeliveredNotice};
use engine::diff;
use engine::evaluate::Limits;
use engine::group::MuteTimes;
use engine::pipeline::{self, DispatchPolicy, RoundsPage, Work};
use engine::plan::PlannedPoll;
use engine::route::RouteTree;
use engine::self_monitor::{FeedNews, FeedResult};
use memory::MemoryStore;
use model::{
    Ack, Change, ContentHash, Endpoint, FeedId, FetchedAnswer, Notification, Payload, PollAnswer, PollOutcome, PollRequest,
    RuleId, Silence, Timestamp, TokenId, Watch, wire,
};
use rules::RuleSet;
use rules::aggregate::{AggregateCache, FlowEntries};

/// How often the daemon evaluates: everything that time brings is told at a full minute.
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// How a simulation goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Comparison of amounts, and proof of removals.
    pub diff: diff::Settings,
    /// When an answer that left something out, or was held, is given again; none: never by itself.
    pub poll_every: Option<TimeDelta>,
    /// How often conditions that read the clock (`daysUntil`, `now`) are looked at. The daemon does so each minute.
    pub look_every: TimeDelta,
}

impl Default for Pace {
    fn default() -> Self {
        Self { diff: diff::Settings::default(), poll_every: Some(TimeDelta::hours(6)), look_every: TimeDelta::hours(1) }
    }
}

/// Tokens, alerts and the clock of a simulation.
#[derive(Debug)]
pub struct Simulation<'a> {
    rules: &'a RuleSet,
    routes: &'a RouteTree,
    watch: &'a Watch,
    pace: Pace,
    now: Timestamp,
    memory: MemoryStore,
    /// When time alone may change what is to be told of records.
    turns: Turns,
    /// Answers that are to be given again, and when.
    again: BTreeMap<(Timestamp, TokenId, Endpoint), Payload>,
    /// What windows over tokens and groups hold, where a rule asks.
    totals: AggregateCache,
    /// The dated entries of tokens, as long as their records stay what they are.
    flow_entries: HashMap<TokenId, FlowEntries>,
    /// When time alone may move an alert of a group on.
    next_of_groups: Option<Timestamp>,
    /// Some token was summed up since groups were last looked at.
    is_summed_anew: bool,
    /// What rules with a `limit` told in this cycle.
    limits: Limits,
    /// Whether the source and this program are watched; with how feeds fared in this cycle.
    monitors: bool,
    seen: Vec<FeedNews>,
    told: Vec<Arc<Notification>>,
    left_out: Vec<Notification>,
    changes: Vec<(Timestamp, Change)>,
    /// What makes messages of what is told; none where only that matters.
    delivery: Option<DispatchPolicy>,
    sent: Vec<Sent>,
    mutes: MuteTimes,
    /// When a pass of the dispatcher, and when a digest, is due by time alone.
    next_pass: Option<Timestamp>,
    next_digest: Option<Timestamp>,
    template_errors: BTreeMap<RuleId, String>,
}

impl<'a> Simulation<'a> {
    /// A simulation that knows nothing yet, at `start`.
    pub fn new(rules: &'a RuleSet, routes: &'a RouteTree, watch: &'a Watch, pace: Pace, start: Timestamp) -> Self {
        let mut simulation = Self {
            rules,
            routes,
            watch,
            pace,
            now: start,
            memory: MemoryStore::default(),
            turns: Turns::of(rules, pace.look_every.max(MINUTE)),
            again: BTreeMap::new(),
            totals: AggregateCache::default(),
            flow_entries: HashMap::new(),
            next_of_groups: None,
            is_summed_anew: true,
            limits: Limits::default(),
            monitors: false,
            seen: Vec::new(),
            told: Vec::new(),
            left_out: Vec::new(),
            changes: Vec::new(),
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

    /// Has it tell of trouble with the source and with templates.
    #[must_use]
    pub fn monitoring(mut self) -> Self {
        self.monitors = true;
        self
    }

    pub fn rules(&self) -> &RuleSet {
        self.rules
    }

    /// The time that it has come to.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What was told since this was last asked, in order.
    pub fn take_told(&mut self) -> Vec<Arc<Notification>> {
        std::mem::take(&mut self.told)
    }

    /// What a rule's `limit` left out since this was last asked, in order.
    pub fn take_left_out(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.left_out)
    }

    /// The messages that were made since this was last asked, in order; nothing without delivery.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What was to be told and reached nobody so far: suppressed, or waiting.
    pub fn undelivered(&self) -> Vec<UndeliveredNotice> {
        self.memory.undelivered()
    }

    /// What the diff told since this was last asked, with the time of each.
    pub fn take_changes(&mut self) -> Vec<(Timestamp, Change)> {
        std::mem::take(&mut self.changes)
    }

    /// Rules with a template that failed, with the first error of each.
    pub fn template_errors(&self) -> &BTreeMap<RuleId, String> {
        &self.template_errors
    }

    /// A row of the token list.
    pub fn token(&mut self, item: &wire::TokenItem) {
        self.tokens(std::slice::from_ref(item));
    }

    /// Rows of the token list that come together. The first row of a token is the baseline and tells no change.
    pub fn tokens(&mut self, items: &[wire::TokenItem]) {
        self.seen.push(FeedNews { feed: FeedId::whole(Endpoint::TokenList), result: FeedResult::Fine });
        let named = items.iter().filter_map(|item| Some((TokenId::from(item.id.as_str()?), item)));
        let rows: Vec<(TokenId, &wire::TokenItem)> = named.filter(|(id, _)| self.watch.covers(id)).collect();
        let is_new = |(id, _): &&(TokenId, &wire::TokenItem)| !self.memory.tokens.contains_key(id);
        let new: BTreeSet<TokenId> = rows.iter().filter(is_new).map(|(id, _)| id.clone()).collect();
        for id in &new {
            self.memory.token(id, self.watch);
        }
        let (by, mut work, mut moved) = (self.by(), Work::default(), BTreeMap::new());
        for (id, item) in rows {
            let Some(known) = self.memory.tokens.get(&id) else { continue };
            let is_new = new.contains(&id);
            by.token_row(&mut work, known, item, is_new);
            // A market cap or a supply that a rule reads can turn it, though no schedule changed.
            if !is_new && self.rules.index.is_moved(&known.token.item, item) {
                moved.insert(id, true);
            }
        }
        let evaluated = self.evaluate(&work);
        self.commit(Owned::of(work), evaluated);
        if !moved.is_empty() {
            moved.keys().for_each(|id| drop(self.flow_entries.remove(id)));
            self.look_at(moved);
        }
    }

    /// A complete answer of an endpoint about a token. The first one is the baseline and tells no change.
    pub fn answer(&mut self, token: &TokenId, endpoint: Endpoint, payload: Payload) {
        self.ingest(vec![asked(token, endpoint, payload, self.now)]);
    }

    /// Answers about tokens that come together, or why there are none: at most one of each feed.
    pub fn ingest(&mut self, answers: Vec<(PlannedPoll, FetchedAnswer)>) {
        let watch = self.watch;
        for token in answers.iter().filter_map(|(_, fetched)| fetched.request.token()).filter(|token| watch.covers(token)) {
            self.memory.token(token, watch);
        }
        let (by, mut work, mut unproven) = (self.by(), Work::default(), Vec::new());
        for (ask, fetched) in &answers {
            let Some(known) = fetched.request.token().and_then(|token| self.memory.tokens.get(token)) else { continue };
            let ingested = by.answer(&mut work, known, ask, fetched);
            let misses = work.commit.feeds.last().is_some_and(|update| !update.state.missing.is_empty());
            unproven.push((fetched.request.feed(), misses || ingested.is_held));
            self.seen.push(pipeline::feed_news(fetched.request.feed(), &ingested));
        }
        let evaluated = self.evaluate(&work);
        self.commit(Owned::of(work), evaluated);
        for (_, fetched) in answers {
            let feed = fetched.request.feed();
            let is_unproven = unproven.iter().any(|(of, is_unproven)| *of == feed && *is_unproven);
            self.give_again(feed, fetched.outcome, is_unproven);
        }
    }

    /// Has an answer that left something out given again, as a source would that means it.
    fn give_again(&mut self, feed: FeedId, outcome: PollOutcome, is_unproven: bool) {
        let FeedId { endpoint, token: Some(token) } = feed else { return };
        self.again.retain(|(_, of, by), _| *of != token || *by != endpoint);
        if let (true, PollOutcome::Fresh(answer)) = (is_unproven, outcome)
            && let Some(at) = self.pace.poll_every.and_then(|every| self.now.checked_add_signed(every))
        {
            self.again.insert((at, token, endpoint), answer.payload);
        }
    }

    /// All funding rounds of a token that are public by now. The first list is the baseline.
    pub fn rounds(&mut self, token: &TokenId, rounds: &[wire::FundingRound]) {
        if !self.watch.covers(token) {
            return;
        }
        self.memory.token(token, self.watch);
        let Some(known) = self.memory.tokens.get(token) else { return };
        let is_baseline = known.feed(Endpoint::Investors).is_none();
        let page = RoundsPage { rounds, speaks_of: &|_| true, is_news: &|_| !is_baseline };
        let mut work = Work::default();
        self.by().rounds(&mut work, known, &page);
        let evaluated = self.evaluate(&work);
        self.commit(Owned::of(work), evaluated);
    }

    /// Other rules and routes are at work from now on: the next evaluation looks at everything.
    pub fn reload(&mut self, rules: &'a RuleSet, routes: &'a RouteTree) {
        (self.rules, self.routes) = (rules, routes);
        self.mutes = MuteTimes::default();
        self.turns = Turns::of(rules, self.pace.look_every.max(MINUTE));
        self.forget_totals();
        self.memory.tokens.keys().for_each(|id| self.turns.wake(id, self.now));
        self.is_summed_anew = true;
        self.memory.is_stirred = true;
    }

    /// Somebody makes a silence.
    pub fn put_silence(&mut self, silence: Silence) {
        self.memory.put_silence(silence);
    }

    /// Somebody acknowledges an alert.
    pub fn put_ack(&mut self, ack: Ack) {
        self.memory.put_ack(ack);
    }

    fn forget_totals(&mut self) {
        let has_shares = self.rules.rules.iter().any(|rule| !rule.shares().is_empty());
        self.totals.reset(self.rules.windows.clone(), self.rules.since.clone(), has_shares);
    }
}

/// A request and its answer, as the client would have them.
fn asked(token: &TokenId, endpoint: Endpoint, payload: Payload, now: Timestamp) -> (PlannedPoll, FetchedAnswer) {
    let request =
        PollRequest::Token { endpoint, token: token.clone(), start: chrono::NaiveDate::MIN, end: chrono::NaiveDate::MAX };
    let ask = PlannedPoll { mark: Some(now), ..PlannedPoll::of(request.clone()) };
    // A schedule that says in words that there is no segment here or there speaks of segments; any other leaves that open.
    let version = match &payload {
        Payload::UnlockEvents(events) if events.iter().any(|event| !event.linear_unlocks.is_absent()) => Some(3),
        _ => None,
    };
    let answer = PollAnswer::clean(payload, ContentHash(0));
    let fetched = FetchedAnswer::of_page(request, PollOutcome::Fresh(answer), version);
    (ask, fetched)
}
