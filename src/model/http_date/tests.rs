use super::*;

#[test]
fn parses_all_http_date_formats() {
    let expected = crate::wire::parse_timestamp("1994-11-06T08:49:37Z");
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(parse_http_date(text), expected, "{text}");
    }
    for text in ["", "soon", "1994-11-06", "Sun, 06 Nov 1994 08:49:37 +0200"] {
        assert_eq!(parse_http_date(text), None, "{text}");
    }
}

#[test]
fn http_date_round_trips() {
    for text in ["Mon, 09 Mar 2026 00:01:30 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        assert_eq!(format_http_date(parse_http_date(text).expect("a date")).as_deref(), Some(text));
    }
    assert_eq!(format_http_date(Timestamp::MAX_UTC), None);
    assert_eq!(format_http_date(Timestamp::MIN_UTC), None);
}
