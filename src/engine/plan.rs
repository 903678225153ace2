//! Plans which feeds of an endpoint to poll in one slot. Pure.
//!
//! First reads come first, those of the next events before others, then removal proofs and retries, then reported changes of tokens whose
//! next event is near. All other polls of all endpoints share the credits that an even pace allows by the endpoint's next slot. They go
//! to the polls with the highest [`priority`]. Credits for higher-priority polls of other endpoints stay available for the slots that
//! these endpoints have until then.
//!
//! Allocations and emissions change with the schedule of a token, so a schedule that changed is what reports their corrections.

mod burst;
mod delayed;
pub mod month;
mod pace;
pub mod priority;
mod relatives;
mod retry;
mod retry_plan;
mod rivals;
mod segments;

use std::{cell::OnceCell, collections::HashSet};

use chrono::{NaiveDate, TimeDelta};

pub use self::delayed::{DelayCause, DelayedFeed};
use self::priority::{CorrectionModel, FeedEstimate, ListAges, ListTrust};
use self::relatives::Relatives;
pub use self::segments::{AheadPoll, LinearPolls};
use crate::budget::{Allowance, PollReason};
use model::{
    ContentHash, Endpoint, FeedState, LinearRequest, PlanToken, PollRequest, Timestamp, TokenId, UnreadableToken, Watch, config,
};
pub use retry::{early_wait, is_due};
pub use retry_plan::{RetryPlan, plan_retries};

/// The start of an unlimited date range. The source dates TBD parts at the epoch.
pub(crate) const FIRST_DAY: NaiveDate = day_of(1970, 1, 1);
/// The end of an unlimited date range, later than the end of any known schedule.
const LAST_DAY: NaiveDate = day_of(2199, 12, 31);

const fn day_of(year: i32, month: u32, day: u32) -> NaiveDate {
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(day) => day,
        None => NaiveDate::MIN,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPoll {
    pub request: PollRequest,
    /// The hash of the last response. `None` forces parsing even an unchanged response, because it may prove a removal.
    pub known: Option<ContentHash>,
    pub why: PollReason,
    /// Expected credits: the cost of the last poll, or one for a first read.
    pub cost: u64,
    /// The token's `lastUpdatedDate`, stored with the feed after the poll.
    pub mark: Option<Timestamp>,
    /// When the token list that contains this mark was polled.
    pub listed_at: Option<Timestamp>,
    /// Whether the poll also fetches linear unlocks from an older API version.
    pub with_segments: bool,
    /// Whether to poll again with linear unlocks if the cliffs changed.
    pub may_add_segments: bool,
    /// The source of linear unlocks, and the daily emission that completes them.
    pub linear: LinearPolls,
}

impl PlannedPoll {
    /// Returns a poll with the reason `Changed` and without segments. It is expected to cost one credit, and its response is always
    /// parsed.
    #[must_use]
    pub fn for_change(request: PollRequest) -> Self {
        Self {
            request,
            known: None,
            why: PollReason::Changed,
            cost: 1,
            mark: None,
            listed_at: None,
            with_segments: false,
            may_add_segments: false,
            linear: LinearPolls::NONE,
        }
    }

    /// Returns the same poll with linear unlocks, so that cliff and linear changes are reported together. `has_cliffs` is whether the
    /// response with the cliffs is at hand, so that only the linear unlocks cost anything.
    #[must_use]
    pub fn with_segments(&self, has_cliffs: bool) -> Self {
        let linear = LinearPolls { with_ahead: self.linear.ahead.is_some(), ..self.linear };
        let versions = if has_cliffs { 1 } else { 2 };
        let cost = self.base_cost().saturating_mul(versions).saturating_add(linear.ahead_cost());
        Self { known: None, cost, with_segments: true, linear, ..self.clone() }
    }

    /// Returns the expected credits of the poll without the requests for linear unlocks.
    #[must_use]
    pub fn base_cost(&self) -> u64 {
        // The older version has as many pages again.
        self.cost.saturating_sub(self.linear.ahead_cost()) >> u32::from(self.with_segments)
    }

    /// Returns the additional requests for linear unlocks. `None` if there are none.
    #[must_use]
    pub fn linear_request(&self) -> Option<LinearRequest> {
        (self.with_segments || self.linear.with_ahead).then(|| self.linear.request(self.with_segments))
    }
}

/// The polls of one slot, and the number of polls that were deferred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollPlan {
    /// Polls, in the order in which they are sent.
    pub polls: Vec<PlannedPoll>,
    /// The number of feeds that wait for more credits, by reason, for display.
    pub deferred: Vec<(PollReason, u32)>,
    /// The number of feeds that are not due.
    pub not_due: u32,
    /// The feeds that wait for credits or for a retry, for the log.
    pub delayed: Vec<DelayedFeed>,
    /// The end of the credit period, if nothing is polled because all credits are used.
    pub exhausted_until: Option<Timestamp>,
    /// The tokens that are not polled, because a stored row of them is damaged.
    pub unreadable: Vec<UnreadableToken>,
}

