//! A benchmark of all pages with ten thousand tokens and a hundred thousand alerts. It prints times and sizes and checks nothing. Run:
//! `cargo test --release -p cliffwatch-web --lib pages_of_ten_thousand -- --ignored --nocapture`.
//! `CLIFFWATCH_SCALE_WORLD=FOLDER` stores the data there for the next run. `CLIFFWATCH_SCALE_PAGES='PATH PATH'` requests only these
//! paths. With `tests/postgres/run` before it, the data is copied to the server first; the CPU time then excludes the server.
//! `CLIFFWATCH_SCALE_COPIED=1` uses the data that an earlier run copied to a server that still runs.

use std::time::Instant;

use chrono::TimeDelta;

use super::*;
use model::{
    Alert, AlertState, Attempt, AttemptOutcome, AttemptRecord, Change, ChangeKind, CreditState, DeliveryId, DeliveryState,
    FailureKind, Findings, Labels, Notification, NotificationKind, PollEntry, PollEntryOutcome, Resource, TokenId,
    notification_id, wire::TokenItem,
};
use store::DatabaseLocation;
use testkit::rows::firing;

const TOKENS: usize = 10_000;
const ALERTS: usize = 100_000;
const FIRING: usize = 3000;
const CHANGES: usize = 20_000;
const DUE: usize = 1000;
/// Dead letters. All further deliveries are delivered.
const DEAD: usize = 300;
/// Hourly cycles in the poll log.
const CYCLES: usize = 480;
/// Polled tokens per cycle. One in a hundred polls fails.
const POLLS_PER_CYCLE: usize = 60;
/// Requests per page. The output shows the median time and the mean CPU time.
const ROUNDS: usize = 25;

pub(super) fn id(token: usize) -> TokenId {
    TokenId::from(format!("token-{token:05}"))
}

pub(super) fn feed(token: usize) -> FeedUpdate {
    let event = |month: i64| {
        let at = now() + TimeDelta::days(month * 30 + i64::try_from(token % 30).unwrap_or(0)) + TimeDelta::minutes(7);
        let size = 1e5 + ((token * 7919 + usize::try_from(month + 12).unwrap_or(0) * 104_729) % 100_000) as f64 * 1e3;
        let part = |who: &str, standard: &str| {
            serde_json::json!({"unlockDate": at, "allocationName": who, "standardAllocationName": standard, "cliffAmount": size / 3.0,
                "cliffValue": size / 3.0, "referencePrice": 1.0, "referencePriceUpdatedTime": at, "unlockPrecision": if token.is_multiple_of(4) { "month" } else { "day" }})
        };
        let parts = [part("Team", "Founder / Team"), part("Investors", "Private Investors"), part("Treasury", "Reserve")];
        let event = serde_json::json!({"unlockDate": at, "tokenName": format!("Token {token}"), "tokenSymbol": format!("T{token}"), "listedMethod": "AI",
            "dataSource": "https://example.org/schedule", "linearUnlocks": null, "latestUpdateDate": now(),
            "cliffUnlocks": {"cliffAmount": size, "cliffValue": size, "valueToMarketCap": size / 1e7, "allocationBreakdown": parts}});
        let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
        Put { key: format!("k{month}").into(), record, is_new_version: true }
    };
    FeedUpdate {
        id: FeedId::of(Endpoint::UnlockEvents, &id(token)),
        state: FeedState {
            baseline_at: Some(now()),
            read_at: Some(now()),
            tried_at: Some(now()),
            cost: 1,
            findings: Findings { by_mark: 2, idle_marks: 7, ..Findings::default() },
            ..FeedState::default()
        },
        put: (-12..24).map(event).collect(),
        removed: Vec::new(),
        header: None,
    }
}

