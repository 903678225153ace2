use proptest::prelude::*;

use super::*;
use testkit::samples::delivery_config as delivery;

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_773_000_000 + seconds, 0).expect("a timestamp")
}

#[test]
fn each_http_status_has_an_outcome() {
    let later = Outcome::LATER;
    for status in 0..=999_u16 {
        let expected = match status {
            200..=299 => Outcome::Accepted,
            410 => Outcome::Gone,
            408 | 425 | 429 | 500..=599 => later.clone(),
            300..=399 => Outcome::Refused,
            400..=499 => Outcome::Refused,
            _ => later.clone(),
        };
        assert_eq!(Outcome::of_http_status(status, None), expected, "status {status}");
    }
}

#[test]
fn smtp_codes_are_temporary_or_permanent_failures() {
    for code in 400..=499 {
        assert_eq!(Outcome::of_smtp_code(code), Outcome::LATER, "code {code}");
    }
    for code in 500..=599 {
        assert_eq!(Outcome::of_smtp_code(code), Outcome::Refused, "code {code}");
    }
}

#[test]
fn attempts_follow_the_configured_schedule() {
    let delivery = delivery();
    let waits: Vec<i64> = (1..=10)
        .map(|tries| match decide(&Outcome::LATER, tries, time(0), time(0), 0.5, &delivery) {
            NextStep::RetryAt(at) => (at - time(0)).num_seconds(),
            other => panic!("after {tries}: {other:?}"),
        })
        .collect();
    assert_eq!(waits, [5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    let end = decide(&Outcome::LATER, 11, time(0), time(272_000), 0.5, &delivery);
    assert_eq!(end, NextStep::Dead { reason: "no success in 11 attempts over 3 days".into() });
    assert_eq!(decide(&Outcome::Uncertain, 1, time(0), time(0), 0.5, &delivery), NextStep::RetryAt(time(5)));
}

#[test]
fn retry_after_delays_an_attempt_within_limits() {
    let delivery = delivery();
    let after = |seconds| Outcome::Later { retry_after: Some(TimeDelta::seconds(seconds)) };
    assert_eq!(decide(&after(120), 1, time(0), time(0), 0.5, &delivery), NextStep::RetryAt(time(120)));
    assert_eq!(decide(&after(1), 1, time(0), time(0), 0.5, &delivery), NextStep::RetryAt(time(5)));
    assert_eq!(decide(&after(-5), 1, time(0), time(0), 0.5, &delivery), NextStep::RetryAt(time(5)));
    assert_eq!(decide(&after(86_400), 1, time(0), time(0), 0.5, &delivery), NextStep::RetryAt(time(3_600)));
}

#[test]
fn retry_after_is_parsed_as_seconds_or_date() {
    let now = model::wire::parse_timestamp("2026-03-09T00:00:00Z").expect("a timestamp");
    assert_eq!(parse_retry_after("120", now), Some(TimeDelta::seconds(120)));
    assert_eq!(parse_retry_after(" 0 ", now), Some(TimeDelta::zero()));
    assert_eq!(parse_retry_after("Mon, 09 Mar 2026 00:01:30 GMT", now), Some(TimeDelta::seconds(90)));
    assert_eq!(parse_retry_after("Sun, 08 Mar 2026 00:01:30 GMT", now), Some(TimeDelta::zero()));
    assert_eq!(parse_retry_after("99999999999999999999999", now), Some(MAX_WAIT));
    for nonsense in ["", "soon", "-5", "1.5", "2026-03-09"] {
        assert_eq!(parse_retry_after(nonsense, now), None, "{nonsense:?}");
    }
}

proptest! {
    #[test]
    fn retry_times_stay_within_bounds(
        tries in 1_u32..40,
        jitter in proptest::num::f64::ANY,
        requested in proptest::option::of(i64::MIN / 1_000..i64::MAX / 1_000),
        at in -4_000_000_000_i64..4_000_000_000,
    ) {
        let delivery = delivery();
        let outcome = Outcome::Later { retry_after: requested.map(TimeDelta::milliseconds) };
        let now = time(at);
        match decide(&outcome, tries, now, now, jitter, &delivery) {
            NextStep::RetryAt(next) => {
                let wait = delivery.retry[tries as usize].delta();
                prop_assert!(next >= now + wait * 8 / 10);
                prop_assert!(next <= now + (wait * 12 / 10).max(delivery.max_retry_after.delta()));
            }
            NextStep::Dead { .. } => prop_assert!(tries as usize >= delivery.retry.len()),
            NextStep::Delivered => prop_assert!(false, "nothing was delivered"),
        }
    }

    #[test]
    fn each_attempt_is_later_than_the_previous_one(jitters in proptest::collection::vec(0.0_f64..=1.0, 10)) {
        let delivery = delivery();
        let mut now = time(0);
        for (tries, jitter) in (1..).zip(jitters) {
            let NextStep::RetryAt(next) = decide(&Outcome::LATER, tries, time(0), now, jitter, &delivery) else {
                return Err(TestCaseError::fail("no further attempt"));
            };
            prop_assert!(next > now);
            now = next;
        }
    }
}
