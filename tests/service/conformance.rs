//! Every path in every version against values worked out by hand from the files of `data/`, at 2026-04-10T12:00:00Z.

use serde_json::{Value, json};

use crate::support::{Server, bundled};

/// What is expected somewhere in `data`.
enum Is {
    /// Exactly this.
    Exactly(Value),
    /// This number, to one part in a thousand million.
    Near(f64),
    /// A list of so many items.
    Items(usize),
    /// There, and null.
    Null,
    /// Not there.
    Absent,
}
use Is::{Absent, Exactly, Items, Near, Null};

fn text(text: &str) -> Is {
    Exactly(json!(text))
}

#[track_caller]
fn check(path: &str, data: &Value, place: &str, expected: &Is) {
    let found = data.pointer(place);
    let holds = match (expected, found) {
        (Absent, found) => found.is_none(),
        (Null, Some(found)) => found.is_null(),
        (Exactly(value), Some(found)) => found == value,
        (Near(value), Some(found)) => found.as_f64().is_some_and(|found| (found - value).abs() <= 1e-9 * value.abs().max(1.0)),
        (Items(count), Some(found)) => found.as_array().is_some_and(|items| items.len() == *count),
        (_, None) => false,
    };
    let told = match expected {
        Exactly(value) => value.to_string(),
        Near(value) => value.to_string(),
        Items(count) => format!("{count} items"),
        Null => "null".into(),
        Absent => "nothing".into(),
    };
    let shown: String = found.map_or_else(|| "nothing".into(), |found| found.to_string().chars().take(200).collect());
    assert!(holds, "{path} at {place:?}: expected {told}, found {shown}");
}

