use std::{collections::BTreeMap, fs, path::Path};

use chrono::TimeDelta;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    alert::{AlertBody, AlertState, Notice, NoticeKind, Resolution, SourceBody, TokenBody, alert_id, notice_id},
    change::{AllocationChange, Change, ChangeKind, Fact, FieldChange},
    supply::{AlertId, ContentHash, Interval, Precision, Record},
    wire::{self, Oddity},
};

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

fn now() -> Timestamp {
    time("2026-03-09T00:00:00Z")
}

fn minutes(count: i64) -> TimeDelta {
    TimeDelta::minutes(count)
}

fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a value of the API")
}

fn opening(path: &Path, access: Access) -> Opening {
    Opening { path: path.to_owned(), access, now: now() }
}

async fn owned(directory: &TempDir) -> Store {
    Store::open(opening(&directory.path().join("cliffwatch.db"), Access::Own)).await.expect("the store opens")
}

fn token_item(id: &str, symbol: &str) -> wire::TokenItem {
    read(json!({
        "id": id, "name": format!("The {id}"), "symbol": symbol, "marketCap": 1_250_000.5, "hasBurn": true, "hasBuyback": null,
        "lastUpdatedDate": "2026-03-01T10:00:00Z", "somethingNew": {"deep": [1, 2]},
    }))
}

fn unlock(date: &str, amount: f64) -> Record {
    Record::Unlock(Box::new(read(json!({
        "unlockDate": date, "tokenName": "Arbitrum", "tokenSymbol": "ARB", "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount * 2.0, "valueToMarketCap": 2.75, "allocationBreakdown": [
            {"unlockDate": date, "allocationName": "Team", "cliffAmount": amount, "referencePrice": 2.0,
             "referencePriceUpdatedTime": "2026-03-08T00:00:00Z", "unlockPrecision": "second", "unknown": "kept"},
        ]},
    }))))
}

fn put(key: &str, record: Record) -> Put {
    Put { key: RecordKey::from(key), record, is_new_version: true }
}

fn schedule(token: &str, put: Vec<Put>) -> FeedUpdate {
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

fn poll(endpoint: Endpoint, token: Option<&str>) -> PollEntry {
    PollEntry {
        endpoint,
        token: token.map(TokenId::from),
        at: now(),
        took_ms: 120,
        outcome: "fresh".into(),
        status: Some(200),
        requests: 2,
        credits: 2,
        bytes: 5_000,
        version: Some(5),
        records: 3,
        error: None,
        oddities: vec![Oddity { path: "[0].x".into(), problem: "expected a number".into() }],
        oddities_total: 7,
    }
}

/// An alert with every field filled.
fn full_alert(subject: &str) -> Alert {
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
        told: vec![ReceiverName::from("ops"), ReceiverName::from("desk")],
        leads: vec!["7d".into(), "1d".into()],
        former_labels: Vec::new(),
        members: Vec::new(),
        active_at: now(),
        starts_at: Some(now() + minutes(1)),
        ends_at: Some(now() + minutes(2)),
        false_since: Some(now() + minutes(3)),
        due: Interval::of(time("2026-03-16T13:00:00.123456Z"), Precision::Second),
        recheck_at: Some(now() + minutes(4)),
        updated_at: now() + minutes(5),
    }
}

fn firing(subject: &str, token: Option<&str>) -> Alert {
    let mut alert = full_alert(subject);
    alert.state = AlertState::Firing;
    alert.resolution = None;
    alert.ends_at = None;
    alert.token = token.map(TokenId::from);
    alert
}

fn notice(alert: &Alert, transition: &str, receivers: &[&str]) -> Notice {
    Notice {
        id: notice_id(&alert.id, transition),
        alert: alert.id.clone(),
        kind: NoticeKind::Firing,
        at: now(),
        receivers: receivers.iter().map(|name| ReceiverName::from(*name)).collect(),
        body: AlertBody {
            id: alert.id.clone(),
            rule: "BigCliffAhead".into(),
            status: "firing".into(),
            reason: transition.into(),
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            starts_at: now(),
            ends_at: None,
            token: Some(TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() }),
            resource: Some(Resource::Unlock),
            record: Some(json!({"unlockDate": "2026-03-16T13:00:00Z", "cliffUnlocks": {"cliffValue": 1.5}})),
            change: None,
            days_until: Some(7.0),
            when: Some("on 16 Mar 2026".into()),
            lead: Some("7d".into()),
            event: None,
            former_labels: Vec::new(),
            series: Vec::new(),
            source: SourceBody { polled_at: Some(now()), ..SourceBody::default() },
        },
    }
}

fn at(commit: Commit) -> Commit {
    Commit { at: now(), ..commit }
}

async fn tell(store: &Store, subject: &str, receivers: &[&str]) -> Vec<DueDelivery> {
    let alert = firing(subject, Some("arbitrum"));
    let notices = vec![notice(&alert, "firing", receivers)];
    store.commit(at(Commit { alerts: vec![alert], notices, ..Commit::default() })).await.expect("committed");
    let mut found = Vec::new();
    for receiver in receivers {
        let due = store.due(ReceiverName::from(*receiver), now(), 100).await.expect("read");
        found.extend(
            due.into_iter().filter(|delivery| delivery.notices[0].alert == alert_id(&"BigCliffAhead".into(), subject, 3)),
        );
    }
    found
}

fn tried(delivery: DeliveryId, at: Timestamp, state: DeliveryState, next: Option<Timestamp>) -> AttemptRecord {
    AttemptRecord {
        delivery,
        attempt: Attempt { at, took_ms: 15, outcome: "retry".into(), status: Some(503), answer: "busy".into() },
        state,
        next_attempt_at: next,
        alerts: Vec::new(),
        notices: Vec::new(),
    }
}

/// Every table's rows as text, without the poll and credit logs, which grow with each poll.
fn dump(path: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = Connection::open(path).expect("opens");
    let mut names = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN ('poll', 'credit_log')")
        .expect("prepares");
    let names: Vec<String> = names.query_map([], |row| row.get(0)).expect("queries").map(|name| name.expect("a name")).collect();
    names
        .into_iter()
        .map(|name| {
            let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).expect("prepares");
            let columns = statement.column_count();
            let rows = statement
                .query_map([], |row| {
                    Ok((0..columns).map(|i| format!("{:?}|", row.get_ref(i).expect("a column"))).collect::<String>())
                })
                .expect("queries")
                .map(|row| row.expect("a row"))
                .collect();
            (name, rows)
        })
        .collect()
}

// -- opening --

#[tokio::test]
async fn what_was_committed_is_there_after_reopening() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store
        .commit(at(Commit {
            feeds: vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 10.0))])],
            ..Commit::default()
        }))
        .await
        .expect("committed");
    store.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    assert!(!path.with_extension("db-wal").exists(), "closing moves the WAL into the database");
    let version: i64 =
        Connection::open(&path).expect("opens").pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    assert_eq!(version, open::SCHEMA);

    let store = owned(&directory).await;
    let tokens = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read");
    assert_eq!(tokens[0].records.len(), 1);
    assert_eq!(tokens[0].token.symbol(), "ARB", "a record tells the name of a token that no list named");
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_untouched_with_both_versions_named() {
    let directory = TempDir::new().expect("a directory");
    owned(&directory).await.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    let connection = Connection::open(&path).expect("opens");
    connection.execute("UPDATE meta SET value = '9.8.7' WHERE key = 'program'", []).expect("updated");
    connection.pragma_update(None, "user_version", 99).expect("updated");
    connection.close().expect("closed");
    let bytes = fs::read(&path).expect("read");
    for access in [Access::Own, Access::Beside, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("9.8.7") && text.contains(env!("CARGO_PKG_VERSION")) && text.contains("backup"), "{text}");
    }
    assert_eq!(fs::read(&path).expect("read"), bytes);
}

