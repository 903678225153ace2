//! The list of upcoming unlocks, cliff and linear. Rows are selected and sorted in indexes; only the rows of the page are read
//! completely.

use std::collections::HashMap;

use super::ahead::{IS_CLIFF, upcoming_rows};
use super::codec::{Conditions, all, counted, one};
use super::error::StoreFault;
use super::linear::{TokenLinear, each_linear, priced_token};
use super::list_limits::{CHUNK_ROWS, SizeLimit, json_bytes};
use super::query::upcoming_conditions;
use super::schedule_reader::ScheduleReader;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{FirstOf, LinearRow, LinearUnlock, Listed, ListedUnlock, SumWindow, TokenSnapshot, UnlockKind, UnlockListFilter};

/// The relative error of the values in the index.
const VALUE_TOLERANCE: f64 = 1e-8;

impl Store {
    /// Returns a page of the upcoming unlocks, and the number of those on all pages.
    pub async fn upcoming(&self, filter: UnlockListFilter) -> Result<Listed<ListedUnlock>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read upcoming unlocks", move |from| upcoming(from, &filter, max_bytes)).await
    }

    /// Like [`Self::upcoming`], with only the unlocks for which `select` returns `true`. It sees the first `max` unlocks of each type, one
    /// chunk at a time, each with the schedule of its token if `with_schedules` is set.
    pub async fn select_upcoming(
        &self,
        filter: UnlockListFilter,
        max: usize,
        with_schedules: bool,
        mut select: impl FnMut(&mut ListedUnlock, Option<&TokenSnapshot>) -> bool + Send + 'static,
    ) -> Result<Listed<ListedUnlock>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("select upcoming unlocks", move |from| {
            let mut schedules = ScheduleReader::new(from, with_schedules);
            let select = |row: &mut ListedUnlock| {
                let id = row.token().id.clone();
                Ok(select(row, schedules.of(&id)?))
            };
            select_upcoming(from, &filter, max, max_bytes, select)
        })
        .await
    }
}

/// A linear unlock that can be on the page. Sorted by time, then slug, then the order of the token's unlocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LinearPlace {
    sort_at: i64,
    /// The position of the token in the order of slugs.
    rank: usize,
    index: usize,
    token_no: i64,
}

/// A row of the page, before it is read.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The number of the record.
    Cliff(i64),
    Linear(LinearPlace),
}

fn upcoming(from: &Transaction<'_>, filter: &UnlockListFilter, max_bytes: usize) -> Result<Listed<ListedUnlock>, StoreFault> {
    let (offset, limit) = (size(filter.offset), size(filter.unlocks.limit));
    let (places, total) = places(from, filter, offset.saturating_add(limit))?;
    let page: Vec<Place> = places.into_iter().skip(offset).take(limit).collect();
    let (mut rows, mut bytes) = (Vec::new(), SizeLimit::new(max_bytes));
    for chunk in page.chunks(size(CHUNK_ROWS)) {
        for row in read_places(from, filter, chunk)? {
            if !bytes.take(row_bytes(&row)) {
                return Ok(Listed { rows, total, is_cut: true });
            }
            rows.push(row);
        }
    }
    Ok(Listed { rows, total, is_cut: false })
}

fn select_upcoming(
    from: &Transaction<'_>,
    filter: &UnlockListFilter,
    max: usize,
    max_bytes: usize,
    mut select: impl FnMut(&mut ListedUnlock) -> Result<bool, StoreFault>,
) -> Result<Listed<ListedUnlock>, StoreFault> {
    let (offset, limit) = (u64::from(filter.offset), size(filter.unlocks.limit));
    let (places, _) = places(from, filter, max)?;
    let (mut listed, mut bytes) = (Listed { rows: Vec::new(), total: 0, is_cut: false }, SizeLimit::new(max_bytes));
    for chunk in places.chunks(size(CHUNK_ROWS)) {
        for mut row in read_places(from, filter, chunk)? {
            if !select(&mut row)? {
                continue;
            }
            let is_on_page = listed.total >= offset && listed.rows.len() < limit && !listed.is_cut;
            listed.total += 1;
            if is_on_page && bytes.take(row_bytes(&row)) {
                listed.rows.push(row);
            } else if is_on_page {
                listed.is_cut = true;
            }
        }
    }
    Ok(listed)
}

/// Returns the approximate size of a row: that of its event as JSON.
fn row_bytes(row: &ListedUnlock) -> usize {
    row.event().map_or(0, |event| json_bytes(&event.record))
}

/// Returns the first `last` matching unlocks of each type, in the order of the list, and the number of all.
fn places(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<Place>, u64), StoreFault> {
    let has = |kind| filter.kind.is_none_or(|of| of == kind);
    let (cliffs, cliff_total) = if has(UnlockKind::Cliff) { cliffs(from, filter, last)? } else { (Vec::new(), 0) };
    let (linears, linear_total) = if has(UnlockKind::Linear) { linears(from, filter, last)? } else { (Vec::new(), 0) };
    Ok((merged(&cliffs, &linears).collect(), cliff_total + linear_total))
}

fn size(rows: u32) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// Returns the conditions for cliff unlocks.
fn cliff_conditions(filter: &UnlockListFilter) -> Conditions {
    let mut conditions = upcoming_conditions(&filter.unlocks);
    conditions.and_plain(IS_CLIFF).and_plain("r.token_no IS NOT NULL").and_some(
        "r.value * coalesce((SELECT d.value FROM drift d WHERE d.token_no = r.token_no), 1.0) >= ?",
        filter.min_value.map(|value| value - value.abs() * VALUE_TOLERANCE),
    );
    conditions
}

