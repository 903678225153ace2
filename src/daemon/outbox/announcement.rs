//! What is said of deliveries themselves: which failures are worth it, and how it is put into the record of an attempt.

use engine::self_monitor::is_about_delivery;
use model::{Alert, AttemptRecord, DueDelivery, Notification, NotificationKind, ReceiverName};

pub(super) fn add_announcement(record: &mut AttemptRecord, announcement: Option<(Alert, Notification)>) {
    if let Some((alert, notice)) = announcement {
        record.alerts.push(alert);
        record.notifications.push(notice);
    }
}

/// Everyone that hears of something in these records.
pub(super) fn recipients(records: &[AttemptRecord]) -> Vec<ReceiverName> {
    records.iter().flat_map(|record| &record.notifications).flat_map(|notice| notice.receivers.iter().cloned()).collect()
}

/// Whether the end of a delivery is to be announced: not where it was a test by hand, or itself about deliveries.
pub(super) fn is_worth_announcing(delivery: &DueDelivery) -> bool {
    let is_own =
        |notice: &Notification| notice.kind == NotificationKind::Test || is_about_delivery(notice.kind, &notice.body.labels);
    !delivery.notifications.iter().all(is_own)
}
