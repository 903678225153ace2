//! The requests for each service, as goldens and against its limits, and the outcomes of its responses.

use std::fmt::Write as _;

use serde_json::Value;

mod catalog;
mod outcomes;
mod prices;

use super::{fit::utf16, *};
use crate::webhook::WebhookReceiver;
use crate::webhook::tests::{Seen, ok, server};
use model::{Batch, BatchKind, DueDelivery, config};
use testkit::samples::{delivery_config, digest, due, group, hostile, moved, resolved, several_rules, source_incident, unlock};
use testkit::time;

const NOW: &str = "2026-03-09T13:00:05Z";

fn spec(name: &str) -> &'static FormatSpec {
    FormatSpec::named(name).expect("a format")
}

/// A receiver of `format` at `url` with all required keys.
fn receiver(format: &str, url: &str) -> config::ReceiverSettings {
    let keys: &[(&str, &str)] = match format {
        "telegram" => &[("token", "123456:AAbbCCddEEff"), ("chat_id", "-1001234567890"), ("thread_id", "7")],
        "pagerduty" => &[("routing_key", "0123456789abcdef0123456789abcdef")],
        "opsgenie" => &[("api_key", "eb243592-faa2-4ba2-a551q-1afdf565c889")],
        "ntfy" => &[("topic", "unlocks-7f3a"), ("token", "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2")],
        "matrix" => &[("room", "!unlocks:example.org"), ("token", "syt_Y2xpZmZ3YXRjaA_x")],
        "zulip" => &[
            ("bot_email", "cliffwatch-bot@example.com"),
            ("api_key", "abcdefghijklmnopqrstuvwxyz012345"),
            ("channel", "unlocks"),
        ],
        "gotify" => &[("token", "AwKvPDtS0Zf1QdU")],
        "pushover" => &[("token", "azGDORePK8gMaC0QOYAMyEEuzJnyUi"), ("user_key", "uQiRzpo4DXghDmr9QzzfQu27cmVRsG")],
        "twilio" => &[
            ("account_sid", "AC0123456789abcdef0123456789abcdef"),
            ("auth_token", "fedcba9876543210fedcba9876543210"),
            ("from_number", "+15005550006"),
            ("to_number", "+15005550009"),
        ],
        "apprise" => &[("tag", "desk")],
        "template" => &[("template", "{\"text\": {{ title }}, \"link\": {{ externalURL }}, \"color\": {{ color }}}\n")],
        _ => &[],
    };
    config::ReceiverSettings {
        name: "ops".into(),
        format: Some(format.into()),
        url: Some(url.to_owned().into()),
        format_keys: keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned().into())).collect(),
        ..Default::default()
    }
}

async fn sent(format: &str, delivery: &DueDelivery) -> Vec<Seen> {
    let (url, seen) = server(Some(&ok("200 OK", "", "{\"ok\":true,\"status\":1,\"result\":\"success\"}"))).await;
    let mut problems = Vec::new();
    let config = receiver(format, &url);
    let external_url = Some("https://cliffwatch.example.com");
    let webhook = WebhookReceiver::build(&config, &delivery_config(), external_url, &mut problems);
    let result = webhook.unwrap_or_else(|| panic!("{problems:?}")).send(delivery, time(NOW)).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{format}: {}", result.text);
    seen.lock().expect("a lock").clone()
}

