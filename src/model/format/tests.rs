use super::*;
use crate::wire::parse_timestamp;

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

#[test]
fn numbers_read_short() {
    for (value, text) in [
        (5_250_000.0, "$5.25M"),
        (999.0, "$999"),
        (999_999.0, "$1.00M"),
        (1_000.0, "$1.00K"),
        (0.0, "$0"),
        (-0.0, "$0"),
        (0.034_56, "$0.0346"),
        (12.5, "$12.50"),
        (-5_250_000.0, "-$5.25M"),
    ] {
        assert_eq!(usd(value), text);
    }
    assert_eq!(amount(1.0e9), "1.00B");
    assert_eq!(amount(9.0e13), "90.00T");
    assert_eq!(amount(1.0e60), "1.00e48T");
    assert_eq!(amount(f64::NAN), "unknown");
    assert_eq!(percent(2.77), "2.77%");
    assert_eq!(percent(0.000_12), "0.00012%");
    assert_eq!(ratio(20.0), "×20");
    assert_eq!(ratio(100.0), "×100");
    assert_eq!(ratio(0.1), "×0.1");
    assert_eq!(ratio(0.5), "×0.5");
    assert_eq!(ratio(0.37), "×0.37");
    assert_eq!(ratio(1.2), "×1.2");
    assert_eq!(ratio(1.25), "×1.25");
    assert_eq!(ratio(300.0), "×300");
    assert_eq!(ratio(1.0), "×1");
    assert_eq!(ratio(0.0), "×0");
    assert_eq!(ratio(1.002_182), "+0.22%");
    assert_eq!(ratio(0.97), "-3%");
    assert_eq!(ratio(1.000_02), "+0.002%");
    assert_eq!(ratio(1.0 + 1e-12), "×1");
    assert_eq!(ratio(f64::NAN), "unknown");
    assert_eq!(ratio(1.0e-7), "×0.0000001");
}

#[test]
fn shifts_read_in_the_unit_that_fits() {
    for (days, text) in
        [(4.0, "+4 days"), (-0.125, "-3 h"), (1.0, "+1 day"), (364.04, "+364 days"), (1.5, "+1.5 days"), (1.0 / 48.0, "+30 min")]
    {
        assert_eq!(shift(days), text);
    }
    assert_eq!(shifts(30.0, 33.0), "+30 to +33 days");
    assert_eq!(shifts(-0.125, 2.0), "-3 h to +2 days");
    assert_eq!(shifts(31.0, 31.02), "+31 days");
}

#[test]
fn a_date_is_said_as_exactly_as_it_is_known() {
    let at = time("2026-03-12T09:00:00Z");
    let said = |precision| when(&Interval::of(at, precision).expect("dated"));
    assert_eq!(said(Precision::Month), "in March 2026");
    assert_eq!(said(Precision::Day), "on 12 Mar 2026");
    assert_eq!(said(Precision::Second), "on 12 Mar 2026, 09:00 UTC");
}

#[test]
fn a_hostile_name_stays_on_its_line() {
    assert_eq!(name("Team\r\nBcc: x"), "Team  Bcc: x");
    assert_eq!(name("\u{202e}evil"), " evil");
    assert_eq!(name(" \u{200b} "), "(unnamed)");
    assert_eq!(name(&"x".repeat(500)).chars().count(), MAX_NAME_CHARS + 1);
    assert_eq!(names(["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
}

#[test]
fn a_month_never_says_more_than_that_it_is_one() {
    for (days, precision, words) in [
        (9.4, Precision::Month, Some("the month begins in 9 days")),
        (0.3, Precision::Month, Some("the month begins in less than a day")),
        (0.0, Precision::Month, Some("some time this month")),
        (1.0, Precision::Week, Some("the week begins in 1 day")),
        (0.0, Precision::Week, Some("some time this week")),
        (0.5, Precision::Day, Some("in less than a day")),
        (0.5, Precision::Second, Some("in 12 h")),
        (0.0, Precision::Second, Some("now")),
        (-1.0, Precision::Month, None),
        (f64::NAN, Precision::Day, None),
    ] {
        assert_eq!(nearness(days, precision).as_deref(), words, "{days} {precision:?}");
    }
    let of = |date, precision| when(&Interval::of(time(date), precision).expect("dated"));
    for (date, precision) in
        [("2026-03-16T13:00:00Z", Precision::Second), ("2026-03-16", Precision::Day), ("2026-03-16", Precision::Week)]
    {
        assert_eq!(precision_told(&of(date, precision)), precision);
    }
    assert_eq!(precision_told(&of("2026-03-16", Precision::Month)), Precision::Month);
}

#[test]
fn a_word_in_capitals_reads_as_words() {
    assert_eq!(constant("TREASURY_BUYBACK"), "treasury buyback");
    assert_eq!(constant("PROGRAMMATIC"), "programmatic");
    for same in ["BNB", "Quarterly burn", "Auto-BURN", "", "Über"] {
        assert_eq!(constant(same), same);
    }
}
