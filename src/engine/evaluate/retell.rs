//! What is told again of an alert that still fires.

use super::{EvaluationContext, TokenFacts, lifecycle::AlertSubject as _, subject::RecordSubject};
use model::{Alert, AlertBody, AlertStatus};

/// What is told again of an alert that still fires, with its text as it reads now; none where its rule or its record is gone, or it
/// is about no record.
pub fn retell(alert: &Alert, facts: &TokenFacts<'_>, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    let rule = context.rules.rules.iter().find(|rule| rule.id == alert.rule)?;
    let key = alert.key.as_ref()?;
    let record = facts.records.iter().find(|tracked| tracked.key == *key && Some(tracked.record.resource()) == alert.resource)?;
    let subject = RecordSubject::of(facts, Some(record));
    let mut alert = alert.clone();
    alert.annotations = rule.render(&subject.scope(context.now), alert.level).annotations;
    Some(subject.body(&alert, AlertStatus::Firing, "repeat", context.now))
}