#[tokio::test]
async fn a_database_of_an_older_program_is_brought_up_to_date_by_its_owner_alone() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    // A database at the schema before the first: ours by its mark, and empty.
    let connection = Connection::open(&path).expect("opens");
    connection.pragma_update(None, "application_id", 0x636c_6677).expect("updated");
    connection.close().expect("closed");
    for access in [Access::Beside, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert!(matches!(error, StoreError::Older { found: 0, .. }), "{error:?}");
    }
    let store = owned(&directory).await;
    assert!(store.feeds().await.expect("read").is_empty());
}

#[tokio::test]
async fn a_second_owner_is_refused_until_the_first_is_gone() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let path = directory.path().join("cliffwatch.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    for name in [&path, &link] {
        let error = Store::open(opening(name, Access::Own)).await.expect_err("refused");
        assert!(matches!(error, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{error:?}");
    }
    store.close().await.expect("closed");
    assert!(matches!(store.feeds().await, Err(StoreError::Closed { .. })));
    assert!(matches!(store.commit(at(Commit::default())).await, Err(StoreError::Closed { .. })));
    store.close().await.expect("closing twice is no error");
    owned(&directory).await.close().await.expect("the lock was released");
}

#[tokio::test]
async fn dropping_the_last_handle_releases_the_database() {
    let directory = TempDir::new().expect("a directory");
    drop(owned(&directory).await);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(opening(&directory.path().join("cliffwatch.db"), Access::Own)).await {
            Ok(_) => break,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_looks_beside_a_running_daemon_and_at_a_closed_database() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    for access in [Access::Read, Access::Beside] {
        assert!(matches!(Store::open(opening(&path, access)).await, Err(StoreError::Missing { .. })));
    }
    assert!(!path.exists(), "looking makes no file");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let beside = Store::open(opening(&path, Access::Read)).await.expect("opens beside the owner");
    assert_eq!(beside.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 1);
    tell(&store, "b", &["ops"]).await;
    assert_eq!(beside.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
    assert!(matches!(beside.commit(at(Commit::default())).await, Err(StoreError::OpenedForReading { .. })));
    beside.close().await.expect("closed");
    store.close().await.expect("closed");
    let closed = Store::open(opening(&path, Access::Read)).await.expect("opens alone");
    assert_eq!(closed.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_refused_and_left_as_it_is() {
    let directory = TempDir::new().expect("a directory");
    let text = directory.path().join("notes.db");
    fs::write(&text, "these are my notes, and they are longer than a header").expect("written");
    let short = directory.path().join("short.db");
    fs::write(&short, "hi").expect("written");
    let foreign = directory.path().join("foreign.db");
    let connection = Connection::open(&foreign).expect("opens");
    connection.execute_batch("CREATE TABLE mine (x); PRAGMA user_version = 1").expect("made");
    connection.close().expect("closed");
    for path in [&text, &short, &foreign] {
        let bytes = fs::read(path).expect("read");
        for access in [Access::Own, Access::Beside, Access::Read] {
            let error = Store::open(opening(path, access)).await.expect_err("refused");
            assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");
        }
        assert_eq!(fs::read(path).expect("read"), bytes);
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_a_clear_error() {
    let error = Store::open(opening(Path::new("/nowhere/at/all/x.db"), Access::Own)).await.expect_err("refused");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere/at/all/x.db"), "{error}");
}

#[test]
fn the_writer_syncs_each_commit_and_checks_keys() {
    let directory = TempDir::new().expect("a directory");
    let opened = open::open(&opening(&directory.path().join("cliffwatch.db"), Access::Own)).expect("opens");
    let writer = opened.writer.expect("a writer");
    for (pragma, wanted) in [("synchronous", 2_i64), ("foreign_keys", 1), ("trusted_schema", 0), ("busy_timeout", 5000)] {
        let got: i64 = writer.pragma_query_value(None, pragma, |row| row.get(0)).expect("a number");
        assert_eq!(got, wanted, "{pragma}");
    }
    let journal: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a word");
    assert_eq!(journal, "wal");
    for reader in &opened.readers {
        assert!(reader.execute("DELETE FROM token", []).is_err(), "a reader cannot write");
    }
    assert!(writer.execute("INSERT INTO meta (key, value) VALUES ('x', x'00')", []).is_err(), "tables are strict");
}

// -- committing --

#[tokio::test]
async fn a_commit_that_fails_inside_leaves_nothing() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let before = dump(store.path());
    let mut clash = full_alert("a");
    // The same rule, subject and episode under another id: no verdict makes that, and the table refuses it.
    clash.id = AlertId::from("al_other");
    let commit = at(Commit {
        polls: vec![poll(Endpoint::UnlockEvents, Some("aptos"))],
        tokens: vec![token_item("aptos", "APT")],
        feeds: vec![schedule("aptos", vec![put("x", unlock("2026-04-01", 1.0))])],
        changes: vec![Change::of(ChangeKind::Added, Resource::Unlock, &"aptos".into())],
        notices: vec![notice(&clash, "firing", &["ops"])],
        alerts: vec![clash],
        ..Commit::default()
    });
    assert!(matches!(store.commit(commit).await, Err(StoreError::Sqlite { .. })));
    assert_eq!(dump(store.path()), before);
    assert!(store.polls(PollFilter { limit: 9, ..PollFilter::default() }).await.expect("read").is_empty());
    tell(&store, "b", &["ops"]).await;
}

#[tokio::test]
async fn the_same_commit_twice_leaves_the_same_rows() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("a", Some("arbitrum"));
    let mut change = Change::of(ChangeKind::Added, Resource::Unlock, &"arbitrum".into());
    change.new = Some(unlock("2026-03-16T13:00:00Z", 10.0));
    let commit = at(Commit {
        polls: vec![poll(Endpoint::UnlockEvents, Some("arbitrum"))],
        tokens: vec![token_item("arbitrum", "ARB")],
        token_list_complete: true,
        feeds: vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 10.0))])],
        changes: vec![change],
        notices: vec![notice(&alert, "firing", &["ops", "desk", "ops"])],
        alerts: vec![alert],
        evaluated_until: Some(now()),
        jobs: vec![("evaluate".into(), now())],
        rule_matches: vec![("BigCliffAhead".into(), now())],
        ..Commit::default()
    });
    let first = store.commit(commit.clone()).await.expect("committed");
    assert_eq!((first.deliveries, first.known_notices, first.changes), (2, 0, 1));
    let rows = dump(store.path());
    let second = store.commit(commit).await.expect("committed");
    assert_eq!((second.deliveries, second.known_notices, second.changes), (0, 1, 0));
    assert_eq!(dump(store.path()), rows);
}

#[tokio::test]
async fn a_known_notice_is_left_alone_also_after_it_was_delivered() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let delivery = tell(&store, "a", &["ops"]).await.remove(0);
    store.record_attempts(vec![tried(delivery.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    assert!(tell(&store, "a", &["ops"]).await.is_empty());
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), None);
}

