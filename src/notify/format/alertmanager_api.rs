//! Alertmanager itself: what it takes at `/api/v2/alerts`.
//!
//! An alert that is not told again ends at `endsAt`; ours are told once, so that time lies behind the date in question.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

use super::alertmanager::{annotations, former, labels, over_at, time};
use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::Brief;
use model::{AlertStatus, Labels, Notification, NotificationKind, Timestamp, config};

/// How long something that happened once stays an alert.
const EVENT_LASTS: TimeDelta = TimeDelta::hours(1);

/// How long an alert stays after its date, should its end never be told.
const GRACE: TimeDelta = TimeDelta::days(1);

/// How long an alert without a date stays, should its end never be told.
const UNDATED_LASTS: TimeDelta = TimeDelta::days(365);

/// It has no settings of its own.
#[derive(Debug)]
pub struct AlertmanagerApi;

impl FormatSettings for AlertmanagerApi {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let path = given.path_unless_given(&["api", "v2", "alerts"]);
        Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&alerts(brief))? }])
    }
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

/// What is pushed to Alertmanager: all alerts of the delivery at once, since it takes any number and groups them itself.
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
    now.chain(former(notifications).map(|(notice, labels)| push(notice, labels, over_at(notice, brief.now)))).collect()
}

/// When Alertmanager may take it for over: when it ended; else when, with a margin, we would have said so.
fn end(notice: &Notification, now: Timestamp) -> Timestamp {
    let body = &notice.body;
    if body.status == AlertStatus::Resolved {
        return over_at(notice, now);
    }
    let later = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(from);
    // A message that comes late must still be an alert when it arrives.
    let least = later(now, EVENT_LASTS);
    if matches!(notice.kind, NotificationKind::Event | NotificationKind::Digest | NotificationKind::Test) {
        return least;
    }
    let days = body.days_until.filter(|days| days.is_finite() && (0.0..36_500.0).contains(days));
    match days {
        #[expect(clippy::cast_possible_truncation, reason = "less than a hundred years in seconds")]
        Some(days) => later(later(notice.at, TimeDelta::seconds((days * 86_400.0) as i64)), GRACE).max(least),
        None => later(now, UNDATED_LASTS),
    }
}

#[cfg(test)]
mod tests;
