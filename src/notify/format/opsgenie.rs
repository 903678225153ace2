//! Opsgenie: the Alert API. An alert is created, told again and closed under the alert's id as its `alias`.
//!
//! Limits: a message of 130 characters, a description of 15,000, twenty tags of 50, details of 8,000 in all, an entity of 512, a
//! note of 25,000. It takes requests at once and works on them later, so that its answer is 202.

use serde_json::{Map, Value, json};

use super::request::{RequestSubject, one_by_one};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle, Tone};
use crate::text;
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
        let request = |subject: &RequestSubject<'_>| {
            let mut path = path_of_all.clone();
            path.extend(path_behind_all(subject));
            Ok(WebhookRequest {
                key: subject.key(),
                path,
                query: subject.is_resolved().then_some(("identifierType", "alias")),
                authorization: Some(authorization.clone()),
                ..WebhookRequest::json(&body(brief, subject))?
            })
        };
        one_by_one(brief).iter().map(request).collect()
    }
}

/// Path segments behind that of all alerts.
fn path_behind_all(subject: &RequestSubject<'_>) -> Vec<String> {
    if subject.is_resolved() { vec![subject.key(), "close".to_owned()] } else { Vec::new() }
}

/// The request that tells `subject`.
fn body(brief: &Brief<'_>, subject: &RequestSubject<'_>) -> Value {
    let (notice, card) = match subject {
        RequestSubject::Alert(_, card) if subject.is_resolved() => {
            return json!({"source": SOURCE, "user": SOURCE, "note": card.first_line});
        }
        RequestSubject::Alert(notice, card) => (notice, card),
        RequestSubject::Rest(line, id) => {
            let message = text::line(line, MAX_MESSAGE_CHARS);
            return json!({"message": message, "alias": id, "source": SOURCE, "priority": "P5"});
        }
    };
    let priority = match card.tone {
        Tone::Critical => "P1",
        Tone::Warning => "P3",
        Tone::Good | Tone::Info => "P5",
    };
    let mut lines = vec![card.first_line.clone()];
    lines.extend(card.lines(MAX_SHARES));
    lines.extend(brief.link());
    let mut room = MAX_DETAILS_CHARS;
    let mut details = Map::new();
    for (name, value) in &notice.body.labels {
        let (name, value) = (text::line(name, 80), text::line(value, 300));
        let needed = name.chars().count() + value.chars().count();
        if needed > room {
            break;
        }
        room -= needed;
        details.insert(name, value.into());
    }
    let entity = notice.body.token.as_ref().map_or_else(|| SOURCE.to_owned(), |token| text::line(&token.id, 200));
    json!({
        "message": brief.line(notice, ShareStyle::Short, MAX_MESSAGE_CHARS),
        "alias": subject.key(),
        "description": lines.join("\n").chars().take(MAX_DESCRIPTION_CHARS).collect::<String>(),
        "tags": ["cliffwatch", text::line(&notice.body.rule, MAX_TAG_CHARS)],
        "details": details,
        "entity": entity,
        "source": SOURCE,
        "user": SOURCE,
        "priority": priority,
    })
}
