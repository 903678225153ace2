//! The polls that an even pace of the credits allows. Pure.

use chrono::{NaiveTime, TimeDelta};

use super::rivals::{self, Rival};
use super::{EndpointFeeds, PlanBasis, PollCandidate, SlotPlanner, poll_candidates, priority, real};
use crate::budget::{self, Allowance, PollReason};
use model::Timestamp;

/// The share of the credits of a slot for first reads of feeds that show what a schedule shows, even if other polls have a higher priority.
const UNREAD_SHARE: f64 = 0.02;

/// The maximum lead over the even pace for polls of endpoints that no rule subscribes to.
const UNSUBSCRIBED_MARGIN: TimeDelta = TimeDelta::hours(1);

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
        let rivals = if available > 0 { self.rivals(until) } else { Vec::new() };
        let days = priority::days(until - basis.now);
        let (mut sums, mut cost) = (Vec::with_capacity(candidates.len()), 0);
        for candidate in &candidates {
            // A poll that costs more than the share of a whole day only needs that share.
            let needed = cost + candidate.cost.min(share);
            cost += candidate.cost;
            sums.push((candidate.priority, needed, cost));
        }
        let left = self.allowance.left.unwrap_or(u64::MAX);
        // The lower the priority, the more is needed for polls before it and for rivals.
        let paid = sums.partition_point(|(priority, needed, cost)| {
            let for_rivals = || rivals::cost_above(&rivals, *priority, days);
            available > 0 && *cost <= left && real(*needed) + for_rivals() <= real(available)
        });
        let spent = candidates.iter().take(paid).map(|candidate| candidate.cost).sum();
        let mut for_unread = self.unread_share(available).min(available.saturating_sub(spent));
        for (index, candidate) in candidates.iter().enumerate() {
            let is_unread =
                candidate.token.is_some_and(|token| token.feed.as_ref().is_none_or(|feed| feed.baseline_at.is_none()));
            let is_paid_as_unread = index >= paid && self.own.is_subscribed && is_unread && candidate.cost <= for_unread;
            if is_paid_as_unread {
                for_unread -= candidate.cost;
            }
            self.decide(candidate, index < paid || is_paid_as_unread);
        }
    }

    /// Returns the paced polls of other endpoints that have a slot until `until`.
    fn rivals(&self, until: Timestamp) -> Vec<Rival> {
        let has_slot = |other: &&EndpointFeeds| other.next_slot.is_some_and(|slot| slot < until);
        let others = self.estimates.feeds.iter().filter(|feeds| feeds.endpoint != self.own.endpoint).filter(has_slot);
        let mut rivals = Vec::new();
        for other in others {
            let rest = other.next_slot.map_or(0.0, |slot| priority::days(until - slot));
            let slots = 1.0 + (rest / priority::days(other.slot_interval).max(1e-6)).floor();
            let candidates = poll_candidates(other, self.estimates, self.basis);
            let paced = candidates.iter().filter(|candidate| candidate.why > PollReason::Changed);
            rivals.extend(paced.map(|candidate| {
                let feed = candidate.token.map_or(Some(&other.whole), |token| token.feed.as_ref());
                let age =
                    feed.and_then(|feed| feed.read_at).map_or(priority::NEVER_DAYS, |at| priority::days(self.basis.now - at));
                Rival { priority: candidate.priority, cost: real(candidate.cost), age, slots }
            }));
        }
        rivals
    }

    /// Returns the credits that an even pace spends from now until `until`. `share` is what it spends today, and `spent_today` what was
    /// spent of it.
    fn paced_credits(&self, share: u64, spent_today: u64, until: Timestamp) -> u64 {
        let Allowance { left, reserve, today, reset_at, .. } = self.allowance;
        let midnight = self.basis.now.date_naive().and_time(NaiveTime::MIN).and_utc();
        let tomorrow = (midnight + TimeDelta::days(1)).min(reset_at);
        let of_today = paced_today(share, until, self.basis).saturating_sub(spent_today).min(today.unwrap_or(u64::MAX));
        let Some(left) = left.filter(|_| until > tomorrow && reset_at > tomorrow) else { return of_today };
        // A slot that is rarer than daily spends what the days until the next one may spend.
        let after_today = left.saturating_sub(of_today);
        let later = real(after_today) * (priority::days(until.min(reset_at) - tomorrow) / priority::days(reset_at - tomorrow));
        of_today.saturating_add(floor(later)).min(left.saturating_sub(reserve))
    }

    /// Returns the part of the available credits for first reads of feeds that show what a schedule shows.
    fn unread_share(&self, available: u64) -> u64 {
        floor(real(available) * UNREAD_SHARE + budget::rounding_of(self.basis.now))
    }
}

/// Returns the credits of the day's share that an even pace spends by `until`. Rounds up, so that a share of one credit does not wait
/// for the last slot of the day.
fn paced_today(share: u64, until: Timestamp, basis: &PlanBasis<'_>) -> u64 {
    let midnight = basis.now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let day = (basis.allowance.reset_at - midnight).clamp(TimeDelta::seconds(1), TimeDelta::days(1));
    let elapsed = (until - midnight).clamp(TimeDelta::zero(), day);
    let seconds = |span: TimeDelta| u64::try_from(span.num_seconds()).unwrap_or(0);
    share.saturating_mul(seconds(elapsed)).div_ceil(seconds(day).max(1))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "credits are far below 2^53 and never negative")]
fn floor(number: f64) -> u64 {
    number as u64
}
