//! `backtest [PATH]`: what the rules would have sent.

use std::{
    collections::BTreeMap,
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
    backtest::{self, Comparison, Judge, Material, Message, Row, Run, Summary, Telling, letters, parts},
    config::{self, Config, Span},
    diagnostic::{self, Severity, harmless},
    diff, format,
    replay::{Mail, Pace},
    route::{RouteTree, Sections},
    rules::{self, RuleFiles, RuleSet},
    silence::{Silence, read_matchers},
    store::{Access, model::Shape},
    supply::Timestamp,
    watch::Watch,
};

/// What is looked at before now, where `--from` does not say it.
const DEFAULT_DAYS: i64 = 90;
/// Stands for the receiver of a config that has none.
const ANYONE: &str = "(anyone)";
/// Alerts of one message that are printed below it.
const MAX_LINES: usize = 20;
/// Bars of the progress.
const BAR: usize = 40;
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
    /// As if this had been silenced all the time: matchers such as `token=arbitrum`, with commas between; may be given several times
    #[arg(long, value_name = "MATCHERS")]
    silence: Vec<String>,
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
    let routes = RouteTree::of(&Sections::from(&config))
        .map_err(|problems| anyhow::anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let tokens = if asked.tokens.is_empty() { config.watch.tokens.clone() } else { asked.tokens.clone() };
    let watch = Watch::build(&config::Watch { tokens, groups: config.watch.groups.clone() })
        .map_err(|errors| UsageError(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;

    let until = asked.to.unwrap_or(now);
    let mut pace = Pace { diff: settings(&config), look_every: asked.look_every.delta(), ..Pace::default() };
    let mut mail = Mail::of(&config);
    let material = match &asked.path {
        Some(path) => Material::read(path, asked.from, until)?,
        None => {
            // What was recorded was proven when it was recorded.
            pace.diff.removal_confirmations = 1;
            pace.poll_every = TimeDelta::minutes(1);
            let from = asked.from.unwrap_or(now - TimeDelta::days(DEFAULT_DAYS));
            wait(recorded(&config, context, &watch, from, until, &mut mail))?
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

    for text in &asked.silence {
        mail.silences.push(silenced(text, from, to)?);
    }
    let judge = |rules| Judge { rules, routes: &routes, mail: &mail, watch: &watch, pace };
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
            "messages": run.messages, "untold": run.untold, "more": run.uncounted, "against": comparison,
            "templateErrors": run.template_errors.iter().cloned().collect::<BTreeMap<_, _>>(),
        }))?)?,
    }
    Ok(Exit::Done)
}

