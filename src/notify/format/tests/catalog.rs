//! The event catalog, `docs/event-catalog.md`: one real body of each message type and of each format.

use std::fmt::Write as _;

use super::*;
use crate::mail;
use crate::message::{strongest, test_delivery, webhook_body};
use model::{AlertStatus, Notification, NotificationKind};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/event-catalog.md");

const BEGINNING: &str = "# Event catalog

<!-- Written by a test from the code: `INSTA_UPDATE=always cargo test -p cliffwatch-notify --lib catalog`. -->

This page has a real body of each message type, and of each format. [Receivers and routes](receivers.md) explains how to configure them.
`cliffwatch schema webhook` prints the JSON Schema of the format `cliffwatch`.

The [event log](operation.md#events) is something else: it lists what happened, while this page is about messages to receivers.

## Message types

`type` of the body is the type of the most severe alert in the message; of equal ones, a new alert comes before a reminder and a resolution.
A receiver can choose types: `types = [\"alert.firing\", \"alert.resolved\"]`.

";

const AFTER_TYPES: &str = "
Requests of webhooks have these headers:

| Header | Value |
|---|---|
| `webhook-id` | The id of the message, the same in all attempts and in a [replay](operation.md#send-messages-again). Ignore an id that you have already processed. |
| `webhook-timestamp` | The time of the attempt, in seconds since 1970. |
| `webhook-signature` | The signatures of Standard Webhooks 1.0, if the receiver has a `secret`. |
| `cliffwatch-replay` | `true` if a user requested to send the message again. |

";

const GROUPS: &str = "## A group of firing and ended alerts

With `group_by`, a message contains all new notifications of a group, so one message can report that some alerts fire and that others ended.

- `type` is the type of the most severe alert that fires. Do not conclude from it that all alerts fire.
- `data.status` is `firing` as long as one alert of the message fires, else `resolved`.
- `status` of each alert in `data.alerts` says whether this alert fires. `endsAt` is null while it does. `reason` says why it is in the message.
- `data.groupKey` is the same in all messages of the group. Alerts that were sent before and still fire are not repeated.
- `data.truncatedAlerts` counts alerts that the message leaves out because of its size.

";

/// Returns when a message has this type.
fn meaning(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::Firing => "An alert started to fire.",
        NotificationKind::Reminder => {
            "An alert still fires, and reached the next lead time, a higher level, or the repeat interval."
        }
        NotificationKind::Resolved => "An alert ended. `reason` says how, such as `passed` or `cleared`.",
        NotificationKind::Event => "Something happened once, such as a change of a schedule or a burn. It never ends.",
        NotificationKind::Digest => "The digest of a receiver, at its time.",
        NotificationKind::Source => "A problem of the source, a receiver, or the daemon began or ended: see `status`.",
        NotificationKind::Test => "A test that a user requested. It is sent regardless of the types that the receiver chooses.",
    }
}

fn reminder() -> Notification {
    let mut reminder = unlock();
    reminder.kind = NotificationKind::Reminder;
    reminder.at = time("2026-03-15T13:00:00Z");
    reminder.body.reason = "lead 1d".into();
    (reminder.body.lead, reminder.body.days_until) = (Some("1d".into()), Some(1.0));
    reminder
}

fn sample(kind: NotificationKind) -> DueDelivery {
    let notification = match kind {
        NotificationKind::Firing => unlock(),
        NotificationKind::Reminder => reminder(),
        NotificationKind::Resolved => resolved(),
        NotificationKind::Event => moved(),
        NotificationKind::Digest => digest(),
        NotificationKind::Source => source_incident(),
        NotificationKind::Test => return test_delivery(&"ops".into(), time(NOW)),
    };
    due(1, "ops", vec![notification])
}

/// A group of one alert that fires and one that ended.
fn mixed_group() -> DueDelivery {
    let batch = Batch {
        shape: BatchKind::Group,
        group_key: Some("{}:{severity=\"warning\"}".into()),
        group_labels: [("severity".to_owned(), "warning".to_owned())].into(),
        ..Batch::default()
    };
    let firing = group(1).into_iter().chain([resolved()]).collect();
    DueDelivery { batch, ..due(2, "ops", firing) }
}

fn body(delivery: &DueDelivery) -> Value {
    let bytes = webhook_body(delivery, Some("https://cliffwatch.example.com")).expect("JSON").expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n\n", text.trim_end())
}

fn json_block(value: &Value) -> String {
    block("json", &serde_json::to_string_pretty(value).expect("JSON"))
}

/// The JSON pointer of each format to the first line that people see.
const FIRST_LINES: [(&str, &str); 19] = [
    ("alertmanager", "/alerts/0/annotations/summary"),
    ("alertmanager-api", "/0/annotations/summary"),
    ("slack", "/text"),
    ("discord", "/embeds/0/title"),
    ("telegram", "/text"),
    ("teams", "/attachments/0/content/fallbackText"),
    ("pagerduty", "/payload/summary"),
    ("opsgenie", "/message"),
    ("ntfy", "/title"),
    ("mattermost", "/attachments/0/title"),
    ("rocketchat", "/attachments/0/title"),
    ("googlechat", "/cardsV2/0/card/header/title"),
    ("matrix", "/body"),
    ("zulip", "/content"),
    ("gotify", "/title"),
    ("pushover", "/title"),
    ("twilio", "/Body"),
    ("apprise", "/title"),
    ("template", "/text"),
];

const FIRST_LINES_BEGINNING: &str = "## First lines

What a phone shows of each kind of message. Formats with the same line share a row; marks for bold text are left out.

";

/// Returns the first line of a text without marks for bold text.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    ["<b>", "</b>", "**"].iter().fold(line.to_owned(), |line, mark| line.replace(mark, "")).replace('|', "\\|")
}

