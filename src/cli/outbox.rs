//! `outbox list`, `show`, `retry`, `drop`: deliveries. All of it works beside a running daemon.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    Context, Exit, Format, UsageError,
    changes::parse_word,
    fates::Files,
    print::{self, Cell, Column, Listing},
};
use crate::{
    config::Config,
    diagnostic::harmless,
    explain,
    replay::Mail,
    route::{RouteTree, Sections},
    store::{
        Access, Store,
        model::{DeliveryState, Fate, FateFilter, OutboxDetail, OutboxFilter, OutboxRow},
    },
    supply::{AlertId, DeliveryId, ReceiverName},
};

/// Deliveries that one command may retry or drop.
const MAX_AT_ONCE: u32 = 100_000;

/// `outbox`.
#[derive(Debug, Subcommand)]
pub(super) enum Outbox {
    /// List deliveries, the newest first
    List(List),
    /// Show one delivery with its attempts and messages
    Show {
        /// Number of the delivery
        id: i64,
    },
    /// Send again: the retry schedule begins anew, the webhook id stays
    Retry(Which),
    /// Take out of the outbox: never sent
    Drop(Which),
    /// Show what became of each message: told, held back by what, or still waiting
    Why(Why),
}

#[derive(Debug, Args)]
pub(super) struct Why {
    /// Of this alert; `cliffwatch alerts` shows ids
    alert: Option<String>,
    /// To this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Decided within this time
    #[arg(long, value_name = "SPAN", value_parser = super::parse_span)]
    since: Option<crate::config::Span>,
    /// Only what was held back or still waits
    #[arg(long)]
    undelivered: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: u32,
}

/// A fate in JSON: as it is recorded, and why in words.
#[derive(Serialize)]
struct WhyRow<'a> {
    #[serde(flatten)]
    fate: &'a Fate,
    because: Option<&'a str>,
}

const WHY: &[Column] = &[
    Column("Decided", "at", false),
    Column("Receiver", "receiver", false),
    Column("What became of it", "state", false),
    Column("Because of", "because", false),
    Column("Type", "type", false),
    Column("Message", "summary", false),
];

async fn why(why: &Why, config: &Config, store: &Store, context: &Context) -> anyhow::Result<Exit> {
    let now = context.clock.now();
    let routes = RouteTree::of(&Sections::from(config))
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let files = Files::read(store, &routes, Mail::of(config).max_per_hour, now).await?;
    let filter = FateFilter {
        alert: why.alert.as_deref().map(AlertId::from),
        receiver: why.receiver.as_deref().map(ReceiverName::from),
        since: why.since.and_then(|span| now.checked_sub_signed(span.delta())),
        undelivered: why.undelivered,
        limit: why.limit,
    };
    let fates = store.fates(filter).await?;
    let read = files.read_for(store, &fates).await?;
    let because: Vec<Option<String>> =
        fates.iter().map(|fate| explain::fate::told(fate, &files.records(&read), now).because).collect();
    let rows = fates
        .iter()
        .zip(&because)
        .map(|(fate, because)| {
            let how = match (fate.role.as_deref(), fate.delivery) {
                (Some("told"), Some(delivery)) => format!("{} ({delivery})", fate.state),
                (Some("counted"), Some(delivery)) => format!("{}, counted in {delivery}", fate.state),
                (Some(_), Some(delivery)) => format!("{}, a later one told in {delivery}", fate.state),
                _ => fate.state.clone(),
            };
            vec![
                Cell::time(Some(fate.at)),
                Cell::maybe(fate.receiver.as_ref().map(ReceiverName::as_str)),
                Cell::both(how, &fate.state),
                Cell::both(because.as_deref().unwrap_or("–"), because.as_deref().or(fate.holder.as_deref()).unwrap_or_default()),
                Cell::text(&fate.kind),
                Cell::text(&fate.summary),
            ]
        })
        .collect();
    let json: Vec<WhyRow<'_>> =
        fates.iter().zip(&because).map(|(fate, because)| WhyRow { fate, because: because.as_deref() }).collect();
    Listing { columns: WHY, rows, json: &json, nothing: "nothing was decided to be told" }.print(context)?;
    Ok(Exit::Done)
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// To this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// In this state (due, retrying, delivered, dead, dropped); may be given several times
    #[arg(long, value_name = "STATE", value_parser = parse_state, value_delimiter = ',')]
    state: Vec<DeliveryState>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(false))]
