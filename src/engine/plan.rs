//! What to ask in one slot of an endpoint's schedule. Pure: what is known, the allowance and `now` in, a list of asks out.
//!
//! What was never read comes first, then proof and retries, then what something told of where an event is near. All else shares one
//! pot, the lists and every endpoint together: the credits that an even pace has left by now go to the looks that are worth most
//! ([`worth`]), and those that another endpoint's slot is to spend are left for it.

mod burst;
pub mod month;
mod retry;
mod segments;
pub mod worth;

use std::{cell::OnceCell, collections::HashSet};

use chrono::{NaiveDate, NaiveTime, TimeDelta};

use self::worth::{Beliefs, Expected, ListAges};
use crate::budget::{Allowance, PollReason};
use model::{ContentHash, Endpoint, FeedState, PlanToken, PollRequest, Timestamp, TokenId, Watch, config};

/// First day of all: undated parts stand at the epoch.
const FIRST_DAY: NaiveDate = day_of(1970, 1, 1);
/// Last day of all. No schedule is known that runs on as long.
const LAST_DAY: NaiveDate = day_of(2199, 12, 31);

const fn day_of(year: i32, month: u32, day: u32) -> NaiveDate {
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(day) => day,
        None => NaiveDate::MIN,
    }
}

/// One thing to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPoll {
    /// What.
    pub request: PollRequest,
    /// Hash of the last answer; none where it must be parsed again, since it may prove a removal.
    pub known: Option<ContentHash>,
    pub why: PollReason,
    /// Credits that it cost last time; one where it was never read.
    pub cost: u64,
    /// The token's mark of change, to be kept with the feed once it is read.
    pub mark: Option<Timestamp>,
    /// When the token list told that mark.
    pub listed_at: Option<Timestamp>,
    /// Linear segments are asked for beside it, at half of its cost: the version that is read does not show them.
    pub with_segments: bool,
    /// They may be asked for beside it, where what it shows moved without them.
    pub may_add_segments: bool,
}

impl PlannedPoll {
    /// A request for one credit, of which nothing is known but that there is something to read.
    #[must_use]
    pub fn of(request: PollRequest) -> Self {
        Self {
            request,
            known: None,
            why: PollReason::Changed,
            cost: 1,
            mark: None,
            listed_at: None,
            with_segments: false,
            may_add_segments: false,
        }
    }

    /// The same with segments beside it, to be told as a whole.
    #[must_use]
    pub fn with_segments(&self) -> Self {
        Self { known: None, cost: self.cost.saturating_mul(2), with_segments: true, ..self.clone() }
    }
}

/// What one tick asks, and what it leaves for later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollPlan {
    /// In the order in which they are asked.
    pub asks: Vec<PlannedPoll>,
    /// Feeds that wait for more credits, for people to see: how many of each kind.
    pub deferred: Vec<(PollReason, u32)>,
    /// Feeds that need no look now.
    pub resting: u32,
    /// Nothing was asked because the credits are spent until this instant.
    pub spent_until: Option<Timestamp>,
}

impl PollPlan {
    /// Credits that it will cost if every answer is as long as the last one.
    pub fn cost(&self) -> u64 {
        self.asks.iter().map(|ask| ask.cost).sum()
    }
}

/// What planning goes by.
#[derive(Clone, Copy, Debug)]
pub struct PlanBasis<'a> {
    /// What may be spent.
    pub allowance: Allowance,
    /// Credits of today's share that are spent, reserved or promised to plans that are being asked.
    pub spent_today: u64,
    /// The endpoint's next slot.
    pub next_slot: Timestamp,
    /// Windows that are asked for.
    pub source: &'a config::SourceSettings,
    /// How near an event must be to come first.
    pub near: TimeDelta,
    /// The time of the tick.
    pub now: Timestamp,
}

impl PlanBasis<'_> {
    /// First and last day to ask an endpoint for.
    fn days(&self, endpoint: Endpoint) -> (NaiveDate, NaiveDate) {
        let has_row_a_day = matches!(endpoint, Endpoint::DailyEmission | Endpoint::WeeklyEmission);
        let day = |reach: config::Reach, years: i64, ends: NaiveDate, sign: i32| {
            let delta = match reach {
                config::Reach::All if has_row_a_day => TimeDelta::days(365 * years),
                // Days that do not move with today: what is asked is then never a border.
                config::Reach::All => return ends,
                config::Reach::Span(span) => span.delta(),
            };
            self.now.checked_add_signed(delta * sign).unwrap_or(self.now).date_naive()
        };
        (day(self.source.history, 3, FIRST_DAY, -1), day(self.source.horizon, 5, LAST_DAY, 1))
    }
}

