//! `ack`: acknowledges an alert, which stops its reminders until it changes. Works next to a running daemon.

use clap::Args;

use super::parse::author;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use model::silence::{MAX_AUTHOR, MAX_COMMENT};
use model::{Ack, AckResult, AlertId, checked_ack_texts, text::harmless};
use store::{Access, Store};

/// Acknowledge an alert: no reminders until its date, amount, or level changes
#[derive(Debug, Args)]
pub(super) struct AckArgs {
    /// Id of the alert, or its beginning; `cliffwatch alerts` lists ids
    #[arg(required_unless_present = "list")]
    alert: Option<String>,
    /// Comment for other operators
    #[arg(long, value_name = "TEXT", default_value = "")]
    comment: String,
    /// Name of the person who acknowledges; without $USER: $LOGNAME, else `unknown user`
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true, default_value = "")]
    author: String,
    /// Remove the acknowledgement
    #[arg(long)]
    undo: bool,
    /// List acknowledged alerts
    #[arg(long, conflicts_with_all = ["alert", "undo"])]
    list: bool,
}

pub(super) async fn run(ack: &AckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    let store = invocation.open(&config, if ack.list { Access::Read } else { Access::Write }).await?;
    let exit = match &ack.alert {
        None => list(&store, invocation).await,
        Some(alert) if ack.undo => undo(alert, &store, invocation).await,
        Some(alert) => acknowledge(alert, ack, &store, invocation).await,
    };
    store.close().await?;
    exit
}

async fn acknowledge(alert: &str, ack: &AckArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (author, comment) = checked_ack_texts(&author(&ack.author), &ack.comment).map_err(|_| {
        UsageError(format!("the author has at most {MAX_AUTHOR} characters, and the comment at most {MAX_COMMENT}"))
    })?;
    match store.acknowledge(alert.trim().to_owned(), author, comment, invocation.clock.now()).await? {
        AckResult::Done(alert) => {
            let summary = alert.annotations.get("summary").unwrap_or(&alert.subject);
            anstream::eprintln!("{}: acknowledged, no reminders until it changes: {}", alert.id, harmless(summary));
            Ok(Exit::Done)
        }
        AckResult::Unknown => {
            let what = harmless(alert);
            Err(UsageError(format!("no firing alert has the id {what}; run `cliffwatch alerts --state firing` to list ids"))
                .into())
        }
        AckResult::Several(ids) => {
            let ids = ids.iter().map(AlertId::as_str).collect::<Vec<_>>().join(", ");
            Err(UsageError(format!("several alerts have an id with this beginning: {ids}")).into())
        }
    }
}

async fn undo(alert: &str, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let begins = |ack: &Ack| ack.alert.as_str().starts_with(alert.trim());
    let found: Vec<_> = store.acks().await?.into_iter().filter(begins).collect();
    match found.as_slice() {
        [one] => {
            store.unacknowledge(one.alert.clone(), invocation.clock.now()).await?;
            anstream::eprintln!("{}: acknowledgement removed, reminders resume", one.alert);
            Ok(Exit::Done)
        }
        [] => {
            Err(UsageError("this alert is not acknowledged; run `cliffwatch ack --list` to list acknowledged alerts".to_owned())
                .into())
        }
        _ => Err(UsageError("several acknowledged alerts have an id with this beginning".to_owned()).into()),
    }
}

async fn list(store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let acks = store.acks().await?;
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&acks)?)?;
        return Ok(Exit::Done);
    }
    let listing = Listing::of(&acks)
        .left_column("Alert", "alert", |ack| Cell::text(&ack.alert))
        .left_column("Since", "at", |ack| Cell::time(Some(ack.at)))
        .left_column("Author", "author", |ack| Cell::text(&ack.author))
        .left_column("Comment", "comment", |ack| Cell::text(&ack.comment));
    listing.print("no acknowledged alerts", invocation)?;
    Ok(Exit::Done)
}
