//! `new rule`: asks what one wants to hear of, writes the rule with its test, and shows what it would have sent.
//!
//! The path: the questions (or flags) become a [`RuleRequest`], `made` makes the texts of it, the real checker reads them beside all
//! other rules, the rule's test is run, and only then anything is written. Then the last year is played with the rule alone.

mod ask;
mod made;

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::backtest::text;
use super::invocation::{receiver_names, routes_of, watch_of};
use super::{Exit, Invocation, UsageError, parse_money, parse_span, print, shown};
use daemon::config::Loaded;
use daemon::playground::{TrialTime, TrialWorld, last_year};
use engine::pipeline::DispatchPolicy;
use made::{About, MadeRule, RuleRequest};
use model::config::{self, Config, Span};
use model::{Severity, SourceText, Watch, diagnostic};
use rules::RuleSet;
use store::Access;
use tools::backtest::{self, BacktestRun, BacktestSetup, BacktestSummary, History};
use tools::ruletest::{self, TestSetup, report};
use tools::simulate::{DeliverySetup, Pace};

/// Messages that are shown of the last year.
const MOST_SHOWN: usize = 10;
/// How long the database is read and the year played at most.
const TRIAL_TIME: TrialTime = TrialTime { read: Duration::from_secs(10), play: Duration::from_secs(30) };
/// Days without a buyback that can be asked for.
const MOST_DAYS: std::ops::RangeInclusive<i64> = 1..=3650;
/// Stands for the receiver of a config that has none.
const ANYONE: &str = "(anyone)";

/// `new`.
#[derive(Debug, Subcommand)]
pub(super) enum NewCommand {
    /// Write a rule with its test, and show what it would have sent over the last year
    Rule(NewRuleArgs),
}

#[derive(Debug, Args)]
pub(super) struct NewRuleArgs {
    /// What to hear of; asked for where it is not given
    #[arg(long, value_enum)]
    about: Option<About>,
    /// Which tokens: slugs, globs, @groups, with commas between; every watched token if not given
    #[arg(long, value_name = "TOKENS", value_delimiter = ',')]
    tokens: Vec<String>,
    /// From which value on, USD, such as 5000000 or 5M
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    above: Option<f64>,
    /// How long before a cliff, such as 30d,7d,1d
    #[arg(long, value_name = "SPANS", value_delimiter = ',', value_parser = parse_span)]
    within: Vec<Span>,
    /// After how many days without a buyback
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(MOST_DAYS))]
    days: Option<u32>,
    /// Over which window, such as 7d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    window: Option<Span>,
    /// How much it matters: the label `severity`
    #[arg(long, value_name = "WORD", default_value = "warning")]
    severity: String,
    /// What the alert is called
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The rule file: a new one, or one to add to; `mine.toml` beside the other rules if not given
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is to be written.
struct NewFiles {
    /// The rule file, and all of its text.
    rules: SourceText,
    /// What of it is new.
    rule: String,
    /// Whether it was there before.
    is_there: bool,
    test: SourceText,
}

pub(super) fn run(command: &NewCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let NewCommand::Rule(args) = command;
    let (config, loaded) = invocation.load()?;
    let others = rules::read_files(&config.rules.paths, &loaded.base_dir).files;
    let asked = match args.about {
        Some(_) => None,
        None if std::io::stdin().is_terminal() => {
            let answers = ask::questions(&ask::KnownNames { config: &config, rules: &others })?;
            Some(NewRuleArgs { file: args.file.clone(), dry_run: args.dry_run, ..answers })
        }
        None => return Err(UsageError(ask::USAGE.to_owned()).into()),
    };
    let is_asked = asked.is_some();
    let args = asked.as_ref().unwrap_or(args);
    let request = request(args, &config, &others)?;
    let files = new_files(args, &request, &config, &loaded)?;
    let set = checked(&files, &others, &request, &config, invocation)?;
    tested(&files, &config, &loaded)?;
    if is_asked && !args.dry_run {
        // Who answers questions sees what comes of it before anything is written.
        print::out(&format!("\n{}{}\n", files.rule, sent_last_year(&set, &config, invocation)?))?;
        match ask::is_to_be_written(&files.rules.file)? {
            true => write(&files)?,
            false => anstream::eprintln!("nothing was written"),
        }
        return Ok(Exit::Done);
    }
    if args.dry_run {
        print::out(&format!(
            "# {}\n{}\n# {}\n{}\n",
            shown(&files.rules.file),
            files.rule,
            shown(&files.test.file),
            files.test.text
        ))?;
    } else {
        write(&files)?;
    }
    print::out(&sent_last_year(&set, &config, invocation)?)?;
    Ok(Exit::Done)
}

