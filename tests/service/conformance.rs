//! Compares every path and version with values computed by hand from the files in `data/`, at 2026-04-10T12:00:00Z.

use serde_json::{Value, json};

use crate::service::{
    json_schema::{boolean_schemas, validate},
    support::{Server, bundled},
};

/// An expected value at a JSON pointer in `data`.
enum Expected {
    Exactly(Value),
    /// This number, with a relative tolerance of 1e-9.
    Near(f64),
    /// A list with this number of items.
    Items(usize),
    Null,
    Absent,
}
use Expected::{Absent, Exactly, Items, Near, Null};

fn text(text: &str) -> Expected {
    Exactly(json!(text))
}

#[track_caller]
fn check(path: &str, data: &Value, place: &str, expected: &Expected) {
    let found = data.pointer(place);
    let holds = match (expected, found) {
        (Absent, found) => found.is_none(),
        (Null, Some(found)) => found.is_null(),
        (Exactly(value), Some(found)) => found == value,
        (Near(value), Some(found)) => found.as_f64().is_some_and(|found| (found - value).abs() <= 1e-9 * value.abs().max(1.0)),
        (Items(count), Some(found)) => found.as_array().is_some_and(|items| items.len() == *count),
        (_, None) => false,
    };
    let wanted = match expected {
        Exactly(value) => value.to_string(),
        Near(value) => value.to_string(),
        Items(count) => format!("{count} items"),
        Null => "null".into(),
        Absent => "nothing".into(),
    };
    let shown: String = found.map_or_else(|| "nothing".into(), |found| found.to_string().chars().take(200).collect());
    assert!(holds, "{path} at {place:?}: expected {wanted}, found {shown}");
}

