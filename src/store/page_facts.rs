//! The coming supply of all tokens in memory, for web pages, many of which sum over it.
//!
//! Only a change of a schedule, a price, or the list of tokens changes these facts. Each transaction that changes them increments a
//! counter in the database. A page reads the counter in its own transaction and uses the kept facts only if they have the same count, so
//! they always belong to its snapshot. The daemon never uses them.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;

use super::ahead::{IndexedUnlock, Sizes, scan_ahead};
use super::codec::one;
use super::commit::SupplyRow;
use super::error::StoreFault;
use super::sql::Transaction;
use model::Timestamp;

/// The tables with these facts.
const TABLES: [&str; 4] = ["record", "drift", "token_supply", "token"];

/// The longest window for which facts are kept.
const LONGEST_WINDOW: TimeDelta = TimeDelta::days(100);

/// The unlocks that are kept start and end in this time around the start of a window.
const KEPT_BEFORE: TimeDelta = TimeDelta::days(35);
const KEPT_AFTER: TimeDelta = TimeDelta::days(130);

/// The time after which the unlocks are read again, because the start of the windows has moved.
const MAX_SHIFT: TimeDelta = TimeDelta::days(1);

/// The facts that the readers of pages share.
#[derive(Debug, Default)]
pub(super) struct FactsCache(Mutex<Option<Arc<PageFacts>>>);

/// The facts at one count.
#[derive(Debug)]
pub(super) struct PageFacts {
    count: i64,
    /// The start of the window for which the unlocks were read.
    base: Timestamp,
    unlocks: Vec<KeptUnlock>,
    /// All tokens, by slug.
    pub(super) supplies: Vec<TokenSupplyRow>,
}

/// An unlock in two thirds of the memory. `NAN` stands for an unknown number, and 0 for no token: numbers begin at 1.
#[derive(Clone, Copy, Debug)]
struct KeptUnlock {
    no: i64,
    token_no: i64,
    starts_at: i64,
    ends_at: i64,
    nominal_at: i64,
    amount: f64,
    value: f64,
    share: f64,
    is_cliff: bool,
}

impl KeptUnlock {
    fn of(unlock: &IndexedUnlock) -> Self {
        let IndexedUnlock { no, token_no, starts_at, ends_at, nominal_at, amount, value, share, is_cliff } = *unlock;
        let number = |known: Option<f64>| known.unwrap_or(f64::NAN);
        Self {
            no,
            token_no: token_no.unwrap_or(0),
            starts_at,
            ends_at,
            nominal_at,
            amount: number(amount),
            value: number(value),
            share: number(share),
            is_cliff,
        }
    }

    fn unlock(&self) -> IndexedUnlock {
        let Self { no, token_no, starts_at, ends_at, nominal_at, amount, value, share, is_cliff } = *self;
        let known = |number: f64| Some(number).filter(|number| !number.is_nan());
        IndexedUnlock {
            no,
            token_no: Some(token_no).filter(|no| *no != 0),
            starts_at,
            ends_at,
            nominal_at,
            amount: known(amount),
            value: known(value),
            share: known(share),
            is_cliff,
        }
    }
}

/// The supply of a token. `None` if its schedule was never read.
#[derive(Debug)]
pub(super) struct TokenSupplyRow {
    pub(super) no: i64,
    /// The slug.
    pub(super) id: String,
    pub(super) supply: Option<SupplyRow>,
}

