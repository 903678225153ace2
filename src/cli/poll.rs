//! `poll`: runs one cycle now and shows the results.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use super::secrets::{need_key_after_rejection, need_receivers, need_source_key};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, OutputFormat, print, run::block_on_workers};
use daemon::app::{App, Drive};
use daemon::cycle::{CycleReport, PlannedPass, PlannedPolls, planned_pass};
use daemon::database_url::database_of;
use model::config::Config;
use model::text::harmless;
use model::{Clock, Endpoint, FailureKind, NotificationFilter, NotificationStatus, ReceiverName, Timestamp, phrase};
use store::{Access, DatabaseLocation, Opening, Store};

/// The interval between updates of the progress bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of notifications that a dry run lists.
const MAX_LISTED_NOTIFICATIONS: u32 = 10_000;

#[derive(Debug, Args)]
pub(super) struct PollArgs {
    /// Show the results without storing or sending anything
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PollArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load_file()?;
    let words: &[&str] = if args.dry_run { &["poll", "--dry-run"] } else { &["poll"] };
    need_source_key(&config, words, invocation)?;
    need_receivers(&config.receivers, &config, words, invocation)?;
    block_on_workers(async {
        // A dry run reserves credits in the database of the config, too.
        invocation.need_commit_for_live_database(&config).await?;
        let (app, scratch) = open(args, config.clone(), &loaded.base_dir, invocation.clock.clone()).await?;
        let is_table = invocation.format == OutputFormat::Table;
        let begun = invocation.clock.now();
        let (mut planned, mut notified_before) = (None, HashSet::new());
        if scratch.is_some() {
            let pass = planned_pass(app.deps(), begun).await?;
            if is_table {
                print::out(&cost_text(&pass, app.deps().setup().watch.needs_list()))?;
            }
            planned = Some(pass);
            notified_before = notifications(&app, begun).await?.into_iter().map(|status| status.notice).collect();
        }
        let mut reports = Vec::new();
        for job in app.jobs() {
            let report = with_progress(&app, app.tick(job)).await?;
            if is_table {
                print_report(&report)?;
            }
            reports.push(report);
        }
        let failed = reports.iter().any(|report| !report.failed.is_empty());
        let mut page = json!({"dryRun": args.dry_run, "cycles": reports.iter().map(as_json).collect::<Vec<_>>()});
        if let Some(pass) = planned {
            let mut would = notifications(&app, begun).await?;
            would.retain(|status| !notified_before.contains(&status.notice));
            if is_table {
                print::out(&dry_run_text(&would))?;
            }
            page["plan"] =
                json!({"reads": pass.polls.iter().map(planned_json).collect::<Vec<_>>(), "creditsLeft": pass.credits_left});
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
            need_key_after_rejection(&config, words, invocation)?;
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    })
}

/// Opens the app with the configured database. For a dry run, opens it with a temporary copy of the database, and returns the
/// folder of the copy. The credits of a dry run are still reserved in the configured database, because its requests are real.
///
/// # Errors
///
/// Fails for a dry run if the database is on a server.
async fn open(args: &PollArgs, mut config: Config, base_dir: &Path, clock: Clock) -> anyhow::Result<(App, Option<PathBuf>)> {
    if !args.dry_run {
        return Ok((App::open(config, base_dir, clock, Drive::Manual).await?, None));
    }
    let folder = scratch_folder()?;
    if let DatabaseLocation::Server(_) = database_of(&config.store)? {
        anyhow::bail!(
            "cannot copy the database for the dry run, because it is on a server: copy it to a file with `cliffwatch store copy`"
        );
    }
    let path = std::mem::replace(&mut config.store.path, folder.join("copy.db"));
    if !path.exists() {
        return Ok((App::open(config, base_dir, clock, Drive::Manual).await?, Some(folder)));
    }
    // The requests use real credits, so reservations go to the real database.
    let quota = Store::open(Opening { path, access: Access::Write, now: clock.now() }).await?;
    quota.backup(config.store.path.clone(), true).await.context("cannot copy the database for the dry run")?;
    Ok((App::open_copy(config, base_dir, clock, quota).await?, Some(folder)))
}

/// Waits for a cycle, with a progress bar on a terminal.
async fn with_progress<T>(app: &App, cycle: impl Future<Output = T>) -> T {
    let mut bar = ProgressBar::new();
    let mut cycle = std::pin::pin!(cycle);
    loop {
        tokio::select! {
            done = &mut cycle => {
                bar.clear();
                return done;
            }
            () = tokio::time::sleep(REDRAW_INTERVAL) => {
                if let Some(progress) = app.deps().progress.now(Instant::now()).first() {
                    bar.show("", progress.responded, progress.planned, &progress.brief());
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

/// Returns the status of all notifications decided at or after `since`.
async fn notifications(app: &App, since: Timestamp) -> anyhow::Result<Vec<NotificationStatus>> {
    let filter = NotificationFilter { since: Some(since), limit: MAX_LISTED_NOTIFICATIONS, ..NotificationFilter::default() };
    Ok(app.store().notification_statuses(filter).await?)
}

/// Formats the expected cost of a cycle before it runs.
fn cost_text(pass: &PlannedPass, needs_list: bool) -> String {
    let planned = &pass.polls;
    let mut text = String::new();
    for poll in planned.iter().filter(|poll| poll.polls > 0) {
        text.push_str(&format!("  poll    {}: {}\n", poll.endpoint, polls(poll)));
    }
    let total = planned.iter().map(|poll| poll.credits).sum::<u64>();
    let left = pass.credits_left.map(|left| format!("; {left} remaining")).unwrap_or_default();
    let is_list_unread = needs_list && planned.iter().any(|poll| poll.endpoint == Endpoint::TokenList && poll.polls > 0);
    let more = if is_list_unread { ", plus polls for the tokens in the list" } else { "" };
    format!("{text}expected cost: about {}{more}{left}\n", phrase::count(usize::try_from(total).unwrap_or(usize::MAX), "credit"))
}

fn polls(poll: &PlannedPolls) -> String {
    let credits = usize::try_from(poll.credits).unwrap_or(usize::MAX);
    format!("{}, about {}", phrase::count(poll.polls, "request"), phrase::count(credits, "credit"))
}

fn planned_json(poll: &PlannedPolls) -> Value {
    json!({"endpoint": poll.endpoint, "asks": poll.polls, "credits": poll.credits})
}

/// Lists the notifications that a dry run did not send, one per line, with the number of alerts at the end.
fn dry_run_text(would: &[NotificationStatus]) -> String {
    let mut text = String::new();
    for status in would {
        let receiver = status.receiver.as_ref().map_or("no receiver", ReceiverName::as_str);
        let line = format!("{} {}: {} (to {receiver})", status.kind, status.rule, status.summary);
        text.push_str(&format!("  notify  {}\n", harmless(&line)));
    }
    let alerts = would.iter().map(|status| &status.alert).collect::<HashSet<_>>().len();
    format!("{text}{} would be notified\ndry run: nothing was stored or sent\n", phrase::count(alerts, "alert"))
}

fn scratch_folder() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-dry-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn print_report(report: &CycleReport) -> anyhow::Result<()> {
    let mut text = format!("{report}\n");
    for (feed, failure) in &report.failed {
        text.push_str(&format!("  failed  {}\n", harmless(&format!("{feed}: {}", failure.message))));
    }
    for feed in &report.held {
        text.push_str(&format!(
            "  held    {}: most upcoming records are missing from the response; nothing is removed until that is confirmed\n",
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
        "job": report.job.as_str(), "asked": report.requested, "fresh": report.fresh, "unchanged": report.unchanged,
        "failed": failed.collect::<Vec<_>>(), "changes": report.changes, "alerts": report.alerts, "messages": report.deliveries,
        "credits": report.credits,
    })
}
