//! Reading config and rules again while the daemon runs: everything that can fail is done before anything is swapped.
//!
//! [`read`] reads the config, then the rule files that it names and compiles them, then runs the tests that lie beside them through
//! the new rules; what is wrong comes back as a [`ReloadProblem`] that names file and line. What the new config says of sections that
//! only a restart can change is named and left aside ([`beside`]). [`fingerprint`] tells whether any of those files is another than when
//! they were last read, so that a save in an editor is enough; a file that is still being written is left alone until two readings in a
//! row are the same. `swap` puts to work what was read.

mod fingerprint;
mod problem;
mod swap;
mod vanished;

use std::path::{Path, PathBuf};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::config::{self as loading, Environment};
pub use fingerprint::fingerprint;
use model::config::{Config, SecretText};
use model::{Diagnostic, SourceText, Timestamp};
pub use problem::ReloadProblem;
use rules::{self, RuleSet};
use tools::ruletest::{self, TestOutcome, TestSetup};
use vanished::{SETTLING, vanished};

/// How often the files are looked at. A few small files are read; nothing is parsed.
pub const WATCH: Duration = Duration::from_secs(2);

/// Where the config comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    pub path: PathBuf,
    /// What the process was given beside it.
    pub environment: Environment,
}

/// Config and rules as the files have them, with what was found in them.
#[derive(Debug)]
pub struct ReadFiles {
    /// The config to go by: the new one, and of the sections that wait for a restart the one at work.
    pub config: Config,
    /// What of the config is changed and waits for a restart, such as `[store] path`.
    pub waits: Vec<String>,
    /// The rules; usable only where there is no problem.
    pub set: RuleSet,
    /// Everything that was found.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts of the rule files.
    pub texts: Vec<SourceText>,
    /// How the tests beside the rules ended; empty where none were run.
    pub outcomes: Vec<TestOutcome>,
    /// Why the rules cannot be put to work.
    pub problem: Option<ReloadProblem>,
}

/// Compiles rule texts with the names that the config knows.
pub fn compile(config: &Config, texts: Vec<SourceText>, mut diagnostics: Vec<Diagnostic>, now: Timestamp) -> ReadFiles {
    let names: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let around = rules::Surroundings { receivers: &names, groups: &config.watch.groups, now };
    let loaded = rules::load(&texts, &around);
    diagnostics.extend(loaded.diagnostics);
    let problem = ReloadProblem::of_files(&diagnostics, &texts);
    ReadFiles { config: config.clone(), waits: Vec::new(), set: loaded.set, diagnostics, texts, outcomes: Vec::new(), problem }
}

/// The rule files whose rules are at work.
#[derive(Clone, Debug, Default)]
pub struct GoodFiles {
    /// `[rules] paths` that named them.
    pub paths: Vec<String>,
    pub texts: Vec<SourceText>,
    /// Since when some of them are gone.
    pub gone_since: Option<Timestamp>,
    /// When that is to be looked at again.
    pub look_again_at: Option<Timestamp>,
}

/// Reads and compiles the rule files, beside those at work: what has vanished of these is an error while that may be passing.
pub fn read_files(config: &Config, good: &mut GoodFiles, base_dir: &Path, now: Timestamp) -> ReadFiles {
    let mut files = rules::read_files(&config.rules.paths, base_dir);
    let since = good.gone_since.filter(|since| *since <= now).unwrap_or(now);
    let gone = match good.paths == config.rules.paths {
        true => vanished(&good.texts, &files.files, since, now),
        false => Vec::new(),
    };
    good.gone_since = (!gone.is_empty()).then_some(since);
    good.look_again_at = good.gone_since.map(|since| since + SETTLING).filter(|at| *at > now);
    files.diagnostics.extend(gone);
    compile(config, files.files, files.diagnostics, now)
}

/// Reads the config again, where it came from a file, then as [`read_files`], and runs the tests beside the rules where those are right.
pub fn read(at_work: &Config, good: &mut GoodFiles, origin: Option<&Origin>, base_dir: &Path, now: Timestamp) -> ReadFiles {
    let (config, waits) = match origin.map(|origin| loading::load(Some(&origin.path), &origin.environment)) {
        None => (at_work.clone(), Vec::new()),
        Some(loading::Loaded { config: Some(new), .. }) => beside(at_work, new),
        Some(loading::Loaded { diagnostics, sources, .. }) => {
            let problem = ReloadProblem::of_files(&diagnostics, &sources);
            let config = at_work.clone();
            return ReadFiles {
                config,
                waits: Vec::new(),
                set: RuleSet::default(),
                diagnostics,
                texts: Vec::new(),
                outcomes: Vec::new(),
                problem,
            };
        }
    };
    let mut read = read_files(&config, good, base_dir, now);
    read.waits = waits;
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

/// What a reload makes of a new config: itself, but for what only a restart can change, which stays as it is at work and is named.
pub fn beside(at_work: &Config, mut new: Config) -> (Config, Vec<String>) {
    /// As JSON; a secret as the hash of its text, since it shows as dots.
    fn json(section: &impl serde::Serialize, secrets: &[(&str, &Option<SecretText>)]) -> serde_json::Value {
        let mut json = serde_json::to_value(section).unwrap_or_default();
        for (name, secret) in secrets {
            json[*name] = secret.as_ref().map(|secret| xxh3_64(secret.expose().as_bytes())).into();
        }
        json
    }
    fn place_json(store: &model::config::StoreSettings) -> serde_json::Value {
        let place = serde_json::json!({ "path": store.path, "url_file": store.url_file, "tls_ca_file": store.tls_ca_file });
        json(&place, &[("url", &store.url)])
    }
    let of = |config: &Config| {
        let (source, http) = (&config.source, &config.http);
        [
            ("source", json(source, &[("api_key", &source.api_key)])),
            ("store", place_json(&config.store)),
            ("http", json(http, &[("token", &http.token), ("dead_mans_switch", &http.dead_mans_switch)])),
            ("mirror", json(&config.mirror, &[("keys_url", &config.mirror.keys_url)])),
            ("log", json(&config.log, &[])),
        ]
    };
    let mut waits = Vec::new();
    for ((section, old), (_, new)) in of(at_work).iter().zip(of(&new).iter()) {
        let names = new.as_object().into_iter().flat_map(serde_json::Map::keys);
        waits.extend(names.filter(|name| old.get(name) != new.get(name)).map(|name| format!("[{section}] {name}")));
    }
    new.source = at_work.source.clone();
    let place = at_work.store.clone();
    (new.store.path, new.store.url, new.store.url_file, new.store.tls_ca_file) =
        (place.path, place.url, place.url_file, place.tls_ca_file);
    new.http = at_work.http.clone();
    new.mirror = at_work.mirror.clone();
    new.log = at_work.log.clone();
    (new, waits)
}

#[cfg(test)]
mod tests;
