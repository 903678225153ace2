use super::*;

fn time(text: &str) -> Timestamp {
    model::time::parse_timestamp(text).expect("a timestamp")
}

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
fn the_day_on_which_it_would_run_out_follows_from_the_pace() {
    let early = CreditGauge::of(&state(800), None, time("2026-11-21"));
    assert_eq!((early.tone, early.runs_out_at), ("warn", Some(time("2026-11-26"))));
    assert!(early.words == "800 of 1,000" && early.outlook.contains("26 Nov 2026"), "{}", early.outlook);
    let late = CreditGauge::of(&state(500), None, time("2026-11-21"));
    assert_eq!((late.tone, late.runs_out_at), ("good", Some(time("2026-12-11"))));
    let spent = CreditGauge::of(&state(1000), None, time("2026-11-21"));
    assert_eq!(spent.tone, "bad");
}

#[test]
fn what_is_not_known_is_not_told() {
    assert_eq!(CreditGauge::of(&state(300), None, time("2026-11-01T03:00:00Z")).runs_out_at, None, "three hours are no pace");
    assert_eq!(CreditGauge::of(&state(0), None, time("2026-11-21")).runs_out_at, None);
    let open = CreditGauge::of(&CreditState::default(), None, time("2026-11-21"));
    assert!(open.bar.is_none() && open.outlook.contains("no allowance"), "{}", open.outlook);
}

#[test]
fn the_cap_of_the_config_bounds_what_we_spend_ourselves() {
    let state = CreditState { used: Some(900), spent: 100, ..state(0) };
    assert_eq!(CreditGauge::of(&state, Some(400), time("2026-11-21")).words, "100 of 400");
    assert_eq!(CreditGauge::of(&state, Some(4000), time("2026-11-21")).words, "900 of 1,000");
}
