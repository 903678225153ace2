//! The messages of daemon and simulation in a comparable form.

use std::collections::BTreeMap;

use cliffwatch::{
    model::{
        alert::{AlertBody, Notification},
        supply::Timestamp,
    },
    tools::simulate::Sent,
};
use serde_json::Value;

use crate::it::support::TestApp;

/// A message of either side, in a comparable form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    at: i64,
    receiver: String,
    /// The batch, as JSON.
    batch: String,
    /// The contained notifications: role, id, time of the decision in milliseconds, and body as JSON.
    reports: Vec<(String, String, i64, String)>,
}

pub fn simulated(sent: Vec<Sent>) -> Vec<Message> {
    let notify = |role: &str, notification: &Notification| {
        let body = canonical(&serde_json::to_value(&notification.body).expect("JSON"));
        (role.to_owned(), notification.id.to_string(), notification.at.timestamp_millis(), body)
    };
    sent.into_iter()
        .map(|sent| {
            let reports = sent.notified.iter().map(|notified| notify("notified", notified));
            let reports = reports.chain(sent.counted.iter().map(|notified| notify("counted", notified)));
            Message {
                at: sent.at.timestamp_millis(),
                receiver: sent.receiver.to_string(),
                batch: canonical(&serde_json::to_value(&sent.batch).expect("JSON")),
                reports: reports.chain(sent.merged.iter().map(|notified| notify("merged", notified))).collect(),
            }
        })
        .collect()
}

impl Message {
    fn line(&self) -> String {
        let reports = self.reports.iter().map(|(role, _, _, body)| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            format!("{role} {} {} {}", body["rule"], body["reason"], body["annotations"]["summary"])
        });
        let batch: Value = serde_json::from_str(&self.batch).expect("JSON");
        let at = Timestamp::from_timestamp_millis(self.at).expect("a time").format("%d %H:%M:%S");
        let reports: Vec<String> = reports.collect();
        format!("{at} {} {} {}: {}", self.receiver, batch["shape"], batch["toldBefore"], reports.join("; "))
    }
}

/// Describes the messages that only one side sent. If the descriptions are equal, shows the first difference in detail.
pub fn difference(live: &[Message], again: &[Message]) -> String {
    let only = |of: &[Message], other: &[Message]| of.iter().filter(|made| !other.contains(made)).cloned().collect::<Vec<_>>();
    let (live, again) = (only(live, again), only(again, live));
    let lines = |of: &[Message]| of.iter().take(6).map(Message::line).collect::<Vec<_>>();
    let (live_lines, again_lines) = (lines(&live), lines(&again));
    let mut text = format!("only the daemon: {live_lines:#?}\nonly the simulation: {again_lines:#?}");
    if live_lines == again_lines
        && let (Some(live), Some(again)) = (live.first(), again.first())
    {
        let (live, again) = (format!("{live:?}"), format!("{again:?}"));
        let at = live.bytes().zip(again.bytes()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| text.chars().skip(at.saturating_sub(150)).take(300).collect::<String>();
        text.push_str(&format!("\nthe details: {}\nand: {}", around(&live), around(&again)));
    }
    text
}

/// JSON text with sorted keys.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let ordered: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
                ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect::<serde_json::Map<_, _>>().into()
            }
            Value::Array(list) => list.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

/// The messages in the daemon's database, and its undelivered notifications: id, receiver, and state.
pub async fn recorded(app: &TestApp) -> (Vec<Message>, Vec<(String, String, String)>) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| value.as_i64().expect("a number");
    let json = |value: &Value| canonical(&serde_json::from_str(value.as_str().expect("a text")).expect("JSON"));
    let nothing = Value::from(serde_json::to_string(&cliffwatch::model::rows::Batch::default()).expect("JSON"));
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    for row in app.rows("SELECT DISTINCT alert FROM notification") {
        let [alert] = row.as_slice() else { panic!("{row:?}") };
        let notified = app.app().store().notifications_of(text(alert).as_str().into()).await.expect("read");
        let body = |body: &AlertBody| canonical(&serde_json::to_value(body).expect("JSON"));
        bodies.extend(notified.iter().map(|notified| (notified.id.as_str().to_owned(), body(&notified.body))));
    }
    let mut reports: BTreeMap<i64, Vec<(String, String, i64, String)>> = BTreeMap::new();
    for row in app.rows(
        "SELECT d.delivery_no, d.role, n.id, n.at FROM delivery_notification d JOIN notification n ON n.id = d.notification
         ORDER BY d.delivery_no, d.ordinal",
    ) {
        let [delivery, role, id, at] = row.as_slice() else { panic!("{row:?}") };
        let body = bodies.get(&text(id)).expect("the body of a notification").clone();
        reports.entry(number(delivery)).or_default().push((text(role), text(id), number(at), body));
    }
    let made = app.rows("SELECT no, created_at, receiver, batch FROM delivery ORDER BY no").into_iter().map(|row| {
        let [no, at, receiver, batch] = row.as_slice() else { panic!("{row:?}") };
        let batch = if batch.is_null() { &nothing } else { batch };
        Message {
            at: number(at),
            receiver: text(receiver),
            batch: json(batch),
            reports: reports.remove(&number(no)).unwrap_or_default(),
        }
    });
    let made = made.collect();
    let undelivered = app.rows("SELECT notification, receiver, state FROM pending_notification").into_iter().map(|row| {
        let [notification, receiver, state] = row.as_slice() else { panic!("{row:?}") };
        (text(notification), text(receiver), text(state))
    });
    (made, undelivered.collect())
}
