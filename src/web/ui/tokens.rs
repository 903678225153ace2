//! The list of tokens, with search and sorting.

use chrono::TimeDelta;
use minijinja::Value;
use serde::Serialize;

use super::overview::next::PositionCell;
use super::page::{PageFrame, Pager, href, render};
use super::token::supply::{percent, without_cliff};
use chart::{recipient, weeks};
use daemon::view::{PositionView, UnlockView};
use model::phrase::{self, SupplyFigure};
use model::{
    KnownSupply, SUPPLY_WINDOWS, SupplyAhead, Timestamp, TokenFilter, TokenList, TokenSort, TokenSummary, UpcomingRow, WEEKS,
};

const PATH: &str = "/tokens";

#[derive(Debug, Serialize)]
struct TokensPage {
    tokens: Vec<ListedToken>,
    pager: Pager,
    text: String,
    sort: TokenSort,
    columns: Vec<SortHeading>,
    /// The number of weeks of the charts.
    weeks: usize,
    has_positions: bool,
}

/// A column heading that links to its sort order.
#[derive(Debug, Serialize)]
struct SortHeading {
    name: &'static str,
    href: String,
    is_current: bool,
    is_number: bool,
    /// The value of `aria-sort`.
    order: &'static str,
    /// Whether the column of the weekly chart follows.
    is_before_chart: bool,
}

#[derive(Debug, Serialize)]
struct ListedToken {
    id: String,
    symbol: String,
    name: String,
    listed: bool,
    market_cap: Option<f64>,
    /// The next cliff unlock whose nominal date is ahead.
    next: Option<NextCliffCell>,
    /// A cliff unlock that can still happen although its nominal date has passed.
    unconfirmed: Option<String>,
    /// The text in place of the next cliff unlock, for a token without one.
    without_cliff: &'static str,
    per_day: String,
    /// The next change of the linear release.
    rate_change: Option<String>,
    month: SupplyCell,
    quarter: SupplyCell,
    /// The supply of the longest window in percent of market cap. `None` if either is unknown.
    percent: Option<f64>,
    /// The end of the known linear supply, if it is early.
    known_until: Option<String>,
    /// The day of the price, if it is stale.
    price_of: Option<Timestamp>,
    weeks: Value,
    /// The position, compared with the next cliff. `None` without one, and for readers who must not see it.
    position: Option<PositionCell>,
}

#[derive(Debug, Serialize)]
struct NextCliffCell {
    /// The date without a remark, for the column.
    date: String,
    when: String,
    /// The value, or the tokens if it is unknown.
    size: String,
    percent: Option<f64>,
    class: &'static str,
}

/// The coming supply of a window.
#[derive(Debug, Serialize)]
struct SupplyCell {
    figure: SupplyFigure,
    /// The parts of the figure in a few words. Empty if another column says the same.
    brief: String,
    /// The unlocks that may fall into the window, not included in the total. `None` if no unlock qualifies.
    inexact: Option<String>,
    inexact_count: u64,
}

impl SupplyCell {
    fn of(ahead: Option<&SupplyAhead>, known: KnownSupply, symbol: &str) -> Self {
        let ahead = ahead.copied().unwrap_or_default();
        let figure = phrase::supply_figure(&ahead, known, Some(symbol));
        let cliffs = ahead.cliff.known_value().filter(|_| ahead.cliff.count > 0 && ahead.linear.count > 0);
        let brief = match cliffs {
            Some(value) => format!("{} cliffs", phrase::usd(value)),
            _ if figure.parts == phrase::NOTHING_SCHEDULED => String::new(),
            _ => figure.parts.clone(),
        };
        Self { brief, figure, inexact: phrase::inexact_unlocks(&ahead.inexact), inexact_count: ahead.inexact.count }
    }
}

impl NextCliffCell {
    fn of(row: &UpcomingRow, now: Timestamp) -> Option<Self> {
        let event = row.tracked.record.unlock()?;
        let unlock = UnlockView::of(row, now)?;
        Some(Self {
            size: phrase::size(unlock.cliff_value, unlock.cliff_amount, Some(&unlock.symbol)),
            date: phrase::short_date(&event.interval()?),
            when: unlock.when,
            percent: unlock.value_to_market_cap,
            class: recipient::largest(&recipient::shares(event)).class(),
        })
    }
}

