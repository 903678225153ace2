//! Decides when a quota period ends. Pure.
//!
//! Our clock decides when to check, and the API decides the result: by its `resetAt`, its count, or its own time. When our clock shows
//! that a new period began, one probe request goes first. The old period keeps a credit for it. If the old period turns out to continue,
//! the credits used meanwhile count for it. An API that reports neither its quota nor its time is assumed to count calendar months by our
//! clock. If our clock is set back into an earlier month, the credits of the repeated time count again.

use chrono::{Datelike, Months, NaiveTime, TimeDelta};

use model::{CreditState, PastPeriod, SettledRequest, Timestamp, config};

/// The tolerance within which two reported ends denote the same period.
const END_TOLERANCE: TimeDelta = TimeDelta::hours(1);
/// The age at which the reservation of a process expires, because the process is dead.
const RESERVATION_TIMEOUT: TimeDelta = TimeDelta::hours(2);
/// The same while a probe runs, because all other requests wait for it.
pub(super) const PROBE_TIMEOUT: TimeDelta = TimeDelta::minutes(10);
/// The interval between probes for a new period, if the API's own time is not known.
const PROBE_INTERVAL: TimeDelta = TimeDelta::hours(6);
/// The maximum amount by which the clock may seem to go back. Concurrent jobs read the clock and update the ledger in different orders.
const MAX_JITTER: TimeDelta = TimeDelta::hours(1);
/// The maximum forward step of the clock that is accepted without a probe.
const MAX_STEP: TimeDelta = TimeDelta::hours(6);
/// The maximum time for which a clock is in doubt. A process that was stopped for a month also sees a large step, and must not stop
/// polling for another month.
const MAX_DOUBT: TimeDelta = TimeDelta::days(1);
/// The maximum number of earlier periods to retain.
const MAX_EARLIER: usize = 12;

/// Returns the state at `now`, after starting a new period or a new day if the old one ended.
#[must_use]
pub fn rolled(credit: CreditState, budget: &config::BudgetSettings, now: Timestamp) -> CreditState {
    rolled_within(credit, budget.monthly_credits, now)
}

/// Like [`rolled`], with `cap` for `monthly_credits`.
pub(super) fn rolled_within(mut credit: CreditState, cap: Option<u64>, now: Timestamp) -> CreditState {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    expire_reservations(&mut credit, now);
    while credit.unconfirmed && credit.period_start.is_some_and(|start| now < start) && resume(&mut credit) {}
    // Our clock was corrected.
    if end(&credit).is_some_and(|end| now < end) {
        credit.not_over_before = None;
    }
    doubt_clock(&mut credit, cap, now);
    let may_end = credit.not_over_before.is_none_or(|then| now >= then);
    match credit.reset_at {
        Some(reset_at) if now >= reset_at && may_end => {
            // The new period's end is unknown until the API reports it.
            let (start, end) = months_around(now, reset_at);
            begin(&mut credit, Some(start), Some(end));
            credit.unconfirmed = true;
        }
        Some(_) => {}
        None => {
            let month = month_of(now);
            if may_end && credit.period_start.is_none_or(|start| start < month) {
                let is_known = credit.period_start.is_some();
                begin(&mut credit, Some(month), None);
                credit.unconfirmed = is_known && credit.api_time.is_some();
            }
        }
    }
    if credit.day != Some(midnight) {
        credit.day = Some(midnight);
        credit.spent_today = 0;
    }
    credit
}

/// Delays the end of the period if the clock jumped and `cap` leaves no credit for a probe that would show whether the clock is right.
fn doubt_clock(credit: &mut CreditState, cap: Option<u64>, now: Timestamp) {
    let Some(seen) = credit.seen_at.replace(now) else { return };
    // The current cap applies, because it may have been lowered.
    let keeps_no_probe = credit.api_time.is_some() && cap.is_some_and(|cap| credit.own().saturating_add(credit.held()) >= cap);
    if seen - now > MAX_JITTER {
        // The old limit was computed with the wrong clock.
        let max = keeps_no_probe.then(|| now.checked_add_signed(MAX_DOUBT)).flatten();
        credit.not_over_before = credit.not_over_before.min(max);
    }
    if let Some(end) = end(credit).filter(|_| keeps_no_probe)
        && seen < end
        && now >= end
        && now - seen > MAX_STEP
    {
        credit.not_over_before = credit.not_over_before.max(now.checked_add_signed((end - seen).min(MAX_DOUBT)));
    }
}

