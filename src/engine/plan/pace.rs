//! The polls that an even pace of the credits allows. Pure.

use std::collections::HashSet;

use chrono::{NaiveTime, TimeDelta};

use super::rivals::{self, Rival};
use super::{EndpointFeeds, PlanBasis, PollCandidate, SlotPlanner, poll_candidates, priority, real};
use crate::budget::{self, Allowance, PollReason};
use model::Timestamp;

/// The share of the credits of a slot for first reads of feeds that follow a schedule, even if other polls have a higher priority.
const UNREAD_SHARE: f64 = 0.01;

/// The maximum lead over the even pace for polls of endpoints that no rule subscribes to.
const UNSUBSCRIBED_MARGIN: TimeDelta = TimeDelta::hours(1);

/// The polls of other endpoints that compete for the credits of a slot.
#[derive(Debug, Default)]
struct SlotRivals {
    /// Credits of first reads, which come before all others.
    first_reads: u64,
    paced: Vec<Rival>,
}

impl SlotPlanner<'_> {
    /// Grants the credits that the even pace allows to the candidates with the highest priority. Leaves enough credits for
    /// higher-priority polls of other endpoints.
    pub(super) fn plan_paced(&mut self, candidates: Vec<PollCandidate<'_>>) {
        let Some(today) = self.allowance.today else {
            return candidates.iter().for_each(|candidate| self.decide(candidate, true));
        };
        let basis = self.basis;
        let next_slot = self.own.next_slot.unwrap_or(basis.now);
        // An unsubscribed endpoint must not use credits that earlier slots of other endpoints could spend better.
        let soon = next_slot.min(basis.now + UNSUBSCRIBED_MARGIN);
        let until = if self.own.is_subscribed { next_slot } else { soon };
        let spent_today = basis.spent_today.saturating_add(self.plan.cost());
        let share = today.saturating_add(spent_today);
        let available = self.paced_credits(share, spent_today, until);
        let left = self.allowance.left.unwrap_or(u64::MAX);
        // What cannot be paid at all must not stop cheaper polls.
        let (candidates, unaffordable): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| candidate.cost <= left);

        let unread = if self.own.is_subscribed { self.guaranteed(&candidates, available) } else { HashSet::new() };
        let for_unread: u64 = unread.iter().filter_map(|index| candidates.get(*index)).map(|candidate| candidate.cost).sum();
        let available = available.saturating_sub(for_unread);
        let until = until.max(BudgetDay::of(basis).covered_until(share, spent_today + available));
        let rivals = if available > 0 { self.rivals(until, left) } else { SlotRivals::default() };
        // The lists determine the order of all other first reads, which therefore leave half of the credits to them.
        let first_reads =
            if self.own.endpoint.is_per_token() { rivals.first_reads } else { rivals.first_reads.min(available / 2) };
        let days = priority::days(until - basis.now);
        let (mut sums, mut cost) = (Vec::with_capacity(candidates.len()), for_unread);
        let mut needed = 0;
        for candidate in &candidates {
            // A poll that costs more than the share of a whole day only needs that share.
            sums.push((candidate.priority, needed + candidate.cost.min(share), cost + candidate.cost));
            (needed, cost) = (needed + candidate.cost, cost + candidate.cost);
        }
        // The lower the priority, the more is needed for polls before it and for rivals.
        let paid = sums.partition_point(|(priority, needed, cost)| {
            let first_reads = if priority.is_finite() { first_reads } else { 0 };
            let for_rivals = || real(first_reads) + rivals::cost_above(&rivals.paced, *priority, days);
            available > 0 && *cost <= left && real(*needed) + for_rivals() <= real(available)
        });
        for (index, candidate) in candidates.iter().enumerate() {
            self.decide(candidate, index < paid || unread.contains(&index));
        }
        unaffordable.iter().for_each(|candidate| self.decide(candidate, false));
    }

    /// Returns the first reads that [`UNREAD_SHARE`] of the available credits pays for. A read that costs more than a slot has is paid by
    /// the shares of many slots.
    fn guaranteed(&self, candidates: &[PollCandidate<'_>], available: u64) -> HashSet<usize> {
        let is_unread = |candidate: &PollCandidate<'_>| {
            candidate.token.is_some_and(|token| token.feed.as_ref().is_none_or(|feed| feed.baseline_at.is_none()))
        };
        let unread = || candidates.iter().enumerate().filter(|(_, candidate)| is_unread(candidate));
        let Some((_, first)) = unread().next() else { return HashSet::new() };
        let hour = self.basis.now.timestamp().div_euclid(3_600);
        let polls = real(available) * UNREAD_SHARE / real(first.cost.max(1)) + budget::rounding_offset(hour);
        let mut left = self.allowance.left.unwrap_or(u64::MAX);
        let mut guaranteed = HashSet::new();
        for (index, candidate) in unread().take(usize::try_from(floor(polls)).unwrap_or(usize::MAX)) {
            if candidate.cost <= left && available > 0 {
                left -= candidate.cost;
                guaranteed.insert(index);
            }
        }
        guaranteed
    }

    /// Returns the polls of other endpoints that have a slot until `until` and cost at most `left`.
    fn rivals(&self, until: Timestamp, left: u64) -> SlotRivals {
        let has_slot = |other: &&EndpointFeeds| other.next_slot.is_some_and(|slot| slot <= until);
        let others = self.estimates.feeds.iter().filter(|feeds| feeds.endpoint != self.own.endpoint).filter(has_slot);
        let mut rivals = SlotRivals::default();
        for other in others {
            let rest = other.next_slot.map_or(0.0, |slot| priority::days(until - slot));
            let slots = 1.0 + (rest / priority::days(other.slot_interval).max(1e-6)).floor();
            for candidate in poll_candidates(other, self.estimates, self.basis).iter().filter(|candidate| candidate.cost <= left)
            {
                match candidate.why {
                    PollReason::First if candidate.token.is_some() => rivals.first_reads += candidate.cost,
                    why if why > PollReason::Changed => {
                        let feed = candidate.token.map_or(Some(&other.whole), |token| token.feed.as_ref());
                        let read_at = feed.and_then(|feed| feed.read_at);
                        let age = read_at.map_or(priority::NEVER_DAYS, |at| priority::days(self.basis.now - at));
                        rivals.paced.push(Rival { priority: candidate.priority, cost: real(candidate.cost), age, slots });
                    }
                    _ => {}
                }
            }
        }
        rivals
    }

    /// Returns the credits that an even pace spends from now until `until`. `share` is what it spends today, and `spent_today` what was
    /// spent of it.
    fn paced_credits(&self, share: u64, spent_today: u64, until: Timestamp) -> u64 {
        let Allowance { left, reserve, today, reset_at, .. } = self.allowance;
        let day = BudgetDay::of(self.basis);
        let tomorrow = day.begin + day.length;
        let of_today = day.paced(share, until).saturating_sub(spent_today).min(today.unwrap_or(u64::MAX));
        let Some(left) = left.filter(|_| until > tomorrow && reset_at > tomorrow) else { return of_today };
        // A slot that is rarer than daily spends what the days until the next one may spend.
        let after_today = left.saturating_sub(of_today);
        let later = real(after_today) * (priority::days(until.min(reset_at) - tomorrow) / priority::days(reset_at - tomorrow));
        of_today.saturating_add(floor(later)).min(left.saturating_sub(reserve))
    }
}

