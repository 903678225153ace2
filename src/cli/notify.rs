//! `notify RECEIVER`: sends a test message through the outbox, like a real one. `notify replay` sends earlier messages again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::invocation::{user_account, watch_of};
use super::secrets::need_receivers;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_time, print};
use daemon::database_url::database_of;
use daemon::digest_positions::DigestPositions;
use daemon::dispatch::digest_test;
use daemon::outbox::{DeliverySender as _, ReceiverSender};
use engine::digest_schedule::DigestPlan;
use engine::pipeline::{ActiveRules, DispatchPolicy};
use engine::replay;
use model::{
    DeliveryId, DeliveryState, DueDelivery, EventType, LoggedAction, Notification, NotificationId, OutboxDetail, OutboxFilter,
    ReceiverName, ReplayRequest, ReplayState, Timestamp, Watch, closest,
    config::{Config, ReceiverSettings},
    phrase::{self, instant},
    text::harmless,
};
use notify::{Receivers, message::test_notification, retry};
use store::{Access, DatabaseLocation, ErrorKind, LeaseStatus, Store, StoreError};

/// The time to wait for a running daemon. An attempt can take `[delivery] timeout`, a mail server has two minutes to confirm a mail, and
/// others can come first.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(180);
/// The interval between checks of the outbox.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of newest deliveries among which the test is searched.
const MAX_DELIVERIES_CHECKED: u32 = 200;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct NotifyArgs {
    #[command(subcommand)]
    command: Option<NotifyCommand>,
    /// Receiver in the config; write `-- replay` for a receiver with the name `replay`
    #[arg(required = true)]
    receiver: Option<String>,
    /// Send the current digest, marked as a test
    #[arg(long)]
    digest: bool,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// Send the messages of a time range again, delivered ones included, marked as a replay
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// Receiver in the config
    receiver: String,
    /// Start of the range, such as 2026-03-09T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Timestamp,
    /// End of the range, exclusive; default: now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Show the number of messages without sending them
    #[arg(long)]
    dry_run: bool,
    /// Include messages that were replayed just before
    #[arg(long)]
    again: bool,
}

enum TestMessage {
    Plain,
    Digest(Box<(Watch, ActiveRules, DigestPlan)>),
}

impl TestMessage {
    /// Returns the message that the arguments select. Fails if the receiver has no digest.
    fn of(receiver: &str, notify: &NotifyArgs, config: &Config, rules: impl FnOnce() -> ActiveRules) -> anyhow::Result<Self> {
        if !notify.digest {
            return Ok(Self::Plain);
        }
        let policy = DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(UsageError)?;
        let plan = policy.digests.into_iter().find(|plan| plan.receiver.as_str() == receiver);
        let none = || UsageError(format!("receiver {receiver:?} has no digest: add `digest = {{ at = \"08:00\" }}`"));
        Ok(Self::Digest(Box::new((watch_of(&config.watch).map_err(UsageError)?, rules(), plan.ok_or_else(none)?))))
    }

    async fn notification(&self, store: &Store, receiver: &ReceiverName, now: Timestamp) -> Result<Notification, StoreError> {
        match self {
            Self::Plain => Ok(test_notification(receiver, now)),
            Self::Digest(of) => digest_test(store, (&of.0, &of.1), &of.2, now).await,
        }
    }
}

/// Opens the database as its active instance. Returns `None` if another process is active.
async fn open_active(place: DatabaseLocation, invocation: &Invocation) -> Result<Option<Store>, StoreError> {
    let store = match Store::open_in(place, Access::Own, invocation.clock.now()).await {
        Err(error) if error.kind() == ErrorKind::InUse => return Ok(None),
        opened => opened?,
    };
    if store.maintain_lease("cliffwatch notify").await? == LeaseStatus::Active {
        return Ok(Some(store.acting_as(user_account())));
    }
    store.close().await?;
    Ok(None)
}

