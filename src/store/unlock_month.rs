//! The unlocks of a month. Indexes give sums and sizes; only the schedules of the rows that a list shows are unpacked.

use std::collections::HashMap;

use super::ahead::{IndexedUnlock, Sizes, each_ahead, upcoming_rows};
use super::codec::all;
use super::error::StoreFault;
use super::linear::{IndexedLinear, each_linear};
use super::next_rates::next_rates;
use super::pages::watched_numbers;
use super::rows::token;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{
    FirstOf, Inclusion, Interval, LargestFirst, LinearBand, LinearPiece, MonthFilter, MonthUnlock, Precision, RateStep,
    SumWindow, SupplyAhead, Timestamp, Token, TokenId, UnlockDay, UnlockMonth, UnlockOrder, UnlockSum, UpcomingRow,
};

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;

impl Store {
    /// Returns the unlocks of the days of a filter.
    pub async fn unlock_month(&self, filter: MonthFilter) -> Result<UnlockMonth, StoreError> {
        self.read("read the unlocks of a month", move |from| unlock_month(from, &filter)).await
    }
}

/// The largest unlocks of a day or of the inexact ones, by value, then by row number.
type Largest = FirstOf<(LargestFirst, i64)>;

/// The contents of the indexes, before the tokens are read.
struct IndexedMonth<'f> {
    filter: &'f MonthFilter,
    window: SumWindow,
    sum: SupplyAhead,
    days: Vec<(UnlockSum, Largest)>,
    inexact: Largest,
    /// All unlocks that are counted, for the list.
    listed: Vec<IndexedUnlock>,
    /// The unlocks that a day can show, by row number.
    shown: HashMap<i64, IndexedUnlock>,
}

fn unlock_month(from: &Transaction<'_>, filter: &MonthFilter) -> Result<UnlockMonth, StoreFault> {
    let window = filter.window();
    let selected = selected_numbers(from, filter)?;
    let is_selected = |no: i64| usize::try_from(no).ok().and_then(|no| selected.get(no)).copied().unwrap_or(false);
    let mut month = IndexedMonth::new(filter, window);
    each_ahead(from, window.at, window.until, Sizes::Both, |unlock| {
        if unlock.is_cliff && unlock.token_no.is_some_and(is_selected) && filter.is_large_enough(unlock.value) {
            month.add(unlock);
        }
    })?;
    let ahead = filter.linear_window();
    let mut linear = IndexedBands::new(filter, ahead);
    each_linear(from, None, ahead, |of| {
        if is_selected(of.token_no) {
            linear.add(of);
        }
    })?;
    let (rates, rates_total) = match filter.rates {
        0 => (Vec::new(), 0),
        most => next_rates(from, ahead, is_selected, most)?,
    };
    let rows = month.rows(from)?;
    let IndexedMonth { sum, days, inexact, shown, .. } = month;
    let sum = SupplyAhead { linear: linear.sum, ..sum };
    let days: Vec<(UnlockSum, Vec<i64>)> = days.into_iter().map(|(sum, largest)| (sum, numbers(largest))).collect();
    let inexact = numbers(inexact);
    let bands: Vec<i64> = linear.largest.into_sorted().into_iter().map(|(_, token_no)| token_no).collect();
    let of_cells = days.iter().flat_map(|(_, day)| day).chain(&inexact);
    let of_cells = of_cells.filter_map(|no| shown.get(no)?.token_no);
    let tokens = tokens(from, of_cells.chain(bands.iter().copied()).collect())?;
    let cell = |no: &i64| {
        let unlock = shown.get(no)?;
        month_unlock(unlock, tokens.get(&unlock.token_no?)?)
    };
    let band = |token_no: &i64| Some(band(tokens.get(token_no)?, linear.bands.get(token_no)?, ahead));
    Ok(UnlockMonth {
        sum,
        days: days.iter().map(|(sum, day)| UnlockDay { sum: *sum, largest: day.iter().filter_map(cell).collect() }).collect(),
        inexact: inexact.iter().filter_map(cell).collect(),
        bands: bands.iter().filter_map(band).collect(),
        band_total: linear.total,
        rows,
        rates,
        rates_total,
    })
}

