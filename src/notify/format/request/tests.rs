use super::*;
use crate::samples::{due, moved, resolved, time, unlock};

#[test]
fn of_an_alert_that_began_and_ended_within_a_delivery_only_the_end_is_told() {
    let delivery = due(1, "ops", vec![unlock(), moved(), resolved()]);
    let brief = Brief { delivery: &delivery, external_url: None, now: time("2026-03-09T13:00:05Z") };
    let all = one_by_one(&brief);
    assert_eq!(all.len(), 2);
    assert!(!all[0].is_resolved() && all[1].is_resolved());
    assert_eq!(all[1].key(), unlock().alert.as_str());
}
