//! The webhook body of Alertmanager, version 4, and the labels and annotations for Alertmanager.
//!
//! Alertmanager identifies an alert by its labels, so each alert gets the additional label `alert_id`: two unlocks of one token
//! under one rule stay two alerts. If labels change while the alert fires, for example its severity, the same message also resolves
//! the alert with the former labels.

use std::collections::{BTreeMap, BTreeSet};

use chrono::SecondsFormat;
use serde::Serialize;

use super::{FormatKey, FormatSpec, WebhookFormat};
use crate::card::{Brief, web_address};
use crate::{message, text};
use model::{AlertStatus, Labels, Notification, Timestamp, phrase};

const MAX_ALERTS: usize = model::rows::MAX_ALERTS;

const MAX_LABEL_CHARS: usize = 500;
const MAX_ANNOTATION_CHARS: usize = 8_000;

/// Go's zero time, which Alertmanager sends for an unknown end.
const NO_END: &str = "0001-01-01T00:00:00Z";

pub(super) const SPEC: FormatSpec = FormatSpec {
    keys: &[FormatKey::SIGNING, FormatKey::BEARER],
    ..FormatSpec::new("alertmanager", |_| Ok(WebhookFormat::of_body(body)))
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertmanagerBody {
    version: &'static str,
    group_key: String,
    truncated_alerts: usize,
    status: AlertStatus,
    receiver: String,
    group_labels: Labels,
    common_labels: Labels,
    common_annotations: BTreeMap<String, String>,
    #[serde(rename = "externalURL")]
    external_url: String,
    alerts: Vec<AlertmanagerAlert>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertmanagerAlert {
    status: AlertStatus,
    labels: Labels,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: String,
    fingerprint: String,
}

fn body(brief: &Brief<'_>) -> AlertmanagerBody {
    let external_url = brief.link().unwrap_or_default();
    let included = brief.notifications().get(..MAX_ALERTS).unwrap_or(brief.notifications());
    let alert_of = |notice: &Notification, labels: Labels, status: AlertStatus, ends_at: Option<Timestamp>| AlertmanagerAlert {
        status,
        fingerprint: format!("{:016x}", fingerprint(&labels)),
        annotations: annotations(brief, notice),
        starts_at: time(notice.body.starts_at),
        ends_at: ends_at.map_or_else(|| NO_END.to_owned(), time),
        generator_url: brief.page(notice).unwrap_or_else(|| external_url.clone()),
        labels,
    };
    let now = included.iter().map(|notice| alert_of(notice, labels(notice), notice.body.status, notice.body.ends_at));
    let alerts: Vec<AlertmanagerAlert> = now
        .chain(
            former_label_sets(included)
                .map(|(notice, labels)| alert_of(notice, labels, AlertStatus::Resolved, Some(ended_at(notice, brief.now)))),
        )
        .collect();
    let common_labels = common(alerts.iter().map(|alert| &alert.labels));
    let group_labels = match brief.delivery.batch.group_labels.is_empty() {
        false => brief.delivery.batch.group_labels.clone(),
        true => common_labels.iter().filter(|(name, _)| matches!(name.as_str(), "alertname" | "token")).map(own).collect(),
    };
    let mut common_annotations = common(alerts.iter().map(|alert| &alert.annotations));
    common_annotations.extend(brief.rest_of(brief.alert_count() - included.len()).map(|rest| ("rest".to_owned(), rest)));
    AlertmanagerBody {
        version: "4",
        group_key: message::group_key(brief.delivery),
        truncated_alerts: brief.alert_count() - included.len(),
        status: message::status(brief.notifications()),
        receiver: brief.delivery.receiver.as_str().to_owned(),
        group_labels,
        common_annotations,
        common_labels,
        external_url,
        alerts,
    }
}

/// Returns each former label set of these notifications once, except sets that are in use now.
pub(super) fn former_label_sets(notifications: &[Notification]) -> impl Iterator<Item = (&Notification, Labels)> {
    let mut seen: BTreeSet<Labels> = notifications.iter().map(labels).collect();
    let all = notifications
        .iter()
        .flat_map(|notice| notice.body.former_labels.iter().map(move |former| (notice, as_labels(notice, former))));
    all.filter(move |(_, labels)| seen.insert(labels.clone()))
}

/// Returns the end of an alert or of its former label set. Alertmanager keeps an alert that ends in the future and rejects one that
/// ends before its start, so the end is limited to that range.
pub(super) fn ended_at(notice: &Notification, now: Timestamp) -> Timestamp {
    notice.body.ends_at.unwrap_or(notice.at).min(now).max(notice.body.starts_at)
}

/// Returns the labels with names that Prometheus allows, and the label `alert_id`.
pub(super) fn labels(notice: &Notification) -> Labels {
    as_labels(notice, &notice.body.labels)
}

fn as_labels(notice: &Notification, labels: &Labels) -> Labels {
    let mut labels: Labels = labels
        .iter()
        .map(|(name, value)| (label_name(name), text::line(value, MAX_LABEL_CHARS)))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .collect();
    labels.entry("alertname".into()).or_insert_with(|| text::line(&notice.body.rule, MAX_LABEL_CHARS));
    labels.insert("alert_id".into(), notice.alert.as_str().to_owned());
    labels
}

/// Replaces the characters that Prometheus does not allow in a label name.
fn label_name(name: &str) -> String {
    let name: String = name.chars().take(MAX_LABEL_CHARS).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Returns the annotations of the rule, and `headline`, `reason`, and, if they are stale, `prices`.
pub(super) fn annotations(brief: &Brief<'_>, notice: &Notification) -> BTreeMap<String, String> {
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
    if let Some(prices) = phrase::stale_prices_of(&notice.body) {
        annotations.entry("prices".into()).or_insert(prices);
    }
    annotations.insert("reason".into(), text::line(&notice.body.reason, MAX_LABEL_CHARS));
    annotations
}

fn own((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// Returns the entries that all maps have in common.
fn common<'a>(mut all: impl Iterator<Item = &'a BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut common = all.next().cloned().unwrap_or_default();
    for each in all {
        common.retain(|name, value| each.get(name) == Some(value));
    }
    common
}

pub(super) fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Computes the fingerprint of a label set like Prometheus: FNV-1a over sorted names and values, each followed by 0xFF.
fn fingerprint(labels: &Labels) -> u64 {
    let bytes = labels
        .iter()
        .flat_map(|(name, value)| name.bytes().chain(std::iter::once(0xff)).chain(value.bytes()).chain(std::iter::once(0xff)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use testkit::samples::{due, resolved, unlock};
    use testkit::time as at;

    /// An unlock with former severities.
    pub(in super::super) fn raised(severity: &str, before: &[&str]) -> Notification {
        let of = |severity: &str| {
            let mut labels = unlock().body.labels;
            labels.insert("severity".into(), severity.into());
            labels
        };
        let mut raised = unlock();
        raised.body.labels = of(severity);
        raised.body.former_labels = before.iter().map(|severity| of(severity)).collect();
        raised
    }

    #[test]
    fn fingerprint_matches_prometheus() {
        // The value is from the tests of prometheus/common.
        assert_eq!(fingerprint(&Labels::new()), 14_695_981_039_346_656_037);
    }

    #[test]
    fn former_label_sets_are_resolved() {
        let delivery = due(1, "am", vec![raised("critical", &["info", "warning"])]);
        let brief = Brief { delivery: &delivery, external_url: None, now: at("2026-03-09T13:00:05Z") };
        let body = body(&brief);
        let sent: Vec<_> = body.alerts.iter().map(|alert| (alert.labels["severity"].as_str(), alert.status.as_str())).collect();
        assert_eq!(sent, [("critical", "firing"), ("info", "resolved"), ("warning", "resolved")]);
        assert_eq!((body.status, body.truncated_alerts), (AlertStatus::Firing, 0));
    }

    #[test]
    fn labels_are_stable_per_alert_and_differ_between_alerts() {
        assert_eq!(labels(&unlock()), labels(&resolved()));
        let mut other = unlock();
        other.alert = "al_other".into();
        assert_ne!(labels(&unlock()), labels(&other));
        assert_eq!(label_name("9 lives-left"), "_9_lives_left");
        let delivery = due(1, "am", vec![unlock(), other]);
        let brief = Brief { delivery: &delivery, external_url: None, now: at("2026-03-09T13:00:05Z") };
        let body = body(&brief);
        assert!(!body.common_labels.contains_key("alert_id"));
        assert_eq!(body.common_labels.get("token").map(String::as_str), Some("arbitrum"));
    }
}