/// Updates the period by a finished request, before the request is counted. Returns whether the quota in its response belongs to the
/// resulting period.
pub(super) fn update_period(credit: &mut CreditState, request: &SettledRequest, now: Timestamp) -> bool {
    credit.api_time = request.api_time.or(credit.api_time);
    let reported = request.reported.as_ref();
    let end = reported.and_then(|reported| reported.reset_at.copied());
    let used = reported.and_then(|reported| reported.used.copied()).and_then(|used| u64::try_from(used).ok());
    let same = |a: Timestamp, b: Timestamp| (a - b).abs() <= END_TOLERANCE;
    // The machine may have slept since the request was sent, so the period may have ended since.
    let is_late = request.sent_at.is_some_and(|sent_at| (now - sent_at).abs() > PROBE_TIMEOUT);
    while credit.unconfirmed {
        let before = credit.earlier.last();
        let has_ended = has_ended(before, end, used, credit.period_start, request.api_time);
        let Some(has_ended) = has_ended.filter(|has_ended| *has_ended || !is_late) else { return true };
        if has_ended {
            confirm(credit);
            break;
        }
        let boundary = credit.period_start;
        resume(credit);
        let rest = boundary.zip(request.api_time).map(|(boundary, api_time)| boundary - api_time);
        let rest = rest.filter(|rest| *rest > TimeDelta::zero()).unwrap_or(PROBE_INTERVAL);
        credit.not_over_before = now.checked_add_signed(rest);
    }
    if let (Some(api_time), false) = (request.api_time, credit.unconfirmed) {
        begin_as_reported(credit, api_time, end);
    }
    if credit.reset_at.is_none()
        && let (Some(end), Some(start)) = (end, credit.period_start)
        && end.checked_sub_months(Months::new(1)).is_some_and(|begun| begun < start)
    {
        // The API's months are not calendar months, so the period began before the current calendar month.
        resume(credit);
    }
    let before = credit.earlier.last().and_then(|before| before.reset_at);
    if let (Some(end), Some(known)) = (end, credit.reset_at) {
        if before.is_some_and(|before| same(end, before)) && end < known {
            return false; // The response was sent before the period ended.
        }
        let is_lower = used.zip(credit.used).is_some_and(|(used, known)| used < known);
        if end > known + END_TOLERANCE && (is_lower || now >= known) {
            // The API began a new period earlier than expected.
            begin(credit, Some(now), Some(end));
        }
    }
    if let Some(end) = end.filter(|end| *end > now) {
        credit.reset_at = Some(end);
    }
    true
}

/// Begins the period that contains the API's own time, if our clock is behind or in doubt: the response counts for that period. `end` is
/// the end that the API reports.
fn begin_as_reported(credit: &mut CreditState, api_time: Timestamp, end: Option<Timestamp>) {
    match (credit.reset_at, credit.period_start) {
        // The API still counts the known period.
        (Some(known), _) if end.is_some_and(|end| end <= known + END_TOLERANCE) => {}
        (Some(known), _) if api_time >= known => {
            let (start, end) = months_around(api_time, known);
            begin(credit, Some(start), Some(end));
        }
        (None, Some(start)) if api_time >= start && month_of(api_time) > start => begin(credit, Some(month_of(api_time)), None),
        _ => {}
    }
}

/// Returns the end of the current period: the reported one, else a month after its start. `None` if neither is known.
fn end(credit: &CreditState) -> Option<Timestamp> {
    credit.reset_at.or_else(|| month_after(credit.period_start?))
}

fn month_after(start: Timestamp) -> Option<Timestamp> {
    start.checked_add_months(Months::new(1))
}

/// Returns the start and end of the month that contains `now`, counting months from `reset_at`, which is not after `now`.
fn months_around(now: Timestamp, reset_at: Timestamp) -> (Timestamp, Timestamp) {
    let (mut start, mut end) = (reset_at, reset_at);
    while end <= now {
        start = end;
        end = month_after(end).unwrap_or(now + TimeDelta::days(31));
    }
    (start, end)
}

/// Returns the start of the calendar month.
fn month_of(now: Timestamp) -> Timestamp {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    midnight.with_day(1).unwrap_or(midnight)
}

