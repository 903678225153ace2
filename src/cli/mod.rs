//! The command line: clap types, dispatch, exit codes. Each command is a small function in a file of its own.
//!
//! What a command prints on standard output is its answer (table, JSON or CSV); everything said beside it goes to standard error.

mod ack;
mod alerts;
mod backtest;
mod backup;
mod changes;
mod check;
mod completions;
mod digest;
mod engine;
mod explain;
mod fates;
mod init;
mod man;
mod notify;
mod outbox;
mod plan;
mod print;
mod routes;
mod schema;
mod service;
mod silence;
mod status;
mod test;
mod upcoming;

use std::{
    io::IsTerminal,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{
    clock::Clock,
    config::{
        Config, Span,
        load::{self, Environment, Loaded},
    },
    diagnostic,
    store::{Access, Opening, Store},
    supply::Timestamp,
    wire,
};

/// Watches token supply (unlocks, burns, buybacks) and tells the right people.
#[derive(Debug, Parser)]
#[command(name = "cliffwatch", version, max_term_width = 100, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 it failed or found errors, 2 wrong usage, 3 only warnings (where --strict asked).")]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// The config; else ./cliffwatch.toml, else /etc/cliffwatch/cliffwatch.toml
    #[arg(long, global = true, value_name = "FILE", env = "CLIFFWATCH_CONFIG", help_heading = "Global options")]
    config: Option<PathBuf>,
    /// How lists are printed
    #[arg(long, global = true, value_enum, default_value_t, help_heading = "Global options")]
    format: Format,
    /// Whether to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "Global options")]
    color: Color,
    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    verbose: u8,
    /// Take this for the present time, such as 2026-03-09T12:00:00Z
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_time, help_heading = "Global options")]
    now: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Run,
    /// Try it: data service, daemon and status page on loopback, without a key or a config
    Demo(Demo),
    /// Run the data service alone
    Serve(service::Serve),
    /// Write a commented config and starter rules
    Init(init::Init),
    /// Check config and rules: every problem at once
    Check(check::Check),
    /// Show the credits a month that this config will use, against the allowance
    Plan(plan::Plan),
    /// Run the tests of the rules
    Test(test::Test),
    /// Show what the rules would have sent
    Backtest(backtest::Backtest),
    /// Show why an alert was told, or was not, clause by clause
    Explain(explain::Explain),
    /// Do one cycle now and show what it saw
    Poll(Poll),
    /// Show unlocks ahead
    Upcoming(upcoming::Upcoming),
    /// Show what changed
    Changes(changes::Changes),
    /// Show alerts
    Alerts(alerts::Alerts),
    /// Show how everything stands
    Status,
    /// Show and steer deliveries
    #[command(subcommand)]
    Outbox(outbox::Outbox),
    /// Send a test message through the real path
    Notify(notify::Notify),
    /// Show who is told what
    #[command(subcommand)]
    Routes(routes::Routes),
    /// Hold back what nobody wants to hear for a while
    #[command(subcommand)]
    Silence(silence::Silences),
    /// Say that an alert is known: no reminders until its date, amount or level changes
    Ack(ack::Ack),
    /// Show digests, and who wants them
    #[command(subcommand)]
    Digest(digest::Digests),
    /// Fill the database of the data service
    Import(service::Import),
    /// Write the data of the data service, or of the daemon, as a folder
    Export(service::Export),
    /// API keys of the data service
    #[command(subcommand)]
    Keys(service::Keys),
    /// Make an online copy of the database
    Backup(backup::Backup),
    /// Print the JSON Schema of a file, for editors
    Schema(schema::Schema),
    /// Print completions for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man(man::Man),
}

/// `demo`.
#[derive(Debug, Args)]
struct Demo {
    /// Where to keep database, config and rules; a folder that goes with the demo if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where the status page goes
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
}

/// `poll`.
#[derive(Debug, Args)]
struct Poll {
    /// Commit nothing and send nothing
    #[arg(long)]
    dry_run: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// 0.
    Done,
    /// 1: it failed or found errors, which were told.
    Failed,
    /// 2.
    WrongUsage,
    /// 3.
    OnlyWarnings,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongUsage => 2,
            Exit::OnlyWarnings => 3,
        })
    }
}

/// An error of the person at the keyboard: told without a chain, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// What every command gets.
struct Context {
    config: Option<PathBuf>,
    format: Format,
    /// Whether diagnostics (on standard error) are coloured.
    color: bool,
    verbose: u8,
    clock: Clock,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let color = match cli.global.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    color.write_global();
    let context = Context {
        config: cli.global.config,
        format: cli.global.format,
        color: anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
        verbose: cli.global.verbose,
        clock: cli.global.now.map_or_else(Clock::system, Clock::manual),
    };
    match dispatch(cli.command, &context) {
        Ok(exit) => exit.into(),
        Err(error) => tell(&error).into(),
    }
}

