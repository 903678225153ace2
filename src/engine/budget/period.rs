//! When a period of the quota is over. Pure.
//!
//! Our clock says when to look, the API's word decides: its `resetAt`, its count, its own time. Where our clock says that a new period
//! has begun, one request finds out, out of a credit that the old period kept for it; if the old one goes on, what was spent meanwhile
//! counts there. An API that tells neither its quota nor its time is believed to count months of our clock; where that is set back, what
//! was spent in the month that it lives through again counts again.

use chrono::{Datelike, Months, NaiveTime, TimeDelta};

use model::{CreditState, PastPeriod, SettledRequest, Timestamp, config};

/// Ends of a period that are as near as this are one.
const SAME_END: TimeDelta = TimeDelta::hours(1);
/// No process leaves a reservation untouched for so long: the one that did is gone.
const LEFT_BEHIND_AFTER: TimeDelta = TimeDelta::hours(2);
/// While one request is to show whether a new period has begun, everybody waits for it.
pub(super) const PROBE_LOST_AFTER: TimeDelta = TimeDelta::minutes(10);
/// When to ask again whether a period is over, where the API's own time is not known.
const ASK_AGAIN_AFTER: TimeDelta = TimeDelta::hours(6);
/// Jobs at work at once look at the clock in one order and at the ledger in another; such a clock was not set back.
const LARGEST_JITTER: TimeDelta = TimeDelta::hours(1);
/// A clock that cannot be asked about is believed to have gone on by so much at a time; what it leapt over is to be lived through.
const LARGEST_STEP: TimeDelta = TimeDelta::hours(6);
/// For no longer than this: a process that was off for a month leaps too, and is not to be blind for another.
const LONGEST_DOUBT: TimeDelta = TimeDelta::days(1);
/// Periods that are kept.
const MOST_EARLIER: usize = 12;

/// The state at `now`: a period that ended begins anew, a day that ended too.
#[must_use]
pub fn rolled(credit: CreditState, budget: &config::BudgetSettings, now: Timestamp) -> CreditState {
    rolled_within(credit, budget.monthly_credits, now)
}

/// As [`rolled`], where `monthly_credits` are `cap`.
pub(super) fn rolled_within(mut credit: CreditState, cap: Option<u64>, now: Timestamp) -> CreditState {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    bury(&mut credit, now);
    while credit.unconfirmed && credit.period_start.is_some_and(|start| now < start) && resume(&mut credit) {}
    // Our clock was set right.
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
                credit.unconfirmed = is_known && credit.told_at.is_some();
            }
        }
    }
    if credit.day != Some(midnight) {
        credit.day = Some(midnight);
        credit.spent_today = 0;
    }
    credit
}

/// Doubts a clock that leapt, ahead or back, as far as nothing is left of `cap` to ask the API with whether it is right.
fn doubt_clock(credit: &mut CreditState, cap: Option<u64>, now: Timestamp) {
    let Some(seen) = credit.seen_at.replace(now) else { return };
    // By the cap as it is now: it may have been lowered since.
    let keeps_no_probe = credit.told_at.is_some() && cap.is_some_and(|cap| credit.own().saturating_add(credit.held()) >= cap);
    if seen - now > LARGEST_JITTER {
        // That the period goes on was reckoned by a clock that is gone.
        let longest = keeps_no_probe.then(|| now.checked_add_signed(LONGEST_DOUBT)).flatten();
        credit.not_over_before = credit.not_over_before.min(longest);
    }
    if let Some(end) = end(credit).filter(|_| keeps_no_probe)
        && seen < end
        && now >= end
        && now - seen > LARGEST_STEP
    {
        credit.not_over_before = credit.not_over_before.max(now.checked_add_signed((end - seen).min(LONGEST_DOUBT)));
    }
}

