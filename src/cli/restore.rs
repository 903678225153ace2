//! `restore FILE`: replaces the database with a backup.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, dump, shown};
use daemon::database_url::database_of;
use store::{Access, DatabaseLocation, Opening, Store};

/// Restore the database from a backup; stop the daemon first
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// File written by `backup`
    file: PathBuf,
}

pub(super) fn run(restore: &RestoreArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    if let DatabaseLocation::Server(place) = database_of(&config.store)? {
        return Err(dump::restore(&place, &restore.file)?.into());
    }
    let opening = Opening { path: config.store.path.clone(), access: Access::Own, now: invocation.clock.now() };
    let restored = Store::restore(&restore.file, &opening)
        .with_context(|| format!("cannot restore {}; the database is unchanged", shown(&restore.file)))?;
    anstream::eprintln!("restored {} to {}", shown(&restore.file), shown(&restored.path));
    if let Some(aside) = restored.aside {
        anstream::eprintln!("the previous database was moved to {}; remove it when you no longer need it", shown(&aside));
    }
    anstream::eprintln!("the backup does not contain later notifications, so some of them may be sent again");
    Ok(Exit::Done)
}
