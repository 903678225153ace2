use super::*;
use model::AheadSum;
use testkit::time;

fn weeks(sums: &[(usize, u64, f64)]) -> WeeksAhead {
    let mut weeks = WeeksAhead::default();
    for (index, count, value) in sums {
        weeks[*index] = AheadSum { count: *count, value: *value };
    }
    weeks
}

#[test]
fn each_week_has_a_bar() {
    let now = time("2026-03-09T07:00:00Z");
    let some = weeks(&[(0, 1, 1_200_000.0), (4, 2, 3_100_000.0), (11, 1, 0.0)]);
    assert_eq!(phrase::weeks_ahead(&some, now), "By week: 9 Mar $1.20M, 6 Apr $3.10M in 2 unlocks, 25 May unknown value");
    let drawn = draw(&some, now);
    assert_eq!((drawn.matches("class=\"some\"").count(), drawn.matches("class=\"none\"").count()), (3, 9));
    assert!(
        drawn.contains("y=\"0\" width=\"5\" height=\"18\"") && drawn.contains("y=\"16\" width=\"5\" height=\"2\""),
        "{drawn}"
    );
    assert_eq!(phrase::weeks_ahead(&weeks(&[]), now), "No unlocks in the next 12 weeks");
}

#[test]
fn invalid_values_are_not_drawn() {
    let drawn = draw(&weeks(&[(1, 1, f64::NAN), (2, 1, f64::INFINITY), (3, 1, -5.0)]), time("2026-03-09T07:00:00Z"));
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
}
