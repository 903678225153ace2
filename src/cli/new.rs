//! `new rule`: creates a rule with its test from prompts or options, and shows what the rule would have sent.
//!
//! The prompts or options become a [`RuleRequest`], from which [`new_rule`] makes the texts. They are checked together with all other
//! rules, and the test is run, before any file is written. Then the new rule is replayed over the last year.

mod prompt;

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::backtest::text;
use super::bundled;
use super::invocation::{receiver_names, routes_of, watch_of};
use super::{Exit, Invocation, UsageError, parse_money, parse_span, print, shown};
use daemon::config::Loaded;
use daemon::playground::{TrialTime, TrialWorld, last_year};
use engine::pipeline::DispatchPolicy;
use model::config::{self, Config, Span};
use model::{DiagnosticLevel, SourceText, TokenNameError, TokenNames, Watch, diagnostic, phrase, resolve_token};
use rules::RuleSet;
use store::Access;
use tools::backtest::{self, BacktestRun, BacktestSetup, BacktestSummary};
use tools::new_rule::{self, GeneratedRule, RuleOption, RuleRequest, RuleTopic};
use tools::ruletest::{self, TestSetup, report};
use tools::simulate::{DeliverySetup, Pace};

/// The maximum number of messages to print.
const MAX_MESSAGES: usize = 10;
/// The time limits for reading the database and replaying the last year.
const TRIAL_TIME: TrialTime = TrialTime { read: Duration::from_secs(10), replay: Duration::from_secs(30) };
/// The valid numbers of days without a buyback.
const DAYS: std::ops::RangeInclusive<i64> = 1..=3650;
/// The name of the receiver if the config has none.
const ANYONE: &str = "(anyone)";

#[derive(Debug, Subcommand)]
pub(super) enum NewCommand {
    /// Create a rule with its test, and show what it would have sent over the last year
    Rule(NewRuleArgs),
}

#[derive(Debug, Args)]
pub(super) struct NewRuleArgs {
    /// Kind of alert; prompts for all values if omitted
    #[arg(long, value_name = "ABOUT", value_parser = topics())]
    about: Option<RuleTopic>,
    /// Tokens (slug or ticker), globs, or @groups, separated by commas; default: all watched tokens
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', requires = "about")]
    tokens: Vec<String>,
    /// Minimum value in USD, such as 5000000 or 5M; not of no-buyback
    #[arg(long, value_name = "USD", value_parser = parse_money, requires = "about")]
    above: Option<f64>,
    /// Lead times before a cliff, such as 30d,7d,1d; only of cliffs
    #[arg(long, value_name = "SPANS", value_delimiter = ',', value_parser = parse_span, requires = "about")]
    within: Vec<Span>,
    /// Number of days without a buyback; only of no-buyback
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(DAYS), requires = "about")]
    days: Option<u32>,
    /// Window length, such as 7d; only of pressure and emissions
    #[arg(long, value_name = "SPAN", value_parser = parse_span, requires = "about")]
    window: Option<Span>,
    /// Value of the label `severity`
    #[arg(long, value_name = "WORD", default_value = "warning", requires = "about")]
    severity: String,
    /// Name of the alert
    #[arg(long, value_name = "NAME", requires = "about")]
    name: Option<String>,
    /// Rule file to create or extend, in [rules] paths; default: `mine.toml` next to the other rules
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the files without writing them
    #[arg(long)]
    dry_run: bool,
}

/// Returns the parser of `--about`, which lists the kinds of alerts.
fn topics() -> impl TypedValueParser<Value = RuleTopic> {
    let values = RuleTopic::ALL.map(|topic| PossibleValue::new(topic.word()).help(topic.about()));
    PossibleValuesParser::new(values).try_map(|word| RuleTopic::parse(&word).ok_or("unknown kind of alert"))
}

/// The files to write.
struct NewFiles {
    /// The rule file with its complete text.
    rules: SourceText,
    /// The new part of the rule file.
    rule: String,
    /// Whether the rule file exists.
    is_there: bool,
    test: SourceText,
}

