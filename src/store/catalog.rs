//! The database of the data service: records as the API's JSON, keys with their usage.
//!
//! It is a file of its own, apart from the daemon's. One writer and a few readers share it; a write is one `IMMEDIATE` transaction,
//! a read one snapshot. `synchronous=NORMAL` under WAL: a crash of the process loses nothing that was committed; a loss of power may
//! lose what was committed since the last [`Catalog::sync`], and never tears the file. `keys` has the keys and their credits.

mod keys;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use serde::{Serialize, de::DeserializeOwned};

use super::facts::{Facts, FactsError, RATE_CHANGES, Standing, Window};
use crate::{
    supply::{Endpoint, Resource, Timestamp},
    wire,
};

pub use keys::{KeyRow, Usage};

/// Applied in order, counted in `user_version`; append only.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/catalog/0001_catalog.sql"),
    include_str!("../../migrations/catalog/0002_key_prefix.sql"),
    include_str!("../../migrations/catalog/0003_gap.sql"),
];
/// `application_id`: "CWct". Tells this file from the daemon's and from anybody else's.
const APPLICATION_ID: i64 = 0x4357_6374;
/// Reading connections kept open; more are opened under load and closed again.
const MAX_IDLE_READERS: usize = 4;
/// Pages of the log at which a commit carries it over into the database; see [`Catalog::sync`], which does so earlier and beside.
const LOG_PAGES: i64 = 8192;
/// How long a writer of this process waits for one of another process: an import of ten thousand tokens takes its time, and requests that
/// are to be counted meanwhile wait rather than fail.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// What the catalog could not do.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file cannot be opened or made.
    #[error("cannot open the data service's database {}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("{} is not a database of the data service: use another file, or `cliffwatch import` into a new one", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("{} has schema {found}, this program knows {known}: use the newer program", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The disk does not take what was written.
    #[error("cannot bring {} to disk", path.display())]
    Sync {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A statement failed.
    #[error("cannot {doing} in the data service's database")]
    Sql {
        /// What was attempted.
        doing: &'static str,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A stored body is not the JSON that it was.
    #[error("the stored {what} is damaged")]
    Damaged {
        /// Which row.
        what: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A name is taken by a key that is in use.
    #[error("there is already a key named \"{0}\": choose another name, or revoke that one first")]
    NameTaken(String),
}

/// Turns an SQL error into ours, saying what was attempted.
fn doing(doing: &'static str) -> impl FnOnce(rusqlite::Error) -> CatalogError {
    move |source| CatalogError::Sql { doing, source }
}

/// The database. Share it behind an `Arc`; every call blocks, a write for as long as the disk takes.
#[derive(Debug)]
pub struct Catalog {
    writer: Mutex<Connection>,
    /// None for a database in memory, which has one connection only.
    readers: Option<Readers>,
}

#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// A poisoned lock means that a thread panicked between two statements; SQLite rolled its transaction back, so the connection is good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Catalog {
    /// Opens the file, making it where it is not there, and brings its schema up to date.
    ///
    /// # Errors
    /// Where the file cannot be opened, is not ours, or is newer than this program.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Open { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        let mut connection = Self::prepared(connection, path)?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
        if mode != "wal" {
            tracing::warn!(mode, "the data service's database cannot use a write-ahead log here; readers will wait for writers");
        }
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(failed)?;
        Self::migrate(&mut connection, path)?;
        let readers = Readers { path: path.to_owned(), idle: Mutex::new(Vec::new()) };
        Ok(Self { writer: Mutex::new(connection), readers: Some(readers) })
    }

    /// A database that lives as long as this value.
    ///
    /// # Errors
    /// Where SQLite cannot make it.
    pub fn in_memory() -> Result<Self, CatalogError> {
        let path = Path::new(":memory:");
        let connection = Connection::open_in_memory().map_err(|source| CatalogError::Open { path: path.to_owned(), source })?;
        let mut connection = Self::prepared(connection, path)?;
        Self::migrate(&mut connection, path)?;
        Ok(Self { writer: Mutex::new(connection), readers: None })
    }

    fn prepared(connection: Connection, path: &Path) -> Result<Connection, CatalogError> {
        let failed = |source| CatalogError::Open { path: path.to_owned(), source };
        connection.set_prepared_statement_cache_capacity(64);
        let id: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed)?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        if id != APPLICATION_ID && (id != 0 || tables != 0) {
            return Err(CatalogError::Foreign { path: path.to_owned() });
        }
        Ok(connection)
    }

    fn migrate(connection: &mut Connection, path: &Path) -> Result<(), CatalogError> {
        let migrating = || doing("bring the schema up to date");
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        // IMMEDIATE, so that of two programs that open a new file at once, the second finds the work done.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(migrating())?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(migrating())?;
        if found > known {
            return Err(CatalogError::Newer { path: path.to_owned(), found, known });
        }
        let done = usize::try_from(found).unwrap_or(0);
        for migration in MIGRATIONS.iter().skip(done) {
            transaction.execute_batch(migration).map_err(migrating())?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(migrating())?;
        transaction.pragma_update(None, "user_version", known).map_err(migrating())?;
        transaction.commit().map_err(migrating())
    }

    /// Runs `read` on one consistent view of the data.
    ///
    /// # Errors
    /// What `read` answers, or where the view cannot be taken.
    pub fn read<T, E: From<CatalogError>>(&self, read: impl FnOnce(&View<'_>) -> Result<T, E>) -> Result<T, E> {
        fn snapshot<T, E: From<CatalogError>>(
            connection: &mut Connection,
            read: impl FnOnce(&View<'_>) -> Result<T, E>,
        ) -> Result<T, E> {
            let transaction = connection.transaction().map_err(doing("begin to read"))?;
            read(&View(&transaction))
        }
        let Some(readers) = &self.readers else {
            return snapshot(&mut lock(&self.writer), read);
        };
        let idle = lock(&readers.idle).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => readers.connect()?,
        };
        let result = snapshot(&mut connection, read);
        let mut idle = lock(&readers.idle);
        if idle.len() < MAX_IDLE_READERS {
            idle.push(connection);
        }
        result
    }

    /// Runs `change` in one transaction: all of it happens, or nothing where it answers an error. The generation grows by one.
    ///
    /// # Errors
    /// What `change` answers, or where the transaction cannot be written.
    pub fn write<T, E: From<CatalogError>>(&self, change: impl FnOnce(&Draft<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = lock(&self.writer);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(doing("begin to write"))?;
        let result = change(&Draft(View(&transaction)))?;
        transaction.execute("UPDATE state SET generation = generation + 1", []).map_err(doing("count a change"))?;
        transaction.commit().map_err(doing("commit a change"))?;
        Ok(result)
    }
}

impl Readers {
    fn connect(&self) -> Result<Connection, CatalogError> {
        let failed = |source| CatalogError::Open { path: self.path.clone(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

/// A record on its way into the database.
#[derive(Debug)]
pub struct Row<'a, T> {
    /// Its time, where it has one.
    pub date: Option<Timestamp>,
    /// Whether it is an unlock event that releases something at once.
    pub cliff: bool,
    /// The token that a funding round is about.
    pub about: Option<&'a str>,
    /// The record.
    pub body: &'a T,
}

/// One consistent view of the data.
#[derive(Debug)]
pub struct View<'a>(&'a Connection);

fn parse<T: DeserializeOwned>(body: &str, what: impl FnOnce() -> String) -> Result<T, CatalogError> {
    serde_json::from_str(body).map_err(|source| CatalogError::Damaged { what: what(), source })
}

impl View<'_> {
    /// Grows with every change of the data.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn generation(&self) -> Result<i64, CatalogError> {
        self.0.query_row("SELECT generation FROM state", [], |row| row.get(0)).map_err(doing("read the generation"))
    }

    /// Whether any key was ever made, revoked ones included.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn has_keys(&self) -> Result<bool, CatalogError> {
        self.0.query_row("SELECT EXISTS (SELECT 1 FROM api_key)", [], |row| row.get(0)).map_err(doing("look for keys"))
    }

    /// Hash of what a token was imported from.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn token_content(&self, id: &str) -> Result<Option<String>, CatalogError> {
        self.0
            .prepare_cached("SELECT content FROM token WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| row.get(0)).optional())
            .map_err(doing("read a token"))
    }

    /// Owners that have records of a resource.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn owners(&self, resource: Resource) -> Result<Vec<String>, CatalogError> {
        let reading = || doing("list owners");
        let mut statement =
            self.0.prepare("SELECT DISTINCT owner FROM record WHERE resource = ?1 ORDER BY owner").map_err(reading())?;
        let rows = statement.query_map([resource.as_str()], |row| row.get(0)).map_err(reading())?;
        rows.collect::<Result<_, _>>().map_err(reading())
    }

    fn is_gap(&self, owner: &str, what: &str) -> Result<bool, CatalogError> {
        self.0
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM gap WHERE owner = ?1 AND what = ?2)")
            .and_then(|mut statement| statement.query_row([owner, what], |row| row.get(0)))
            .map_err(doing("look for a gap"))
    }

    fn bodies<T: DeserializeOwned>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        reading: &'static str,
        what: impl Fn() -> String,
    ) -> Result<Vec<T>, CatalogError> {
        let mut statement = self.0.prepare_cached(sql).map_err(doing(reading))?;
        let mut rows = statement.query(params).map_err(doing(reading))?;
        let mut bodies = Vec::new();
        while let Some(row) = rows.next().map_err(doing(reading))? {
            let body = row.get_ref(0).and_then(|value| Ok(value.as_str()?)).map_err(doing(reading))?;
            bodies.push(parse(body, &what)?);
        }
        Ok(bodies)
    }
}

