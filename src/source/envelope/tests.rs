use super::*;

fn problem(body: &str) -> String {
    match read(body.as_bytes().to_vec(), Some("text/html"), true) {
        Err(EnvelopeError::Malformed { problem, .. }) => problem,
        other => panic!("expected a malformed response, got {other:?}"),
    }
}

#[test]
fn data_is_kept_byte_for_byte() {
    let body = r#" {"metadata":{"queryDate":"2026-01-01T00:00:00Z","total":2,"new":1},"data": [ {"id":"a\u0041"} , 1.50 ],"status":true} "#;
    let page = read(body.into(), None, true).expect("an envelope");
    assert_eq!(page.data(), r#"[ {"id":"a\u0041"} , 1.50 ]"#);
    assert_eq!(page.metadata.total.copied(), Some(2));
    let page = read(format!("\u{feff}{body}").into(), None, true).expect("an envelope with a byte order mark");
    assert_eq!(page.data(), r#"[ {"id":"a\u0041"} , 1.50 ]"#);
}

#[test]
fn skim_equals_read_or_returns_the_body() {
    let skimmed = |body: &str, is_list| skim(body.as_bytes().to_vec(), is_list).map(|page| page.data().to_owned());
    for body in [
        r#"{"metadata":{"total":2,"page":1},"status":true,"data":[{"id":"a]"},{"data":[]}]}"#,
        r#" { "data" : [ 1 , 2 ] , "metadata":{"total":2}, "status":true } "#,
        r#"{"metadata":{"queryDate":"x"},"data":[]}"#,
        r#"{"metadata":{"queryDate":"\"data\":[1]"},"status":true,"data":[]}"#,
    ] {
        let read = read(body.into(), None, true).expect("an envelope");
        let page = skim(body.into(), true).expect("skimmed");
        assert_eq!((page.data(), &page.metadata), (read.data(), &read.metadata), "{body}");
        assert_eq!(page.is_blank(), read.data() == "[]", "{body}");
    }
    let object = r#"{"metadata":{},"status":true,"data":{"tokenId":"a","burns":[{}]}}"#;
    assert_eq!(skimmed(object, false).as_deref(), Ok(r#"{"tokenId":"a","burns":[{}]}"#));
    for given_back in [
        r#"{"metadata":{},"status":false,"data":[]}"#,
        r#"{"status":null,"data":[]}"#,
        r#"{"metadata":{"data":[1]},"status":true,"data":[2]}"#,
        r#"{"metadata":{},"status":true,"data":[1]"#,
        r#"{"metadata":{},"status":true,"data":[1]}trailing"#,
        r#"{"metadata":{},"status":true,"data":{}}"#,
        r#"[{"data":[]}]"#,
        "\u{feff}{\"metadata\":{},\"status\":true,\"data\":[]}",
        "",
    ] {
        assert_eq!(skimmed(given_back, true), Err(given_back.as_bytes().to_vec()));
    }
    assert_eq!(skim(vec![0xff, b'['], true).expect_err("not UTF-8"), [0xff, b'[']);
}

#[test]
fn invalid_envelope_is_described_and_quoted() {
    assert!(
        problem("<!DOCTYPE html><p>\u{1b}[2J")
            .contains("a page of markup instead of JSON, sent as text/html: \"<!DOCTYPE html><p>\\u{1b}")
    );
    assert!(problem(r#"{"metadata":{},"status":true,"data":[{"id":"#).contains("breaks off after"));
    assert!(problem("").contains("empty body"));
    assert!(problem("nope").contains("not JSON"));
    assert!(problem("[]").contains("not the envelope"));
    assert!(problem(r#"[{},true,[]]"#).contains("not the envelope"));
    assert!(problem(r#"{"tokenId":"aptos","data":[]}"#).contains("without the envelope's"));
    assert!(problem(r#"{"metadata":{},"status":true}"#).contains("without `data`"));
    assert!(problem(r#"{"metadata":{},"status":true,"data":null}"#).contains("without `data`"));
    assert!(problem(r#"{"metadata":{},"status":true,"data":{}}"#).contains("not a list"));
    assert!(problem(r#"{"metadata":{},"status":true,"data":[],"data":[]}"#).contains("not the envelope"));
    assert!(problem("{\"status\":true,\"metadata\":{},\"data\":[]}trailing").contains("not JSON"));
}

#[test]
fn data_must_be_a_list_or_an_object() {
    assert!(read(br#"{"metadata":{},"status":true,"data":{}}"#.to_vec(), None, false).is_ok());
    assert!(read(br#"{"metadata":{},"status":true,"data":[]}"#.to_vec(), None, false).is_err());
    assert!(read(br#"{"metadata":{},"data":[]}"#.to_vec(), None, true).is_ok());
}

#[test]
fn status_false_is_a_rejection() {
    let body = br#"{"status":false,"statusCode":429,"errorMessage":"too fast"}"#;
    let refused = EnvelopeError::Refused { code: Some(429), message: Some("too fast".into()), credit: None };
    assert_eq!(read(body.to_vec(), None, true).expect_err("refused"), refused);
}

#[test]
fn lone_surrogates_and_invalid_bytes_do_not_panic() {
    assert!(read(br#"{"metadata":{},"status":true,"data":[{"id":"\ud800"}]}"#.to_vec(), None, true).is_ok());
    assert!(read(br#"{"status":false,"errorMessage":"\ud800"}"#.to_vec(), None, true).is_err());
    assert!(read(vec![0xff, 0xfe, 0x00], None, true).is_err());
}

#[test]
fn message_of_an_error_body_is_parsed() {
    assert_eq!(read_error(br#"{"errorMessage":"x-api-key not found"}"#).0.as_deref(), Some("x-api-key not found"));
    assert_eq!(read_error(b"<html>").0, None);
}
