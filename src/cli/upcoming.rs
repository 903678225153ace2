//! `upcoming`: lists upcoming unlocks.

use clap::Args;
use globset::{Glob, GlobSet, GlobSetBuilder};

use super::print::{Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, parse_money, parse_span};
use daemon::view::UnlockView;
use model::config::{Config, Span};
use model::{Precision, TokenId, UpcomingFilter, closest, phrase};
use store::{Access, Store};

/// The maximum number of rows to read if rows are filtered here.
const MAX_ROWS: u32 = 100_000;

/// List upcoming unlocks
#[derive(Debug, Args)]
pub(super) struct UpcomingArgs {
    /// Tokens (slug or symbol), globs, or groups in the config (@portfolio); default: all
    tokens: Vec<String>,
    /// Maximum time until the unlock, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    within: Option<Span>,
    /// Minimum value in USD, such as 5M
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    min_value: Option<f64>,
    /// Maximum number of unlocks
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &UpcomingArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let now = invocation.clock.now();
    let wanted = TokenSelection::of(&args.tokens, &config, &store).await?;
    let is_filtered_here = wanted.globs.is_some() || args.min_value.is_some();
    let filter = UpcomingFilter {
        tokens: wanted.globs.is_none().then_some(wanted.ids.clone()).filter(|ids| !ids.is_empty()),
        from: now,
        until: args.within.and_then(|within| now.checked_add_signed(within.delta())),
        limit: if is_filtered_here { MAX_ROWS } else { args.limit.saturating_add(1) },
    };
    let rows = store.upcoming(filter).await?;
    let mut views: Vec<UnlockView> = rows
        .iter()
        .filter(|row| wanted.has(&row.token.id))
        .filter_map(|row| UnlockView::of(row, now))
        .filter(|view| args.min_value.is_none_or(|least| view.cliff_value.is_some_and(|value| value >= least)))
        .collect();
    super::print::keep_first(&mut views, args.limit, "unlocks");
    let empty_reason = empty_reason(views.is_empty(), &store).await?;
    print(&views, empty_reason, invocation)
}

/// Returns the reason for an empty list, because "no data" and "not polled" must be distinguishable. Empty if the list is not.
pub(super) async fn empty_reason(is_empty: bool, store: &Store) -> anyhow::Result<&'static str> {
    if !is_empty {
        return Ok("");
    }
    let stats = store.poll_stats().await?;
    let was_read = stats.iter().any(|stat| stat.last_success.is_some());
    let was_tried = stats.iter().any(|stat| stat.last_try.is_some());
    Ok(match (was_read, was_tried) {
        (true, _) => "no matches in the data of the source",
        (false, true) => "no data: all polls of the source failed; run `cliffwatch status` for details",
        (false, false) => "no data: nothing was polled yet; run `cliffwatch run` or `cliffwatch poll`",
    })
}

fn print(views: &[UnlockView], empty_reason: &str, invocation: &Invocation) -> anyhow::Result<Exit> {
    let mut listing = Listing::of(views)
        .left_column("Token", "symbol", |view| Cell::text(&view.symbol))
        .left_column("Date", "when", |view| Cell::text(&view.when))
        .right_column("Days until", "daysUntil", |view| Cell::number(view.days_until, |days| in_days(days, view.precision)))
        .right_column("Value", "cliffValue", |view| Cell::number(view.cliff_value, phrase::usd))
        .right_column("Of market cap", "valueToMarketCap", |view| Cell::number(view.value_to_market_cap, phrase::percent))
        .right_column("Amount", "cliffAmount", |view| Cell::number(view.cliff_amount, phrase::amount))
        .left_column("Allocations", "allocations", |view| {
            Cell::both(phrase::names(view.allocations.iter().map(String::as_str)), view.allocations.join("; "))
        });
    if invocation.format == OutputFormat::Csv {
        listing = listing.left_column("Slug", "tokenId", |view| Cell::text(&view.token_id)).left_column(
            "Unlock date",
            "unlockDate",
            |view| Cell::time(view.unlock_date),
        );
    }
    listing.print(empty_reason, invocation)?;
    Ok(Exit::Done)
}

/// Formats the days until a date. For a month or week, formats the minimum as `9+`.
fn in_days(days: f64, precision: Precision) -> String {
    match precision {
        Precision::Week | Precision::Month => format!("{:.0}+", days.floor()),
        _ => format!("{days:.1}"),
    }
}

struct TokenSelection {
    ids: Vec<TokenId>,
    globs: Option<GlobSet>,
}

impl TokenSelection {
    async fn of(words: &[String], config: &Config, store: &Store) -> anyhow::Result<Self> {
        let mut ids = Vec::new();
        let mut globs = GlobSetBuilder::new();
        let mut has_globs = false;
        for word in words {
            let named: Vec<&str> = match word.strip_prefix('@') {
                Some(group) => {
                    let groups = &config.watch.groups;
                    let tokens = groups.get(group).ok_or_else(|| {
                        let near = closest(group, groups.keys().map(String::as_str))
                            .map(|near| format!("; did you mean @{near}?"))
                            .unwrap_or_default();
                        UsageError(format!("unknown group {group:?}{near}"))
                    })?;
                    tokens.iter().map(String::as_str).collect()
                }
                None => vec![word.as_str()],
            };
            for name in named {
                if name.contains(['*', '?', '[', '{']) {
                    globs.add(
                        Glob::new(name).map_err(|error| UsageError(format!("{name:?} is not a valid glob: {}", error.kind())))?,
                    );
                    has_globs = true;
                } else {
                    ids.push(find(name, word.starts_with('@'), store).await?);
                }
            }
        }
        Ok(Self { ids, globs: if has_globs { Some(globs.build()?) } else { None } })
    }

    fn has(&self, id: &TokenId) -> bool {
        match &self.globs {
            None => true,
            Some(globs) => globs.is_match(id.as_str()) || self.ids.contains(id),
        }
    }
}

/// Finds a token by slug or symbol. Fails if several tokens share the symbol. Slugs in a group need not be known yet.
pub(super) async fn find(name: &str, is_of_group: bool, store: &Store) -> anyhow::Result<TokenId> {
    let found = store.find_token(name).await?;
    if let Some(token) = found.iter().find(|token| token.id.as_str() == name) {
        return Ok(token.id.clone());
    }
    match found.as_slice() {
        [] if is_of_group => Ok(TokenId::from(name)),
        [] => Err(UsageError(format!("unknown token {name:?}: use the slug from `token_list`")).into()),
        [token] => Ok(token.id.clone()),
        several => {
            let slugs = several.iter().map(|token| token.id.as_str()).collect::<Vec<_>>().join(", ");
            Err(UsageError(format!("several tokens have the symbol {name:?}: use one of {slugs}")).into())
        }
    }
}
