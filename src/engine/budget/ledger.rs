//! The credit ledger of all processes: credits are reserved before a request and settled after it. Pure.
//!
//! The ledger has two counts, and the lower remainder applies. The API's count is the highest that it reported in the period, plus the
//! credits that may have been used since. Our own count, for `monthly_credits`, consists of the requests with a response and of the
//! requests without a readable one. Reserved credits reduce both remainders. A credit is no longer in doubt once the API reports a count
//! that does not include it, or when the period ends.

use chrono::TimeDelta;

use super::limit;
use super::period::{self, rolled, rolled_within};
use model::{Charge, CreditState, Reservation, SettledRequest, Timestamp, config, wire};

/// The maximum number of credits that are reserved in addition to the requested ones. Each reservation costs a write, and the credits of
/// a dead process are lost.
const MAX_SPARE: u64 = 63;
/// The number of additional credits if no limit is known.
const SPARE_WITHOUT_LIMIT: u64 = 255;
/// At most one in this many remaining credits is reserved as an additional credit.
const SPARE_SHARE: u64 = 64;
/// The wait after the API rejected a request as over the quota although its count shows remaining credits.
const EXHAUSTED_FOR: TimeDelta = TimeDelta::minutes(30);
/// The lowest cap that keeps one credit for a probe of a new period.
const MIN_CAP_WITH_PROBE: u64 = 10;

/// The settled requests of a process, and the credits that it needs.
#[derive(Clone, Debug, Default)]
pub struct ReservationRequest {
    /// The id of the process.
    pub owner: u64,
    /// Finished requests, in chronological order.
    pub settled: Vec<SettledRequest>,
    /// Reserved credits that the process keeps for running and later requests. It returns the rest.
    pub holds: u64,
    /// Additional credits that the process needs.
    pub want: u64,
    /// A fingerprint of the current API key. `None` without a key.
    pub key: Option<String>,
}

/// The result of a [`ReservationRequest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserved {
    pub grant: Grant,
    /// The current [`CreditState::uncounted_ever`].
    pub uncounted_ever: u64,
}

/// Whether requests may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grant {
    /// The number of credits granted, at least the number requested.
    Granted(u64),
    /// A running probe must first show whether a new period began.
    Waits,
    /// Too few credits remain in the period, which ends at this instant.
    Refused(Timestamp),
}

/// Settles the finished requests of a process and reserves the credits that it needs.
#[must_use]
pub fn reserve(
    mut credit: CreditState,
    reservation: &ReservationRequest,
    budget: &config::BudgetSettings,
    now: Timestamp,
) -> (CreditState, Reserved) {
    if let Some(key) = &reservation.key {
        limit::use_key(&mut credit, key);
    }
    // Renew the reservation first: it may have expired while the process slept, but the process is alive.
    hold(&mut credit, reservation.owner, reservation.holds.saturating_add(reservation.settled.len() as u64), now);
    credit = rolled(credit, budget, now);
    hold(&mut credit, reservation.owner, reservation.holds, now);
    for request in &reservation.settled {
        count(&mut credit, request, now);
    }
    // A response may show that a period ended or began.
    credit = rolled(credit, budget, now);
    limit::update(&mut credit, now);
    let grant = grant(&credit, reservation.want, budget, now);
    if let Grant::Granted(credits) = grant
        && credits > 0
    {
        limit::granted(&mut credit, now);
        hold(&mut credit, reservation.owner, reservation.holds.saturating_add(credits), now);
    }
    let uncounted_ever = credit.uncounted_ever;
    (credit, Reserved { grant, uncounted_ever })
}

/// Sets the reservation of `owner` to `credits`.
fn hold(credit: &mut CreditState, owner: u64, credits: u64, now: Timestamp) {
    credit.reserved.retain(|one| one.owner != owner);
    if credits > 0 {
        credit.reserved.push(Reservation { owner, credits, at: now });
    }
}

/// Returns whether a process may still spend at `now` the credits that it reserved at `reserved_at`. If not, it must renew the
/// reservation. No reservation expires before that.
#[must_use]
pub fn is_fresh(reserved_at: Timestamp, now: Timestamp) -> bool {
    (now - reserved_at).abs() < period::PROBE_TIMEOUT / 2
}

fn grant(credit: &CreditState, want: u64, budget: &config::BudgetSettings, now: Timestamp) -> Grant {
    let left = spendable(credit, budget, now);
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
        Some(left) => ((left - want) / SPARE_SHARE).min(MAX_SPARE),
    };
    Grant::Granted(want.saturating_add(spare))
}

