//! Loads a [`Config`] from a file and the environment, or reports every problem.
//!
//! The text is parsed into a tree with the location of each value (`tree`) and checked against the declared keys (`keys`, `check`). If
//! that finds no error, figment merges the layers: the environment overrides the file, and the file overrides the defaults.
//!
//! The guarantee: all problems are reported at once, each with its location and a suggestion, and neither a problem nor the lines shown
//! with it contain a secret (`mask`).

mod check;
mod key_lookup;
mod mask;
mod positions;
#[cfg(test)]
mod reference;
mod schema;
mod sections;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format, Serialized};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;
use toml::de::DeTable;

use check::ConfigCheck;
use check::ENVIRONMENT;
use engine::digest_schedule::Schedule;
use engine::route::{ConfigProblem, RouteTree, Sections};
use model::config::{Config, InhibitRule, ReceiverSettings, Route, TimeIntervals, ValueKind, WatchSettings};
use model::{Diagnostic, DiagnosticLevel, NotificationKind, ReceiverName, SOURCE_TROUBLE, SourceText, Watch};
use notify::format::{FormatKey, FormatSpec, format_keys};
use notify::{KeyProblem, ReceiverProblem, Receivers};
pub use schema::config as schema;
pub use sections::load_valid_sections;
use tree::{ConfigNode, Location};

const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// The config files to try if none is named.
pub const DEFAULT_PATHS: [&str; 2] = ["cliffwatch.toml", "/etc/cliffwatch/cliffwatch.toml"];

/// The environment variables and credentials of the process. Tests construct their own.
#[derive(Clone, Default)]
pub struct Environment {
    /// Names and values. Only names that begin with `CLIFFWATCH_` have an effect.
    pub variables: Vec<(String, String)>,
    /// The directory of the systemd credentials.
    pub credentials: Option<PathBuf>,
}

impl std::fmt::Debug for Environment {
    /// Writes names only: a value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

impl Environment {
    /// Reads the environment of this process. Variables that are not UTF-8 are left out.
    pub fn from_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(tree::PREFIX))
            .collect();
        Self { variables, credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from) }
    }
}

#[derive(Debug)]
pub struct Loaded {
    /// `None` if there were errors.
    pub config: Option<Config>,
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that the problems refer to, with secrets masked.
    pub sources: Vec<SourceText>,
    /// The directory that relative paths of the config start from.
    pub base_dir: PathBuf,
    /// `None` if the config has no file.
    pub path: Option<PathBuf>,
    /// The locations of the values below `[watch]`, `[route]`, `[[inhibit_rules]]`, and `[[receiver]]`, by path.
    locations: BTreeMap<String, Location>,
}

impl Loaded {
    pub fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics)
    }

    /// Returns a warning at the location of a value below `[watch]`, `[route]`, or `[[inhibit_rules]]`, such as
    /// `route.routes[0].matchers[1]`.
    pub fn warning(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        let file = self.path.as_deref().unwrap_or(Path::new(ENVIRONMENT));
        match self.locations.get(path) {
            Some(Location::File(span)) => Diagnostic::warning(file, Some(span.clone()), message),
            Some(Location::Variable(name)) => Diagnostic::warning(ENVIRONMENT, None, format!("{name}: {}", message.into())),
            None => Diagnostic::warning(file, None, message),
        }
    }
}

impl Loaded {
    /// Builds the receivers of `config` and returns the problems that appear only then, such as missing secrets or invalid certificates,
    /// each with its location.
    pub fn receiver_problems(&self, config: &Config) -> Vec<(KeyProblem, Diagnostic)> {
        let built = Receivers::build(&config.receivers, &config.delivery, config.http.external_url.as_deref());
        let located = |ReceiverProblem { receiver, problem }: ReceiverProblem| {
            let name = config.receivers.get(receiver).map_or("", |receiver| receiver.name.as_str());
            let (table, key) = (format!("receiver[{receiver}]"), problem.key);
            let paths = [format!("{table}.{key}"), format!("{table}.{key}_file"), table];
            let path = paths.iter().find(|path| self.locations.contains_key(*path)).map_or("", String::as_str);
            let message = format!("receiver {name:?}: `{key}`: {}", problem.message);
            let diagnostic = Diagnostic { severity: DiagnosticLevel::Error, ..self.warning(path, message) };
            (problem, diagnostic)
        };
        built.err().unwrap_or_default().into_iter().map(located).collect()
    }
}