impl PollPlan {
    /// Returns the cost in credits if each response has as many pages as last time.
    pub fn cost(&self) -> u64 {
        self.polls.iter().map(|poll| poll.cost).sum()
    }
}

/// The budget, settings, and times that a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct PlanBasis<'a> {
    pub allowance: Allowance,
    /// Credits of today's share that are used, reserved, or assigned to running plans.
    pub spent_today: u64,
    pub source: &'a config::SourceSettings,
    /// The maximum time until an event that counts as near.
    pub near: TimeDelta,
    /// The time of the current slot.
    pub now: Timestamp,
    /// The assumption about the lists. Only forecasts assume anything else than what was learned.
    pub trust: ListTrust,
}

impl PlanBasis<'_> {
    /// Returns the first and the last day to request from an endpoint.
    fn days(&self, endpoint: Endpoint) -> (NaiveDate, NaiveDate) {
        let has_row_a_day = matches!(endpoint, Endpoint::DailyEmission | Endpoint::WeeklyEmission);
        let day = |reach: config::Reach, years: i64, ends: NaiveDate, sign: i32| {
            let delta = match reach {
                config::Reach::All if has_row_a_day => TimeDelta::days(365 * years),
                // Fixed days: a requested range that moved with `now` would have edges at which records appear and disappear.
                config::Reach::All => return ends,
                config::Reach::Span(span) => span.delta(),
            };
            self.now.checked_add_signed(delta * sign).unwrap_or(self.now).date_naive()
        };
        (day(self.source.history, 3, FIRST_DAY, -1), day(self.source.horizon, 5, LAST_DAY, 1))
    }
}

/// Returns the tokens to plan for: the known tokens that are watched, and the tokens that the config names explicitly, even if the
/// token list lacks them.
pub fn watched(mut known: Vec<PlanToken>, watch: &Watch) -> Vec<PlanToken> {
    known.retain(|token| watch.covers(&token.id));
    let known_ids: HashSet<TokenId> = known.iter().map(|token| token.id.clone()).collect();
    known.extend(watch.named().iter().filter(|id| !known_ids.contains(*id)).map(|id| PlanToken::unknown(id.clone())));
    known
}

/// A scheduled endpoint with the state of its feeds.
#[derive(Clone, Debug)]
pub struct EndpointFeeds {
    pub endpoint: Endpoint,
    /// Whether a rule subscribes to the endpoint's records or changes.
    pub is_subscribed: bool,
    /// The first slot after now. `None` if the endpoint has no slots.
    pub next_slot: Option<Timestamp>,
    /// The time from that slot to the one after it.
    pub slot_interval: TimeDelta,
    /// The only feed of an endpoint that is not polled per token.
    pub whole: FeedState,
    /// The watched tokens of a per-token endpoint.
    pub tokens: Vec<PlanToken>,
    /// The watched tokens that cannot be planned, because a stored row of them is damaged.
    pub unreadable: Vec<UnreadableToken>,
}

/// The maximum time between two polls of a list, per credit that the list costs. Lists also report new tokens and prices, so they are
/// polled even if they report no corrections.
const MAX_LIST_AGE_PER_CREDIT: TimeDelta = TimeDelta::days(3);
/// The maximum number of credits that extend the age limit of a list.
const MAX_LIST_AGE_CREDITS: i32 = 4;
/// The age limit of an expensive list grows until the list costs at most one in this many of the remaining credits.
const LIST_SHARE: f64 = 200.0;
/// The maximum, in days, to which [`LIST_SHARE`] raises the age limit of a list.
const MAX_LIST_AGE_DAYS: f64 = 14.0;

