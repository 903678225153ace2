//! The command line. Each command has its own file and only reads, calls, and prints; the other crates make the decisions.
//!
//! `args` defines the arguments (clap), an `Invocation` contains the global options, and an `Exit` is the result of a command.
//! `parse` parses option values, `print` prints lists, and `terminal` handles the terminal.
//!
//! [`main`] parses the arguments, `dispatch` runs the command, its `Exit` becomes the exit code, and an error is printed once
//! with its causes.
//!
//! Guarantee: standard output contains only the result of a command (table, JSON, or CSV); all other messages go to standard
//! error. Output contains no control characters from outside.
//!
//! ```no_run
//! // The whole program except the choice of a TLS provider.
//! let exit: std::process::ExitCode = cliffwatch_cli::main();
//! ```

mod accept;
mod access;
mod ack;
mod alerts;
mod args;
mod backtest;
mod backup;
mod bundled;
mod changes;
mod check;
mod completions;
mod copy;
mod credits;
mod database_check;
mod demo;
mod digest;
mod dump;
mod exit;
mod explain;
mod feeds;
mod fields;
mod group;
mod healthcheck;
mod init;
mod invocation;
mod man;
mod mcp;
mod new;
mod notify;
mod outbox;
mod parse;
mod plan;
mod poll;
mod print;
mod restore;
mod routes;
mod rule_check;
mod rule_source;
mod run;
mod schema;
mod secrets;
mod service;
mod silence;
mod starter;
mod status;
mod terminal;
mod test;
#[cfg(test)]
mod tests;
mod token;
mod upcoming;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Cli, ColorWhen, Command, OutputFormat};
use exit::{Exit, UsageError, print_error};
use invocation::Invocation;
use model::Clock;
use parse::{parse_address, parse_location, parse_money, parse_span, parse_time};
use terminal::{shown, width};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match parsed() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let color = match cli.global.color {
        ColorWhen::Auto => anstream::ColorChoice::Auto,
        ColorWhen::Always => anstream::ColorChoice::Always,
        ColorWhen::Never => anstream::ColorChoice::Never,
    };
    color.write_global();
    let invocation = Invocation {
        config: cli.global.config,
        format: cli.global.format,
        color: anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
        verbose: cli.global.verbose,
        is_real_time: cli.global.now.is_none(),
        // `--commit` is only valid with `--now`.
        may_change_live_database: cli.global.now.is_none() || cli.global.commit,
        clock: cli.global.now.map_or_else(Clock::system, Clock::manual),
    };
    match dispatch(cli.command, &invocation) {
        Ok(exit) => exit.into(),
        Err(error) => print_error(&error).into(),
    }
}

/// Parses the arguments of this process. `--version` also prints the commit, `-V` only the version.
fn parsed() -> Result<Cli, clap::Error> {
    let mut matches = Cli::command().long_version(model::program::version_line()).try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::command()))
}

fn dispatch(command: Command, invocation: &Invocation) -> anyhow::Result<Exit> {
    match command {
        // These commands start the log themselves, as configured.
        Command::Run | Command::Demo(_) | Command::Serve(_) => {}
        _ => daemon::log::start_quiet(invocation.verbose),
    }
    match command {
        Command::Init(init) => init::run(&init),
        Command::Check(check) => check::run(&check, invocation),
        Command::New(new) => new::run(&new, invocation),
        Command::Schema(schema) => schema::run(&schema),
        Command::Fields(fields) => fields::run(&fields, invocation),
        Command::Test(test) => test::run(&test, invocation),
        Command::Backtest(backtest) => backtest::run(&backtest, invocation),
        Command::Completions { shell } => completions::run(shell, Cli::command()),
        Command::Mcp(args) => wait(mcp::run(&args, invocation)),
        Command::Man(man) => man::run(&man, Cli::command()),
        Command::Routes(routes) => routes::run(&routes, invocation),
        Command::Silence(silence) => wait(silence::run(&silence, invocation)),
        Command::Ack(ack) => wait(ack::run(&ack, invocation)),
        Command::Access(access) => wait(access::run(&access, invocation)),
        Command::Accept(accept) => wait(accept::run(&accept, invocation)),
        Command::Credits(command) => wait(credits::run(&command, invocation)),
        Command::Digest(digest) => wait(digest::run(&digest, invocation)),
        Command::Healthcheck(check) => healthcheck::run(&check, invocation),
        Command::Feeds(feeds) => wait(feeds::run(&feeds, invocation)),
        Command::Run => run::run(invocation),
        Command::Demo(demo) => demo::run(&demo, invocation),
        Command::Serve(serve) => service::serve(&serve, invocation),
        Command::Plan(plan) => wait(plan::run(&plan, invocation)),
        Command::Poll(poll) => poll::run(&poll, invocation),
        Command::Notify(notify) => wait(notify::run(&notify, invocation)),
        Command::Import(import) => service::import(&import, invocation),
        Command::Export(export) => service::export(&export, invocation),
        Command::Keys(keys) => service::keys(&keys, invocation),
        Command::Explain(explain) => wait(explain::run(&explain, invocation)),
        Command::Token(token) => wait(token::run(&token, invocation)),
        Command::Upcoming(upcoming) => wait(upcoming::run(&upcoming, invocation)),
        Command::Changes(changes) => wait(changes::run(&changes, invocation)),
        Command::Alerts(alerts) => wait(alerts::run(&alerts, invocation)),
        Command::Status => wait(status::run(invocation)),
        Command::Outbox(outbox) => wait(outbox::run(&outbox, invocation)),
        Command::Backup(backup) => wait(backup::run(&backup, invocation)),
        Command::Restore(restore) => restore::run(&restore, invocation),
        Command::Store(command) => copy::run(&command, invocation),
    }
}

/// Runs a future on the current thread, which is enough for a database query.
fn wait<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    // Boxed, so that the runtime is not compiled for each command.
    let future: std::pin::Pin<Box<dyn Future<Output = anyhow::Result<T>>>> = Box::pin(future);
    runtime.block_on(future)
}