/// Tokens to plan for: those known that are watched, and those that the config names, whether the list has them or not.
pub fn watched(mut known: Vec<PlanToken>, watch: &Watch) -> Vec<PlanToken> {
    known.retain(|token| watch.covers(&token.id));
    let there: HashSet<TokenId> = known.iter().map(|token| token.id.clone()).collect();
    known.extend(watch.named().iter().filter(|id| !there.contains(*id)).map(|id| PlanToken::unknown(id.clone())));
    known
}

/// An endpoint with a schedule, and what is known of what it may be asked for.
#[derive(Clone, Debug)]
pub struct EndpointFeeds {
    pub endpoint: Endpoint,
    /// Whether a rule listens to what it brings.
    pub is_heard: bool,
    /// Its one feed, where it is asked once for everything.
    pub whole: FeedState,
    /// Watched tokens, where it is asked once for each.
    pub tokens: Vec<PlanToken>,
}

/// A list that was not asked for as long is asked next, whatever it tells of corrections, since it also tells of new tokens and prices:
/// for each credit that it costs, up to some.
const LONGEST_WITHOUT_LIST: TimeDelta = TimeDelta::days(3);
const MOST_TIMES_LONGEST: i32 = 4;
/// Where that would be more than one of so many credits, it waits longer,
const LIST_SHARE: f64 = 200.0;
/// but never longer than this, days.
const LONGEST_OF_ALL: f64 = 14.0;

/// How far ahead of an even pace looks may go that bring what nobody hears.
const UNHEARD_AHEAD: TimeDelta = TimeDelta::hours(1);

/// Plans a slot of `endpoint`. `feeds` are all endpoints with a schedule: they share one pot.
pub fn plan(endpoint: Endpoint, feeds: &[EndpointFeeds], basis: &PlanBasis<'_>) -> PollPlan {
    let Some(own) = feeds.iter().find(|feeds| feeds.endpoint == endpoint) else { return PollPlan::default() };
    let mut plan = PollPlan::default();
    if basis.allowance.is_spent() {
        plan.spent_until = Some(basis.allowance.reset_at).filter(|_| !endpoint.is_per_token() || !own.tokens.is_empty());
        return plan;
    }
    let outlook = SlotOutlook::of(feeds, basis);
    let mut looks = looks(own, &outlook, basis);
    plan.resting = u32::try_from(own.tokens.len().saturating_sub(looks.len())).unwrap_or(0);
    let waiting = looks.split_off(looks.partition_point(|look| look.why <= PollReason::Changed));
    let mut planner = SlotPlanner { plan, allowance: basis.allowance, own, outlook: &outlook, basis };
    for mut look in looks {
        // Cliffs alone are better than nothing, but where something moved: half of that would be told as something else.
        if look.with_segments
            && matches!(look.why, PollReason::First | PollReason::Retry)
            && planner.allowance.of(look.why).is_some_and(|most| most < look.cost)
        {
            (look.with_segments, look.cost) = (false, look.cost / 2);
        }
        let is_paid = planner.allowance.of(look.why).is_none_or(|most| look.cost <= most);
        planner.decide(&look, is_paid);
    }
    planner.share(waiting);
    planner.plan
}

/// What is expected of every feed, reckoned once a slot, and only where it is asked for.
struct SlotOutlook<'a> {
    feeds: &'a [EndpointFeeds],
    /// Of each endpoint's tokens, in their order.
    expected: Vec<OnceCell<Vec<Expected>>>,
    lists: ListAges,
    basis: &'a PlanBasis<'a>,
}

impl<'a> SlotOutlook<'a> {
    fn of(feeds: &'a [EndpointFeeds], basis: &'a PlanBasis<'a>) -> Self {
        let expected = feeds.iter().map(|_| OnceCell::new()).collect();
        Self { feeds, expected, lists: list_ages(feeds, basis.now), basis }
    }