pub(super) fn run(command: &NewCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let NewCommand::Rule(args) = command;
    let (config, loaded) = invocation.load()?;
    let others = rules::read_files(&config.rules.paths, &loaded.base_dir).files;
    let known = known_tokens(&config, invocation)?;
    let given = match args.about {
        Some(_) => None,
        None if std::io::stdin().is_terminal() => {
            let inputs = prompt::prompts(&prompt::KnownNames { config: &config, rules: &others, tokens: &known })?;
            Some(NewRuleArgs { file: args.file.clone(), dry_run: args.dry_run, ..inputs })
        }
        None => return Err(UsageError(prompt::USAGE.to_owned()).into()),
    };
    let is_requested = given.is_some();
    let args = given.as_ref().unwrap_or(args);
    check_options(args)?;
    let request = request(args, &config, &others, &known)?;
    let files = new_files(args, &request, &config, &loaded)?;
    let set = checked(&files, &others, &request, &config, invocation)?;
    run_test(&files, &config, &loaded)?;
    if is_requested && !args.dry_run {
        // After prompts, show the result before asking for confirmation.
        print::out(&format!("\n{}{}\n", files.rule, sent_last_year(&set, &config, invocation)?))?;
        match prompt::confirm_write(&files.rules.file)? {
            true => write(&files)?,
            false => anstream::eprintln!("no files were written"),
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

/// The tokens that names are looked up in.
struct KnownTokens {
    names: Vec<TokenNames>,
    /// Whether these are all tokens of the source, so that another name is an error. The bundled data has only some.
    is_complete: bool,
}

/// Returns the tokens in the database, or in the bundled data while the database has none.
fn known_tokens(config: &Config, invocation: &Invocation) -> anyhow::Result<KnownTokens> {
    if bundled::has_database(config)? {
        let names = super::wait(async {
            let store = invocation.open(config, Access::Read).await?;
            let names = store.token_names().await?;
            store.close().await?;
            anyhow::Ok(names)
        })?;
        if !names.is_empty() {
            return Ok(KnownTokens { names, is_complete: true });
        }
    }
    Ok(KnownTokens { names: bundled::token_names()?, is_complete: false })
}

impl KnownTokens {
    /// Returns the slug of a token. Groups and globs stay.
    ///
    /// # Errors
    ///
    /// Fails if several tokens have the name, or if no token has it and all are known.
    fn slug(&self, text: &str) -> Result<String, TokenNameError> {
        if text.starts_with('@') || text.contains(['*', '?', '[', '{']) {
            return Ok(text.to_owned());
        }
        match resolve_token(text, &self.names) {
            Ok(id) => Ok(id.to_string()),
            Err(TokenNameError::Unknown { .. }) if !self.is_complete => Ok(text.to_owned()),
            Err(error) => Err(error),
        }
    }
}

/// Rejects options that the kind of alert does not have.
fn check_options(args: &NewRuleArgs) -> Result<(), UsageError> {
    let Some(about) = args.about else { return Ok(()) };
    let given = [
        (RuleOption::Above, args.above.is_some()),
        (RuleOption::Within, !args.within.is_empty()),
        (RuleOption::Days, args.days.is_some()),
        (RuleOption::Window, args.window.is_some()),
    ];
    match given.into_iter().find(|(option, is_given)| *is_given && !about.has(*option)) {
        None => Ok(()),
        Some((option, _)) => {
            let kinds: Vec<String> = RuleTopic::all_with(option).map(|topic| topic.word().to_owned()).collect();
            let (flag, about) = (option.flag(), about.word());
            Err(UsageError(format!("{flag} is not an option of --about {about}, only of {}: remove it", phrase::list(&kinds))))
        }
    }
}

/// Applies the defaults of the options.
fn request(args: &NewRuleArgs, config: &Config, others: &[SourceText], known: &KnownTokens) -> anyhow::Result<RuleRequest> {
    let about = args.about.ok_or_else(|| UsageError(prompt::USAGE.to_owned()))?;
    let name = args.name.clone().unwrap_or_else(|| new_rule::free_name(about, others));
    if !new_rule::is_valid_name(&name) {
        return Err(UsageError(format!("--name {name:?} is not a valid name: use letters, digits, `-`, and `_`")).into());
    }
    let within: Vec<String> = args.within.iter().map(ToString::to_string).collect();
    let is_cliffs = about == RuleTopic::Cliffs;
    let tokens = args.tokens.iter().map(|token| token.trim()).filter(|token| !token.is_empty());
    let tokens = tokens.map(|token| known.slug(token)).collect::<Result<Vec<_>, _>>();
    let tokens = tokens.map_err(|error| UsageError(error.to_string()))?;
    let default = || ["30d", "7d", "1d"].map(str::to_owned).to_vec();
    Ok(RuleRequest {
        about,
        name,
        sample: new_rule::sample(&tokens, &config.watch.groups).map_err(UsageError)?,
        tokens,
        above: args.above,
        percent: None,
        recipients: Vec::new(),
        within: if is_cliffs && within.is_empty() { default() } else { within },
        days: args.days.unwrap_or(35),
        window: args.window.map_or_else(|| "7d".to_owned(), |window| window.to_string()),
        severity: args.severity.clone(),
    })
}

/// Returns the files of the rule and its test.
fn new_files(args: &NewRuleArgs, request: &RuleRequest, config: &Config, loaded: &Loaded) -> anyhow::Result<NewFiles> {
    let usual = || loaded.base_dir.join(new_rule::folder_of(&config.rules.paths)).join("mine.toml");
    let path = args.file.clone().unwrap_or_else(usual);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if Path::new(&name).extension().is_none_or(|ending| ending != "toml") {
        return Err(UsageError(format!("--file {} is not a rule file: its name must end in .toml", shown(&path))).into());
    }
    if !rules::is_rule_file(&path, &config.rules.paths, &loaded.base_dir) {
        let paths = config.rules.paths.join(", ");
        return Err(UsageError(format!(
            "--file {} is not in `[rules] paths`, so the daemon would not read it: choose a file that matches {paths}",
            shown(&path)
        ))
        .into());
    }
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let test = folder.join("tests").join(format!("{}.toml", request.name.to_lowercase()));
    if test.exists() {
        anyhow::bail!("{} already exists, no files were written: choose another --name", shown(&test));
    }
    let GeneratedRule { rule, test: test_text } = new_rule::generate(request, &format!("../{name}"));
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", shown(&path))),
    };
    let is_there = before.is_some();
    let before = before.map(|text| if text.trim().is_empty() { text } else { format!("{}\n\n", text.trim_end()) });
    // Like `init`: editors find the schema by the first line.
    let schema = |name: &str, from: &str| {
        let is_known = folder.join("../schemas").join(name).exists();
        if is_known { format!("#:schema {from}schemas/{name}\n") } else { String::new() }
    };
    let begin = before.unwrap_or_else(|| schema("rules.schema.json", "../"));
    let test_text = schema("tests.schema.json", "../../") + &test_text;
    let rules = SourceText { text: begin + &rule, file: path };
    Ok(NewFiles { rules, rule, is_there, test: SourceText { file: test, text: test_text } })
}

/// Checks the new rule together with all other rules, and returns a set with only the new rule.
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
    if own.iter().any(|problem| problem.severity == DiagnosticLevel::Error) {
        anyhow::bail!("the rule {} has errors, no files were written", request.name);
    }
    let alone = SourceText { file: files.rules.file.clone(), text: files.rule.clone() };
    Ok(rules::load(&[alone], &around).set)
}

/// Runs the test of the new rule.
fn run_test(files: &NewFiles, config: &Config, loaded: &Loaded) -> anyhow::Result<()> {
    let setup = TestSetup { config, base_dir: &loaded.base_dir, only: None };
    let outcomes = ruletest::run_against(files.test.clone(), &setup, Some(std::slice::from_ref(&files.rules)));
    if outcomes.iter().any(|outcome| !outcome.is_passed()) {
        anstream::eprint!("{}", outcomes.iter().map(report::plain).collect::<String>());
        anyhow::bail!("the test of the rule failed, no files were written");
    }
    anstream::eprintln!("{}", report::summary(&outcomes));
    Ok(())
}

/// Creates or extends the rule file, and creates the test file.
fn write(files: &NewFiles) -> anyhow::Result<()> {
    let folder = files.test.file.parent().unwrap_or_else(|| Path::new(""));
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", shown(folder)))?;
    let new = |path: &Path, text: &str| -> anyhow::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(file.write_all(text.as_bytes())?)
    };
    new(&files.test.file, &files.test.text).with_context(|| format!("cannot write {}", shown(&files.test.file)))?;
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
    written.with_context(|| format!("cannot write {}", shown(rules)))?;
    anstream::eprintln!("{} {}", if files.is_there { "added to" } else { "wrote" }, shown(rules));
    anstream::eprintln!("wrote {}", shown(&files.test.file));
    Ok(())
}