#[tokio::test]
async fn every_value_comes_back_as_it_went_in() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let state = FeedState {
        baseline_at: Some(now()),
        read_at: Some(now() + minutes(1)),
        tried_at: Some(now() + minutes(2)),
        hash: Some(ContentHash(u128::MAX - 5)),
        mark: Some(now() - minutes(9)),
        stale: true,
        failing_since: Some(now() + minutes(3)),
        missing: vec![("k1".into(), 1), ("k2".into(), 2)],
        held_since: Some(now() + minutes(4)),
        cost: 17,
    };
    let unlocks = vec![
        put("undated", Record::Unlock(Box::new(read(json!({"tokenSymbol": null, "cliffUnlocks": {"cliffAmount": 3.5}}))))),
        put("b", unlock("2026-05-16T13:00:00Z", 20.0)),
        put("a", unlock("2026-03-16T13:00:00.123456Z", 10.25)),
    ];
    let header = json!({"maxSupply": 1e9, "nested": {"x": [null, true, "y"]}});
    let update = FeedUpdate { state: state.clone(), header: Some(header.clone()), ..schedule("arbitrum", unlocks.clone()) };
    let burn = Record::Burn(Box::new(read(json!({"burnDate": "2026-01-01", "amount": 5.0, "burnType": null}))));
    let burns = FeedUpdate {
        id: FeedId::of(Endpoint::Burn, &"arbitrum".into()),
        ..schedule("arbitrum", vec![put("burn", burn.clone())])
    };
    let round =
        Record::Funding(Box::new(read(json!({"tokenId": "arbitrum", "roundName": "Series A", "fundingDate": "2026-02-02"}))));
    let rounds = FeedUpdate { id: FeedId::whole(Endpoint::Investors), ..schedule("arbitrum", vec![put("round", round.clone())]) };
    let (open, mut over) = (firing("open", Some("arbitrum")), full_alert("over"));
    over.updated_at += minutes(60);
    let of_source = firing("source", None);
    let mut change = Change::of(ChangeKind::SeriesShifted, Resource::Unlock, &"arbitrum".into());
    change.key = Some("a".into());
    change.from = Some(Fact::Time(time("2026-03-16T13:00:00.123456Z")));
    change.to = Some(Fact::Amount(0.5));
    (change.shift_days, change.shift_days_min, change.shift_days_max, change.ratio) =
        (Some(4.0), Some(3.5), Some(5.0), Some(2.0));
    change.count = 12;
    change.allocations = vec![AllocationChange { name: "Team".into(), from: Some(Fact::Text("x".into())), ..Default::default() }];
    change.fields = vec![FieldChange { field: "dataSource".into(), from: json!(null), to: json!("paper") }];
    change.summary = "moved".into();
    (change.old, change.new) = (Some(unlock("2026-03-12", 1.0)), Some(unlock("2026-03-16", 1.0)));
    let credit = CreditState {
        used: Some(5),
        limit: Some(1000),
        reset_at: Some(now()),
        reported_at: Some(now()),
        spent: 4,
        period_start: Some(now()),
        spent_today: 2,
        day: Some(now()),
        exhausted: true,
    };
    let investor: wire::InvestorItem =
        read(json!({"investorId": "acme", "investorName": "Acme", "latestFundingDate": null, "z": 1}));
    let mut failed = poll(Endpoint::TokenList, None);
    (failed.outcome, failed.error, failed.status, failed.version) = ("timeout".into(), Some("no answer".into()), None, None);
    (failed.oddities, failed.oddities_total) = (Vec::new(), 0);
    let item = token_item("arbitrum", "ARB");
    let told = notice(&open, "lead 7d", &["ops"]);
    store
        .commit(at(Commit {
            polls: vec![poll(Endpoint::UnlockEvents, Some("arbitrum")), failed.clone()],
            credit: Some(credit.clone()),
            tokens: vec![item.clone()],
            token_list_complete: true,
            investors: vec![investor.clone()],
            feeds: vec![update, burns, rounds],
            changes: vec![change.clone()],
            alerts: vec![open.clone(), over.clone(), of_source.clone()],
            notices: vec![told.clone()],
            rule_matches: vec![("R".into(), now())],
            evaluated_until: Some(now()),
            jobs: vec![("burn".into(), now())],
            ..Commit::default()
        }))
        .await
        .expect("committed");

    let arbitrum = TokenId::from("arbitrum");
    let all = store.tokens(vec![arbitrum.clone(), "nobody".into()], Resource::ALL.to_vec()).await.expect("read");
    let token = &all[0];
    assert_eq!(token.token.item, item);
    assert_eq!(token.feed(Endpoint::UnlockEvents), Some(&state));
    assert_eq!(token.headers, [(Endpoint::UnlockEvents, header)]);
    let found: Vec<_> = token.records.iter().map(|tracked| (tracked.key.as_str(), tracked.record.clone())).collect();
    let wanted = [
        ("burn", burn),
        ("round", round),
        ("a", unlocks[2].record.clone()),
        ("b", unlocks[1].record.clone()),
        ("undated", unlocks[0].record.clone()),
    ];
    assert_eq!(found, wanted, "in the order of time, the undated last");
    assert_eq!(token.alerts, std::slice::from_ref(&open));
    assert_eq!((all[1].token.id.as_str(), all[1].feeds.len(), all[1].records.len()), ("nobody", 0, 0));
    assert_eq!(store.feed(FeedId::of(Endpoint::UnlockEvents, &arbitrum)).await.expect("read"), state);
    assert_eq!(store.feed(FeedId::whole(Endpoint::Upcoming)).await.expect("read"), FeedState::default());
    assert_eq!(store.feed_records(FeedId::whole(Endpoint::Investors)).await.expect("read")[0].0, Some(arbitrum.clone()));
    assert_eq!(store.credit().await.expect("read"), credit);
    assert_eq!(store.investors().await.expect("read"), [investor]);
    assert_eq!(store.alerts_of_no_token().await.expect("read"), [of_source]);
    let filter =
        AlertFilter { states: vec![AlertState::Resolved], rule: Some("Big cliff".into()), limit: 9, ..AlertFilter::default() };
    assert_eq!(store.alerts(filter).await.expect("read"), [over.clone()]);
    let filter = AlertFilter { token: Some(arbitrum.clone()), limit: 1, ..AlertFilter::default() };
    assert_eq!(store.alerts(filter).await.expect("read"), [over], "the last moved first");
    assert_eq!(store.evaluated_until().await.expect("read"), Some(now()));
    assert_eq!(store.job_slots().await.expect("read"), [("burn".to_owned(), now())]);
    assert_eq!(store.rule_matches().await.expect("read"), [(RuleId::from("R"), now())]);
    let rows = store.changes(ChangeFilter { kind: Some(ChangeKind::SeriesShifted), limit: 5, ..ChangeFilter::default() }).await;
    let row = &rows.expect("read")[0];
    assert_eq!((row.at, row.token.as_str(), row.symbol.as_deref()), (now(), "arbitrum", Some("ARB")));
    assert_eq!(row.change, change);
    let due = store.due("ops".into(), now(), 5).await.expect("read");
    assert_eq!(due[0].notices, [told]);
    let polls = store.polls(PollFilter { limit: 9, ..PollFilter::default() }).await.expect("read");
    assert_eq!(polls, [failed, poll(Endpoint::UnlockEvents, Some("arbitrum"))]);
    let episodes =
        store.episodes(vec![("BigCliffAhead".into(), "open".into()), ("X".into(), "open".into())]).await.expect("read");
    assert_eq!(episodes, [3, 0]);
    let plan = store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read");
    assert_eq!(plan.len(), 1);
    assert_eq!(
        (plan[0].listed, plan[0].has_burn, plan[0].has_buyback, plan[0].last_updated),
        (true, Some(true), None, Some(time("2026-03-01T10:00:00Z")))
    );
    assert_eq!(plan[0].next_event, Some(time("2026-03-16T13:00:00.123Z")));
    assert_eq!(plan[0].feed, Some(state));
    let prices = store.valuations(arbitrum, now()).await.expect("read");
    assert_eq!((prices[0].reference_price, prices[0].market_cap), (Some(2.0), Some(1_250_000.5)));
    assert_eq!(store.credits_spent(now()).await.expect("read").iter().map(|(_, credits)| credits).sum::<u64>(), 4);
}