/// Returns whether each token is watched and selected, by token number.
fn selected_numbers(from: &Transaction<'_>, filter: &MonthFilter) -> Result<Vec<bool>, StoreFault> {
    let mut selected = watched_numbers(from, &filter.watch, filter.window())?;
    let Some(tokens) = &filter.tokens else { return Ok(selected) };
    let mut statement = from.prepare_cached("SELECT no FROM token WHERE id IN (SELECT value FROM json_each(?1))")?;
    let numbers = all(&mut statement, [super::codec::list(tokens.iter().map(TokenId::as_str))], |row| Ok(row.get::<i64>(0)?))?;
    let numbers: Vec<usize> = numbers.into_iter().filter_map(|no| usize::try_from(no).ok()).collect();
    let watched = std::mem::take(&mut selected);
    selected.resize(watched.len(), false);
    for no in numbers {
        if let Some(entry) = selected.get_mut(no) {
            *entry = watched.get(no).copied().unwrap_or(false);
        }
    }
    Ok(selected)
}

fn numbers(largest: Largest) -> Vec<i64> {
    largest.into_sorted().into_iter().map(|(_, no)| no).collect()
}

impl<'f> IndexedMonth<'f> {
    fn new(filter: &'f MonthFilter, window: SumWindow) -> Self {
        let day = |_: &SumWindow| (UnlockSum::default(), FirstOf::new(filter.per_day));
        Self {
            filter,
            window,
            sum: SupplyAhead::default(),
            days: filter.days.iter().map(day).collect(),
            inexact: FirstOf::new(filter.per_day),
            listed: Vec::new(),
            shown: HashMap::new(),
        }
    }

    fn add(&mut self, unlock: IndexedUnlock) {
        let piece = unlock.piece();
        let Some(inclusion) = piece.inclusion(self.window) else { return };
        // The window starts a millisecond before the first day, so that it includes unlocks at midnight. The month before ends at
        // midnight, and nothing of it can happen in these days.
        if inclusion == Inclusion::Inexact && unlock.ends_at <= self.window.at.timestamp_millis() + 1 {
            return;
        }
        self.sum.add_cliff(&piece, self.window);
        if self.filter.rows > 0 && inclusion == Inclusion::Counted {
            self.listed.push(unlock);
        }
        let largest = match inclusion {
            Inclusion::Inexact => &mut self.inexact,
            Inclusion::Counted => {
                // The days have no gaps, so the first that ends at or after the date has it.
                let index = self.filter.days.partition_point(|day| day.until.timestamp_millis() < unlock.nominal_at);
                let Some((sum, largest)) = self.days.get_mut(index) else { return };
                sum.add(piece.amount, piece.value);
                largest
            }
        };
        let dropped = largest.push((LargestFirst(unlock.value), unlock.no));
        if let Some((_, no)) = dropped {
            self.shown.remove(&no);
        }
        if dropped.is_none_or(|(_, no)| no != unlock.no) && self.filter.per_day > 0 {
            self.shown.insert(unlock.no, unlock);
        }
    }

    /// Reads a part of the list.
    fn rows(&mut self, from: &Transaction<'_>) -> Result<Vec<UpcomingRow>, StoreFault> {
        match self.filter.order {
            UnlockOrder::Date => self.listed.sort_by_key(|of| (of.nominal_at, LargestFirst(of.value), of.no)),
            UnlockOrder::Value => self.listed.sort_by_key(|of| (LargestFirst(of.value), of.nominal_at, of.no)),
            UnlockOrder::Share => self.listed.sort_by_key(|of| (LargestFirst(of.share), of.nominal_at, of.no)),
        }
        let part: Vec<i64> = self.listed.iter().skip(self.filter.offset).take(self.filter.rows).map(|of| of.no).collect();
        let mut rows: HashMap<i64, UpcomingRow> = upcoming_rows(from, part.iter().copied())?.into_iter().collect();
        Ok(part.iter().filter_map(|no| rows.remove(no)).collect())
    }
}

