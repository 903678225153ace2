//! Pages about messages: a receiver that is down, dead letters, silences, and explanations.

use super::*;
use cliffwatch::model::supply::Endpoint;

/// The status of a receiver that is down, and of a URL that does not exist.
const UNAVAILABLE: u16 = 503;
const NOT_FOUND: u16 = 404;

/// Adds a buyback, which causes one message.
fn buy_back(machine: &Machine, days_ago: i64) {
    let at = wire(from_now(-days_ago));
    machine.fixture.service.edit(|edit| edit.add_buyback("arbitrum", buyback(&at, 5_000.0))).expect("edited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receiver_down() {
    let mut machine = Machine::new("receiver-down").await;
    // As after an outage of hours: no automatic attempt comes before the one of the page.
    machine.configure("[delivery]\nretry = [\"0s\", \"6h\", \"6h\"]", DATABASE);
    machine.start();
    machine.fixture.hook.respond_always(Some(UNAVAILABLE));
    machine.extra_messages = messages_of_six_hours().await;
    buy_back(&machine, 1);
    machine.until("cliffwatch outbox list --state retrying", "retrying");
    machine.play("What you see");
    machine.play("What it means");
    machine.fixture.hook.respond_always(None);
    machine.play("What to do");
    machine.until_accepted(&machine.fixture.hook, "bought back");
    machine.play("How you know that it is over");
    machine.finish();
}

/// Runs an outage of six hours with a manual clock. Returns the messages about it. All other messages arrive once, and none is dropped.
async fn messages_of_six_hours() -> Vec<Value> {
    let config = "fallback = [\"desk\"]\n".to_owned();
    let app = crate::it::support::TestApp::with(crate::it::support::Setup { config, ..Default::default() }).await;
    app.tick_and_deliver().await;
    app.hook.respond_always(Some(UNAVAILABLE));
    let mut expected = 0;
    for minute in 1..=6 * 60 {
        app.clock.set(time(BEGIN) + chrono::TimeDelta::minutes(minute));
        if minute % 60 == 5 {
            app.edit(|edit| edit.add_burn("alpha", burn("2026-03-01T00:00:00Z", 9_000.0 + f64::from(expected))));
            app.poll(Endpoint::Burn).await;
            expected += 1;
        }
        app.evaluate().await;
        app.deliver().await;
    }
    assert!(app.hook.accepted().is_empty(), "the receiver accepts nothing");
    app.hook.respond_always(None);
    // A delivery of that age waits up to six hours for its next attempt.
    for step in 1..=8 * 12 {
        app.clock.set(time(BEGIN) + chrono::TimeDelta::minutes(6 * 60 + 5 * step));
        app.evaluate().await;
        app.deliver().await;
    }
    let arrived = lines(&app.hook.take());
    let burned = arrived.iter().filter(|line| line.contains("Burned")).count();
    assert_eq!(
        burned,
        usize::try_from(expected).expect("small"),
        "each message arrives once, at its next attempt: {arrived:#?} {:#?}",
        app.rows("SELECT state, attempts, due_at, receiver FROM delivery")
    );
    assert_eq!(app.rows("SELECT count(*) FROM delivery WHERE state = 'dead'"), [[json!(0)]]);
    app.desk.take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters() {
    let mut machine = Machine::new("dead-letters").await;
    machine.start();
    machine.fixture.hook.respond_always(Some(NOT_FOUND));
    buy_back(&machine, 1);
    machine.until("cliffwatch outbox list --state dead", "dead");
    machine.play("What you see");
    machine.play("What it means");
    machine.fixture.hook.respond_always(None);
    machine.play("What to do");
    machine.until_accepted(&machine.fixture.hook, "bought back");
    machine.play("How you know that it is over");
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_sent() {
    let mut machine = Machine::new("not-sent").await;
    machine.start();
    machine.until("cliffwatch outbox list", "delivered");
    for section in ["What you see", "What it means", "What to do", "How you know that it is over"] {
        machine.play(section);
    }
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_weekend() {
    let mut machine = Machine::new("silence-weekend").await;
    machine.start();
    machine.play("What you see");
    machine.play("What it means");
    let before = machine.fixture.hook.accepted().len();
    machine.play("What to do");
    assert_eq!(machine.fixture.hook.accepted().len(), before);
    machine.play("How you know that it is over");
    machine.finish();
}
