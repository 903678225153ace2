//! Reading config and rules again while the daemon runs: everything that can fail is done before anything is swapped.
//!
//! [`read`] reads the config, then the rule files that it names and compiles them, then runs the tests that lie beside them through
//! the new rules; what is wrong comes back as a [`Problem`] that names file and line. What the new config says of sections that only a
//! restart can change is named and left aside ([`beside`]). [`fingerprint`] tells whether any of those files is another than when they
//! were last read, so that a save in an editor is enough; a file that is still being written is left alone until two looks see the same.

use std::{
    collections::HashSet,
    fmt::Write as _,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{
    config::{
        Config, SecretText,
        load::{self, Environment},
    },
    diagnostic::{self, Diagnostic, Severity, SourceText, harmless, position},
    rules::{self, RuleSet},
    ruletest::{self, Outcome, Setup, report},
    supply::Timestamp,
};

/// How often the files are looked at. A few small files are read; nothing is parsed.
pub const WATCH: Duration = Duration::from_secs(2);

/// Bytes of a file that are looked at for a change; more than any that is taken.
const MAX_LOOK: u64 = 8 << 20;

/// Problems whose places are named in an alert; all are in the log.
const MAX_TOLD: usize = 5;

/// Where the config comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub path: PathBuf,
    /// What the process was given beside it.
    pub environment: Environment,
}

/// Config and rules as the files have them, with what was found in them.
#[derive(Debug)]
pub struct Read {
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
    /// Tests that were run.
    pub tests: usize,
    /// Why the rules cannot be put to work.
    pub problem: Option<Problem>,
}

/// Why changed rules are not put to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How many.
    pub count: u32,
    /// All of it, with lines and carets, for the log and the status page.
    pub full: String,
    /// Place and words of the first ones, a line each: `rules/unlocks.toml:12:10: …`.
    pub brief: String,
    /// `owner` of the rules concerned, each once.
    pub owners: Vec<String>,
}

/// Compiles rule texts with the names that the config knows.
#[must_use]
pub fn compile(config: &Config, texts: Vec<SourceText>, mut diagnostics: Vec<Diagnostic>, now: Timestamp) -> Read {
    let names: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let around = rules::Surroundings { receivers: &names, groups: &config.watch.groups, now };
    let loaded = rules::load(&texts, &around);
    diagnostics.extend(loaded.diagnostics);
    let problem = Problem::of_files(&diagnostics, &texts);
    Read { config: config.clone(), waits: Vec::new(), set: loaded.set, diagnostics, texts, tests: 0, problem }
}

/// Reads and compiles the rule files.
#[must_use]
pub fn read_files(config: &Config, base_dir: &Path, now: Timestamp) -> Read {
    let files = rules::read_files(&config.rules.paths, base_dir);
    compile(config, files.files, files.diagnostics, now)
}

/// Reads the config again, where it came from a file, then as [`read_files`], and runs the tests beside the rules where those are right.
#[must_use]
pub fn read(at_work: &Config, origin: Option<&Origin>, base_dir: &Path, now: Timestamp) -> Read {
    let (config, waits) = match origin.map(|origin| load::load(Some(&origin.path), &origin.environment)) {
        None => (at_work.clone(), Vec::new()),
        Some(load::Loaded { config: Some(new), .. }) => beside(at_work, new),
        Some(load::Loaded { diagnostics, sources, .. }) => {
            let problem = Problem::of_files(&diagnostics, &sources);
            let config = at_work.clone();
            return Read {
                config,
                waits: Vec::new(),
                set: RuleSet::default(),
                diagnostics,
                texts: Vec::new(),
                tests: 0,
                problem,
            };
        }
    };
    let mut read = read_files(&config, base_dir, now);
    read.waits = waits;
    if read.problem.is_some() {
        return read;
    }
    let config = &config;
    let files = ruletest::files_beside(config, base_dir);
    let outcomes = ruletest::run(&files, &Setup { config, base_dir, only: None }, |_| {});
    read.tests = outcomes.len();
    read.problem = Problem::of_tests(&outcomes, &read.set);
    read
}

