//! Coming supply on pages and in the API, from a real database.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Browser, assert_valid_page};
use crate::http::tests::{LOCAL, TestServer, now, run};
use chrono::TimeDelta;
use model::{Commit, Endpoint, FeedId, FeedState, FeedUpdate, Put, Record, TokenId, wire};

/// The supply of a random token.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub is_unread: bool,
    pub is_cliffs_only: bool,
    pub price: Option<f64>,
    /// Tokens that unlock linearly from ten days before now to ninety days after.
    pub linear: Option<f64>,
    /// Days from now, precision, and tokens.
    pub cliffs: Vec<(i64, &'static str, f64)>,
}

impl World {
    pub fn random(random: &mut fastrand::Rng) -> Self {
        let amount = |random: &mut fastrand::Rng| f64::from(random.u32(1..1000)) * 1e4;
        Self {
            is_unread: random.u8(..5) == 0,
            is_cliffs_only: random.u8(..5) == 0,
            price: (random.u8(..3) > 0).then(|| f64::from(random.u32(1..500)) / 100.0),
            linear: random.bool().then(|| amount(random)),
            cliffs: (0..random.usize(..4))
                .map(|_| (random.i64(-20..100), ["second", "day", "month"][random.usize(..3)], amount(random)))
                .collect(),
        }
    }

    fn runs_linear(&self) -> bool {
        !self.is_unread && !self.is_cliffs_only && self.linear.is_some()
    }

    fn events(&self) -> Vec<Value> {
        let day = |days: i64| (now() + TimeDelta::days(days)).to_rfc3339();
        let (price, at) = (self.price, now().to_rfc3339());
        let cliff = |(days, precision, amount): &(i64, &str, f64)| {
            json!({"unlockDate": day(*days), "cliffUnlocks": {"cliffAmount": amount, "cliffValue": price.map(|price| price * amount),
                "allocationBreakdown": [{"unlockDate": day(*days), "allocationName": "Team", "cliffAmount": amount,
                "unlockPrecision": precision, "referencePrice": price, "referencePriceUpdatedTime": at}]}})
        };
        let linear = self.linear.filter(|_| !self.is_cliffs_only).map(|amount| {
            json!({"unlockDate": day(-10), "linearUnlocks": {"allocationBreakdown": [{"allocationName": "Community",
                "linearAmount": amount, "beginDate": day(-10), "endDate": day(90), "referencePrice": price,
                "referencePriceUpdatedTime": at}]}})
        });
        self.cliffs.iter().map(cliff).chain(linear).collect()
    }

    pub async fn store(&self, app: &TestServer, slug: &str) {
        let item: wire::TokenItem =
            serde_json::from_value(json!({"id": slug, "name": slug, "symbol": slug, "marketCap": 1e9})).expect("a token");
        let put = |(index, event): (usize, Value)| {
            let record = Record::Unlock(Arc::new(serde_json::from_value(event).expect("an event")));
            Put { key: format!("e{index}").into(), record, is_new_version: true }
        };
        let feed = FeedUpdate {
            id: FeedId::of(Endpoint::UnlockEvents, &TokenId::from(slug)),
            state: FeedState { baseline_at: Some(now()), read_at: Some(now()), tried_at: Some(now()), ..FeedState::default() },
            put: self.events().into_iter().enumerate().map(put).collect(),
            removed: Vec::new(),
            header: self.is_cliffs_only.then(|| json!({"shownLinear": false})),
        };
        let feeds = if self.is_unread { Vec::new() } else { vec![feed] };
        app.store.commit(Commit { at: now(), tokens: vec![item], feeds, ..Commit::default() }).await.expect("committed");
    }
}

/// Returns the texts of a page that claim that nothing comes. Charts have `$0` on their axis.
fn claims_of_nothing(html: &str) -> Vec<&'static str> {
    let text: String = html.split("<svg").map(|part| part.rsplit("</svg>").next().unwrap_or_default()).collect();
    let text = text.to_lowercase();
    let words = ["$0<", "$0 ", "$0,", ">none<", "none known", "no unlock", "nothing scheduled"];
    words.into_iter().filter(|word| text.contains(word)).collect()
}

fn row<'h>(html: &'h str, slug: &str) -> &'h str {
    let link = format!("href=\"/tokens/{slug}\"");
    html.split("<tr>").find(|row| row.contains(&link)).expect("a row")
}

#[tokio::test]
async fn no_page_claims_nothing_where_supply_comes_or_is_unknown() {
    let mut random = fastrand::Rng::with_seed(0x0f10);
    for world in 0..6 {
        let app = run(None, None).await;
        let tokens: Vec<(String, World)> = (0..8).map(|index| (format!("t{index}"), World::random(&mut random))).collect();
        for (slug, token) in &tokens {
            token.store(&app, slug).await;
        }
        let mut browser = Browser::new(&app, LOCAL);
        let (_, list) = browser.get("/tokens").await;
        assert_valid_page("/tokens", &list);
        let mut has_any = false;
        for (slug, token) in &tokens {
            let is_unknown = token.is_unread || (token.price.is_none() && !token.events().is_empty());
            has_any |= token.is_unread || token.runs_linear() || is_unknown;
            let (_, page) = browser.get(&format!("/tokens/{slug}")).await;
            assert_valid_page(slug, &page);
            if token.runs_linear() || token.is_unread {
                for (place, html) in [("list", row(&list, slug)), ("page", page.as_str())] {
                    assert_eq!(claims_of_nothing(html), [""; 0], "world {world}, {place} of {slug}: {token:?}\n{html}");
                }
            } else if is_unknown {
                assert!(!page.contains("$0<") && !row(&list, slug).contains("$0<"), "{token:?}\n{page}");
            }
            assert_eq!(row(&list, slug).contains("not read yet"), token.is_unread, "{token:?}");
            assert_eq!(page.contains("value unknown"), is_unknown && !token.is_unread && has_figure(token), "{token:?}\n{page}");
        }
        let (_, overview) = browser.get("/").await;
        assert_valid_page("/", &overview);
        if has_any {
            assert_eq!(claims_of_nothing(&overview), [""; 0], "world {world}: {overview}");
        }
    }
}

