//! `accept`: applies the held response of a token. Works next to a running daemon.

use clap::Args;

use super::upcoming::find;
use super::{Exit, Invocation};
use model::text::harmless;
use store::Access;

/// Accept a held response, in which most of a token's upcoming records are missing
#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// The token (slug or ticker)
    token: String,
}

/// Accepts the held responses of a token: records that are missing from its next response count as removed. Returns
/// [`Exit::Failed`] if no response of the token is held.
pub(super) async fn run(accept: &AcceptArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    let store = invocation.open(&config, Access::Write).await?;
    let token = find(&accept.token, &store).await?;
    let count = store.accept_held(token.clone(), invocation.clock.now()).await?;
    store.close().await?;
    let token = harmless(token.as_str());
    if count == 0 {
        anstream::eprintln!("no response about {token} is held; run `cliffwatch status` to list held responses");
        return Ok(Exit::Failed);
    }
    anstream::eprintln!(
        "{token}: accepted; records missing from the next response count as removed, and the next poll is in the next slot"
    );
    Ok(Exit::Done)
}
