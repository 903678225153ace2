//! `upcoming`: unlocks ahead.

use clap::Args;
use globset::{Glob, GlobSet, GlobSetBuilder};

use super::print::{Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, parse_money, parse_span};
use daemon::ui::view::UnlockView;
use model::config::{Config, Span};
use model::{Precision, TokenId, UpcomingFilter, closest, format};
use store::{Access, Store};

/// Rows that are read where something is filtered here.
const MAX_ROWS: u32 = 100_000;

/// Show unlocks ahead.
#[derive(Debug, Args)]
pub(super) struct UpcomingArgs {
    /// Tokens (slug or symbol), globs, or groups of the config (@portfolio); all if none is named
    tokens: Vec<String>,
    /// Only those that begin within this time, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    within: Option<Span>,
    /// Only those worth at least this, USD, such as 5M
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    min_value: Option<f64>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &UpcomingArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let now = invocation.clock.now();
    let wanted = Wanted::of(&args.tokens, &config, &store).await?;
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
    let nothing = nothing(views.is_empty(), &store).await?;
    print(&views, nothing, invocation)
}

/// Why a list is empty: "nothing there" and "could not ask" must never look alike. Not asked where it is not.
pub(super) async fn nothing(is_empty: bool, store: &Store) -> anyhow::Result<&'static str> {
    if !is_empty {
        return Ok("");
    }
    let stats = store.poll_stats().await?;
    let was_read = stats.iter().any(|stat| stat.last_success.is_some());
    let was_tried = stats.iter().any(|stat| stat.last_try.is_some());
    Ok(match (was_read, was_tried) {
        (true, _) => "nothing found: the source was read, and nothing that it says fits",
        (false, true) => "nothing is known: the source was asked, but never answered; `cliffwatch status` says more",
        (false, false) => "nothing was polled yet: run `cliffwatch run` or `cliffwatch poll`",
    })
}

fn print(views: &[UnlockView], nothing: &str, invocation: &Invocation) -> anyhow::Result<Exit> {
    let mut listing = Listing::of(views)
        .words("Token", "symbol", |view| Cell::text(&view.symbol))
        .words("When", "when", |view| Cell::text(&view.when))
        .numbers("In days", "daysUntil", |view| Cell::number(view.days_until, |days| in_days(days, view.precision)))
        .numbers("Value", "cliffValue", |view| Cell::number(view.cliff_value, format::usd))
        .numbers("Of market cap", "valueToMarketCap", |view| Cell::number(view.value_to_market_cap, format::percent))
        .numbers("Amount", "cliffAmount", |view| Cell::number(view.cliff_amount, format::amount))
        .words("To", "allocations", |view| {
            Cell::both(format::names(view.allocations.iter().map(String::as_str)), view.allocations.join("; "))
        });
    if invocation.format == OutputFormat::Csv {
        listing = listing
            .words("Slug", "tokenId", |view| Cell::text(&view.token_id))
            .words("Date", "unlockDate", |view| Cell::time(view.unlock_date));
    }
    listing.print(nothing, invocation)?;
    Ok(Exit::Done)
}

/// Days until a date begins: of a month or a week the least that it can be, `9+`.
fn in_days(days: f64, precision: Precision) -> String {
    match precision {
        Precision::Week | Precision::Month => format!("{:.0}+", days.floor()),
        _ => format!("{days:.1}"),
    }
}

/// Tokens that were named.
struct Wanted {
    ids: Vec<TokenId>,
    globs: Option<GlobSet>,
}

impl Wanted {
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
                        UsageError(format!("no group is named {group:?}{near}"))
                    })?;
                    tokens.iter().map(String::as_str).collect()
                }
                None => vec![word.as_str()],
            };
            for name in named {
                if name.contains(['*', '?', '[', '{']) {
                    globs.add(Glob::new(name).map_err(|error| UsageError(format!("{name:?} is no glob: {}", error.kind())))?);
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

/// The token of a slug or a symbol. A symbol that several tokens share is no answer; a slug of a group may not have been seen yet.
pub(super) async fn find(name: &str, is_of_group: bool, store: &Store) -> anyhow::Result<TokenId> {
    let found = store.find_token(name).await?;
    if let Some(token) = found.iter().find(|token| token.id.as_str() == name) {
        return Ok(token.id.clone());
    }
    match found.as_slice() {
        [] if is_of_group => Ok(TokenId::from(name)),
        [] => Err(UsageError(format!("no token is known as {name:?}: name its slug, as `token_list` has it")).into()),
        [token] => Ok(token.id.clone()),
        several => {
            let slugs = several.iter().map(|token| token.id.as_str()).collect::<Vec<_>>().join(", ");
            Err(UsageError(format!("several tokens are known as {name:?}: name one of {slugs}")).into())
        }
    }
}