    /// The tokens of an endpoint, each with what is expected of its feed.
    fn tokens(&self, endpoint: Endpoint) -> impl Iterator<Item = (&'a PlanToken, &Expected)> {
        let of = self.feeds.iter().zip(&self.expected).find(|(feeds, _)| feeds.endpoint == endpoint);
        of.into_iter().flat_map(|(feeds, expected)| feeds.tokens.iter().zip(expected.get_or_init(|| self.expect(feeds))))
    }

    fn expect(&self, of: &EndpointFeeds) -> Vec<Expected> {
        let PlanBasis { near, now, .. } = *self.basis;
        let beliefs = Beliefs::of(&of.tokens, self.listed_at(), now);
        of.tokens.iter().map(|token| beliefs.expect(of.endpoint, of.is_heard, token, near, now)).collect()
    }

    fn listed_at(&self) -> Option<Timestamp> {
        listed_at(self.feeds)
    }
}

/// A feed that may be read, and what that is worth.
struct FeedLook<'a> {
    why: PollReason,
    token: Option<&'a PlanToken>,
    /// By what those are ordered that do not go by worth.
    event: Option<Timestamp>,
    /// Per credit.
    worth: f64,
    cost: u64,
    /// Half of the cost is that of linear segments, which are read beside it.
    with_segments: bool,
}

/// What may be read of an endpoint: first what is not to wait, then by worth.
fn looks<'a>(of: &EndpointFeeds, outlook: &SlotOutlook<'a>, basis: &PlanBasis<'_>) -> Vec<FeedLook<'a>> {
    if !of.endpoint.is_per_token() {
        return vec![whole_look(of, outlook, basis)];
    }
    // What goes on failing waits.
    let is_due = |token: &PlanToken| token.feed.as_ref().is_none_or(|feed| retry::is_due(feed, basis.now));
    let asked = outlook.tokens(of.endpoint).filter(|(token, _)| !is_absent(of.endpoint, token) && is_due(token));
    let mut looks: Vec<FeedLook<'_>> = asked
        .map(|(token, expected)| {
            let with_segments = segments::are_needed(of.endpoint, token, basis);
            // The older version walks as many pages again.
            let cost = u64::from(token.feed.as_ref().map_or(1, |feed| feed.cost.max(1))) << u32::from(with_segments);
            let why = reason(token, of.is_heard, expected, basis);
            FeedLook {
                why,
                token: Some(token),
                event: token.next_event,
                worth: expected.worth(outlook.lists) / real(cost),
                cost,
                with_segments,
            }
        })
        .collect();
    let far = basis.now + TimeDelta::days(36_500);
    looks.sort_by(|a, b| match (a.why, b.why) {
        (a_why, b_why) if a_why != b_why => a_why.cmp(&b_why),
        (PollReason::Changed | PollReason::Verify, _) => b.worth.total_cmp(&a.worth),
        _ => a.event.unwrap_or(far).cmp(&b.event.unwrap_or(far)),
    });
    looks
}

/// The list says that there is nothing to read: believed, unless something was read before.
fn is_absent(endpoint: Endpoint, token: &PlanToken) -> bool {
    let flag = match endpoint {
        Endpoint::Burn => token.has_burn,
        Endpoint::Buyback => token.has_buyback,
        _ => None,
    };
    flag == Some(false) && token.feed.as_ref().is_none_or(|feed| feed.baseline_at.is_none())
}

/// When an endpoint that is asked once for everything was last asked.
fn whole_read_at(all: &[EndpointFeeds], endpoint: Endpoint) -> Option<Timestamp> {
    all.iter().find(|feeds| feeds.endpoint == endpoint).and_then(|list| list.whole.read_at)
}

/// When the token list was last asked.
fn listed_at(all: &[EndpointFeeds]) -> Option<Timestamp> {
    whole_read_at(all, Endpoint::TokenList)
}

/// How old what the lists told is.
fn list_ages(all: &[EndpointFeeds], now: Timestamp) -> ListAges {
    let age = |endpoint| whole_read_at(all, endpoint).map_or(f64::INFINITY, |at| worth::days(now - at));
    ListAges { token_list: age(Endpoint::TokenList), upcoming: age(Endpoint::Upcoming) }
}

