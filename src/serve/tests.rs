//! The service through a real socket. Expected values are worked out by hand from the small data set below.

use std::{borrow::Cow, collections::BTreeSet, io};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
};

use axum::{Router, http::header};

use super::{
    ask::{LEGACY_ROUTES, ROUTES},
    faults::*,
    http::KEY_HEADER,
    *,
};
use crate::wire::{self, Burn, Emission, UnlockEvent, parse_timestamp};

// 2026-01-05: a cliff of 100 for the team and 50 for miners. 2026-01-10: 300 for the team over 30 days. 2026-02-09: the rate changes,
// 200 over 10 days. 2026-03-01: a cliff of 80 for investors, and 31 for advisors begin over 31 days.
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
    files.iter().map(|(path, text)| Ok(SourceFile { path: (*path).into(), text: Cow::Owned((*text).to_owned()) })).collect()
}

fn options() -> Options {
    Options { clock: Clock::manual(parse_timestamp("2026-01-12T09:00:00Z").unwrap()), ..Options::default() }
}

fn small(options: Options) -> Service {
    let service = Service::in_memory(options).unwrap();
    service.import(files(FILES), |_| {}).unwrap();
    service
}

/// A service on a socket.
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

    async fn ask(&self, path: &str) -> (u16, Value) {
        self.ask_with(path, None).await
    }

    async fn ask_with(&self, path: &str, key: Option<&str>) -> (u16, Value) {
        let mut request = self.http.get(format!("{}{path}", self.base));
        if let Some(key) = key {
            request = request.header(KEY_HEADER, key);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
    }

    /// The payload of an answer that must succeed.
    async fn data(&self, path: &str) -> Value {
        let (status, body) = self.ask(path).await;
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

/// Every path in every version with fields of the first item that are there and not there. `field?` is there and null.
#[tokio::test]
async fn each_version_shows_its_fields_and_no_others() {
    let server = started().await;
    let token_v1 = "id name symbol circulatingSupply marketCap maxSupply totalLockedAmount tbdLockedAmount unlockedAmount untrackedAmount hasStandardAllocation websiteUrl? lastUpdatedDate";
    let event = "unlockDate tokenName tokenSymbol dataSource cliffUnlocks latestUpdateDate verdict";
    let day = "startDate endDate tokenName tokenSymbol unlockAmount unlockValue referencePrice allocations totalCumulativeUnlockedAmount";
    let table = "name symbol maxSupply lastUpdatedDate totalUnlockedAmount totalLockedAmount totalUntrackedAmount totalTBDLockedAmount allocations";
    let row = "tokenId tokenName tokenSymbol marketCap releasedPercentage listedMethod dataSource upcomingEvent";
    let burn = "tokenId tokenName tokenSymbol totalBurnAmount totalBurnValue burns";
    let buyback = "tokenId tokenName tokenSymbol totalBuybackAmount buybacks";
    let investor = "investorId investorName website? latestFundingDate";
    let detail = "investorId investorName website latestFundingDate fundingRounds";
    let funding =
        "tokenId tokenName tokenSymbol listedMethod totalAmountRaised unlockedInvestor investorReleasedPercentage fundingRounds";
    let round = "tokenId roundName isLeadInvestor fundingDate totalAmountRaisedinThatRound valuation pricePerToken?";
    let linear = "linearAmount linearValue dailyAmount dailyValue referencePrice referencePriceUpdatedTime allocationBreakdown";
    let linear_item = "allocationName standardAllocationName linearAmount linearValue referencePrice referencePriceUpdatedTime dailyAmount dailyValue durationOfRate beginDate endDate unlockPrecision";
    let cliff = "cliffAmount cliffValue valueToMarketCap allocationBreakdown";
    let cliff_item = "unlockDate allocationName standardAllocationName cliffAmount cliffValue referencePrice referencePriceUpdatedTime unlockPrecision";
    let claimed = "amount value timestamp";
    let days = "?tokenId=alpha&start=2026-01-10&end=2026-01-10";
    let table_of_fields: Vec<(String, &str, String)> = vec![
        ("/v1/token/list".into(), "/0", token_v1.into()),
        ("/v2/token/list".into(), "/0", format!("{token_v1} listedMethod")),
        ("/v3/token/list".into(), "/0", format!("{token_v1} listedMethod hasFundraising latestFundraisingRound")),
        ("/v4/token/list".into(), "/0", format!("{token_v1} listedMethod hasFundraising latestFundraisingRound hasBurn hasBuyback")),
        (
            "/v5/token/list?tokenId=alpha".into(),
            "/0",
            format!("{token_v1} listedMethod hasFundraising latestFundraisingRound hasBurn hasBuyback hasCommittedClaim"),
        ),
        ("/v1/unlock/events?tokenId=alpha".into(), "/0", format!("{event} linearUnlocks?")),
        ("/v2/unlock/events?tokenId=alpha".into(), "/0", format!("{event} linearUnlocks? listedMethod")),
        ("/v3/unlock/events?tokenId=alpha".into(), "/0", format!("{event} linearUnlocks? listedMethod")),
        ("/v3/unlock/events?tokenId=alpha".into(), "/1/linearUnlocks", linear.into()),
        ("/v1/unlock/events?tokenId=alpha".into(), "/1/linearUnlocks/allocationBreakdown/0", linear_item.into()),
        ("/v3/unlock/events?tokenId=alpha".into(), "/2/cliffUnlocks/allocationBreakdown/0", cliff_item.into()),
        ("/v4/unlock/events?tokenId=alpha".into(), "/0", format!("{event} listedMethod")),
        ("/v4/unlock/events?tokenId=alpha".into(), "/0/cliffUnlocks", cliff.into()),
        ("/v4/unlock/events?tokenId=alpha".into(), "/0/cliffUnlocks/allocationBreakdown/0", cliff_item.into()),
        ("/v5/unlock/events/alpha".into(), "/0", format!("{event} listedMethod")),
        ("/v5/unlock/events/alpha".into(), "/0/cliffUnlocks/allocationBreakdown/0", format!("{cliff_item} committedClaim?")),
        ("/v5/unlock/events/alpha".into(), "/1/cliffUnlocks/allocationBreakdown/0", format!("{cliff_item} committedClaim")),
        ("/v5/unlock/events/alpha".into(), "/1/cliffUnlocks/allocationBreakdown/0/committedClaim", claimed.into()),
        (format!("/v1/daily-emission{days}"), "/0", day.into()),
        (format!("/v2/daily-emission{days}"), "/0", format!("{day} listedMethod")),
        (
            format!("/v2/daily-emission{days}"),
            "/0/allocations/0",
            "allocationName standardAllocationName unlockAmount unlockValue".into(),
        ),
        ("/v5/daily-emission/alpha".into(), "/0", format!("{day} listedMethod committedClaim?")),
        ("/v1/emission?tokenId=alpha".into(), "/0", format!("{day} standardAllocations")),
        ("/v2/emission?tokenId=alpha".into(), "/0", day.into()),
        ("/v3/emission?tokenId=alpha".into(), "/0", format!("{day} listedMethod")),
        ("/v1/allocations?tokenId=alpha".into(), "", table.into()),
        ("/v2/allocations?tokenId=alpha".into(), "", format!("{table} listedMethod")),
        ("/v5/allocations/alpha".into(), "", format!("{table} listedMethod")),
        (
            "/v5/allocations/alpha".into(),
            "/allocations/0",
            "allocationName allocationType standardAllocationName allocationUnlockedAmount allocationLockedAmount allocationAmount trackedAllocationPercentage".into(),
        ),
        ("/v1/unlock/events/upcoming".into(), "/0", row.into()),
        ("/v5/unlock/events/upcoming".into(), "/0", row.into()),
        (
            "/v5/unlock/events/upcoming".into(),
            "/0/upcomingEvent",
            "unlockDate referencePrice referencePriceUpdatedTime cliffUnlocks latestUpdateDate".into(),
        ),
        (
            "/v1/unlock/events/upcoming".into(),
            "/0/upcomingEvent/cliffUnlocks",
            "totalCliffAmount totalCliffValue valueToMarketCap allocationBreakdown".into(),
        ),
        ("/v5/unlock/events/upcoming".into(), "/0/upcomingEvent/cliffUnlocks", cliff.into()),
        ("/v1/burn/alpha".into(), "", burn.into()),
        ("/v5/burn/alpha".into(), "", burn.into()),
        ("/v5/burn/alpha".into(), "/burns/0", "burnEventLabel burnType burnDate amount pricePerToken value metadata".into()),
        ("/v1/buyback/alpha".into(), "", buyback.into()),
        ("/v5/buyback/alpha".into(), "", format!("{buyback} totalBuybackValue")),
        (
            "/v5/buyback/alpha".into(),
            "/buybacks/0",
            "buybackEventLabel buybackType buybackDate tokenAmount value spentAmount? spentUnit targetAddress buyerAddress resolution basis".into(),
        ),
        ("/v1/fundraising/investors/list".into(), "/0", investor.into()),
        ("/v5/fundraising/investors/list".into(), "/0", investor.into()),
        ("/v1/fundraising/investors/one".into(), "", detail.into()),
        ("/v5/fundraising/investors/one".into(), "", detail.into()),
        ("/v5/fundraising/investors/one".into(), "/fundingRounds/0", round.into()),
        ("/v1/fundraising/token/alpha".into(), "", funding.into()),
        ("/v5/fundraising/token/alpha".into(), "", funding.into()),
    ];
    let mut asked = BTreeSet::new();
    for (path, place, fields) in table_of_fields {
        let data = server.data(&path).await;
        let record =
            data.pointer(place).and_then(Value::as_object).unwrap_or_else(|| panic!("{path}: nothing at {place}: {data}"));
        let shown: BTreeSet<String> =
            record.iter().map(|(name, value)| if value.is_null() { format!("{name}?") } else { name.clone() }).collect();
        let expected: BTreeSet<String> = fields.split(' ').map(str::to_owned).collect();
        assert_eq!(shown, expected, "{path} at {place}");
        asked.insert(path.split(['?']).next().unwrap_or_default().replace("/alpha", "/{id}").replace("/one", "/{id}"));
    }
    for route in ROUTES.iter().chain(LEGACY_ROUTES) {
        assert!(asked.contains(route.path), "{} is not in the table", route.path);
    }
}

#[tokio::test]
async fn older_events_start_rates_and_newer_ones_are_cliffs_without_mining() {
    let server = started().await;
    let dates = |data: &Value| -> Vec<String> {
        data.as_array().unwrap().iter().map(|row| row["unlockDate"].as_str().unwrap()[..10].to_owned()).collect()
    };
    let all = server.data("/v1/unlock/events?tokenId=alpha").await;
    assert_eq!(dates(&all), ["2026-01-05", "2026-01-10", "2026-02-09", "2026-03-01"]);
    near(&all[0]["cliffUnlocks"]["cliffAmount"], 150.0);
    for version in ["v2", "v3"] {
        let starts = server.data(&format!("/{version}/unlock/events?tokenId=alpha")).await;
        assert_eq!(dates(&starts), ["2026-01-05", "2026-01-10", "2026-03-01"], "{version} drops the change of rate");
    }
    // The window cuts off the segment whose end makes 2026-02-09 a change of rate; it stays one.
    let late = server.data("/v3/unlock/events?tokenId=alpha&start=2026-02-01").await;
    assert_eq!(dates(&late), ["2026-03-01"]);
    for path in ["/v4/unlock/events?tokenId=alpha", "/v5/unlock/events/alpha"] {
        let cliffs = server.data(path).await;
        assert_eq!(dates(&cliffs), ["2026-01-05", "2026-03-01"]);
        near(&cliffs[0]["cliffUnlocks"]["cliffAmount"], 100.0);
        near(&cliffs[0]["cliffUnlocks"]["cliffValue"], 200.0);
        near(&cliffs[0]["cliffUnlocks"]["valueToMarketCap"], 2.0);
    }
    let investors = server.data("/v5/unlock/events/alpha?standardAllocation=privateInvestors,reserve").await;
    assert_eq!(dates(&investors), ["2026-03-01"]);
}

#[tokio::test]
async fn both_ends_of_a_window_belong_to_it_and_totals_are_of_the_window() {
    let server = started().await;
    let window = server.data("/v5/burn/alpha?start=2026-01-02&end=2026-01-03").await;
    near(&window["totalBurnAmount"], 50.0);
    near(&window["totalBurnValue"], 7.5);
    assert_eq!(window["burns"][0]["burnDate"], "2026-01-03T23:59:59Z", "newest first, and the last day in full");
    assert_eq!(window["burns"][1]["burnDate"], "2026-01-02T00:00:00Z");
    let unknown = server.data("/v1/burn/alpha?start=2026-01-02&end=2026-01-02").await;
    near(&unknown["totalBurnAmount"], 20.0);
    assert!(unknown["totalBurnValue"].is_null(), "a total of unknown values is unknown");
    let none = server.data("/v5/buyback/alpha?start=2026-01-01").await;
    near(&none["totalBuybackAmount"], 0.0);
    near(&none["totalBuybackValue"], 0.0);
    assert_eq!(none["buybacks"], Value::Array(vec![]));
    // A token that is known but has none is not an unknown token.
    assert_eq!(server.data("/v5/burn/beta").await["burns"], Value::Array(vec![]));
}

#[tokio::test]
async fn days_come_from_the_schedule_and_weeks_from_the_days() {
    let server = started().await;
    let days = server.data("/v2/daily-emission?tokenId=alpha").await;
    assert_eq!(days.as_array().unwrap().len(), 8, "from the first unlock to today");
    near(&days[0]["unlockAmount"], 150.0);
    near(&days[1]["unlockAmount"], 0.0);
    near(&days[5]["unlockAmount"], 10.0);
    near(&days[5]["unlockValue"], 20.0);
    near(&days[5]["totalCumulativeUnlockedAmount"], 160.0);
    let all = server.data("/v5/daily-emission/alpha?end=2027-01-01&pageSize=500").await;
    let last = all.as_array().unwrap().last().unwrap();
    assert_eq!(last["startDate"], "2026-03-31T00:00:00Z");
    near(&last["totalCumulativeUnlockedAmount"], 150.0 + 300.0 + 200.0 + 80.0 + 31.0);
    let team = server.data("/v5/daily-emission/alpha?start=2026-01-05&end=2026-01-05&standardAllocation=founderTeam").await;
    near(&team[0]["unlockAmount"], 100.0);
    near(&team[0]["unlockValue"], 200.0);

    let weeks = server.data("/v2/emission?tokenId=alpha&start=2026-01-04&end=2026-01-17").await;
    assert_eq!(weeks.as_array().unwrap().len(), 2);
    assert_eq!((&weeks[0]["startDate"], &weeks[0]["endDate"]), (&"2026-01-04T00:00:00Z".into(), &"2026-01-11T00:00:00Z".into()));
    near(&weeks[0]["unlockAmount"], 160.0);
    near(&weeks[0]["allocations"][0]["unlockAmount"], 110.0);
    near(&weeks[1]["unlockAmount"], 70.0);
    near(&weeks[1]["totalCumulativeUnlockedAmount"], 230.0);
    let names = server.data("/v1/emission?tokenId=alpha&start=2026-01-04&end=2026-01-10").await;
    assert_eq!(names[0]["allocations"], serde_json::json!(["Team", "Liquidity Mining"]));
    assert_eq!(names[0]["standardAllocations"], serde_json::json!(["Community", "Founder / Team"]));
}

#[tokio::test]
async fn weekly_emission_is_on_the_older_address_only_and_tells_the_date_alone() {
    let service = small(options());
    service.add_key("desk", 10).unwrap();
    let key = service.add_key("ops", 10).unwrap();
    let new = Server::start(service.router()).await;
    let (status, body) = new.ask_with("/v2/emission?tokenId=alpha", Some(&key)).await;
    assert_eq!(status, 404);
    assert!(body["errorMessage"].as_str().unwrap().contains("on the older base address"), "{body}");
    let old = Server::start(service.legacy_router()).await;
    let (status, body) = old.ask_with("/v2/emission?tokenId=alpha", Some(&key)).await;
    assert_eq!((status, body["metadata"].as_object().unwrap().len()), (200, 1));
    let (_, body) = old.ask_with("/v5/burn/alpha", Some(&key)).await;
    assert_eq!(body["metadata"]["credit"], serde_json::json!({"used": 2, "limit": 10, "resetAt": "2026-02-01T00:00:00Z"}));
}

#[tokio::test]
async fn pages_cover_a_list_once_and_one_past_the_end_is_empty() {
    let server = started().await;
    let mut seen = Vec::new();
    for page in 1..=2 {
        let (_, body) = server.ask(&format!("/v5/fundraising/investors/list?page={page}&pageSize=2")).await;
        let metadata = &body["metadata"];
        assert_eq!((&metadata["page"], &metadata["pageSize"]), (&page.into(), &2.into()));
        assert_eq!((&metadata["totalPages"], &metadata["total"]), (&2.into(), &3.into()));
        seen.extend(body["data"].as_array().unwrap().iter().map(|item| item["investorId"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen, ["two", "one", "three"]);
    let (status, body) = server.ask("/v5/fundraising/investors/list?page=9").await;
    assert_eq!((status, &body["data"], &body["metadata"]["total"]), (200, &Value::Array(vec![]), &3.into()));
    let (_, body) = server.ask("/v5/unlock/events/alpha?pageSize=999999").await;
    assert_eq!(body["metadata"]["pageSize"], 500);
    let (_, body) = server.ask("/v1/fundraising/investors/list").await;
    assert!(body["metadata"].get("page").is_none());
    let filtered =
        server.data("/v5/fundraising/investors/list?startLatestFundingDate=2024-03-01&endLatestFundingDate=2024-03-01").await;
    assert_eq!(filtered.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn upcoming_has_one_row_a_token_with_its_next_event() {
    let server = started().await;
    let rows = server.data("/v5/unlock/events/upcoming").await;
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["tokenId"], "alpha");
    assert_eq!(rows[0]["upcomingEvent"]["unlockDate"], "2026-03-01T00:00:00Z");
    near(&rows[0]["upcomingEvent"]["cliffUnlocks"]["cliffAmount"], 80.0);
    near(&rows[0]["releasedPercentage"], 10.0);
    for nothing in [
        "end=2026-02-28",
        "start=2026-03-02",
        "minMarketCap=10001",
        "minValueToMarketCap=1.7",
        "minTotalUnlockAmount=81",
        "minReleasedPercentage=11",
        "standardAllocation=community",
    ] {
        assert_eq!(server.data(&format!("/v5/unlock/events/upcoming?{nothing}")).await, Value::Array(vec![]), "{nothing}");
    }
    let first = server.data("/v1/unlock/events/upcoming?minUnlockDate=2026-03-01&maxUnlockDate=2026-03-01").await;
    near(&first[0]["upcomingEvent"]["cliffUnlocks"]["totalCliffAmount"], 80.0);
}

#[tokio::test]
async fn the_token_list_counts_what_the_files_say() {
    let server = started().await;
    let (_, body) = server.ask("/v5/token/list").await;
    let alpha = &body["data"][0];
    near(&alpha["circulatingSupply"], 5000.0);
    near(&alpha["totalLockedAmount"], 661.0);
    assert_eq!(alpha["lastUpdatedDate"], "2025-12-31T00:00:00Z");
    assert_eq!(
        (&alpha["hasBurn"], &alpha["hasBuyback"], &alpha["hasCommittedClaim"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(alpha["latestFundraisingRound"], "Series B");
    let beta = &body["data"][1];
    assert!(beta["circulatingSupply"].is_null() && beta["marketCap"].is_null());
    assert_eq!((&beta["hasBurn"], &beta["hasFundraising"]), (&false.into(), &false.into()));
    assert_eq!(server.data("/v5/token/list?tokenId=beta,nobody").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn rounds_are_told_by_investor_and_by_token() {
    let server = started().await;
    let ids = |data: &Value| -> Vec<String> {
        data["fundingRounds"].as_array().unwrap().iter().map(|round| round["tokenId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&server.data("/v5/fundraising/investors/one").await), ["alpha", "gone"]);
    for (query, expected) in [
        ("isLeadInvestor=true", vec!["alpha"]),
        ("isLeadInvestor=false", vec!["gone"]),
        ("fundingDateMin=2024-03-01", vec!["alpha"]),
        ("fundingDateMax=2024-02-29", vec!["gone"]),
        ("raisedAmountMin=1000001", vec!["alpha"]),
        ("raisedAmountMax=1000000", vec!["gone"]),
    ] {
        assert_eq!(ids(&server.data(&format!("/v1/fundraising/investors/one?{query}")).await), expected, "{query}");
    }
    let token = server.data("/v5/fundraising/token/alpha").await;
    near(&token["totalAmountRaised"], 14_000_000.0);
    assert_eq!(token["fundingRounds"][0]["fundingRound"], "Series B");
    assert_eq!(token["fundingRounds"][1]["numberOfInvestors"], 2);
    assert_eq!(token["fundingRounds"][1]["investors"][0]["isLeadInvestor"], true);
    near(&token["investorReleasedPercentage"], 25.0);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_with_the_reason() {
    let server = started().await;
    for (path, status, reason) in [
        ("/v5/burn/nobody", 404, "token \"nobody\" is not known"),
        ("/v5/fundraising/investors/nobody", 404, "investor \"nobody\" is not known"),
        ("/v1/unlock/events?tokenId=nobody", 404, "not known"),
        ("/v9/burn/alpha", 404, "no such path"),
        ("/v1/unlock/events", 400, "tokenId is missing"),
        ("/v5/burn/alpha?start=2026-13-01", 400, "YYYY-MM-DD"),
        ("/v5/burn/alpha?start=20260101", 400, "YYYY-MM-DD"),
        ("/v5/burn/alpha?start=2026-01-02&end=2026-01-01", 400, "before the start"),
        ("/v5/burn/alpha?start=2026-01-01&start=2026-01-01", 400, "twice"),
        ("/v5/burn/alpha?from=2026-01-01", 400, "takes start, end"),
        ("/v5/unlock/events/alpha?page=0", 400, "whole number from 1"),
        ("/v5/unlock/events/alpha?pageSize=-5", 400, "whole number from 1"),
        ("/v5/unlock/events/alpha?standardAllocation=team", 400, "founderTeam"),
        ("/v5/unlock/events/upcoming?minMarketCap=many", 400, "not a number"),
        ("/v5/fundraising/investors/one?isLeadInvestor=maybe", 400, "true or false"),
        ("/v5/burn/%FF", 400, "UTF-8"),
    ] {
        let (answered, body) = server.ask(path).await;
        assert_eq!(answered, status, "{path}: {body}");
        assert_eq!((&body["status"], &body["statusCode"]), (&false.into(), &status.into()), "{path}");
        assert!(body["errorMessage"].as_str().unwrap().contains(reason), "{path}: {body}");
        assert_eq!(body.as_object().unwrap().len(), 3, "{path}");
    }
    let posted = server.http.post(format!("{}/v5/burn/alpha", server.base)).send().await.unwrap();
    assert_eq!(posted.status(), 405);
}

#[tokio::test]
async fn versions_older_than_listing_by_a_model_may_leave_those_tokens_out() {
    let server = Server::start(small(options()).legacy_router()).await;
    for path in ["/v1/unlock/events", "/v2/unlock/events", "/v1/daily-emission", "/v1/allocations"] {
        assert_eq!(server.ask(&format!("{path}?tokenId=beta")).await.0, 404, "{path}");
        assert_eq!(server.ask(&format!("{path}?tokenId=alpha")).await.0, 200, "{path}");
    }
    assert_eq!(server.ask("/v3/unlock/events?tokenId=beta").await.0, 200);
}

#[tokio::test]
async fn without_a_good_key_nothing_is_told_and_nothing_is_counted() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    assert_eq!(server.ask("/v5/burn/alpha").await.0, 200, "no key was ever made");
    let key = service.add_key("desk", 2).unwrap();
    for wrong in [None, Some("cw_wrong"), Some("")] {
        let (status, body) = server.ask_with("/v5/burn/alpha", wrong).await;
        let expected = serde_json::json!({"status": false, "statusCode": 401, "errorMessage": "x-api-key not found"});
        assert_eq!((status, body), (401, expected));
    }
    assert_eq!(server.ask_with("/v5/burn/nobody", Some(&key)).await.0, 404);
    assert_eq!(server.ask_with("/v5/burn/alpha?x=1", Some(&key)).await.0, 400);
    assert_eq!(service.keys().unwrap()[0].used, 0, "refusals are free");
    assert_eq!(server.ask_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 1);
    assert_eq!(server.ask_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 2);
    let spent = server.http.get(format!("{}/v5/burn/alpha", server.base)).header(KEY_HEADER, &key).send().await.unwrap();
    assert_eq!(spent.status(), 429);
    // From 2026-01-12 09:00 to the end of the month.
    assert_eq!(spent.headers()[header::RETRY_AFTER], (19 * 86_400 + 15 * 3_600).to_string());
    assert!(!format!("{service:?}").contains(&key), "no key in what is printed");
    service.0.options.clock.set(parse_timestamp("2026-02-01T00:00:00Z").unwrap());
    let (status, body) = server.ask_with("/v5/burn/alpha", Some(&key)).await;
    assert_eq!((status, &body["metadata"]["credit"]["used"]), (200, &1.into()), "a new month");
    assert!(service.revoke_key("desk").unwrap());
    assert_eq!(server.ask_with("/v5/burn/alpha", Some(&key)).await.0, 401);
    assert_eq!(server.ask("/v5/burn/alpha").await.0, 401, "revoking the last key opens nothing");
    assert!(!service.revoke_key("desk").unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once_spend_exactly_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let service = Service::open(&path, options()).unwrap();
    service.import(files(FILES), |_| {}).unwrap();
    let key = service.add_key("desk", 120).unwrap();
    let server = Arc::new(Server::start(service.router()).await);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (server, key) = (Arc::clone(&server), key.clone());
        asking.spawn(async move { server.ask_with("/v5/burn/alpha", Some(&key)).await });
    }
    let answers = asking.join_all().await;
    let mut used: Vec<i64> = answers
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, body)| body["metadata"]["credit"]["used"].as_i64().unwrap())
        .collect();
    used.sort_unstable();
    assert_eq!(used, (1..=120).collect::<Vec<_>>(), "each credit is told once");
    assert_eq!(answers.iter().filter(|(status, _)| *status == 429).count(), 80);
    // What another process sees in the file.
    assert_eq!(Service::open(&path, options()).unwrap().keys().unwrap()[0].used, 120);
}

#[tokio::test]
async fn a_rate_above_the_limit_waits_for_the_next_minute() {
    let service = small(Options { requests_per_minute: Some(2), ..options() });
    let key = service.add_key("desk", 100).unwrap();
    let server = Server::start(service.router()).await;
    service.0.options.clock.set(parse_timestamp("2026-01-12T09:00:20Z").unwrap());
    for _ in 0..2 {
        assert_eq!(server.ask_with("/v5/burn/alpha", Some(&key)).await.0, 200);
    }
    let fast = server.http.get(format!("{}/v5/burn/alpha", server.base)).header(KEY_HEADER, &key).send().await.unwrap();
    assert_eq!((fast.status().as_u16(), fast.headers()[header::RETRY_AFTER].to_str().unwrap()), (429, "40"));
    service.0.options.clock.set(parse_timestamp("2026-01-12T09:01:00Z").unwrap());
    assert_eq!(server.ask_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 3);
}

// -- import --

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
        all.push(server.ask(path).await.1);
    }
    all
}

#[tokio::test]
async fn the_same_files_twice_change_nothing_and_other_files_move_the_mark() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let first = everything(&server).await;
    service.0.options.clock.set(parse_timestamp("2026-01-12T10:00:00Z").unwrap());
    let again = service.import(files(FILES), |_| {}).unwrap();
    assert_eq!((again.changed, again.tokens, again.events, again.rounds), (0, 2, 4, 4));
    let mut second = everything(&server).await;
    for (one, other) in first.iter().zip(&mut second) {
        other["metadata"]["queryDate"] = one["metadata"]["queryDate"].clone();
    }
    assert_eq!(first, second);

    let moved = ALPHA.replace("2026-03-01", "2026-03-08");
    let mut other: Vec<(&str, &str)> = FILES.to_vec();
    other[2].1 = &moved;
    assert_eq!(service.import(files(&other), |_| {}).unwrap().changed, 1);
    let (_, list) = server.ask("/v5/token/list").await;
    assert_eq!(list["data"][0]["lastUpdatedDate"], "2026-01-12T10:00:00Z");
    assert_eq!(server.ask("/v4/unlock/events?tokenId=alpha").await.1["data"][1]["unlockDate"], "2026-03-08T00:00:00Z");
}

#[tokio::test]
async fn a_bad_file_is_named_with_its_record_and_nothing_is_taken_in() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = everything(&server).await;
    let bad_events = ALPHA
        .replacen(
            "\"cliffAmount\":80,\"cliffValue\":160,\"valueToMarketCap\"",
            "\"cliffAmount\":\"lots\",\"cliffValue\":160,\"valueToMarketCap\"",
            1,
        )
        .replacen("{\"unlockDate\":\"2026-02-09T00:00:00Z\",\"tokenName\"", "{\"tokenName\"", 1);
    let mut bad: Vec<(&str, &str)> = FILES.to_vec();
    bad[2].1 = &bad_events;
    bad[4].1 = "{\"burns\": [";
    bad.push(("burn/nobody.json", "{}"));
    let error = service.import(files(&bad), |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "nothing was imported: 4 problems in the data\n  \
         unlock-events/alpha.json: [3].cliffUnlocks.cliffAmount: expected a number, got the text \"lots\"\n  \
         unlock-events/alpha.json: [2]: unlockDate is missing\n  \
         burn/alpha.json: EOF while parsing a list at line 1 column 11\n  \
         burn/nobody.json: the token is not in tokens.json"
    );
    assert_eq!(everything(&server).await, before);
}

#[test]
fn a_file_of_somebody_else_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = Service::open(&path, options()).unwrap_err().to_string();
    assert!(error.contains("is not a database of the data service"), "{error}");
    let newer = folder.path().join("newer.db");
    drop(Service::open(&newer, options()).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Service::open(&newer, options()).unwrap_err().to_string();
    assert!(error.contains("has schema 99, this program knows 3"), "{error}");
}

// -- the data that comes with the program --

#[test]
fn the_bundled_data_is_the_folder_data_and_stays_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let folder: Vec<SourceFile> = Folder::open(&root).unwrap().map(Result::unwrap).collect();
    let ours: Vec<SourceFile> = bundled().map(Result::unwrap).collect();
    let names = |files: &[SourceFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&folder), "add new files to bundled.rs");
    assert!(ours.iter().map(|file| file.text.len()).sum::<usize>() < 4_000_000);
    let service = Service::in_memory(options()).unwrap();
    let imported = service.import(bundled(), |_| {}).unwrap();
    assert!(imported.tokens >= 40 && imported.burns > 0 && imported.buybacks > 0 && imported.rounds > 0, "{imported:?}");
    assert_eq!(service.import(Folder::open(&root).unwrap(), |_| {}).unwrap().changed, 0);
}

/// The files hold days that were counted elsewhere, from the same schedules.
#[test]
fn days_made_from_a_schedule_are_the_stored_days() {
    let file = |path: &str| bundled::FILES.iter().find(|(name, _)| *name == path).unwrap().1;
    for token in ["arbitrum", "layerzero", "pump-fun"] {
        let events: Vec<UnlockEvent> = serde_json::from_str(file(&format!("unlock-events/{token}.json"))).unwrap();
        let stored: Vec<Emission> = serde_json::from_str(file(&format!("daily-emission/{token}.json"))).unwrap();
        let made = emission::daily(&events);
        for day in &stored {
            let made = made.iter().find(|made| made.start_date == day.start_date).unwrap();
            let close = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(1.0);
            let (amount, total) = (day.unlock_amount.copied().unwrap(), day.total_cumulative_unlocked_amount.copied().unwrap());
            assert!(close(amount, made.unlock_amount.copied().unwrap()), "{token} {day:?} {made:?}");
            assert!(close(total, made.total_cumulative_unlocked_amount.copied().unwrap()), "{token} {day:?} {made:?}");
            assert_eq!(day.allocations.items().len(), made.allocations.items().len(), "{token} {day:?} {made:?}");
        }
    }
}

#[tokio::test]
async fn days_beyond_the_stored_ones_are_made_from_the_schedule() {
    let stored = r#"[{"startDate":"2026-01-06T00:00:00Z","endDate":"2026-01-07T00:00:00Z","tokenName":"Alpha","tokenSymbol":"ALP","listedMethod":"INTERNAL","unlockAmount":4,"unlockValue":8,"referencePrice":2,"allocations":[],"totalCumulativeUnlockedAmount":154}]"#;
    let mut with_days = FILES.to_vec();
    with_days.push(("daily-emission/alpha.json", stored));
    let service = Service::in_memory(options()).unwrap();
    service.import(files(&with_days), |_| {}).unwrap();
    let server = Server::start(service.router()).await;
    let days = server.data("/v1/daily-emission?tokenId=alpha").await;
    let amounts: Vec<f64> = days.as_array().unwrap().iter().map(|day| day["unlockAmount"].as_f64().unwrap()).collect();
    assert_eq!(amounts[..3], [150.0, 4.0, 0.0]);
    assert_eq!((amounts.len(), &days[0]["startDate"]), (8, &"2026-01-05T00:00:00Z".into()));
}

// -- edits --

#[tokio::test]
async fn an_edit_carries_through_everything_that_depends_on_it() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let at = |date: &str| parse_timestamp(date).unwrap();
    service
        .edit(|edit| {
            edit.move_event("alpha", at("2026-03-01"), at("2026-03-04"))?;
            edit.resize_event("alpha", at("2026-03-04"), 1.5)?;
            edit.add_burn("beta", Burn { burn_date: at("2026-01-11").into(), amount: 7.0.into(), ..Default::default() })
        })
        .unwrap();
    let events = server.data("/v5/unlock/events/alpha").await;
    assert_eq!(events[1]["unlockDate"], "2026-03-04T00:00:00Z");
    assert_eq!(events[1]["cliffUnlocks"]["allocationBreakdown"][0]["unlockDate"], "2026-03-04T00:00:00Z");
    assert_eq!(events[1]["latestUpdateDate"], "2026-01-12T09:00:00Z");
    near(&events[1]["cliffUnlocks"]["cliffAmount"], 120.0);
    near(&events[1]["cliffUnlocks"]["valueToMarketCap"], 2.4);
    let table = server.data("/v5/allocations/alpha").await;
    near(&table["allocations"][1]["allocationLockedAmount"], 100.0);
    // 40 more for investors and 15.5 more for advisors: 39 come out of the untracked supply, the rest raises the maximum.
    near(&table["totalUntrackedAmount"], 0.0);
    near(&table["maxSupply"], 1016.5);
    let list = server.data("/v5/token/list").await;
    assert_eq!(list[0]["lastUpdatedDate"], "2026-01-12T09:00:00Z");
    near(&list[0]["totalLockedAmount"], 661.0 + 55.5);
    assert_eq!(list[1]["hasBurn"], true);
    near(&server.data("/v5/burn/beta").await["totalBurnAmount"], 7.0);

    let error = service.edit(|edit| edit.remove_event("alpha", at("2026-03-01"))).unwrap_err().to_string();
    assert_eq!(error, "token \"alpha\" has no unlock event at 2026-03-01 00:00:00 UTC");
    service.edit(|edit| edit.remove_event("alpha", at("2026-03-04"))).unwrap();
    assert_eq!(server.data("/v5/unlock/events/alpha").await.as_array().unwrap().len(), 1);
    service
        .edit(|edit| {
            edit.silently();
            edit.resize_event("alpha", at("2026-01-05"), 2.0)
        })
        .unwrap();
    near(&server.data("/v5/unlock/events/alpha").await[0]["cliffUnlocks"]["cliffAmount"], 200.0);
    // The removal was within the same second as the move, and its mark still later; the silent correction left none.
    assert_eq!(server.data("/v5/token/list").await[0]["lastUpdatedDate"], "2026-01-12T09:00:01Z");
}

#[tokio::test]
async fn a_new_price_changes_values_and_no_mark() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = (server.data("/v5/token/list").await, server.data("/v3/unlock/events?tokenId=alpha").await);
    service.edit(|edit| edit.reprice("alpha", 3.0)).unwrap();
    let after = (server.data("/v5/token/list").await, server.data("/v3/unlock/events?tokenId=alpha").await);
    assert_eq!(after.0[0]["lastUpdatedDate"], before.0[0]["lastUpdatedDate"]);
    near(&after.0[0]["marketCap"], 15_000.0);
    for (one, other) in before.1.as_array().unwrap().iter().zip(after.1.as_array().unwrap()) {
        assert_eq!((&one["latestUpdateDate"], &one["unlockDate"]), (&other["latestUpdateDate"], &other["unlockDate"]));
        assert_eq!(one["cliffUnlocks"]["cliffAmount"], other["cliffUnlocks"]["cliffAmount"]);
    }
    near(&after.1[0]["cliffUnlocks"]["cliffValue"], 450.0);
    near(&after.1[0]["cliffUnlocks"]["valueToMarketCap"], 3.0);
    near(&after.1[1]["linearUnlocks"]["allocationBreakdown"][0]["dailyValue"], 30.0);
}

#[tokio::test]
async fn a_failed_edit_leaves_nothing_behind() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = everything(&server).await;
    let at = |date: &str| parse_timestamp(date).unwrap();
    service
        .edit(|edit| {
            edit.remove_event("alpha", at("2026-01-05"))?;
            edit.remove_event("nobody", at("2026-01-05"))
        })
        .unwrap_err();
    assert_eq!(everything(&server).await, before);
}

// -- faults --

#[tokio::test]
async fn each_fault_is_what_it_says_and_ends_when_cleared() {
    let faults = Faults::new();
    let server = Server::start(small(options()).faulty_router(&faults)).await;
    let path = "/v5/unlock/events/alpha?pageSize=1";
    let get = || server.http.get(format!("{}{path}", server.base)).header(KEY_HEADER, "secret").send();

    faults.times("/v5/unlock", 2, Fault::too_many(7));
    for _ in 0..2 {
        let response = get().await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()[header::RETRY_AFTER]), (429, &HeaderValue::from(7)));
    }
    assert_eq!(get().await.unwrap().status(), 200, "two times, not three");
    faults.set("/v5/burn", Fault::status(500));
    assert_eq!(get().await.unwrap().status(), 200, "another path");
    faults.clear();

    faults.set("", Fault::Cut(20));
    assert!(get().await.unwrap().bytes().await.is_err(), "the body ends early");
    faults.clear();
    faults.set("", Fault::Drip { bytes: 64, every: Duration::from_millis(1) });
    let dripped: Value = serde_json::from_slice(&get().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(dripped["metadata"]["total"], 2);
    faults.clear();
    faults.set("", Fault::Emptied);
    let (_, body) = server.ask(path).await;
    assert_eq!((&body["data"], &body["metadata"]["total"]), (&Value::Array(vec![]), &0.into()));
    faults.clear();
    faults.set("", Fault::PageMissing(2));
    assert_eq!(server.ask(path).await.1["data"].as_array().unwrap().len(), 1);
    let (_, body) = server.ask(&format!("{path}&page=2")).await;
    assert_eq!((&body["data"], &body["metadata"]["total"]), (&Value::Array(vec![]), &2.into()));
    faults.clear();
    faults.set("", Fault::PageFails(2));
    assert_eq!(server.ask(path).await.0, 200);
    assert_eq!(server.ask(&format!("{path}&page=2")).await.0, 500);
    faults.clear();
    faults.set("", Fault::TotalMoves);
    assert_eq!(server.ask(path).await.1["metadata"]["total"], 2);
    assert_eq!(server.ask(&format!("{path}&page=2")).await.1["metadata"]["total"], 3);
    faults.clear();
    faults.set("", Fault::Doubled);
    assert_eq!(server.ask(path).await.1["data"].as_array().unwrap().len(), 2);
    faults.clear();
    faults.set("", Fault::Replaced { from: "\"Seed\"".into(), to: "null".into() });
    let (_, body) = server.ask("/v4/unlock/events?tokenId=alpha").await;
    assert!(body["data"][1]["cliffUnlocks"]["allocationBreakdown"][0]["allocationName"].is_null());
    faults.clear();
    faults.set("", Fault::Hang);
    let hanging = tokio::time::timeout(Duration::from_millis(200), get().await.unwrap().bytes()).await;
    assert!(hanging.is_err(), "headers, and then nothing");
    faults.clear();
    faults.set("", Fault::Html);
    assert!(get().await.unwrap().text().await.unwrap().contains("<html>"));
    faults.clear();
    faults.set("", Fault::StatusFalse);
    assert_eq!(server.ask(path).await.1["status"], false);
    faults.clear();
    faults.set("", Fault::Bare);
    assert!(server.ask(path).await.1.is_array());
    faults.clear();
    faults.set("", Fault::Redirect("http://127.0.0.1:9/x".into()));
    assert_eq!(get().await.unwrap().headers()[header::LOCATION], "http://127.0.0.1:9/x");
    faults.clear();
    faults.set("", Fault::NotModified);
    assert_eq!(get().await.unwrap().status(), 304);
    faults.clear();
    faults.set("", Fault::GzipBomb(8 << 20));
    let bomb = get().await.unwrap().bytes().await.unwrap();
    assert_eq!(bomb.len(), 8 << 20, "the client unpacks it");
    faults.clear();
    assert_eq!(server.ask(path).await.0, 200);

    let log = faults.take_log();
    assert_eq!(log.len() as u64, faults.request_count());
    assert!(log[0].has_key && log[0].faulted && !format!("{log:?}").contains("secret"));
    assert_eq!(log.last().unwrap().uri, path);
}

// -- running it --

#[tokio::test]
async fn both_addresses_are_bound_told_and_stopped_together() {
    let service = small(options());
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (told, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        listen(&service, any, Some(any), |bound| told.send(bound).unwrap(), async move { drop(stopped.await) }).await
    });
    let bound: Bound = bound.await.unwrap();
    for (address, weekly) in [(bound.address, 404), (bound.legacy.unwrap(), 200)] {
        rustls::crypto::ring::default_provider().install_default().ok();
        let answered = reqwest::get(format!("http://{address}/v2/emission?tokenId=alpha")).await.unwrap();
        assert_eq!(answered.status().as_u16(), weekly);
    }
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), serving).await.expect("both stop").unwrap().unwrap();
    let taken = std::net::TcpListener::bind(any).unwrap();
    let error = listen(&small(options()), taken.local_addr().unwrap(), None, |_| {}, async {}).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {}", taken.local_addr().unwrap()));
}

