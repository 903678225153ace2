//! `notify RECEIVER`: a test message through the real path: a row of the outbox, an attempt, its answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::invocation::watch_of;
use super::secrets::need_receivers;
use super::{Exit, Invocation, OutputFormat, UsageError, print, shown};
use daemon::dispatch::digest_test;
use daemon::outbox::{DeliverySender as _, ReceiverSender};
use daemon::place::place_of;
use engine::digest_schedule::DigestPlan;
use engine::pipeline::DispatchPolicy;
use model::{
    Commit, DeliveryId, DeliveryState, DueDelivery, Notification, NotificationId, OutboxDetail, OutboxFilter, ReceiverName,
    Timestamp, Watch, closest,
    config::{Config, ReceiverSettings},
    format,
    text::harmless,
};
use notify::{Receivers, message::test_notice, retry};
use store::{Access, Place, Standing, Store, StoreError};

/// How long a running daemon is waited for: its attempt may take `[delivery] timeout`, and others may be under way.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often its outbox is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Newest deliveries among which the test is looked for.
const MOST_LOOKED_AT: u32 = 200;

/// `notify`.
#[derive(Debug, Args)]
pub(super) struct NotifyArgs {
    /// A receiver of the config
    receiver: String,
    /// Send the digest that it would get now, marked as a test
    #[arg(long)]
    digest: bool,
}

/// What is sent.
enum TestMessage {
    Plain,
    Digest(Box<(Watch, DigestPlan)>),
}

impl TestMessage {
    /// That of the arguments. Fails where the receiver gets no digest.
    fn of(notify: &NotifyArgs, config: &Config) -> anyhow::Result<Self> {
        if !notify.digest {
            return Ok(Self::Plain);
        }
        let policy = DispatchPolicy::of(&config.receivers, &config.delivery).map_err(UsageError)?;
        let plan = policy.digests.into_iter().find(|plan| plan.receiver.as_str() == notify.receiver);
        let none = || UsageError(format!("{:?} gets no digest: give it `digest = {{ at = \"08:00\" }}`", notify.receiver));
        Ok(Self::Digest(Box::new((watch_of(&config.watch).map_err(UsageError)?, plan.ok_or_else(none)?))))
    }

    async fn notice(&self, store: &Store, receiver: &ReceiverName, now: Timestamp) -> Result<Notification, StoreError> {
        match self {
            Self::Plain => Ok(test_notice(receiver, now)),
            Self::Digest(of) => digest_test(store, &of.0, &of.1, now).await,
        }
    }
}

/// The database as its active owner. Fails with [`StoreError::InUse`] where another process is that.
async fn own(place: Place, invocation: &Invocation) -> Result<Store, StoreError> {
    let path = place.name().to_owned();
    let store = Store::open_in(place, Access::Own, invocation.clock.now()).await?;
    if store.keep_lease("cliffwatch notify").await? == Standing::Active {
        return Ok(store);
    }
    store.close().await?;
    Err(StoreError::InUse { path, pid: None })
}

pub(super) async fn run(notify: &NotifyArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_file()?;
    let receiver = known(&notify.receiver, &config)?;
    let message = TestMessage::of(notify, &config)?;
    let place = place_of(&config.store)?;
    let name = place.name().to_owned();
    let (store, detail) = match own(place, invocation).await {
        Ok(store) => {
            let detail = send(&config, &store, &receiver, &message, invocation).await?;
            (store, detail)
        }
        Err(StoreError::InUse { .. }) => {
            let store = invocation.open(&config, Access::Beside).await?;
            anstream::eprintln!("a daemon is running: the message goes through its outbox");
            let notice = put(&store, &receiver, &message, invocation).await?;
            let detail = wait_for(&store, &receiver, &notice).await?;
            (store, detail)
        }
        Err(error) => return Err(error).context(format!("the database {} cannot be opened", shown(&name))),
    };
    print_result(&detail, invocation)?;
    let is_delivered = detail.row.state == DeliveryState::Delivered;
    if !is_delivered {
        // A test that arrives days later, once the receiver is mended, would only puzzle whoever reads it.
        store.drop_deliveries(vec![detail.row.id]).await?;
    }
    store.close().await?;
    Ok(if is_delivered { Exit::Done } else { Exit::Failed })
}

/// The receiver of a name, or what was probably meant.
fn known(name: &str, config: &Config) -> Result<ReceiverName, UsageError> {
    let names: Vec<&str> = config.receivers.iter().map(|receiver| receiver.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(ReceiverName::from(name));
    }
    let help = match closest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if names.is_empty() => "the config has no [[receiver]] yet".to_owned(),
        None => format!("the config has {}", names.join(", ")),
    };
    Err(UsageError(format!("no receiver is named {name:?}: {help}")))
}

