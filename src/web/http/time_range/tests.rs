use super::*;

fn at(text: &str) -> Option<Timestamp> {
    parse_timestamp(text)
}

fn parse(since: &str, from: &str, to: &str) -> Result<(Option<Timestamp>, Option<Timestamp>), String> {
    let now = at("2026-03-09T07:00:00Z").expect("a time");
    let words = RangeQuery { since: since.into(), from: from.into(), to: to.into() };
    PeriodFilter::parse(&words, now).map(|range| (range.since, range.until)).map_err(|error| error.message().to_owned())
}

#[test]
fn parses_whole_days_and_durations() {
    assert_eq!(parse("", "", ""), Ok((None, None)));
    assert_eq!(parse("7d", "", ""), Ok((at("2026-03-02T07:00:00Z"), None)));
    assert_eq!(parse("", "2026-03-01", "2026-03-01"), Ok((at("2026-03-01"), at("2026-03-02"))), "`to` includes the day");
    assert_eq!(parse("", "", "2026-03-01T12:00:00Z"), Ok((None, at("2026-03-01T12:00:00Z"))));
    assert_eq!(parse("30d", "", "2026-03-01"), Ok((at("2026-02-07T07:00:00Z"), at("2026-03-02"))));
    assert!(
        parse("99999999d", "", "").is_ok_and(|(since, until)| since < at("1900-01-01") && until.is_none()),
        "a duration before the first timestamp"
    );
}

#[test]
fn rejects_invalid_ranges() {
    assert!(parse("soon", "", "").is_err_and(|text| text.starts_with("since: \"soon\" is not a valid duration")));
    assert!(parse("", "yesterday", "").is_err_and(|text| text.starts_with("from: \"yesterday\" is not a valid time")));
    assert!(parse("", "2026-02-30", "").is_err());
    assert!(parse("7d", "2026-03-01", "").is_err_and(|text| text.contains("use one of them")));
    assert!(parse("", "2026-03-02", "2026-03-01").is_err_and(|text| text.contains("range is empty")));
}
