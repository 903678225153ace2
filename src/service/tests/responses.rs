//! Tests of the payloads.

use super::*;

/// Lists the fields of every path and version. `field?` is null.
#[tokio::test]
async fn each_version_has_exactly_its_fields() {
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
    let mut requested = BTreeSet::new();
    for (path, place, fields) in table_of_fields {
        let data = server.data(&path).await;
        let record =
            data.pointer(place).and_then(Value::as_object).unwrap_or_else(|| panic!("{path}: nothing at {place}: {data}"));
        let shown: BTreeSet<String> =
            record.iter().map(|(name, value)| if value.is_null() { format!("{name}?") } else { name.clone() }).collect();
        let expected: BTreeSet<String> = fields.split(' ').map(str::to_owned).collect();
        assert_eq!(shown, expected, "{path} at {place}");
        requested.insert(path.split(['?']).next().unwrap_or_default().replace("/alpha", "/{id}").replace("/one", "/{id}"));
    }
    for route in ROUTES.iter().chain(LEGACY_ROUTES) {
        assert!(requested.contains(route.path), "{} is not in the table", route.path);
    }
}

#[tokio::test]
async fn newer_versions_omit_rate_changes_and_linear_unlocks() {
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
    // The item whose end makes 2026-02-09 a change of rate is before the window.
    let late = server.data("/v3/unlock/events?tokenId=alpha&start=2026-02-01").await;
    assert_eq!(dates(&late), ["2026-03-01"]);
    for path in ["/v4/unlock/events?tokenId=alpha", "/v5/unlock/events/alpha"] {
        let cliffs = server.data(path).await;
        assert_eq!(dates(&cliffs), ["2026-01-05", "2026-03-01"]);
        // An allocation name with "Mining" does not make it a mining reward.
        near(&cliffs[0]["cliffUnlocks"]["cliffAmount"], 150.0);
    }
    let team = server.data("/v5/unlock/events/alpha?standardAllocation=founderTeam").await;
    near(&team[0]["cliffUnlocks"]["cliffAmount"], 100.0);
    near(&team[0]["cliffUnlocks"]["cliffValue"], 200.0);
    near(&team[0]["cliffUnlocks"]["valueToMarketCap"], 2.0);
    let investors = server.data("/v5/unlock/events/alpha?standardAllocation=privateInvestors,reserve").await;
    assert_eq!(dates(&investors), ["2026-03-01"]);
}

#[tokio::test]
async fn window_is_inclusive_and_limits_totals() {
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
    // A known token without burns is not an unknown token.
    assert_eq!(server.data("/v5/burn/beta").await["burns"], Value::Array(vec![]));
}

