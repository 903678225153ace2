//! What a config will ask in a month and what it may spend on that, before anything is asked. Pure.
//!
//! The planner itself says what one tick of each endpoint would ask if nothing limited it; the schedule says how many ticks come. What
//! the allowance lets through is found by playing the month through the planner ([`forecast`]).

pub mod forecast;
pub mod looks;

use serde::Serialize;

use self::forecast::Forecast;
use self::looks::TokenLooks;
use super::{EndpointFeeds, PlanBasis, PollPlan};
use crate::budget::{self, Allowance, PollReason};
use crate::plan;
use crate::slot::Slots;
use chrono::TimeDelta;
use model::{CreditState, Endpoint, Timestamp, config};

/// How far the plan looks ahead, days.
pub const DAYS: u32 = 30;

/// Ticks that are counted one by one; a pattern that comes more often is taken to come as often for the rest of the month.
const MOST_COUNTED: u32 = 20_000;

/// An endpoint, and what one tick of it would ask if nothing limited it.
#[derive(Clone, Debug, PartialEq)]
struct Wish {
    endpoint: Endpoint,
    ticks: u64,
    /// Requests of one tick.
    asks: u64,
    /// Credits of one tick.
    cost: u64,
    /// Credits of what was never read and comes first, whatever the pace; linear segments that are due among them.
    first_reads: u64,
    /// Whether the credits are those of earlier answers; else one is assumed for each request.
    is_measured: bool,
}

impl Wish {
    /// Reads it off a plan that was made under [`unlimited`].
    fn of(endpoint: Endpoint, slots: &Slots, plan: &PollPlan, now: Timestamp) -> Self {
        // Linear segments are read once, and not again at every tick.
        let segments = count(plan.asks.iter().filter(|ask| ask.with_segments).count());
        let first = plan.asks.iter().filter(|ask| ask.why == PollReason::First);
        let cliffs_of_first = first.map(|ask| ask.cost.saturating_sub(u64::from(ask.with_segments))).sum::<u64>();
        Self {
            endpoint,
            ticks: ticks(slots, now),
            asks: count(plan.asks.len()),
            cost: plan.cost().saturating_sub(segments),
            first_reads: cliffs_of_first.saturating_add(segments),
            is_measured: plan.asks.iter().any(|ask| ask.why != PollReason::First),
        }
    }

    fn wanted(&self) -> u64 {
        self.ticks.saturating_mul(self.cost)
    }
}

/// An allowance without a limit: under it, the planner says all that it would like to ask.
fn unlimited(now: Timestamp) -> Allowance {
    Allowance { left: None, reserve: 0, today: None, told: None, reset_at: now }
}

fn ticks(slots: &Slots, now: Timestamp) -> u64 {
    let counted = slots.count(now, now + TimeDelta::days(DAYS.into()), MOST_COUNTED);
    if counted < MOST_COUNTED {
        return counted.into();
    }
    let hour = slots.count(now, now + TimeDelta::hours(1), MOST_COUNTED);
    u64::from(hour) * 24 * u64::from(DAYS)
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Month {
    pub endpoints: Vec<MonthLine>,
    pub tokens: u64,
    /// Whether that number is a guess, since the token list was never read.
    pub tokens_are_assumed: bool,
    /// Credits that the config would like to spend, first reads included.
    pub wanted: u64,
    /// Credits that it will spend at most.
    pub granted: u64,
    /// Credits of a month: the least of what the API reports and `monthly_credits`; null where neither is known.
    pub allowance: Option<u64>,
    /// Of these, kept for near events and proof.
    pub reserve: u64,
    /// Credits of what was never read.
    pub first_reads: u64,
    /// Whether and how it lasts.
    pub verdict: Outlook,
    /// Hours until a correction of a schedule is noticed, on average; null where no schedule is asked for.
    pub noticed_hours_mean: Option<f64>,
    /// The longest time between two looks at one schedule, hours: how late it is where nothing tells.
    pub noticed_hours_worst: Option<f64>,
    /// The tokens that are read most, with how often.
    pub most_read: Vec<TokenLooks>,
    /// Those that are read least.
    pub least_read: Vec<TokenLooks>,
}

/// An endpoint's month.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MonthLine {
    pub endpoint: Endpoint,
    pub ticks: u64,
    /// Requests of one tick, if nothing limited it.
    pub asks: u64,
    /// Credits of one request, on average.
    pub credits_per_ask: f64,
    /// Whether that is what earlier answers cost.
    pub is_measured: bool,
    /// Credits that all ticks would cost.
    pub wanted: u64,
    /// Credits that the budget lets through.
    pub granted: u64,
    /// Hours between two looks at the same thing; null where it is never looked at again.
    pub hours_between_looks: Option<f64>,
}