/// The flags with their defaults.
fn request(args: &NewRuleArgs, config: &Config, others: &[SourceText]) -> anyhow::Result<RuleRequest> {
    let about = args.about.ok_or_else(|| UsageError(ask::USAGE.to_owned()))?;
    let name = args.name.clone().unwrap_or_else(|| ask::free_name(about, others));
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return Err(UsageError(format!("--name {name:?}: letters, digits, `-` and `_` make a name")).into());
    }
    let within: Vec<String> = args.within.iter().map(ToString::to_string).collect();
    let is_cliffs = about == About::Cliffs;
    let default = || ["30d", "7d", "1d"].map(str::to_owned).to_vec();
    Ok(RuleRequest {
        about,
        name,
        tokens: args.tokens.iter().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()).collect(),
        above: args.above,
        within: if is_cliffs && within.is_empty() { default() } else { within },
        days: args.days.unwrap_or(35),
        window: args.window.map_or_else(|| "7d".to_owned(), |window| window.to_string()),
        severity: args.severity.clone(),
        sample: sample(&args.tokens, config)?,
    })
}

/// A slug that the tokens let in, for the test.
fn sample(tokens: &[String], config: &Config) -> anyhow::Result<String> {
    let slug_of = |pattern: &str| pattern.replace(['*', '?'], "x");
    let Some(first) = tokens.first().map(|token| token.trim()) else {
        // A rule on groups looks at none but their tokens.
        let grouped = config.watch.groups.values().flatten().next();
        return Ok(grouped.map_or_else(|| "example".to_owned(), |pattern| slug_of(pattern)));
    };
    let Some(group) = first.strip_prefix('@') else { return Ok(slug_of(first)) };
    let Some(patterns) = config.watch.groups.get(group) else {
        let known = config.watch.groups.keys().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "the config has no [watch] groups".to_owned() } else { format!("there are {known}") };
        return Err(UsageError(format!("there is no group {first}: {known}")).into());
    };
    let Some(pattern) = patterns.first() else {
        return Err(UsageError(format!("the group {first} has no tokens")).into());
    };
    Ok(slug_of(pattern))
}

/// Where rule and test go, and what they say.
fn new_files(args: &NewRuleArgs, request: &RuleRequest, config: &Config, loaded: &Loaded) -> anyhow::Result<NewFiles> {
    let beside = config.rules.paths.first().and_then(|pattern| Path::new(pattern).parent()).unwrap_or_else(|| Path::new("rules"));
    let path = args.file.clone().unwrap_or_else(|| loaded.base_dir.join(beside).join("mine.toml"));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if Path::new(&name).extension().is_none_or(|ending| ending != "toml") {
        return Err(UsageError(format!("--file {}: a rule file ends in .toml", shown(&path))).into());
    }
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let test = folder.join("tests").join(format!("{}.toml", request.name.to_lowercase()));
    if test.exists() {
        anyhow::bail!("{} is there already, and nothing was written: choose another --name", shown(&test));
    }
    let MadeRule { rule, test: test_text } = made::made(request, &format!("../{name}"));
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", shown(&path))),
    };
    let is_there = before.is_some();
    let before = before.map(|text| if text.trim().is_empty() { text } else { format!("{}\n\n", text.trim_end()) });
    // As `init` does it: an editor finds the schema by the first line.
    let schema = |name: &str, from: &str| {
        let is_known = folder.join("../schemas").join(name).exists();
        if is_known { format!("#:schema {from}schemas/{name}\n") } else { String::new() }
    };
    let begin = before.unwrap_or_else(|| schema("rules.schema.json", "../"));
    let test_text = schema("tests.schema.json", "../../") + &test_text;
    let rules = SourceText { text: begin + &rule, file: path };
    Ok(NewFiles { rules, rule, is_there, test: SourceText { file: test, text: test_text } })
}

/// Checks the new text beside all other rules, and answers with the new rule alone.
fn checked(
    files: &NewFiles,
    others: &[SourceText],
    request: &RuleRequest,
    config: &Config,
    invocation: &Invocation,
) -> anyhow::Result<RuleSet> {
    let receivers = receiver_names(config);
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now: invocation.clock.now() };
    let is_same = |file: &&SourceText| fs::canonicalize(&file.file).ok() != fs::canonicalize(&files.rules.file).ok();
    let mut all: Vec<SourceText> = others.iter().filter(|file| !files.is_there || is_same(file)).cloned().collect();
    all.push(files.rules.clone());
    let loaded = rules::load(&all, &around);
    let own: Vec<_> = loaded.diagnostics.iter().filter(|problem| problem.file == files.rules.file).cloned().collect();
    anstream::eprint!("{}", diagnostic::render(&own, &loaded.sources, invocation.color));
    if own.iter().any(|problem| problem.severity == Severity::Error) {
        anyhow::bail!("the rule {} would not pass the check, and nothing was written", request.name);
    }
    let alone = SourceText { file: files.rules.file.clone(), text: files.rule.clone() };
    Ok(rules::load(&[alone], &around).set)
}