/// Returns the config file to read: `explicit` (which clap fills from `$CLIFFWATCH_CONFIG` as well), else the first of
/// [`DEFAULT_PATHS`] that exists.
pub fn find(explicit: Option<&Path>) -> Option<PathBuf> {
    match explicit {
        Some(path) => Some(path.to_owned()),
        None => DEFAULT_PATHS.iter().map(PathBuf::from).find(|path| path.exists()),
    }
}

/// Loads the config of the file and the environment. Without a file, the config has the defaults and the environment only.
pub fn load(path: Option<&Path>, environment: &Environment) -> Loaded {
    match path {
        None => load_text(None, "", environment),
        Some(path) => match read_text(path) {
            Ok(text) => {
                let mut loaded = load_text(Some(path), &text, environment);
                if !loaded.has_errors() {
                    loaded.diagnostics.extend(readable_secret(path, &text));
                }
                loaded
            }
            Err(problem) => Loaded {
                config: None,
                diagnostics: vec![*problem],
                sources: Vec::new(),
                base_dir: base_dir_of(Some(path)),
                path: Some(path.to_owned()),
                locations: BTreeMap::new(),
            },
        },
    }
}

fn read_text(path: &Path) -> Result<String, Box<Diagnostic>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let problem = Diagnostic::error(path, None, format!("cannot read the config: {error}"));
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        return Err(Box::new(if is_missing { problem.help("`cliffwatch init` writes a first config") } else { problem }));
    }
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(Box::new(Diagnostic::error(path, None, "the config is larger than the limit of 1 MiB")));
    }
    model::text::utf8(bytes).map_err(|problem| Box::new(Diagnostic::error(path, None, format!("the config is {problem}"))))
}

fn base_dir_of(path: Option<&Path>) -> PathBuf {
    let directory = path.and_then(Path::parent).filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Loads a config from its text.
pub fn load_text(path: Option<&Path>, text: &str, environment: &Environment) -> Loaded {
    let base_dir = base_dir_of(path);
    let file = path.unwrap_or(Path::new("(no config file)"));
    let (parsed, syntax_errors) = DeTable::parse_recoverable(text);
    let from_file = ConfigNode::from_file(&parsed);
    let masked = mask::mask(text, &from_file, !syntax_errors.is_empty());
    let sources = vec![SourceText { file: file.to_owned(), text: masked }];

    let mut tree = from_file;
    tree.overlay(tree::from_environment(&environment.variables));
    let mut check = ConfigCheck {
        file,
        text,
        credentials: environment.credentials.as_deref(),
        is_complete: syntax_errors.is_empty(),
        problems: Vec::new(),
    };
    check.root(&tree);
    let mut diagnostics = check.problems;

    if let Some(first) = syntax_errors.iter().filter_map(toml::de::Error::span).map(|span| span.start).min() {
        // After a syntax error, the parser may have misread the rest: only the problems before it are reported.
        let line = text.get(..text.floor_char_boundary(first)).and_then(|before| before.rfind('\n')).unwrap_or(0);
        diagnostics.retain(|problem| problem.span.as_ref().is_some_and(|span| span.end <= line));
    }
    diagnostics.extend(sections::syntax_problems(file, text, &syntax_errors));

    if syntax_errors.is_empty() {
        let merged = merge_layers(text, &environment.variables);
        diagnostics.extend(check_routes(&merged).into_iter().map(|problem| problem_at_key(file, &tree, problem)));
        if !has_errors(&diagnostics) {
            match Config::deserialize(&merged) {
                Ok(mut config) => {
                    let unresolved = resolve_paths(&mut config, &base_dir);
                    diagnostics.extend(unresolved.into_iter().map(|problem| problem_at_key(file, &tree, problem)));
                    if !has_errors(&diagnostics) {
                        positions::complete(&mut config.watch, file, &tree);
                        config.watch.positions.sources.extend(sources.iter().cloned());
                        diagnostics.extend(check_named_files(file, &tree, &mut config));
                        diagnostics.extend(check_templates(file, &tree, &config));
                        diagnostics.extend(lone_receiver(file, &tree, &config));
                        diagnostics.extend(unwanted_types(file, &tree, &config));
                    }
                    if !has_errors(&diagnostics) {
                        let (path, locations) =
                            (path.map(Path::to_owned), tree.locations(&["watch", "route", "inhibit_rules", "receiver"]));
                        return Loaded { config: Some(config), diagnostics, sources, base_dir, path, locations };
                    }
                }
                Err(error) => diagnostics.push(merge_problem(file, &error)),
            }
        }
    }
    Loaded { config: None, diagnostics, sources, base_dir, path: path.map(Path::to_owned), locations: BTreeMap::new() }
}

pub(crate) fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == DiagnosticLevel::Error)
}

