//! `ack`: somebody knows of an alert, and is not reminded of it until its fact changes. Works beside a running daemon.

use clap::Args;

use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use model::{Ack, AckResult, AlertId, ack_words, text::harmless};
use store::{Access, Store};

/// Say that an alert is known: no reminders until its date, amount or level changes
#[derive(Debug, Args)]
pub(super) struct AckArgs {
    /// Id of the alert, or the begin of it; `cliffwatch alerts` shows ids
    #[arg(required_unless_present = "list")]
    alert: Option<String>,
    /// What others should know
    #[arg(long, value_name = "TEXT", default_value = "")]
    comment: String,
    /// Who knows
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true, default_value = "")]
    author: String,
    /// Take it back
    #[arg(long)]
    undo: bool,
    /// List what is acknowledged
    #[arg(long, conflicts_with_all = ["alert", "undo"])]
    list: bool,
}

pub(super) async fn run(ack: &AckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, if ack.list { Access::Read } else { Access::Beside }).await?;
    let exit = match &ack.alert {
        None => list(&store, invocation).await,
        Some(alert) if ack.undo => undo(alert, &store).await,
        Some(alert) => acknowledge(alert, ack, &store, invocation).await,
    };
    store.close().await?;
    exit
}

async fn acknowledge(alert: &str, ack: &AckArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (author, comment) = ack_words(&ack.author, &ack.comment)
        .map_err(|_| UsageError("say who knows with --author NAME (at most 200 characters)".to_owned()))?;
    match store.acknowledge(alert.trim().to_owned(), author, comment, invocation.clock.now()).await? {
        AckResult::Done(alert) => {
            let summary = alert.annotations.get("summary").unwrap_or(&alert.subject);
            anstream::eprintln!("{}: no reminders until it changes: {}", alert.id, harmless(summary));
            Ok(Exit::Done)
        }
        AckResult::Unknown => {
            let what = harmless(alert);
            Err(UsageError(format!("no alert that fires has the id {what}: `cliffwatch alerts --state firing` shows them"))
                .into())
        }
        AckResult::Several(ids) => {
            let ids = ids.iter().map(AlertId::as_str).collect::<Vec<_>>().join(", ");
            Err(UsageError(format!("several alerts have ids that begin like this: {ids}")).into())
        }
    }
}

async fn undo(alert: &str, store: &Store) -> anyhow::Result<Exit> {
    let begins = |ack: &Ack| ack.alert.as_str().starts_with(alert.trim());
    let found: Vec<_> = store.acks().await?.into_iter().filter(begins).collect();
    match found.as_slice() {
        [one] => {
            store.unacknowledge(one.alert.clone()).await?;
            anstream::eprintln!("{}: reminders come again", one.alert);
            Ok(Exit::Done)
        }
        [] => Err(UsageError("this alert is not acknowledged: `cliffwatch ack --list` shows which are".to_owned()).into()),
        _ => Err(UsageError("several acknowledged alerts have ids that begin like this".to_owned()).into()),
    }
}

async fn list(store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let acks = store.acks().await?;
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&acks)?)?;
        return Ok(Exit::Done);
    }
    let listing = Listing::of(&acks)
        .words("Alert", "alert", |ack| Cell::text(&ack.alert))
        .words("Since", "at", |ack| Cell::time(Some(ack.at)))
        .words("Author", "author", |ack| Cell::text(&ack.author))
        .words("Comment", "comment", |ack| Cell::text(&ack.comment));
    listing.print("nothing is acknowledged", invocation)?;
    Ok(Exit::Done)
}
