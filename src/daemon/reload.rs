//! Reloads config and rules. Everything that can fail happens before anything is swapped.
//!
//! [`read`] reads the config, reads and compiles its rule files, and runs the rule tests with the new rules. Errors are returned as a
//! [`ReloadProblem`] with file and line. Changes of sections that only a restart can apply are reported and ignored
//! ([`Config::keep_until_restart`]). [`fingerprint`] detects changed files, so that saving a file is enough. A file that is still
//! being written is ignored until two fingerprints in a row are equal. `swap` activates the result.

mod fingerprint;
mod missing;
mod positions;
mod problem;
mod swap;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{self as loading, Environment};
pub use fingerprint::fingerprint;
use missing::{REMOVAL_DELAY, missing_files};
use model::config::Config;
use model::{Diagnostic, SourceText, Timestamp};
pub use positions::{follow_token_list, resolve_positions, start_positions};
pub use problem::ReloadProblem;
use rules::{self, RuleSet};
pub use swap::Reloaded;
use tools::ruletest::{self, TestOutcome, TestSetup};

/// The interval between fingerprints of the files. This reads a few small files and parses nothing.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// The source of the config.
#[derive(Clone, Debug)]
pub struct Origin {
    pub path: PathBuf,
    pub environment: Environment,
}

/// The result of reading config and rules.
#[derive(Debug)]
pub struct ReadFiles {
    /// The new config, with the active values of keys that only a restart changes.
    pub config: Config,
    /// Changed keys that need a restart, such as `[store] path`.
    pub needs_restart: Vec<String>,
    /// The rules. Only valid if there is no problem.
    pub set: RuleSet,
    pub diagnostics: Vec<Diagnostic>,
    /// The texts of the rule files.
    pub texts: Vec<SourceText>,
    /// The results of the rule tests. Empty if none were run.
    pub outcomes: Vec<TestOutcome>,
    /// The reason why the files cannot become active.
    pub problem: Option<ReloadProblem>,
}

impl ReadFiles {
    /// Returns the result for a config with errors, for which the rule files are not read.
    fn unread(active: &Config) -> Self {
        Self {
            config: active.clone(),
            needs_restart: Vec::new(),
            set: RuleSet::default(),
            diagnostics: Vec::new(),
            texts: Vec::new(),
            outcomes: Vec::new(),
            problem: None,
        }
    }
}

/// Compiles rule texts with the receivers and groups of the config.
pub fn compile(config: &Config, texts: Vec<SourceText>, mut diagnostics: Vec<Diagnostic>, now: Timestamp) -> ReadFiles {
    let names: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let surroundings = rules::Surroundings { receivers: &names, groups: &config.watch.groups, now };
    let loaded = rules::load(&texts, &surroundings);
    if !loading::has_errors(&diagnostics) {
        diagnostics.extend(loaded.missing(&config.rules.paths));
    }
    diagnostics.extend(loaded.diagnostics);
    let problem = ReloadProblem::of_files(&diagnostics, &texts);
    ReadFiles {
        config: config.clone(),
        needs_restart: Vec::new(),
        set: loaded.set,
        diagnostics,
        texts,
        outcomes: Vec::new(),
        problem,
    }
}

/// The files of the active rules.
#[derive(Clone, Debug, Default)]
pub struct GoodFiles {
    /// The value of `[rules] paths` when they were read.
    pub paths: Vec<String>,
    pub texts: Vec<SourceText>,
    /// The time since which some of the files are missing.
    pub missing_since: Option<Timestamp>,
    /// The time when the missing files are checked again.
    pub recheck_at: Option<Timestamp>,
}

/// Reads and compiles the rule files. A missing file of the active rules is an error while it may come back.
pub fn read_files(config: &Config, good: &mut GoodFiles, base_dir: &Path, now: Timestamp) -> ReadFiles {
    let mut files = rules::read_files(&config.rules.paths, base_dir);
    let since = good.missing_since.filter(|since| *since <= now).unwrap_or(now);
    let missing = match good.paths == config.rules.paths {
        true => missing_files(&good.texts, &files.files, since, now),
        false => Vec::new(),
    };
    good.missing_since = (!missing.is_empty()).then_some(since);
    good.recheck_at = good.missing_since.map(|since| since + REMOVAL_DELAY).filter(|at| *at > now);
    files.diagnostics.extend(missing);
    compile(config, files.files, files.diagnostics, now)
}

/// Reads the config file, if there is one, and the rule files. Runs the rule tests if there are no errors.
pub fn read(active: &Config, good: &mut GoodFiles, origin: Option<&Origin>, base_dir: &Path, now: Timestamp) -> ReadFiles {
    let (config, needs_restart) = match origin.map(|origin| loading::load(Some(&origin.path), &origin.environment)) {
        None => (active.clone(), Vec::new()),
        Some(mut loaded) if loaded.config.is_some() => {
            let mut new = loaded.config.take().unwrap_or_default();
            let needs_restart = new.keep_until_restart(active);
            let mut diagnostics: Vec<_> = loaded.receiver_problems(&new).into_iter().map(|(_, problem)| problem).collect();
            diagnostics.extend(new.watch.positions.problems.iter().cloned());
            let problem = ReloadProblem::of_files(&diagnostics, &new.watch.positions.sources);
            if problem.is_some() {
                return ReadFiles { diagnostics, problem, ..ReadFiles::unread(active) };
            }
            (new, needs_restart)
        }
        Some(loading::Loaded { diagnostics, sources, .. }) => {
            let problem = ReloadProblem::of_files(&diagnostics, &sources);
            return ReadFiles { diagnostics, problem, ..ReadFiles::unread(active) };
        }
    };
    let mut read = read_files(&config, good, base_dir, now);
    read.needs_restart = needs_restart;
    if read.problem.is_some() {
        return read;
    }
    let config = &config;
    let files = ruletest::files_beside(config, base_dir);
    let outcomes = ruletest::run(&files, &TestSetup { config, base_dir, only: None }, |_| {});
    read.problem = ReloadProblem::of_tests(&outcomes, &read.set);
    read.outcomes = outcomes;
    read
}

#[cfg(test)]
mod tests;
