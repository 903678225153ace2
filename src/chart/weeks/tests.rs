use super::*;
use testkit::time;

fn sum(count: u64, value: Option<f64>) -> UnlockSum {
    let unvalued_count = if value.is_none() { count } else { 0 };
    UnlockSum { count, amount: 1.0, value: value.unwrap_or_default(), unsized_count: 0, unvalued_count }
}

fn weeks(sums: &[(usize, UnlockSum, UnlockSum)]) -> Vec<SupplyAhead> {
    let mut weeks = vec![SupplyAhead::default(); 12];
    for (index, cliff, linear) in sums {
        weeks[*index] = SupplyAhead { cliff: *cliff, linear: *linear, ..SupplyAhead::default() };
    }
    weeks
}

#[test]
fn each_week_has_a_bar_of_cliffs_and_linear_unlocks() {
    let now = time("2026-03-09T07:00:00Z");
    let none = UnlockSum::default();
    let some = weeks(&[(0, sum(1, Some(1e6)), sum(1, Some(3e6))), (4, none, sum(2, Some(2e6))), (11, sum(1, Some(0.0)), none)]);
    let drawn = draw(&some, KnownSupply::All, now);
    assert!(drawn.contains("aria-label=\"By week: 9 Mar $4.00M, 6 Apr $2.00M, 25 May $0\""), "{drawn}");
    let count = |class: &str| drawn.matches(&format!("class=\"{class}\"")).count();
    assert_eq!((count("some"), count("flow"), count("none")), (2, 2, 9), "{drawn}");
    assert!(drawn.contains("class=\"some\" x=\"0\" y=\"0\" width=\"5\" height=\"4.5\""), "a quarter of the bar: {drawn}");
    assert!(drawn.contains("class=\"flow\" x=\"0\" y=\"4.5\" width=\"5\" height=\"13.5\""), "{drawn}");
}

#[test]
fn unknown_values_are_drawn_in_tokens_and_unread_ones_not_at_all() {
    let now = time("2026-03-09T07:00:00Z");
    let unvalued = weeks(&[(1, UnlockSum::default(), sum(1, None))]);
    let drawn = draw(&unvalued, KnownSupply::All, now);
    assert!(drawn.contains("By week: 16 Mar 1 token") && drawn.contains("height=\"18\" rx=\"1\""), "{drawn}");
    let drawn = draw(&unvalued, KnownSupply::None, now);
    assert!(drawn.contains("Not read yet") && !drawn.contains("class=\"flow\""), "{drawn}");
}

#[test]
fn invalid_values_are_not_drawn() {
    let none = UnlockSum::default();
    let bad = weeks(&[(1, sum(1, Some(f64::NAN)), none), (2, sum(1, Some(f64::INFINITY)), none), (3, sum(1, Some(-5.0)), none)]);
    let drawn = draw(&bad, KnownSupply::All, time("2026-03-09T07:00:00Z"));
    assert!(!drawn.contains("NaN") && !drawn.contains("\"inf"), "{drawn}");
}