pub(super) struct Which {
    /// Numbers of deliveries
    #[arg(group = "which")]
    ids: Vec<i64>,
    /// All dead letters
    #[arg(long, group = "which")]
    dead: bool,
    /// With --dead: only those to this receiver
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    receiver: Option<String>,
}

const COLUMNS: &[Column] = &[
    Column("Id", "id", true),
    Column("Queued", "createdAt", false),
    Column("Receiver", "receiver", false),
    Column("State", "state", false),
    Column("Attempts", "attempts", true),
    Column("Next", "nextAttemptAt", false),
    Column("Message", "alerts", false),
    Column("Last answer", "lastAnswer", false),
];

pub(super) async fn run(command: &Outbox, context: &Context) -> anyhow::Result<Exit> {
    let (config, _) = context.load()?;
    let access =
        if matches!(command, Outbox::List(_) | Outbox::Show { .. } | Outbox::Why(_)) { Access::Read } else { Access::Beside };
    let store = context.open(&config, access).await?;
    let exit = match command {
        Outbox::List(list) => list_deliveries(list, &store, context).await,
        Outbox::Show { id } => show(DeliveryId(*id), &store, context).await,
        Outbox::Why(asked) => why(asked, &config, &store, context).await,
        Outbox::Retry(which) => {
            let ids = chosen(which, &store).await?;
            let asked = ids.len();
            let done = store.retry_at(ids, context.clock.now()).await?;
            tell_done(asked, done, "due now", "only deliveries that are retrying, dead or dropped can be sent again")
        }
        Outbox::Drop(which) => {
            let ids = chosen(which, &store).await?;
            let asked = ids.len();
            let done = store.drop_deliveries(ids).await?;
            tell_done(asked, done, "dropped", "only deliveries that are due, retrying or dead can be dropped")
        }
    };
    store.close().await?;
    exit
}

/// Tells how many of the deliveries that were named are now in their new state; fails where some are not.
fn tell_done(asked: usize, done: usize, state: &str, why: &str) -> anyhow::Result<Exit> {
    anstream::eprintln!("{done} of {asked} deliveries {state}");
    if done == asked {
        return Ok(Exit::Done);
    }
    anstream::eprintln!("{why}: `cliffwatch outbox list` shows where each stands");
    Ok(Exit::Failed)
}

async fn chosen(which: &Which, store: &Store) -> anyhow::Result<Vec<DeliveryId>> {
    if !which.dead {
        return Ok(which.ids.iter().copied().map(DeliveryId).collect());
    }
    let filter = OutboxFilter {
        receiver: which.receiver.as_deref().map(ReceiverName::from),
        states: vec![DeliveryState::Dead],
        limit: MAX_AT_ONCE,
    };
    Ok(store.outbox(filter).await?.into_iter().map(|row| row.id).collect())
}

async fn list_deliveries(list: &List, store: &Store, context: &Context) -> anyhow::Result<Exit> {
    let filter = OutboxFilter {
        receiver: list.receiver.as_deref().map(ReceiverName::from),
        states: list.state.clone(),
        limit: list.limit,
    };
    let deliveries = store.outbox(filter).await?;
    let rows = deliveries
        .iter()
        .map(|row| {
            vec![
                Cell::text(row.id.to_string()),
                Cell::time(Some(row.created_at)),
                Cell::text(row.receiver.as_str()),
                Cell::text(row.state.as_str()),
                Cell::text(row.attempts.to_string()),
                Cell::time(row.next_attempt_at),
                Cell::text(message(row)),
                Cell::text(cut(row.last_answer.as_deref().unwrap_or_default())),
            ]
        })
        .collect();
    Listing { columns: COLUMNS, rows, json: &deliveries, nothing: "no delivery fits" }.print(context)?;
    Ok(Exit::Done)
}

