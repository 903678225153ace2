//! `outbox list`, `show`, `retry`, `drop`, `why`: lists and manages deliveries. All commands work next to a running daemon.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::alerts::find_alert;
use super::invocation::routes_of;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use daemon::explain::StatusReader;
use engine::{explain, pipeline::DispatchPolicy};
use model::{
    AlertId, DeliveryId, DeliveryState, NotificationFilter, NotificationRole, NotificationStatus, OutboxDetail, OutboxFilter,
    OutboxRow, ReceiverName, closest, config::Config, phrase, text::harmless,
};
use store::{Access, Store};

#[derive(Debug, Subcommand)]
pub(super) enum OutboxCommand {
    /// List deliveries, newest first
    List(DeliveryListArgs),
    /// Show a delivery with its attempts and messages
    Show {
        /// Id of the delivery
        id: i64,
    },
    /// Retry now: restarts the retry schedule, keeps the webhook id
    Retry(DeliverySelection),
    /// Remove deliveries from the outbox without sending them
    Drop(DeliverySelection),
    /// Show the status of each notification: sent, suppressed (and by what), or pending
    Why(WhyArgs),
}

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Id of an alert; `cliffwatch alerts` lists ids
    alert: Option<String>,
    /// Name of a receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Maximum age of the notification
    #[arg(long, value_name = "SPAN", value_parser = super::parse_span)]
    since: Option<model::config::Span>,
    /// List only suppressed and pending notifications
    #[arg(long)]
    undelivered: bool,
    /// Maximum number of notifications
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: u32,
}

/// The status of a notification in JSON, with the reason as text.
#[derive(Serialize)]
struct WhyRow<'a> {
    #[serde(flatten)]
    status: &'a NotificationStatus,
    because: Option<&'a str>,
}

async fn why(why: &WhyArgs, config: &Config, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let routes = routes_of(config)?;
    let policy =
        DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let reader = StatusReader::read(store, routes, policy.max_per_hour, now).await?;
    let filter = NotificationFilter {
        alert: why.alert.as_deref().map(AlertId::from),
        receiver: why.receiver.as_deref().map(ReceiverName::from),
        since: why.since.and_then(|span| now.checked_sub_signed(span.delta())),
        undelivered: why.undelivered,
        limit: why.limit.saturating_add(1),
    };
    if let Some(alert) = &why.alert {
        find_alert(alert, store).await?;
    }
    let receivers = || config.receivers.iter().map(|receiver| receiver.name.as_str());
    if let Some(name) = why.receiver.as_deref().filter(|name| receivers().all(|known| known != *name)) {
        let near = closest(name, receivers()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        anstream::eprintln!("warning: the config has no receiver {:?}{near}", harmless(name));
    }
    let mut statuses = store.notification_statuses(filter).await?;
    print::keep_first(&mut statuses, why.limit, "messages");
    let read = reader.records_of(store, &statuses).await?;
    let because: Vec<Option<String>> =
        statuses.iter().map(|status| explain::status::describe(status, &reader.records(&read), now).because).collect();
    let rows: Vec<WhyRow<'_>> =
        statuses.iter().zip(&because).map(|(status, because)| WhyRow { status, because: because.as_deref() }).collect();
    let how = |status: &NotificationStatus| match (status.role, status.delivery) {
        (Some(NotificationRole::Notified), Some(delivery)) => format!("{} ({delivery})", status.state),
        (Some(NotificationRole::Counted), Some(delivery)) => format!("{}, counted in {delivery}", status.state),
        (Some(_), Some(delivery)) => format!("{}, replaced by a later one in {delivery}", status.state),
        _ => status.state.to_string(),
    };
    let listing = Listing::of(&rows)
        .left_column("Created", "at", |row| Cell::time(Some(row.status.at)))
        .left_column("Receiver", "receiver", |row| Cell::maybe(row.status.receiver.as_ref().map(ReceiverName::as_str)))
        .left_column("Status", "state", |row| Cell::both(how(row.status), row.status.state.as_str()))
        .left_column("Reason", "because", |row| {
            let raw = row.because.or(row.status.suppressor.as_deref()).unwrap_or_default();
            Cell::both(row.because.unwrap_or("–"), raw)
        })
        .left_column("Type", "type", |row| Cell::text(row.status.kind))
        .left_column("Message", "summary", |row| Cell::text(&row.status.summary));
    listing.print("no matching notifications", invocation)?;
    Ok(Exit::Done)
}

#[derive(Debug, Args)]
pub(super) struct DeliveryListArgs {
    /// Name of a receiver
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// States: due, retrying, delivered, dead, dropped; repeatable
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<DeliveryState>,
    /// Maximum number of deliveries
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(false))]
pub(super) struct DeliverySelection {
    /// Ids of deliveries
    #[arg(group = "which")]
    ids: Vec<i64>,
    /// All dead letters
    #[arg(long, group = "which")]
    dead: bool,
    /// With --dead: only deliveries to this receiver
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    receiver: Option<String>,
}

