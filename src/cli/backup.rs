//! `backup FILE`: copies the database while it is in use.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, dump, shown};
use daemon::database_url::database_of;
use store::{Access, DatabaseLocation};

/// Back up the database while it is in use
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// File for the copy
    file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
}

/// Copies the SQLite database to a file. Replaces an existing file only with `--overwrite`.
///
/// # Errors
///
/// Fails if the database is on a PostgreSQL server; the error names the `pg_dump` command to use instead.
pub(super) async fn run(backup: &BackupArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    if let DatabaseLocation::Server(place) = database_of(&config.store)? {
        return Err(dump::backup(&place, &backup.file)?.into());
    }
    let store = invocation.open(&config, Access::Read).await?;
    store
        .backup(backup.file.clone(), backup.overwrite)
        .await
        .with_context(|| format!("cannot copy the database to {}", shown(&backup.file)))?;
    store.close().await?;
    anstream::eprintln!("copied to {}", shown(&backup.file));
    Ok(Exit::Done)
}
