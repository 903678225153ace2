//! The list of tokens, with search and sorting.

use minijinja::Value;
use serde::Serialize;

use super::page::{PageFrame, Pager, href, render};
use chart::{recipient, weeks};
use daemon::view::UnlockView;
use model::{AheadSums, Timestamp, TokenFilter, TokenList, TokenSort, TokenSummary, UpcomingRow, phrase};

const PATH: &str = "/tokens";

#[derive(Debug, Serialize)]
struct TokensPage {
    tokens: Vec<ListedToken>,
    pager: Pager,
    text: String,
    sort: TokenSort,
    columns: Vec<SortHeading>,
    days: i64,
}

/// A column heading that links to its sort order.
#[derive(Debug, Serialize)]
struct SortHeading {
    name: String,
    href: String,
    is_current: bool,
    is_number: bool,
    /// The value of `aria-sort`.
    order: &'static str,
}

#[derive(Debug, Serialize)]
struct ListedToken {
    id: String,
    symbol: String,
    name: String,
    listed: bool,
    market_cap: Option<f64>,
    next: Option<UnlockView>,
    class: &'static str,
    ahead: AheadSums,
    /// The unlocks that may fall into the period, not included in the sum. `None` if no unlock qualifies.
    possible: Option<String>,
    weeks: Value,
}

impl ListedToken {
    fn of(row: &TokenSummary, now: Timestamp) -> Self {
        let event = row.next.as_ref().and_then(|tracked| tracked.record.unlock());
        let shares = event.map(recipient::shares).unwrap_or_default();
        let next = row.next.as_ref().and_then(|tracked| {
            let upcoming = UpcomingRow { token: row.token.clone(), tracked: tracked.clone(), read_at: None };
            Some(UnlockView { record: serde_json::Value::Null, ..UnlockView::of(&upcoming, now)? })
        });
        Self {
            id: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            name: row.token.name().to_owned(),
            listed: row.listed,
            market_cap: row.token.market_cap(),
            next,
            class: recipient::largest(&shares).class(),
            ahead: row.ahead,
            possible: phrase::possible_unlocks(row.ahead.possible),
            weeks: Value::from_safe_string(weeks::draw(&row.weeks, now)),
        }
    }
}

pub fn page(list: &TokenList, filter: &TokenFilter, frame: &PageFrame) -> String {
    let sort = if filter.sort == TokenSort::default() { "" } else { filter.sort.as_str() };
    let column = |name: &str, by: TokenSort, is_number: bool, order: &'static str| SortHeading {
        name: name.to_owned(),
        href: href(PATH, &[("q", &filter.text), ("sort", if by == TokenSort::default() { "" } else { by.as_str() })]),
        is_current: filter.sort == by,
        is_number,
        order,
    };
    let days = (filter.window.until - filter.window.at).num_days();
    let page = TokensPage {
        tokens: list.rows.iter().map(|row| ListedToken::of(row, filter.window.at)).collect(),
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
            column("Token", TokenSort::Name, false, "ascending"),
            column("Next unlock", TokenSort::Next, false, "ascending"),
            column("% of market cap", TokenSort::Share, true, "descending"),
            column(&format!("Next {days} days"), TokenSort::Value, true, "descending"),
            column("Market cap", TokenSort::MarketCap, true, "descending"),
        ],
        days,
    };
    render("tokens.html", &PageFrame { refreshes: true, ..frame.clone() }, &page)
}
