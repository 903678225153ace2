//! One ledger for every request of every process: reserved before it is spent, settled at what it cost. Pure.
//!
//! Two counts are kept, and the less of what they leave is left. The API's own: the highest that it told in this period, and what may
//! have been spent since it told that. Ours, for `monthly_credits`: what was answered, and what was sent without an answer that could
//! be read. From both goes what is reserved. A doubt ends when the API counts less than it would make, or with the period.

use chrono::TimeDelta;

use super::period::{self, rolled, rolled_within};
use model::{Charge, CreditState, Reservation, SettledRequest, Timestamp, config, wire};

/// Most credits that are reserved beside those that are wanted: a reservation costs a write, and one that is left behind costs credits.
const MOST_SPARE: u64 = 63;
/// As many where no limit is known, so that none can be lost.
const SPARE_WITHOUT_LIMIT: u64 = 255;
/// One of so many that are left may be spare.
const SPARE_SHARE: u64 = 64;
/// How long nothing is asked where the API refuses for want of credits although it told of some.
const EXHAUSTED_FOR: TimeDelta = TimeDelta::minutes(30);
/// Caps below this keep nothing to find out with whether a new period has begun.
const LEAST_CAP_WITH_PROBE: u64 = 10;

/// What a process has booked.
#[derive(Clone, Debug, Default)]
pub struct Booking {
    /// Whose reservation.
    pub owner: u64,
    /// Its requests that are over, in their order.
    pub settled: Vec<SettledRequest>,
    /// Credits that it keeps of what it has reserved, for requests that are under way or to come; it gives back what is more.
    pub holds: u64,
    /// Credits that it wants for requests to come.
    pub want: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Booked {
    pub grant: Grant,
    /// [`CreditState::uncounted_ever`] from now on.
    pub uncounted_ever: u64,
}

/// Whether requests may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grant {
    /// So many, at least as many as were wanted.
    Granted(u64),
    /// Another request is to show first whether a new period has begun.
    Waits,
    /// Fewer are left, of the period that ends then.
    Refused(Timestamp),
}

/// Books what a process did, and what it wants to do.
#[must_use]
pub fn book(
    mut credit: CreditState,
    booking: &Booking,
    budget: &config::BudgetSettings,
    now: Timestamp,
) -> (CreditState, Booked) {
    // Whoever books is alive: what it holds is reserved, though it slept for so long that it was thought to be gone.
    hold(&mut credit, booking.owner, booking.holds.saturating_add(booking.settled.len() as u64), now);
    credit = rolled(credit, budget, now);
    hold(&mut credit, booking.owner, booking.holds, now);
    for request in &booking.settled {
        count(&mut credit, request, now);
    }
    // What a request showed may have ended or begun a period.
    credit = rolled(credit, budget, now);
    let grant = grant(&credit, booking.want, budget, now);
    if let Grant::Granted(credits) = grant
        && credits > 0
    {
        hold(&mut credit, booking.owner, booking.holds.saturating_add(credits), now);
    }
    let uncounted_ever = credit.uncounted_ever;
    (credit, Booked { grant, uncounted_ever })
}

/// Makes the reservation of `owner` one of so many credits.
fn hold(credit: &mut CreditState, owner: u64, credits: u64, now: Timestamp) {
    credit.reserved.retain(|one| one.owner != owner);
    if credits > 0 {
        credit.reserved.push(Reservation { owner, credits, at: now });
    }
}

/// Whether a process may still spend at `now` what it held at `booked_at`; else it books again first. Nobody takes a process for gone
/// as early as this.
#[must_use]
pub fn is_fresh(booked_at: Timestamp, now: Timestamp) -> bool {
    (now - booked_at).abs() < period::PROBE_LOST_AFTER / 2
}

fn grant(credit: &CreditState, want: u64, budget: &config::BudgetSettings, now: Timestamp) -> Grant {
    let left = left(credit, budget, now);
    if want == 0 {
        return Grant::Granted(0);
    }
    if left.is_some_and(|left| left < want) {
        return Grant::Refused(super::ends_at(credit, now));
    }
    if credit.unconfirmed {
        return if credit.held() == 0 { Grant::Granted(1) } else { Grant::Waits };
    }
    let spare = match left {
        None => SPARE_WITHOUT_LIMIT,
        Some(left) => ((left - want) / SPARE_SHARE).min(MOST_SPARE),
    };
    Grant::Granted(want.saturating_add(spare))
}

