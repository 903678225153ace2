//! A simulation of one month of polling, in which no response contains a change other than new burns and buybacks. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;

use crate::budget::{self, Allowance, PollReason};
use crate::plan::{
    self, EndpointFeeds, PlanBasis, PlannedPoll,
    priority::{self, CorrectionModel, ListTrust},
};
use crate::slot::Slots;
use model::{CreditState, Endpoint, FeedState, PlanToken, SegmentsRead, Timestamp, TokenId, config};

use super::polls::{PollSummary, TokenPace, schedules};
use super::{DAYS, ticks};

/// The minimum distance of simulated slots. Closer slots are merged, because credits are paced by the hour anyway.
const STEP: TimeDelta = TimeDelta::hours(1);

/// The maximum share of polls that a month may skip and still count as complete. The pace of the first hours of a day skips a few.
const MAX_SKIPPED: f64 = 0.01;

/// The interval, in days, at which a new feed is assumed to show a new burn or buyback.
const ASSUMED_ROW_DAYS: f64 = 7.0;

/// The simulated polls of a month.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Credits of each poll, without first reads.
    spent: Vec<(Endpoint, u64)>,
    /// The number of polls.
    planned: u64,
    /// The number of polls that were skipped because of their credits.
    skipped: u64,
    /// The feeds at the end of the month.
    feeds: Vec<EndpointFeeds>,
    /// The polls of schedules in chronological order, each with the index of its token.
    polls: Vec<(usize, Timestamp)>,
    /// The number of slots for each simulated one, by endpoint.
    merged_slots: Vec<(Endpoint, f64)>,
    start: Timestamp,
    assumption: ListAssumption,
}

/// An assumption about the lists, which the planner shares once it has found the first correction.
#[derive(Clone, Copy, Debug)]
struct ListAssumption {
    trust: ListTrust,
    /// The sum of the observed days of all schedules from which a first correction is more likely than not.
    needed_days: f64,
}

impl ListAssumption {
    fn new(trust: ListTrust, feeds: &[EndpointFeeds], now: Timestamp) -> Self {
        let tokens = schedules(feeds).map_or(&[][..], |schedules| &schedules.tokens);
        let model = CorrectionModel::learn(tokens, plan::listed_at(feeds), now);
        // The rate has a Gamma distribution of shape 1, so its inverse is the median of the time until the next correction.
        let needed_days = if model.has_decided { 0.0 } else { observed_days(feeds, trust) + 1.0 / model.rate };
        Self { trust, needed_days }
    }

    /// Returns the trust of the planner after the polls of `feeds`.
    fn at(&self, feeds: &[EndpointFeeds]) -> ListTrust {
        if observed_days(feeds, self.trust) >= self.needed_days { self.trust } else { ListTrust::Learned }
    }
}

/// Returns the sum of the observed days of all schedules. A token list that reports corrections shows them before the next poll of the
/// schedule.
fn observed_days(feeds: &[EndpointFeeds], trust: ListTrust) -> f64 {
    let listed_at = plan::listed_at(feeds).filter(|_| trust == ListTrust::Reporting);
    let observed = |feed: &FeedState| {
        let listed = listed_at.zip(feed.baseline_at).map_or(0.0, |(listed, baseline)| priority::days(listed - baseline));
        priority::observed_days(feed).max(listed)
    };
    schedules(feeds).into_iter().flat_map(|of| &of.tokens).filter_map(|token| token.feed.as_ref()).map(observed).sum()
}

/// Returns the quota at the start of a month in which no credits were used yet.
pub(super) fn whole_month(credit: &CreditState, now: Timestamp) -> CreditState {
    let reset_at = Some(now + TimeDelta::days(DAYS.into()));
    CreditState { limit: credit.limit, used: Some(0), reset_at, ..CreditState::default() }
}

