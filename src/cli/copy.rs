//! `store copy FROM TO`: copies one database into another, of either engine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::print::{Cell, Listing};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, UsageError, parse_location, shown};
use daemon::database_url::instance_name;
use model::phrase;
use store::{DatabaseLocation, Store};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Copy all data into another database, between a file and PostgreSQL; stop all daemons first
    Copy(CopyArgs),
}

/// `store copy`.
#[derive(Debug, Args)]
#[command(
    after_help = "FROM and TO are each a file, postgres://user@host:port/database, or @FILE with such a URL in it, which keeps the password \
    out of process lists.\n\nThe copy is verified by reading each table again on both sides. If it fails, TO stays empty. FROM is not \
    changed."
)]
pub(super) struct CopyArgs {
    /// Database to copy
    from: String,
    /// New file, or empty database or schema
    to: String,
    /// CA certificates for the servers, instead of the system's (PEM)
    #[arg(long, value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,
}

pub(super) fn run(command: &StoreCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let StoreCommand::Copy(args) = command;
    let place = |text: &str| parse_location(text, args.tls_ca_file.as_deref());
    let (from, to) = (place(&args.from)?, place(&args.to)?);
    if let (DatabaseLocation::File(from), DatabaseLocation::File(to)) = (&from, &to)
        && from == to
    {
        return Err(UsageError("FROM and TO are the same file".to_owned()).into());
    }
    let mut bar = ProgressBar::new();
    let copied = Store::copy(&from, &to, &instance_name(), invocation.clock.now(), &mut |progress| {
        let (done, total) =
            (usize::try_from(progress.done).unwrap_or(usize::MAX), usize::try_from(progress.total).unwrap_or(usize::MAX));
        bar.show("", done, total, &format!("{} {}", progress.doing, progress.table));
    });
    bar.clear();
    let copied = copied?;
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    Listing::of(&copied)
        .left_column("Table", "table", |table| Cell::text(&table.table))
        .right_column("Rows", "rows", |table| Cell::text(table.rows))
        .left_column("Hash (equal on both sides)", "hash", |table| Cell::text(&table.hash))
        .print("", invocation)?;
    let rows = phrase::count(rows, "row");
    anstream::eprintln!("{rows}: {} is a copy of {}", shown(to.name()), shown(from.name()));
    anstream::eprintln!("do not start a daemon on {} again: it would send notifications a second time", shown(from.name()));
    Ok(Exit::Done)
}