/// Plans a slot of `endpoint`. `feeds` contains all scheduled endpoints, because they share the credits.
pub fn plan(endpoint: Endpoint, feeds: &[EndpointFeeds], basis: &PlanBasis<'_>) -> PollPlan {
    let Some(own) = feeds.iter().find(|feeds| feeds.endpoint == endpoint) else { return PollPlan::default() };
    let mut plan = PollPlan { unreadable: own.unreadable.clone(), ..PollPlan::default() };
    if basis.allowance.is_exhausted() {
        plan.exhausted_until = Some(basis.allowance.reset_at).filter(|_| !endpoint.is_per_token() || !own.tokens.is_empty());
        return plan;
    }
    let estimates = SlotEstimates::new(feeds, basis);
    let mut candidates = poll_candidates(own, &estimates, basis);
    let feeds = if endpoint.is_per_token() { own.tokens.len() } else { 1 };
    plan.not_due = u32::try_from(feeds.saturating_sub(candidates.len())).unwrap_or(0);
    plan.delayed.extend(delayed::failing_feeds(own, basis.now));
    let paced = candidates.split_off(candidates.partition_point(|candidate| candidate.why <= PollReason::Changed));
    let mut planner = SlotPlanner { plan, allowance: basis.allowance, own, estimates: &estimates, basis };
    let mut spare = spare_credits(&candidates, &basis.allowance);
    for mut candidate in candidates {
        let ahead_cost = candidate.linear.ahead_cost();
        if spare.is_some_and(|spare| spare < ahead_cost) {
            candidate.drop_ahead();
        }
        spare = spare.map(|spare| spare - candidate.linear.ahead_cost());
        // Polling only the cliffs is better than no poll, unless a correction was reported: its cliffs alone would be reported as a
        // different correction.
        if matches!(candidate.why, PollReason::First | PollReason::Retry)
            && planner.allowance.of(candidate.why).is_some_and(|max| max < candidate.cost)
        {
            candidate.drop_ahead();
            candidate.cost >>= u32::from(candidate.with_segments);
            candidate.with_segments = false;
        }
        // The lists determine the order of all other first reads.
        let is_first_list = candidate.why == PollReason::First && candidate.token.is_none();
        let max = if is_first_list { planner.allowance.left } else { planner.allowance.of(candidate.why) };
        let is_paid = max.is_none_or(|max| candidate.cost <= max);
        planner.decide(&candidate, is_paid);
    }
    planner.plan_paced(paced);
    planner.plan
}

/// Returns the credits for daily emission ahead: those that are left once all `candidates` are polled without it. `None` if no limit is
/// known.
fn spare_credits(candidates: &[PollCandidate<'_>], allowance: &Allowance) -> Option<u64> {
    let cost = |candidate: &PollCandidate<'_>| candidate.cost.saturating_sub(candidate.linear.ahead_cost());
    let needed: u64 = candidates.iter().map(cost).sum();
    Some(allowance.left?.saturating_sub(allowance.reserve).saturating_sub(needed))
}

/// The estimates for all feeds in one slot, computed per endpoint on first use.
struct SlotEstimates<'a> {
    feeds: &'a [EndpointFeeds],
    /// One list per endpoint, parallel to its tokens.
    by_endpoint: Vec<OnceCell<Vec<FeedEstimate>>>,
    lists: ListAges,
    basis: &'a PlanBasis<'a>,
}

impl<'a> SlotEstimates<'a> {
    fn new(feeds: &'a [EndpointFeeds], basis: &'a PlanBasis<'a>) -> Self {
        let by_endpoint = feeds.iter().map(|_| OnceCell::new()).collect();
        Self { feeds, by_endpoint, lists: list_ages(feeds, basis.now), basis }
    }

    /// Returns the tokens of an endpoint, each with the estimate for its feed.
    fn tokens(&self, endpoint: Endpoint) -> impl Iterator<Item = (&'a PlanToken, &FeedEstimate)> {
        let found = self.feeds.iter().zip(&self.by_endpoint).find(|(feeds, _)| feeds.endpoint == endpoint);
        found.into_iter().flat_map(|(feeds, estimates)| feeds.tokens.iter().zip(estimates.get_or_init(|| self.estimate(feeds))))
    }