/// Takes from a request that is over what it shows of the period, before it is counted. Whether what it reports is of the period
/// that counts from then on.
pub(super) fn judge(credit: &mut CreditState, request: &SettledRequest, now: Timestamp) -> bool {
    credit.told_at = request.told_at.or(credit.told_at);
    let reported = request.reported.as_ref();
    let end = reported.and_then(|reported| reported.reset_at.copied());
    let used = reported.and_then(|reported| reported.used.copied()).and_then(|used| u64::try_from(used).ok());
    let same = |a: Timestamp, b: Timestamp| (a - b).abs() <= SAME_END;
    // What an answer said of the time before we slept does not hold any more.
    let is_late = request.sent_at.is_some_and(|sent_at| (now - sent_at).abs() > PROBE_LOST_AFTER);
    while credit.unconfirmed {
        let before = credit.earlier.last();
        let is_over = is_over(before, end, used, credit.period_start, request.told_at);
        let Some(is_over) = is_over.filter(|is_over| *is_over || !is_late) else { return true };
        if is_over {
            confirm(credit);
            break;
        }
        let boundary = credit.period_start;
        resume(credit);
        let rest = boundary.zip(request.told_at).map(|(boundary, told)| boundary - told);
        let rest = rest.filter(|rest| *rest > TimeDelta::zero()).unwrap_or(ASK_AGAIN_AFTER);
        credit.not_over_before = now.checked_add_signed(rest);
    }
    if let (Some(told_at), false) = (request.told_at, credit.unconfirmed) {
        begin_as_told(credit, told_at, end);
    }
    if credit.reset_at.is_none()
        && let (Some(end), Some(start)) = (end, credit.period_start)
        && end.checked_sub_months(Months::new(1)).is_some_and(|begun| begun < start)
    {
        // Its months are not those of the calendar, as was believed: this one began in the one before.
        resume(credit);
    }
    let before = credit.earlier.last().and_then(|before| before.reset_at);
    if let (Some(end), Some(known)) = (end, credit.reset_at) {
        if before.is_some_and(|before| same(end, before)) && end < known {
            return false; // it was on its way when the period ended
        }
        let is_lower = used.zip(credit.used).is_some_and(|(used, known)| used < known);
        if end > known + SAME_END && (is_lower || now >= known) {
            // The API began a new period before we thought that it would.
            begin(credit, Some(now), Some(end));
        }
    }
    if let Some(end) = end.filter(|end| *end > now) {
        credit.reset_at = Some(end);
    }
    true
}

/// Begins the period of the API's own time where our clock does not say so yet, or is not believed: what was answered then is of that
/// period. `end` is where the API says that its period ends.
fn begin_as_told(credit: &mut CreditState, told_at: Timestamp, end: Option<Timestamp>) {
    match (credit.reset_at, credit.period_start) {
        // It still counts the one before, whatever the time.
        (Some(known), _) if end.is_some_and(|end| end <= known + SAME_END) => {}
        (Some(known), _) if told_at >= known => {
            let (start, end) = months_around(told_at, known);
            begin(credit, Some(start), Some(end));
        }
        (None, Some(start)) if told_at >= start && month_of(told_at) > start => begin(credit, Some(month_of(told_at)), None),
        _ => {}
    }
}

/// When the period that counts ends, as far as is known: a month after it began where the API has not said.
fn end(credit: &CreditState) -> Option<Timestamp> {
    credit.reset_at.or_else(|| month_after(credit.period_start?))
}

fn month_after(start: Timestamp) -> Option<Timestamp> {
    start.checked_add_months(Months::new(1))
}

/// The month counted from `reset_at`, which is not after `now`, that holds `now`: months are what such quotas count in.
fn months_around(now: Timestamp, reset_at: Timestamp) -> (Timestamp, Timestamp) {
    let (mut start, mut end) = (reset_at, reset_at);
    while end <= now {
        start = end;
        end = month_after(end).unwrap_or(now + TimeDelta::days(31));
    }
    (start, end)
}

