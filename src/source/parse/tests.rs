use proptest::prelude::*;

use super::*;
use crate::{envelope, page_walk};
use model::supply::Endpoint;

fn token(endpoint: Endpoint) -> PollRequest {
    let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day");
    PollRequest::Token { endpoint, token: "aptos".into(), start: day, end: day }
}

fn pages(data: &[&str]) -> AnswerPages {
    let is_list = data.iter().all(|data| data.trim_start().starts_with('['));
    let mut walk = page_walk::PageWalk::new(is_list, None, 1 << 30, None);
    for (index, page) in data.iter().enumerate() {
        let body = format!(r#"{{"metadata":{{"page":{},"totalPages":{}}},"status":true,"data":{page}}}"#, index + 1, data.len());
        walk.take(envelope::read(body.into_bytes(), None, is_list).expect("an envelope"));
    }
    walk.into_pages()
}

fn read(request: &PollRequest, data: &[&str]) -> Result<PollAnswer, String> {
    answer(request, EndpointRoute::of(request).expect("a route"), &pages(data))
}

fn told(answer: &PollAnswer) -> Vec<String> {
    answer.oddities.iter().map(|oddity| format!("{}: {}", oddity.path, oddity.problem)).collect()
}

#[test]
fn a_bad_field_costs_the_field_and_a_record_without_key_the_record() {
    let data = r#"[{"id":"a","marketCap":"n/a"},{"name":"no key"},null,7,{"id":"b","maxSupply":-1}]"#;
    let answer = read(&PollRequest::TokenList, &[data]).expect("an answer");
    let Payload::Tokens(tokens) = &answer.payload else { panic!("expected tokens") };
    assert_eq!(tokens.iter().filter_map(|token| token.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        told(&answer),
        [
            "[0].marketCap: expected a number, got the text \"n/a\"; the field is ignored",
            "[1]: a token without `id`; the record is left out",
            "[2]: expected an object, got null; the record is left out",
            "[3]: expected an object, got the number 7; the field is ignored",
            "[4].maxSupply: expected a number, got -1, which is negative; the field is ignored",
        ]
    );
    assert_eq!((answer.oddities_total, answer.dropped), (5, 3));
}

#[test]
fn an_undated_event_is_kept_where_it_says_what_would_unlock() {
    let data =
        r#"[{"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},{"tokenName":"Aptos"},{"unlockDate":"soon"}]"#;
    let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
    assert!(matches!(&answer.payload, Payload::UnlockEvents(events) if events.len() == 1));
    assert_eq!(answer.dropped, 2);
}

#[test]
fn an_event_whose_date_cannot_be_read_is_not_one_without_a_date() {
    let data = r#"[{"unlockDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team","unlockDate":"soon"}]}},
                   {"unlockDate":20260301,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                   {"unlockDate":null,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                   {"unlockDate":"2026-03-01","latestUpdateDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}}]"#;
    let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
    let Payload::UnlockEvents(events) = &answer.payload else { panic!("expected events") };
    let dates: Vec<bool> = events.iter().map(|event| event.unlock_date.get().is_some()).collect();
    assert_eq!((dates, answer.dropped), (vec![false, true], 2));
    assert!(told(&answer).contains(&"[1]: an event whose date cannot be read; the record is left out".to_owned()));
}

#[test]
fn a_lost_part_counts_as_left_out_so_that_nobody_takes_it_for_removed() {
    let data = r#"[{"unlockDate":"2026-03-01","cliffUnlocks":{"allocationBreakdown":"gone"}},
                   {"unlockDate":"2026-03-02","cliffUnlocks":[]},
                   {"unlockDate":"2026-03-03","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"},null,3]}}]"#;
    let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
    assert!(matches!(&answer.payload, Payload::UnlockEvents(events) if events.len() == 3));
    assert_eq!(answer.dropped, 4);
}

#[test]
fn a_missing_list_is_no_empty_list() {
    for data in [r#"{"tokenId":"aptos"}"#, r#"{"burns":null}"#, r#"{"burns":"none","totalBurnAmount":3}"#] {
        let problem = read(&token(Endpoint::Burn), &[data]).expect_err("no answer");
        assert_eq!(problem, "`data.burns` is missing or no list");
    }
    assert!(read(&token(Endpoint::Burn), &[r#"{"burns":null,"totalBurnAmount":0}"#]).is_ok(), "nothing, and it says so");
    assert!(read(&token(Endpoint::Burn), &[r#"{"burns":[]}"#]).is_ok());
}

#[test]
fn an_answer_about_something_else_is_none() {
    let problem = read(&token(Endpoint::Burn), &[r#"{"tokenId":"arb\u001b[2J","burns":[]}"#]).expect_err("no answer");
    assert_eq!(problem, r#"the answer is about "arb\u{1b}[2J" instead"#);
    assert!(read(&token(Endpoint::Burn), &[r#"{"tokenId":"Aptos","burns":[]}"#]).is_ok());
}

#[test]
fn pages_are_joined_and_oddities_name_their_page() {
    let answer = read(&PollRequest::TokenList, &[r#"[{"id":"a"}]"#, r#"[{"id":"b","name":1}]"#]).expect("an answer");
    assert!(matches!(&answer.payload, Payload::Tokens(tokens) if tokens.len() == 2));
    assert_eq!(told(&answer), ["page 2: [0].name: expected a text, got the number 1; the field is ignored"]);
}

#[test]
fn a_number_or_character_that_cannot_be_represented_costs_only_itself() {
    let data =
        r#"[{"id":"a","marketCap":1e999,"name":"x\ud800y","symbol":"\ud83d\ude80 \\ud800"},{"id":"b","maxSupply":-1E+9999}]"#;
    let answer = read(&PollRequest::TokenList, &[data]).expect("an answer");
    let Payload::Tokens(tokens) = &answer.payload else { panic!("expected tokens") };
    let first = tokens.first().expect("a token");
    assert_eq!((first.name.as_str(), first.symbol.as_str()), (Some("x\u{fffd}y"), Some("🚀 \\ud800")));
    assert_eq!((first.market_cap.copied(), tokens.len()), (None, 2));
    assert_eq!(told(&answer), [": 3 numbers or characters cannot be represented; they are ignored"]);
}

#[test]
fn a_flood_of_tiny_records_is_refused() {
    let flood = format!("[{}]", vec![r#"{"id":1}"#; 600_000].join(","));
    assert!(read(&PollRequest::TokenList, &[&flood]).expect_err("no answer").contains("more than 500000 items"));
    let nested = format!(r#"[{{"id":"a","x":[{}]}}]"#, vec!["0"; 600_000].join(","));
    assert!(read(&PollRequest::TokenList, &[&nested]).expect_err("no answer").contains("more than 500000 items"));
}

#[test]
fn what_is_decodable_is_left_as_it_is() {
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
    fn whatever_a_list_holds_it_is_read(rows in prop::collection::vec(json(), 0..6)) {
        let data = serde_json::to_string(&rows).expect("JSON");
        let lists = [Endpoint::UnlockEvents, Endpoint::DailyEmission].map(token);
        for request in lists.into_iter().chain([PollRequest::TokenList, PollRequest::Investors]) {
            let answer = read(&request, &[&data]).expect("a list is an answer");
            prop_assert!(answer.oddities_total >= answer.oddities.len());
            prop_assert!(answer.oddities.iter().all(|oddity| !oddity.problem.chars().any(char::is_control)));
        }
    }

    #[test]
    fn whatever_an_object_holds_nothing_breaks(value in json()) {
        let data = serde_json::json!({ "tokenId": "aptos", "burns": value, "allocations": value }).to_string();
        let is_list = value.is_array();
        prop_assert_eq!(read(&token(Endpoint::Burn), &[&data]).is_ok(), is_list);
        prop_assert_eq!(read(&token(Endpoint::Allocations), &[&data]).is_ok(), is_list);
    }

    #[test]
    fn making_text_decodable_never_breaks_it(text in "[\\[\\]{}:,\"\\\\ud89a0-9eE+. -]{0,40}|\\PC{0,20}") {
        let (once, _) = decodable(&text);
        if serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok(), "{once}");
        }
    }
}
