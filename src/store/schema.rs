//! The schema of a database file: whose file it is, how far it is, and the steps that bring it up to date.
//!
//! There are two: the daemon's database and the catalog of the data service. Both are marked in the header of the file
//! (`application_id`) and counted there (`user_version`), and both go through the same runner.

use rusqlite::{Connection, TransactionBehavior};

/// The database of the daemon: `clfw` in ASCII.
pub(super) const DAEMON: Schema = Schema {
    application_id: 0x636c_6677,
    migrations: &[
        include_str!("../../migrations/0001_start.sql"),
        include_str!("../../migrations/0002_delivery.sql"),
        include_str!("../../migrations/0003_looks.sql"),
        include_str!("../../migrations/0004_opt_out.sql"),
        include_str!("../../migrations/0005_drop_unread.sql"),
        include_str!("../../migrations/0006_findings.sql"),
        include_str!("../../migrations/0007_trust.sql"),
        include_str!("../../migrations/0008_pages.sql"),
        include_str!("../../migrations/0009_desk.sql"),
        include_str!("../../migrations/0010_schedules.sql"),
        include_str!("../../migrations/0011_face.sql"),
        include_str!("../../migrations/0012_status.sql"),
        include_str!("../../migrations/0013_lean.sql"),
        include_str!("../../migrations/0014_days.sql"),
    ],
};

/// The database of the data service: `CWct` in ASCII.
pub(super) const CATALOG: Schema = Schema {
    application_id: 0x4357_6374,
    migrations: &[
        include_str!("../../migrations/catalog/0001_catalog.sql"),
        include_str!("../../migrations/catalog/0002_key_prefix.sql"),
        include_str!("../../migrations/catalog/0003_gap.sql"),
        include_str!("../../migrations/catalog/0004_names.sql"),
    ],
};

/// A kind of database file.
pub(super) struct Schema {
    /// Marks our files, in the header of each.
    application_id: i64,
    /// Steps from an empty file to the present schema, in order. Append only: what was released never changes.
    migrations: &'static [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// Ours, with this version of the schema; zero where it is empty.
    Ours(i64),
    /// Ours, with a version that this program does not know.
    Newer(i64),
    /// A database of another program.
    Foreign {
        /// What it is marked with.
        application_id: i64,
        /// Its tables and indexes.
        tables: i64,
    },
}

/// A step that failed. The file is as it was before that step.
#[derive(Debug)]
pub(super) struct MigrationFailed {
    /// The version that was to be reached.
    pub(super) to: i64,
    /// Why it was not.
    pub(super) source: rusqlite::Error,
}

impl Schema {
    /// The version that this program reads and writes.
    pub(super) const fn version(&self) -> i64 {
        self.migrations.len() as i64
    }

    /// Says whose file this is, without writing to it.
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

    /// Brings a file of ours from version `from` up to date. Each step is one transaction, its number included.
    pub(super) fn migrate(&self, connection: &mut Connection, from: i64) -> Result<(), MigrationFailed> {
        self.migrate_until(connection, from, self.version())
    }

    /// The same, no farther than to version `until`.
    pub(super) fn migrate_until(&self, connection: &mut Connection, from: i64, until: i64) -> Result<(), MigrationFailed> {
        for (to, step) in (1..).zip(self.migrations).filter(|(to, _)| *to > from && *to <= until) {
            self.migrate_to(connection, to, step).map_err(|source| MigrationFailed { to, source })?;
        }
        Ok(())
    }

    fn migrate_to(&self, connection: &mut Connection, to: i64, step: &str) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Of two programs that open a file at once, the second finds the step done.
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
