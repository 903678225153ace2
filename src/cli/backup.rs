//! `backup FILE`: an online copy of the database.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, dump, shown};
use daemon::place::place_of;
use store::{Access, Place};

/// Make an online copy of the database.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Where to
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    overwrite: bool,
}

pub(super) async fn run(backup: &BackupArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    if let Place::Server(place) = place_of(&config.store)? {
        return Err(dump::backup(&place, &backup.file)?.into());
    }
    let store = invocation.open(&config, Access::Read).await?;
    store
        .backup(backup.file.clone(), backup.overwrite)
        .await
        .with_context(|| format!("the database cannot be copied to {}", shown(&backup.file)))?;
    store.close().await?;
    anstream::eprintln!("copied to {}", shown(&backup.file));
    Ok(Exit::Done)
}