pub(super) async fn run(notify: &NotifyArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if let Some(NotifyCommand::Replay(replay)) = &notify.command {
        return run_replay(replay, invocation).await;
    }
    let (config, loaded) = invocation.load_file()?;
    let receiver = find_receiver(notify.receiver.as_deref().unwrap_or_default(), &config)?;
    let message = TestMessage::of(receiver.as_str(), notify, &config, || invocation.rules_for_texts(&config, &loaded.base_dir))?;
    invocation.need_commit_for_live_database(&config).await?;
    let place = database_of(&config.store)?;
    let (store, detail) = match open_active(place, invocation).await {
        Ok(Some(store)) => {
            let detail = send(&config, &store, &receiver, &message, invocation).await?;
            (store, detail)
        }
        Ok(None) => {
            let store = invocation.open(&config, Access::Write).await?;
            anstream::eprintln!("a daemon is running, so it sends the message");
            let notice = enqueue(&store, &receiver, &message, invocation).await?;
            let detail = wait_for(&store, &receiver, &notice).await?;
            (store, detail)
        }
        Err(error) => return Err(error.into()),
    };
    print_result(&detail, invocation)?;
    let is_delivered = detail.row.state == DeliveryState::Delivered;
    if !is_delivered {
        // Do not retry: a test message that arrives days later would be confusing.
        store.drop_deliveries(vec![detail.row.id]).await?;
    }
    store.close().await?;
    Ok(if is_delivered { Exit::Done } else { Exit::Failed })
}

/// Prints what the replay does, then makes the deliveries due. The daemon sends them, at once or after its next start.
async fn run_replay(args: &ReplayArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_file()?;
    let receiver = find_receiver(&args.receiver, &config)?;
    let now = invocation.clock.now();
    let (since, until, includes_recent) = (args.since, args.until.unwrap_or(now), args.again);
    if until <= since {
        return Err(
            UsageError(format!("--since {} is not before the end of the range, {}", instant(since), instant(until))).into()
        );
    }
    if !args.dry_run {
        invocation.need_commit_for_live_database(&config).await?;
    }
    let store = invocation.open(&config, if args.dry_run { Access::Read } else { Access::Write }).await?;
    let request = ReplayRequest { receiver, since, until, includes_recent };
    let decide = move |state: &ReplayState| replay::plan(state, includes_recent, now);
    let preview = store.preview_replay(request.clone(), decide).await?;
    if invocation.format == OutputFormat::Table {
        let lines = phrase::replay_result(&preview, true).into_iter().map(|line| format!("{}\n", harmless(&line)));
        print::out(&lines.collect::<String>())?;
    }
    let result = match args.dry_run || preview.deliveries == 0 {
        true => preview,
        false => store.replay(request, decide, now).await?,
    };
    if invocation.format != OutputFormat::Table {
        print::out(&print::json(&result)?)?;
    } else if !args.dry_run {
        let messages = phrase::count(result.deliveries, "message");
        print::out(&format!("{messages} in the outbox; `cliffwatch outbox list --receiver {}` shows them\n", args.receiver))?;
    }
    store.close().await?;
    Ok(Exit::Done)
}

/// Returns the receiver with this name, or an error with a suggestion.
fn find_receiver(name: &str, config: &Config) -> Result<ReceiverName, UsageError> {
    let names: Vec<&str> = config.receivers.iter().map(|receiver| receiver.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(ReceiverName::from(name));
    }
    let help = match closest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if names.is_empty() => "the config defines no [[receiver]]".to_owned(),
        None => format!("expected one of {}", names.join(", ")),
    };
    Err(UsageError(format!("unknown receiver {name:?}: {help}")))
}

/// Adds the message to the outbox, and records who requested it.
async fn enqueue(
    store: &Store,
    receiver: &ReceiverName,
    message: &TestMessage,
    invocation: &Invocation,
) -> anyhow::Result<NotificationId> {
    let now = invocation.clock.now();
    let notice = message.notification(store, receiver, now).await?;
    let id = notice.id.clone();
    let action = LoggedAction::new(receiver.as_str(), None);
    store.log_action(EventType::TestRequested, action, now).await?;
    store.enqueue(notice, now).await?;
    Ok(id)
}

