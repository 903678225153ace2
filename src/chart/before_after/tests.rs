use super::*;
use crate::curve::curves;
use model::wire::UnlockEvent;

fn cliffs(dates: &[&str]) -> Vec<Curve> {
    let event = |date: &&str| -> UnlockEvent {
        serde_json::from_value(
            serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 5.0, "allocationBreakdown": []}}),
        )
        .expect("an event")
    };
    curves(&dates.iter().map(event).collect::<Vec<_>>())
}

/// Returns the x coordinates of the bars of a row.
fn bars(svg: &str, class: &str) -> Vec<f64> {
    let marks = svg.split("<rect ").filter(|mark| mark.starts_with(&format!("class=\"{class}\"")));
    marks.filter_map(|mark| mark.split("x=\"").nth(1)?.split('"').next()?.parse().ok()).collect()
}

#[test]
fn a_later_unlock_has_its_bar_further_right_below() {
    let (was, is) = (cliffs(&["2026-03-01T00:00:00Z"]), cliffs(&["2026-03-06T00:00:00Z"]));
    let svg = draw(&was, &is, Some(5.0)).expect("a picture");
    let (before, after) = (bars(&svg, "was"), bars(&svg, "is"));
    assert_eq!((before.len(), after.len()), (1, 1), "{svg}");
    assert!(before < after, "{before:?} {after:?}");
}

#[test]
fn a_short_shift_of_a_long_series_stays_visible() {
    let dates = |day: u32| {
        (0..48).map(|month| format!("{}-{:02}-{day:02}T00:00:00Z", 2026 + month / 12, month % 12 + 1)).collect::<Vec<_>>()
    };
    let (was, is) = (dates(1), dates(6));
    let view = |dates: &[String]| cliffs(&dates.iter().map(String::as_str).collect::<Vec<_>>());
    let svg = draw(&view(&was), &view(&is), Some(5.0)).expect("a picture");
    assert!(bars(&svg, "was").iter().zip(bars(&svg, "is")).all(|(was, is)| *was < is), "{svg}");
}

#[test]
fn equal_schedules_have_no_picture() {
    let is = cliffs(&["2026-03-01T00:00:00Z"]);
    assert_eq!(draw(&is, &is, None), None);
    assert_eq!(draw(&[], &[], None), None);
}

#[test]
fn removed_unlocks_have_bars_only_before() {
    let svg = draw(&cliffs(&["2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"]), &cliffs(&["2026-03-01T00:00:00Z"]), None)
        .expect("a picture");
    assert_eq!((bars(&svg, "was").len(), bars(&svg, "is").len()), (2, 1), "{svg}");
    assert!(
        svg.starts_with("<svg class=\"before-after\"") && svg.contains("role=\"img\" aria-label=\"Affected unlocks from "),
        "{svg}"
    );
}
