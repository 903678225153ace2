//! The schedule around one unlock, for those who draw it.

use model::{MAX_SERIES, Record, SeriesPoint, Tracked};

/// Most points before the unlock itself: what comes matters more.
const MAX_BEFORE: usize = MAX_SERIES / 3;

/// The dated cliffs around `own`, by date: its own among them, before it a third of the room unless little comes after it. Empty where
/// `own` is no dated unlock.
pub(super) fn around(own: &Tracked, records: &[Tracked]) -> Vec<SeriesPoint> {
    let Some(mine) = point(own) else { return Vec::new() };
    let others = records.iter().filter(|tracked| tracked.key != own.key).filter_map(point).filter(|point| point.amount > 0.0);
    let mut all: Vec<SeriesPoint> = others.chain([mine]).collect();
    all.sort_by(|a, b| a.at.cmp(&b.at).then(a.amount.total_cmp(&b.amount)));
    let at = all.iter().position(|point| *point == mine).unwrap_or_default();
    // Where few come after it, more of what was may stay.
    let after = all.len() - at;
    let before = at.min(MAX_BEFORE.max(MAX_SERIES.saturating_sub(after)));
    all.into_iter().skip(at - before).take(MAX_SERIES).collect()
}

fn point(tracked: &Tracked) -> Option<SeriesPoint> {
    let Record::Unlock(event) = &tracked.record else { return None };
    let amount = event.cliff_amount().filter(|amount| amount.is_finite()).unwrap_or_default();
    // A date that is to be determined has no place on a line.
    let precision = event.interval()?.precision;
    Some(SeriesPoint { at: event.unlock_date.copied()?, precision, amount })
}

#[cfg(test)]
mod tests {
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
    fn what_comes_after_an_unlock_has_most_of_the_room() {
        let all: Vec<Tracked> = (0..200).map(|day| unlock(day, 1.0)).collect();
        let series = around(&all[100], &all);
        assert_eq!(series.len(), MAX_SERIES);
        assert_eq!(series.iter().position(|each| Some(*each) == point(&all[100])), Some(MAX_BEFORE));
        // At the end of a schedule the past fills the room.
        let series = around(&all[199], &all);
        assert_eq!(series.len(), MAX_SERIES);
        assert_eq!(series.last().copied(), point(&all[199]));
    }

    #[test]
    fn a_record_that_unlocks_nothing_at_once_is_drawn_only_where_it_is_meant() {
        let all = [unlock(1, 5.0), unlock(2, 0.0), unlock(3, 1e30)];
        assert_eq!(around(&all[0], &all).len(), 2);
        assert_eq!(around(&all[1], &all).len(), 3);
    }

    proptest! {
        #[test]
        fn the_unlock_itself_is_always_among_them(days in proptest::collection::vec(-500_i64..500, 1..150), pick in 0_usize..150) {
            let all: Vec<Tracked> = days.iter().enumerate().map(|(n, day)| Tracked { key: format!("k{n}").as_str().into(), ..unlock(*day, 1.0) }).collect();
            let own = &all[pick % all.len()];
            let series = around(own, &all);
            prop_assert!(series.len() <= MAX_SERIES);
            prop_assert!(series.is_sorted_by_key(|point| point.at));
            prop_assert!(series.contains(&point(own).expect("dated")));
        }
    }
}
