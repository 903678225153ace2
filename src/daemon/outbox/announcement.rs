//! Alerts about deliveries, stored together with the attempt.

use crate::live::Live;
use engine::self_monitor::{self, is_about_delivery};
use model::{Alert, AttemptRecord, DueDelivery, Notification, NotificationKind, ReceiverName, Timestamp};
use notify::RejectedRecipient;

pub(super) fn add_alert(record: &mut AttemptRecord, (alert, notification): (Alert, Notification)) {
    record.alerts.push(alert);
    record.notifications.push(notification);
}

/// Adds the alert about a dead letter. Tests and alerts about deliveries raise none, so that no loop arises.
pub(super) fn add_dead_letter(record: &mut AttemptRecord, live: &Live, delivery: &DueDelivery, reason: &str, now: Timestamp) {
    let DueDelivery { id, receiver, notifications, .. } = delivery;
    let is_exempt = |notification: &Notification| {
        notification.kind == NotificationKind::Test || is_about_delivery(notification.kind, &notification.body.labels)
    };
    // Notifications are only missing if their rows are damaged.
    if notifications.is_empty() || !notifications.iter().all(is_exempt) {
        let active = live.load().active.clone();
        let alert = self_monitor::dead_letter(*id, receiver, notifications, reason, &active.context(now));
        alert.into_iter().for_each(|alert| add_alert(record, alert));
    }
}

/// Adds an alert about each recipient that does not get the message, at most once a day. The result of a test names them.
pub(super) fn add_rejected_recipients(
    record: &mut AttemptRecord,
    live: &Live,
    delivery: &DueDelivery,
    rejected: &[RejectedRecipient],
    now: Timestamp,
) {
    if delivery.notifications.iter().all(|notification| notification.kind == NotificationKind::Test) {
        return;
    }
    let active = live.load().active.clone();
    let context = active.context(now);
    for RejectedRecipient { address, reply } in rejected {
        add_alert(record, self_monitor::recipient_rejected(&delivery.receiver, address, reply, &context));
    }
}

/// Returns the receivers of all notifications in the records.
pub(super) fn recipients(records: &[AttemptRecord]) -> Vec<ReceiverName> {
    let notifications = records.iter().flat_map(|record| &record.notifications);
    notifications.flat_map(|notification| notification.receivers.iter().cloned()).collect()
}
