use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{Access, Opening, Place, Store, open, schema::DAEMON};
use model::{AlertBody, Record, RecordKey, Resource, SumWindow, TokenFilter, TokenSort, VersionRow, wire};

const CRASH_DB: &str = "CLIFFWATCH_TEST_REBUILD_DB";

fn now() -> Timestamp {
    wire::parse_timestamp("2026-03-09T00:00:00Z").unwrap()
}

fn opening(path: &Path) -> Opening {
    Opening { path: path.to_owned(), access: Access::Own, now: now() }
}

/// An event of the former version's database, by its number and the version that it is of.
fn event(number: usize, version: usize) -> Value {
    let date = (now() + chrono::TimeDelta::days(number as i64 * 7 - 60)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    json!({
        "unlockDate": date, "tokenName": "Arbitrum", "tokenSymbol": "ARB", "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": 1000.5 * version as f64, "cliffValue": 2001.0, "valueToMarketCap": 2.75, "allocationBreakdown": [
            {"unlockDate": date, "allocationName": "Team", "cliffAmount": 1000.5 * version as f64, "referencePrice": 2.0,
             "unlockPrecision": "second", "unknown": {"kept": number}},
        ]},
    })
}

/// A database as the version before wrote it: `tokens` schedules of 20 events, each of which was another twice before; one event that is
/// gone, a burn with a version, an alert, and a table whose numbers go on.
fn former(path: &Path, tokens: usize) {
    let mut connection = Connection::open(path).unwrap();
    DAEMON.migrate_until(&mut connection, 0, PACKED_SINCE - 1).unwrap();
    let to = connection.transaction().unwrap();
    let at = |day: i64| now().timestamp_millis() - day * 86_400_000;
    for token in 1..=tokens as i64 {
        to.execute(
            "INSERT INTO token (no, id, name, symbol, first_seen) VALUES (?1, ?2, 'A', 'ARB', 0)",
            params![token, format!("t{token}")],
        )
        .unwrap();
        to.execute(
            "INSERT INTO feed (endpoint, token_no, read_at, stale, missing, cost, header) VALUES ('unlock_events', ?1, 5, 0, '[]', 1, '{}')",
            [token],
        )
        .unwrap();
        for number in 0..20 {
            let (body, key) = (event(number, 3), format!("k{number}"));
            let starts = wire::parse_timestamp(body["unlockDate"].as_str().unwrap()).unwrap().timestamp_millis();
            to.execute(
                "INSERT INTO record (scope_no, token_no, resource, key, starts_at, ends_at, first_seen, version_at, version_poll, body)
                 VALUES (?1, ?1, 'unlock', ?2, ?3, ?3, ?4, ?5, 7, ?6)",
                params![token, key, starts, at(30), at(10), body.to_string()],
            )
            .unwrap();
            for (version, since, until) in [(1, 30, 20), (2, 20, 10)] {
                to.execute(
                    "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, poll, body)
                     VALUES (?1, ?1, 'unlock', ?2, ?3, ?4, 6, ?5)",
                    params![token, key, at(since), at(until), event(number, version).to_string()],
                )
                .unwrap();
            }
        }
        for (since, body) in [(25, Some(event(30, 1).to_string())), (15, None)] {
            to.execute(
                "INSERT INTO record_version (scope_no, token_no, resource, key, at, replaced_at, body) VALUES (?1, ?1, 'unlock', 'gone', ?2, ?3, ?4)",
                params![token, at(since), at(15), body],
            )
            .unwrap();
        }
        to.execute(
            "INSERT INTO record (scope_no, token_no, resource, key, first_seen, version_at, body) VALUES (?1, ?1, 'burn', 'b', 0, ?2, '{}')",
            params![token, at(1)],
        )
        .unwrap();
    }
    to.execute(
        "INSERT INTO alert (id, rule, name, subject, episode, state, active_at, updated_at, body)
         VALUES ('a', 'R', 'R', 's', 1, 'event', 0, 0, '{\"labels\":{\"severity\":\"critical\"},\"annotations\":{},\"told\":[],\"leads\":[],\"due\":null}')",
        [],
    )
    .unwrap();
    to.execute(
        "INSERT INTO notice (id, alert, kind, at, receivers, body) VALUES ('no_a', 'a', 'alert.firing', 0, '[\"ops\"]', ?1), ('no_b', 'a', 'alert.firing', 1, '[]', ?2)",
        [message(true).to_string(), message(false).to_string()],
    )
    .unwrap();
    to.execute("INSERT INTO poll (no, endpoint, at, took_ms, outcome, requests, credits, bytes, records, oddities_total) VALUES (41, 'burn', 0, 1, 'fresh', 1, 1, 1, 1, 0)", [])
        .unwrap();
    to.execute_batch("DELETE FROM tally; INSERT INTO tally SELECT resource, count(*) FROM record GROUP BY resource").unwrap();
    to.commit().unwrap();
    connection.close().unwrap();
}

