use super::*;
use crate::curve::CurveBy;
use crate::curve::curves;
use model::wire::UnlockEvent;
use testkit::time;

const NOW: &str = "2026-03-10T12:00:00Z";

fn event(date: &str, name: &str, amount: f64) -> UnlockEvent {
    serde_json::from_value(
        serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount, "allocationBreakdown": [
        {"unlockDate": date, "allocationName": name, "cliffAmount": amount}]}}),
    )
    .expect("an event")
}

fn series(events: &[UnlockEvent], former: Option<&[Curve]>) -> Option<ScheduleSeries> {
    let curves = curves(events);
    let now = time(NOW);
    schedule_series(&ScheduleDrawing {
        by: CurveBy::default(),
        curves: &curves,
        former,
        cliffs: &[],
        next: None,
        lanes: Vec::new(),
        max_supply: None,
        now,
    })
}

#[test]
fn has_each_step_each_month_and_now() {
    let events = [event("2026-01-16T13:00:00Z", "Team", 10.0), event("2026-06-16T13:00:00Z", "Seed", 30.0)];
    let series = series(&events, None).expect("a series");
    let at =
        |text: &str| series.samples.iter().find(|sample| sample.at == time(text)).map(|s| (s.before.clone(), s.after.clone()));
    // The larger allocation stands first.
    assert_eq!(at("2026-01-16T13:00:00Z"), Some((vec![0.0, 0.0], vec![0.0, 10.0])));
    assert_eq!(at("2026-06-16T13:00:00Z"), Some((vec![0.0, 10.0], vec![30.0, 10.0])));
    assert_eq!(at("2026-05-01T00:00:00Z"), Some((vec![0.0, 10.0], vec![0.0, 10.0])));
    assert_eq!(at(NOW), Some((vec![0.0, 10.0], vec![0.0, 10.0])));
    assert!(series.samples.windows(2).all(|pair| pair[0].at < pair[1].at), "not in the order of time");
    assert_eq!(series.former, []);
}

#[test]
fn has_the_sums_of_the_former_schedule() {
    let former = curves(&[event("2026-04-16T13:00:00Z", "Seed", 30.0)]);
    let series = series(&[event("2026-06-16T13:00:00Z", "Seed", 30.0)], Some(&former)).expect("a series");
    let index = series.samples.iter().position(|sample| sample.at == time("2026-04-16T13:00:00Z")).expect("its step");
    assert_eq!(series.former.get(index), Some(&(0.0, 30.0)));
    assert_eq!(series.samples.get(index).map(|sample| sample.after.clone()), Some(vec![0.0]));
}

#[test]
fn a_schedule_of_many_steps_has_a_bounded_series() {
    let day = |day: i64| (time("2024-01-01") + chrono::TimeDelta::days(day)).to_rfc3339();
    let events: Vec<UnlockEvent> = (0..1500).map(|index| event(&day(index), "Team", 1.0)).collect();
    let series = series(&events, None).expect("a series");
    assert!((24..=MAX_DATES).contains(&series.samples.len()), "{} dates", series.samples.len());
    let last = series.samples.last().map(|sample| sample.after.clone());
    assert_eq!(last, Some(vec![1500.0]));
}

#[test]
fn without_an_amount_there_is_no_series() {
    assert_eq!(series(&[], None), None);
}
