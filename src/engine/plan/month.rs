//! What a config will ask in a month and what it may spend on that, before anything is asked. Pure.
//!
//! The planner itself says what one tick of each endpoint would ask if nothing limited it; the schedule says how many ticks come;
//! the allowance is then shared as [`super`] shares it from day to day: first reads, then the lists that tell what to ask, then
//! the reads that merely look again, evenly over their ticks.

use chrono::TimeDelta;
use serde::Serialize;

use super::PollPlan;
use crate::budget::{Allowance, PollReason};
use crate::slot::Slots;
use model::{CreditState, Endpoint, Timestamp, config};

/// How far the plan looks ahead, days.
pub const DAYS: u32 = 30;

/// Ticks that are counted one by one; a pattern that comes more often is taken to come as often for the rest of the month.
const MOST_COUNTED: u32 = 20_000;

/// An endpoint, and what one tick of it would ask if nothing limited it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Which.
    pub endpoint: Endpoint,
    pub ticks: u64,
    /// Requests of one tick.
    pub asks: u64,
    /// Credits of one tick.
    pub cost: u64,
    /// Credits of what was never read and comes first, whatever the pace; linear segments that are due among them.
    pub first_reads: u64,
    /// Whether the credits are those of earlier answers; else one is assumed for each request.
    pub is_measured: bool,
}

impl Wish {
    /// Reads it off a plan that was made under [`unlimited`].
    pub fn of(endpoint: Endpoint, slots: &Slots, plan: &PollPlan, now: Timestamp) -> Self {
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
pub fn unlimited(now: Timestamp) -> Allowance {
    Allowance { left: None, reserve: 0, today: None, reset_at: now }
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

/// Lays out the month. `tokens` are watched; that number may be a guess.
pub fn month(
    wishes: &[Wish],
    tokens: u64,
    tokens_are_assumed: bool,
    credit: &CreditState,
    budget: &config::BudgetSettings,
    now: Timestamp,
) -> Month {
    // A month like any other: whole, nothing of it spent yet.
    let whole = CreditState { limit: credit.limit, ..CreditState::default() };
    let whole = Allowance::at(&whole, budget, now);
    let first_reads = wishes.iter().map(|wish| wish.first_reads).sum();
    let share = MonthShare::of(wishes, whole.left, whole.reserve, first_reads);
    let endpoints: Vec<MonthLine> = wishes.iter().map(|wish| line(wish, share.granted(wish))).collect();
    let wanted = endpoints.iter().map(|line| line.wanted).sum::<u64>().saturating_add(first_reads);
    let granted = endpoints.iter().map(|line| line.granted).sum::<u64>().saturating_add(share.first_reads);
    let verdict = match whole.left {
        None => Outlook::Unknown,
        Some(left) if first_reads > left => Outlook::FirstReadsTooDear,
        Some(_) if share.lists_granted < share.lists_wanted => Outlook::ListsTooDear,
        Some(_) if granted < wanted => Outlook::Stretched,
        Some(_) => Outlook::InFull,
    };
    Month {
        endpoints,
        tokens,
        tokens_are_assumed,
        wanted,
        granted,
        allowance: whole.left,
        reserve: whole.reserve,
        first_reads,
        verdict,
    }
}

/// How the credits of a month are shared.
struct MonthShare {
    first_reads: u64,
    lists_wanted: u64,
    lists_granted: u64,
    /// Most credits of one tick that looks again; none where nothing limits it.
    most_per_tick: Option<f64>,
}

impl MonthShare {
    fn of(wishes: &[Wish], left: Option<u64>, reserve: u64, first_reads: u64) -> Self {
        let lists_wanted = wishes.iter().filter(|wish| !wish.endpoint.is_per_token()).map(Wish::wanted).sum();
        let Some(left) = left else {
            return Self { first_reads, lists_wanted, lists_granted: lists_wanted, most_per_tick: None };
        };
        // First reads may use the reserve; what is ordinary may not.
        let first_reads = first_reads.min(left);
        let ordinary = left.saturating_sub(first_reads).saturating_sub(reserve);
        let lists_granted = ordinary.min(lists_wanted);
        Self { first_reads, lists_wanted, lists_granted, most_per_tick: Some(level(wishes, ordinary - lists_granted)) }
    }

    fn granted(&self, wish: &Wish) -> u64 {
        let wanted = wish.wanted();
        if !wish.endpoint.is_per_token() {
            return part(wanted, self.lists_granted, self.lists_wanted);
        }
        self.most_per_tick.map_or(wanted, |most| whole(real(wish.ticks) * most.min(real(wish.cost))).min(wanted))
    }
}

/// The level at which ticks that want less get all, and the others as much as each other.
fn level(wishes: &[Wish], credits: u64) -> f64 {
    let mut ticks: Vec<(u64, u64)> =
        wishes.iter().filter(|wish| wish.endpoint.is_per_token()).map(|wish| (wish.cost, wish.ticks)).collect();
    ticks.sort_unstable();
    let mut credits = real(credits);
    let mut open = real(ticks.iter().map(|(_, count)| count).sum());
    let mut level = 0.0;
    for (cost, count) in ticks {
        let all = (real(cost) - level) * open;
        if all > credits {
            return level + credits / open;
        }
        credits -= all;
        level = real(cost);
        open -= real(count);
    }
    level
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

impl Month {
    /// Tokens at which every tick could be asked in full, once all were read; none where the lists alone cost too much, or no limit
    /// is known.
    pub fn tokens_in_full(&self) -> Option<u64> {
        let (lists, others) = self.by_kind();
        let rest = self.allowance?.checked_sub(self.reserve)?.checked_sub(lists)?;
        (others > 0 && self.tokens > 0).then(|| part(self.tokens, rest, others)).filter(|tokens| *tokens > 0)
    }

    /// How many times less often tokens would have to be looked at; none where that does not help.
    pub fn times_less_often(&self) -> Option<f64> {
        let (lists, others) = self.by_kind();
        let rest = self.allowance?.checked_sub(self.reserve)?.checked_sub(lists)?;
        (rest > 0 && others > rest).then(|| real(others) / real(rest))
    }

    /// Credits that all ticks of lists want, and those of tokens.
    fn by_kind(&self) -> (u64, u64) {
        let (tokens, lists): (Vec<&MonthLine>, Vec<&MonthLine>) =
            self.endpoints.iter().partition(|line| line.endpoint.is_per_token());
        let sum = |lines: Vec<&MonthLine>| lines.iter().map(|line| line.wanted).sum();
        (sum(lists), sum(tokens))
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// `of × numerator / denominator`, rounded down.
fn part(of: u64, numerator: u64, denominator: u64) -> u64 {
    if denominator == 0 {
        return of;
    }
    let exact = u128::from(of) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "credits of a month are far below 2^53")]
fn real(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "credits are never negative, and far below 2^53")]
fn whole(number: f64) -> u64 {
    number.floor() as u64
}

#[cfg(test)]
mod tests;
