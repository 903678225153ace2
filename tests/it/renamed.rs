//! A token renamed in the list: reported once, without repeats, and the old slug is not polled again.

use chrono::TimeDelta;
use cliffwatch::{
    model::{Endpoint, Resource, rows::ChangeFilter, wire::UnlockEvent},
    service::{Edit, EditError},
};

use serde_json::{Value, json};
use testkit::faults::Fault;

use crate::it::support::{Setup, TestApp, burn, buyback, cliff, item, lines, time};

const DAYS: [&str; 6] = ["2026-03-20", "2026-04-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];

fn schedule() -> Vec<UnlockEvent> {
    DAYS.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2e6, "second")).collect()
}

/// Renames `alpha` and leaves `beta` unchanged.
fn rename_alpha(slug: &str) -> impl FnOnce(&mut Edit<'_>) -> Result<(), EditError> {
    let slug = slug.to_owned();
    move |edit| {
        edit.clear()?;
        edit.put_token(&item(&slug, "ALP"))?;
        edit.put_token(&item("beta", "BET"))?;
        edit.put_events(&slug, schedule())?;
        edit.put_events("beta", vec![cliff("2026-05-15T00:00:00Z", "Seed", 5e6, "month")])?;
        for token in [slug.as_str(), "beta"] {
            edit.add_burn(token, burn("2026-01-10T00:00:00Z", 5e3))?;
            edit.add_buyback(token, buyback("2026-01-11T00:00:00Z", 5e3))?;
        }
        Ok(())
    }
}

