//! The known supply of all bundled tokens is complete: linear unlocks that newer API versions omit come from the first version, or from
//! daily emission ahead.

use std::{collections::BTreeMap, path::Path};

use chrono::TimeDelta;
use cliffwatch::{
    daemon::cycle::planned_pass,
    model::{
        config::EndpointVersion,
        rows::TokenSnapshot,
        supply::{Endpoint, KnownSupply, LinearAhead, Resource, SupplyCoverage, Timestamp, TokenId, supply_coverage},
    },
    service::{self, Edit},
};
use serde_json::Value;
use testkit::faults::Fault;

use crate::it::support::{BEGIN, Setup, TestApp, time};

const NEVER: &str = "[[rule]]\nalert = \"Never\"\non = \"unlock\"\nwhen = \"cliffAmount < -1\"\n";

/// The time span of the sums.
const SPAN: TimeDelta = TimeDelta::days(90);

async fn app_with_bundled_data() -> TestApp {
    // Some tokens of the list have no schedule.
    let tokens = schedules().keys().map(|token| token.as_str().to_owned()).collect();
    let setup = Setup { tokens, rules: NEVER.into(), fill: Box::new(|_: &mut Edit<'_>| Ok(())), ..Setup::default() };
    let app = TestApp::with(setup).await;
    app.service.import(service::bundled(), |_| {}).expect("imported");
    app
}

/// The bundled schedules by token.
fn schedules() -> BTreeMap<TokenId, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/unlock-events");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files
        .map(|path| {
            let token = TokenId::from(path.file_stem().expect("a name").to_str().expect("a slug"));
            (token, serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON"))
        })
        .collect()
}

/// The amount of a schedule that is released in a window: cliffs by instant, linear unlocks by their share of the window.
fn released(schedule: &Value, from: Timestamp, until: Timestamp) -> f64 {
    let at = |value: &Value| time(value.as_str().expect("a time"));
    let items = |event: &Value, part: &str| event[part]["allocationBreakdown"].as_array().cloned().unwrap_or_default();
    let mut sum = 0.0;
    for event in schedule.as_array().expect("a list") {
        if event["unlockDate"].is_string() && (from..until).contains(&at(&event["unlockDate"])) {
            sum += items(event, "cliffUnlocks").iter().filter_map(|item| item["cliffAmount"].as_f64()).sum::<f64>();
        }
        for item in items(event, "linearUnlocks") {
            let (begin, end) = (at(&item["beginDate"]), at(&item["endDate"]));
            let seconds = (end.min(until) - begin.max(from)).num_seconds().max(0);
            sum += item["linearAmount"].as_f64().expect("an amount") * seconds as f64 / (end - begin).num_seconds() as f64;
        }
    }
    sum
}

/// The coming supply of a token.
#[derive(Debug)]
struct Supply {
    /// The amount of the records and of daily emission ahead.
    known: f64,
    /// The amount of the complete schedule.
    whole: f64,
    coverage: SupplyCoverage,
}

impl Supply {
    fn is_complete(&self) -> bool {
        (self.known - self.whole).abs() <= 1e-6 * self.whole
    }
}

fn supply_of(snapshot: &TokenSnapshot, schedule: &Value, now: Timestamp) -> Supply {
    let events: Vec<_> = snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock()).collect();
    let records = released(&serde_json::to_value(events).expect("JSON"), now, now + SPAN);
    let header = snapshot.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::UnlockEvents).map(|(_, header)| header);
    let ahead = header.and_then(LinearAhead::of_header);
    let runs = ahead.iter().flat_map(|ahead| &ahead.runs).map(|run| run.amount_between(now, now + SPAN)).sum::<f64>();
    let coverage = supply_coverage(snapshot.feed(Endpoint::UnlockEvents), header);
    Supply { known: records + runs, whole: released(schedule, now, now + SPAN), coverage }
}

/// The coming supply of all bundled tokens.
async fn supplies(app: &TestApp) -> BTreeMap<TokenId, Supply> {
    let schedules = schedules();
    let ids = schedules.keys().cloned().collect();
    let known = app.app().store().tokens(ids, vec![Resource::Unlock]).await.expect("read");
    let now = app.clock.now();
    let of = |snapshot: TokenSnapshot| {
        let supply = supply_of(&snapshot, &schedules[&snapshot.token.id], now);
        (snapshot.token.id, supply)
    };
    known.into_iter().map(of).collect()
}

/// Polls the token list and all schedules. Returns the credits of the schedules. No poll may find a change.
async fn poll(app: &TestApp) -> u64 {
    assert_eq!(app.poll(Endpoint::TokenList).await.changes, []);
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!((report.changes, report.failed, report.held), (Vec::new(), Vec::new(), Vec::new()));
    report.credits.into()
}

async fn incomplete(app: &TestApp) -> Vec<(TokenId, Supply)> {
    supplies(app).await.into_iter().filter(|(_, supply)| !supply.is_complete()).collect()
}

