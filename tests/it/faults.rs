//! A failed poll is never treated as an empty response. Each fault of the source causes no removal, one alert, and one resolution.

use std::time::Duration;

use cliffwatch::daemon::cycle::RetryOutcome;
use cliffwatch::model::{
    Endpoint, Resource,
    wire::{FundingRound, InvestorItem},
};
use testkit::faults::Fault;

use crate::it::support::{Setup, TestApp, lines, time};

/// Runs a day of cycles under a fault, then a day without. No record may change, and exactly one alert and its resolution are sent.
async fn check(name: &str, fault: Fault) {
    let setup = Setup { config: "[delivery]\ntimeout = \"2s\"\n".into(), ..Setup::default() };
    let mut app = TestApp::with(setup).await;
    app.tick_and_deliver().await;
    let before = records(&app).await;

    app.faults.set("", fault);
    let mut notified = Vec::new();
    for hour in ["03", "06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        app.tick().await;
        app.deliver().await;
        notified.extend(app.hook.take());
        if hour == "12" {
            app.restart().await;
        }
    }
    let notified_lines = lines(&notified);
    assert_eq!(notified.len(), 1, "{name}: one alert for one fault, got {notified_lines:#?}");
    assert_eq!(
        (&notified[0]["type"], &notified[0]["data"]["status"]),
        (&"source".into(), &"firing".into()),
        "{name}: {notified_lines:#?}"
    );
    assert_eq!(records(&app).await, before, "{name}: no record is lost or changed");

    app.faults.clear();
    // By then the circuit breakers and the backoff after a rejected key have ended.
    app.at("2026-03-02T06:00:00Z");
    app.tick().await;
    app.deliver().await;
    let notified = app.hook.take();
    let notified_lines = lines(&notified);
    assert_eq!(notified.len(), 1, "{name}: one recovery, got {notified_lines:#?}");
    assert_eq!(notified[0]["data"]["status"], "resolved", "{name}: {notified_lines:#?}");
    assert_eq!(records(&app).await, before, "{name}");
    app.at("2026-03-02T12:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "{name}: nothing after the recovery");
}

/// The keys of all records in the snapshot.
async fn records(app: &TestApp) -> Vec<String> {
    let ids = vec!["alpha".into(), "beta".into()];
    let snapshots = app.app().store().tokens(ids, Resource::ALL.to_vec()).await.expect("read");
    snapshots
        .iter()
        .flat_map(|snapshot| {
            snapshot.records.iter().map(|tracked| format!("{} {} {}", snapshot.token.id, tracked.record.resource(), tracked.key))
        })
        .collect()
}

macro_rules! faults {
    ($($name:ident: $fault:expr,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                check(stringify!($name), $fault).await;
            }
        )*
    };
}

