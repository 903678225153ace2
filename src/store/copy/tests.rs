use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use tempfile::TempDir;

use super::*;
use crate::Access;
use crate::codec::all;
use crate::sql::postgres::PgSession;
use crate::tests::support::*;
use model::*;

/// The number of random databases to copy out and back.
const CASES: u64 = 12;

fn file(directory: &TempDir, name: &str) -> DatabaseLocation {
    DatabaseLocation::File(directory.path().join(name))
}

/// A target on the other engine: a schema on the server named by the environment, else another file.
fn other_engine(directory: &TempDir) -> DatabaseLocation {
    server_place(directory.path()).map_or_else(|| file(directory, "elsewhere.db"), DatabaseLocation::Server)
}

fn copy(from: &DatabaseLocation, to: &DatabaseLocation) -> Result<Vec<CopiedTable>, StoreError> {
    Store::copy(from, to, "test:1", now(), &mut |_| {})
}

async fn open(place: &DatabaseLocation) -> Store {
    let store = Store::open_in(place.clone(), Access::Own, now()).await.expect("opens");
    assert_eq!(store.maintain_lease("test:2").await.expect("maintained"), crate::LeaseStatus::Active);
    store
}

/// Returns all rows, without the rows that describe the database itself, and the last row numbers.
fn contents(place: &DatabaseLocation) -> BTreeMap<String, Vec<String>> {
    let connection = rusqlite::Connection::open(place.name()).expect("opens");
    let at = Transaction::sqlite(&connection);
    let mut contents = BTreeMap::new();
    for table in TABLES {
        let columns = at.columns(table).expect("read");
        let mut rows = Vec::new();
        let side = CopySide { at: &at, path: place.name() };
        side.scan(table, &columns, |row| {
            rows.push(format!("{row:?}"));
            Ok(())
        })
        .expect("read");
        rows.sort_unstable();
        contents.insert(table.to_owned(), rows);
    }
    let numbers = PERMANENT_NUMBERS.map(|table| format!("{table} {:?}", at.last_number(table).expect("read")));
    contents.insert("numbers".into(), numbers.to_vec());
    contents
}

