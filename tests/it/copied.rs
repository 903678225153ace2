//! A daemon that continues on a copy of its database: file to PostgreSQL and back if a test server is configured, else file to file.

use cliffwatch::{
    daemon::database_url::database_of,
    model::{Endpoint, config::SecretText},
    store::Store,
};

use crate::it::support::{BEGIN, Setup, TestApp, burn, create_schema, time};

/// Stops the app, copies its database to `url`, or to `file` without one, and starts the app on the copy.
async fn move_database(app: &mut TestApp, file: &str, url: Option<String>) {
    let path = app.folder.path().join(file);
    app.restart_with(|config| {
        let from = database_of(&config.store).expect("a place");
        config.store.url = url.map(SecretText::from);
        config.store.path = path;
        let to = database_of(&config.store).expect("a place");
        Store::copy(&from, &to, "test:1", time(BEGIN), &mut |_| {}).expect("copied");
    })
    .await;
}

/// Adds a burn and returns the notifications of the next cycle.
async fn receive_burn(app: &TestApp, hour: u32) -> Vec<String> {
    app.edit(|edit| edit.add_burn("beta", burn(&format!("2026-03-01T{hour:02}:00:00Z"), 9_000.0)));
    app.at(&format!("2026-03-01T{hour:02}:30:00Z"));
    app.tick_and_deliver().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn daemon_on_a_copied_database_repeats_nothing_and_continues_pending_deliveries() {
    let mut app = TestApp::with(Setup { is_on_file: true, ..Setup::default() }).await;
    assert_eq!(app.tick_and_deliver().await.len(), 1, "the cliff within 30 days");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-01T00:30:00Z", 7_000.0)));
    app.at("2026-03-01T01:00:00Z");
    app.hook.respond_always(Some(503));
    app.poll(Endpoint::Burn).await;
    app.deliver().await;
    let failed = app.hook.tried().pop().expect("an attempt");
    app.hook.respond_always(None);

    move_database(&mut app, "there.db", create_schema()).await;
    app.at("2026-03-01T02:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert!(notified.len() == 1 && notified[0].contains("Burned alpha"), "the pending delivery: {notified:?}");
    assert_eq!(app.hook.tried().last(), Some(&failed), "the webhook id changed");
    let notified = receive_burn(&app, 3).await;
    assert!(notified.len() == 1 && notified[0].contains("Burned beta"), "the new burn: {notified:?}");

    move_database(&mut app, "home.db", None).await;
    app.at("2026-03-01T04:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "nothing is repeated");
    let notified = receive_burn(&app, 5).await;
    assert!(notified.len() == 1 && notified[0].contains("Burned beta"), "the new burn: {notified:?}");
}
