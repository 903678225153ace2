use super::*;
use model::supply_weeks;
use testkit::time;

fn sum(count: u64, value: Option<f64>) -> UnlockSum {
    let unvalued_count = if value.is_none() { count } else { 0 };
    UnlockSum { count, amount: 1.0, value: value.unwrap_or_default(), unsized_count: 0, unvalued_count }
}

fn weeks(sums: &[(UnlockSum, UnlockSum)]) -> Vec<SupplyWeek> {
    let windows = supply_weeks(time("2026-03-09T07:00:00Z"), sums.len());
    let ahead = sums.iter().map(|(cliff, linear)| SupplyAhead { cliff: *cliff, linear: *linear, ..SupplyAhead::default() });
    windows.into_iter().zip(ahead).map(|(window, ahead)| SupplyWeek { window, ahead }).collect()
}

#[test]
fn bars_are_stacked_labeled_and_have_titles() {
    let none = UnlockSum::default();
    let weeks =
        weeks(&[(sum(1, Some(1e6)), sum(1, Some(3e6))), (none, none), (none, sum(1, None)), (sum(1, Some(2e6)), sum(1, None))]);
    let Chart { wide, narrow } = draw(&weeks).expect("a chart");
    for text in [
        "<title>9 Mar to 16 Mar: $4.00M ($1.00M cliffs + $3.00M linear)</title>",
        "<title>16 Mar to 23 Mar: nothing scheduled</title>",
        "<title>23 Mar to 30 Mar: value unknown (linear of unknown value)</title>",
        "<title>30 Mar to 6 Apr: at least $2.00M ($2.00M cliffs + linear of unknown value)</title>",
    ] {
        assert!(wide.contains(text) && narrow.contains(text), "{text}: {wide}");
    }
    // The axis has its unit, each week its date, and each bar its total as text.
    for text in [">$2M</text>", ">$4M</text>", ">?</text>", ">9 Mar</text>", ">30 Mar</text>"] {
        assert!(wide.contains(text), "{text}: {wide}");
    }
    // The cliffs are on top of the linear unlocks.
    assert!(wide.contains("class=\"s-linear\" x=\"59\" y=\"85.5\" width=\"190.5\" height=\"190.5\""), "{wide}");
    assert!(wide.contains("class=\"s-cliff\" x=\"59\" y=\"22\" width=\"190.5\" height=\"63.5\""), "{wide}");
}

#[test]
fn chart_without_known_values_is_not_drawn() {
    let none = UnlockSum::default();
    assert!(draw(&[]).is_none() && draw(&weeks(&[(none, sum(1, None)), (none, none)])).is_none());
    let drawn =
        draw(&weeks(&[(sum(1, Some(f64::NAN)), sum(1, Some(f64::INFINITY))), (sum(1, Some(5.0)), none)])).expect("a chart");
    assert!(!drawn.wide.contains("NaN") && !drawn.wide.contains("\"inf"), "{}", drawn.wide);
}