/// Days after which a list of that cost is asked whatever it tells.
fn longest_without(cost: u64, basis: &PlanBasis<'_>) -> f64 {
    let times = i32::try_from(cost).unwrap_or(MOST_TIMES_LONGEST).min(MOST_TIMES_LONGEST);
    let longest = worth::days(LONGEST_WITHOUT_LIST * times);
    let Some(left) = basis.allowance.left.filter(|left| *left > 0) else { return longest };
    let credits_a_day = real(left) / worth::days(basis.allowance.reset_at - basis.now).max(1.0);
    longest.max((real(cost) * LIST_SHARE / credits_a_day).min(LONGEST_OF_ALL))
}

/// What a list is worth that tells of all tokens: what it would tell of each of their feeds.
fn whole_look<'a>(of: &EndpointFeeds, outlook: &SlotOutlook<'a>, basis: &PlanBasis<'_>) -> FeedLook<'a> {
    let cost = u64::from(of.whole.cost.max(1));
    let is_due = of.whole.read_at.is_none_or(|at| worth::days(basis.now - at) >= longest_without(cost, basis));
    let why = match of.whole {
        FeedState { baseline_at: None, .. } => PollReason::First,
        FeedState { failing_since: Some(_), .. } => PollReason::Retry,
        _ => PollReason::Backbone,
    };
    if is_due || of.endpoint == Endpoint::Investors {
        return FeedLook { why, token: None, event: None, worth: f64::INFINITY, cost, with_segments: false };
    }
    let mut worth = 0.0;
    for feeds in outlook.feeds.iter().filter(|feeds| feeds.endpoint.is_per_token()) {
        for (_, expected) in outlook.tokens(feeds.endpoint) {
            worth += match of.endpoint {
                Endpoint::Upcoming => expected.worth_of_list(expected.by_upcoming, outlook.lists.upcoming),
                _ => expected.worth_of_list(expected.by_mark, outlook.lists.token_list),
            };
        }
    }
    FeedLook { why, token: None, event: None, worth: worth / real(cost), cost, with_segments: false }
}

fn reason(token: &PlanToken, is_heard: bool, expected: &Expected, basis: &PlanBasis<'_>) -> PollReason {
    let none = FeedState::default();
    let feed = token.feed.as_ref().unwrap_or(&none);
    let is_near = token.next_event.is_some_and(|at| at >= basis.now && at <= basis.now + basis.near);
    match feed {
        FeedState { baseline_at: None, .. } if !is_heard && feed.failing_since.is_none() => PollReason::Verify,
        FeedState { baseline_at: None, .. } if !retry::fails_again(feed) => PollReason::First,
        FeedState { baseline_at: Some(_), .. } if !feed.missing.is_empty() || feed.held_since.is_some() => PollReason::Confirm,
        FeedState { failing_since: Some(_), .. } => PollReason::Retry,
        _ if expected.is_told() && is_near => PollReason::Near,
        _ if expected.is_told() => PollReason::Changed,
        _ => PollReason::Verify,
    }
}

/// Deciding look by look, for as long as the allowance lasts.
struct SlotPlanner<'a> {
    plan: PollPlan,
    allowance: Allowance,
    own: &'a EndpointFeeds,
    outlook: &'a SlotOutlook<'a>,
    basis: &'a PlanBasis<'a>,
}

