//! Rules on states: upcoming unlocks, allocations, and daily emissions.
//!
//! A record without an open alert may open one. A record with an open alert updates it, and resolves it if the record has passed, lost its
//! date, or moved out of the lead time.

use std::collections::HashMap;

use super::lifecycle::{AlertLifecycle, AlertSubject as _};
use super::recheck::end_of;
use super::subject::RecordSubject;
use super::{RuleEval, RuleTerms, TokenFacts, blank};
use model::{
    Alert, AlertState, Interval, LinearEnd, Record, Resolution, Resource, SOURCE_TROUBLE, Timestamp, Tracked, config::Span,
    time::LONGEST_INTERVAL,
};
use rules::{Lead, Truth};

/// A record with its time, computed once for all rules.
#[derive(Clone, Copy)]
pub(super) struct DatedRecord<'a> {
    tracked: &'a Tracked,
    resource: Resource,
    interval: Option<Interval>,
}

impl<'a> DatedRecord<'a> {
    pub fn of(tracked: &'a Tracked) -> Self {
        Self { tracked, resource: tracked.record.resource(), interval: tracked.record.interval() }
    }

    pub fn record(&self) -> &'a Record {
        &self.tracked.record
    }

    /// Returns `false` if the record is of another resource, or an unlock that opens no alert because it has passed or has no date.
    pub fn can_open(&self, resource: Resource, now: Timestamp) -> bool {
        let is_ahead = || self.interval.is_some_and(|interval| !interval.has_passed(now));
        self.resource == resource && (resource != Resource::Unlock || is_ahead())
    }
}

/// An open alert during an evaluation.
pub(super) struct OpenAlert<'a> {
    pub alert: &'a Alert,
    /// Whether its rule and its record still exist.
    pub is_accounted_for: bool,
}

/// Returns the open alerts on records of the loaded resources, or on all records if the token is not watched.
pub(super) fn open_alerts<'a>(facts: &TokenFacts<'a>) -> Vec<OpenAlert<'a>> {
    let is_open = |alert: &Alert| {
        matches!(alert.state, AlertState::Pending | AlertState::Firing)
            && alert.rule.as_str() != SOURCE_TROUBLE
            && alert.key.is_some()
            && alert.resource.is_some_and(|resource| !facts.is_watched || facts.resources.contains(&resource))
    };
    facts.alerts.iter().filter(|alert| is_open(alert)).map(|alert| OpenAlert { alert, is_accounted_for: false }).collect()
}

/// Returns the ends of linear unlocks that may not have passed.
pub fn ends_of(records: &[Tracked], now: Timestamp) -> Vec<LinearEnd> {
    LinearEnd::all(records, now.checked_sub_signed(LONGEST_INTERVAL).unwrap_or(Timestamp::MIN_UTC))
}

/// Returns whether an alert is about a linear unlock that ends at `end`.
pub(super) fn has_key_of(alert: &Alert, end: &LinearEnd) -> bool {
    alert.key.as_ref().is_some_and(|key| end.keys.contains(key))
}

/// Returns whether an alert has the date of `end`.
pub(super) fn has_date_of(alert: &Alert, end: &LinearEnd) -> bool {
    alert.due.is_some() && alert.due == end.tracked.record.interval()
}

/// The time of a record relative to the lead times of a rule.
#[derive(Clone, Copy, Debug)]
enum TimePosition<'a> {
    /// The date is missing or TBD.
    Undated,
    Passed,
    /// The record begins later than the longest lead time.
    Beyond,
    /// The rule applies, with the smallest lead time that contains the record, if the rule has lead times.
    InView(Option<&'a Lead>),
}

impl<'a> TimePosition<'a> {
    fn of(terms: &RuleTerms<'a>, record: &DatedRecord<'_>, now: Timestamp) -> Self {
        let DatedRecord { resource, interval, .. } = *record;
        if resource == Resource::Allocation {
            return TimePosition::InView(None);
        }
        let Some(interval) = interval else { return TimePosition::Undated };
        if now >= end_of(terms, interval, Some(resource)) {
            return TimePosition::Passed;
        }
        if terms.within.is_empty() || resource != Resource::Unlock {
            return TimePosition::InView(None);
        }
        let lead = terms.within.iter().filter(|lead| interval.is_within(now, lead.span)).min_by_key(|lead| lead.span);
        lead.map_or(TimePosition::Beyond, |lead| TimePosition::InView(Some(lead)))
    }
}

/// Returns the shortest lead time that a record reached.
pub(super) fn lead_of<'a>(terms: &RuleTerms<'a>, record: &DatedRecord<'_>, now: Timestamp) -> Option<&'a Lead> {
    match TimePosition::of(terms, record, now) {
        TimePosition::InView(lead) => lead,
        _ => None,
    }
}