pub(super) fn alert(number: usize) -> Alert {
    let at = now() - TimeDelta::seconds(i64::try_from(number).unwrap_or(0));
    let severity = ["info", "warning", "critical", "info"][number % 4];
    let token = id(number % TOKENS);
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let labels: Labels = [
        label("severity", severity),
        label("alertname", "BigCliffAhead"),
        label("token", token.as_str()),
        label("symbol", &format!("T{number}")),
    ]
    .into();
    let summary = format!("T{number}: $33.15M (2.77% of market cap) to unlock in November 2026");
    Alert {
        subject: format!("unlock/{token}/{number}"),
        state: if number < FIRING { AlertState::Firing } else { AlertState::Event },
        token: Some(token),
        labels,
        annotations: [("summary".to_owned(), summary)].into(),
        notified: vec!["ops".into()],
        leads: vec!["7d".into()],
        ..firing(&format!("al_{number:06}"), at)
    }
}

/// Builds a notification of typical size for an alert, to one receiver.
pub(super) fn notification(alert: &Alert, number: usize) -> Notification {
    let Some(record) = feed(number % TOKENS).put.into_iter().nth(13).map(|put| put.record) else { panic!("a record") };
    let Record::Unlock(record) = record else { panic!("an unlock") };
    let body = serde_json::json!({"id": alert.id, "rule": alert.name, "status": "firing", "reason": "lead 7d", "labels": alert.labels,
        "annotations": alert.annotations, "startsAt": alert.updated_at, "endsAt": null, "token": {"id": alert.token, "name": "Token", "symbol": "T"},
        "resource": "unlock", "record": record, "change": null, "daysUntil": 7.0, "when": "in November 2026", "lead": "7d", "source": {}});
    Notification {
        id: notification_id(&alert.id, "lead 7d"),
        alert: alert.id.clone(),
        kind: NotificationKind::Firing,
        at: alert.updated_at,
        receivers: vec!["ops".into()],
        body: serde_json::from_value(body).expect("a body"),
    }
}

/// Builds the result of the attempt of a delivery.
fn attempt_record(number: usize) -> AttemptRecord {
    let (state, outcome, response) = match number < DUE + DEAD {
        true => (DeliveryState::Dead, AttemptOutcome::Refused, "400 no such channel"),
        false => (DeliveryState::Delivered, AttemptOutcome::Accepted, "ok"),
    };
    let attempt = Attempt { at: now(), took_ms: 15, outcome, status: Some(200), response: response.to_owned() };
    let delivery = DeliveryId(i64::try_from(number).unwrap_or(0) + 1);
    AttemptRecord { delivery, attempt, state, next_attempt_at: None, alerts: Vec::new(), notifications: Vec::new() }
}

pub(super) fn change(number: usize) -> Change {
    let mut change = Change::of(ChangeKind::ALL[number % 6], Resource::Unlock, &id(number % TOKENS));
    change.summary = format!("{number} tranches moved by +3 days");
    change
}

pub(super) fn polls(cycle: usize) -> Vec<PollEntry> {
    let at = now() - TimeDelta::hours(i64::try_from(CYCLES - cycle).unwrap_or(0));
    let poll = |number: usize| {
        let outcome = match number % 100 {
            7 => PollEntryOutcome::Failed(FailureKind::ServerError),
            of if of < 20 => PollEntryOutcome::Fresh,
            _ => PollEntryOutcome::Unchanged,
        };
        PollEntry {
            endpoint: Endpoint::UnlockEvents,
            token: Some(id(number % TOKENS)),
            at,
            took_ms: 120,
            outcome,
            status: Some(200),
            requests: 1,
            credits: 1,
            bytes: 40_000,
            version: Some(5),
            records: 36,
            error: matches!(outcome, PollEntryOutcome::Failed(_))
                .then(|| "/v5/unlock/events: 503 Service Unavailable".to_owned()),
            parse_warnings: Vec::new(),
            parse_warnings_total: 1,
        }
    };
    let whole = |endpoint| PollEntry { endpoint, token: None, outcome: PollEntryOutcome::Fresh, error: None, ..poll(0) };
    let mut polls: Vec<_> = (cycle * POLLS_PER_CYCLE..(cycle + 1) * POLLS_PER_CYCLE).map(poll).collect();
    polls.extend([whole(Endpoint::TokenList), whole(Endpoint::Upcoming)]);
    polls
}

