//! The schema on a server and its migrations. A row of `meta` contains the version. Migrations take a lock, so that a
//! second daemon that starts at the same time finds them done. They also take the lease from a running instance of an
//! older version, which knows nothing of the new schema.

use tokio_postgres::error::SqlState;

use super::{PgFault, PgSession};
use crate::error::{ErrorKind, OPENING, StoreError, StoreFault};
use crate::sql::SqlError;

/// The tables of the daemon.
pub(crate) const DAEMON: ServerSchema = ServerSchema {
    meta: "meta",
    lease: Some("lease"),
    migrations: &[
        include_str!("../../../../migrations/postgres/0001_start.sql"),
        include_str!("../../../../migrations/postgres/0002_supply.sql"),
        include_str!("../../../../migrations/postgres/0003_held_events.sql"),
        include_str!("../../../../migrations/postgres/0004_event_log.sql"),
        include_str!("../../../../migrations/postgres/0005_replay.sql"),
        include_str!("../../../../migrations/postgres/0006_message_types.sql"),
        include_str!("../../../../migrations/postgres/0007_http_api.sql"),
        include_str!("../../../../migrations/postgres/0008_people.sql"),
        include_str!("../../../../migrations/postgres/0009_open_labels.sql"),
    ],
};

/// The tables of the data service.
pub(crate) const CATALOG: ServerSchema = ServerSchema {
    meta: "served_meta",
    lease: None,
    migrations: &[include_str!("../../../../migrations/postgres/catalog/0001_start.sql")],
};

/// A set of tables with a common version.
#[derive(Clone, Copy)]
pub(crate) struct ServerSchema {
    /// The table that contains the version.
    meta: &'static str,
    /// The table of the lease. `None` if the instances need none.
    lease: Option<&'static str>,
    /// The migrations from nothing to the current schema. Append only: a released migration never changes.
    migrations: &'static [&'static str],
}

/// The major version of a server, and the schema that we use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    pub version: u32,
    /// The schema of our tables, which may not exist yet.
    pub schema: String,
}

/// The oldest supported version, as in `server_version_num`.
const OLDEST_SERVER: u32 = 140_000;

const LOCK: &str = "BEGIN; SELECT pg_advisory_xact_lock(1668048504, hashtext(current_schema()))";

impl ServerSchema {
    /// Returns the schema version of this program.
    pub(super) const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }
}

impl PgSession {
    /// Checks that the tables are usable, and migrates them if `is_owner` is set. Fails if the server is too old, the
    /// schema is newer or not ours, or a non-owner finds an older schema.
    pub(crate) fn prepare_schema(&self, schema: ServerSchema, is_owner: bool, program: &str) -> Result<(), StoreError> {
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during(OPENING, self.place.name());
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
        let path = self.place.name();
        match found {
            found if found > schema.version() => {
                let written_by =
                    self.simple(&format!("SELECT value FROM {} WHERE key = 'program'", schema.meta)).map_err(failed)?;
                Err(StoreError::newer(path, found, schema.version(), written_by))
            }
            found if found == 0 && !is_owner => Err(StoreError::missing(path)),
            found if found < schema.version() => Err(StoreError::older(path, found, schema.version())),
            _ => Ok(()),
        }
    }

    /// Returns the version and schema of the server.
    pub(crate) fn server(&self) -> Result<DatabaseServer, PgFault> {
        let number: u32 = self.simple("SHOW server_version_num")?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let schema = self.simple("SELECT current_schema()")?.unwrap_or_default();
        Ok(DatabaseServer { version: number / 10_000, schema })
    }

    fn check_server(&self) -> Result<(), StoreError> {
        let path = self.place.name();
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during(OPENING, path);
        let number = self.simple("SHOW server_version_num").map_err(failed)?;
        let number: u32 = number.and_then(|text| text.parse().ok()).unwrap_or(0);
        if number < OLDEST_SERVER {
            let (found, needed) = (number / 10_000, OLDEST_SERVER / 10_000);
            let reason = format!("the server is PostgreSQL {found}, but {needed} or newer is required; upgrade the server");
            return Err(StoreError::new(ErrorKind::Rejected, OPENING, path, reason));
        }
        if self.simple("SELECT current_schema()").map_err(failed)?.is_none() {
            return Err(StoreError::foreign(path, "no schema of its search_path exists"));
        }
        Ok(())
    }

    /// Returns the schema version, 0 if our tables do not exist.
    fn schema_version(&self, schema: ServerSchema) -> Result<i64, StoreError> {
        let path = self.place.name();
        let failed = |fault: PgFault| StoreFault::from(SqlError::from(fault)).during("read the schema", path);
        let is_there = self
            .simple(&format!("SELECT to_regclass(quote_ident(current_schema()) || '.{}')::text", schema.meta))
            .map_err(failed)?;
        if is_there.is_none() {
            return Ok(0);
        }
        let foreign = || StoreError::foreign(path, &format!("its table `{}` belongs to another program", schema.meta));
        match self.simple(&format!("SELECT value FROM {} WHERE key = 'schema'", schema.meta)) {
            Ok(text) => text.and_then(|text| text.parse().ok()).ok_or_else(foreign),
            Err(fault) if fault.state().is_some_and(|state| *state == SqlState::UNDEFINED_COLUMN) => Err(foreign()),
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
                    StoreFault::from(SqlError::from(fault)).during("migrate the database", path)
                }
                _ => StoreError::migration(path, to, fault),
            })?;
        }
        if let (1.., Some(lease)) = (from, schema.lease) {
            // Fences out a running instance of an older version: it commits nothing after this transaction.
            let release = format!("UPDATE {lease} SET number = number + 1, holder = '', renewed_at = '-infinity'");
            self.batch(&release).map_err(|fault| StoreError::migration(path, schema.version(), fault))?;
        }
        Ok(())
    }
}
