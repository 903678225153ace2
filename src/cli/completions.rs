//! `completions SHELL`.

use clap_complete::Shell;

use super::{Exit, print};

pub(super) fn run(shell: Shell, mut command: clap::Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "cliffwatch", &mut script);
    print::out(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
