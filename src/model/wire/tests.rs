//! Records round-trip, and an invalid value affects only itself.

use std::fmt;

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::*;

/// Parses `json`, writes it, and parses it again. Checks that there are no warnings, that both values are equal, and that nothing was lost.
fn check_round_trip<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(json: &str) -> T {
    let (value, gathered) = gather(|| serde_json::from_str::<T>(json).expect("JSON"));
    assert_eq!(gathered.parse_warnings, [], "{json}");
    let written = serde_json::to_string(&value).expect("JSON");
    assert_eq!(serde_json::from_str::<T>(&written).expect("JSON"), value);
    let numbers = |text: &str| doubles(serde_json::from_str(text).expect("JSON"));
    assert_eq!(numbers(&written), numbers(json));
    value
}

/// Converts all numbers to doubles, because the source writes 5 where we write 5.0.
fn doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(doubles).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, doubles(value))).collect(),
        other => other,
    }
}

fn odd<T: DeserializeOwned>(json: &str) -> (T, Vec<String>, usize) {
    let (value, gathered) = gather(|| serde_json::from_str::<T>(json).expect("JSON"));
    assert_eq!(gathered.total, gathered.parse_warnings.len());
    (
        value,
        gathered.parse_warnings.into_iter().map(|warning| format!("{}: {}", warning.path, warning.problem)).collect(),
        gathered.dropped,
    )
}

