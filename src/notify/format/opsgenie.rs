//! Opsgenie: the Alert API. An alert is created, repeated, and closed under one `alias`, the key of the group, else of the alert.
//!
//! Limits in characters: message 130, description 15,000, 20 tags of 50, all details 8,000, entity 512, note 25,000. Opsgenie
//! processes requests later, so a successful response has status 202.

use serde_json::{Map, Value, json};

use super::fit::fit_counted;
use super::marked::chars;
use super::pager_incident::{PagerIncident, incidents};
use super::{FormatInput, FormatKey, FormatKeyValue, FormatSpec, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::card::{Brief, Severity, ShareStyle, list_lines};
use crate::text;
use model::Labels;
use model::config::SecretText;

const MAX_MESSAGE_CHARS: usize = 130;
const MAX_DESCRIPTION_CHARS: usize = 12_000;
const MAX_TAG_CHARS: usize = 50;
const MAX_DETAILS_CHARS: usize = 7_000;

const MAX_SHARES: usize = 12;

const SOURCE: &str = "Cliffwatch";

const API_KEY: FormatKey = FormatKey::secret("api_key", "api_key_file", FormatKeyValue::OwnSecret);

pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://api.opsgenie.com"),
    keys: &[API_KEY.needed()],
    ..FormatSpec::new("opsgenie", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, input: &FormatInput<'_>) -> WrittenRequests {
    let authorization = SecretText::from(format!("GenieKey {}", input.secret(API_KEY)?));
    let path_of_all = input.default_path(&["v2", "alerts"]);
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

fn body(incident: &PagerIncident) -> Value {
    if incident.is_resolved {
        return json!({"source": SOURCE, "user": SOURCE, "note": incident.title});
    }
    let body = &incident.first.body;
    let priority = match incident.severity {
        Severity::Critical => "P1",
        Severity::Warning => "P3",
        Severity::Good | Severity::Info => "P5",
    };
    let lines: Vec<String> = match incident.cards.as_slice() {
        [card] => [vec![card.first_line.clone()], card.lines(MAX_SHARES)].concat(),
        cards => list_lines(cards, MAX_DESCRIPTION_CHARS).iter().map(|line| format!("• {line}")).collect(),
    };
    // Only the lines are cut to length, so that the count of omitted alerts and the link always remain.
    let more = [incident.rest.clone(), incident.page.clone().filter(|_| incident.cards.len() > 1)];
    let end: String = more.into_iter().flatten().map(|line| format!("\n{line}")).collect();
    let description = fit_counted(&lines, MAX_DESCRIPTION_CHARS.saturating_sub(chars(&end)), chars) + &end;
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

/// Returns the labels that fit.
fn details(labels: &Labels) -> Map<String, Value> {
    let mut room = MAX_DETAILS_CHARS;
    let mut details = Map::new();
    for (name, value) in labels {
        let (name, value) = (text::line(name, 80), text::line(value, 300));
        let needed = chars(&name) + chars(&value);
        if needed > room {
            break;
        }
        room -= needed;
        details.insert(name, value.into());
    }
    details
}
