use super::*;

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

#[test]
fn month_interval_covers_whole_month() {
    let march = Interval::of(time("2026-03-16"), Precision::Month).expect("dated");
    assert_eq!((march.start, march.end), (time("2026-03-01"), time("2026-04-01")));
    assert!(march.is_within(time("2026-02-22"), TimeDelta::days(7)));
    assert!(!march.is_within(time("2026-02-21T23:59:59Z"), TimeDelta::days(7)));
    assert!((march.days_until(time("2026-03-20")) - 0.0).abs() < f64::EPSILON);
    assert!(march.has_passed(time("2026-04-01")));
}

#[test]
fn undecided_date_has_no_interval() {
    assert_eq!(Interval::of(time("2026-03-16"), Precision::of(Some("To Be Determined"))), None);
}

#[test]
fn week_starts_on_sunday() {
    let week = Interval::of(time("2026-10-14T09:00:00Z"), Precision::Week).expect("dated");
    assert_eq!((week.start, week.end), (time("2026-10-11"), time("2026-10-18")));
}

#[test]
fn unknown_precision_counts_as_day() {
    assert_eq!(Precision::of(Some("fortnight")), Precision::Day);
    assert_eq!(Precision::of(Some("unknown")), Precision::Day);
}

#[test]
fn fast_time_parser_agrees_with_general_parser() {
    for text in ["2026-03-09T00:00:00Z", "2024-02-29T23:59:59Z", "1900-01-01T00:00:00Z"] {
        assert_eq!(whole_seconds(text), DateTime::parse_from_rfc3339(text).ok().map(|at| at.with_timezone(&Utc)), "{text}");
    }
    for text in [
        "2026-02-29T00:00:00Z",
        "2026-03-09T24:00:00Z",
        "2026-03-09 00:00:00Z",
        "2026-03-09T00:00:0xZ",
        "2026-03-09T00:00:00+",
        "",
    ] {
        assert_eq!(whole_seconds(text), None, "{text}");
    }
}
