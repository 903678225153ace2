//! The page of the actions of users.

use serde::Serialize;
use serde_json::Value;

use super::range::RangeView;
use super::template::segment;
use model::silence::UNKNOWN_AUTHOR;
use model::{ActorSource, AuditRow, EventType, Timestamp};

#[derive(Debug, Serialize)]
pub struct AuditPage {
    pub now: Timestamp,
    pub lines: Vec<AuditLine>,
    /// The number of all actions that match the filters.
    pub total: u64,
    /// The names to choose from.
    pub authors: Vec<String>,
    /// The selected name. Empty for all.
    pub author: String,
    /// The types to choose from, with their names.
    pub types: Vec<(&'static str, &'static str)>,
    /// The selected type. Empty for all.
    pub kind: String,
    pub range: RangeView,
    /// The path of the first page. `None` on it.
    pub first: Option<String>,
    /// The path of the page with older actions. `None` on the last page.
    pub next: Option<String>,
}

/// An action as a sentence: author, verb, and object.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    at: Timestamp,
    author: String,
    /// The way in which the author was identified.
    via: &'static str,
    verb: &'static str,
    object: String,
    /// The path of the object. `None` if it has no page.
    href: Option<String>,
    /// The reason that the author gave, or what else the action was about. Empty if there is nothing to add.
    detail: String,
}

impl AuditLine {
    pub fn of(row: &AuditRow) -> Self {
        let fact = |name: &str| row.facts.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        // Who acts with the shared token types a name.
        let typed = fact("author").filter(|typed| *typed != row.actor.name);
        let author = match (row.actor.name.as_str(), typed) {
            ("", Some(typed)) => typed.to_owned(),
            ("", None) => UNKNOWN_AUTHOR.to_owned(),
            (name, Some(typed)) => format!("{name} as {typed}"),
            (name, None) => name.to_owned(),
        };
        let detail = match row.kind {
            EventType::AlertAssigned => {
                fact("assignee").map_or_else(|| "to no one".to_owned(), |assignee| format!("to {assignee}"))
            }
            EventType::NoteAdded => fact("text").unwrap_or_default().to_owned(),
            EventType::ReplayRequested => match (fact("since"), fact("until")) {
                (Some(since), Some(until)) => format!("from {since} to {until}"),
                _ => String::new(),
            },
            EventType::DeliveryRetried | EventType::DeliveryDropped => {
                fact("receiver").map(|receiver| format!("to {receiver}")).unwrap_or_default()
            }
            EventType::AccessKeyAdded => fact("detail").map(|role| format!("with the role {role}")).unwrap_or_default(),
            _ => fact("comment").or_else(|| fact("detail")).unwrap_or_default().to_owned(),
        };
        Self {
            at: row.at,
            author,
            via: via(row.actor.via),
            verb: words(row.kind).1,
            object: row.subject.clone(),
            href: href(row),
            detail,
        }
    }
}

/// Returns how an author was identified, as text.
fn via(source: ActorSource) -> &'static str {
    match source {
        ActorSource::Token => "shared token",
        ActorSource::Key => "access key",
        ActorSource::Proxy => "reverse proxy",
        ActorSource::Command => "command",
        ActorSource::Link => "link in a mail",
    }
}

/// Returns the name of a type of actions, and what the author did with the object.
pub fn words(kind: EventType) -> (&'static str, &'static str) {
    match kind {
        EventType::AcknowledgementAdded => ("Acknowledgement", "acknowledged"),
        EventType::AcknowledgementRemoved => ("Acknowledgement withdrawn", "withdrew the acknowledgement of"),
        EventType::NoteAdded => ("Note", "added a note to"),
        EventType::AlertAssigned => ("Assignment", "assigned"),
        EventType::SilenceCreated => ("Silence created", "created the silence"),
        EventType::SilenceUpdated => ("Silence changed", "changed the silence"),
        EventType::SilenceExpired => ("Silence ended", "ended the silence"),
        EventType::DeliveryRetried => ("Delivery retried", "retried the delivery"),
        EventType::DeliveryDropped => ("Delivery dropped", "dropped the delivery"),
        EventType::ReplayRequested => ("Replay", "requested a replay to"),
        EventType::TestRequested => ("Test message", "requested a test message to"),
        EventType::ResponseAccepted => ("Held response accepted", "accepted the held response of"),
        EventType::DigestStopped => ("Digest stopped", "stopped the digest of"),
        EventType::DigestResumed => ("Digest resumed", "resumed the digest of"),
        EventType::RuleSaved => ("Rule saved", "saved the rule"),
        EventType::ReloadRequested => ("Reload", "requested a reload"),
        EventType::AccessKeyAdded => ("Access key created", "created the access key"),
        EventType::AccessKeyRevoked => ("Access key revoked", "revoked the access key"),
        other => (other.as_str(), other.as_str()),
    }
}

fn href(row: &AuditRow) -> Option<String> {
    let object = segment(&row.subject);
    match row.kind {
        EventType::AcknowledgementAdded | EventType::AcknowledgementRemoved | EventType::NoteAdded | EventType::AlertAssigned => {
            Some(format!("/alerts/{object}"))
        }
        EventType::SilenceCreated | EventType::SilenceUpdated | EventType::SilenceExpired => Some("/silences".to_owned()),
        EventType::DeliveryRetried | EventType::DeliveryDropped => Some(format!("/deliveries/{object}")),
        EventType::ResponseAccepted => Some(format!("/tokens/{object}")),
        EventType::ReplayRequested | EventType::TestRequested => Some(format!("/deliveries?receiver={object}")),
        EventType::DigestStopped | EventType::DigestResumed => Some("/digests".to_owned()),
        EventType::RuleSaved => Some("/rules".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
