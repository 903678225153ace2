use proptest::prelude::*;
use serde_json::json;

use super::*;

fn unlock(day: i64, amount: f64) -> Tracked {
    let date = chrono::DateTime::from_timestamp(1_700_000_000 + day * 86_400, 0).expect("a time");
    let record = json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount}}).to_string();
    let record = Record::from_json(model::supply::Resource::Unlock, &record).expect("an unlock");
    Tracked { key: format!("k{day}").as_str().into(), record }
}

#[test]
fn most_points_are_after_the_unlock() {
    let all: Vec<Tracked> = (0..200).map(|day| unlock(day, 1.0)).collect();
    let series = around(&all[100], &all);
    assert_eq!(series.len(), MAX_SERIES);
    assert_eq!(series.iter().position(|each| Some(*each) == point(&all[100])), Some(MAX_BEFORE));
    // At the end of a schedule, earlier points fill the series.
    let series = around(&all[199], &all);
    assert_eq!(series.len(), MAX_SERIES);
    assert_eq!(series.last().copied(), point(&all[199]));
}

#[test]
fn event_without_cliff_has_no_point() {
    let all = [unlock(1, 5.0), unlock(2, 0.0), unlock(3, 1e30)];
    assert_eq!(around(&all[0], &all).len(), 2);
    assert_eq!(around(&all[1], &all), []);
}

/// A change of a series carries its first record, without the key of that record.
#[test]
fn record_of_a_series_is_listed_once() {
    let all = [unlock(1, 5.0), unlock(2, 5.0), unlock(3, 5.0)];
    let own = Tracked { key: "series".into(), ..all[1].clone() };
    let days: Vec<_> = around(&own, &all).into_iter().map(|point| point.at).collect();
    assert_eq!(days, all.iter().filter_map(point).map(|point| point.at).collect::<Vec<_>>());
    // A removed record is not among the others.
    assert_eq!(around(&own, &[unlock(1, 5.0), unlock(3, 5.0)]).len(), 3);
}

proptest! {
    #[test]
    fn series_always_contains_the_unlock(days in proptest::collection::vec(-500_i64..500, 1..150), pick in 0_usize..150) {
        let all: Vec<Tracked> = days.iter().enumerate().map(|(n, day)| Tracked { key: format!("k{n}").as_str().into(), ..unlock(*day, 1.0) }).collect();
        let own = &all[pick % all.len()];
        let series = around(own, &all);
        prop_assert!(series.len() <= MAX_SERIES);
        prop_assert!(series.is_sorted_by_key(|point| point.at));
        prop_assert!(series.contains(&point(own).expect("dated")));
    }
}