impl Forecast {
    /// Simulates the month that begins at `now`, with an assumption about the lists.
    pub fn simulate(
        feeds: Vec<EndpointFeeds>,
        slots: &[(Endpoint, Slots)],
        credit: &CreditState,
        (source, budget): (&config::SourceSettings, &config::BudgetSettings),
        trust: ListTrust,
        now: Timestamp,
    ) -> Self {
        let in_order = slots_in_order(slots, now);
        let merged_slots = slots.iter().map(|(endpoint, slots)| {
            let simulated = in_order.iter().filter(|(_, of, _)| of == endpoint).count();
            (*endpoint, plan::real(ticks(slots, now)) / plan::real(super::count(simulated.max(1))))
        });
        let merged_slots = merged_slots.collect();
        let spent = Vec::new();
        let assumption = ListAssumption::new(trust, &feeds, now);
        let forecast = Self { spent, planned: 0, skipped: 0, feeds, polls: Vec::new(), merged_slots, start: now, assumption };
        let indices = forecast.feeds.iter().flat_map(|feeds| {
            let ids = feeds.tokens.iter().map(|token| (feeds.endpoint, token.id.clone()));
            ids.zip(0..)
        });
        let indices = indices.collect();
        let mut simulation = MonthSimulation { credit: whole_month(credit, now), forecast, indices };
        for feeds in &mut simulation.forecast.feeds {
            if let Some((first, _, second)) = in_order.iter().find(|(_, of, _)| *of == feeds.endpoint) {
                (feeds.next_slot, feeds.slot_interval) = (Some(*first), *second - *first);
            }
        }
        for (slot, endpoint, next_slot) in in_order {
            if let Some(own) = simulation.forecast.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) {
                (own.next_slot, own.slot_interval) = (Some(next_slot), next_slot - slot);
            }
            let basis = PlanBasis {
                allowance: Allowance::at(&simulation.credit, budget, slot),
                spent_today: budget::rolled(simulation.credit.clone(), budget, slot).spent_today,
                source,
                near: budget.near.delta(),
                now: slot,
                trust: assumption.at(&simulation.forecast.feeds),
            };
            let planned = plan::plan(endpoint, &simulation.forecast.feeds, &basis);
            simulation.forecast.skipped += planned.deferred.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
            for poll in planned.polls {
                simulation.apply_poll(endpoint, &poll, slot);
            }
        }
        simulation.forecast
    }

    /// Returns the credits that an endpoint uses, without first reads.
    pub fn granted(&self, endpoint: Endpoint) -> u64 {
        credits_of(&self.spent, endpoint)
    }

    /// Returns the days until every schedule was polled at least once. Zero if it was before, `None` if it takes longer than the month.
    pub fn first_pass_days(&self) -> Option<f64> {
        let schedules = schedules(&self.feeds)?;
        let mut first_polls = schedules.tokens.iter().map(|token| token.feed.as_ref().and_then(|feed| feed.baseline_at));
        first_polls.try_fold(0.0_f64, |latest, at| at.map(|at| latest.max(priority::days(at - self.start))))
    }

    /// Returns whether every slot polls all feeds, but for a few polls.
    pub fn is_complete(&self) -> bool {
        plan::real(self.skipped) <= plan::real(self.planned + self.skipped) * MAX_SKIPPED
    }

    /// Summarizes the polls of schedules. If every slot polls all feeds (`is_in_full`), slots that the simulation merged count as polls
    /// too. `near` is the time scale within which the next event raises a token's weight.
    pub fn summary(&self, is_in_full: bool, near: TimeDelta) -> PollSummary {
        let Some(schedules) = schedules(&self.feeds) else { return PollSummary::default() };
        let end = self.start + TimeDelta::days(DAYS.into());
        let mut polls: Vec<Vec<Timestamp>> = vec![Vec::new(); schedules.tokens.len()];
        for (index, at) in &self.polls {
            if let Some(of_token) = polls.get_mut(*index) {
                of_token.push(*at);
            }
        }
        let slots_per_poll = |endpoint| {
            let merged = self.merged_slots.iter().find(|(of, _)| *of == endpoint);
            merged.filter(|_| is_in_full).map_or(1.0, |(_, slots)| *slots)
        };
        let gap_of_list = |endpoint| {
            let list = self.feeds.iter().find(|feeds| feeds.endpoint == endpoint);
            let cost = list.map_or(1, |list| list.whole.cost.max(1));
            let polls = plan::real(credits_of(&self.spent, endpoint).max(1)) / f64::from(cost);
            f64::from(DAYS) * 24.0 / (polls * slots_per_poll(endpoint))
        };
        let lists = [gap_of_list(Endpoint::TokenList), gap_of_list(Endpoint::Upcoming)];
        let slots = slots_per_poll(Endpoint::UnlockEvents);
        let pace = |(token, polls): (&PlanToken, &Vec<Timestamp>)| TokenPace::planned(polls, slots, token, (self.start, end));
        let paces: Vec<TokenPace> = schedules.tokens.iter().zip(&polls).map(pace).collect();
        PollSummary::from_paces(&self.feeds, &paces, lists, (near, self.assumption.trust), end)
    }
}

