//! Ends of linear unlocks, which have no event in the schedule.

use super::*;

/// Adds an event with a linear unlock of one allocation, at 10 tokens per day and 2 USD per token.
fn vesting(world: &mut World, key: &str, allocation: &str, (begin, end): (&str, &str)) {
    let amount = model::days(time(end) - time(begin)) * 10.0;
    let part = serde_json::json!({"allocationName": allocation, "beginDate": time(begin), "endDate": time(end),
                                  "linearAmount": amount, "referencePrice": 2.0});
    let event = serde_json::json!({"unlockDate": time(begin), "linearUnlocks": {"allocationBreakdown": [part]}});
    world.record(key, Record::from_json(Resource::Unlock, &event.to_string()).expect("an event"));
}

fn falls_by_half(scope: &Scope<'_>) -> Truth {
    let at = scope.record.and_then(|tracked| tracked.record.unlock()?.unlock_date.copied()).expect("a date");
    match scope.schedule.rate_step(at).and_then(model::RateStep::factor) {
        Some(factor) if factor <= 0.5 => Truth::True,
        Some(_) => Truth::False,
        None => Truth::Missing(vec!["rateChange"]),
    }
}

fn world() -> World {
    let mut world = World::new(vec![Fake { holds: falls_by_half, ..ahead("Falls", &["30d", "7d"]) }]);
    vesting(&mut world, "a", "Team", ("2026-01-01", "2026-03-31"));
    world
}

#[test]
fn end_fires_at_each_lead_time_and_passes() {
    let mut world = world();
    assert_eq!(world.tick("2026-02-01"), NOTHING);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-01T00:01:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    let body = &world.notified.values().next().expect("a notification").body;
    let rates = body.rate_change.expect("rates");
    assert_eq!((rates.before.map(f64::round), rates.after, rates.price), (Some(10.0), Some(0.0), Some(2.0)));
    assert_eq!(body.event.as_deref(), Some("unlock/arbitrum/a/Team/end"));
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
    assert_eq!(world.tick("2026-04-01"), NOTHING);
    let alert = world.only();
    assert_eq!((alert.resolution, alert.subject.as_str()), (Some(Resolution::Passed), "unlock/arbitrum/a/Team/end"));
}

#[test]
fn end_follows_its_linear_unlock_to_another_date() {
    let mut world = world();
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    vesting(&mut world, "a", "Team", ("2026-01-01", "2026-03-28"));
    assert_eq!(world.tick("2026-03-02"), NOTHING, "the record keeps its identity");
    vesting(&mut world, "a", "Team", ("2026-01-01", "2026-06-30"));
    assert_eq!(world.tick("2026-03-03"), ["resolved rescheduled out → ops"]);
    // A further segment prolongs the linear unlock.
    let mut world = self::world();
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    vesting(&mut world, "b", "Team", ("2026-03-31", "2026-06-30"));
    assert_eq!(world.tick("2026-03-02"), ["resolved rescheduled out → ops"]);
}

#[test]
fn end_is_removed_only_with_its_linear_unlock_and_its_date() {
    let mut world = world();
    vesting(&mut world, "b", "Seed", ("2026-01-01", "2026-03-31"));
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"], "two ends at one instant are one change of the release");
    world.tokens[0].records.retain(|tracked| tracked.key.as_str() != "a");
    assert_eq!(world.tick("2026-03-02"), NOTHING, "the release still ends then");
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    world.tokens[0].records.clear();
    world.unlock("c", "2026-05-01", 1e6);
    assert_eq!(world.tick("2026-03-25"), ["resolved removed → ops"]);
    assert_eq!(world.alerts.len(), 1);
}

#[test]
fn ends_that_meet_keep_their_alerts() {
    let mut world = world();
    world.rules[0].holds = |_| Truth::True;
    vesting(&mut world, "b", "Seed", ("2026-02-10", "2026-03-29"));
    world.tokens[0].records.iter().for_each(|tracked| assert!(tracked.record.unlock().is_some()));
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"; 2]);
    vesting(&mut world, "b", "Seed", ("2026-02-10", "2026-03-31"));
    assert_eq!(world.tick("2026-03-02"), NOTHING);
    vesting(&mut world, "b", "Seed", ("2026-02-10", "2026-03-29"));
    assert_eq!(world.tick("2026-03-03"), NOTHING);
    assert_eq!(world.tick("2026-04-01"), ["resolved passed → ops"; 2]);
}

#[test]
fn event_on_the_date_of_an_end_stands_for_it() {
    let mut world = world();
    world.unlock("c", "2026-03-31", 1e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.only().subject, "unlock/arbitrum/c");
    // An event that a correction adds does not end the alert of the end.
    let mut world = self::world();
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    world.unlock("c", "2026-03-31", 1e6);
    assert_eq!(world.tick("2026-03-02"), ["firing lead 30d → ops"], "the event is new");
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"; 2]);
    // A linear unlock that goes on at the same rate ends the change.
    let mut world = self::world();
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    vesting(&mut world, "d", "Treasury", ("2026-03-31", "2026-09-30"));
    assert_eq!(world.tick("2026-03-02"), ["resolved cleared → ops"]);
}
