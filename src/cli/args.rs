//! The command line: global options and commands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::accept::AcceptArgs;
use super::access::AccessCommand;
use super::ack::AckArgs;
use super::alerts::AlertsArgs;
use super::backtest::BacktestArgs;
use super::backup::BackupArgs;
use super::changes::ChangesArgs;
use super::check::CheckArgs;
use super::copy::StoreCommand;
use super::credits::CreditsCommand;
use super::demo::DemoArgs;
use super::digest::DigestCommand;
use super::explain::ExplainArgs;
use super::feeds::FeedsArgs;
use super::fields::FieldsArgs;
use super::healthcheck::HealthcheckArgs;
use super::init::InitArgs;
use super::man::ManArgs;
use super::mcp::McpArgs;
use super::new::NewCommand;
use super::notify::NotifyArgs;
use super::outbox::OutboxCommand;
use super::parse::parse_time;
use super::plan::PlanArgs;
use super::poll::PollArgs;
use super::restore::RestoreArgs;
use super::routes::RoutesCommand;
use super::schema::SchemaArgs;
use super::service::{ExportArgs, ImportArgs, KeysCommand, ServeArgs};
use super::silence::SilenceCommand;
use super::test::TestArgs;
use super::token::TokenArgs;
use super::upcoming::UpcomingArgs;
use model::Timestamp;

/// Watch token supply (unlocks, burns, buybacks) and notify the right people
#[derive(Debug, Parser)]
#[command(name = "cliffwatch", version, max_term_width = 100, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 success, 1 failure or errors found, 2 wrong usage, 3 only warnings (with --strict).")]
pub(super) struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub(super) struct GlobalArgs {
    /// Config file; default: ./cliffwatch.toml, else /etc/cliffwatch/cliffwatch.toml
    #[arg(long, global = true, value_name = "FILE", env = "CLIFFWATCH_CONFIG", help_heading = "Global options")]
    pub config: Option<PathBuf>,
    /// Output format
    #[arg(long, global = true, value_enum, default_value_t, help_heading = "Global options")]
    pub format: OutputFormat,
    /// When to use color
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "Global options")]
    pub color: ColorWhen,
    /// Print more details; twice for all
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// Current time to assume, such as 2026-03-09T12:00:00Z
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_time, help_heading = "Global options")]
    pub now: Option<Timestamp>,
    /// With --now: change the database even if a daemon used it at the real time
    #[arg(long, global = true, requires = "now", help_heading = "Global options")]
    pub commit: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Tables for people
    #[default]
    Table,
    /// JSON for programs
    Json,
    /// CSV for spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    /// Only on a terminal
    #[default]
    Auto,
    /// Color every output
    Always,
    /// Plain text, even on a terminal
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon
    Run,
    /// Run a demo: data service, daemon, and web pages on loopback, without an API key or a config
    Demo(DemoArgs),
    /// Run only the data service
    Serve(ServeArgs),
    /// Write a commented config file and starter rules
    Init(InitArgs),
    /// Create a rule from prompts or options
    #[command(subcommand)]
    New(NewCommand),
    /// Check config and rules, and report all problems
    Check(CheckArgs),
    /// Show the credits per month that the config uses, compared with the limit
    Plan(PlanArgs),
    /// Run rule tests
    Test(TestArgs),
    /// Show the messages that the rules would have sent
    Backtest(BacktestArgs),
    /// Explain clause by clause why a rule notified or did not
    Explain(ExplainArgs),
    /// Run one cycle now and show the results
    Poll(PollArgs),
    /// List upcoming unlocks
    Upcoming(UpcomingArgs),
    /// Show what is known about a token
    Token(TokenArgs),
    /// List changes, newest first
    Changes(ChangesArgs),
    /// List alerts, most recently updated first
    Alerts(AlertsArgs),
    /// Show the status of source, credits, and deliveries
    Status,
    /// Check whether the daemon is healthy, for container health checks
    Healthcheck(HealthcheckArgs),
    /// List and manage deliveries
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Send a test message, or earlier messages again
    Notify(NotifyArgs),
    /// Show and test routes
    #[command(subcommand)]
    Routes(RoutesCommand),
    /// Manage silences, which suppress matching alerts for a time
    #[command(subcommand)]
    Silence(SilenceCommand),
    /// Acknowledge an alert: no reminders until its date, amount, or level changes
    Ack(AckArgs),
    /// Accept a held response, in which most of a token's upcoming records are missing
    Accept(AcceptArgs),
    /// Check for new credits of the API
    #[command(subcommand)]
    Credits(CreditsCommand),
    /// Show digests and manage their recipients
    #[command(subcommand)]
    Digest(DigestCommand),
    /// Show the links for calendars and feed readers
    Feeds(FeedsArgs),
    /// Import a data folder into the data service
    Import(ImportArgs),
    /// Export the data of the data service or the daemon as a folder
    Export(ExportArgs),
    /// Manage access keys of the HTTP API
    #[command(subcommand)]
    Access(AccessCommand),
    /// Manage API keys of the data service
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Back up the database while it is in use
    Backup(BackupArgs),
    /// Restore the database from a backup
    Restore(RestoreArgs),
    /// Move the database between a file and a server
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show the names that rules can use: fields, change kinds, functions, filters
    Fields(FieldsArgs),
    /// Print the JSON Schema of a config, rule, or test file, or of a webhook message
    Schema(SchemaArgs),
    /// Serve read-only tools for assistants over the Model Context Protocol
    #[command(
        after_help = "The client starts this command and talks to it over standard input and output. Nothing is changed, and neither positions nor secrets are shown."
    )]
    Mcp(McpArgs),
    /// Print a completion script for a shell
    Completions {
        /// Name of the shell
        shell: Shell,
    },
    /// Print the manual page, or write a page for each command
    Man(ManArgs),
}