fn credits_of(spent: &[(Endpoint, u64)], endpoint: Endpoint) -> u64 {
    spent.iter().filter(|(of, _)| *of == endpoint).map(|(_, credits)| credits).sum()
}

/// Returns the slots of all endpoints in chronological order, each with the endpoint's next slot.
fn slots_in_order(slots: &[(Endpoint, Slots)], now: Timestamp) -> Vec<(Timestamp, Endpoint, Timestamp)> {
    let end = now + TimeDelta::days(DAYS.into());
    let mut all = Vec::new();
    for (endpoint, slots) in slots {
        let mut at = slots.next(now);
        while let Some(slot) = at.filter(|slot| *slot < end) {
            at = slots.next(slot + STEP - TimeDelta::seconds(1));
            all.push((slot, *endpoint, at.unwrap_or(end)));
        }
    }
    all.sort();
    all
}

struct MonthSimulation {
    credit: CreditState,
    forecast: Forecast,
    /// The index of each token in the feeds of an endpoint.
    indices: HashMap<(Endpoint, TokenId), usize>,
}

impl MonthSimulation {
    /// Applies a poll whose response contains no change, except for expected rows.
    fn apply_poll(&mut self, endpoint: Endpoint, poll: &PlannedPoll, now: Timestamp) {
        let credits = u32::try_from(poll.cost).unwrap_or(u32::MAX);
        self.credit = budget::settle(self.credit.clone(), credits, None, now);
        let Forecast { spent, planned, feeds, polls, .. } = &mut self.forecast;
        *planned += 1;
        if poll.why != PollReason::First {
            spent.push((endpoint, poll.cost));
        }
        if endpoint == Endpoint::TokenList && poll.why == PollReason::First {
            // The first token list contains a mark for every token.
            let unmarked = feeds.iter_mut().flat_map(|feeds| &mut feeds.tokens);
            unmarked.for_each(|token| token.last_updated = token.last_updated.or(Some(now)));
        }
        let Some(feeds) = feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) else { return };
        let Some(id) = poll.request.token() else {
            feeds.whole = read(&feeds.whole, poll, now);
            return;
        };
        let Some(index) = self.indices.get(&(endpoint, id.clone())).copied() else { return };
        if let Some(token) = feeds.tokens.get_mut(index) {
            let known = token.feed.take().unwrap_or_default();
            let mut feed = read(&known, poll, now);
            if matches!(endpoint, Endpoint::Burn | Endpoint::Buyback) && has_new_row(&known, now) {
                feed.findings.unreported = feed.findings.unreported.saturating_add(1);
            }
            token.feed = Some(feed);
            if poll.with_segments {
                let version = Some(poll.linear.segments_version);
                token.segments = Some(SegmentsRead { at: now, mark: poll.mark, version });
            }
            if poll.linear.with_ahead {
                let reads = token.linear.get_or_insert_default();
                (reads.needs_ahead, reads.ahead_at) = (Some(true), Some(now));
            }
        }
        if endpoint == Endpoint::UnlockEvents {
            polls.push((index, now));
        }
    }
}

/// Returns whether a poll is expected to find a new row. After the first month of a feed, rows come at the mean interval of those that
/// polls have found.
fn has_new_row(known: &FeedState, now: Timestamp) -> bool {
    let Some((baseline, read_at)) = known.baseline_at.zip(known.read_at) else { return false };
    let observed = priority::observed_days(known);
    let is_new = observed < f64::from(DAYS);
    let interval = if is_new { ASSUMED_ROW_DAYS } else { observed / f64::from(known.findings.found().max(1)) };
    let rows = |at: Timestamp| (priority::days(at - baseline) / interval).floor();
    rows(now) > rows(read_at)
}

/// Returns the state of a feed after a poll without a change.
fn read(known: &FeedState, poll: &PlannedPoll, now: Timestamp) -> FeedState {
    FeedState {
        baseline_at: known.baseline_at.or(Some(now)),
        read_at: Some(now),
        mark: poll.mark,
        cost: u32::try_from(poll.base_cost()).unwrap_or(u32::MAX),
        findings: known.findings,
        ..FeedState::default()
    }
}
