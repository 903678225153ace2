//! What the command line may say: global options, and the commands with theirs.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::accept::AcceptArgs;
use super::ack::AckArgs;
use super::alerts::AlertsArgs;
use super::backtest::BacktestArgs;
use super::backup::BackupArgs;
use super::changes::ChangesArgs;
use super::check::CheckArgs;
use super::copy::StoreCommand;
use super::demo::DemoArgs;
use super::digest::DigestCommand;
use super::explain::ExplainArgs;
use super::feeds::FeedsArgs;
use super::fields::FieldsArgs;
use super::healthcheck::HealthcheckArgs;
use super::init::InitArgs;
use super::man::ManArgs;
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
use super::upcoming::UpcomingArgs;
use model::Timestamp;

/// Watches token supply (unlocks, burns, buybacks) and tells the right people.
#[derive(Debug, Parser)]
#[command(name = "cliffwatch", version, max_term_width = 100, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 it failed or found errors, 2 wrong usage, 3 only warnings (where --strict asked).")]
pub(super) struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub(super) struct GlobalArgs {
    /// The config; else ./cliffwatch.toml, else /etc/cliffwatch/cliffwatch.toml
    #[arg(long, global = true, value_name = "FILE", env = "CLIFFWATCH_CONFIG", help_heading = "Global options")]
    pub config: Option<PathBuf>,
    /// How lists are printed
    #[arg(long, global = true, value_enum, default_value_t, help_heading = "Global options")]
    pub format: OutputFormat,
    /// Whether to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "Global options")]
    pub color: ColorWhen,
    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// Take this for the present time, such as 2026-03-09T12:00:00Z
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_time, help_heading = "Global options")]
    pub now: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon
    Run,
    /// Try it: data service, daemon and status page on loopback, without a key or a config
    Demo(DemoArgs),
    /// Run the data service alone
    Serve(ServeArgs),
    /// Write a commented config and starter rules
    Init(InitArgs),
    /// Write something new, from what one wants to hear of
    #[command(subcommand)]
    New(NewCommand),
    /// Check config and rules: every problem at once
    Check(CheckArgs),
    /// Show the credits a month that this config will use, against the allowance
    Plan(PlanArgs),
    /// Run the tests of the rules
    Test(TestArgs),
    /// Show what the rules would have sent
    Backtest(BacktestArgs),
    /// Show why an alert was told, or was not, clause by clause
    Explain(ExplainArgs),
    /// Do one cycle now and show what it saw
    Poll(PollArgs),
    /// Show unlocks ahead
    Upcoming(UpcomingArgs),
    /// Show what changed
    Changes(ChangesArgs),
    /// Show alerts
    Alerts(AlertsArgs),
    /// Show how everything stands
    Status,
    /// Ask the daemon whether it is well, for the health checks of containers
    Healthcheck(HealthcheckArgs),
    /// Show and steer deliveries
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Send a test message through the real path
    Notify(NotifyArgs),
    /// Show who is told what
    #[command(subcommand)]
    Routes(RoutesCommand),
    /// Hold back what nobody wants to hear for a while
    #[command(subcommand)]
    Silence(SilenceCommand),
    /// Say that an alert is known: no reminders until its date, amount or level changes
    Ack(AckArgs),
    /// Believe an answer that is held because most of a token's coming records are missing from it
    Accept(AcceptArgs),
    /// Show digests, and who wants them
    #[command(subcommand)]
    Digest(DigestCommand),
    /// Show the links by which calendars and feed readers subscribe
    Feeds(FeedsArgs),
    /// Fill the database of the data service
    Import(ImportArgs),
    /// Write the data of the data service, or of the daemon, as a folder
    Export(ExportArgs),
    /// API keys of the data service
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Make an online copy of the database
    Backup(BackupArgs),
    /// Put a backup in the place of the database
    Restore(RestoreArgs),
    /// Move the database between a file and a server
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show what rules may name: fields, kinds of change, functions, filters
    Fields(FieldsArgs),
    /// Print the JSON Schema of a file, for editors, or of what a webhook receives
    Schema(SchemaArgs),
    /// Print completions for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}
