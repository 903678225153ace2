//! When time alone may change what is to be told: which unlocks a tick looks at, and when an open alert is due for a look.

use chrono::{DateTime, TimeDelta, Utc};

use super::{RuleEval, RuleTerms, records::is_told};
use model::{Alert, AlertState, Interval, Resource, Timestamp, span_of_days};
use rules::{On, RuleSet};

/// The longest interval that a date may stand for (a month): an unlock that began so long ago may not have passed yet.
const LONGEST_INTERVAL: TimeDelta = TimeDelta::days(32);

/// How much earlier and later than computed an edge is looked at: fractions of days are rounded, and `<` turns just after `<=`.
const EDGE_SLACK: TimeDelta = TimeDelta::seconds(1);

/// The windows (from exclusive, to inclusive) in which an unlock may begin so that the passing of time since the last evaluation
/// changes what is to be told: those that came within a lead time of a rule. Open alerts wake by their own `recheck_at`.
///
/// `evaluated_until` is None before the first evaluation and after a change of rules, routes or groups: then everything that any
/// rule on unlocks can see is in the windows. `daysUntil <= 7` turns at an instant that can be known beforehand and costs no more
/// than a lead time. A condition that reads the clock in another way (`now`, `daysUntil * 2`) may turn at any instant: each tick
/// looks at all unlocks ahead within its longest lead time, or at all of them where it has no `within`.
pub fn windows(rules: &RuleSet, evaluated_until: Option<Timestamp>, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    windows_of(&rules.rules, evaluated_until, now)
}

/// The resources, beside unlocks, whose records are states for some rule that is awake: evaluated when they change, and whenever the
/// rules do.
pub fn states(rules: &RuleSet, now: Timestamp) -> Vec<Resource> {
    let awake = || rules.rules.iter().filter(|rule| rule.terms().is_awake(now));
    let is_ruled = |resource: &Resource| awake().any(|rule| rule.on == On::Record(*resource));
    [Resource::Allocation, Resource::Emission].into_iter().filter(is_ruled).collect()
}

/// [`windows`], for any kind of rule.
pub(super) fn windows_of<R: RuleEval>(
    rules: &[R],
    evaluated_until: Option<Timestamp>,
    now: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let ahead = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let begun = now.checked_sub_signed(LONGEST_INTERVAL).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let mut windows = Vec::new();
    for rule in rules {
        let terms = rule.terms();
        if terms.on != On::Record(Resource::Unlock) || !terms.is_awake(now) {
            continue;
        }
        match evaluated_until {
            Some(until) if !terms.is_clock_dependent => {
                windows.extend(terms.within.iter().map(|lead| (ahead(until, lead.span), ahead(now, lead.span))));
                // What turns after the begin of an unlock that is over is evaluated no more.
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

/// When a record is over for a rule. The source tells the emission of a day when the day is gone, so `since` is added to that.
pub(super) fn end_of(terms: &RuleTerms<'_>, interval: Interval, resource: Option<Resource>) -> Timestamp {
    match resource {
        Some(Resource::Emission) => interval.end.checked_add_signed(terms.since).unwrap_or(interval.end),
        _ => interval.end,
    }
}

/// The next instant at which time alone may move an open alert on; the windows of totals are watched by whoever keeps those. A
/// condition that reads the clock may turn at any time: such alerts are due for a look at every tick, which an instant that is already
/// past says without being written again and again.
pub(super) fn recheck(terms: &RuleTerms<'_>, alert: &Alert, now: Timestamp) -> Option<Timestamp> {
    if terms.is_clock_dependent {
        return Some(alert.active_at);
    }
    let end = alert.due.map(|due| end_of(terms, due, alert.resource));
    let fires = (alert.state == AlertState::Pending).then(|| alert.active_at.checked_add_signed(terms.hold)).flatten();
    let clears = alert.false_since.and_then(|since| since.checked_add_signed(terms.keep_firing_for));
    let next_lead = alert.due.filter(|_| alert.state == AlertState::Firing).and_then(|due| {
        let untold = terms.within.iter().filter(|lead| !is_told(&alert.leads, lead));
        untold.filter_map(|lead| due.start.checked_sub_signed(lead.span)).min()
    });
    let next_edge = alert.due.and_then(|due| {
        let turns = terms.edges.iter().filter_map(|days| {
            let from = if *days > 0.0 { due.start } else { due.end };
            from.checked_sub_signed(span_of_days(*days)?)
        });
        // `<` turns just after `<=` does.
        turns.flat_map(|at| [at, at + EDGE_SLACK]).filter(|at| *at > now).min()
    });
    [end, fires, clears, next_lead, next_edge, terms.expires].into_iter().flatten().min()
}