#[tokio::test]
async fn a_version_is_kept_for_new_facts_and_not_for_a_new_price() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let history = || store.history("arbitrum".into(), Resource::Unlock, "a".into());
    let step = |days: i64, record: Option<Record>, is_new_version: bool| {
        let mut update = schedule("arbitrum", Vec::new());
        match record {
            Some(record) => update.put.push(Put { is_new_version, ..put("a", record) }),
            None => update.removed.push("a".into()),
        }
        let at = now() + TimeDelta::days(days);
        let poll = PollEntry { at, ..poll(Endpoint::UnlockEvents, Some("arbitrum")) };
        store.commit(Commit { at, polls: vec![poll], feeds: vec![update], ..Commit::default() })
    };
    step(0, Some(unlock("2026-03-16T13:00:00Z", 10.0)), true).await.expect("committed");
    step(1, Some(unlock("2026-03-16T13:00:00Z", 10.5)), false).await.expect("committed");
    let versions = history().await.expect("read");
    assert_eq!(versions.len(), 1, "price drift makes no version");
    assert_eq!(versions[0].record, Some(unlock("2026-03-16T13:00:00Z", 10.5)), "but the snapshot follows it");
    step(2, Some(unlock("2026-03-20T13:00:00Z", 10.5)), true).await.expect("committed");
    step(3, None, true).await.expect("committed");
    step(4, None, true).await.expect("removing what is gone does nothing");
    let versions = history().await.expect("read");
    let seen: Vec<_> = versions
        .iter()
        .map(|version| ((version.at - now()).num_days(), version.poll, version.record.as_ref().and_then(Record::interval)))
        .map(|(day, poll, interval)| (day, poll, interval.map(|interval| interval.start)))
        .collect();
    let (march_16, march_20) = (time("2026-03-16T13:00:00Z"), time("2026-03-20T13:00:00Z"));
    assert_eq!(seen, [(0, Some(1), Some(march_16)), (2, Some(3), Some(march_20)), (3, Some(4), None)]);
    let token = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
    assert!(token.records.is_empty());
}

#[tokio::test]
async fn a_token_that_a_complete_list_leaves_out_is_unlisted_and_comes_back() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let list = |tokens: &[&str], listed: &[&str], complete| {
        store.commit(at(Commit {
            tokens: tokens.iter().map(|id| token_item(id, "TKN")).collect(),
            listed: listed.iter().map(|id| TokenId::from(*id)).collect(),
            token_list_complete: complete,
            ..Commit::default()
        }))
    };
    let listed = async || {
        let ids = store.token_ids(true).await.expect("read");
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    list(&["apt", "arb"], &[], false).await.expect("committed");
    assert!(listed().await.is_empty(), "half a list says nothing");
    list(&["apt"], &["arb"], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb"]);
    list(&["arb"], &[], false).await.expect("committed");
    list(&[], &[], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb"], "neither half a list nor an empty one proves anything");
    list(&[], &["arb"], true).await.expect("committed");
    assert_eq!(listed().await, ["arb"]);
    assert_eq!(store.token_ids(false).await.expect("read").len(), 2, "never deleted");
    let found = store.find_token("apt").await.expect("read");
    assert_eq!(found[0].item, token_item("apt", "TKN"), "what was known of it stays known");
    list(&["apt"], &["arb", "new"], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb", "new"]);
    assert!(store.find_token("' OR 1=1 --").await.expect("read").is_empty());
}

#[tokio::test]
async fn a_key_that_is_given_up_and_taken_anew_keeps_its_record() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = schedule("arbitrum", vec![put("a", unlock("2026-03-16", 1.0))]);
    store.commit(at(Commit { feeds: vec![first], ..Commit::default() })).await.expect("committed");
    let mut second = schedule("arbitrum", vec![put("a", unlock("2026-04-16", 2.0))]);
    second.removed = vec!["a".into()];
    store.commit(at(Commit { feeds: vec![second], ..Commit::default() })).await.expect("committed");
    let token = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
    assert_eq!(token.records[0].record, unlock("2026-04-16", 2.0));
}

#[tokio::test]
async fn the_reads_of_a_cycle_go_by_an_index() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let connection = Connection::open(store.path()).expect("opens");
    let due = [outbox::due_sql(), outbox::next_due_sql()];
    for sql in [cycle::IN_WINDOW, cycle::TO_RECHECK, cycle::AHEAD, &due[0], &due[1]] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
        let values = vec![1_i64; statement.parameter_count()];
        let steps: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
            .expect("explained")
            .map(|step| step.expect("a step"))
            .collect();
        let is_scan = |step: &String| step.starts_with("SCAN") && !step.starts_with("SCAN t");
        assert!(!steps.iter().any(is_scan), "{sql}: {steps:#?}");
    }
}

#[tokio::test]
async fn one_ticker_may_mean_several_tokens() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tokens = vec![token_item("sky", "SKY"), token_item("skycoin", "SKY"), token_item("other", "OTH")];
    store.commit(at(Commit { tokens, ..Commit::default() })).await.expect("committed");
    let ids = |found: Vec<Token>| found.into_iter().map(|token| token.id.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(store.find_token("sky").await.expect("read")), ["sky"], "the slug comes first");
    assert_eq!(ids(store.find_token(" The SKYcoin ").await.expect("read")), ["skycoin"]);
    let tokens = vec![token_item("sky-mavis", "SKY")];
    store.commit(at(Commit { tokens, ..Commit::default() })).await.expect("committed");
    assert_eq!(ids(store.find_token("oth").await.expect("read")), ["other"]);
    let found = store.find_token("SKY").await.expect("read");
    assert_eq!(ids(found), ["sky"], "letters of either case");
    let found = store.find_token("nothing").await.expect("read");
    assert!(found.is_empty());
}

#[tokio::test]
async fn windows_are_open_at_their_start_and_closed_at_their_end() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let month = Record::Unlock(Box::new(read(json!({"unlockDate": "2026-03-20", "cliffUnlocks": {"allocationBreakdown": [
        {"unlockPrecision": "month"}]}}))));
    let undecided = Record::Unlock(Box::new(read(json!({"unlockDate": "2026-03-20", "cliffUnlocks": {"allocationBreakdown": [
        {"unlockPrecision": "to be determined"}]}}))));
    let feeds = vec![
        schedule("exact", vec![put("a", unlock("2026-03-16T13:00:00Z", 1.0)), put("b", unlock("2026-06-16T13:00:00Z", 1.0))]),
        schedule("month", vec![put("a", month)]),
        schedule("undecided", vec![put("a", undecided)]),
        schedule("passed", vec![put("a", unlock("2026-03-01", 1.0))]),
    ];
    let mut waiting = firing("w", Some("waiting"));
    waiting.recheck_at = Some(now() + minutes(10));
    store.commit(at(Commit { feeds, alerts: vec![waiting], ..Commit::default() })).await.expect("committed");

    let due = async |from: &str, to: &str, now: Timestamp| {
        let ids =
            store.tokens_due(vec![(time(from), time(to)), (time("2026-06-01"), time("2026-06-02"))], now).await.expect("read");
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(due("2026-03-16T12:59:59Z", "2026-03-16T13:00:00Z", now()).await, ["exact"]);
    assert!(due("2026-03-16T13:00:00Z", "2026-03-17", now()).await.is_empty());
    assert_eq!(due("2026-02-28", "2026-03-01", now()).await, ["month", "passed"]);
    assert!(due("2026-03-19", "2026-03-21", now()).await.is_empty(), "an undecided date is in no window");
    assert_eq!(due("2027-01-01", "2027-01-02", now() + minutes(10)).await, ["waiting"]);

    let ahead = async |now: &str, until: Option<&str>| {
        let ids = store.tokens_with_unlocks_ahead(time(now), until.map(time)).await.expect("read");
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ahead("2026-03-09", None).await, ["exact", "month"]);
    assert_eq!(ahead("2026-03-31T23:59:59Z", None).await, ["exact", "month"], "a month lasts to its end");
    assert_eq!(ahead("2026-04-01", None).await, ["exact"]);
    assert_eq!(ahead("2026-03-09", Some("2026-03-10")).await, ["month"]);
    assert!(ahead("2026-06-16T13:00:00Z", None).await.is_empty());

    let filter = UpcomingFilter { tokens: None, from: now(), until: Some(time("2026-06-30")), limit: 2 };
    let rows = store.upcoming(filter.clone()).await.expect("read");
    let shown: Vec<_> = rows.iter().map(|row| (row.token.id.as_str(), row.tracked.key.as_str(), row.read_at)).collect();
    assert_eq!(shown, [("month", "a", Some(now())), ("exact", "a", Some(now()))]);
    let of_one = UpcomingFilter { tokens: Some(vec!["exact".into()]), limit: 9, ..filter };
    assert_eq!(store.upcoming(of_one.clone()).await.expect("read").len(), 2);
    let of_none = UpcomingFilter { tokens: Some(vec![]), ..of_one };
    assert!(store.upcoming(of_none).await.expect("read").is_empty());
    let plan = store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read");
    let next = |id: &str| plan.iter().find(|token| token.id.as_str() == id).expect("planned").next_event;
    assert_eq!((next("exact"), next("passed")), (Some(time("2026-03-16T13:00:00Z")), None));
}

