//! An API version that is temporarily unavailable, with `unlock_events = "auto"`: an older version is used meanwhile.

use cliffwatch::model::{Endpoint, wire};
use serde_json::json;
use testkit::faults::Fault;

use crate::it::support::{Setup, TestApp, cliff, item};

/// A cliff with a committed claim, which only the newest version contains, and a linear part, which only older versions contain.
fn schedule(claim: f64) -> Vec<wire::UnlockEvent> {
    let day = "2026-05-20T12:00:00Z";
    let mut event = serde_json::to_value(cliff(day, "Team", 2_000_000.0, "second")).expect("JSON");
    event["cliffUnlocks"]["allocationBreakdown"][0]["committedClaim"] =
        json!({"amount": claim, "value": claim, "timestamp": 1_779_000_000});
    event["linearUnlocks"] = json!({"linearAmount": 1_000.0, "linearValue": 1_000.0, "dailyAmount": 10.0, "dailyValue": 10.0,
        "referencePrice": 1.0, "allocationBreakdown": [{"allocationName": "Rewards", "standardAllocationName": "Community",
        "linearAmount": 1_000.0, "dailyAmount": 10.0, "durationOfRate": 100, "beginDate": day, "endDate": "2026-08-28T12:00:00Z",
        "unlockPrecision": "second"}]});
    vec![serde_json::from_value(event).expect("an event")]
}

/// Runs a day with cycles every six hours. Returns the notifications.
async fn day(app: &TestApp, day: u32) -> Vec<String> {
    let mut notified = Vec::new();
    for hour in [0, 6, 12, 18] {
        app.at(&format!("2026-03-{day:02}T{hour:02}:00:00Z"));
        notified.extend(app.tick_and_deliver().await);
    }
    notified
}

fn requested(app: &TestApp, path: &str) -> usize {
    app.faults.take_log().iter().filter(|request| request.uri.starts_with(path)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn returning_api_version_is_used_again_without_repeated_notifications() {
    let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
        edit.put_token(&item("alpha", "ALP"))?;
        edit.put_events("alpha", schedule(900_000.0))
    };
    let app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
    assert_eq!(day(&app, 1).await, [""; 0]);
    app.faults.take_log();
    app.faults.set("/v5/unlock/events/alpha", Fault::status(404));
    assert_eq!(day(&app, 2).await, [""; 0], "fields missing in the older version are not a change");
    assert!(requested(&app, "/v4/unlock/events?") >= 4);
    app.edit(|edit| edit.put_events("alpha", schedule(700_000.0)));
    assert_eq!(day(&app, 3).await, [""; 0]);
    assert!((1..=4).contains(&requested(&app, "/v5/unlock/events/alpha")), "the newest version is tried again at each slot");
    app.faults.clear();
    let notified = [day(&app, 4).await, day(&app, 5).await].concat();
    assert_eq!(notified.len(), 1, "the change seen in the newest version, once: {notified:#?}");
    assert!(notified[0].starts_with("alert.event ScheduleChanged alpha: "), "{notified:#?}");
    assert_eq!(app.poll(Endpoint::UnlockEvents).await.changes, []);
    let versions = app.faults.take_log();
    assert!(versions.iter().any(|request| request.uri.starts_with("/v5/unlock/events/alpha")));
}
