//! The limit of the API: when its credits are used up, and when a request checks whether more became available. Pure.
//!
//! The API may raise its limit at any time, and a rejected request is free. So while all credits of the limit are used, one request is
//! sent a day. An operator can request it at once ([`recheck`]), and a new API key ends the wait, because it has a count of its own.
//! `[budget] monthly_credits` applies to all of them.

use chrono::TimeDelta;

use model::{Charge, CreditState, LimitProbe, SettledRequest, Timestamp, wire};

/// The interval between requests that check the limit.
const INTERVAL: TimeDelta = TimeDelta::days(1);

/// Returns the credits that the API may have counted.
pub(super) fn counted(credit: &CreditState) -> u64 {
    let own = credit.spent.saturating_sub(credit.spent_elsewhere);
    credit.used.unwrap_or(0).saturating_add(credit.uncounted).max(own)
}

/// Returns whether all credits of the API's limit are used, without reservations.
pub(super) fn is_used_up(credit: &CreditState) -> bool {
    credit.limit.is_some_and(|limit| counted(credit) >= limit)
}

/// Returns whether a request may check the limit now.
pub(super) fn is_probe_due(credit: &CreditState, now: Timestamp) -> bool {
    // A remaining wait longer than the interval means that the clock was set back.
    let is_due = |probe: &LimitProbe| now >= probe.next_at || probe.next_at - now > INTERVAL;
    is_used_up(credit) && credit.limit_probe.as_ref().is_some_and(is_due)
}

/// Starts the wait when the credits are used up, and ends it when they are not.
pub(super) fn update(credit: &mut CreditState, now: Timestamp) {
    if !is_used_up(credit) {
        credit.limit_probe = None;
    } else if credit.limit_probe.is_none() {
        credit.limit_probe = Some(LimitProbe { next_at: later(now), granted_at: None });
    }
}

/// Records that a request that checks the limit was granted. The next one follows after the interval, also if this one fails.
pub(super) fn granted(credit: &mut CreditState, now: Timestamp) {
    if is_used_up(credit) {
        credit.limit_probe = Some(LimitProbe { next_at: later(now), granted_at: Some(now) });
    }
}

fn later(now: Timestamp) -> Timestamp {
    now.checked_add_signed(INTERVAL).unwrap_or(now)
}

/// Allows one request now, although all credits are used. Returns `false` if they are not.
pub fn recheck(credit: &mut CreditState, now: Timestamp) -> bool {
    if credit.exhausted {
        credit.recheck_at = Some(now);
    }
    if is_used_up(credit) {
        let granted_at = credit.limit_probe.as_ref().and_then(|probe| probe.granted_at);
        credit.limit_probe = Some(LimitProbe { next_at: now, granted_at });
    }
    credit.exhausted || is_used_up(credit)
}

/// Forgets the counts of the API if requests now use another key. `key` is a fingerprint.
pub(super) fn use_key(credit: &mut CreditState, key: &str) {
    if credit.key.as_deref().is_some_and(|known| known != key) {
        (credit.used, credit.limit, credit.reported_at) = (None, None, None);
        (credit.exhausted, credit.recheck_at, credit.limit_probe) = (false, None, None);
        (credit.uncounted, credit.spent_elsewhere) = (0, credit.spent);
        for before in &mut credit.earlier {
            (before.used, before.uncounted, before.spent_elsewhere) = (None, 0, before.spent);
        }
    }
    if credit.key.as_deref() != Some(key) {
        credit.key = Some(key.to_owned());
    }
}

/// Returns whether a request was sent with another key than the current one, whose count it does not change.
pub(super) fn has_other_key(credit: &CreditState, request: &SettledRequest) -> bool {
    request.key.is_some() && request.key != credit.key
}

/// Returns whether the API accepted a request that checks the limit.
pub(super) fn is_accepted_probe(credit: &CreditState, request: &SettledRequest) -> bool {
    let granted_at = credit.limit_probe.as_ref().and_then(|probe| probe.granted_at);
    let is_probe = granted_at.zip(request.sent_at).is_some_and(|(granted_at, sent_at)| sent_at >= granted_at);
    request.charge == Charge::One && is_used_up(credit) && is_probe
}

/// Replaces the counts with those in the response to an accepted probe, even if they are lower. Nothing else runs at the same time.
pub(super) fn replace(credit: &mut CreditState, reported: &wire::Credit) {
    let number = |field: &wire::Maybe<i64>| field.copied().and_then(|count| u64::try_from(count).ok());
    credit.limit = number(&reported.limit).or(credit.limit);
    if let Some(used) = number(&reported.used) {
        (credit.used, credit.uncounted) = (Some(used), 0);
        credit.spent_elsewhere = credit.spent_elsewhere.max(credit.spent.saturating_sub(used));
    }
}

#[cfg(test)]
mod tests;
