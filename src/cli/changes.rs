//! `changes`: what changed.

use clap::Args;

use super::{
    Context, Exit, parse_span,
    print::{Cell, Column, Listing},
    upcoming::{find, nothing},
};
use crate::{
    change::ChangeKind,
    config::Span,
    diagnostic::closest,
    store::{Access, model::ChangeFilter},
    supply::Resource,
};

/// Show what changed.
#[derive(Debug, Args)]
pub(super) struct Changes {
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

pub(super) async fn run(asked: &Changes, context: &Context) -> anyhow::Result<Exit> {
    let (config, _) = context.load()?;
    let store = context.open(&config, Access::Read).await?;
    let token = match &asked.token {
        Some(name) => Some(find(name, false, &store).await?),
        None => None,
    };
    let filter = ChangeFilter {
        token,
        kind: asked.kind,
        resource: asked.resource,
        since: asked.since.and_then(|since| context.clock.now().checked_sub_signed(since.delta())),
        until: None,
        limit: asked.limit,
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
    Listing { columns: COLUMNS, rows, json: &changes, nothing: nothing(changes.is_empty(), &store).await? }.print(context)?;
    Ok(Exit::Done)
}

fn parse_kind(word: &str) -> Result<ChangeKind, String> {
    parse_word(word, &ChangeKind::ALL.map(ChangeKind::as_str), ChangeKind::parse)
}

fn parse_resource(word: &str) -> Result<Resource, String> {
    parse_word(word, &Resource::ALL.map(Resource::as_str), Resource::parse)
}

/// A word of a closed list, with a suggestion where it is none.
pub(super) fn parse_word<T>(word: &str, words: &[&'static str], parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    parse(word).ok_or_else(|| match closest(word, words.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it can be {}", words.join(", ")),
    })
}
