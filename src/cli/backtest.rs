//! `backtest [PATH]`: shows the messages that the rules would have sent.

mod csv;
pub(super) mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chrono::TimeDelta;
use clap::Args;
use serde_json::json;

use super::bundled;
use super::group::{check_glob, group_patterns, is_glob};
use super::invocation::{routes_of, watch_of};
use super::rule_source::read_rules;
use super::terminal::ProgressBar;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_span, parse_time, print, shown, wait};
use engine::{diff, pipeline::DispatchPolicy, removal::ProofPolicy};
use model::config::{self, Config, Span, WatchSettings};
use model::{Matcher, Silence, Timestamp, TokenNames, Watch, read_matchers, resolve_token};
use store::{Access, Store};
use tools::backtest::{self, BacktestComparison, BacktestRun, BacktestSetup, BacktestSummary, History};
use tools::simulate::{DeliverySetup, Pace};

/// The default length of the period, in days, for recorded history.
const DEFAULT_DAYS: i64 = 90;
/// The name of the receiver if the config has none.
const ANYONE: &str = "(anyone)";
/// The default time after the last version of a folder.
const TIME_AFTER_LAST_VERSION: TimeDelta = TimeDelta::days(30);

/// Show the messages that the rules would have sent, over recorded history, a data folder, or a folder of dated versions
#[derive(Debug, Args)]
pub(super) struct BacktestArgs {
    /// Data folder (with tokens.json), folder of versions (*.jsonl), or `bundled` for three years of real corrections; default: the
    /// history in the database of the config, or the bundled data while there is no database
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Start of the period; default: 90 days ago for recorded history, a year ago for a data folder, the first version for versions
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// End of the period; default: now, or 30 days after the last version
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
    /// Folder of other rules to compare with
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Folder of rules to use instead of those in the config, or `-` for one rule file on standard input
    #[arg(long, value_name = "DIR")]
    rules: Option<PathBuf>,
    /// Tokens to include: slugs, tickers, or globs, separated by commas
    #[arg(long, value_name = "TOKENS", value_delimiter = ',')]
    tokens: Vec<String>,
    /// Interval between evaluations of conditions that read the clock
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "6h")]
    evaluate_every: Span,
    /// Matchers to silence during the whole period, such as `token=arbitrum`, separated by commas; repeatable
    #[arg(long, value_name = "MATCHERS")]
    silence: Vec<String>,
    /// Number of messages to print; JSON, CSV, and HTML contain all
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
    /// File for an HTML report with a timeline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &BacktestArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (mut config, loaded) = invocation.load()?;
    let now = invocation.clock.now();
    if config.receivers.is_empty() {
        // Without a configured receiver, show the messages that any receiver would get.
        config.receivers.push(config::ReceiverSettings { name: ANYONE.to_owned(), ..config::ReceiverSettings::default() });
    }
    let files = match &args.rules {
        Some(folder) => read_rules(folder)?,
        None => rules::read_files(&config.rules.paths, &loaded.base_dir),
    };
    let set = invocation.rules(files, &config)?;
    if set.rules.is_empty() {
        anyhow::bail!("no rules found: run `cliffwatch init` to write some, or pass --rules DIR");
    }
    let other = args.against.as_deref().map(|folder| invocation.rules(read_rules(folder)?, &config)).transpose()?;
    let routes = routes_of(&config)?;

    let until = args.to.unwrap_or(now);
    let proof = ProofPolicy::Confirmations(config.store.removal_confirmations);
    let diff = diff::Settings { tolerance: config.store.tolerance, proof };
    let mut pace = Pace { diff, evaluate_every: args.evaluate_every.delta(), ..Pace::default() };
    let policy =
        DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let mut delivery = DeliverySetup::of(policy);
    let recorded = args.path.is_none() && bundled::has_database(&config)?;
    let (history, watch, known) = if recorded {
        // Recorded removals were already proven.
        pace.diff.proof = ProofPolicy::Immediate;
        pace.poll_every = Some(TimeDelta::minutes(1));
        let from = args.from.unwrap_or(now - TimeDelta::days(DEFAULT_DAYS));
        wait(async {
            let store = invocation.open(&config, Access::Read).await?;
            let known = store.token_names().await?;
            let watch = selection(&args.tokens, &known, &config)?;
            let history = recorded_history(&store, &watch, from, until, &mut delivery).await?;
            store.close().await?;
            anyhow::Ok((history, watch, known))
        })?
    } else {
        let history = match &args.path {
            Some(path) if is_bundled(path) => bundled::versions(args.from, until)?,
            Some(path) => History::read(path, args.from, until)?,
            None => {
                anstream::eprintln!("there is no database yet: this backtest replays the bundled data");
                bundled::history(args.from, until)?
            }
        };
        let known = history.token_names();
        let watch = selection(&args.tokens, &known, &config)?;
        (history, watch, known)
    };
    let (from, to) = span(args, &history, now)?;
    for text in &args.silence {
        delivery.silences.push(silence(text, &known, from, to)?);
    }

    let setup = |rules| BacktestSetup { rules, routes: &routes, delivery: &delivery, watch: &watch, pace };
    let mut bar = ProgressBar::new();
    let run = backtest::run(&history, &setup(&set), from, to, |done| show(&mut bar, "", done));
    let comparison = other.as_ref().map(|other| {
        let other = backtest::run(&history, &setup(other), from, to, |done| show(&mut bar, "the other rules: ", done));
        backtest::compare(&run, &other)
    });
    bar.clear();
    print(args, &run, comparison.as_ref(), invocation)
}

