//! The daemon's snapshot for others: what the source told, how old it is, and honest words where it told nothing.

use cliffwatch::{
    daemon::schedule::Job,
    model::{config, supply::Endpoint, watch::Watch},
    service::{DataFolder, MirrorScope, Options, Service},
    store::Place,
};
use serde_json::json;

use crate::{
    daemon::daemon,
    ports::free_port,
    support::{Server, bundled, options, time},
};

fn watch() -> Watch {
    let section: config::WatchSettings =
        serde_json::from_value(json!({"tokens": ["optimism", "sui", "bnb", "hyperliquid"]})).unwrap();
    Watch::build(&section).unwrap()
}

#[tokio::test]
async fn a_mirror_answers_what_the_source_told_and_says_how_old_it_is() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    let path = folder.path().join("daemon.db");
    let asked = vec![
        Endpoint::TokenList,
        Endpoint::Upcoming,
        Endpoint::UnlockEvents,
        Endpoint::Burn,
        Endpoint::Buyback,
        Endpoint::Allocations,
        Endpoint::WeeklyEmission,
    ];
    let opened = |clock: &str| {
        let options = Options { all_tokens: true, clock: cliffwatch::model::clock::Clock::manual(time(clock)), ..options() };
        Service::mirror(&path, MirrorScope::of(asked.clone(), watch()), None, options).unwrap()
    };
    let mirror = Server::of(&opened("2026-04-10T12:00:00Z")).await;
    for (asked, status, reason) in [
        // Nothing was read yet; and some of it never will be.
        ("/v5/token/list", 503, "token_list was not read from the source yet"),
        ("/v5/burn/bnb", 503, "token_list was not read from the source yet"),
    ] {
        let response = mirror.get(asked, &[]).await;
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (status, "60"), "{asked}");
        let text = response.text().await.unwrap();
        assert!(text.contains(reason), "{text}");
    }
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    app.tick(Job::Poll(Endpoint::UnlockEvents)).await.unwrap();
    app.tick(Job::Poll(Endpoint::Allocations)).await.unwrap();
    app.tick(Job::Poll(Endpoint::Burn)).await.unwrap();

    let mirror = Server::of(&opened("2026-04-10T13:30:00Z")).await;
    for path in [
        "/v5/token/list",
        "/v3/unlock/events?tokenId=optimism",
        "/v2/unlock/events?tokenId=optimism&start=2026-03-31&end=2026-04-30",
        "/v5/unlock/events/optimism?standardAllocation=privateInvestors",
        "/v5/allocations/sui",
        "/v5/burn/bnb?start=2025-04-17&end=2025-10-20",
    ] {
        let response = mirror.get(path, &[]).await;
        assert_eq!((response.status().as_u16(), response.headers()["age"].to_str().unwrap()), (200, "5400"), "{path}");
        let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(body["metadata"]["queryDate"], "2026-04-10T12:00:00Z", "when the source was asked");
        assert!(body["data"] == source.data(path).await, "{path} differs from what the source tells");
    }
    for (asked, status, reason) in [
        ("/v5/burn/nobody", 404, "token \"nobody\" is not known"),
        ("/v5/burn/arbitrum", 200, ""), // the list says that it has none
        ("/v5/unlock/events/arbitrum", 404, "does not watch that token"),
        ("/v5/buyback/hyperliquid", 503, "buyback of token \"hyperliquid\" was not read from the source yet"),
        ("/v5/daily-emission/sui", 404, "its daemon does not ask for it"),
        ("/v2/emission?tokenId=sui", 503, "weekly_emission of token \"sui\" was not read"),
        ("/v1/unlock/events?tokenId=optimism", 404, "without changes of rate: ask version 2 or newer"),
        ("/v5/fundraising/investors/list", 404, "its daemon does not ask for it"),
        ("/v5/fundraising/investors/polychain", 404, "a mirror has no funding rounds"),
        ("/v5/unlock/events/upcoming", 503, "upcoming was not read"),
    ] {
        let (answered, body) = mirror.ask(asked).await;
        assert_eq!(answered, status, "{asked}: {body}");
        assert!(body["errorMessage"].as_str().unwrap_or_default().contains(reason), "{asked}: {body}");
    }
    // What was read since is seen within moments.
    app.tick(Job::Poll(Endpoint::Upcoming)).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while mirror.ask("/v5/unlock/events/upcoming").await.0 != 200 {
        assert!(std::time::Instant::now() < deadline, "the poll is never seen");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let rows = mirror.data("/v5/unlock/events/upcoming?pageSize=500").await;
    let next = rows.as_array().unwrap().iter().find(|row| row["tokenId"] == "optimism").unwrap();
    assert_eq!(next["upcomingEvent"]["unlockDate"], "2026-04-30T00:00:00Z");
    app.close().await.unwrap();
}

