//! Test data, and direct access to the database.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use chrono::TimeDelta;
use serde_json::json;
use tempfile::TempDir;

use crate::sql::Row;
use crate::sql::postgres::{PgSession, driver::wait};
use crate::{Access, DatabaseLocation, LeaseStatus, Opening, PostgresUrl, Store};
use model::wire::{self, ParseWarning};
use model::{
    Alert, AlertBody, AlertState, DeliveryId, Endpoint, FeedId, FeedState, Interval, Notification, NotificationKind, Precision,
    ReceiverName, Record, RecordKey, Resolution, Resource, RuleId, SourceBody, Timestamp, TokenBody, TokenId, alert_id,
    notification_id, *,
};
pub(crate) use testkit::time;

pub(crate) fn now() -> Timestamp {
    time("2026-03-09T00:00:00Z")
}

pub(crate) fn minutes(count: i64) -> TimeDelta {
    TimeDelta::minutes(count)
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a value of the API")
}

pub(crate) fn opening(path: &Path, access: Access) -> Opening {
    Opening { path: path.to_owned(), access, now: now() }
}

pub(crate) fn token_item(id: &str, symbol: &str) -> wire::TokenItem {
    read(json!({
        "id": id, "name": format!("The {id}"), "symbol": symbol, "marketCap": 1_250_000.5, "hasBurn": true, "hasBuyback": null,
        "lastUpdatedDate": "2026-03-01T10:00:00Z", "somethingNew": {"deep": [1, 2]},
    }))
}

pub(crate) fn unlock(date: &str, amount: f64) -> Record {
    Record::Unlock(Arc::new(read(json!({
        "unlockDate": date, "tokenName": "Arbitrum", "tokenSymbol": "ARB", "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount * 2.0, "valueToMarketCap": 2.75, "allocationBreakdown": [
            {"unlockDate": date, "allocationName": "Team", "cliffAmount": amount, "referencePrice": 2.0,
             "referencePriceUpdatedTime": "2026-03-08T00:00:00Z", "unlockPrecision": "second", "unknown": "kept"},
        ]},
    }))))
}

/// Watches all tokens. The group `desk` has those whose slug begins with `s`.
pub(crate) fn all_tokens() -> Watch {
    let groups = [("desk".to_owned(), vec!["s*".to_owned()])].into();
    Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups, ..config::WatchSettings::default() })
        .expect("patterns")
}

pub(crate) fn put(key: &str, record: Record) -> Put {
    Put { key: RecordKey::from(key), record, is_new_version: true }
}

pub(crate) fn schedule(token: &str, put: Vec<Put>) -> FeedUpdate {
    FeedUpdate {
        id: FeedId::of(Endpoint::UnlockEvents, &TokenId::from(token)),
        state: FeedState {
            baseline_at: Some(now()),
            read_at: Some(now()),
            tried_at: Some(now()),
            cost: 1,
            ..FeedState::default()
        },
        put,
        removed: Vec::new(),
        header: None,
    }
}

pub(crate) fn poll(endpoint: Endpoint, token: Option<&str>) -> PollEntry {
    PollEntry {
        endpoint,
        token: token.map(TokenId::from),
        at: now(),
        took_ms: 120,
        outcome: PollEntryOutcome::Fresh,
        status: Some(200),
        requests: 2,
        credits: 2,
        bytes: 5_000,
        version: Some(5),
        records: 3,
        error: None,
        parse_warnings: vec![ParseWarning { path: "[0].x".into(), problem: "expected a number".into() }],
        parse_warnings_total: 7,
    }
}

/// An alert with every field filled.
pub(crate) fn full_alert(subject: &str) -> Alert {
    let rule = RuleId::from("BigCliffAhead");
    Alert {
        id: alert_id(&rule, subject, 3),
        rule,
        name: "Big cliff".into(),
        subject: subject.into(),
        episode: 3,
        state: AlertState::Resolved,
        resolution: Some(Resolution::RescheduledOut),
        token: Some(TokenId::from("arbitrum")),
        resource: Some(Resource::Unlock),
        key: Some(RecordKey::from("2026-03-16")),
        level: Some(1),
        labels: BTreeMap::from([("severity".into(), "critical".into())]),
        annotations: BTreeMap::from([("summary".into(), "ARB: \u{202e}$2M \"soon\"\nsecond line".into())]),
        notified: vec![ReceiverName::from("ops"), ReceiverName::from("desk")],
        leads: vec!["7d".into(), "1d".into()],
        former_labels: Vec::new(),
        members: Vec::new(),
        active_at: now(),
        starts_at: Some(now() + minutes(1)),
        ends_at: Some(now() + minutes(2)),
        false_since: Some(now() + minutes(3)),
        due: Interval::of(time("2026-03-16T13:00:00.123456Z"), Precision::Second),
        recheck_at: Some(now() + minutes(4)),
        text_at: Some(now() + minutes(5)),
        updated_at: now() + minutes(5),
    }
}

pub(crate) fn firing(subject: &str, token: Option<&str>) -> Alert {
    let mut alert = full_alert(subject);
    alert.state = AlertState::Firing;
    alert.resolution = None;
    alert.ends_at = None;
    alert.token = token.map(TokenId::from);
    alert
}