/// Whether the allowance lasts, and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// No limit is known yet.
    Unknown,
    /// Every tick is asked in full.
    InFull,
    /// It lasts because some looks are left out.
    Stretched,
    /// The lists, which tell what to ask, are themselves too dear.
    ListsTooDear,
    /// Not even everything's first read can be paid.
    FirstReadsTooDear,
}

/// Asks the planner what it would ask of `feeds` at the slots of `polled`, and lays out the month that begins now. How many tokens there
/// are may be a guess.
pub fn lay_out(
    feeds: Vec<EndpointFeeds>,
    polled: &[(Endpoint, Slots)],
    tokens_are_assumed: bool,
    credit: &CreditState,
    (source, budget): (&config::SourceSettings, &config::BudgetSettings),
    now: Timestamp,
) -> Month {
    let basis = PlanBasis { allowance: unlimited(now), spent_today: 0, next_slot: now, source, near: budget.near.delta(), now };
    let wish = |(endpoint, slots): &(Endpoint, Slots)| Wish::of(*endpoint, slots, &plan::plan(*endpoint, &feeds, &basis), now);
    let wishes: Vec<Wish> = polled.iter().map(wish).collect();
    let tokens = feeds.iter().filter(|feeds| feeds.endpoint.is_per_token()).map(|feeds| feeds.tokens.len()).max();
    let forecast = Forecast::of(feeds, polled, credit, (source, budget), now);
    month(&wishes, (count(tokens.unwrap_or(0)), tokens_are_assumed), forecast, credit, budget, now)
}

fn month(
    wishes: &[Wish],
    (tokens, tokens_are_assumed): (u64, bool),
    forecast: Forecast,
    credit: &CreditState,
    budget: &config::BudgetSettings,
    now: Timestamp,
) -> Month {
    let whole = Allowance::at(&forecast::whole_month(credit, now), budget, now);
    let reserve = whole.left.map_or(0, |left| budget::reserve_of(left, budget));
    let first_reads: u64 = wishes.iter().map(|wish| wish.first_reads).sum();
    let wanted = wishes.iter().map(Wish::wanted).sum::<u64>().saturating_add(first_reads);
    let is_in_full = whole.left.is_none_or(|left| wanted <= left - reserve);
    let granted_to = |wish: &Wish| if is_in_full { wish.wanted() } else { forecast.granted(wish.endpoint).min(wish.wanted()) };
    let endpoints: Vec<MonthLine> = wishes.iter().map(|wish| line(wish, granted_to(wish))).collect();
    let lists = wishes.iter().filter(|wish| !wish.endpoint.is_per_token());
    let first_granted = whole.left.map_or(first_reads, |left| first_reads.min(left));
    let verdict = match whole.left {
        None => Outlook::Unknown,
        Some(left) if first_reads > left => Outlook::FirstReadsTooDear,
        Some(_) if is_in_full => Outlook::InFull,
        Some(_) if lists.clone().count() > 0 && lists.map(granted_to).sum::<u64>() == 0 => Outlook::ListsTooDear,
        Some(_) => Outlook::Stretched,
    };
    Month {
        // Each line is rounded by itself.
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
        verdict,
        noticed_hours_mean: forecast.looks.noticed_hours.map(|(mean, _)| mean),
        noticed_hours_worst: forecast.looks.noticed_hours.map(|(_, worst)| worst),
        most_read: forecast.looks.most_read,
        least_read: forecast.looks.least_read,
    }
}

fn line(wish: &Wish, granted: u64) -> MonthLine {
    let credits_per_ask = if wish.asks == 0 { 1.0 } else { real(wish.cost) / real(wish.asks) };
    let hours = f64::from(DAYS) * 24.0;
    MonthLine {
        endpoint: wish.endpoint,
        ticks: wish.ticks,
        asks: wish.asks,
        credits_per_ask,
        is_measured: wish.is_measured,
        wanted: wish.wanted(),
        granted,
        hours_between_looks: (granted > 0).then(|| hours * real(wish.cost) / real(granted)),
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
