//! Tests of the service over a socket. The expected values are computed by hand from the data below.

mod data;
mod faults;
mod requests;
mod responses;
mod round_trip;
mod running;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderValue, header};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::{
    http::KEY_HEADER,
    listener::{ConnectionLimits, serve_within},
    route::{LEGACY_ROUTES, ROUTES},
    *,
};
use model::Clock;
use model::wire::{self, Burn, Emission, UnlockEvent, parse_timestamp};

// 2026-01-05: cliff unlocks of 100 (team) and 50 (mining). 2026-01-10: 300 over 30 days (team). 2026-02-09: the rate changes to 200
// over 10 days. 2026-03-01: a cliff unlock of 80 (investors), and 31 over 31 days (advisors).
const ALPHA: &str = r#"[
{"unlockDate":"2026-01-05T00:00:00Z","tokenName":"Alpha","tokenSymbol":"ALP","listedMethod":"INTERNAL","dataSource":"Whitepaper","linearUnlocks":null,"cliffUnlocks":{"cliffAmount":150,"cliffValue":300,"valueToMarketCap":3.0,"allocationBreakdown":[{"unlockDate":"2026-01-05T00:00:00Z","allocationName":"Team","standardAllocationName":"Founder / Team","cliffAmount":100,"cliffValue":200,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","unlockPrecision":"month"},{"unlockDate":"2026-01-05T00:00:00Z","allocationName":"Liquidity Mining","standardAllocationName":"Community","cliffAmount":50,"cliffValue":100,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","unlockPrecision":"month"}]},"latestUpdateDate":"2025-05-13T11:53:37Z","verdict":"kept"},
{"unlockDate":"2026-01-10T00:00:00Z","tokenName":"Alpha","tokenSymbol":"ALP","listedMethod":"INTERNAL","dataSource":"Whitepaper","linearUnlocks":{"linearAmount":300,"linearValue":600,"dailyAmount":10,"dailyValue":20,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","allocationBreakdown":[{"allocationName":"Team","standardAllocationName":"Founder / Team","linearAmount":300,"linearValue":600,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","dailyAmount":10,"dailyValue":20,"durationOfRate":30,"beginDate":"2026-01-10T00:00:00Z","endDate":"2026-02-09T00:00:00Z","unlockPrecision":"second"}]},"cliffUnlocks":null,"latestUpdateDate":"2025-05-13T11:53:37Z"},
{"unlockDate":"2026-02-09T00:00:00Z","tokenName":"Alpha","tokenSymbol":"ALP","listedMethod":"INTERNAL","dataSource":"Whitepaper","linearUnlocks":{"linearAmount":200,"linearValue":400,"dailyAmount":20,"dailyValue":40,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","allocationBreakdown":[{"allocationName":"Team","standardAllocationName":"Founder / Team","linearAmount":200,"linearValue":400,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","dailyAmount":20,"dailyValue":40,"durationOfRate":10,"beginDate":"2026-02-09T00:00:00Z","endDate":"2026-02-19T00:00:00Z","unlockPrecision":"second"}]},"cliffUnlocks":null,"latestUpdateDate":"2025-05-13T11:53:37Z"},
{"unlockDate":"2026-03-01T00:00:00Z","tokenName":"Alpha","tokenSymbol":"ALP","listedMethod":"INTERNAL","dataSource":"Whitepaper","linearUnlocks":{"linearAmount":31,"linearValue":62,"dailyAmount":1,"dailyValue":2,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","allocationBreakdown":[{"allocationName":"Advisors","standardAllocationName":"Founder / Team","linearAmount":31,"linearValue":62,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","dailyAmount":1,"dailyValue":2,"durationOfRate":31,"beginDate":"2026-03-01T00:00:00Z","endDate":"2026-04-01T00:00:00Z","unlockPrecision":"second"}]},"cliffUnlocks":{"cliffAmount":80,"cliffValue":160,"valueToMarketCap":1.6,"allocationBreakdown":[{"unlockDate":"2026-03-01T00:00:00Z","allocationName":"Seed","standardAllocationName":"Private Investors","cliffAmount":80,"cliffValue":160,"referencePrice":2,"referencePriceUpdatedTime":"2025-11-03T02:01:35Z","unlockPrecision":"day","committedClaim":{"amount":70,"value":140,"timestamp":1772323200}}]},"latestUpdateDate":"2025-06-01T00:00:00Z"}
]"#;

