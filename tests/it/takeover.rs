//! Files of an instance that takes over may be older than those of the instance before it. In one process: the app restarts with the files
//! of the other instance, on the same database.

use cliffwatch::model::config::Config;
use cliffwatch::model::supply::Endpoint;

use crate::it::support::{TestApp, burn, lines};

/// A config from before the receiver `ops` was added.
fn without_ops(config: &mut Config) {
    config.receivers.retain(|receiver| receiver.name != "ops");
    config.route.receivers = vec!["desk".to_owned()];
}

/// Returns an app with a delivery to `ops` that is retried, and its webhook id.
async fn with_pending_delivery() -> (TestApp, String) {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-01T00:30:00Z", 7_000.0)));
    app.at("2026-03-01T01:00:00Z");
    app.hook.respond_always(Some(503));
    app.poll(Endpoint::Burn).await;
    app.deliver().await;
    let id = app.hook.tried().pop().expect("an attempt");
    app.hook.respond_always(None);
    (app, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphan_is_sent_with_its_id_when_its_receiver_returns() {
    let (mut app, id) = with_pending_delivery().await;
    let config = app.config.clone();
    app.restart_with(without_ops).await;
    app.at("2026-03-01T03:00:00Z");
    app.deliver().await;
    app.deliver().await;
    let announced = lines(&app.desk.take());
    assert!(announced.len() == 1 && announced[0].contains("Not delivered to ops"), "{announced:#?}");
    app.restart_with(|current| *current = config.clone()).await;
    app.deliver().await;
    assert_eq!(app.hook.accepted().iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id]);
    app.hook.take();

    // After a week, it is of no use.
    let (mut app, _) = with_pending_delivery().await;
    let config = app.config.clone();
    app.restart_with(without_ops).await;
    app.deliver().await;
    app.deliver().await;
    app.desk.take();
    app.at("2026-03-09T03:00:00Z");
    app.restart_with(|current| *current = config.clone()).await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_counts_as_removed_just_after_a_takeover() {
    let (mut app, id) = with_pending_delivery().await;
    let (config, file) = (app.config.clone(), app.folder.path().join("rules/test.toml"));
    let rules = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, "[[rule]]\nalert = \"BoughtBack\"\non = \"buyback\"\n").expect("written");
    app.restart_with(|config| {
        without_ops(config);
        config.watch.tokens = vec!["beta".to_owned()];
    })
    .await;
    app.app().deps().outbox.begin_takeover();
    app.at("2026-03-01T03:00:00Z");
    app.tick_and_deliver().await;
    assert_eq!(lines(&app.desk.take()), [""; 0], "no dead letter, and no alert ends");

    // The current files arrive.
    std::fs::write(&file, rules).expect("written");
    app.restart_with(|current| *current = config.clone()).await;
    app.at("2026-03-01T05:00:00Z");
    app.tick().await;
    app.deliver().await;
    assert_eq!(app.hook.accepted().iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id], "nothing fires again");
    app.hook.take();
}
