//! Queries of the web pages: largest upcoming unlocks, firing alerts, the token list, and change detection.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::params;

use super::ahead::{IS_CLIFF, IndexedUnlock, Sizes, each_ahead, upcoming_rows};
use super::alerts::in_group;
use super::codec::{Conditions, Millis, all, counted, list, one_of};
use super::cycle::READ_TOGETHER;
use super::error::StoreFault;
use super::next_rates::{RatePlace, rate_places, read_rates};
use super::page_facts::{self, TokenSupplyRow};
use super::rows::{ALERT_COLUMNS, alert, token};
use super::sql::{PendingQuery, Transaction};
use super::supply::SupplyQuery;
use super::{Store, StoreError, schedule};
use model::time::LONGEST_INTERVAL;
use model::{
    Ahead, AheadFilter, FiringAlerts, FirstOf, GroupMembers, Inclusion, LargestFirst, Pulse, SUPPLY_WINDOWS, SumWindow,
    SupplyAhead, Timestamp, Token, TokenFilter, TokenId, TokenList, TokenSort, TokenSummary, UpcomingRow, WEEKS, Watch,
    supply_weeks, supply_windows,
};

/// The windows that order a list, in days.
const MONTH: i64 = 30;
const QUARTER: i64 = 90;

impl Store {
    /// Returns the largest and the next cliff unlocks of watched tokens.
    pub async fn largest_ahead(&self, filter: AheadFilter) -> Result<Ahead, StoreError> {
        self.read("read the largest unlocks ahead", move |from| largest_ahead(from, &filter)).await
    }

    /// Returns at most `limit` firing alerts, most severe first, and the number of firing alerts. With `group`, only its alerts.
    pub async fn firing_alerts(&self, limit: u32, group: Option<GroupMembers>) -> Result<FiringAlerts, StoreError> {
        self.read("read the firing alerts", move |from| firing_alerts(from, limit, group.as_ref())).await
    }

    /// Returns one page of the token list.
    pub async fn token_list(&self, filter: TokenFilter) -> Result<TokenList, StoreError> {
        let max_rows = self.max_list_bytes() / SUMMARY_BYTES;
        self.read("list tokens", move |from| token_list(from, &filter, max_rows)).await
    }

    /// Returns tokens with a held response, at most `limit`, by slug.
    pub async fn held_tokens(&self, limit: u32) -> Result<Vec<Token>, StoreError> {
        self.read("read the tokens with held responses", move |from| held_tokens(from, limit)).await
    }

    /// Returns counters that change whenever the pages would.
    pub async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.read("check for changes", pulse).await
    }
}

fn largest_ahead(from: &Transaction<'_>, filter: &AheadFilter) -> Result<Ahead, StoreFault> {
    let from = &from.keeping_facts();
    let AheadFilter { window, largest, limit, next, watch } = filter;
    let watched = watched_numbers(from, watch, *window)?;
    // Ordered by size (largest first), then start, then row number.
    let largest_of = || FirstOf::<(LargestFirst, i64, i64)>::new(*limit as usize);
    let (mut by_value, mut by_share) = (largest_of(), largest_of());
    // Ordered by nominal date, then value (largest first), then row number.
    let mut first: FirstOf<(i64, LargestFirst, i64)> = FirstOf::new(*next as usize);
    let mut next_total = 0;
    each_ahead(from, window.at, window.until, Sizes::Both, |row| {
        let is_watched = row.token_no.and_then(|no| watched.get(usize::try_from(no).ok()?)).copied().unwrap_or(false);
        if !is_watched || !has_size(&row) {
            return;
        }
        if row.piece().inclusion(*largest).is_some() {
            for (sorted, size) in [(&mut by_value, row.value), (&mut by_share, row.share)] {
                if size.is_some_and(|size| size > 0.0) {
                    sorted.push((LargestFirst(size), row.starts_at, row.no));
                }
            }
        }
        if row.piece().inclusion(*window) == Some(Inclusion::Counted) {
            next_total += 1;
            first.push((row.nominal_at, LargestFirst(row.value), row.no));
        }
    })?;
    let numbers = |sorted: FirstOf<(LargestFirst, i64, i64)>| sorted.into_sorted().into_iter().map(|(_, _, no)| no).collect();
    let (by_value, by_share): (Vec<i64>, Vec<i64>) = (numbers(by_value), numbers(by_share));
    let is_watched = |no: i64| usize::try_from(no).ok().and_then(|no| watched.get(no)).copied().unwrap_or(false);
    let (rates, rates_total) = rate_places(from, *window, is_watched, *next as usize)?;
    let (first, rates) = first_of_both(first.into_sorted(), rates, *next as usize);
    let all = by_value.iter().chain(&by_share).chain(&first).copied();
    let rows: HashMap<i64, UpcomingRow> = upcoming_rows(from, all)?.into_iter().collect();
    let pick = |numbers: Vec<i64>| numbers.iter().filter_map(|no| rows.get(no).cloned()).collect();
    let rates = read_rates(from, &rates)?;
    Ok(Ahead { largest: pick(by_value), largest_share: pick(by_share), next: pick(first), next_total, rates, rates_total })
}

