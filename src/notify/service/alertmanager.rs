//! Alertmanager, both ways: the body that it sends to webhooks (version 4), and the alerts that it takes at `/api/v2/alerts`.
//!
//! It knows an alert by its labels alone, so each gets one more, `alert_id`: two unlocks of one token under one rule stay two. Where
//! labels change while the alert fires, as with its level, the alert under the former labels is told to be over, in the same
//! message. An alert that is not told again ends at `endsAt`; ours are told once, so that time lies behind the date in question.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{SecondsFormat, TimeDelta};
use serde::Serialize;

use crate::{
    alert::{Labels, Notice, NoticeKind},
    notify::{
        card::{Brief, web_address},
        message, text,
    },
    supply::Timestamp,
};

/// Most alerts in one message.
const MAX_ALERTS: usize = message::MAX_ALERTS;

/// Longest value of a label or an annotation, characters.
const MAX_LABEL_CHARS: usize = 500;
const MAX_ANNOTATION_CHARS: usize = 8_000;

/// How long something that happened once stays an alert.
const EVENT_LASTS: TimeDelta = TimeDelta::hours(1);

/// How long an alert stays after its date, should its end never be told.
const GRACE: TimeDelta = TimeDelta::days(1);

/// How long an alert without a date stays, should its end never be told.
const UNDATED_LASTS: TimeDelta = TimeDelta::days(365);

/// Go's zero time: an end that is not known.
const NO_END: &str = "0001-01-01T00:00:00Z";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Webhook<'a> {
    version: &'static str,
    group_key: String,
    truncated_alerts: usize,
    status: &'static str,
    receiver: &'a str,
    group_labels: Labels,
    common_labels: Labels,
    common_annotations: BTreeMap<String, String>,
    #[serde(rename = "externalURL")]
    external_url: String,
    alerts: Vec<Told>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    status: String,
    labels: Labels,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: String,
    fingerprint: String,
}

/// The body that Alertmanager sends to a webhook.
pub(super) fn webhook<'a>(brief: &Brief<'a>) -> Webhook<'a> {
    let external_url = brief.link().unwrap_or_default();
    let told = brief.notices().get(..MAX_ALERTS).unwrap_or(brief.notices());
    let tell = |notice: &Notice, labels: Labels, status: &str, ends_at: Option<Timestamp>| Told {
        status: status.to_owned(),
        fingerprint: format!("{:016x}", fingerprint(&labels)),
        annotations: annotations(brief, notice),
        starts_at: time(notice.body.starts_at),
        ends_at: ends_at.map_or_else(|| NO_END.to_owned(), time),
        generator_url: external_url.clone(),
        labels,
    };
    let now = told.iter().map(|notice| tell(notice, labels(notice), &notice.body.status, notice.body.ends_at));
    let alerts: Vec<Told> = now
        .chain(former(told).map(|(notice, labels)| tell(notice, labels, "resolved", Some(over_at(notice, brief.now)))))
        .collect();
    let common_labels = common(alerts.iter().map(|alert| &alert.labels));
    let group_labels = match brief.delivery.bundle.group_labels.is_empty() {
        false => brief.delivery.bundle.group_labels.clone(),
        true => common_labels.iter().filter(|(name, _)| matches!(name.as_str(), "alertname" | "token")).map(own).collect(),
    };
    Webhook {
        version: "4",
        group_key: message::group_key(brief.delivery),
        truncated_alerts: brief.count() - told.len(),
        status: message::status(brief.notices()),
        receiver: brief.delivery.receiver.as_str(),
        group_labels,
        common_annotations: common(alerts.iter().map(|alert| &alert.annotations)),
        common_labels,
        external_url,
        alerts,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pushed {
    labels: Labels,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "Option::is_none")]
    generator_url: Option<String>,
}

