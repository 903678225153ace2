use super::*;
use testkit::time;

fn event(json: serde_json::Value) -> UnlockEvent {
    serde_json::from_value(json).expect("an event")
}

fn cliff_event(date: &str, name: &str, amount: f64, precision: &str) -> UnlockEvent {
    event(serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount, "allocationBreakdown": [
        {"unlockDate": date, "allocationName": name, "standardAllocationName": "Founder / Team", "cliffAmount": amount, "unlockPrecision": precision}]}}))
}

#[test]
fn cliffs_are_steps_and_inexact_or_linear_unlocks_are_slopes() {
    let linear =
        event(serde_json::json!({"unlockDate": "2026-01-01", "linearUnlocks": {"linearAmount": 100.0, "allocationBreakdown": [
        {"allocationName": "Seed", "linearAmount": 100.0, "beginDate": "2026-01-01", "endDate": "2026-01-11"}]}}));
    let events =
        [cliff_event("2026-02-10T12:00:00Z", "Team", 50.0, "second"), cliff_event("2026-04-15", "Team", 30.0, "month"), linear];
    let curves = curves(&events);
    let names: Vec<(&str, f64)> = curves.iter().map(|curve| (curve.name.as_str(), curve.total())).collect();
    assert_eq!(names, [("Seed", 100.0), ("Team", 80.0)]);
    assert_eq!((curves[0].at(time("2026-01-06")), curves[0].at(time("2025-12-31"))), (50.0, 0.0));
    assert_eq!((curves[1].at(time("2026-02-10")), curves[1].at(time("2026-02-10T12:00:00Z"))), (0.0, 50.0));
    assert!((curves[1].at(time("2026-04-16")) - 65.0).abs() < 1e-9, "half of April");
    let samples = sampled(&curves, time("2026-01-01"), time("2026-06-01"));
    let step = samples.iter().find(|sample| sample.at == time("2026-02-10T12:00:00Z")).expect("a corner");
    assert_eq!((step.before.as_slice(), step.after.as_slice()), (&[100.0, 0.0][..], &[100.0, 50.0][..]));
    for sample in &samples {
        for (curve, after) in curves.iter().zip(&sample.after) {
            assert!((curve.at(sample.at) - after).abs() < 1e-9, "{} at {}", curve.name, sample.at);
        }
    }
}

#[test]
fn recipients_add_up_their_allocations() {
    let part = |name: &str, standard: &str, amount: f64| serde_json::json!({"unlockDate": "2026-02-10", "allocationName": name, "standardAllocationName": standard, "cliffAmount": amount});
    let parts = [
        part("Core", "Founder / Team", 5.0),
        part("Advisors", "Founder / Team", 3.0),
        part("Seed", "Private Investors", 9.0),
        part("Odd", "New", 1.0),
    ];
    let events = [event(
        serde_json::json!({"unlockDate": "2026-02-10", "cliffUnlocks": {"cliffAmount": 18.0, "allocationBreakdown": parts}}),
    )];
    let named = |by| curves_by(by, &events).iter().map(|curve| (curve.name.clone(), curve.total())).collect::<Vec<_>>();
    let expected = [("Seed", 9.0), ("Core", 5.0), ("Advisors", 3.0), ("Odd", 1.0)];
    assert_eq!(named(CurveBy::Allocation), expected.map(|(name, total)| (name.to_owned(), total)));
    let expected = [("Private investors", 9.0), ("Team", 8.0), ("Other", 1.0)];
    assert_eq!(named(CurveBy::Recipient), expected.map(|(name, total)| (name.to_owned(), total)));
    let colors = |by| curves_by(by, &events).iter().enumerate().map(|(at, curve)| curve.color(by, at)).collect::<Vec<_>>();
    assert_eq!((colors(CurveBy::Allocation), colors(CurveBy::Recipient)), (vec![0, 1, 2, 3], vec![1, 0, 11]));
}

#[test]
fn curves_and_samples_are_bounded() {
    let mut events: Vec<UnlockEvent> = (0..3000)
        .map(|i| {
            cliff_event(&(time("2020-01-01") + chrono::TimeDelta::days(i)).to_rfc3339(), &format!("A{}", i % 40), 10.0, "day")
        })
        .collect();
    events.push(cliff_event("2026-01-01", "NaN", -5.0, "day"));
    events.push(event(serde_json::json!({"unlockDate": null, "cliffUnlocks": {"cliffAmount": 5.0}})));
    let curves = curves(&events);
    assert_eq!((curves.len(), curves.last().map(|curve| curve.name.as_str())), (MAX_CURVES + 1, Some("29 others")));
    assert!((curves.iter().map(Curve::total).sum::<f64>() - 30_000.0).abs() < 1e-6);
    let samples = sampled(&curves, time("2020-01-01"), time("2030-01-01"));
    assert_eq!(samples.len(), MAX_SAMPLES + 1);
    assert!((samples.last().expect("a sample").after.iter().sum::<f64>() - 30_000.0).abs() < 1e-6);
}