// -- the outbox --

#[tokio::test]
async fn the_longest_waiting_is_due_first_and_the_future_is_not_due() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut ids = Vec::new();
    for subject in ["a", "b", "c"] {
        ids.push(tell(&store, subject, &["ops"]).await.remove(0).id);
    }
    tell(&store, "d", &["desk"]).await;
    let retry_at = now() + minutes(5);
    let records = vec![
        tried(ids[0], now(), DeliveryState::Retrying, Some(retry_at)),
        tried(ids[2], now(), DeliveryState::Retrying, Some(now() - minutes(1))),
    ];
    store.record_attempts(records).await.expect("recorded");
    let due = async |at: Timestamp, limit: u32| {
        let due = store.due("ops".into(), at, limit).await.expect("read");
        due.iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    assert_eq!(due(now(), 9).await, [ids[2], ids[1]]);
    assert_eq!(due(now(), 1).await, [ids[2]]);
    assert_eq!(due(retry_at - TimeDelta::milliseconds(1), 9).await.len(), 2);
    assert_eq!(due(retry_at, 9).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), Some(now() - minutes(1)));
    assert_eq!(store.next_due_at("nobody".into()).await.expect("read"), None);
}

#[tokio::test]
async fn the_end_of_an_alert_never_overtakes_its_beginning() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = tell(&store, "a", &["ops", "desk"]).await;
    let ops: ReceiverName = "ops".into();
    let later = now() + minutes(30);
    store.record_attempts(vec![tried(first[0].id, now(), DeliveryState::Retrying, Some(later))]).await.expect("recorded");
    store.record_attempts(vec![tried(first[1].id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    let alert = firing("a", Some("arbitrum"));
    let end = notice(&alert, "resolved", &["ops", "desk"]);
    store.commit(at(Commit { notices: vec![end.clone()], ..Commit::default() })).await.expect("committed");
    assert!(store.due(ops.clone(), now(), 9).await.expect("read").is_empty());
    assert_eq!(store.next_due_at(ops.clone()).await.expect("read"), Some(later), "nothing to wake for before");
    assert_eq!(store.due("desk".into(), now(), 9).await.expect("read").len(), 1, "another receiver does not wait for it");
    assert_eq!(store.due(ops.clone(), later, 9).await.expect("read")[0].id, first[0].id);
    store.record_attempts(vec![tried(first[0].id, later, DeliveryState::Dead, None)]).await.expect("recorded");
    let due = store.due(ops, later, 9).await.expect("read");
    assert_eq!(due[0].notices, [end], "a dead letter holds nothing up");
}

#[tokio::test]
async fn a_delivery_keeps_its_id_over_retries_and_begins_its_schedule_anew_by_hand() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = tell(&store, "a", &["ops"]).await.remove(0);
    assert!(first.webhook_id.starts_with("msg_") && first.webhook_id.len() > 20, "{}", first.webhook_id);
    for step in 0..3 {
        let record = tried(first.id, now() + minutes(step), DeliveryState::Retrying, Some(now() + minutes(step + 1)));
        store.record_attempts(vec![record]).await.expect("recorded");
    }
    let mut dead = tried(first.id, now() + minutes(3), DeliveryState::Dead, None);
    dead.attempt.answer = "ä".repeat(4000);
    let announcement = firing("receiver/ops", None);
    dead.notices = vec![notice(&announcement, "dead", &["desk"])];
    dead.alerts = vec![announcement];
    store.record_attempts(vec![dead]).await.expect("recorded");
    assert!(store.due("ops".into(), now() + TimeDelta::days(9), 9).await.expect("read").is_empty());
    assert_eq!(store.due("desk".into(), now() + minutes(3), 9).await.expect("read").len(), 1, "the dead letter is announced");
    assert_eq!(store.alerts_of_no_token().await.expect("read").len(), 1);

    let detail = store.outbox_one(first.id).await.expect("read").expect("there");
    assert_eq!((detail.row.state, detail.row.attempts, detail.attempts.len()), (DeliveryState::Dead, 4, 4));
    assert!(detail.attempts[3].answer.len() <= 4096 && detail.attempts[3].answer.starts_with('ä'));
    assert_eq!(detail.notices, first.notices);
    assert_eq!(detail.row.alerts[0].summary, "ARB: \u{202e}$2M \"soon\"");
    assert_eq!(store.outbox_one(DeliveryId(999)).await.expect("read"), None);

    assert_eq!(store.retry(vec![first.id, DeliveryId(999)]).await.expect("retried"), 1);
    let again = store.due("ops".into(), now(), 9).await.expect("read").remove(0);
    assert_eq!((again.webhook_id.as_str(), again.attempts, again.tries), (first.webhook_id.as_str(), 4, 0));
    assert_eq!(again.due_at, now());
    store.record_attempts(vec![tried(first.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    assert_eq!(store.retry(vec![first.id]).await.expect("asked"), 0, "what was delivered stays so");
    let row = store.outbox_one(first.id).await.expect("read").expect("there").row;
    assert_eq!((row.state, row.attempts, row.delivered_at), (DeliveryState::Delivered, 5, Some(now())));
    let json = serde_json::to_value(&row).expect("JSON");
    for name in ["id", "webhookId", "receiver", "state", "attempts", "nextAttemptAt", "lastAnswer", "alerts"] {
        assert!(json.get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn what_was_dropped_by_hand_stays_dropped_unless_it_was_accepted() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (a, b) = (tell(&store, "a", &["ops"]).await.remove(0).id, tell(&store, "b", &["ops"]).await.remove(0).id);
    assert_eq!(store.drop_deliveries(vec![a, b]).await.expect("dropped"), 2);
    assert_eq!(store.drop_deliveries(vec![a]).await.expect("dropped"), 0);
    store
        .record_attempts(vec![
            tried(a, now(), DeliveryState::Retrying, Some(now() + minutes(1))),
            tried(b, now(), DeliveryState::Delivered, None),
            tried(DeliveryId(4711), now(), DeliveryState::Delivered, None),
        ])
        .await
        .expect("recorded");
    let filter = OutboxFilter { states: vec![DeliveryState::Dropped], receiver: Some("ops".into()), limit: 9 };
    let dropped = store.outbox(filter).await.expect("read");
    assert_eq!(dropped.iter().map(|row| row.id).collect::<Vec<_>>(), [a]);
    assert_eq!(store.outbox_one(b).await.expect("read").expect("there").row.state, DeliveryState::Delivered);
    assert_eq!(store.retry(vec![a]).await.expect("retried"), 1);
}

#[tokio::test]
async fn a_retry_without_a_time_is_one_at_once() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let id = tell(&store, "a", &["ops"]).await.remove(0).id;
    store.record_attempts(vec![tried(id, now(), DeliveryState::Retrying, None)]).await.expect("recorded");
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), Some(now()));
}

#[tokio::test]
async fn the_daemon_notices_what_a_command_did_to_the_outbox() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let id = tell(&store, "a", &["ops"]).await.remove(0).id;
    let before = store.data_version().await.expect("read");
    tell(&store, "b", &["ops"]).await;
    assert_eq!(store.data_version().await.expect("read"), before, "its own writes are no news to it");
    let beside = Store::open(opening(store.path(), Access::Beside)).await.expect("opens beside the owner");
    assert_eq!(beside.drop_deliveries(vec![id]).await.expect("dropped"), 1);
    assert_ne!(store.data_version().await.expect("read"), before);
    beside.close().await.expect("closed");
    let reader = Store::open(opening(store.path(), Access::Read)).await.expect("opens");
    let before = reader.data_version().await.expect("read");
    tell(&store, "c", &["ops"]).await;
    assert_ne!(reader.data_version().await.expect("read"), before);
}

#[tokio::test]
async fn status_counts_what_waits_for_whom() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let ids: Vec<_> = tell(&store, "a", &["ops", "desk"]).await.iter().map(|delivery| delivery.id).collect();
    tell(&store, "b", &["ops"]).await;
    store.record_attempts(vec![tried(ids[1], now(), DeliveryState::Dead, None)]).await.expect("recorded");
    let mut held = schedule("aptos", vec![put("a", unlock("2026-03-16", 1.0))]);
    held.state.held_since = Some(now());
    held.state.failing_since = Some(now() - minutes(3));
    held.state.missing = vec![("x".into(), 1), ("y".into(), 1)];
    let mut failed = poll(Endpoint::UnlockEvents, Some("aptos"));
    (failed.outcome, failed.error) = ("unreachable".into(), Some("connection refused".into()));
    store
        .commit(at(Commit {
            tokens: vec![token_item("aptos", "APT")],
            token_list_complete: true,
            feeds: vec![held],
            polls: vec![failed],
            ..Commit::default()
        }))
        .await
        .expect("committed");

    let counts = store.counts().await.expect("read");
    assert_eq!((counts.tokens, counts.tokens_listed), (2, 1));
    assert_eq!(counts.records[0], (Resource::Unlock, 1));
    assert_eq!(counts.alerts[1], (AlertState::Firing, 2));
    assert_eq!((counts.removals_held, counts.removals_awaiting_proof, counts.feeds_failing), (1, 2, 1));
    assert!(counts.database_bytes > 0);
    let of: Vec<_> = counts
        .outbox
        .iter()
        .map(|of| (of.receiver.as_str(), of.pending(), of.of(DeliveryState::Dead), of.oldest_pending))
        .collect();
    assert_eq!(of, [("desk", 0, 1, None), ("ops", 2, 0, Some(now()))]);

    let gauges = store.gauges().await.expect("read");
    assert_eq!((&gauges.alerts, &gauges.outbox, gauges.removals_held), (&counts.alerts, &counts.outbox, counts.removals_held));
    assert_eq!(gauges.last_success, [(Endpoint::UnlockEvents, now())]);

    let feeds = store.feeds().await.expect("read");
    assert_eq!((feeds[0].id.to_string().as_str(), feeds[0].records), ("unlock_events/aptos", 1));
    let stats = store.poll_stats().await.expect("read");
    assert_eq!((stats[0].endpoint, stats[0].feeds, stats[0].failing), (Endpoint::UnlockEvents, 1, 1));
    assert_eq!(stats[0].last_success, Some(now()));
    assert_eq!(stats[0].last_error, Some((now(), "connection refused".into())));
}

#[tokio::test]
async fn the_tally_is_what_counting_the_records_would_find() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tallied = async || {
        let counts = store.counts().await.expect("read").records;
        let of = |resource: Resource| counts.iter().find(|(of, _)| *of == resource).map_or(0, |(_, count)| *count);
        let connection = rusqlite::Connection::open(store.path()).expect("opens");
        for resource in Resource::ALL {
            let sql = "SELECT count(*) FROM record WHERE resource = ?1";
            let found: i64 = connection.query_row(sql, [resource.as_str()], |row| row.get(0)).expect("counted");
            assert_eq!(of(resource), found.unsigned_abs(), "{resource}");
        }
        of(Resource::Unlock)
    };
    assert_eq!(tallied().await, 0);
    let events = |keys: &[&str]| keys.iter().map(|key| put(key, unlock("2026-03-16", 1.0))).collect::<Vec<_>>();
    let commit = async |update: FeedUpdate| {
        store.commit(at(Commit { feeds: vec![update], ..Commit::default() })).await.expect("committed");
    };
    commit(schedule("aptos", events(&["a", "b", "c"]))).await;
    commit(schedule("arbitrum", events(&["a"]))).await;
    assert_eq!(tallied().await, 4);
    commit(schedule("aptos", events(&["a", "d"]))).await;
    assert_eq!(tallied().await, 5, "what is there already is not counted again");
    let removed = vec!["a".into(), "b".into(), "no such key".into()];
    commit(FeedUpdate { removed, ..schedule("aptos", events(&["a"])) }).await;
    assert_eq!(tallied().await, 4, "one is taken out and taken anew, one is taken out, one was never there");
}

