//! Pages, lists, and feeds that are narrowed to a group.

use chrono::TimeDelta;
use serde_json::json;

use super::supply::{World, get};
use super::{Browser, TOKEN, alert_of, assert_valid_page, location, run_with_data};
use crate::http::tests::{LOCAL, TestServer, now, run, with_unlocks};
use model::{Alert, AlertId, AlertState, Change, ChangeKind, Commit, GROUP_SUBJECT, Resource, TokenId, phrase};
use testkit::samples;

/// The pages that show only the tokens of a group.
const PAGES: [&str; 6] = ["/", "/calendar", "/calendar?view=list", "/tokens", "/changes", "/alerts"];

/// The lists and feeds that can be narrowed.
const LISTS: [&str; 7] =
    ["/api/v1/upcoming", "/api/v1/tokens", "/api/v1/changes", "/api/v1/alerts", "/api/v1/supply", "/calendar.ics", "/feed.atom"];

fn with(path: &str, parameter: &str) -> String {
    format!("{path}{}{parameter}", if path.contains('?') { '&' } else { '?' })
}

/// Returns the USD that a person adds up for a token: cliffs by their date, and the days of the linear unlock.
fn sum(world: &World, days: i64) -> f64 {
    let price = world.price.expect("a price");
    let cliffs = world.cliffs.iter().filter(|(at, _, _)| 0 < *at && *at <= days).map(|(_, _, amount)| amount * price);
    // The linear unlock takes 100 days, of which 90 are ahead.
    let linear = world.linear.map(|amount| amount / 100.0 * days as f64 * price);
    cliffs.sum::<f64>() + linear.unwrap_or_default()
}

#[tokio::test]
async fn figures_of_a_group_are_the_sums_of_its_tokens() {
    let mut random = fastrand::Rng::with_seed(0x600d);
    for round in 0..4 {
        let app = run(None, None).await;
        let mut book = Vec::new();
        for index in 0..8 {
            let exact = |(days, _, amount): (i64, &'static str, f64)| (days, "second", amount);
            let world = World::random(&mut random);
            let cliffs = world.cliffs.into_iter().map(exact).collect();
            let world =
                World { is_unread: false, is_cliffs_only: false, price: Some(world.price.unwrap_or(3.0)), cliffs, ..world };
            let is_of_book = index % 2 == 0;
            world.store(&app, &format!("{}-{index}", if is_of_book { "book" } else { "other" })).await;
            book.extend(is_of_book.then_some(world));
        }
        let mut browser = Browser::new(&app, LOCAL);
        let (_, page) = browser.get("/?group=book").await;
        assert_valid_page("/", &page);
        assert!(page.contains("<h1>Overview <span class=\"of\">of <bdi>@book</bdi></span></h1>"), "{page}");
        assert!(page.contains("<title>Overview of @book · Cliffwatch</title>"), "{page}");
        assert!(page.contains("4 watched tokens") && !page.contains("other-"), "{page}");
        let (_, api) = get(&app, "/api/v1/supply?group=book").await;
        for days in [7, 30, 90] {
            let expected: f64 = book.iter().map(|world| sum(world, days)).sum();
            let tile =
                format!("<span class=\"name\">Next {days} days</span><span class=\"value \">{}</span>", phrase::usd(expected));
            assert!(page.contains(&tile), "round {round}, {days} days: {tile}\n{page}");
            let total = api["ahead"][format!("{days}d")]["total"]["value"].as_f64().unwrap_or_default();
            assert!((total - expected).abs() <= expected * 1e-9, "round {round}: {total} instead of {expected}");
        }
    }
}

/// Stores unlocks and changes of a token in the group and of another one, and alerts about both and about two groups.
async fn with_two_books(app: &TestServer) {
    with_unlocks(app).await;
    let change = |token: &str| Change {
        token: Some(token.into()),
        summary: format!("{token} moved"),
        ..Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from(token))
    };
    let alert = |id: &str, token: Option<&str>, subject: &str| Alert {
        id: AlertId::from(id),
        token: token.map(TokenId::from),
        subject: subject.to_owned(),
        resource: None,
        annotations: [("summary".to_owned(), format!("alert {id}"))].into(),
        ..alert_of(&samples::unlock(), AlertState::Firing)
    };
    let alerts = vec![
        alert("al_arbitrum", Some("arbitrum"), "token/arbitrum"),
        alert("al_sui", Some("sui"), "token/sui"),
        alert("al_portfolio", None, &format!("{GROUP_SUBJECT}portfolio")),
        alert("al_book", None, &format!("{GROUP_SUBJECT}book")),
        alert("al_all", None, &format!("{GROUP_SUBJECT}*")),
    ];
    let commit = Commit { at: now(), changes: vec![change("arbitrum"), change("sui")], alerts, ..Commit::default() };
    app.store.commit(commit).await.expect("committed");
}

