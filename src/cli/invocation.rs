//! What every command gets: the global options, and what they lead to (config, rules, routes, database).

use std::path::PathBuf;

use anyhow::Context as _;

use super::{args::OutputFormat, exit::AlreadyPrinted, terminal::shown};
use daemon::config::{self as load, Environment, Loaded};
use daemon::place::place_of;
use engine::route::{RouteTree, Sections};
use model::config::{Config, WatchSettings};
use model::{Clock, Diagnostic, Severity, SourceText, Watch, diagnostic};
use rules::{RuleFiles, RuleSet, Surroundings};
use store::{Access, Store};

/// What every command gets.
pub(super) struct Invocation {
    pub config: Option<PathBuf>,
    pub format: OutputFormat,
    /// Whether diagnostics (on standard error) are coloured.
    pub color: bool,
    pub verbose: u8,
    pub clock: Clock,
}

impl Invocation {
    /// The config file, if there is one.
    pub fn config_path(&self) -> Option<PathBuf> {
        load::find(self.config.as_deref())
    }

    /// Loads the config, prints its errors, and fails where there are any. Without a file: the defaults and the environment.
    pub fn load(&self) -> anyhow::Result<(Config, Loaded)> {
        let mut loaded = load::load(self.config_path().as_deref(), &Environment::of_process());
        let errors = errors_of(&loaded.diagnostics);
        match loaded.config.take() {
            Some(config) if errors.is_empty() => Ok((config, loaded)),
            _ => Err(self.refuse(&errors, &loaded.sources)),
        }
    }

    /// As [`Self::load`], but there must be a file: the daemon is not run by accident.
    pub fn load_file(&self) -> anyhow::Result<(Config, Loaded)> {
        if self.config_path().is_none() {
            anyhow::bail!(
                "no config was found at {}: `cliffwatch init` writes one here, `--config FILE` names another, `cliffwatch demo` needs none",
                load::PLACES.join(" or ")
            );
        }
        self.load()
    }

    /// Opens the database of the config for looking, or beside a running daemon.
    pub async fn open(&self, config: &Config, access: Access) -> anyhow::Result<Store> {
        let place = place_of(&config.store)?;
        let name = place.name().to_owned();
        Store::open_in(place, access, self.clock.now())
            .await
            .with_context(|| format!("the database {} cannot be opened", shown(&name)))
    }

    /// Compiles rule files; their errors are printed, as `check` prints them.
    pub fn rules(&self, files: RuleFiles, config: &Config) -> anyhow::Result<RuleSet> {
        let receivers = receiver_names(config);
        let around = Surroundings { receivers: &receivers, groups: &config.watch.groups, now: self.clock.now() };
        let loaded = rules::load(&files.files, &around);
        let errors: Vec<_> = [files.diagnostics, loaded.diagnostics].iter().flat_map(|all| errors_of(all)).collect();
        if errors.is_empty() { Ok(loaded.set) } else { Err(self.refuse(&errors, &loaded.sources)) }
    }

    /// Prints errors in their files.
    fn refuse(&self, errors: &[Diagnostic], sources: &[SourceText]) -> anyhow::Error {
        anstream::eprint!("{}", diagnostic::render(errors, sources, self.color));
        AlreadyPrinted.into()
    }
}

fn errors_of(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    diagnostics.iter().filter(|problem| problem.severity == Severity::Error).cloned().collect()
}

/// Names of the receivers of a config.
pub(super) fn receiver_names(config: &Config) -> Vec<String> {
    config.receivers.iter().map(|receiver| receiver.name.clone()).collect()
}

/// The routes of a config.
pub(super) fn routes_of(config: &Config) -> anyhow::Result<RouteTree> {
    RouteTree::of(&Sections::from(config)).map_err(|problems| anyhow::anyhow!(joined(&problems)))
}

/// The tokens that a config watches.
pub(super) fn watch_of(settings: &WatchSettings) -> Result<Watch, String> {
    Watch::build(settings).map_err(|errors| joined(&errors))
}

/// Several problems in one line.
pub(super) fn joined<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
