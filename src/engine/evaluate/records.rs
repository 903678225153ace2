//! Rules on records that are states: an unlock ahead, a row of the allocation table, the emission of a day.
//!
//! A record without an open alert is looked at; one with an open alert moves the alert on, and ends it where the record is over, has
//! lost its date or has moved away.

use std::collections::HashMap;

use super::lifecycle::{AlertLifecycle, AlertSubject as _};
use super::recheck::end_of;
use super::subject::RecordSubject;
use super::{RuleEval, RuleTerms, TokenFacts, blank};
use model::{Alert, AlertState, Interval, Resolution, Resource, SOURCE_TROUBLE, Timestamp, Tracked, config::Span};
use rules::{Lead, Truth};

/// A record with the time that it stands for, worked out once for all rules.
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
}

/// An open alert, and whether a rule has accounted for it. One that no rule accounts for has lost its rule or its record.
pub(super) struct OpenAlert<'a> {
    pub alert: &'a Alert,
    pub is_accounted_for: bool,
}

/// The open alerts of a token that are evaluated with it: those of resources that are loaded, and all of a token that is not watched.
pub(super) fn open_alerts<'a>(facts: &TokenFacts<'a>) -> Vec<OpenAlert<'a>> {
    let is_open = |alert: &Alert| {
        matches!(alert.state, AlertState::Pending | AlertState::Firing)
            && alert.rule.as_str() != SOURCE_TROUBLE
            && alert.key.is_some()
            && alert.resource.is_some_and(|resource| !facts.is_watched || facts.resources.contains(&resource))
    };
    facts.alerts.iter().filter(|alert| is_open(alert)).map(|alert| OpenAlert { alert, is_accounted_for: false }).collect()
}

/// Where a record stands in time, as a rule sees it.
#[derive(Clone, Copy, Debug)]
enum TimePosition<'a> {
    /// Its date is missing or to be determined.
    Undated,
    Passed,
    /// It begins later than the longest lead time.
    Beyond,
    /// The rule looks at it; with the smallest lead time that holds, where the rule has any.
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

impl AlertLifecycle<'_> {
    /// Evaluates the records of one resource by one rule, and marks the open alerts that the rule accounts for.
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
                    self.follow_record(rule, facts, record, open.alert);
                }
                None => self.look_at_record(rule, facts, record),
            }
        }
    }

    /// A record without an open alert: opens one where the rule holds.
    fn look_at_record<R: RuleEval>(&mut self, rule: &R, facts: &TokenFacts<'_>, record: &DatedRecord<'_>) {
        let terms = rule.terms();
        let TimePosition::InView(lead) = TimePosition::of(&terms, record, self.now) else { return };
        let DatedRecord { tracked, resource, interval } = *record;
        let subject = RecordSubject { lead, ..RecordSubject::of(facts, Some(tracked)) };
        let scope = subject.scope(self.now);
        if !rule.covers(&scope) || rule.holds(&scope) != Truth::True {
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

    /// A record with an open alert: moves the alert on.
    fn follow_record<R: RuleEval>(&mut self, rule: &R, facts: &TokenFacts<'_>, record: &DatedRecord<'_>, before: &Alert) {
        let terms = rule.terms();
        let DatedRecord { tracked, interval, .. } = *record;
        let mut subject = RecordSubject::of(facts, Some(tracked));
        let over = match TimePosition::of(&terms, record, self.now) {
            TimePosition::Undated => Resolution::RescheduledOut,
            TimePosition::Passed => Resolution::Passed,
            TimePosition::Beyond if interval != before.due => Resolution::RescheduledOut,
            // Neither the record moved nor the rule changed: the clock was set back, and will come here again.
            TimePosition::Beyond if terms.within.iter().any(|lead| is_told(&before.leads, lead)) => return,
            TimePosition::Beyond => Resolution::Cleared,
            TimePosition::InView(lead) => {
                subject.lead = lead;
                let scope = subject.scope(self.now);
                if rule.covers(&scope) {
                    let truth = rule.holds(&scope);
                    if truth == Truth::True {
                        self.transitions.matched(terms.id, self.now);
                    }
                    return self.follow(rule, subject, &truth, before, moved(&terms, before, interval, self.now));
                }
                Resolution::RuleGone
            }
        };
        // It ends with the time that the record has now.
        self.end(Alert { due: interval, ..before.clone() }, over, subject, Some(rule));
    }
}

/// An open alert with the name that its rule and the time that its record has now.
fn moved(terms: &RuleTerms<'_>, before: &Alert, interval: Option<Interval>, now: Timestamp) -> Alert {
    let mut alert = Alert { name: terms.name.to_owned(), due: interval, ..before.clone() };
    if let (Some(old), Some(new)) = (before.due, interval)
        && new.start > old.start
    {
        // What was told for the old date says nothing of the new one: those lead times are told again when they come.
        let holds = |lead: &Lead| new.is_within(now, lead.span);
        alert.leads.retain(|told| terms.within.iter().any(|lead| holds(lead) && is_same(told, lead)));
    }
    alert
}

/// Whether a lead time was told, also where the rule now writes it differently (`7d`, `1w`).
pub(super) fn is_told(told: &[String], lead: &Lead) -> bool {
    told.iter().any(|text| is_same(text, lead))
}

fn is_same(text: &str, lead: &Lead) -> bool {
    text == lead.text || text.parse::<Span>().is_ok_and(|span| span.delta() == lead.span)
}
