//! The first start: the alerts of the starter rules on 300 tokens arrive as one welcome message, later ones normally.

use chrono::TimeDelta;
use cliffwatch::model::wire;
use serde_json::json;

use crate::it::support::{Setup, TestApp, cliff, lines};

/// The number of watched tokens.
const TOKENS: usize = 300;

/// An additional rule with low thresholds.
const MORE_RULES: &str = "[[rule]]\nalert = \"CliffAhead\"\non = \"unlock\"\nwithin = [\"30d\"]\n\
     when = \"cliffValue >= 5000000 || valueToMarketCap >= 2\"\nlabels = { severity = \"info\" }\n";

fn starter_rules() -> String {
    let unlocks = include_str!("../../rules/unlocks.toml");
    [unlocks, MORE_RULES, include_str!("../../rules/changes.toml"), include_str!("../../rules/supply.toml")].concat()
}

/// Adds the bundled schedules, repeated under new slugs up to `TOKENS`.
fn fill(app: &TestApp) {
    app.service.import(cliffwatch::service::bundled(), |_| {}).expect("imported");
    app.edit(|edit| {
        let known = edit.tokens()?;
        let slugs: Vec<String> = known.iter().filter_map(|item| item.id.as_str().map(str::to_owned)).collect();
        let schedules: Vec<Vec<wire::UnlockEvent>> = slugs.iter().map(|slug| edit.events(slug)).collect::<Result<_, _>>()?;
        for at in 0..TOKENS - known.len() {
            let of = at % known.len();
            let (Some(item), Some(events)) = (known.get(of), schedules.get(of)) else { continue };
            let slug = format!("{}-{}", slugs[of], at / known.len());
            edit.put_token(&wire::TokenItem { id: slug.clone().into(), ..item.clone() })?;
            edit.put_events(&slug, events.clone())?;
        }
        Ok(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_with_300_tokens_sends_one_message() {
    let app = TestApp::with(Setup {
        rules: starter_rules(),
        config: "group_by = [\"token\"]\n".into(),
        fill: Box::new(|_| Ok(())),
        ..Setup::default()
    })
    .await;
    fill(&app);
    let mut messages = Vec::new();
    for minute in 0..20 {
        app.tick().await;
        for second in [0, 6, 40] {
            app.clock.set(crate::it::support::time(crate::it::support::BEGIN) + TimeDelta::seconds(minute * 60 + second));
            app.deliver().await;
        }
        // Bundled tokens without a schedule cause incidents, which are sent at once.
        messages.extend(app.hook.take().into_iter().filter(|body| body["type"] != "source"));
    }
    assert_eq!(messages.len(), 1, "{:#?}", lines(&messages));
    let data = &messages[0]["data"];
    let (alerts, counted) = (data["alerts"].as_array().expect("alerts"), data["truncatedAlerts"].as_u64().expect("a count"));
    assert!(alerts.len() as u64 + counted > 100, "{} and {counted}", alerts.len());
    assert!(data["note"].as_str().is_some_and(|note| note.starts_with("Welcome to Cliffwatch")), "{data}");
    let rank = |alert: &serde_json::Value| match alert["labels"]["severity"].as_str() {
        Some("critical") => 2,
        Some("warning") => 1,
        _ => 0,
    };
    assert!(alerts.iter().map(rank).is_sorted_by(|a, b| a >= b), "the most severe first");

    // Later alerts are sent normally, grouped by token.
    app.clock.set(app.clock.now() + TimeDelta::hours(2));
    app.edit(|edit| {
        edit.put_token(&serde_json::from_value(json!({"id": "new", "name": "New", "symbol": "NEW"})).expect("a token"))?;
        edit.put_events("new", vec![cliff("2026-03-06T00:00:00Z", "Team", 9e6, "second")])
    });
    app.tick().await;
    app.clock.set(app.clock.now() + TimeDelta::minutes(1));
    app.deliver().await;
    let notified = lines(&app.hook.take());
    assert!(notified.iter().any(|line| line.starts_with("alert.firing BigCliffAhead new")), "{notified:#?}");
}
