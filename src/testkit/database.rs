//! Direct access to the database of a test, without the store: a new schema on the PostgreSQL server of the environment, else a file.
//! The SQL of the tests works on both engines.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use model::config::{SecretText, StoreSettings};
use serde_json::{Value, json};

/// The busy timeout of a file.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The error of a rejected row.
const REJECTION: &str = "rejected by the test";

/// The URL of the test server, which `tests/postgres/run` starts.
fn server() -> Option<String> {
    std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// Runs a query on the server. Returns an empty text on an error.
pub fn query_server(url: &str, sql: &str) -> String {
    let response = Command::new("psql").args([url, "-X", "-q", "-t", "-A", "-c", sql]).output().expect("psql runs");
    String::from_utf8_lossy(&response.stdout).trim().to_owned()
}

/// Creates a schema on the server and returns its URL. `None` without a server.
pub fn create_schema() -> Option<String> {
    let url = server()?;
    let schema = format!("test{}_{}", std::process::id(), fastrand::u32(..));
    query_server(&url, &format!("CREATE SCHEMA {schema}"));
    Some(format!("{url}?options=-csearch_path%3D{schema}"))
}

#[derive(Clone, Debug)]
pub enum Database {
    File(PathBuf),
    /// The URL of a schema.
    Server(String),
}

impl Database {
    /// An empty database: a new schema if there is a server, else the file.
    pub fn new(file: PathBuf) -> Self {
        create_schema().map_or(Self::File(file), Self::Server)
    }

    /// The database of a config.
    pub fn of(store: &StoreSettings) -> Self {
        match &store.url {
            Some(url) => Self::Server(url.expose().to_owned()),
            None => Self::File(store.path.clone()),
        }
    }

    pub fn is_on_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// The key in `[store]` that selects it.
    pub fn setting(&self) -> String {
        match self {
            Self::File(path) => format!("path = {path:?}"),
            Self::Server(url) => format!("url = {url:?}"),
        }
    }

    /// Makes a config use it.
    pub fn put_into(&self, store: &mut StoreSettings) {
        match self {
            Self::File(path) => store.path = path.clone(),
            Self::Server(url) => store.url = Some(SecretText::from(url.clone())),
        }
    }

    /// Runs a query and returns the rows as JSON values.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        match self {
            Self::File(path) => rows_in_file(path, sql),
            Self::Server(url) => rows_on_server(url, sql),
        }
    }

    /// Runs a query and returns the first column.
    pub fn column(&self, sql: &str) -> Vec<Value> {
        self.rows(sql).into_iter().filter_map(|row| row.into_iter().next()).collect()
    }

    /// Runs a query with one number as its result.
    pub fn count(&self, sql: &str) -> i64 {
        self.column(sql).first().and_then(Value::as_i64).expect(sql)
    }

    /// Returns whether the tables exist.
    pub fn has_tables(&self) -> bool {
        match self {
            Self::File(path) => path.exists() && self.count("SELECT count(*) FROM sqlite_schema") > 0,
            Self::Server(_) => self.count("SELECT count(to_regclass('record'))") > 0,
        }
    }

    /// Returns whether a file is undamaged. Always `true` for a server.
    pub fn is_intact(&self) -> bool {
        self.is_on_server() || self.column("PRAGMA integrity_check") == [json!("ok")]
    }

    /// Makes every insert into `table` fail.
    pub fn sabotage(&self, table: &str) {
        self.reject_rows("INSERT", table, "1 = 1");
    }

    /// Reverts `sabotage`.
    pub fn repair(&self, table: &str) {
        self.accept_rows(table);
    }

    /// Rejects rows of `table` for which `condition` is true. `event` is `INSERT` or `UPDATE`, and the condition refers to the new row as
    /// `NEW`.
    pub fn reject_rows(&self, event: &str, table: &str, condition: &str) {
        self.run(&match self {
            Self::File(_) => format!(
                "CREATE TRIGGER rejected BEFORE {event} ON {table} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{REJECTION}'); END"
            ),
            Self::Server(_) => format!(
                "CREATE OR REPLACE FUNCTION rejected() RETURNS trigger LANGUAGE plpgsql
                 AS $$ BEGIN IF {condition} THEN RAISE EXCEPTION '{REJECTION}'; END IF; RETURN NEW; END $$;
                 CREATE TRIGGER rejected BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION rejected()"
            ),
        });
    }

    /// Reverts `reject_rows`.
    pub fn accept_rows(&self, table: &str) {
        self.run(&match self {
            Self::File(_) => "DROP TRIGGER rejected".to_owned(),
            Self::Server(_) => format!("DROP TRIGGER rejected ON {table}"),
        });
    }

    /// Expires the lease of a dead process, so that the next one need not wait for the end of the term.
    pub fn end_term(&self) {
        if let Self::Server(url) = self {
            // Fails without tables, and while the server is stopped; both are fine.
            query_server(url, "UPDATE lease SET renewed_at = '-infinity'");
        }
    }

    fn run(&self, sql: &str) {
        match self {
            Self::File(path) => {
                let database = rusqlite::Connection::open(path).expect("opens");
                database.busy_timeout(WAIT_TIMEOUT).expect("set");
                database.execute_batch(sql).expect(sql);
            }
            Self::Server(url) => {
                let ran = Command::new("psql").args([url, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]).output();
                let ran = ran.expect("psql runs");
                assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
            }
        }
    }
}

fn rows_on_server(url: &str, sql: &str) -> Vec<Vec<Value>> {
    let all = query_server(url, &format!("SELECT coalesce(json_agg(row_to_json(t)), '[]') FROM ({sql}) t"));
    let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&all).expect(sql);
    rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect()
}

fn rows_in_file(path: &Path, sql: &str) -> Vec<Vec<Value>> {
    use rusqlite::types::ValueRef;
    let database = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
    database.busy_timeout(WAIT_TIMEOUT).expect("set");
    let mut statement = database.prepare(sql).expect("prepared");
    let columns = statement.column_count();
    let value = |value: ValueRef<'_>| match value {
        ValueRef::Integer(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Null => Value::Null,
        other => panic!("{other:?}"),
    };
    let rows = statement.query_map([], |row| (0..columns).map(|at| Ok(value(row.get_ref(at)?))).collect()).expect("queried");
    rows.collect::<Result<_, _>>().expect("read")
}