/// The linear start of 2022 has 94,175,479 + 3,710,574; the rates change on 2023-05-01, 2024-05-01 and 2025-05-01, days without cliffs.
fn unlock_events() -> Vec<(String, Vec<(&'static str, Is)>)> {
    let old = |version: u8, more: Vec<(&'static str, Is)>| {
        let mut checks = vec![
            ("/0/unlockDate", text("2022-06-01T00:00:00Z")),
            ("/0/tokenName", text("Optimism")),
            ("/0/tokenSymbol", text("OP")),
            ("/0/latestUpdateDate", text("2025-04-30T06:34:20Z")),
            ("/0/linearUnlocks/linearAmount", Near(97_886_053.0)),
            ("/0/linearUnlocks/allocationBreakdown", Items(2)),
            ("/0/linearUnlocks/allocationBreakdown/0/allocationName", text("Ecosystem Fund")),
            ("/0/linearUnlocks/allocationBreakdown/0/beginDate", text("2022-06-01T00:00:00Z")),
            ("/0/linearUnlocks/allocationBreakdown/0/endDate", text("2023-05-01T00:00:00Z")),
            ("/0/linearUnlocks/allocationBreakdown/0/unlockPrecision", text("second")),
            ("/1/linearUnlocks", Null),
            ("/1/cliffUnlocks/cliffAmount", Near(11_742_277.0)),
            ("/1/cliffUnlocks/referencePrice", Absent),
            ("/1/cliffUnlocks/totalCliffAmount", Absent),
            ("/1/cliffUnlocks/allocationBreakdown/0/committedClaim", Absent),
            ("/1/tokenId", Absent),
        ];
        checks.extend(more);
        (format!("/v{version}/unlock/events?tokenId=optimism"), checks)
    };
    let april = |list: &'static str, checks: Vec<(&'static str, Is)>| {
        let mut all = vec![
            ("", Items(2)),
            ("/0/unlockDate", text("2026-03-31T00:00:00Z")),
            ("/1/cliffUnlocks/cliffAmount", Near(32_212_254.72)),
            ("/1/cliffUnlocks/cliffValue", Near(13_106_315.6)),
            ("/1/cliffUnlocks/valueToMarketCap", Near(1.69845)),
            ("/1/cliffUnlocks/allocationBreakdown", Items(2)),
            ("/1/cliffUnlocks/allocationBreakdown/1/standardAllocationName", text("Private Investors")),
            ("/1/cliffUnlocks/allocationBreakdown/1/unlockPrecision", text("month")),
            ("/1/listedMethod", text("INTERNAL")),
            ("/1/linearUnlocks", Absent),
        ];
        all.extend(checks);
        (list.to_owned(), all)
    };
    let claim = "/1/cliffUnlocks/allocationBreakdown/0/committedClaim";
    vec![
        // 42 instants in the file. Without the three that only change a rate: 39.
        old(
            1,
            vec![
                ("", Items(42)),
                ("/0/listedMethod", Absent),
                ("/2/linearUnlocks/linearAmount", Near(180_000_000.0)),
                ("/2/cliffUnlocks", Null),
            ],
        ),
        old(2, vec![("", Items(39)), ("/0/listedMethod", text("INTERNAL")), ("/2/unlockDate", text("2023-05-31T00:00:00Z"))]),
        old(3, vec![("", Items(39)), ("/0/listedMethod", text("INTERNAL")), ("/2/unlockDate", text("2023-05-31T00:00:00Z"))]),
        // Both ends belong to it; the cliff of the next month, at 2026-05-31, does not.
        april("/v4/unlock/events?tokenId=optimism&start=2026-03-31&end=2026-04-30", vec![(claim, Absent)]),
        april("/v5/unlock/events/optimism?start=2026-03-31&end=2026-04-30", vec![(claim, Null)]),
        (
            // 15,211,342.506667 of 32,212,254.72 tokens: 1.69845 % x 0.472222... of the market cap.
            "/v5/unlock/events/optimism?start=2026-04-30&end=2026-04-30&standardAllocation=privateInvestors,publicInvestors"
                .into(),
            vec![
                ("", Items(1)),
                ("/0/cliffUnlocks/cliffAmount", Near(15_211_342.506_667)),
                ("/0/cliffUnlocks/cliffValue", Near(6_189_093.5)),
                ("/0/cliffUnlocks/valueToMarketCap", Near(1.698_45 * 15_211_342.506_667 / 32_212_254.72)),
                ("/0/cliffUnlocks/allocationBreakdown", Items(1)),
            ],
        ),
        // Of the 39 instants with a cliff, the second page of twenty has 19.
        (
            "/v5/unlock/events/optimism?page=2&pageSize=20".into(),
            vec![("", Items(19)), ("/18/unlockDate", text("2026-05-31T00:00:00Z"))],
        ),
        // Listed by a model: from the third version on.
        ("/v3/unlock/events?tokenId=arbitrum".into(), vec![("", Items(39)), ("/0/listedMethod", text("AI"))]),
    ]
}

