//! A month of the planner, played forward over answers that tell nothing new. Pure.

use chrono::TimeDelta;

use crate::budget::{self, Allowance, PollReason};
use crate::plan::{self, EndpointFeeds, PlanBasis, PlannedPoll};
use crate::slot::Slots;
use model::{CreditState, Endpoint, FeedState, PlanToken, SegmentsRead, Timestamp, config};

use super::DAYS;
use super::looks::{LookSummary, TokenPace};

/// Slots that come closer than this are played as one: their credits are paced by the hour anyway.
const STEP: TimeDelta = TimeDelta::hours(1);
/// What the planner will do in a month.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Credits by endpoint, without first reads.
    spent: Vec<(Endpoint, u64)>,
    /// How late corrections will be noticed, and whose schedule is read how often.
    pub looks: LookSummary,
}

/// The quota at the beginning of a whole month of which nothing is spent.
pub(super) fn whole_month(credit: &CreditState, now: Timestamp) -> CreditState {
    let reset_at = Some(now + TimeDelta::days(DAYS.into()));
    CreditState { limit: credit.limit, used: Some(0), reset_at, ..CreditState::default() }
}

impl Forecast {
    /// Plays the month that begins now.
    pub fn of(
        feeds: Vec<EndpointFeeds>,
        slots: &[(Endpoint, Slots)],
        credit: &CreditState,
        (source, budget): (&config::SourceSettings, &config::BudgetSettings),
        now: Timestamp,
    ) -> Self {
        let mut play = Play { credit: whole_month(credit, now), feeds, spent: Vec::new(), looks: Vec::new() };
        for (slot, endpoint, next_slot) in in_order(slots, now) {
            let basis = PlanBasis {
                allowance: Allowance::at(&play.credit, budget, slot),
                spent_today: budget::rolled(play.credit.clone(), budget, slot).spent_today,
                next_slot,
                source,
                near: budget.near.delta(),
                now: slot,
            };
            for ask in plan::plan(endpoint, &play.feeds, &basis).asks {
                play.answer(endpoint, &ask, slot);
            }
        }
        play.forecast(budget.near.delta(), now + TimeDelta::days(DAYS.into()))
    }

    /// Credits that an endpoint will spend, without first reads.
    pub fn granted(&self, endpoint: Endpoint) -> u64 {
        self.spent.iter().filter(|(of, _)| *of == endpoint).map(|(_, credits)| credits).sum()
    }
}

/// The slots of the month, each with the one that is played after it.
fn in_order(slots: &[(Endpoint, Slots)], now: Timestamp) -> Vec<(Timestamp, Endpoint, Timestamp)> {
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

struct Play {
    credit: CreditState,
    feeds: Vec<EndpointFeeds>,
    spent: Vec<(Endpoint, u64)>,
    /// Of schedules: the token's place, once for each read.
    looks: Vec<usize>,
}

impl Play {
    /// An answer that tells nothing new.
    fn answer(&mut self, endpoint: Endpoint, ask: &PlannedPoll, now: Timestamp) {
        let credits = u32::try_from(ask.cost).unwrap_or(u32::MAX);
        self.credit = budget::settle(self.credit.clone(), credits, None, now);
        if ask.why != PollReason::First {
            self.spent.push((endpoint, ask.cost));
        }
        if endpoint == Endpoint::TokenList && ask.why == PollReason::First {
            // The first list gives every token its mark.
            let unmarked = self.feeds.iter_mut().flat_map(|feeds| &mut feeds.tokens);
            unmarked.for_each(|token| token.last_updated = token.last_updated.or(Some(now)));
        }
        let Some(feeds) = self.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) else { return };
        let Some(id) = ask.request.token() else {
            feeds.whole = read(&feeds.whole, ask, now);
            return;
        };
        let Some(place) = feeds.tokens.iter().position(|token| token.id == *id) else { return };
        if let Some(token) = feeds.tokens.get_mut(place) {
            token.feed = Some(read(&token.feed.take().unwrap_or_default(), ask, now));
            if ask.with_segments {
                token.segments = Some(SegmentsRead { at: now, mark: ask.mark });
            }
        }
        if endpoint == Endpoint::UnlockEvents {
            self.looks.push(place);
        }
    }

    fn forecast(self, near: TimeDelta, end: Timestamp) -> Forecast {
        let Some(schedules) = self.feeds.iter().find(|feeds| feeds.endpoint == Endpoint::UnlockEvents) else {
            return Forecast { spent: self.spent, ..Forecast::default() };
        };
        let mut counts = vec![0_u32; schedules.tokens.len()];
        for place in self.looks {
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        let month = f64::from(DAYS) * 24.0;
        let gap_of_list = |endpoint| {
            let list = self.feeds.iter().find(|feeds| feeds.endpoint == endpoint);
            let cost = list.map_or(1, |list| list.whole.cost.max(1));
            let credits: u64 = self.spent.iter().filter(|(of, _)| *of == endpoint).map(|(_, credits)| credits).sum();
            month / plan::real(credits.max(1)) * f64::from(cost)
        };
        let lists = [gap_of_list(Endpoint::TokenList), gap_of_list(Endpoint::Upcoming)];
        let pace = |(token, looks): (&PlanToken, &u32)| TokenPace::evenly(*looks, month, token, end);
        let paces: Vec<TokenPace> = schedules.tokens.iter().zip(&counts).map(pace).collect();
        Forecast { looks: LookSummary::of(&self.feeds, &paces, lists, near, end), spent: self.spent }
    }
}

fn read(known: &FeedState, ask: &PlannedPoll, now: Timestamp) -> FeedState {
    FeedState {
        baseline_at: known.baseline_at.or(Some(now)),
        read_at: Some(now),
        mark: ask.mark,
        cost: u32::try_from(ask.cost >> u32::from(ask.with_segments)).unwrap_or(u32::MAX),
        findings: known.findings,
        ..FeedState::default()
    }
}