impl ListedToken {
    fn of(row: &TokenSummary, stale_price: TimeDelta, now: Timestamp) -> Self {
        let supply = &row.supply;
        let symbol = row.token.symbol();
        let upcoming =
            row.next.as_ref().map(|next| UpcomingRow { token: row.token.clone(), tracked: next.clone(), read_at: None });
        let unconfirmed = row.unconfirmed.as_ref().and_then(|tracked| tracked.record.unlock()?.unlock_date.copied());
        let [month, quarter] = ["30d", "90d"].map(|name| {
            let index = SUPPLY_WINDOWS.iter().position(|(window, _)| *window == name);
            index.and_then(|index| supply.windows.get(index))
        });
        let quarter_value = quarter.and_then(|ahead| ahead.total().known_value()).filter(|_| supply.known != KnownSupply::None);
        let end = quarter_end(now);
        let next_amount = row.next.as_ref().and_then(|next| next.record.unlock()?.amount());
        let position = PositionView::of(&row.token, supply.price.map(|price| price.usd), next_amount);
        Self {
            position: position.map(|position| PositionCell::of(&position, symbol)),
            id: row.token.id.as_str().to_owned(),
            symbol: symbol.to_owned(),
            name: row.token.name().to_owned(),
            listed: row.listed,
            market_cap: row.token.market_cap(),
            next: upcoming.and_then(|row| NextCliffCell::of(&row, now)),
            unconfirmed: unconfirmed.map(|nominal| phrase::expected(nominal, now)),
            without_cliff: without_cliff(supply),
            per_day: phrase::linear_per_day(supply, Some(symbol)),
            rate_change: phrase::rate_change(supply, Some(symbol)),
            month: SupplyCell::of(month, supply.known, symbol),
            quarter: SupplyCell::of(quarter, supply.known, symbol),
            percent: percent(quarter_value.filter(|value| *value > 0.0), row.token.market_cap()),
            known_until: supply.linear_until.filter(|until| *until < end).map(phrase::linear_known_until),
            price_of: supply.stale_price(now, stale_price),
            weeks: Value::from_safe_string(weeks::draw(&row.weeks, supply.known, now)),
        }
    }
}

/// Returns the end of the longest window.
fn quarter_end(now: Timestamp) -> Timestamp {
    model::supply_windows(now).last().map_or(now, |window| window.until)
}

/// Renders the list. `stale_price` is the age from which a price is stale.
pub fn page(list: &TokenList, filter: &TokenFilter, stale_price: TimeDelta, frame: &PageFrame) -> String {
    let sort = if filter.sort == TokenSort::default() { "" } else { filter.sort.as_str() };
    let column = |name: &'static str, by: TokenSort, is_number: bool| SortHeading {
        name,
        href: href(PATH, &[("q", &filter.text), ("sort", if by == TokenSort::default() { "" } else { by.as_str() })]),
        is_current: filter.sort == by,
        is_number,
        order: if matches!(by, TokenSort::Name | TokenSort::Next) { "ascending" } else { "descending" },
        is_before_chart: by == TokenSort::Share,
    };
    let tokens: Vec<ListedToken> = list.rows.iter().map(|row| ListedToken::of(row, stale_price, filter.at)).collect();
    let page = TokensPage {
        has_positions: tokens.iter().any(|token| token.position.is_some()),
        tokens,
        pager: Pager::new(
            PATH,
            &[("q", &filter.text), ("sort", sort)],
            filter.offset.into(),
            filter.limit.into(),
            list.rows.len(),
            list.total,
        ),
        text: filter.text.clone(),
        sort: filter.sort,
        columns: vec![
            column("Token", TokenSort::Name, false),
            column("Next cliff", TokenSort::Next, false),
            column("Vesting per day", TokenSort::PerDay, true),
            column("Next 30 days", TokenSort::Month, true),
            column("Next 90 days", TokenSort::Value, true),
            column("% of market cap", TokenSort::Share, true),
            column("Market cap", TokenSort::MarketCap, true),
        ],
        weeks: WEEKS,
    };
    render("tokens.html", &PageFrame { refreshes: true, ..frame.clone() }, &page)
}
