//! Stores a token's linear unlocks and price in `token_supply`, so that sums need not unpack its schedule.

use chrono::TimeDelta;
use rusqlite::params;

use super::CommitWriter;
use crate::codec::{Millis, millis, time, word};
use crate::error::StoreFault;
use crate::schedule::Entry;
use crate::sql::{Row, Transaction};
use crate::supply_pieces;
use model::{
    Endpoint, FeedUpdate, KnownSupply, LinearPiece, LinearSupply, LinearUnlock, ReferencePrice, Timestamp, time::LONGEST_INTERVAL,
};

/// The time for which ended linear unlocks are retained. An end that is exact to the month may not have passed yet. And later pages of a
/// list read from the instant of the first page, and find linear unlocks by position.
const ENDED_FOR: TimeDelta = TimeDelta::days(LONGEST_INTERVAL.num_days() + 1);

/// A row of `token_supply`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SupplyRow {
    pub(crate) price: Option<ReferencePrice>,
    pub(crate) known: KnownSupply,
    pub(crate) linear_until: Option<Timestamp>,
    pub(crate) linear: Vec<u8>,
    pub(crate) emission: Vec<u8>,
}

impl Default for SupplyRow {
    fn default() -> Self {
        Self { price: None, known: KnownSupply::None, linear_until: None, linear: Vec::new(), emission: Vec::new() }
    }
}

impl SupplyRow {
    /// The columns for [`Self::read`], from `token_supply AS s`.
    pub(crate) const COLUMNS: &str = "s.price, s.price_at, s.known, s.linear_until, s.linear, s.emission";

    /// Reads [`Self::COLUMNS`], starting at `first`. `of` names the token in errors.
    pub(crate) fn read(row: &Row<'_>, first: usize, of: &str) -> Result<Self, StoreFault> {
        let usd: Option<f64> = row.get(first)?;
        let (at, known): (Option<Millis>, String) = (row.get(first + 1)?, row.get(first + 2)?);
        let pieces = |column: usize| -> Result<Vec<u8>, StoreFault> {
            let packed: Vec<u8> = row.get(column)?;
            if supply_pieces::is_valid(&packed) {
                return Ok(packed);
            }
            Err(StoreFault::BadRow { what: format!("the list of linear unlocks of {of} cannot be unpacked"), source: None })
        };
        Ok(Self {
            price: usd.map(|usd| ReferencePrice { usd, at: time(at) }),
            known: word("the known supply", of, &known, KnownSupply::parse)?,
            linear_until: time(row.get(first + 3)?),
            linear: pieces(first + 4)?,
            emission: pieces(first + 5)?,
        })
    }

    /// Returns all linear unlocks.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = LinearPiece> + '_ {
        self.pieces_of_schedule().chain(supply_pieces::unpack(&self.emission))
    }

    /// Returns the linear unlocks of the schedule.
    pub(crate) fn pieces_of_schedule(&self) -> impl Iterator<Item = LinearPiece> + '_ {
        supply_pieces::unpack(&self.linear)
    }

    /// Replaces what follows from the events of a schedule.
    pub(crate) fn set_schedule(&mut self, entries: &[Entry<'_>], now: Timestamp) {
        self.price = ReferencePrice::latest(entries.iter().map(|entry| entry.event));
        let linear = LinearUnlock::of_schedule(entries.iter().map(|entry| (entry.key, entry.event)));
        self.linear = supply_pieces::pack(linear.into_iter().map(|unlock| unlock.piece), now - ENDED_FOR);
    }

    /// Replaces what follows from the header of the feed of unlock events.
    pub(crate) fn set_header(&mut self, linear: LinearSupply, now: Timestamp) {
        (self.known, self.linear_until) = (linear.coverage.known, linear.coverage.linear_until);
        self.emission = supply_pieces::pack(linear.emission, now - ENDED_FOR);
    }

    /// Writes the row of a token.
    pub(crate) fn write(&self, to: &Transaction<'_>, token: i64) -> Result<(), StoreFault> {
        to.prepare_cached(
            "INSERT INTO token_supply (token_no, price, price_at, known, linear_until, linear, emission)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (token_no) DO UPDATE SET price = excluded.price,
             price_at = excluded.price_at, known = excluded.known, linear_until = excluded.linear_until,
             linear = excluded.linear, emission = excluded.emission",
        )?
        .execute(params![
            token,
            self.price.map(|price| price.usd),
            millis(self.price.and_then(|price| price.at)),
            self.known.as_str(),
            millis(self.linear_until),
            self.linear,
            self.emission,
        ])?;
        Ok(())
    }
}

impl CommitWriter<'_> {
    /// Writes the row of a token if it changed. `entries` is its new schedule; `None` if the schedule did not change.
    pub(super) fn supply(&mut self, update: &FeedUpdate, token: i64, entries: Option<&[Entry<'_>]>) -> Result<(), StoreFault> {
        let is_of_schedule = update.id.endpoint == Endpoint::UnlockEvents;
        if entries.is_none() && !is_of_schedule {
            return Ok(());
        }
        let known = self.known_supply(token)?;
        let mut row = known.clone().unwrap_or_default();
        if let Some(entries) = entries {
            row.set_schedule(entries, self.at);
        }
        let is_first = is_of_schedule && row.known == KnownSupply::None && update.state.baseline_at.is_some();
        if is_of_schedule && (update.header.is_some() || is_first) {
            row.set_header(LinearSupply::of(Some(&update.state), update.header.as_ref()), self.at);
        }
        if known.as_ref() != Some(&row) {
            row.write(self.to, token)?;
            self.supplies.insert(token, Some(row));
        }
        Ok(())
    }
}