/// Runs `change` directly on the database file, bypassing the store.
fn edit_file(place: &DatabaseLocation, change: impl FnOnce(&Transaction<'_>)) {
    let mut connection = rusqlite::Connection::open(place.name()).expect("opens");
    let transaction = connection.transaction().expect("begins");
    change(&Transaction::sqlite(&transaction));
    transaction.commit().expect("committed");
}

struct Random(fastrand::Rng);

impl Random {
    fn text(&mut self) -> String {
        const BITS: [&str; 14] =
            ["\0", "\u{fdd0}", "\u{fdd1}", "", "a", "Z", "'", "\"", "\\", "\n\r\t", "é", "e\u{301}", "\u{202e}", "🪙\u{10ffff}"];
        (0..self.0.usize(..9)).map(|_| self.0.choice(BITS).unwrap_or_default()).collect()
    }

    fn key(&mut self) -> Value {
        Value::Text(format!("{}{:x}", self.text(), self.0.u64(..)))
    }

    fn words(&mut self) -> Value {
        Value::Text(if self.0.u8(..20) == 0 { self.text().repeat(3_000) } else { self.text() })
    }

    fn number(&mut self) -> Value {
        Value::Integer(self.0.choice([0, 1, -1, i64::MIN, i64::MAX, 1 << 40]).unwrap_or_default())
    }

    fn real(&mut self) -> Value {
        let edges = [0.0, -0.0, 1.0, -1e300, f64::MIN_POSITIVE / 3.0, f64::INFINITY, 0.1 + 0.2, 9_007_199_254_740_993.0];
        Value::Real(self.0.choice(edges).unwrap_or_default())
    }

    fn blob(&mut self) -> Value {
        Value::Blob((0..self.0.usize(..300)).map(|_| self.0.u8(..)).collect())
    }

    fn maybe(&mut self, value: Value) -> Value {
        if self.0.bool() { value } else { Value::Null }
    }

    /// JSON with hostile text.
    fn json(&mut self) -> Value {
        let labels = serde_json::json!({ self.text(): self.text(), "severity": self.text() });
        Value::Text(serde_json::json!({ "labels": labels, "notified": [self.text()], "marketCap": self.0.f64() }).to_string())
    }
}

/// Inserts random rows that the schema allows, including rows that the store would never write.
fn fill_at_random(at: &Transaction<'_>, seed: u64) {
    let mut random = Random(fastrand::Rng::with_seed(seed));
    let put = |table: &str, row: Vec<(&str, Value)>| {
        let (columns, row): (Vec<String>, Vec<Value>) = row.into_iter().map(|(column, value)| (column.to_owned(), value)).unzip();
        at.insert_many(table, &columns, vec![row]).expect(table);
    };
    let word = |word: &str| Value::Text(word.to_owned());
    for no in 1..=random.0.i64(1..40) {
        let (item, name) = (random.json(), random.words());
        let (item, name) = (random.maybe(item), random.maybe(name));
        let symbol = Value::Text(random.text());
        put(
            "token",
            vec![
                ("no", Value::Integer(no * 3)),
                ("id", random.key()),
                ("item", item),
                ("name", name),
                ("symbol", symbol),
                ("first_seen", random.number()),
                ("listed", Value::Integer(no % 2)),
            ],
        );
        let (value, share, starts) = (random.real(), random.real(), random.number());
        let (value, share) = (random.maybe(value), random.maybe(share));
        put(
            "record",
            vec![
                ("scope_no", Value::Integer(no)),
                ("token_no", Value::Integer(no * 3)),
                ("resource", word(if no % 2 == 0 { "unlock" } else { "burn" })),
                ("key", random.key()),
                ("starts_at", starts.clone()),
                ("ends_at", starts),
                ("first_seen", random.number()),
                ("version_at", random.number()),
                ("value", value),
                ("share", share),
                ("body", if no % 2 == 0 { Value::Null } else { random.json() }),
            ],
        );
        put("schedule", vec![("scope_no", Value::Integer(no)), ("body", random.blob())]);
        put("drift", vec![("token_no", Value::Integer(no)), ("value", random.real()), ("share", random.real())]);
        put("investor", vec![("id", random.key()), ("item", random.json()), ("seen", random.number())]);
        put("meta", vec![("key", random.key()), ("value", random.words())]);
        put(
            "silence",
            vec![
                ("id", random.key()),
                ("matchers", random.json()),
                ("author", random.words()),
                ("comment", random.words()),
                ("starts_at", random.number()),
                ("ends_at", random.number()),
                ("created_at", random.number()),
            ],
        );
        put(
            "change",
            vec![
                ("at", random.number()),
                ("kind", word("added")),
                ("body", random.json()),
                ("digest", Value::Blob(random.0.u128(..).to_le_bytes().to_vec())),
            ],
        );
        put(
            "alert",
            vec![
                ("id", random.key()),
                ("rule", random.key()),
                ("name", random.indexable_text()),
                ("subject", random.key()),
                ("episode", random.number()),
                ("state", word("firing")),
                ("active_at", random.number()),
                ("updated_at", random.number()),
                ("body", random.json()),
                ("number", Value::Integer(random.0.i64(..))),
            ],
        );
        put(
            "keyed_request",
            vec![
                ("client", random.key()),
                ("key", random.key()),
                ("hash", random.blob()),
                ("at", random.number()),
                ("status", random.number()),
                ("body", random.json()),
            ],
        );
        let hash = Value::Blob(random.0.u128(..).to_le_bytes().to_vec());
        let created = random.number();
        put("access_key", vec![("name", random.key()), ("role", word("act")), ("hash", hash), ("created_at", created)]);
    }
    // Deletes a row, so that the last number is not the largest one present.
    at.execute("DELETE FROM change WHERE no = (SELECT max(no) FROM change)", []).expect("deleted");
}

impl Random {
    /// PostgreSQL limits the size of an index entry to a few kilobytes.
    fn indexable_text(&mut self) -> Value {
        Value::Text(self.text())
    }
}

async fn create(place: &DatabaseLocation) {
    Store::open_in(place.clone(), Access::Own, now()).await.expect("made").close().await.expect("closed");
}

#[tokio::test]
async fn round_trip_through_other_engine_preserves_all_rows() {
    for seed in 0..CASES {
        let directory = TempDir::new().expect("a directory");
        let (here, there, back) = (file(&directory, "here.db"), other_engine(&directory), file(&directory, "back.db"));
        create(&here).await;
        edit_file(&here, |at| fill_at_random(at, seed));
        let out = copy(&here, &there).expect("copied out");
        let home = copy(&there, &back).expect("copied back");
        assert_eq!(out, home, "seed {seed}");
        let (before, after) = (contents(&here), contents(&back));
        for (table, rows) in before {
            assert_eq!(after.get(&table), Some(&rows), "seed {seed}: {table}");
        }
        assert!(out.iter().any(|table| table.table == "investor" && table.rows > 0), "{out:?}");
    }
}

/// A new table that is missing from `TABLES` would be skipped silently.
#[tokio::test]
async fn every_table_of_both_schemas_is_listed() {
    let directory = TempDir::new().expect("a directory");
    let (here, there) = (file(&directory, "here.db"), other_engine(&directory));
    create(&here).await;
    create(&there).await;
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let store = open(&here).await;
    let found: Vec<String> = rows(&store, names, |row| row.get(0).expect("a name"));
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(found), sorted(TABLES.map(str::to_owned).to_vec()));
    store.close().await.expect("closed");
    let numbered = "SELECT m.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND c.name = 'no'";
    edit_file(&here, |at| {
        let found = all(&mut at.prepare(numbered).expect("queried"), [], |row| Ok(row.get(0)?)).expect("read");
        let known = INTERNAL_NUMBERS.iter().chain(&PERMANENT_NUMBERS).map(|name| (*name).to_owned()).collect();
        assert_eq!(sorted(found), sorted(known));
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'";
        let found = all(&mut at.prepare(sql).expect("queried"), [], |row| Ok(row.get(0)?)).expect("read");
        assert_eq!(sorted(found), sorted(PERMANENT_NUMBERS.map(str::to_owned).to_vec()));
    });
    if let DatabaseLocation::Server(place) = &there {
        let session = PgSession::open(place, &Arc::default()).expect("connects");
        let names = "SELECT string_agg(tablename, ' ' ORDER BY tablename COLLATE \"C\") FROM pg_tables
             WHERE schemaname = current_schema() AND tablename <> 'lease'";
        let found = session.simple(names).expect("queried").unwrap_or_default();
        assert_eq!(found, sorted(TABLES.map(str::to_owned).to_vec()).join(" "));
    }
    copy(&here, &there).expect("the columns are the same");
}