/// Returns the tokens of the backtest: the slugs, tickers, globs, and groups of `--tokens` select them, else those that the config watches.
fn selection(words: &[String], known: &[TokenNames], config: &Config) -> anyhow::Result<Watch> {
    let patterns = |word: &String| match word.strip_prefix('@') {
        Some(group) => group_patterns(group, config).map(<[String]>::to_vec),
        None if is_glob(word) => check_glob(word, known.iter().map(|token| &token.id)).map(|()| vec![word.clone()]),
        None => resolve_token(word, known).map(|id| vec![id.to_string()]).map_err(|error| UsageError(error.to_string())),
    };
    let named = words.iter().map(patterns).collect::<Result<Vec<_>, _>>()?.concat();
    let tokens = if named.is_empty() { config.watch.tokens.clone() } else { named };
    let watch = watch_of(&WatchSettings { tokens, groups: config.watch.groups.clone(), ..WatchSettings::default() })
        .map_err(UsageError)?;
    Ok(watch)
}

/// The path that stands for the bundled versions of schedules, unless a folder has this name.
const BUNDLED: &str = "bundled";

fn is_bundled(path: &Path) -> bool {
    path == Path::new(BUNDLED) && !path.exists()
}

/// Returns the period of the backtest.
fn span(args: &BacktestArgs, history: &History, now: Timestamp) -> anyhow::Result<(Timestamp, Timestamp)> {
    let Some((first, last)) = history.span() else {
        anyhow::bail!("no history was recorded in this period; pass a data folder, for example `cliffwatch backtest data`");
    };
    let is_dated = args.path.as_deref().is_some_and(|path| !path.join("tokens.json").exists());
    let from = args.from.unwrap_or(first);
    let to = args.to.unwrap_or(if is_dated { last + TIME_AFTER_LAST_VERSION } else { now });
    if to <= from {
        return Err(UsageError(format!("--to {to} is not after {from}")).into());
    }
    Ok((from, to))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
fn show(bar: &mut ProgressBar, what: &str, done: f64) {
    let percent = (done * 100.0).clamp(0.0, 100.0) as usize;
    bar.show(what, percent, 100, &format!("{percent:>3} %"));
}

fn print(
    args: &BacktestArgs,
    run: &BacktestRun,
    comparison: Option<&BacktestComparison>,
    invocation: &Invocation,
) -> anyhow::Result<Exit> {
    let summary = BacktestSummary::of(run);
    if let Some(path) = &args.html {
        let page = backtest::page(run, &summary, comparison).context("cannot create the report")?;
        std::fs::write(path, page).with_context(|| format!("cannot write {}", shown(path)))?;
        anstream::eprintln!("wrote {}", shown(path));
    }
    match invocation.format {
        OutputFormat::Table => print::out(&text::text(run, &summary, comparison, args.messages))?,
        OutputFormat::Csv => print::out(&csv::page(run, comparison))?,
        OutputFormat::Json => print::out(&print::json(&json!({
            "from": run.from, "to": run.to, "tokens": run.tokens, "changes": run.changes, "summary": summary,
            "messages": run.messages, "undelivered": run.undelivered, "more": run.not_stored, "against": comparison,
            "templateErrors": run.template_errors.iter().cloned().collect::<BTreeMap<_, _>>(),
        }))?)?,
    }
    Ok(Exit::Done)
}

/// Makes a silence for the whole period.
fn silence(text: &str, known: &[TokenNames], from: Timestamp, to: Timestamp) -> anyhow::Result<Silence> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let matchers = read_matchers(texts).map_err(|error| UsageError(format!("--silence {text}: {error}")))?;
    let slug =
        |matcher: Matcher| match matcher.compared().filter(|name| matcher.label() == model::TOKEN_LABEL && !name.is_empty()) {
            Some(name) => resolve_token(name, known).map(|id| matcher.clone().with_compared(id.as_str())),
            None => Ok(matcher),
        };
    let matchers = matchers.into_iter().map(slug).collect::<Result<Vec<_>, _>>();
    let matchers = matchers.map_err(|error| UsageError(format!("--silence {text}: {error}")))?;
    if matchers.iter().all(model::matcher::Matcher::matches_missing_label) {
        return Err(UsageError(format!("--silence {text:?} matches everything: add a label, such as token=arbitrum")).into());
    }
    Ok(Silence {
        id: text.to_owned(),
        matchers,
        author: "--silence".to_owned(),
        comment: String::new(),
        starts_at: from,
        ends_at: to + TimeDelta::minutes(1),
        created_at: from,
    })
}

async fn recorded_history(
    store: &Store,
    watch: &Watch,
    from: Timestamp,
    to: Timestamp,
    delivery: &mut DeliverySetup,
) -> anyhow::Result<History> {
    let mut history = History::default();
    for id in store.token_ids(false).await? {
        if !watch.covers(&id) {
            continue;
        }
        let snapshot = store.tokens(vec![id.clone()], Vec::new()).await?.into_iter().next();
        let Some(snapshot) = snapshot else { continue };
        history.record(&snapshot.token, &snapshot.feeds, store.versions(id).await?, from, to);
    }
    history.sort();
    // Silences and acknowledgements also apply to other rules.
    delivery.silences = store.silences(None).await?;
    delivery.acks = store.acks().await?;
    Ok(history)
}