// -- upkeep --

#[tokio::test]
async fn retention_forgets_what_is_over_and_keeps_what_is_not() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let deliver = async |subject: &str, alert: AlertState, state: DeliveryState| {
        let id = tell(&store, subject, &["ops"]).await.remove(0).id;
        if state != DeliveryState::Due {
            let next = (state == DeliveryState::Retrying).then(|| now() + minutes(1));
            store.record_attempts(vec![tried(id, now(), state, next)]).await.expect("recorded");
        }
        let mut moved = firing(subject, Some("arbitrum"));
        (moved.state, moved.updated_at) = (alert, now());
        store.commit(at(Commit { alerts: vec![moved], ..Commit::default() })).await.expect("committed");
    };
    deliver("over", AlertState::Resolved, DeliveryState::Delivered).await;
    deliver("happened", AlertState::Event, DeliveryState::Delivered).await;
    deliver("still firing", AlertState::Firing, DeliveryState::Delivered).await;
    deliver("never told", AlertState::Event, DeliveryState::Due).await;
    deliver("to be retried", AlertState::Resolved, DeliveryState::Retrying).await;
    deliver("dead", AlertState::Resolved, DeliveryState::Dead).await;
    let mut test = notice(&firing("no such alert", None), "test", &["ops"]);
    test.alert = AlertId::from("al_test");
    let change = Change::of(ChangeKind::Added, Resource::Unlock, &"arbitrum".into());
    let polls = vec![poll(Endpoint::UnlockEvents, Some("arbitrum"))];
    let feeds = vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 1.0))])];
    store
        .commit(at(Commit { notices: vec![test], changes: vec![change], polls, feeds, ..Commit::default() }))
        .await
        .expect("committed");
    let lone = store.due("ops".into(), now(), 9).await.expect("read").pop().expect("the test").id;
    store.record_attempts(vec![tried(lone, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    let feeds = vec![schedule("arbitrum", vec![put("a", unlock("2026-03-18T13:00:00Z", 1.0))])];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");

    let day = Duration::from_secs(86_400);
    let early = store.prune(now() + TimeDelta::days(9), 10 * day, 10 * day).await.expect("pruned");
    assert_eq!(early, Pruned::default(), "nothing is old enough");
    let pruned = store.prune(now() + TimeDelta::days(11), 20 * day, 10 * day).await.expect("pruned");
    assert_eq!(pruned, Pruned { polls: 1, ..Pruned::default() }, "the poll log has its own span");
    let pruned = store.prune(now() + TimeDelta::days(11), 10 * day, 10 * day).await.expect("pruned");
    assert_eq!(pruned, Pruned { polls: 0, changes: 1, versions: 1, logs: 1, alerts: 2, notices: 1 });

    let left = store.alerts(AlertFilter { limit: 99, ..AlertFilter::default() }).await.expect("read");
    let mut left: Vec<_> = left.iter().map(|alert| alert.subject.as_str()).collect();
    left.sort_unstable();
    assert_eq!(left, ["dead", "never told", "still firing", "to be retried"]);
    assert_eq!(store.outbox(OutboxFilter { limit: 99, ..OutboxFilter::default() }).await.expect("read").len(), 4);
    assert_eq!(store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len(), 1);
    assert_eq!(store.valuations("arbitrum".into(), now() - minutes(1500)).await.expect("read").len(), 1, "the last price stays");
    assert_eq!(store.history("arbitrum".into(), Resource::Unlock, "a".into()).await.expect("read").len(), 1);
    let connection = Connection::open(store.path()).expect("opens");
    let attempts: i64 = connection.query_row("SELECT count(*) FROM attempt", [], |row| row.get(0)).expect("counted");
    assert_eq!(attempts, 3, "attempts go with their delivery");
}

#[tokio::test]
async fn a_span_that_reaches_back_before_all_time_forgets_nothing() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(at(Commit { polls: vec![poll(Endpoint::Burn, None)], ..Commit::default() })).await.expect("committed");
    let pruned = store.prune(now(), Duration::MAX, Duration::MAX).await.expect("pruned");
    assert_eq!(pruned, Pruned::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_taken_amid_writes_is_whole_and_opens() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for i in 0..60 {
                tell(&store, &format!("subject {i}"), &["ops", "desk"]).await;
            }
        }
    });
    let copy = directory.path().join("copy.db");
    for _ in 0..5 {
        store.backup(copy.clone(), true).await.expect("copied");
    }
    writing.await.expect("written");
    let error = store.backup(copy.clone(), false).await.expect_err("refused");
    assert!(matches!(error, StoreError::BackupRefused { .. }), "{error}");
    let error = store.backup(store.path().to_owned(), true).await.expect_err("refused");
    assert!(error.to_string().contains("the database itself"), "{error}");
    let fresh = directory.path().join("fresh.db");
    store.backup(fresh.clone(), false).await.expect("copied");
    for (path, wanted) in [(copy, None), (fresh, Some(120))] {
        let opened = Store::open(opening(&path, Access::Own)).await.expect("the copy opens");
        let rows = opened.outbox(OutboxFilter { limit: 999, ..OutboxFilter::default() }).await.expect("read");
        assert!(rows.len() % 2 == 0, "of one moment: both deliveries of a notice, or none");
        assert!(wanted.is_none_or(|wanted| wanted == rows.len()), "{}", rows.len());
        assert!(opened.integrity_check().await.is_ok());
        opened.close().await.expect("closed");
    }
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_backup_that_fails_leaves_no_scrap() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store.backup(directory.path().join("no/such/place.db"), false).await.expect_err("refused");
    assert!(matches!(error, StoreError::BackupFile { .. }), "{error:?}");
}