/// Returns the row numbers of cliff unlocks and the changes that are among the first `most` of both together, by day and value. Only
/// these are read.
fn first_of_both(cliffs: Vec<(i64, LargestFirst, i64)>, rates: Vec<RatePlace>, most: usize) -> (Vec<i64>, Vec<RatePlace>) {
    let day = |millis: i64| Timestamp::from_timestamp_millis(millis).unwrap_or_default().date_naive();
    let (mut cliffs, mut rates) = (cliffs.into_iter().peekable(), rates.into_iter().peekable());
    let (mut first, mut changes) = (Vec::new(), Vec::new());
    while first.len() + changes.len() < most {
        let is_cliff = match (cliffs.peek(), rates.peek()) {
            (Some((at, value, _)), Some((of, other, ..))) => (day(*at), *value) <= (*of, *other),
            (cliff, rate) => {
                if cliff.is_none() && rate.is_none() {
                    break;
                }
                cliff.is_some()
            }
        };
        match is_cliff {
            true => first.extend(cliffs.next().map(|(_, _, no)| no)),
            false => changes.extend(rates.next()),
        }
    }
    (first, changes)
}

/// Returns whether an unlock has a known value or amount above zero.
fn has_size(unlock: &IndexedUnlock) -> bool {
    unlock.value.or(unlock.amount).is_some_and(|size| size > 0.0)
}

/// Returns whether each token is watched, by token number. The window is that of the page.
pub(super) fn watched_numbers(from: &Transaction<'_>, watch: &Watch, window: SumWindow) -> Result<Vec<bool>, StoreFault> {
    let mut watched = Vec::new();
    let mut set = |no: i64, id: TokenId| {
        let no = usize::try_from(no).unwrap_or_default();
        watched.resize(watched.len().max(no + 1), false);
        if let Some(entry) = watched.get_mut(no) {
            *entry = watch.covers(&id);
        }
    };
    if let Some(facts) = page_facts::current(from, window.at, window.until)? {
        facts.supplies.iter().for_each(|token| set(token.no, TokenId::from(token.id.as_str())));
        return Ok(watched);
    }
    let mut statement = from.prepare_cached("SELECT no, id FROM token")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        set(row.get(0)?, TokenId::from(row.get::<String>(1)?));
    }
    Ok(watched)
}

fn firing_alerts(from: &Transaction<'_>, limit: u32, group: Option<&GroupMembers>) -> Result<FiringAlerts, StoreFault> {
    let mut firing = FiringAlerts::default();
    let indexed = from.engine().indexed_by("alert_state_severity");
    let conditions = || {
        let mut conditions = Conditions::default();
        conditions.and_plain("a.state = 'firing'");
        if let Some(group) = group {
            in_group(&mut conditions, group);
        }
        conditions
    };
    let (sql, values) =
        conditions().within(&format!("SELECT a.severity, count(*) FROM alert a {indexed}"), " GROUP BY a.severity");
    for (severity, count) in all(&mut from.prepare(&sql)?, values, |row| Ok((row.get::<i64>(0)?, counted(row.get(1)?))))? {
        match severity {
            3 => firing.critical = count,
            2 => firing.warning = count,
            _ => firing.other += count,
        }
    }
    let (sql, values) = conditions().within(
        &format!("SELECT {ALERT_COLUMNS} FROM alert a {indexed} LEFT JOIN token t ON t.no = a.token_no"),
        &format!(" ORDER BY a.severity DESC, a.updated_at DESC LIMIT {limit}"),
    );
    firing.alerts = all(&mut from.prepare(&sql)?, values, alert)?;
    Ok(firing)
}

/// The figures that order a token in a list.
#[derive(Clone, Copy, Default)]
struct ListRank {
    /// The coming supply of 30 and 90 days.
    month: SupplyAhead,
    quarter: SupplyAhead,
    /// USD that unlock linearly per day.
    per_day: f64,
    /// The nominal date of the next cliff unlock, in milliseconds since the epoch.
    next: Option<i64>,
    /// The nominal date of the latest cliff unlock that can still happen although this date has passed.
    unconfirmed: Option<i64>,
}

