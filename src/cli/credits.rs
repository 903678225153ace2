//! `credits recheck`: lets one request check whether the API has more credits. Works next to a running daemon.

use clap::Subcommand;

use super::{Exit, Invocation};
use store::Access;

#[derive(Debug, Subcommand)]
pub(super) enum CreditsCommand {
    /// Let one request check whether the API raised its limit, although all credits are used
    #[command(after_help = "A rejected request costs no credit. Without this command, one request a day checks the limit.")]
    Recheck,
}

/// Returns [`Exit::Failed`] if the API's credits are not used up.
pub(super) async fn run(command: &CreditsCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let CreditsCommand::Recheck = command;
    let (config, _) = invocation.load_sections(&["store"])?;
    let store = invocation.open(&config, Access::Write).await?;
    let now = invocation.clock.now();
    let is_used_up = store
        .decide_credit(move |mut credit| {
            let is_used_up = engine::budget::recheck(&mut credit, now);
            (credit, is_used_up)
        })
        .await?;
    store.close().await?;
    if !is_used_up {
        anstream::eprintln!(
            "nothing to check: the API's credits are not used up; `[budget] monthly_credits` may be, see `cliffwatch status`"
        );
        return Ok(Exit::Failed);
    }
    anstream::eprintln!("the next poll sends one request to check the limit of the API; reload the daemon to poll now");
    Ok(Exit::Done)
}
