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
    let mut weeks =
        weeks(&[(sum(1, Some(1e6)), sum(1, Some(3e6))), (none, none), (none, sum(1, None)), (sum(1, Some(2e6)), sum(1, None))]);
    weeks[0].ahead.inexact = sum(2, Some(5e6));
    let Chart { wide, narrow } = draw(&weeks).expect("a chart");
    for text in [
        "<title>9 Mar to 16 Mar: $4.00M; $1.00M cliffs + $3.00M linear; plus up to 2 unlocks ($5.00M) with an inexact date</title>",
        "<title>16 Mar to 23 Mar: nothing scheduled</title>",
        "<title>23 Mar to 30 Mar: value unknown; linear of unknown value</title>",
        "<title>30 Mar to 6 Apr: at least $2.00M; $2.00M cliffs + linear of unknown value</title>",
    ] {
        assert!(wide.contains(text) && narrow.contains(text), "{text}: {wide}");
    }
    // Both axes have a name. The axis has its unit, each week its date, and each bar its total as text.
    for text in [
        ">USD per week</text>",
        ">first day of the week</text>",
        ">$2M</text>",
        ">$4M</text>",
        ">?</text>",
        ">9 Mar</text>",
        ">30 Mar</text>",
    ] {
        assert!(wide.contains(text), "{text}: {wide}");
    }
    // The cliffs are on top of the linear unlocks.
    let rect = |class: &str| -> [f64; 4] {
        let rest = wide.split(&format!("<rect class=\"{class}\" ")).nth(1).expect("a bar");
        let value =
            |name: &str| rest.split(&format!("{name}=\"")).nth(1).and_then(|text| text.split('"').next()).expect("a value");
        ["x", "y", "width", "height"].map(|name| value(name).parse().expect("a number"))
    };
    let ([x, top, width, above], [below_x, middle, below_width, below]) = (rect("s-cliff"), rect("s-linear"));
    assert_eq!((x, width), (below_x, below_width));
    assert!((top + above - middle).abs() < 0.11 && (below / above - 3.0).abs() < 0.01, "{top} {above} {middle} {below}");
}

/// The pointer, a touch, and the keyboard show the same values, and they need no script.
#[test]
fn values_of_each_week_are_reachable_by_keyboard() {
    let weeks = weeks(&vec![(sum(1, Some(1e6)), sum(1, Some(3e6))); 13]);
    let Chart { wide, narrow } = draw(&weeks).expect("a chart");
    for svg in [wide, narrow] {
        assert_eq!(svg.matches("<g class=\"bar\" tabindex=\"0\" role=\"img\" aria-label=\"").count(), 13, "{svg}");
        assert_eq!(svg.matches("<g class=\"values\" aria-hidden=\"true\"><text class=\"strong\"").count(), 13, "{svg}");
        assert!(!svg.contains("<script") && !svg.contains("style="), "{svg}");
    }
}

#[test]
fn chart_without_known_values_is_not_drawn() {
    let none = UnlockSum::default();
    assert!(draw(&[]).is_none() && draw(&weeks(&[(none, sum(1, None)), (none, none)])).is_none());
    let drawn =
        draw(&weeks(&[(sum(1, Some(f64::NAN)), sum(1, Some(f64::INFINITY))), (sum(1, Some(5.0)), none)])).expect("a chart");
    assert!(!drawn.wide.contains("NaN") && !drawn.wide.contains("\"inf"), "{}", drawn.wide);
}