/// The approximate size of a row of the token list, in bytes.
const SUMMARY_BYTES: usize = 2048;

fn token_list(from: &Transaction<'_>, filter: &TokenFilter, max_rows: usize) -> Result<TokenList, StoreFault> {
    let from = &from.keeping_facts();
    let mut fitting = matching_tokens(from, filter)?;
    // Needed for all tokens only if the list is sorted by it. Otherwise each row on the page reads its own.
    let is_by_supply = !matches!(filter.sort, TokenSort::MarketCap | TokenSort::Name);
    let ahead = if is_by_supply { ranks(from, filter)? } else { ListRanks::default() };
    let total = fitting.len() as u64;
    fitting.retain(|no| !filter.seen.contains(*no));
    let order = order(from, filter, fitting, &ahead)?;
    let end = (filter.offset as usize).saturating_add(max_rows.min(filter.limit as usize));
    let has_more = end < order.len();
    let shown: Vec<i64> = order.into_iter().skip(filter.offset as usize).take(max_rows.min(filter.limit as usize)).collect();
    let mut rows = Vec::with_capacity(shown.len());
    for together in shown.chunks(READ_TOGETHER) {
        rows.extend(summaries(from, together, filter.at)?);
    }
    Ok(TokenList { rows, total, has_more })
}

/// Returns the numbers of matching tokens, by name. Tokens without a name come first, by slug.
fn matching_tokens(from: &Transaction<'_>, filter: &TokenFilter) -> Result<Vec<i64>, StoreFault> {
    let text = filter.text.trim().to_ascii_lowercase();
    let mut conditions = Conditions::default();
    if !text.is_empty() {
        conditions.and("(instr(lower(id), ?) > 0 OR instr(lower(name), ?) > 0 OR instr(lower(symbol), ?) > 0)", text);
    }
    if let Some(tokens) = &filter.tokens {
        conditions.and("id IN (SELECT value FROM json_each(?))", list(tokens.iter().map(TokenId::as_str)));
    }
    let indexed = from.engine().indexed_by("token_name");
    let (sql, values) = conditions
        .within(&format!("SELECT no FROM token {indexed}"), " ORDER BY lower(name) NULLS FIRST, symbol NULLS FIRST, id");
    all(&mut from.prepare(&sql)?, values, |row| Ok(row.get(0)?))
}

/// Ranks indexed by token number. Numbers are consecutive, so a vector is smaller than a map.
#[derive(Default)]
struct ListRanks(Vec<ListRank>);

impl ListRanks {
    fn of(&self, no: i64) -> ListRank {
        usize::try_from(no).ok().and_then(|no| self.0.get(no)).copied().unwrap_or_default()
    }

    fn of_mut(&mut self, no: Option<i64>) -> Option<&mut ListRank> {
        no.and_then(|no| self.0.get_mut(usize::try_from(no).ok()?))
    }
}

fn ranks(from: &Transaction<'_>, filter: &TokenFilter) -> Result<ListRanks, StoreFault> {
    let most: i64 = from.prepare_cached("SELECT coalesce(max(no), 0) FROM token")?.query_row([], |row| row.get(0))?;
    let mut ranks = ListRanks(vec![ListRank::default(); usize::try_from(most).unwrap_or(0) + 1]);
    let window = |days: i64| SumWindow::of(filter.at, TimeDelta::days(days));
    let (month, quarter) = (window(MONTH), window(QUARTER));
    let at = filter.at.timestamp_millis();
    each_ahead(from, filter.at, quarter.until, Sizes::Value, |row| {
        let Some(of) = ranks.of_mut(row.token_no).filter(|_| row.is_cliff) else { return };
        let piece = row.piece();
        of.month.add_cliff(&piece, month);
        of.quarter.add_cliff(&piece, quarter);
        if row.nominal_at <= at {
            of.unconfirmed = of.unconfirmed.max(Some(row.nominal_at));
        } else if row.nominal_at <= quarter.until.timestamp_millis() {
            // A later date is looked up, because a cliff unlock outside the window can precede it.
            of.next = Some(of.next.map_or(row.nominal_at, |next| next.min(row.nominal_at)));
        }
    })?;
    if filter.sort == TokenSort::Next {
        return Ok(ranks);
    }
    page_facts::each_supply(from, filter.at, quarter.until, |TokenSupplyRow { no, supply, .. }| {
        let (Some(of), Some(supply)) = (ranks.of_mut(Some(*no)), supply) else { return };
        let usd = supply.price.map(|price| price.usd);
        for piece in supply.pieces() {
            of.month.add_linear(&piece, usd, month);
            of.quarter.add_linear(&piece, usd, quarter);
            let per_day = piece.per_day().filter(|_| piece.runs_at(at));
            of.per_day += per_day.zip(usd).map_or(0.0, |(per_day, usd)| per_day * usd);
        }
    })?;
    Ok(ranks)
}

