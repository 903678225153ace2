//! Alertmanager's API, `/api/v2/alerts`.
//!
//! Alertmanager resolves an alert at `endsAt` unless it is sent again. Alerts are sent here only once, so `endsAt` is after the date
//! of the event.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

use super::alertmanager::{annotations, ended_at, former_label_sets, labels, time};
use super::{FormatInput, FormatKey, FormatSpec, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::card::Brief;
use model::{AlertStatus, Labels, Notification, NotificationKind, Timestamp};

/// The duration of an alert about a past event.
const EVENT_DURATION: TimeDelta = TimeDelta::hours(1);

/// The time after the event's date at which the alert ends if no resolution is sent.
const GRACE: TimeDelta = TimeDelta::days(1);

/// The duration of an alert without a date, if no resolution is sent.
const UNDATED_DURATION: TimeDelta = TimeDelta::days(365);

pub(super) const SPEC: FormatSpec =
    FormatSpec { keys: &[FormatKey::BEARER], ..FormatSpec::new("alertmanager-api", |_| Ok(WebhookFormat::new(requests))) };

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    let path = input.default_path(&["api", "v2", "alerts"]);
    Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&alerts(brief))? }])
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PushedAlert {
    labels: Labels,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "Option::is_none")]
    generator_url: Option<String>,
}

/// Returns all alerts of the delivery, since Alertmanager accepts any number and groups them itself.
fn alerts(brief: &Brief<'_>) -> Vec<PushedAlert> {
    let push = |notice: &Notification, labels: Labels, ends_at: Timestamp| PushedAlert {
        labels,
        annotations: annotations(brief, notice),
        starts_at: time(notice.body.starts_at),
        ends_at: time(ends_at),
        generator_url: brief.page(notice).or_else(|| brief.link()),
    };
    let notifications = brief.notifications();
    let now = notifications.iter().map(|notice| push(notice, labels(notice), end(notice, brief.now)));
    now.chain(former_label_sets(notifications).map(|(notice, labels)| push(notice, labels, ended_at(notice, brief.now))))
        .collect()
}

/// Returns when Alertmanager resolves the alert: at its end, else some time after its resolution is expected.
fn end(notice: &Notification, now: Timestamp) -> Timestamp {
    let body = &notice.body;
    if body.status == AlertStatus::Resolved {
        return ended_at(notice, now);
    }
    let later = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(from);
    // A late message must not arrive with an end in the past.
    let least = later(now, EVENT_DURATION);
    if matches!(notice.kind, NotificationKind::Event | NotificationKind::Digest | NotificationKind::Test) {
        return least;
    }
    let days = body.days_until.filter(|days| days.is_finite() && (0.0..36_500.0).contains(days));
    match days {
        #[expect(clippy::cast_possible_truncation, reason = "less than a hundred years in seconds")]
        Some(days) => later(later(notice.at, TimeDelta::seconds((days * 86_400.0) as i64)), GRACE).max(least),
        None => later(now, UNDATED_DURATION),
    }
}

#[cfg(test)]
mod tests;
