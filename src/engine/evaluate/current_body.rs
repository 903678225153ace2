//! The current body of a repeated notification.

use super::{EvaluationContext, TokenFacts, lifecycle::AlertSubject as _, records::ends_of, subject::RecordSubject};
use model::{Alert, AlertBody, AlertStatus, LinearEnd, Resource, Timestamp, Tracked};

/// Returns the body of a repeat of a firing alert, with its current text. `None` if the alert has no record, or if its rule or record no
/// longer exists.
pub fn current_body(alert: &Alert, facts: &TokenFacts<'_>, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    let rule = context.rules.rules.iter().find(|rule| rule.id == alert.rule)?;
    let key = alert.key.as_ref()?;
    let record = facts.records.iter().find(|tracked| tracked.key == *key && Some(tracked.record.resource()) == alert.resource);
    let end = record.is_none().then(|| end_of_alert(alert, facts.records, context.now)).flatten();
    let subject = RecordSubject::of(facts, Some(record.or(end.as_ref())?));
    let mut alert = alert.clone();
    alert.annotations = rule.render(&subject.scope(context.now), alert.level).annotations;
    Some(subject.body(&alert, AlertStatus::Firing, "repeat", context.now))
}

/// Returns the end of linear unlocks that an open alert is about, as [`super::evaluate`] finds it.
fn end_of_alert(alert: &Alert, records: &[Tracked], now: Timestamp) -> Option<Tracked> {
    let key = alert.key.as_ref().filter(|key| alert.resource == Some(Resource::Unlock) && LinearEnd::is_key(key))?;
    let ends = ends_of(records, now);
    let by_date = || ends.iter().find(|end| alert.due.is_some() && end.tracked.record.interval() == alert.due);
    let end = ends.iter().find(|end| end.keys.contains(key)).or_else(by_date)?;
    Some(Tracked { key: key.clone(), record: end.tracked.record.clone() })
}