/// Puts the message into the outbox.
async fn put(
    store: &Store,
    receiver: &ReceiverName,
    message: &TestMessage,
    invocation: &Invocation,
) -> anyhow::Result<NotificationId> {
    let now = invocation.clock.now();
    let notice = message.notice(store, receiver, now).await?;
    let id = notice.id.clone();
    store.commit(Commit { at: now, notifications: vec![notice], ..Commit::default() }).await?;
    Ok(id)
}

/// Without a daemon: puts the message into the outbox and makes the one attempt that it gets. Nothing else that waits is sent.
async fn send(
    config: &Config,
    store: &Store,
    receiver: &ReceiverName,
    message: &TestMessage,
    invocation: &Invocation,
) -> anyhow::Result<OutboxDetail> {
    // This one alone: what others need is no matter here.
    let wanted = |settings: &&ReceiverSettings| settings.name == receiver.as_str();
    let settings: Vec<ReceiverSettings> = config.receivers.iter().filter(wanted).cloned().collect();
    need_receivers(&settings, config, &["notify", receiver.as_str()], invocation)?;
    let receivers = Receivers::build(&settings, &config.delivery, config.http.external_url.as_deref())
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let notice = put(store, receiver, message, invocation).await?;
    let now = invocation.clock.now();
    let id = find(store, receiver, &notice).await?.context("the message is not in the outbox")?;
    let due = store.due(receiver.clone(), now, MOST_LOOKED_AT).await?;
    let delivery: DueDelivery =
        due.into_iter().find(|delivery| delivery.id == id).context("the message waits behind too many others")?;
    // As the daemon sends it: a digest by mail not to those who stopped it.
    let sender = ReceiverSender { receivers: Arc::new(receivers), store: store.clone() };
    let (outcome, attempt) = sender.send(receiver, &delivery, now).await;
    let next = retry::decide(&outcome, 1, delivery.created_at, now, fastrand::f64(), &config.delivery);
    store.record_attempts(vec![next.record_of(id, attempt)]).await?;
    store.outbox_one(id).await?.context("the message is not in the outbox any more")
}

async fn find(store: &Store, receiver: &ReceiverName, notice: &NotificationId) -> anyhow::Result<Option<DeliveryId>> {
    let filter = OutboxFilter { receiver: Some(receiver.clone()), limit: MOST_LOOKED_AT, ..OutboxFilter::default() };
    let rows = store.outbox(filter).await?;
    Ok(rows.into_iter().find(|row| row.alerts.iter().any(|alert| alert.notice == *notice)).map(|row| row.id))
}

/// Waits until the daemon has tried it, or patience ends.
async fn wait_for(store: &Store, receiver: &ReceiverName, notice: &NotificationId) -> anyhow::Result<OutboxDetail> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let id = find(store, receiver, notice).await?.context("the message is not in the outbox")?;
    loop {
        let detail = store.outbox_one(id).await?.context("the message is not in the outbox any more")?;
        if detail.row.state != DeliveryState::Due || tokio::time::Instant::now() >= deadline {
            return Ok(detail);
        }
        tokio::time::sleep(LOOK).await;
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
            "not tried yet: the daemon holds messages to this receiver back (`cliffwatch outbox list` shows them)"
        }
        DeliveryState::Retrying => "not delivered: a real alert would be tried again",
        DeliveryState::Dead | DeliveryState::Dropped => "not delivered: a real alert would be a dead letter",
    };
    let mut text = format!("{}: {result}\n", harmless(row.receiver.as_str()));
    for attempt in &detail.attempts {
        let status = attempt.status.map(|status| format!("{status}, ")).unwrap_or_default();
        text.push_str(&format!("  {status}{} ms: ", attempt.took_ms));
        text.push_str(match attempt.answer.trim() {
            "" => "no answer text",
            _ => "",
        });
        for (index, line) in attempt.answer.trim().lines().take(20).enumerate() {
            let indent = if index == 0 { "" } else { "  | " };
            text.push_str(&format!("{indent}{}\n", harmless(line)));
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if row.state != DeliveryState::Delivered && !detail.attempts.is_empty() {
        let tries = format::count(detail.attempts.len(), "attempt");
        text.push_str(&format!("  {tries}; the test was taken out of the outbox again\n"));
    }
    print::out(&text)
}
