//! PagerDuty: Events API v2. An incident is opened, told again and resolved under the alert's id as its `dedup_key`.
//!
//! Limits: a summary of 1,024 characters, a key of 255, 512 KB for the whole event.

use serde_json::{Map, Value, json};

use super::request::{RequestSubject, one_by_one};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, Tone};
use crate::text;
use model::{NotificationKind, config};

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
        let request = |subject: &RequestSubject<'_>| {
            let body = body(brief, subject, routing_key);
            Ok(WebhookRequest { key: subject.key(), path: path.clone(), ..WebhookRequest::json(&body)? })
        };
        one_by_one(brief).iter().map(request).collect()
    }
}

/// The event that tells `subject`.
fn body(brief: &Brief<'_>, subject: &RequestSubject<'_>, routing_key: &str) -> Value {
    let source = brief.link().unwrap_or_else(|| "cliffwatch".to_owned());
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": if subject.is_resolved() { "resolve" } else { "trigger" },
        "dedup_key": subject.key(),
        "client": "Cliffwatch",
    });
    let Some(fields) = event.as_object_mut() else { return event };
    if let Some(url) = brief.link() {
        fields.insert("client_url".into(), url.into());
    }
    let (notice, card) = match subject {
        RequestSubject::Alert(notice, card) => (notice, card),
        RequestSubject::Rest(line, _) => {
            let at = brief.notifications().first().map(|notice| notice.at);
            fields.insert("payload".into(), json!({"summary": line, "source": source, "severity": "info", "timestamp": at}));
            return event;
        }
    };
    let severity = match card.tone {
        Tone::Critical => "critical",
        Tone::Warning => "warning",
        Tone::Good | Tone::Info => "info",
    };
    let mut details = Map::new();
    if !card.summary.is_empty() {
        details.insert("summary".into(), card.summary.clone().into());
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
    details.insert("Why".into(), card.footer().into());
    let labels: Map<String, Value> =
        notice.body.labels.iter().take(30).map(|(name, value)| (text::line(name, 80), text::line(value, 300).into())).collect();
    details.insert("labels".into(), labels.into());
    let class = if notice.kind == NotificationKind::Test { "test".to_owned() } else { text::line(&notice.body.rule, 120) };
    let component = notice.body.token.as_ref().map_or_else(|| "cliffwatch".to_owned(), |token| text::line(&token.id, 120));
    fields.insert(
        "payload".into(),
        json!({
            "summary": text::line(&card.first_line, MAX_SUMMARY_CHARS),
            "source": source,
            "severity": severity,
            "timestamp": notice.at,
            "component": component,
            "class": class,
            "custom_details": details,
        }),
    );
    if let Some(runbook) = &card.runbook {
        fields.insert("links".into(), json!([{"href": runbook, "text": "Runbook"}]));
    }
    event
}
