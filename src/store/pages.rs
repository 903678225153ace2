//! Queries of the web pages: largest upcoming unlocks, firing alerts, the token list, and change detection.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::params;

use super::ahead::{Sizes, ahead_of, each_in_window, upcoming_rows};
use super::codec::{Millis, all, counted, one};
use super::error::StoreFault;
use super::rows::{ALERT_COLUMNS, alert, token};
use super::sql::Transaction;
use super::{Store, StoreError, schedule};
use model::time::LONGEST_INTERVAL;
use model::{
    Ahead, AheadFilter, AheadSums, FiringAlerts, FirstOf, Inclusion, LargestFirst, Pulse, SumWindow, Timestamp, Token,
    TokenFilter, TokenId, TokenList, TokenSort, TokenSummary, WEEKS, WeeksAhead,
};

impl Store {
    /// Returns the largest unlocks of a window, and the sums of all its unlocks.
    pub async fn largest_ahead(&self, filter: AheadFilter) -> Result<Ahead, StoreError> {
        self.read("read the largest unlocks ahead", move |from| largest_ahead(from, &filter)).await
    }

    /// Returns at most `limit` firing alerts, most severe first, and the number of firing alerts.
    pub async fn firing_alerts(&self, limit: u32) -> Result<FiringAlerts, StoreError> {
        self.read("read the firing alerts", move |from| firing_alerts(from, limit)).await
    }

    /// Returns one page of the token list.
    pub async fn token_list(&self, filter: TokenFilter) -> Result<TokenList, StoreError> {
        self.read("list tokens", move |from| token_list(from, &filter)).await
    }

    /// Returns the unlocks of each token in the coming weeks.
    pub async fn weeks_ahead(&self, tokens: Vec<TokenId>, now: Timestamp) -> Result<HashMap<TokenId, WeeksAhead>, StoreError> {
        self.read("read the weeks ahead", move |from| weeks_ahead(from, &tokens, now)).await
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
    let AheadFilter { window, by_share, limit } = *filter;
    let mut sums = AheadSums::default();
    // Ordered by size (largest first), then start, then row number.
    let mut largest: FirstOf<(LargestFirst, i64, i64)> = FirstOf::new(limit as usize);
    let sizes = if by_share { Sizes::Both } else { Sizes::Value };
    each_in_window(from, window.at, window, sizes, |row, inclusion| {
        let is_counted = inclusion == Inclusion::Counted;
        if row.value.is_some_and(|value| value > 0.0) {
            sums.add(is_counted, row.value);
        }
        let size = if by_share { row.share } else { row.value };
        if size.is_some_and(|size| size > 0.0) {
            largest.push((LargestFirst(size), row.starts_at, row.no));
        }
    })?;
    let places: Vec<(LargestFirst, i64, i64)> = largest.into_sorted();
    let places: HashMap<i64, (LargestFirst, i64)> = places.into_iter().map(|(size, at, no)| (no, (size, at))).collect();
    let mut rows = upcoming_rows(from, places.keys().copied())?;
    rows.sort_by(|(a, row), (b, other)| places.get(a).cmp(&places.get(b)).then_with(|| row.token.id.cmp(&other.token.id)));
    Ok(Ahead { rows: rows.into_iter().map(|(_, row)| row).collect(), sums })
}

fn firing_alerts(from: &Transaction<'_>, limit: u32) -> Result<FiringAlerts, StoreFault> {
    let mut firing = FiringAlerts::default();
    let indexed = from.engine().indexed_by("alert_state_severity");
    let counts = format!("SELECT severity, count(*) FROM alert {indexed} WHERE state = 'firing' GROUP BY severity");
    for (severity, count) in all(&mut *from.prepare_cached(&counts)?, [], |row| Ok((row.get::<i64>(0)?, counted(row.get(1)?))))? {
        match severity {
            3 => firing.critical = count,
            2 => firing.warning = count,
            _ => firing.other += count,
        }
    }
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a {indexed} LEFT JOIN token t ON t.no = a.token_no
         WHERE a.state = 'firing' ORDER BY a.severity DESC, a.updated_at DESC LIMIT ?1"
    );
    firing.alerts = all(&mut *from.prepare_cached(&sql)?, [limit], alert)?;
    Ok(firing)
}

/// The upcoming unlocks of a token within a window.
#[derive(Clone, Copy, Default)]
struct AheadOf {
    /// The value of counted unlocks, in USD.
    value: f64,
    /// The value of unlocks with an inexact date that may fall into the window, in USD.
    possible: f64,
    /// The largest share of market cap, in percent.
    share: f64,
    /// The start of the next unlock, in milliseconds since the epoch.
    next: Option<i64>,
}