pub(super) async fn run(command: &OutboxCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = match command {
        // The explanation reads routes and receivers.
        OutboxCommand::Why(_) => invocation.load()?,
        _ => invocation.load_sections(&["store"])?,
    };
    let access = if matches!(command, OutboxCommand::List(_) | OutboxCommand::Show { .. } | OutboxCommand::Why(_)) {
        Access::Read
    } else {
        Access::Write
    };
    let store = invocation.open(&config, access).await?;
    let exit = match command {
        OutboxCommand::List(list) => list_deliveries(list, &store, invocation).await,
        OutboxCommand::Show { id } => show(DeliveryId(*id), &store, invocation).await,
        OutboxCommand::Why(requested) => why(requested, &config, &store, invocation).await,
        OutboxCommand::Retry(which) => {
            let ids = selected_ids(which, &store).await?;
            let requested = ids.len();
            let done = store.retry_at(ids, invocation.clock.now()).await?;
            print_done(requested, done, "due now", "only retrying, dead, and dropped deliveries can be retried")
        }
        OutboxCommand::Drop(which) => {
            let ids = selected_ids(which, &store).await?;
            let requested = ids.len();
            let done = store.drop_deliveries(ids).await?;
            print_done(requested, done, "dropped", "only due, retrying, and dead deliveries can be dropped")
        }
    };
    store.close().await?;
    exit
}

fn deliveries(count: usize) -> String {
    phrase::count(count, "delivery")
}

/// Prints the number of changed deliveries. Fails if some were not changed.
fn print_done(requested: usize, done: usize, state: &str, why: &str) -> anyhow::Result<Exit> {
    anstream::eprintln!("{done} of {} {state}", deliveries(requested));
    if done == requested {
        return Ok(Exit::Done);
    }
    anstream::eprintln!("{why}; run `cliffwatch outbox list` to list states");
    Ok(Exit::Failed)
}

async fn selected_ids(which: &DeliverySelection, store: &Store) -> anyhow::Result<Vec<DeliveryId>> {
    if !which.dead {
        return Ok(which.ids.iter().copied().map(DeliveryId).collect());
    }
    let filter = OutboxFilter {
        receiver: which.receiver.as_deref().map(ReceiverName::from),
        states: vec![DeliveryState::Dead],
        limit: model::rows::MAX_DELIVERIES_PER_ACTION,
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
        .right_column("Id", "id", |row| Cell::text(row.id))
        .left_column("Queued", "createdAt", |row| Cell::time(Some(row.created_at)))
        .left_column("Receiver", "receiver", |row| Cell::text(&row.receiver))
        .left_column("State", "state", |row| Cell::both(state_of(row), row.state.as_str()))
        .right_column("Attempts", "attempts", |row| Cell::text(row.attempts))
        .left_column("Next attempt", "nextAttemptAt", |row| Cell::time(row.next_attempt_at))
        .left_column("Message", "alerts", |row| Cell::text(message(row)))
        .left_column("Last response", "lastAnswer", |row| {
            Cell::text(first_line(row.last_response.as_deref().unwrap_or_default()))
        });
    listing.print("no matching deliveries", invocation)?;
    Ok(Exit::Done)
}

/// Returns the state, with a word about a replay.
fn state_of(row: &OutboxRow) -> String {
    if row.replay.is_some() { format!("{} (replay)", row.state) } else { row.state.to_string() }
}

/// Returns the first alert of a delivery and the number of others.
fn message(row: &OutboxRow) -> String {
    match row.alerts.as_slice() {
        [] => String::new(),
        [alert] => alert.summary.clone(),
        [alert, others @ ..] => {
            format!("{} (and {} more)", alert.summary, others.len() + usize::try_from(row.truncated_alerts).unwrap_or_default())
        }
    }
}

/// Shortens a response to its first line, for a table cell.
fn first_line(response: &str) -> String {
    const MAX_CHARS: usize = 80;
    let line = response.lines().next().unwrap_or_default();
    if line.chars().count() > MAX_CHARS { line.chars().take(MAX_CHARS).chain(['…']).collect() } else { line.to_owned() }
}

async fn show(id: DeliveryId, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let Some(detail) = store.outbox_one(id).await? else {
        return Err(UsageError(format!("unknown delivery {id}; run `cliffwatch outbox list` to list ids")).into());
    };
    let page = if invocation.format == OutputFormat::Table { text(&detail) } else { print::json(&detail.json())? };
    print::out(&page)?;
    Ok(Exit::Done)
}

fn text(detail: &OutboxDetail) -> String {
    let row = &detail.row;
    let mut page = String::new();
    let _ = writeln!(page, "delivery  {} ({})", row.id, row.webhook_id);
    let _ = writeln!(page, "receiver  {}", harmless(row.receiver.as_str()));
    let _ = writeln!(page, "state     {}", row.state.as_str());
    let _ = writeln!(page, "queued    {}", phrase::instant_iso_seconds(row.created_at));
    if let Some(at) = row.next_attempt_at {
        let _ = writeln!(page, "next      {}", phrase::instant_iso_seconds(at));
    }
    if let Some(at) = row.delivered_at {
        let _ = writeln!(page, "accepted  {}", phrase::instant_iso_seconds(at));
    }
    if let Some(replay) = row.replay {
        let _ = writeln!(page, "replay    {}", phrase::replay_of(replay));
    }
    if row.shape != model::rows::BatchKind::Single {
        let more = if row.truncated_alerts > 0 { format!(", {} more counted", row.truncated_alerts) } else { String::new() };
        let _ = writeln!(page, "shape     {} with {} listed{more}", row.shape.as_str(), row.alerts.len());
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
        page.push_str("\nno attempts\n");
    }
    for attempt in &detail.attempts {
        let status = attempt.status.map(|status| format!(" {status}")).unwrap_or_default();
        let _ =
            writeln!(page, "\n{} {}{status}, {} ms", phrase::instant_iso_seconds(attempt.at), attempt.outcome, attempt.took_ms);
        for line in attempt.response.lines().take(20) {
            // The prefix marks text from outside.
            let _ = writeln!(page, "  | {}", harmless(line));
        }
    }
    page
}
