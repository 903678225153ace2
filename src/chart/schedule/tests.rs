use super::*;
use crate::curve::{curves, differs};
use model::wire::UnlockEvent;
use testkit::time;

fn event(date: &str, name: &str, amount: f64) -> UnlockEvent {
    serde_json::from_value(
        serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount, "allocationBreakdown": [
        {"allocationName": name, "standardAllocationName": "Reserve", "cliffAmount": amount}]}}),
    )
    .expect("an event")
}

fn drawn(events: &[UnlockEvent], former: &[UnlockEvent], burns: &[(Timestamp, f64)]) -> Option<String> {
    let (curves, former) = (curves(events), curves(former));
    let cliffs: Vec<Interval> = events.iter().filter_map(UnlockEvent::interval).collect();
    let lanes = vec![
        EventLane { name: "Burned", class: "burn", sizes: burns, format: phrase::amount },
        EventLane { name: "Bought back", class: "buyback", sizes: &[], format: phrase::usd },
    ];
    let next = cliffs.last().map(|next| NextCliff { interval: *next, label: "next: <b>".to_owned(), short: "next".to_owned() });
    let former = Some(former.as_slice()).filter(|former| differs(&curves, former));
    let drawing = ScheduleDrawing {
        by: CurveBy::default(),
        curves: &curves,
        former,
        cliffs: &cliffs,
        next,
        lanes,
        max_supply: Some(1e9),
        now: time("2026-11-22"),
    };
    draw(&drawing).map(|chart| chart.wide)
}

#[test]
fn chart_has_layers_cliffs_former_schedule_and_burns() {
    let events = [event("2026-03-01", "Team", 1e8), event("2026-12-20", "Seed", 2e8)];
    let former = [event("2026-03-01", "Team", 1e8), event("2027-02-20", "Seed", 3e8)];
    let svg = drawn(&events, &former, &[(time("2026-05-01"), 5e6)]).expect("drawn");
    assert_eq!((svg.matches("class=\"layer c").count(), svg.matches("class=\"ghost\"").count()), (2, 1), "{svg}");
    assert!(svg.contains("Burned (max 5.00M)") && !svg.contains("Bought back"), "{svg}");
    assert!(svg.contains("next: &lt;b&gt;") && svg.contains("%</text>"), "{svg}");
    assert_eq!(svg.matches("class=\"cliff\"").count(), 2);
}

#[test]
fn extreme_schedules_are_drawn() {
    assert!(drawn(&[], &[], &[]).is_none());
    let far = [event("1901-01-01", "A", 1.0), event("2999-01-01", "B", 1e300)];
    let svg = drawn(&far, &[], &[(time("1901-01-01"), 1.0)]).expect("drawn");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let past = [event("1901-01-01", "A", 1.0)];
    assert!(drawn(&past, &[], &[]).is_some());
    let many: Vec<UnlockEvent> = (0..5000)
        .map(|i| event(&(time("2020-01-01") + chrono::TimeDelta::days(i)).to_rfc3339(), &format!("A{}", i % 60), 1e6))
        .collect();
    assert!(!drawn(&past, &past, &[]).expect("drawn").contains("ghost"), "an unchanged schedule has no former line");
    let svg = drawn(&many, &past, &[]).expect("drawn");
    assert!(svg.len() < 90_000, "{}", svg.len());
}
