//! The page that compares the coming supply of two to four tokens, per week or month, in percent of market cap or of circulating supply.

use chrono::{Datelike, Months, TimeDelta};
use serde::Serialize;

use super::page::{Choice, PageFrame, href, render};
use super::token::supply::percent;
use chart::Chart;
use chart::compare::{ComparedPeriod, draw};
use chart::scale::midnight;
use model::{
    KnownSupply, SUPPLY_WINDOWS, SumWindow, SupplyAhead, Timestamp, TokenSnapshot, TokenSupply, UnlockSum, phrase, supply_weeks,
    supply_windows,
};

/// The maximum number of tokens.
pub const MAX_TOKENS: usize = 4;
const WEEKS: usize = 13;
const MONTHS: u32 = 12;

/// The choices of the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedBy {
    /// By month instead of by week.
    pub is_monthly: bool,
    /// In percent of circulating supply instead of market cap.
    pub is_of_circulating: bool,
}

impl ComparedBy {
    fn unit(self) -> &'static str {
        if self.is_monthly { "month" } else { "week" }
    }

    fn base(self) -> &'static str {
        if self.is_of_circulating { "circulating supply" } else { phrase::MARKET_CAP }
    }

    /// Returns the URL of the page with these choices.
    fn href(self, tokens: &[String]) -> String {
        let mut values: Vec<(&str, &str)> = tokens.iter().map(|token| ("token", token.as_str())).collect();
        if self.is_monthly {
            values.push(("by", "month"));
        }
        if self.is_of_circulating {
            values.push(("of", "circulating"));
        }
        href("/compare", &values)
    }
}

/// Returns the windows of the totals, then the windows of the periods.
pub fn windows(by: ComparedBy, now: Timestamp) -> Vec<SumWindow> {
    [supply_windows(now), periods(by, now)].concat()
}

fn periods(by: ComparedBy, now: Timestamp) -> Vec<SumWindow> {
    if !by.is_monthly {
        return supply_weeks(now, WEEKS);
    }
    let first = now.date_naive().with_day(1).unwrap_or_default();
    // A window excludes its begin and includes its end, so a month ends just before midnight: an unlock at midnight is in the new month.
    let end = |index: u32| Some(midnight(first.checked_add_months(Months::new(index))?) - TimeDelta::milliseconds(1));
    let window = |index: u32| Some(SumWindow { at: end(index)?.max(now), until: end(index + 1)? });
    (0..MONTHS).filter_map(window).collect()
}

/// A token and its coming supply in the [`windows`].
#[derive(Debug)]
pub struct ComparedToken {
    pub snapshot: TokenSnapshot,
    pub supply: TokenSupply,
}

#[derive(Debug, Serialize)]
struct ComparePage {
    tokens: Vec<TokenColumn>,
    /// The texts of the form, as many as there can be tokens.
    fields: Vec<String>,
    is_monthly: bool,
    is_of_circulating: bool,
    base: &'static str,
    unit: &'static str,
    periods: [Choice; 2],
    bases: [Choice; 2],
    chart: Option<Chart>,
    rows: Vec<ComparedRow>,
    /// The limits of these figures, as texts.
    notes: Vec<String>,
}

/// A token with its totals.
#[derive(Debug, Serialize)]
struct TokenColumn {
    id: String,
    symbol: String,
    name: String,
    class: String,
    market_cap: Option<f64>,
    circulating: Option<f64>,
    totals: Vec<ComparedShare>,
    /// The page without this token.
    without: String,
}

#[derive(Debug, Serialize)]
struct ComparedRow {
    name: String,
    cells: Vec<ComparedShare>,
}

/// The supply of a window.
#[derive(Clone, Debug, Serialize)]
struct ComparedShare {
    percent: Option<f64>,
    /// USD or tokens, or the reason why there is no percentage.
    size: String,
    /// Whether it is known that nothing unlocks.
    is_empty: bool,
}

/// `texts` are the names of the tokens as the reader wrote them, `stale_price` is the age from which a price is stale.
pub fn page(tokens: &[ComparedToken], by: ComparedBy, stale_price: TimeDelta, now: Timestamp, frame: &PageFrame) -> String {
    render("compare.html", frame, &ComparePage::of(tokens, by, stale_price, now))
}