faults! {
    server_error: Fault::status(500),
    unavailable: Fault::status(503),
    rejected_key: Fault::status(401),
    too_many_requests: Fault::too_many(120),
    truncated_response: Fault::Cut(40),
    html_page: Fault::Html,
    garbage: Fault::Garbage,
    empty_body: Fault::EmptyBody,
    status_false: Fault::StatusFalse,
    bare_payload: Fault::Bare,
    gzip_bomb: Fault::GzipBomb(18 << 20),
    redirect: Fault::Redirect("http://127.0.0.1:9/elsewhere".into()),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_response() {
    let setup = Setup::default();
    let app = TestApp::with(Setup { config: String::new(), ..setup }).await;
    app.tick_and_deliver().await;
    app.faults.set("/v5/unlock/events/alpha", Fault::Hang);
    app.at("2026-03-01T06:00:00Z");
    let begin = std::time::Instant::now();
    let notified = app.tick_and_deliver().await;
    assert!(begin.elapsed() < Duration::from_secs(60), "the wait is unbounded");
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("source SourceTrouble"), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unexpectedly_empty_responses_are_an_incident_and_remove_nothing() {
    check("empty", Fault::Emptied).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_page_removes_nothing() {
    let app = TestApp::with(Setup { config: String::new(), ..Setup::default() }).await;
    app.tick_and_deliver().await;
    let before = records(&app).await;
    app.faults.set("/v5/unlock/events/alpha", Fault::PageMissing(1));
    for hour in ["06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        app.tick().await;
        app.deliver().await;
    }
    assert_eq!(records(&app).await, before);
    let notified = lines(&app.hook.take());
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("source SourceTrouble"), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reordered_or_duplicate_rows_are_neither_an_incident_nor_a_change() {
    for fault in [Fault::Reversed, Fault::Doubled] {
        let app = TestApp::start().await;
        app.tick_and_deliver().await;
        let before = records(&app).await;
        app.faults.set("/v5/unlock", fault.clone());
        app.at("2026-03-01T06:00:00Z");
        let notified = app.tick_and_deliver().await;
        if fault == Fault::Reversed {
            assert_eq!(notified, [""; 0], "{fault:?}");
        }
        assert_eq!(records(&app).await, before, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reminders_are_sent_while_the_source_is_down() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.faults.set("", Fault::status(500));
    app.at("2026-03-13T12:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.iter().filter(|line| line.starts_with("alert.reminder BigCliffAhead alpha")).count(), 1, "{notified:#?}");
    assert_eq!(notified.iter().filter(|line| line.starts_with("source ")).count(), 1, "{notified:#?}");
    assert_eq!(notified.len(), 2, "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn monthly_credits_are_not_exceeded() {
    let setup = Setup { config: "[budget]\nmonthly_credits = 12\nreserve = \"0%\"\n".into(), ..Setup::default() };
    let app = TestApp::with(setup).await;
    let first = app.tick_and_deliver().await;
    assert!(first.iter().any(|line| line.starts_with("alert.firing BigCliffAhead")), "baselines are never skipped: {first:#?}");
    let begin = time("2026-03-01T00:00:00Z");
    for tick in 1..100 {
        app.clock.set(begin + chrono::TimeDelta::hours(6 * tick));
        app.tick().await;
    }
    let requested = app.faults.log().len();
    assert!(requested <= 12, "{requested} requests for 12 credits");
    app.deliver().await;
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_investor_page_is_retried_although_the_list_is_unchanged() {
    let app = TestApp::start().await;
    let fund = |latest: &str| InvestorItem {
        investor_id: "fund".to_owned().into(),
        investor_name: "Fund".to_owned().into(),
        latest_funding_date: time(latest).into(),
        ..InvestorItem::default()
    };
    app.edit(|edit| edit.put_investor(&fund("2026-01-01T00:00:00Z")));
    assert_eq!(app.poll(Endpoint::Investors).await.requested, 1, "the first list is the baseline");
    app.edit(|edit| edit.put_investor(&fund("2026-02-20T00:00:00Z")));
    app.faults.set("/v5/fundraising/investors/fund", Fault::status(400));
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.failed.len()), (2, 1), "{report}");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.failed.len()), (2, 1), "while it fails: {report}");
    app.faults.clear();
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.failed.len()), (2, 0), "{report}");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.unchanged), (1, 1), "after a success: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn funding_amount_added_later_is_notified_once() {
    let rules = "[[rule]]\nalert = \"BigRound\"\non = \"funding\"\nwhen = \"totalAmountRaisedinThatRound >= 1000000\"\n\
        annotations = { summary = \"{{ roundName }}\" }\n";
    let mut app = TestApp::with(Setup { rules: rules.into(), ..Setup::default() }).await;
    let fund = |latest: &str| InvestorItem {
        investor_id: "fund".to_owned().into(),
        latest_funding_date: time(latest).into(),
        ..InvestorItem::default()
    };
    let round = |amount: Option<f64>| -> FundingRound {
        serde_json::from_value(serde_json::json!({"tokenId": "alpha", "roundName": "Seed", "fundingDate": "2026-02-28T00:00:00Z",
            "totalAmountRaisedinThatRound": amount, "valuation": 9e7, "pricePerToken": 1.0, "isLeadInvestor": true}))
        .expect("a round")
    };
    app.edit(|edit| edit.put_investor(&fund("2026-01-01T00:00:00Z")));
    app.tick_and_deliver().await;
    app.poll(Endpoint::Investors).await;
    app.edit(|edit| {
        edit.put_investor(&fund("2026-02-28T00:00:00Z"))?;
        edit.put_rounds("fund", &[round(None)])
    });
    let mut notified = Vec::new();
    for day in 1..12 {
        app.clock.set(time("2026-03-01T00:00:00Z") + chrono::TimeDelta::days(day));
        if day == 4 {
            app.edit(|edit| edit.put_rounds("fund", &[round(Some(5e6))]));
        }
        app.restart().await;
        let report = app.poll(Endpoint::Investors).await;
        assert_eq!(report.requested, if day <= 4 { 2 } else { 1 }, "day {day}: {report}");
        app.deliver().await;
        notified.extend(lines(&app.hook.take()));
    }
    assert_eq!(notified, ["alert.event BigRound alpha: Seed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_feed_probes_a_failing_source_before_the_others_are_retried() {
    let app = TestApp::start().await;
    app.poll(Endpoint::TokenList).await;
    app.faults.set("", Fault::status(500));
    for endpoint in [Endpoint::UnlockEvents, Endpoint::Burn, Endpoint::Buyback] {
        assert_eq!(app.poll(endpoint).await.failed.len(), 2);
    }
    let retry = async || app.app().retry(Endpoint::UnlockEvents, false).await.expect("a cycle");
    let polled = |outcome: RetryOutcome| match outcome {
        RetryOutcome::Polled { report, is_probe } => (report.requested, report.failed.len(), is_probe),
        RetryOutcome::Waits { until } => panic!("waits until {until:?}"),
    };
    assert!(matches!(retry().await, RetryOutcome::Waits { until: Some(_) }), "the breaker is open");
    app.clock.set(app.clock.now() + chrono::TimeDelta::seconds(31));
    assert_eq!(polled(retry().await), (1, 1, true));
    app.faults.clear();
    app.clock.set(app.clock.now() + chrono::TimeDelta::seconds(61));
    assert_eq!(polled(retry().await), (1, 0, true), "the source responds again");
    assert_eq!(polled(retry().await), (1, 0, false));
    assert!(matches!(retry().await, RetryOutcome::Waits { until: None }), "nothing is left to retry");
    app.deliver().await;
    app.hook.take();
}