/// The first of the month.
fn month_of(now: Timestamp) -> Timestamp {
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    midnight.with_day(1).unwrap_or(midnight)
}

/// Whether the period `before` is over, by the word of the API; none where it said nothing of that.
fn is_over(
    before: Option<&PastPeriod>,
    end: Option<Timestamp>,
    used: Option<u64>,
    begun: Option<Timestamp>,
    told_at: Option<Timestamp>,
) -> Option<bool> {
    let was = before.and_then(|before| before.reset_at);
    let is_lower = used.zip(before.and_then(|before| before.used)).map(|(used, before)| used < before);
    match (end, was) {
        (Some(end), Some(was)) if end > was + SAME_END => Some(true),
        _ if is_lower == Some(true) => Some(true),
        (Some(_), Some(_)) => Some(false),
        _ => told_at.zip(begun).map(|(told, begun)| told >= begun).or(is_lower.map(|_| false)),
    }
}

/// What was spent in periods that our clock lives through again, since it was set back. An API that tells its time does not mind. As long
/// as no answer could be read, the API's month may have begun in the one before ours.
pub(super) fn relived(credit: &CreditState, now: Timestamp) -> u64 {
    if credit.told_at.is_some() {
        return 0;
    }
    if is_unread(credit) {
        let touches = |before: &&PastPeriod| before.start.and_then(month_after) >= credit.period_start;
        return credit.earlier.last().filter(touches).map_or(0, |before| before.doubtful);
    }
    let mut begun = credit.period_start;
    let again =
        credit.earlier.iter().rev().take_while(|before| std::mem::replace(&mut begun, before.start).is_some_and(|at| now < at));
    again.map(|before| before.spent + before.doubtful).sum()
}

/// Whether no answer of the API could be read so far.
pub(super) fn is_unread(credit: &CreditState) -> bool {
    credit.told_at.is_none() && credit.spent == 0 && credit.earlier.iter().all(|before| before.spent == 0)
}

/// Begins a period. What is reserved may be charged to either.
fn begin(credit: &mut CreditState, start: Option<Timestamp>, reset_at: Option<Timestamp>) {
    if credit.period_start.is_some() || credit.reset_at.is_some() {
        credit.earlier.push(PastPeriod {
            start: credit.period_start,
            reset_at: credit.reset_at,
            used: credit.used,
            spent: credit.spent,
            doubtful: credit.doubtful,
            uncounted: credit.uncounted,
            unconfirmed: credit.unconfirmed,
        });
    }
    if credit.earlier.len() > MOST_EARLIER {
        credit.earlier.remove(0);
    }
    (credit.period_start, credit.reset_at) = (start, reset_at);
    credit.used = credit.used.map(|_| 0);
    (credit.spent, credit.doubtful, credit.uncounted, credit.spent_today) = (0, 0, 0, 0);
    (credit.exhausted, credit.look_again_at) = (false, None);
    (credit.unconfirmed, credit.not_over_before) = (false, None);
}

/// Takes up the period before: what was spent since counts there. False where none is known.
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
    credit.unconfirmed = before.unconfirmed;
    true
}

/// The period that counts has begun, and with it those before it.
fn confirm(credit: &mut CreditState) {
    credit.unconfirmed = false;
    credit.earlier.iter_mut().for_each(|before| before.unconfirmed = false);
}

/// Reservations of processes that are gone: what they may have spent is in doubt.
fn bury(credit: &mut CreditState, now: Timestamp) {
    let patience = if credit.unconfirmed { PROBE_LOST_AFTER } else { LEFT_BEHIND_AFTER };
    let (left_behind, alive): (Vec<_>, Vec<_>) =
        std::mem::take(&mut credit.reserved).into_iter().partition(|one| (now - one.at).abs() > patience);
    credit.reserved = alive;
    let lost: u64 = left_behind.iter().map(|one| one.credits).sum();
    credit.doubtful += lost;
    credit.uncounted += lost;
    credit.uncounted_ever += lost;
}