/// Sorts tokens, which are ordered by name. The sort is stable.
fn order(from: &Transaction<'_>, filter: &TokenFilter, mut tokens: Vec<i64>, ranks: &ListRanks) -> Result<Vec<i64>, StoreFault> {
    let of = |no: i64| ranks.of(no);
    match filter.sort {
        TokenSort::Name => {}
        TokenSort::Value => sort_descending(&mut tokens, |no| [of(no).quarter.total().value, of(no).quarter.inexact.value]),
        TokenSort::Month => sort_descending(&mut tokens, |no| [of(no).month.total().value, of(no).month.inexact.value]),
        TokenSort::PerDay => sort_descending(&mut tokens, |no| [of(no).per_day, 0.0]),
        TokenSort::Share => {
            let caps = market_caps(from)?;
            let share = |no: i64, value: f64| caps.get(&no).map_or(0.0, |cap| value / cap);
            sort_descending(&mut tokens, |no| [of(no).quarter.total(), of(no).quarter.inexact].map(|sum| share(no, sum.value)));
        }
        TokenSort::Next => {
            // A token without a cliff unlock in the window needs its own lookup.
            // Of the first ones by start, because a nominal date is in the interval that begins with the start.
            let mut later = from.prepare_cached(&format!(
                "SELECT min(nominal) FROM (SELECT coalesce(r.nominal_at, r.starts_at) AS nominal FROM record r
                 WHERE r.token_no = ?1 AND r.resource = 'unlock' AND r.starts_at > CAST(?2 AS BIGINT) - ?3
                 AND coalesce(r.nominal_at, r.starts_at) > ?2 AND {IS_CLIFF}
                 ORDER BY r.starts_at LIMIT 32) AS first"
            ))?;
            let mut keyed: Vec<(i64, i64)> = Vec::with_capacity(tokens.len());
            for no in tokens {
                let at = match of(no).next {
                    Some(at) => Some(at),
                    None => later.query_row(params![no, Millis(filter.at), longest_interval()], |row| row.get(0))?,
                };
                keyed.push((at.or(of(no).unconfirmed).unwrap_or(i64::MAX), no));
            }
            keyed.sort_by_key(|(at, _)| *at);
            tokens = keyed.into_iter().map(|(_, no)| no).collect();
        }
        TokenSort::MarketCap => {
            let caps = market_caps(from)?;
            sort_descending(&mut tokens, |no| [caps.get(&no).copied().unwrap_or_default(), 0.0]);
        }
    }
    Ok(tokens)
}

fn market_caps(from: &Transaction<'_>) -> Result<HashMap<i64, f64>, StoreFault> {
    let indexed = from.engine().indexed_by("token_market_cap");
    let sql = format!("SELECT no, market_cap FROM token {indexed} WHERE market_cap > 0");
    let caps = all(&mut *from.prepare_cached(&sql)?, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(caps.into_iter().collect())
}

/// The maximum time from the start of an interval to its nominal date, in milliseconds.
fn longest_interval() -> i64 {
    LONGEST_INTERVAL.num_milliseconds() + 1
}

/// Sorts by two sizes, largest first. The sort is stable.
fn sort_descending(tokens: &mut Vec<i64>, sizes: impl Fn(i64) -> [f64; 2]) {
    let mut keyed: Vec<([f64; 2], i64)> = tokens.iter().map(|no| (sizes(*no), *no)).collect();
    keyed.sort_by(|([a, also_a], _), ([b, also_b], _)| b.total_cmp(a).then_with(|| also_b.total_cmp(also_a)));
    *tokens = keyed.into_iter().map(|(_, no)| no).collect();
}

/// The pending lookups of one row of the list of tokens.
struct SummaryQuery<'a> {
    no: i64,
    token: PendingQuery<'a>,
    next: PendingQuery<'a>,
    unconfirmed: PendingQuery<'a>,
    supply: SupplyQuery<'a>,
}

