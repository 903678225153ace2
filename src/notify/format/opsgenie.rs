//! Opsgenie: the Alert API. An alert is created, told again and closed under one `alias`: that of the
//! group, else of the alert.
//!
//! Limits: a message of 130 characters, a description of 15,000, twenty tags of 50, details of 8,000 in all, an entity of 512, a
//! note of 25,000. It takes requests at once and works on them later, so that its answer is 202.

use serde_json::{Map, Value, json};

use super::fit::fit_counted;
use super::request::{PagerIncident, incidents};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle, Tone};
use crate::text;
use model::Labels;
use model::config::{self, SecretText};

const MAX_MESSAGE_CHARS: usize = 130;
const MAX_DESCRIPTION_CHARS: usize = 12_000;
const MAX_TAG_CHARS: usize = 50;
const MAX_DETAILS_CHARS: usize = 7_000;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 12;

const SOURCE: &str = "Cliffwatch";

const API_KEY: FormatKey = FormatKey::secret("api_key", "api_key_file", FormatKeyValue::OwnSecret);

/// The key of the API integration.
pub(super) const KEYS: &[FormatKey] = &[API_KEY.needed()];

/// An API integration.
#[derive(Debug)]
pub struct Opsgenie {
    api_key: Credential,
}

impl FormatSettings for Opsgenie {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self { api_key: API_KEY.credential(receiver) })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.api_key.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let authorization = SecretText::from(format!("GenieKey {}", given.credentials.need(&self.api_key)?));
        let path_of_all = given.path_unless_given(&["v2", "alerts"]);
        let request = |incident: &PagerIncident| {
            let mut path = path_of_all.clone();
            if incident.is_resolved {
                path.extend([incident.key.clone(), "close".to_owned()]);
            }
            Ok(WebhookRequest {
                key: incident.key.clone(),
                path,
                query: incident.is_resolved.then_some(("identifierType", "alias")),
                authorization: Some(authorization.clone()),
                ..WebhookRequest::json(&body(incident))?
            })
        };
        incidents(brief, ShareStyle::Short, MAX_MESSAGE_CHARS).iter().map(request).collect()
    }
}

/// The request that tells an incident.
fn body(incident: &PagerIncident) -> Value {
    if incident.is_resolved {
        return json!({"source": SOURCE, "user": SOURCE, "note": incident.title});
    }
    let body = &incident.first.body;
    let priority = match incident.tone {
        Tone::Critical => "P1",
        Tone::Warning => "P3",
        Tone::Good | Tone::Info => "P5",
    };
    let lines: Vec<String> = match incident.cards.as_slice() {
        [card] => [vec![card.first_line.clone()], card.lines(MAX_SHARES)].concat(),
        cards => cards.iter().map(|card| format!("• {}", card.list_line())).collect(),
    };
    // What stands at the end is never cut off.
    let more =
        [Some(incident.rest.clone()).filter(|rest| !rest.is_empty()), incident.page.clone().filter(|_| incident.cards.len() > 1)];
    let end: String = more.into_iter().flatten().map(|line| format!("\n{line}")).collect();
    let description =
        fit_counted(&lines, MAX_DESCRIPTION_CHARS.saturating_sub(end.chars().count()), |text| text.chars().count()) + &end;
    let entity = body.token.as_ref().map_or_else(|| SOURCE.to_owned(), |token| text::line(&token.id, 200));
    json!({
        "message": text::line(&incident.title, MAX_MESSAGE_CHARS),
        "alias": incident.key,
        "description": description,
        "tags": ["cliffwatch", text::line(&body.rule, MAX_TAG_CHARS)],
        "details": details(&body.labels),
        "entity": entity,
        "source": SOURCE,
        "user": SOURCE,
        "priority": priority,
    })
}

/// The labels, as far as there is room.
fn details(labels: &Labels) -> Map<String, Value> {
    let mut room = MAX_DETAILS_CHARS;
    let mut details = Map::new();
    for (name, value) in labels {
        let (name, value) = (text::line(name, 80), text::line(value, 300));
        let needed = name.chars().count() + value.chars().count();
        if needed > room {
            break;
        }
        room -= needed;
        details.insert(name, value.into());
    }
    details
}
