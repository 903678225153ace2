//! The schema on a server: how far it is, and the steps that bring it up to date. The number of the last step is a row of `meta`;
//! whoever takes steps holds a lock, so that of two daemons that start at once the second finds them taken.

use tokio_postgres::error::SqlState;

use super::{PgFault, PgSession};
use crate::error::{StoreError, StoreFault};
use crate::sql::SqlError;

/// The tables of the daemon.
pub(crate) const DAEMON: ServerSchema = ServerSchema {
    meta: "meta",
    migrations: &[
        include_str!("../../../../migrations/postgres/0001_start.sql"),
        include_str!("../../../../migrations/postgres/0002_face.sql"),
        include_str!("../../../../migrations/postgres/0003_lean.sql"),
        include_str!("../../../../migrations/postgres/0004_days.sql"),
        include_str!("../../../../migrations/postgres/0005_told.sql"),
    ],
};

/// The tables of the data service.
pub(crate) const CATALOG: ServerSchema =
    ServerSchema { meta: "served_meta", migrations: &[include_str!("../../../../migrations/postgres/catalog/0001_start.sql")] };

/// Tables that belong together, and are brought up to date together.
#[derive(Clone, Copy)]
pub(crate) struct ServerSchema {
    /// The table that says how far they are.
    meta: &'static str,
    /// Steps from nothing to the present schema, in order. Append only: what was released never changes.
    migrations: &'static [&'static str],
}

/// A server, and which of its schemas is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    /// Its major version.
    pub version: u32,
    /// The schema in which our tables are, or would be made.
    pub schema: String,
}

/// The oldest server that is known to do.
const OLDEST_SERVER: u32 = 140_000;

const LOCK: &str = "BEGIN; SELECT pg_advisory_xact_lock(1668048504, hashtext(current_schema()))";

impl ServerSchema {
    /// The version that this program reads and writes.
    const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }
}

impl PgSession {
    /// Finds out whether the tables can be used, and brings them up to date where `is_owner`. Fails where the server is too old, the
    /// schema newer, older for one who may not change it, or not ours.
    pub(crate) fn prepare_schema(&self, schema: ServerSchema, is_owner: bool, program: &str) -> Result<(), StoreError> {
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during("open the database", self.place.name());
        self.check_server()?;
        let mut found = self.schema_version(schema)?;
        if is_owner && found < schema.version() {
            self.simple(LOCK).map_err(failed)?;
            let result = self.schema_version(schema).and_then(|present| {
                found = present;
                self.migrate(schema, present, program)
            });
            if let Err(error) = result {
                self.rollback();
                return Err(error);
            }
            self.simple("COMMIT").map_err(failed)?;
            found = schema.version();
        }
        let path = self.place.name().to_owned();
        match found {
            found if found > schema.version() => {
                let written_by =
                    self.simple(&format!("SELECT value FROM {} WHERE key = 'program'", schema.meta)).map_err(failed)?;
                let written_by = written_by.unwrap_or_else(|| "of a newer version".into());
                let written_by = written_by.chars().filter(|c| c.is_ascii_graphic()).take(32).collect();
                Err(StoreError::Newer { path, found, known: schema.version(), written_by })
            }
            found if found == 0 && !is_owner => Err(StoreError::Missing { path }),
            found if found < schema.version() => Err(StoreError::Older { path, found, known: schema.version() }),
            _ => Ok(()),
        }
    }

    /// What a server says of itself.
    pub(crate) fn server(&self) -> Result<DatabaseServer, PgFault> {
        let number: u32 = self.simple("SHOW server_version_num")?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let schema = self.simple("SELECT current_schema()")?.unwrap_or_default();
        Ok(DatabaseServer { version: number / 10_000, schema })
    }

    fn check_server(&self) -> Result<(), StoreError> {
        let path = self.place.name();
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during("open the database", path);
        let number = self.simple("SHOW server_version_num").map_err(failed)?;
        let number: u32 = number.and_then(|text| text.parse().ok()).unwrap_or(0);
        if number < OLDEST_SERVER {
            return Err(StoreError::ServerTooOld {
                path: path.to_owned(),
                found: number / 10_000,
                needed: OLDEST_SERVER / 10_000,
            });
        }
        if self.simple("SELECT current_schema()").map_err(failed)?.is_none() {
            let found = "the first schema of its search_path does not exist".to_owned();
            return Err(StoreError::NotOurs { path: path.to_owned(), found });
        }
        Ok(())
    }

    /// The version of the schema; zero where there is nothing of ours.
    fn schema_version(&self, schema: ServerSchema) -> Result<i64, StoreError> {
        let path = self.place.name();
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during("read the schema", path);
        let is_there = self
            .simple(&format!("SELECT to_regclass(quote_ident(current_schema()) || '.{}')::text", schema.meta))
            .map_err(failed)?;
        if is_there.is_none() {
            return Ok(0);
        }
        let not_ours = || {
            let found = format!("it has a table `{}` of another program", schema.meta);
            StoreError::NotOurs { path: path.to_owned(), found }
        };
        match self.simple(&format!("SELECT value FROM {} WHERE key = 'schema'", schema.meta)) {
            Ok(text) => text.and_then(|text| text.parse().ok()).ok_or_else(not_ours),
            Err(fault) if fault.state().is_some_and(|state| *state == SqlState::UNDEFINED_COLUMN) => Err(not_ours()),
            Err(fault) => Err(failed(fault)),
        }
    }

    fn migrate(&self, schema: ServerSchema, from: i64, program: &str) -> Result<(), StoreError> {
        let path = self.place.name();
        for (to, step) in (1..).zip(schema.migrations).filter(|(to, _)| *to > from) {
            let note = format!(
                "; INSERT INTO {} (key, value) VALUES ('schema', '{to}'), ('program', '{program}')
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                schema.meta
            );
            self.batch(&format!("{step}{note}")).map_err(|fault| match fault.state() {
                Some(state) if *state == SqlState::INSUFFICIENT_PRIVILEGE => {
                    StoreFault::from(SqlError::from(fault)).during("bring the schema up to date", path)
                }
                _ => StoreError::Migration { path: path.to_owned(), to, source: Box::new(fault) },
            })?;
        }
        Ok(())
    }
}
