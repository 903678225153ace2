//! `digest list`, `stop`, `resume`: who gets digests when, and who stopped them. All of it works beside a running daemon.

use clap::Subcommand;

use super::print::{Cell, Listing};
use super::{Exit, Invocation, UsageError};
use daemon::ui::view::DigestView;
use engine::digest_schedule;
use model::{OptOut, OptOutSource, ReceiverName, closest, config::Config, digest, text::harmless};
use notify::unsubscribe::{self, plain_address};
use store::{Access, Store};

/// `digest`.
#[derive(Debug, Subcommand)]
pub(super) enum DigestCommand {
    /// List digests: when they are sent, to how many, and who stopped them
    List,
    /// Send somebody no more digests, as the link in a digest does; alerts go on
    Stop {
        /// A receiver of the config that has a `digest`
        receiver: String,
        /// A mail address among its recipients
        address: String,
    },
    /// Send digests again to somebody who stopped them
    Resume {
        /// A receiver
        receiver: String,
        /// A mail address
        address: String,
    },
}

/// Digests as a table.
pub(super) fn listing(digests: &[DigestView]) -> Listing<'_, DigestView> {
    let stopped = |digest: &DigestView, by: &str| {
        digest.stopped.iter().map(|stopped| stopped.address.as_str()).collect::<Vec<_>>().join(by)
    };
    Listing::of(digests)
        .words("Digest", "receiver", |digest| Cell::text(&digest.receiver))
        .words("When", "when", |digest| Cell::text(&digest.when))
        .words("Last", "lastAt", |digest| Cell::time(digest.last_at))
        .words("Next", "nextAt", |digest| Cell::time(digest.next_at))
        .numbers("Recipients", "recipients", |digest| {
            Cell::text(if digest.recipients > 0 { digest.recipients.to_string() } else { String::new() })
        })
        .words("Stopped by", "stopped", move |digest| Cell::both(stopped(digest, ", "), stopped(digest, "; ")))
}

pub(super) async fn run(command: &DigestCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store =
        invocation.open(&config, if matches!(command, DigestCommand::List) { Access::Read } else { Access::Beside }).await?;
    let exit = match command {
        DigestCommand::List => list(&config, &store, invocation).await,
        DigestCommand::Stop { receiver, address } => stop(receiver, address, &config, &store, invocation).await,
        DigestCommand::Resume { receiver, address } => resume(receiver, address, &store).await,
    };
    store.close().await?;
    exit
}

async fn list(config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let plans = digest_schedule::plans(&config.receivers).map_err(anyhow::Error::msg)?;
    let telling = store.notification_overview(now, now - digest::DAY).await?;
    let digests = DigestView::all(&plans, &unsubscribe::subscribers(&config.receivers), &telling, now);
    let nothing = "no receiver has a digest: write digest = { at = \"08:00\" } into a [[receiver]]";
    listing(&digests).print(nothing, invocation)?;
    Ok(Exit::Done)
}

async fn stop(receiver: &str, address: &str, config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let address = plain_address(address);
    let of_it = unsubscribe::subscribers(&config.receivers).into_iter().filter(|known| known.receiver.as_str() == receiver);
    let known: Vec<String> = of_it.map(|subscriber| subscriber.address).collect();
    if known.is_empty() {
        return Err(UsageError(format!("{receiver:?} is no receiver that mails digests: `cliffwatch digest list`")).into());
    }
    if !known.contains(&address) {
        let help = closest(&address, known.iter().map(String::as_str))
            .map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean {near}?"));
        return Err(UsageError(format!("{address} is no recipient of {receiver:?}: {help}")).into());
    }
    let wish = OptOut {
        receiver: ReceiverName::from(receiver),
        address: address.clone(),
        at: invocation.clock.now(),
        via: OptOutSource::Hand,
    };
    let result = if store.opt_out(wish).await? { "gets no more digests; alerts go on" } else { "has stopped digests already" };
    anstream::eprintln!("{} {result}", harmless(&address));
    Ok(Exit::Done)
}

async fn resume(receiver: &str, address: &str, store: &Store) -> anyhow::Result<Exit> {
    let address = plain_address(address);
    if store.opt_in(ReceiverName::from(receiver), address.clone()).await? {
        anstream::eprintln!("{} gets digests again, from the next one on", harmless(&address));
        return Ok(Exit::Done);
    }
    Err(UsageError(format!("{address} has not stopped the digests of {receiver:?}: `cliffwatch digest list`")).into())
}
