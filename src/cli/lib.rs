//! The command line. Each command is a file of its own: it reads, asks and prints; what is decided is decided in the rooms below.
//!
//! The cast: `args` is what may be written (clap), an `Invocation` is what every command gets, an `Exit` how it ends. `parse` reads
//! values of options, `print` writes lists, `terminal` knows the terminal.
//!
//! The path: [`main`] reads the arguments, `dispatch` runs the command, its `Exit` becomes the exit code, and an error is
//! printed once with its causes.
//!
//! Promise: what a command prints on standard output is its answer (table, JSON or CSV); everything said beside it goes to standard
//! error. Nothing from outside reaches a terminal with a control code in it.
//!
//! ```no_run
//! // The whole program but the choice of a TLS provider.
//! let exit: std::process::ExitCode = cliffwatch_cli::main();
//! ```

mod accept;
mod ack;
mod alerts;
mod args;
mod backtest;
mod backup;
mod changes;
mod check;
mod completions;
mod copy;
mod demo;
mod digest;
mod dump;
mod exit;
mod explain;
mod feeds;
mod fields;
mod healthcheck;
mod init;
mod invocation;
mod known_check;
mod man;
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
mod upcoming;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Cli, ColorWhen, Command, OutputFormat};
use exit::{Exit, UsageError, print_error};
use invocation::Invocation;
use model::Clock;
use parse::{parse_address, parse_money, parse_place, parse_span, parse_time};
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
        clock: cli.global.now.map_or_else(Clock::system, Clock::manual),
    };
    match dispatch(cli.command, &invocation) {
        Ok(exit) => exit.into(),
        Err(error) => print_error(&error).into(),
    }
}

/// The arguments of this process. `--version` tells the commit too, `-V` the version alone.
fn parsed() -> Result<Cli, clap::Error> {
    let mut matches = Cli::command().long_version(model::program::version_line()).try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::command()))
}

fn dispatch(command: Command, invocation: &Invocation) -> anyhow::Result<Exit> {
    match command {
        // The daemon begins its log itself, as its config says.
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
        Command::Man(man) => man::run(&man, Cli::command()),
        Command::Routes(routes) => routes::run(&routes, invocation),
        Command::Silence(silence) => wait(silence::run(&silence, invocation)),
        Command::Ack(ack) => wait(ack::run(&ack, invocation)),
        Command::Accept(accept) => wait(accept::run(&accept, invocation)),
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

/// Runs one future to its end; a look into the database needs no more than this thread.
fn wait<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime cannot be started")?;
    // Behind a pointer, or the runtime is compiled anew for each command.
    let future: std::pin::Pin<Box<dyn Future<Output = anyhow::Result<T>>>> = Box::pin(future);
    runtime.block_on(future)
}