/// A message as the version before wrote it, with the schedule around its unlock or without.
fn message(has_series: bool) -> serde_json::Value {
    let mut message = serde_json::json!({"id": "a", "rule": "R", "status": "firing", "reason": "", "labels": {}, "annotations": {},
        "startsAt": now(), "endsAt": null, "token": null, "resource": "unlock", "record": {"cliffUnlocks": {"cliffAmount": 0.1}},
        "change": null, "daysUntil": null, "lead": null, "source": {}});
    if has_series {
        message["series"] =
            serde_json::json!([{"at": now(), "amount": 28156190.476190403, "precision": "month"}, {"at": now(), "amount": 1.0}]);
    }
    message
}

/// What a token's history must be, as the old file has it.
fn expected(path: &Path, token: i64) -> Vec<VersionRow> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT resource, key, at, body FROM (
                 SELECT no, resource, key, at, body FROM record_version WHERE token_no = ?1 UNION ALL
                 SELECT 9223372036854775807, resource, key, version_at, body FROM record WHERE token_no = ?1) ORDER BY at, no, key",
        )
        .unwrap();
    let rows = statement.query_map([token], |row| {
        let (word, key): (String, String) = (row.get(0)?, row.get(1)?);
        let (resource, body) = (Resource::parse(&word).unwrap(), row.get::<_, Option<String>>(3)?);
        let record = body.map(|text| Record::from_json(resource, &text).unwrap());
        Ok(VersionRow { resource, key: RecordKey::from(key), at: row.get::<_, Millis>(2)?.0, record })
    });
    sorted(rows.unwrap().map(Result::unwrap).collect())
}

/// What was seen at one time has no order.
fn sorted(mut versions: Vec<VersionRow>) -> Vec<VersionRow> {
    versions.sort_by_key(|version| {
        (version.at, version.resource.as_str(), version.key.as_str().to_owned(), version.record.is_none())
    });
    versions
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_database_of_the_former_version_reads_the_same_and_the_old_one_is_kept() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cliffwatch.db");
    former(&path, 3);
    let histories: Vec<_> = (1..=3).map(|token| expected(&path, token)).collect();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hears = told.clone();
    let store = Store::open_telling(Place::File(path.clone()), Access::Own, now(), move |done, of| {
        hears.lock().unwrap().push((done, of))
    })
    .await
    .unwrap();
    assert_eq!(*told.lock().unwrap(), [(0, 3), (1, 3), (2, 3), (3, 3)]);
    for (token, history) in (1..).zip(histories) {
        let id = format!("t{token}");
        assert_eq!(history.len(), 20 * 3 + 3);
        assert_eq!(sorted(store.versions(id.as_str().into()).await.unwrap()), history);
        let known = store.tokens(vec![id.as_str().into()], vec![Resource::Unlock, Resource::Burn]).await.unwrap().remove(0);
        assert_eq!(known.records.len(), 21);
        let dates: Vec<_> = known.records.iter().map(|tracked| tracked.record.interval().map(|of| of.start)).collect();
        assert!(dates[..20].is_sorted() && dates[20].is_none());
    }
    assert_eq!(store.counts().await.unwrap().records.iter().find(|(of, _)| *of == Resource::Unlock).unwrap().1, 60);
    let filter = TokenFilter {
        text: String::new(),
        sort: TokenSort::Value,
        window: SumWindow::of(now(), chrono::TimeDelta::days(30)),
        limit: 9,
        offset: 0,
    };
    let list = store.token_list(filter).await.unwrap();
    assert_eq!((list.total, list.rows[0].ahead.counted.count, list.rows[0].ahead.counted.value), (3, 4, 4.0 * 2001.0));
    let told: Vec<_> = store.notifications_of("a".into()).await.unwrap().into_iter().map(|told| told.body).collect();
    let bodies = [true, false].map(|has_series| serde_json::from_value::<AlertBody>(message(has_series)).unwrap());
    assert_eq!((&told[..], told[0].series.len()), (&bodies[..], 2));
    assert!(store.integrity_check().await.is_ok());
    store.close().await.unwrap();
    let spelled_out: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM notice WHERE body LIKE '%series%'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(spelled_out, 0);
    let kept = beside(&path, ".before-10");
    assert_eq!((version(&path), version(&kept)), (DAEMON.version(), PACKED_SINCE - 1));
    let next: i64 = Connection::open(&path)
        .unwrap()
        .query_row("INSERT INTO poll (endpoint, at, took_ms, outcome, requests, credits, bytes, records, oddities_total) VALUES ('burn', 0, 1, 'fresh', 1, 1, 1, 1, 0) RETURNING no", [], |row| row.get(0))
        .unwrap();
    assert_eq!(next, 42, "numbers go on where they were");
    // The way back: the old file takes the name again.
    fs::remove_file(&path).unwrap();
    fs::rename(&kept, &path).unwrap();
    assert_eq!(expected(&path, 1).len(), 63);
}