/// Arbitrum: 750,000,000 over the 1,461 days from 2023-04-17 are 513,347.0226 a day; a cliff of 92,645,833.333333 at 2026-03-16T01:00Z.
fn emission() -> Vec<(String, Vec<(&'static str, Is)>)> {
    let day = |path: &'static str, more: Vec<(&'static str, Is)>| {
        let mut checks = vec![
            ("", Items(1)),
            ("/0/startDate", text("2026-03-16T00:00:00Z")),
            ("/0/endDate", text("2026-03-17T00:00:00Z")),
            ("/0/unlockAmount", Near(93_159_180.355_9)),
            ("/0/unlockValue", Near(27_778_485.0)),
            ("/0/referencePrice", Near(0.298_183_01)),
            ("/0/allocations", Items(3)),
            ("/0/allocations/0/allocationName", text("Foundation")),
            ("/0/allocations/0/unlockAmount", Near(513_347.022_6)),
            ("/0/totalCumulativeUnlockedAmount", Near(5_043_964_579.055_4)),
            ("/0/standardAllocations", Absent),
        ];
        checks.extend(more);
        (path.to_owned(), checks)
    };
    // Sunday 2026-03-15 to Saturday 2026-03-21: seven days of the line and the cliff.
    let amount: f64 = 7.0 * 513_347.022_6 + 56_125_000.0 + 36_520_833.333_3;
    let week = |path: &'static str, more: Vec<(&'static str, Is)>| {
        let mut checks = vec![
            ("", Items(1)),
            ("/0/startDate", text("2026-03-15T00:00:00Z")),
            ("/0/endDate", text("2026-03-22T00:00:00Z")),
            ("/0/unlockAmount", Near(amount)),
            ("/0/totalCumulativeUnlockedAmount", Near(5_046_531_314.168_4)),
            ("/0/allocations", Items(3)),
            ("/0/committedClaim", Absent),
        ];
        checks.extend(more);
        (path.to_owned(), checks)
    };
    vec![
        day(
            "/v2/daily-emission?tokenId=arbitrum&start=2026-03-16&end=2026-03-16",
            vec![("/0/listedMethod", text("AI")), ("/0/committedClaim", Absent)],
        ),
        day(
            "/v5/daily-emission/arbitrum?start=2026-03-16&end=2026-03-16",
            vec![("/0/committedClaim", Null), ("/0/allocations/0/committedClaim", Null)],
        ),
        (
            "/v5/daily-emission/arbitrum?start=2026-03-16&end=2026-03-16&standardAllocation=reserve".into(),
            vec![("/0/unlockAmount", Near(513_347.022_6)), ("/0/unlockValue", Near(153_071.36)), ("/0/allocations", Items(1))],
        ),
        // Made from the schedule: (108,000,000 + 420,000,000) tokens over the 365 days from 2025-05-01.
        (
            "/v1/daily-emission?tokenId=optimism&start=2026-04-08".into(),
            vec![
                ("", Items(3)), // the 8th, the 9th and today
                ("/0/unlockAmount", Near(528_000_000.0 / 365.0)),
                ("/0/allocations/0/unlockAmount", Near(108_000_000.0 / 365.0)),
                ("/0/listedMethod", Absent),
            ],
        ),
        (
            // The last day of the line, with a cliff on it.
            "/v2/daily-emission?tokenId=optimism&start=2026-04-30&end=2026-05-01".into(),
            vec![
                ("/0/unlockAmount", Near(528_000_000.0 / 365.0 + 32_212_254.72)),
                ("/1/unlockAmount", Near(0.0)),
                ("/1/allocations", Items(0)),
            ],
        ),
        week(
            "/v1/emission?tokenId=arbitrum&start=2026-03-15&end=2026-03-21",
            vec![
                ("/0/allocations/0", text("Foundation")),
                ("/0/standardAllocations", Exactly(json!(["Founder / Team", "Private Investors", "Reserve"]))),
                ("/0/listedMethod", Absent),
            ],
        ),
        week(
            "/v2/emission?tokenId=arbitrum&start=2026-03-15&end=2026-03-21",
            vec![
                ("/0/allocations/0/unlockAmount", Near(3_593_429.158_2)),
                ("/0/listedMethod", Absent),
                ("/0/standardAllocations", Absent),
            ],
        ),
        // Dates inside of a week stand for the whole of it.
        week("/v3/emission?tokenId=arbitrum&start=2026-03-18&end=2026-03-19", vec![("/0/listedMethod", text("AI"))]),
    ]
}

