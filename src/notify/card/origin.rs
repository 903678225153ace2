//! The rule, reason, source, and times of a notification.

use chrono::TimeDelta;

use super::headline::reason_text;
use crate::text;
use model::{Notification, Timestamp, phrase};

/// The delay between evaluation and attempt from which a message is marked as late.
const LATE: TimeDelta = TimeDelta::minutes(30);

pub(super) fn origin(notice: &Notification, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let source = &body.source;
    let late = now - notice.at;
    let sent = || ("Sent", format!("{}, {} late", phrase::instant(now), phrase::duration(late)));
    // A digest has no rule and no source.
    if notice.is_digest() {
        let rows = [Some(("Evaluated", phrase::instant(notice.at))), (late >= LATE).then(sent)];
        return rows.into_iter().flatten().collect();
    }
    let mut rows = vec![("Rule", text::line(&body.rule, 120))];
    if !body.reason.is_empty() {
        rows.push(("Reason", reason_text(body)));
    }
    let labels: Vec<String> = body
        .labels
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "alertname" | "token"))
        .take(10)
        .map(|(name, value)| format!("{}={}", text::line(name, 40), text::line(value, 80)))
        .collect();
    if !labels.is_empty() {
        rows.push(("Labels", labels.join(", ")));
    }
    rows.push(("Active since", phrase::instant(body.starts_at)));
    if let Some(end) = body.ends_at {
        rows.push(("Ended", phrase::instant(end)));
    }
    if let Some(origin) = &source.data_source {
        rows.push(("Data source", text::line(origin, 120)));
    }
    if let Some(method) = &source.listed_method {
        rows.push(("Listing", listed_as(method)));
    }
    if let Some(at) = source.latest_update_date {
        rows.push(("Source updated", phrase::instant(at)));
    }
    if let Some(at) = source.polled_at {
        rows.push(("Polled", phrase::instant(at)));
    }
    rows.push(("Evaluated", phrase::instant(notice.at)));
    if late >= LATE {
        rows.push(sent());
    }
    rows.push(("Alert ID", text::line(notice.alert.as_str(), 80)));
    rows
}

/// Describes how the source learned of the token. Unknown methods are shown unchanged.
fn listed_as(method: &str) -> String {
    match method {
        "INTERNAL" => "checked by the data provider against several sources".to_owned(),
        "AI" => "collected by the data provider's AI".to_owned(),
        "EXTERNAL" => "submitted by the project".to_owned(),
        other => text::line(other, 40),
    }
}