/// One delivery of each kind.
fn cases() -> Vec<(&'static str, DueDelivery)> {
    let batch = Batch {
        severity: Default::default(),
        shape: BatchKind::Group,
        group_key: Some("{}:{severity=\"warning\"}".into()),
        group_labels: [("severity".to_owned(), "warning".to_owned())].into(),
        notified_before: 3,
        truncated: 12,
        is_welcome: false,
        note: None,
    };
    let welcome = Batch {
        shape: BatchKind::Batch,
        truncated: 83,
        note: Some("replaced by the welcome note".into()),
        is_welcome: true,
        ..Batch::default()
    };
    let nasty = Batch { note: Some(format!("412 alerts {}", testkit::samples::HOSTILE)), truncated: 1, ..Batch::default() };
    vec![
        ("a single alert", due(1, "ops", vec![unlock()])),
        ("a change", due(2, "ops", vec![moved()])),
        ("a resolution", due(3, "ops", vec![resolved()])),
        ("a group of 40", DueDelivery { batch, ..due(4, "ops", group(40)) }),
        ("several rules about one event", due(9, "ops", several_rules())),
        ("a welcome", DueDelivery { batch: welcome, ..due(10, "ops", group(40)) }),
        ("a digest", due(5, "ops", vec![digest()])),
        ("source trouble", due(6, "ops", vec![source_incident()])),
        ("a hostile source", due(7, "ops", vec![hostile()])),
        ("a hostile group", DueDelivery { batch: nasty, ..due(8, "ops", vec![hostile(), unlock()]) }),
    ]
}

/// Returns the body of a request as JSON. A form becomes an object of strings.
fn body_of(request: &Seen) -> Value {
    if request.header("content-type").is_some_and(|kind| kind.contains("form-urlencoded")) {
        let fields = url::form_urlencoded::parse(&request.body).into_owned();
        return Value::Object(fields.map(|(name, value)| (name, value.into())).collect());
    }
    serde_json::from_slice(&request.body).expect("JSON")
}

/// Formats requests for a golden: first line, important headers, and the body as JSON. Of more than three requests, only the first and
/// last.
fn page(requests: &[Seen]) -> String {
    let mut page = String::new();
    for (at, request) in requests.iter().enumerate() {
        if requests.len() > 3 && at > 0 && at + 1 < requests.len() {
            if at == 1 {
                let _ = writeln!(page, "… {} more requests …\n", requests.len() - 2);
            }
            continue;
        }
        let _ = writeln!(page, "{}", request.head.lines().next().unwrap_or_default());
        for name in ["authorization", "content-type", "webhook-id", "webhook-timestamp"] {
            if let Some(value) = request.header(name) {
                let _ = writeln!(page, "{name}: {value}");
            }
        }
        let value = body_of(request);
        let _ = writeln!(page, "\n{}\n", serde_json::to_string_pretty(&shortened(value)).expect("JSON"));
    }
    page
}

/// Shortens long strings to their beginning and length.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 600 => {
            let head: String = text.chars().take(400).collect();
            Value::from(format!("{head}… ({} characters)", text.chars().count()))
        }
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(name, value)| (name, shortened(value))).collect()),
        other => other,
    }
}

/// Returns all strings of a JSON value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

async fn golden(format: &str) -> Vec<(&'static str, Vec<Value>)> {
    let mut bodies = Vec::new();
    let mut pages = String::new();
    for (name, delivery) in cases() {
        let requests = sent(format, &delivery).await;
        let _ = write!(pages, "=== {name} ===\n{}", page(&requests));
        let parsed = requests.iter().map(body_of);
        bodies.push((name, parsed.collect()));
    }
    let words = pages.trim_end().to_owned();
    insta::assert_snapshot!(format, words);
    bodies
}

/// Checks that no text contains control characters, hidden characters, or script links.
fn assert_harmless(value: &Value) {
    for text in texts(value) {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "a control character in {text:?}");
        assert!(!text.contains(['\u{202E}', '\u{200B}']), "a hidden mark in {text:?}");
        assert!(!text.contains("javascript:"), "a script link in {text:?}");
    }
}