/// 34 burns of BNB in the file; 2025-04-17, 2025-07-21 and 2025-10-20 are in the window.
fn burns_and_buybacks() -> Vec<(String, Vec<(&'static str, Is)>)> {
    let window = |version: u8| {
        (
            format!("/v{version}/burn/bnb?start=2025-04-17&end=2025-10-20"),
            vec![
                ("/tokenId", text("bnb")),
                ("/burns", Items(3)),
                ("/burns/0/burnDate", text("2025-10-20T00:00:00Z")),
                ("/burns/0/amount", Near(1_441_281.413)),
                ("/burns/0/metadata/burners", Exactly(json!(["PROJECT"]))),
                ("/totalBurnAmount", Near(1_579_108.637 + 1_595_599.784 + 1_441_281.413)),
                ("/totalBurnValue", Near(965_304_569.09 + 1_031_392_447.48 + 1_208_000_000.0)),
            ],
        )
    };
    let hyperliquid = |version: u8, value: Is| {
        (
            format!("/v{version}/buyback/hyperliquid?start=2025-09-01"),
            vec![
                ("/buybacks", Items(2)),
                ("/buybacks/0/buybackDate", text("2026-03-31T00:00:00Z")),
                ("/buybacks/0/spentAmount", Null),
                ("/buybacks/0/spentUnit", text("")),
                ("/buybacks/0/resolution", text("period_net")),
                ("/totalBuybackAmount", Null), // neither of the two tells an amount
                ("/totalBuybackValue", value),
            ],
        )
    };
    vec![
        window(1),
        window(5),
        ("/v5/burn/bnb".into(), vec![("/burns", Items(34)), ("/totalBurnAmount", Near(64_088_607.475))]),
        ("/v1/burn/bnb?start=2030-01-01".into(), vec![("/burns", Items(0)), ("/totalBurnAmount", Near(0.0))]),
        hyperliquid(1, Absent),
        hyperliquid(5, Near(316_760_000.0 + 192_250_000.0)),
    ]
}

fn tables_and_lists() -> Vec<(String, Vec<(&'static str, Is)>)> {
    let table = |path: &'static str, method: Is| {
        (
            path.to_owned(),
            vec![
                ("/name", text("Optimism")),
                ("/maxSupply", Near(2_792_564_921.36)),
                ("/totalUnlockedAmount", Near(2_689_046_428.662_77)),
                ("/totalLockedAmount", Near(103_518_492.697_23)),
                ("/totalTBDLockedAmount", Near(0.0)),
                ("/lastUpdatedDate", text("2026-04-03T23:23:43Z")),
                ("/allocations", Items(5)),
                ("/listedMethod", method),
                ("/tokenId", Absent),
            ],
        )
    };
    let list = |version: u8, checks: Vec<(&'static str, Is)>| {
        let mut all = vec![
            ("", Items(59)),
            ("/0/id", text("aave")),
            ("/5/id", text("arbitrum")),
            ("/5/tokenId", Absent),
            ("/5/marketCap", Near(1_642_896_529.0)),
            ("/5/circulatingSupply", Near(1_642_896_529.0 / 0.298_183_01)),
            ("/5/maxSupply", Near(1e10)),
            ("/5/tbdLockedAmount", Near(3_641_000_000.0)),
            ("/5/coverage", Absent),
        ];
        all.extend(checks);
        (format!("/v{version}/token/list"), all)
    };
    // 120 investors; five have their latest round in April 2024.
    let investors = |path: &'static str, count: usize| {
        let first = [("/0/investorId", text("placeholder")), ("/0/latestFundingDate", text("2024-05-22T00:00:00Z"))];
        (path.to_owned(), first.into_iter().chain([("", Items(count))]).collect())
    };
    // Polychain: twelve rounds, six of them led, two of at least 50 million, four in 2023.
    let polychain = |version: u8, query: &'static str, count: usize| {
        (
            format!("/v{version}/fundraising/investors/polychain{query}"),
            vec![("/fundingRounds", Items(count)), ("/investorId", text("polychain"))],
        )
    };
    // Sei: three rounds of 5, 30 and an unknown number of millions; of its investors' 2,000,000,000 tokens 1,092,191,421.44 are out.
    let sei = |version: u8| {
        (
            format!("/v{version}/fundraising/token/sei"),
            vec![
                ("/fundingRounds", Items(3)),
                ("/fundingRounds/0/fundingDate", text("2023-11-15T00:00:00Z")),
                ("/fundingRounds/0/amountRaised", Null),
                ("/fundingRounds/1/numberOfInvestors", Exactly(json!(7))),
                ("/fundingRounds/2/investors", Items(6)),
                ("/totalAmountRaised", Near(35_000_000.0)),
                ("/investorReleasedPercentage", Near(1_092_191_421.444_275 / 2e9 * 100.0)),
            ],
        )
    };
    // 21 tokens have a cliff on or after 2026-04-10; 16 of them until the end of April.
    let upcoming = |version: u8, query: &'static str, count: usize| {
        (
            format!("/v{version}/unlock/events/upcoming{query}"),
            vec![
                ("", Items(count)),
                ("/0/tokenId", text("aptos")),
                ("/0/upcomingEvent/unlockDate", text("2026-04-12T00:00:00Z")),
                ("/0/upcomingEvent/linearUnlocks", Absent),
                ("/0/upcomingEvent/tokenName", Absent),
                (
                    if version == 1 {
                        "/0/upcomingEvent/cliffUnlocks/totalCliffAmount"
                    } else {
                        "/0/upcomingEvent/cliffUnlocks/cliffAmount"
                    },
                    Near(11_309_783.002_912),
                ),
                (
                    if version == 1 {
                        "/0/upcomingEvent/cliffUnlocks/cliffAmount"
                    } else {
                        "/0/upcomingEvent/cliffUnlocks/totalCliffAmount"
                    },
                    Absent,
                ),
                ("/1/tokenId", text("pump-fun")),
            ],
        )
    };
    vec![
        table("/v1/allocations?tokenId=optimism", Absent),
        table("/v2/allocations?tokenId=optimism", text("INTERNAL")),
        table("/v5/allocations/optimism", text("INTERNAL")),
        list(1, vec![("/5/listedMethod", Absent), ("/5/hasFundraising", Absent)]),
        list(2, vec![("/5/listedMethod", text("AI")), ("/5/hasFundraising", Absent)]),
        list(3, vec![("/5/hasFundraising", Exactly(json!(true))), ("/5/hasBurn", Absent)]),
        list(
            4,
            vec![
                ("/5/hasBurn", Exactly(json!(false))),
                ("/5/hasBuyback", Exactly(json!(false))),
                ("/5/hasCommittedClaim", Absent),
            ],
        ),
        list(5, vec![("/5/hasCommittedClaim", Exactly(json!(false)))]),
        (
            "/v5/token/list?tokenId=sui,bnb".into(),
            vec![("", Items(2)), ("/0/id", text("bnb")), ("/0/hasBurn", Exactly(json!(true)))],
        ),
        investors("/v1/fundraising/investors/list", 120),
        investors("/v5/fundraising/investors/list", 50),
        (
            "/v5/fundraising/investors/list?startLatestFundingDate=2024-04-01&endLatestFundingDate=2024-04-30".into(),
            vec![("", Items(5))],
        ),
        polychain(1, "", 12),
        polychain(5, "?isLeadInvestor=true", 6),
        polychain(1, "?raisedAmountMin=50000000", 2),
        polychain(5, "?fundingDateMin=2023-01-01&fundingDateMax=2023-12-31", 4),
        sei(1),
        sei(5),
        upcoming(1, "", 21),
        upcoming(5, "?end=2026-04-30&pageSize=100", 16),
        upcoming(1, "?maxUnlockDate=2026-04-30", 16),
    ]
}

