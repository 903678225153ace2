use serde_json::json;

use super::*;
use model::Actor;

fn row(kind: EventType, (name, via): (&str, ActorSource), subject: &str, facts: Value) -> AuditRow {
    let at = chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time");
    AuditRow { no: 1, at, actor: Actor { name: name.into(), via }, kind, token: None, subject: subject.into(), facts }
}

fn sentence(row: &AuditRow) -> String {
    let line = AuditLine::of(row);
    format!("{} ({}) {} {} [{}] {}", line.author, line.via, line.verb, line.object, line.href.unwrap_or_default(), line.detail)
}

#[test]
fn action_is_a_sentence_with_its_author() {
    let acknowledged = json!({"alert": "al_1", "author": "ann", "comment": "known"});
    for (row, text) in [
        (
            row(EventType::AcknowledgementAdded, ("", ActorSource::Token), "al_1", acknowledged.clone()),
            "ann (shared token) acknowledged al_1 [/alerts/al_1] known",
        ),
        (
            row(EventType::AcknowledgementAdded, ("ann", ActorSource::Key), "al_1", acknowledged.clone()),
            "ann (access key) acknowledged al_1 [/alerts/al_1] known",
        ),
        (
            row(EventType::AcknowledgementAdded, ("bot", ActorSource::Key), "al_1", acknowledged),
            "bot as ann (access key) acknowledged al_1 [/alerts/al_1] known",
        ),
        (
            row(EventType::DeliveryRetried, ("bob", ActorSource::Proxy), "7", json!({"delivery": 7, "receiver": "ops"})),
            "bob (reverse proxy) retried the delivery 7 [/deliveries/7] to ops",
        ),
        (
            row(EventType::AccessKeyAdded, ("root", ActorSource::Command), "bot", json!({"subject": "bot", "detail": "act"})),
            "root (command) created the access key bot [] with the role act",
        ),
        (
            row(EventType::DigestStopped, ("a@example.com", ActorSource::Link), "desk", json!({"detail": "a@example.com"})),
            "a@example.com (link in a mail) stopped the digest of desk [/digests] a@example.com",
        ),
        (
            row(EventType::ReloadRequested, ("", ActorSource::Token), "", Value::Null),
            "unknown user (shared token) requested a reload  [] ",
        ),
    ] {
        assert_eq!(sentence(&row), text);
    }
}

#[test]
fn all_actions_have_words() {
    for kind in EventType::OF_USERS {
        let (noun, verb) = words(kind);
        assert!(noun != kind.as_str() && verb != kind.as_str(), "{kind}");
    }
}