#[tokio::test]
async fn slack_blocks_are_within_limits_and_mention_no_one() {
    for (name, bodies) in golden("slack").await {
        let body = &bodies[0];
        assert_harmless(body);
        let blocks = body["blocks"].as_array().expect("blocks");
        assert!(blocks.len() <= 50, "{name}: {} blocks", blocks.len());
        assert!(body.to_string().len() < 60_000, "{name}");
        for block in blocks {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            let most = if block["type"] == "header" { 150 } else { 3_000 };
            assert!(text.chars().count() <= most, "{name}: {text}");
            for field in block["fields"].as_array().into_iter().flatten() {
                assert!(field["text"].as_str().is_some_and(|text| text.chars().count() <= 2_000), "{name}");
            }
        }
        for text in texts(body) {
            // Every link is known, and its text contains no markup.
            let mut rest = text.as_str();
            while let Some((before, link)) = rest.split_once('<') {
                let (link, after) = link.split_once('>').expect("a link ends");
                let (url, words) = link.split_once('|').expect("a link has words");
                let is_known =
                    ["https://cliffwatch.example.com/", "https://wiki.example.com/"].iter().any(|own| url.starts_with(own));
                assert!(is_known && !words.contains('<') && !before.contains('>'), "{name}: {text}");
                rest = after;
            }
            assert!(!rest.contains('>'), "{name}: {text}");
        }
    }
}

#[tokio::test]
async fn discord_embed_is_within_limits_and_mentions_no_one() {
    for (name, bodies) in golden("discord").await {
        let body = &bodies[0];
        assert_harmless(body);
        assert_eq!(body["allowed_mentions"]["parse"], serde_json::json!([]));
        let embed = &body["embeds"][0];
        assert!(embed["title"].as_str().is_some_and(|text| !text.is_empty() && utf16(text) <= 256), "{name}");
        let all: usize = texts(embed).iter().map(|text| utf16(text)).sum();
        assert!(all <= 6_000, "{name}: {all}");
        assert!(embed["description"].as_str().is_some_and(|text| utf16(text) <= 4_096), "{name}");
        let fields = embed["fields"].as_array().expect("fields");
        assert!(fields.len() <= 25, "{name}");
        for field in fields {
            let (name, value) = (field["name"].as_str().expect("a name"), field["value"].as_str().expect("a value"));
            assert!(!name.is_empty() && utf16(name) <= 256 && !value.is_empty() && utf16(value) <= 1_024);
        }
    }
}

#[tokio::test]
async fn telegram_text_is_within_limits_and_has_only_known_tags() {
    for (name, bodies) in golden("telegram").await {
        let text = bodies[0]["text"].as_str().expect("a text");
        assert_harmless(&bodies[0]);
        assert!(utf16(text) <= 4_096, "{name}: {}", utf16(text));
        let tags: Vec<&str> = text.split('<').skip(1).map(|rest| rest.split(['>', ' ']).next().unwrap_or_default()).collect();
        assert!(tags.iter().all(|tag| ["b", "/b", "i", "/i", "a", "/a"].contains(tag)), "{name}: {tags:?}");
        for tag in ["b", "i", "a"] {
            let count = |tag: &str| tags.iter().filter(|each| **each == tag).count();
            assert_eq!(count(tag), count(&format!("/{tag}")), "{name}: {text}");
        }
    }
}

#[tokio::test]
async fn teams_card_is_within_limits() {
    for (name, bodies) in golden("teams").await {
        assert_harmless(&bodies[0]);
        let size = serde_json::to_vec(&bodies[0]).expect("JSON").len();
        assert!(size <= 28 * 1024, "{name}: {size}");
        assert_eq!(bodies[0]["attachments"][0]["content"]["type"], "AdaptiveCard");
    }
    // Alerts that do not fit are counted.
    let long = |mut notice: model::alert::Notification| {
        notice.body.when = Some("😀".repeat(300));
        notice
    };
    let many: Vec<_> = group(40).into_iter().map(long).collect();
    let requests = sent("teams", &due(9, "ops", many)).await;
    assert!(requests[0].body.len() <= 28 * 1024, "{}", requests[0].body.len());
    assert!(String::from_utf8_lossy(&requests[0].body).contains("more alerts not shown"));
}