fn token_list(from: &Transaction<'_>, filter: &TokenFilter) -> Result<TokenList, StoreFault> {
    let fitting = matching_tokens(from, &filter.text)?;
    // Needed for all tokens only if the list is sorted by it. Otherwise each row on the page reads its own.
    let is_by_ahead = matches!(filter.sort, TokenSort::Value | TokenSort::Share | TokenSort::Next);
    let ahead = if is_by_ahead { ahead_by_token(from, filter)? } else { AheadList::default() };
    let total = fitting.len() as u64;
    let order = order(from, filter.sort, fitting, &ahead)?;
    let mut rows = Vec::new();
    for no in order.into_iter().skip(filter.offset as usize).take(filter.limit as usize) {
        rows.extend(summary(from, no, filter)?);
    }
    Ok(TokenList { rows, total })
}

/// Returns the numbers of matching tokens, by name. Tokens without a name come first, by slug.
fn matching_tokens(from: &Transaction<'_>, text: &str) -> Result<Vec<i64>, StoreFault> {
    let text = text.trim().to_ascii_lowercase();
    let clause = if text.is_empty() {
        "?1 = ''"
    } else {
        "instr(lower(id), ?1) > 0 OR instr(lower(name), ?1) > 0 OR instr(lower(symbol), ?1) > 0"
    };
    let indexed = from.engine().indexed_by("token_name");
    let sql = format!("SELECT no FROM token {indexed} WHERE {clause} ORDER BY lower(name) NULLS FIRST, symbol NULLS FIRST, id");
    all(&mut *from.prepare_cached(&sql)?, [text], |row| Ok(row.get(0)?))
}

/// Upcoming unlocks indexed by token number. Numbers are consecutive, so a vector is smaller than a map.
#[derive(Default)]
struct AheadList(Vec<AheadOf>);

impl AheadList {
    fn of(&self, no: i64) -> AheadOf {
        usize::try_from(no).ok().and_then(|no| self.0.get(no)).copied().unwrap_or_default()
    }
}

fn ahead_by_token(from: &Transaction<'_>, filter: &TokenFilter) -> Result<AheadList, StoreFault> {
    let most: i64 = from.prepare_cached("SELECT coalesce(max(no), 0) FROM token")?.query_row([], |row| row.get(0))?;
    let mut ahead = AheadList(vec![AheadOf::default(); usize::try_from(most).unwrap_or(0) + 1]);
    each_in_window(from, filter.window.at, filter.window, Sizes::Both, |row, inclusion| {
        let is_counted = inclusion == Inclusion::Counted;
        let of = row.token_no.and_then(|no| ahead.0.get_mut(usize::try_from(no).ok()?));
        let Some(of) = of else { return };
        of.next = Some(of.next.map_or(row.starts_at, |next| next.min(row.starts_at)));
        *if is_counted { &mut of.value } else { &mut of.possible } += row.value.unwrap_or(0.0);
        of.share = of.share.max(row.share.unwrap_or(0.0));
    })?;
    Ok(ahead)
}

