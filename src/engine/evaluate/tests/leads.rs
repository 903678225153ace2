//! Lead times, and records that move in and out of them.

use super::*;
use model::ClockState;

#[test]
fn each_lead_time_and_the_resolution_notify_once() {
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
fn first_evaluation_notifies_only_the_smallest_lead_time() {
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
fn record_moved_later_notifies_again_at_its_lead_times() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-04-10", 5e6);
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    assert_eq!(world.only().leads, ["30d"]);
    assert_eq!(world.tick("2026-04-03"), ["reminder lead 7d → ops"]);
    world.unlock("a", "2026-04-12", 5e6);
    assert_eq!(world.tick("2026-04-04"), NOTHING, "seven days ahead only tomorrow");
    assert_eq!(world.tick("2026-04-05"), ["reminder lead 7d → ops"], "another date, so another message");
    world.unlock("a", "2026-04-11", 5e6);
    assert_eq!(world.tick("2026-04-06"), NOTHING, "moved closer within a lead time that was sent");
}

#[test]
fn record_that_moves_out_and_back_notifies_again() {
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
fn record_moved_out_of_the_lead_time_returns_as_a_new_episode() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-06-30", 5e6);
    let evaluation = world.evaluate(time("2026-03-26"));
    let notified: Vec<_> = evaluation.notifications.iter().map(|of| (of.body.when.as_deref(), of.body.lead.as_deref())).collect();
    assert_eq!(notified, [(Some("on 30 Jun 2026"), Some("7d"))], "the new date, and the lead time that it left");
    assert_eq!(world.commit(evaluation), ["resolved rescheduled out → ops"]);
    assert_eq!(world.tick("2026-06-23"), ["firing lead 7d → ops"]);
    let episodes: BTreeSet<_> = world.alerts.values().map(|alert| alert.episode).collect();
    assert_eq!(episodes, BTreeSet::from([1, 2]));
}

#[test]
fn tbd_date_matches_no_lead_time_and_resolves_the_alert() {
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
fn month_date_counts_from_its_start_and_passes_at_its_end() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.record("a", unlock_exact(Some("2026-03-16"), Some(5e6), "month"));
    assert_eq!(world.tick("2026-02-21"), NOTHING);
    assert_eq!(world.tick("2026-02-22"), ["firing lead 7d → ops"]);
    let body = &world.notified.values().next().expect("a notification").body;
    assert_eq!(body.when.as_deref(), Some("in March 2026 (~16 Mar; the source confirms only the month)"));
    assert_eq!(world.tick("2026-03-09"), ["reminder lead 7d before 2026-03-16 → ops"]);
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.tick("2026-04-01"), ["resolved passed → ops"]);
    assert_eq!(world.only().due.map(|due| due.precision), Some(Precision::Month));
}

#[test]
fn evaluation_never_goes_behind_the_latest_one() {
    let (noon, latest) = (time("2026-03-09T12:00:00Z"), time("2026-03-09T12:03:00Z"));
    let next = |at: Timestamp| at + TimeDelta::milliseconds(1);
    let state = |is_settled, is_resumed| ClockState { is_settled, is_resumed, ..ClockState::default() };
    let right = state(true, false);
    assert_eq!(evaluation_time(noon, None, (noon, right)), noon);
    assert_eq!(evaluation_time(latest, Some(noon), (latest, right)), latest);
    assert_eq!(evaluation_time(noon, Some(latest), (noon, right)), next(latest), "the clock of another instance was ahead");
    let later = time("2026-03-09T14:00:00Z");
    assert_eq!(evaluation_time(noon, Some(later), (later, right)), next(later), "the cycle began two hours ago");
    let wrong = time("2036-03-09T12:00:00Z");
    assert_eq!(evaluation_time(noon, Some(wrong), (noon, right)), noon, "the latest evaluation used a wrong clock");
    assert_eq!(evaluation_time(noon, Some(wrong), (noon, state(false, false))), next(wrong), "or the current clock is wrong");
    assert_eq!(
        evaluation_time(wrong, Some(noon), (wrong, state(false, true))),
        next(noon),
        "the clocks of this machine disagree"
    );
}

fn in_november(world: &mut World, nominal: &str) {
    world.record("a", unlock_exact(Some(nominal), Some(5e6), "month"));
}

#[test]
fn shortest_lead_time_is_sent_once_more_before_the_nominal_day() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
    in_november(&mut world, "2026-11-16T09:00:00Z");
    assert_eq!(world.tick("2026-10-02"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-10-25"), ["reminder lead 7d → ops"]);
    assert_eq!(world.tick("2026-10-31"), ["reminder lead 1d → ops"]);
    assert_eq!(world.only().recheck_at, Some(time("2026-11-15")));
    assert_eq!(world.tick("2026-11-14T23:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-11-15"), ["reminder lead 1d before 2026-11-16 → ops"]);
    assert_eq!(world.only().leads, ["30d", "7d", "1d", "1d before 2026-11-16"]);
    assert_eq!(world.only().recheck_at, Some(time("2026-12-01")));
    assert_eq!(world.tick("2026-11-15T00:01:00Z"), NOTHING);
    let unconfirmed = world.evaluate(time("2026-11-17"));
    assert_eq!(unconfirmed.notifications, []);
    assert_eq!(world.tick("2026-12-01"), ["resolved passed → ops"]);
}

#[test]
fn nominal_day_needs_no_second_reminder_if_one_covers_it() {
    // The first possible day is the nominal one.
    let mut world = World::new(vec![ahead("Big", &["7d", "1d"])]);
    in_november(&mut world, "2026-11-01");
    assert_eq!(world.tick("2026-10-31"), ["firing lead 1d → ops"]);
    assert_eq!(world.tick("2026-11-01"), NOTHING);
    // The alert fired between the two instants.
    let mut world = World::new(vec![ahead("Big", &["7d", "1d"])]);
    in_november(&mut world, "2026-11-16");
    assert_eq!(world.tick("2026-11-10"), ["firing lead 1d → ops"]);
    assert_eq!(world.tick("2026-11-15"), NOTHING);
    // Both instants passed during downtime.
    let mut world = World::new(vec![ahead("Big", &["30d", "1d"])]);
    in_november(&mut world, "2026-11-16");
    assert_eq!(world.tick("2026-10-10"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-11-15T12:00:00Z"), ["reminder lead 1d → ops"]);
    assert_eq!(world.tick("2026-11-15T12:01:00Z"), NOTHING);
    // The nominal day passed during downtime.
    let mut world = World::new(vec![ahead("Big", &["1d"])]);
    in_november(&mut world, "2026-11-16");
    assert_eq!(world.tick("2026-10-31"), ["firing lead 1d → ops"]);
    assert_eq!(world.tick("2026-11-17"), NOTHING);
}

#[test]
fn nominal_day_that_moves_later_in_its_month_has_a_reminder_again() {
    let mut world = World::new(vec![ahead("Big", &["1d"])]);
    in_november(&mut world, "2026-11-16");
    assert_eq!(world.tick("2026-10-31"), ["firing lead 1d → ops"]);
    assert_eq!(world.tick("2026-11-15"), ["reminder lead 1d before 2026-11-16 → ops"]);
    in_november(&mut world, "2026-11-15");
    assert_eq!(world.tick("2026-11-15T01:00:00Z"), NOTHING);
    in_november(&mut world, "2026-11-20");
    assert_eq!(world.tick("2026-11-16"), NOTHING);
    assert_eq!(world.tick("2026-11-19"), ["reminder lead 1d before 2026-11-20 → ops"]);
}
