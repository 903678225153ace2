//! The daemon against the service in every version that its config can ask for: what it keeps is what it was told.

use std::path::Path;

use cliffwatch::{
    app::{App, Drive},
    config,
    schedule::Job,
    supply::{Endpoint, Resource, TokenId},
};
use serde_json::Value;

use crate::support::{Server, for_all, options};

/// Versions of one round: unlock events, token list, upcoming, burn and buyback, allocations, daily, weekly, investors.
const ROUNDS: [[u8; 8]; 5] = [
    [1, 1, 1, 1, 1, 1, 1, 1],
    [2, 2, 5, 5, 2, 2, 2, 5],
    [3, 3, 1, 1, 5, 5, 3, 1],
    [4, 4, 5, 5, 1, 1, 1, 5],
    [5, 5, 5, 5, 5, 5, 3, 5],
];

/// A daemon that asks `server`, turned by hand, for some tokens of which each version knows.
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
"#,
        address = server.address,
    );
    let path = folder.join("cliffwatch.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::create_dir_all(folder.join("rules")).unwrap();
    std::fs::write(folder.join("rules/none.toml"), "").unwrap();
    let loaded = config::load::load(Some(&path), &config::load::Environment::default());
    let problems = cliffwatch::diagnostic::render(&loaded.diagnostics, &loaded.sources, false);
    let config = loaded.config.unwrap_or_else(|| panic!("{problems}"));
    App::open(config, folder, options().clock, Drive::Crank).await.unwrap()
}

async fn kept(app: &App, token: &str, resource: Resource) -> Vec<String> {
    let tokens = app.store().tokens(vec![TokenId::from(token)], vec![resource]).await.unwrap();
    let mut kept: Vec<String> =
        tokens[0].records.iter().map(|tracked| serde_json::to_value(&tracked.record).unwrap().to_string()).collect();
    kept.sort_unstable();
    kept
}

/// Items of an answer as sorted texts; `list` is where they stand.
async fn told(server: &Server, path: &str, list: &str) -> Vec<String> {
    let data = server.data(path).await;
    let mut told: Vec<String> = data.pointer(list).unwrap().as_array().unwrap().iter().map(Value::to_string).collect();
    told.sort_unstable();
    told
}

#[tokio::test]
async fn in_every_version_the_daemon_keeps_exactly_what_it_was_told() {
    let server = Server::of(for_all()).await;
    for [events, list, upcoming, burn, allocations, daily, weekly, investors] in ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let more = format!(
            "unlock_events = \"v{events}\"\ntoken_list = \"v{list}\"\nupcoming = \"v{upcoming}\"\nburn = \"v{burn}\"\nbuyback = \"v{burn}\"\n\
             allocations = \"v{allocations}\"\ndaily_emission = \"v{daily}\"\nweekly_emission = \"v{weekly}\"\ninvestors = \"v{investors}\"\n\
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
        assert_eq!(kept(&app, "optimism", Resource::Unlock).await, told(&server, &path, "").await, "unlock events v{events}");
        let bnb = told(&server, &format!("/v{burn}/burn/bnb"), "/burns").await;
        // Before the fourth version nobody says that a token has burns, and the daemon asks all the same.
        assert_eq!(kept(&app, "bnb", Resource::Burn).await, bnb, "burn v{burn}, token list v{list}");
        let hyperliquid = told(&server, &format!("/v{burn}/buyback/hyperliquid"), "/buybacks").await;
        assert_eq!(kept(&app, "hyperliquid", Resource::Buyback).await, hyperliquid, "buyback v{burn}");
        let path =
            if allocations < 5 { format!("/v{allocations}/allocations?tokenId=sui") } else { "/v5/allocations/sui".into() };
        if allocations > 1 {
            assert_eq!(
                kept(&app, "sui", Resource::Allocation).await,
                told(&server, &path, "/allocations").await,
                "allocations v{allocations}"
            );
        }
        let investors: Vec<String> =
            app.store().investors().await.unwrap().iter().map(|item| serde_json::to_value(item).unwrap().to_string()).collect();
        assert_eq!(investors.len(), 120);
        let listed = told(&server, "/v1/fundraising/investors/list", "").await;
        assert!(investors.iter().all(|item| listed.binary_search(item).is_ok()));
        app.close().await.unwrap();
    }
}

#[tokio::test]
async fn days_and_weeks_are_kept_as_they_were_told_in_every_version() {
    let server = Server::of(for_all()).await;
    for (endpoint, key, version, path) in [
        (Endpoint::DailyEmission, "daily_emission", 1, "/v1/daily-emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::DailyEmission, "daily_emission", 2, "/v2/daily-emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::DailyEmission, "daily_emission", 5, "/v2/daily-emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::WeeklyEmission, "weekly_emission", 1, "/v1/emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::WeeklyEmission, "weekly_emission", 2, "/v2/emission?tokenId=optimism&end=2081-01-01"),
        (Endpoint::WeeklyEmission, "weekly_emission", 3, "/v3/emission?tokenId=optimism&end=2081-01-01"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let app = daemon(folder.path(), &server, &format!("{key} = \"v{version}\"\n[schedule]\n{key} = \"0 0 0 * * *\"\n")).await;
        app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
        let report = app.tick(Job::Poll(endpoint)).await.unwrap();
        assert!(report.failed.is_empty(), "{report}: {:?}", report.failed);
        let told = told(&server, path, "").await;
        let kept = kept(&app, "optimism", Resource::Emission).await;
        if version == 5 {
            // Beside the claims, which the pages of the fifth version show, it is what the second tells.
            assert_eq!(kept.len(), told.len());
        } else {
            assert_eq!(kept, told, "{key} v{version}");
        }
        app.close().await.unwrap();
    }
}