/// Returns whether the period `before` ended according to the API; `None` if the response does not show it.
fn has_ended(
    before: Option<&PastPeriod>,
    end: Option<Timestamp>,
    used: Option<u64>,
    begun: Option<Timestamp>,
    api_time: Option<Timestamp>,
) -> Option<bool> {
    let was = before.and_then(|before| before.reset_at);
    let is_lower = used.zip(before.and_then(|before| before.used)).map(|(used, before)| used < before);
    match (end, was) {
        (Some(end), Some(was)) if end > was + END_TOLERANCE => Some(true),
        _ if is_lower == Some(true) => Some(true),
        (Some(_), Some(_)) => Some(false),
        _ => api_time.zip(begun).map(|(api_time, begun)| api_time >= begun).or(is_lower.map(|_| false)),
    }
}

/// Returns the credits of earlier periods that our clock repeats because it was set back; zero if the API reports its own time. Until a
/// response could be read, the API's month may have begun in the previous calendar month, so its credits count too.
pub(super) fn repeated_credits(credit: &CreditState, now: Timestamp) -> u64 {
    if credit.api_time.is_some() {
        return 0;
    }
    if is_unread(credit) {
        let touches = |before: &&PastPeriod| before.start.and_then(month_after) >= credit.period_start;
        return credit.earlier.last().filter(touches).map_or(0, |before| before.doubtful);
    }
    let mut begun = credit.period_start;
    let repeated =
        credit.earlier.iter().rev().take_while(|before| std::mem::replace(&mut begun, before.start).is_some_and(|at| now < at));
    repeated.map(|before| before.spent + before.doubtful).sum()
}

/// Returns whether no response of the API could be read so far.
pub(super) fn is_unread(credit: &CreditState) -> bool {
    credit.api_time.is_none() && credit.spent == 0 && credit.earlier.iter().all(|before| before.spent == 0)
}

/// Begins a period. Reservations stay, because they may be charged to either period.
fn begin(credit: &mut CreditState, start: Option<Timestamp>, reset_at: Option<Timestamp>) {
    if credit.period_start.is_some() || credit.reset_at.is_some() {
        credit.earlier.push(PastPeriod {
            start: credit.period_start,
            reset_at: credit.reset_at,
            used: credit.used,
            spent: credit.spent,
            doubtful: credit.doubtful,
            uncounted: credit.uncounted,
            spent_elsewhere: credit.spent_elsewhere,
            unconfirmed: credit.unconfirmed,
        });
    }
    if credit.earlier.len() > MAX_EARLIER {
        credit.earlier.remove(0);
    }
    (credit.period_start, credit.reset_at) = (start, reset_at);
    credit.used = credit.used.map(|_| 0);
    (credit.spent, credit.doubtful, credit.uncounted, credit.spent_today) = (0, 0, 0, 0);
    (credit.exhausted, credit.recheck_at) = (false, None);
    (credit.limit_probe, credit.spent_elsewhere) = (None, 0);
    (credit.unconfirmed, credit.not_over_before) = (false, None);
}

/// Resumes the previous period and adds the credits used since. Returns `false` if none is known.
fn resume(credit: &mut CreditState) -> bool {
    let Some(before) = credit.earlier.pop() else {
        credit.unconfirmed = false;
        return false;
    };
    (credit.period_start, credit.reset_at) = (before.start, before.reset_at);
    credit.used = credit.used.max(before.used);
    credit.spent += before.spent;
    credit.doubtful += before.doubtful;
    credit.uncounted += before.uncounted;
    credit.spent_elsewhere += before.spent_elsewhere;
    credit.unconfirmed = before.unconfirmed;
    true
}

/// Marks the current and all earlier periods as confirmed.
fn confirm(credit: &mut CreditState) {
    credit.unconfirmed = false;
    credit.earlier.iter_mut().for_each(|before| before.unconfirmed = false);
}

/// Expires the reservations of dead processes, and counts them as doubtful.
fn expire_reservations(credit: &mut CreditState, now: Timestamp) {
    let timeout = if credit.unconfirmed { PROBE_TIMEOUT } else { RESERVATION_TIMEOUT };
    let (expired, alive): (Vec<_>, Vec<_>) =
        std::mem::take(&mut credit.reserved).into_iter().partition(|one| (now - one.at).abs() > timeout);
    credit.reserved = alive;
    let lost: u64 = expired.iter().map(|one| one.credits).sum();
    credit.doubtful += lost;
    credit.uncounted += lost;
    credit.uncounted_ever += lost;
}
