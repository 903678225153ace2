//! The `limit` of rules on changes and on burns: it ranks the events of the whole cycle, and an event that waits for the end of its cycle
//! survives a failure.

use cliffwatch::model::supply::Endpoint;
use serde_json::Value;

use crate::it::support::{Setup, TestApp, burn, cliff, item, lines, time};

/// Enough for several batches of a cycle.
const TOKENS: u32 = 80;

const RULES: &str = r#"
[[rule]]
alert = "Changed"
on    = "unlock.*"
limit = 3

[[rule]]
alert = "Burned"
on    = "burn"
limit = 2
"#;

fn id(n: u32) -> String {
    format!("token-{n:02}")
}

/// The value of the only unlock of a token in USD: larger for later tokens, which later batches contain.
fn value(n: u32) -> f64 {
    1e6 + 1e5 * f64::from(n)
}

async fn app() -> TestApp {
    let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
        for n in 0..TOKENS {
            edit.put_token(&item(&id(n), &id(n)))?;
            edit.put_events(&id(n), vec![cliff("2026-03-20T12:00:00Z", "Team", value(n), "second")])?;
        }
        Ok(())
    };
    let app = TestApp::with(Setup { rules: RULES.to_owned(), fill: Box::new(fill), ..Setup::default() }).await;
    assert_eq!(app.tick_and_deliver().await, [""; 0], "the baseline is not a change");
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| {
        (0..TOKENS).try_for_each(|n| edit.move_event(&id(n), time("2026-03-20T12:00:00Z"), time("2026-03-25T12:00:00Z")))?;
        (0..TOKENS).try_for_each(|n| edit.add_burn(&id(n), burn("2026-03-01T01:00:00Z", value(n))))
    });
    app
}

/// Returns the tokens that messages about `rule` show, sorted, without its summary.
fn tokens_of(rule: &str, bodies: &[Value]) -> Vec<String> {
    let alerts = bodies.iter().flat_map(|body| body["data"]["alerts"].as_array().expect("alerts"));
    let own = alerts.filter(|alert| alert["rule"] == rule);
    let mut tokens: Vec<String> = own.filter_map(|alert| alert["token"]["id"].as_str().map(str::to_owned)).collect();
    tokens.sort();
    tokens
}

fn count(app: &TestApp, sql: &str) -> i64 {
    app.rows(sql)[0][0].as_i64().expect("a count")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limit_keeps_the_largest_events_of_all_batches() {
    let app = app().await;
    app.tick().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(tokens_of("Changed", &bodies), ["token-77", "token-78", "token-79"]);
    assert_eq!(tokens_of("Burned", &bodies), ["token-78", "token-79"]);
    let summaries: Vec<String> = lines(&bodies).into_iter().filter(|line| line.contains("left out")).collect();
    assert_eq!(summaries.len(), 2, "{summaries:#?}");
    assert!(summaries.iter().any(|line| line.contains("Changed: 77 more alerts left out by limit = 3")), "{summaries:#?}");
    assert!(summaries.iter().any(|line| line.contains("Burned: 78 more alerts left out by limit = 2")), "{summaries:#?}");
    let recorded = "SELECT count(*) FROM alert WHERE state = 'event' AND token_no IS NOT NULL";
    assert_eq!(count(&app, recorded), i64::from(2 * TOKENS), "those left out are recorded");
    assert_eq!(count(&app, "SELECT count(*) FROM held_event"), 0);
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_failed_cycle_are_ranked_by_the_next_cycle_that_ends() {
    let mut app = app().await;
    // The changes and their events are committed, but no notification can be stored.
    app.database().sabotage("notification");
    let cycle = app.app().tick(cliffwatch::daemon::schedule::Job::Poll(Endpoint::UnlockEvents)).await;
    assert!(cycle.is_err(), "{cycle:?}");
    app.database().accept_rows("notification");
    assert_eq!(count(&app, "SELECT count(*) FROM held_event"), i64::from(TOKENS));
    app.restart().await;
    app.at("2026-03-01T06:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(tokens_of("Changed", &bodies), ["token-77", "token-78", "token-79"]);
    assert!(lines(&bodies).iter().any(|line| line.contains("Changed: 77 more alerts left out by limit = 3")));
    assert_eq!(count(&app, "SELECT count(*) FROM held_event"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_event_stays_held_and_stops_no_other_event() {
    let app = app().await;
    app.database().reject_rows("INSERT", "notification", "NEW.body LIKE '%\"token-78\"%'");
    let job = cliffwatch::daemon::schedule::Job::Poll(Endpoint::UnlockEvents);
    assert!(app.app().tick(job).await.is_err(), "the cycle reports it");
    app.deliver().await;
    assert_eq!(tokens_of("Changed", &app.hook.take()), ["token-77", "token-79"]);
    assert_eq!(count(&app, "SELECT count(*) FROM held_event"), 1);
    app.database().accept_rows("notification");
    app.at("2026-03-01T06:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(tokens_of("Changed", &app.hook.take()), ["token-78"]);
}