    fn estimate(&self, of: &EndpointFeeds) -> Vec<FeedEstimate> {
        let PlanBasis { near, now, trust, .. } = *self.basis;
        let learned = CorrectionModel::learn(&of.tokens, self.listed_at(), now);
        // Rows of burns and buybacks are not corrections, regardless of the lists. What follows a schedule also has corrections of its own,
        // which polls have measured.
        let is_assumed = match priority::follows(of.endpoint) {
            Some(_) => !learned.has_decided,
            None => of.endpoint == Endpoint::UnlockEvents,
        };
        let model = learned.with_trust(if is_assumed { trust } else { ListTrust::Learned });
        let relatives = Relatives::of(self.feeds, of.endpoint);
        let estimate = |token: &PlanToken| {
            let estimate = model.estimate(of.endpoint, of.is_subscribed, token, near, now);
            estimate.with_sign(relatives.show_correction(token, now), of.endpoint, of.is_subscribed)
        };
        of.tokens.iter().map(estimate).collect()
    }

    fn listed_at(&self) -> Option<Timestamp> {
        listed_at(self.feeds)
    }
}

/// A feed that may be polled in this slot.
struct PollCandidate<'a> {
    why: PollReason,
    token: Option<&'a PlanToken>,
    /// The token's next event. Orders the candidates that are not ordered by priority.
    event: Option<Timestamp>,
    /// The benefit of the poll per credit.
    priority: f64,
    cost: u64,
    /// Whether the cost pays for linear unlocks.
    with_segments: bool,
    linear: LinearPolls,
}

impl PollCandidate<'_> {
    /// Leaves out daily emission ahead.
    fn drop_ahead(&mut self) {
        self.cost = self.cost.saturating_sub(self.linear.ahead_cost());
        self.linear.with_ahead = false;
    }
}

/// Returns the feeds of an endpoint that may be polled, sorted by reason, then by priority or by the date of the next event.
fn poll_candidates<'a>(of: &EndpointFeeds, estimates: &SlotEstimates<'a>, basis: &PlanBasis<'_>) -> Vec<PollCandidate<'a>> {
    if !of.endpoint.is_per_token() {
        let is_due = retry::is_due(&of.whole, basis.now);
        return if is_due { vec![list_candidate(of, estimates, basis)] } else { Vec::new() };
    }
    let is_due = |token: &PlanToken| token.feed.as_ref().is_none_or(|feed| retry::is_due(feed, basis.now));
    let due = estimates.tokens(of.endpoint).filter(|(token, _)| !is_listed_absent(of.endpoint, token) && is_due(token));
    let mut candidates: Vec<PollCandidate<'_>> = due
        .map(|(token, estimate)| {
            let (with_segments, linear) = segments::linear_polls(of.endpoint, token, basis);
            // The older version has as many pages again.
            let pages = u64::from(token.feed.as_ref().map_or(1, |feed| feed.cost.max(1)));
            let cost = (pages << u32::from(with_segments)).saturating_add(linear.ahead_cost());
            let why = reason(token, of, estimate, basis);
            PollCandidate {
                why,
                token: Some(token),
                event: token.next_event,
                priority: estimate.benefit(estimates.lists) / real(cost),
                cost,
                with_segments,
                linear,
            }
        })
        .collect();
    let far = basis.now + TimeDelta::days(36_500);
    candidates.sort_by(|a, b| match (a.why, b.why) {
        (a_why, b_why) if a_why != b_why => a_why.cmp(&b_why),
        (PollReason::Changed | PollReason::Verify, _) => b.priority.total_cmp(&a.priority),
        _ => a.event.unwrap_or(far).cmp(&b.event.unwrap_or(far)),
    });
    candidates
}

/// Returns `true` if the token list reports that the token has no such records and none were ever read.
fn is_listed_absent(endpoint: Endpoint, token: &PlanToken) -> bool {
    let flag = match endpoint {
        Endpoint::Burn => token.has_burn,
        Endpoint::Buyback => token.has_buyback,
        _ => None,
    };
    flag == Some(false) && token.feed.as_ref().is_none_or(|feed| feed.baseline_at.is_none())
}

