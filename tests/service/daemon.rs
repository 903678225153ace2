//! Runs the daemon against the service with every configurable API version, and compares its snapshot with the responses.

use std::path::Path;

use cliffwatch::{
    daemon::{
        app::{App, Drive},
        schedule::Job,
    },
    model::supply::{Endpoint, Resource, TokenId},
    service::{MirrorScope, Options, Service},
};
use serde_json::Value;

use crate::service::support::{Server, for_all, options};

/// The versions of each round: unlock events, token list, upcoming, burn and buyback, allocations, daily, weekly, and investors.
const ROUNDS: [[u8; 8]; 5] = [
    [1, 1, 1, 1, 1, 1, 1, 1],
    [2, 2, 5, 5, 2, 2, 2, 5],
    [3, 3, 1, 1, 5, 5, 3, 1],
    [4, 4, 5, 5, 1, 1, 1, 5],
    [5, 5, 5, 5, 5, 5, 3, 5],
];

/// Opens a manually driven app that polls `server` for tokens that every version has.
pub async fn daemon(folder: &Path, server: &Server, more: &str) -> App {
    let text = format!(
        r#"
[source]
base_url = "http://{address}"
legacy_base_url = "http://{address}"
requests_per_minute = 60000
page_size = 500
history = "20000d"
horizon = "20000d"
{more}
[watch]
tokens = ["optimism", "sui", "bnb", "hyperliquid"]
[store]
path = "daemon.db"
[http]
listen = "off"
[rules]
paths = []
"#,
        address = server.address,
    );
    let path = folder.join("cliffwatch.toml");
    std::fs::write(&path, text).unwrap();
    let loaded = cliffwatch::daemon::config::load(Some(&path), &cliffwatch::daemon::config::Environment::default());
    let problems = cliffwatch::model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false);
    let config = loaded.config.unwrap_or_else(|| panic!("{problems}"));
    App::open(config, folder, options().clock, Drive::Manual).await.unwrap()
}

async fn stored(app: &App, token: &str, resource: Resource) -> Vec<String> {
    let tokens = app.store().tokens(vec![TokenId::from(token)], vec![resource]).await.unwrap();
    let mut stored: Vec<String> =
        tokens[0].records.iter().map(|tracked| serde_json::to_value(&tracked.record).unwrap().to_string()).collect();
    stored.sort_unstable();
    stored
}

/// The items of a response as sorted JSON texts. `list` is the JSON pointer of the list.
async fn served(server: &Server, path: &str, list: &str) -> Vec<String> {
    let data = server.data(path).await;
    let mut served: Vec<String> = data.pointer(list).unwrap().as_array().unwrap().iter().map(Value::to_string).collect();
    served.sort_unstable();
    served
}

#[tokio::test]
async fn daemon_stores_exact_responses_of_every_version() {
    let server = Server::of(for_all()).await;
    for [events, list, upcoming, burn, allocations, daily, weekly, investors_version] in ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let more = format!(
            "unlock_events = \"v{events}\"\ntoken_list = \"v{list}\"\nupcoming = \"v{upcoming}\"\nburn = \"v{burn}\"\nbuyback = \"v{burn}\"\n\
             allocations = \"v{allocations}\"\ndaily_emission = \"v{daily}\"\nweekly_emission = \"v{weekly}\"\ninvestors = \"v{investors_version}\"\n\
             [schedule]\ninvestors = \"0 0 0 * * *\"\n"
        );
        let app = daemon(folder.path(), &server, &more).await;
        for job in app.jobs() {
            let report = app.tick(job).await.unwrap();
            let failed: Vec<_> = report.failed.iter().map(|(feed, failure)| format!("{feed}: {}", failure.message)).collect();
            assert!(failed.is_empty(), "{events}: {report}: {failed:#?}");
        }
        let path = if events < 5 {
            format!("/v{events}/unlock/events?tokenId=optimism")
        } else {
            "/v5/unlock/events/optimism?pageSize=500".into()
        };
        assert_eq!(stored(&app, "optimism", Resource::Unlock).await, served(&server, &path, "").await, "unlock events v{events}");
        let bnb = served(&server, &format!("/v{burn}/burn/bnb"), "/burns").await;
        // Token lists before version 4 do not report whether a token has burns. The daemon polls burns anyway.
        assert_eq!(stored(&app, "bnb", Resource::Burn).await, bnb, "burn v{burn}, token list v{list}");
        let hyperliquid = served(&server, &format!("/v{burn}/buyback/hyperliquid"), "/buybacks").await;
        assert_eq!(stored(&app, "hyperliquid", Resource::Buyback).await, hyperliquid, "buyback v{burn}");
        let path =
            if allocations < 5 { format!("/v{allocations}/allocations?tokenId=sui") } else { "/v5/allocations/sui".into() };
        assert_eq!(
            stored(&app, "sui", Resource::Allocation).await,
            served(&server, &path, "/allocations").await,
            "allocations v{allocations}"
        );
        let investors: Vec<String> =
            app.store().investors().await.unwrap().iter().map(|item| serde_json::to_value(item).unwrap().to_string()).collect();
        assert_eq!(investors.len(), 120);
        let listed = served(&server, "/v1/fundraising/investors/list", "").await;
        assert!(investors.iter().all(|item| listed.binary_search(item).is_ok()));
        app.close().await.unwrap();

        // A mirror of the daemon must return the same payloads as the source.
        let mirror = mirror_of(folder.path()).await;
        let mut paths = vec![format!("/v{list}/token/list"), format!("/v{investors_version}/fundraising/investors/list")];
        if investors_version == 5 {
            paths[1].push_str("?pageSize=500");
        }
        for token in TOKENS {
            paths.extend([
                path_of("unlock/events", events, token, "&pageSize=500"),
                path_of("allocations", allocations, token, ""),
                format!("/v{burn}/burn/{token}"),
                format!("/v{burn}/burn/{token}?start=2025-04-17&end=2025-10-20"),
                format!("/v{burn}/buyback/{token}?end=2026-01-31"),
            ]);
        }
        for path in paths {
            assert_same(&path, &mirror.data(&path).await, &server.data(&path).await);
        }
    }
}

