//! The schema of a database file: identification, version, and migrations.
//!
//! There are two kinds of files: the daemon's database and the catalog of the data service. The file header identifies
//! the kind (`application_id`) and the schema version (`user_version`).

use rusqlite::{Connection, TransactionBehavior};

/// The daemon's database: `clfw` in ASCII.
pub(super) const DAEMON: Schema = Schema {
    application_id: 0x636c_6677,
    migrations: &[
        include_str!("../../migrations/0001_start.sql"),
        include_str!("../../migrations/0002_supply.sql"),
        include_str!("../../migrations/0003_held_events.sql"),
        include_str!("../../migrations/0004_event_log.sql"),
        include_str!("../../migrations/0005_replay.sql"),
        include_str!("../../migrations/0006_message_types.sql"),
        include_str!("../../migrations/0007_http_api.sql"),
        include_str!("../../migrations/0008_people.sql"),
        include_str!("../../migrations/0009_open_labels.sql"),
    ],
};

/// The data service's database: `CWct` in ASCII.
pub(super) const CATALOG: Schema =
    Schema { application_id: 0x4357_6374, migrations: &[include_str!("../../migrations/catalog/0001_catalog.sql")] };

/// A kind of database file.
pub(super) struct Schema {
    /// The value in the file header that identifies the kind.
    application_id: i64,
    /// The migrations from an empty file to the current schema. Append only: a released migration never changes.
    migrations: &'static [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// Our file, with this schema version. 0 if it is empty.
    Ours(i64),
    /// Our file, with a schema version newer than this program.
    Newer(i64),
    /// A database of another application.
    Foreign {
        application_id: i64,
        /// The number of tables and indexes.
        tables: i64,
    },
}

/// A failed migration. The file stays at the version before.
#[derive(Debug)]
pub(super) struct MigrationFailed {
    /// The schema version that the migration leads to.
    pub(super) to: i64,
    pub(super) source: rusqlite::Error,
}

impl Schema {
    /// Returns the schema version of this program.
    pub(super) const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }

    /// Identifies a file without writing to it.
    pub(super) fn inspect(&self, connection: &Connection) -> rusqlite::Result<FileState> {
        let application_id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version = user_version(connection)?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let is_empty = application_id == 0 && version == 0 && tables == 0;
        Ok(if application_id != self.application_id && !is_empty {
            FileState::Foreign { application_id, tables }
        } else if version > self.version() {
            FileState::Newer(version)
        } else {
            FileState::Ours(version)
        })
    }

    /// Migrates a file from version `from` to the current schema, with one transaction per migration.
    pub(super) fn migrate(&self, connection: &mut Connection, from: i64) -> Result<(), MigrationFailed> {
        for (to, step) in (1..).zip(self.migrations).filter(|(to, _)| *to > from) {
            self.migrate_to(connection, to, step).map_err(|source| MigrationFailed { to, source })?;
        }
        Ok(())
    }

    fn migrate_to(&self, connection: &mut Connection, to: i64, step: &str) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // If two processes open a file at once, the second finds the migration done.
        if user_version(&transaction)? < to {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", self.application_id)?;
            transaction.pragma_update(None, "user_version", to)?;
        }
        transaction.commit()
    }
}

fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests;
