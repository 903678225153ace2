//! `poll`: one cycle now, and what it saw.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use super::secrets::{need_key_after_all, need_receivers, need_source_key};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, OutputFormat, print, run::drive};
use daemon::app::{App, Drive};
use daemon::cycle::{CycleReport, PlannedPass, PlannedRead, planned_pass};
use daemon::place::place_of;
use model::config::Config;
use model::text::harmless;
use model::{Clock, Endpoint, FailureKind, NotificationFilter, NotificationStatus, ReceiverName, Timestamp, format};
use store::{Access, Opening, Place, Store};

/// How often the bar is drawn anew.
const REDRAWN: Duration = Duration::from_millis(200);
/// Messages that a dry run tells at most.
const MOST_TOLD: u32 = 10_000;

/// `poll`.
#[derive(Debug, Args)]
pub(super) struct PollArgs {
    /// Commit nothing and send nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PollArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load_file()?;
    let words: &[&str] = if args.dry_run { &["poll", "--dry-run"] } else { &["poll"] };
    need_source_key(&config, words, invocation)?;
    need_receivers(&config.receivers, &config, words, invocation)?;
    drive(async {
        let (app, scratch) = open(args, config.clone(), &loaded.base_dir, invocation.clock.clone()).await?;
        let is_table = invocation.format == OutputFormat::Table;
        let begun = invocation.clock.now();
        let (mut planned, mut told_before) = (None, HashSet::new());
        if scratch.is_some() {
            let pass = planned_pass(app.deps(), begun).await?;
            if is_table {
                print::out(&cost(&pass, app.deps().setup().watch.needs_list()))?;
            }
            planned = Some(pass);
            told_before = notifications(&app, begun).await?.into_iter().map(|status| status.notice).collect();
        }
        let mut reports = Vec::new();
        for job in app.jobs() {
            let report = watched(&app, app.tick(job)).await?;
            if is_table {
                print_report(&report)?;
            }
            reports.push(report);
        }
        let failed = reports.iter().any(|report| !report.failed.is_empty());
        let mut page = json!({"dryRun": args.dry_run, "cycles": reports.iter().map(as_json).collect::<Vec<_>>()});
        if let Some(pass) = planned {
            let mut would = notifications(&app, begun).await?;
            would.retain(|status| !told_before.contains(&status.notice));
            if is_table {
                print::out(&would_tell(&would))?;
            }
            page["plan"] =
                json!({"reads": pass.reads.iter().map(planned_json).collect::<Vec<_>>(), "creditsLeft": pass.credits_left});
            page["wouldTell"] = json!(would);
            page["deliveries"] = json!([]);
        } else {
            page["deliveries"] = json!(deliver(&app, is_table).await?);
        }
        if !is_table {
            print::out(&print::json(&page)?)?;
        }
        app.close().await?;
        if let Some(folder) = scratch {
            std::fs::remove_dir_all(folder).ok();
        }
        let has_no_key = reports.iter().flat_map(|report| &report.failed).any(|(_, failure)| failure.kind == FailureKind::NoKey);
        if has_no_key {
            need_key_after_all(&config, words, invocation)?;
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    })
}

/// The app on the database of the config; for a dry run on a copy in a folder of its own, so that it goes the same way to the end and
/// leaves nothing behind.
async fn open(args: &PollArgs, mut config: Config, base_dir: &Path, clock: Clock) -> anyhow::Result<(App, Option<PathBuf>)> {
    if !args.dry_run {
        return Ok((App::open(config, base_dir, clock, Drive::Crank).await?, None));
    }
    let folder = scratch_folder()?;
    if let Place::Server(_) = place_of(&config.store)? {
        anyhow::bail!("a dry run needs a copy of the database, and that of the config is on a server: copy it to a file first");
    }
    let path = std::mem::replace(&mut config.store.path, folder.join("copy.db"));
    if !path.exists() {
        return Ok((App::open(config, base_dir, clock, Drive::Crank).await?, Some(folder)));
    }
    // Its requests cost what others cost: they are booked where the daemon books its own.
    let quota = Store::open(Opening { path, access: Access::Beside, now: clock.now() }).await?;
    quota.backup(config.store.path.clone(), true).await.context("cannot copy the database for the dry run")?;
    Ok((App::open_copy(config, base_dir, clock, quota).await?, Some(folder)))
}

/// Waits for a cycle, with a bar on a terminal that shows how far it is.
async fn watched<T>(app: &App, cycle: impl Future<Output = T>) -> T {
    let mut bar = ProgressBar::new();
    let mut cycle = std::pin::pin!(cycle);
    loop {
        tokio::select! {
            done = &mut cycle => {
                bar.clear();
                return done;
            }
            () = tokio::time::sleep(REDRAWN) => {
                if let Some(progress) = app.deps().reading.now(Instant::now()).first() {
                    bar.show("", progress.answered, progress.planned, &progress.brief());
                }
            }
        }
    }
}

async fn deliver(app: &App, is_table: bool) -> anyhow::Result<Vec<Value>> {
    let mut delivered = Vec::new();
    for (id, receiver, outcome, state) in app.deliver().await.attempts {
        if is_table {
            let receiver = harmless(receiver.as_str());
            print::out(&format!("outbox: delivery {id} to {receiver}: {outcome}, {}\n", state.as_str()))?;
        }
        delivered.push(json!({"id": id, "receiver": receiver, "outcome": outcome, "state": state}));
    }
    Ok(delivered)
}

/// What was to be told since.
async fn notifications(app: &App, since: Timestamp) -> anyhow::Result<Vec<NotificationStatus>> {
    let filter = NotificationFilter { since: Some(since), limit: MOST_TOLD, ..NotificationFilter::default() };
    Ok(app.store().notification_statuses(filter).await?)
}

/// What a cycle will cost, before it asks.
fn cost(pass: &PlannedPass, needs_list: bool) -> String {
    let reads = &pass.reads;
    let mut text = String::new();
    for read in reads.iter().filter(|read| read.asks > 0) {
        text.push_str(&format!("  will ask  {}: {}\n", read.endpoint, asks(read)));
    }
    let total = reads.iter().map(|read| read.credits).sum::<u64>();
    let left = pass.credits_left.map(|left| format!("; {left} are left")).unwrap_or_default();
    let is_list_unread = needs_list && reads.iter().any(|read| read.endpoint == Endpoint::TokenList && read.asks > 0);
    let more = if is_list_unread { ", and more for the tokens that the list then shows" } else { "" };
    format!("{text}this will cost about {}{more}{left}\n", format::count(usize::try_from(total).unwrap_or(usize::MAX), "credit"))
}

fn asks(read: &PlannedRead) -> String {
    let credits = usize::try_from(read.credits).unwrap_or(usize::MAX);
    format!("{}, about {}", format::count(read.asks, "thing"), format::count(credits, "credit"))
}

fn planned_json(read: &PlannedRead) -> Value {
    json!({"endpoint": read.endpoint, "asks": read.asks, "credits": read.credits})
}

/// The alerts that a cycle raised which is forgotten now.
fn would_tell(would: &[NotificationStatus]) -> String {
    let mut text = String::new();
    for status in would {
        let receiver = status.receiver.as_ref().map_or("nobody", ReceiverName::as_str);
        let line = format!("{} {}: {} (to {receiver})", status.kind, status.rule, status.summary);
        text.push_str(&format!("  would tell  {}\n", harmless(&line)));
    }
    let alerts = would.iter().map(|status| &status.alert).collect::<HashSet<_>>().len();
    format!("{text}{} would be raised\ndry run: nothing was committed, nothing sent\n", format::count(alerts, "alert"))
}

fn scratch_folder() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-dry-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn print_report(report: &CycleReport) -> anyhow::Result<()> {
    let mut text = format!("{report}\n");
    for (feed, failure) in &report.failed {
        text.push_str(&format!("  failed  {}\n", harmless(&format!("{feed}: {}", failure.message))));
    }
    for feed in &report.held {
        text.push_str(&format!(
            "  held    {}: most of what lies ahead is missing from the answer; nothing is removed until it is confirmed\n",
            harmless(&feed.to_string())
        ));
    }
    for change in &report.changes {
        let token = change.token.as_ref().map_or("", |token| token.as_str());
        text.push_str(&format!("  change  {}\n", harmless(&format!("{token} {}: {}", change.kind, change.summary))));
    }
    print::out(&text)
}

fn as_json(report: &CycleReport) -> Value {
    let failed = report.failed.iter();
    let failed =
        failed.map(|(feed, failure)| json!({"feed": feed.to_string(), "kind": failure.kind.as_str(), "error": failure.message}));
    json!({
        "job": report.job.as_str(), "asked": report.asked, "fresh": report.fresh, "unchanged": report.unchanged,
        "failed": failed.collect::<Vec<_>>(), "changes": report.changes, "alerts": report.alerts, "messages": report.deliveries,
        "credits": report.credits,
    })
}
