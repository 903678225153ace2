use super::*;
use testkit::time;

fn slots(pattern: &str, zone: &str) -> Slots {
    Slots::parse(pattern, zone).expect("a pattern").expect("on")
}

#[test]
fn slot_keeps_local_time_through_daylight_saving_changes() {
    let slots = slots("0 0 18 * * *", "Europe/Paris");
    assert_eq!(slots.next(time("2026-10-24T12:00:00Z")), Some(time("2026-10-24T16:00:00Z")));
    assert_eq!(slots.next(time("2026-10-24T16:00:00Z")), Some(time("2026-10-25T17:00:00Z")));
    assert_eq!(slots.next(time("2027-03-27T17:00:00Z")), Some(time("2027-03-28T16:00:00Z")));
}

#[test]
fn fractional_seconds_do_not_duplicate_a_slot() {
    let slots = slots("0 0 */6 * * *", "UTC");
    let almost = time("2026-11-21T11:59:59.900Z");
    assert_eq!(slots.next(almost), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(slots.last(time("2026-11-21T12:00:00.500Z")), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(slots.count(time("2026-11-21"), time("2026-11-22"), 100), 4);
}

#[test]
fn impossible_date_has_no_slot() {
    assert_eq!(slots("0 0 9 31 2 *", "UTC").next(time("2026-11-21")), None);
}

#[test]
fn off_disables_the_job_and_five_fields_are_an_error() {
    assert!(Slots::parse("off", "UTC").expect("valid").is_none());
    assert!(Slots::parse("0 9 * * *", "UTC").is_err());
    assert!(matches!(Slots::parse("0 0 9 * * *", "Europe/Pariss"), Err(SlotError::Zone(_))));
}
