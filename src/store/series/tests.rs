use chrono::{TimeDelta, Utc};

use super::*;

/// Returns points of all precisions, with edge cases of amounts and times.
fn points(count: i64) -> Vec<SeriesPoint> {
    let amounts = [28_156_190.476_190_403, 0.0, -1.5, 1e300, f64::INFINITY, 13_356_190.0, 0.1];
    let point = |number: i64| {
        let at = chrono::DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(number * 31 - 400) + TimeDelta::nanoseconds(number % 3);
        let place = usize::try_from(number).unwrap();
        SeriesPoint { at, amount: amounts[place % amounts.len()], precision: PRECISIONS[place % PRECISIONS.len()] }
    };
    (0..count).map(point).collect()
}

#[test]
fn packed_points_round_trip() {
    for count in 1..60 {
        let points = points(count);
        assert_eq!(unpack(&pack(&points).unwrap()), Some(points));
    }
}

#[test]
fn damaged_points_are_rejected() {
    let packed = pack(&points(36)).unwrap();
    for end in 0..packed.len() {
        assert_eq!(unpack(&packed[..end]), None, "cut off after {end} bytes");
    }
    assert_eq!(unpack(&[&packed[..], &[0]].concat()), None);
    assert_eq!(unpack(&[2, 0]), None, "another format");
}

#[test]
fn empty_series_is_not_stored() {
    assert_eq!(pack(&[]), None);
}
