//! A simulation of one month of polling, in which no response contains a change. Pure.

use chrono::TimeDelta;

use crate::budget::{self, Allowance, PollReason};
use crate::plan::{self, EndpointFeeds, PlanBasis, PlannedPoll};
use crate::slot::Slots;
use model::{CreditState, Endpoint, FeedState, PlanToken, SegmentsRead, Timestamp, config};

use super::DAYS;
use super::polls::{PollSummary, TokenPace};

/// The minimum distance of simulated slots. Closer slots are merged, because credits are paced by the hour anyway.
const STEP: TimeDelta = TimeDelta::hours(1);

/// The simulated polls of a month.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Credits of each poll, without first reads.
    spent: Vec<(Endpoint, u64)>,
    pub polls: PollSummary,
}

/// Returns the quota at the start of a month in which no credits were used yet.
pub(super) fn whole_month(credit: &CreditState, now: Timestamp) -> CreditState {
    let reset_at = Some(now + TimeDelta::days(DAYS.into()));
    CreditState { limit: credit.limit, used: Some(0), reset_at, ..CreditState::default() }
}

impl Forecast {
    /// Simulates the month that begins at `now`.
    pub fn simulate(
        feeds: Vec<EndpointFeeds>,
        slots: &[(Endpoint, Slots)],
        credit: &CreditState,
        (source, budget): (&config::SourceSettings, &config::BudgetSettings),
        now: Timestamp,
    ) -> Self {
        let mut simulation = MonthSimulation { credit: whole_month(credit, now), feeds, spent: Vec::new(), polls: Vec::new() };
        for (slot, endpoint, next_slot) in slots_in_order(slots, now) {
            let basis = PlanBasis {
                allowance: Allowance::at(&simulation.credit, budget, slot),
                spent_today: budget::rolled(simulation.credit.clone(), budget, slot).spent_today,
                next_slot,
                source,
                near: budget.near.delta(),
                now: slot,
            };
            for poll in plan::plan(endpoint, &simulation.feeds, &basis).polls {
                simulation.apply_poll(endpoint, &poll, slot);
            }
        }
        simulation.forecast(budget.near.delta(), now + TimeDelta::days(DAYS.into()))
    }

    /// Returns the credits that an endpoint uses, without first reads.
    pub fn granted(&self, endpoint: Endpoint) -> u64 {
        credits_of(&self.spent, endpoint)
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
    feeds: Vec<EndpointFeeds>,
    spent: Vec<(Endpoint, u64)>,
    /// The token index of each poll of a schedule.
    polls: Vec<usize>,
}

impl MonthSimulation {
    /// Applies a poll whose response contains no change.
    fn apply_poll(&mut self, endpoint: Endpoint, poll: &PlannedPoll, now: Timestamp) {
        let credits = u32::try_from(poll.cost).unwrap_or(u32::MAX);
        self.credit = budget::settle(self.credit.clone(), credits, None, now);
        if poll.why != PollReason::First {
            self.spent.push((endpoint, poll.cost));
        }
        if endpoint == Endpoint::TokenList && poll.why == PollReason::First {
            // The first token list contains a mark for every token.
            let unmarked = self.feeds.iter_mut().flat_map(|feeds| &mut feeds.tokens);
            unmarked.for_each(|token| token.last_updated = token.last_updated.or(Some(now)));
        }
        let Some(feeds) = self.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) else { return };
        let Some(id) = poll.request.token() else {
            feeds.whole = read(&feeds.whole, poll, now);
            return;
        };
        let Some(index) = feeds.tokens.iter().position(|token| token.id == *id) else { return };
        if let Some(token) = feeds.tokens.get_mut(index) {
            token.feed = Some(read(&token.feed.take().unwrap_or_default(), poll, now));
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
            self.polls.push(index);
        }
    }

    fn forecast(self, near: TimeDelta, end: Timestamp) -> Forecast {
        let Some(schedules) = self.feeds.iter().find(|feeds| feeds.endpoint == Endpoint::UnlockEvents) else {
            return Forecast { spent: self.spent, ..Forecast::default() };
        };
        let mut counts = vec![0_u32; schedules.tokens.len()];
        for index in self.polls {
            if let Some(count) = counts.get_mut(index) {
                *count += 1;
            }
        }
        let month = f64::from(DAYS) * 24.0;
        let gap_of_list = |endpoint| {
            let list = self.feeds.iter().find(|feeds| feeds.endpoint == endpoint);
            let cost = list.map_or(1, |list| list.whole.cost.max(1));
            month / plan::real(credits_of(&self.spent, endpoint).max(1)) * f64::from(cost)
        };
        let lists = [gap_of_list(Endpoint::TokenList), gap_of_list(Endpoint::Upcoming)];
        let pace = |(token, polls): (&PlanToken, &u32)| TokenPace::even(*polls, month, token, end);
        let paces: Vec<TokenPace> = schedules.tokens.iter().zip(&counts).map(pace).collect();
        Forecast { polls: PollSummary::from_paces(&self.feeds, &paces, lists, near, end), spent: self.spent }
    }
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