#[tokio::test]
async fn a_schedule_that_was_told_without_its_lines_is_not_told_as_one_that_has_none() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v5\"\n").await; // cliffs only
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    app.tick(Job::Poll(Endpoint::UnlockEvents)).await.unwrap();
    app.close().await.unwrap();
    let database = folder.path().join("daemon.db");

    let keys = folder.path().join("keys.db");
    let key = Service::open(&keys, options()).unwrap().add_key("desk", 3).unwrap();
    let mirror = Service::mirror(&database, MirrorScope::unknown(), Some(&keys), options()).unwrap();
    let imported = Service::open(&folder.path().join("service.db"), options()).unwrap();
    imported.import_daemon(&Place::File(database.clone()), &mut |_, _| {}).unwrap();
    assert_eq!(imported.import_daemon(&Place::File(database.clone()), &mut |_, _| {}).unwrap().changed, 0, "the same twice");

    let server = Server::of(&mirror).await;
    assert_eq!(server.ask("/v5/unlock/events/optimism").await.0, 401, "whoever names a database of keys wants keys");
    let response = server.get("/v3/unlock/events?tokenId=optimism", &[("x-api-key", &key)]).await;
    assert_eq!(response.status(), 404);
    assert!(response.text().await.unwrap().contains("without linear unlocks: ask version 4 or 5"));
    let response = server.get("/v5/unlock/events/optimism?pageSize=500", &[("x-api-key", &key)]).await;
    let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!((&body["metadata"]["credit"]["used"], body["data"].as_array().unwrap().len()), (&json!(1), 39));

    let copy = Server::of(&imported).await;
    assert_eq!(copy.data("/v5/unlock/events/optimism?pageSize=500").await, body["data"]);
    assert_eq!(copy.ask("/v3/unlock/events?tokenId=optimism").await.0, 404);
    assert_eq!(copy.ask("/v5/daily-emission/optimism").await.0, 404, "no day is made from half a schedule");
    assert_eq!(copy.data("/v5/token/list").await, source.data("/v5/token/list").await);
}

/// A copy of a daemon's data knows what the daemon read: of the rest it says that it does not know it, also after an export.
#[tokio::test]
async fn what_a_daemon_never_read_is_not_told_as_nothing_by_a_copy_of_its_data() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    for endpoint in [Endpoint::TokenList, Endpoint::UnlockEvents, Endpoint::Burn] {
        app.tick(Job::Poll(endpoint)).await.unwrap();
    }
    app.close().await.unwrap();
    let imported = Service::open(&folder.path().join("one.db"), options()).unwrap();
    imported.import_daemon(&Place::File(folder.path().join("daemon.db")), &mut |_, _| {}).unwrap();
    let out = folder.path().join("out");
    imported.export(&out, &mut |_| {}).unwrap();
    let again = Service::open(&folder.path().join("two.db"), options()).unwrap();
    again.import(DataFolder::open(&out).unwrap(), |_| {}).unwrap();
    let mirror = Service::mirror(&folder.path().join("daemon.db"), MirrorScope::unknown(), None, options()).unwrap();
    let straight = folder.path().join("straight");
    mirror.export(&straight, &mut |_| {}).unwrap();
    assert_eq!(std::fs::read(out.join("gaps.json")).unwrap(), std::fs::read(straight.join("gaps.json")).unwrap());

    for service in [&imported, &again] {
        let server = Server::of(service).await;
        for (path, reason) in [
            ("/v1/unlock/events?tokenId=optimism", "without changes of rate: ask version 2 or newer"),
            ("/v5/unlock/events/zora", "unlock_events of token \"zora\" is not known here"),
            ("/v5/buyback/hyperliquid", "the daemon that this data came from never read it"),
            ("/v5/allocations/optimism", "allocations of token \"optimism\" is not known here"),
            ("/v5/fundraising/investors/list", "investors is not known here"),
            ("/v5/fundraising/investors/polychain", "investors is not known here"),
            ("/v5/fundraising/token/sei", "investors is not known here"),
        ] {
            let (status, body) = server.ask(path).await;
            assert_eq!(status, 404, "{path}: {body}");
            assert!(body["errorMessage"].as_str().unwrap().contains(reason), "{path}: {body}");
        }
        // What was read is told; where the list says that there are none, there are none.
        for path in ["/v2/unlock/events?tokenId=optimism", "/v5/burn/bnb"] {
            assert_eq!(server.data(path).await, source.data(path).await, "{path}");
        }
        assert_eq!(server.data("/v5/burn/arbitrum").await["burns"], json!([]));
    }
    std::fs::write(out.join("gaps.json"), r#"[{"tokenId": "nobody", "missing": ["burn"]}, {"missing": ["weather"]}]"#).unwrap();
    let refused = again.import(DataFolder::open(&out).unwrap(), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("gaps.json: [0]: token \"nobody\" is not in tokens.json"), "{refused}");
    assert!(refused.contains("gaps.json: [1]: missing has \"weather\": there are token_list, "), "{refused}");
}

