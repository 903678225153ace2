//! `outbox list`, `show`, `retry`, `drop`: deliveries. All of it works beside a running daemon.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::invocation::routes_of;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use daemon::explain::StatusReader;
use engine::{explain, pipeline::DispatchPolicy};
use model::{
    AlertId, DeliveryId, DeliveryState, NotificationFilter, NotificationRole, NotificationStatus, OutboxDetail, OutboxFilter,
    OutboxRow, ReceiverName, config::Config, text::harmless,
};
use store::{Access, Store};

/// Deliveries that one command may retry or drop.
const MAX_AT_ONCE: u32 = 100_000;

/// `outbox`.
#[derive(Debug, Subcommand)]
pub(super) enum OutboxCommand {
    /// List deliveries, the newest first
    List(DeliveryListArgs),
    /// Show one delivery with its attempts and messages
    Show {
        /// Number of the delivery
        id: i64,
    },
    /// Send again: the retry schedule begins anew, the webhook id stays
    Retry(DeliverySelection),
    /// Take out of the outbox: never sent
    Drop(DeliverySelection),
    /// Show what became of each message: told, held back by what, or still waiting
    Why(WhyArgs),
}

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Of this alert; `cliffwatch alerts` shows ids
    alert: Option<String>,
    /// To this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Decided within this time
    #[arg(long, value_name = "SPAN", value_parser = super::parse_span)]
    since: Option<model::config::Span>,
    /// Only what was held back or still waits
    #[arg(long)]
    undelivered: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: u32,
}

/// What became of a notification, in JSON: as it is recorded, and why in words.
#[derive(Serialize)]
struct WhyRow<'a> {
    #[serde(flatten)]
    status: &'a NotificationStatus,
    because: Option<&'a str>,
}

async fn why(why: &WhyArgs, config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let routes = routes_of(config)?;
    let policy = DispatchPolicy::of(&config.receivers, &config.delivery).map_err(anyhow::Error::msg)?;
    let reader = StatusReader::read(store, routes, policy.max_per_hour, now).await?;
    let filter = NotificationFilter {
        alert: why.alert.as_deref().map(AlertId::from),
        receiver: why.receiver.as_deref().map(ReceiverName::from),
        since: why.since.and_then(|span| now.checked_sub_signed(span.delta())),
        undelivered: why.undelivered,
        limit: why.limit.saturating_add(1),
    };
    let mut statuses = store.notification_statuses(filter).await?;
    print::keep_first(&mut statuses, why.limit, "messages");
    let read = reader.records_of(store, &statuses).await?;
    let because: Vec<Option<String>> =
        statuses.iter().map(|status| explain::status::told(status, &reader.records(&read), now).because).collect();
    let rows: Vec<WhyRow<'_>> =
        statuses.iter().zip(&because).map(|(status, because)| WhyRow { status, because: because.as_deref() }).collect();
    let how = |status: &NotificationStatus| match (status.role, status.delivery) {
        (Some(NotificationRole::Notified), Some(delivery)) => format!("{} ({delivery})", status.state),
        (Some(NotificationRole::Counted), Some(delivery)) => format!("{}, counted in {delivery}", status.state),
        (Some(_), Some(delivery)) => format!("{}, a later one told in {delivery}", status.state),
        _ => status.state.to_string(),
    };
    let listing = Listing::of(&rows)
        .words("Decided", "at", |row| Cell::time(Some(row.status.at)))
        .words("Receiver", "receiver", |row| Cell::maybe(row.status.receiver.as_ref().map(ReceiverName::as_str)))
        .words("What became of it", "state", |row| Cell::both(how(row.status), row.status.state.as_str()))
        .words("Because of", "because", |row| {
            let raw = row.because.or(row.status.holder.as_deref()).unwrap_or_default();
            Cell::both(row.because.unwrap_or("–"), raw)
        })
        .words("Type", "type", |row| Cell::text(row.status.kind))
        .words("Message", "summary", |row| Cell::text(&row.status.summary));
    listing.print("nothing was decided to be told", invocation)?;
    Ok(Exit::Done)
}