/// The linear unlocks of the selected tokens.
struct IndexedBands<'f> {
    filter: &'f MonthFilter,
    window: SumWindow,
    sum: UnlockSum,
    total: u64,
    /// By value, then by token number.
    largest: FirstOf<(LargestFirst, i64)>,
    bands: HashMap<i64, (UnlockSum, Vec<LinearPiece>)>,
}

impl<'f> IndexedBands<'f> {
    fn new(filter: &'f MonthFilter, window: SumWindow) -> Self {
        let (sum, largest) = (UnlockSum::default(), FirstOf::new(filter.bands));
        Self { filter, window, sum, total: 0, largest, bands: HashMap::new() }
    }

    fn add(&mut self, of: IndexedLinear) {
        let mut own = SupplyAhead::default();
        for (_, piece) in &of.pieces {
            own.add_linear(piece, of.price.map(|price| price.usd), self.window);
        }
        if !self.filter.is_large_enough(own.linear.known_value()) {
            return;
        }
        self.sum = self.sum.plus(own.linear);
        self.total += 1;
        let dropped = self.largest.push((LargestFirst(own.linear.known_value()), of.token_no));
        if let Some((_, token_no)) = dropped {
            self.bands.remove(&token_no);
        }
        if dropped.is_none_or(|(_, token_no)| token_no != of.token_no) && self.filter.bands > 0 {
            let pieces = of.pieces.into_iter().map(|(_, piece)| piece).collect();
            self.bands.insert(of.token_no, (own.linear, pieces));
        }
    }
}

/// Returns the tokens with these numbers.
fn tokens(from: &Transaction<'_>, mut numbers: Vec<i64>) -> Result<HashMap<i64, Token>, StoreFault> {
    numbers.sort_unstable();
    numbers.dedup();
    let mut statement = from.prepare_cached(
        "SELECT no, id, item, name, symbol FROM token WHERE no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
    )?;
    let numbers = serde_json::Value::from(numbers).to_string();
    Ok(all(&mut statement, [numbers], |row| Ok((row.get::<i64>(0)?, token(row, 1)?)))?.into_iter().collect())
}

fn month_unlock(unlock: &IndexedUnlock, token: &Token) -> Option<MonthUnlock> {
    let [start, end, nominal] = [unlock.starts_at, unlock.ends_at, unlock.nominal_at].map(Timestamp::from_timestamp_millis);
    // The length of the interval follows from its precision.
    let precision = match unlock.ends_at - unlock.starts_at {
        length if length <= 0 => Precision::Second,
        length if length <= HOUR_MILLIS => Precision::Hour,
        length if length <= DAY_MILLIS => Precision::Day,
        length if length <= 7 * DAY_MILLIS => Precision::Week,
        _ => Precision::Month,
    };
    let nominal = nominal.filter(|_| precision > Precision::Day);
    Some(MonthUnlock {
        token: token.clone(),
        interval: Interval { start: start?, end: end?, precision, nominal },
        amount: unlock.amount,
        value: unlock.value,
        share: unlock.share,
    })
}

fn band(token: &Token, (sum, pieces): &(UnlockSum, Vec<LinearPiece>), window: SumWindow) -> LinearBand {
    let at = |millis: Option<i64>, or: Timestamp| millis.and_then(Timestamp::from_timestamp_millis).unwrap_or(or);
    let start = at(pieces.iter().map(|piece| piece.starts_at).min(), window.at).max(window.at);
    let end = at(pieces.iter().map(|piece| piece.ends_at).max(), window.until).min(window.until);
    let changes = RateStep::all(pieces, window).into_iter().map(|(at, step)| (at, step.after > step.before)).collect();
    LinearBand { token: token.clone(), window: SumWindow { at: start, until: end }, sum: *sum, changes }
}
