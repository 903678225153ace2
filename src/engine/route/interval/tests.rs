use super::*;
use model::wire::parse_timestamp;

fn interval(parts: &[config::TimeInterval]) -> NamedInterval {
    NamedInterval::build(&config::TimeIntervals { name: "it".into(), time_intervals: parts.to_vec() }).expect("an interval")
}

fn times(ranges: &[(&str, &str)]) -> Vec<config::TimeRange> {
    ranges.iter().map(|(a, b)| config::TimeRange { start_time: (*a).into(), end_time: (*b).into() }).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[track_caller]
fn check(interval: &NamedInterval, at: &str, expected: bool) {
    assert_eq!(interval.contains(parse_timestamp(at).expect("a time")), expected, "{at}");
}

#[test]
fn times_follow_daylight_saving_of_the_zone() {
    let nights = interval(&[config::TimeInterval {
        times: times(&[("22:00", "24:00"), ("00:00", "07:00")]),
        location: Some("Europe/Paris".into()),
        ..Default::default()
    }]);
    check(&nights, "2026-03-27T20:59:59Z", false);
    check(&nights, "2026-03-27T21:00:00Z", true);
    check(&nights, "2026-03-28T05:59:59Z", true);
    check(&nights, "2026-03-28T06:00:00Z", false);
    // Daylight saving time starts on 29 March.
    check(&nights, "2026-03-29T04:59:59Z", true);
    check(&nights, "2026-03-29T05:00:00Z", false);
    check(&nights, "2026-03-29T20:00:00Z", true);
}

#[test]
fn all_keys_of_any_part_must_match() {
    let either = interval(&[
        config::TimeInterval {
            weekdays: owned(&["mon:fri"]),
            months: owned(&["march", "6:8"]),
            years: owned(&["2026"]),
            ..Default::default()
        },
        config::TimeInterval { days_of_month: owned(&["-2:-1", "1"]), ..Default::default() },
    ]);
    check(&either, "2026-03-09T12:00:00Z", true); // a Monday
    check(&either, "2026-03-08T12:00:00Z", false); // a Sunday
    check(&either, "2026-04-09T12:00:00Z", false);
    check(&either, "2027-03-09T12:00:00Z", false);
    check(&either, "2026-02-27T12:00:00Z", true); // the second-last day
    check(&either, "2026-02-26T12:00:00Z", false);
    check(&either, "2028-02-28T12:00:00Z", true); // a leap year
    check(&either, "2026-05-01T12:00:00Z", true);
}

#[test]
fn reports_each_invalid_range_with_its_path() {
    let bad = config::TimeIntervals {
        name: "bad".into(),
        time_intervals: vec![config::TimeInterval {
            times: times(&[("22:00", "07:00"), ("9", "10:00"), ("09:00", "24:01")]),
            weekdays: owned(&["mondy", "fri:mon"]),
            days_of_month: owned(&["0", "32"]),
            months: owned(&["13"]),
            years: owned(&["soon"]),
            location: None,
        }],
    };
    let paths: Vec<String> = NamedInterval::build(&bad).expect_err("wrong").into_iter().map(|(path, ..)| path).collect();
    assert_eq!(
        paths,
        [
            ".time_intervals[0].times[0]",
            ".time_intervals[0].times[1].start_time",
            ".time_intervals[0].times[2].end_time",
            ".time_intervals[0].weekdays[0]",
            ".time_intervals[0].weekdays[1]",
            ".time_intervals[0].days_of_month[0]",
            ".time_intervals[0].days_of_month[1]",
            ".time_intervals[0].months[0]",
            ".time_intervals[0].years[0]",
        ]
    );
}

#[test]
fn next_minute_is_the_following_full_minute() {
    let at = |text| parse_timestamp(text).expect("a time");
    assert_eq!(next_minute(at("2026-03-09T12:00:00Z")), at("2026-03-09T12:01:00Z"));
    assert_eq!(next_minute(at("2026-03-09T12:00:59Z")), at("2026-03-09T12:01:00Z"));
}