/// The requests of an endpoint, with a version and a token.
fn requests(app: &TestApp, path: &str) -> usize {
    app.faults.log().iter().filter(|request| request.uri.starts_with(path)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn supply_of_all_bundled_tokens_is_complete_for_ninety_days() {
    let app = app_with_bundled_data().await;
    for days in [0, 120, 240, 270] {
        app.clock.set(time(BEGIN) + TimeDelta::days(days));
        poll(&app).await;
        let incomplete = incomplete(&app).await;
        assert!(incomplete.is_empty(), "after {days} days: {incomplete:#?}");
    }
    let supplies = supplies(&app).await;
    let limited = supplies.values().filter(|supply| supply.coverage.linear_until.is_some()).count();
    assert!(limited > 20 && limited < supplies.len(), "{limited} tokens need daily emission ahead");
    for (token, supply) in &supplies {
        assert_eq!(supply.coverage.known, KnownSupply::All, "{token}");
        let until = supply.coverage.linear_until;
        assert!(until.is_none_or(|until| until >= app.clock.now() + SPAN), "{token}: known until {until:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn supply_that_cannot_be_completed_says_so() {
    let app = app_with_bundled_data().await;
    for path in ["/v5/daily-emission", "/v2/daily-emission", "/v1/unlock/events"] {
        app.faults.set(path, Fault::status(404));
    }
    poll(&app).await;
    let missing = incomplete(&app).await;
    assert!(missing.len() >= 5, "the older version omits supply of several tokens: {missing:#?}");
    for (token, supply) in missing {
        assert_eq!(supply.coverage.linear_until, Some(app.clock.now()), "{token}: {supply:?}");
    }
    // The second poll requests daily emission of tokens that the first version should have. Then nothing is requested at each poll.
    app.clock.set(app.clock.now() + TimeDelta::hours(6));
    poll(&app).await;
    let requested = app.faults.log().len();
    app.clock.set(app.clock.now() + TimeDelta::hours(6));
    poll(&app).await;
    let again: Vec<_> = app.faults.log().split_off(requested).into_iter().filter(|request| request.faulted).collect();
    assert_eq!(again, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completed_linear_unlocks_are_no_change() {
    let app = app_with_bundled_data().await;
    app.faults.set("/v1/unlock/events", Fault::status(404));
    poll(&app).await;
    app.clock.set(app.clock.now() + TimeDelta::hours(6));
    poll(&app).await;
    app.clock.set(time(BEGIN) + TimeDelta::days(1));
    poll(&app).await;
    let missing = incomplete(&app).await;
    assert!(missing.is_empty(), "daily emission completes what the first version lacks: {missing:#?}");
    app.faults.clear();
    let before = requests(&app, "/v1/unlock/events");
    for days in [2, 32, 33] {
        app.clock.set(time(BEGIN) + TimeDelta::days(days));
        poll(&app).await;
    }
    assert!(requests(&app, "/v1/unlock/events") >= before + 10, "the first version is tried again after 30 days");
    // The first version lacks the tokens again: known changes of rate stay.
    app.faults.set("/v1/unlock/events", Fault::status(404));
    let mark = app.clock.now();
    let tokens = schedules();
    app.edit(|edit| {
        tokens.keys().try_for_each(|token| edit.put_item(token.as_str(), |item| item.last_updated_date = mark.into()))
    });
    for days in [34, 35, 36] {
        app.clock.set(time(BEGIN) + TimeDelta::days(days));
        poll(&app).await;
        let incomplete = incomplete(&app).await;
        assert!(days == 34 || incomplete.is_empty(), "{days}: {incomplete:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_version_is_read_alone_and_completed_by_auto() {
    let mut app = app_with_bundled_data().await;
    app.restart_with(|config| config.source.unlock_events = EndpointVersion::V(3)).await;
    let credits = poll(&app).await;
    assert_eq!(credits, schedules().len() as u64);
    let others =
        app.faults.log().iter().filter(|request| request.uri.contains("emission") || request.uri.contains("/v1/")).count();
    assert_eq!(others, 0);
    app.restart_with(|config| config.source.unlock_events = EndpointVersion::Auto).await;
    for days in [1, 2] {
        app.clock.set(time(BEGIN) + TimeDelta::days(days));
        poll(&app).await;
    }
    let incomplete = incomplete(&app).await;
    assert!(incomplete.is_empty(), "{incomplete:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_credits_are_the_spent_ones() {
    let mut app = app_with_bundled_data().await;
    // A first poll is assumed to have one page.
    app.restart_with(|config| config.source.page_size = 500).await;
    app.poll(Endpoint::TokenList).await;
    let mut all = Vec::new();
    for days in [0, 1, 8, 10, 11, 20] {
        app.clock.set(time(BEGIN) + TimeDelta::days(days));
        let pass = planned_pass(app.app().deps(), app.clock.now()).await.expect("planned");
        let planned = pass.polls.iter().find(|polls| polls.endpoint == Endpoint::UnlockEvents).expect("scheduled").credits;
        let spent: u64 = app.poll(Endpoint::UnlockEvents).await.credits.into();
        assert_eq!(planned, spent, "day {days}");
        all.push(spent);
    }
    let [first, second, third, ahead, ..] = all[..] else { panic!("{all:?}") };
    let tokens = schedules().len() as u64;
    assert!(first > 2 * tokens && first <= 3 * tokens, "{all:?}");
    assert_eq!((second, third), (tokens, tokens), "nothing but cliffs");
    assert!(ahead > tokens && ahead < 2 * tokens, "daily emission ahead is read again: {all:?}");
    let logged: i64 = app.rows("SELECT sum(credits) FROM poll WHERE endpoint = 'unlock_events'")[0][0].as_i64().expect("a sum");
    assert_eq!(logged, all.iter().sum::<u64>() as i64, "the poll log has all credits");
}