#[tokio::test]
async fn pagerduty_opens_and_resolves_under_the_same_key() {
    let all = golden("pagerduty").await;
    for (name, bodies) in &all {
        for body in bodies {
            assert_harmless(body);
            assert!(serde_json::to_vec(body).expect("JSON").len() < 512 * 1024, "{name}");
            assert!(body["payload"]["summary"].as_str().is_some_and(|text| text.chars().count() <= 1_024), "{name}");
            assert!(body["dedup_key"].as_str().is_some_and(|key| !key.is_empty() && key.len() <= 255));
        }
    }
    let of = |name: &str| &all.iter().find(|(case, _)| *case == name).expect("the case").1;
    assert_eq!(of("a single alert")[0]["event_action"], "trigger");
    assert_eq!(of("a resolution")[0]["event_action"], "resolve");
    assert_eq!(of("a single alert")[0]["dedup_key"], of("a resolution")[0]["dedup_key"]);
    // A group is one incident.
    assert_eq!(of("a group of 40").len(), 1);
    assert_eq!(of("a group of 40")[0]["payload"]["custom_details"]["Alerts"].as_array().map(Vec::len), Some(40));
}

#[tokio::test]
async fn opsgenie_requests_are_within_limits() {
    for (name, bodies) in golden("opsgenie").await {
        for body in bodies {
            assert_harmless(&body);
            if body.get("note").is_some() {
                continue;
            }
            assert!(body["message"].as_str().is_some_and(|text| text.chars().count() <= 130), "{name}");
            assert!(body["description"].as_str().is_none_or(|text| text.chars().count() <= 15_000), "{name}");
            assert!(texts(&body["tags"]).iter().all(|tag| tag.chars().count() <= 50), "{name}");
            let details: usize = texts(&body["details"]).iter().map(|text| text.chars().count()).sum();
            assert!(details <= 8_000, "{name}");
        }
    }
}

#[tokio::test]
async fn ntfy_message_is_within_limits() {
    for (name, bodies) in golden("ntfy").await {
        assert_harmless(&bodies[0]);
        assert!(bodies[0]["message"].as_str().is_some_and(|text| !text.is_empty() && text.len() <= 4_096), "{name}");
        assert!(bodies[0]["title"].as_str().is_some_and(|text| text.len() <= 256), "{name}");
    }
}

#[tokio::test]
async fn alertmanager_label_names_are_valid() {
    for format in ["alertmanager", "alertmanager-api"] {
        for (name, bodies) in golden(format).await {
            let alerts = bodies[0].as_array().or_else(|| bodies[0]["alerts"].as_array()).expect("alerts").clone();
            for alert in alerts {
                assert_harmless(&alert);
                for label in alert["labels"].as_object().expect("labels").keys() {
                    assert!(label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}: {label}");
                }
            }
        }
    }
}

/// Checks that a text has only allowed HTML tags, and that each is closed.
fn assert_tags(name: &str, text: &str, allowed: &[&str]) {
    let tags: Vec<&str> = text.split('<').skip(1).map(|rest| rest.split(['>', ' ']).next().unwrap_or_default()).collect();
    assert!(tags.iter().all(|tag| allowed.contains(&tag.trim_start_matches('/')) || *tag == "br"), "{name}: {tags:?}");
    for tag in allowed {
        let count = |tag: &str| tags.iter().filter(|each| **each == tag).count();
        assert_eq!(count(tag), count(&format!("/{tag}")), "{name}: {text}");
    }
}