/// Returns the first `last` cliff unlocks with their times and record numbers, and the number of all.
fn cliffs(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<(i64, i64)>, u64), StoreFault> {
    // Without statistics, SQLite would look up each token.
    let index = if filter.unlocks.tokens.is_none() { from.engine().indexed_by("record_window") } else { String::new() };
    let (sql, values) = cliff_conditions(filter).within(&format!("SELECT count(*) FROM record r {index}"), "");
    let total = one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0);
    Ok((first_cliffs(from, filter, last)?, total))
}

/// Returns the times and record numbers of the first `last` cliff unlocks, by time, token, and key.
pub(super) fn first_cliffs(
    from: &Transaction<'_>,
    filter: &UnlockListFilter,
    last: usize,
) -> Result<Vec<(i64, i64)>, StoreFault> {
    let index = if filter.unlocks.tokens.is_none() { from.engine().indexed_by("record_window") } else { String::new() };
    let (sql, values) = cliff_conditions(filter).within(
        &format!("SELECT r.starts_at, r.no FROM record r {index} JOIN token t ON t.no = r.token_no"),
        &format!(" ORDER BY r.starts_at, t.id, r.key LIMIT {last}"),
    );
    all(&mut from.prepare(&sql)?, values, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the first `last` linear unlocks, and the number of all.
fn linears(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<LinearPlace>, u64), StoreFault> {
    let window = filter.unlocks.window();
    let min_value = filter.min_value.map(|value| value - value.abs() * VALUE_TOLERANCE);
    let (mut first, mut total, mut rank) = (FirstOf::new(last), 0, 0);
    each_linear(from, filter.unlocks.tokens.as_deref(), window, |of| {
        for (index, piece) in of.pieces {
            let amount = piece.amount.zip(piece.share_in(window)).map(|(amount, share)| amount * share);
            let value = amount.zip(of.price).map(|(amount, price)| amount * price.usd);
            if min_value.is_some_and(|min| value.is_none_or(|value| value < min)) {
                continue;
            }
            total += 1;
            let sort_at = piece.starts_at.max(window.at.timestamp_millis());
            first.push(LinearPlace { sort_at, rank, index, token_no: of.token_no });
        }
        rank += 1;
    })?;
    Ok((first.into_sorted(), total))
}

/// Returns both lists as one, by time. At one instant, cliff unlocks come first.
fn merged<'p>(cliffs: &'p [(i64, i64)], linears: &'p [LinearPlace]) -> impl Iterator<Item = Place> + 'p {
    let (mut cliffs, mut linears) = (cliffs.iter().peekable(), linears.iter().peekable());
    std::iter::from_fn(move || {
        let is_cliff = match (cliffs.peek(), linears.peek()) {
            (Some((at, _)), Some(linear)) => *at <= linear.sort_at,
            (cliff, _) => cliff.is_some(),
        };
        match is_cliff {
            true => cliffs.next().map(|(_, no)| Place::Cliff(*no)),
            false => linears.next().map(|place| Place::Linear(*place)),
        }
    })
}

/// Reads the rows of a page.
fn read_places(from: &Transaction<'_>, filter: &UnlockListFilter, page: &[Place]) -> Result<Vec<ListedUnlock>, StoreFault> {
    let numbers = page.iter().filter_map(|place| if let Place::Cliff(no) = place { Some(*no) } else { None });
    let mut cliffs: HashMap<i64, _> = upcoming_rows(from, numbers)?.into_iter().collect();
    let mut of_tokens: HashMap<i64, Vec<usize>> = HashMap::new();
    for place in page {
        if let Place::Linear(of) = place {
            of_tokens.entry(of.token_no).or_default().push(of.index);
        }
    }
    let mut linears: HashMap<(i64, usize), LinearRow> = HashMap::new();
    for (token_no, indices) in of_tokens {
        let rows = linear_rows(from, token_no, &indices, filter.unlocks.window())?;
        linears.extend(rows.into_iter().map(|(index, row)| ((token_no, index), row)));
    }
    let row = |place: &Place| match place {
        Place::Cliff(no) => cliffs.remove(no).map(ListedUnlock::Cliff),
        Place::Linear(of) => linears.remove(&(of.token_no, of.index)).map(ListedUnlock::Linear),
    };
    Ok(page.iter().filter_map(row).collect())
}

/// Reads some linear unlocks of a token, given by their positions among the ones that have not ended.
fn linear_rows(
    from: &Transaction<'_>,
    token_no: i64,
    indices: &[usize],
    window: SumWindow,
) -> Result<Vec<(usize, LinearRow)>, StoreFault> {
    let Some((token, read, price)) = priced_token(from, token_no)? else { return Ok(Vec::new()) };
    let linear = TokenLinear::read(from, token_no, token.id.as_str())?;
    let begin = window.at.timestamp_millis();
    let unlocks: Vec<LinearUnlock<'_>> = linear.unlocks().into_iter().filter(|of| of.piece.ends_at > begin).collect();
    let event = |key: &str| linear.events.iter().find(|tracked| tracked.key.as_str() == key).cloned();
    let row = |index: &usize| {
        let of = unlocks.get(*index)?;
        let row = LinearRow {
            token: token.clone(),
            read_at: read.last,
            starts_at: of.starts_at()?,
            ends_at: of.ends_at()?,
            is_end_known: of.is_end_known,
            precision: of.precision,
            allocation: of.allocation.to_owned(),
            event: of.keys.and_then(|(first, _)| event(first)),
            per_day: of.piece.per_day(),
            amount: of.piece.amount.zip(of.piece.share_in(window)).map(|(amount, share)| amount * share),
            price,
        };
        Some((*index, row))
    };
    Ok(indices.iter().filter_map(row).collect())
}
