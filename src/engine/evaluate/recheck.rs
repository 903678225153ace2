//! When time alone may change the result: the unlocks to evaluate in a cycle, and the next evaluation of an open alert.

use chrono::{DateTime, TimeDelta, Utc};

use super::{NominalReminder, RuleEval, RuleTerms, records::is_notified};
use model::{
    Alert, AlertState, ClockState, Interval, MAX_CLOCK_DIFFERENCE, Resource, Timestamp, span_of_days, time::LONGEST_INTERVAL,
};
use rules::{On, Rule, RuleSet, aggregate::EDGE_SLACK};

/// The difference between two evaluations while time stays still.
const STEP: TimeDelta = TimeDelta::milliseconds(1);

/// Returns the time of an evaluation that began at `now`. `latest` is the time of the latest one, of this or of another instance, and
/// `clock` is the current time with its state.
///
/// Evaluation does not go back in time, so that nothing is decided twice: after a takeover by an instance whose clock is behind, the time
/// stays at `latest` until that clock has caught up. It also stays there while a stored time contradicts the clock. If `latest` is
/// ahead by more than [`MAX_CLOCK_DIFFERENCE`], it was made with a wrong clock, and is ignored once the current time is confirmed.
///
/// A time that stays still advances by a millisecond, because the subject of a change contains its time: at the same time, a second correction
/// of an event would have the alert of the first one.
#[must_use]
pub fn evaluation_time(now: Timestamp, latest: Option<Timestamp>, clock: (Timestamp, ClockState)) -> Timestamp {
    let (clock_time, state) = clock;
    match latest {
        Some(latest) if state.is_resumed || state.is_contradicted => after(latest),
        Some(latest) if latest <= now => now,
        Some(latest) if !state.is_settled || latest.signed_duration_since(clock_time) <= MAX_CLOCK_DIFFERENCE => after(latest),
        _ => now,
    }
}

/// Returns the next time that the database can tell apart from `time`.
fn after(time: Timestamp) -> Timestamp {
    time.checked_add_signed(STEP).unwrap_or(time)
}

/// Returns the windows (start exclusive, end inclusive) of start times for which the time since the last evaluation may change the result:
/// unlocks, and ends of linear unlocks, that start in them came within a lead time of a rule. Open alerts are evaluated at their own
/// `recheck_at` in addition.
///
/// `evaluated_until` is `None` before the first evaluation and after a change of rules, routes, or groups. Then the windows cover every
/// unlock that any rule can match. A condition like `daysUntil <= 7` changes at a predictable instant, like a lead time. A condition that
/// uses the clock otherwise (`now`, `daysUntil * 2`) may change at any time, so all unlocks within the longest lead time of the rule are
/// evaluated each time, or all unlocks if it has no `within`.
pub fn windows(rules: &RuleSet, evaluated_until: Option<Timestamp>, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    windows_of(&rules.rules, evaluated_until, now)
}

/// Returns the windows (start exclusive, end inclusive) in which a correction was detected that has left the time of a rule on unlocks
/// since the last evaluation, so that the value of `corrections("30d").count` of its token has changed. Empty if all unlocks are evaluated.
pub fn correction_windows(rules: &RuleSet, evaluated_until: Option<Timestamp>, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let Some(until) = evaluated_until else { return Vec::new() };
    let of_rule = |rule: &Rule| rule.on == On::Record(Resource::Unlock) && rule.terms().is_active(now);
    let mut spans: Vec<TimeDelta> =
        rules.rules.iter().filter(|rule| of_rule(rule)).flat_map(Rule::correction_spans).copied().collect();
    spans.sort_unstable();
    spans.dedup();
    let before = |at: Timestamp, span: TimeDelta| at.checked_sub_signed(span).unwrap_or(DateTime::<Utc>::MIN_UTC);
    spans.into_iter().map(|span| (before(until, span), before(now, span))).filter(|(from, to)| from < to).collect()
}

