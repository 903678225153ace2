//! `backtest [PATH]`: what the rules would have sent.

use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use chrono::TimeDelta;
use clap::Args;
use serde_json::json;

use super::{
    AlreadyTold, Context, Exit, Format, UsageError, parse_span, parse_time,
    print::{self, Cell, Column},
    shown, wait, width,
};
use crate::{
    backtest::{self, Comparison, Judge, Material, Message, NOBODY, Row, Run, Summary},
    config::{self, Config, Span},
    diagnostic::{self, Severity, harmless},
    diff, format,
    replay::Pace,
    route::RouteTree,
    rules::{self, RuleFiles, RuleSet},
    store::Access,
    supply::Timestamp,
    watch::Watch,
};

/// What is looked at before now, where `--from` does not say it.
const DEFAULT_DAYS: i64 = 90;
/// Stands for the receiver of a config that has none.
const ANYONE: &str = "(anyone)";
/// After the last version of a folder, where `--to` does not say it.
const AFTERWARDS: TimeDelta = TimeDelta::days(30);

/// Show what the rules would have sent: over recorded history, a data folder, or a folder of dated versions.
#[derive(Debug, Args)]
pub(super) struct Backtest {
    /// A data folder (with tokens.json), or a folder of versions (*.jsonl); without it, what this config's database recorded
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// From when on; 90 days ago for recorded history, a year ago for a data folder, the first version for versions
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// Until when; now, or thirty days after the last version
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
    /// Compare with the rules of another folder: messages gained and lost
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Rules of this folder in place of those of the config
    #[arg(long, value_name = "DIR")]
    rules: Option<PathBuf>,
    /// Only these tokens: slugs or globs, with commas between
    #[arg(long, value_name = "TOKENS", value_delimiter = ',')]
    tokens: Vec<String>,
    /// How often conditions that read the clock are looked at
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "6h")]
    look_every: Span,
    /// How many messages to print; all are in JSON, CSV and HTML
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
    /// Write a report with a timeline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(asked: &Backtest, context: &Context) -> anyhow::Result<Exit> {
    let (mut config, loaded) = context.load()?;
    let now = context.clock.now();
    if config.receivers.is_empty() {
        // Whoever tries rules before there is a receiver wants to know what one would get.
        config.receivers.push(config::Receiver { name: ANYONE.to_owned(), ..config::Receiver::default() });
    }
    let base_dir = &loaded.base_dir;
    let files = match &asked.rules {
        Some(folder) => rules_of(folder)?,
        None => rules::read_files(&config.rules.paths, base_dir),
    };
    let set = compile(files, &config, now, context)?;
    if set.rules.is_empty() {
        anyhow::bail!("there are no rules to test: `cliffwatch init` writes some, --rules DIR names others");
    }
    let other = asked.against.as_deref().map(|folder| compile(rules_of(folder)?, &config, now, context)).transpose()?;
    let routes = RouteTree::build(&config.route, &config.receivers)
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let tokens = if asked.tokens.is_empty() { config.watch.tokens.clone() } else { asked.tokens.clone() };
    let watch = Watch::build(&config::Watch { tokens, groups: config.watch.groups.clone() })
        .map_err(|errors| UsageError(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;

    let until = asked.to.unwrap_or(now);
    let mut pace = Pace { diff: settings(&config), look_every: asked.look_every.delta(), ..Pace::default() };
    let material = match &asked.path {
        Some(path) => Material::read(path, asked.from, until)?,
        None => {
            // What was recorded was proven when it was recorded.
            pace.diff.removal_confirmations = 1;
            pace.poll_every = TimeDelta::minutes(1);
            let from = asked.from.unwrap_or(now - TimeDelta::days(DEFAULT_DAYS));
            wait(recorded(&config, context, &watch, from, until))?
        }
    };
    let Some((first, last)) = material.span() else {
        anyhow::bail!(
            "nothing was recorded in this time: name a data folder to test the rules with, such as `cliffwatch backtest data`"
        );
    };
    let is_dated = asked.path.as_deref().is_some_and(|path| !path.join("tokens.json").exists());
    let from = asked.from.unwrap_or(first);
    let to = asked.to.unwrap_or(if is_dated { last + AFTERWARDS } else { now });
    if to <= from {
        return Err(UsageError(format!("--to {to} is not after {from}")).into());
    }

    let judge = |rules| Judge { rules, routes: &routes, watch: &watch, pace };
    let mut progress = Progress::new();
    let run = backtest::run(&material, &judge(&set), from, to, |done| progress.show("", done));
    let comparison = other.as_ref().map(|other| {
        let other = backtest::run(&material, &judge(other), from, to, |done| progress.show("the other rules: ", done));
        backtest::compare(&run, &other)
    });
    progress.clear();
    let summary = Summary::of(&run);
    if let Some(path) = &asked.html {
        std::fs::write(path, backtest::page(&run, &summary, comparison.as_ref()))
            .with_context(|| format!("{} cannot be written", shown(path)))?;
        anstream::eprintln!("wrote {}", shown(path));
    }
    match context.format {
        Format::Table => print::out(&text(&run, &summary, comparison.as_ref(), asked.messages))?,
        Format::Csv => print::out(&print::csv(COLUMNS, &csv_rows(&run, comparison.as_ref())))?,
        Format::Json => print::out(&print::json(&json!({
            "from": run.from, "to": run.to, "tokens": run.tokens, "changes": run.changes, "summary": summary,
            "messages": run.messages, "more": run.uncounted, "against": comparison, "templateErrors": run.template_errors,
        }))?)?,
    }
    Ok(Exit::Done)
}

fn settings(config: &Config) -> diff::Settings {
    diff::Settings { tolerance: config.store.tolerance, removal_confirmations: config.store.removal_confirmations }
}

fn rules_of(folder: &Path) -> anyhow::Result<RuleFiles> {
    if !folder.is_dir() {
        return Err(UsageError(format!("{} is no folder with rule files", shown(folder))).into());
    }
    Ok(rules::read_files(&["*.toml".to_owned()], folder))
}

/// Compiles rule files; their errors are printed, as `check` prints them.
fn compile(files: RuleFiles, config: &Config, now: Timestamp, context: &Context) -> anyhow::Result<RuleSet> {
    let receivers: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now };
    let loaded = rules::load(&files.files, &around);
    let mut errors: Vec<_> = files.diagnostics.into_iter().chain(loaded.diagnostics).collect();
    errors.retain(|problem| problem.severity == Severity::Error);
    if errors.is_empty() {
        return Ok(loaded.set);
    }
    anstream::eprint!("{}", diagnostic::render(&errors, &loaded.sources, context.color));
    Err(AlreadyTold.into())
}

