//! The coming supply of a token, compared with its market cap, its released supply, and its burns; and the parts of its max supply.

use chrono::TimeDelta;
use serde::Serialize;

use super::sizes;
use crate::ui::overview::supply::cell;
use model::phrase::{self, SupplyFigure};
use model::{
    Endpoint, KnownSupply, LinearAhead, Resource, SUPPLY_WINDOWS, SumWindow, SupplyAhead, Timestamp, TokenSnapshot, TokenSupply,
    UnlockSum,
};

/// The lengths of the windows of the table, in days. The windows of [`SUPPLY_WINDOWS`] come first and also have a tile.
const TABLE_DAYS: [i64; 4] = [7, 30, 90, 365];

/// Returns the windows that the page of a token needs.
pub fn windows(now: Timestamp) -> Vec<SumWindow> {
    TABLE_DAYS.iter().map(|days| SumWindow::of(now, TimeDelta::days(*days))).collect()
}

/// Returns the text in place of the next cliff unlock, for a token without one.
pub(in crate::ui) fn without_cliff(supply: &TokenSupply) -> &'static str {
    let has_linear = supply.rate.running > 0 || supply.rate.changes_at.is_some();
    match supply.known {
        KnownSupply::None => phrase::NOT_READ,
        KnownSupply::Cliffs => phrase::NO_CLIFFS,
        KnownSupply::All if has_linear => phrase::LINEAR_ONLY,
        KnownSupply::All => phrase::NOTHING_SCHEDULED,
    }
}

#[derive(Debug, Serialize)]
pub(super) struct TokenSupplyCard {
    tiles: Vec<TokenSupplyTile>,
    /// The text in place of the next cliff unlock, for a token without one.
    without_cliff: &'static str,
    per_day: String,
    rate_change: Option<String>,
    /// Empty if the schedule was never read.
    rows: Vec<PeriodRow>,
    /// The limits of these figures, as texts.
    notes: Vec<String>,
    has_burns: bool,
    has_buybacks: bool,
}

#[derive(Debug, Serialize)]
struct TokenSupplyTile {
    name: String,
    figure: SupplyFigure,
    /// Percent of market cap.
    percent: Option<f64>,
    /// The unlocks that may fall into the window, not included in the total. `None` if no unlock qualifies.
    inexact: Option<String>,
}

/// The supply of a window, and what was burned and bought back in the same time before now. Amounts are in tokens; `None` if unknown.
#[derive(Debug, Serialize)]
struct PeriodRow {
    days: i64,
    cliff: PartCell,
    linear: PartCell,
    total: PartCell,
    percent_of_market_cap: Option<f64>,
    percent_of_released: Option<f64>,
    burned: Option<f64>,
    net: Option<f64>,
    /// USD.
    bought_back: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PartCell {
    value: String,
    amount: Option<f64>,
}

impl PartCell {
    fn of(sum: &UnlockSum) -> Self {
        Self { value: cell(sum), amount: sum.known_amount().filter(|_| sum.count > 0) }
    }