fn syntax_problem(file: &Path, error: &toml::de::Error) -> Diagnostic {
    // The parser's message names characters and keys, never values. It becomes one line.
    let message = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
    Diagnostic::error(file, error.span(), message)
}

/// The TOML format of figment, parsed by the same parser that the check uses.
struct Toml;

impl Format for Toml {
    type Error = toml::de::Error;
    const NAME: &'static str = "TOML";

    fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Self::Error> {
        toml::from_str(text)
    }
}

/// Merges the layers: the environment overrides the file, and the file overrides the defaults. Returns plain values, because figment would
/// compile the deserialization of the config types six times.
fn merge_layers(text: &str, variables: &[(String, String)]) -> Value {
    let mut from_environment = tree::from_environment(variables);
    if let tree::ConfigValue::Table(entries) = &mut from_environment.value {
        // The check already warned about variables that name no section.
        entries.retain(|entry| key_lookup::section(&entry.key).is_some());
    }
    let figment = Figment::from(Serialized::defaults(Config::default())).merge(Toml::string(text));
    // Values of any kind can be merged. If that failed, the config would be null, which is rejected.
    figment.merge(Serialized::defaults(from_environment.to_json())).extract().unwrap_or_default()
}

/// A problem that the check should have found, but only deserialization did. Its message does not repeat the value.
fn merge_problem(file: &Path, error: &serde_json::Error) -> Diagnostic {
    let text = error.to_string();
    let message = match text.split_once(", expected ") {
        Some((unknown, _)) if unknown.starts_with("unknown ") => unknown.to_owned(),
        Some((_, expected)) => format!("a value must be {expected}"),
        None if text.starts_with("missing field") => text,
        None => "a value is not valid".to_owned(),
    };
    Diagnostic::error(file, None, message)
}

fn problem_at_key(file: &Path, tree: &ConfigNode, problem: ConfigProblem) -> Diagnostic {
    let mut check = ConfigCheck { file, text: "", credentials: None, is_complete: true, problems: Vec::new() };
    let location = tree.locate(&problem.path).clone();
    let diagnostic = check.error(&location, problem.message);
    diagnostic.help = problem.help;
    diagnostic.clone()
}

/// Returns the problems of matchers, time intervals, and digests. Deserializes only the tables that these need, so that an error elsewhere
/// hides none of them.
fn check_routes(merged: &Value) -> Vec<ConfigProblem> {
    fn table<T: DeserializeOwned + Default>(merged: &Value, key: &str) -> Option<T> {
        merged.get(key).map_or_else(|| Some(T::default()), |value| T::deserialize(value).ok())
    }
    let (Some(route), Some(receivers), Some(inhibit_rules), Some(time_intervals)) = (
        table::<Route>(merged, "route"),
        table::<Vec<ReceiverSettings>>(merged, "receiver"),
        table::<Vec<InhibitRule>>(merged, "inhibit_rules"),
        table::<Vec<TimeIntervals>>(merged, "time_intervals"),
    ) else {
        return Vec::new();
    };
    let sections =
        Sections { route: &route, receivers: &receivers, inhibit_rules: &inhibit_rules, time_intervals: &time_intervals };
    // The check has already reported the problems of keys.
    let routes = RouteTree::of(&sections).err().unwrap_or_default().into_iter().filter(|problem| !problem.is_of_keys);
    let digests = receivers.iter().enumerate().filter_map(|(index, receiver)| {
        let (key, message, help) = Schedule::of(receiver.digest.as_ref()?).err()?;
        Some(ConfigProblem { path: format!("receiver[{index}].digest.{key}"), message, help: Some(help), is_of_keys: false })
    });
    let watch = table::<WatchSettings>(merged, "watch").and_then(|section| Watch::build(&section).ok());
    let tokens = receivers.iter().enumerate().filter_map(|(index, receiver)| {
        let (pattern, message, help) = watch.as_ref()?.narrowed(&receiver.digest.as_ref()?.tokens).err()?;
        Some(ConfigProblem { path: format!("receiver[{index}].digest.tokens[{pattern}]"), message, help, is_of_keys: false })
    });
    routes.chain(digests).chain(tokens).collect()
}

