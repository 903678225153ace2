//! A daemon that goes on with a copy of its database: on the other engine and home again where there is a server for the tests, else
//! from file to file.

use cliffwatch::{
    daemon::place::place_of,
    model::{Endpoint, config::SecretText},
    store::Store,
};

use crate::support::{BEGIN, Setup, TestApp, burn, schema_of_its_own, time};

/// Stops the app, copies its database and starts it on the copy: in the file of this name, or on the server.
async fn go_on_in(app: &mut TestApp, file: &str, url: Option<String>) {
    let path = app.folder.path().join(file);
    app.restart_with(|config| {
        let from = place_of(&config.store).expect("a place");
        config.store.url = url.map(SecretText::from);
        config.store.path = path;
        let to = place_of(&config.store).expect("a place");
        Store::copy(&from, &to, "test:1", time(BEGIN), &mut |_| {}).expect("copied");
    })
    .await;
}

/// A burn that nobody was told of yet, and what is told then.
async fn hear_of_a_burn(app: &TestApp, hour: u32) -> Vec<String> {
    app.edit(|edit| edit.add_burn("beta", burn(&format!("2026-03-01T{hour:02}:00:00Z"), 9_000.0)));
    app.at(&format!("2026-03-01T{hour:02}:30:00Z"));
    app.turn().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_on_the_copy_tells_nothing_again_and_goes_on_with_what_was_due() {
    let mut app = TestApp::with(Setup { is_on_file: true, ..Setup::default() }).await;
    assert_eq!(app.turn().await.len(), 1, "the cliff within 30 days");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-01T00:30:00Z", 7_000.0)));
    app.at("2026-03-01T01:00:00Z");
    app.hook.answer_always(Some(503));
    app.poll(Endpoint::Burn).await;
    app.deliver().await;
    let refused = app.hook.tried().pop().expect("it was tried");
    app.hook.answer_always(None);

    go_on_in(&mut app, "there.db", schema_of_its_own()).await;
    app.at("2026-03-01T02:00:00Z");
    let told = app.turn().await;
    assert!(told.len() == 1 && told[0].contains("Burned alpha"), "what was due: {told:?}");
    assert_eq!(app.hook.tried().last(), Some(&refused), "under the id that it had");
    let told = hear_of_a_burn(&app, 3).await;
    assert!(told.len() == 1 && told[0].contains("Burned beta"), "what is new: {told:?}");

    go_on_in(&mut app, "home.db", None).await;
    app.at("2026-03-01T04:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "all was told");
    let told = hear_of_a_burn(&app, 5).await;
    assert!(told.len() == 1 && told[0].contains("Burned beta"), "what is new: {told:?}");
}
