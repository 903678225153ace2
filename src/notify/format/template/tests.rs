use super::*;
use testkit::samples::{HOSTILE, due, hostile, moved, unlock};
use testkit::time;

fn render(source: &str, content_type: Option<&str>, delivery: &DueDelivery) -> (String, Option<String>) {
    let template = BodyTemplate::new(source, content_type).expect("a valid template");
    let brief = Brief { delivery, external_url: None, now: time("2026-03-09T13:00:05Z") };
    let (body, error) = template.body(&brief).expect("a body");
    (String::from_utf8(body).expect("text"), error)
}

#[test]
fn json_template_quotes_values_itself() {
    let source = r#"{"msg": {{ title }}, "names": [{% for a in alerts %}{{ a.token.name }}{% if not loop.last %},{% endif %}{% endfor %}], "value": {{ alerts[0].record.cliffUnlocks.cliffValue | usd }}}"#;
    let (body, error) = render(source, None, &due(1, "own", vec![unlock()]));
    assert_eq!(error, None);
    assert_eq!(
        body,
        r#"{"msg": "ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days", "names": ["Arbitrum"], "value": "$33.15M"}"#
    );
    let (body, _) = render(source, None, &due(1, "own", vec![hostile()]));
    let value: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert!(value["names"][0].as_str().is_some_and(|name| name.starts_with(HOSTILE)));
}

#[test]
fn failed_template_sends_the_built_in_message_with_the_error() {
    // This notification has no record.
    let source = r#"{"price": {{ alerts[0].record.cliffUnlocks.allocationBreakdown[0].referencePrice }}}"#;
    let mut notice = moved();
    notice.body.record = None;
    let (body, error) = render(source, None, &due(1, "own", vec![notice.clone()]));
    let error = error.expect("an error");
    assert!(error.contains("line 1 of the template"), "{error}");
    let value: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(value["data"]["alerts"][0]["rule"], "ScheduleMoved");
    assert_eq!(value["templateError"], error.as_str());
    let (body, error) = render("{{ alerts[0].record.dataSource }}", Some("text/plain"), &due(1, "own", vec![notice]));
    assert!(body.contains("37.06M of Core") && body.contains(error.as_deref().expect("an error")), "{body}");
}

#[test]
fn missing_label_is_an_empty_string() {
    let source = r#"{"team": {{ alerts[0].labels.team }}, "desk": {{ alerts[0].labels.desk }}, "all": {{ alerts[0].labels }},
            "names": {% if alerts[0].labels.desk %}1{% else %}{{ alerts[0].labels | items | map("first") | list }}{% endif %}}"#;
    let (body, error) = render(source, None, &due(1, "own", vec![unlock()]));
    assert_eq!(error, None);
    let value: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&value["team"], &value["desk"]), (&json!("trading"), &json!("")));
    assert_eq!(value["all"], serde_json::to_value(&unlock().body.labels).expect("JSON"));
    assert_eq!(value["names"], json!(["alertname", "severity", "team", "token"]));
}

#[test]
fn markup_in_a_name_is_escaped_in_html() {
    let (body, _) = render("<p>{{ alerts[0].token.symbol }}</p>", Some("text/html"), &due(1, "own", vec![hostile()]));
    assert!(body.starts_with("<p>&lt;script&gt;"), "{body}");
}

#[test]
fn memory_of_a_rendering_is_limited() {
    let doubled = format!("{{% set a = 'x' %}}{}\"ok\"", "{% set a = a ~ a %}".repeat(26));
    for (source, message) in [
        (doubled.as_str(), "the value assigned by `set` is too large"),
        ("{{ range(100000)|join(title) }}", "at most 1000 numbers"),
        ("{% macro m() %}x{% endmacro %}\"ok\"", "`macro` is not supported here"),
    ] {
        let error = BodyTemplate::new(source, None).expect_err("an error");
        assert!(error.to_string().contains(message), "{error}");
    }
    let mut long = unlock();
    long.body.annotations.insert("summary".into(), "a".repeat(100_000));
    let (_, error) = render(
        "{{ alerts[0].annotations.summary|replace('a', alerts[0].annotations.summary) }}",
        None,
        &due(1, "ops", vec![long]),
    );
    assert!(error.is_some_and(|error| error.contains("the filters create more than")));
}

#[test]
fn invalid_template_is_rejected_with_its_line() {
    let error = |source: &str, content_type| BodyTemplate::new(source, content_type).expect_err(source).to_string();
    let unclosed = error("{\n  \"a\": {{ title \n}", None);
    assert!(unclosed.contains("of the template"), "{unclosed}");
    let unknown = error("{\"a\":\n {{ titel }}}", None);
    assert!(unknown.contains("line 2"), "{unknown}");
    assert!(error("{\"a\": \"{{ title }}\"}", None).contains("which writes its own"));
    assert!(
        error("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}", Some("text/plain")).len() > 5
    );
    assert!(error("x", Some("text")).contains("content type"));
    assert!(error("x", Some("text/plain\r\nx: y")).contains("content type"));
    assert!(error(&"x".repeat(MAX_TEMPLATE_BYTES + 1), Some("text/plain")).contains("more than the limit"));
}
