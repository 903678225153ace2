use super::*;
use crate::fixtures::time;

fn weeks(of: &[(usize, u64, f64)]) -> WeeksAhead {
    let mut weeks = WeeksAhead::default();
    for (place, count, value) in of {
        weeks[*place] = AheadSum { count: *count, value: *value };
    }
    weeks
}

#[test]
fn bars_stand_for_weeks_and_words_for_bars() {
    let now = time("2026-03-09T07:00:00Z");
    let some = weeks(&[(0, 1, 1_200_000.0), (4, 2, 3_100_000.0), (11, 1, 0.0)]);
    assert_eq!(words(&some, now), "By week, from: 9 Mar $1.20M, 6 Apr $3.10M in 2 unlocks, 25 May of unknown value");
    let drawn = draw(&some, now);
    assert_eq!((drawn.matches("class=\"some\"").count(), drawn.matches("class=\"none\"").count()), (3, 9));
    assert!(
        drawn.contains("y=\"0\" width=\"5\" height=\"18\"") && drawn.contains("y=\"16\" width=\"5\" height=\"2\""),
        "{drawn}"
    );
    assert_eq!(words(&weeks(&[]), now), "Nothing unlocks in the coming 12 weeks");
}

#[test]
fn numbers_that_are_none_draw_nothing_wild() {
    let drawn = draw(&weeks(&[(1, 1, f64::NAN), (2, 1, f64::INFINITY), (3, 1, -5.0)]), time("2026-03-09T07:00:00Z"));
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
}
