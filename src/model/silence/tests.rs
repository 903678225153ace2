use serde_json::json;

use super::*;

fn time(text: &str) -> Timestamp {
    crate::wire::parse_timestamp(text).expect("a time")
}

const NOW: &str = "2026-03-09T12:00:00Z";

fn request(matchers: &[&str]) -> SilenceRequest {
    SilenceRequest {
        matchers: read_matchers(matchers.iter().copied()).expect("matchers"),
        author: "ann".into(),
        comment: "the exchange\r\nis informed".into(),
        starts_at: None,
        ends_at: time("2026-03-09T14:00:00Z"),
    }
}

#[test]
fn silence_matches_all_matchers_between_start_and_end() {
    let silence = request(&["token=arbitrum", "severity!=critical"]).into_silence(time(NOW)).expect("granted");
    let labels = |token: &str, severity: &str| {
        Labels::from([("token".to_owned(), token.to_owned()), ("severity".to_owned(), severity.to_owned())])
    };
    assert!(silence.suppresses(&labels("arbitrum", "warning"), time(NOW)));
    assert!(!silence.suppresses(&labels("arbitrum", "critical"), time(NOW)));
    assert!(!silence.suppresses(&labels("aptos", "warning"), time(NOW)));
    assert!(silence.suppresses(&labels("arbitrum", "warning"), time("2026-03-09T13:59:59Z")));
    assert!(!silence.suppresses(&labels("arbitrum", "warning"), time("2026-03-09T14:00:00Z")));
    assert_eq!(silence.comment, "the exchange  is informed");
}

#[test]
fn rejects_silence_of_everything_or_nothing() {
    let at = time(NOW);
    assert_eq!(request(&[]).into_silence(at), Err(SilenceError::NoMatchers));
    assert_eq!(request(&["token=~\".*\"", "a!=b"]).into_silence(at), Err(SilenceError::Everything));
    let one = || request(&["token=arbitrum"]);
    assert_eq!(SilenceRequest { ends_at: at, ..one() }.into_silence(at), Err(SilenceError::Past(at)));
    let later = time("2026-03-09T15:00:00Z");
    let ends_at = time("2026-03-09T14:00:00Z");
    assert_eq!(
        SilenceRequest { starts_at: Some(later), ..one() }.into_silence(at),
        Err(SilenceError::EndsFirst { starts_at: later, ends_at })
    );
    assert_eq!(SilenceRequest { ends_at: at + TimeDelta::days(400), ..one() }.into_silence(at), Err(SilenceError::TooLong));
    assert_eq!(SilenceRequest { author: " ".into(), ..one() }.into_silence(at), Err(SilenceError::Author));
    assert_eq!(SilenceRequest { comment: String::new(), ..one() }.into_silence(at), Err(SilenceError::Comment));
    assert!(matches!(read_matchers(["token"]), Err(SilenceError::Matcher { .. })));
}

#[test]
fn fact_changes_with_date_amount_and_level_but_not_price() {
    let record = |date: &str, amount: f64, value: f64| json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount, "cliffValue": value, "allocationBreakdown": []}});
    let known = SilenceFact::of(Some(1), Some(&record("2026-03-20T00:00:00Z", 5.0, 10.0)));
    assert_eq!(SilenceFact::of(Some(1), Some(&record("2026-03-20T00:00:00Z", 5.0, 99.0))), known);
    assert_ne!(SilenceFact::of(Some(1), Some(&record("2026-03-21T00:00:00Z", 5.0, 10.0))), known);
    assert_ne!(SilenceFact::of(Some(1), Some(&record("2026-03-20T00:00:00Z", 6.0, 10.0))), known);
    assert_ne!(SilenceFact::of(Some(2), Some(&record("2026-03-20T00:00:00Z", 5.0, 10.0))), known);
}