/// Adds the message to the outbox and makes one attempt. Used without a daemon. Other deliveries are not sent.
async fn send(
    config: &Config,
    store: &Store,
    receiver: &ReceiverName,
    message: &TestMessage,
    invocation: &Invocation,
) -> anyhow::Result<OutboxDetail> {
    // Only this receiver needs its secrets.
    let wanted = |settings: &&ReceiverSettings| settings.name == receiver.as_str();
    let settings: Vec<ReceiverSettings> = config.receivers.iter().filter(wanted).cloned().collect();
    need_receivers(&settings, config, &["notify", receiver.as_str()], invocation)?;
    let receivers = Receivers::build(&settings, &config.delivery, config.http.external_url.as_deref())
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let notice = enqueue(store, receiver, message, invocation).await?;
    let now = invocation.clock.now();
    let id = find(store, receiver, &notice).await?.context("the message is not in the outbox")?;
    let due = store.due(receiver.clone(), now, MAX_DELIVERIES_CHECKED).await?;
    let delivery: DueDelivery =
        due.into_iter().find(|delivery| delivery.id == id).context("too many other deliveries come before the message")?;
    // Like the daemon, skip recipients who stopped digests.
    let sender = ReceiverSender { receivers: Arc::new(receivers), store: store.clone(), positions: DigestPositions::default() };
    let (outcome, attempt) = sender.send(receiver, &delivery, now).await;
    let next = retry::decide(&outcome, 1, delivery.created_at, now, fastrand::f64(), &config.delivery);
    store.record_attempts(vec![next.record_of(id, attempt)]).await?;
    store.outbox_one(id).await?.context("the message is no longer in the outbox")
}

async fn find(store: &Store, receiver: &ReceiverName, notice: &NotificationId) -> anyhow::Result<Option<DeliveryId>> {
    let filter = OutboxFilter { receiver: Some(receiver.clone()), limit: MAX_DELIVERIES_CHECKED, ..OutboxFilter::default() };
    let rows = store.outbox(filter).await?;
    Ok(rows.into_iter().find(|row| row.alerts.iter().any(|alert| alert.notice == *notice)).map(|row| row.id))
}

/// Waits for the daemon's attempt, at most [`DELIVERY_TIMEOUT`].
async fn wait_for(store: &Store, receiver: &ReceiverName, notice: &NotificationId) -> anyhow::Result<OutboxDetail> {
    let deadline = tokio::time::Instant::now() + DELIVERY_TIMEOUT;
    let id = find(store, receiver, notice).await?.context("the message is not in the outbox")?;
    loop {
        let detail = store.outbox_one(id).await?.context("the message is no longer in the outbox")?;
        if detail.row.state != DeliveryState::Due || tokio::time::Instant::now() >= deadline {
            return Ok(detail);
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

fn print_result(detail: &OutboxDetail, invocation: &Invocation) -> anyhow::Result<()> {
    let row = &detail.row;
    if invocation.format != OutputFormat::Table {
        return print::out(&print::json(row)?);
    }
    let result = match row.state {
        DeliveryState::Delivered => "delivered",
        DeliveryState::Due => {
            "not attempted yet: the daemon delays deliveries to this receiver; run `cliffwatch outbox list` to list them"
        }
        DeliveryState::Retrying => "not delivered: a real alert would be retried",
        DeliveryState::Dead | DeliveryState::Dropped => "not delivered: a real alert would be a dead letter",
    };
    let mut text = format!("{}: {result}\n", harmless(row.receiver.as_str()));
    for attempt in &detail.attempts {
        let status = attempt.status.map(|status| format!("{status}, ")).unwrap_or_default();
        text.push_str(&format!("  {status}{} ms: ", attempt.took_ms));
        text.push_str(match attempt.response.trim() {
            "" => "empty response",
            _ => "",
        });
        for (index, line) in attempt.response.trim().lines().take(20).enumerate() {
            let indent = if index == 0 { "" } else { "  | " };
            text.push_str(&format!("{indent}{}\n", harmless(line)));
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if row.state != DeliveryState::Delivered && !detail.attempts.is_empty() {
        let tries = phrase::count(detail.attempts.len(), "attempt");
        text.push_str(&format!("  {tries}; the test was removed from the outbox\n"));
    }
    print::out(&text)
}