/// What its daemon did not ask for is not told as nothing: neither a day before its history, nor a sum that reaches back beyond it.
#[tokio::test]
async fn a_mirror_refuses_windows_from_before_its_history_and_says_from_when_it_knows() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    for endpoint in [Endpoint::TokenList, Endpoint::UnlockEvents, Endpoint::Burn, Endpoint::Buyback] {
        app.tick(Job::Poll(endpoint)).await.unwrap();
    }
    app.close().await.unwrap();
    let year = MirrorScope::unknown().reaching_back("365d".parse().unwrap());
    let path = folder.path().join("daemon.db");
    let opened = |scope| Service::mirror(&path, scope, None, Options { all_tokens: true, ..options() }).unwrap();
    // The source was read at noon of 10 April 2026.
    let mirror = Server::of(&opened(year)).await;
    for (asked, status) in [
        ("/v5/burn/bnb", 200),
        ("/v5/burn/bnb?start=2025-04-10", 200),
        ("/v5/burn/bnb?start=2025-04-09", 404), // the sum would lack a day
        ("/v5/burn/bnb?start=2020-01-01&end=2020-12-31", 404),
        ("/v5/burn/bnb?end=2025-04-09", 404),
        ("/v5/buyback/hyperliquid?start=2020-01-01", 404),
        ("/v5/unlock/events/optimism?start=2020-01-01", 200),
        ("/v5/unlock/events/optimism?start=2020-01-01&end=2025-04-09", 404),
        ("/v3/unlock/events?tokenId=optimism&end=2025-04-09", 404),
    ] {
        let (answered, body) = mirror.ask(asked).await;
        assert_eq!(answered, status, "{asked}: {body}");
        if status == 404 {
            let message = body["errorMessage"].as_str().unwrap();
            assert!(
                message.contains("knows nothing from before 2025-04-10") && message.contains("history"),
                "{asked}: {message}"
            );
        }
    }
    // One that asks for everything has everything.
    let whole = Server::of(&opened(MirrorScope::unknown())).await;
    assert_eq!(whole.ask("/v5/burn/bnb?start=2020-01-01&end=2020-12-31").await.0, 200);
}

#[tokio::test]
async fn a_schedule_that_a_folder_does_not_cover_is_not_told_as_one_without_unlocks() {
    let server = Server::of(bundled()).await;
    for path in ["/v5/unlock/events/okb", "/v3/unlock/events?tokenId=okb", "/v5/daily-emission/okb", "/v2/emission?tokenId=okb"] {
        let (status, body) = server.ask(path).await;
        assert_eq!(status, 404, "{path}: {body}");
        assert!(body["errorMessage"].as_str().unwrap().contains("not known here"), "{path}: {body}");
    }
    // The rest of it is known.
    assert_eq!(server.ask("/v5/burn/okb").await.0, 200);
    assert_eq!(server.ask("/v5/unlock/events/solana").await.0, 200, "what is covered in part is told");
}

#[tokio::test]
async fn the_daemon_serves_its_mirror_where_the_config_says_so() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let app = daemon(folder.path(), &source, &format!("[mirror]\nlisten = \"{address}\"\n")).await;
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (told, started) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(app.run(async move { drop(stopped.await) }, move |_| told.send(()).unwrap()));
    started.await.unwrap();
    let answer = reqwest::get(format!("http://{address}/v5/token/list")).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().contains_key("age")), (200, true));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(reqwest::get(format!("http://{address}/v5/token/list")).await.is_err(), "it ends with the daemon");
}
