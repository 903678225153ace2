//! `man`: generates manual pages from the definitions of `--help`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, print, shown};

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Folder for a page per command, such as /usr/local/share/man/man1
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(man: &ManArgs, command: clap::Command) -> anyhow::Result<Exit> {
    match &man.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print::out(&String::from_utf8_lossy(&page))?;
        }
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", shown(folder)))?;
            clap_mangen::generate_to(command, folder).with_context(|| format!("cannot write the pages to {}", shown(folder)))?;
            anstream::eprintln!("wrote a page for each command to {}", shown(folder));
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests;