#[tokio::test]
async fn copy_continues_deliveries_and_row_numbers() {
    let directory = TempDir::new().expect("a directory");
    let (here, there, back) = (file(&directory, "here.db"), other_engine(&directory), file(&directory, "back.db"));
    let store = open(&here).await;
    let notified = notify(&store, "sent", &["ops"]).await.remove(0);
    let due = notify(&store, "due", &["ops"]).await.remove(0);
    store.record_attempts(vec![tried(notified.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    let dropped = notify(&store, "gone", &["ops"]).await.remove(0);
    change(&store, &format!("DELETE FROM delivery WHERE no = {}", dropped.id));
    store.close().await.expect("closed");

    for (from, to) in [(&here, &there), (&there, &back)] {
        copy(from, to).expect("copied");
        let store = open(to).await;
        let found = store.due("ops".into(), now(), 9).await.expect("read");
        let found: Vec<_> = found.iter().map(|delivery| (delivery.id, delivery.webhook_id.clone())).collect();
        assert_eq!(found, [(due.id, due.webhook_id.clone())], "delivered notifications are not sent again");
        // Notifying about the same facts again adds no delivery.
        notify(&store, "sent", &["ops"]).await;
        assert_eq!(count(&store, "delivery"), 2);
        if let DatabaseLocation::Server(_) = to {
            let counted = "pg_class WHERE oid = 'delivery'::regclass AND reltuples > 0";
            assert_eq!(count(&store, counted), 1, "the server has statistics");
        }
        store.close().await.expect("closed");
    }
    let store = open(&back).await;
    let next = notify(&store, "next", &["ops"]).await.remove(0);
    assert!(next.id > dropped.id, "{} was used before", dropped.id);
    store.close().await.expect("closed");
}

#[tokio::test]
async fn copy_rejects_missing_busy_foreign_and_non_empty_databases() {
    let directory = TempDir::new().expect("a directory");
    let (here, there) = (file(&directory, "here.db"), other_engine(&directory));
    assert_eq!(copy(&here, &there).expect_err("the source is missing").kind(), ErrorKind::Missing);
    let in_use = |result: Result<Vec<CopiedTable>, StoreError>| match result {
        Err(error) if error.kind() == ErrorKind::InUse => {
            if error.to_string().contains("(test:2)") {
                "lease"
            } else {
                "lock"
            }
        }
        other => panic!("{other:?}"),
    };
    let store = open(&here).await;
    notify(&store, "a", &["ops"]).await;
    assert_eq!(in_use(copy(&here, &there)), "lock");
    store.close().await.expect("closed");

    let store = open(&there).await;
    assert_eq!(in_use(copy(&here, &there)), if server().is_some() { "lease" } else { "lock" });
    store.close().await.expect("closed");
    copy(&here, &there).expect("an empty target is filled");
    let error = copy(&here, &there).expect_err("the target is not empty anymore");
    let text = error.to_string();
    assert!(text.contains("the table alert has") || text.contains("the table token has"), "{text}");
    let store = open(&there).await;
    assert_eq!(in_use(copy(&there, &file(&directory, "back.db"))), if server().is_some() { "lease" } else { "lock" });
    assert_eq!(count(&store, "alert"), 1, "the target is unchanged");
    store.close().await.expect("closed");

    std::fs::write(directory.path().join("text"), "no database").expect("written");
    assert_eq!(copy(&here, &file(&directory, "text")).expect_err("not a database").kind(), ErrorKind::Foreign);
    assert_eq!(copy(&file(&directory, "text"), &there).expect_err("not a database").kind(), ErrorKind::Foreign);
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).expect("read").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains(".copy")), "{left:?}");
}