/// The tokens that the daemon watches.
const TOKENS: [&str; 4] = ["optimism", "sui", "bnb", "hyperliquid"];

/// The path for a token. In version 5, the token is part of the path, and responses are paged.
fn path_of(resource: &str, version: u8, token: &str, query: &str) -> String {
    match version {
        5 => format!("/v5/{resource}/{token}{}", query.replacen('&', "?", 1)),
        _ => format!("/v{version}/{resource}?tokenId={token}{}", query.replace("&pageSize=500", "")),
    }
}

async fn mirror_of(folder: &Path) -> Server {
    let options = Options { all_tokens: true, ..options() };
    Server::of(&Service::mirror(&folder.join("daemon.db"), MirrorScope::unknown(), None, options).unwrap()).await
}

/// Compares two payloads item by item, to keep failure messages short.
#[track_caller]
fn assert_same(path: &str, one: &Value, other: &Value) {
    let items = |value: &Value| {
        let mut items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        for rows in items.iter_mut().filter_map(|item| item.get_mut("allocations")?.as_array_mut()) {
            // The order of allocation rows is not guaranteed.
            rows.sort_by_key(Value::to_string);
        }
        items
    };
    let (ones, others) = (items(one), items(other));
    for (index, (one, other)) in ones.iter().zip(&others).enumerate() {
        assert_eq!(one, other, "{path}: item {index}");
    }
    assert_eq!(ones.len(), others.len(), "{path}");
}

#[tokio::test]
async fn daemon_stores_upcoming_events_of_every_version() {
    let server = Server::of(for_all()).await;
    for version in [1, 5] {
        let folder = tempfile::tempdir().unwrap();
        let app = daemon(folder.path(), &server, &format!("upcoming = \"v{version}\"\n")).await;
        for endpoint in [Endpoint::TokenList, Endpoint::Upcoming] {
            let report = app.tick(Job::Poll(endpoint)).await.unwrap();
            assert!(report.failed.is_empty(), "{report}: {:?}", report.failed);
        }
        app.close().await.unwrap();
        let mirror = mirror_of(folder.path()).await;
        let path = format!("/v{version}/unlock/events/upcoming{}", if version == 5 { "?pageSize=500" } else { "" });
        // The response contains all tokens, of which the daemon stores the watched ones.
        let mut served = server.data(&path).await;
        served.as_array_mut().unwrap().retain(|row| TOKENS.contains(&row["tokenId"].as_str().unwrap()));
        assert_eq!(served.as_array().unwrap().len(), 2, "Optimism and Sui have an upcoming cliff: {served}");
        assert_same(&path, &mirror.data(&path).await, &served);
    }
}

#[tokio::test]
async fn daemon_stores_emission_of_every_version() {
    let server = Server::of(for_all()).await;
    for (endpoint, key, version, path) in [
        (Endpoint::DailyEmission, "daily_emission", 1, "/v1/daily-emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::DailyEmission, "daily_emission", 2, "/v2/daily-emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::DailyEmission, "daily_emission", 5, "/v5/daily-emission/optimism?end=2081-01-01&pageSize=500"),
        (Endpoint::WeeklyEmission, "weekly_emission", 1, "/v1/emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::WeeklyEmission, "weekly_emission", 2, "/v2/emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::WeeklyEmission, "weekly_emission", 3, "/v3/emission?tokenId=optimism&end=2081-01-01"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let app = daemon(folder.path(), &server, &format!("{key} = \"v{version}\"\n[schedule]\n{key} = \"0 0 0 * * *\"\n")).await;
        app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
        let report = app.tick(Job::Poll(endpoint)).await.unwrap();
        assert!(report.failed.is_empty(), "{report}: {:?}", report.failed);
        let mut served = served(&server, path, "").await;
        for page in 2.. {
            if version < 5 || served.len() % 500 != 0 {
                break;
            }
            served.extend(self::served(&server, &format!("{path}&page={page}"), "").await);
        }
        served.sort_unstable();
        assert_eq!(stored(&app, "optimism", Resource::Emission).await, served, "{key} v{version}");
        app.close().await.unwrap();
        let mirror = mirror_of(folder.path()).await;
        let window = path.replacen("end=2081-01-01", "start=2024-05-29&end=2026-06-30", 1);
        assert_same(&window, &mirror.data(&window).await, &server.data(&window).await);
    }
}