/// Every filter at both of its ends: what lies on an end belongs to it, what lies a step beyond does not.
fn filters() -> Vec<(String, Vec<(&'static str, Is)>)> {
    let items = |path: &str, count: usize| (path.to_owned(), vec![("", Items(count))]);
    let rounds = |query: &str, count: usize| {
        (format!("/v1/fundraising/investors/polychain{query}"), vec![("/fundingRounds", Items(count))])
    };
    let first = |path: &str, count: usize, token: &str| (path.to_owned(), vec![("", Items(count)), ("/0/tokenId", text(token))]);
    vec![
        // The change of rate of 2023-05-01 is told by the first version alone; the cliff of 2023-05-31 by all.
        items("/v1/unlock/events?tokenId=optimism&start=2023-05-01&end=2023-05-31", 2),
        items("/v1/unlock/events?tokenId=optimism&start=2023-05-02&end=2023-05-30", 0),
        items("/v2/unlock/events?tokenId=optimism&start=2023-05-01&end=2023-05-31", 1),
        items("/v3/unlock/events?tokenId=optimism&start=2023-05-31&end=2023-05-31", 1),
        // At 01:00 of the last day: inside of it.
        items("/v4/unlock/events?tokenId=arbitrum&start=2026-04-01&end=2026-04-16", 1),
        items("/v4/unlock/events?tokenId=arbitrum&start=2026-04-01&end=2026-04-15", 0),
        // The two airdrops.
        items("/v5/unlock/events/optimism?standardAllocation=community", 2),
        items("/v5/unlock/events/optimism?standardAllocation=community&start=2022-06-02&end=2023-02-08", 0),
        // 21 cliffs ahead. Market caps from 1,267,366,896 (Jupiter) up are eight.
        first("/v5/unlock/events/upcoming?minMarketCap=1000000000", 8, "aptos"),
        first("/v1/unlock/events/upcoming?minMarketCap=1267366896", 8, "aptos"),
        first("/v5/unlock/events/upcoming?minMarketCap=1267366897", 7, "aptos"),
        // 96.29 % of Optimism's and 91.13 % of Axelar's supply are out.
        first("/v5/unlock/events/upcoming?minReleasedPercentage=90", 2, "axelar"),
        first("/v1/unlock/events/upcoming?minReleasedPercentage=91.2", 1, "optimism"),
        first("/v5/unlock/events/upcoming?minTotalUnlockAmount=100000000", 5, "pump-fun"),
        first("/v1/unlock/events/upcoming?minTotalUnlockAmount=10000000000", 1, "pump-fun"),
        items("/v5/unlock/events/upcoming?minTotalUnlockAmount=10000000001", 0),
        first("/v5/unlock/events/upcoming?minValueToMarketCap=1", 16, "aptos"),
        // 36.9566 % of Pyth's 607,170,193 and 61.3975 % of Ondo's 2,145,365,467.
        first("/v1/unlock/events/upcoming?minValueToMarketCap=36.9566&minMarketCap=607170193", 2, "pyth-network"),
        // On 2026-07-01 dYdX and EigenLayer, the day before Starknet and Zora; on 2027-04-03 Sui and Wormhole, around it nobody.
        first("/v5/unlock/events/upcoming?start=2026-07-01&end=2026-07-01", 2, "dydx"),
        first("/v5/unlock/events/upcoming?start=2026-06-30&end=2026-07-01", 4, "starknet"),
        first("/v1/unlock/events/upcoming?minUnlockDate=2026-06-30&maxUnlockDate=2026-06-30", 2, "starknet"),
        first("/v1/unlock/events/upcoming?minUnlockDate=2027-04-02&maxUnlockDate=2027-04-04", 2, "sui"),
        items("/v5/unlock/events/upcoming?start=2027-04-04&end=2027-04-04", 0),
        // Of Aptos's 11,309,783.002912 the investors get 2,807,971.671521, and the share of the market cap with it.
        (
            "/v5/unlock/events/upcoming?standardAllocation=privateInvestors".into(),
            vec![
                ("", Items(13)),
                ("/0/tokenId", text("aptos")),
                ("/0/upcomingEvent/cliffUnlocks/cliffAmount", Near(2_807_971.671_521)),
                ("/0/upcomingEvent/cliffUnlocks/valueToMarketCap", Near(1.571_45 * 2_807_971.671_521 / 11_309_783.002_912)),
                ("/1/tokenId", text("vana")),
            ],
        ),
        // The files have the days from 2025-07-01 on; the end is today where it is not said.
        items("/v2/daily-emission?tokenId=arbitrum&start=2026-04-01", 10),
        items("/v5/daily-emission/arbitrum?start=2026-04-01&end=2026-04-30", 30),
        items("/v2/emission?tokenId=arbitrum&start=2026-03-29&end=2026-04-11", 2),
        items("/v3/emission?tokenId=arbitrum&start=2026-03-29", 2),
        items("/v1/emission?tokenId=arbitrum&start=2026-04-04&end=2026-04-05", 2),
        // Of 2025-08-31 the amount is known and the value is not.
        (
            "/v5/buyback/hyperliquid?end=2025-08-31".into(),
            vec![("/buybacks", Items(1)), ("/totalBuybackAmount", Near(29_800_000.0)), ("/totalBuybackValue", Null)],
        ),
        ("/v1/buyback/hyperliquid?end=2025-08-30".into(), vec![("/buybacks", Items(0)), ("/totalBuybackAmount", Near(0.0))]),
        rounds("?fundingDateMin=2023-10-25&fundingDateMax=2023-10-25", 2),
        rounds("?fundingDateMin=2023-10-26&fundingDateMax=2024-01-10", 0),
        rounds("?raisedAmountMin=100000000&raisedAmountMax=230000000", 2),
        rounds("?raisedAmountMin=100000001&raisedAmountMax=229999999", 0),
        rounds("?isLeadInvestor=false", 6),
        (
            "/v5/fundraising/token/sei?raisedAmountMin=5000000&raisedAmountMax=5000000".into(),
            vec![("/fundingRounds", Items(1)), ("/totalAmountRaised", Near(5_000_000.0))],
        ),
        (
            "/v1/fundraising/token/sei?fundingDateMin=2023-04-11&fundingDateMax=2023-04-11".into(),
            vec![("/fundingRounds", Items(1)), ("/fundingRounds/0/fundingRound", text("Strategic"))],
        ),
        (
            "/v1/allocations?tokenId=optimism".into(),
            vec![
                ("/allocations/0/allocationName", text("Ecosystem Fund")),
                ("/allocations/0/allocationType", text("Scheduled")),
                ("/allocations/0/standardAllocationName", text("Reserve")),
                ("/allocations/0/allocationUnlockedAmount", Near(378_178_982.424_658)),
                ("/allocations/0/allocationLockedAmount", Near(7_996_496.575_342)),
                ("/allocations/0/allocationAmount", Near(386_175_479.0)),
                ("/allocations/0/trackedAllocationPercentage", Near(100.0)),
                ("/allocations/4/allocationName", text("Investors")),
            ],
        ),
    ]
}

/// Where a page stands: 39 cliffs of Optimism, 120 investors, 21 tokens with a cliff ahead, 30 days of April.
#[tokio::test]
async fn a_page_says_where_it_stands_and_the_versions_without_pages_say_nothing() {
    let server = Server::of(bundled()).await;
    for (path, page, size, pages, total, items) in [
        ("/v5/unlock/events/optimism", 1, 50, 1, 39, 39),
        ("/v5/unlock/events/optimism?page=2&pageSize=20", 2, 20, 2, 39, 19),
        ("/v5/unlock/events/optimism?page=3&pageSize=20", 3, 20, 2, 39, 0),
        ("/v5/fundraising/investors/list?page=3", 3, 50, 3, 120, 20),
        ("/v5/fundraising/investors/list?page=4", 4, 50, 3, 120, 0),
        ("/v5/unlock/events/upcoming?pageSize=7&page=3", 3, 7, 3, 21, 7),
        ("/v5/unlock/events/upcoming?pageSize=1&page=21", 21, 1, 21, 21, 1),
        ("/v5/daily-emission/arbitrum?start=2026-04-01&end=2026-04-30&pageSize=29&page=2", 2, 29, 2, 30, 1),
        ("/v5/unlock/events/optimism?start=2030-01-01", 1, 50, 0, 0, 0),
        ("/v5/unlock/events/optimism?pageSize=501", 1, 500, 1, 39, 39),
    ] {
        let (status, body) = server.ask(path).await;
        assert_eq!((status, body["data"].as_array().map(Vec::len)), (200, Some(items)), "{path}");
        let said = ["page", "pageSize", "totalPages", "total"].map(|name| body["metadata"][name].as_u64().unwrap());
        assert_eq!(said, [page, size, pages, total], "{path}");
    }
    for path in ["/v4/unlock/events?tokenId=optimism", "/v1/unlock/events/upcoming", "/v1/fundraising/investors/list"] {
        let (_, body) = server.ask(path).await;
        assert_eq!(body["metadata"], json!({"queryDate": "2026-04-10T12:00:00Z"}), "{path}");
    }
}

#[tokio::test]
async fn every_version_answers_what_the_files_say() {
    let server = Server::of(bundled()).await;
    let mut asked = Vec::new();
    for (path, checks) in [unlock_events(), emission(), burns_and_buybacks(), tables_and_lists(), filters()].into_iter().flatten()
    {
        let data = server.data(&path).await;
        for (place, expected) in &checks {
            check(&path, &data, place, expected);
        }
        asked.push(path);
    }
    // The daily emission and allocations of the first version are asked above by another token or parameter each; none may be forgotten.
    let (_, document) = server.ask("/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        let stem = path.trim_end_matches("{id}");
        assert!(asked.iter().any(|asked| asked.starts_with(stem)), "{path} has no row in the table");
    }
}

#[tokio::test]
async fn versions_from_before_models_do_not_have_their_tokens() {
    let server = Server::of(bundled()).await;
    for (path, since) in [
        ("/v1/unlock/events?tokenId=arbitrum", 3),
        ("/v2/unlock/events?tokenId=arbitrum", 3),
        ("/v1/daily-emission?tokenId=arbitrum", 2),
        ("/v1/allocations?tokenId=arbitrum", 2),
    ] {
        let (status, body) = server.ask(path).await;
        assert_eq!(status, 404, "{path}");
        let message = body["errorMessage"].as_str().unwrap();
        assert!(message.contains("AI") && message.ends_with(&format!("ask version {since} or newer")), "{message}");
    }
}

/// What is there is what the description says, for every answer that can be had.
#[tokio::test]
async fn the_description_says_what_is_answered() {
    let server = Server::of(bundled()).await;
    let (_, document) = server.ask("/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(boolean_schemas(&document["components"]["schemas"]), [""; 0]);
    for (path, item) in document["paths"].as_object().unwrap() {
        let id = if path.contains("/investors/") { "polychain" } else { "optimism" };
        let mut url = path.replace("{id}", id);
        if item["get"]["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|parameter| parameter["required"] == true && parameter["in"] == "query")
        {
            url.push_str("?tokenId=optimism");
        }
        let (status, body) = server.ask(&url).await;
        assert_eq!(status, 200, "{url}");
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let mut problems = Vec::new();
        validate(&document, schema, &body, "", &mut problems);
        assert!(problems.is_empty(), "{url}: {problems:#?}");
    }
}

/// As much of JSON Schema as the description uses.
fn validate(document: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    if problems.len() > 20 {
        return;
    }
    // Generators of clients do not take `true` and `false` for schemas.
    if schema.is_boolean() {
        problems.push(format!("{at} has a boolean for a schema"));
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference} leads nowhere"));
        return validate(document, target, value, at, problems);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| {
            let mut inner = Vec::new();
            validate(document, schema, value, at, &mut inner);
            inner.is_empty()
        });
        if !fits {
            // The first is the one that is meant.
            validate(document, &any[0], value, at, problems);
        }
        return;
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        problems.push(format!("{at} is {value}, not {kinds:?}"));
        return;
    }
    if schema["format"] == "date-time"
        && value.is_string()
        && cliffwatch::model::wire::parse_timestamp(value.as_str().unwrap()).is_none()
    {
        problems.push(format!("{at} is {value}, not a time"));
    }
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            validate(document, &schema["items"], item, &format!("{at}/{index}"), problems);
        }
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            problems.push(format!("{at}/{name} is missing"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(schema) => validate(document, schema, field, &format!("{at}/{name}"), problems),
            // What the description leaves out of a version does not come in it; the bundled data has no fields of its own there.
            None => problems.push(format!("{at}/{name} is not described")),
        }
    }
}

/// Properties and items whose schema is a boolean.
fn boolean_schemas(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = value["properties"].as_object().into_iter().flatten();
                found.extend(inner.filter(|(_, schema)| schema.is_boolean()).map(|(field, _)| format!("{name}.{field}")));
                found.extend(boolean_schemas(value));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| found.extend(boolean_schemas(item))),
        _ => {}
    }
    found
}