/// Returns the remaining credits at `now`; `None` if no limit is known. The state must be [`rolled`].
#[must_use]
pub fn left(credit: &CreditState, budget: &config::BudgetSettings, now: Timestamp) -> Option<u64> {
    let used = limit::counted(credit).saturating_add(credit.held());
    left_of(credit, credit.limit.map(|limit| limit.saturating_sub(used)), budget, now)
}

/// Returns the credits that may be reserved at `now`: those of [`left`], or one to check whether the API's limit was raised.
pub(super) fn spendable(credit: &CreditState, budget: &config::BudgetSettings, now: Timestamp) -> Option<u64> {
    if limit::is_probe_due(credit, now) {
        return left_of(credit, Some(1_u64.saturating_sub(credit.held())), budget, now);
    }
    left(credit, budget, now)
}

/// Returns the remaining credits if `by_api` remain by the API's count.
fn left_of(credit: &CreditState, by_api: Option<u64>, budget: &config::BudgetSettings, now: Timestamp) -> Option<u64> {
    let held = credit.held();
    let by_cap = budget.monthly_credits.map(|cap| {
        // A probe for a new period may still be charged to this one, so keep a credit for it.
        let repeated = period::repeated_credits(credit, now);
        let keeps_probe = match credit.api_time {
            Some(_) => !credit.unconfirmed,
            None => period::is_unread(credit) && repeated == 0 && credit.own().saturating_add(held) > 0,
        };
        let kept = u64::from(keeps_probe && cap >= MIN_CAP_WITH_PROBE);
        cap.saturating_sub(credit.own().saturating_add(repeated).saturating_add(held).saturating_add(kept))
    });
    let left = match (by_api, by_cap) {
        (Some(api), Some(cap)) => Some(api.min(cap)),
        (one, other) => one.or(other),
    };
    match credit.recheck_at.filter(|_| credit.exhausted) {
        // Probe with one request. A rejection costs nothing.
        Some(at) if now >= at => Some(left.map_or(1, |left| left.min(1)).saturating_sub(held)),
        Some(_) => Some(0),
        None if credit.exhausted => Some(0),
        None => left,
    }
}

/// Returns the state after requests that cost `credits` without a reservation, the last of which reported the quota `reported`.
#[must_use]
pub fn settle(credit: CreditState, credits: u32, reported: Option<&wire::Credit>, now: Timestamp) -> CreditState {
    let mut credit = rolled_within(credit, None, now);
    let charges = (1..credits).map(|_| (Charge::One, None));
    let last = if credits > 0 { Charge::One } else { Charge::Free };
    for (charge, reported) in charges.chain([(last, reported.cloned())]) {
        let request = SettledRequest {
            charge,
            reported,
            uncounted_before: credit.uncounted_ever,
            sent_at: Some(now),
            ..SettledRequest::default()
        };
        count(&mut credit, &request, now);
    }
    credit
}

/// Counts a finished request.
fn count(credit: &mut CreditState, request: &SettledRequest, now: Timestamp) {
    let has_other_key = limit::has_other_key(credit, request);
    let is_current = !has_other_key && period::update_period(credit, request, now);
    let is_accepted_probe = is_current && limit::is_accepted_probe(credit, request);
    let cost = u64::from(matches!(request.charge, Charge::One | Charge::Perhaps));
    match request.charge {
        Charge::One => credit.spent += cost,
        _ => credit.doubtful += cost,
    }
    credit.spent_today += cost;
    if has_other_key {
        credit.spent_elsewhere += if request.charge == Charge::One { cost } else { 0 };
        return;
    }
    let reported = request.reported.as_ref().filter(|_| is_current);
    if reported.is_none() {
        credit.uncounted += cost;
        credit.uncounted_ever += cost;
    }
    if let Some(reported) = reported {
        if is_accepted_probe {
            limit::replace(credit, reported);
        }
        apply_report(credit, reported, request.uncounted_before, now);
    }
    match request.charge {
        Charge::Refused if credit.limit.is_none_or(|limit| credit.used.is_none_or(|used| used < limit)) => {
            credit.exhausted = true;
            credit.recheck_at = now.checked_add_signed(EXHAUSTED_FOR);
        }
        Charge::One => (credit.exhausted, credit.recheck_at) = (false, None),
        _ => {}
    }
}

/// Applies the count that the API reports. Responses arrive out of order, so the highest count applies.
fn apply_report(credit: &mut CreditState, reported: &wire::Credit, uncounted_before: u64, now: Timestamp) {
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
    // A count below our own lags behind, and decides nothing about doubtful credits.
    if let Some(more) = highest.checked_sub(credit.spent) {
        credit.doubtful = credit.doubtful.min(more.saturating_add(credit.uncounted));
    }
}

#[cfg(test)]
mod tests;