impl AlertLifecycle<'_> {
    /// Evaluates one rule on the records of one resource, and marks the open alerts that it accounts for.
    pub(super) fn records<R: RuleEval>(
        &mut self,
        rule: &R,
        facts: &TokenFacts<'_>,
        resource: Resource,
        records: &[DatedRecord<'_>],
        open: &mut [OpenAlert<'_>],
    ) {
        let terms = rule.terms();
        let mut own: HashMap<&str, &mut OpenAlert<'_>> = HashMap::new();
        for open in open.iter_mut().filter(|open| open.alert.rule == *terms.id && open.alert.resource == Some(resource)) {
            if let Some(key) = &open.alert.key {
                own.insert(key.as_str(), open);
            }
        }
        for record in records.iter().filter(|record| record.resource == resource) {
            match own.get_mut(record.tracked.key.as_str()) {
                Some(open) => {
                    open.is_accounted_for = true;
                    self.update_record(rule, facts, record, open.alert);
                }
                None => self.evaluate_record(rule, &terms, facts, record),
            }
        }
    }

    /// Evaluates one rule on the ends of linear unlocks, and marks the open alerts that it accounts for.
    ///
    /// An end on the date of an event opens no alert, because the rates of the event include it. An open alert follows its linear unlock to
    /// another date. If its linear unlock no longer ends then, but another one does, it follows the date.
    pub(super) fn ends<R: RuleEval>(&mut self, rule: &R, facts: &TokenFacts<'_>, ends: &[LinearEnd], open: &mut [OpenAlert<'_>]) {
        let terms = rule.terms();
        let mut own: Vec<&mut OpenAlert<'_>> = open
            .iter_mut()
            .filter(|open| open.alert.rule == *terms.id && open.alert.resource == Some(Resource::Unlock))
            .filter(|open| open.alert.key.as_ref().is_some_and(LinearEnd::is_key))
            .collect();
        let mut has_alert = vec![false; ends.len()];
        for is_own in [has_key_of as fn(&Alert, &LinearEnd) -> bool, has_date_of] {
            for (end, has_alert) in ends.iter().zip(&mut has_alert) {
                for open in own.iter_mut().filter(|open| !open.is_accounted_for && is_own(open.alert, end)) {
                    (open.is_accounted_for, *has_alert) = (true, true);
                    let key = open.alert.key.clone().unwrap_or_else(|| end.tracked.key.clone());
                    let tracked = Tracked { key, record: end.tracked.record.clone() };
                    self.update_record(rule, facts, &DatedRecord::of(&tracked), open.alert);
                }
            }
        }
        for (end, _) in ends.iter().zip(has_alert).filter(|(end, has_alert)| !has_alert && !end.has_event) {
            self.evaluate_record(rule, &terms, facts, &DatedRecord::of(&end.tracked));
        }
    }

    /// Opens an alert for a record without one if the rule matches.
    fn evaluate_record<R: RuleEval>(
        &mut self,
        rule: &R,
        terms: &RuleTerms<'_>,
        facts: &TokenFacts<'_>,
        record: &DatedRecord<'_>,
    ) {
        let TimePosition::InView(lead) = TimePosition::of(terms, record, self.now) else { return };
        let DatedRecord { tracked, resource, interval } = *record;
        let subject = RecordSubject { lead, ..RecordSubject::of(facts, Some(tracked)) };
        let scope = subject.scope(self.now);
        if !rule.covers(&scope) || !rule.matches(&scope) {
            return;
        }
        self.transitions.matched(terms.id, self.now);
        let name = format!("{resource}/{}/{}", facts.token.id, tracked.key);
        let alert = Alert {
            token: Some(facts.token.id.clone()),
            resource: Some(resource),
            key: Some(tracked.key.clone()),
            due: interval,
            ..blank(terms.id.clone(), terms.name, name, AlertState::Pending, self.now)
        };
        self.open(rule, subject, alert);
    }

    /// Updates or resolves the open alert of a record.
    fn update_record<R: RuleEval>(&mut self, rule: &R, facts: &TokenFacts<'_>, record: &DatedRecord<'_>, before: &Alert) {
        let terms = rule.terms();
        let DatedRecord { tracked, interval, .. } = *record;
        let mut subject = RecordSubject::of(facts, Some(tracked));
        let resolution = match TimePosition::of(&terms, record, self.now) {
            TimePosition::Undated => Resolution::RescheduledOut,
            TimePosition::Passed => Resolution::Passed,
            TimePosition::Beyond if interval != before.due => Resolution::RescheduledOut,
            // The record and the rule are unchanged, so the clock was set back.
            TimePosition::Beyond if terms.within.iter().any(|lead| is_notified(&before.leads, lead)) => return,
            TimePosition::Beyond => Resolution::Cleared,
            TimePosition::InView(lead) => {
                subject.lead = lead;
                let scope = subject.scope(self.now);
                if rule.covers(&scope) {
                    let truth = rule.evaluate(&scope);
                    if truth == Truth::True {
                        self.transitions.matched(terms.id, self.now);
                    }
                    return self.update(rule, subject, &truth, before, moved(&terms, before, interval, self.now));
                }
                Resolution::RuleGone
            }
        };
        self.resolve(Alert { due: interval, ..before.clone() }, resolution, subject, Some(rule));
    }
}

/// Returns an open alert with the current name of its rule and the current time of its record.
fn moved(terms: &RuleTerms<'_>, before: &Alert, interval: Option<Interval>, now: Timestamp) -> Alert {
    let mut alert = Alert { name: terms.name.to_owned(), due: interval, ..before.clone() };
    if let (Some(old), Some(new)) = (before.due, interval)
        && new.start > old.start
    {
        // After a move to a later date, lead times that no longer apply are sent again when they are reached.
        let applies = |lead: &Lead| new.is_within(now, lead.span);
        alert.leads.retain(|notified| terms.within.iter().any(|lead| applies(lead) && is_same(notified, lead)));
    }
    alert
}

/// Returns whether a notification was sent for a lead time, even if the rule now spells it differently (`7d`, `1w`).
pub(super) fn is_notified(notified: &[String], lead: &Lead) -> bool {
    notified.iter().any(|text| is_same(text, lead))
}

fn is_same(text: &str, lead: &Lead) -> bool {
    text == lead.text || text.parse::<Span>().is_ok_and(|span| span.delta() == lead.span)
}