#[tokio::test]
async fn row_rejected_by_other_engine_rolls_back_the_copy() {
    let directory = TempDir::new().expect("a directory");
    let (here, there) = (file(&directory, "here.db"), other_engine(&directory));
    create(&here).await;
    let mut random = fastrand::Rng::with_seed(1);
    let long: String = (0..9_000).map(|_| random.alphanumeric()).collect();
    edit_file(&here, |at| {
        at.execute("INSERT INTO investor (id, item, seen) VALUES ('a', '{}', 1)", []).expect("written");
        at.execute("INSERT INTO investor (id, item, seen) VALUES (?1, '{}', 1)", [&long]).expect("written");
    });
    if server().is_some() {
        let error = copy(&here, &there).expect_err("the key is too long for an index of the server");
        let text = text::error_chain(&error);
        assert!(text.contains("the table investor failed") && text.contains("index row"), "{text}");
        let store = open(&there).await;
        assert_eq!(count(&store, "investor"), 0);
        store.close().await.expect("closed");
        edit_file(&here, |at| assert_eq!(at.execute_counted("DELETE FROM investor WHERE id <> 'a'", []).expect("deleted"), 1));
    }
    let copied = copy(&here, &there).expect("copied");
    assert!(copied.iter().any(|table| table.table == "investor"), "{copied:?}");
}

