use super::*;
use testkit::time;

#[test]
fn time_scale_clamps_to_its_edges() {
    let scale = TimeScale { from: time("2026-01-15"), until: time("2026-04-15"), left: 40.0, width: 900.0 };
    assert_eq!((scale.x(scale.from), scale.x(scale.until)), (40.0, 940.0));
    assert_eq!((scale.x(time("1990-01-01")), scale.x(time("2990-01-01"))), (40.0, 940.0));
    let months: Vec<String> = scale.months(12).iter().map(ToString::to_string).collect();
    assert_eq!(months, ["2026-02-01", "2026-03-01", "2026-04-01"]);
    assert_eq!(scale.mondays().len(), 13);
    let long = TimeScale { from: time("1900-01-01"), until: time("2999-12-31"), ..scale };
    assert!(long.months(8).len() <= 8, "{:?}", long.months(8));
}

#[test]
fn round_steps_reach_the_largest_value() {
    assert_eq!(round_steps(93.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    assert_eq!(round_steps(0.0, 5), [0.0]);
    assert_eq!(round_steps(f64::NAN, 5), [0.0]);
    for most in [1e-9, 0.3, 7.0, 1e12] {
        let steps = round_steps(most, 5);
        assert!(steps.len() <= 7 && steps.last().is_some_and(|last| *last >= most), "{most}: {steps:?}");
    }
}

#[test]
fn ticks_have_no_trailing_zeros() {
    assert_eq!(["$1.50B", "$100.00M", "2.00%", "500", "0.25"].map(tick), ["$1.5B", "$100M", "2%", "500", "0.25"]);
}
