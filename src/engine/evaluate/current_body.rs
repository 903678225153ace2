//! The current body of a repeated notification.

use super::{EvaluationContext, TokenFacts, lifecycle::AlertSubject as _, subject::RecordSubject};
use model::{Alert, AlertBody, AlertStatus};

/// Returns the body of a repeat of a firing alert, with its current text. `None` if the alert has no record, or if its rule or record no
/// longer exists.
pub fn current_body(alert: &Alert, facts: &TokenFacts<'_>, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    let rule = context.rules.rules.iter().find(|rule| rule.id == alert.rule)?;
    let key = alert.key.as_ref()?;
    let record = facts.records.iter().find(|tracked| tracked.key == *key && Some(tracked.record.resource()) == alert.resource)?;
    let subject = RecordSubject::of(facts, Some(record));
    let mut alert = alert.clone();
    alert.annotations = rule.render(&subject.scope(context.now), alert.level).annotations;
    Some(subject.body(&alert, AlertStatus::Firing, "repeat", context.now))
}