/// Returns when an endpoint that is not polled per token was last polled.
fn whole_read_at(all: &[EndpointFeeds], endpoint: Endpoint) -> Option<Timestamp> {
    all.iter().find(|feeds| feeds.endpoint == endpoint).and_then(|list| list.whole.read_at)
}

/// Returns when the token list was last polled.
fn listed_at(all: &[EndpointFeeds]) -> Option<Timestamp> {
    whole_read_at(all, Endpoint::TokenList)
}

fn list_ages(all: &[EndpointFeeds], now: Timestamp) -> ListAges {
    let age = |endpoint| whole_read_at(all, endpoint).map_or(f64::INFINITY, |at| priority::days(now - at));
    ListAges { token_list: age(Endpoint::TokenList), upcoming: age(Endpoint::Upcoming) }
}

/// Returns the age in days at which a list that costs `cost` credits is polled regardless of its priority.
fn max_list_age(cost: u64, basis: &PlanBasis<'_>) -> f64 {
    let credits = i32::try_from(cost).unwrap_or(MAX_LIST_AGE_CREDITS).min(MAX_LIST_AGE_CREDITS);
    let max_age = priority::days(MAX_LIST_AGE_PER_CREDIT * credits);
    let Some(left) = basis.allowance.left.filter(|left| *left > 0) else { return max_age };
    let credits_per_day = real(left) / priority::days(basis.allowance.reset_at - basis.now).max(1.0);
    max_age.max((real(cost) * LIST_SHARE / credits_per_day).min(MAX_LIST_AGE_DAYS))
}

/// Returns the candidate for an endpoint that is not polled per token. The benefit of a list is the sum of what it would report about
/// all feeds.
fn list_candidate<'a>(of: &EndpointFeeds, estimates: &SlotEstimates<'a>, basis: &PlanBasis<'_>) -> PollCandidate<'a> {
    let cost = u64::from(of.whole.cost.max(1));
    let is_due = of.whole.read_at.is_none_or(|at| priority::days(basis.now - at) >= max_list_age(cost, basis));
    let why = match of.whole {
        FeedState { baseline_at: None, .. } => PollReason::First,
        FeedState { failing_since: Some(_), .. } => PollReason::Retry,
        _ => PollReason::Backbone,
    };
    if is_due || of.endpoint == Endpoint::Investors {
        return PollCandidate {
            why,
            token: None,
            event: None,
            priority: f64::INFINITY,
            cost,
            with_segments: false,
            linear: LinearPolls::NONE,
        };
    }
    let mut benefit = 0.0;
    for feeds in estimates.feeds.iter().filter(|feeds| feeds.endpoint.is_per_token()) {
        for (_, estimate) in estimates.tokens(feeds.endpoint) {
            benefit += match of.endpoint {
                Endpoint::Upcoming => estimate.list_benefit(estimate.by_upcoming, estimates.lists.upcoming),
                _ => estimate.list_benefit(estimate.by_mark, estimates.lists.token_list),
            };
        }
    }
    PollCandidate {
        why,
        token: None,
        event: None,
        priority: benefit / real(cost),
        cost,
        with_segments: false,
        linear: LinearPolls::NONE,
    }
}

fn reason(token: &PlanToken, of: &EndpointFeeds, estimate: &FeedEstimate, basis: &PlanBasis<'_>) -> PollReason {
    let none = FeedState::default();
    let feed = token.feed.as_ref().unwrap_or(&none);
    let is_near = token.next_event.is_some_and(|at| at >= basis.now && at <= basis.now + basis.near);
    match feed {
        FeedState { baseline_at: None, .. } if !is_read_at_once(of) && feed.failing_since.is_none() => PollReason::Verify,
        FeedState { baseline_at: None, .. } if !retry::fails_again(feed) => PollReason::First,
        FeedState { baseline_at: Some(_), .. } if feed.awaits_proof() => PollReason::Confirm,
        FeedState { failing_since: Some(_), .. } => PollReason::Retry,
        _ if estimate.is_change_reported() && is_near => PollReason::Near,
        _ if estimate.is_change_reported() => PollReason::Changed,
        _ => PollReason::Verify,
    }
}