#[test]
fn the_process_that_dies_while_it_packs() {
    let Some(path) = std::env::var_os(CRASH_DB) else { return };
    let opened = open::open(&opening(Path::new(&path)), &|_, _| {}).map(|_| ());
    panic!("it went on: {opened:?}");
}

#[test]
fn wherever_the_process_dies_the_next_start_ends_what_was_begun() {
    use std::os::unix::process::ExitStatusExt;
    for point in failpoint::REBUILD_POINTS {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("cliffwatch.db");
        former(&path, 2);
        let bytes = fs::read(&path).unwrap();
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rebuild::tests::the_process_that_dies_while_it_packs"])
            .env(CRASH_DB, &path)
            .env(failpoint::VARIABLE, point)
            .output()
            .unwrap();
        assert_eq!(died.status.signal(), Some(libc::SIGABRT), "{point}: {died:?}");
        if point != "rebuild.done" {
            assert_eq!(version(&path), PACKED_SINCE - 1, "{point}");
            assert_eq!(fs::read(&path).unwrap().len(), bytes.len(), "{point}");
        }
        drop(open::open(&opening(&path), &|_, _| {}).unwrap());
        assert_eq!(version(&path), DAEMON.version(), "{point}");
        let names: Vec<String> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let kept = names.iter().filter(|name| name.contains(".before-")).count();
        assert_eq!(kept, 1, "{point}: {names:?}");
        assert!(!names.iter().any(|name| name.contains(".packing")), "{point}: {names:?}");
    }
}

#[test]
fn too_little_room_is_said_before_anything_is_written() {
    let path = Path::new("/var/lib/x.db");
    assert!(refuse_without_room(path, 741_000_000, 741_000_000).is_ok());
    let error = refuse_without_room(path, 741_000_000, 12_345_678).unwrap_err().to_string();
    assert!(error.contains("741 MB; 12 MB are free") && error.contains("/var/lib/x.db"), "{error}");
    assert!(free_bytes(Path::new("x.db")).unwrap() > 0);
}

#[test]
fn a_database_without_schedules_is_brought_up_to_date_in_its_place() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cliffwatch.db");
    former(&path, 0);
    drop(open::open(&opening(&path), &|_, _| {}).unwrap());
    assert_eq!(version(&path), DAEMON.version());
    assert!(!beside(&path, ".before-10").exists());
}

#[test]
fn a_record_that_cannot_be_read_leaves_the_database_as_it_was() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cliffwatch.db");
    former(&path, 1);
    let connection = Connection::open(&path).unwrap();
    connection.execute("UPDATE record SET body = '[]' WHERE key = 'k3'", []).unwrap();
    connection.close().unwrap();
    let error = open::open(&opening(&path), &|_, _| {}).map(|_| ()).unwrap_err();
    assert!(error.is_damaged() && format!("{error:?}").contains("k3"), "{error:?}");
    assert_eq!(version(&path), PACKED_SINCE - 1);
    assert!(!beside(&path, ".packing").exists());
}