impl<'a> SummaryQuery<'a> {
    fn send(from: &Transaction<'a>, no: i64, at: Timestamp, windows: &[SumWindow]) -> Result<Self, StoreFault> {
        let token = "SELECT id, item, name, symbol, listed FROM token WHERE no = ?1";
        let next = ("coalesce(nominal_at, starts_at) > ?2", "coalesce(nominal_at, starts_at)");
        let unconfirmed = ("coalesce(nominal_at, starts_at) <= ?2 AND ends_at > ?2", "coalesce(nominal_at, starts_at) DESC");
        Ok(Self {
            no,
            token: from.prepare_cached(token)?.send_query([no])?,
            next: cliff(from, no, at, next.0, next.1)?,
            unconfirmed: cliff(from, no, at, unconfirmed.0, unconfirmed.1)?,
            supply: SupplyQuery::send(from, no, at, windows)?,
        })
    }
}

/// Returns the rows of tokens, in their order. Waits once for the rows, and once for each batch of schedules of their cliffs.
fn summaries(from: &Transaction<'_>, tokens: &[i64], at: Timestamp) -> Result<Vec<TokenSummary>, StoreFault> {
    let windows = [supply_windows(at), supply_weeks(at, WEEKS)].concat();
    let queries = tokens.iter().map(|no| SummaryQuery::send(from, *no, at, &windows)).collect::<Result<Vec<_>, _>>()?;
    let (mut rows, mut cliffs) = (Vec::new(), Vec::new());
    for SummaryQuery { no: number, token: known, next, unconfirmed, supply } in queries {
        let known = one_of(known.rows()?, |row| Ok((token(row, 0)?, row.get::<bool>(4)?)))?;
        let mut supply = supply.read(at, &windows)?;
        let found = [next, unconfirmed].map(|query| one_of(query.rows()?, |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?))));
        let Some((token, listed)) = known else { continue };
        for (found, is_next) in found.into_iter().zip([true, false]) {
            cliffs.extend(found?.map(|(scope, key)| (scope, key, (rows.len(), is_next))));
        }
        let weeks = supply.windows.split_off(SUPPLY_WINDOWS.len());
        rows.push(TokenSummary { number, token, listed, next: None, unconfirmed: None, supply, weeks });
    }
    for ((row, is_next), tracked) in schedule::events(from, cliffs)? {
        let Some(row) = rows.get_mut(row) else { continue };
        *(if is_next { &mut row.next } else { &mut row.unconfirmed }) = Some(tracked);
    }
    Ok(rows)
}

/// Sends the query for the first cliff unlock of a token that matches a clause. `?2` is `at`.
fn cliff<'a>(from: &Transaction<'a>, no: i64, at: Timestamp, clause: &str, order: &str) -> Result<PendingQuery<'a>, StoreFault> {
    let mut statement = from.prepare_cached(&format!(
        "SELECT scope_no, key FROM record r WHERE token_no = ?1 AND resource = 'unlock' AND starts_at > CAST(?2 AS BIGINT) - ?3
         AND {IS_CLIFF} AND {clause} ORDER BY {order}, key LIMIT 1"
    ))?;
    Ok(statement.send_query(params![no, Millis(at), longest_interval()])?)
}

fn held_tokens(from: &Transaction<'_>, limit: u32) -> Result<Vec<Token>, StoreFault> {
    let sql = "SELECT DISTINCT t.id, t.item, t.name, t.symbol FROM feed f JOIN token t ON t.no = f.token_no
         WHERE f.held_since IS NOT NULL ORDER BY t.id LIMIT ?1";
    all(&mut *from.prepare_cached(sql)?, [limit], |row| token(row, 0))
}

fn pulse(from: &Transaction<'_>) -> Result<Pulse, StoreFault> {
    let sql = "SELECT (SELECT coalesce(max(no), 0) FROM poll), (SELECT coalesce(max(no), 0) FROM change),
         (SELECT coalesce(max(updated_at), 0) FROM alert),
         (SELECT coalesce(max(no), 0) FROM delivery) + (SELECT coalesce(max(no), 0) FROM attempt),
         (SELECT count(*) + coalesce(sum(ends_at % 1000003), 0) FROM silence) + (SELECT count(*) FROM ack),
         coalesce((SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'facts'), 0)";
    Ok(from.prepare_cached(sql)?.query_row([], |row| {
        Ok(Pulse {
            polls: row.get(0)?,
            changes: row.get(1)?,
            alerts: row.get(2)?,
            deliveries: row.get(3)?,
            silences: row.get(4)?,
            supply: row.get(5)?,
        })
    })?)
}