async fn recorded(config: &Config, context: &Context, watch: &Watch, from: Timestamp, to: Timestamp) -> anyhow::Result<Material> {
    let store = context.open(config, Access::Read).await?;
    let mut material = Material::default();
    for id in store.token_ids(false).await? {
        if !watch.covers(&id) {
            continue;
        }
        let snapshot = store.tokens(vec![id.clone()], Vec::new()).await?.into_iter().next();
        let Some(snapshot) = snapshot else { continue };
        material.record(&snapshot.token, store.versions(id).await?, from, to);
    }
    material.sort();
    store.close().await?;
    Ok(material)
}

/// A bar on a terminal; nothing in a pipe.
struct Progress {
    is_shown: bool,
    percent: Option<u32>,
}

impl Progress {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), percent: None }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    fn show(&mut self, what: &str, done: f64) {
        let percent = (done * 100.0).clamp(0.0, 100.0) as u32;
        if !self.is_shown || self.percent == Some(percent) {
            return;
        }
        self.percent = Some(percent);
        let full = percent as usize * 40 / 100;
        anstream::eprint!("\r\x1b[2K{what}[{}{}] {percent:>3} %", "#".repeat(full), " ".repeat(40 - full));
        std::io::stderr().flush().ok();
    }

    fn clear(&self) {
        if self.percent.is_some() {
            anstream::eprint!("\r\x1b[2K");
        }
    }
}

const COLUMNS: &[Column] = &[
    Column("", "side", false),
    Column("", "at", false),
    Column("", "rule", false),
    Column("", "token", false),
    Column("", "type", false),
    Column("", "reason", false),
    Column("", "severity", false),
    Column("", "receiver", false),
    Column("", "summary", false),
];

/// A row for each message and receiver. `side` says where it stands in a comparison.
fn csv_rows(run: &Run, comparison: Option<&Comparison>) -> Vec<Vec<Cell>> {
    let row = |side: &str, message: &Message, receiver: &str| {
        vec![
            Cell::text(side),
            Cell::time(Some(message.at)),
            Cell::text(&message.rule),
            Cell::maybe(message.token.as_deref()),
            Cell::text(message.kind),
            Cell::text(&message.reason),
            Cell::maybe(message.labels.get("severity").map(String::as_str)),
            Cell::text(receiver),
            Cell::text(&message.summary),
        ]
    };
    let mut rows = Vec::new();
    let mut all = |side: &str, messages: &[Message]| {
        for message in messages {
            for receiver in &message.receivers {
                rows.push(row(side, message, receiver));
            }
            if message.receivers.is_empty() {
                rows.push(row(side, message, ""));
            }
        }
    };
    match comparison {
        None => all("", &run.messages),
        Some(comparison) => {
            all("gained", &comparison.gained);
            all("lost", &comparison.lost);
        }
    }
    rows
}

