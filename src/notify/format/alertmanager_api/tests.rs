use super::*;
use crate::format::alertmanager::tests::raised;
use crate::samples::{due, moved, resolved, time as at, unlock};

#[test]
fn an_alert_ends_after_its_date_an_event_soon_and_a_resolution_never_ahead() {
    let now = at("2026-03-09T13:00:05Z");
    assert_eq!(end(&unlock(), now), at("2026-03-17T13:00:00Z"));
    assert_eq!(end(&unlock(), at("2026-04-01T00:00:00Z")), at("2026-04-01T01:00:00Z"), "late, but alive when it arrives");
    assert_eq!(end(&moved(), now), at("2026-03-09T14:00:05Z"));
    assert_eq!(end(&resolved(), now), now);
    assert_eq!(end(&resolved(), at("2026-03-20T00:00:00Z")), at("2026-03-16T13:00:00Z"));
}

#[test]
fn what_an_alert_was_called_before_is_told_to_be_over() {
    let now = at("2026-03-09T13:00:05Z");
    let severities = |notice: Notification| -> Vec<(String, bool)> {
        let delivery = due(1, "am", vec![notice]);
        let pushed = alerts(&Brief { delivery: &delivery, external_url: None, now });
        pushed.iter().map(|alert| (alert.labels["severity"].clone(), alert.ends_at > time(now))).collect()
    };
    let expected = [("critical", true), ("info", false), ("warning", false)].map(|(word, on)| (word.to_owned(), on));
    assert_eq!(severities(raised("critical", &["info", "warning"])), expected);
    // Back to a label that it had: that one fires.
    assert_eq!(severities(raised("warning", &["info", "warning"])), [("warning".to_owned(), true), ("info".to_owned(), false)]);
}