/// Describes what the new rule alone would have sent over the last year, with the database or else the bundled data.
fn sent_last_year(set: &RuleSet, config: &Config, invocation: &Invocation) -> anyhow::Result<String> {
    let mut config = config.clone();
    if config.receivers.is_empty() {
        config.receivers.push(config::ReceiverSettings { name: ANYONE.to_owned(), ..config::ReceiverSettings::default() });
    }
    let (routes, watch) = (routes_of(&config)?, watch_of(&config.watch).map_err(UsageError)?);
    let policy =
        DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let now = invocation.clock.now();
    let (run, over) = if bundled::has_database(&config)? {
        let world = TrialWorld { watch: &watch, routes: &routes, settings: &config.store };
        let played = super::wait(async {
            let store = invocation.open(&config, Access::Read).await?;
            Ok(last_year(&store, &world, set, &policy, TRIAL_TIME, now).await?)
        })?;
        let part = if played.is_complete { "" } else { " (partly, because of the time limit)" };
        (played.run, format!("the recorded history{part}"))
    } else {
        (replay_bundled(set, &routes, &watch, policy, now)?, "the bundled data, because there is no database yet".to_owned())
    };
    Ok(format!(
        "\nMessages over the last year, with {over}:\n{}",
        text::text(&run, &BacktestSummary::of(&run), None, MAX_MESSAGES)
    ))
}

fn replay_bundled(
    set: &RuleSet,
    routes: &engine::route::RouteTree,
    watch: &Watch,
    policy: DispatchPolicy,
    now: model::Timestamp,
) -> anyhow::Result<BacktestRun> {
    let history = bundled::history(None, now)?;
    let delivery = DeliverySetup::of(DispatchPolicy { digests: Vec::new(), ..policy });
    let pace = Pace { evaluate_every: chrono::TimeDelta::hours(6), ..Pace::default() };
    let setup = BacktestSetup { rules: set, routes, delivery: &delivery, watch, pace };
    Ok(backtest::run(&history, &setup, now - chrono::TimeDelta::days(365), now, |_| {}))
}

#[cfg(test)]
mod tests;