#[cfg(test)]
impl FactsCache {
    pub(super) fn is_filled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl PageFacts {
    fn covers(&self, begin: Timestamp, until: Timestamp) -> bool {
        begin >= self.base - KEPT_BEFORE && until <= self.base + KEPT_AFTER
    }

    /// Visits each unlock that starts no later than `until` and ends after `begin`, in milliseconds since the epoch.
    pub(super) fn each_ahead(&self, begin: i64, until: i64, visit: impl FnMut(IndexedUnlock)) {
        let ahead = self.unlocks.iter().filter(|unlock| unlock.ends_at > begin && unlock.starts_at <= until);
        ahead.map(KeptUnlock::unlock).for_each(visit);
    }

    fn read(from: &Transaction<'_>, count: i64, base: Timestamp) -> Result<Self, StoreFault> {
        let mut unlocks = Vec::new();
        scan_ahead(from, base - KEPT_BEFORE, base + KEPT_AFTER, Sizes::Both, |unlock| unlocks.push(KeptUnlock::of(&unlock)))?;
        unlocks.shrink_to_fit();
        let mut supplies = Vec::new();
        scan_supplies(from, |row| supplies.push(row))?;
        supplies.shrink_to_fit();
        Ok(Self { count, base, unlocks, supplies })
    }
}

/// Returns whether a statement writes to a table with these facts.
pub(super) fn is_changed_by(sql: &str) -> bool {
    let mut words = sql.split_ascii_whitespace();
    let verb = words.find(|word| matches!(*word, "INSERT" | "UPDATE" | "DELETE"));
    let table = match verb {
        Some("INSERT") => words.find(|word| *word == "INTO").and_then(|_| words.next()),
        Some("UPDATE") => words.next(),
        Some("DELETE") => words.nth(1),
        _ => None,
    };
    table.is_some_and(|table| TABLES.contains(&table.trim_matches('"')))
}

/// Increments the counter, so that pages read again after the transaction.
pub(super) fn count_change(to: &Transaction<'_>) -> Result<(), StoreFault> {
    let sql = "INSERT INTO meta (key, value) VALUES ('facts', '1')
         ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)";
    Ok(to.prepare_cached(sql)?.execute([])?)
}

/// Returns the current facts. `None` for readers that keep none, and for windows that the facts do not cover.
pub(super) fn current(from: &Transaction<'_>, begin: Timestamp, until: Timestamp) -> Result<Option<Arc<PageFacts>>, StoreFault> {
    let Some(FactsCache(cache)) = from.facts() else { return Ok(None) };
    // Other windows, such as the months of a calendar, begin at any time, and only use what is there.
    let begins_now = from.keeps_facts() && until - begin <= LONGEST_WINDOW;
    let mut kept = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let known =
        kept.as_ref().filter(|kept| kept.covers(begin, until)).filter(|kept| !begins_now || begin - kept.base < MAX_SHIFT);
    let base = match known {
        Some(known) => known.base,
        None if begins_now => begin,
        None => return Ok(None),
    };
    let mut counter = from.prepare_cached("SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'facts'")?;
    let count: i64 = one(&mut counter, [], |row| Ok(row.get(0)?))?.unwrap_or_default();
    if let Some(known) = known.filter(|known| known.count == count) {
        return Ok(Some(known.clone()));
    }
    // Before reading, so that the memory is only needed once.
    *kept = None;
    let facts = Arc::new(PageFacts::read(from, count, base)?);
    *kept = Some(facts.clone());
    Ok(Some(facts))
}

/// Visits the supply of each token, by slug.
pub(super) fn each_supply(
    from: &Transaction<'_>,
    begin: Timestamp,
    until: Timestamp,
    mut visit: impl FnMut(&TokenSupplyRow),
) -> Result<(), StoreFault> {
    match current(from, begin, until)? {
        Some(facts) => facts.supplies.iter().for_each(visit),
        None => scan_supplies(from, |row| visit(&row))?,
    }
    Ok(())
}

fn scan_supplies(from: &Transaction<'_>, mut each: impl FnMut(TokenSupplyRow)) -> Result<(), StoreFault> {
    let sql = format!(
        "SELECT t.no, t.id, s.token_no IS NOT NULL, {} FROM token t LEFT JOIN token_supply s ON s.token_no = t.no ORDER BY t.id",
        SupplyRow::COLUMNS
    );
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (no, id): (i64, String) = (row.get(0)?, row.get(1)?);
        let supply = if row.get(2)? { Some(SupplyRow::read(&row, 3, &id)?) } else { None };
        each(TokenSupplyRow { no, id, supply });
    }
    Ok(())
}
