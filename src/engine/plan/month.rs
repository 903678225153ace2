//! The monthly plan: how many credits a config wants to use in a month, and how many the budget grants. Pure.
//!
//! The planner computes the unlimited polls of one slot of each endpoint, and the schedule the number of slots. A simulation of the month
//! with the planner shows what the allowance grants ([`forecast`]).

pub mod forecast;
pub mod polls;

use std::collections::HashMap;

use serde::Serialize;

use self::forecast::Forecast;
use self::polls::TokenPolls;
use super::priority::ListTrust;
use super::{EndpointFeeds, PlanBasis, PlannedPoll, PollPlan, segments};
use crate::budget::{self, Allowance, PollReason};
use crate::plan;
use crate::slot::Slots;
use chrono::TimeDelta;
use model::{CreditState, Endpoint, FeedState, PlanToken, Timestamp, TokenId, config};

/// The length of the planned month in days.
pub const DAYS: u32 = 30;

/// The maximum number of slots that are counted one by one. A more frequent schedule is extrapolated from one hour.
const MAX_COUNTED: u32 = 20_000;

/// Before the first token list, one in this many tokens is assumed to have burns, and as many to have buybacks: 9 and 8 of 296 in `data`.
pub const TOKENS_PER_ROW_FEED: usize = 33;

/// The polls of an endpoint without a limit on credits.
#[derive(Clone, Debug, PartialEq)]
struct Demand {
    endpoint: Endpoint,
    /// The number of slots in the month.
    ticks: u64,
    /// The number of polls in one slot.
    polls: u64,
    /// Credits of one slot.
    cost: u64,
    /// Credits of first reads and of linear unlocks that are due.
    first_reads: u64,
    /// Credits of reading linear unlocks and daily emission ahead again.
    linear_again: u64,
    /// Whether the cost was measured by earlier polls. If not, each poll is assumed to cost one credit.
    is_measured: bool,
}

impl Demand {
    /// Computes the demand from a plan for one slot that was made with the [`unlimited`] allowance.
    fn new(feeds: &EndpointFeeds, slots: &Slots, plan: &PollPlan, has_new_marks: bool, now: Timestamp) -> Self {
        // Linear unlocks are fetched once, not in every slot.
        let cost = plan.polls.iter().map(PlannedPoll::base_cost).sum::<u64>();
        let first = plan.polls.iter().filter(|poll| poll.why == PollReason::First);
        Self {
            endpoint: feeds.endpoint,
            ticks: ticks(slots, now),
            polls: count(plan.polls.len()),
            cost,
            first_reads: first.map(PlannedPoll::base_cost).sum::<u64>().saturating_add(plan.cost().saturating_sub(cost)),
            linear_again: linear_again(feeds, plan, has_new_marks, now),
            is_measured: feeds.whole.baseline_at.is_some()
                || feeds.tokens.iter().filter_map(|token| token.feed.as_ref()).any(is_read),
        }
    }

    fn wanted(&self) -> u64 {
        self.ticks.saturating_mul(self.cost).saturating_add(self.linear_again)
    }
}

fn is_read(feed: &FeedState) -> bool {
    feed.baseline_at.is_some()
}

/// Returns the credits of reading linear unlocks and daily emission ahead again in the month, after the reads of `plan`.
/// `has_new_marks` is `true` if the first token list of the month brings a mark for every token.
fn linear_again(feeds: &EndpointFeeds, plan: &PollPlan, has_new_marks: bool, now: Timestamp) -> u64 {
    let tokens: HashMap<&TokenId, &PlanToken> = feeds.tokens.iter().map(|token| (&token.id, token)).collect();
    let span = TimeDelta::days(DAYS.into());
    let of_poll = |poll: &PlannedPoll| {
        let token = tokens.get(poll.request.token()?)?;
        let ahead_cost = poll.linear.ahead.map_or(0, |ahead| ahead.cost);
        // Linear unlocks without a mark are read again after a time, together with daily emission ahead.
        if poll.may_add_segments && token.last_updated.is_none() && !has_new_marks {
            let reads = segments::unmarked_reads_within(token, span, now).saturating_sub(poll.with_segments.into());
            return Some(reads.saturating_mul(poll.base_cost().saturating_add(ahead_cost)));
        }
        let reads = segments::ahead_reads_within(token, span, now);
        Some(reads.saturating_sub(poll.linear.with_ahead.into()).saturating_mul(ahead_cost))
    };
    plan.polls.iter().filter_map(of_poll).sum()
}

/// Returns an allowance without a limit, with which the planner defers nothing.
fn unlimited(now: Timestamp) -> Allowance {
    Allowance { left: None, reserve: 0, today: None, for_changes: None, for_first_reads: None, reset_at: now }
}

