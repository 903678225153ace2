//! Real bodies match the published JSON Schema, and invalid ones do not.

use std::process::Command;

use cliffwatch::model::alert::{Notification, NotificationKind};
use cliffwatch::model::{
    Change, ChangeKind, Digest, DigestAhead, DigestMaterial, DigestSelection, Fact, MemberBody, Resource, TokenBody, TokenId,
};
use cliffwatch::notify::{message, webhook_schema};
use serde_json::{Value, json};

use crate::receivers::outside::{self, due, now, parsed, resolved, unlock};

fn body(notifications: Vec<Notification>) -> Value {
    let delivery = due("msg_1", notifications);
    let bytes = message::webhook_body(&delivery, Some("https://cliffwatch.example.com")).expect("JSON").expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Validates bodies with the schema of one type, or of all types. Returns the errors of each.
fn problems(kind: Option<NotificationKind>, bodies: &[Value]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: String, value: &Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, value.to_string()).expect("written");
        path
    };
    let mut command = Command::new(outside::python());
    command.arg(outside::script("validate.py")).arg(write("schema.json".into(), &webhook_schema(kind)));
    command.args(bodies.iter().enumerate().map(|(at, body)| write(format!("{at}.json"), body)));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(parsed).collect()
}

/// One body of each type.
fn bodies() -> Vec<(NotificationKind, Value)> {
    let firing = unlock("aptos", 7);
    let reminder = Notification { kind: NotificationKind::Reminder, ..firing.clone() };
    let mut moved = Notification { kind: NotificationKind::Event, ..firing.clone() };
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("aptos"));
    (change.from, change.to, change.shift_days) = (Some(Fact::Time(now())), Some(Fact::Time(now())), Some(4.0));
    change.summary = "moved".into();
    moved.body.change = Some(change);
    let mut group = Notification { kind: NotificationKind::Reminder, ..firing.clone() };
    let token = TokenBody { id: "aptos".into(), name: "Aptos".into(), symbol: "APT".into() };
    group.body.members = vec![MemberBody { token, share: Some(40.0), amount: None, value: Some(5.0) }];
    (group.body.token, group.body.record, group.body.resource) = (None, None, None);
    let nothing = DigestMaterial {
        since: now(),
        at: now(),
        ahead: chrono::TimeDelta::days(7),
        unlocks: &DigestAhead::default(),
        tokens: &[],
        selection: DigestSelection::default(),
        changes: &[],
        statuses: &[],
        silences: &[],
        firing: 0,
        fires: &[],
        incidents: 0,
        incident_summaries: &[],
    };
    let receiver = "ops".into();
    let digest = Digest::of(&nothing).notification(&receiver, now());
    let source = Notification { kind: NotificationKind::Source, ..message::test_notification(&receiver, now()) };
    vec![
        (NotificationKind::Firing, body(vec![firing.clone(), group])),
        (NotificationKind::Reminder, body(vec![reminder])),
        (NotificationKind::Resolved, body(vec![resolved(&firing)])),
        (NotificationKind::Event, body(vec![moved])),
        (NotificationKind::Digest, body(vec![digest])),
        (NotificationKind::Source, body(vec![source])),
        (NotificationKind::Test, body(vec![message::test_notification(&receiver, now())])),
    ]
}

#[test]
fn bodies_of_all_types_match_the_schema() {
    if outside::lacks_python("jsonschema") {
        return;
    }
    let all: Vec<Value> = bodies().into_iter().map(|(_, body)| body).collect();
    assert_eq!(problems(None, &all), vec![json!([]); all.len()]);
    for (kind, body) in bodies() {
        assert_eq!(body["type"], kind.as_str());
        assert_eq!(problems(Some(kind), &[body]), [json!([])], "{kind}");
    }
    assert_eq!(bodies().len(), NotificationKind::ALL.len());
}

#[test]
fn invalid_bodies_do_not_match_the_schema() {
    if outside::lacks_python("jsonschema") {
        return;
    }
    let (_, good) = bodies().remove(0);
    let broken = |pointer: &str, value: Value| {
        let mut body = good.clone();
        *body.pointer_mut(pointer).expect("the pointer exists") = value;
        body
    };
    let bad = [
        broken("/type", json!("alert.unknown")),
        broken("/data/status", json!("pending")),
        broken("/data/alerts", json!([])),
        broken("/data/alerts/0/labels", json!(null)),
        broken("/data/alerts/0/startsAt", json!(5)),
        broken("/data/alerts/0/token", json!({"id": "aptos"})),
    ];
    assert!(problems(None, &bad).iter().all(|found| *found != json!([])));
    assert!(problems(Some(NotificationKind::Resolved), &[good]).iter().all(|found| *found != json!([])));
}
