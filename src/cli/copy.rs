//! `store copy FROM TO`: everything from one database into another, of whichever engine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::print::{Cell, Listing};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, UsageError, parse_place, shown};
use daemon::place::instance_name;
use model::format;
use store::{Place, Store};

/// `store`.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Copy everything into another database, between a file and PostgreSQL; all daemons must be stopped
    Copy(CopyArgs),
}

/// `store copy`.
#[derive(Debug, Args)]
#[command(
    after_help = "FROM and TO are each a file, postgres://user@host:port/database, or @FILE with such an address in it, so that \
    its password stands in no list of processes.\n\nThe copy counts once each table was read again on both sides and has the same \
    rows; until then TO stays as empty as it was. FROM is left as it is."
)]
pub(super) struct CopyArgs {
    /// The database to copy
    from: String,
    /// Where to: a new file, or an empty database or schema
    to: String,
    /// Certificates to know the servers by, in the place of the system's (PEM)
    #[arg(long, value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,
}

pub(super) fn run(command: &StoreCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let StoreCommand::Copy(args) = command;
    let place = |text: &str| parse_place(text, args.tls_ca_file.as_deref());
    let (from, to) = (place(&args.from)?, place(&args.to)?);
    if let (Place::File(from), Place::File(to)) = (&from, &to)
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
        .words("Table", "table", |table| Cell::text(&table.table))
        .numbers("Rows", "rows", |table| Cell::text(table.rows))
        .words("Hash, the same on both sides", "hash", |table| Cell::text(&table.hash))
        .print("", invocation)?;
    let rows = format::count(usize::try_from(rows).unwrap_or(usize::MAX), "row");
    anstream::eprintln!("{rows}: {} is a copy of {}", shown(to.name()), shown(from.name()));
    anstream::eprintln!("let no daemon start on {} again: what it told would be told twice", shown(from.name()));
    Ok(Exit::Done)
}
