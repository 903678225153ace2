//! PagerDuty: Events API v2. An incident is opened, repeated, and resolved under one `dedup_key`, the key of the group, else of the
//! alert.
//!
//! Limits: 1,024 characters per summary, 255 per key, 512 KB per event.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::pager_incident::{PagerIncident, incidents};
use super::{FormatInput, FormatKey, FormatKeyValue, FormatSpec, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::card::{Brief, Severity, ShareStyle};
use crate::text;
use model::{NotificationKind, Timestamp};

const MAX_SUMMARY_CHARS: usize = 1_000;
const MAX_DETAIL_CHARS: usize = 1_000;

const MAX_SHARES: usize = 12;

const ROUTING_KEY: FormatKey = FormatKey::secret("routing_key", "routing_key_file", FormatKeyValue::OwnSecret);

/// 120 requests per minute and integration.
pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://events.pagerduty.com"),
    keys: &[ROUTING_KEY.needed()],
    pace: Some((60, Duration::from_millis(500))),
    ..FormatSpec::new("pagerduty", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    let routing_key = input.secret(ROUTING_KEY)?;
    let path = input.default_path(&["v2", "enqueue"]);
    let request = |incident: &PagerIncident| {
        let body = body(incident, brief.now, routing_key);
        Ok(WebhookRequest { key: incident.key.clone(), path: path.clone(), ..WebhookRequest::json(&body)? })
    };
    incidents(brief, ShareStyle::Long, MAX_SUMMARY_CHARS).iter().map(request).collect()
}

fn body(incident: &PagerIncident, now: Timestamp, routing_key: &str) -> Value {
    let first = &incident.first;
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": if incident.is_resolved { "resolve" } else { "trigger" },
        "dedup_key": incident.key,
        "client": "Cliffwatch",
    });
    if let Some(page) = &incident.page {
        event["client_url"] = page.clone().into();
    }
    let severity = match incident.severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Good | Severity::Info => "info",
    };
    let class = if first.kind == NotificationKind::Test { "test".to_owned() } else { text::line(&first.body.rule, 120) };
    let component = first.body.token.as_ref().map_or_else(|| "cliffwatch".to_owned(), |token| text::line(&token.id, 120));
    event["payload"] = json!({
        "summary": text::line(&incident.title, MAX_SUMMARY_CHARS),
        "source": "cliffwatch",
        "severity": severity,
        "timestamp": first.at.min(now),
        "component": component,
        "class": class,
        "custom_details": details(incident),
    });
    let links: Vec<Value> = match incident.cards.as_slice() {
        [card] => card.links().iter().map(|(words, url)| json!({"href": url, "text": words})).collect(),
        _ => incident.page.iter().map(|url| json!({"href": url, "text": "All alerts"})).collect(),
    };
    if !links.is_empty() {
        event["links"] = links.into();
    }
    event
}

/// Returns the custom details: all content of a single card, or one line per card.
fn details(incident: &PagerIncident) -> Map<String, Value> {
    let mut details = Map::new();
    let more = incident.rest.as_deref().map(|rest| ("More".to_owned(), rest.into()));
    let [card] = incident.cards.as_slice() else {
        let lines: Vec<Value> =
            incident.cards.iter().map(|card| text::line(&card.list_line(), MAX_DETAIL_CHARS).into()).collect();
        if !lines.is_empty() {
            details.insert("Alerts".into(), lines.into());
        }
        details.extend(more);
        return details;
    };
    if incident.title.ends_with('…') {
        details.insert("Headline".into(), card.first_line.clone().into());
    }
    if !card.summary.is_empty() {
        details.insert("summary".into(), card.summary.clone().into());
    }
    if !card.also.is_empty() {
        details.insert("Also".into(), card.also.join("; ").into());
    }
    if let Some(prices) = card.price_line() {
        details.insert("Prices".into(), prices.into());
    }
    if !card.description.is_empty() {
        details.insert("description".into(), card.description.clone().into());
    }
    for (name, value) in card.rows(MAX_SHARES) {
        let value = text::line(&value, MAX_DETAIL_CHARS);
        let name = text::line(&name, 80);
        // A change of an allocation and its share have the same label.
        let value = match details.get(&name).and_then(Value::as_str) {
            Some(earlier) => format!("{earlier}; {value}"),
            None => value,
        };
        details.insert(name, value.into());
    }
    details.extend(more);
    details.insert("Reason".into(), card.footer().into());
    let labels = incident.first.body.labels.iter().take(30);
    let labels: Map<String, Value> = labels.map(|(name, value)| (text::line(name, 80), text::line(value, 300).into())).collect();
    details.insert("labels".into(), labels.into());
    details
}