// -- faults --

#[tokio::test]
async fn a_damaged_file_is_named_as_such_with_what_to_do() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let puts = (0..200).map(|i| put(&format!("k{i}"), unlock("2026-03-16T13:00:00Z", 1.0))).collect();
    store.commit(at(Commit { feeds: vec![schedule("arbitrum", puts)], ..Commit::default() })).await.expect("committed");
    store.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    let mut bytes = fs::read(&path).expect("read");
    // The first page, with the header and the schema, stays; every later one loses what it begins with.
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..64].fill(0xa5);
    }
    fs::write(&path, bytes).expect("written");
    let error = match Store::open(opening(&path, Access::Own)).await {
        Err(error) => error,
        Ok(store) => {
            assert!(store.integrity_check().await.expect_err("found").is_damaged());
            store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect_err("refused")
        }
    };
    assert!(error.is_damaged() && !error.is_full(), "{error:?}");
    assert!(error.to_string().contains("cliffwatch backup") && error.to_string().contains("cliffwatch.db"), "{error}");
}

#[tokio::test]
async fn a_row_that_this_program_never_writes_is_damage_and_no_panic() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let connection = Connection::open(store.path()).expect("opens");
    connection.execute("UPDATE notice SET kind = 'gossip'", []).expect("updated");
    let error = store.due("ops".into(), now(), 9).await.expect_err("refused");
    assert!(error.is_damaged() && error.to_string().contains("gossip"), "{error}");
    connection.execute("UPDATE alert SET updated_at = ?1", [i64::MAX]).expect("updated");
    let error = store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect_err("refused");
    assert!(error.is_damaged(), "{error:?}");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_space() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let limit = |pages: Option<i64>| {
        store.0.writer.as_ref().expect("a writer").run("limit the file", move |connection| {
            let present: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let pages = pages.unwrap_or(present + 4);
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        })
    };
    limit(None).await.expect("limited");
    let before = dump(store.path());
    let big = || {
        let puts = (0..300).map(|i| put(&format!("k{i}"), unlock("2026-03-16T13:00:00Z", f64::from(i)))).collect();
        let alert = firing("b", Some("aptos"));
        let notices = vec![notice(&alert, "firing", &["ops"])];
        at(Commit { feeds: vec![schedule("aptos", puts)], alerts: vec![alert], notices, ..Commit::default() })
    };
    let error = store.commit(big()).await.expect_err("refused");
    assert!(error.is_full() && error.is_transient() && !error.is_damaged(), "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(dump(store.path()), before, "nothing is half written");
    limit(Some(1_000_000)).await.expect("space returned");
    assert_eq!(store.commit(big()).await.expect("committed").deliveries, 1);
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn a_panic_inside_an_operation_undoes_it_and_the_store_goes_on() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store
        .write::<()>("try something", |to| {
            to.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            panic!("a record like no other");
        })
        .await
        .expect_err("answered");
    assert!(matches!(&error, StoreError::Panicked { message, .. } if message == "a record like no other"), "{error:?}");
    for _ in 0..5 {
        let error = store.read::<()>("look at something", |_| panic!("again")).await.expect_err("answered");
        assert!(matches!(error, StoreError::Panicked { .. }), "{error:?}");
    }
    assert!(!dump(store.path())["meta"].iter().any(|row| row.contains("half")));
    tell(&store, "a", &["ops"]).await;
}

