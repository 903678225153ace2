//! The mirror serves the daemon's snapshot with its age, and explains missing data.

use cliffwatch::{
    daemon::schedule::Job,
    model::{config, supply::Endpoint, watch::Watch},
    service::{DataFolder, MirrorScope, Options, Service},
    store::DatabaseLocation,
};
use serde_json::json;
use testkit::free_port;

use crate::service::{
    daemon::daemon,
    support::{Server, bundled, options, time},
};

fn watch() -> Watch {
    let section: config::WatchSettings =
        serde_json::from_value(json!({"tokens": ["optimism", "sui", "bnb", "hyperliquid"]})).unwrap();
    Watch::build(&section).unwrap()
}

#[tokio::test]
async fn mirror_returns_the_source_data_with_its_age() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    let path = folder.path().join("daemon.db");
    let requested = vec![
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
        Service::mirror(&path, MirrorScope::of(requested.clone(), watch()), None, options).unwrap()
    };
    let mirror = Server::of(&opened("2026-04-10T12:00:00Z")).await;
    for (requested, status, reason) in [
        // Nothing was polled yet.
        ("/v5/token/list", 503, "token_list was not polled yet"),
        ("/v5/burn/bnb", 503, "token_list was not polled yet"),
    ] {
        let response = mirror.get(requested, &[]).await;
        assert_eq!(
            (response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()),
            (status, "60"),
            "{requested}"
        );
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
        assert_eq!(body["metadata"]["queryDate"], "2026-04-10T12:00:00Z", "the time of the poll");
        assert!(body["data"] == source.data(path).await, "{path} differs from the source");
    }
    for (requested, status, reason) in [
        ("/v5/burn/nonexistent", 404, "unknown token \"nonexistent\""),
        ("/v5/burn/arbitrum", 200, ""), // the token list reports no burns
        ("/v5/unlock/events/arbitrum", 404, "does not watch this token"),
        ("/v5/buyback/hyperliquid", 503, "buyback of token \"hyperliquid\" was not polled yet"),
        ("/v5/daily-emission/sui", 404, "its daemon does not poll it"),
        ("/v2/emission?tokenId=sui", 503, "weekly_emission of token \"sui\" was not polled yet"),
        ("/v1/unlock/events?tokenId=optimism", 404, "without changes of rate, which version 1 needs: request version 2 or newer"),
        ("/v5/fundraising/investors/list", 404, "its daemon does not poll it"),
        ("/v5/fundraising/investors/polychain", 404, "a mirror does not serve funding rounds"),
        ("/v5/unlock/events/upcoming", 503, "upcoming was not polled yet"),
    ] {
        let (responded, body) = mirror.request(requested).await;
        assert_eq!(responded, status, "{requested}: {body}");
        assert!(body["errorMessage"].as_str().unwrap_or_default().contains(reason), "{requested}: {body}");
    }
    // A later poll becomes visible shortly after.
    app.tick(Job::Poll(Endpoint::Upcoming)).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while mirror.request("/v5/unlock/events/upcoming").await.0 != 200 {
        assert!(std::time::Instant::now() < deadline, "the poll does not become visible");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let rows = mirror.data("/v5/unlock/events/upcoming?pageSize=500").await;
    let next = rows.as_array().unwrap().iter().find(|row| row["tokenId"] == "optimism").unwrap();
    assert_eq!(next["upcomingEvent"]["unlockDate"], "2026-04-30T00:00:00Z");
    app.close().await.unwrap();
}

#[tokio::test]
async fn schedule_polled_without_linear_unlocks_is_not_served_as_complete() {
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
    imported.import_daemon(&DatabaseLocation::File(database.clone()), &mut |_, _| {}).unwrap();
    assert_eq!(
        imported.import_daemon(&DatabaseLocation::File(database.clone()), &mut |_, _| {}).unwrap().changed,
        0,
        "a second import changes nothing"
    );

    let server = Server::of(&mirror).await;
    assert_eq!(server.request("/v5/unlock/events/optimism").await.0, 401, "a database of keys makes keys required");
    let response = server.get("/v3/unlock/events?tokenId=optimism", &[("x-api-key", &key)]).await;
    assert_eq!(response.status(), 404);
    assert!(response.text().await.unwrap().contains("without linear unlocks, as in version 4: request version 4 or 5"));
    let response = server.get("/v5/unlock/events/optimism?pageSize=500", &[("x-api-key", &key)]).await;
    let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!((&body["metadata"]["credit"]["used"], body["data"].as_array().unwrap().len()), (&json!(1), 39));

    let copy = Server::of(&imported).await;
    assert_eq!(copy.data("/v5/unlock/events/optimism?pageSize=500").await, body["data"]);
    assert_eq!(copy.request("/v3/unlock/events?tokenId=optimism").await.0, 404);
    assert_eq!(copy.request("/v5/daily-emission/optimism").await.0, 404, "daily emission needs a complete schedule");
    assert_eq!(copy.data("/v5/token/list").await, source.data("/v5/token/list").await);
}