/// Runs the cycles and deliveries of a day, with restarts.
async fn day(app: &mut TestApp, date: &str) -> Vec<String> {
    let mut notified = Vec::new();
    for hours in [0, 6, 12, 18] {
        app.clock.set(time(date) + TimeDelta::hours(hours));
        app.tick().await;
        app.restart().await;
        app.deliver().await;
        notified.extend(lines(&app.hook.take()));
    }
    notified
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renamed_token_keeps_its_reminders() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    let notified = day(&mut app, "2026-03-13").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.reminder BigCliffAhead alpha"), "{notified:#?}");

    app.edit(rename_alpha("omega"));
    let notified = day(&mut app, "2026-03-14").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.event ScheduleChanged omega: "), "{notified:#?}");
    let changes = app.app().store().changes(ChangeFilter { limit: 100, ..ChangeFilter::default() }).await.expect("changes");
    let said: Vec<&str> = changes.iter().map(|row| row.change.summary.as_str()).collect();
    assert_eq!(said, ["the source lists ALP as omega now, no longer as alpha"]);

    app.faults.take_log();
    let notified = day(&mut app, "2026-03-19").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.reminder BigCliffAhead omega"), "{notified:#?}");
    let notified = day(&mut app, "2026-03-21").await;
    assert_eq!(notified.len(), 2, "one unlock passed, and the next is within 30 days: {notified:#?}");
    assert!(notified.iter().all(|line| line.contains("BigCliffAhead omega")), "{notified:#?}");
    assert!(app.faults.log().iter().all(|request| !request.uri.contains("alpha")), "the old slug is still polled");
    let store = app.app().store();
    let all = vec![Resource::Unlock, Resource::Burn, Resource::Buyback];
    let known = store.tokens(vec!["alpha".into(), "omega".into()], all).await.expect("tokens");
    let counts: Vec<usize> = known.iter().map(|known| known.records.len()).collect();
    assert_eq!(counts, [0, 8], "{known:#?}");

    // A later correction is notified for the new slug.
    app.edit(|edit| edit.move_event("omega", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    let notified = day(&mut app, "2026-03-22").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.event ScheduleChanged omega: "), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_rename_is_treated_as_a_new_token() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    app.edit(rename_alpha("omega"));
    app.edit(|edit| edit.put_item("omega", |item| item.max_supply = 7e9.into()));
    let notified = day(&mut app, "2026-03-02").await;
    assert!(notified.iter().all(|line| !line.contains("ScheduleChanged")), "{notified:#?}");
    assert_eq!(app.poll(Endpoint::TokenList).await.changes, []);
    app.deliver().await;
    app.hook.take();
}

const ON_TOTALS: &str = "[[rule]]\nalert = \"BigCliffAhead\"\non = \"unlock\"\nwithin = [\"30d\", \"1d\"]\n\
    [[rule]]\nalert = \"Pressure\"\non = \"token\"\nwhen = 'ahead(\"30d\").value > 0'\n\
    [[rule]]\nalert = \"Burned\"\non = \"burn\"\n";

/// Runs a cycle and the deliveries at a time. Returns the messages.
async fn messages_at(app: &mut TestApp, at: &str) -> Vec<Value> {
    app.at(at);
    app.tick().await;
    app.deliver().await;
    app.hook.take()
}

/// The state, the subject, and the token of an alert.
async fn stored(app: &TestApp, id: &str) -> (String, String, Option<String>) {
    let sql =
        format!("SELECT a.state, a.subject, (SELECT t.id FROM token t WHERE t.no = a.token_no) FROM alert a WHERE a.id = '{id}'");
    let rows = app.rows(&sql);
    let text = |at: usize| rows[0][at].as_str().map(str::to_owned);
    (text(0).expect("a state"), text(1).expect("a subject"), text(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renamed_token_keeps_alerts_acknowledgements_silences_and_incidents() {
    let mut app = TestApp::with(Setup {
        rules: ON_TOTALS.to_owned(),
        config: "group_by = [\"alertname\", \"token\"]\ngroup_wait = \"0s\"\ngroup_interval = \"1m\"\nrepeat_interval = \"2d\"\n"
            .to_owned(),
        ..Setup::default()
    })
    .await;
    let firing = messages_at(&mut app, "2026-03-01T00:00:00Z").await;
    assert_eq!(lines(&firing).len(), 2, "{firing:#?}");
    let id = |rule: &str| {
        let alerts = firing.iter().flat_map(|body| body["data"]["alerts"].as_array().expect("alerts"));
        let of_rule = |alert: &&Value| alert["rule"] == rule;
        alerts.clone().find(of_rule).expect("fires")["id"].as_str().expect("an id").to_owned()
    };
    let (record, total) = (id("BigCliffAhead"), id("Pressure"));
    let store = app.app().store().clone();
    store.acknowledge(record.clone(), "ann".into(), "known".into(), app.clock.now()).await.expect("stored");
    let silence = cliffwatch::model::SilenceRequest {
        matchers: cliffwatch::model::read_matchers(["alertname=Burned", "token=alpha"]).expect("matchers"),
        author: "ann".to_owned(),
        comment: "known".to_owned(),
        starts_at: None,
        ends_at: time("2026-04-01T00:00:00Z"),
    };
    store.put_silence(silence.into_silence(app.clock.now()).expect("a silence")).await.expect("stored");
    drop(store);
    // A feed of the token fails when it is renamed.
    app.faults.set("/v5/burn/alpha", Fault::status(500));
    let incident = messages_at(&mut app, "2026-03-02T00:00:00Z").await;
    let incident = incident.iter().find(|body| body["type"] == "source").unwrap_or_else(|| panic!("{incident:#?}"));
    let incident = incident["data"]["alerts"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(stored(&app, &incident).await.1, "source/burn/alpha");

    app.edit(rename_alpha("omega"));
    app.faults.set("/v5/burn/omega", Fault::status(500));
    let renamed = messages_at(&mut app, "2026-03-02T06:00:00Z").await;
    assert_eq!(lines(&renamed), [] as [&str; 0], "alerts and incidents go on");
    let omega = Some("omega".to_owned());
    let (state, subject, token) = stored(&app, &record).await;
    assert!(state == "firing" && subject.starts_with("unlock/omega/") && token == omega, "{subject}");
    assert_eq!(stored(&app, &total).await, ("firing".to_owned(), "token/omega".to_owned(), omega));
    assert_eq!(stored(&app, &incident).await, ("firing".to_owned(), "source/burn/omega".to_owned(), None));
    let acks = app.app().store().acks().await.expect("read");
    assert_eq!(acks.iter().map(|ack| ack.alert.as_str()).collect::<Vec<_>>(), [record.as_str()]);
    app.restart().await;

    // Reminders name the new slug, and skip the acknowledged alert.
    let reminders = messages_at(&mut app, "2026-03-05T00:00:00Z").await;
    let alerts: Vec<&Value> = reminders.iter().flat_map(|body| body["data"]["alerts"].as_array().expect("alerts")).collect();
    let of_token: Vec<&&Value> = alerts.iter().filter(|alert| alert["rule"] != "SourceTrouble").collect();
    assert_eq!(of_token.len(), 1, "{reminders:#?}");
    assert_eq!((&of_token[0]["id"], &of_token[0]["token"]["id"]), (&json!(total), &json!("omega")));
    assert_eq!(of_token[0]["labels"]["token"], "omega");

    // The feed responds again, and the silence suppresses the burn under the new slug.
    app.faults.clear();
    app.edit(|edit| edit.add_burn("omega", burn("2026-03-05T06:00:00Z", 5e3)));
    let ended = messages_at(&mut app, "2026-03-06T00:00:00Z").await;
    let ended = lines(&ended);
    assert!(ended.len() == 1 && ended[0].starts_with("source SourceTrouble omega"), "{ended:#?}");
    assert_eq!(stored(&app, &incident).await.0, "resolved");

    // The unlock passes: both alerts are resolved under their ids.
    let mut resolved = Vec::new();
    for at in ["2026-03-20T11:00:00Z", "2026-03-20T13:00:00Z"] {
        resolved.extend(messages_at(&mut app, at).await);
    }
    let ids: std::collections::BTreeSet<String> = resolved
        .iter()
        .filter(|body| body["type"] == "alert.resolved")
        .flat_map(|body| body["data"]["alerts"].as_array().expect("alerts"))
        .map(|alert| alert["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids, std::collections::BTreeSet::from([record, total]), "{resolved:#?}");
}