/// What is pushed to Alertmanager: all alerts of the delivery at once, since it takes any number and groups them itself.
pub(super) fn alerts(brief: &Brief<'_>) -> Vec<Pushed> {
    let push = |notice: &Notice, labels: Labels, ends_at: Timestamp| Pushed {
        labels,
        annotations: annotations(brief, notice),
        starts_at: time(notice.body.starts_at),
        ends_at: time(ends_at),
        generator_url: brief.link(),
    };
    let notices = brief.notices();
    let now = notices.iter().map(|notice| push(notice, labels(notice), end(notice, brief.now)));
    now.chain(former(notices).map(|(notice, labels)| push(notice, labels, over_at(notice, brief.now)))).collect()
}

/// The label sets under which alerts of these notices were known before, each once, unless one of them bears it now.
fn former(notices: &[Notice]) -> impl Iterator<Item = (&Notice, Labels)> {
    let mut seen: BTreeSet<Labels> = notices.iter().map(labels).collect();
    let all =
        notices.iter().flat_map(|notice| notice.body.former_labels.iter().map(move |former| (notice, as_labels(notice, former))));
    all.filter(move |(_, labels)| seen.insert(labels.clone()))
}

/// When an alert, or what it was called before, was over: never ahead, or it would go on; and never before it began, which is refused.
fn over_at(notice: &Notice, now: Timestamp) -> Timestamp {
    notice.body.ends_at.unwrap_or(notice.at).min(now).max(notice.body.starts_at)
}

/// When Alertmanager may take it for over: when it ended; else when, with a margin, we would have said so.
fn end(notice: &Notice, now: Timestamp) -> Timestamp {
    let body = &notice.body;
    if body.status == "resolved" {
        return over_at(notice, now);
    }
    let later = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(from);
    // A message that comes late must still be an alert when it arrives.
    let least = later(now, EVENT_LASTS);
    if matches!(notice.kind, NoticeKind::Event | NoticeKind::Digest | NoticeKind::Test) {
        return least;
    }
    let days = body.days_until.filter(|days| days.is_finite() && (0.0..36_500.0).contains(days));
    match days {
        #[expect(clippy::cast_possible_truncation, reason = "less than a hundred years in seconds")]
        Some(days) => later(later(notice.at, TimeDelta::seconds((days * 86_400.0) as i64)), GRACE).max(least),
        None => later(now, UNDATED_LASTS),
    }
}

/// The labels, names as Prometheus has them, and the alert's own id.
fn labels(notice: &Notice) -> Labels {
    as_labels(notice, &notice.body.labels)
}

fn as_labels(notice: &Notice, labels: &Labels) -> Labels {
    let mut labels: Labels = labels
        .iter()
        .map(|(name, value)| (label_name(name), text::line(value, MAX_LABEL_CHARS)))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .collect();
    labels.entry("alertname".into()).or_insert_with(|| text::line(&notice.body.rule, MAX_LABEL_CHARS));
    labels.insert("alert_id".into(), notice.alert.as_str().to_owned());
    labels
}