#[tokio::test]
async fn pages_and_lists_show_only_the_tokens_of_a_group() {
    let app = run(None, None).await;
    with_two_books(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    for path in PAGES.into_iter().filter(|path| *path != "/calendar") {
        let path = with(path, "month=2026-10");
        let (_, all) = browser.get(&path).await;
        let (status, page) = browser.get(&with(&path, "group=portfolio")).await;
        assert_valid_page(&path, &page);
        assert!(all.contains("/tokens/sui"), "{path}: {all}");
        assert!(status == 200 && page.contains("/tokens/arbitrum") && !page.contains("/tokens/sui"), "{path}: {page}");
        assert!(page.contains("of <bdi>@portfolio</bdi></span></h1>"), "{path}: {page}");
    }
    for path in LISTS.into_iter().filter(|path| *path != "/api/v1/supply") {
        let (_, all) = app.request(&format!("GET {path}"), LOCAL).await;
        let (status, list) = app.request(&format!("GET {}", with(path, "group=%40portfolio")), LOCAL).await;
        assert!(all.contains("sui"), "{path}: {all}");
        assert!(status == 200 && list.contains("arbitrum") && !list.contains("sui"), "{path}: {list}");
        let both = with(path, "group=portfolio&token=sui");
        if !path.contains("tokens") {
            let (_, list) = app.request(&format!("GET {both}"), LOCAL).await;
            assert!(!list.contains("\"sui\"") && !list.contains("/tokens/sui"), "{both}: both filters apply: {list}");
        }
    }
}

#[tokio::test]
async fn alerts_of_a_group_include_those_about_the_group_as_a_whole() {
    let app = run(None, None).await;
    with_two_books(&app).await;
    let (_, list) = get(&app, "/api/v1/alerts?group=portfolio").await;
    let mut ids: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|row| row["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["al_arbitrum", "al_portfolio"]);
    let mut browser = Browser::new(&app, LOCAL);
    let (_, page) = browser.get("/alerts?group=portfolio").await;
    assert!(page.contains("Firing <span class=\"dim\">2</span>"), "{page}");
    let (_, page) = browser.get("/?group=portfolio").await;
    assert!(page.contains("alert al_portfolio") && !page.contains("alert al_book") && !page.contains("alert al_all"), "{page}");
}

/// Returns the addresses of the links and forms of a page that lead to pages of this server.
fn addresses(page: &str) -> Vec<String> {
    let attributes = ["<a", "<form"].into_iter().flat_map(|tag| page.split(tag).skip(1));
    let addresses = attributes.filter_map(|rest| {
        let tag = rest.split('>').next()?;
        let own = tag.split(" href=\"").nth(1).or_else(|| tag.split(" action=\"").nth(1))?;
        Some(own.split('"').next()?.replace("&amp;", "&")).filter(|_| !tag.contains("method=\"get\""))
    });
    let is_page = |address: &String| {
        address.starts_with('/') && !["/api", "/login", "/logout"].iter().any(|start| address.starts_with(start))
    };
    addresses.filter(is_page).collect()
}

#[tokio::test]
async fn each_link_and_form_keeps_the_group() {
    let (app, alert, delivery) = run_with_data().await;
    let mut browser = Browser::new(&app, LOCAL);
    let others = ["/rules", "/deliveries", "/silences", "/digests", "/tokens/arbitrum", "/rules/playground"].map(str::to_owned);
    let details = [format!("/alerts/{alert}"), format!("/deliveries/{delivery}")];
    for path in PAGES.map(str::to_owned).into_iter().chain(others).chain(details) {
        let (status, page) = browser.get(&with(&path, "group=portfolio")).await;
        assert_eq!(status, 200, "{path}: {page}");
        let addresses = addresses(&page);
        assert!(addresses.len() > 9, "{path}: {addresses:?}");
        for address in addresses {
            let query = address.split('#').next().and_then(|address| address.split_once('?')).map_or("", |(_, query)| query);
            assert!(query.split('&').any(|pair| pair == "group=portfolio"), "{path}: {address}");
        }
        let forms = page.matches("method=\"get\"").count();
        let fields = page.matches("name=\"group\"").count();
        assert_eq!(forms, fields, "{path}: each form has the group");
    }
}

#[tokio::test]
async fn redirect_of_a_form_keeps_the_group() {
    let app = run(Some(TOKEN), None).await;
    let id = super::store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::logged_in(&app).await;
    browser.get(&format!("/alerts/{id}?group=portfolio")).await;
    let (status, response) = browser.post(&format!("/alerts/{id}/acknowledge?group=portfolio"), &[("author", "ann")]).await;
    assert_eq!((status, location(&response)), (303, &*format!("/alerts/{id}?done=acknowledged&group=portfolio")));
    let (status, response) = browser.get("/tokens/ARB?group=portfolio").await;
    assert_eq!(status, 404, "the sample has no token list: {response}");
}

#[tokio::test]
async fn unknown_group_is_an_error_with_a_suggestion() {
    let app = run(None, None).await;
    let mut browser = Browser::new(&app, LOCAL);
    for path in PAGES.into_iter().chain(["/rules", "/tokens/arbitrum"]) {
        let (status, page) = browser.get(&with(path, "group=portfolioo")).await;
        assert!(status == 404 && page.contains("did you mean &quot;portfolio&quot;?"), "{path}: {page}");
    }
    for path in LISTS {
        let (status, problem) = get(&app, &with(path, "group=portfolioo")).await;
        assert_eq!(
            (status, &problem["code"], &problem["suggestions"]),
            (404, &json!("unknown_group"), &json!(["portfolio"])),
            "{path}"
        );
    }
}

#[tokio::test]
async fn picker_lists_all_groups_and_keeps_other_filters() {
    let app = run(None, None).await;
    with_two_books(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (_, page) = browser.get("/alerts?state=firing&group=portfolio&after=1.x").await;
    let form =
        page.split("<form class=\"groups narrowed\"").nth(1).and_then(|rest| rest.split("</form>").next()).expect("a form");
    assert!(form.contains("name=\"state\" value=\"firing\"") && !form.contains("after"), "{form}");
    assert!(
        form.contains("<option value=\"portfolio\" selected>@portfolio</option><") || form.contains("value=\"book\""),
        "{form}"
    );
    assert!(form.contains("<option value=\"\">all watched</option>"), "{form}");
    let (_, page) = browser.get("/alerts?group=portfolio%2Cbook").await;
    assert!(page.contains("of <bdi>@portfolio and @book</bdi>"), "{page}");
}

/// A reader who is not logged in, even one on loopback, sees no position anywhere. `271828` is the position in `arbitrum`.
#[tokio::test]
async fn positions_are_shown_only_after_login_or_with_a_key() {
    let app = run(Some(TOKEN), None).await;
    with_unlocks(&app).await;
    let world = World { price: Some(2.0), cliffs: vec![(20, "second", 1e6)], ..World::default() };
    world.store(&app, "arbitrum").await;
    let is_shown = |text: &str| ["271.83K", "271828", "271,828", "543.66K", "543656"].iter().any(|amount| text.contains(amount));
    let (mut anyone, mut owner) = (Browser::new(&app, LOCAL), Browser::logged_in(&app).await);
    for path in ["/", "/calendar?month=2026-10&view=list", "/tokens", "/tokens/arbitrum"] {
        let (_, page) = anyone.get(path).await;
        assert!(!is_shown(&page) && !page.contains(">Position<"), "{path}: {page}");
        let (_, page) = owner.get(path).await;
        assert_valid_page(path, &page);
        assert!(is_shown(&page) && page.contains(">Position<"), "{path}: {page}");
        let (_, page) = anyone.get(path).await;
        assert!(!is_shown(&page), "{path}: no cache keeps positions");
    }
    let key = format!("{LOCAL}Authorization: Bearer {TOKEN}\r\n");
    let wrong = format!("{LOCAL}Authorization: Bearer wrong\r\n");
    for path in ["/api/v1/upcoming", "/api/v1/tokens", "/api/v1/tokens/arbitrum"] {
        for headers in [LOCAL, &wrong] {
            let (status, list) = app.request(&format!("GET {path}"), headers).await;
            assert!(status == 200 && !is_shown(&list) && !list.contains("\"position\""), "{path}: {list}");
        }
        let (_, list) = app.request(&format!("GET {path}"), &key).await;
        assert!(is_shown(&list) && list.contains("\"position\""), "{path}: {list}");
    }
    for path in ["/metrics", "/api/v1/status", "/api/v1/rules", "/digests", "/calendar.ics", "/feed.atom"] {
        let (_, text) = app.request(&format!("GET {path}"), &key).await;
        assert!(!is_shown(&text), "{path}: {text}");
    }
}

#[tokio::test]
async fn position_is_compared_with_the_unlock() {
    let app = run(Some(TOKEN), None).await;
    // 20 days ahead; the position is 271,828 tokens of $2.
    let world = World { price: Some(2.0), cliffs: vec![(20, "second", 2_718_280.0)], ..World::default() };
    world.store(&app, "arbitrum").await;
    let key = format!("{LOCAL}Authorization: Bearer {TOKEN}\r\n");
    let (_, list) = app.request("GET /api/v1/upcoming?token=arbitrum", &key).await;
    let list: serde_json::Value = serde_json::from_str(list.split_once("\r\n\r\n").map_or("", |(_, body)| body)).expect("JSON");
    let position = &list[0]["position"];
    assert_eq!(position["amount"], json!(271_828.0));
    assert_eq!(position["value"], json!(543_656.0));
    assert_eq!(position["unlockMultiple"], json!(10.0));
    // Market cap $1B, so 500M tokens circulate.
    let percent = position["percentOfCirculatingSupply"].as_f64().unwrap_or_default();
    assert!((percent - 271_828.0 / 5e8 * 100.0).abs() < 1e-9, "{position}");
    let (_, page) = Browser::logged_in(&app).await.get("/tokens/arbitrum").await;
    assert!(page.contains("10× the position") && page.contains("271.83K arbitrum, 0.05% of circulating supply"), "{page}");
    assert_eq!(now() + TimeDelta::days(20), list[0]["unlockDate"].as_str().and_then(model::parse_timestamp).expect("a time"));
}

/// Each page and list that takes a token takes its slug or its ticker, lists the candidates of an ambiguous one, and rejects an unknown one.
#[tokio::test]
async fn token_is_named_by_slug_or_ticker_everywhere() {
    let app = run(None, None).await;
    with_two_books(&app).await;
    let item =
        |slug: &str, symbol: &str| serde_json::from_value(json!({"id": slug, "name": slug, "symbol": symbol})).expect("a token");
    let tokens = vec![item("arbitrum", "ARB"), item("sui", "SUI"), item("lend-a", "LEND"), item("lend-b", "LEND")];
    app.store.commit(Commit { at: now(), tokens, ..Commit::default() }).await.expect("committed");
    let mut browser = Browser::new(&app, LOCAL);
    let filtered = ["/calendar?month=2026-10&view=list", "/changes", "/alerts"];
    let lists = ["/api/v1/upcoming", "/api/v1/changes", "/api/v1/alerts", "/calendar.ics", "/feed.atom"];
    for path in filtered.into_iter().chain(lists) {
        for (name, status) in [("arbitrum", 200), ("ARB", 200), ("arb", 200), ("LEND", 400), ("arbitrm", 404)] {
            let (found, text) = browser.get(&with(path, &format!("token={name}"))).await;
            let found = if status == 400 && found == 409 { 400 } else { found };
            assert_eq!(found, status, "{path} {name}: {text}");
            match status {
                200 => assert!(text.contains("arbitrum") && !text.contains("/tokens/sui"), "{path} {name}: {text}"),
                400 => assert!(text.contains("lend-a") && text.contains("lend-b"), "{path} {name}: {text}"),
                _ => assert!(text.contains("did you mean arbitrum?"), "{path} {name}: {text}"),
            }
        }
    }
    let (status, response) = browser.get("/tokens/ARB?group=portfolio").await;
    assert_eq!((status, location(&response)), (307, "/tokens/arbitrum?group=portfolio"));
    for (path, status, expected) in [
        ("/tokens/LEND", 400, "lend-a"),
        ("/tokens/arbitrm", 404, "did you mean arbitrum?"),
        ("/api/v1/tokens/LEND", 400, "lend-b"),
    ] {
        let (found, text) = browser.get(path).await;
        assert!((found == status || found == 409) && text.contains(expected), "{path}: {found} {text}");
    }
}
