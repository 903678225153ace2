use super::*;

fn event(parts: &[(&str, &str, &str, f64, &str)]) -> UnlockEvent {
    let parts: Vec<Value> = parts
        .iter()
        .map(|(allocation, begin, end, amount, precision)| {
            serde_json::json!({"allocationName": allocation, "beginDate": begin, "endDate": end, "linearAmount": amount,
                "unlockPrecision": precision})
        })
        .collect();
    serde_json::from_value(serde_json::json!({"unlockDate": "2026-01-01", "linearUnlocks": {"allocationBreakdown": parts}}))
        .expect("an event")
}

#[test]
fn adjoining_segments_with_an_equal_rate_are_one_unlock() {
    let events = [
        (
            "a",
            event(&[
                ("Team", "2026-01-01", "2026-01-11", 100.0, "second"),
                ("Treasury", "2026-01-01", "2026-01-11", 100.0, "second"),
            ]),
        ),
        ("b", event(&[("Team", "2026-01-11", "2026-01-31", 200.0, "month")])),
        ("c", event(&[("Team", "2026-01-31", "2026-02-10", 300.0, "second")])),
        ("d", event(&[("Treasury", "2026-01-12", "2026-01-22", 100.0, "second")])),
    ];
    let unlocks = LinearUnlock::of_schedule(events.iter().map(|(key, event)| (*key, event)));
    let shown: Vec<String> = unlocks
        .iter()
        .map(|of| format!("{} {:?} {:?} {:?} {:?}", of.allocation, of.first_day(), of.piece.amount, of.keys, of.precision))
        .collect();
    assert_eq!(
        shown,
        [
            r#"Team Some(2026-01-01) Some(300.0) Some(("a", "b")) Month"#,
            r#"Treasury Some(2026-01-01) Some(100.0) Some(("a", "a")) Second"#,
            r#"Treasury Some(2026-01-12) Some(100.0) Some(("d", "d")) Second"#,
            r#"Team Some(2026-01-31) Some(300.0) Some(("c", "c")) Second"#,
        ]
    );
}

#[test]
fn emission_that_reaches_the_horizon_has_no_known_end() {
    let ahead: LinearAhead =
        serde_json::from_value(serde_json::json!({"readAt": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z",
        "runs": [{"allocation": "Team", "start": "2026-01-01", "end": "2026-02-01", "perDay": 5.0},
                 {"allocation": "Team", "start": "2026-02-01", "end": "2026-03-01", "perDay": 7.0}]}))
        .expect("an emission");
    let unlocks = LinearUnlock::of_emission(&ahead);
    assert_eq!(
        unlocks.iter().map(|of| (of.is_end_known, of.piece.per_day())).collect::<Vec<_>>(),
        [(true, Some(5.0)), (false, Some(7.0))]
    );
}
