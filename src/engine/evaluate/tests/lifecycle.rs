//! How an alert opens, continues, and resolves.

use super::*;

#[test]
fn missing_field_neither_fires_nor_resolves() {
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d", "1d"]) }]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-26"), ["firing lead 7d → ops"]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"], "the unlock is still approaching");
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-30T01:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn removal_resolves_the_alert_only_if_the_resource_was_loaded() {
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
fn alert_stays_open_just_after_a_takeover_although_its_rule_is_gone() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    world.rules.clear();
    world.keeps_removed = true;
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    world.tokens[0].is_watched = false;
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    world.keeps_removed = false;
    assert_eq!(world.tick("2026-03-28"), ["resolved unwatched → ops"]);
}

#[test]
fn resolution_without_a_rule_still_has_its_record() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    world.rules.clear();
    let evaluation = world.evaluate(time("2026-03-26"));
    let body = &evaluation.notifications.first().expect("a resolution").body;
    assert!(body.record.is_some() && body.event.is_some(), "{body:?}");
}

#[test]
fn alert_resolves_when_its_rule_is_gone() {
    type Change = fn(&mut World);
    let ways: [Change; 5] = [
        |world| world.rules.clear(),
        |world| world.rules[0].expires = Some(time("2026-03-26")),
        |world| world.rules[0].covers = |_| false,
        |world| world.rules[0].on = On::Change(Resource::Unlock, None),
        |world| world.tokens[0].is_watched = false,
    ];
    for (at, way) in ways.into_iter().enumerate() {
        let why = if at < 4 { "resolved rule gone → ops" } else { "resolved unwatched → ops" };
        let mut world = World::new(vec![ahead("Big", &["7d"])]);
        world.unlock("a", "2026-03-31", 5e6);
        world.tick("2026-03-25");
        way(&mut world);
        assert_eq!(world.tick("2026-03-26"), [why]);
        assert_eq!(world.tick("2026-03-27"), NOTHING);
    }
}

#[test]
fn expired_rule_does_not_fire() {
    let mut world = World::new(vec![Fake { expires: Some(time("2026-03-25")), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    assert!(world.alerts.is_empty());
}

#[test]
fn for_delays_firing_until_the_condition_lasted() {
    let pending_for = TimeDelta::hours(1);
    let mut world = World::new(vec![Fake { pending_for, holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING);
    assert_eq!((world.only().state, world.only().recheck_at), (AlertState::Pending, Some(time("2026-03-25T01:00:00Z"))));
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T00:30:00Z"), NOTHING, "an alert that never fired resolves without a notification");
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
    assert_eq!(world.only().recheck_at, Some(time("2026-03-25")), "the next lead time comes before `keep_firing_for` ends");
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING, "no reminder while the condition is false");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:10:00Z"), ["reminder lead 6d → ops"]);
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T01:00:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T02:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn clear_when_keeps_the_alert_firing_until_it_is_true() {
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
fn only_a_higher_level_notifies() {
    let level: fn(&Scope<'_>) -> Option<u32> = |scope| value(scope).filter(|value| *value >= 1e7).map(|_| 0);
    let mut world = World::new(vec![Fake { level, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-26"), ["reminder level 1 → ops+desk"]);
    let former_severities =
        |world: &World| -> Vec<String> { world.only().former_labels.iter().map(|labels| labels["severity"].clone()).collect() };
    assert_eq!(former_severities(&world), ["warning"], "receivers that know the alert by its old labels need them");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().labels["severity"], "warning");
    assert_eq!(former_severities(&world), ["critical"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-28"), NOTHING, "this level was already sent in this episode");
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops+desk"], "the resolution goes to all notified receivers");
}

#[test]
fn resolution_is_not_sent_to_receivers_that_disable_it() {
    let receivers = vec!["quiet".into(), "ops".into(), "gone".into()];
    let mut world = World::new(vec![Fake { receivers, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → quiet+ops"]);
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
}

#[test]
fn alert_without_receivers_is_recorded() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.routes = RouteTree::default();
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → "]);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.only().state, AlertState::Resolved);
}

#[test]
fn clock_that_is_set_back_does_not_repeat_notifications() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-24"), ["firing lead 7d → ops"]);
    assert_eq!(world.tick("2026-03-23T23:59:58Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), NOTHING);
}

#[test]
fn lead_time_with_another_spelling_does_not_notify_again() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.rules = vec![ahead("Big", &["1w"])];
    assert_eq!(world.tick("2026-03-26"), NOTHING);
}

#[test]
fn shorter_lead_time_resolves_alerts_beyond_it() {
    let mut world = World::new(vec![ahead("Big", &["30d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-10");
    world.rules = vec![ahead("Big", &["7d"])];
    assert_eq!(world.tick("2026-03-11"), ["resolved cleared → ops"]);
}

#[test]
fn text_of_a_firing_alert_follows_its_facts_without_a_notification() {
    let mut world = World::new(vec![ahead("Big", &["30d"])]);
    world.unlock("a", "2026-03-20", 5e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    let fired = world.only().clone();
    assert_eq!(world.evaluate(time("2026-03-01T01:00:00Z")).alerts, [], "nothing changed, so nothing is written");
    world.unlock("a", "2026-03-20", 7e6);
    assert_eq!(world.tick("2026-03-02"), NOTHING);
    let alert = world.only();
    assert_eq!(alert.annotations["summary"], "Some(7000000.0) lead 30d");
    assert_eq!((alert.updated_at, &alert.labels), (fired.updated_at, &fired.labels), "no transition");
    assert_eq!(alert.text_at, Some(time("2026-03-02")));
    let sent = world.notified.values().next().expect("a notification");
    assert_eq!(sent.body.annotations["summary"], "Some(5000000.0) lead 30d", "the notification keeps the text that was sent");
    assert_eq!(world.evaluate(time("2026-03-02T01:00:00Z")).alerts, []);
}

#[test]
fn resolution_names_its_outcome() {
    let outcome = |change: &dyn Fn(&mut World), now: &str| {
        let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d"]) }]);
        world.unlock("a", "2026-03-31", 5e6);
        assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
        change(&mut world);
        let evaluation = world.evaluate(time(now));
        let body = &evaluation.notifications.first().expect("a resolution").body;
        assert_eq!(body.annotations.get(model::OUTCOME), evaluation.alerts[0].annotations.get(model::OUTCOME));
        body.annotations[model::OUTCOME].clone()
    };
    assert_eq!(outcome(&|_| {}, "2026-04-01"), "passed");
    assert_eq!(outcome(&|world| world.tokens[0].records.clear(), "2026-03-26"), "removed from the schedule");
    assert_eq!(
        outcome(&|world| world.unlock("a", "2027-03-12", 5e6), "2026-03-26"),
        "moved to 12 Mar 2027, outside the lead time of 7 days"
    );
    assert_eq!(outcome(&|world| world.unlock("a", "2026-03-31", 5e5), "2026-03-26"), "no longer matches");
    assert_eq!(outcome(&|world| world.rules.clear(), "2026-03-26"), "the rule no longer applies");
}
