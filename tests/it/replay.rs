//! What `backtest` and `explain` say of a daemon's database, held against what the daemon did.

use chrono::TimeDelta;
use cliffwatch::model::{
    rows::{NotificationFilter, OutboxFilter},
    silence::{SilenceRequest, read_matchers},
    supply::{Endpoint, Timestamp},
};
use serde_json::Value;

use crate::{
    binary::Desk,
    support::{BEGIN, Setup, TestApp, burn, buyback, cliff, time},
};

/// Grouped by token, a critical alert speaks for the warnings of its token, and burns wait for the morning.
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

/// What a message tells, as both sides say it: when, to whom, how, and of what.
type Line = (String, String, String, Vec<String>);

fn backtest(app: &TestApp, more: &str) -> Value {
    let config = app.folder.path().join("cliffwatch.toml");
    let now = app.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let line = format!("--config {} --now {now} --format json backtest --from {BEGIN} {more}", config.display());
    serde_json::from_str(&Desk::new().run(&line).ok()).expect("JSON")
}

fn explained(app: &TestApp, more: &str) -> String {
    let config = app.folder.path().join("cliffwatch.toml");
    let now = app.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    Desk::new().run(&format!("--config {} --now {now} explain {more}", config.display())).ok()
}

fn would_have_been_sent(answer: &Value) -> Vec<Line> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut lines: Vec<Line> = answer["messages"]
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

async fn was_sent(app: &TestApp) -> Vec<Line> {
    let rows = app.app().store().outbox(OutboxFilter { limit: 10_000, ..OutboxFilter::default() }).await.expect("read");
    let mut lines: Vec<Line> = rows
        .iter()
        .map(|row| {
            let mut alerts: Vec<String> =
                row.alerts.iter().map(|told| format!("{} {}: {}", told.id, told.kind, told.summary)).collect();
            alerts.sort();
            (row.created_at.to_rfc3339(), row.receiver.to_string(), row.shape.as_str().to_owned(), alerts)
        })
        .collect();
    lines.sort();
    lines
}

