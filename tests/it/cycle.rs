//! The path from an answer to a message, with the clock in hand.

use cliffwatch::model::supply::Endpoint;
use cliffwatch::service::faults::Fault;

use crate::support::{Setup, TestApp, burn, buyback, cliff, time};

/// Messages of the first tick: `alpha`'s cliff of 20 March lies 19.5 days ahead.
const FIRST: [&str; 1] =
    ["alert.firing BigCliffAhead alpha: ALP: $2.00M (2.00% of market cap) unlocks on 20 Mar 2026, 12:00 UTC (in 20 days)"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_sight_is_a_baseline_but_what_lies_ahead_is_told_at_once() {
    let app = TestApp::start().await;
    assert_eq!(app.turn().await, FIRST);
    assert_eq!(app.turn().await, [""; 0], "the same facts again tell nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_lead_time_is_told_once_and_the_end_too() {
    let app = TestApp::start().await;
    assert_eq!(app.turn().await.len(), 1);
    let mut told = Vec::new();
    for hour in 0..24 * 22 {
        app.clock.set(time("2026-03-01T00:00:00Z") + chrono::TimeDelta::hours(hour));
        app.evaluate().await;
        app.deliver().await;
        for body in app.hook.take() {
            let alert = &body["data"]["alerts"][0];
            told.push(format!(
                "{} {} {}",
                alert["token"]["id"].as_str().unwrap(),
                body["type"].as_str().unwrap(),
                alert["reason"].as_str().unwrap()
            ));
        }
    }
    assert_eq!(
        told,
        [
            "alpha alert.reminder lead 7d",
            "alpha alert.reminder lead 1d",
            "alpha alert.resolved passed",
            "alpha alert.firing lead 30d",
        ],
        "the second cliff comes within 30 days on 21 March"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reminders_missed_while_down_collapse_into_the_latest() {
    let mut app = TestApp::start().await;
    assert_eq!(app.turn().await, FIRST);
    app.at("2026-03-19T18:00:00Z");
    app.restart().await;
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(bodies[0]["data"]["alerts"][0]["reason"], "lead 1d");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_is_told_once_and_survives_a_restart_between_poll_and_delivery() {
    let mut app = TestApp::start().await;
    assert_eq!(app.turn().await, FIRST);
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
    assert_eq!(app.turn().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn burns_and_buybacks_are_told_when_new_and_recent() {
    let app = TestApp::start().await;
    app.turn().await;
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| {
        edit.add_burn("alpha", burn("2026-03-01T01:00:00Z", 9_000.0))?;
        edit.add_burn("alpha", burn("2026-03-01T02:00:00Z", 3.0))?;
        edit.add_burn("alpha", burn("2025-03-01T02:00:00Z", 90_000.0))?;
        edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))
    });
    let told = app.turn().await;
    assert_eq!(told.len(), 2, "dust and old history are not told: {told:#?}");
    assert!(told.iter().any(|line| line.starts_with("alert.event Burned alpha: ")), "{told:#?}");
    assert!(told.iter().any(|line| line.starts_with("alert.event BoughtBack beta: ")), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_needs_two_complete_answers() {
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(|edit| edit.remove_event("alpha", time("2026-07-20T12:00:00Z")));
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "one answer is no proof");
    app.at("2026-03-01T12:00:00Z");
    let told = app.turn().await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("alert.event ScheduleChanged alpha: "), "{told:#?}");
    app.at("2026-03-01T18:00:00Z");
    assert_eq!(app.turn().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn most_of_a_schedule_vanishing_at_once_is_held_and_the_source_is_reported() {
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(|edit| edit.put_events("alpha", vec![cliff("2026-03-20T12:00:00Z", "Team", 2_000_000.0, "second")]));
    app.at("2026-03-01T06:00:00Z");
    let told = app.turn().await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("source SourceTrouble"), "{told:#?}");
    app.at("2026-03-01T12:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "told once, and nothing is removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_drifts_is_no_change_but_rules_see_it() {
    let app = TestApp::start().await;
    app.turn().await;
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
    assert_eq!(app.turn().await, [""; 0]);
    priced(0.2);
    app.at("2026-03-01T12:00:00Z");
    let told = app.turn().await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("alert.resolved BigCliffAhead alpha"), "below the threshold: {told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_down_for_an_hour_gets_everything_once() {
    let app = TestApp::start().await;
    app.hook.answer_always(Some(503));
    app.tick().await;
    let begin = time("2026-03-01T00:00:00Z");
    for minute in 0..60 {
        app.clock.set(begin + chrono::TimeDelta::minutes(minute));
        app.deliver().await;
    }
    assert_eq!(app.hook.accepted(), []);
    app.hook.answer_always(None);
    for minute in 60..600 {
        app.clock.set(begin + chrono::TimeDelta::minutes(minute));
        app.deliver().await;
    }
    let bodies = app.hook.take();
    let cliffs = bodies.iter().filter(|body| body["data"]["alerts"][0]["rule"] == "BigCliffAhead").count();
    assert_eq!(cliffs, 1, "{bodies:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_answer_is_not_parsed_and_a_confirmed_one_is() {
    let app = TestApp::start().await;
    app.turn().await;
    app.at("2026-03-01T06:00:00Z");
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!((report.unchanged, report.fresh), (2, 0), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_rules_at_a_start_leave_the_last_good_ones_at_work() {
    let mut app = TestApp::with(Setup::default()).await;
    app.turn().await;
    std::fs::write(app.folder.path().join("rules/test.toml"), "[[rule]]\nalert = \"X\"\non = \"unlok\"\n").expect("written");
    app.restart().await;
    app.at("2026-03-13T12:00:00Z");
    let told = app.turn().await;
    assert!(told.iter().any(|line| line.starts_with("alert.reminder BigCliffAhead alpha")), "{told:#?}");
}

/// A source, such as a mirror, that has no older version beside the newer one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_without_segments_is_not_asked_for_them_each_time_and_may_answer_unchanged() {
    let mut app = TestApp::start().await;
    app.faults.set("/v3/unlock/events", Fault::Status { code: 404, retry_after: None });
    app.turn().await;
    let before = app.faults.log().len();
    for day in ["2026-03-02", "2026-03-03", "2026-03-04"] {
        app.at(&format!("{day}T12:00:00Z"));
        let report = app.poll(Endpoint::UnlockEvents).await;
        assert_eq!((report.fresh, report.unchanged), (0, report.asked), "{day}: {report}");
        app.restart().await;
    }
    let asked: Vec<String> = app.faults.log().split_off(before).into_iter().map(|seen| seen.uri).collect();
    assert!(asked.iter().any(|uri| uri.contains("/unlock/events")), "{asked:?}");
    assert!(!asked.iter().any(|uri| uri.contains("/v3/")), "{asked:?}");
}
