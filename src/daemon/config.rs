//! From a file and the environment to a [`Config`], or to every reason why not.
//!
//! The text is read once into a tree that knows its places (`tree`), held against the table of keys (`keys`, `check`), and only
//! what passed is put together by figment: environment over file over the built-in defaults. The promise: all problems at once, each
//! with its place and what was probably meant, and no secret in any of them, nor in the lines shown around them (`mask`).

mod check;
mod keys;
mod mask;
mod schema;
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
use model::config::{Config, InhibitRule, ReceiverSettings, Route, TimeIntervals};
use model::{Diagnostic, Severity, SourceText};
use notify::KeyProblem;
use notify::format::{FormatKey, FormatSpec, format_keys};
pub use schema::config as schema;
use tree::{ConfigNode, ValuePlace};

pub use model::config::DEFAULTS;

/// Largest config file, bytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Where a config is looked for when none is named.
pub const PLACES: [&str; 2] = ["cliffwatch.toml", "/etc/cliffwatch/cliffwatch.toml"];

/// What the process was given beside the file. Kept apart from the process itself so that tests need not change it.
#[derive(Clone, Default)]
pub struct Environment {
    /// Variables, by name. Those that begin with `CLIFFWATCH_` count.
    pub variables: Vec<(String, String)>,
    /// Where systemd put credentials.
    pub credentials: Option<PathBuf>,
}

impl std::fmt::Debug for Environment {
    /// Names only: a value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

impl Environment {
    /// That of this process. Variables that are no text are left out.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(tree::PREFIX))
            .collect();
        Self { variables, credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from) }
    }
}

#[derive(Debug)]
pub struct Loaded {
    /// The config; none where there were errors.
    pub config: Option<Config>,
    pub diagnostics: Vec<Diagnostic>,
    /// Texts to show the problems in, secrets masked.
    pub sources: Vec<SourceText>,
    /// What relative paths of the config are relative to.
    pub base_dir: PathBuf,
    /// The file, where there was one.
    pub path: Option<PathBuf>,
    /// Where the items of `[watch]`, the routes and the inhibitions stand, by their paths.
    places: BTreeMap<String, ValuePlace>,
}

impl Loaded {
    /// Whether it cannot be used.
    pub fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics)
    }

    /// A warning of an item of `[watch]`, of a route or of an inhibition, at its place: `route.routes[0].matchers[1]`.
    pub fn warning(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        let file = self.path.as_deref().unwrap_or(Path::new(ENVIRONMENT));
        match self.places.get(path) {
            Some(ValuePlace::File(span)) => Diagnostic::warning(file, Some(span.clone()), message),
            Some(ValuePlace::Variable(name)) => Diagnostic::warning(ENVIRONMENT, None, format!("{name}: {}", message.into())),
            None => Diagnostic::warning(file, None, message),
        }
    }
}

/// The config file to read: the one named, else `$CLIFFWATCH_CONFIG` (which clap has put into `explicit`), else the first of
/// [`PLACES`] that is there. None where there is none.
pub fn find(explicit: Option<&Path>) -> Option<PathBuf> {
    match explicit {
        Some(path) => Some(path.to_owned()),
        None => PLACES.iter().map(PathBuf::from).find(|path| path.exists()),
    }
}

/// Loads the config of `path`, with the environment over it; without a path, defaults and environment alone.
pub fn load(path: Option<&Path>, environment: &Environment) -> Loaded {
    match path {
        None => load_text(None, "", environment),
        Some(path) => match read_text(path) {
            Ok(text) => load_text(Some(path), &text, environment),
            Err(problem) => Loaded {
                config: None,
                diagnostics: vec![*problem],
                sources: Vec::new(),
                base_dir: base_of(Some(path)),
                path: Some(path.to_owned()),
                places: BTreeMap::new(),
            },
        },
    }
}

