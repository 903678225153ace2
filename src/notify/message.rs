//! From notifications to the body of a webhook. Pure: the same notifications make the same bytes, on every attempt and after a
//! restart.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::card::web_address;
use model::{
    AlertBody, AlertStatus, Batch, DeliveryId, DueDelivery, Labels, Notification, NotificationKind, ReceiverName, RuleId,
    Timestamp, alert_id, format, notification_id, strength,
};

/// Most alerts in one message; the rest is counted in `truncatedAlerts`.
pub const MAX_ALERTS: usize = 100;

/// Size above which records are left out of a message, and alerts if that is not enough, bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebhookBody<'a> {
    /// What kind of message: that of the strongest thing in it.
    #[serde(rename = "type")]
    kind: NotificationKind,
    /// When the first notice was decided.
    timestamp: Timestamp,
    data: WebhookData<'a>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookData<'a> {
    receiver: &'a str,
    group_key: String,
    status: AlertStatus,
    truncated_alerts: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(rename = "externalURL")]
    external_url: Option<&'a str>,
    alerts: Vec<&'a AlertBody>,
}

/// The exact bytes of the webhook body in the format `cliffwatch`. None where there is nothing to tell.
/// Fails where a notice cannot be written as JSON.
pub fn webhook_body(delivery: &DueDelivery, external_url: Option<&str>) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let notifications = &delivery.notifications;
    let (Some(first), Some(strongest)) = (notifications.first(), strongest(notifications)) else { return Ok(None) };
    let write = |alerts: Vec<&AlertBody>| {
        serde_json::to_vec(&WebhookBody {
            kind: strongest.kind,
            timestamp: first.at,
            data: WebhookData {
                receiver: delivery.receiver.as_str(),
                group_key: group_key(delivery),
                status: status(notifications),
                truncated_alerts: notifications.len() - alerts.len() + delivery.bundle.truncated as usize,
                note: note(delivery, alerts.len(), external_url),
                external_url,
                alerts,
            },
        })
    };
    let included = notifications.get(..MAX_ALERTS).unwrap_or(notifications);
    let bytes = write(included.iter().map(|notice| &notice.body).collect())?;
    if bytes.len() <= MAX_BODY_BYTES {
        return Ok(Some(bytes));
    }
    // A schedule of thousands of allocations: the facts that people read (labels, annotations, dates) stay.
    let lean: Vec<AlertBody> = included
        .iter()
        .map(|notice| AlertBody { record: None, change: None, series: Vec::new(), members: Vec::new(), ..notice.body.clone() })
        .collect();
    let mut count = lean.len();
    loop {
        let bytes = write(lean.iter().take(count).collect())?;
        if bytes.len() <= MAX_BODY_BYTES || count <= 1 {
            return Ok(Some(bytes));
        }
        count = count.div_ceil(2);
    }
}

/// The notice that stands for a message: of the gravest, what begins before what happened, was told before, or is over.
pub(super) fn strongest(notifications: &[Notification]) -> Option<&Notification> {
    notifications.iter().min_by(|a, b| strength(a, b))
}

/// The note of a message that shows so many of its alerts, with where the others can be read.
fn note(delivery: &DueDelivery, shown: usize, external_url: Option<&str>) -> Option<String> {
    let left_out = delivery.notifications.len() + delivery.bundle.truncated as usize - shown;
    let rest = (left_out > 0)
        .then(|| format!("{} not shown here: see {}", format::count(left_out, "more alert"), whole(delivery, external_url)));
    let notes: Vec<String> = delivery.bundle.note.iter().cloned().chain(rest).collect();
    (!notes.is_empty()).then(|| notes.join(". "))
}

/// Where everything that a delivery stands for can be read: by a link, where our pages have an address, and by a command.
pub(super) fn whole(delivery: &DueDelivery, external_url: Option<&str>) -> String {
    let link =
        external_url.and_then(web_address).map(|url| format!("{}/api/outbox/{} or ", url.trim_end_matches('/'), delivery.id));
    format!("{}{}", link.unwrap_or_default(), command(delivery))
}

/// The command that shows everything that a delivery stands for.
pub(super) fn command(delivery: &DueDelivery) -> String {
    format!("`cliffwatch outbox show {}`", delivery.id)
}

/// `firing` while anything in it fires.
pub(super) fn status(notifications: &[Notification]) -> AlertStatus {
    let is_over = notifications.iter().all(|notice| notice.body.status == AlertStatus::Resolved);
    if is_over { AlertStatus::Resolved } else { AlertStatus::Firing }
}

/// The group of a message, else what its alerts have in common, as text: the same for a firing, a reminder and the end of one alert.
pub fn group_key(delivery: &DueDelivery) -> String {
    if let Some(key) = &delivery.bundle.group_key {
        return key.clone();
    }
    let notifications = &delivery.notifications;
    let shared = |part: fn(&Notification) -> Option<&str>| {
        let first = part(notifications.first()?)?;
        notifications.iter().all(|notice| part(notice) == Some(first)).then_some(first)
    };
    let parts: [(&str, Option<&str>); 3] = [
        ("rule", shared(|notice| Some(&notice.body.rule))),
        ("token", shared(|notice| notice.body.token.as_ref().map(|token| token.id.as_str()))),
        ("alert", shared(|notice| Some(notice.alert.as_str()))),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", serde_json::Value::from(value?)))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// A test message to `receiver`, as a delivery that is in no table: for [`Receivers::send`](super::Receivers::send).
pub fn test_delivery(receiver: &ReceiverName, now: Timestamp) -> DueDelivery {
    let notice = test_notice(receiver, now);
    DueDelivery {
        id: DeliveryId(0),
        webhook_id: format!("msg_{}", notice.id.as_str().trim_start_matches("no_")),
        receiver: receiver.clone(),
        attempts: 0,
        tries: 0,
        created_at: now,
        due_at: now,
        notifications: vec![notice],
        bundle: Batch::default(),
        over: Vec::new(),
    }
}

/// A test message to `receiver`. Each has an id of its own.
pub fn test_notice(receiver: &ReceiverName, now: Timestamp) -> Notification {
    let rule = RuleId::from("Test");
    // An alert of its own: a test must not wait behind an earlier one that fails.
    let alert = alert_id(&rule, &format!("test/{receiver}/{}", now.timestamp_millis()), 1);
    let summary = format!("Test message from Cliffwatch to {receiver}");
    let description = "Deliveries to this receiver arrive. Nothing has happened; nothing is to be done.";
    Notification {
        id: notification_id(&alert, &format!("test {}", now.timestamp_millis())),
        alert: alert.clone(),
        kind: NotificationKind::Test,
        at: now,
        receivers: vec![receiver.clone()],
        body: AlertBody {
            labels: Labels::from([("alertname".into(), "Test".into()), ("severity".into(), "info".into())]),
            annotations: BTreeMap::from([("summary".into(), summary), ("description".into(), description.into())]),
            ..AlertBody::firing(alert, "Test", "test", now)
        },
    }
}
