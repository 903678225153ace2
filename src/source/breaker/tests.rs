use super::*;
use model::wire::parse_timestamp;

fn start() -> Timestamp {
    parse_timestamp("2026-03-09T00:00:00Z").expect("a timestamp")
}

fn after(seconds: i64) -> Timestamp {
    start() + TimeDelta::seconds(seconds)
}

fn breaker() -> Arc<Breaker> {
    Arc::new(Breaker::new(Tuning::default()))
}

fn down() -> SourceHealth {
    SourceHealth::Down(FailureKind::Unreachable, "connection refused".into())
}

fn conclude_at(breaker: &Arc<Breaker>, seconds: i64, health: SourceHealth) {
    let permit = breaker.admit("GET /x", None, after(seconds)).expect("a permit");
    breaker.conclude(permit, health, None, after(seconds));
}

fn refused(breaker: &Arc<Breaker>, seconds: i64) -> Option<FailureKind> {
    breaker.admit("GET /x", None, after(seconds)).err().map(|failure| failure.kind)
}

#[test]
fn five_failures_open_the_breaker_and_a_probe_closes_it() {
    let breaker = breaker();
    for _ in 0..4 {
        conclude_at(&breaker, 0, down());
    }
    conclude_at(&breaker, 0, SourceHealth::Responded);
    for _ in 0..4 {
        conclude_at(&breaker, 0, down());
    }
    assert!(breaker.state().is_closed(), "a success resets the count");
    conclude_at(&breaker, 0, down());
    assert_eq!(refused(&breaker, 29), Some(FailureKind::Suspended));
    let probe = breaker.admit("GET /x", None, after(30)).expect("a probe");
    assert_eq!(refused(&breaker, 30), Some(FailureKind::Suspended), "one probe at a time");
    breaker.conclude(probe, SourceHealth::Responded, None, after(31));
    assert_eq!(breaker.state(), BreakerState::Closed { failures: 0 });
}

#[test]
fn unusable_key_does_not_end_a_requested_wait() {
    let breaker = breaker();
    let key = SecretText::from("k".to_owned());
    let limited = SourceHealth::RateLimited(Some(after(300)), "too many requests".into());
    let permit = breaker.admit("GET /x", Some(&key), after(0)).expect("a permit");
    breaker.conclude(permit, limited, Some(&key), after(0));
    breaker.key_unusable("cannot read the file of the key", after(10));
    // The same key can be read again.
    let refused = |seconds| breaker.admit("GET /x", Some(&key), after(seconds)).err().map(|failure| failure.kind);
    assert_eq!(refused(20), Some(FailureKind::RateLimited));
    assert_eq!(refused(300), None);
}

#[test]
fn failed_probes_double_the_wait_up_to_ten_minutes() {
    let breaker = breaker();
    for _ in 0..5 {
        conclude_at(&breaker, 0, down());
    }
    let mut at = 0;
    for wait in [30, 60, 120, 240, 480, 600, 600] {
        assert_eq!(refused(&breaker, at + wait - 1), Some(FailureKind::Suspended));
        at += wait;
        conclude_at(&breaker, at, down());
    }
}

#[test]
fn dropped_probe_allows_the_next() {
    let breaker = breaker();
    for _ in 0..5 {
        conclude_at(&breaker, 0, down());
    }
    drop(breaker.admit("GET /x", None, after(30)).expect("a probe"));
    assert!(breaker.admit("GET /x", None, after(30)).is_ok());
}

#[test]
fn rejected_key_is_retried_after_growing_waits() {
    let breaker = breaker();
    conclude_at(&breaker, 0, SourceHealth::KeyRejected(FailureKind::Unauthorized, "401".into()));
    assert_eq!(refused(&breaker, 299), Some(FailureKind::Unauthorized));
    conclude_at(&breaker, 300, SourceHealth::KeyRejected(FailureKind::Unauthorized, "401".into()));
    assert_eq!(refused(&breaker, 899), Some(FailureKind::Unauthorized));
    conclude_at(&breaker, 900, SourceHealth::Responded);
    assert!(breaker.state().is_closed());
}

#[test]
fn new_key_is_tried_at_once() {
    let breaker = breaker();
    conclude_at(&breaker, 0, SourceHealth::KeyRejected(FailureKind::Unauthorized, "401".into()));
    let key = SecretText::from("new".to_owned());
    assert!(breaker.admit("GET /x", Some(&key), after(1)).is_ok());
    assert!(breaker.state().is_closed());
}

#[test]
fn new_key_does_not_close_the_breaker_of_an_unreachable_source() {
    let breaker = breaker();
    for _ in 0..5 {
        conclude_at(&breaker, 0, down());
    }
    let key = SecretText::from("new".to_owned());
    assert!(breaker.admit("GET /x", Some(&key), after(1)).is_err());
}

#[test]
fn exhausted_quota_has_its_reset_and_an_hourly_probe() {
    let breaker = breaker();
    let reset = after(86_400);
    conclude_at(&breaker, 0, SourceHealth::QuotaExhausted(reset, "used up".into()));
    let failure = breaker.admit("GET /x", None, after(3_599)).expect_err("open");
    assert_eq!((failure.kind, failure.retry_at), (FailureKind::QuotaExhausted, Some(reset)));
    assert!(breaker.admit("GET /x", None, after(3_600)).is_ok());
}

#[test]
fn earlier_fetch_does_not_end_a_rate_limit() {
    let breaker = breaker();
    let early = breaker.admit("GET /x", None, after(0)).expect("a permit");
    conclude_at(&breaker, 0, SourceHealth::RateLimited(Some(after(60)), "429".into()));
    assert!(breaker.check(&early, "GET /x").is_err(), "running fetches stop too");
    breaker.conclude(early, SourceHealth::Responded, None, after(1));
    assert_eq!(refused(&breaker, 59), Some(FailureKind::RateLimited));
    assert_eq!(refused(&breaker, 60), None);
}

#[test]
fn clock_set_back_does_not_keep_the_breaker_open() {
    let breaker = breaker();
    conclude_at(&breaker, 0, SourceHealth::KeyRejected(FailureKind::Unauthorized, "401".into()));
    assert!(breaker.admit("GET /x", None, after(-86_400)).is_ok());
}

#[tokio::test]
async fn fetches_wait_for_the_result_of_a_probe() {
    for (health, is_let_in) in [(SourceHealth::Responded, true), (down(), false), (SourceHealth::Unknown, true)] {
        let breaker = breaker();
        for _ in 0..5 {
            conclude_at(&breaker, 0, down());
        }
        let clock = Clock::manual(after(30));
        let probe = breaker.enter("GET /x", None, &clock).await.expect("a probe");
        let others = [0, 1].map(|_| {
            let (breaker, clock) = (breaker.clone(), clock.clone());
            tokio::spawn(async move { breaker.enter("GET /x", None, &clock).await.is_ok() })
        });
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert!(others.iter().all(|other| !other.is_finished()));
        breaker.conclude(probe, health, None, after(30));
        for other in others {
            assert_eq!(other.await.expect("no panic"), is_let_in);
        }
    }
}
