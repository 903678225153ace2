//! Data that the database rejects stops no other data.

use chrono::TimeDelta;
use cliffwatch::model::{
    poll::FailureKind,
    supply::Endpoint,
    wire::{FundingRound, InvestorItem},
};

use crate::it::support::{BEGIN, Setup, TestApp, burn, buyback, cliff, item, lines, time};

/// The text of an incident about rejected data.
const NOT_STORED: &str = "A response cannot be stored";
/// Rejects the records of a token.
fn records_of(token: &str) -> String {
    format!("NEW.token_no = (SELECT no FROM token WHERE id = '{token}')")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_response_fails_its_feed_only() {
    let app = TestApp::start().await;
    app.poll(Endpoint::TokenList).await;
    app.database().reject_rows("INSERT", "record", &records_of("beta"));
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!((report.requested, report.fresh, report.failed.len()), (2, 1, 1), "{report}");
    let (feed, failure) = &report.failed[0];
    assert_eq!((feed.to_string(), failure.kind), ("unlock_events/beta".to_owned(), FailureKind::NotStored));
    assert!(failure.message.contains("rejected by the test"), "{failure}");
    app.deliver().await;
    let sent = lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.contains("BigCliffAhead alpha")), "{sent:#?}");
    assert!(sent.iter().any(|line| line.contains(NOT_STORED)), "{sent:#?}");

    // The wait grows, so that few credits are spent.
    let mut polled = 0;
    for hour in 1..=24 {
        app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
        polled += app.poll(Endpoint::UnlockEvents).await.failed.len();
    }
    assert!((1..=6).contains(&polled), "{polled} polls in 24 slots");
    app.database().accept_rows("record");
    app.at("2026-03-03T00:00:00Z");
    assert_eq!(app.poll(Endpoint::UnlockEvents).await.failed.len(), 0);
    app.deliver().await;
    let sent = lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.contains("responds again")), "{sent:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_row_of_a_list_stops_no_other_row() {
    let app = TestApp::start().await;
    app.database().reject_rows("UPDATE", "token", "NEW.id = 'alpha' AND NEW.item IS NOT NULL");
    let report = app.poll(Endpoint::TokenList).await;
    assert_eq!(report.failed.len(), 1, "{report}");
    assert!(report.failed[0].1.message.contains("the row of alpha in token_list"), "{}", report.failed[0].1);
    assert_eq!(app.rows("SELECT id FROM token WHERE item IS NOT NULL"), [["beta"]]);
    let slots = app.rows("SELECT name FROM job");
    assert_eq!(slots, [["token_list"]], "the slot is done, so the list is not polled again for nothing");
    app.deliver().await;
    assert!(lines(&app.hook.take()).iter().any(|line| line.contains(NOT_STORED)));
    app.database().accept_rows("token");
    assert_eq!(app.poll(Endpoint::TokenList).await.fresh, 1, "the same response is compared again");
    assert_eq!(app.rows("SELECT count(*) FROM token WHERE item IS NOT NULL"), [[2]]);
    app.deliver().await;
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_rename_is_repeated_and_stops_no_other_row() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| {
        edit.clear()?;
        edit.put_token(&item("omega", "ALP"))?;
        edit.put_token(&item("beta", "BET"))?;
        edit.put_token(&item("gamma", "GAM"))?;
        edit.put_item("beta", |item| item.market_cap = 3e8.into())?;
        let months = ["2026-03-20", "2026-04-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];
        let cliffs = months.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2_000_000.0, "second"));
        edit.put_events("omega", cliffs.collect())?;
        edit.put_events("beta", vec![cliff("2026-05-15T00:00:00Z", "Seed", 5_000_000.0, "month")])?;
        for token in ["omega", "beta"] {
            edit.add_burn(token, burn("2026-01-10T00:00:00Z", 5_000.0))?;
            edit.add_buyback(token, buyback("2026-01-11T00:00:00Z", 5_000.0))?;
        }
        Ok(())
    });
    app.database().reject_rows("INSERT", "record", &records_of("omega"));
    app.at("2026-03-01T01:00:00Z");
    let listed = || app.rows("SELECT id FROM token WHERE listed = 1 ORDER BY id");
    for hour in 1..4 {
        app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
        let report = app.poll(Endpoint::TokenList).await;
        assert_eq!(report.failed.len(), 1, "{report}");
        let message = &report.failed[0].1.message;
        assert!(message.contains("the new slug omega of alpha in token_list"), "{message}");
        assert_eq!(listed(), [["alpha"], ["beta"], ["gamma"]], "the token keeps its slug, and other rows are stored");
        app.deliver().await;
        let sent = lines(&app.hook.take());
        assert_eq!(sent.iter().filter(|line| line.contains(NOT_STORED)).count(), usize::from(hour == 1), "{sent:#?}");
        assert_eq!(sent.len(), usize::from(hour == 1), "{sent:#?}");
    }
    app.database().accept_rows("record");
    app.at("2026-03-01T04:00:00Z");
    let report = app.poll(Endpoint::TokenList).await;
    assert_eq!((report.failed.len(), report.changes.len()), (0, 1), "{report}");
    assert_eq!(listed(), [["beta"], ["gamma"], ["omega"]]);
    app.deliver().await;
    let sent = lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.starts_with("alert.event ScheduleChanged omega: ")), "{sent:#?}");
    assert!(sent.iter().all(|line| !line.contains("alert.firing BigCliffAhead")), "reminders continue: {sent:#?}");
}

