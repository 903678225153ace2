//! PagerDuty: Events API v2. An incident is opened, told again and resolved under one `dedup_key`: that of the group, else of the alert.
//!
//! Limits: a summary of 1,024 characters, a key of 255, 512 KB for the whole event.

use serde_json::{Map, Value, json};

use super::request::{PagerIncident, incidents};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle, Tone};
use crate::text;
use model::{NotificationKind, Timestamp, config};

const MAX_SUMMARY_CHARS: usize = 1_000;
const MAX_DETAIL_CHARS: usize = 1_000;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 12;

const ROUTING_KEY: FormatKey = FormatKey::secret("routing_key", "routing_key_file", FormatKeyValue::OwnSecret);

pub(super) const KEYS: &[FormatKey] = &[ROUTING_KEY.needed()];

#[derive(Debug)]
pub struct PagerDuty {
    routing_key: Credential,
}

impl FormatSettings for PagerDuty {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self { routing_key: ROUTING_KEY.credential(receiver) })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.routing_key.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let routing_key = given.credentials.need(&self.routing_key)?;
        let path = given.path_unless_given(&["v2", "enqueue"]);
        let request = |incident: &PagerIncident| {
            let body = body(incident, brief.now, routing_key);
            Ok(WebhookRequest { key: incident.key.clone(), path: path.clone(), ..WebhookRequest::json(&body)? })
        };
        incidents(brief, ShareStyle::Long, MAX_SUMMARY_CHARS).iter().map(request).collect()
    }
}

/// The event that tells an incident.
fn body(incident: &PagerIncident, now: Timestamp, routing_key: &str) -> Value {
    let first = &incident.first;
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": if incident.is_resolved { "resolve" } else { "trigger" },
        "dedup_key": incident.key,
        "client": "Cliffwatch",
    });
    let Some(fields) = event.as_object_mut() else { return event };
    if let Some(page) = &incident.page {
        fields.insert("client_url".into(), page.clone().into());
    }
    let severity = match incident.tone {
        Tone::Critical => "critical",
        Tone::Warning => "warning",
        Tone::Good | Tone::Info => "info",
    };
    let class = if first.kind == NotificationKind::Test { "test".to_owned() } else { text::line(&first.body.rule, 120) };
    let component = first.body.token.as_ref().map_or_else(|| "cliffwatch".to_owned(), |token| text::line(&token.id, 120));
    fields.insert(
        "payload".into(),
        json!({
            "summary": text::line(&incident.title, MAX_SUMMARY_CHARS),
            "source": "cliffwatch",
            "severity": severity,
            "timestamp": first.at.min(now),
            "component": component,
            "class": class,
            "custom_details": details(incident),
        }),
    );
    let links: Vec<Value> = match incident.cards.as_slice() {
        [card] => card.links().iter().map(|(words, url)| json!({"href": url, "text": words})).collect(),
        _ => incident.page.iter().map(|url| json!({"href": url, "text": "All alerts"})).collect(),
    };
    if !links.is_empty() {
        fields.insert("links".into(), links.into());
    }
    event
}

/// What an incident tells below its summary: all of one event, a line for each of several.
fn details(incident: &PagerIncident) -> Map<String, Value> {
    let mut details = Map::new();
    let [card] = incident.cards.as_slice() else {
        let lines: Vec<Value> =
            incident.cards.iter().map(|card| text::line(&card.list_line(), MAX_DETAIL_CHARS).into()).collect();
        if !lines.is_empty() {
            details.insert("Alerts".into(), lines.into());
        }
        if !incident.rest.is_empty() {
            details.insert("More".into(), incident.rest.clone().into());
        }
        return details;
    };
    if !card.summary.is_empty() {
        details.insert("summary".into(), card.summary.clone().into());
    }
    if !card.also.is_empty() {
        details.insert("Also".into(), card.also.join("; ").into());
    }
    if !card.description.is_empty() {
        details.insert("description".into(), card.description.clone().into());
    }
    for (name, value) in card.rows(MAX_SHARES) {
        let value = text::line(&value, MAX_DETAIL_CHARS);
        // What changed for an allocation and what it gets now stand under one name.
        let entry = details.entry(text::line(&name, 80)).or_insert_with(|| String::new().into());
        let told = entry.as_str().filter(|told| !told.is_empty()).map(|told| format!("{told}; {value}"));
        *entry = told.unwrap_or(value).into();
    }
    if !incident.rest.is_empty() {
        details.insert("More".into(), incident.rest.clone().into());
    }
    details.insert("Why".into(), card.footer().into());
    let labels = incident.first.body.labels.iter().take(30);
    let labels: Map<String, Value> = labels.map(|(name, value)| (text::line(name, 80), text::line(value, 300).into())).collect();
    details.insert("labels".into(), labels.into());
    details
}
