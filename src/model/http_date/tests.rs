use super::*;

#[test]
fn every_form_of_the_protocol_is_read() {
    let expected = crate::wire::parse_timestamp("1994-11-06T08:49:37Z");
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(parse_http_date(text), expected, "{text}");
    }
    for text in ["", "soon", "1994-11-06", "Sun, 06 Nov 1994 08:49:37 +0200"] {
        assert_eq!(parse_http_date(text), None, "{text}");
    }
}
