use chrono::{TimeDelta, Utc};
use proptest::prelude::*;

use super::*;

fn point() -> impl Strategy<Value = SeriesPoint> {
    (any::<i32>(), 0..1_000_000_000_u32, any::<f64>(), 0..PRECISIONS.len()).prop_map(|(seconds, nanos, amount, precision)| {
        let at = chrono::DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(seconds.into());
        let amount = if amount.is_nan() { 0.0 } else { amount };
        SeriesPoint { at: at + TimeDelta::nanoseconds(nanos.into()), amount, precision: PRECISIONS[precision] }
    })
}

proptest! {
    #[test]
    fn what_is_packed_comes_back(points in proptest::collection::vec(point(), 1..60)) {
        prop_assert_eq!(unpack(&pack(&points).expect("some")), Some(points));
    }

    #[test]
    fn whatever_is_damaged_is_told(points in proptest::collection::vec(point(), 1..9), cut in 1..9_usize) {
        let packed = pack(&points).expect("some");
        prop_assert_eq!(unpack(&packed[..packed.len().saturating_sub(cut)]), None);
    }
}

#[test]
fn where_there_is_none_nothing_is_kept() {
    assert_eq!(pack(&[]), None);
}