#[tokio::test]
async fn what_another_process_imports_is_served_within_moments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let served = Service::open(&path, options()).unwrap();
    let server = Server::start(served.router()).await;
    assert_eq!(server.data("/v5/token/list").await, Value::Array(vec![]));
    let other = Service::open(&path, options()).unwrap();
    other.import(files(FILES), |_| {}).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.data("/v5/token/list").await.as_array().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the import is never seen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    other.add_key("desk", 5).unwrap();
    while server.ask("/v5/token/list").await.0 != 401 {
        assert!(Instant::now() < deadline, "the key is never asked for");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_half_sent_request_does_not_hold_a_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = small(options()).router();
    let server = tokio::spawn(listener::serve_on(
        listener::Bounded::new(listener),
        router,
        async move { drop(stopped.await) },
        Duration::from_millis(100),
    ));
    let mut half = tokio::net::TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /v5/burn/alpha HT").await.unwrap();
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), server).await.expect("it stops").unwrap().unwrap();
}

#[tokio::test]
async fn a_silent_connection_ends_and_makes_room_for_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bounded = listener::Bounded::with(listener, 1, Duration::from_millis(200));
    let router = small(options()).router();
    tokio::spawn(listener::serve_on(bounded, router, std::future::pending(), Duration::ZERO));
    let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
    silent.write_all(b"GET /v5/burn/alpha HT").await.unwrap();
    // The one place is taken; this answer comes once the silent connection was ended.
    let mut next = tokio::net::TcpStream::connect(address).await.unwrap();
    next.write_all(b"GET /v5/burn/alpha HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), next.read_to_string(&mut answer)).await;
    assert!(read.is_ok() && answer.starts_with("HTTP/1.1 200"), "{read:?} {answer}");
    let mut rest = Vec::new();
    // Closed, with or without a last word.
    let ended = tokio::time::timeout(Duration::from_secs(10), silent.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the silent connection is closed");
}

#[tokio::test]
async fn unknown_fields_go_through_unchanged() {
    let server = started().await;
    let events = server.data("/v1/unlock/events?tokenId=alpha").await;
    let mut stored: Vec<UnlockEvent> = serde_json::from_str(ALPHA).unwrap();
    for event in &mut stored {
        event.listed_method = wire::Maybe::Absent;
        if let wire::Maybe::Value(cliffs) = &mut event.cliff_unlocks
            && let wire::Maybe::Value(items) = &mut cliffs.allocation_breakdown
        {
            items.iter_mut().for_each(|item| item.committed_claim = wire::Maybe::Absent);
        }
    }
    let served: Vec<UnlockEvent> = serde_json::from_value(events).unwrap();
    assert_eq!(served, stored);
}