fn dispatch(command: Command, context: &Context) -> anyhow::Result<Exit> {
    match command {
        // The daemon begins its log itself, as its config says.
        Command::Run | Command::Demo(_) | Command::Serve(_) => {}
        _ => crate::log::start_quiet(context.verbose),
    }
    match command {
        Command::Init(init) => init::run(&init),
        Command::Check(check) => check::run(&check, context),
        Command::Schema(schema) => schema::run(&schema),
        Command::Test(test) => test::run(&test, context),
        Command::Backtest(backtest) => backtest::run(&backtest, context),
        Command::Completions { shell } => completions::run(shell, Cli::command()),
        Command::Man(man) => man::run(&man, Cli::command()),
        Command::Routes(routes) => routes::run(&routes, context),
        Command::Silence(silence) => wait(silence::run(&silence, context)),
        Command::Ack(ack) => wait(ack::run(&ack, context)),
        Command::Digest(digest) => wait(digest::run(&digest, context)),
        Command::Run => engine::run(context),
        Command::Demo(demo) => engine::demo(&demo, context),
        Command::Serve(serve) => service::serve(&serve, context),
        Command::Plan(plan) => wait(plan::run(&plan, context)),
        Command::Poll(poll) => engine::poll(&poll, context),
        Command::Notify(notify) => wait(notify::run(&notify, context)),
        Command::Import(import) => service::import(&import, context),
        Command::Export(export) => service::export(&export, context),
        Command::Keys(keys) => service::keys(&keys, context),
        Command::Explain(explain) => wait(explain::run(&explain, context)),
        Command::Upcoming(upcoming) => wait(upcoming::run(&upcoming, context)),
        Command::Changes(changes) => wait(changes::run(&changes, context)),
        Command::Alerts(alerts) => wait(alerts::run(&alerts, context)),
        Command::Status => wait(status::run(context)),
        Command::Outbox(outbox) => wait(outbox::run(&outbox, context)),
        Command::Backup(backup) => wait(backup::run(&backup, context)),
    }
}

/// Runs one future to its end; a look into the database needs no more than this thread.
fn wait<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime cannot be started")?;
    runtime.block_on(future)
}

/// Tells an error with its causes, once each.
fn tell(error: &anyhow::Error) -> Exit {
    if error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe))
    {
        // Whoever read our output has seen enough.
        return Exit::Done;
    }
    if error.downcast_ref::<AlreadyTold>().is_some() {
        return Exit::Failed;
    }
    let mut told = String::new();
    for cause in error.chain() {
        let text = diagnostic::harmless(&cause.to_string());
        if told.is_empty() {
            anstream::eprintln!("error: {text}");
        } else if !told.contains(&text) {
            anstream::eprintln!("  because: {text}");
        }
        told.push_str(&text);
    }
    if error.downcast_ref::<UsageError>().is_some() { Exit::WrongUsage } else { Exit::Failed }
}

/// Its problems were printed already.
#[derive(Debug, thiserror::Error)]
#[error("the config cannot be used")]
struct AlreadyTold;

impl Context {
    /// The config file, if there is one.
    fn config_path(&self) -> Option<PathBuf> {
        load::find(self.config.as_deref())
    }

    /// Loads the config, prints its errors, and fails where there are any. Without a file: the defaults and the environment.
    fn load(&self) -> anyhow::Result<(Config, Loaded)> {
        let mut loaded = load::load(self.config_path().as_deref(), &Environment::of_process());
        let errors: Vec<_> =
            loaded.diagnostics.iter().filter(|problem| problem.severity == diagnostic::Severity::Error).cloned().collect();
        match loaded.config.take() {
            Some(config) if errors.is_empty() => Ok((config, loaded)),
            _ => {
                anstream::eprint!("{}", diagnostic::render(&errors, &loaded.sources, self.color));
                Err(AlreadyTold.into())
            }
        }
    }

    /// As [`Self::load`], but there must be a file: the daemon is not run by accident.
    fn load_file(&self) -> anyhow::Result<(Config, Loaded)> {
        if self.config_path().is_none() {
            anyhow::bail!(
                "no config was found at {}: `cliffwatch init` writes one here, `--config FILE` names another, `cliffwatch demo` needs none",
                load::PLACES.join(" or ")
            );
        }
        self.load()
    }

    /// Opens the database of the config for looking, or beside a running daemon.
    async fn open(&self, config: &Config, access: Access) -> anyhow::Result<Store> {
        let path = config.store.path.clone();
        let opening = Opening { path: path.clone(), access, now: self.clock.now() };
        Store::open(opening).await.with_context(|| format!("the database {} cannot be opened", shown(&path)))
    }
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    wire::parse_timestamp(text).ok_or_else(|| "write it like 2026-03-09T12:00:00Z or 2026-03-09".to_owned())
}

fn parse_span(text: &str) -> Result<Span, String> {
    text.parse()
}

/// `5M`, `250k`, `1.5B`, `5000000`.
fn parse_money(text: &str) -> Result<f64, String> {
    let text = text.trim().trim_start_matches('$').replace('_', "");
    let (number, factor) = match text.chars().last().map(|c| c.to_ascii_lowercase()) {
        Some('k') => (text.get(..text.len() - 1), 1e3),
        Some('m') => (text.get(..text.len() - 1), 1e6),
        Some('b') => (text.get(..text.len() - 1), 1e9),
        _ => (Some(text.as_str()), 1.0),
    };
    let number =
        number.and_then(|number| number.trim().parse::<f64>().ok()).filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number * factor).ok_or_else(|| "write it like 5000000, 250k, 5M or 1.5B".to_owned())
}

/// The address that an option gives.
fn parse_address(text: &str, option: &str) -> anyhow::Result<SocketAddr> {
    text.parse().map_err(|_| {
        UsageError(format!("{option} {text:?} is no address: write it like 127.0.0.1:9798 (port 0 takes a free one)")).into()
    })
}

/// Columns of the terminal that standard output writes to; none in a pipe.
fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0)
}

/// A path for messages.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    diagnostic::harmless(&path.display().to_string())
}

#[cfg(test)]
mod tests;
