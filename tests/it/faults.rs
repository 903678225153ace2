//! "Nothing there" and "could not ask" never look alike: for each fault of the source no false removal, one alert, one recovery.

use std::time::Duration;

use cliffwatch::model::{
    Endpoint, Resource,
    wire::{FundingRound, InvestorItem},
};
use cliffwatch::service::faults::Fault;

use crate::support::{Setup, TestApp, lines, time};

/// Runs a day of ticks under a fault, then a well one; nothing may be lost, one alert and one recovery may be told.
async fn check(name: &str, fault: Fault) {
    let setup = Setup { config: "[delivery]\ntimeout = \"2s\"\n".into(), ..Setup::default() };
    let mut app = TestApp::with(setup).await;
    app.turn().await;
    let before = records(&app).await;

    app.faults.set("", fault);
    let mut told = Vec::new();
    for hour in ["03", "06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        app.tick().await;
        app.deliver().await;
        told.extend(app.hook.take());
        if hour == "12" {
            app.restart().await;
        }
    }
    let lines_told = lines(&told);
    assert_eq!(told.len(), 1, "{name}: one alert for one fault, got {lines_told:#?}");
    assert_eq!((&told[0]["type"], &told[0]["data"]["status"]), (&"source".into(), &"firing".into()), "{name}: {lines_told:#?}");
    assert_eq!(records(&app).await, before, "{name}: no record is lost or changed");

    app.faults.clear();
    // Breakers and back-off after a refused key are over by then.
    app.at("2026-03-02T06:00:00Z");
    app.tick().await;
    app.deliver().await;
    let told = app.hook.take();
    let lines_told = lines(&told);
    assert_eq!(told.len(), 1, "{name}: one recovery, got {lines_told:#?}");
    assert_eq!(told[0]["data"]["status"], "resolved", "{name}: {lines_told:#?}");
    assert_eq!(records(&app).await, before, "{name}");
    app.at("2026-03-02T12:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "{name}: nothing after the recovery");
}

/// Keys of everything in the snapshot.
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
    a_server_error: Fault::status(500),
    unavailable: Fault::status(503),
    a_refused_key: Fault::status(401),
    too_many_requests: Fault::too_many(120),
    an_answer_that_is_cut: Fault::Cut(40),
    a_web_page: Fault::Html,
    garbage: Fault::Garbage,
    an_empty_body: Fault::EmptyBody,
    status_false: Fault::StatusFalse,
    a_bare_payload: Fault::Bare,
    a_gzip_bomb: Fault::GzipBomb(18 << 20),
    a_redirect: Fault::Redirect("http://127.0.0.1:9/elsewhere".into()),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_never_comes() {
    let setup = Setup::default();
    let app = TestApp::with(Setup { config: String::new(), ..setup }).await;
    app.turn().await;
    app.faults.set("/v5/unlock/events/alpha", Fault::Hang);
    app.at("2026-03-01T06:00:00Z");
    let begin = std::time::Instant::now();
    let told = app.turn().await;
    assert!(begin.elapsed() < Duration::from_secs(60), "every wait is bounded");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("source SourceTrouble"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_answers_where_there_was_data_are_trouble_and_remove_nothing() {
    check("empty", Fault::Emptied).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_missing_removes_nothing() {
    let app = TestApp::with(Setup { config: String::new(), ..Setup::default() }).await;
    app.turn().await;
    let before = records(&app).await;
    app.faults.set("/v5/unlock/events/alpha", Fault::PageMissing(1));
    for hour in ["06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        app.tick().await;
        app.deliver().await;
    }
    assert_eq!(records(&app).await, before);
    let told = lines(&app.hook.take());
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("source SourceTrouble"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_another_order_or_twice_are_no_trouble_and_no_change() {
    for fault in [Fault::Reversed, Fault::Doubled] {
        let app = TestApp::start().await;
        app.turn().await;
        let before = records(&app).await;
        app.faults.set("/v5/unlock", fault.clone());
        app.at("2026-03-01T06:00:00Z");
        let told = app.turn().await;
        if fault == Fault::Reversed {
            assert_eq!(told, [""; 0], "{fault:?}");
        }
        assert_eq!(records(&app).await, before, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_source_is_down_what_time_brings_is_told() {
    let app = TestApp::start().await;
    app.turn().await;
    app.faults.set("", Fault::status(500));
    app.at("2026-03-13T12:00:00Z");
    let told = app.turn().await;
    assert_eq!(told.iter().filter(|line| line.starts_with("alert.reminder BigCliffAhead alpha")).count(), 1, "{told:#?}");
    assert_eq!(told.iter().filter(|line| line.starts_with("source ")).count(), 1, "{told:#?}");
    assert_eq!(told.len(), 2, "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_credits_last_the_month_and_their_end_is_told() {
    let setup = Setup { config: "[budget]\nmonthly_credits = 12\nreserve = \"0%\"\n".into(), ..Setup::default() };
    let app = TestApp::with(setup).await;
    let first = app.turn().await;
    assert!(first.iter().any(|line| line.starts_with("alert.firing BigCliffAhead")), "first reads are never skipped: {first:#?}");
    let begin = time("2026-03-01T00:00:00Z");
    for tick in 1..100 {
        app.clock.set(begin + chrono::TimeDelta::hours(6 * tick));
        app.tick().await;
    }
    let asked = app.faults.log().len();
    assert!(asked <= 12, "{asked} requests for 12 credits");
    app.deliver().await;
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investor_page_that_failed_is_asked_again_though_the_list_stays_the_same() {
    let app = TestApp::start().await;
    let fund = |latest: &str| InvestorItem {
        investor_id: "fund".to_owned().into(),
        investor_name: "Fund".to_owned().into(),
        latest_funding_date: time(latest).into(),
        ..InvestorItem::default()
    };
    app.edit(|edit| edit.put_investor(&fund("2026-01-01T00:00:00Z")));
    assert_eq!(app.poll(Endpoint::Investors).await.asked, 1, "the first list is the baseline");
    app.edit(|edit| edit.put_investor(&fund("2026-02-20T00:00:00Z")));
    app.faults.set("/v5/fundraising/investors/fund", Fault::status(400));
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.asked, report.failed.len()), (2, 1), "{report}");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.asked, report.failed.len()), (2, 1), "as long as it fails: {report}");
    app.faults.clear();
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.asked, report.failed.len()), (2, 0), "{report}");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.asked, report.unchanged), (1, 1), "then no more: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_whose_amount_comes_later_is_told_once_though_the_list_stays_the_same() {
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
    app.turn().await;
    app.poll(Endpoint::Investors).await;
    app.edit(|edit| {
        edit.put_investor(&fund("2026-02-28T00:00:00Z"))?;
        edit.put_rounds("fund", &[round(None)])
    });
    let mut told = Vec::new();
    for day in 1..12 {
        app.clock.set(time("2026-03-01T00:00:00Z") + chrono::TimeDelta::days(day));
        if day == 4 {
            app.edit(|edit| edit.put_rounds("fund", &[round(Some(5e6))]));
        }
        app.restart().await;
        let report = app.poll(Endpoint::Investors).await;
        assert_eq!(report.asked, if day <= 4 { 2 } else { 1 }, "day {day}: {report}");
        app.deliver().await;
        told.extend(lines(&app.hook.take()));
    }
    assert_eq!(told, ["alert.event BigRound alpha: Seed"]);
}
