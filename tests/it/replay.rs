//! Compares `backtest` and `explain` on a daemon's database with what the daemon sent.

use chrono::TimeDelta;
use cliffwatch::model::{
    rows::{NotificationFilter, OutboxFilter},
    silence::{SilenceRequest, read_matchers},
    supply::{Endpoint, Timestamp},
};
use serde_json::Value;

use crate::it::{
    binary::Workdir,
    support::{BEGIN, Setup, TestApp, burn, buyback, cliff, time},
};

/// Groups by token, inhibits warnings of a token with a critical alert, and mutes burns at night.
const CONFIG: &str = r#"
group_by = ["token"]
group_wait = "30s"
group_interval = "5m"
[[route.routes]]
matchers = ['alertname="Burned"']
receivers = ["desk"]
mute_time_intervals = ["nights"]
[[time_intervals]]
name = "nights"
time_intervals = [{ times = [{ start_time = "00:00", end_time = "07:00" }] }]
[[inhibit_rules]]
source_matchers = ['severity="critical"']
target_matchers = ['alertname="Smaller"']
equal = ["token"]
"#;

const RULES: &str = r#"
[[rule]]
alert  = "BigCliffAhead"
on     = "unlock"
within = ["30d", "7d", "1d"]
when   = "cliffValue >= 1000000"
labels = { severity = "{{ 'critical' if cliffValue >= 4000000 else 'warning' }}" }

[[rule]]
alert  = "Smaller"
on     = "unlock"
within = ["7d"]
when   = "cliffValue >= 500000"
labels = { severity = "info" }

[[rule]]
alert = "ScheduleChanged"
on    = "unlock.*"

[[rule]]
alert = "Burned"
on    = "burn"
when  = "amount >= 1000"

[[rule]]
alert = "BoughtBack"
on    = "buyback"

[[rule]]
alert = "Pressure"
on    = "token"
when  = 'ahead("10d").value > burned("30d").value + 1000000'

[[rule]]
alert = "AllPressure"
on    = "portfolio"
when  = 'ahead("10d").value > burned("30d").value + 3000000'
"#;

/// A message of either side: time, receiver, shape, and alerts.
type Line = (String, String, String, Vec<String>);

fn backtest(app: &TestApp, more: &str) -> Value {
    let config = app.folder.path().join("cliffwatch.toml");
    let now = app.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let line = format!("--config {} --now {now} --format json backtest --from {BEGIN} {more}", config.display());
    serde_json::from_str(&Workdir::new().run(&line).ok()).expect("JSON")
}

fn explain(app: &TestApp, more: &str) -> String {
    let config = app.folder.path().join("cliffwatch.toml");
    let now = app.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    Workdir::new().run(&format!("--config {} --now {now} explain {more}", config.display())).ok()
}

fn simulated_messages(response: &Value) -> Vec<Line> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut lines: Vec<Line> = response["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| {
            let mut alerts: Vec<String> = message["alerts"]
                .as_array()
                .expect("alerts")
                .iter()
                .map(|alert| format!("{} {}: {}", text(&alert["alert"]), text(&alert["type"]), text(&alert["summary"])))
                .collect();
            alerts.sort();
            let at: Timestamp = text(&message["at"]).parse().expect("a time");
            (at.to_rfc3339(), text(&message["receiver"]), text(&message["shape"]), alerts)
        })
        .collect();
    lines.sort();
    lines
}

async fn sent_messages(app: &TestApp) -> Vec<Line> {
    let rows = app.app().store().outbox(OutboxFilter { limit: 10_000, ..OutboxFilter::default() }).await.expect("read");
    let mut lines: Vec<Line> = rows
        .iter()
        .map(|row| {
            let mut alerts: Vec<String> =
                row.alerts.iter().map(|notified| format!("{} {}: {}", notified.id, notified.kind, notified.summary)).collect();
            alerts.sort();
            (row.created_at.to_rfc3339(), row.receiver.to_string(), row.shape.as_str().to_owned(), alerts)
        })
        .collect();
    lines.sort();
    lines
}

/// Evaluates at an instant, and dispatches whenever a wait of the dispatcher may end.
async fn evaluate_at(app: &TestApp, at: &str) {
    app.at(at);
    app.evaluate().await;
    settle(app).await;
}

async fn settle(app: &TestApp) {
    let now = app.clock.now();
    app.deliver().await;
    for wait in [TimeDelta::seconds(30), TimeDelta::minutes(5), TimeDelta::seconds(330)] {
        app.clock.set(now + wait);
        app.deliver().await;
    }
}

