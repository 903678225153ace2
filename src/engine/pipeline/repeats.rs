//! What is told again: alerts that still fire after the `repeat_interval` of their route.

use crate::evaluate::{self, EvaluationContext, TokenFacts};
use model::{
    Alert, AlertBody, Notification, NotificationKind, ReceiverName, RepeatAlert, RepeatGroup, Repeats, Resource, Silence,
    Timestamp, TokenId, TokenSnapshot, notification_id,
};

use super::polled_at;

/// What is told again of these groups, and when the next time comes. `known` finds what is known of a token now; groups come in the order
/// in which their time has come.
pub fn repeats<'k>(
    groups: Vec<RepeatGroup>,
    silences: &[Silence],
    known: &dyn Fn(&TokenId, Resource) -> Option<&'k TokenSnapshot>,
    context: &EvaluationContext<'_>,
) -> Repeats {
    let mut repeats = Repeats::default();
    for RepeatGroup { receiver, key, mut alerts } in groups {
        alerts.retain(|of| !of.is_acknowledged);
        // What comes next is told first; what has no date, last.
        alerts.sort_by_key(|of| (of.alert.due.is_none(), of.alert.due.map(|due| due.start)));
        let mut next = None;
        for RepeatAlert { alert, last, .. } in alerts {
            let leaf = context.routes.leaf(&last.body.labels, &receiver);
            let interval = leaf.grouping().repeat;
            next = next.or_else(|| context.now.checked_add_signed(interval?));
            let is_silenced = silences.iter().any(|silence| silence.hides(&last.body.labels, context.now));
            if is_silenced || interval.is_none() || !context.routes.knows(&receiver) {
                continue;
            }
            let retold = about(&alert).and_then(|(token, resource)| retell(&alert, known(token, resource)?, resource, context));
            repeats.notifications.push(repeat(&alert, &last, retold, &receiver, &key, context.now));
        }
        repeats.groups.push((receiver, key, next));
    }
    repeats
}

/// Which records are to be known to tell an alert again in its rule's words.
pub fn about(alert: &Alert) -> Option<(&TokenId, Resource)> {
    Some((alert.token.as_ref()?, alert.resource?))
}

/// What is told again of an alert about a record, as it reads now.
fn retell(alert: &Alert, snapshot: &TokenSnapshot, resource: Resource, context: &EvaluationContext<'_>) -> Option<AlertBody> {
    let facts = TokenFacts {
        token: &snapshot.token,
        is_watched: true,
        records: &snapshot.records,
        resources: &[resource],
        changes: &[],
        added: &[],
        late: &[],
        alerts: &[],
        polled_at: &polled_at(&snapshot.feeds),
    };
    evaluate::retell(alert, &facts, context)
}

/// What is told again of an alert: `last` is what was last said of it, `retold` its text as it reads now, as far as that can be told. The
/// same repeat is the same message, also where it is made once more after a fault.
fn repeat(
    alert: &Alert,
    last: &Notification,
    retold: Option<AlertBody>,
    receiver: &ReceiverName,
    key: &str,
    now: Timestamp,
) -> Notification {
    let body = retold.unwrap_or_else(|| {
        let mut body = last.body.clone();
        body.reason = "repeat".to_owned();
        body.days_until = alert.due.map(|due| due.days_until(now));
        body
    });
    Notification {
        // The group's time, not this one.
        id: notification_id(&last.alert, &format!("repeat {receiver} {key} after {}", last.id)),
        alert: last.alert.clone(),
        kind: NotificationKind::Reminder,
        at: now,
        receivers: vec![receiver.clone()],
        body,
    }
}