/// Runs the test of the new rule.
fn tested(files: &NewFiles, config: &Config, loaded: &Loaded) -> anyhow::Result<()> {
    let setup = TestSetup { config, base_dir: &loaded.base_dir, only: None };
    let outcomes = ruletest::run_against(files.test.clone(), &setup, Some(std::slice::from_ref(&files.rules)));
    if outcomes.iter().any(|outcome| !outcome.is_passed()) {
        anstream::eprint!("{}", outcomes.iter().map(report::plain).collect::<String>());
        anyhow::bail!("the test of the rule fails, and nothing was written");
    }
    anstream::eprintln!("{}", report::summary(&outcomes));
    Ok(())
}

/// Adds the rule to its file, or makes it; the test is always a file of its own.
fn write(files: &NewFiles) -> anyhow::Result<()> {
    let folder = files.test.file.parent().unwrap_or_else(|| Path::new(""));
    fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", shown(folder)))?;
    let new = |path: &Path, text: &str| -> anyhow::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(file.write_all(text.as_bytes())?)
    };
    new(&files.test.file, &files.test.text).with_context(|| format!("{} cannot be written", shown(&files.test.file)))?;
    let rules = &files.rules.file;
    let written = if files.is_there {
        let before = fs::read_to_string(rules).unwrap_or_default();
        let gap = if before.trim().is_empty() {
            ""
        } else if before.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        let opened = fs::OpenOptions::new().append(true).open(rules);
        opened.and_then(|mut file| file.write_all(format!("{gap}{}", files.rule).as_bytes())).map_err(anyhow::Error::from)
    } else {
        new(rules, &files.rules.text)
    };
    written.with_context(|| format!("{} cannot be written", shown(rules)))?;
    anstream::eprintln!("{} {}", if files.is_there { "added to" } else { "wrote" }, shown(rules));
    anstream::eprintln!("wrote {}", shown(&files.test.file));
    Ok(())
}

/// What the rule alone would have sent over the last year: over the database, else over the bundled data.
fn sent_last_year(set: &RuleSet, config: &Config, invocation: &Invocation) -> anyhow::Result<String> {
    let mut config = config.clone();
    if config.receivers.is_empty() {
        config.receivers.push(config::ReceiverSettings { name: ANYONE.to_owned(), ..config::ReceiverSettings::default() });
    }
    let (routes, watch) = (routes_of(&config)?, watch_of(&config.watch).map_err(UsageError)?);
    let policy = DispatchPolicy::of(&config.receivers, &config.delivery).map_err(anyhow::Error::msg)?;
    let now = invocation.clock.now();
    let (run, over) = if config.store.path.exists() {
        let world = TrialWorld { watch: &watch, routes: &routes, settings: &config.store };
        let played = super::wait(async {
            let store = invocation.open(&config, Access::Read).await?;
            Ok(last_year(&store, &world, set, &policy, TRIAL_TIME, now).await?)
        })?;
        let part = if played.is_whole { "" } else { ", of which there was time for a part" };
        (played.run, format!("what the database recorded{part}"))
    } else {
        (over_bundled(set, &routes, &watch, policy, now)?, "the bundled data, since there is no database yet".to_owned())
    };
    Ok(format!("\nOver {over}:\n{}", text::text(&run, &BacktestSummary::of(&run), None, MOST_SHOWN)))
}

fn over_bundled(
    set: &RuleSet,
    routes: &engine::route::RouteTree,
    watch: &Watch,
    policy: DispatchPolicy,
    now: model::Timestamp,
) -> anyhow::Result<BacktestRun> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-data-{}-{:x}", std::process::id(), fastrand::u64(..)));
    fs::create_dir(&folder).context("the bundled data cannot be laid out")?;
    let laid_out = lay_out(&folder).and_then(|()| Ok(History::read(&folder, None, now)?));
    fs::remove_dir_all(&folder).ok();
    let history = laid_out.context("the bundled data cannot be read")?;
    let delivery = DeliverySetup::of(DispatchPolicy { digests: Vec::new(), ..policy });
    let pace = Pace { look_every: chrono::TimeDelta::hours(6), ..Pace::default() };
    let setup = BacktestSetup { rules: set, routes, delivery: &delivery, watch, pace };
    Ok(backtest::run(&history, &setup, now - chrono::TimeDelta::days(365), now, |_| {}))
}

fn lay_out(folder: &Path) -> anyhow::Result<()> {
    for file in service::bundled() {
        let file = file?;
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, file.text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