/// A copy of a daemon's data returns an error for feeds that the daemon never polled, also after an export.
#[tokio::test]
async fn feeds_never_polled_are_errors_in_a_copy() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    for endpoint in [Endpoint::TokenList, Endpoint::UnlockEvents, Endpoint::Burn] {
        app.tick(Job::Poll(endpoint)).await.unwrap();
    }
    app.close().await.unwrap();
    let imported = Service::open(&folder.path().join("one.db"), options()).unwrap();
    imported.import_daemon(&DatabaseLocation::File(folder.path().join("daemon.db")), &mut |_, _| {}).unwrap();
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
            ("/v1/unlock/events?tokenId=optimism", "without changes of rate, which version 1 needs: request version 2 or newer"),
            ("/v5/unlock/events/zora", "no data of unlock_events for token \"zora\""),
            ("/v5/buyback/hyperliquid", "the imported daemon never polled it"),
            ("/v5/allocations/optimism", "no data of allocations for token \"optimism\""),
            ("/v5/fundraising/investors/list", "no data of investors"),
            ("/v5/fundraising/investors/polychain", "no data of investors"),
            ("/v5/fundraising/token/sei", "no data of investors"),
        ] {
            let (status, body) = server.request(path).await;
            assert_eq!(status, 404, "{path}: {body}");
            assert!(body["errorMessage"].as_str().unwrap().contains(reason), "{path}: {body}");
        }
        // Polled feeds are served. If the token list reports no burns, the list is empty.
        for path in ["/v2/unlock/events?tokenId=optimism", "/v5/burn/bnb"] {
            assert_eq!(server.data(path).await, source.data(path).await, "{path}");
        }
        assert_eq!(server.data("/v5/burn/arbitrum").await["burns"], json!([]));
    }
    std::fs::write(out.join("gaps.json"), r#"[{"tokenId": "nonexistent", "missing": ["burn"]}, {"missing": ["weather"]}]"#)
        .unwrap();
    let error = again.import(DataFolder::open(&out).unwrap(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("gaps.json: [0]: token \"nonexistent\" is not in tokens.json"), "{error}");
    assert!(error.contains("gaps.json: [1]: unknown value \"weather\" in `missing`: expected one of token_list, "), "{error}");
}

/// Days before the daemon's history are an error, and so are totals that include such days.
#[tokio::test]
async fn mirror_rejects_windows_before_its_history() {
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
    // The source was polled at noon on 10 April 2026.
    let mirror = Server::of(&opened(year)).await;
    for (requested, status) in [
        ("/v5/burn/bnb", 200),
        ("/v5/burn/bnb?start=2025-04-10", 200),
        ("/v5/burn/bnb?start=2025-04-09", 404), // the total would miss a day
        ("/v5/burn/bnb?start=2020-01-01&end=2020-12-31", 404),
        ("/v5/burn/bnb?end=2025-04-09", 404),
        ("/v5/buyback/hyperliquid?start=2020-01-01", 404),
        ("/v5/unlock/events/optimism?start=2020-01-01", 200),
        ("/v5/unlock/events/optimism?start=2020-01-01&end=2025-04-09", 404),
        ("/v3/unlock/events?tokenId=optimism&end=2025-04-09", 404),
    ] {
        let (responded, body) = mirror.request(requested).await;
        assert_eq!(responded, status, "{requested}: {body}");
        if status == 404 {
            let message = body["errorMessage"].as_str().unwrap();
            assert!(message.contains("has no data before 2025-04-10") && message.contains("history"), "{requested}: {message}");
        }
    }
    // With an unlimited history, all data is available.
    let unlimited = Server::of(&opened(MirrorScope::unknown())).await;
    assert_eq!(unlimited.request("/v5/burn/bnb?start=2020-01-01&end=2020-12-31").await.0, 200);
}

#[tokio::test]
async fn token_without_a_schedule_is_not_served_as_one_without_unlocks() {
    let server = Server::of(bundled()).await;
    for path in ["/v5/unlock/events/okb", "/v3/unlock/events?tokenId=okb", "/v5/daily-emission/okb", "/v2/emission?tokenId=okb"] {
        let (status, body) = server.request(path).await;
        assert_eq!(status, 404, "{path}: {body}");
        assert!(body["errorMessage"].as_str().unwrap().starts_with("no "), "{path}: {body}");
    }
    // Other data of the token is available.
    assert_eq!(server.request("/v5/burn/okb").await.0, 200);
    assert_eq!(server.request("/v5/unlock/events/solana").await.0, 200, "a partially covered schedule is served");
}

#[tokio::test]
async fn daemon_serves_the_configured_mirror() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let app = daemon(folder.path(), &source, &format!("[mirror]\nlisten = \"{address}\"\n")).await;
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, started) = tokio::sync::oneshot::channel();
    let running =
        tokio::spawn(app.run(cliffwatch::web::serve, async move { drop(stopped.await) }, move |_| ready.send(()).unwrap()));
    started.await.unwrap();
    let response = reqwest::get(format!("http://{address}/v5/token/list")).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().contains_key("age")), (200, true));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(reqwest::get(format!("http://{address}/v5/token/list")).await.is_err(), "the mirror stops with the daemon");
}
