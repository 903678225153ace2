//! The path from a response to a message, under a manual clock.

use cliffwatch::model::supply::Endpoint;
use testkit::faults::Fault;

use crate::it::support::{Setup, TestApp, burn, buyback, cliff, time};

/// The messages of the first cycle: `alpha` has a cliff on 20 March, in 19.5 days.
const FIRST: [&str; 1] =
    ["alert.firing BigCliffAhead alpha: ALP: $2.00M (2.00% of market cap) unlocks on 20 Mar 2026, 12:00 UTC (in 20 days)"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn baseline_reports_no_changes_but_notifies_upcoming_unlocks() {
    let app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await, FIRST);
    assert_eq!(app.tick_and_deliver().await, [""; 0], "the same facts notify nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_lead_time_and_the_resolution_are_notified_once() {
    let app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    let mut notified = Vec::new();
    for hour in 0..24 * 22 {
        app.clock.set(time("2026-03-01T00:00:00Z") + chrono::TimeDelta::hours(hour));
        app.evaluate().await;
        app.deliver().await;
        for body in app.hook.take() {
            let alert = &body["data"]["alerts"][0];
            notified.push(format!(
                "{} {} {}",
                alert["token"]["id"].as_str().unwrap(),
                body["type"].as_str().unwrap(),
                alert["reason"].as_str().unwrap()
            ));
        }
    }
    assert_eq!(
        notified,
        [
            "alpha alert.reminder lead 7d",
            "alpha alert.reminder lead 1d",
            "alpha alert.resolved passed",
            "alpha alert.firing lead 30d",
        ],
        "the second cliff is within 30 days from 21 March on"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reminders_missed_while_down_collapse_into_the_latest() {
    let mut app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await, FIRST);
    app.at("2026-03-19T18:00:00Z");
    app.restart().await;
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(bodies[0]["data"]["alerts"][0]["reason"], "lead 1d");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correction_is_notified_once_across_a_restart_between_poll_and_delivery() {
    let mut app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await, FIRST);
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    app.tick().await;
    app.restart().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    let alert = &bodies[0]["data"]["alerts"][0];
    assert_eq!(alert["change"]["kind"], "rescheduled");
    assert_eq!(alert["change"]["shiftDays"], 5.0);
    assert_eq!(alert["change"]["from"], "2026-05-20T12:00:00Z");
    assert_eq!(alert["record"]["unlockDate"], "2026-05-25T12:00:00Z");
    app.at("2026-03-01T12:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_and_recent_burns_and_buybacks_are_notified() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| {
        edit.add_burn("alpha", burn("2026-03-01T01:00:00Z", 9_000.0))?;
        edit.add_burn("alpha", burn("2026-03-01T02:00:00Z", 3.0))?;
        edit.add_burn("alpha", burn("2025-03-01T02:00:00Z", 90_000.0))?;
        edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))
    });
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 2, "a tiny burn and an old one are not notified: {notified:#?}");
    assert!(notified.iter().any(|line| line.starts_with("alert.event Burned alpha: ")), "{notified:#?}");
    assert!(notified.iter().any(|line| line.starts_with("alert.event BoughtBack beta: ")), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removal_needs_two_complete_responses() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| edit.remove_event("alpha", time("2026-07-20T12:00:00Z")));
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "one response does not prove a removal");
    app.at("2026-03-01T12:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("alert.event ScheduleChanged alpha: "), "{notified:#?}");
    app.at("2026-03-01T18:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_without_most_of_the_schedule_is_held_and_reported() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| edit.put_events("alpha", vec![cliff("2026-03-20T12:00:00Z", "Team", 2_000_000.0, "second")]));
    app.at("2026-03-01T06:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("source SourceTrouble"), "{notified:#?}");
    app.at("2026-03-01T12:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "reported once, and nothing is removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn price_drift_is_not_a_change_but_affects_rules() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let priced = |factor: f64| {
        app.edit(|edit| {
            let mut events = edit.events("alpha")?;
            for event in &mut events {
                let cliffs = event.cliff_unlocks.get_mut().expect("a cliff");
                cliffs.cliff_value = (cliffs.cliff_amount.copied().expect("an amount") * factor).into();
                for part in cliffs.allocation_breakdown.get_mut().expect("parts") {
                    part.cliff_value = (part.cliff_amount.copied().expect("an amount") * factor).into();
                    part.reference_price = factor.into();
                }
            }
            edit.put_events("alpha", events)
        });
    };
    priced(0.97);
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
    priced(0.2);
    app.at("2026-03-01T12:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("alert.resolved BigCliffAhead alpha"), "below the threshold: {notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receiver_down_for_an_hour_gets_everything_once() {
    let app = TestApp::start().await;
    app.hook.respond_always(Some(503));
    app.tick().await;
    let begin = time("2026-03-01T00:00:00Z");
    for minute in 0..60 {
        app.clock.set(begin + chrono::TimeDelta::minutes(minute));
        app.deliver().await;
    }
    assert_eq!(app.hook.accepted(), []);
    app.hook.respond_always(None);
    for minute in 60..600 {
        app.clock.set(begin + chrono::TimeDelta::minutes(minute));
        app.deliver().await;
    }
    let bodies = app.hook.take();
    let cliffs = bodies.iter().filter(|body| body["data"]["alerts"][0]["rule"] == "BigCliffAhead").count();
    assert_eq!(cliffs, 1, "{bodies:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_response_is_not_parsed() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.at("2026-03-01T06:00:00Z");
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!((report.unchanged, report.fresh), (2, 0), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_rules_at_start_keep_the_last_valid_ones_active() {
    let mut app = TestApp::with(Setup::default()).await;
    app.tick_and_deliver().await;
    std::fs::write(app.folder.path().join("rules/test.toml"), "[[rule]]\nalert = \"X\"\non = \"unlok\"\n").expect("written");
    app.restart().await;
    app.at("2026-03-13T12:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert!(notified.iter().any(|line| line.starts_with("alert.reminder BigCliffAhead alpha")), "{notified:#?}");
}

/// Some sources, such as a mirror, do not serve the older API version with segments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_without_segments_is_not_polled_for_them_again() {
    let mut app = TestApp::start().await;
    app.faults.set("/v1/unlock/events", Fault::status(404));
    app.faults.set("/v3/unlock/events", Fault::status(404));
    app.tick_and_deliver().await;
    let before = app.faults.log().len();
    for day in ["2026-03-02", "2026-03-03", "2026-03-04"] {
        app.at(&format!("{day}T12:00:00Z"));
        let report = app.poll(Endpoint::UnlockEvents).await;
        assert_eq!((report.fresh, report.unchanged), (0, report.requested), "{day}: {report}");
        app.restart().await;
    }
    let requested: Vec<String> = app.faults.log().split_off(before).into_iter().map(|seen| seen.uri).collect();
    assert!(requested.iter().any(|uri| uri.contains("/unlock/events")), "{requested:?}");
    assert!(!requested.iter().any(|uri| uri.contains("/v3/") || uri.contains("/v1/unlock")), "{requested:?}");
}
