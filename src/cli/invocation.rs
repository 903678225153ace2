//! The global options, and the config, rules, routes, and database that they lead to.

use std::path::{Path, PathBuf};

use super::{args::OutputFormat, exit::AlreadyPrinted};
use daemon::config::{self as load, Environment, Loaded};
use daemon::database_url::database_of;
use engine::pipeline::ActiveRules;
use engine::route::{RouteTree, Sections};
use model::config::{Config, WatchSettings};
use model::text::harmless;
use model::{Actor, ActorSource, Clock, Diagnostic, DiagnosticLevel, SourceText, Watch, diagnostic, phrase};
use rules::{RuleFiles, RuleSet, Surroundings};
use store::{Access, ErrorKind, Store};

/// The global options of a command.
pub(super) struct Invocation {
    pub config: Option<PathBuf>,
    pub format: OutputFormat,
    /// Whether diagnostics on standard error are colored.
    pub color: bool,
    pub verbose: u8,
    /// Whether the clock is the system clock. `false` with `--now`.
    pub is_real_time: bool,
    /// Whether a command may change a database that was used at the real time. `false` with `--now`, unless `--commit` is set.
    pub may_change_live_database: bool,
    pub clock: Clock,
}

impl Invocation {
    /// Returns the config file. `None` if no config file exists.
    pub fn config_path(&self) -> Option<PathBuf> {
        load::find(self.config.as_deref())
    }

    /// Loads the config. Prints its errors and fails if there are any. Without a file, uses the defaults and the environment.
    pub fn load(&self) -> anyhow::Result<(Config, Loaded)> {
        let mut loaded = load::load(self.config_path().as_deref(), &Environment::from_process());
        let errors = errors_of(&loaded.diagnostics);
        match loaded.config.take() {
            Some(config) if errors.is_empty() => Ok((config, loaded)),
            _ => Err(self.print_errors(&errors, &loaded.sources)),
        }
    }

    /// Loads a config of which the command needs only some sections. Errors in other sections are printed, and these sections are left
    /// out: an operator must be able to look at a daemon and to stop its alerts although the config is broken.
    pub fn load_sections(&self, needed: &[&str]) -> anyhow::Result<(Config, Loaded)> {
        let mut loaded = load::load_valid_sections(self.config_path().as_deref(), &Environment::from_process(), needed);
        let errors = errors_of(&loaded.diagnostics);
        let Some(config) = loaded.config.take() else { return Err(self.print_errors(&errors, &loaded.sources)) };
        if !errors.is_empty() {
            anstream::eprint!("{}", diagnostic::render(&errors, &loaded.sources, self.color));
            anstream::eprintln!("this command continues without the sections that have errors");
        }
        Ok((config, loaded))
    }

    /// Like [`Self::load`], but requires a file, so that the daemon does not run by accident.
    pub fn load_file(&self) -> anyhow::Result<(Config, Loaded)> {
        if self.config_path().is_none() {
            anyhow::bail!(
                "no config found at {}: run `cliffwatch init` to write one, pass `--config FILE`, or try `cliffwatch demo`, which needs none",
                load::DEFAULT_PATHS.join(" or ")
            );
        }
        self.load()
    }

    /// Opens the database of the config with read access, or next to a running daemon. Actions are recorded with the user account.
    pub async fn open(&self, config: &Config, access: Access) -> anyhow::Result<Store> {
        if access != Access::Read {
            self.need_commit_for_live_database(config).await?;
        }
        let place = database_of(&config.store)?;
        Ok(Store::open_in(place, access, self.clock.now()).await?.acting_as(user_account()))
    }

    /// Fails if an assumed time would be written to a database that was used at the real time. What was evaluated at a later time is
    /// never evaluated again, so one such write could silence the daemon until then.
    pub async fn need_commit_for_live_database(&self, config: &Config) -> anyhow::Result<()> {
        if self.may_change_live_database {
            return Ok(());
        }
        let location = database_of(&config.store)?;
        let name = location.name().display().to_string();
        let store = match Store::open_in(location, Access::Read, self.clock.now()).await {
            Ok(store) => store,
            Err(error) if error.kind() == ErrorKind::Missing => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let confirmed_time = store.saved_clock().await;
        store.close().await?;
        if confirmed_time?.is_some() {
            anyhow::bail!(
                "{name} is the database of a daemon that ran at the real time, and this command would use it at {}: omit --now, use \
                 a copy (`cliffwatch backup FILE`), or add --commit to change the database anyway",
                phrase::instant(self.clock.now()),
            );
        }
        Ok(())
    }

    /// Compiles rule files. Prints their errors like `check`, and fails if there are any.
    pub fn rules(&self, files: RuleFiles, config: &Config) -> anyhow::Result<RuleSet> {
        let receivers = receiver_names(config);
        let around = Surroundings { receivers: &receivers, groups: &config.watch.groups, now: self.clock.now() };
        let loaded = rules::load(&files.files, &around);
        let errors: Vec<_> = [files.diagnostics, loaded.diagnostics].iter().flat_map(|all| errors_of(all)).collect();
        if errors.is_empty() { Ok(loaded.set) } else { Err(self.print_errors(&errors, &loaded.sources)) }
    }

    /// Reads the rules that render the texts of alerts. Returns no rules if the files have errors; the stored texts are then shown.
    pub fn rules_for_texts(&self, config: &Config, base_dir: &Path) -> ActiveRules {
        let receivers = receiver_names(config);
        let around = Surroundings { receivers: &receivers, groups: &config.watch.groups, now: self.clock.now() };
        let rules = rules::load(&rules::read_files(&config.rules.paths, base_dir).files, &around).set;
        ActiveRules { rules, ..ActiveRules::default() }
    }

    /// Prints errors with the lines of their files.
    pub fn print_errors(&self, errors: &[Diagnostic], sources: &[SourceText]) -> anyhow::Error {
        anstream::eprint!("{}", diagnostic::render(errors, sources, self.color));
        AlreadyPrinted.into()
    }
}

fn errors_of(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    diagnostics.iter().filter(|problem| problem.severity == DiagnosticLevel::Error).cloned().collect()
}

pub(super) fn receiver_names(config: &Config) -> Vec<String> {
    config.receivers.iter().map(|receiver| receiver.name.clone()).collect()
}

pub(super) fn routes_of(config: &Config) -> anyhow::Result<RouteTree> {
    RouteTree::of(&Sections::from(config)).map_err(|problems| anyhow::anyhow!(joined(&problems)))
}

pub(super) fn watch_of(settings: &WatchSettings) -> Result<Watch, String> {
    Watch::build(settings).map_err(|errors| joined(&errors))
}

pub(super) fn joined<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the user account that runs the command, as the author of its actions. With `sudo`, the account that called it.
pub(super) fn user_account() -> Actor {
    let of = |name: &str| std::env::var(name).ok().map(|name| harmless(name.trim())).filter(|name| !name.is_empty());
    let number = || format!("user {}", rustix::process::getuid().as_raw());
    let name = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(of).unwrap_or_else(number);
    Actor { name, via: ActorSource::Command }
}
