//! A version of the source that goes and comes back, under `auto`: another one answers meanwhile, and nothing is told twice for it.

use cliffwatch::{
    model::{Endpoint, wire},
    service::faults::Fault,
};
use serde_json::json;

use crate::support::{Setup, TestApp, cliff, item};

/// A cliff that claims to be committed, which only the newest version shows, and a linear part, which no newer one does.
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

/// What is told of a day, read every six hours.
async fn day(app: &TestApp, day: u32) -> Vec<String> {
    let mut told = Vec::new();
    for hour in [0, 6, 12, 18] {
        app.at(&format!("2026-03-{day:02}T{hour:02}:00:00Z"));
        told.extend(app.turn().await);
    }
    told
}

fn asked(app: &TestApp, path: &str) -> usize {
    app.faults.take_log().iter().filter(|request| request.uri.starts_with(path)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_goes_and_comes_back_is_settled_anew_and_nothing_is_told_twice() {
    let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
        edit.put_token(&item("alpha", "ALP"))?;
        edit.put_events("alpha", schedule(900_000.0))
    };
    let app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
    assert_eq!(day(&app, 1).await, [""; 0]);
    app.faults.take_log();
    app.faults.set("/v5/unlock/events/alpha", Fault::status(404));
    assert_eq!(day(&app, 2).await, [""; 0], "an older version answers, and lacks what it never shows");
    assert!(asked(&app, "/v4/unlock/events?") >= 4);
    app.edit(|edit| edit.put_events("alpha", schedule(700_000.0)));
    assert_eq!(day(&app, 3).await, [""; 0]);
    assert!(asked(&app, "/v5/unlock/events/alpha") <= 1, "the newest is tried once a day");
    app.faults.clear();
    let told = [day(&app, 4).await, day(&app, 5).await].concat();
    assert_eq!(told.len(), 1, "what the newest shows again, once: {told:#?}");
    assert!(told[0].starts_with("alert.event ScheduleChanged alpha: "), "{told:#?}");
    assert_eq!(app.poll(Endpoint::UnlockEvents).await.changes, []);
    let versions = app.faults.take_log();
    assert!(versions.iter().any(|request| request.uri.starts_with("/v5/unlock/events/alpha")));
}