#[tokio::test]
async fn mattermost_post_is_within_limits_and_mentions_no_one() {
    for (name, bodies) in golden("mattermost").await {
        assert_harmless(&bodies[0]);
        let all: usize = texts(&bodies[0]["attachments"]).iter().map(|text| text.chars().count()).sum();
        assert!(all <= 16_383, "{name}: {all}");
        assert!(texts(&bodies[0]).iter().all(|text| !text.contains('@')), "{name}");
        assert!(bodies[0]["attachments"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
    }
}

#[tokio::test]
async fn rocketchat_text_is_within_limits_and_mentions_no_one() {
    for (name, bodies) in golden("rocketchat").await {
        assert_harmless(&bodies[0]);
        let attachment = &bodies[0]["attachments"][0];
        let text = attachment["text"].as_str().expect("a text");
        assert!(text.chars().count() <= 5_000 && !text.contains(['@', '#', '`', '<']), "{name}: {text}");
    }
}

#[tokio::test]
async fn googlechat_card_is_within_limits() {
    for (name, bodies) in golden("googlechat").await {
        assert_harmless(&bodies[0]);
        let size = serde_json::to_vec(&bodies[0]).expect("JSON").len();
        assert!(size <= 32_000, "{name}: {size}");
        let text =
            bodies[0]["cardsV2"][0]["card"]["sections"][0]["widgets"][0]["textParagraph"]["text"].as_str().expect("a text");
        assert_tags(name, text, &["b"]);
    }
}

#[tokio::test]
async fn matrix_event_is_within_limits_mentions_no_one_and_keeps_its_id() {
    for (name, bodies) in golden("matrix").await {
        assert_harmless(&bodies[0]);
        assert!(serde_json::to_vec(&bodies[0]).expect("JSON").len() <= 60_000, "{name}");
        assert_eq!(bodies[0]["m.mentions"], serde_json::json!({}));
        assert_tags(name, bodies[0]["formatted_body"].as_str().expect("a text"), &["strong", "a"]);
    }
    let delivery = due(1, "ops", vec![unlock()]);
    let (once, again) = (sent("matrix", &delivery).await, sent("matrix", &delivery).await);
    let line = |seen: &[Seen]| seen[0].head.lines().next().unwrap_or_default().to_owned();
    assert_eq!(line(&once), line(&again), "the homeserver drops a repeated request");
    assert!(line(&once).starts_with("PUT /_matrix/client/v3/rooms/!unlocks:example.org/send/m.room.message/"), "{}", line(&once));
    let by_name = config::ReceiverSettings {
        format_keys: [("room", "#unlocks:example.org"), ("token", "x")]
            .map(|(key, value)| (key.to_owned(), value.to_owned().into()))
            .into(),
        ..receiver("matrix", "https://matrix.example.org")
    };
    assert!(spec("matrix").read(&by_name).is_err(), "a room alias is not a room id");
}

#[tokio::test]
async fn zulip_message_is_within_limits_and_mentions_no_one() {
    for (name, bodies) in golden("zulip").await {
        assert_harmless(&bodies[0]);
        let text = bodies[0]["content"].as_str().expect("a text");
        assert!(text.chars().count() <= 10_000 && !text.contains(['@', '#', '`']), "{name}: {text}");
        assert!(bodies[0]["topic"].as_str().is_some_and(|topic| topic.chars().count() <= 60), "{name}");
    }
}

#[tokio::test]
async fn gotify_pushover_and_twilio_messages_are_within_limits() {
    for (name, bodies) in golden("gotify").await {
        assert_harmless(&bodies[0]);
        assert!(bodies[0]["priority"].as_u64().is_some_and(|priority| priority <= 10), "{name}");
        assert!(bodies[0]["message"].as_str().is_some_and(|text| !text.is_empty() && text.chars().count() <= 4_500), "{name}");
    }
    for (name, bodies) in golden("pushover").await {
        assert_harmless(&bodies[0]);
        assert!(bodies[0]["message"].as_str().is_some_and(|text| !text.is_empty() && text.chars().count() <= 1_024), "{name}");
        assert!(bodies[0]["title"].as_str().is_some_and(|text| text.chars().count() <= 250), "{name}");
    }
    for (name, bodies) in golden("twilio").await {
        assert_harmless(&bodies[0]);
        let text = bodies[0]["Body"].as_str().expect("a text");
        assert!(!text.is_empty() && text.chars().count() <= 400, "{name}: {text}");
    }
}

#[tokio::test]
async fn apprise_message_has_a_known_type() {
    for (name, bodies) in golden("apprise").await {
        assert_harmless(&bodies[0]);
        assert!(["info", "success", "warning", "failure"].map(Value::from).contains(&bodies[0]["type"]), "{name}");
        assert_eq!((&bodies[0]["format"], &bodies[0]["tag"]), (&"text".into(), &"desk".into()));
    }
}

#[tokio::test]
async fn template_renders_the_body() {
    golden("template").await;
}

#[tokio::test]
async fn first_line_of_every_message_has_token_value_share_and_date() {
    let headline = "ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026, 13:00 UTC";
    let delivery = due(1, "ops", vec![unlock()]);
    for format in FORMAT_NAMES {
        if format == DEFAULT_FORMAT.name {
            continue;
        }
        let value = body_of(&sent(format, &delivery).await[0]);
        let short = headline.replace(" of market cap", "");
        let found = texts(&value).iter().any(|text| {
            let first = text.lines().next().unwrap_or_default();
            let marks = ["\\", "<b>", "</b>", "<strong>", "</strong>", "**"];
            let first = marks.iter().fold(first.to_owned(), |text, mark| text.replace(mark, ""));
            first.starts_with(headline) || first.starts_with(&short)
        });
        assert!(found, "{format:?}: {value:#}");
    }
}

#[tokio::test]
async fn retry_skips_accepted_requests() {
    let (url, seen) = server(Some(&ok("200 OK", "", ""))).await;
    let delivery_config = config::DeliverySettings { timeout: config::Span(Duration::from_secs(1)), ..delivery_config() };
    let mut problems = Vec::new();
    let receiver = receiver("pagerduty", &url);
    let webhook = WebhookReceiver::build(&receiver, &delivery_config, None, &mut problems).expect("a valid receiver");
    // The rate limit allows 60 requests at once. The rest needs further attempts.
    let over = |mut notice: model::alert::Notification| {
        notice.body.status = model::AlertStatus::Resolved;
        notice
    };
    let delivery = due(1, "ops", group(66).into_iter().map(over).collect());
    let mut result = webhook.send(&delivery, time(NOW)).await;
    assert!(matches!(result.outcome, Outcome::Later { .. }), "{result:?}");
    let first = seen.lock().expect("a lock").len();
    assert!((1..66).contains(&first), "{first}");
    assert!(result.text.starts_with(&format!("{first} of 66 requests accepted")), "{}", result.text);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while result.outcome != Outcome::Accepted {
        assert!(tokio::time::Instant::now() < deadline, "{}", result.text);
        result = webhook.send(&delivery, time(NOW)).await;
    }
    let key = |request: &Seen| serde_json::from_slice::<Value>(&request.body).expect("JSON")["dedup_key"].to_string();
    let mut keys: Vec<String> = seen.lock().expect("a lock").iter().map(key).collect();
    assert_eq!(keys.len(), 66);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 66, "each alert once");
}

#[test]
fn formats_are_found_by_name_and_accept_their_keys() {
    for (format, name) in FORMATS.iter().zip(FORMAT_NAMES) {
        assert!(FormatSpec::named(name).is_some_and(|named| named.name == name && format.name == name));
        assert!(format.keys.iter().all(|key| format.takes(key.name)), "{name}");
        assert!(format.read(&receiver(name, "https://example.com")).is_ok(), "{name}");
    }
    assert!(FormatSpec::named("smoke-signals").is_none());
    assert!(spec("telegram").takes("token_file") && !spec("slack").takes("token") && spec("slack").takes("url"));
}