/// Letters, digits and `_`, no digit first.
fn label_name(name: &str) -> String {
    let name: String = name.chars().take(MAX_LABEL_CHARS).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The annotations, and as `headline` the line that says token, size, share and when.
fn annotations(brief: &Brief<'_>, notice: &Notice) -> BTreeMap<String, String> {
    let mut annotations: BTreeMap<String, String> = notice
        .body
        .annotations
        .iter()
        .map(|(name, value)| match name.as_str() {
            "runbook_url" => (name.clone(), web_address(value).unwrap_or_default()),
            _ => (label_name(name), text::paragraph(value, MAX_ANNOTATION_CHARS)),
        })
        .filter(|(_, value)| !value.is_empty())
        .collect();
    annotations.insert("headline".into(), brief.headline(notice));
    annotations.insert("reason".into(), text::line(&notice.body.reason, MAX_LABEL_CHARS));
    annotations
}

fn own((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// What all have alike.
fn common<'a>(mut all: impl Iterator<Item = &'a BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut common = all.next().cloned().unwrap_or_default();
    for each in all {
        common.retain(|name, value| each.get(name) == Some(value));
    }
    common
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The fingerprint of a label set, as Prometheus computes it: FNV-1a over sorted names and values, each ended by 0xFF.
fn fingerprint(labels: &Labels) -> u64 {
    let bytes = labels
        .iter()
        .flat_map(|(name, value)| name.bytes().chain(std::iter::once(0xff)).chain(value.bytes()).chain(std::iter::once(0xff)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::samples::{due, moved, resolved, time as at, unlock};

    #[test]
    fn a_fingerprint_is_that_of_prometheus() {
        // From the tests of prometheus/common.
        assert_eq!(fingerprint(&Labels::new()), 14_695_981_039_346_656_037);
    }

    #[test]
    fn an_alert_ends_after_its_date_an_event_soon_and_a_resolution_never_ahead() {
        let now = at("2026-03-09T13:00:05Z");
        assert_eq!(end(&unlock(), now), at("2026-03-17T13:00:00Z"));
        assert_eq!(end(&unlock(), at("2026-04-01T00:00:00Z")), at("2026-04-01T01:00:00Z"), "late, but alive when it arrives");
        assert_eq!(end(&moved(), now), at("2026-03-09T14:00:05Z"));
        assert_eq!(end(&resolved(), now), now);
        assert_eq!(end(&resolved(), at("2026-03-20T00:00:00Z")), at("2026-03-16T13:00:00Z"));
    }

    #[test]
    fn what_an_alert_was_called_before_is_told_to_be_over() {
        let now = at("2026-03-09T13:00:05Z");
        let mut raised = unlock();
        let of = |severity: &str| {
            let mut labels = unlock().body.labels;
            labels.insert("severity".into(), severity.into());
            labels
        };
        raised.body.labels = of("critical");
        raised.body.former_labels = vec![of("info"), of("warning")];
        let delivery = due(1, "am", vec![raised.clone()]);
        let brief = Brief { delivery: &delivery, external_url: None, now };
        let severities = |pushed: &[Pushed]| -> Vec<(String, bool)> {
            pushed.iter().map(|alert| (alert.labels["severity"].clone(), alert.ends_at > time(now))).collect()
        };
        let expected = [("critical", true), ("info", false), ("warning", false)].map(|(word, on)| (word.to_owned(), on));
        assert_eq!(severities(&alerts(&brief)), expected);
        let body = webhook(&brief);
        let told: Vec<_> = body.alerts.iter().map(|alert| (alert.labels["severity"].as_str(), alert.status.as_str())).collect();
        assert_eq!(told, [("critical", "firing"), ("info", "resolved"), ("warning", "resolved")]);
        assert_eq!((body.status, body.truncated_alerts), ("firing", 0));
        // Back to a label that it had: that one fires.
        raised.body.labels = of("warning");
        let delivery = due(1, "am", vec![raised]);
        let brief = Brief { delivery: &delivery, ..brief };
        assert_eq!(severities(&alerts(&brief)), [("warning".to_owned(), true), ("info".to_owned(), false)]);
    }

    #[test]
    fn one_alert_keeps_its_labels_to_the_end_and_two_differ() {
        assert_eq!(labels(&unlock()), labels(&resolved()));
        let mut other = unlock();
        other.alert = "al_other".into();
        assert_ne!(labels(&unlock()), labels(&other));
        assert_eq!(label_name("9 lives-left"), "_9_lives_left");
        let delivery = due(1, "am", vec![unlock(), other]);
        let brief = Brief { delivery: &delivery, external_url: None, now: at("2026-03-09T13:00:05Z") };
        let body = webhook(&brief);
        assert!(!body.common_labels.contains_key("alert_id"));
        assert_eq!(body.common_labels.get("token").map(String::as_str), Some("arbitrum"));
    }
}