#[test]
fn all_resources_round_trip() {
    let token = check_round_trip::<TokenItem>(
        r#"{"id":"0x","name":"0x Protocol","symbol":"ZRX","listedMethod":"INTERNAL","circulatingSupply":848396562.9,"marketCap":null,
            "maxSupply":1000000000,"totalLockedAmount":0,"tbdLockedAmount":0,"unlockedAmount":1000000000,"untrackedAmount":0,
            "hasStandardAllocation":true,"hasFundraising":true,"latestFundraisingRound":"Series B","websiteUrl":"https://example.com/0x",
            "lastUpdatedDate":"2025-04-25T08:42:27Z"}"#,
    );
    assert_eq!((token.market_cap, token.has_burn), (Maybe::Null, Maybe::Absent), "null and absent are kept apart");
    let upcoming = check_round_trip::<UpcomingItem>(
        r#"{"tokenId":"layerzero","tokenName":"LayerZero","tokenSymbol":"ZRO","marketCap":278811255,"releasedPercentage":35.28,
            "listedMethod":"INTERNAL","dataSource":"Whitepaper","upcomingEvent":{"unlockDate":"2025-11-20T11:00:00Z","referencePrice":1.4,
            "referencePriceUpdatedTime":"2025-11-20T00:00:00Z","cliffUnlocks":{"cliffAmount":25708332.666,"cliffValue":35991665.73,
            "valueToMarketCap":12.908971602455575,"allocationBreakdown":[]},"latestUpdateDate":"2025-06-13T07:30:52Z"}}"#,
    );
    assert_eq!(upcoming.upcoming_event.get().and_then(UnlockEvent::value_to_market_cap), Some(12.908971602455575));
    check_round_trip::<UnlockEvent>(
        r#"{"unlockDate":"2026-03-16T13:00:00Z","tokenName":"Arbitrum","tokenSymbol":"ARB","listedMethod":"AI","dataSource":"docs",
            "linearUnlocks":{"linearAmount":10,"linearValue":null,"dailyAmount":0.5,"dailyValue":1,"referencePrice":2,
            "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","allocationBreakdown":[{"allocationName":"Team","standardAllocationName":
            "Founder / Team","linearAmount":10,"linearValue":20,"referencePrice":2,"referencePriceUpdatedTime":"2026-03-01T00:00:00Z",
            "dailyAmount":0.5,"dailyValue":1,"durationOfRate":20,"beginDate":"2026-03-16T13:00:00Z","endDate":"2026-04-05T13:00:00Z",
            "unlockPrecision":"second"}]},
            "cliffUnlocks":{"cliffAmount":92645833.25,"cliffValue":null,"valueToMarketCap":111.59,"allocationBreakdown":[{"unlockDate":
            "2026-03-16T13:00:00Z","allocationName":"Investors","standardAllocationName":"Private Investors","cliffAmount":36.5,
            "cliffValue":73,"referencePrice":2,"referencePriceUpdatedTime":"2026-03-01T00:00:00Z","unlockPrecision":"month",
            "committedClaim":{"amount":1234567.89,"value":987654.32,"timestamp":1735689600}}]},
            "latestUpdateDate":"2026-01-01T00:00:00Z"}"#,
    );
    let older = check_round_trip::<UnlockEvent>(
        r#"{"unlockDate":"2026-03-16T13:00:00Z","linearUnlocks":null,"cliffUnlocks":{"totalCliffAmount":3}}"#,
    );
    assert_eq!((older.linear_unlocks.get().is_none(), older.cliff_amount()), (true, Some(3.0)));
    check_round_trip::<BurnData>(
        r#"{"tokenId":"aptos","tokenName":"Aptos","tokenSymbol":"APT","totalBurnAmount":923.148539,"burns":[{"burnEventLabel":"Gas fees",
            "burnType":"PROGRAMMATIC","burnDate":"2024-12-02T00:00:00Z","amount":511.326899,"pricePerToken":null,
            "metadata":{"burners":["PROJECT"],"burnReasons":["GOVERNANCE"]}}]}"#,
    );
    check_round_trip::<BuybackData>(
        r#"{"tokenId":"hyperliquid","tokenName":"Hyperliquid","tokenSymbol":"HYPE","totalBuybackAmount":318370.23,"totalBuybackValue":5,
            "buybacks":[{"buybackEventLabel":"Fund","buybackType":"TREASURY_BUYBACK","buybackDate":"2024-11-30T17:00:00Z",
            "tokenAmount":159185.12,"value":1036295.11,"spentAmount":null,"spentUnit":"","targetAddress":"0xfefe","buyerAddress":"0xfefe",
            "resolution":"period_net","basis":"estimated"}]}"#,
    );
    check_round_trip::<AllocationsData>(
        r#"{"name":"Aptos","symbol":"APT","listedMethod":"INTERNAL","maxSupply":null,"lastUpdatedDate":"2026-04-03T23:23:43Z",
            "totalUnlockedAmount":1,"totalLockedAmount":2,"totalUntrackedAmount":3,"totalTBDLockedAmount":4,"allocations":[
            {"allocationName":"Community","allocationType":"TBD","standardAllocationName":"Community","allocationUnlockedAmount":0,
            "allocationLockedAmount":0,"allocationAmount":4,"trackedAllocationPercentage":null}]}"#,
    );
    let weekly = check_round_trip::<Emission>(
        r#"{"startDate":"2026-10-11T00:00:00Z","endDate":"2026-10-18T00:00:00Z","tokenName":"Sui","tokenSymbol":"SUI","unlockAmount":7,
            "unlockValue":8,"referencePrice":1.1,"allocations":["Team","Community"],"standardAllocations":["Founder / Team"],
            "totalCumulativeUnlockedAmount":100}"#,
    );
    assert_eq!(weekly.allocations.items().first(), Some(&NamedOr::Name("Team".into())));
    check_round_trip::<Emission>(
        r#"{"startDate":"2026-10-11T00:00:00Z","listedMethod":"AI","allocations":[{"allocationName":"Team","standardAllocationName":"x",
            "unlockAmount":7,"unlockValue":null,"committedClaim":null}],"committedClaim":{"amount":1}}"#,
    );
    check_round_trip::<InvestorDetail>(
        r#"{"investorId":"fund","investorName":"Fund","website":"https://a.example,https://b.example","latestFundingDate":"2024-03-01T00:00:00Z",
            "fundingRounds":[{"tokenId":"aptos","roundName":"Seed","isLeadInvestor":true,"fundingDate":"2022-03-15T00:00:00Z",
            "totalAmountRaisedinThatRound":200000000,"valuation":null,"pricePerToken":null}]}"#,
    );
    check_round_trip::<TokenFunding>(
        r#"{"tokenId":"aptos","totalAmountRaised":1,"unlockedInvestor":null,"fundingRounds":[{"fundingRound":"Seed","raiseType":null,
            "amountRaised":2,"sourceURLList":["https://a.example"],"investors":[{"investorId":"fund","isLeadInvestor":false}],"numberOfInvestors":1}]}"#,
    );
    check_round_trip::<Metadata>(
        r#"{"queryDate":"2026-03-09T00:00:00Z","credit":{"used":7,"limit":1000,"resetAt":"2026-04-01T00:00:00Z"},"page":1,"pageSize":50,
            "totalPages":10,"total":487}"#,
    );
}