/// Returns the resources other than unlocks whose states an active rule uses. They are evaluated when they or the rules change.
pub fn states(rules: &RuleSet, now: Timestamp) -> Vec<Resource> {
    let active = || rules.rules.iter().filter(|rule| rule.terms().is_active(now));
    let has_rule = |resource: &Resource| active().any(|rule| rule.on == On::Record(*resource));
    [Resource::Allocation, Resource::Emission].into_iter().filter(has_rule).collect()
}

/// Like [`windows`], with any implementation of rules.
pub(super) fn windows_of<R: RuleEval>(
    rules: &[R],
    evaluated_until: Option<Timestamp>,
    now: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let ahead = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC);
    // A day of slack, because the start of a window is exclusive.
    let begun = now.checked_sub_signed(LONGEST_INTERVAL + TimeDelta::days(1)).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let mut windows = Vec::new();
    for rule in rules {
        let terms = rule.terms();
        if terms.on != On::Record(Resource::Unlock) || !terms.is_active(now) {
            continue;
        }
        match evaluated_until {
            Some(until) if !terms.is_clock_dependent => {
                windows.extend(terms.within.iter().map(|lead| (ahead(until, lead.span), ahead(now, lead.span))));
                // Unlocks that have already started are not evaluated again.
                let edges = terms.edges.iter().filter(|days| **days >= 0.0).filter_map(|days| span_of_days(*days));
                windows.extend(edges.map(|span| (ahead(until, span - EDGE_SLACK), ahead(now, span + EDGE_SLACK))));
            }
            _ => {
                let longest = terms.within.iter().map(|lead| lead.span).max();
                windows.push((begun, longest.map_or(DateTime::<Utc>::MAX_UTC, |span| ahead(now, span))));
            }
        }
    }
    windows.retain(|(from, to)| from < to);
    windows.sort_unstable();
    windows.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    windows
}

/// Returns when a record has passed for a rule. The source publishes a daily emission after the day ends, so `since` is added.
pub(super) fn end_of(terms: &RuleTerms<'_>, interval: Interval, resource: Option<Resource>) -> Timestamp {
    match resource {
        Some(Resource::Emission) => interval.end.checked_add_signed(terms.since).unwrap_or(interval.end),
        _ => interval.end,
    }
}

/// Returns the next instant at which time alone may change an open alert. The caller handles the windows of totals. A condition that uses
/// the clock may change at any time, so the result is an instant in the past, which makes the alert due in each cycle without a write.
pub(super) fn recheck(terms: &RuleTerms<'_>, alert: &Alert, now: Timestamp) -> Option<Timestamp> {
    if terms.is_clock_dependent {
        return Some(alert.active_at);
    }
    let end = alert.due.map(|due| end_of(terms, due, alert.resource));
    let fires = (alert.state == AlertState::Pending).then(|| alert.active_at.checked_add_signed(terms.pending_for)).flatten();
    let clears = alert.false_since.and_then(|since| since.checked_add_signed(terms.keep_firing_for));
    let next_lead = alert.due.filter(|_| alert.state == AlertState::Firing).and_then(|due| {
        let undelivered = terms.within.iter().filter(|lead| !is_notified(&alert.leads, lead));
        let nominal = NominalReminder::of(terms.within, due).filter(|reminder| reminder.is_ahead(&alert.leads, now));
        let starts = undelivered.filter_map(|lead| due.start.checked_sub_signed(lead.span));
        starts.chain(nominal.map(|reminder| reminder.at)).min()
    });
    let next_edge = alert.due.and_then(|due| {
        let turns = terms.edges.iter().filter_map(|days| {
            let from = if *days > 0.0 { due.start } else { due.end };
            from.checked_sub_signed(span_of_days(*days)?)
        });
        // `<` changes just after `<=`.
        turns.flat_map(|at| [at, at + EDGE_SLACK]).filter(|at| *at > now).min()
    });
    [end, fires, clears, next_lead, next_edge, terms.expires].into_iter().flatten().min()
}
