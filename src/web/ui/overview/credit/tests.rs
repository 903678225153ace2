use super::*;
use testkit::time;

fn state(spent: u64) -> CreditState {
    CreditState {
        spent,
        used: Some(spent),
        limit: Some(1000),
        period_start: Some(time("2026-11-01")),
        reset_at: Some(time("2026-12-01")),
        ..CreditState::default()
    }
}

#[test]
fn run_out_day_follows_from_the_rate() {
    let early = CreditGauge::of(&state(800), None, time("2026-11-21"));
    assert_eq!((early.severity, early.runs_out_at), ("warn", Some(time("2026-11-26"))));
    assert!(early.usage == "800 of 1,000" && early.outlook.contains("26 Nov 2026"), "{}", early.outlook);
    let late = CreditGauge::of(&state(500), None, time("2026-11-21"));
    assert_eq!((late.severity, late.runs_out_at), ("good", Some(time("2026-12-11"))));
    let spent = CreditGauge::of(&state(1000), None, time("2026-11-21"));
    assert_eq!(spent.severity, "bad");
}

#[test]
fn unknown_rate_or_limit_is_not_guessed() {
    assert_eq!(CreditGauge::of(&state(300), None, time("2026-11-01T03:00:00Z")).runs_out_at, None, "three hours are too short");
    assert_eq!(CreditGauge::of(&state(0), None, time("2026-11-21")).runs_out_at, None);
    let open = CreditGauge::of(&CreditState::default(), None, time("2026-11-21"));
    assert!(open.bar.is_none() && open.outlook.contains("No credit limit"), "{}", open.outlook);
}

#[test]
fn cap_applies_to_own_credits() {
    let state = CreditState { used: Some(900), spent: 100, ..state(0) };
    assert_eq!(CreditGauge::of(&state, Some(400), time("2026-11-21")).usage, "100 of 400");
    assert_eq!(CreditGauge::of(&state, Some(4000), time("2026-11-21")).usage, "900 of 1,000");
}
