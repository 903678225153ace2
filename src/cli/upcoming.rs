//! `upcoming`: lists upcoming cliff and linear unlocks.

use clap::Args;
use globset::{Glob, GlobSetBuilder};

use super::invocation::watch_of;
use super::print::{Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, group, parse_money, parse_span};
use daemon::token_names::{FindTokenError, find_token};
use daemon::view::{LinearView, ListedUnlockView, UnlockView};
use model::config::{Config, Span};
use model::{
    KnownSupply, Precision, SupplyCoverage, Timestamp, TokenId, UnlockKind, UnlockListFilter, UpcomingFilter, Watch,
    digest::SupplyGaps, phrase,
};
use store::{Access, Store};

/// List upcoming cliff and linear unlocks, nearest first
///
/// A linear unlock is listed with its dates and rate. Its value and amount cover the part that unlocks within SPAN; without `--within`,
/// all that remains.
#[derive(Debug, Args)]
pub(super) struct UpcomingArgs {
    /// Tokens (slug or ticker), globs, or groups in the config (@portfolio); default: all
    tokens: Vec<String>,
    /// Groups in the config, separated by commas; repeatable
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<String>,
    /// Maximum time until the unlock, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    within: Option<Span>,
    /// Type of the unlocks: cliff or linear; default: both
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<UnlockKind>,
    /// Minimum value in USD, such as 5M; of a linear unlock, within SPAN
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    min_value: Option<f64>,
    /// Show your positions of `[watch]` next to the unlocks
    #[arg(long)]
    positions: bool,
    /// Maximum number of unlocks
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(args: &UpcomingArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store", "watch"])?;
    let store = invocation.open(&config, Access::Read).await?;
    let now = invocation.clock.now();
    let group = group::members(&args.group, &config, &store).await?.map(|group| group.tokens);
    let tokens = match (selected_tokens(&args.tokens, &config, &store).await?, group) {
        (Some(tokens), Some(group)) => Some(tokens.into_iter().filter(|id| group.contains(id)).collect()),
        (tokens, group) => group.or(tokens),
    };
    let gaps = gaps(tokens.as_deref(), args.kind, &config, &store, now).await?;
    let until = args.within.and_then(|within| now.checked_add_signed(within.delta()));
    let unlocks = UpcomingFilter { tokens, from: now, until, limit: args.limit.saturating_add(1) };
    let window = unlocks.window();
    let filter = UnlockListFilter { unlocks, kind: args.kind, min_value: args.min_value, after: None };
    let mut rows = store.upcoming(filter).await?.rows;
    if args.positions {
        let watch = with_positions(&config, &store).await?;
        rows.iter_mut().for_each(|row| watch.place(row.token_mut()));
    }
    let mut views: Vec<ListedUnlockView> = rows.iter().filter_map(|row| ListedUnlockView::of(row, window, now)).collect();
    super::print::keep_first(&mut views, args.limit, "unlocks");
    // A list without an end contains all known linear unlocks.
    let missing = phrase::missing_supply(&gaps, until.unwrap_or(Timestamp::MAX_UTC));
    let empty_reason = match empty_reason(views.is_empty(), &store).await? {
        NO_MATCHES if gaps.is_nothing_known() => "no data: no schedule of these tokens was read yet",
        NO_MATCHES if !missing.is_empty() => "no known matches, but the known schedules are incomplete",
        reason => reason,
    };
    let exit = print(&views, args.positions, empty_reason, invocation)?;
    if !missing.is_empty() {
        anstream::eprintln!("incomplete: {}", missing.join("; "));
    }
    Ok(exit)
}

/// Returns the watch with the positions of the config. Names that are not the name of one token are reported and left out.
async fn with_positions(config: &Config, store: &Store) -> anyhow::Result<Watch> {
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    if watch.positions().is_empty() {
        anstream::eprintln!("the config has no positions: add [watch.positions], or positions_file in [watch]");
    }
    for problem in watch.positions().resolve(&store.token_names().await?).problems {
        anstream::eprintln!("a position is not used: {}", problem.message);
    }
    Ok(watch)
}

/// Returns what the list lacks. Linear unlocks that are not listed are not missing.
async fn gaps(
    tokens: Option<&[TokenId]>,
    kind: Option<UnlockKind>,
    config: &Config,
    store: &Store,
    now: Timestamp,
) -> anyhow::Result<SupplyGaps> {
    let mut gaps = SupplyGaps::default();
    if let Some(tokens) = tokens {
        for id in tokens {
            let supply = store.token_supply(id.clone(), now, Vec::new()).await?;
            let (known, linear_until) = supply.map_or((KnownSupply::None, None), |supply| (supply.known, supply.linear_until));
            gaps.add(SupplyCoverage { known, linear_until });
        }
    } else {
        let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
        let (totals, _) = store.supply_totals(now, Vec::new(), watch, now).await?;
        gaps = SupplyGaps::from(&totals.coverage);
    }
    if kind == Some(UnlockKind::Cliff) {
        (gaps.cliffs_only, gaps.linear_until) = (0, None);
    }
    Ok(gaps)
}

/// The reason for an empty list if the source was read.
const NO_MATCHES: &str = "no matches in the data of the source";

/// Returns the reason for an empty list, because "no data" and "not polled" must be distinguishable. Empty if the list is not.
pub(super) async fn empty_reason(is_empty: bool, store: &Store) -> anyhow::Result<&'static str> {
    if !is_empty {
        return Ok("");
    }
    let stats = store.poll_stats().await?;
    let was_read = stats.iter().any(|stat| stat.last_success.is_some());
    let was_tried = stats.iter().any(|stat| stat.last_try.is_some());
    Ok(match (was_read, was_tried) {
        (true, _) => NO_MATCHES,
        (false, true) => "no data: all polls of the source failed; run `cliffwatch status` for details",
        (false, false) => "no data: nothing was polled yet; run `cliffwatch run` or `cliffwatch poll`",
    })
}

