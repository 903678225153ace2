//! `digest list`, `stop`, `resume`: shows digests and manages their recipients. All commands work next to a running daemon.

use clap::Subcommand;

use super::print::{Cell, Listing};
use super::{Exit, Invocation, UsageError};
use daemon::view::DigestView;
use engine::digest_schedule;
use model::{OptOut, OptOutSource, ReceiverName, closest, config::Config, digest, text::harmless};
use notify::unsubscribe::{self, plain_address};
use store::{Access, Store};

#[derive(Debug, Subcommand)]
pub(super) enum DigestCommand {
    /// List digests with their times, recipients, and opt-outs
    List,
    /// Stop digests to a recipient, like the link in a digest does; alerts continue
    Stop {
        /// Receiver in the config with a `digest`
        receiver: String,
        /// Mail address of a recipient
        address: String,
    },
    /// Resume digests to a recipient who stopped them
    Resume {
        /// Receiver in the config with a `digest`
        receiver: String,
        /// Mail address of a recipient
        address: String,
    },
}

/// Returns the table of digests.
pub(super) fn listing(digests: &[DigestView]) -> Listing<'_, DigestView> {
    let stopped = |digest: &DigestView, by: &str| {
        digest.stopped.iter().map(|stopped| stopped.address.as_str()).collect::<Vec<_>>().join(by)
    };
    Listing::of(digests)
        .left_column("Digest", "receiver", |digest| Cell::text(&digest.receiver))
        .left_column("Schedule", "when", |digest| Cell::text(&digest.when))
        .left_column("Last sent", "sentAt", |digest| Cell::time(digest.sent_at))
        .left_column("Next", "nextAt", |digest| Cell::time(digest.next_at))
        .right_column("Recipients", "recipients", |digest| {
            Cell::text(if digest.recipients > 0 { digest.recipients.to_string() } else { String::new() })
        })
        .left_column("Stopped by", "stopped", move |digest| Cell::both(stopped(digest, ", "), stopped(digest, "; ")))
}

pub(super) async fn run(command: &DigestCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store =
        invocation.open(&config, if matches!(command, DigestCommand::List) { Access::Read } else { Access::Write }).await?;
    let exit = match command {
        DigestCommand::List => list(&config, &store, invocation).await,
        DigestCommand::Stop { receiver, address } => stop(receiver, address, &config, &store, invocation).await,
        DigestCommand::Resume { receiver, address } => resume(receiver, address, &store, invocation).await,
    };
    store.close().await?;
    exit
}

async fn list(config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let plans = digest_schedule::plans(&config.receivers, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let pending_notification = store.notification_overview(now, now - digest::SUPPRESSED_WINDOW).await?;
    let digests = DigestView::all(&plans, &unsubscribe::subscribers(&config.receivers), &pending_notification, now);
    let empty_reason = "no receiver has a digest; add digest = { at = \"08:00\" } to a [[receiver]]";
    listing(&digests).print(empty_reason, invocation)?;
    Ok(Exit::Done)
}

async fn stop(receiver: &str, address: &str, config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let address = plain_address(address);
    let of_it = unsubscribe::subscribers(&config.receivers).into_iter().filter(|known| known.receiver.as_str() == receiver);
    let known: Vec<String> = of_it.map(|subscriber| subscriber.address).collect();
    if known.is_empty() {
        return Err(UsageError(format!(
            "{receiver:?} is not a mail receiver with digests; run `cliffwatch digest list` to list them"
        ))
        .into());
    }
    if !known.contains(&address) {
        let help = closest(&address, known.iter().map(String::as_str))
            .map_or_else(|| format!("expected one of {}", known.join(", ")), |near| format!("did you mean {near}?"));
        return Err(UsageError(format!("{address} is not a recipient of {receiver:?}: {help}")).into());
    }
    let opt_out = OptOut {
        receiver: ReceiverName::from(receiver),
        address: address.clone(),
        at: invocation.clock.now(),
        via: OptOutSource::Hand,
    };
    let result =
        if store.opt_out(opt_out).await? { "no longer gets digests; alerts continue" } else { "has already stopped digests" };
    anstream::eprintln!("{} {result}", harmless(&address));
    Ok(Exit::Done)
}

async fn resume(receiver: &str, address: &str, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let address = plain_address(address);
    if store.opt_in(ReceiverName::from(receiver), address.clone(), invocation.clock.now()).await? {
        anstream::eprintln!("{} gets digests again, starting with the next one", harmless(&address));
        return Ok(Exit::Done);
    }
    Err(UsageError(format!(
        "{address} has not stopped the digests of {receiver:?}; run `cliffwatch digest list` to list opt-outs"
    ))
    .into())
}
