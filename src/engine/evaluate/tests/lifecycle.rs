//! How an alert begins, holds and ends.

use super::*;

#[test]
fn a_missing_field_neither_raises_nor_ends() {
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d", "1d"]) }]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-26"), ["firing lead 7d → ops"]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"], "the unlock still comes nearer");
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-30T01:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn a_proven_removal_ends_an_alert_only_where_the_resource_was_read() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    world.tokens[0].records.clear();
    world.resources = vec![Resource::Burn];
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    world.resources = vec![Resource::Unlock];
    assert_eq!(world.tick("2026-03-26"), ["resolved removed → ops"]);
}

#[test]
fn an_alert_ends_with_its_rule() {
    type Change = fn(&mut World);
    let ways: [Change; 5] = [
        |world| world.rules.clear(),
        |world| world.rules[0].expires = Some(time("2026-03-26")),
        |world| world.rules[0].covers = |_| false,
        |world| world.rules[0].on = On::Change(Resource::Unlock, None),
        |world| world.tokens[0].is_watched = false,
    ];
    for (at, way) in ways.into_iter().enumerate() {
        let why = if at < 4 { "resolved rule gone → ops" } else { "resolved not watched any more → ops" };
        let mut world = World::new(vec![ahead("Big", &["7d"])]);
        world.unlock("a", "2026-03-31", 5e6);
        world.tick("2026-03-25");
        way(&mut world);
        assert_eq!(world.tick("2026-03-26"), [why]);
        assert_eq!(world.tick("2026-03-27"), NOTHING);
    }
}

#[test]
fn a_rule_that_rests_raises_nothing() {
    let mut world = World::new(vec![Fake { expires: Some(time("2026-03-25")), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    assert!(world.alerts.is_empty());
}

#[test]
fn for_asks_the_condition_to_hold_that_long() {
    let hold = TimeDelta::hours(1);
    let mut world = World::new(vec![Fake { hold, holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING);
    assert_eq!((world.only().state, world.only().recheck_at), (AlertState::Pending, Some(time("2026-03-25T01:00:00Z"))));
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T00:30:00Z"), NOTHING, "what never fired ends in silence");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:40:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:39:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:40:00Z"), ["firing lead 7d → ops"]);
    let firing = world.alerts.values().find(|alert| alert.state == AlertState::Firing).expect("it fires");
    assert_eq!((firing.episode, firing.active_at), (2, time("2026-03-25T00:40:00Z")));
}

#[test]
fn keep_firing_for_bridges_a_gap() {
    let keep = TimeDelta::hours(1);
    let mut world = World::new(vec![Fake { keep, holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d", "6d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-24T23:00:00Z");
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-24T23:30:00Z"), NOTHING);
    assert_eq!(world.only().recheck_at, Some(time("2026-03-25")), "the next lead time comes before the gap counts as the end");
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING, "no reminder of what does not hold now");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:10:00Z"), ["reminder lead 6d → ops"]);
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T01:00:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T02:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn clear_when_keeps_an_alert_until_it_is_well_below() {
    let clears: fn(&Scope<'_>) -> bool = |scope| value(scope).is_some_and(|value| value < 5e5);
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), clears: Some(clears), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 2e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-03-31", 7e5);
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    world.unlock("a", "2026-03-31", 4e5);
    assert_eq!(world.tick("2026-03-27"), ["resolved cleared → ops"]);
    world.unlock("a", "2026-03-31", 7e5);
    assert_eq!(world.tick("2026-03-28"), NOTHING);
}

#[test]
fn a_higher_level_is_told_and_a_lower_one_is_not() {
    let level: fn(&Scope<'_>) -> Option<u32> = |scope| value(scope).filter(|value| *value >= 1e7).map(|_| 0);
    let mut world = World::new(vec![Fake { level, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-26"), ["reminder level 1 → ops+desk"]);
    let called_before =
        |world: &World| -> Vec<String> { world.only().former_labels.iter().map(|labels| labels["severity"].clone()).collect() };
    assert_eq!(called_before(&world), ["warning"], "whoever knows it by its labels has to hear of the old ones too");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().labels["severity"], "warning");
    assert_eq!(called_before(&world), ["critical"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-28"), NOTHING, "it was told of this level in this episode");
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops+desk"], "the end goes to all who heard of it");
}

#[test]
fn the_end_is_not_told_to_receivers_that_do_not_want_it() {
    let receivers = vec!["quiet".into(), "ops".into(), "gone".into()];
    let mut world = World::new(vec![Fake { receivers, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → quiet+ops"]);
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
}

#[test]
fn an_alert_that_nobody_hears_is_recorded() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.routes = RouteTree::default();
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → "]);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.only().state, AlertState::Resolved);
}

#[test]
fn a_clock_set_back_tells_nothing_twice() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-24"), ["firing lead 7d → ops"]);
    assert_eq!(world.tick("2026-03-23T23:59:58Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), NOTHING);
}

#[test]
fn the_same_lead_time_in_other_words_is_not_told_again() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.rules = vec![ahead("Big", &["1w"])];
    assert_eq!(world.tick("2026-03-26"), NOTHING);
}

#[test]
fn a_narrower_window_clears_what_lies_outside() {
    let mut world = World::new(vec![ahead("Big", &["30d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-10");
    world.rules = vec![ahead("Big", &["7d"])];
    assert_eq!(world.tick("2026-03-11"), ["resolved cleared → ops"]);
}
