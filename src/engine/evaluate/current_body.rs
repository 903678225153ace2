//! The current body of a repeated notification, and the current text of an open alert.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::aggregates::current_text_of_totals;
use super::lifecycle::{AlertSubject as _, stale};
use super::records::{DatedRecord, ends_of, has_date_of, has_key_of, lead_of};
use super::{EvaluationContext, RuleEval as _, TokenFacts, subject::RecordSubject};
use model::{Alert, AlertBody, AlertStatus, LinearEnd, Resource, Timestamp, Tracked};
use rules::aggregate::Totals;
use rules::{Rendered, Rule};

/// Returns the body of a repeat of a firing alert, with its current text. `None` if the alert has no record, or if its rule or record no
/// longer exists.
pub fn current_body(alert: &Alert, facts: &TokenFacts<'_>, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    let (rule, record) = (rule_of(alert, context)?, record_of(alert, facts, context.now)?);
    let subject = RecordSubject::of(facts, Some(&record));
    let mut alert = alert.clone();
    alert.annotations = text_of_record(&alert, rule, facts, &record, context).annotations;
    let body = subject.body(&alert, AlertStatus::Firing, "repeat", context.now);
    Some(AlertBody { stale_price_as_of: stale(subject.price_at(), context.stale_price, context.now), ..body })
}

/// Returns the current annotations of an open alert, with the time until its date. `totals` returns the current totals of the token, for
/// an alert about them. `None` if the rule, the record, or the totals no longer exist, or if a template fails.
pub fn current_text(
    alert: &Alert,
    facts: &TokenFacts<'_>,
    totals: impl FnOnce() -> Option<Totals>,
    context: &EvaluationContext<'_>,
) -> Option<BTreeMap<String, String>> {
    let rule = rule_of(alert, context)?;
    let rendered = if alert.resource.is_some() {
        let record = record_of(alert, facts, context.now)?;
        text_of_record(alert, rule, facts, &record, context)
    } else {
        current_text_of_totals(alert, rule, facts.token, &totals()?, context.now)
    };
    rendered.error.is_none().then_some(rendered.annotations)
}

fn rule_of<'a>(alert: &Alert, context: &EvaluationContext<'a>) -> Option<&'a Rule> {
    context.rules.rules.iter().find(|rule| rule.id == alert.rule)
}

fn record_of<'a>(alert: &Alert, facts: &TokenFacts<'a>, now: Timestamp) -> Option<Cow<'a, Tracked>> {
    let key = alert.key.as_ref()?;
    let record = facts.records.iter().find(|tracked| tracked.key == *key && Some(tracked.record.resource()) == alert.resource);
    record.map(Cow::Borrowed).or_else(|| end_of_alert(alert, facts.records, now).map(Cow::Owned))
}

/// Returns the end of linear unlocks that an open alert is about, as [`super::evaluate`] finds it.
fn end_of_alert(alert: &Alert, records: &[Tracked], now: Timestamp) -> Option<Tracked> {
    let key = alert.key.as_ref().filter(|key| alert.resource == Some(Resource::Unlock) && LinearEnd::is_key(key))?;
    let ends = ends_of(records, now);
    let end = ends.iter().find(|end| has_key_of(alert, end)).or_else(|| ends.iter().find(|end| has_date_of(alert, end)))?;
    Some(Tracked { key: key.clone(), record: end.tracked.record.clone() })
}

fn text_of_record(
    alert: &Alert,
    rule: &Rule,
    facts: &TokenFacts<'_>,
    record: &Tracked,
    context: &EvaluationContext<'_>,
) -> Rendered {
    let lead = lead_of(&rule.terms(), &DatedRecord::of(record), context.now);
    let subject = RecordSubject { lead, ..RecordSubject::of(facts, Some(record)) };
    rule.render(&subject.scope(context.now), alert.level)
}