#[derive(Debug, Args)]
pub(super) struct DeliveryListArgs {
    /// To this receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// In this state (due, retrying, delivered, dead, dropped); may be given several times
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<DeliveryState>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(false))]
pub(super) struct DeliverySelection {
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

pub(super) async fn run(command: &OutboxCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let access = if matches!(command, OutboxCommand::List(_) | OutboxCommand::Show { .. } | OutboxCommand::Why(_)) {
        Access::Read
    } else {
        Access::Beside
    };
    let store = invocation.open(&config, access).await?;
    let exit = match command {
        OutboxCommand::List(list) => list_deliveries(list, &store, invocation).await,
        OutboxCommand::Show { id } => show(DeliveryId(*id), &store, invocation).await,
        OutboxCommand::Why(asked) => why(asked, &config, &store, invocation).await,
        OutboxCommand::Retry(which) => {
            let ids = chosen(which, &store).await?;
            let asked = ids.len();
            let done = store.retry_at(ids, invocation.clock.now()).await?;
            print_done(asked, done, "due now", "only deliveries that are retrying, dead or dropped can be sent again")
        }
        OutboxCommand::Drop(which) => {
            let ids = chosen(which, &store).await?;
            let asked = ids.len();
            let done = store.drop_deliveries(ids).await?;
            print_done(asked, done, "dropped", "only deliveries that are due, retrying or dead can be dropped")
        }
    };
    store.close().await?;
    exit
}

fn deliveries(count: usize) -> String {
    if count == 1 { "1 delivery".to_owned() } else { format!("{count} deliveries") }
}

/// Tells how many of the deliveries that were named are now in their new state; fails where some are not.
fn print_done(asked: usize, done: usize, state: &str, why: &str) -> anyhow::Result<Exit> {
    anstream::eprintln!("{done} of {} {state}", deliveries(asked));
    if done == asked {
        return Ok(Exit::Done);
    }
    anstream::eprintln!("{why}: `cliffwatch outbox list` shows where each stands");
    Ok(Exit::Failed)
}

async fn chosen(which: &DeliverySelection, store: &Store) -> anyhow::Result<Vec<DeliveryId>> {
    if !which.dead {
        return Ok(which.ids.iter().copied().map(DeliveryId).collect());
    }
    let filter = OutboxFilter {
        receiver: which.receiver.as_deref().map(ReceiverName::from),
        states: vec![DeliveryState::Dead],
        limit: MAX_AT_ONCE,
        ..OutboxFilter::default()
    };
    Ok(store.outbox(filter).await?.into_iter().map(|row| row.id).collect())
}

async fn list_deliveries(list: &DeliveryListArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let filter = OutboxFilter {
        receiver: list.receiver.as_deref().map(ReceiverName::from),
        states: list.state.clone(),
        limit: list.limit.saturating_add(1),
        ..OutboxFilter::default()
    };
    let mut deliveries = store.outbox(filter).await?;
    print::keep_first(&mut deliveries, list.limit, "deliveries");
    let listing = Listing::of(&deliveries)
        .numbers("Id", "id", |row| Cell::text(row.id))
        .words("Queued", "createdAt", |row| Cell::time(Some(row.created_at)))
        .words("Receiver", "receiver", |row| Cell::text(&row.receiver))
        .words("State", "state", |row| Cell::text(row.state))
        .numbers("Attempts", "attempts", |row| Cell::text(row.attempts))
        .words("Next", "nextAttemptAt", |row| Cell::time(row.next_attempt_at))
        .words("Message", "alerts", |row| Cell::text(message(row)))
        .words("Last answer", "lastAnswer", |row| Cell::text(cut(row.last_answer.as_deref().unwrap_or_default())));
    listing.print("no delivery fits", invocation)?;
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

async fn show(id: DeliveryId, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let Some(detail) = store.outbox_one(id).await? else {
        return Err(UsageError(format!("there is no delivery {id}: `cliffwatch outbox list` shows which there are")).into());
    };
    let page = if invocation.format == OutputFormat::Table { text(&detail) } else { print::json(&detail.json())? };
    print::out(&page)?;
    Ok(Exit::Done)
}

fn text(detail: &OutboxDetail) -> String {
    let row = &detail.row;
    let mut page = String::new();
    let time = |at: model::supply::Timestamp| at.format("%Y-%m-%d %H:%M:%S").to_string();
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
    if row.shape != model::rows::BatchKind::Single {
        let more = if row.truncated_alerts > 0 { format!(", {} more counted", row.truncated_alerts) } else { String::new() };
        let _ = writeln!(page, "shape     {} of {} told{more}", row.shape.as_str(), row.alerts.len());
    }
    for (index, alert) in row.alerts.iter().chain(&detail.counted).enumerate() {
        if index == row.alerts.len() {
            page.push_str("\nonly counted:\n");
        }
        let _ =
            writeln!(page, "\n{} {} {}", alert.kind, harmless(&alert.rule), harmless(alert.token.as_deref().unwrap_or_default()));
        let _ = writeln!(page, "  {}", harmless(&alert.summary));
    }
    if detail.attempts.is_empty() {
        page.push_str("\nnever tried\n");
    }
    for attempt in &detail.attempts {
        let status = attempt.status.map(|status| format!(" {status}")).unwrap_or_default();
        let _ = writeln!(page, "\n{} {}{status}, {} ms", time(attempt.at), attempt.outcome, attempt.took_ms);
        for line in attempt.answer.lines().take(20) {
            // Not ours, and shown as such.
            let _ = writeln!(page, "  | {}", harmless(line));
        }
    }
    page
}