#[tokio::test]
async fn emission_is_computed_from_the_schedule() {
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
async fn weekly_emission_is_only_on_the_legacy_base_url() {
    let service = small(options());
    service.add_key("desk", 10).unwrap();
    let key = service.add_key("ops", 10).unwrap();
    let new = Server::start(service.router()).await;
    let (status, body) = new.request_with("/v2/emission?tokenId=alpha", Some(&key)).await;
    assert_eq!(status, 404);
    assert!(body["errorMessage"].as_str().unwrap().contains("on the legacy base URL"), "{body}");
    let old = Server::start(service.legacy_router()).await;
    let (status, body) = old.request_with("/v2/emission?tokenId=alpha", Some(&key)).await;
    assert_eq!((status, body["metadata"].as_object().unwrap().len()), (200, 1));
    let (_, body) = old.request_with("/v5/burn/alpha", Some(&key)).await;
    assert_eq!(body["metadata"]["credit"], serde_json::json!({"used": 2, "limit": 10, "resetAt": "2026-02-01T00:00:00Z"}));
}

#[tokio::test]
async fn upcoming_has_the_next_event_of_each_token() {
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
async fn token_list_summarizes_the_imported_files() {
    let server = started().await;
    let (_, body) = server.request("/v5/token/list").await;
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
    assert_eq!(server.data("/v5/token/list?tokenId=beta,unknown").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn funding_rounds_are_served_by_investor_and_by_token() {
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
async fn unknown_fields_are_passed_through() {
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

/// The bundled daily emission was computed independently from the same schedules.
#[test]
fn computed_emission_matches_the_bundled_emission() {
    let files: Vec<SourceFile> = bundled().map(Result::unwrap).collect();
    let file = |path: &str| &files.iter().find(|file| file.path == path).unwrap().text;
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
async fn days_without_stored_emission_are_computed() {
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

#[tokio::test]
async fn newer_versions_omit_mining_and_farming_rewards() {
    let on_event = ALPHA.replacen("\"verdict\":\"kept\"", "\"releaseMechanism\":\"Mining & Validators\"", 1);
    let part = "\"standardAllocationName\":\"Community\"";
    let one_part = ALPHA.replacen(part, "\"standardAllocationName\":\"Community\",\"releaseMechanism\":\"yield farming\"", 1);
    let every_part =
        one_part.replacen("\"allocationName\":\"Team\"", "\"releaseMechanism\":\"mining\",\"allocationName\":\"Team\"", 1);
    let category = ALPHA.replacen(part, "\"standardAllocationName\":\"Mining\"", 1).replacen(
        "\"standardAllocationName\":\"Founder / Team\"",
        "\"standardAllocationName\":\"Yield Farming\"",
        1,
    );
    for (what, events, is_left_out) in [
        ("the mechanism of the event", &on_event, true),
        ("the mechanism of one share", &one_part, false),
        ("the mechanism of every share", &every_part, true),
        ("the category of every share", &category, true),
    ] {
        let mut data: Vec<(&str, &str)> = FILES.to_vec();
        data[2].1 = events;
        let clock = Clock::manual(parse_timestamp("2026-01-01T09:00:00Z").unwrap());
        let service = Service::in_memory(Options { clock, ..options() }).unwrap();
        service.import(files(&data), |_| {}).unwrap();
        let server = Server::start(service.legacy_router()).await;
        for path in ["/v4/unlock/events?tokenId=alpha", "/v5/unlock/events/alpha"] {
            let count = server.request(path).await.1["data"].as_array().unwrap().len();
            assert_eq!(count, if is_left_out { 1 } else { 2 }, "{what}: {path}");
        }
        let next = &server.request("/v5/unlock/events/upcoming").await.1["data"][0]["upcomingEvent"];
        assert_eq!(next["unlockDate"], if is_left_out { "2026-03-01T00:00:00Z" } else { "2026-01-05T00:00:00Z" }, "{what}");
        if !is_left_out {
            near(&next["cliffUnlocks"]["cliffAmount"], 150.0);
        }
        let all = server.request("/v3/unlock/events?tokenId=alpha").await.1["data"].as_array().unwrap().len();
        assert_eq!(all, 3, "{what}: older versions include it");
    }
}

#[tokio::test]
async fn errors_contain_the_credits_of_a_valid_key() {
    let service = small(Options { requests_per_minute: Some(6), ..options() });
    let key = service.add_key("desk", 1).unwrap();
    let server = Server::start(service.router()).await;
    let (status, body) = server.request_with("/v5/burn/alpha", Some(&key)).await;
    assert_eq!((status, &body["metadata"]["credit"]["used"]), (200, &1.into()), "{body}");
    for (path, expected) in [
        ("/v5/burn/unknown", 404),
        ("/v5/burn/alpha?start=yesterday", 400),
        ("/v5/burn/alpha?weather=fine", 400),
        ("/v5/burn/%ff", 400),
        ("/v5/buyback/alpha", 429), // no credits left
        ("/v5/buyback/alpha", 429), // rate limit exceeded
    ] {
        let (status, body) = server.request_with(path, Some(&key)).await;
        assert_eq!(status, expected, "{path}: {body}");
        let credit = &body["metadata"]["credit"];
        assert_eq!((&credit["used"], &credit["limit"]), (&1.into(), &1.into()), "{path}: {body}");
        assert!(credit["resetAt"].is_string(), "{path}: {body}");
    }
    for (path, key) in [("/v5/burn/alpha", None), ("/v5/burn/alpha", Some("cw_wrong"))] {
        let (status, body) = server.request_with(path, key).await;
        assert_eq!((status, body.get("metadata")), (401, None), "{body}");
    }
}