/// All of it for people.
fn text(run: &Run, summary: &Summary, comparison: Option<&Comparison>, most: usize) -> String {
    let mut text = format!(
        "{} to {}: {}, {}, {}\n",
        format::day(run.from),
        format::day(run.to),
        format::count(run.tokens, "token"),
        format::count(run.rules.len(), "rule"),
        format::count(usize::try_from(run.changes).unwrap_or(usize::MAX), "change"),
    );
    text.push_str(&format!(
        "{} would have been sent{}\n\n",
        format::count(summary.deliveries as usize, "message"),
        if summary.to_nobody > 0 {
            format!(", and {} had reached nobody: no route takes them", summary.to_nobody)
        } else {
            String::new()
        }
    ));
    let columns = |first| {
        [
            Column(first, "", false),
            Column("Alerts", "", true),
            Column("Messages", "", true),
            Column("Tokens", "", true),
            Column("A week", "", true),
            Column("Busiest week", "", false),
            Column("Over time", "", false),
        ]
    };
    let rows = |rows: &[Row]| rows.iter().map(|row| row_of(row, summary)).collect::<Vec<_>>();
    text.push_str(&print::table(&columns("Rule"), &rows(&summary.rules), width()));
    if !summary.receivers.is_empty() {
        text.push('\n');
        text.push_str(&print::table(&columns("Receiver"), &rows(&summary.receivers), width()));
    }
    if let Some((rule, token, count)) = summary.noisiest.first().filter(|(_, _, count)| *count > 1) {
        text.push_str(&format!(
            "\nmost of one token: {} for {}, {}",
            harmless(rule),
            harmless(token),
            format::count(*count as usize, "message")
        ));
        if let Some((rule, token, count)) = summary.noisiest.get(1) {
            text.push_str(&format!("; then {} for {}, {count}", harmless(rule), harmless(token)));
        }
        text.push('\n');
    }
    for (rule, error) in &run.template_errors {
        text.push_str(&format!("\na template of {} fails: {}\n", harmless(rule), harmless(error)));
    }
    if let Some(comparison) = comparison {
        text.push_str(&compared(comparison, most));
    } else if most > 0 && !run.messages.is_empty() {
        text.push('\n');
        let skipped = run.messages.len().saturating_sub(most);
        if skipped > 0 {
            text.push_str(&format!("the last {most} of {} messages; --messages N shows more\n", run.messages.len()));
        }
        for message in run.messages.iter().skip(skipped) {
            text.push_str(&line("", message));
        }
    }
    text
}

fn compared(comparison: &Comparison, most: usize) -> String {
    let Comparison { gained, lost, changed, same } = comparison;
    let mut text = format!(
        "\nwith the other rules: {} gained, {} lost, {} changed, {same} the same\n",
        gained.len(),
        lost.len(),
        changed.len()
    );
    for (sign, messages) in [("+ ", gained), ("- ", lost)] {
        text.extend(messages.iter().take(most).map(|message| line(sign, message)));
        if messages.len() > most {
            text.push_str(&format!("{sign}… and {} more\n", messages.len() - most));
        }
    }
    for (was, is) in changed.iter().take(most) {
        text.push_str(&line("< ", was));
        text.push_str(&line("> ", is));
    }
    text
}

fn line(sign: &str, message: &Message) -> String {
    let receivers = if message.receivers.is_empty() { NOBODY.to_owned() } else { message.receivers.join(", ") };
    format!(
        "{sign}{}  {} ({})  {}  -> {}\n",
        message.at.format("%Y-%m-%d %H:%M"),
        harmless(&message.rule),
        harmless(&message.reason),
        harmless(&message.summary),
        harmless(&receivers)
    )
}

fn row_of(row: &Row, summary: &Summary) -> Vec<Cell> {
    let weeks = u32::try_from(summary.weeks.len().max(1)).unwrap_or(u32::MAX);
    let busiest = row.busiest().and_then(|(week, count)| Some((*summary.weeks.get(week)?, count)));
    vec![
        Cell::text(&row.name),
        Cell::text(row.alerts.to_string()),
        Cell::text(row.messages.to_string()),
        Cell::text(row.tokens.to_string()),
        Cell::text(format!("{:.1}", f64::from(row.messages) / f64::from(weeks))),
        Cell::text(busiest.map_or_else(String::new, |(week, count)| format!("{count} in {}", week.format("%-d %b %Y")))),
        Cell::text(spark(&row.by_week)),
    ]
}

/// Columns of a line that shows a row over time.
const SPARK: usize = 26;

/// A row over time, as text.
fn spark(weeks: &[u32]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if weeks.iter().all(|count| *count == 0) {
        return String::new();
    }
    let per_column = weeks.len().div_ceil(SPARK).max(1);
    let columns: Vec<u32> = weeks.chunks(per_column).map(|chunk| chunk.iter().sum()).collect();
    let most = columns.iter().copied().max().unwrap_or(1).max(1);
    let bar = |count: u32| {
        let step = (u64::from(count) * 8).div_ceil(u64::from(most));
        let bar = usize::try_from(step).unwrap_or(0).checked_sub(1).and_then(|step| BARS.get(step));
        bar.copied().unwrap_or('·')
    };
    columns.into_iter().map(bar).collect()
}
