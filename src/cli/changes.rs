//! `changes`: what changed.

use clap::Args;

use super::print::{Cell, Listing};
use super::upcoming::{find, nothing};
use super::{Exit, Invocation, parse_span};
use model::{ChangeFilter, ChangeKind, Resource, config::Span};
use store::Access;

/// Show what changed.
#[derive(Debug, Args)]
pub(super) struct ChangesArgs {
    /// Of this token (slug or symbol)
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Of this kind, such as rescheduled
    #[arg(long, value_name = "KIND")]
    kind: Option<ChangeKind>,
    /// Of these records, such as unlock
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<Resource>,
    /// Seen within this time, such as 7d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    since: Option<Span>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &ChangesArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let token = match &args.token {
        Some(name) => Some(find(name, false, &store).await?),
        None => None,
    };
    let filter = ChangeFilter {
        token,
        kind: args.kind,
        resource: args.resource,
        since: args.since.and_then(|since| invocation.clock.now().checked_sub_signed(since.delta())),
        limit: args.limit.saturating_add(1),
        ..ChangeFilter::default()
    };
    let mut changes = store.changes(filter).await?;
    super::print::keep_first(&mut changes, args.limit, "changes");
    let listing = Listing::of(&changes)
        .words("Seen", "at", |row| Cell::time(Some(row.at)))
        .words("Token", "token", |row| Cell::both(row.symbol.as_deref().unwrap_or(row.token.as_str()), row.token.as_str()))
        .words("Record", "resource", |row| Cell::text(row.resource))
        .words("Kind", "kind", |row| Cell::text(row.change.kind))
        .words("What", "summary", |row| Cell::text(&row.change.summary));
    listing.print(nothing(changes.is_empty(), &store).await?, invocation)?;
    Ok(Exit::Done)
}
