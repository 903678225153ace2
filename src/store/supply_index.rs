//! Fills the columns and rows for coming supply from the stored schedules, once after the migration that added them.

use rusqlite::params;

use super::codec::{all, one};
use super::commit::{EventIndex, SupplyRow};
use super::error::StoreFault;
use super::linear::schedule_feed;
use super::schedule::{self, Entry};
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{LinearSupply, Timestamp, Tracked};

/// The row of `meta` that says that everything is filled.
const MARK: &str = "supply_index";

impl Store {
    /// Fills the index of coming supply unless it is filled. Returns the number of schedules that were read.
    pub async fn fill_supply_index(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write("index the coming supply", move |to| fill(to, now)).await
    }
}

fn fill(to: &Transaction<'_>, now: Timestamp) -> Result<u64, StoreFault> {
    let mut mark = to.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    if one(&mut mark, [MARK], |row| Ok(row.get::<String>(0)?))?.is_some() {
        return Ok(0);
    }
    to.allow_long()?;
    let scopes: Vec<i64> =
        all(&mut *to.prepare_cached("SELECT scope_no FROM schedule ORDER BY scope_no")?, [], |row| Ok(row.get(0)?))?;
    for scope in &scopes {
        fill_token(to, *scope, now)?;
    }
    to.prepare_cached("INSERT INTO meta (key, value) VALUES (?1, '1')")?.execute([MARK])?;
    Ok(scopes.len() as u64)
}

fn fill_token(to: &Transaction<'_>, token: i64, now: Timestamp) -> Result<(), StoreFault> {
    let of = token.to_string();
    let events: Vec<Tracked> = schedule::of_token(to, token, &of)?;
    let entries: Vec<Entry<'_>> =
        events.iter().filter_map(|tracked| Some(Entry::of(tracked.key.as_str(), tracked.record.unlock()?))).collect();
    let mut update = to.prepare_cached(
        "UPDATE record SET nominal_at = ?3, amount = ?4 WHERE token_no = ?1 AND resource = 'unlock' AND key = ?2",
    )?;
    for entry in &entries {
        let index = EventIndex::of(entry.event, entry.event.interval(), now);
        if index.amount.is_some() || index.nominal_at.is_some() {
            update.execute(params![token, entry.key, index.nominal_at, index.amount])?;
        }
    }
    let (state, header) = schedule_feed(to, token, &of)?;
    let mut row = SupplyRow::default();
    row.set_schedule(&entries, now);
    row.set_header(LinearSupply::of(state.as_ref(), header.as_ref()), now);
    row.write(to, token)
}