#[test]
fn unknown_fields_are_kept_at_every_depth() {
    let event = check_round_trip::<UnlockEvent>(
        r#"{"unlockDate":"2026-03-16T13:00:00Z","new":{"a":[1,{"b":null}],"c":"d"},
            "cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team","vestedOn":"chain"}]}}"#,
    );
    assert_eq!(event.extra.len(), 1);
    let parts = event.cliff_unlocks.get().map(|cliffs| cliffs.allocation_breakdown.items()).unwrap_or_default();
    assert_eq!(parts.first().and_then(|part| part.extra.get("vestedOn")), Some(&"chain".into()));
}

#[test]
fn invalid_field_is_dropped_with_warning() {
    let (event, parse_warnings, dropped) = odd::<UnlockEvent>(
        r#"{"unlockDate":"next week","tokenName":7,"cliffUnlocks":{"cliffAmount":"1,000","cliffValue":" 12.5 ","valueToMarketCap":true,
            "allocationBreakdown":[{"cliffAmount":[1]},{"committedClaim":{"timestamp":1.5}},null,"Team"]},"linearUnlocks":"none"}"#,
    );
    assert_eq!(
        parse_warnings,
        [
            "unlockDate: expected a timestamp like 2026-03-09T00:00:00Z, got the text \"next week\"; the field is ignored",
            "tokenName: expected a text, got the number 7; the field is ignored",
            "cliffUnlocks.cliffAmount: expected a number, got the text \"1,000\"; the field is ignored",
            "cliffUnlocks.valueToMarketCap: expected a number, got true; the field is ignored",
            "cliffUnlocks.allocationBreakdown[0].cliffAmount: expected a number, got an array; the field is ignored",
            "cliffUnlocks.allocationBreakdown[1].committedClaim.timestamp: expected a whole number, got the number 1.5; the field is ignored",
            "cliffUnlocks.allocationBreakdown[2]: expected an object, got null; the item is left out",
            "cliffUnlocks.allocationBreakdown[3]: expected an object, got the text \"Team\"; the field is ignored",
            "linearUnlocks: expected an object, got the text \"none\"; the field is ignored",
        ]
    );
    assert_eq!(event.cliff_value(), Some(12.5), "a quoted number is understood");
    assert_eq!(dropped, 3, "two items and an object that may have held records");
}

#[test]
fn negative_and_absurd_numbers_are_invalid() {
    let (event, parse_warnings, dropped) = odd::<UnlockEvent>(
        r#"{"cliffUnlocks":{"cliffAmount":-5,"cliffValue":-0.5,"valueToMarketCap":1e31,"totalCliffAmount":"-1","totalCliffValue":"inf"}}"#,
    );
    assert_eq!(
        parse_warnings,
        [
            "cliffUnlocks.cliffAmount: expected a number, got -5, which is negative; the field is ignored",
            "cliffUnlocks.cliffValue: expected a number, got -0.5, which is negative; the field is ignored",
            "cliffUnlocks.valueToMarketCap: expected a number, got 1e31, which is implausibly large; the field is ignored",
            "cliffUnlocks.totalCliffAmount: expected a number, got the text \"-1\"; the field is ignored",
            "cliffUnlocks.totalCliffValue: expected a number, got the text \"inf\"; the field is ignored",
        ]
    );
    assert_eq!((event.cliff_amount(), event.cliff_value(), dropped), (None, None, 0));
}

