use super::*;

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

fn token(endpoint: Endpoint, id: &str) -> PollRequest {
    PollRequest::Token { endpoint, token: id.into(), start: day("2026-03-03"), end: day("2026-03-10") }
}

fn check(request: &PollRequest, version: u8, expected: &str) {
    let target = EndpointRoute::of(request).expect("a route").target(request, version);
    let query = target.query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let marks = format!("{}{}", if target.is_list { " list" } else { "" }, if target.is_paged { " paged" } else { "" });
    let base = if target.base == BaseAddress::Legacy { "legacy:" } else { "" };
    assert_eq!(format!("{base}{}?{query}{marks}", target.display_path()), expected);
}

#[test]
fn every_endpoint_has_a_newest_path() {
    let paths = Endpoint::ALL.map(newest_path);
    assert!(paths.iter().all(|path| path.starts_with("/v")), "{paths:?}");
    assert_eq!(newest_path(Endpoint::Burn), "/v5/burn/{token}");
    assert_eq!(newest_path(Endpoint::WeeklyEmission), "/v3/emission?tokenId={token}".split('?').next().expect("a path"));
}

#[test]
fn targets_of_all_versions_are_correct() {
    let dates = "start=2026-03-03&end=2026-03-10";
    let upcoming = PollRequest::Upcoming { start: day("2026-03-03"), end: day("2026-03-10") };
    check(&PollRequest::TokenList, 5, "/v5/token/list? list");
    check(&PollRequest::TokenList, 4, "/v4/token/list? list");
    check(&upcoming, 5, &format!("/v5/unlock/events/upcoming?{dates} list paged"));
    check(&upcoming, 1, "/v1/unlock/events/upcoming?minUnlockDate=2026-03-03&maxUnlockDate=2026-03-10 list");
    check(&token(Endpoint::UnlockEvents, "aptos"), 5, &format!("/v5/unlock/events/aptos?{dates} list paged"));
    check(&token(Endpoint::UnlockEvents, "aptos"), 4, &format!("/v4/unlock/events?tokenId=aptos&{dates} list"));
    check(&token(Endpoint::Burn, "aptos"), 5, &format!("/v5/burn/aptos?{dates}"));
    check(&token(Endpoint::Burn, "aptos"), 1, &format!("/v1/burn/aptos?{dates}"));
    check(&token(Endpoint::Buyback, "sky"), 1, &format!("/v1/buyback/sky?{dates}"));
    check(&token(Endpoint::Allocations, "aptos"), 5, "/v5/allocations/aptos?");
    check(&token(Endpoint::Allocations, "aptos"), 2, "/v2/allocations?tokenId=aptos");
    check(&token(Endpoint::DailyEmission, "sui"), 5, &format!("/v5/daily-emission/sui?{dates} list paged"));
    check(&token(Endpoint::DailyEmission, "sui"), 2, &format!("/v2/daily-emission?tokenId=sui&{dates} list"));
    check(&token(Endpoint::WeeklyEmission, "sui"), 3, "legacy:/v3/emission?tokenId=sui&start=2026-03-01&end=2026-03-14 list");
    check(&PollRequest::Investors, 5, "/v5/fundraising/investors/list? list paged");
    check(&PollRequest::Investors, 1, "/v1/fundraising/investors/list? list");
    check(&PollRequest::Investor { id: "a16z".into() }, 5, "/v5/fundraising/investors/a16z?");
}

#[test]
fn slug_that_would_change_the_path_is_rejected() {
    for slug in ["", " ", ".", "..", "a/b", "..\\x", "a\nb", "upcoming", &"x".repeat(201)] {
        assert!(EndpointRoute::of(&token(Endpoint::UnlockEvents, slug)).is_err(), "{slug:?}");
    }
    assert!(EndpointRoute::of(&PollRequest::Investor { id: "list".into() }).is_err());
    assert!(EndpointRoute::of(&token(Endpoint::Burn, "upcoming")).is_ok());
    assert!(EndpointRoute::of(&token(Endpoint::TokenList, "aptos")).is_err());
}

#[test]
fn auto_tries_known_versions() {
    for route in EndpointRoute::ALL {
        let (newest, next) = route.newest_and_next();
        assert_eq!(route.versions().first(), Some(&newest));
        assert!(route.versions().contains(&next) && next < newest);
    }
}
