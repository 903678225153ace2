use chrono::TimeDelta;

use super::*;
use crate::{
    Change, ChangeKind, ChangeRow, Interval, PastPoll, PollProblem, Precision, ReferencePrice, Resource, Timestamp, TokenSupply,
    wire::parse_timestamp,
};

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

#[test]
fn numbers_are_short() {
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
    assert_eq!(tokens(36_790_000.0, Some("ARB")), "36.79M ARB");
    assert_eq!(tokens(1.0, None), "1 token");
    assert_eq!(share(1.9, MARKET_CAP), "1.90% of market cap");
    assert_eq!(grouped(5_250_000.5), "5,250,000.5");
    assert_eq!(grouped(-999), "-999");
    assert_eq!(bytes(12_897_485), "12.3 MiB");
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
fn shift_has_the_unit_that_fits() {
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
fn date_is_as_exact_as_its_precision() {
    let at = time("2026-03-12T09:00:00Z");
    let said = |precision| when(&Interval::of(at, precision).expect("dated"));
    assert_eq!(said(Precision::Month), "in March 2026 (~12 Mar; the source confirms only the month)");
    assert_eq!(said(Precision::Week), "in the week of 8 Mar 2026 (~12 Mar; the source confirms only the week)");
    assert_eq!(said(Precision::Day), "on 12 Mar 2026");
    assert_eq!(said(Precision::Second), "on 12 Mar 2026, 09:00 UTC");
}

#[test]
fn hostile_name_stays_on_one_line() {
    assert_eq!(name("Team\r\nBcc: x"), "Team  Bcc: x");
    assert_eq!(name("\u{202e}evil"), " evil");
    assert_eq!(name(" \u{200b} "), "(unnamed)");
    assert_eq!(name(&"x".repeat(500)).chars().count(), MAX_NAME_CHARS + 1);
    assert_eq!(names(["a", "b", "c", "d", "e"]), "a, b, c, and 2 more");
}

#[test]
fn time_until_is_no_more_exact_than_the_date() {
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
        assert_eq!(time_until(days, precision).as_deref(), words, "{days} {precision:?}");
    }
    let of = |date, precision| when(&Interval::of(time(date), precision).expect("dated"));
    for (date, precision) in
        [("2026-03-16T13:00:00Z", Precision::Second), ("2026-03-16", Precision::Day), ("2026-03-16", Precision::Week)]
    {
        assert_eq!(stated_precision(&of(date, precision)), Some(precision));
    }
    assert_eq!(stated_precision(&of("2026-03-16", Precision::Month)), Some(Precision::Month));
}

#[test]
fn month_date_shows_its_nominal_day_and_says_when_it_is_not_confirmed() {
    let month = Interval::of(time("2026-11-16"), Precision::Month).expect("dated");
    let only_month = "in November 2026 (~16 Nov; the source confirms only the month)";
    for (now, text) in [
        ("2026-10-01", only_month),
        ("2026-11-16T23:59:59Z", only_month),
        ("2026-11-17", "in November 2026 (expected 16 Nov, not confirmed)"),
        ("2026-11-30T23:59:59Z", "in November 2026 (expected 16 Nov, not confirmed)"),
        ("2026-12-01", only_month),
    ] {
        assert_eq!(when_at(&month, time(now)), text, "{now}");
    }
    assert_eq!(stated_precision("in November 2026 (expected 16 Nov, not confirmed)"), None);
    assert_eq!((short_date(&month).as_str(), when_day(&month).as_str()), ("~16 Nov 2026", "~16 Nov 2026"));
    assert_eq!(brief_when(only_month), "in November 2026 (~16 Nov)");
    let stored_without_nominal_date = Interval { nominal: None, ..month };
    assert_eq!(when(&stored_without_nominal_date), "in November 2026");
    assert_eq!(short_date(&stored_without_nominal_date), "November 2026");
    let exact = Interval::of(time("2026-11-16T09:00:00Z"), Precision::Second).expect("dated");
    assert_eq!(
        (when_at(&exact, time("2026-11-20")).as_str(), short_date(&exact).as_str()),
        ("on 16 Nov 2026, 09:00 UTC", "16 Nov 2026")
    );
}

#[test]
fn constant_becomes_words() {
    assert_eq!(constant("TREASURY_BUYBACK"), "treasury buyback");
    assert_eq!(constant("PROGRAMMATIC"), "programmatic");
    for same in ["BNB", "Quarterly burn", "Auto-BURN", "", "Über"] {
        assert_eq!(constant(same), same);
    }
}

#[test]
fn duration_has_the_largest_unit_that_fits() {
    for (seconds, text) in [
        (0, "0 s"),
        (5, "5 s"),
        (60, "1 min"),
        (61, "61 s"),
        (12 * 60, "12 min"),
        (90 * 60, "90 min"),
        (3_600, "1 h"),
        (-3 * 3_600, "3 h"),
        (86_400, "1 day"),
        (36 * 3_600, "36 h"),
        (47 * 3_600 + 3_599, "2 days"),
        (6 * 86_400 + 75_000, "7 days"),
    ] {
        assert_eq!(duration(TimeDelta::seconds(seconds)), text);
    }
}

#[test]
fn counts_and_lists_are_english() {
    assert_eq!(count(1_u8, "unlock"), "1 unlock");
    assert_eq!(count(0_usize, "unlock"), "0 unlocks");
    assert_eq!(count(2_i64, "delivery"), "2 deliveries");
    assert_eq!(count(3_u32, "day"), "3 days");
    assert_eq!(list(&["a"]), "a");
    assert_eq!(list(&["a", "b"]), "a and b");
    assert_eq!(list(&["a", "b", "c"]), "a, b, and c");
    assert_eq!(list_some(&["a", "b", "c"], 1, 2), "a and 4 more");
    assert_eq!(names(["a", "b", "c", "d"]), "a, b, c, and d");
}

#[test]
fn past_poll_has_counts_and_the_first_failure() {
    let failure = |message: &str| Some(PollProblem { token: Some("A<b>".to_owned()), message: message.to_owned() });
    let cycle = |polls, failed| PastPoll {
        at: time("2026-03-09T12:00:00Z"),
        polls,
        failed,
        deferred: 0,
        is_empty: false,
        failure: failure("503").filter(|_| failed > 0),
    };
    assert_eq!(past_poll(&cycle(1, 0)), "succeeded");
    assert_eq!(past_poll(&cycle(60, 2)), "60 polls, 2 failed: A<b>: 503");
    assert_eq!(past_poll(&cycle(1, 1)), "failed: A<b>: 503");
    assert_eq!(past_poll(&PastPoll { is_empty: true, ..cycle(3, 0) }), "3 polls, all responses empty");
    assert_eq!(past_poll(&PastPoll { deferred: 1, ..cycle(1, 0) }), "deferred: the cost exceeds the plan");
    assert!(past_poll(&PastPoll { failure: failure(&"x".repeat(400)), ..cycle(1, 1) }).chars().count() < 180);
}

#[test]
fn only_an_old_price_is_dated() {
    let (now, limit) = (time("2026-11-26"), TimeDelta::days(3));
    let supply = |at: Option<Timestamp>| TokenSupply { price: Some(ReferencePrice { usd: 1.0, at }), ..TokenSupply::unread(0) };
    let text = |at: Option<Timestamp>| supply(at).stale_price(now, limit).map(at_prices_of);
    assert_eq!(text(Some(time("2025-11-03T02:01:35Z"))).as_deref(), Some("at prices of 3 Nov 2025"));
    assert_eq!(text(Some(time("2026-11-23"))), None);
    assert_eq!(text(None), None);
}

mod supply;

#[test]
fn sum_reads_the_same_whatever_the_order_of_its_terms_is() {
    let terms = [19_375.1, 19_374.9, 19_375.0, 0.1, 0.2, -0.3];
    let there: f64 = terms.iter().sum();
    let back: f64 = terms.iter().rev().sum();
    for (there, back) in
        [(there, back), (58_125.000_000_000_02, 58_124.999_999_999_98), (2.125_000_000_000_1, 2.124_999_999_999_9)]
    {
        assert_ne!(there.to_bits(), back.to_bits(), "{there}: the test compares two different numbers");
        assert_eq!(usd(there), usd(back));
        assert_eq!(percent(there), percent(back));
    }
}

#[test]
fn headline_names_the_resource_once() {
    let headline = |resource: Resource, summary: &str| {
        let mut change = Change::of(ChangeKind::Resized, resource, &"arb".into());
        change.summary = summary.to_owned();
        let at = time("2026-03-09");
        changes::headline(&ChangeRow { id: 1, at, token: "arb".into(), symbol: None, resource, key: None, change })
    };
    assert_eq!(headline(Resource::Burn, "moved from 1 to 4 Mar 2026"), "burn moved from 1 to 4 Mar 2026");
    assert_eq!(headline(Resource::Allocation, "3 allocations resized"), "3 allocations resized");
    assert_eq!(headline(Resource::Unlock, "Team resized"), "Team resized");
}
