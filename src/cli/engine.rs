//! Commands that need the whole machine: each hands over to [`crate::app`], [`crate::serve`] or the rules.

use super::{Context, Exit, Import, Keys, Notify, Poll, Serve};
use crate::{
    config::{Config, load::Loaded},
    diagnostic::{Diagnostic, SourceText},
};

/// What came of checking the rules of a config.
pub(super) struct CheckedRules {
    /// Rules that would be at work.
    pub count: u32,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
    /// Texts to show the problems in.
    pub sources: Vec<SourceText>,
}

/// Reads and checks the rules of a config.
pub(super) fn check_rules(_config: &Config, _loaded: &Loaded) -> CheckedRules {
    // WIRE: rules::read_files(&config.rules.paths, &loaded.base_dir), then
    // rules::load(&sources, &rules::Surroundings { receivers, groups: &config.watch.groups, now }).
    CheckedRules {
        count: 0,
        diagnostics: Vec::new(),
        sources: Vec::new(),
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Exit> {
    let (_config, _loaded) = context.load_file()?;
    // WIRE: crate::app::run(config, loaded.path, loaded.base_dir, context.clock.clone(), context.verbose)
    unwired("run")
}

pub(super) fn demo(_context: &Context) -> anyhow::Result<Exit> {
    // WIRE: crate::app::demo::run(context.clock.clone(), context.verbose)
    unwired("demo")
}

pub(super) fn serve(serve: &Serve, _context: &Context) -> anyhow::Result<Exit> {
    // WIRE: crate::serve::Service::open(&serve.db, options), bind serve.listen and serve.legacy_listen, print the bound address, serve.
    let _ = (&serve.db, &serve.listen, &serve.legacy_listen);
    unwired("serve")
}

pub(super) fn plan(context: &Context) -> anyhow::Result<Exit> {
    let (_config, _loaded) = context.load()?;
    // WIRE: crate::plan over store.plan_tokens and store.credit; print as Listing.
    unwired("plan")
}

pub(super) fn poll(poll: &Poll, context: &Context) -> anyhow::Result<Exit> {
    let (_config, _loaded) = context.load_file()?;
    let _ = poll.dry_run;
    // WIRE: crate::app::poll_once(config, clock, poll.dry_run) -> CycleReport; print it.
    unwired("poll")
}

pub(super) fn notify(notify: &Notify, context: &Context) -> anyhow::Result<Exit> {
    let (_config, _loaded) = context.load_file()?;
    let _ = &notify.receiver;
    // WIRE: crate::app::notify_test(config, receiver, clock).
    unwired("notify")
}

pub(super) fn import(import: &Import, _context: &Context) -> anyhow::Result<Exit> {
    let _ = (&import.path, &import.db);
    // WIRE: crate::serve::Service::open(&import.db, …).import(&import.path).
    unwired("import")
}

pub(super) fn keys(keys: &Keys, _context: &Context) -> anyhow::Result<Exit> {
    match keys {
        Keys::Add { name, monthly_limit, db } => {
            let _ = (name, monthly_limit, db);
        }
        Keys::List { db } => {
            let _ = db;
        }
        Keys::Revoke { name, db } => {
            let _ = (name, db);
        }
    }
    // WIRE: crate::serve::Service::open(db, …).add_key / keys / revoke_key.
    unwired("keys")
}

fn unwired(command: &str) -> anyhow::Result<Exit> {
    anyhow::bail!("`{command}` is not wired to its room in this tree")
}