/// Credits that may still be reserved at `now`, in a state that was [`rolled`]; none where no limit is known.
#[must_use]
pub fn left(credit: &CreditState, budget: &config::BudgetSettings, now: Timestamp) -> Option<u64> {
    let held = credit.held();
    let used = credit.used.unwrap_or(0).saturating_add(credit.uncounted).max(credit.spent).saturating_add(held);
    let by_api = credit.limit.map(|limit| limit.saturating_sub(used));
    let by_cap = budget.monthly_credits.map(|cap| {
        // The request that shows whether a new period has begun may turn out to be one of this period.
        let relived = period::relived(credit, now);
        let keeps_probe = match credit.told_at {
            Some(_) => !credit.unconfirmed,
            None => period::is_unread(credit) && relived == 0 && credit.own().saturating_add(held) > 0,
        };
        let kept = u64::from(keeps_probe && cap >= LEAST_CAP_WITH_PROBE);
        cap.saturating_sub(credit.own().saturating_add(relived).saturating_add(held).saturating_add(kept))
    });
    let left = match (by_api, by_cap) {
        (Some(api), Some(cap)) => Some(api.min(cap)),
        (one, other) => one.or(other),
    };
    match credit.look_again_at.filter(|_| credit.exhausted) {
        // Such a refusal costs nothing.
        Some(at) if now >= at => Some(left.map_or(1, |left| left.min(1)).saturating_sub(held)),
        Some(_) => Some(0),
        None if credit.exhausted => Some(0),
        None => left,
    }
}

/// The state after a fetch that cost `credits` and reported `reported`, without a reservation.
#[must_use]
pub fn settle(credit: CreditState, credits: u32, reported: Option<&wire::Credit>, now: Timestamp) -> CreditState {
    let mut credit = rolled_within(credit, None, now);
    let charges = (1..credits).map(|_| (Charge::One, None));
    let last = if credits > 0 { Charge::One } else { Charge::Free };
    for (charge, reported) in charges.chain([(last, reported.cloned())]) {
        let request =
            SettledRequest { charge, reported, told_at: None, uncounted_before: credit.uncounted_ever, sent_at: Some(now) };
        count(&mut credit, &request, now);
    }
    credit
}

/// Counts a request that is over.
fn count(credit: &mut CreditState, request: &SettledRequest, now: Timestamp) {
    let is_current = period::judge(credit, request, now);
    let cost = u64::from(matches!(request.charge, Charge::One | Charge::Perhaps));
    match request.charge {
        Charge::One => credit.spent += cost,
        _ => credit.doubtful += cost,
    }
    credit.spent_today += cost;
    let reported = request.reported.as_ref().filter(|_| is_current);
    if reported.is_none() {
        credit.uncounted += cost;
        credit.uncounted_ever += cost;
    }
    if let Some(reported) = reported {
        report(credit, reported, request.uncounted_before, now);
    }
    match request.charge {
        Charge::Refused if credit.limit.is_none_or(|limit| credit.used.is_none_or(|used| used < limit)) => {
            credit.exhausted = true;
            credit.look_again_at = now.checked_add_signed(EXHAUSTED_FOR);
        }
        Charge::One => (credit.exhausted, credit.look_again_at) = (false, None),
        _ => {}
    }
}

/// Takes over what the API counts. Answers come out of order, so the highest count holds.
fn report(credit: &mut CreditState, reported: &wire::Credit, uncounted_before: u64, now: Timestamp) {
    let number = |field: &wire::Maybe<i64>| field.copied().and_then(|count| u64::try_from(count).ok());
    let Some(used) = number(&reported.used) else {
        credit.limit = number(&reported.limit).or(credit.limit);
        return;
    };
    if credit.used.is_none_or(|known| used >= known) {
        credit.limit = number(&reported.limit).or(credit.limit);
    }
    let highest = credit.used.map_or(used, |known| known.max(used));
    (credit.used, credit.reported_at) = (Some(highest), Some(now));
    credit.uncounted = credit.uncounted.min(credit.uncounted_ever.saturating_sub(uncounted_before));
    // It never counts less than we spent, unless it lags behind: then it shows nothing of what is in doubt.
    if let Some(more) = highest.checked_sub(credit.spent) {
        credit.doubtful = credit.doubtful.min(more.saturating_add(credit.uncounted));
    }
}

#[cfg(test)]
mod tests;