impl Facts for View<'_> {
    fn standing(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Standing, FactsError> {
        let is_gap = self.is_gap(token.unwrap_or_default(), endpoint.as_str())?;
        Ok(if is_gap { Standing::NeverRead } else { Standing::Own })
    }

    fn tells_rate_changes(&self, token: &str, _: &[wire::UnlockEvent]) -> Result<bool, FactsError> {
        Ok(!self.is_gap(token, RATE_CHANGES)?)
    }

    fn token(&self, id: &str) -> Result<Option<wire::TokenItem>, FactsError> {
        let body: Option<String> = self
            .0
            .prepare_cached("SELECT item FROM token WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| row.get(0)).optional())
            .map_err(doing("read a token"))?;
        Ok(body.map(|body| parse(&body, || format!("token {id}"))).transpose()?)
    }

    fn tokens(&self) -> Result<Vec<wire::TokenItem>, FactsError> {
        Ok(self.bodies("SELECT item FROM token ORDER BY id", [], "list the tokens", || "token".into())?)
    }

    fn header<T: DeserializeOwned>(&self, resource: Resource, owner: &str) -> Result<Option<T>, FactsError> {
        let body: Option<String> = self
            .0
            .prepare_cached("SELECT body FROM header WHERE resource = ?1 AND owner = ?2")
            .and_then(|mut statement| statement.query_row([resource.as_str(), owner], |row| row.get(0)).optional())
            .map_err(doing("read a payload"))?;
        Ok(body.map(|body| parse(&body, || format!("{resource} payload of {owner}"))).transpose()?)
    }

    fn investors(&self) -> Result<Vec<wire::InvestorItem>, FactsError> {
        let sql = "SELECT body FROM header WHERE resource = ?1 ORDER BY owner";
        Ok(self.bodies(sql, [Resource::Funding.as_str()], "list the investors", || "investor".into())?)
    }

    fn records<T: DeserializeOwned>(&self, resource: Resource, owner: &str, window: Window) -> Result<Vec<T>, FactsError> {
        Ok(self.bodies(
            "SELECT body FROM record WHERE resource = ?1 AND owner = ?2
                 AND (?3 IS NULL OR date >= ?3) AND (?4 IS NULL OR date < ?4) ORDER BY date, ordinal",
            params![
                resource.as_str(),
                owner,
                window.from.map(|from| from.timestamp()),
                window.until.map(|until| until.timestamp())
            ],
            "read records",
            || format!("{resource} record of {owner}"),
        )?)
    }

    fn first_cliff<T>(
        &self,
        token: &str,
        window: Window,
        mut wanted: impl FnMut(wire::UnlockEvent) -> Option<T>,
    ) -> Result<Option<T>, FactsError> {
        let reading = || doing("look for the next event");
        let mut statement = self
            .0
            .prepare_cached(
                "SELECT body FROM record WHERE resource = 'unlock' AND owner = ?1 AND cliff = 1
                     AND (?2 IS NULL OR date >= ?2) AND (?3 IS NULL OR date < ?3) ORDER BY date, ordinal",
            )
            .map_err(reading())?;
        let mut rows = statement
            .query(params![token, window.from.map(|from| from.timestamp()), window.until.map(|until| until.timestamp())])
            .map_err(reading())?;
        while let Some(row) = rows.next().map_err(reading())? {
            let body: String = row.get(0).map_err(reading())?;
            if let Some(found) = wanted(parse(&body, || format!("unlock record of {token}"))?) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn rounds_about(&self, token: &str) -> Result<Vec<wire::FundingRound>, FactsError> {
        Ok(self.bodies(
            "SELECT body FROM record WHERE about = ?1 AND resource = 'funding' ORDER BY date DESC, owner, ordinal",
            [token],
            "read funding rounds",
            || format!("funding round of {token}"),
        )?)
    }
}

/// A change that is being made: what it sees is its own work so far.
#[derive(Debug)]
pub struct Draft<'a>(View<'a>);

impl<'a> std::ops::Deref for Draft<'a> {
    type Target = View<'a>;
    fn deref(&self) -> &View<'a> {
        &self.0
    }
}

fn body_of<T: Serialize>(value: &T, what: impl FnOnce() -> String) -> Result<String, CatalogError> {
    serde_json::to_string(value).map_err(|source| CatalogError::Damaged { what: what(), source })
}

impl Draft<'_> {
    /// Takes all tokens and records out. Keys stay.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn clear(&self) -> Result<(), CatalogError> {
        self.0
            .0
            .execute_batch("DELETE FROM token; DELETE FROM header; DELETE FROM record; DELETE FROM gap;")
            .map_err(doing("clear the data"))
    }

    /// Writes a token of the list.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_token(&self, id: &str, item: &wire::TokenItem, content: &str) -> Result<(), CatalogError> {
        let item = body_of(item, || format!("token {id}"))?;
        self.0
            .0
            .prepare_cached(
                "INSERT INTO token (id, item, content) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET item = excluded.item, content = excluded.content",
            )
            .and_then(|mut statement| statement.execute([id, &item, content]))
            .map(drop)
            .map_err(doing("write a token"))
    }

    /// Takes a token out, with all its records.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn remove_token(&self, id: &str) -> Result<(), CatalogError> {
        for sql in [
            "DELETE FROM token WHERE id = ?1",
            "DELETE FROM header WHERE owner = ?1 AND resource <> 'funding'",
            "DELETE FROM record WHERE owner = ?1 AND resource <> 'funding'",
            "DELETE FROM gap WHERE owner = ?1",
        ] {
            self.0.0.execute(sql, [id]).map_err(doing("remove a token"))?;
        }
        Ok(())
    }

    /// Notes that something is not known of `owner` (a token; empty for what is about none): an [`Endpoint`]'s word, or
    /// [`RATE_CHANGES`].
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_gap(&self, owner: &str, what: &str) -> Result<(), CatalogError> {
        self.0
            .0
            .prepare_cached("INSERT OR IGNORE INTO gap (owner, what) VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute([owner, what]))
            .map(drop)
            .map_err(doing("write a gap"))
    }

    /// Writes the payload fields beside the records of `owner`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_header<T: Serialize>(&self, resource: Resource, owner: &str, body: &T) -> Result<(), CatalogError> {
        let body = body_of(body, || format!("{resource} payload of {owner}"))?;
        self.0
            .0
            .prepare_cached(
                "INSERT INTO header (resource, owner, body) VALUES (?1, ?2, ?3)
                     ON CONFLICT (resource, owner) DO UPDATE SET body = excluded.body",
            )
            .and_then(|mut statement| statement.execute([resource.as_str(), owner, &body]))
            .map(drop)
            .map_err(doing("write a payload"))
    }

    /// Writes the records of `owner` in place of those it had.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub fn put_records<'r, T: Serialize + 'r>(
        &self,
        resource: Resource,
        owner: &str,
        rows: impl IntoIterator<Item = Row<'r, T>>,
    ) -> Result<(), CatalogError> {
        let writing = || doing("write records");
        let connection = self.0.0;
        connection
            .prepare_cached("DELETE FROM record WHERE resource = ?1 AND owner = ?2")
            .and_then(|mut statement| statement.execute([resource.as_str(), owner]))
            .map_err(writing())?;
        let mut insert = connection
            .prepare_cached(
                "INSERT INTO record (resource, owner, ordinal, date, cliff, about, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )
            .map_err(writing())?;
        for (ordinal, row) in (0_i64..).zip(rows) {
            let body = body_of(row.body, || format!("{resource} record of {owner}"))?;
            let date = row.date.map(|date| date.timestamp());
            insert.execute(params![resource.as_str(), owner, ordinal, date, row.cliff, row.about, body]).map_err(writing())?;
        }
        Ok(())
    }
}
