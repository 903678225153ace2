//! Writes the body of the webhook format `cliffwatch`. Pure: the same notifications produce the same bytes on every attempt.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::card::web_address;
use model::{
    AlertBody, AlertStatus, Batch, DeliveryId, DueDelivery, Labels, MAX_ALERTS, Notification, NotificationKind, ReceiverName,
    RuleId, Timestamp, alert_id, notification_id, phrase, strength,
};

/// The size in bytes above which a message omits records, and also alerts if that is not enough.
pub const MAX_BODY_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebhookBody<'a> {
    /// The kind of the strongest notification.
    #[serde(rename = "type")]
    kind: NotificationKind,
    /// The time of the first notification.
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

/// Returns the bytes of the body, or `None` if the delivery has no notifications.
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
                truncated_alerts: notifications.len() - alerts.len() + delivery.batch.truncated as usize,
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
    // Records can list thousands of allocations. Labels, annotations, and dates remain.
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

/// Returns the notification that represents the message: the most severe, and of those a new alert before
/// a reminder or a resolution.
pub(super) fn strongest(notifications: &[Notification]) -> Option<&Notification> {
    notifications.iter().min_by(|a, b| strength(a, b))
}

/// Returns the note of a message, and the number of alerts beyond `shown` with where to see them.
fn note(delivery: &DueDelivery, shown: usize, external_url: Option<&str>) -> Option<String> {
    let left_out = delivery.notifications.len() + delivery.batch.truncated as usize - shown;
    let rest = (left_out > 0)
        .then(|| format!("{} not shown: see {}", phrase::count(left_out, "more alert"), whole(delivery, external_url)));
    let notes: Vec<String> = delivery.batch.note.iter().cloned().chain(rest).collect();
    (!notes.is_empty()).then(|| notes.join(". "))
}

/// Returns the link (if `external_url` is set) and the command that show the complete delivery.
pub(super) fn whole(delivery: &DueDelivery, external_url: Option<&str>) -> String {
    let link =
        external_url.and_then(web_address).map(|url| format!("{}/api/v1/outbox/{} or ", url.trim_end_matches('/'), delivery.id));
    format!("{}{}", link.unwrap_or_default(), command(delivery))
}

/// Returns the command that shows the complete delivery.
pub(super) fn command(delivery: &DueDelivery) -> String {
    format!("`cliffwatch outbox show {}`", delivery.id)
}

/// Returns `firing` if any of the alerts fires.
pub(super) fn status(notifications: &[Notification]) -> AlertStatus {
    let is_over = notifications.iter().all(|notice| notice.body.status == AlertStatus::Resolved);
    if is_over { AlertStatus::Resolved } else { AlertStatus::Firing }
}

/// Returns the key of the notification group, else a key from the rule, token, and alert that all notifications share. It is the same
/// when an alert fires, is repeated, and is resolved.
pub fn group_key(delivery: &DueDelivery) -> String {
    if let Some(key) = &delivery.batch.group_key {
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

/// Returns a delivery with a test message for [`Receivers::send`](super::Receivers::send). It is not stored in the outbox.
pub fn test_delivery(receiver: &ReceiverName, now: Timestamp) -> DueDelivery {
    let notice = test_notification(receiver, now);
    DueDelivery {
        id: DeliveryId(0),
        webhook_id: format!("msg_{}", notice.id.as_str().trim_start_matches("no_")),
        receiver: receiver.clone(),
        attempts: 0,
        tries: 0,
        created_at: now,
        due_at: now,
        notifications: vec![notice],
        batch: Batch::default(),
        over: Vec::new(),
        replay: None,
    }
}

/// Returns a test notification with a unique id.
pub fn test_notification(receiver: &ReceiverName, now: Timestamp) -> Notification {
    let rule = RuleId::from("Test");
    // The alert id is unique, so that the test does not wait for an earlier test that fails.
    let alert = alert_id(&rule, &format!("test/{receiver}/{}", now.timestamp_millis()), 1);
    let summary = format!("Test message from Cliffwatch to {receiver}");
    let description = "This receiver works. No action is needed.";
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
