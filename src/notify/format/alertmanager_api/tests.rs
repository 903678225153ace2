use super::*;
use crate::format::alertmanager::tests::raised;
use testkit::samples::{due, moved, resolved, unlock};
use testkit::time as at;

#[test]
fn alerts_end_after_their_date_and_resolutions_not_in_the_future() {
    let now = at("2026-03-09T13:00:05Z");
    assert_eq!(end(&unlock(), now), at("2026-03-17T13:00:00Z"));
    assert_eq!(
        end(&unlock(), at("2026-04-01T00:00:00Z")),
        at("2026-04-01T01:00:00Z"),
        "a late alert still fires when it arrives"
    );
    assert_eq!(end(&moved(), now), at("2026-03-09T14:00:05Z"));
    assert_eq!(end(&resolved(), now), now);
    assert_eq!(end(&resolved(), at("2026-03-20T00:00:00Z")), at("2026-03-16T13:00:00Z"));
}

#[test]
fn former_label_sets_are_resolved() {
    let now = at("2026-03-09T13:00:05Z");
    let severities = |notice: Notification| -> Vec<(String, bool)> {
        let delivery = due(1, "am", vec![notice]);
        let pushed = alerts(&Brief { delivery: &delivery, external_url: None, now });
        pushed.iter().map(|alert| (alert.labels["severity"].clone(), alert.ends_at > time(now))).collect()
    };
    let expected = [("critical", true), ("info", false), ("warning", false)].map(|(word, on)| (word.to_owned(), on));
    assert_eq!(severities(raised("critical", &["info", "warning"])), expected);
    // A former label set that is in use again fires.
    assert_eq!(severities(raised("warning", &["info", "warning"])), [("warning".to_owned(), true), ("info".to_owned(), false)]);
}
