//! Reminders of alerts that still fire after the `repeat_interval` of their route.

use crate::evaluate::{self, EvaluationContext};
use model::{
    Alert, AlertBody, Notification, NotificationKind, ReceiverName, RepeatAlert, RepeatGroup, Repeats, Resource, Silence,
    Timestamp, TokenId, TokenSnapshot, notification_id,
};

use super::texts::with_facts;

/// Returns the reminders of these groups and the time of their next ones. `known` returns the current facts of a token; groups are in
/// order of their due time.
pub fn repeats<'k>(
    groups: Vec<RepeatGroup>,
    silences: &[Silence],
    known: &dyn Fn(&TokenId, Resource) -> Option<&'k TokenSnapshot>,
    context: &EvaluationContext<'_>,
) -> Repeats {
    let mut repeats = Repeats::default();
    for RepeatGroup { receiver, key, mut alerts } in groups {
        alerts.retain(|of| !of.is_acknowledged);
        // The next event comes first. Alerts without a date come last.
        alerts.sort_by_key(|of| (of.alert.due.is_none(), of.alert.due.map(|due| due.start)));
        let mut next = None;
        for RepeatAlert { alert, last, .. } in alerts {
            let leaf = context.routes.leaf(&last.body.labels, &receiver);
            let interval = leaf.grouping().repeat;
            next = next.or_else(|| context.now.checked_add_signed(interval?));
            let is_silenced = silences.iter().any(|silence| silence.suppresses(&last.body.labels, context.now));
            if is_silenced || interval.is_none() || !context.routes.has_receiver(&receiver) {
                continue;
            }
            let current_body = about(&alert).and_then(|(token, resource)| current_body(&alert, known(token, resource)?, context));
            repeats.notifications.push(repeat(&alert, &last, current_body, &receiver, &key, context.now));
        }
        repeats.groups.push((receiver, key, next));
    }
    repeats
}

/// Returns the token and the resource whose facts a reminder of the alert needs.
pub fn about(alert: &Alert) -> Option<(&TokenId, Resource)> {
    Some((alert.token.as_ref()?, alert.resource?))
}

/// Returns the body of a reminder about a record, with current values. `None` if its rule or record no longer exists.
pub fn current_body(alert: &Alert, snapshot: &TokenSnapshot, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    with_facts(snapshot, context, |facts| evaluate::current_body(alert, facts, context))
}

/// Returns the reminder of an alert. `last` is its last notification, and `current_body` its text with current values, if known. A reminder
/// that is made again after a fault has the same id.
fn repeat(
    alert: &Alert,
    last: &Notification,
    current_body: Option<AlertBody>,
    receiver: &ReceiverName,
    key: &str,
    now: Timestamp,
) -> Notification {
    let body = current_body.unwrap_or_else(|| {
        // The text of a stored alert is current.
        let mut body = AlertBody {
            labels: alert.labels.clone(),
            former_labels: alert.former_labels.clone(),
            annotations: alert.annotations.clone(),
            ..last.body.clone()
        };
        // The source may list the token under another slug since.
        if let (Some(token), Some(id)) = (&mut body.token, &alert.token) {
            token.id = id.to_string();
        }
        body.reason = "repeat".to_owned();
        body.days_until = alert.due.map(|due| due.days_until(now));
        body
    });
    Notification {
        // The id depends on the last notification instead of the time, so that a retry has the same id.
        id: notification_id(&last.alert, &format!("repeat {receiver} {key} after {}", last.id)),
        alert: last.alert.clone(),
        kind: NotificationKind::Reminder,
        at: now,
        receivers: vec![receiver.clone()],
        body,
    }
}
