//! `changes`: what changed.

use clap::Args;

use super::print::{Cell, Column, Listing};
use super::upcoming::{find, nothing};
use super::{Exit, Invocation, parse_span, parse_word};
use model::{ChangeFilter, ChangeKind, Resource, config::Span};
use store::Access;

/// Show what changed.
#[derive(Debug, Args)]
pub(super) struct ChangesArgs {
    /// Of this token (slug or symbol)
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Of this kind, such as rescheduled
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    kind: Option<ChangeKind>,
    /// Of these records, such as unlock
    #[arg(long, value_name = "RESOURCE", value_parser = parse_resource)]
    resource: Option<Resource>,
    /// Seen within this time, such as 7d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    since: Option<Span>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

const COLUMNS: &[Column] = &[
    Column("Seen", "at", false),
    Column("Token", "token", false),
    Column("Record", "resource", false),
    Column("Kind", "kind", false),
    Column("What", "summary", false),
];

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
        until: None,
        limit: args.limit,
    };
    let changes = store.changes(filter).await?;
    let rows = changes
        .iter()
        .map(|row| {
            vec![
                Cell::time(Some(row.at)),
                Cell::both(row.symbol.as_deref().unwrap_or(row.token.as_str()), row.token.as_str()),
                Cell::text(row.resource.as_str()),
                Cell::text(row.change.kind.as_str()),
                Cell::text(&row.change.summary),
            ]
        })
        .collect();
    Listing { columns: COLUMNS, rows, json: &changes, nothing: nothing(changes.is_empty(), &store).await? }.print(invocation)?;
    Ok(Exit::Done)
}

fn parse_kind(word: &str) -> Result<ChangeKind, String> {
    parse_word(word, &ChangeKind::ALL.map(ChangeKind::as_str), ChangeKind::parse)
}

fn parse_resource(word: &str) -> Result<Resource, String> {
    parse_word(word, &Resource::ALL.map(Resource::as_str), Resource::parse)
}
