use proptest::prelude::*;

use super::*;
use crate::{envelope, page_walk};
use model::supply::Endpoint;

fn token(endpoint: Endpoint) -> PollRequest {
    let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day");
    PollRequest::Token { endpoint, token: "aptos".into(), start: day, end: day }
}

fn pages(data: &[&str]) -> ResponsePages {
    let is_list = data.iter().all(|data| data.trim_start().starts_with('['));
    let mut walk = page_walk::PageWalk::new(is_list, None, 1 << 30, None);
    for (index, page) in data.iter().enumerate() {
        let body = format!(r#"{{"metadata":{{"page":{},"totalPages":{}}},"status":true,"data":{page}}}"#, index + 1, data.len());
        walk.take(envelope::read(body.into_bytes(), None, is_list).expect("an envelope"));
    }
    walk.into_pages()
}

fn read(request: &PollRequest, data: &[&str]) -> Result<PollResponse, String> {
    response(request, EndpointRoute::of(request).expect("a route"), &pages(data))
}

fn warnings(response: &PollResponse) -> Vec<String> {
    response.parse_warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.problem)).collect()
}

#[test]
fn invalid_fields_and_records_without_a_key_are_skipped() {
    let data = r#"[{"id":"a","marketCap":"n/a"},{"name":"no key"},null,7,{"id":"b","maxSupply":-1}]"#;
    let response = read(&PollRequest::TokenList, &[data]).expect("a response");
    let Payload::Tokens(tokens) = &response.payload else { panic!("expected tokens") };
    assert_eq!(tokens.iter().filter_map(|token| token.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        warnings(&response),
        [
            "[0].marketCap: expected a number, got the text \"n/a\"; the field is ignored",
            "[1]: a token without `id`; the record is left out",
            "[2]: expected an object, got null; the record is left out",
            "[3]: expected an object, got the number 7; the field is ignored",
            "[4].maxSupply: expected a number, got -1, which is negative; the field is ignored",
        ]
    );
    assert_eq!((response.parse_warnings_total, response.dropped), (5, 3));
}

#[test]
fn record_with_a_long_identity_is_left_out_and_named() {
    let long = "x".repeat(3_000);
    let (id, name) = ("a".repeat(200), "n".repeat(500));
    let response = read(&PollRequest::TokenList, &[&format!(r#"[{{"id":"{long}"}},{{"id":"{id}","name":"{long}"}}]"#)]);
    let response = response.expect("a response");
    assert!(matches!(&response.payload, Payload::Tokens(tokens) if tokens.len() == 1), "a long name identifies nothing");
    let warning = &warnings(&response)[0];
    assert!(
        warning.starts_with("[0]: `id` \"xxxx") && warning.ends_with("at most 200 are allowed; the record is left out"),
        "{warning}"
    );
    assert!(warning.len() < 250, "{warning}");

    let data = format!(r#"{{"allocations":[{{"allocationName":"{long}"}},{{"allocationName":"{name}"}}]}}"#);
    let response = read(&token(Endpoint::Allocations), &[&data]).expect("a response");
    assert_eq!(response.dropped, 1);
    let data = format!(r#"{{"fundingRounds":[{{"tokenId":"a","roundName":"{long}"}},{{"tokenId":"a","roundName":"{name}"}}]}}"#);
    let response = read(&PollRequest::Investor { id: "fund".into() }, &[&data]).expect("a response");
    assert_eq!(response.dropped, 1);
    let upcoming = PollRequest::Upcoming { start: chrono::NaiveDate::default(), end: chrono::NaiveDate::default() };
    let response = read(&upcoming, &[&format!(r#"[{{"tokenId":"{long}"}},{{"tokenId":"{id}"}}]"#)]).expect("a response");
    assert_eq!(response.dropped, 1);
}

#[test]
fn undated_event_is_kept_if_it_has_allocations() {
    let data =
        r#"[{"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},{"tokenName":"Aptos"},{"unlockDate":"soon"}]"#;
    let response = read(&token(Endpoint::UnlockEvents), &[data]).expect("a response");
    assert!(matches!(&response.payload, Payload::UnlockEvents(events) if events.len() == 1));
    assert_eq!(response.dropped, 2);
}

#[test]
fn event_with_an_invalid_date_is_skipped() {
    let data = r#"[{"unlockDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team","unlockDate":"soon"}]}},
                   {"unlockDate":20260301,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                   {"unlockDate":null,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                   {"unlockDate":"2026-03-01","latestUpdateDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}}]"#;
    let response = read(&token(Endpoint::UnlockEvents), &[data]).expect("a response");
    let Payload::UnlockEvents(events) = &response.payload else { panic!("expected events") };
    let dates: Vec<bool> = events.iter().map(|event| event.unlock_date.get().is_some()).collect();
    assert_eq!((dates, response.dropped), (vec![false, true], 2));
    assert!(warnings(&response).contains(&"[1]: an event whose date cannot be read; the record is left out".to_owned()));
}

#[test]
fn invalid_shares_count_as_dropped() {
    let data = r#"[{"unlockDate":"2026-03-01","cliffUnlocks":{"allocationBreakdown":"gone"}},
                   {"unlockDate":"2026-03-02","cliffUnlocks":[]},
                   {"unlockDate":"2026-03-03","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"},null,3]}}]"#;
    let response = read(&token(Endpoint::UnlockEvents), &[data]).expect("a response");
    assert!(matches!(&response.payload, Payload::UnlockEvents(events) if events.len() == 3));
    assert_eq!(response.dropped, 4);
}

#[test]
fn missing_list_is_not_an_empty_list() {
    for data in [r#"{"tokenId":"aptos"}"#, r#"{"burns":null}"#, r#"{"burns":"none","totalBurnAmount":3}"#] {
        let problem = read(&token(Endpoint::Burn), &[data]).expect_err("an error");
        assert_eq!(problem, "`data.burns` is missing or not a list");
    }
    assert!(read(&token(Endpoint::Burn), &[r#"{"burns":null,"totalBurnAmount":0}"#]).is_ok(), "the total is zero");
    assert!(read(&token(Endpoint::Burn), &[r#"{"burns":[]}"#]).is_ok());
}

#[test]
fn response_about_another_token_is_rejected() {
    let problem = read(&token(Endpoint::Burn), &[r#"{"tokenId":"arb\u001b[2J","burns":[]}"#]).expect_err("an error");
    assert_eq!(problem, r#"the response is about "arb\u{1b}[2J" instead"#);
    assert!(read(&token(Endpoint::Burn), &[r#"{"tokenId":"Aptos","burns":[]}"#]).is_ok());
}

#[test]
fn pages_are_joined_and_warnings_name_the_page() {
    let response = read(&PollRequest::TokenList, &[r#"[{"id":"a"}]"#, r#"[{"id":"b","name":1}]"#]).expect("a response");
    assert!(matches!(&response.payload, Payload::Tokens(tokens) if tokens.len() == 2));
    assert_eq!(warnings(&response), ["page 2: [0].name: expected a text, got the number 1; the field is ignored"]);
}

#[test]
fn unrepresentable_number_or_character_is_skipped() {
    let data =
        r#"[{"id":"a","marketCap":1e999,"name":"x\ud800y","symbol":"\ud83d\ude80 \\ud800"},{"id":"b","maxSupply":-1E+9999}]"#;
    let response = read(&PollRequest::TokenList, &[data]).expect("a response");
    let Payload::Tokens(tokens) = &response.payload else { panic!("expected tokens") };
    let first = tokens.first().expect("a token");
    assert_eq!((first.name.as_str(), first.symbol.as_str()), (Some("x\u{fffd}y"), Some("🚀 \\ud800")));
    assert_eq!((first.market_cap.copied(), tokens.len()), (None, 2));
    assert_eq!(warnings(&response), [": 3 numbers or characters cannot be represented; they are ignored"]);
}

#[test]
fn too_many_records_are_rejected() {
    let flood = format!("[{}]", vec![r#"{"id":1}"#; 600_000].join(","));
    assert!(read(&PollRequest::TokenList, &[&flood]).expect_err("an error").contains("more than 500000 items"));
    let nested = format!(r#"[{{"id":"a","x":[{}]}}]"#, vec!["0"; 600_000].join(","));
    assert!(read(&PollRequest::TokenList, &[&nested]).expect_err("an error").contains("more than 500000 items"));
}

#[test]
fn decodable_text_is_unchanged() {
    for json in [
        r#"{"a\"}\\":[1.5e3,-0,"\u00e9\ud83d\ude80\n"],"b":null,"é":"€"}"#,
        "\"open",
        "[1",
        r#"{"a":"\"#,
        r#""\ud83d"#,
        r#""\u12"#,
    ] {
        let (text, replaced) = decodable(json);
        if replaced == 0 {
            assert_eq!(text, json);
        }
    }
    assert_eq!(decodable(r#""\ud83d""#), ("\"\u{fffd}\"".to_owned(), 1));
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let names =
        ["id", "tokenId", "unlockDate", "cliffUnlocks", "allocationBreakdown", "burns", "burnDate", "amount", "startDate", "x"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[ -~\u{0}\u{202e}é]{0,12}".prop_map(Into::into),
        Just("2026-03-09T00:00:00Z".into()),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let key = prop_oneof![prop::sample::select(names.to_vec()).prop_map(str::to_owned), "[a-z\u{202e}]{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((key, inner), 0..6).prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_list_is_parsed(rows in prop::collection::vec(json(), 0..6)) {
        let data = serde_json::to_string(&rows).expect("JSON");
        let lists = [Endpoint::UnlockEvents, Endpoint::DailyEmission].map(token);
        for request in lists.into_iter().chain([PollRequest::TokenList, PollRequest::Investors]) {
            let response = read(&request, &[&data]).expect("a valid response");
            prop_assert!(response.parse_warnings_total >= response.parse_warnings.len());
            prop_assert!(response.parse_warnings.iter().all(|warning| !warning.problem.chars().any(char::is_control)));
        }
    }

    #[test]
    fn any_object_is_parsed_if_it_has_the_list(value in json()) {
        let data = serde_json::json!({ "tokenId": "aptos", "burns": value, "allocations": value }).to_string();
        let is_list = value.is_array();
        prop_assert_eq!(read(&token(Endpoint::Burn), &[&data]).is_ok(), is_list);
        prop_assert_eq!(read(&token(Endpoint::Allocations), &[&data]).is_ok(), is_list);
    }

    #[test]
    fn repaired_text_remains_valid_json(text in "[\\[\\]{}:,\"\\\\ud89a0-9eE+. -]{0,40}|\\PC{0,20}") {
        let (once, _) = decodable(&text);
        if serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok(), "{once}");
        }
    }
}