/// A silence that lasts as long as the test.
fn silenced(text: &str, from: Timestamp, to: Timestamp) -> anyhow::Result<Silence> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let matchers = read_matchers(texts).map_err(|error| UsageError(format!("--silence {text}: {error}")))?;
    if matchers.iter().all(crate::route::Matcher::takes_empty) {
        return Err(
            UsageError(format!("--silence {text:?} would silence everything: name a label, such as token=arbitrum")).into()
        );
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

async fn recorded(
    config: &Config,
    context: &Context,
    watch: &Watch,
    from: Timestamp,
    to: Timestamp,
    mail: &mut Mail,
) -> anyhow::Result<Material> {
    let store = context.open(config, Access::Read).await?;
    let mut material = Material::default();
    for id in store.token_ids(false).await? {
        if !watch.covers(&id) {
            continue;
        }
        let snapshot = store.tokens(vec![id.clone()], Vec::new()).await?.into_iter().next();
        let Some(snapshot) = snapshot else { continue };
        material.record(&snapshot.token, &snapshot.feeds, store.versions(id).await?, from, to);
    }
    material.sort();
    // What somebody did not want to hear then would not have been heard by other rules either.
    mail.silences = store.silences(None).await?;
    mail.acks = store.acks().await?;
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
        let full = (percent as usize * BAR / 100).min(BAR);
        anstream::eprint!("\r\x1b[2K{what}[{}{}] {percent:>3} %", "#".repeat(full), " ".repeat(BAR - full));
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
    Column("", "message", true),
    Column("", "shape", false),
    Column("", "receiver", false),
    Column("", "state", false),
    Column("", "holder", false),
    Column("", "rule", false),
    Column("", "token", false),
    Column("", "type", false),
    Column("", "reason", false),
    Column("", "severity", false),
    Column("", "decidedAt", false),
    Column("", "summary", false),
];

/// A row for each alert of each message, and for each that was not told. `side` says where it stands in a comparison.
fn csv_rows(run: &Run, comparison: Option<&Comparison>) -> Vec<Vec<Cell>> {
    let about = |telling: &Telling| {
        [
            Cell::text(&telling.rule),
            Cell::maybe(telling.token.as_deref()),
            Cell::text(telling.kind),
            Cell::text(&telling.reason),
            Cell::maybe(telling.labels.get("severity").map(String::as_str)),
            Cell::time(Some(telling.at)),
            Cell::text(&telling.summary),
        ]
    };
    let mut rows = Vec::new();
    let mut number = 0_u64;
    let mut add = |side: &str, message: &Message| {
        number += 1;
        let parts = [("told", &message.told), ("counted", &message.counted), ("merged", &message.merged)];
        for (state, telling) in parts.into_iter().flat_map(|(state, all)| all.iter().map(move |telling| (state, telling))) {
            let mut row = vec![
                Cell::text(side),
                Cell::time(Some(message.at)),
                Cell::text(number.to_string()),
                Cell::text(message.shape.as_str()),
                Cell::text(&message.receiver),
                Cell::text(state),
                Cell::text(""),
            ];
            row.extend(about(telling));
            rows.push(row);
        }
    };
    match comparison {
        None => run.messages.iter().for_each(|message| add("", message)),
        Some(Comparison { gained, lost, changed, .. }) => {
            gained.iter().for_each(|message| add("gained", message));
            lost.iter().for_each(|message| add("lost", message));
            for (was, is) in changed {
                add("was", was);
                add("is", is);
            }
        }
    }
    if comparison.is_none() {
        rows.extend(run.untold.iter().map(|untold| {
            let mut row = vec![
                Cell::text(""),
                Cell::time(None),
                Cell::text(""),
                Cell::text(""),
                Cell::maybe(untold.receiver.as_deref()),
                Cell::text(untold.state),
                Cell::maybe(untold.holder.as_deref()),
            ];
            row.extend(about(&untold.telling));
            row
        }));
    }
    rows
}

/// What became of what nobody was told: "3 silenced, 1 waiting".
fn untold_in_words(summary: &Summary) -> String {
    let words = summary.untold.iter().map(|(state, count)| match *state {
        "nobody" => format!("{count} that no route takes"),
        "waiting" => format!("{count} still waiting at the end"),
        state => format!("{count} {state}"),
    });
    words.collect::<Vec<_>>().join(", ")
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
    let joined = match summary.joined {
        0 => String::new(),
        joined => format!(", {joined} of them about several"),
    };
    text.push_str(&format!(
        "{} would have been told in {}{joined}\n",
        format::count(summary.alerts as usize, "alert"),
        format::count(summary.messages as usize, "message"),
    ));
    if !summary.untold.is_empty() {
        text.push_str(&format!("not told: {}\n", untold_in_words(summary)));
    }
    text.push('\n');
    let columns = |first| {
        [
            Column(first, "", false),
            Column("Alerts", "", true),
            Column("Messages", "", true),
            Column("Untold", "", true),
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
        let all: Vec<_> = letters(&run.messages).collect();
        let skipped = all.len().saturating_sub(most);
        if skipped > 0 {
            text.push_str(&format!("the last {most} of {}; --messages N shows more\n", all.len()));
        }
        for (message, receivers) in all.into_iter().skip(skipped) {
            text.push_str(&told("", message, &receivers));
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
        let all: Vec<_> = letters(messages).collect();
        text.extend(all.iter().take(most).map(|(message, receivers)| told(sign, message, receivers)));
        if all.len() > most {
            text.push_str(&format!("{sign}… and {} more\n", all.len() - most));
        }
    }
    for (was, is) in changed.iter().take(most) {
        let (gone, new) = parts(was, is);
        if was.at != is.at || gone.is_empty() && new.is_empty() {
            text.push_str(&told("< ", was, &[&was.receiver]));
            text.push_str(&told("> ", is, &[&is.receiver]));
            continue;
        }
        // Within a group only what differs is worth reading.
        text.push_str(&format!("~ {}  -> {}\n", time(is.at), harmless(&is.receiver)));
        text.extend(gone.into_iter().map(|telling| format!("  < {}\n", alert(telling))));
        text.extend(new.into_iter().map(|telling| format!("  > {}\n", alert(telling))));
    }
    if changed.len() > most {
        text.push_str(&format!("~ … and {} more\n", changed.len() - most));
    }
    text
}

fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// One alert on a line.
fn alert(telling: &Telling) -> String {
    format!("{} ({})  {}", harmless(&telling.rule), harmless(&telling.reason), harmless(&telling.summary))
}

/// A message: on one line where it tells one alert, else a line for each.
fn told(sign: &str, message: &Message, receivers: &[&str]) -> String {
    let to = harmless(&receivers.join(", "));
    let at = time(message.at);
    if let ([only], []) = (message.told.as_slice(), message.counted.as_slice()) {
        return match message.shape {
            Shape::Digest => format!("{sign}{at}  {}  -> {to}\n", harmless(&only.summary)),
            _ => format!("{sign}{at}  {}  -> {to}\n", alert(only)),
        };
    }
    let all = message.told.len() + message.counted.len();
    let why = match (&message.note, &message.group_key) {
        (Some(note), _) => note.clone(),
        (None, Some(key)) => format!("in group {key}"),
        (None, None) => "together".to_owned(),
    };
    let mut text = format!("{sign}{at}  {}, {}  -> {to}\n", format::count(all, "alert"), harmless(&why));
    text.extend(message.told.iter().take(MAX_LINES).map(|telling| format!("{sign}    {}\n", alert(telling))));
    let more = all.saturating_sub(message.told.len().min(MAX_LINES));
    if more > 0 {
        text.push_str(&format!("{sign}    and {more} more\n"));
    }
    text
}

fn row_of(row: &Row, summary: &Summary) -> Vec<Cell> {
    let weeks = u32::try_from(summary.weeks.len().max(1)).unwrap_or(u32::MAX);
    let busiest = row.busiest().and_then(|(week, count)| Some((*summary.weeks.get(week)?, count)));
    vec![
        Cell::text(&row.name),
        Cell::text(row.alerts.to_string()),
        Cell::text(row.messages.to_string()),
        Cell::text(if row.untold > 0 { row.untold.to_string() } else { String::new() }),
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