fn read_text(path: &Path) -> Result<String, Box<Diagnostic>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let problem = Diagnostic::error(path, None, format!("the config cannot be read: {error}"));
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        return Err(Box::new(if is_missing { problem.help("`cliffwatch init` writes one") } else { problem }));
    }
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(Box::new(Diagnostic::error(path, None, "the config is larger than 1 MiB")));
    }
    model::text::utf8(bytes).map_err(|problem| Box::new(Diagnostic::error(path, None, format!("the config is {problem}"))))
}

fn base_of(path: Option<&Path>) -> PathBuf {
    let directory = path.and_then(Path::parent).filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Loads a config from its text: what [`load`] does after reading.
pub fn load_text(path: Option<&Path>, text: &str, environment: &Environment) -> Loaded {
    let base_dir = base_of(path);
    let file = path.unwrap_or(Path::new("(no config file)"));
    let (parsed, syntax_errors) = DeTable::parse_recoverable(text);
    let of_file = ConfigNode::of_file(&parsed);
    let masked = mask::mask(text, &of_file, !syntax_errors.is_empty());
    let sources = vec![SourceText { file: file.to_owned(), text: masked }];

    let mut tree = of_file;
    tree.overlay(tree::of_environment(&environment.variables));
    let mut check = ConfigCheck { file, text, credentials: environment.credentials.as_deref(), problems: Vec::new() };
    check.root(&tree);
    let mut diagnostics = check.problems;

    if let Some(first) = syntax_errors.iter().filter_map(toml::de::Error::span).map(|span| span.start).min() {
        // What stands behind a broken line may have been read wrongly, and what a table seems to lack may stand there: only what
        // is wrong in front of it is told with it.
        let line = text.get(..text.floor_char_boundary(first)).and_then(|before| before.rfind('\n')).unwrap_or(0);
        diagnostics.retain(|problem| {
            problem.span.as_ref().is_some_and(|span| span.end <= line) && !problem.message.starts_with("this ")
        });
    }
    diagnostics.extend(syntax_errors.iter().map(|error| syntax_problem(file, error)));

    if syntax_errors.is_empty() {
        let assembled = assemble(text, &environment.variables);
        diagnostics.extend(check_routes(&assembled).into_iter().map(|problem| place_problem(file, &tree, problem)));
        if !has_errors(&diagnostics) {
            match Config::deserialize(&assembled) {
                Ok(mut config) => {
                    let inexact = resolve_paths(&mut config, &base_dir);
                    diagnostics.extend(inexact.into_iter().map(|problem| place_problem(file, &tree, problem)));
                    if !has_errors(&diagnostics) {
                        diagnostics.extend(named_files(file, &tree, &config));
                        diagnostics.extend(bad_files(file, &tree, &config));
                    }
                    if !has_errors(&diagnostics) {
                        let (path, places) = (path.map(Path::to_owned), tree.places(&["watch", "route", "inhibit_rules"]));
                        return Loaded { config: Some(config), diagnostics, sources, base_dir, path, places };
                    }
                }
                Err(error) => diagnostics.push(assembly_problem(file, &error)),
            }
        }
    }
    Loaded { config: None, diagnostics, sources, base_dir, path: path.map(Path::to_owned), places: BTreeMap::new() }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

fn syntax_problem(file: &Path, error: &toml::de::Error) -> Diagnostic {
    // The parser's message speaks of characters and keys, never of values; several lines become one.
    let message = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
    Diagnostic::error(file, error.span(), message)
}

/// figment's [`Format`] over the TOML parser that keeps spans, so that one parser decides what TOML is.
struct Toml;

impl Format for Toml {
    type Error = toml::de::Error;
    const NAME: &'static str = "TOML";

    fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Self::Error> {
        toml::from_str(text)
    }
}

/// Environment over file over defaults. figment answers bare values: were it to read the config's own types, each of them would be
/// compiled six times over.
fn assemble(text: &str, variables: &[(String, String)]) -> Value {
    let mut from_environment = tree::of_environment(variables);
    if let tree::ConfigValue::Table(entries) = &mut from_environment.value {
        // What names no key was told as a warning.
        entries.retain(|entry| keys::section(&entry.key).is_some());
    }
    let figment = Figment::new().merge(Toml::string(DEFAULTS)).merge(Toml::string(text));
    // Values of any kind can be put together; were it to fail, nothing is no config, and is refused as such.
    figment.merge(Serialized::defaults(from_environment.to_json())).extract().unwrap_or_default()
}

/// A problem that only assembling found: the check above it should have, so it is told without the value.
fn assembly_problem(file: &Path, error: &serde_json::Error) -> Diagnostic {
    let text = error.to_string();
    let message = match text.split_once(", expected ") {
        Some((what, _)) if what.starts_with("unknown ") => what.to_owned(),
        Some((_, wanted)) => format!("a value must be {wanted}"),
        None if text.starts_with("missing field") => text,
        None => "a value cannot be used".to_owned(),
    };
    Diagnostic::error(file, None, message)
}

fn place_problem(file: &Path, tree: &ConfigNode, problem: ConfigProblem) -> Diagnostic {
    let mut check = ConfigCheck { file, text: "", credentials: None, problems: Vec::new() };
    let place = tree.locate(&problem.path).clone();
    let diagnostic = check.error(&place, problem.message);
    diagnostic.help = problem.help;
    diagnostic.clone()
}

/// What is wrong with the routes beyond keys, types and receivers: their matchers. Asked of the route alone, so that an error
/// elsewhere hides none of it.
fn check_routes(assembled: &Value) -> Vec<ConfigProblem> {
    fn inner<T: DeserializeOwned + Default>(assembled: &Value, key: &str) -> Option<T> {
        assembled.get(key).map_or_else(|| Some(T::default()), |value| T::deserialize(value).ok())
    }
    let (Some(route), Some(receivers), Some(inhibit_rules), Some(time_intervals)) = (
        inner::<Route>(assembled, "route"),
        inner::<Vec<ReceiverSettings>>(assembled, "receiver"),
        inner::<Vec<InhibitRule>>(assembled, "inhibit_rules"),
        inner::<Vec<TimeIntervals>>(assembled, "time_intervals"),
    ) else {
        return Vec::new();
    };
    let sections =
        Sections { route: &route, receivers: &receivers, inhibit_rules: &inhibit_rules, time_intervals: &time_intervals };
    // What the tree of keys was checked for already is not told twice.
    let routes = RouteTree::of(&sections).err().unwrap_or_default().into_iter().filter(|problem| !problem.is_of_keys);
    let digests = receivers.iter().enumerate().filter_map(|(index, receiver)| {
        let (key, message, help) = Schedule::of(receiver.digest.as_ref()?).err()?;
        Some(ConfigProblem { path: format!("receiver[{index}].digest.{key}"), message, help: Some(help), is_of_keys: false })
    });
    routes.chain(digests).collect()
}

/// Makes every relative path of the config one from `base`. A path that is kept as text cannot lie below a directory whose name is
/// none: that is a problem of its key.
fn resolve_paths(config: &mut Config, base: &Path) -> Vec<ConfigProblem> {
    if base == Path::new(".") {
        return Vec::new();
    }
    let mut inexact = Vec::new();
    let resolve = |path: &mut PathBuf| *path = base.join(&*path);
    resolve(&mut config.store.path);
    let source = &mut config.source;
    for path in [
        &mut config.store.url_file,
        &mut config.store.tls_ca_file,
        &mut source.api_key_file,
        &mut source.tls_ca_file,
        &mut config.http.token_file,
        &mut config.http.dead_mans_switch_file,
        &mut config.mirror.keys,
        &mut config.mirror.keys_url_file,
        &mut config.mirror.tls_cert_file,
        &mut config.mirror.tls_key_file,
    ] {
        path.iter_mut().for_each(resolve);
    }
    for (index, receiver) in config.receivers.iter_mut().enumerate() {
        for path in [&mut receiver.url_file, &mut receiver.password_file, &mut receiver.tls_ca_file] {
            path.iter_mut().for_each(resolve);
        }
        for file in format_keys().filter_map(|key| key.file) {
            if let Some(path) = receiver.format_keys.get_mut(file) {
                match base.join(path.expose()).into_os_string().into_string() {
                    Ok(joined) => *path = joined.into(),
                    Err(_) => inexact.push(ConfigProblem {
                        path: format!("receiver[{index}].{file}"),
                        message: format!("`{file}` lies below a directory whose name is not UTF-8"),
                        help: Some("write an absolute path, or move the config".to_owned()),
                        is_of_keys: false,
                    }),
                }
            }
        }
    }
    for pattern in &mut config.rules.paths {
        // A pattern is a text: only the directory in front of it needs joining, and its own wildcards must stay.
        if !Path::new(pattern).is_absolute() {
            *pattern = format!("{}/{pattern}", globset::escape(&base.to_string_lossy()));
        }
    }
    inexact
}

/// Files that receivers read once, such as templates, which are not there or do not work: an error.
fn bad_files(file: &Path, tree: &ConfigNode, config: &Config) -> Vec<Diagnostic> {
    let receivers = config.receivers.iter().enumerate();
    receivers
        .filter_map(|(index, receiver)| {
            let format = FormatSpec::named(receiver.format.as_deref()?)?;
            let is_read_once =
                |key: &FormatKey| !key.value.is_secret() && key.file.is_some_and(|file| receiver.format_keys.contains_key(file));
            format.keys.iter().find(|key| is_read_once(key))?;
            let KeyProblem { key, message, .. } = format.read(receiver).err()?;
            Some(place_problem(
                file,
                tree,
                ConfigProblem { path: format!("receiver[{index}].{key}"), message, help: None, is_of_keys: false },
            ))
        })
        .collect()
}

/// Files that are named but not there: a warning, since they are read at use and may come later. And secrets that others may read.
fn named_files(file: &Path, tree: &ConfigNode, config: &Config) -> Vec<Diagnostic> {
    let (source, http) = (&config.source, &config.http);
    let mut named = vec![
        ("source.api_key_file".to_owned(), source.api_key_file.as_deref()),
        ("source.tls_ca_file".to_owned(), source.tls_ca_file.as_deref()),
        ("http.token_file".to_owned(), http.token_file.as_deref()),
        ("http.dead_mans_switch_file".to_owned(), http.dead_mans_switch_file.as_deref()),
    ];
    for (index, receiver) in config.receivers.iter().enumerate() {
        let of_format = format_keys().filter(|key| key.value.is_secret()).filter_map(|key| key.file);
        let of_format = of_format.map(|file| (file, receiver.format_keys.get(file).map(|path| Path::new(path.expose()))));
        let first = [("url_file", receiver.url_file.as_deref())];
        let last = [("password_file", receiver.password_file.as_deref()), ("tls_ca_file", receiver.tls_ca_file.as_deref())];
        let all = first.into_iter().chain(of_format).chain(last);
        named.extend(all.map(|(key, path)| (format!("receiver[{index}].{key}"), path)));
    }
    let warning = |(key, path): (String, Option<&Path>)| {
        let (path, is_secret) = (path?, !key.ends_with("tls_ca_file"));
        let (message, help) = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (missing_file(path), "it is read at each use: put it there before it is needed, or correct its path".to_owned())
            }
            Ok(found) if is_secret && found.is_file() && found.permissions().mode() & 0o007 != 0 => (
                format!("the file {} holds a secret, and every user of this machine may read it", path.display()),
                format!("`chmod o= {}`", path.display()),
            ),
            _ => return None,
        };
        let problem = place_problem(file, tree, ConfigProblem { path: key, message, help: Some(help), is_of_keys: false });
        Some(Diagnostic { severity: Severity::Warning, ..problem })
    };
    named.into_iter().filter_map(warning).collect()
}

/// What is said of a file that is named and not there.
#[must_use]
pub fn missing_file(path: &Path) -> String {
    format!("the file {} is not there", path.display())
}