/// What a reload makes of a new config: itself, but for what only a restart can change, which stays as it is at work and is named.
#[must_use]
pub fn beside(at_work: &Config, mut new: Config) -> (Config, Vec<String>) {
    /// As JSON; a secret as the hash of its text, since it shows as dots.
    fn json(section: &impl serde::Serialize, secrets: &[(&str, &Option<SecretText>)]) -> serde_json::Value {
        let mut json = serde_json::to_value(section).unwrap_or_default();
        for (name, secret) in secrets {
            json[*name] = secret.as_ref().map(|secret| xxh3_64(secret.expose().as_bytes())).into();
        }
        json
    }
    let of = |config: &Config| {
        let (source, http) = (&config.source, &config.http);
        [
            ("source", json(source, &[("api_key", &source.api_key)])),
            ("store", serde_json::json!({ "path": config.store.path })),
            ("http", json(http, &[("token", &http.token), ("dead_mans_switch", &http.dead_mans_switch)])),
            ("mirror", json(&config.mirror, &[])),
            ("log", json(&config.log, &[])),
        ]
    };
    let mut waits = Vec::new();
    for ((section, old), (_, new)) in of(at_work).iter().zip(of(&new).iter()) {
        let names = new.as_object().into_iter().flat_map(serde_json::Map::keys);
        waits.extend(names.filter(|name| old.get(name) != new.get(name)).map(|name| format!("[{section}] {name}")));
    }
    new.source = at_work.source.clone();
    new.store.path.clone_from(&at_work.store.path);
    new.http = at_work.http.clone();
    new.mirror = at_work.mirror.clone();
    new.log = at_work.log.clone();
    (new, waits)
}

impl Problem {
    /// What a config or a receiver cannot be built from.
    #[must_use]
    pub fn of_parts(file: Option<&Path>, problems: &[String]) -> Self {
        let count = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let file = file.map_or_else(|| "the config".to_owned(), |file| file.display().to_string());
        let line = |problem: &String| format!("{file}: {}\n", harmless(problem));
        let full: String = problems.iter().map(|problem| format!("error: {}", line(problem))).collect();
        let mut brief: String = problems.iter().take(MAX_TOLD).map(line).collect();
        more(&mut brief, problems.len());
        Self { count, full, brief: brief.trim_end().to_owned(), owners: Vec::new() }
    }

    /// The errors of files; none where there are only warnings.
    fn of_files(diagnostics: &[Diagnostic], texts: &[SourceText]) -> Option<Self> {
        let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|problem| problem.severity == Severity::Error).collect();
        if errors.is_empty() {
            return None;
        }
        let mut brief = String::new();
        let mut owners: Vec<String> = Vec::new();
        for (index, error) in errors.iter().enumerate() {
            let text = texts.iter().find(|source| source.file == error.file).map(|source| source.text.as_str());
            if let (Some(text), Some(span)) = (text, &error.span)
                && let Some(owner) = owner_at(text, span.start)
                && !owners.contains(&owner)
            {
                owners.push(owner);
            }
            if index >= MAX_TOLD {
                continue;
            }
            let place = match (text, &error.span) {
                (Some(text), Some(span)) => {
                    let at = position(text, span);
                    format!(":{}:{}", at.line, at.column)
                }
                _ => String::new(),
            };
            let help = error.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            let _ = writeln!(brief, "{}{place}: {}{help}", error.file.display(), error.message);
        }
        more(&mut brief, errors.len());
        let count = u32::try_from(errors.len()).unwrap_or(u32::MAX);
        Some(Self { count, full: diagnostic::render(diagnostics, texts, false), brief: brief.trim_end().to_owned(), owners })
    }

    /// The tests that fail; none where all pass.
    fn of_tests(outcomes: &[Outcome], rules: &RuleSet) -> Option<Self> {
        let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.is_passed()).collect();
        if failed.is_empty() {
            return None;
        }
        let mut brief = String::new();
        for outcome in failed.iter().take(MAX_TOLD) {
            let line = outcome.failures.first().map_or(outcome.line, |failure| failure.line);
            let _ = writeln!(brief, "{}:{line}: the test fails: {}", outcome.file.display(), harmless(&outcome.name));
        }
        more(&mut brief, failed.len());
        let full: String = failed.iter().map(|outcome| report::plain(outcome)).collect();
        // Of the rules that a failing test speaks of.
        let words: HashSet<&str> = full.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').collect();
        let mut owners: Vec<String> =
            rules.rules.iter().filter(|rule| words.contains(rule.name.as_str())).filter_map(|rule| rule.owner.clone()).collect();
        owners.sort();
        owners.dedup();
        let count = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        Some(Self { count, full, brief: brief.trim_end().to_owned(), owners })
    }
}

