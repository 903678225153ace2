//! `restore FILE`: a backup takes the place of the database.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, dump, shown};
use daemon::place::place_of;
use store::{Access, Opening, Place, Store};

/// Put a backup in the place of the database; the daemon must be stopped.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// A file that `backup` made
    file: PathBuf,
}

pub(super) fn run(restore: &RestoreArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    if let Place::Server(place) = place_of(&config.store)? {
        return Err(dump::restore(&place, &restore.file)?.into());
    }
    let opening = Opening { path: config.store.path.clone(), access: Access::Own, now: invocation.clock.now() };
    let restored = Store::restore(&restore.file, &opening)
        .with_context(|| format!("{} cannot be restored; the database is as it was", shown(&restore.file)))?;
    anstream::eprintln!("{} is in place as {}", shown(&restore.file), shown(&restored.path));
    if let Some(aside) = restored.aside {
        anstream::eprintln!("the database before it was moved to {}; remove it once all is well", shown(&aside));
    }
    anstream::eprintln!("what was told since that backup was made is not known to it: some of it may be told again");
    Ok(Exit::Done)
}