pub(super) fn item(token: usize) -> TokenItem {
    let item = serde_json::json!({"id": id(token).as_str(), "name": format!("Token {token}"), "symbol": format!("T{token}"),
        "listedMethod": "AI", "marketCap": 1e6 * token as f64, "circulatingSupply": 1e9, "maxSupply": 1e10, "hasBurn": false, "hasBuyback": false,
        "websiteUrl": "https://example.org", "lastUpdatedDate": now()});
    serde_json::from_value(item).expect("a token")
}

async fn fill(store: &Store) {
    let tokens: Vec<_> = (0..TOKENS).map(item).collect();
    store.commit(Commit { at: now(), tokens, token_list_complete: true, ..Commit::default() }).await.expect("committed");
    let all: Vec<usize> = (0..TOKENS).collect();
    for some in all.chunks(250) {
        let feeds = some.iter().map(|token| feed(*token)).collect();
        store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
    }
    let all: Vec<usize> = (0..ALERTS).collect();
    for some in all.chunks(5000) {
        let alerts: Vec<Alert> = some.iter().map(|number| alert(*number)).collect();
        let notifications = alerts.iter().zip(some).map(|(alert, number)| notification(alert, *number)).collect();
        store.commit(Commit { at: now(), alerts, notifications, ..Commit::default() }).await.expect("committed");
        let records = some.iter().filter(|number| **number >= DUE).map(|number| attempt_record(*number)).collect();
        store.record_attempts(records).await.expect("recorded");
    }
    let changes = (0..CHANGES).map(change).collect();
    store.commit(Commit { at: now(), changes, ..Commit::default() }).await.expect("committed");
    for cycle in 0..CYCLES {
        store.commit(Commit { at: now(), polls: polls(cycle), ..Commit::default() }).await.expect("committed");
    }
    let spent = (CYCLES * (POLLS_PER_CYCLE + 2)) as u64;
    let period_start = Some(now() - TimeDelta::days(20));
    let credit = CreditState { period_start, limit: Some(100_000), used: Some(spent), spent, ..CreditState::default() };
    store.decide_credit(move |_| (credit, ())).await.expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute and checks nothing"]
async fn pages_of_ten_thousand_tokens() {
    let saved_folder = std::env::var_os("CLIFFWATCH_SCALE_WORLD").map(std::path::PathBuf::from);
    let folder = saved_folder.clone().unwrap_or_else(|| tempfile::tempdir().expect("a folder").keep());
    std::fs::create_dir_all(&folder).expect("a folder");
    let is_filled = folder.join("cliffwatch.db").exists();
    let app = run_in(&folder, None, None).await;
    if !is_filled {
        let started = Instant::now();
        fill(&app.store).await;
        println!("filled in {:.1?}", started.elapsed());
    }
    let app = match std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty()) {
        Some(url) => on_server(app, &folder.join("cliffwatch.db"), &url).await,
        None => app,
    };
    let only = std::env::var("CLIFFWATCH_SCALE_PAGES").unwrap_or_default();
    let paths = [
        "/",
        "/calendar",
        "/calendar?view=list",
        "/calendar?view=list&sort=share",
        "/calendar?token=token-00042",
        "/tokens",
        "/tokens?sort=next",
        "/tokens?sort=market_cap",
        "/tokens?sort=name&offset=9000",
        "/tokens?q=7",
        "/tokens/token-00042",
        "/tokens/token-00042?by=recipient",
        "/tokens/nothing",
        "/compare?token=token-00042&token=token-00043",
        "/changes",
        "/changes?kind=resized&offset=3000",
        "/changes?token=token-00042",
        "/alerts",
        "/alerts?state=firing",
        "/alerts?severity=critical",
        "/alerts?rule=BigCliffAhead&acknowledged=no",
        "/alerts?receiver=ops",
        "/alerts?token=token-00042",
        "/alerts/al_000042",
        "/alerts?state=firing&receiver=ops",
        "/alerts/al_099999",
        "/silences",
        "/silences?matcher=severity%3D%22critical%22",
        "/rules",
        "/rules/new",
        "/rules/playground?rule=BigCliff",
        "/deliveries",
        "/deliveries?state=dead",
        "/deliveries?receiver=ops&state=delivered",
        "/deliveries/42",
        "/digests",
        "/audit",
        "/digests/desk/preview",
        "/login",
        "/metrics",
        "/calendar.ics?token=token-00042",
        "/feed.atom",
        "/-/ready",
        "/api/v1/status",
        "/api/v1/upcoming",
        "/api/v1/upcoming?within=7d&limit=100",
        "/api/v1/tokens",
        "/api/v1/tokens/token-00042",
        "/api/v1/changes",
        "/api/v1/changes?kind=resized",
        "/api/v1/alerts",
        "/api/v1/alerts?state=firing",
        "/api/v1/alerts/al_000042",
        "/api/v1/rules",
        "/api/v1/outbox",
        "/api/v1/outbox?state=dead",
        "/api/v1/outbox/42",
        "/api/v1/silences",
        "/api/v1/silences/preview?matcher=severity%3D%22critical%22",
        "/api/v1/acks",
        "/api/openapi.json",
    ];
    for path in paths.into_iter().filter(|path| only.is_empty() || only.split(' ').any(|of| of == *path)) {
        let mut times = Vec::new();
        let mut spent = 0.0;
        let mut bytes = (0, 0);
        for _ in 0..ROUNDS {
            // The cache of the overview is older than it may be.
            app.clock.pass(TimeDelta::seconds(6));
            let (started, before) = (Instant::now(), cpu_millis());
            bytes.0 = body_bytes(&app, path, LOCAL).await;
            times.push(started.elapsed());
            spent += cpu_millis() - before;
        }
        let (spent, first) = (spent / ROUNDS as f64, times.first().copied().unwrap_or_default());
        bytes.1 = body_bytes(&app, path, &format!("{LOCAL}Accept-Encoding: gzip\r\n")).await;
        times.sort();
        println!(
            "{path:56} {:>9.1?}, first {first:>9.1?}, {spent:>5.1} ms CPU {:>7} bytes, {:>6} compressed",
            times[ROUNDS / 2],
            bytes.0,
            bytes.1
        );
    }
    let started = Instant::now();
    app.store.pulse().await.expect("read");
    println!("pulse {:?}", started.elapsed());
    if saved_folder.is_none() {
        // The data takes half a gigabyte.
        std::fs::remove_dir_all(&folder).ok();
    }
}

/// Copies the data to an empty database server and serves from it.
async fn on_server(app: TestServer, file: &std::path::Path, url: &str) -> TestServer {
    app.store.close().await.expect("closed");
    drop(app);
    let (from, to) =
        (DatabaseLocation::File(file.to_owned()), daemon::database_url::parse_database(url, None).expect("an address"));
    if std::env::var_os("CLIFFWATCH_SCALE_COPIED").is_none() {
        let (started, target) = (Instant::now(), to.clone());
        let copied = tokio::task::spawn_blocking(move || Store::copy(&from, &target, "a benchmark", now(), &mut |_| {}));
        let rows: u64 = copied.await.expect("done").expect("copied").iter().map(|table| table.rows).sum();
        println!("{rows} rows copied to the server in {:.1?}", started.elapsed());
    }
    let store = Store::open_in(to, Access::Own, now()).await.expect("a store");
    run_on(store, file.to_owned(), None, None).await
}

/// Returns the CPU time of all threads of this process.
fn cpu_millis() -> f64 {
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<f64>().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    tasks.filter_map(of).sum::<f64>() / 1e6
}

async fn body_bytes(app: &TestServer, path: &str, headers: &str) -> usize {
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes()).await.expect("sent");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.expect("a response");
    response.len()
}