/// Looks as the running daemon would: at the instant, and whenever a wait of its dispatcher may be over.
async fn look(app: &TestApp, at: &str) {
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

/// Five weeks: lead times, a correction, burns by day and by night, a silence, an inhibition, windows that fill and clear.
async fn history() -> TestApp {
    let app = TestApp::with(Setup { config: CONFIG.to_owned(), rules: RULES.to_owned(), ..Setup::default() }).await;
    app.tick().await;
    settle(&app).await;
    // A token that had no burns since long has one at night: it is told in the morning.
    app.at("2026-03-04T01:00:00Z");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-03T00:00:00Z", 7_000.0)));
    app.edit(|edit| edit.add_buyback("beta", buyback("2026-03-03T00:00:00Z", 7_000.0)));
    app.poll(Endpoint::Burn).await;
    app.poll(Endpoint::Buyback).await;
    settle(&app).await;
    look(&app, "2026-03-04T07:00:00Z").await;
    // The window of ten days takes in the cliff of the 20th.
    look(&app, "2026-03-10T12:00:00Z").await;
    // A person does not want to hear of alpha for two days.
    let wish = SilenceRequest {
        matchers: read_matchers(["token=alpha"]).expect("matchers"),
        author: "ann".to_owned(),
        comment: "known to the exchange".to_owned(),
        starts_at: None,
        ends_at: time("2026-03-14T10:00:00Z"),
    };
    app.at("2026-03-12T10:00:00Z");
    app.app().store().put_silence(wish.grant(app.clock.now()).expect("granted")).await.expect("written");
    look(&app, "2026-03-13T12:00:00Z").await;
    app.at("2026-03-14T10:00:00Z");
    settle(&app).await;
    // The event of the 20th of April moves, and grows so much that it is critical.
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
        look(&app, instant).await;
    }
    app.at("2026-03-26T09:00:00Z");
    app.edit(|edit| edit.add_burn("beta", burn("2026-03-25T00:00:00Z", 9_000.0)));
    app.poll(Endpoint::Burn).await;
    settle(&app).await;
    // The month of May comes within thirty days.
    look(&app, "2026-04-01T00:00:00Z").await;
    app.at("2026-04-05T00:00:00Z");
    app.hook.take();
    app.desk.take();
    app
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backtest_over_the_recorded_history_sends_what_was_sent_live() {
    let app = history().await;
    let (live, again) = (was_sent(&app).await, would_have_been_sent(&backtest(&app, "")));
    assert!(live.len() >= 10, "the script tells too little: {live:#?}");
    assert_eq!(again, live);
    // What was held back is held back again, by the same silence and by the same alert.
    let fates = app
        .app()
        .store()
        .notification_statuses(NotificationFilter { undelivered: true, limit: 1_000, ..NotificationFilter::default() })
        .await
        .expect("read");
    let mut held: Vec<(String, String, Option<String>)> =
        fates.iter().map(|fate| (fate.alert.to_string(), fate.state.to_string(), fate.holder.clone())).collect();
    let answer = backtest(&app, "");
    let mut held_again: Vec<(String, String, Option<String>)> = answer["untold"]
        .as_array()
        .expect("untold")
        .iter()
        .map(|row| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            (text(&row["telling"]["alert"]).expect("an alert"), text(&row["state"]).expect("a state"), text(&row["holder"]))
        })
        .collect();
    held.sort();
    held_again.sort();
    assert!(held.iter().any(|(_, state, _)| state == "inhibited"), "{held:#?}");
    assert_eq!(held_again, held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rules_over_the_same_history_gain_and_lose_messages() {
    let app = history().await;
    let others = app.folder.path().join("others");
    std::fs::create_dir(&others).expect("a folder");
    std::fs::write(others.join("rules.toml"), RULES.replace("amount >= 1000", "amount >= 8000")).expect("written");
    let answer = backtest(&app, &format!("--against {}", others.display()));
    let against = &answer["against"];
    let count = |side: &str| against[side].as_array().expect("a list").len();
    assert_eq!((count("gained"), count("lost"), count("changed")), (0, 1, 0), "{against:#}");
    assert_eq!(against["lost"][0]["alerts"][0]["rule"], "Burned");
    // As if alpha had been silenced all the time.
    let answer = backtest(&app, "--silence token=alpha");
    let told = would_have_been_sent(&answer);
    let about_alpha = |line: &Line| line.3.iter().any(|alert| alert.contains("ALP"));
    assert!(!told.is_empty() && !told.iter().any(about_alpha), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_goes_to_the_end_of_the_path() {
    let app = TestApp::with(Setup { config: CONFIG.to_owned(), rules: RULES.to_owned(), ..Setup::default() }).await;
    app.tick().await;
    app.deliver().await;
    // Nothing was delivered yet: the group waits.
    let text = explained(&app, "BigCliffAhead alpha");
    assert!(
        text.contains(
            "so: fired at 1 Mar 2026, 00:00 UTC and is firing, waiting in group {}:{token=\"alpha\"} until 1 Mar 2026, 00:00"
        ),
        "{text}"
    );
    settle(&app).await;
    let text = explained(&app, "BigCliffAhead alpha");
    assert!(text.contains("and is firing, delivered to ops at 1 Mar 2026, 00:00 UTC"), "{text}");
    app.hook.take();
    // A burn at night waits for the morning.
    app.at("2026-03-04T01:00:00Z");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-03T00:00:00Z", 7_000.0)));
    app.poll(Endpoint::Burn).await;
    settle(&app).await;
    let text = explained(&app, "Burned alpha");
    assert!(text.contains("until 4 Mar 2026, 07:00 UTC: muted by nights (for desk)"), "{text}");
    // A silence hides a reminder, and says so in both commands.
    let wish = SilenceRequest {
        matchers: read_matchers(["alertname=BigCliffAhead"]).expect("matchers"),
        author: "ann".to_owned(),
        comment: "known to the exchange".to_owned(),
        starts_at: None,
        ends_at: time("2026-03-14T10:00:00Z"),
    };
    app.at("2026-03-12T10:00:00Z");
    let silence = wish.grant(app.clock.now()).expect("granted");
    app.app().store().put_silence(silence.clone()).await.expect("written");
    look(&app, "2026-03-13T12:00:00Z").await;
    let text = explained(&app, "BigCliffAhead alpha");
    let words = format!(
        "held back by silence {} until 14 Mar 2026, 10:00 UTC, then told where it still fires (alertname=\"BigCliffAhead\" by ann: known to the exchange)",
        silence.id
    );
    assert!(text.contains(&words), "{words}\n{text}");
    let config = app.folder.path().join("cliffwatch.toml");
    let why = Desk::new().run(&format!("--config {} --now 2026-03-13T12:06:00Z outbox why --undelivered", config.display())).ok();
    assert!(why.contains(&silence.id) && why.contains("known to the exchange"), "{why}");
    // A token and all tokens as a whole, clause by clause.
    let text = explained(&app, "Pressure alpha");
    for part in [
        "ahead(\"10d\"): 2.00M tokens, $2.00M, 1 entry",
        "✓ when: ahead(\"10d\").value > burned(\"30d\").value + 1000000",
        "= 2,000,000",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = explained(&app, "AllPressure");
    for part in ["2 tokens in all watched tokens: ALP, BET", "so: not fired, because this is false: ahead(\"10d\").value"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // A receiver that refuses for good.
    app.hook.answer_always(Some(400));
    app.edit(|edit| edit.add_buyback("beta", buyback("2026-03-12T00:00:00Z", 7_000.0)));
    app.at("2026-03-13T13:00:00Z");
    app.poll(Endpoint::Buyback).await;
    settle(&app).await;
    let text = explained(&app, "BoughtBack beta");
    assert!(text.contains("dead letter: ops (given up after 1 attempt"), "{text}");
    let text = explained(&app, "--why-not beta");
    for rule in ["BigCliffAhead", "Burned", "BoughtBack", "Pressure", "AllPressure"] {
        assert!(text.contains(rule), "{rule}\n{text}");
    }
    app.hook.take();
    app.desk.take();
}
