//! Where an alert comes from, why it is told, and how late.

use chrono::TimeDelta;

use super::headline::reason_words;
use crate::{retry::describe, text};
use model::{Notification, Timestamp, format};

/// How long after the decision a message counts as late.
const LATE: TimeDelta = TimeDelta::minutes(30);

/// Where it comes from and why it is told.
pub(super) fn origin(notice: &Notification, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let source = &body.source;
    let late = now - notice.at;
    let sent = || ("Sent", format!("{}, {} late", format::instant(now), describe(late)));
    // A digest is no alert: only its time says something.
    if notice.is_digest() {
        let rows = [Some(("Decided", format::instant(notice.at))), (late >= LATE).then(sent)];
        return rows.into_iter().flatten().collect();
    }
    let mut rows = vec![("Rule", text::line(&body.rule, 120))];
    if !body.reason.is_empty() {
        rows.push(("Told because", reason_words(body)));
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
    rows.push(("Since", format::instant(body.starts_at)));
    if let Some(end) = body.ends_at {
        rows.push(("Ended", format::instant(end)));
    }
    if let Some(origin) = &source.data_source {
        rows.push(("Data source", text::line(origin, 120)));
    }
    if let Some(method) = &source.listed_method {
        rows.push(("Listed as", listed_as(method)));
    }
    if let Some(at) = source.latest_update_date {
        rows.push(("Source updated", format::instant(at)));
    }
    if let Some(at) = source.polled_at {
        rows.push(("Polled", format::instant(at)));
    }
    rows.push(("Decided", format::instant(notice.at)));
    if late >= LATE {
        rows.push(sent());
    }
    rows.push(("Alert", text::line(notice.alert.as_str(), 80)));
    rows
}

/// How the source knows of the token, in words; a word that is new to us as it came.
fn listed_as(method: &str) -> String {
    match method {
        "INTERNAL" => "checked by the service against several sources".to_owned(),
        "AI" => "found by the service's AI".to_owned(),
        "EXTERNAL" => "listed by the project itself".to_owned(),
        other => text::line(other, 40),
    }
}
