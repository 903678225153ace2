//! Opsgenie: the Alert API. An alert is created, told again and closed under the alert's id as its `alias`.
//!
//! Limits: a message of 130 characters, a description of 15,000, twenty tags of 50, details of 8,000 in all, an entity of 512, a
//! note of 25,000. It takes requests at once and works on them later, so that its answer is 202.

use serde_json::{Map, Value, json};

use super::About;
use crate::notify::{
    card::{Brief, Share, Tone},
    text,
};

const MAX_MESSAGE_CHARS: usize = 130;
const MAX_DESCRIPTION_CHARS: usize = 12_000;
const MAX_TAG_CHARS: usize = 50;
const MAX_DETAILS_CHARS: usize = 7_000;

/// Shares shown of one unlock.
const MAX_SHARES: usize = 12;

const SOURCE: &str = "Cliffwatch";

/// Path segments behind that of all alerts.
pub(super) fn path(about: &About<'_>) -> Vec<String> {
    if about.is_resolved() { vec![about.key(), "close".to_owned()] } else { Vec::new() }
}

/// The request that tells `about`.
pub(super) fn body(brief: &Brief<'_>, about: &About<'_>) -> Value {
    let (notice, card) = match about {
        About::Alert(_, card) if about.is_resolved() => {
            return json!({"source": SOURCE, "user": SOURCE, "note": card.first_line});
        }
        About::Alert(notice, card) => (notice, card),
        About::Rest(line, id) => {
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
        "message": brief.line(notice, Share::Short, MAX_MESSAGE_CHARS),
        "alias": about.key(),
        "description": lines.join("\n").chars().take(MAX_DESCRIPTION_CHARS).collect::<String>(),
        "tags": ["cliffwatch", text::line(&notice.body.rule, MAX_TAG_CHARS)],
        "details": details,
        "entity": entity,
        "source": SOURCE,
        "user": SOURCE,
        "priority": priority,
    })
}