#[test]
fn fill_gaps_copies_missing_fields() {
    let read = |json: &str| serde_json::from_str::<CliffAllocation>(json).expect("JSON");
    let known = read(r#"{"allocationName":"Team","cliffAmount":5,"unlockPrecision":"month","committedClaim":{"amount":1}}"#);
    let mut fresh = read(r#"{"allocationName":null,"cliffAmount":7,"committedClaim":{"value":2}}"#);
    assert!(!fresh.has_all_of(&known) && known.has_all_of(&known));
    fresh.fill_gaps(&known);
    assert!(fresh.has_all_of(&known));
    let whole = r#"{"allocationName":"Team","cliffAmount":7,"unlockPrecision":"month","committedClaim":{"value":2}}"#;
    assert_eq!(fresh, read(whole));
}

#[test]
fn last_duplicate_key_wins_with_warning() {
    let (token, parse_warnings, _) = odd::<TokenItem>(r#"{"id":"a","id":"b","x":1,"x":2}"#);
    assert_eq!((token.id.as_str(), token.extra.get("x")), (Some("b"), Some(&2.into())));
    assert_eq!(
        parse_warnings,
        [": `id` occurs twice; the last one is used", ": the field \"x\" occurs twice; the last one is used"]
    );
}

#[test]
fn too_deep_values_are_dropped_from_record() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let json = format!(r#"{{"id":"a","x":{},"name":{},"y":1}}"#, deep(100_000), deep(100_000));
    let (token, parse_warnings, _) = odd::<TokenItem>(&json);
    assert_eq!((token.id.as_str(), token.extra.get("y")), (Some("a"), Some(&1.into())));
    assert_eq!(parse_warnings.len(), 2, "{parse_warnings:?}");
    check_round_trip::<TokenItem>(&format!(r#"{{"id":"a","x":{}}}"#, deep(30)));
}

#[test]
fn warnings_are_capped_but_counted() {
    let rows = vec![r#"{"id":1}"#; 250].join(",");
    let (_, parse_warnings, total) =
        collect_parse_warnings(|| serde_json::from_str::<Maybe<Vec<TokenItem>>>(&format!("[{rows}]")).expect("JSON"));
    assert_eq!((parse_warnings.len(), total), (100, 250));
    assert_eq!(parse_warnings.last().map(|warning| warning.path.as_str()), Some("[99].id"));
}

#[test]
fn nested_gathering_separates_warnings() {
    let (inner, outer) = gather(|| {
        note(|| "outer".into());
        gather(|| note(|| "inner".into())).1
    });
    assert_eq!((inner.total, outer.total), (1, 1));
    assert_eq!(outer.parse_warnings.first().map(|warning| warning.problem.as_str()), Some("outer"));
}

#[test]
fn hidden_text_in_warnings_is_escaped() {
    let (_, parse_warnings, _) = odd::<TokenItem>("{\"marketCap\":\"\\u001b[2J\\u202e\",\"\\u001bk\":1,\"\\u001bk\":2}");
    assert!(
        parse_warnings.iter().all(|warning| !warning.chars().any(|c| c.is_control() || c == '\u{202e}')),
        "{parse_warnings:?}"
    );
}

#[test]
fn timestamp_year_is_limited() {
    let same = parse_timestamp("2026-03-09T00:00:00Z");
    assert!(same.is_some());
    for text in ["2026-03-09", " 2026-03-09T01:00:00+01:00 ", "2026-03-09T00:00:00.000Z"] {
        assert_eq!(parse_timestamp(text), same, "{text}");
    }
    for text in ["", "soon", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "2026-02-30", "1735689600", "2026-03-09T25:00:00Z"] {
        assert_eq!(parse_timestamp(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn double_round_trips_exactly(bits in 0..=1e30_f64.to_bits()) {
        let value = f64::from_bits(bits);
        prop_assume!((0.0..=1e30).contains(&value));
        let credit = Allocation { allocation_amount: value.into(), ..Default::default() };
        let json = serde_json::to_string(&credit).expect("JSON");
        let again: Allocation = serde_json::from_str(&json).expect("JSON");
        prop_assert_eq!(again.allocation_amount.copied().map(f64::to_bits), Some(bits));
    }

    #[test]
    fn record_with_any_fields_round_trips(
        amounts in prop::collection::vec(prop::option::of(prop::option::of(0.0..1e15_f64)), 3),
        names in prop::collection::vec(".{0,8}", 2),
        extra in prop::collection::btree_map("[a-z]{1,4}", any::<i32>(), 0..4),
    ) {
        let maybe = |at: usize| match amounts[at] {
            None => Maybe::Absent,
            Some(None) => Maybe::Null,
            Some(Some(value)) => Maybe::Value(value),
        };
        let part = CliffAllocation {
            allocation_name: names[0].clone().into(),
            cliff_amount: maybe(0),
            cliff_value: maybe(1),
            extra: extra.into_iter().map(|(name, value)| (name, value.into())).collect(),
            ..Default::default()
        };
        let cliffs = CliffUnlocks { cliff_amount: maybe(2), allocation_breakdown: vec![part].into(), ..Default::default() };
        let event = UnlockEvent { token_name: names[1].clone().into(), cliff_unlocks: cliffs.into(), ..Default::default() };
        let json = serde_json::to_string(&event).expect("JSON");
        let (again, gathered) = gather(|| serde_json::from_str::<UnlockEvent>(&json).expect("JSON"));
        prop_assert_eq!(gathered.total, 0);
        prop_assert_eq!(again, event);
    }
}
