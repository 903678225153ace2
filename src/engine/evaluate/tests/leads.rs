//! When an alert is told: each lead time, and what moves in and out of its window.

use super::*;

#[test]
fn each_lead_time_is_told_once_and_the_end_too() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-02-01"), NOTHING);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-01T00:01:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"]);
    assert_eq!(world.tick("2026-03-30T23:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
    assert_eq!(world.tick("2026-04-01"), NOTHING);
    let alert = world.only();
    assert_eq!((alert.state, alert.resolution, alert.episode), (AlertState::Resolved, Some(Resolution::Passed), 1));
    assert_eq!(alert.subject, "unlock/arbitrum/a");
}

#[test]
fn first_sight_tells_only_the_smallest_lead_that_holds() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-26"), ["firing lead 7d → ops"]);
    assert_eq!(world.only().leads, ["30d", "7d"]);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"]);
}

#[test]
fn reminders_that_passed_during_downtime_collapse_into_the_latest() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "3d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-30T12:00:00Z"), ["reminder lead 1d → ops"]);
}

#[test]
fn a_record_moved_later_is_told_again_when_its_lead_times_come_again() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-04-10", 5e6);
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    assert_eq!(world.only().leads, ["30d"]);
    assert_eq!(world.tick("2026-04-03"), ["reminder lead 7d → ops"]);
    world.unlock("a", "2026-04-12", 5e6);
    assert_eq!(world.tick("2026-04-04"), NOTHING, "the seven days hold again only tomorrow");
    assert_eq!(world.tick("2026-04-05"), ["reminder lead 7d → ops"], "of another date, so it is another message");
    world.unlock("a", "2026-04-11", 5e6);
    assert_eq!(world.tick("2026-04-06"), NOTHING, "moved nearer within the lead time that was told");
}

#[test]
fn a_lead_time_is_told_again_for_a_record_that_moved_out_and_back() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    for day in ["2026-03-25", "2026-03-27"] {
        world.unlock("a", "2026-04-20", 5e6);
        assert_eq!(world.tick(&format!("{day}T06:00:00Z")), NOTHING);
        world.unlock("a", "2026-03-31", 5e6);
        assert_eq!(world.tick(&format!("{day}T12:00:00Z")), ["reminder lead 7d → ops"], "each time");
    }
    assert_eq!(world.tick("2026-03-28"), NOTHING);
}

#[test]
fn a_record_moved_out_of_the_window_ends_and_comes_back_as_a_new_episode() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-06-30", 5e6);
    let evaluation = world.evaluate(time("2026-03-26"));
    let told: Vec<_> = evaluation.notifications.iter().map(|of| (of.body.when.as_deref(), of.body.lead.as_deref())).collect();
    assert_eq!(told, [(Some("on 30 Jun 2026"), Some("7d"))], "where it went, and which lead time it left");
    assert_eq!(world.commit(evaluation), ["resolved rescheduled out → ops"]);
    assert_eq!(world.tick("2026-06-23"), ["firing lead 7d → ops"]);
    let episodes: BTreeSet<_> = world.alerts.values().map(|alert| alert.episode).collect();
    assert_eq!(episodes, BTreeSet::from([1, 2]));
}

#[test]
fn an_undecided_date_matches_no_window_and_ends_what_fires() {
    let mut world = World::new(vec![ahead("Big", &["7d"]), ahead("Any", &[])]);
    world.record("a", unlock_exact(Some("2026-03-28"), Some(5e6), "To Be Determined"));
    world.record("b", unlock_exact(None, Some(5e6), "second"));
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    world.unlock("a", "2026-03-28", 5e6);
    assert_eq!(world.tick("2026-03-25").len(), 2);
    world.record("a", unlock_exact(Some("2026-03-28"), Some(5e6), "To Be Determined"));
    assert_eq!(world.tick("2026-03-26"), ["resolved rescheduled out → ops"; 2]);
}

#[test]
fn a_month_is_within_seven_days_when_it_begins_within_seven_days_and_over_when_it_ends() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.record("a", unlock_exact(Some("2026-03-16"), Some(5e6), "month"));
    assert_eq!(world.tick("2026-02-21"), NOTHING);
    assert_eq!(world.tick("2026-02-22"), ["firing lead 7d → ops"]);
    let body = &world.told.values().next().expect("a notification").body;
    assert_eq!(body.when.as_deref(), Some("in March 2026"));
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.tick("2026-04-01"), ["resolved passed → ops"]);
    assert_eq!(world.only().due.map(|due| due.precision), Some(Precision::Month));
}