fn investor(id: &str, latest: &str) -> InvestorItem {
    InvestorItem {
        investor_id: id.to_owned().into(),
        investor_name: id.to_owned().into(),
        latest_funding_date: time(latest).into(),
        ..InvestorItem::default()
    }
}

fn round(token: &str) -> FundingRound {
    serde_json::from_value(serde_json::json!({"tokenId": token, "roundName": "Seed", "fundingDate": "2026-02-28T00:00:00Z",
        "totalAmountRaisedinThatRound": 5e6, "valuation": 9e7, "pricePerToken": 1.0, "isLeadInvestor": true}))
    .expect("a round")
}

/// An app with two investors that polls their list.
async fn app_with_investors() -> TestApp {
    let rules = "[[rule]]\nalert = \"Round\"\non = \"funding\"\nannotations = { summary = \"{{ roundName }}\" }\n".into();
    let app =
        TestApp::with(Setup { rules, config: "[schedule]\ninvestors = \"0 0 * * * *\"\n".into(), ..Setup::default() }).await;
    for name in ["fund", "capital"] {
        app.edit(|edit| edit.put_investor(&investor(name, "2026-01-01T00:00:00Z")));
    }
    app
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_round_stops_no_other_round_and_costs_few_credits() {
    let app = app_with_investors().await;
    app.tick_and_deliver().await;
    app.edit(|edit| {
        edit.put_investor(&investor("fund", "2026-02-28T00:00:00Z"))?;
        edit.put_investor(&investor("capital", "2026-02-28T00:00:00Z"))?;
        edit.put_rounds("fund", &[round("alpha"), round("beta")])?;
        edit.put_rounds("capital", &[round("beta")])
    });
    app.database().reject_rows("INSERT", "record", &format!("NEW.resource = 'funding' AND {}", records_of("alpha")));
    app.at("2026-03-01T01:00:00Z");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.fresh, report.failed.len()), (3, 2, 1), "{report}");
    assert!(report.failed[0].1.message.contains("the page of fund in investors"), "{}", report.failed[0].1);
    app.deliver().await;
    let mut sent = lines(&app.hook.take());
    assert!(sent.iter().any(|line| line.contains(NOT_STORED)), "{sent:#?}");
    sent.retain(|line| line.contains("Round"));
    assert_eq!(sent, ["alert.event Round beta: Seed", "alert.event Round beta: Seed"]);

    // The wait grows, so that few credits are spent, and the incident stays open.
    let mut polled = 0;
    for hour in 2..=25 {
        app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
        polled += app.poll(Endpoint::Investors).await.requested - 1;
        app.deliver().await;
        assert_eq!(lines(&app.hook.take()), [""; 0], "hour {hour}");
    }
    assert!((1..=6).contains(&polled), "{polled} polls in 24 slots");

    app.database().accept_rows("record");
    app.at("2026-03-03T00:00:00Z");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.failed.len()), (2, 0), "{report}");
    app.deliver().await;
    let sent = lines(&app.hook.take());
    assert!(sent.iter().any(|line| line == "alert.event Round alpha: Seed"), "{sent:#?}");
    assert!(sent.len() == 2 && sent.iter().any(|line| line.contains("responds again")), "{sent:#?}");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!((report.requested, report.unchanged), (1, 1), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_investor_of_a_first_list_stops_no_other_investor() {
    let app = app_with_investors().await;
    app.poll(Endpoint::TokenList).await;
    app.database().reject_rows("INSERT", "investor", "NEW.id = 'fund'");
    let stored = || app.rows("SELECT id FROM investor ORDER BY id");
    let report = app.poll(Endpoint::Investors).await;
    assert_eq!(report.failed.len(), 1, "{report}");
    assert!(report.failed[0].1.message.contains("the row of fund in investors"), "{}", report.failed[0].1);
    assert_eq!(stored(), [["capital"]]);
    app.deliver().await;
    assert!(lines(&app.hook.take()).iter().any(|line| line.contains(NOT_STORED)));
    app.database().accept_rows("investor");
    app.at("2026-03-01T01:00:00Z");
    assert_eq!(app.poll(Endpoint::Investors).await.failed.len(), 0);
    assert_eq!(stored(), [["capital"], ["fund"]]);
    app.deliver().await;
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_end_of_a_listing_stops_no_list() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| {
        edit.clear()?;
        edit.put_token(&item("beta", "BET"))?;
        edit.put_token(&item("gamma", "GAM"))
    });
    app.database().reject_rows("UPDATE", "token", "NEW.id = 'alpha' AND NEW.listed = 0");
    app.at("2026-03-01T01:00:00Z");
    let report = app.poll(Endpoint::TokenList).await;
    assert_eq!(report.failed.len(), 1, "{report}");
    assert_eq!(app.rows("SELECT id FROM token WHERE listed = 1 ORDER BY id"), [["alpha"], ["beta"], ["gamma"]]);
    assert_eq!(app.rows("SELECT count(*) FROM job WHERE name = 'token_list' AND slot > 1772323200000"), [[1]]);
    app.database().accept_rows("token");
    app.at("2026-03-01T02:00:00Z");
    assert_eq!(app.poll(Endpoint::TokenList).await.failed.len(), 0);
    assert_eq!(app.rows("SELECT id FROM token WHERE listed = 1 ORDER BY id"), [["beta"], ["gamma"]]);
    app.deliver().await;
    app.hook.take();
}
