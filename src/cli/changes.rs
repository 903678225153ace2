//! `changes`: lists changes.

use clap::Args;

use super::print::{Cell, Listing};
use super::upcoming::{empty_reason, find};
use super::{Exit, Invocation, group, parse_span};
use model::{ChangeFilter, ChangeKind, Resource, config::Span};
use store::Access;

/// List changes, newest first
#[derive(Debug, Args)]
pub(super) struct ChangesArgs {
    /// Slug or ticker of a token
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Groups in the config, separated by commas; repeatable
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<String>,
    /// Change kind, such as rescheduled
    #[arg(long, value_name = "KIND")]
    kind: Option<ChangeKind>,
    /// Record type, such as unlock
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<Resource>,
    /// Maximum age, such as 7d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    since: Option<Span>,
    /// Maximum number of changes
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &ChangesArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store", "watch"])?;
    let store = invocation.open(&config, Access::Read).await?;
    let token = match &args.token {
        Some(name) => Some(find(name, &store).await?),
        None => None,
    };
    let group = group::members(&args.group, &config, &store).await?.map(|group| group.tokens);
    let tokens = match (token, group) {
        (Some(token), Some(group)) => Some(group.into_iter().filter(|id| *id == token).collect()),
        (token, group) => group.or(token.map(|token| vec![token])),
    };
    let filter = ChangeFilter {
        tokens,
        kinds: args.kind.into_iter().collect(),
        resources: args.resource.into_iter().collect(),
        since: args.since.and_then(|since| invocation.clock.now().checked_sub_signed(since.delta())),
        limit: args.limit.saturating_add(1),
        ..ChangeFilter::default()
    };
    let mut changes = store.changes(filter).await?;
    super::print::keep_first(&mut changes, args.limit, "changes");
    let listing = Listing::of(&changes)
        .left_column("Seen", "at", |row| Cell::time(Some(row.at)))
        .left_column("Token", "token", |row| Cell::both(row.symbol.as_deref().unwrap_or(row.token.as_str()), row.token.as_str()))
        .left_column("Record", "resource", |row| Cell::text(row.resource))
        .left_column("Kind", "kind", |row| Cell::text(row.change.kind))
        .left_column("Summary", "summary", |row| Cell::text(&row.change.summary));
    listing.print(empty_reason(changes.is_empty(), &store).await?, invocation)?;
    Ok(Exit::Done)
}
