//! The list of upcoming unlocks, cliff and linear. Rows are selected and sorted in indexes; only the rows of the page are read
//! completely.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::ahead::{IS_CLIFF, upcoming_rows};
use rusqlite::types::Value;

use super::codec::{Conditions, all, counted, one};
use super::error::StoreFault;
use super::linear::{TokenLinear, each_linear, priced_token};
use super::list_limits::{CHUNK_ROWS, SizeLimit, json_bytes};
use super::query::upcoming_conditions;
use super::schedule_reader::ScheduleReader;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{
    FirstOf, LinearPosition, LinearRow, LinearUnlock, Listed, ListedUnlock, SumWindow, TokenSnapshot, UnlockCursor, UnlockKind,
    UnlockListFilter, UnlockPosition,
};

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

/// A linear unlock that can be on the page. Sorted by time, then slug, then like [`LinearPosition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct LinearPlace {
    sort_at: i64,
    /// The position of the token in the order of slugs.
    rank: usize,
    starts_at: i64,
    ends_at: i64,
    index: usize,
    token_no: i64,
}

/// A row of the page, before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// The number of the record.
    Cliff(i64),
    Linear(LinearPlace),
}

fn upcoming(from: &Transaction<'_>, filter: &UnlockListFilter, max_bytes: usize) -> Result<Listed<ListedUnlock>, StoreFault> {
    let limit = size(filter.unlocks.limit);
    let (places, total) = places(from, filter, limit)?;
    let page: Vec<Place> = places.into_iter().take(limit).collect();
    let (mut rows, mut bytes) = (Vec::new(), SizeLimit::new(max_bytes));
    for chunk in page.chunks(size(CHUNK_ROWS)) {
        for (_, row) in read_places(from, filter, chunk)? {
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
    let limit = size(filter.unlocks.limit);
    let after: Option<HashSet<Place>> = match filter.after {
        Some(_) => Some(places(from, filter, max)?.0.into_iter().collect()),
        None => None,
    };
    let (places, _) = places(from, &UnlockListFilter { after: None, ..filter.clone() }, max)?;
    let (mut listed, mut bytes) = (Listed { rows: Vec::new(), total: 0, is_cut: false }, SizeLimit::new(max_bytes));
    for chunk in places.chunks(size(CHUNK_ROWS)) {
        for (place, mut row) in read_places(from, filter, chunk)? {
            if !select(&mut row)? {
                continue;
            }
            let is_after = after.as_ref().is_none_or(|after| after.contains(&place));
            let is_on_page = is_after && listed.rows.len() < limit && !listed.is_cut;
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

/// Returns the first `last` matching unlocks of each type after the cursor, in the order of the list, and the number of all on all pages.
fn places(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<Place>, u64), StoreFault> {
    let has = |kind| filter.kind.is_none_or(|of| of == kind);
    let (cliffs, cliff_total) = if has(UnlockKind::Cliff) { cliffs(from, filter, last)? } else { (Vec::new(), 0) };
    let (linears, linear_total) = if has(UnlockKind::Linear) { linears(from, filter, last)? } else { (Vec::new(), 0) };
    Ok((merged(&cliffs, &linears).collect(), cliff_total + linear_total))
}

fn size(rows: u32) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// Returns the conditions for cliff unlocks, without the cursor.
fn cliff_conditions(filter: &UnlockListFilter) -> Conditions {
    let mut conditions = upcoming_conditions(&filter.unlocks);
    conditions.and_plain(IS_CLIFF).and_plain("r.token_no IS NOT NULL").and_some(
        "r.value * coalesce((SELECT d.value FROM drift d WHERE d.token_no = r.token_no), 1.0) >= ?",
        filter.min_value.map(|value| value - value.abs() * VALUE_TOLERANCE),
    );
    conditions
}

/// Returns the first `last` cliff unlocks after the cursor with their times and record numbers, and the number of all.
fn cliffs(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<(i64, i64)>, u64), StoreFault> {
    // Without statistics, SQLite would look up each token.
    let index = if filter.unlocks.tokens.is_none() { from.engine().indexed_by("record_window") } else { String::new() };
    let (sql, values) = cliff_conditions(filter).within(&format!("SELECT count(*) FROM record r {index}"), "");
    let total = one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0);
    Ok((first_cliffs(from, filter, last)?, total))
}

/// Returns the times and record numbers of the first `last` cliff unlocks after the cursor, by time, token, and key.
pub(super) fn first_cliffs(
    from: &Transaction<'_>,
    filter: &UnlockListFilter,
    last: usize,
) -> Result<Vec<(i64, i64)>, StoreFault> {
    let index = if filter.unlocks.tokens.is_none() { from.engine().indexed_by("record_window") } else { String::new() };
    let mut conditions = cliff_conditions(filter);
    match &filter.after {
        None => {}
        Some(UnlockCursor { sort_at, token, unlock: UnlockPosition::Cliff(key) }) => {
            let texts = [token.as_str(), key.as_str()].map(|text| Value::from(text.to_owned()));
            let values = [(*sort_at).into()].into_iter().chain(texts);
            // The first condition can use an index.
            conditions.and("r.starts_at >= ?", *sort_at).and_all("(r.starts_at, t.id, r.key) > (?, ?, ?)", values);
        }
        // At one instant, cliff unlocks come first.
        Some(UnlockCursor { sort_at, unlock: UnlockPosition::Linear(_), .. }) => {
            conditions.and("r.starts_at > ?", *sort_at);
        }
    }
    let (sql, values) = conditions.within(
        &format!("SELECT r.starts_at, r.no FROM record r {index} JOIN token t ON t.no = r.token_no"),
        &format!(" ORDER BY r.starts_at, t.id, r.key LIMIT {last}"),
    );
    all(&mut from.prepare(&sql)?, values, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the first `last` linear unlocks after the cursor, and the number of all.
fn linears(from: &Transaction<'_>, filter: &UnlockListFilter, last: usize) -> Result<(Vec<LinearPlace>, u64), StoreFault> {
    let window = filter.unlocks.window();
    let min_value = filter.min_value.map(|value| value - value.abs() * VALUE_TOLERANCE);
    let (mut first, mut total, mut rank, mut tied) = (FirstOf::new(last), 0, 0, Vec::new());
    each_linear(from, filter.unlocks.tokens.as_deref(), window, |of| {
        for (index, piece) in of.pieces {
            let amount = piece.amount.zip(piece.share_in(window)).map(|(amount, share)| amount * share);
            let value = amount.zip(of.price).map(|(amount, price)| amount * price.usd);
            if min_value.is_some_and(|min| value.is_none_or(|value| value < min)) {
                continue;
            }
            total += 1;
            let sort_at = piece.starts_at.max(window.at.timestamp_millis());
            let (starts_at, ends_at, token_no) = (piece.starts_at, piece.ends_at, of.token_no);
            let place = LinearPlace { sort_at, rank, starts_at, ends_at, index, token_no };
            match filter.after.as_ref().map_or(Ordering::Greater, |after| compare(&place, &of.id, after)) {
                Ordering::Less => {}
                Ordering::Equal => tied.push(place),
                Ordering::Greater => drop(first.push(place)),
            }
        }
        rank += 1;
    })?;
    for place in untied(from, filter, tied)? {
        first.push(place);
    }
    Ok((first.into_sorted(), total))
}

/// Compares the place of a linear unlock with a cursor. Equal if it depends on more than the index has.
fn compare(place: &LinearPlace, token: &str, after: &UnlockCursor) -> Ordering {
    match &after.unlock {
        UnlockPosition::Cliff(_) if place.sort_at >= after.sort_at => Ordering::Greater,
        UnlockPosition::Cliff(_) => Ordering::Less,
        UnlockPosition::Linear(of) => (place.sort_at, token, place.starts_at, place.ends_at).cmp(&(
            after.sort_at,
            after.token.as_str(),
            of.starts_at,
            of.ends_at,
        )),
    }
}

/// Returns those linear unlocks of one token, with the dates of the cursor, that are after it.
fn untied(from: &Transaction<'_>, filter: &UnlockListFilter, tied: Vec<LinearPlace>) -> Result<Vec<LinearPlace>, StoreFault> {
    let (Some(UnlockCursor { token, unlock: UnlockPosition::Linear(after), .. }), Some(first)) = (&filter.after, tied.first())
    else {
        return Ok(tied);
    };
    let linear = TokenLinear::read(from, first.token_no, token.as_str())?;
    let (_, positions) = unlocks_with_positions(&linear, filter.unlocks.window());
    let is_after = |place: &LinearPlace| positions.get(place.index).is_some_and(|position| position > after);
    Ok(tied.into_iter().filter(is_after).collect())
}

/// Returns the linear unlocks of a token that have not ended at the start of the window, and their positions.
fn unlocks_with_positions(linear: &TokenLinear, window: SumWindow) -> (Vec<LinearUnlock<'_>>, Vec<LinearPosition>) {
    let begin = window.at.timestamp_millis();
    let unlocks: Vec<LinearUnlock<'_>> = linear.unlocks().into_iter().filter(|of| of.piece.ends_at > begin).collect();
    let mut equal: HashMap<(i64, i64, bool, &str), u32> = HashMap::new();
    let mut positions = Vec::with_capacity(unlocks.len());
    for of in &unlocks {
        let (starts_at, ends_at, is_ahead, allocation) = (of.piece.starts_at, of.piece.ends_at, of.keys.is_none(), of.allocation);
        let next = equal.entry((starts_at, ends_at, is_ahead, allocation)).or_default();
        positions.push(LinearPosition { starts_at, ends_at, is_ahead, allocation: allocation.to_owned(), number: *next });
        *next += 1;
    }
    (unlocks, positions)
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
fn read_places(
    from: &Transaction<'_>,
    filter: &UnlockListFilter,
    page: &[Place],
) -> Result<Vec<(Place, ListedUnlock)>, StoreFault> {
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
    let mut row = |place: &Place| match place {
        Place::Cliff(no) => cliffs.remove(no).map(ListedUnlock::Cliff),
        Place::Linear(of) => linears.remove(&(of.token_no, of.index)).map(ListedUnlock::Linear),
    };
    Ok(page.iter().filter_map(|place| Some((*place, row(place)?))).collect())
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
    let (unlocks, positions) = unlocks_with_positions(&linear, window);
    let event = |key: &str| linear.events.iter().find(|tracked| tracked.key.as_str() == key).cloned();
    let row = |index: &usize| {
        let (of, position) = (unlocks.get(*index)?, positions.get(*index)?.clone());
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
            position,
        };
        Some((*index, row))
    };
    Ok(indices.iter().filter_map(row).collect())
}