/// Sorts tokens, which are ordered by name. The sort is stable.
fn order(from: &Transaction<'_>, sort: TokenSort, mut tokens: Vec<i64>, ahead: &AheadList) -> Result<Vec<i64>, StoreFault> {
    let of = |no: i64| ahead.of(no);
    match sort {
        TokenSort::Name => {}
        TokenSort::Value => sort_descending(&mut tokens, |no| [of(no).value, of(no).possible]),
        TokenSort::Share => sort_descending(&mut tokens, |no| [of(no).share, 0.0]),
        TokenSort::Next => {
            // A token without an unlock in the window needs its own lookup.
            let mut later = from.prepare_cached(
                "SELECT min(starts_at) FROM record WHERE token_no = ?1 AND resource = 'unlock' AND starts_at > ?2",
            )?;
            let latest = ahead.0.iter().filter_map(|of| of.next).max().unwrap_or(0);
            let mut keyed: Vec<(i64, i64)> = Vec::with_capacity(tokens.len());
            for no in tokens {
                let at = match of(no).next {
                    Some(at) => Some(at),
                    None => later.query_row(params![no, latest], |row| row.get(0))?,
                };
                keyed.push((at.unwrap_or(i64::MAX), no));
            }
            keyed.sort_by_key(|(at, _)| *at);
            tokens = keyed.into_iter().map(|(_, no)| no).collect();
        }
        TokenSort::MarketCap => {
            let indexed = from.engine().indexed_by("token_market_cap");
            let sql = format!("SELECT no, market_cap FROM token {indexed} WHERE market_cap > 0");
            let sizes = all(&mut *from.prepare_cached(&sql)?, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let sizes: HashMap<i64, f64> = sizes.into_iter().collect();
            sort_descending(&mut tokens, |no| [sizes.get(&no).copied().unwrap_or_default(), 0.0]);
        }
    }
    Ok(tokens)
}

/// Sorts by two sizes, largest first. The sort is stable.
fn sort_descending(tokens: &mut Vec<i64>, sizes: impl Fn(i64) -> [f64; 2]) {
    let mut keyed: Vec<([f64; 2], i64)> = tokens.iter().map(|no| (sizes(*no), *no)).collect();
    keyed.sort_by(|([a, also_a], _), ([b, also_b], _)| b.total_cmp(a).then_with(|| also_b.total_cmp(also_a)));
    *tokens = keyed.into_iter().map(|(_, no)| no).collect();
}

fn summary(from: &Transaction<'_>, no: i64, filter: &TokenFilter) -> Result<Option<TokenSummary>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT id, item, name, symbol, listed FROM token WHERE no = ?1")?;
    let known = one(&mut statement, [no], |row| Ok((token(row, 0)?, row.get::<bool>(4)?)))?;
    let Some((token, listed)) = known else { return Ok(None) };
    let longest = LONGEST_INTERVAL.num_milliseconds() + 1;
    let mut statement = from.prepare_cached(
        "SELECT scope_no, key FROM record WHERE token_no = ?1 AND resource = 'unlock' AND starts_at > CAST(?2 AS BIGINT) - ?3
         AND (starts_at > ?2 OR ends_at > ?2) ORDER BY starts_at, key LIMIT 1",
    )?;
    let values = params![no, Millis(filter.window.at), longest];
    let next = one(&mut statement, values, |row| Ok((row.get(0)?, row.get::<String>(1)?)))?;
    let next = next.map(|(scope, key): (i64, _)| schedule::event(from, scope, &key, token.id.as_str())).transpose()?;
    let (ahead, weeks) = sums_ahead(from, no, filter.window)?;
    Ok(Some(TokenSummary { token, listed, next, ahead, weeks }))
}

/// Sums the unlocks of a token within a window, and in each of the coming weeks.
fn sums_ahead(from: &Transaction<'_>, no: i64, window: SumWindow) -> Result<(AheadSums, WeeksAhead), StoreFault> {
    const WEEK: i64 = TimeDelta::weeks(1).num_milliseconds();
    let begin = window.at.timestamp_millis();
    let last = window.until.timestamp_millis().max(begin + WEEK * WEEKS as i64);
    let (mut sums, mut weeks) = (AheadSums::default(), WeeksAhead::default());
    for unlock in ahead_of(from, no, begin, last)? {
        if let Some(inclusion) = unlock.piece().inclusion(window) {
            sums.add(inclusion == Inclusion::Counted, unlock.value);
        }
        // An inexact unlock whose nominal date has passed can come any time, so it counts in the first week.
        let week = usize::try_from((unlock.nominal_at - begin).max(0) / WEEK).unwrap_or(WEEKS);
        weeks.get_mut(week).into_iter().for_each(|sum| sum.add(unlock.value));
    }
    Ok((sums, weeks))
}

fn weeks_ahead(from: &Transaction<'_>, tokens: &[TokenId], now: Timestamp) -> Result<HashMap<TokenId, WeeksAhead>, StoreFault> {
    let mut number = from.prepare_cached("SELECT no FROM token WHERE id = ?1")?;
    let mut found = HashMap::new();
    for token in tokens {
        if let Some(no) = one(&mut number, [token.as_str()], |row| Ok(row.get(0)?))? {
            found.insert(token.clone(), sums_ahead(from, no, SumWindow { at: now, until: now })?.1);
        }
    }
    Ok(found)
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
         (SELECT count(*) + coalesce(sum(ends_at % 1000003), 0) FROM silence) + (SELECT count(*) FROM ack)";
    Ok(from.prepare_cached(sql)?.query_row([], |row| {
        Ok(Pulse {
            polls: row.get(0)?,
            changes: row.get(1)?,
            alerts: row.get(2)?,
            deliveries: row.get(3)?,
            silences: row.get(4)?,
        })
    })?)
}