/// Five weeks with lead times, a correction, burns by day and at night, a silence, an inhibition, and changing aggregates.
async fn history() -> TestApp {
    let app = TestApp::with(Setup { config: CONFIG.to_owned(), rules: RULES.to_owned(), ..Setup::default() }).await;
    app.tick().await;
    settle(&app).await;
    // A burn at night is notified in the morning.
    app.at("2026-03-04T01:00:00Z");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-03T00:00:00Z", 7_000.0)));
    app.edit(|edit| edit.add_buyback("beta", buyback("2026-03-03T00:00:00Z", 7_000.0)));
    app.poll(Endpoint::Burn).await;
    app.poll(Endpoint::Buyback).await;
    settle(&app).await;
    evaluate_at(&app, "2026-03-04T07:00:00Z").await;
    // The cliff of the 20th enters the window of ten days.
    evaluate_at(&app, "2026-03-10T12:00:00Z").await;
    // A user silences alpha for two days.
    let request = SilenceRequest {
        matchers: read_matchers(["token=alpha"]).expect("matchers"),
        author: "ann".to_owned(),
        comment: "known to the exchange".to_owned(),
        starts_at: None,
        ends_at: time("2026-03-14T10:00:00Z"),
    };
    app.at("2026-03-12T10:00:00Z");
    app.app().store().put_silence(request.into_silence(app.clock.now()).expect("granted")).await.expect("written");
    evaluate_at(&app, "2026-03-13T12:00:00Z").await;
    app.at("2026-03-14T10:00:00Z");
    settle(&app).await;
    // The event of 20 April moves to 25 March and becomes large enough to be critical.
    app.at("2026-03-16T06:00:00Z");
    app.edit(|edit| {
        let mut events: Vec<_> = ["2026-03-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"]
            .iter()
            .map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2_000_000.0, "second"))
            .collect();
        events.insert(1, cliff("2026-03-25T12:00:00Z", "Team", 5_000_000.0, "second"));
        edit.put_events("alpha", events)
    });
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::UnlockEvents).await;
    settle(&app).await;
    for instant in
        ["2026-03-18T12:00:00Z", "2026-03-19T12:00:00Z", "2026-03-20T12:00:00Z", "2026-03-24T12:00:00Z", "2026-03-25T12:00:00Z"]
    {
        evaluate_at(&app, instant).await;
    }
    app.at("2026-03-26T09:00:00Z");
    app.edit(|edit| edit.add_burn("beta", burn("2026-03-25T00:00:00Z", 9_000.0)));
    app.poll(Endpoint::Burn).await;
    settle(&app).await;
    // The unlock in May is now within 30 days.
    evaluate_at(&app, "2026-04-01T00:00:00Z").await;
    app.at("2026-04-05T00:00:00Z");
    app.hook.take();
    app.desk.take();
    app
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backtest_of_the_recorded_history_matches_the_daemon() {
    let app = history().await;
    let (live, again) = (sent_messages(&app).await, simulated_messages(&backtest(&app, "")));
    assert!(live.len() >= 10, "too few messages: {live:#?}");
    assert_eq!(again, live);
    // The same silence and the same alert suppress the same notifications.
    let statuses = app
        .app()
        .store()
        .notification_statuses(NotificationFilter { undelivered: true, limit: 1_000, ..NotificationFilter::default() })
        .await
        .expect("read");
    let mut suppressed: Vec<(String, String, Option<String>)> =
        statuses.iter().map(|row| (row.alert.to_string(), row.state.to_string(), row.suppressor.clone())).collect();
    let response = backtest(&app, "");
    let mut suppressed_again: Vec<(String, String, Option<String>)> = response["undelivered"]
        .as_array()
        .expect("undelivered")
        .iter()
        .map(|row| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            (text(&row["telling"]["alert"]).expect("an alert"), text(&row["state"]).expect("a state"), text(&row["suppressedBy"]))
        })
        .collect();
    suppressed.sort();
    suppressed_again.sort();
    assert!(suppressed.iter().any(|(_, state, _)| state == "inhibited"), "{suppressed:#?}");
    assert_eq!(suppressed_again, suppressed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backtest_against_other_rules_lists_gained_and_lost_messages() {
    let app = history().await;
    let others = app.folder.path().join("others");
    std::fs::create_dir(&others).expect("a folder");
    std::fs::write(others.join("rules.toml"), RULES.replace("amount >= 1000", "amount >= 8000")).expect("written");
    let response = backtest(&app, &format!("--against {}", others.display()));
    let against = &response["against"];
    let count = |side: &str| against[side].as_array().expect("a list").len();
    assert_eq!((count("gained"), count("lost"), count("changed")), (0, 1, 0), "{against:#}");
    assert_eq!(against["lost"][0]["alerts"][0]["rule"], "Burned");
    // With a silence for alpha during the whole time.
    let response = backtest(&app, "--silence token=alpha");
    let notified = simulated_messages(&response);
    let about_alpha = |line: &Line| line.3.iter().any(|alert| alert.contains("ALP"));
    assert!(!notified.is_empty() && !notified.iter().any(about_alpha), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explanation_covers_the_whole_path() {
    let app = TestApp::with(Setup { config: CONFIG.to_owned(), rules: RULES.to_owned(), ..Setup::default() }).await;
    app.tick().await;
    app.deliver().await;
    // Not delivered yet: the group waits.
    let text = explain(&app, "BigCliffAhead alpha");
    assert!(
        text.contains(
            "result: fired at 1 Mar 2026, 00:00 UTC and is firing, waiting in group {}:{token=\"alpha\"} until 1 Mar 2026, 00:00"
        ),
        "{text}"
    );
    settle(&app).await;
    let text = explain(&app, "BigCliffAhead alpha");
    assert!(text.contains("and is firing, delivered to ops at 1 Mar 2026, 00:00 UTC"), "{text}");
    app.hook.take();
    // A burn at night is muted until the morning.
    app.at("2026-03-04T01:00:00Z");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-03T00:00:00Z", 7_000.0)));
    app.poll(Endpoint::Burn).await;
    settle(&app).await;
    let text = explain(&app, "Burned alpha");
    assert!(text.contains("until 4 Mar 2026, 07:00 UTC: muted by nights (for desk)"), "{text}");
    // A silence suppresses a reminder, which both commands report.
    let request = SilenceRequest {
        matchers: read_matchers(["alertname=BigCliffAhead"]).expect("matchers"),
        author: "ann".to_owned(),
        comment: "known to the exchange".to_owned(),
        starts_at: None,
        ends_at: time("2026-03-14T10:00:00Z"),
    };
    app.at("2026-03-12T10:00:00Z");
    let silence = request.into_silence(app.clock.now()).expect("granted");
    app.app().store().put_silence(silence.clone()).await.expect("written");
    evaluate_at(&app, "2026-03-13T12:00:00Z").await;
    let text = explain(&app, "BigCliffAhead alpha");
    let words = format!(
        "suppressed by silence {} until 14 Mar 2026, 10:00 UTC, then sent if it still fires (alertname=\"BigCliffAhead\" by ann: known to the exchange)",
        silence.id
    );
    assert!(text.contains(&words), "{words}\n{text}");
    let config = app.folder.path().join("cliffwatch.toml");
    let why =
        Workdir::new().run(&format!("--config {} --now 2026-03-13T12:06:00Z outbox why --undelivered", config.display())).ok();
    assert!(why.contains(&silence.id) && why.contains("known to the exchange"), "{why}");
    // Rules on a token and on the portfolio are explained clause by clause.
    let text = explain(&app, "Pressure alpha");
    for part in [
        "ahead(\"10d\"): 2.00M tokens ($2.00M, 2.00% of market cap) to unlock in the next 10 days in 1 cliff",
        "✓ when: ahead(\"10d\").value > burned(\"30d\").value + 1000000",
        "= 2,000,000",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = explain(&app, "AllPressure");
    for part in ["2 tokens in all watched tokens: ALP and BET", "result: not fired, because this is false: ahead(\"10d\").value"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // A receiver with a permanent error.
    app.hook.respond_always(Some(400));
    app.edit(|edit| edit.add_buyback("beta", buyback("2026-03-12T00:00:00Z", 7_000.0)));
    app.at("2026-03-13T13:00:00Z");
    app.poll(Endpoint::Buyback).await;
    settle(&app).await;
    let text = explain(&app, "BoughtBack beta");
    assert!(text.contains("dead letter: ops (1 attempt failed"), "{text}");
    let text = explain(&app, "--why-not beta");
    for rule in ["BigCliffAhead", "Burned", "BoughtBack", "Pressure", "AllPressure"] {
        assert!(text.contains(rule), "{rule}\n{text}");
    }
    app.hook.take();
    app.desk.take();
}