/// Returns the first line of a message in each format that shows it, in the order of the formats.
async fn first_lines(delivery: &DueDelivery) -> Vec<(String, Vec<&'static str>)> {
    let mut lines: Vec<(String, Vec<&'static str>)> = Vec::new();
    let mut add = |line: String, format: &'static str| match lines.iter_mut().find(|(known, _)| *known == line) {
        Some((_, formats)) => formats.push(format),
        None => lines.push((line, vec![format])),
    };
    let brief = Brief { delivery, external_url: Some("https://cliffwatch.example.com"), now: time(NOW) };
    add(first_line(&mail::compose(&brief, None).expect("a mail").subject), "mail");
    for (format, pointer) in FIRST_LINES {
        let requests = sent(format, delivery).await;
        let bodies: Vec<Value> = requests.iter().map(body_of).collect();
        // Some requests have no text: the end of an incident, and an alert whose rule has no summary.
        if let Some(text) = bodies.iter().find_map(|body| body.pointer(pointer)?.as_str()) {
            add(first_line(text), format);
        }
    }
    lines
}

async fn first_lines_page() -> String {
    let mut page = FIRST_LINES_BEGINNING.to_owned();
    for (name, delivery) in cases().into_iter().filter(|(name, _)| !name.contains("hostile")) {
        let _ = write!(page, "### {}\n\n| First line | Formats |\n|---|---|\n", model::phrase::capitalized(name));
        for (line, formats) in first_lines(&delivery).await {
            let _ = writeln!(page, "| {line} | {} |", formats.join(", "));
        }
        page.push('\n');
    }
    page
}

async fn catalog() -> String {
    let mut page = BEGINNING.to_owned();
    page.push_str("| `type` | When |\n|---|---|\n");
    for kind in NotificationKind::ALL {
        let _ = writeln!(page, "| [`{kind}`](#{}) | {} |", kind.as_str().replace('.', ""), meaning(kind));
    }
    page.push_str(AFTER_TYPES);
    let signed: Vec<String> =
        FORMATS.iter().filter(|format| format.is_signed()).map(|format| format!("`{}`", format.name)).collect();
    let _ = write!(page, "Only formats that can be signed have the first three: {}.\n\n", signed.join(", "));
    for kind in NotificationKind::ALL {
        let _ = write!(page, "### {kind}\n\n{}", json_block(&body(&sample(kind))));
    }
    page.push_str(GROUPS);
    page.push_str(&json_block(&body(&mixed_group())));
    page.push_str(&first_lines_page().await);
    page.push_str("## Formats\n\nEach format with a message of the type `alert.firing`.\n\n");
    for format in FORMATS {
        let _ = write!(page, "### {}\n\n", format.name);
        for request in sent(format.name, &sample(NotificationKind::Firing)).await {
            let line = request.head.lines().next().unwrap_or_default();
            let headers = ["content-type", "webhook-id", "webhook-timestamp"];
            let headers = headers.into_iter().filter_map(|name| Some(format!("{name}: {}\n", request.header(name)?)));
            page.push_str(&block("text", &format!("{line}\n{}", headers.collect::<String>())));
            page.push_str(&json_block(&body_of(&request)));
        }
    }
    let delivery = sample(NotificationKind::Firing);
    let brief = Brief { delivery: &delivery, external_url: Some("https://cliffwatch.example.com"), now: time(NOW) };
    let mail = mail::compose(&brief, None).expect("a mail");
    page.push_str("### Mail\n\nThe text part of a receiver of type `email`:\n\n");
    page.push_str(&block("text", &format!("Subject: {}\n\n{}", mail.subject, mail.text)));
    page.push_str("### Programs\n\nA receiver of type `exec` gets the body of the format `cliffwatch` on standard input.\n");
    page
}

#[tokio::test]
async fn docs_have_the_event_catalog() {
    let expected = catalog().await;
    if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
        std::fs::write(PATH, &expected).expect("written");
        return;
    }
    let page = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(page == expected, "docs/event-catalog.md is not up to date: see its first lines");
}

#[test]
fn type_and_status_of_a_group_are_as_documented() {
    let delivery = mixed_group();
    let body = body(&delivery);
    assert_eq!((&body["type"], &body["data"]["status"]), (&"alert.firing".into(), &"firing".into()));
    let statuses: Vec<&Value> = body["data"]["alerts"].as_array().expect("alerts").iter().map(|alert| &alert["status"]).collect();
    assert_eq!(statuses, ["firing", "resolved"]);
    assert_eq!(strongest(&delivery.notifications).map(|strongest| strongest.body.status), Some(AlertStatus::Firing));
    let ended = DueDelivery { notifications: vec![resolved()], ..delivery };
    let body = super::catalog::body(&ended);
    assert_eq!((&body["type"], &body["data"]["status"]), (&"alert.resolved".into(), &"resolved".into()));
}

#[test]
fn sample_of_each_type_has_this_type() {
    for kind in NotificationKind::ALL {
        assert_eq!(body(&sample(kind))["type"], kind.as_str());
    }
}
