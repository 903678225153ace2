//! Data that the database rejects stops no other data.

use cliffwatch::model::{poll::FailureKind, supply::Endpoint};

use crate::support::{Setup, TestApp};

/// Makes the database reject rows.
fn reject(app: &TestApp, what: &str) {
    let database = rusqlite::Connection::open(&app.config.store.path).expect("the database");
    let sql = format!("CREATE TRIGGER rejected BEFORE {what} BEGIN SELECT RAISE(ABORT, 'rejected by the test'); END");
    database.execute_batch(&sql).expect("a trigger");
}

fn accept_again(app: &TestApp) {
    let database = rusqlite::Connection::open(&app.config.store.path).expect("the database");
    database.execute_batch("DROP TRIGGER rejected").expect("dropped");
}

async fn app() -> TestApp {
    TestApp::with(Setup { is_on_file: true, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_response_fails_its_feed_only() {
    let app = app().await;
    app.poll(Endpoint::TokenList).await;
    reject(&app, "INSERT ON record WHEN NEW.token_no = (SELECT no FROM token WHERE id = 'beta')");
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!((report.requested, report.fresh, report.failed.len()), (2, 1, 1), "{report}");
    let (feed, failure) = &report.failed[0];
    assert_eq!((feed.to_string(), failure.kind), ("unlock_events/beta".to_owned(), FailureKind::NotStored));
    assert!(failure.message.contains("rejected by the test"), "{failure}");
    app.deliver().await;
    let sent = crate::support::lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.contains("BigCliffAhead alpha")), "{sent:#?}");
    assert!(sent.iter().any(|line| line.contains("A response cannot be stored")), "{sent:#?}");

    // The wait grows, so that few credits are spent.
    let mut polled = 0;
    for hour in 1..=24 {
        app.clock.set(crate::support::time("2026-03-01T00:00:00Z") + chrono::TimeDelta::hours(hour));
        polled += app.poll(Endpoint::UnlockEvents).await.failed.len();
    }
    assert!((1..=6).contains(&polled), "{polled} polls in 24 slots");
    accept_again(&app);
    app.at("2026-03-03T00:00:00Z");
    assert_eq!(app.poll(Endpoint::UnlockEvents).await.failed.len(), 0);
    app.deliver().await;
    let sent = crate::support::lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.contains("responds again")), "{sent:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_row_of_a_list_stops_no_other_row() {
    let app = app().await;
    reject(&app, "UPDATE ON token WHEN NEW.id = 'alpha' AND NEW.item IS NOT NULL");
    let report = app.poll(Endpoint::TokenList).await;
    assert_eq!(report.failed.len(), 1, "{report}");
    assert!(report.failed[0].1.message.contains("the row of alpha in token_list"), "{}", report.failed[0].1);
    assert_eq!(app.rows("SELECT id FROM token WHERE item IS NOT NULL"), [["beta"]]);
    let slots = app.rows("SELECT name FROM job");
    assert_eq!(slots, [["token_list"]], "the slot is done, so the list is not polled again for nothing");
    app.deliver().await;
    assert!(crate::support::lines(&app.hook.take()).iter().any(|line| line.contains("A response cannot be stored")));
    accept_again(&app);
    assert_eq!(app.poll(Endpoint::TokenList).await.fresh, 1, "the same response is compared again");
    assert_eq!(app.rows("SELECT count(*) FROM token WHERE item IS NOT NULL"), [[2]]);
    app.deliver().await;
    app.hook.take();
}
