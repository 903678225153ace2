//! `poll`: one cycle now, and what it saw.

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use super::{Exit, Invocation, OutputFormat, print, run::drive};
use daemon::app::{App, Drive};
use daemon::cycle::CycleReport;
use model::text::harmless;
use store::{Access, Opening, Store};

/// `poll`.
#[derive(Debug, Args)]
pub(super) struct PollArgs {
    /// Commit nothing and send nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &PollArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (mut config, loaded) = invocation.load_file()?;
    drive(async {
        // A dry run works on a copy, so that it goes the same way to the end and leaves nothing behind.
        let clock = invocation.clock.clone();
        let mut scratch = None;
        let app = if args.dry_run {
            let folder = scratch_folder()?;
            let path = std::mem::replace(&mut config.store.path, folder.join("copy.db"));
            scratch = Some(folder);
            if path.exists() {
                // Its requests cost what others cost: they are booked where the daemon books its own.
                let quota = Store::open(Opening { path, access: Access::Beside, now: clock.now() }).await?;
                quota.backup(config.store.path.clone(), true).await.context("cannot copy the database for the dry run")?;
                App::open_copy(config, &loaded.base_dir, clock, quota).await?
            } else {
                App::open(config, &loaded.base_dir, clock, Drive::Crank).await?
            }
        } else {
            App::open(config, &loaded.base_dir, clock, Drive::Crank).await?
        };
        let mut reports = Vec::new();
        for job in app.jobs() {
            let report = app.tick(job).await?;
            if invocation.format == OutputFormat::Table {
                print_report(&report)?;
            }
            reports.push(report);
        }
        let mut delivered = Vec::new();
        if scratch.is_none() {
            let report = app.deliver().await;
            for (id, receiver, outcome, state) in report.attempts {
                if invocation.format == OutputFormat::Table {
                    let receiver = harmless(receiver.as_str());
                    print::out(&format!("outbox: delivery {id} to {receiver}: {outcome}, {}\n", state.as_str()))?;
                }
                delivered.push(json!({"id": id, "receiver": receiver, "outcome": outcome, "state": state}));
            }
        } else if invocation.format == OutputFormat::Table {
            print::out("dry run: nothing was committed, nothing sent\n")?;
        }
        let failed = reports.iter().any(|report| !report.failed.is_empty());
        if invocation.format != OutputFormat::Table {
            let cycles: Vec<_> = reports.iter().map(as_json).collect();
            print::out(&print::json(&json!({"dryRun": args.dry_run, "cycles": cycles, "deliveries": delivered}))?)?;
        }
        app.close().await?;
        if let Some(folder) = scratch {
            std::fs::remove_dir_all(folder).ok();
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    })
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