/// The linear unlocks of 2022 have 94,175,479 + 3,710,574 tokens. Their rates change on 2023-05-01, 2024-05-01, and 2025-05-01, which have no
/// cliffs.
fn unlock_events() -> Vec<(String, Vec<(&'static str, Expected)>)> {
    let old = |version: u8, more: Vec<(&'static str, Expected)>| {
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
    let april = |list: &'static str, checks: Vec<(&'static str, Expected)>| {
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
        // The file has 42 instants, 39 without the three that only change a rate.
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
        // Both bounds are inclusive. The next cliff, on 2026-05-31, is not included.
        april("/v4/unlock/events?tokenId=optimism&start=2026-03-31&end=2026-04-30", vec![(claim, Absent)]),
        april("/v5/unlock/events/optimism?start=2026-03-31&end=2026-04-30", vec![(claim, Null)]),
        (
            // 15,211,342.506667 of 32,212,254.72 tokens: 1.69845 % × 0.472222… of market cap.
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
        // There are 39 instants with a cliff, so the second page of twenty has 19.
        (
            "/v5/unlock/events/optimism?page=2&pageSize=20".into(),
            vec![("", Items(19)), ("/18/unlockDate", text("2026-05-31T00:00:00Z"))],
        ),
        // Listed by AI: available from version 3 on.
        ("/v3/unlock/events?tokenId=arbitrum".into(), vec![("", Items(39)), ("/0/listedMethod", text("AI"))]),
    ]
}

/// Arbitrum: 750,000,000 over the 1,461 days from 2023-04-17 are 513,347.0226 per day. It has a cliff of 92,645,833.333333 at
/// 2026-03-16T01:00Z.
fn emission() -> Vec<(String, Vec<(&'static str, Expected)>)> {
    let day = |path: &'static str, more: Vec<(&'static str, Expected)>| {
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
    // Sunday 2026-03-15 to Saturday 2026-03-21: seven days of the linear unlock plus the cliff.
    let amount: f64 = 7.0 * 513_347.022_6 + 56_125_000.0 + 36_520_833.333_3;
    let week = |path: &'static str, more: Vec<(&'static str, Expected)>| {
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
        // Computed from the schedule: 108,000,000 + 420,000,000 tokens over the 365 days from 2025-05-01.
        (
            "/v1/daily-emission?tokenId=optimism&start=2026-04-08".into(),
            vec![
                ("", Items(3)), // the 8th, the 9th, and today
                ("/0/unlockAmount", Near(528_000_000.0 / 365.0)),
                ("/0/allocations/0/unlockAmount", Near(108_000_000.0 / 365.0)),
                ("/0/listedMethod", Absent),
            ],
        ),
        (
            // The last day of the linear unlock, with a cliff.
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
        // Dates within a week select the whole week.
        week("/v3/emission?tokenId=arbitrum&start=2026-03-18&end=2026-03-19", vec![("/0/listedMethod", text("AI"))]),
    ]
}

/// The file has 34 burns of BNB. The burns on 2025-04-17, 2025-07-21, and 2025-10-20 are in the window.
fn burns_and_buybacks() -> Vec<(String, Vec<(&'static str, Expected)>)> {
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
    let hyperliquid = |version: u8, value: Expected| {
        (
            format!("/v{version}/buyback/hyperliquid?start=2025-09-01"),
            vec![
                ("/buybacks", Items(2)),
                ("/buybacks/0/buybackDate", text("2026-03-31T00:00:00Z")),
                ("/buybacks/0/spentAmount", Null),
                ("/buybacks/0/spentUnit", text("")),
                ("/buybacks/0/resolution", text("period_net")),
                ("/totalBuybackAmount", Null), // neither has an amount
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

fn tables_and_lists() -> Vec<(String, Vec<(&'static str, Expected)>)> {
    let table = |path: &'static str, method: Expected| {
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
    let list = |version: u8, checks: Vec<(&'static str, Expected)>| {
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
    // Five of 120 investors have their latest round in April 2024.
    let investors = |path: &'static str, count: usize| {
        let first = [("/0/investorId", text("placeholder")), ("/0/latestFundingDate", text("2024-05-22T00:00:00Z"))];
        (path.to_owned(), first.into_iter().chain([("", Items(count))]).collect())
    };
    // Polychain has twelve rounds: six as lead, two of at least 50 million, and four in 2023.
    let polychain = |version: u8, query: &'static str, count: usize| {
        (
            format!("/v{version}/fundraising/investors/polychain{query}"),
            vec![("/fundingRounds", Items(count)), ("/investorId", text("polychain"))],
        )
    };
    // Sei has three rounds: of 5 million, 30 million, and an unknown amount. 1,092,191,421.44 of its investors' 2,000,000,000 tokens are unlocked.
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
    // 21 tokens have a cliff on or after 2026-04-10, 16 of them until the end of April.
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

/// Every filter at both bounds, which are inclusive.
fn filters() -> Vec<(String, Vec<(&'static str, Expected)>)> {
    let items = |path: &str, count: usize| (path.to_owned(), vec![("", Items(count))]);
    let rounds = |query: &str, count: usize| {
        (format!("/v1/fundraising/investors/polychain{query}"), vec![("/fundingRounds", Items(count))])
    };
    let first = |path: &str, count: usize, token: &str| (path.to_owned(), vec![("", Items(count)), ("/0/tokenId", text(token))]);
    vec![
        // Only version 1 returns the rate change of 2023-05-01. All versions return the cliff of 2023-05-31.
        items("/v1/unlock/events?tokenId=optimism&start=2023-05-01&end=2023-05-31", 2),
        items("/v1/unlock/events?tokenId=optimism&start=2023-05-02&end=2023-05-30", 0),
        items("/v2/unlock/events?tokenId=optimism&start=2023-05-01&end=2023-05-31", 1),
        items("/v3/unlock/events?tokenId=optimism&start=2023-05-31&end=2023-05-31", 1),
        // At 01:00 on the last day, which is included.
        items("/v4/unlock/events?tokenId=arbitrum&start=2026-04-01&end=2026-04-16", 1),
        items("/v4/unlock/events?tokenId=arbitrum&start=2026-04-01&end=2026-04-15", 0),
        // The two airdrops.
        items("/v5/unlock/events/optimism?standardAllocation=community", 2),
        items("/v5/unlock/events/optimism?standardAllocation=community&start=2022-06-02&end=2023-02-08", 0),
        // Eight of the 21 upcoming cliffs have a market cap of at least 1,267,366,896 (Jupiter).
        first("/v5/unlock/events/upcoming?minMarketCap=1000000000", 8, "aptos"),
        first("/v1/unlock/events/upcoming?minMarketCap=1267366896", 8, "aptos"),
        first("/v5/unlock/events/upcoming?minMarketCap=1267366897", 7, "aptos"),
        // 96.29 % of Optimism's and 91.13 % of Axelar's supply are unlocked.
        first("/v5/unlock/events/upcoming?minReleasedPercentage=90", 2, "axelar"),
        first("/v1/unlock/events/upcoming?minReleasedPercentage=91.2", 1, "optimism"),
        first("/v5/unlock/events/upcoming?minTotalUnlockAmount=100000000", 5, "pump-fun"),
        first("/v1/unlock/events/upcoming?minTotalUnlockAmount=10000000000", 1, "pump-fun"),
        items("/v5/unlock/events/upcoming?minTotalUnlockAmount=10000000001", 0),
        first("/v5/unlock/events/upcoming?minValueToMarketCap=1", 16, "aptos"),
        // Pyth has 36.9566 % of 607,170,193, Ondo 61.3975 % of 2,145,365,467.
        first("/v1/unlock/events/upcoming?minValueToMarketCap=36.9566&minMarketCap=607170193", 2, "pyth-network"),
        // 2026-07-01: dYdX and EigenLayer. The day before: Starknet and Zora. 2027-04-03: Sui and Wormhole, with no others around.
        first("/v5/unlock/events/upcoming?start=2026-07-01&end=2026-07-01", 2, "dydx"),
        first("/v5/unlock/events/upcoming?start=2026-06-30&end=2026-07-01", 4, "starknet"),
        first("/v1/unlock/events/upcoming?minUnlockDate=2026-06-30&maxUnlockDate=2026-06-30", 2, "starknet"),
        first("/v1/unlock/events/upcoming?minUnlockDate=2027-04-02&maxUnlockDate=2027-04-04", 2, "sui"),
        items("/v5/unlock/events/upcoming?start=2027-04-04&end=2027-04-04", 0),
        // Investors get 2,807,971.671521 of Aptos's 11,309,783.002912 tokens, and the same fraction of its share of market cap.
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
        // The files start on 2025-07-01. The default end is today.
        items("/v2/daily-emission?tokenId=arbitrum&start=2026-04-01", 10),
        items("/v5/daily-emission/arbitrum?start=2026-04-01&end=2026-04-30", 30),
        items("/v2/emission?tokenId=arbitrum&start=2026-03-29&end=2026-04-11", 2),
        items("/v3/emission?tokenId=arbitrum&start=2026-03-29", 2),
        items("/v1/emission?tokenId=arbitrum&start=2026-04-04&end=2026-04-05", 2),
        // On 2025-08-31, the amount is known but not the value.
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

/// Page metadata for 39 cliffs of Optimism, 120 investors, 21 tokens with an upcoming cliff, and the 30 days of April.
#[tokio::test]
async fn paged_responses_have_page_metadata_and_others_do_not() {
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
        let (status, body) = server.request(path).await;
        assert_eq!((status, body["data"].as_array().map(Vec::len)), (200, Some(items)), "{path}");
        let said = ["page", "pageSize", "totalPages", "total"].map(|name| body["metadata"][name].as_u64().unwrap());
        assert_eq!(said, [page, size, pages, total], "{path}");
    }
    for path in ["/v4/unlock/events?tokenId=optimism", "/v1/unlock/events/upcoming", "/v1/fundraising/investors/list"] {
        let (_, body) = server.request(path).await;
        assert_eq!(body["metadata"], json!({"queryDate": "2026-04-10T12:00:00Z"}), "{path}");
    }
}

#[tokio::test]
async fn every_version_returns_the_data_of_the_files() {
    let server = Server::of(bundled()).await;
    let mut requested = Vec::new();
    for (path, checks) in [unlock_events(), emission(), burns_and_buybacks(), tables_and_lists(), filters()].into_iter().flatten()
    {
        let data = server.data(&path).await;
        for (place, expected) in &checks {
            check(&path, &data, place, expected);
        }
        requested.push(path);
    }
    // Every documented path must have a row in the tables above.
    let (_, document) = server.request("/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        let stem = path.trim_end_matches("{id}");
        assert!(requested.iter().any(|requested| requested.starts_with(stem)), "{path} has no row in the table");
    }
}

#[tokio::test]
async fn older_versions_omit_tokens_listed_by_ai() {
    let server = Server::of(bundled()).await;
    for (path, since) in [
        ("/v1/unlock/events?tokenId=arbitrum", 3),
        ("/v2/unlock/events?tokenId=arbitrum", 3),
        ("/v1/daily-emission?tokenId=arbitrum", 2),
        ("/v1/allocations?tokenId=arbitrum", 2),
    ] {
        let (status, body) = server.request(path).await;
        assert_eq!(status, 404, "{path}");
        let message = body["errorMessage"].as_str().unwrap();
        assert!(message.contains("AI") && message.ends_with(&format!("request version {since} or newer")), "{message}");
    }
}

/// Validates a response of every path with the OpenAPI description.
#[tokio::test]
async fn responses_match_the_openapi_description() {
    let server = Server::of(bundled()).await;
    let (_, document) = server.request("/openapi.json").await;
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
        let (status, body) = server.request(&url).await;
        assert_eq!(status, 200, "{url}");
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let mut problems = Vec::new();
        validate(&document, schema, &body, "", &mut problems);
        assert!(problems.is_empty(), "{url}: {problems:#?}");
    }
}
