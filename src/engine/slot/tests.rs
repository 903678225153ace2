use super::*;
use model::wire::parse_timestamp;

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

fn slots(pattern: &str, zone: &str) -> Slots {
    Slots::parse(pattern, zone).expect("a pattern").expect("on")
}

#[test]
fn six_in_the_evening_in_paris_stays_six_through_both_changes() {
    let slots = slots("0 0 18 * * *", "Europe/Paris");
    assert_eq!(slots.next(time("2026-10-24T12:00:00Z")), Some(time("2026-10-24T16:00:00Z")));
    assert_eq!(slots.next(time("2026-10-24T16:00:00Z")), Some(time("2026-10-25T17:00:00Z")));
    assert_eq!(slots.next(time("2027-03-27T17:00:00Z")), Some(time("2027-03-28T16:00:00Z")));
}

#[test]
fn a_slot_is_found_once_whatever_the_fraction() {
    let slots = slots("0 0 */6 * * *", "UTC");
    let almost = time("2026-11-21T11:59:59.900Z");
    assert_eq!(slots.next(almost), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(slots.last(time("2026-11-21T12:00:00.500Z")), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(slots.count(time("2026-11-21"), time("2026-11-22"), 100), 4);
}

#[test]
fn a_date_that_never_comes_has_no_slot() {
    assert_eq!(slots("0 0 9 31 2 *", "UTC").next(time("2026-11-21")), None);
}

#[test]
fn off_is_no_pattern_and_five_fields_are_an_error() {
    assert!(Slots::parse("off", "UTC").expect("valid").is_none());
    assert!(Slots::parse("0 9 * * *", "UTC").is_err());
    assert!(matches!(Slots::parse("0 0 9 * * *", "Europe/Pariss"), Err(SlotError::Zone(_))));
}