fn ticks(slots: &Slots, now: Timestamp) -> u64 {
    let counted = slots.count(now, now + TimeDelta::days(DAYS.into()), MAX_COUNTED);
    if counted < MAX_COUNTED {
        return counted.into();
    }
    let hour = slots.count(now, now + TimeDelta::hours(1), MAX_COUNTED);
    u64::from(hour) * 24 * u64::from(DAYS)
}

/// The planned polls and credits of the next [`DAYS`] days.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Month {
    pub endpoints: Vec<MonthLine>,
    /// The number of watched tokens.
    pub tokens: u64,
    /// Whether `tokens` is an assumption, because the token list was never polled.
    pub tokens_are_assumed: bool,
    /// Credits for all polls without a limit, including first reads.
    pub wanted: u64,
    /// The maximum number of credits that the polls will use.
    pub granted: u64,
    /// The lower of the API's monthly limit and `monthly_credits`; null if neither is known.
    pub allowance: Option<u64>,
    /// The part of `allowance` that is kept for near events and removal proofs.
    pub reserve: u64,
    /// Credits for first reads.
    pub first_reads: u64,
    /// Whether the allowance lasts.
    #[serde(rename = "decision")]
    pub outlook: Outlook,
    /// Days until every schedule was polled once; zero if it was before. Null if it takes more than [`DAYS`], or if no schedules are polled.
    pub first_pass_days: Option<f64>,
    /// The mean time until a correction of a schedule is noticed, in hours; null if no schedules are polled. Lists report some of them.
    pub noticed_hours_mean: Option<f64>,
    /// The same if the token list reports all corrections.
    pub noticed_hours_mean_if_reported: Option<f64>,
    /// The same if no list reports any correction.
    pub noticed_hours_mean_if_silent: Option<f64>,
    /// The maximum time between two polls of one schedule, in hours.
    pub noticed_hours_worst: Option<f64>,
    /// The most frequently polled tokens.
    pub most_read: Vec<TokenPolls>,
    /// The least frequently polled tokens.
    pub least_read: Vec<TokenPolls>,
}

/// The planned polls and credits of an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MonthLine {
    pub endpoint: Endpoint,
    /// The number of slots in the month.
    pub ticks: u64,
    /// The number of polls in one slot without a limit.
    pub polls: u64,
    /// The mean cost of a poll.
    pub credits_per_poll: f64,
    /// Whether the cost was measured by earlier polls.
    pub is_measured: bool,
    /// Credits for all slots without a limit.
    pub wanted: u64,
    /// Credits that the budget grants if the lists report as many corrections as they did so far.
    pub granted: u64,
    /// Credits that the budget grants if the token list reports all corrections.
    pub granted_if_reported: u64,
    /// Credits that the budget grants if no list reports any correction.
    pub granted_if_silent: u64,
    /// Hours between two polls of the same feed; null if feeds are polled only once.
    pub hours_between_polls: Option<f64>,
}

/// Whether the allowance lasts for the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// No limit is known yet.
    Unknown,
    /// Every slot polls all feeds.
    InFull,
    /// The allowance lasts because some polls are skipped.
    Stretched,
    /// The allowance does not cover the lists, which report what to poll.
    #[serde(rename = "listsTooDear")]
    ListsTooExpensive,
    /// The allowance does not cover the first read of all feeds.
    #[serde(rename = "firstReadsTooDear")]
    FirstReadsTooExpensive,
}

/// Sets which tokens have burns and buybacks where this is not known yet. The first token list of the month will report it.
fn assume_row_feeds(feeds: &mut [EndpointFeeds]) {
    for (index, token) in feeds.iter_mut().flat_map(|feeds| feeds.tokens.iter_mut().enumerate()) {
        let has_rows = Some(index % TOKENS_PER_ROW_FEED == 0);
        (token.has_burn, token.has_buyback) = (token.has_burn.or(has_rows), token.has_buyback.or(has_rows));
    }
}

/// Plans the month that begins at `now`, with the given schedule of each polled endpoint.
pub fn plan_month(
    mut feeds: Vec<EndpointFeeds>,
    polled: &[(Endpoint, Slots)],
    tokens_are_assumed: bool,
    credit: &CreditState,
    (source, budget): (&config::SourceSettings, &config::BudgetSettings),
    now: Timestamp,
) -> Month {
    let near = budget.near.delta();
    let basis = PlanBasis { allowance: unlimited(now), spent_today: 0, source, near, now, trust: ListTrust::Learned };
    let has_new_marks = feeds.iter().any(|feeds| feeds.endpoint == Endpoint::TokenList && feeds.whole.baseline_at.is_none());
    if has_new_marks {
        assume_row_feeds(&mut feeds);
    }
    let demand = |(endpoint, slots): &(Endpoint, Slots)| {
        let own = feeds.iter().find(|feeds| feeds.endpoint == *endpoint)?;
        Some(Demand::new(own, slots, &plan::plan(*endpoint, &feeds, &basis), has_new_marks, now))
    };
    let demands: Vec<Demand> = polled.iter().filter_map(demand).collect();
    let tokens = feeds.iter().filter(|feeds| feeds.endpoint.is_per_token()).map(|feeds| feeds.tokens.len()).max();
    let forecast = |trust| Forecast::simulate(feeds.clone(), polled, credit, (source, budget), trust, now);
    let forecasts = Forecasts {
        learned: forecast(ListTrust::Learned),
        reporting: forecast(ListTrust::Reporting),
        silent: forecast(ListTrust::Silent),
    };
    month(&demands, (count(tokens.unwrap_or(0)), tokens_are_assumed), &forecasts, credit, budget, now)
}

