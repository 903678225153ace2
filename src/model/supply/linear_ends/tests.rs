use super::*;
use crate::parse_timestamp;

fn time(day: &str) -> Timestamp {
    parse_timestamp(day).expect("a day")
}

/// Returns an event with linear unlocks, each with its allocation, its end, and its precision.
fn vesting(key: &str, begin: &str, parts: &[(&str, &str, &str)]) -> Tracked {
    let part = |(name, end, precision): &(&str, &str, &str)| {
        serde_json::json!({"allocationName": name, "beginDate": begin, "endDate": end, "linearAmount": 300.0,
                           "unlockPrecision": precision, "referencePrice": 2.0})
    };
    let parts: Vec<serde_json::Value> = parts.iter().map(part).collect();
    let event = serde_json::json!({"unlockDate": begin, "dataSource": "docs", "linearUnlocks": {"allocationBreakdown": parts}});
    Tracked { key: key.into(), record: Record::from_json(super::super::Resource::Unlock, &event.to_string()).expect("an event") }
}

fn shown(records: &[Tracked], since: &str) -> Vec<String> {
    let text = |end: &LinearEnd| {
        let event = end.tracked.record.unlock().expect("an event");
        assert!(event.is_linear_end() && end.keys.iter().all(LinearEnd::is_key), "{end:?}");
        let keys: Vec<&str> = end.keys.iter().map(RecordKey::as_str).collect();
        let interval = event.interval().expect("a date");
        assert!(LinearEnd::possible_starts(event.unlock_date.copied().expect("a date")).any(|at| at == interval.start));
        format!("{} {keys:?}{}", interval.start.date_naive(), if end.has_event { " with event" } else { "" })
    };
    LinearEnd::all(records, time(since)).iter().map(text).collect()
}

#[test]
fn linear_unlocks_that_end_are_events_with_stable_keys() {
    let team = vesting("a", "2026-01-01", &[("Team", "2026-03-12", "second"), ("Seed", "2026-03-12", "second")]);
    let goes_on = vesting("b", "2026-01-01", &[("Treasury", "2026-02-01", "second")]);
    let treasury = vesting("c", "2026-02-01", &[("Treasury", "2026-04-20", "month")]);
    let ends = [
        "2026-02-01 [\"b/Treasury/end\"] with event",
        "2026-03-12 [\"a/Seed/end\", \"a/Team/end\"]",
        "2026-04-01 [\"c/Treasury/end\"]",
    ];
    let all = [team.clone(), goes_on.clone(), treasury.clone()];
    assert_eq!(shown(&all, "2026-01-01"), ends);
    assert!(all.iter().all(|tracked| !tracked.record.unlock().expect("an event").is_linear_end()));
    assert_eq!(shown(&all, "2026-03-12"), ends[2..], "an end is over at its instant");
    let event = LinearEnd::all(&all, time("2026-03-01"))[0].tracked.record.unlock().cloned().expect("an event");
    assert_eq!((event.reference_price.copied(), event.data_source.as_str()), (Some(2.0), Some("docs")));
    // A correction of the date keeps the key.
    let moved = vesting("a", "2026-01-01", &[("Team", "2026-03-19", "second")]);
    assert_eq!(shown(&[moved], "2026-01-01"), ["2026-03-19 [\"a/Team/end\"]"]);
    let cliff = Tracked {
        key: "d".into(),
        record: Record::from_json(
            super::super::Resource::Unlock,
            r#"{"unlockDate": "2026-03-12", "cliffUnlocks": {"cliffAmount": 1.0}}"#,
        )
        .expect("an event"),
    };
    assert_eq!(shown(&[team, cliff], "2026-01-01"), ["2026-03-12 [\"a/Seed/end\", \"a/Team/end\"] with event"]);
}

#[test]
fn two_ends_of_one_allocation_and_event_have_different_keys_at_all_times() {
    let records = [vesting("a", "2026-01-01", &[("Team", "2026-05-01", "second"), ("Team", "2026-03-01", "second")])];
    let ends = ["2026-03-01 [\"a/Team/end\"]", "2026-05-01 [\"a/Team/end#2\"]"];
    assert_eq!(shown(&records, "2026-01-01"), ends);
    assert_eq!(shown(&records, "2026-04-01"), ends[1..]);
    let apart = [
        vesting("a", "2026-01-01", &[("Team", "2026-02-01", "second")]),
        vesting("b", "2026-03-01", &[("Team", "2026-04-01", "second")]),
    ];
    assert_eq!(shown(&apart, "2026-01-01"), ["2026-02-01 [\"a/Team/end\"]", "2026-04-01 [\"b/Team/end\"]"]);
}
