//! Commands that need the whole machine: each hands over to [`crate::app`] or the rules.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use serde_json::json;

use super::{Context, Demo, Exit, Format, Poll, print};
use crate::{
    api, app,
    app::{App, Drive},
    config::{
        self, Config,
        load::{Environment, Loaded},
    },
    cycle::CycleReport,
    demo,
    diagnostic::{Diagnostic, SourceText},
    reload::Origin,
    rules,
    store::Access,
    supply::{Resource, Token},
    watch::Watch,
};

/// What came of checking the rules of a config.
pub(super) struct CheckedRules {
    /// Rules that would be at work.
    pub count: u32,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
    /// Texts to show the problems in.
    pub sources: Vec<SourceText>,
    set: rules::RuleSet,
}

/// What rules cannot do with what this config watches and asks for. It looks into the database, where there is one.
pub(super) fn advise(checked: &CheckedRules, config: &Config, context: &Context) -> Vec<Diagnostic> {
    let tokens = watched(config, context);
    let known = rules::Known {
        tokens: tokens.as_deref(),
        asked: &asked(&config.schedule),
        history: config.source.history,
        horizon: config.source.horizon,
    };
    rules::advise(&checked.set, &known)
}

/// Reads and checks the rules of a config.
pub(super) fn check_rules(config: &Config, loaded: &Loaded, context: &Context) -> CheckedRules {
    let files = rules::read_files(&config.rules.paths, &loaded.base_dir);
    let receivers: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now: context.clock.now() };
    let checked = rules::load(&files.files, &around);
    let mut diagnostics = files.diagnostics;
    diagnostics.extend(checked.diagnostics);
    let count = u32::try_from(checked.set.rules.len()).unwrap_or(u32::MAX);
    CheckedRules { count, diagnostics, sources: files.files, set: checked.set }
}

/// The watched tokens with their groups, as far as they are known: those that the config names, and those of the database, where
/// there is one yet. None where a pattern can only be filled by a token list that was never read.
fn watched(config: &Config, context: &Context) -> Option<Vec<Token>> {
    let watch = Watch::build(&config.watch).ok()?;
    let mut ids = watch.named().to_vec();
    if watch.needs_list() {
        if !config.store.path.exists() {
            return None;
        }
        let listed = super::wait(async {
            let store = context.open(config, Access::Read).await?;
            Ok(store.token_ids(true).await?)
        });
        ids.extend(listed.ok().filter(|ids| !ids.is_empty())?.into_iter().filter(|id| watch.covers(id)));
    }
    Some(ids.into_iter().map(|id| watch.placed(Token::unknown(id))).collect())
}

/// The records that are read on a schedule.
fn asked(schedule: &config::Schedule) -> Vec<Resource> {
    let is_on = |pattern: &str| pattern.trim() != "off";
    [
        (Resource::Unlock, &schedule.unlock_events),
        (Resource::Unlock, &schedule.upcoming),
        (Resource::Burn, &schedule.burn),
        (Resource::Buyback, &schedule.buyback),
        (Resource::Emission, &schedule.daily_emission),
        (Resource::Emission, &schedule.weekly_emission),
        (Resource::Allocation, &schedule.allocations),
        (Resource::Funding, &schedule.investors),
    ]
    .into_iter()
    .filter(|(_, pattern)| is_on(pattern))
    .map(|(resource, _)| resource)
    .collect()
}

/// Runs one future to its end on threads of its own.
pub(super) fn drive<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    api::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

pub(super) fn run(context: &Context) -> anyhow::Result<Exit> {
    let (config, loaded) = context.load_file()?;
    crate::log::start(&config.log, context.verbose)?;
    drive(async {
        let stop = app::asked_to_stop();
        let mut app = App::open(config, &loaded.base_dir, context.clock.clone(), Drive::Itself).await?;
        if let Some(path) = loaded.path {
            app = app.reading_again(Origin { path, environment: Environment::of_process() });
        }
        let started = |address: Option<SocketAddr>| match address {
            Some(address) => {
                tracing::info!(%address, "cliffwatch {} is watching; status page at http://{address}/", env!("CARGO_PKG_VERSION"))
            }
            None => tracing::info!("cliffwatch {} is watching", env!("CARGO_PKG_VERSION")),
        };
        app.run(stop, started).await?;
        Ok(Exit::Done)
    })
}