impl SlotPlanner<'_> {
    fn decide(&mut self, look: &FeedLook<'_>, is_paid: bool) {
        if is_paid {
            self.allowance = self.allowance.after(look.cost);
            self.plan.asks.push(self.ask(look));
            return;
        }
        match self.plan.deferred.iter_mut().find(|(why, _)| *why == look.why) {
            Some((_, count)) => *count += 1,
            None => self.plan.deferred.push((look.why, 1)),
        }
    }

    fn ask(&self, look: &FeedLook<'_>) -> PlannedPoll {
        let (endpoint, basis) = (self.own.endpoint, self.basis);
        let none = FeedState::default();
        let feed = look.token.map_or(&self.own.whole, |token| token.feed.as_ref().unwrap_or(&none));
        PlannedPoll {
            request: match look.token {
                Some(token) => {
                    let (start, end) = basis.days(endpoint);
                    PollRequest::Token { endpoint, token: token.id.clone(), start, end }
                }
                None => whole_request(endpoint, basis),
            },
            known: feed.hash.filter(|_| feed.missing.is_empty() && feed.held_since.is_none() && !look.with_segments),
            why: look.why,
            cost: look.cost,
            mark: look.token.and_then(|token| token.last_updated),
            listed_at: self.outlook.listed_at(),
            with_segments: look.with_segments,
            may_add_segments: endpoint == Endpoint::UnlockEvents && basis.source.unlock_events == config::EndpointVersion::Auto,
        }
    }

    /// Gives what the pot holds to the looks that are worth most; what those of other endpoints would take stays for their slots.
    fn share(&mut self, waiting: Vec<FeedLook<'_>>) {
        let Some(today) = self.allowance.today else {
            return waiting.iter().for_each(|look| self.decide(look, true));
        };
        let share = today.saturating_add(self.basis.spent_today);
        // What nobody hears takes nothing that slots before its next one would spend better.
        let soon = self.basis.next_slot.min(self.basis.now + UNHEARD_AHEAD);
        let until = if self.own.is_heard { self.basis.next_slot } else { soon };
        let mut pot = today.min(paced(share, until, self.basis).saturating_sub(self.basis.spent_today));
        let mut rivals = Vec::new();
        if pot > 0 {
            for other in self.outlook.feeds.iter().filter(|feeds| feeds.endpoint != self.own.endpoint) {
                let looks = looks(other, self.outlook, self.basis);
                rivals.extend(looks.iter().filter(|look| look.why > PollReason::Changed).map(|look| (look.worth, look.cost)));
            }
            rivals.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        let mut rivals = rivals.into_iter().peekable();
        for look in waiting {
            while let Some((_, cost)) = rivals.next_if(|(worth, _)| *worth > look.worth) {
                pot = pot.saturating_sub(cost);
            }
            // A walk that is dearer than a day's share takes the whole of one.
            let is_paid = pot > 0 && look.cost.min(share) <= pot;
            if is_paid {
                pot -= look.cost.min(pot);
            } else {
                pot = 0;
            }
            self.decide(&look, is_paid);
        }
    }
}

/// Credits of the day's share that an even pace has spent by `until`; rounded up, so that a share of one is not left to the day's last
/// slot.
fn paced(share: u64, until: Timestamp, basis: &PlanBasis<'_>) -> u64 {
    let midnight = basis.now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let day = (basis.allowance.reset_at - midnight).clamp(TimeDelta::seconds(1), TimeDelta::days(1));
    let gone = (until - midnight).clamp(TimeDelta::zero(), day);
    let part = |span: TimeDelta| u64::try_from(span.num_seconds()).unwrap_or(0);
    share.saturating_mul(part(gone)).div_ceil(part(day).max(1))
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

/// Asks once more, as far as the allowance lasts, for schedules that moved where only their cliffs were asked for.
pub fn plan_again(asks: impl IntoIterator<Item = PlannedPoll>, basis: &PlanBasis<'_>) -> PollPlan {
    let mut allowance = basis.allowance;
    let is_paid = |ask: &PlannedPoll| {
        let is_paid = allowance.of(PollReason::Changed).is_none_or(|most| ask.cost <= most);
        allowance = if is_paid { allowance.after(ask.cost) } else { allowance };
        is_paid
    };
    PollPlan { asks: asks.into_iter().filter(is_paid).collect(), ..PollPlan::default() }
}

/// Plans the details of investors whose latest round is new.
pub fn plan_investors(ids: impl IntoIterator<Item = String>, basis: &PlanBasis<'_>) -> PollPlan {
    let mut plan = PollPlan::default();
    let mut allowance = basis.allowance;
    for id in ids {
        let why = PollReason::Changed;
        if allowance.of(why).is_none_or(|most| most > 0) {
            allowance = allowance.after(1);
            plan.asks.push(PlannedPoll::of(PollRequest::Investor { id }));
        } else if let Some((_, count)) = plan.deferred.first_mut() {
            *count += 1;
        } else {
            plan.deferred.push((why, 1));
        }
    }
    plan.spent_until = (allowance.is_spent() && plan.asks.is_empty() && !plan.deferred.is_empty()).then_some(allowance.reset_at);
    plan
}

#[expect(clippy::cast_precision_loss, reason = "credits are far below 2^53")]
fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