/// Returns whether the first reads of an endpoint come before all other polls. Those of feeds that follow a schedule do not.
fn is_read_at_once(of: &EndpointFeeds) -> bool {
    of.is_subscribed && priority::follows(of.endpoint).is_none()
}

/// Grants or defers the candidates of one slot.
struct SlotPlanner<'a> {
    plan: PollPlan,
    /// Allowance minus the cost of the planned polls.
    allowance: Allowance,
    own: &'a EndpointFeeds,
    estimates: &'a SlotEstimates<'a>,
    basis: &'a PlanBasis<'a>,
}

impl SlotPlanner<'_> {
    fn decide(&mut self, candidate: &PollCandidate<'_>, is_paid: bool) {
        if is_paid {
            self.allowance = self.allowance.after(candidate.cost);
            self.plan.polls.push(self.poll(candidate));
            return;
        }
        self.plan.delayed.push(delayed::unpaid(self.own, candidate));
        match self.plan.deferred.iter_mut().find(|(why, _)| *why == candidate.why) {
            Some((_, count)) => *count += 1,
            None => self.plan.deferred.push((candidate.why, 1)),
        }
    }

    fn poll(&self, candidate: &PollCandidate<'_>) -> PlannedPoll {
        let (endpoint, basis) = (self.own.endpoint, self.basis);
        let none = FeedState::default();
        let feed = candidate.token.map_or(&self.own.whole, |token| token.feed.as_ref().unwrap_or(&none));
        PlannedPoll {
            request: match candidate.token {
                Some(token) => {
                    let (start, end) = basis.days(endpoint);
                    PollRequest::Token { endpoint, token: token.id.clone(), start, end }
                }
                None => whole_request(endpoint, basis),
            },
            known: feed.hash.filter(|_| !feed.awaits_proof() && !candidate.with_segments && !candidate.linear.with_ahead),
            why: candidate.why,
            cost: candidate.cost,
            mark: candidate.token.and_then(|token| token.last_updated),
            listed_at: self.estimates.listed_at(),
            with_segments: candidate.with_segments,
            linear: candidate.linear,
            may_add_segments: endpoint == Endpoint::UnlockEvents && basis.source.unlock_events == config::EndpointVersion::Auto,
        }
    }
}

fn whole_request(endpoint: Endpoint, basis: &PlanBasis<'_>) -> PollRequest {
    match endpoint {
        Endpoint::Upcoming => PollRequest::Upcoming {
            start: basis.now.date_naive(),
            end: basis.now.checked_add_signed(basis.source.upcoming_horizon.delta()).unwrap_or(basis.now).date_naive(),
        },
        Endpoint::Investors => PollRequest::Investors,
        _ => PollRequest::TokenList,
    }
}

/// Plans the polls for the linear unlocks of schedules whose cliffs changed. Drops polls that the allowance does not cover.
pub fn plan_with_segments(polls: impl IntoIterator<Item = PlannedPoll>, basis: &PlanBasis<'_>) -> PollPlan {
    let mut allowance = basis.allowance;
    let is_paid = |poll: &PlannedPoll| {
        let is_paid = allowance.of(PollReason::Changed).is_none_or(|max| poll.cost <= max);
        allowance = if is_paid { allowance.after(poll.cost) } else { allowance };
        is_paid
    };
    PollPlan { polls: polls.into_iter().filter(is_paid).collect(), ..PollPlan::default() }
}

/// Plans a poll of the details of each investor in `ids`.
pub fn plan_investors(ids: impl IntoIterator<Item = String>, basis: &PlanBasis<'_>) -> PollPlan {
    let mut plan = PollPlan::default();
    let mut allowance = basis.allowance;
    for id in ids {
        let why = PollReason::Changed;
        if allowance.of(why).is_none_or(|max| max > 0) {
            allowance = allowance.after(1);
            plan.polls.push(PlannedPoll::for_change(PollRequest::Investor { id }));
        } else if let Some((_, count)) = plan.deferred.first_mut() {
            *count += 1;
        } else {
            plan.deferred.push((why, 1));
        }
    }
    plan.exhausted_until =
        (allowance.is_exhausted() && plan.polls.is_empty() && !plan.deferred.is_empty()).then_some(allowance.reset_at);
    plan
}

#[expect(clippy::cast_precision_loss, reason = "credits are far below 2^53")]
fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
