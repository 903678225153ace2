//! `man`: the manual pages, made from the same definitions as `--help`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, print, shown};

/// `man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder, such as /usr/local/share/man/man1
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
            std::fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", shown(folder)))?;
            clap_mangen::generate_to(command, folder)
                .with_context(|| format!("the pages cannot be written to {}", shown(folder)))?;
            anstream::eprintln!("a page for each command is in {}", shown(folder));
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests;