#[tokio::test]
async fn a_write_goes_through_though_whoever_asked_went_away() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("a", Some("arbitrum"));
    let notices = vec![notice(&alert, "firing", &["ops"])];
    let commit = at(Commit { alerts: vec![alert], notices, ..Commit::default() });
    {
        let mut asked = std::pin::pin!(store.commit(commit));
        // One poll hands the commit to the writer; then nobody waits for the answer.
        std::future::poll_fn(|context| {
            let _ = asked.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    store.close().await.expect("closed after what is queued");
    let store = owned(&directory).await;
    assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").len(), 1);
}

// -- crashes --

const CRASH_DB: &str = "CLIFFWATCH_TEST_CRASH_DB";

/// The work of the process that dies in [`a_commit_is_whole_wherever_the_process_dies`]; it does nothing when run with the others.
#[tokio::test]
async fn the_process_that_dies() {
    let Some(path) = std::env::var_os(CRASH_DB) else { return };
    let store = Store::open(opening(Path::new(&path), Access::Own)).await.expect("the store opens");
    let id = tell(&store, "a", &["ops"]).await.remove(0).id;
    store.record_attempts(vec![tried(id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    tell(&store, "b", &["ops"]).await;
}

#[tokio::test]
async fn a_commit_is_whole_wherever_the_process_dies() {
    use std::os::unix::process::ExitStatusExt;
    // Where it dies, the alerts that are there afterwards, the deliveries that are still due, those that were delivered.
    for (point, alerts, due, delivered) in [
        ("commit.before:2", 1, 0, 1),
        ("commit.inside", 0, 0, 0),
        ("commit.inside:2", 1, 0, 1),
        ("commit.after", 1, 1, 0),
        ("commit.after:2", 2, 1, 1),
        ("attempt.before", 1, 1, 0),
        ("attempt.after", 1, 0, 1),
    ] {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("cliffwatch.db");
        let died = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "store::tests::the_process_that_dies"])
            .env(CRASH_DB, &path)
            .env(crate::failpoint::VARIABLE, point)
            .output()
            .expect("it runs");
        assert_eq!(died.status.signal(), Some(libc::SIGABRT), "{point}: {died:?}");
        let store = owned(&directory).await;
        assert_eq!(
            store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect("read").len(),
            alerts,
            "{point}"
        );
        assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").len(), due, "{point}");
        let filter = OutboxFilter { states: vec![DeliveryState::Delivered], limit: 9, ..OutboxFilter::default() };
        assert_eq!(store.outbox(filter).await.expect("read").len(), delivered, "{point}");
        assert!(store.integrity_check().await.is_ok(), "{point}");
    }
}

// -- size --

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tokens_with_a_hundred_tranches_each_are_written_and_read() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let start = time("2026-01-01");
    let feeds: Vec<_> = (0..1000)
        .map(|token| {
            let puts = (0..100)
                .map(|i| {
                    let date = start + TimeDelta::days(i * 14) + TimeDelta::minutes(token);
                    put(&format!("k{i}"), unlock(&date.to_rfc3339(), 1000.0))
                })
                .collect();
            schedule(&format!("token-{token:04}"), puts)
        })
        .collect();
    let timed = |what: &str, begun: std::time::Instant| println!("{what}: {:?}", begun.elapsed());

    let saved = store.commit(at(Commit { feeds: feeds.clone(), ..Commit::default() })).await.expect("committed");
    println!("commit of 100,000 new records: {} ms", saved.took.num_milliseconds());
    let again =
        feeds.iter().map(|feed| FeedUpdate { put: feed.put.iter().take(50).cloned().collect(), ..feed.clone() }).collect();
    let saved = store.commit(at(Commit { feeds: again, ..Commit::default() })).await.expect("committed");
    println!("commit of 50,000 equal records: {} ms", saved.took.num_milliseconds());
    let moved = feeds
        .iter()
        .map(|feed| {
            let puts = (0..50).map(|i| put(&format!("k{i}"), unlock("2027-01-01", 2.0))).collect();
            FeedUpdate { put: puts, ..feed.clone() }
        })
        .collect();
    let saved = store.commit(at(Commit { feeds: moved, ..Commit::default() })).await.expect("committed");
    println!("commit of 50,000 new versions: {} ms", saved.took.num_milliseconds());

    let begun = std::time::Instant::now();
    let due = store.tokens_due(vec![(time("2028-01-01"), time("2028-01-15"))], now()).await.expect("read");
    timed("tokens_due", begun);
    assert!(!due.is_empty());
    let begun = std::time::Instant::now();
    assert_eq!(store.tokens_with_unlocks_ahead(now(), None).await.expect("read").len(), 1000);
    timed("tokens_with_unlocks_ahead", begun);
    let begun = std::time::Instant::now();
    assert_eq!(store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read").len(), 1000);
    timed("plan_tokens", begun);
    let begun = std::time::Instant::now();
    let hundred: Vec<TokenId> = (0..100).map(|token| TokenId::from(format!("token-{token:04}"))).collect();
    assert_eq!(
        store.tokens(hundred, vec![Resource::Unlock]).await.expect("read").iter().map(|t| t.records.len()).sum::<usize>(),
        10_000
    );
    timed("tokens: 100 of them with 10,000 records", begun);
    let begun = std::time::Instant::now();
    store.counts().await.expect("read");
    timed("counts", begun);
    let begun = std::time::Instant::now();
    assert_eq!(store.feeds().await.expect("read").len(), 1000);
    timed("feeds", begun);
    let begun = std::time::Instant::now();
    store.integrity_check().await.expect("sound");
    timed("integrity_check", begun);
    let begun = std::time::Instant::now();
    store.close().await.expect("closed");
    timed("close", begun);
    let begun = std::time::Instant::now();
    let store = owned(&directory).await;
    timed("open", begun);
    println!("database: {} MB", fs::metadata(store.path()).expect("there").len() / 1_000_000);
}

// -- digests --

#[tokio::test]
async fn who_stopped_digests_is_known_after_a_restart_until_it_is_taken_back() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let wish = |receiver: &str, at: Timestamp, via: Via| OptOut {
        receiver: receiver.into(),
        address: "desk@example.com".to_owned(),
        at,
        via,
    };
    assert!(store.opt_out(wish("desk", now(), Via::Link)).await.expect("written"));
    assert!(!store.opt_out(wish("desk", now() + minutes(5), Via::Hand)).await.expect("written"), "once is enough");
    assert!(store.opt_out(wish("risk", now(), Via::Hand)).await.expect("written"));
    let key = store.keep_link_key(LinkKey::new([1; 32])).await.expect("kept");
    store.close().await.expect("closes");

    let store = owned(&directory).await;
    assert_eq!(store.opt_outs(Some("desk".into())).await.expect("read"), [wish("desk", now(), Via::Link)]);
    assert_eq!(store.opt_outs(None).await.expect("read").len(), 2);
    assert_eq!(store.keep_link_key(LinkKey::new([2; 32])).await.expect("read"), key, "links that were sent stay good");
    assert_eq!(store.link_key().await.expect("read"), Some(LinkKey::new([1; 32])));
    assert_eq!(format!("{key:?}"), "LinkKey(…)");
    assert!(store.opt_in("desk".into(), "desk@example.com".to_owned()).await.expect("written"));
    assert!(!store.opt_in("desk".into(), "desk@example.com".to_owned()).await.expect("written"));
    assert_eq!(store.opt_outs(Some("desk".into())).await.expect("read"), []);
}

#[tokio::test]
async fn who_was_told_is_said_by_what_became_of_the_messages() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let told = tell(&store, "cliff", &["ops", "wall", "desk"]).await;
    let of = |name: &str| told.iter().find(|delivery| delivery.receiver.as_str() == name).expect("a delivery").id;
    let records =
        vec![tried(of("ops"), now(), DeliveryState::Delivered, None), tried(of("wall"), now(), DeliveryState::Dead, None)];
    store.record_attempts(records).await.expect("recorded");
    // A reminder that waits for its group.
    store.await_dispatch();
    let alert = firing("cliff", Some("arbitrum"));
    let mut reminder = notice(&alert, "lead 1d", &["ops"]);
    reminder.at = now() + minutes(1);
    store.commit(at(Commit { notices: vec![reminder], ..Commit::default() })).await.expect("committed");

    let standings = store.standings(vec![alert.id.clone(), "al_other".into()]).await.expect("read");
    let standing =
        |receiver: &str, was_told: bool, state: &str| Standing { receiver: receiver.into(), was_told, state: state.to_owned() };
    let expected = vec![standing("desk", false, "due"), standing("ops", true, "waiting"), standing("wall", false, "dead")];
    assert_eq!(standings, [(alert.id, expected)].into());
    let telling = store.telling(now() + minutes(2), now()).await.expect("read");
    let held = HeldCount { receiver: "ops".into(), waiting: 1, silenced: 0, inhibited: 0, lately: 0 };
    assert_eq!(telling, Telling { held: vec![held], ..Telling::default() });
}