/// Returns the value of the cliff unlock in a row. `None` for a linear unlock.
fn cliff<T>(view: &ListedUnlockView, read: impl Fn(&UnlockView) -> Option<T>) -> Option<T> {
    if let ListedUnlockView::Cliff(of) = view { read(&of.unlock) } else { None }
}

/// Returns the value of the linear unlock in a row. `None` for a cliff unlock.
fn linear<T>(view: &ListedUnlockView, read: impl Fn(&LinearView) -> Option<T>) -> Option<T> {
    if let ListedUnlockView::Linear(of) = view { read(of) } else { None }
}

/// Returns the value of a row of either type.
fn either<T>(view: &ListedUnlockView, cliff: impl Fn(&UnlockView) -> T, linear: impl Fn(&LinearView) -> T) -> T {
    match view {
        ListedUnlockView::Cliff(of) => cliff(&of.unlock),
        ListedUnlockView::Linear(of) => linear(of),
    }
}

fn print(views: &[ListedUnlockView], has_positions: bool, empty_reason: &str, invocation: &Invocation) -> anyhow::Result<Exit> {
    let mut listing = Listing::of(views)
        .left_column("Token", "symbol", |view| Cell::text(either(view, |of| of.symbol.clone(), |of| of.symbol.clone())))
        .left_column("Date", "when", |view| Cell::text(either(view, |of| of.when.clone(), |of| of.when.clone())))
        .right_column("Days until", "daysUntil", |view| {
            let (days, precision) = either(view, |of| (of.days_until, of.precision), |of| (of.days_until, of.precision));
            Cell::number(days, |days| in_days(days, precision))
        });
    if invocation.format == OutputFormat::Csv {
        listing = listing.right_column("Value", "cliffValue", |view| Cell::number(cliff(view, |of| of.cliff_value), phrase::usd));
    } else {
        listing = listing.right_column("Value", "value", |view| {
            Cell::number(either(view, |of| of.cliff_value, |of| of.value_in_window), phrase::usd)
        });
    }
    listing = listing.right_column("Of market cap", "valueToMarketCap", |view| {
        Cell::number(either(view, |of| of.value_to_market_cap, |of| of.value_to_market_cap), phrase::percent)
    });
    if invocation.format == OutputFormat::Csv {
        listing =
            listing.right_column("Amount", "cliffAmount", |view| Cell::number(cliff(view, |of| of.cliff_amount), phrase::amount));
    } else {
        listing = listing.right_column("Amount", "amount", |view| {
            Cell::number(either(view, |of| of.cliff_amount, |of| of.amount_in_window), phrase::amount)
        });
    }
    listing = listing.left_column("Allocations", "allocations", |view| {
        let all = either(view, |of| of.allocations.clone(), |of| of.allocations.clone());
        Cell::both(phrase::names(all.iter().map(String::as_str)), all.join("; "))
    });
    if invocation.format == OutputFormat::Csv {
        listing = listing
            .left_column("Slug", "tokenId", |view| Cell::text(either(view, |of| of.token_id.clone(), |of| of.token_id.clone())))
            .left_column("Unlock date", "unlockDate", |view| Cell::time(cliff(view, |of| of.unlock_date)))
            .left_column("Type", "type", |view| {
                Cell::text(either(view, |_| UnlockKind::Cliff.as_str(), |_| UnlockKind::Linear.as_str()))
            })
            .left_column("Start", "start", |view| Cell::time(linear(view, |of| Some(of.start))))
            .left_column("End", "end", |view| Cell::time(linear(view, |of| Some(of.end))))
            .right_column("Per day", "perDay", |view| Cell::number(linear(view, |of| of.per_day), phrase::amount))
            .right_column("Value per day", "perDayValue", |view| Cell::number(linear(view, |of| of.per_day_value), phrase::usd))
            .right_column("Amount in window", "amountInWindow", |view| {
                Cell::number(linear(view, |of| of.amount_in_window), phrase::amount)
            })
            .right_column("Value in window", "valueInWindow", |view| {
                Cell::number(linear(view, |of| of.value_in_window), phrase::usd)
            });
    }
    if has_positions {
        let position = |view: &ListedUnlockView| either(view, |of| of.position.clone(), |of| of.position.clone());
        listing = listing
            .right_column("Position", "positionAmount", move |view| {
                Cell::number(position(view).map(|of| of.amount), phrase::amount)
            })
            .right_column("Position value", "positionValue", move |view| {
                Cell::number(position(view).and_then(|of| of.value), phrase::usd)
            })
            .right_column("Unlock ÷ position", "positionMultiple", move |view| {
                Cell::number(position(view).and_then(|of| of.unlock_multiple), phrase::multiple)
            });
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

/// Returns the tokens that some words name: slugs, tickers, globs, or groups. `None` without words: all tokens.
async fn selected_tokens(words: &[String], config: &Config, store: &Store) -> anyhow::Result<Option<Vec<TokenId>>> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    let mut globs = GlobSetBuilder::new();
    let mut has_globs = false;
    let all = store.token_ids(false).await?;
    for word in words {
        let named: Vec<&str> = match word.strip_prefix('@') {
            Some(group) => group::group_patterns(group, config)?.iter().map(String::as_str).collect(),
            None => vec![word.as_str()],
        };
        for name in named {
            if group::is_glob(name) {
                if !word.starts_with('@') {
                    group::check_glob(name, &all)?;
                }
                globs
                    .add(Glob::new(name).map_err(|error| UsageError(format!("{name:?} is not a valid glob: {}", error.kind())))?);
                has_globs = true;
            } else {
                // Slugs in a group need not be known yet.
                let is_of_group = word.starts_with('@');
                ids.push(if is_of_group { TokenId::from(name) } else { find(name, store).await? });
            }
        }
    }
    if has_globs {
        let globs = globs.build()?;
        ids.extend(all.into_iter().filter(|id| globs.is_match(id.as_str())));
        ids.sort();
        ids.dedup();
    }
    Ok(Some(ids))
}

/// Finds a token by slug or ticker.
///
/// # Errors
///
/// Fails with a usage error if no token has this name, or if several have it.
pub(super) async fn find(name: &str, store: &Store) -> anyhow::Result<TokenId> {
    find_token(store, name).await.map_err(usage)
}

/// Returns the error for a name that is not the name of one token.
pub(super) fn usage(error: FindTokenError) -> anyhow::Error {
    match error {
        FindTokenError::Name(error) => UsageError(error.to_string()).into(),
        FindTokenError::Store(error) => error.into(),
    }
}