/// Returns whether a figure of the token's page needs its price: for a cliff that can still happen, or a linear unlock.
fn has_figure(token: &World) -> bool {
    // `now` is the afternoon of 21 September.
    let is_upcoming = |(days, precision, _): &(i64, &str, f64)| match *precision {
        "month" => *days >= -20,
        "day" => *days >= 0,
        _ => *days > 0,
    };
    token.runs_linear() || token.cliffs.iter().any(is_upcoming)
}

pub(super) async fn get(app: &TestServer, path: &str) -> (u16, Value) {
    let (status, response) = app.request(&format!("GET {path}"), LOCAL).await;
    (status, serde_json::from_str(response.split_once("\r\n\r\n").map_or("", |(_, body)| body)).unwrap_or_default())
}

#[tokio::test]
async fn api_states_cliff_linear_and_inexact_supply() {
    let app = run(None, None).await;
    // The price is $2, and 100,000 tokens unlock per day. `now` is 21 Sep 2026.
    let both =
        World { price: Some(2.0), linear: Some(1e7), cliffs: vec![(20, "second", 1e6), (-18, "month", 5e5)], ..World::default() };
    both.store(&app, "arbitrum").await;
    World { is_unread: true, ..World::default() }.store(&app, "unread").await;
    World { is_cliffs_only: true, price: Some(1.0), cliffs: vec![(3, "second", 7e5)], ..World::default() }
        .store(&app, "apt")
        .await;
    World { linear: Some(1e6), ..World::default() }.store(&app, "unpriced").await;
    let (_, token) = get(&app, "/api/v1/tokens/arbitrum").await;
    let month = &token["ahead"]["30d"];
    assert_eq!(month["cliff"], json!({"amount": 1e6, "value": 2e6, "count": 1}));
    assert_eq!(month["linear"], json!({"amount": 3e6, "value": 6e6, "perDay": 1e5, "perDayValue": 2e5}));
    assert_eq!(month["inexact"], json!({"amount": 5e5, "value": 1e6, "count": 1}));
    assert_eq!(month["total"], json!({"amount": 4e6, "value": 8e6, "percentOfMarketCap": 0.8}));
    let ahead = &token["ahead"];
    assert_eq!((&ahead["known"], &ahead["linearUntil"], &token["linearPerDay"]), (&json!("all"), &Value::Null, &json!(1e5)));
    assert!(ahead["priceAsOf"].is_string() && ahead["90d"].is_object() && ahead["7d"].is_object(), "{ahead}");

    let (_, rows) = get(&app, "/api/v1/tokens?sort=month").await;
    let of = |slug: &str| rows.as_array().and_then(|rows| rows.iter().find(|row| row["id"] == slug)).expect("a row");
    assert_eq!((&rows[0]["id"], of("arbitrum")["ahead"].clone()), (&json!("arbitrum"), token["ahead"].clone()));
    assert_eq!((&of("arbitrum")["aheadCount"], &of("arbitrum")["aheadValue"]), (&json!(1), &json!(2e6)), "cliffs only");
    assert_eq!(of("arbitrum")["weeks"][0].as_f64().map(f64::round), Some(1.4e6), "linear unlocks count");
    let unread = &of("unread")["ahead"]["90d"];
    assert_eq!((&of("unread")["ahead"]["known"], &of("unread")["linearPerDay"]), (&json!("none"), &Value::Null));
    assert_eq!(unread["total"], json!({"amount": null, "value": null, "percentOfMarketCap": null}));
    assert_eq!(unread["cliff"], json!({"amount": null, "value": null, "count": null}));
    let apt = &of("apt")["ahead"];
    assert_eq!(
        (&apt["known"], &apt["7d"]["linear"]["amount"], &apt["7d"]["total"]["value"]),
        (&json!("cliffs"), &Value::Null, &json!(7e5))
    );
    let unpriced = &of("unpriced")["ahead"]["30d"];
    assert_eq!(
        (&unpriced["linear"]["value"], &unpriced["total"]["value"], &unpriced["total"]["amount"]),
        (&Value::Null, &Value::Null, &json!(3e5))
    );

    let (_, all) = get(&app, "/api/v1/supply").await;
    assert_eq!(all["ahead"]["30d"]["total"], json!({"value": 8.7e6}));
    assert_eq!(all["ahead"]["30d"]["linear"], json!({"value": 6e6, "perDayValue": 2e5}));
    let counts = ["tokens", "unread", "cliffsOnly", "withoutPrice", "stalePrices"].map(|key| all[key].as_u64());
    assert_eq!((counts, &all["group"]), ([Some(4), Some(1), Some(1), Some(1), Some(0)], &Value::Null));
    let (_, group) = get(&app, "/api/v1/supply?group=portfolio").await;
    assert_eq!(
        (&group["group"], &group["tokens"], &group["ahead"]["30d"]["total"]),
        (&json!("portfolio"), &json!(1), &json!({"value": 8e6}))
    );
    assert_eq!((get(&app, "/api/v1/supply?group=nothing").await.0, get(&app, "/api/v1/supply?group=a,b").await.0), (404, 404));
    assert_eq!((get(&app, "/api/v1/supply?groups=x").await.0, get(&app, "/api/v1/tokens?sort=size").await.0), (400, 400));
}