const FILES: &[(&str, &str)] = &[
    (
        "tokens.json",
        r#"[{"tokenId":"alpha","name":"Alpha","symbol":"ALP","maxSupply":1000,"listedMethod":"INTERNAL","coverage":"full","events":4,"sources":["x"]},
            {"tokenId":"beta","name":"Beta","symbol":"BET","maxSupply":null,"listedMethod":"AI"}]"#,
    ),
    ("prices.json", r#"[{"tokenId":"alpha","symbol":"ALP","referencePrice":2,"marketCap":10000}]"#),
    ("unlock-events/alpha.json", ALPHA),
    (
        "allocations/alpha.json",
        r#"{"name":"Alpha","symbol":"ALP","listedMethod":"INTERNAL","maxSupply":1000,"lastUpdatedDate":"2025-12-31T00:00:00Z","totalUnlockedAmount":100,"totalLockedAmount":661,"totalUntrackedAmount":39,"totalTBDLockedAmount":200,"allocations":[
            {"allocationName":"Team","allocationType":"Scheduled","standardAllocationName":"Founder / Team","allocationUnlockedAmount":100,"allocationLockedAmount":500,"allocationAmount":600,"trackedAllocationPercentage":100},
            {"allocationName":"Seed","allocationType":"Scheduled","standardAllocationName":"Private Investors","allocationUnlockedAmount":20,"allocationLockedAmount":60,"allocationAmount":80,"trackedAllocationPercentage":100},
            {"allocationName":"Treasury","allocationType":"TBD","standardAllocationName":"Reserve","allocationUnlockedAmount":0,"allocationLockedAmount":null,"allocationAmount":200,"trackedAllocationPercentage":0}]}"#,
    ),
    (
        "burn/alpha.json",
        r#"{"tokenId":"alpha","tokenName":"Alpha","tokenSymbol":"ALP","totalBurnAmount":60,"totalBurnValue":12,"burns":[
            {"burnEventLabel":"Fees","burnType":"PROGRAMMATIC","burnDate":"2026-01-01T00:00:00Z","amount":10,"pricePerToken":0.5,"value":5,"metadata":{"burners":["PROJECT"],"burnReasons":["GOVERNANCE"]}},
            {"burnEventLabel":"Fees","burnType":"PROGRAMMATIC","burnDate":"2026-01-02T00:00:00Z","amount":20,"pricePerToken":null,"value":null,"metadata":{"burners":["PROJECT"],"burnReasons":["GOVERNANCE"]}},
            {"burnEventLabel":"Fees","burnType":"PROGRAMMATIC","burnDate":"2026-01-03T23:59:59Z","amount":30,"pricePerToken":0.25,"value":7.5,"metadata":{"burners":["PROJECT"],"burnReasons":["GOVERNANCE"]}}]}"#,
    ),
    (
        "buyback/alpha.json",
        r#"{"tokenId":"alpha","tokenName":"Alpha","tokenSymbol":"ALP","totalBuybackAmount":5,"totalBuybackValue":9,"buybacks":[
            {"buybackEventLabel":"Fund","buybackType":"TREASURY_BUYBACK","buybackDate":"2025-12-01T17:00:00Z","tokenAmount":5,"value":9,"spentAmount":null,"spentUnit":"","targetAddress":"0x1","buyerAddress":"0x1","resolution":"period_net","basis":"estimated"}]}"#,
    ),
    (
        "investors.json",
        r#"{"list":[
            {"investorId":"one","investorName":"One","website":"https://one.example,https://x.example/one","latestFundingDate":"2024-03-01T00:00:00Z"},
            {"investorId":"two","investorName":"Two","website":null,"latestFundingDate":"2024-05-01T00:00:00Z"},
            {"investorId":"three","investorName":"Three","website":null,"latestFundingDate":"2023-01-01T00:00:00Z"}],
          "details":[
            {"investorId":"one","investorName":"One","website":"https://one.example,https://x.example/one","latestFundingDate":"2024-03-01T00:00:00Z","fundingRounds":[
              {"tokenId":"alpha","roundName":"Series A","isLeadInvestor":true,"fundingDate":"2024-03-01T00:00:00Z","totalAmountRaisedinThatRound":5000000,"valuation":40000000,"pricePerToken":null},
              {"tokenId":"gone","roundName":"Seed","isLeadInvestor":false,"fundingDate":"2022-03-01T00:00:00Z","totalAmountRaisedinThatRound":1000000,"valuation":null,"pricePerToken":null}]},
            {"investorId":"two","investorName":"Two","website":null,"latestFundingDate":"2024-05-01T00:00:00Z","fundingRounds":[
              {"tokenId":"alpha","roundName":"Series A","isLeadInvestor":false,"fundingDate":"2024-03-01T00:00:00Z","totalAmountRaisedinThatRound":5000000,"valuation":40000000,"pricePerToken":null},
              {"tokenId":"alpha","roundName":"Series B","isLeadInvestor":false,"fundingDate":"2024-05-01T00:00:00Z","totalAmountRaisedinThatRound":9000000,"valuation":null,"pricePerToken":null}]}]}"#,
    ),
];

fn files(files: &[(&str, &str)]) -> Vec<io::Result<SourceFile>> {
    files.iter().map(|(path, text)| Ok(SourceFile { path: (*path).into(), text: (*text).to_owned() })).collect()
}

fn options() -> Options {
    Options { clock: Clock::manual(parse_timestamp("2026-01-12T09:00:00Z").unwrap()), ..Options::default() }
}

fn small(options: Options) -> Service {
    let service = Service::in_memory(options).unwrap();
    service.import(files(FILES), |_| {}).unwrap();
    service
}

struct Server {
    base: String,
    http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    async fn start(router: Router) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, router, async move { drop(stopped.await) }));
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        Self { base, http, stop: Some(stop) }
    }

    async fn request(&self, path: &str) -> (u16, Value) {
        self.request_with(path, None).await
    }

    async fn request_with(&self, path: &str, key: Option<&str>) -> (u16, Value) {
        let mut request = self.http.get(format!("{}{path}", self.base));
        if let Some(key) = key {
            request = request.header(KEY_HEADER, key);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
    }

    /// Returns the payload of a successful response.
    async fn data(&self, path: &str) -> Value {
        let (status, body) = self.request(path).await;
        assert_eq!((status, &body["status"]), (200, &Value::Bool(true)), "{path}: {body}");
        assert_eq!(body["metadata"]["queryDate"], "2026-01-12T09:00:00Z");
        body["data"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

async fn started() -> Server {
    Server::start(small(options()).legacy_router()).await
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"));
    assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value} is not {expected}");
}

async fn everything(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/v5/token/list",
        "/v1/unlock/events?tokenId=alpha",
        "/v5/allocations/alpha",
        "/v5/burn/alpha",
        "/v5/buyback/alpha",
        "/v5/fundraising/investors/list",
        "/v5/fundraising/investors/one",
    ] {
        all.push(server.request(path).await.1);
    }
    all
}