fn more(brief: &mut String, count: usize) {
    if count > MAX_TOLD {
        let _ = writeln!(brief, "and {} more", count - MAX_TOLD);
    }
}

/// `owner` of the rule around a place. The file may not be readable as TOML, so its lines are looked at.
fn owner_at(text: &str, offset: usize) -> Option<String> {
    const HEAD: &str = "[[rule]]";
    let offset = text.floor_char_boundary(offset);
    // A place may be the head itself.
    let start = text.get(..text.floor_char_boundary(offset.saturating_add(HEAD.len())))?.rfind(HEAD)?;
    let rest = text.get(start + HEAD.len()..)?;
    let rule = rest.find(HEAD).and_then(|end| rest.get(..end)).unwrap_or(rest);
    rule.lines().find_map(|line| {
        let value = line.trim().strip_prefix("owner")?.trim_start().strip_prefix('=')?.trim();
        let owner = value.trim_matches(['"', '\'']);
        (!owner.is_empty()).then(|| owner.chars().filter(|c| !c.is_control()).take(200).collect())
    })
}

/// A hash over config, rule files and the tests beside them: names and contents. Another one: something was changed.
#[must_use]
pub fn fingerprint(config: &Config, origin: Option<&Origin>, base_dir: &Path) -> u128 {
    let mut hash = Xxh3::new();
    let mut add = |file: &Path, text: &[u8]| {
        let name = file.as_os_str().as_encoded_bytes();
        for part in [name, text] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    };
    if let Some(origin) = origin {
        add(&origin.path, &bytes(&origin.path));
    }
    let files = rules::read_files(&config.rules.paths, base_dir);
    for source in &files.files {
        add(&source.file, source.text.as_bytes());
    }
    // A file that can no longer be read is another state too.
    for problem in &files.diagnostics {
        add(&problem.file, problem.message.as_bytes());
    }
    for file in ruletest::files_beside(config, base_dir) {
        add(&file, &bytes(&file));
    }
    hash.digest128()
}