    /// Stands for linear unlocks that were not read.
    fn not_read() -> Self {
        Self { value: phrase::NOT_READ.to_owned(), amount: None }
    }
}

/// Returns `part` in percent of `whole`. `None` if either is unknown or the whole is not positive.
pub(in crate::ui) fn percent(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = part.zip(whole.filter(|whole| *whole > 0.0))?;
    Some(part / whole * 100.0).filter(|percent| percent.is_finite())
}

impl TokenSupplyCard {
    /// `stale_price` is the age from which a price is stale.
    pub(super) fn of(snapshot: &TokenSnapshot, supply: &TokenSupply, stale_price: TimeDelta, now: Timestamp) -> Self {
        let token = &snapshot.token;
        let symbol = Some(token.symbol());
        let is_read = supply.known != KnownSupply::None;
        let share = |sum: &SupplyAhead| {
            percent(sum.total().known_value().filter(|_| is_read && sum.total().count > 0), token.market_cap())
        };
        let tile = |(days, sum): (&i64, &SupplyAhead)| TokenSupplyTile {
            name: format!("Next {days} days"),
            figure: phrase::supply_figure(sum, supply.known, symbol),
            percent: share(sum),
            inexact: phrase::inexact_unlocks(&sum.inexact),
        };
        let burns = past(snapshot, Resource::Burn, Endpoint::Burn, now);
        let buybacks = past(snapshot, Resource::Buyback, Endpoint::Buyback, now);
        let row = |(days, sum): (&i64, &SupplyAhead)| {
            let (total, burned) = (sum.total(), burns.as_ref().map(|sizes| within(sizes, *days, now)));
            let is_cliffs_only = supply.known == KnownSupply::Cliffs;
            PeriodRow {
                days: *days,
                cliff: PartCell::of(&sum.cliff),
                linear: if is_cliffs_only { PartCell::not_read() } else { PartCell::of(&sum.linear) },
                total: PartCell::of(&total),
                percent_of_market_cap: share(sum),
                percent_of_released: percent(
                    total.known_amount().filter(|_| total.count > 0),
                    token.item.unlocked_amount.copied(),
                ),
                burned,
                net: total.complete_amount().filter(|_| !is_cliffs_only).zip(burned).map(|(amount, burned)| amount - burned),
                bought_back: buybacks.as_ref().map(|sizes| within(sizes, *days, now)),
            }
        };
        Self {
            tiles: TABLE_DAYS.iter().zip(&supply.windows).take(SUPPLY_WINDOWS.len()).map(tile).collect(),
            without_cliff: without_cliff(supply),
            per_day: phrase::linear_per_day(supply, symbol),
            rate_change: phrase::rate_change(supply, symbol),
            rows: TABLE_DAYS.iter().zip(&supply.windows).filter(|_| is_read).map(row).collect(),
            notes: notes(snapshot, supply, stale_price, now),
            has_burns: burns.is_some(),
            has_buybacks: buybacks.is_some(),
        }
    }
}

/// Returns the sizes of burns (tokens) or buybacks (USD) until now. `None` if the feed was never read and no record is known.
fn past(snapshot: &TokenSnapshot, resource: Resource, endpoint: Endpoint, now: Timestamp) -> Option<Vec<(Timestamp, f64)>> {
    let mut sizes = sizes(snapshot, resource);
    let is_read = snapshot.feed(endpoint).is_some_and(|feed| feed.read_at.is_some());
    sizes.retain(|(at, _)| *at <= now);
    (is_read || !sizes.is_empty()).then_some(sizes)
}

fn within(sizes: &[(Timestamp, f64)], days: i64, now: Timestamp) -> f64 {
    sizes.iter().filter(|(at, _)| now - *at < TimeDelta::days(days)).map(|(_, size)| size).sum()
}

fn notes(snapshot: &TokenSnapshot, supply: &TokenSupply, stale_price: TimeDelta, now: Timestamp) -> Vec<String> {
    let symbol = Some(snapshot.token.symbol());
    let ahead = snapshot.schedule_header().and_then(LinearAhead::of_header);
    let until = windows(now).last().map_or(now, |window| window.until);
    let differs = ahead.and_then(|ahead| ahead.differs).filter(|differs| differs.is_finite() && *differs > 0.0);
    let is_unpriced = supply.known != KnownSupply::None && supply.price.is_none();
    [
        supply.stale_price(now, stale_price).map(|at| phrase::capitalized(&phrase::at_prices_of(at))),
        is_unpriced.then(|| "The price is unknown, so linear unlocks have no value in USD".to_owned()),
        (supply.known == KnownSupply::Cliffs).then(|| "Cliffs only: linear unlocks were not read".to_owned()),
        supply.linear_until.filter(|end| *end < until).map(|end| phrase::capitalized(&phrase::linear_known_until(end))),
        differs.map(|differs| format!("The schedule exceeds daily emission by {}", phrase::tokens(differs, symbol))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The price and the parts of the max supply.
#[derive(Debug, Serialize)]
pub(super) struct SupplyBreakdown {
    /// USD.
    price: Option<f64>,
    price_at: Option<Timestamp>,
    /// Max supply × price, in USD.
    fdv: Option<f64>,
    /// The circulating supply that the market cap implies, in tokens.
    pub(super) circulating: Option<f64>,
    /// The circulating supply in percent of the max supply.
    circulating_percent: Option<f64>,
    parts: Vec<SupplyPart>,
}

/// A part of the max supply.
#[derive(Debug, Serialize)]
struct SupplyPart {
    name: &'static str,
    /// Tokens.
    amount: f64,
    /// Percent of max supply.
    percent: Option<f64>,
}

impl SupplyBreakdown {
    pub(super) fn of(snapshot: &TokenSnapshot, supply: &TokenSupply) -> Self {
        let item = &snapshot.token.item;
        let price = supply.price.map(|price| price.usd).filter(|usd| *usd > 0.0);
        let max_supply = item.max_supply.copied().filter(|supply| *supply > 0.0);
        let circulating = snapshot.token.market_cap().filter(|cap| *cap > 0.0).zip(price).map(|(cap, price)| cap / price);
        let circulating = circulating.filter(|supply| supply.is_finite());
        let parts = [
            ("Unlocked", item.unlocked_amount.copied()),
            ("Locked", item.total_locked_amount.copied()),
            ("To be determined", item.tbd_locked_amount.copied()),
            ("Untracked", item.untracked_amount.copied()),
        ];
        let part = |(name, amount): (&'static str, Option<f64>)| {
            let amount = amount?;
            Some(SupplyPart { name, amount, percent: percent(Some(amount), max_supply) })
        };
        Self {
            price,
            price_at: supply.price.and_then(|price| price.at),
            fdv: max_supply.zip(price).map(|(supply, price)| supply * price),
            circulating,
            circulating_percent: percent(circulating, max_supply),
            parts: parts.into_iter().filter_map(part).collect(),
        }
    }
}