/// Makes every relative path of the config relative to `base`, except for the globs of the rule files: `rules::read_files` resolves those.
/// A format's file is stored as text, so it cannot be in a directory whose
/// name is not UTF-8. Returns a problem for each such key.
fn resolve_paths(config: &mut Config, base: &Path) -> Vec<ConfigProblem> {
    if base == Path::new(".") {
        return Vec::new();
    }
    for (_, _, file) in config.files_mut() {
        *file = base.join(&*file);
    }
    let mut problems = Vec::new();
    for (index, receiver) in config.receivers.iter_mut().enumerate() {
        for file in format_keys().filter_map(|key| key.file) {
            if let Some(path) = receiver.format_keys.get_mut(file) {
                match base.join(path.expose()).into_os_string().into_string() {
                    Ok(joined) => *path = joined.into(),
                    Err(_) => problems.push(ConfigProblem {
                        path: format!("receiver[{index}].{file}"),
                        message: format!("`{file}` is in a directory whose name is not UTF-8"),
                        help: Some("use an absolute path, or move the config".to_owned()),
                        is_of_keys: false,
                    }),
                }
            }
        }
    }
    problems
}

/// Returns the errors of files that receivers read once, such as templates.
fn check_templates(file: &Path, tree: &ConfigNode, config: &Config) -> Vec<Diagnostic> {
    let receivers = config.receivers.iter().enumerate();
    receivers
        .filter_map(|(index, receiver)| {
            let format = FormatSpec::named(receiver.format.as_deref()?)?;
            let is_read_once =
                |key: &FormatKey| !key.value.is_secret() && key.file.is_some_and(|file| receiver.format_keys.contains_key(file));
            format.keys.iter().find(|key| is_read_once(key))?;
            let KeyProblem { key, message, .. } = format.read(receiver).err()?;
            Some(problem_at_key(
                file,
                tree,
                ConfigProblem { path: format!("receiver[{index}].{key}"), message, help: None, is_of_keys: false },
            ))
        })
        .collect()
}

/// Warnings about files that do not exist, since they are read at use and may come later, and about secrets that every user can read.
fn check_named_files(file: &Path, tree: &ConfigNode, config: &mut Config) -> Vec<Diagnostic> {
    let mut named: Vec<(String, bool, PathBuf)> = Vec::new();
    for (index, receiver) in config.receivers.iter().enumerate() {
        for key in format_keys().filter(|key| key.value.is_secret()).filter_map(|key| key.file) {
            let path = receiver.format_keys.get(key).map(|path| PathBuf::from(path.expose()));
            named.extend(path.map(|path| (format!("receiver[{index}].{key}"), true, path)));
        }
    }
    let checked = config.files_mut().into_iter().filter(|(_, key, _)| key.kind != ValueKind::Path);
    named.extend(checked.map(|(key_path, key, path)| (key_path, key.kind == ValueKind::SecretFile, path.clone())));
    let warning = |(key_path, is_secret, path): (String, bool, PathBuf)| {
        let (message, help) = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (missing_file(&path), "it is read at each use: create it before then, or correct the path".to_owned())
            }
            Ok(found) if is_secret && is_readable_by_all(&found) => (
                format!("the file {} contains a secret and is readable by every user of this machine", path.display()),
                format!("run `chmod o= {}`", path.display()),
            ),
            _ => return None,
        };
        let problem = problem_at_key(file, tree, ConfigProblem { path: key_path, message, help: Some(help), is_of_keys: false });
        Some(Diagnostic { severity: DiagnosticLevel::Warning, ..problem })
    };
    named.into_iter().filter_map(warning).collect()
}