/// The day over which a share of the credits is spread. Ends early if the credit period does.
#[derive(Clone, Copy)]
struct BudgetDay {
    begin: Timestamp,
    length: TimeDelta,
}

impl BudgetDay {
    fn of(basis: &PlanBasis<'_>) -> Self {
        let begin = basis.now.date_naive().and_time(NaiveTime::MIN).and_utc();
        Self { begin, length: (basis.allowance.reset_at - begin).clamp(TimeDelta::seconds(1), TimeDelta::days(1)) }
    }

    /// Returns the credits of the day's share that an even pace spends by `until`. Rounds up, so that a share of one credit does not wait
    /// for the last slot of the day.
    fn paced(self, share: u64, until: Timestamp) -> u64 {
        let elapsed = (until - self.begin).clamp(TimeDelta::zero(), self.length);
        share.saturating_mul(seconds(elapsed)).div_ceil(seconds(self.length).max(1))
    }

    /// Returns the time until which an even pace has spent `credits` of the day's share. Later than the next slot if a fraction of a credit
    /// was rounded up.
    fn covered_until(self, share: u64, credits: u64) -> Timestamp {
        let covered = seconds(self.length).saturating_mul(credits.min(share)) / share.max(1);
        self.begin + TimeDelta::seconds(i64::try_from(covered).unwrap_or(0))
    }
}

fn seconds(span: TimeDelta) -> u64 {
    u64::try_from(span.num_seconds()).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "credits are far below 2^53 and never negative")]
fn floor(number: f64) -> u64 {
    number as u64
}
