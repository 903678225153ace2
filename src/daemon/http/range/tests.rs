use super::*;

fn at(text: &str) -> Option<Timestamp> {
    parse_timestamp(text)
}

fn read(since: &str, from: &str, to: &str) -> Result<(Option<Timestamp>, Option<Timestamp>), String> {
    let now = at("2026-03-09T07:00:00Z").expect("a time");
    let words = RangeWords { since: since.into(), from: from.into(), to: to.into() };
    ListTime::read(&words, now).map(|range| (range.since, range.until)).map_err(|error| match error {
        HttpError::Bad(text) => text,
        _ => "another error".to_owned(),
    })
}

#[test]
fn a_day_is_whole_and_a_length_goes_back_from_now() {
    assert_eq!(read("", "", ""), Ok((None, None)));
    assert_eq!(read("7d", "", ""), Ok((at("2026-03-02T07:00:00Z"), None)));
    assert_eq!(read("", "2026-03-01", "2026-03-01"), Ok((at("2026-03-01"), at("2026-03-02"))), "the day itself is in it");
    assert_eq!(read("", "", "2026-03-01T12:00:00Z"), Ok((None, at("2026-03-01T12:00:00Z"))));
    assert_eq!(read("30d", "", "2026-03-01"), Ok((at("2026-02-07T07:00:00Z"), at("2026-03-02"))));
    assert!(read("99999999d", "", "").is_ok_and(|(since, until)| since < at("1900-01-01") && until.is_none()), "everything");
}

#[test]
fn what_is_no_time_is_said() {
    assert!(read("soon", "", "").is_err_and(|text| text.starts_with("since: \"soon\" is no length of time")));
    assert!(read("", "yesterday", "").is_err_and(|text| text.starts_with("from: \"yesterday\" is no time")));
    assert!(read("", "2026-02-30", "").is_err());
    assert!(read("7d", "2026-03-01", "").is_err_and(|text| text.contains("give one of them")));
    assert!(read("", "2026-03-02", "2026-03-01").is_err_and(|text| text.contains("ends before it begins")));
}