/// Returns whether a file is readable by every user of this machine.
fn is_readable_by_all(file: &fs::Metadata) -> bool {
    file.is_file() && file.permissions().mode() & 0o007 != 0
}

/// Warns about the first secret in the text of a config that every user of this machine can read.
fn readable_secret(path: &Path, text: &str) -> Option<Diagnostic> {
    if !fs::metadata(path).is_ok_and(|file| is_readable_by_all(&file)) {
        return None;
    }
    let (parsed, _) = DeTable::parse_recoverable(text);
    let tree = ConfigNode::from_file(&parsed);
    let secret = mask::first_secret(&tree)?;
    let Location::File(span) = &secret.key_location else { return None };
    let message = format!("`{}` is a secret, and every user of this machine can read this file", secret.key);
    let remedy = format!(
        "set `{0}_file`, whose file only the service can read, instead of `{0}`, or run `chmod o= {1}`",
        secret.key,
        path.display()
    );
    Some(Diagnostic::warning(path, Some(span.clone()), message).help(remedy))
}

/// Warns about a receiver of which no other one would report that it fails. A config with a single receiver is the usual first one, and
/// correct.
fn lone_receiver(file: &Path, tree: &ConfigNode, config: &Config) -> Option<Diagnostic> {
    if config.receivers.len() < 2 {
        return None;
    }
    let routes = RouteTree::of(&Sections::from(config)).ok()?;
    let named = |name: &&ReceiverName| routes.names(name);
    let names: Vec<ReceiverName> = config.receivers.iter().map(|receiver| ReceiverName::from(receiver.name.as_str())).collect();
    let lone = names.iter().filter(named).find(|name| routes.fallback(name).is_empty())?;
    let problem = ConfigProblem {
        path: "route".to_owned(),
        message: format!("if the receiver \"{lone}\" fails, no one is notified, because no route names another one"),
        help: Some("name another receiver in `fallback` of [route]".to_owned()),
        is_of_keys: false,
    };
    Some(Diagnostic { severity: DiagnosticLevel::Warning, ..problem_at_key(file, tree, problem) })
}

/// Warns about incidents that no receiver would get, and digests that would not be sent, because of `types`.
fn unwanted_types(file: &Path, tree: &ConfigNode, config: &Config) -> Vec<Diagnostic> {
    let Ok(routes) = RouteTree::of(&Sections::from(config)) else { return Vec::new() };
    let labels = [("alertname", SOURCE_TROUBLE), ("severity", "warning")];
    let incidents = routes.route(&labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let has_receiver = incidents.iter().any(|name| routes.wants(name, NotificationKind::Source));
    let warning = |(index, receiver): (usize, &ReceiverSettings)| {
        let name = ReceiverName::from(receiver.name.as_str());
        let (message, help) = if receiver.digest.is_some() && !routes.wants(&name, NotificationKind::Digest) {
            (format!("{name} has a `digest`, which its `types` leave out"), "add \"digest\" to `types`, or remove `digest`")
        } else if !has_receiver && incidents.first() == Some(&name) {
            let message = "no receiver gets messages about problems of the source, because of `types`".to_owned();
            (message, "add \"source\" to `types`, or route `alertname=\"SourceTrouble\"` to another receiver")
        } else {
            return None;
        };
        let path = format!("receiver[{index}].types");
        let problem = problem_at_key(file, tree, ConfigProblem { path, message, help: Some(help.to_owned()), is_of_keys: false });
        Some(Diagnostic { severity: DiagnosticLevel::Warning, ..problem })
    };
    config.receivers.iter().enumerate().filter_map(warning).collect()
}

/// The message about a file that does not exist.
#[must_use]
pub fn missing_file(path: &Path) -> String {
    format!("the file {} does not exist", path.display())
}