pub(crate) fn notification(alert: &Alert, transition: &str, receivers: &[&str]) -> Notification {
    Notification {
        id: notification_id(&alert.id, transition),
        alert: alert.id.clone(),
        kind: NotificationKind::Firing,
        at: now(),
        receivers: receivers.iter().map(|name| ReceiverName::from(*name)).collect(),
        body: AlertBody {
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            token: Some(TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() }),
            resource: Some(Resource::Unlock),
            record: Some(json!({"unlockDate": "2026-03-16T13:00:00Z", "cliffUnlocks": {"cliffValue": 1.5}})),
            days_until: Some(7.0),
            when: Some("on 16 Mar 2026".into()),
            lead: Some("7d".into()),
            series: vec![
                SeriesPoint { at: now(), amount: 28_156_190.476_190_403, precision: Precision::Month },
                SeriesPoint { at: now() + minutes(1), amount: 1.5, precision: Precision::Second },
            ],
            source: SourceBody { polled_at: Some(now()), ..SourceBody::default() },
            ..AlertBody::firing(alert.id.clone(), "BigCliffAhead", transition, now())
        },
    }
}

pub(crate) fn at(commit: Commit) -> Commit {
    Commit { at: now(), ..commit }
}

pub(crate) async fn notify(store: &Store, subject: &str, receivers: &[&str]) -> Vec<DueDelivery> {
    let alert = firing(subject, Some("arbitrum"));
    let notifications = vec![notification(&alert, "firing", receivers)];
    store.commit(at(Commit { alerts: vec![alert], notifications, ..Commit::default() })).await.expect("committed");
    let mut found = Vec::new();
    for receiver in receivers {
        let due = store.due(ReceiverName::from(*receiver), now(), 100).await.expect("read");
        found.extend(
            due.into_iter().filter(|delivery| delivery.notifications[0].alert == alert_id(&"BigCliffAhead".into(), subject, 3)),
        );
    }
    found
}

pub(crate) fn tried(delivery: DeliveryId, at: Timestamp, state: DeliveryState, next: Option<Timestamp>) -> AttemptRecord {
    AttemptRecord {
        delivery,
        attempt: Attempt { at, took_ms: 15, outcome: AttemptOutcome::Retry, status: Some(503), response: "busy".into() },
        state,
        next_attempt_at: next,
        alerts: Vec::new(),
        notifications: Vec::new(),
    }
}

/// Returns all rows of all tables as text, except the poll log, which grows with each poll, and the lease.
pub(crate) fn dump(store: &Store) -> BTreeMap<String, Vec<String>> {
    let names = if server().is_some() {
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT IN ('poll', 'lease')"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'poll'"
    };
    let row = |row: &Row<'_>| (0..).map_while(|at| Some(format!("{:?}|", row.get_ref(at).ok()?))).collect::<String>();
    let text = |row: &Row<'_>| row.get::<String>(0).expect("a text");
    let tables = rows(store, names, text);
    let dumped = tables.into_iter().map(|table| {
        // The counter that tells pages to read again.
        let counter = if table == "meta" { "WHERE key <> 'facts'" } else { "" };
        let mut found = rows(store, &format!("SELECT * FROM {table} {counter}"), row);
        found.sort();
        (table, found)
    });
    dumped.collect()
}

/// Runs a query on the database directly.
pub(crate) fn rows<T: Send + 'static>(store: &Store, sql: &str, read: impl Fn(&Row<'_>) -> T + Send + 'static) -> Vec<T> {
    let sql = sql.to_owned();
    let queried = store
        .read("read the database directly", move |from| crate::codec::all(&mut from.prepare(&sql)?, [], |row| Ok(read(row))));
    wait(queried, Duration::from_secs(60)).expect("answered").expect("read")
}

/// Runs a statement on the database directly.
pub(crate) fn change(store: &Store, sql: &str) {
    let sql = sql.to_owned();
    let changed = store.act("change the database directly", move |to| Ok(to.execute(&sql, [])?));
    wait(changed, Duration::from_secs(60)).expect("answered").expect("changed");
}

pub(crate) fn count(store: &Store, table: &str) -> i64 {
    rows(store, &format!("SELECT count(*) FROM {table}"), |row| row.get(0).expect("a number")).remove(0)
}

/// Returns the URL of the test server, if the environment sets it. Otherwise the tests use files.
pub(crate) fn server() -> Option<String> {
    std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// Returns whether a test that only applies to files should run.
pub(crate) fn applies_to_files(what: &str) -> bool {
    let on_server = server().is_some();
    if on_server {
        println!("skipped on PostgreSQL: {what}");
    }
    !on_server
}

/// Returns a database with a separate schema for a test directory. `None` without a test server.
pub(crate) fn server_place(directory: &Path) -> Option<Arc<PostgresUrl>> {
    let url = server()?;
    let name = directory.file_name().expect("a name").to_string_lossy().to_lowercase();
    let schema: String = format!("t{name}").chars().filter(char::is_ascii_alphanumeric).collect();
    let all = Arc::new(PostgresUrl::from_url(&url, None).expect("a place"));
    let session = PgSession::open(&all, &Arc::default()).expect("the server of the tests");
    session.simple(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).expect("a schema");
    let between = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{between}options=-csearch_path%3D{schema}");
    Some(Arc::new(PostgresUrl::from_url(&url, None).expect("a place")))
}

/// Opens a test database as its active owner. Expires the lease of an earlier instance.
pub(crate) async fn owned(directory: &TempDir) -> Store {
    owned_at(directory.path()).await
}

/// Like [`owned`], with the path of the directory.
pub(crate) async fn owned_at(directory: &Path) -> Store {
    let Some(place) = server_place(directory) else {
        return Store::open(opening(&directory.join("cliffwatch.db"), Access::Own)).await.expect("the store opens");
    };
    let store = Store::open_in(DatabaseLocation::Server(place), Access::Own, now()).await.expect("the store opens");
    change(&store, "UPDATE lease SET renewed_at = '-infinity'");
    assert_eq!(store.maintain_lease("a test").await.expect("maintained"), LeaseStatus::Active);
    store
}