pub(super) fn demo(demo: &Demo, context: &Context) -> anyhow::Result<Exit> {
    crate::log::start_quiet(context.verbose);
    let listen = super::parse_address(&demo.listen, "--listen")?;
    drive(async {
        let folder = match &demo.dir {
            Some(folder) => folder.clone(),
            None => demo::fresh_folder().context("cannot make a folder for the demo")?,
        };
        let ran = demo::run(&folder, listen, app::asked_to_stop()).await;
        if demo.dir.is_none() {
            // What cannot be removed lies in the system's place for such.
            std::fs::remove_dir_all(&folder).ok();
        }
        ran?;
        Ok(Exit::Done)
    })
}

pub(super) fn poll(poll: &Poll, context: &Context) -> anyhow::Result<Exit> {
    let (mut config, loaded) = context.load_file()?;
    drive(async {
        // A dry run works on a copy, so that it goes the same way to the end and leaves nothing behind.
        let scratch = match poll.dry_run {
            true => Some(scratch_copy(&mut config, context).await?),
            false => None,
        };
        let app = App::open(config, &loaded.base_dir, context.clock.clone(), Drive::Crank).await?;
        let mut reports = Vec::new();
        for job in app.jobs() {
            let report = app.tick(job).await?;
            if context.format == Format::Table {
                print_report(&report)?;
            }
            reports.push(report);
        }
        let mut delivered = Vec::new();
        if scratch.is_none() {
            let report = app.deliver().await;
            for (id, receiver, outcome, state) in report.attempts {
                if context.format == Format::Table {
                    print::out(&format!("outbox: delivery {id} to {receiver}: {outcome}, {}\n", state.as_str()))?;
                }
                delivered.push(json!({"id": id, "receiver": receiver, "outcome": outcome, "state": state}));
            }
        } else if context.format == Format::Table {
            print::out("dry run: nothing was committed, nothing sent\n")?;
        }
        let failed = reports.iter().any(|report| !report.failed.is_empty());
        if context.format != Format::Table {
            let reports: Vec<_> = reports
                .iter()
                .map(|report| {
                    let failed: Vec<_> = report.failed.iter().map(|(feed, failure)| json!({"feed": feed.to_string(), "kind": failure.kind.as_str(), "error": failure.message})).collect();
                    json!({"job": report.job.as_str(), "asked": report.asked, "fresh": report.fresh, "unchanged": report.unchanged,
                        "failed": failed, "changes": report.changes, "alerts": report.alerts, "messages": report.deliveries, "credits": report.credits})
                })
                .collect();
            print::out(&print::json(&json!({"dryRun": poll.dry_run, "cycles": reports, "deliveries": delivered}))?)?;
        }
        app.close().await?;
        if let Some(folder) = scratch {
            std::fs::remove_dir_all(folder).ok();
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    })
}

async fn scratch_copy(config: &mut Config, context: &Context) -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-dry-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let copy = folder.join("copy.db");
    if config.store.path.exists() {
        let store = context.open(config, Access::Read).await?;
        store.backup(copy.clone(), true).await.context("cannot copy the database for the dry run")?;
        store.close().await?;
    }
    config.store.path = copy;
    Ok(folder)
}

fn print_report(report: &CycleReport) -> anyhow::Result<()> {
    let mut text = format!("{report}\n");
    for (feed, failure) in &report.failed {
        text.push_str(&format!("  failed  {feed}: {}\n", crate::diagnostic::harmless(&failure.message)));
    }
    for feed in &report.held {
        text.push_str(&format!(
            "  held    {feed}: most of what lies ahead is missing from the answer; nothing is removed until it is confirmed\n"
        ));
    }
    for change in &report.changes {
        let token = change.token.as_ref().map_or("", |token| token.as_str());
        text.push_str(&format!("  change  {token} {}: {}\n", change.kind, crate::diagnostic::harmless(&change.summary)));
    }
    print::out(&text)
}