#[tokio::test]
async fn digest_mismatch_is_reported() {
    let digests = ["a", "b"].map(|text| {
        let mut digest = TableDigest::default();
        digest.add(&[Value::Text(text.into())]);
        digest.to_string()
    });
    let error = check_equal("alert", &digests[0], &digests[1]).expect_err("they differ");
    assert!(error.to_string().contains("the table alert differs (1 rows with the hash "), "{error}");
}

const CRASH_FROM: &str = "CLIFFWATCH_TEST_COPY_FROM";

/// The child process of [`killed_copy_leaves_target_empty`]. Does nothing in a normal test run.
#[tokio::test]
async fn copy_in_child_process() {
    let Some(path) = std::env::var_os(CRASH_FROM) else { return };
    let path = Path::new(&path);
    let to = server_place(path).map_or_else(|| DatabaseLocation::File(path.join("elsewhere.db")), DatabaseLocation::Server);
    copy(&DatabaseLocation::File(path.join("here.db")), &to).expect("the process dies first");
}

#[tokio::test]
async fn killed_copy_leaves_target_empty() {
    use std::os::unix::process::ExitStatusExt;
    let directory = TempDir::new().expect("a directory");
    let (here, there) = (file(&directory, "here.db"), other_engine(&directory));
    create(&here).await;
    edit_file(&here, |at| fill_at_random(at, 3));
    for point in failpoint::COPY_POINTS {
        let died = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "copy::tests::copy_in_child_process"])
            .env(CRASH_FROM, directory.path())
            .env(failpoint::VARIABLE, point)
            .output()
            .expect("it runs");
        assert_eq!(died.status.signal(), Some(libc::SIGABRT), "{point}: {died:?}");
        match &there {
            DatabaseLocation::File(path) => assert!(!path.exists(), "{point}: the file was not renamed"),
            DatabaseLocation::Server(place) => {
                let session = PgSession::open(place, &Arc::default()).expect("connects");
                assert_eq!(session.simple("SELECT count(*) FROM token").expect("queried").as_deref(), Some("0"), "{point}");
                // The killed process did not release its lease, so expire it.
                session.simple("UPDATE lease SET renewed_at = '-infinity'").expect("written");
            }
        }
    }
    let copied = copy(&here, &there).expect("a second copy succeeds");
    assert!(copied.iter().any(|table| table.rows > 0));
}

#[test]
fn progress_ends_at_total() {
    let directory = TempDir::new().expect("a directory");
    let (here, there) = (file(&directory, "here.db"), file(&directory, "there.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(create(&here));
    edit_file(&here, |at| fill_at_random(at, 5));
    let (mut last, mut seen) = (0, (0, 0));
    Store::copy(&here, &there, "test:1", now(), &mut |progress| {
        assert!(progress.done >= last && progress.done <= progress.total, "{progress:?}");
        (last, seen) = (progress.done, (progress.done, progress.total));
    })
    .expect("copied");
    assert!(seen.0 > 0 && seen.0 == seen.1, "{seen:?}");
}

#[test]
fn copy_whose_data_stays_in_the_log_fails() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("copied.db");
    let now = Timestamp::from_timestamp_millis(1_780_000_000_000).expect("a time");
    let mut target = Target::open(&DatabaseLocation::File(path.clone()), "copy", now).expect("opened");
    // A reader of the unfinished file prevents the checkpoint.
    let reader = rusqlite::Connection::open(directory.path().join("copied.db.copy")).expect("opened");
    reader.execute_batch("BEGIN; SELECT count(*) FROM meta").expect("read");
    let written = target.fill(|side| {
        let sql = "INSERT INTO meta (key, value) VALUES ('copied', 'yes')";
        side.at.prepare_cached(sql).expect("prepared").execute(rusqlite::params![]).expect("written");
        Ok(())
    });
    assert!(written.is_ok(), "{written:?}");
    let error = target.finish().expect_err("the row is only in the log");
    assert!(error.to_string().contains("copied.db"), "{error}");
    assert!(!path.exists(), "complete, or absent");
}