/// What a delivery tells, in a line.
fn message(row: &OutboxRow) -> String {
    match row.alerts.as_slice() {
        [] => String::new(),
        [alert] => alert.summary.clone(),
        [alert, others @ ..] => {
            format!("{} (and {} more)", alert.summary, others.len() + usize::try_from(row.truncated_alerts).unwrap_or_default())
        }
    }
}

/// An answer as a cell of a table: its first line, cut.
fn cut(answer: &str) -> String {
    const MOST: usize = 80;
    let line = answer.lines().next().unwrap_or_default();
    if line.chars().count() > MOST { line.chars().take(MOST).chain(['…']).collect() } else { line.to_owned() }
}

async fn show(id: DeliveryId, store: &Store, context: &Context) -> anyhow::Result<Exit> {
    let Some(detail) = store.outbox_one(id).await? else {
        return Err(UsageError(format!("there is no delivery {id}: `cliffwatch outbox list` shows which there are")).into());
    };
    let page = if context.format == Format::Table { text(&detail) } else { print::json(&json(&detail))? };
    print::out(&page)?;
    Ok(Exit::Done)
}

fn json(detail: &OutboxDetail) -> serde_json::Value {
    let mut value = serde_json::to_value(&detail.row).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("attemptLog".to_owned(), serde_json::to_value(&detail.attempts).unwrap_or_default());
        let bodies: Vec<_> = detail.notices.iter().map(|notice| &notice.body).collect();
        object.insert("messages".to_owned(), serde_json::to_value(bodies).unwrap_or_default());
    }
    value
}

fn text(detail: &OutboxDetail) -> String {
    let row = &detail.row;
    let mut page = String::new();
    let time = |at: crate::supply::Timestamp| at.format("%Y-%m-%d %H:%M:%S").to_string();
    let _ = writeln!(page, "delivery  {} ({})", row.id, row.webhook_id);
    let _ = writeln!(page, "receiver  {}", harmless(row.receiver.as_str()));
    let _ = writeln!(page, "state     {}", row.state.as_str());
    let _ = writeln!(page, "queued    {}", time(row.created_at));
    if let Some(at) = row.next_attempt_at {
        let _ = writeln!(page, "next      {}", time(at));
    }
    if let Some(at) = row.delivered_at {
        let _ = writeln!(page, "accepted  {}", time(at));
    }
    if row.shape != crate::store::model::Shape::Single {
        let more = if row.truncated_alerts > 0 { format!(", {} more counted", row.truncated_alerts) } else { String::new() };
        let _ = writeln!(page, "shape     {} of {} told{more}", row.shape.as_str(), row.alerts.len());
    }
    for alert in &row.alerts {
        let _ =
            writeln!(page, "\n{} {} {}", alert.kind, harmless(&alert.rule), harmless(alert.token.as_deref().unwrap_or_default()));
        let _ = writeln!(page, "  {}", harmless(&alert.summary));
    }
    if detail.attempts.is_empty() {
        page.push_str("\nnever tried\n");
    }
    for attempt in &detail.attempts {
        let status = attempt.status.map(|status| format!(" {status}")).unwrap_or_default();
        let _ = writeln!(page, "\n{} {}{status}, {} ms", time(attempt.at), harmless(&attempt.outcome), attempt.took_ms);
        for line in attempt.answer.lines().take(20) {
            let _ = writeln!(page, "  {}", harmless(line));
        }
    }
    page
}

fn parse_state(word: &str) -> Result<DeliveryState, String> {
    parse_word(word, &DeliveryState::ALL.map(DeliveryState::as_str), DeliveryState::parse)
}