impl ComparePage {
    fn of(tokens: &[ComparedToken], by: ComparedBy, stale_price: TimeDelta, now: Timestamp) -> Self {
        let ids: Vec<String> = tokens.iter().map(|token| token.snapshot.token.id.as_str().to_owned()).collect();
        let periods = periods(by, now);
        let cells: Vec<Vec<ComparedShare>> = tokens
            .iter()
            .map(|token| token.supply.windows.iter().map(|sum| ComparedShare::of(sum, token, by)).collect())
            .collect();
        let of_window = |index: usize| cells.iter().filter_map(|cells| cells.get(index).cloned()).collect::<Vec<_>>();
        let first = SUPPLY_WINDOWS.len();
        let compared: Vec<ComparedPeriod> = periods
            .iter()
            .enumerate()
            .map(|(index, window)| ComparedPeriod {
                short: if by.is_monthly { window.until.format("%b %y") } else { window.at.format("%-d %b") }.to_string(),
                long: period_name(*window, by),
                shares: of_window(first + index).iter().map(|cell| cell.percent).collect(),
            })
            .collect();
        let symbols: Vec<String> = tokens.iter().map(|token| token.snapshot.token.symbol().to_owned()).collect();
        let row = |(index, period): (usize, &ComparedPeriod)| ComparedRow {
            name: period.long.clone(),
            cells: of_window(first + index),
        };
        let choice = |name: &str, by: ComparedBy, is_current: bool| Choice::new(name, by.href(&ids), is_current);
        let of = |is_of_circulating| ComparedBy { is_of_circulating, ..by };
        let each = |is_monthly| ComparedBy { is_monthly, ..by };
        let column = |(index, (token, cells)): (usize, (&ComparedToken, &Vec<ComparedShare>))| {
            let others: Vec<String> = ids.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, id)| id.clone()).collect();
            TokenColumn {
                id: token.snapshot.token.id.as_str().to_owned(),
                symbol: token.snapshot.token.symbol().to_owned(),
                name: token.snapshot.token.name().to_owned(),
                class: format!("c{index}"),
                market_cap: token.snapshot.token.market_cap(),
                circulating: circulating(token),
                totals: cells.get(..first).unwrap_or_default().to_vec(),
                without: by.href(&others),
            }
        };
        let mut fields = ids.clone();
        fields.resize(MAX_TOKENS.max(ids.len()), String::new());
        Self {
            chart: if tokens.len() > 1 { draw(&symbols, &compared, by.base(), by.unit()) } else { None },
            rows: compared.iter().enumerate().map(row).collect(),
            tokens: tokens.iter().zip(&cells).enumerate().map(column).collect(),
            fields,
            is_monthly: by.is_monthly,
            is_of_circulating: by.is_of_circulating,
            base: by.base(),
            unit: by.unit(),
            periods: [choice("Weeks", each(false), !by.is_monthly), choice("Months", each(true), by.is_monthly)],
            bases: [
                choice("Market cap", of(false), !by.is_of_circulating),
                choice("Circulating supply", of(true), by.is_of_circulating),
            ],
            notes: tokens.iter().flat_map(|token| notes(token, stale_price, now, &periods)).collect(),
        }
    }
}

fn period_name(window: SumWindow, by: ComparedBy) -> String {
    if by.is_monthly {
        return window.until.format("%b %Y").to_string();
    }
    format!("{} to {}", window.at.format("%-d %b"), phrase::day(window.until))
}

/// Returns the circulating supply of the token list, else market cap ÷ price.
fn circulating(token: &ComparedToken) -> Option<f64> {
    let item = &token.snapshot.token.item;
    let implied = || {
        let price = token.supply.price.map(|price| price.usd).filter(|usd| *usd > 0.0)?;
        Some(token.snapshot.token.market_cap()? / price)
    };
    item.circulating_supply.copied().filter(|supply| *supply > 0.0).or_else(implied).filter(|supply| supply.is_finite())
}

impl ComparedShare {
    fn of(sum: &SupplyAhead, token: &ComparedToken, by: ComparedBy) -> Self {
        if token.supply.known == KnownSupply::None {
            return Self { percent: None, size: phrase::NOT_READ.to_owned(), is_empty: false };
        }
        let total: UnlockSum = sum.total();
        if total.count == 0 {
            return Self { percent: Some(0.0), size: phrase::NOTHING_SCHEDULED.to_owned(), is_empty: true };
        }
        let symbol = Some(token.snapshot.token.symbol());
        let (share, size) = if by.is_of_circulating {
            (percent(total.known_amount(), circulating(token)), total.known_amount().map(|amount| phrase::tokens(amount, symbol)))
        } else {
            (percent(total.known_value(), token.snapshot.token.market_cap()), total.known_value().map(phrase::usd))
        };
        Self { percent: share, size: size.unwrap_or_else(|| phrase::size(None, total.known_amount(), symbol)), is_empty: false }
    }
}

/// Returns what the figures of a token lack.
fn notes(token: &ComparedToken, stale_price: TimeDelta, now: Timestamp, periods: &[SumWindow]) -> Vec<String> {
    let supply = &token.supply;
    let until = periods.last().map_or(now, |window| window.until);
    let symbol = phrase::name(token.snapshot.token.symbol());
    [
        supply.stale_price(now, stale_price).map(phrase::at_prices_of),
        (supply.known == KnownSupply::Cliffs).then(|| "cliffs only: linear unlocks were not read".to_owned()),
        (supply.known == KnownSupply::None).then(|| phrase::NOT_READ.to_owned()),
        supply.linear_until.filter(|end| *end < until).map(phrase::linear_known_until),
    ]
    .into_iter()
    .flatten()
    .map(|note| format!("{symbol}: {note}"))
    .collect()
}

#[cfg(test)]
mod tests;
