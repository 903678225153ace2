//! The database of a test, past every operation of the store: a schema of its own on the server that the environment names, else a
//! file. What is asked here is understood by both engines.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use cliffwatch::model::config::{SecretText, StoreSettings};
use serde_json::{Value, json};

/// How long a file is waited for that another one writes to.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server that the tests may use; `tests/postgres/run` starts one.
fn server() -> Option<String> {
    std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// Asks the server past the program. Empty where it cannot be asked.
pub fn ask_server(url: &str, sql: &str) -> String {
    let answer = Command::new("psql").args([url, "-X", "-q", "-t", "-A", "-c", sql]).output().expect("psql runs");
    String::from_utf8_lossy(&answer.stdout).trim().to_owned()
}

/// The address of an empty schema on the server, where there is one.
pub fn schema_of_its_own() -> Option<String> {
    let url = server()?;
    let schema = format!("it{}_{}", std::process::id(), fastrand::u32(..));
    ask_server(&url, &format!("CREATE SCHEMA {schema}"));
    Some(format!("{url}?options=-csearch_path%3D{schema}"))
}

#[derive(Clone, Debug)]
pub enum Database {
    File(PathBuf),
    /// By its address.
    Server(String),
}

impl Database {
    /// One that nobody has written to: on the server where there is one, else the file.
    pub fn new(file: PathBuf) -> Self {
        schema_of_its_own().map_or(Self::File(file), Self::Server)
    }

    /// That of a config.
    pub fn of(store: &StoreSettings) -> Self {
        match &store.url {
            Some(url) => Self::Server(url.expose().to_owned()),
            None => Self::File(store.path.clone()),
        }
    }

    pub fn is_on_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// The line of `[store]` that names it.
    pub fn setting(&self) -> String {
        match self {
            Self::File(path) => format!("path = {path:?}"),
            Self::Server(url) => format!("url = {url:?}"),
        }
    }

    /// Lets a config name it.
    pub fn put_into(&self, store: &mut StoreSettings) {
        match self {
            Self::File(path) => store.path = path.clone(),
            Self::Server(url) => store.url = Some(SecretText::from(url.clone())),
        }
    }

    /// Rows, as lists of JSON values.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        match self {
            Self::File(path) => rows_in_file(path, sql),
            Self::Server(url) => rows_on_server(url, sql),
        }
    }

    /// The first column of each row.
    pub fn column(&self, sql: &str) -> Vec<Value> {
        self.rows(sql).into_iter().filter_map(|row| row.into_iter().next()).collect()
    }

    /// The one number that is asked for.
    pub fn count(&self, sql: &str) -> i64 {
        self.column(sql).first().and_then(Value::as_i64).expect(sql)
    }

    /// Whether somebody made the tables.
    pub fn has_tables(&self) -> bool {
        match self {
            Self::File(path) => path.exists() && self.count("SELECT count(*) FROM sqlite_schema") > 0,
            Self::Server(_) => self.count("SELECT count(to_regclass('record'))") > 0,
        }
    }

    /// Whether a file is whole; what a server keeps is its own to check.
    pub fn is_whole(&self) -> bool {
        self.is_on_server() || self.column("PRAGMA integrity_check") == [json!("ok")]
    }

    /// Lets every transaction fail that adds a row to `table`.
    pub fn sabotage(&self, table: &str) {
        self.run(&match self {
            Self::File(_) => {
                format!("CREATE TRIGGER sabotage BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'sabotage'); END")
            }
            Self::Server(_) => format!(
                "CREATE OR REPLACE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'sabotage'; END $$;
                 CREATE TRIGGER sabotage BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION sabotage()"
            ),
        });
    }

    /// Ends that.
    pub fn mend(&self, table: &str) {
        self.run(&match self {
            Self::File(_) => "DROP TRIGGER sabotage".to_owned(),
            Self::Server(_) => format!("DROP TRIGGER sabotage ON {table}"),
        });
    }

    /// Ends the term of whoever held the lease and is known to be dead, so that nobody has to wait for it.
    pub fn end_term(&self) {
        if let Self::Server(url) = self {
            // Where there are no tables yet, nobody holds any; a server that cannot be asked is no hindrance either.
            ask_server(url, "UPDATE lease SET renewed_at = '-infinity'");
        }
    }

    fn run(&self, sql: &str) {
        match self {
            Self::File(path) => {
                let database = rusqlite::Connection::open(path).expect("opens");
                database.busy_timeout(PATIENCE).expect("set");
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
    let all = ask_server(url, &format!("SELECT coalesce(json_agg(row_to_json(t)), '[]') FROM ({sql}) t"));
    let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&all).expect(sql);
    rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect()
}

fn rows_in_file(path: &Path, sql: &str) -> Vec<Vec<Value>> {
    use rusqlite::types::ValueRef;
    let database = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
    database.busy_timeout(PATIENCE).expect("set");
    let mut statement = database.prepare(sql).expect("prepared");
    let columns = statement.column_count();
    let value = |value: ValueRef<'_>| match value {
        ValueRef::Integer(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Null => Value::Null,
        other => panic!("{other:?}"),
    };
    let rows = statement.query_map([], |row| (0..columns).map(|at| Ok(value(row.get_ref(at)?))).collect()).expect("asked");
    rows.collect::<Result<_, _>>().expect("read")
}