/// A month under each assumption about the lists.
struct Forecasts {
    learned: Forecast,
    reporting: Forecast,
    silent: Forecast,
}

fn month(
    demands: &[Demand],
    (tokens, tokens_are_assumed): (u64, bool),
    forecasts: &Forecasts,
    credit: &CreditState,
    budget: &config::BudgetSettings,
    now: Timestamp,
) -> Month {
    let whole = Allowance::at(&forecast::whole_month(credit, now), budget, now);
    let reserve = whole.left.map_or(0, |left| budget::reserve_of(left, budget));
    let first_reads: u64 = demands.iter().map(|demand| demand.first_reads).sum();
    let wanted = demands.iter().map(Demand::wanted).sum::<u64>().saturating_add(first_reads);
    // The even pace of the credits can skip polls of a schedule that is not even.
    let is_in_full = whole.left.is_none_or(|left| wanted <= left - reserve && forecasts.learned.is_complete());
    let near = budget.near.delta();
    let polls = forecasts.learned.summary(is_in_full, near);
    let of = |demand: &Demand, forecast: &Forecast| match is_in_full {
        true => demand.wanted(),
        false => forecast.granted(demand.endpoint).min(demand.wanted()),
    };
    let granted_to = |demand: &Demand| of(demand, &forecasts.learned);
    let endpoints: Vec<MonthLine> = demands
        .iter()
        .map(|demand| line(demand, granted_to(demand), [of(demand, &forecasts.reporting), of(demand, &forecasts.silent)]))
        .collect();
    let mean_if = |forecast: &Forecast| forecast.summary(is_in_full, near).noticed_hours.map(|(mean, _)| mean);
    let lists = demands.iter().filter(|demand| !demand.endpoint.is_per_token());
    let first_granted = whole.left.map_or(first_reads, |left| first_reads.min(left));
    let outlook = match whole.left {
        None => Outlook::Unknown,
        Some(left) if first_reads > left => Outlook::FirstReadsTooExpensive,
        Some(_) if is_in_full => Outlook::InFull,
        Some(_) if lists.clone().count() > 0 && lists.map(granted_to).sum::<u64>() == 0 => Outlook::ListsTooExpensive,
        Some(_) => Outlook::Stretched,
    };
    Month {
        // Rounding per endpoint may exceed the total.
        granted: endpoints
            .iter()
            .map(|line| line.granted)
            .sum::<u64>()
            .saturating_add(first_granted)
            .min(whole.left.unwrap_or(u64::MAX)),
        endpoints,
        tokens,
        tokens_are_assumed,
        wanted,
        allowance: whole.left,
        reserve,
        first_reads,
        outlook,
        first_pass_days: forecasts.learned.first_pass_days(),
        noticed_hours_mean: polls.noticed_hours.map(|(mean, _)| mean),
        noticed_hours_mean_if_reported: mean_if(&forecasts.reporting),
        noticed_hours_mean_if_silent: mean_if(&forecasts.silent),
        noticed_hours_worst: polls.noticed_hours.map(|(_, worst)| worst),
        most_read: polls.most_read,
        least_read: polls.least_read,
    }
}

fn line(demand: &Demand, granted: u64, [granted_if_reported, granted_if_silent]: [u64; 2]) -> MonthLine {
    let credits_per_poll = if demand.polls == 0 { 1.0 } else { real(demand.cost) / real(demand.polls) };
    let hours = f64::from(DAYS) * 24.0;
    let of_polls = granted.saturating_sub(demand.linear_again);
    MonthLine {
        endpoint: demand.endpoint,
        ticks: demand.ticks,
        polls: demand.polls,
        credits_per_poll,
        is_measured: demand.is_measured,
        wanted: demand.wanted(),
        granted,
        granted_if_reported,
        granted_if_silent,
        hours_between_polls: (of_polls > 0).then(|| hours * real(demand.cost) / real(of_polls)),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "credits of a month are far below 2^53")]
fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
