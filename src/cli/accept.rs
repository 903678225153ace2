//! `accept`: somebody looked, and what is missing from the held answer of a token is truly gone. Works beside a running daemon.

use clap::Args;

use super::upcoming::find;
use super::{Exit, Invocation};
use model::text::harmless;
use store::Access;

/// Believe an answer that is held because most of a token's coming records are missing from it
#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// The token (slug or symbol)
    token: String,
}

pub(super) async fn run(accept: &AcceptArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Beside).await?;
    let token = find(&accept.token, false, &store).await?;
    let count = store.accept_held(token.clone()).await?;
    store.close().await?;
    let token = harmless(token.as_str());
    if count == 0 {
        anstream::eprintln!("no answer about {token} is held: `cliffwatch status` shows what is");
        return Ok(Exit::Failed);
    }
    anstream::eprintln!("{token}: what is missing from its next answer counts as removed; it is asked for in the next slot");
    Ok(Exit::Done)
}