/// What a file holds, as far as it is looked at.
fn bytes(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be read is told by the reload.
    let _ = std::fs::File::open(file).and_then(|file| file.take(MAX_LOOK).read_to_end(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::{load, load_text};

    const RULES: &str = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nowner = \"desk\"\n\n[[rule]]\nalert = \"B\"\non = \"burn\"\nowner = \"treasury\"\nwhen = \"amount > 5\"\n";
    const TEST: &str = "rules = [\"../r.toml\"]\n[[test]]\nname = \"a burn\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n[[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nalert = [{ rule = \"B\" }]\n";

    fn folder(rules: &str, test: &str) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("rules/tests")).expect("made");
        std::fs::write(folder.path().join("rules/r.toml"), rules).expect("written");
        std::fs::write(folder.path().join("rules/tests/t.toml"), test).expect("written");
        (folder, load(None, &Environment::default()).config.expect("the defaults"))
    }

    fn read_of(rules: &str, test: &str) -> Read {
        let (folder, config) = folder(rules, test);
        let mut read = read(&config, None, folder.path(), Timestamp::default());
        if let Some(problem) = &mut read.problem {
            problem.brief = problem.brief.replace(&format!("{}/", folder.path().display()), "");
        }
        read
    }

    #[test]
    fn good_rules_with_good_tests_go_to_work() {
        let read = read_of(RULES, TEST);
        assert_eq!((read.problem, read.tests, read.set.rules.len()), (None, 1, 2));
    }

    #[test]
    fn a_bad_line_is_named_with_its_owner_and_what_was_meant() {
        let problem = read_of(&RULES.replace("amount > 5", "amuont > 5"), TEST).problem.expect("a problem");
        assert_eq!(problem.count, 1);
        assert_eq!(problem.brief, "rules/r.toml:10:9: nothing is called `amuont` (did you mean `amount`?)");
        assert_eq!(problem.owners, ["treasury"]);
        assert!(problem.full.contains("^^^^^^"), "{}", problem.full);
    }

    #[test]
    fn a_failing_test_keeps_the_rules_out() {
        let problem = read_of(&RULES.replace("amount > 5", "amount > 50"), TEST).problem.expect("a problem");
        assert_eq!(problem.brief, "rules/tests/t.toml:12: the test fails: a burn");
        assert_eq!(problem.owners, ["treasury"]);
    }

    #[test]
    fn the_fingerprint_moves_with_every_file_and_with_nothing_else() {
        let (folder, config) = folder(RULES, TEST);
        let print = || fingerprint(&config, None, folder.path());
        let first = print();
        assert_eq!(print(), first);
        std::fs::write(folder.path().join("rules/r.toml"), RULES).expect("written");
        assert_eq!(print(), first, "the same again is no change");
        std::fs::write(folder.path().join("rules/tests/t.toml"), format!("{TEST}#")).expect("written");
        let second = print();
        assert_ne!(second, first);
        std::fs::write(folder.path().join("rules/more.toml"), "").expect("written");
        let third = print();
        assert_ne!(third, second);
        std::fs::remove_file(folder.path().join("rules/more.toml")).expect("removed");
        assert_eq!(print(), second);
    }

    #[test]
    fn what_only_a_restart_can_change_stays_and_is_named_without_its_secrets() {
        let of = |text: &str| load_text(None, text, &Environment::default()).config.expect("a config");
        let at_work = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n");
        let same = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n[watch]\ntokens = [\"aptos\"]\n");
        let (config, waits) = beside(&at_work, same);
        assert_eq!((config.watch.tokens, waits), (vec!["aptos".to_owned()], Vec::new()));

        let other = "[store]\npath = \"b.db\"\nretention = \"30d\"\n[source]\napi_key = \"two\"\ntimeout = \"7s\"\n[http]\nlisten = \"off\"\n";
        let (config, mut waits) = beside(&at_work, of(other));
        waits.sort();
        assert_eq!(waits, ["[http] listen", "[source] api_key", "[source] timeout", "[store] path"]);
        assert_eq!(config.store.path, at_work.store.path);
        assert_eq!(config.source.timeout, at_work.source.timeout);
        assert_eq!(config.store.retention, "30d".parse().expect("a length of time"), "the rest of a section goes to work");
    }

    #[test]
    fn a_config_with_a_mistake_leaves_the_one_at_work_and_names_the_line() {
        let (folder, at_work) = folder(RULES, TEST);
        let path = folder.path().join("cliffwatch.toml");
        let origin = Origin { path: path.clone(), environment: Environment::default() };
        std::fs::write(&path, "[watch]\ntokens = [\"aptos\"]\n").expect("written");
        let print = || fingerprint(&at_work, Some(&origin), folder.path());
        let first = print();
        let good = super::read(&at_work, Some(&origin), folder.path(), Timestamp::default());
        assert_eq!((good.problem, good.config.watch.tokens), (None, vec!["aptos".to_owned()]));

        std::fs::write(&path, "[watch]\ntokns = [\"aptos\"]\n").expect("written");
        assert_ne!(print(), first, "a save of the config is seen");
        let bad = super::read(&at_work, Some(&origin), folder.path(), Timestamp::default());
        let problem = bad.problem.expect("a problem");
        assert!(
            problem.brief.ends_with("cliffwatch.toml:2:1: unknown key `tokns` in [watch] (did you mean `tokens`?)"),
            "{problem:?}"
        );
        assert_eq!(bad.config.watch.tokens, at_work.watch.tokens);
    }
}
