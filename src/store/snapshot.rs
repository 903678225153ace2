//! A read-only view of the daemon's database for the data service.
//!
//! Uses separate connections, so that heavy use of the mirror does not delay the cycle. Data that was never polled has
//! [`Coverage::NeverRead`], which differs from an empty list.

use std::path::Path;
use std::sync::Arc;

use rusqlite::params;
use serde::de::DeserializeOwned;

use super::codec::{Millis, all, from_json, json, millis, one};
use super::cycle::investors;
use super::error::StoreFault;
use super::facts::{Coverage, DateRange, FactsError, SupplyFacts};
use super::open::{DatabaseLocation, reader_of};
use super::readers::ReaderPool;
use super::rows::token;
use super::sql::{Engine, Row, SqlError, Transaction};
use super::{StoreError, schedule};
use model::{Endpoint, Record, Resource, Timestamp, Tracked, wire};

/// The maximum number of idle readers kept open. Load can open more.
const MAX_IDLE_READERS: usize = 2;

/// The maximum number of connections to a server.
const MAX_SERVER_READERS: usize = 4;

/// The daemon's database, read-only. Share it in an `Arc`. All calls block.
#[derive(Debug)]
pub struct Snapshot(ReaderPool);

impl Snapshot {
    /// Opens a database file, which another process may be writing.
    ///
    /// # Errors
    ///
    /// Fails if the file is missing, is not a daemon database, or has another schema.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_in(&DatabaseLocation::File(path.to_owned()))
    }

    /// Opens a database file or a database on a server.
    pub fn open_in(place: &DatabaseLocation) -> Result<Self, StoreError> {
        place.check_current()?;
        let path = place.name();
        let pool = match place {
            DatabaseLocation::File(_) => ReaderPool::new(path, reader_of(place, &Arc::default()), MAX_IDLE_READERS),
            DatabaseLocation::Server(_) => ReaderPool::new(path, reader_of(place, &Arc::default()), MAX_SERVER_READERS).bounded(),
        };
        // Connect now, so that an unreadable file fails at once.
        pool.with(|_| ()).map_err(|error| cannot_open(error, path))?;
        Ok(Self(pool))
    }

    /// Runs `read` on one consistent snapshot.
    pub fn read<T, E: From<FactsError>>(&self, read: impl FnOnce(&SnapshotView<'_>) -> Result<T, E>) -> Result<T, E> {
        let path = self.0.path();
        let response = self.0.with(|connection| {
            let view = connection.read(false, |transaction| Ok(read(&SnapshotView { from: transaction, path })));
            view.unwrap_or_else(|fault| Err(FactsError::from(fault.during("start a read transaction", path)).into()))
        });
        response.map_err(|error| FactsError::from(cannot_open(error, path)))?
    }
}

fn cannot_open(error: SqlError, path: &Path) -> StoreError {
    StoreFault::from(error).during("open the snapshot", path)
}

/// One consistent snapshot of the data.
#[derive(Debug)]
pub struct SnapshotView<'a> {
    from: &'a Transaction<'a>,
    path: &'a Path,
}

impl SnapshotView<'_> {
    /// Returns a number that grows with every poll, for cache invalidation.
    pub fn generation(&self) -> Result<i64, FactsError> {
        self.reading("read the last poll", |from| {
            // The sequence keeps its value when the poll log is pruned.
            let sql = if from.engine() == Engine::Postgres {
                "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM poll_no_seq"
            } else {
                "SELECT seq FROM sqlite_sequence WHERE name = 'poll'"
            };
            Ok(from.prepare_cached(sql)?.query_optional([], |row| row.get(0))?.unwrap_or(0))
        })
    }

    fn reading<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
    ) -> Result<T, FactsError> {
        read(self.from).map_err(|fault| fault.during(doing, self.path).into())
    }
}

/// Returns the endpoint that supplies a resource and its header.
fn endpoint_of(resource: Resource) -> Endpoint {
    match resource {
        Resource::Unlock => Endpoint::UnlockEvents,
        Resource::Burn => Endpoint::Burn,
        Resource::Buyback => Endpoint::Buyback,
        Resource::Emission => Endpoint::DailyEmission,
        Resource::Allocation => Endpoint::Allocations,
        Resource::Funding => Endpoint::Investors,
    }
}

/// Returns a token's schedule, empty if the token is unknown.
fn schedule_of(from: &Transaction<'_>, owner: &str) -> Result<Vec<Tracked>, StoreFault> {
    let no = one(&mut *from.prepare_cached("SELECT no FROM token WHERE id = ?1")?, [owner], |row| Ok(row.get::<i64>(0)?))?;
    no.map_or_else(|| Ok(Vec::new()), |no| schedule::of_token(from, no, owner))
}

/// Moves undated events to the front, like SQL does.
fn undated_first(mut schedule: Vec<Tracked>) -> Vec<Tracked> {
    let dated = schedule.iter().take_while(|tracked| tracked.record.interval().is_some()).count();
    schedule.rotate_left(dated);
    schedule
}

/// Converts a record to the type of the caller.
fn same<T: DeserializeOwned>(of: &str, record: &Record) -> Result<T, StoreFault> {
    from_json("a record", of, &json("a record", record)?)
}

impl SupplyFacts for SnapshotView<'_> {
    fn coverage(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Coverage, FactsError> {
        self.reading("read the coverage of a feed", |from| {
            let mut statement = from.prepare_cached(
                "SELECT read_at FROM feed WHERE endpoint = ?1
                     AND token_no = CASE WHEN CAST(?2 AS TEXT) IS NULL THEN 0 ELSE (SELECT no FROM token WHERE id = ?2) END",
            )?;
            let read_at: Option<Option<Millis>> =
                statement.query_optional(params![endpoint.as_str(), token], |row| row.get(0))?;
            Ok(read_at.flatten().map_or(Coverage::NeverRead, |Millis(at)| Coverage::ReadAt(at)))
        })
    }

    fn shows_rate_changes(&self, token: &str, events: &[wire::UnlockEvent]) -> Result<bool, FactsError> {
        // Only API version 1 includes rate changes, and only version 1 omits the listing method.
        if !events.iter().any(|event| event.listed_method.get().is_some()) {
            return Ok(true);
        }
        // They may also have been read in addition to the cliffs of a newer version.
        self.reading("read the version of a schedule", |from| {
            let mut statement = from.prepare_cached(
                "SELECT 1 FROM feed WHERE endpoint = 'unlock_events' AND token_no = (SELECT no FROM token WHERE id = ?1)
                     AND CAST(header ->> '$.segmentsRead.version' AS TEXT) = '1'",
            )?;
            let found: Option<i64> = statement.query_optional([token], |row| row.get(0))?;
            Ok(found.is_some())
        })
    }

    fn token(&self, id: &str) -> Result<Option<wire::TokenItem>, FactsError> {
        self.reading("read a token", |from| {
            // A token that left the list is unknown, as it is at the source.
            let mut statement =
                from.prepare_cached("SELECT id, item, name, symbol FROM token WHERE id = ?1 AND (listed = 1 OR item IS NULL)")?;
            one(&mut statement, [id], |row| Ok(token(row, 0)?.item))
        })
    }

    fn tokens(&self) -> Result<Vec<wire::TokenItem>, FactsError> {
        self.reading("list the tokens", |from| {
            let mut statement = from.prepare_cached("SELECT id, item, name, symbol FROM token WHERE listed = 1 ORDER BY id")?;
            all(&mut statement, [], |row| Ok(token(row, 0)?.item))
        })
    }

    fn header<T: DeserializeOwned>(&self, resource: Resource, owner: &str) -> Result<Option<T>, FactsError> {
        self.reading("read a payload", |from| {
            let text: Option<String> = if resource == Resource::Funding {
                from.prepare_cached("SELECT item FROM investor WHERE id = ?1")?.query_optional([owner], |row| row.get(0))?
            } else {
                from.prepare_cached(
                    "SELECT f.header FROM feed f JOIN token t ON t.no = f.token_no WHERE t.id = ?1 AND f.endpoint = ?2",
                )?
                .query_optional(params![owner, endpoint_of(resource).as_str()], |row| row.get::<Option<String>>(0))?
                .flatten()
            };
            text.map(|text| from_json("the header of a feed", owner, &text)).transpose()
        })
    }

    fn investors(&self) -> Result<Vec<wire::InvestorItem>, FactsError> {
        self.reading("list the investors", investors)
    }

    fn records<T: DeserializeOwned>(&self, resource: Resource, owner: &str, range: DateRange) -> Result<Vec<T>, FactsError> {
        self.reading("read records", |from| {
            let (begin, end) = (millis(range.from), millis(range.until));
            let body = |row: &Row<'_>| from_json("a record", owner, &row.get::<String>(0)?);
            if resource == Resource::Funding {
                let mut statement = from.prepare_cached(
                    "SELECT body FROM record WHERE resource = 'funding' AND body ->> 'investorId' = ?1
                         AND (starts_at >= ?2 OR ?2 IS NULL) AND (starts_at < ?3 OR ?3 IS NULL) ORDER BY starts_at NULLS FIRST, no",
                )?;
                return all(&mut statement, params![owner, begin, end], body);
            }
            if resource == Resource::Unlock {
                let is_requested = |tracked: &Tracked| match tracked.record.interval() {
                    Some(at) => {
                        range.from.is_none_or(|from| at.start >= from) && range.until.is_none_or(|until| at.start < until)
                    }
                    None => range.from.is_none() && range.until.is_none(),
                };
                let events = undated_first(schedule_of(from, owner)?).into_iter().filter(is_requested);
                return events.map(|tracked| same(owner, &tracked.record)).collect();
            }
            let mut statement = from.prepare_cached(
                "SELECT r.body FROM record r JOIN token t ON t.no = r.token_no WHERE t.id = ?1 AND r.resource = ?2
                     AND (r.starts_at >= ?3 OR ?3 IS NULL) AND (r.starts_at < ?4 OR ?4 IS NULL) ORDER BY r.starts_at NULLS FIRST, r.no",
            )?;
            all(&mut statement, params![owner, resource.as_str(), begin, end], body)
        })
    }

    fn first_cliff<T>(
        &self,
        owner: &str,
        range: DateRange,
        mut wanted: impl FnMut(wire::UnlockEvent) -> Option<T>,
    ) -> Result<Option<T>, FactsError> {
        let inside = |at: &Timestamp| range.from.is_none_or(|from| *at >= from) && range.until.is_none_or(|until| *at < until);
        self.reading("look for the next event", |from| {
            // Events are sorted by the start of their interval; their date can be later in it.
            let mut first: Option<(Timestamp, T)> = None;
            for tracked in undated_first(schedule_of(from, owner)?) {
                let starts_at = tracked.record.interval().map(|interval| interval.start);
                if let (Some((date, _)), Some(starts_at)) = (&first, starts_at)
                    && starts_at > *date
                {
                    break;
                }
                let Record::Unlock(event) = tracked.record else { continue };
                let Some(date) = event.unlock_date.copied().filter(inside) else { continue };
                if first.as_ref().is_none_or(|(before, _)| date < *before)
                    && let Some(found) = wanted(Arc::unwrap_or_clone(event))
                {
                    first = Some((date, found));
                }
            }
            Ok(first.map(|(_, found)| found))
        })
    }

    fn rounds_about(&self, token: &str) -> Result<Vec<wire::FundingRound>, FactsError> {
        self.reading("read funding rounds", |from| {
            let mut statement = from.prepare_cached(
                "SELECT r.body FROM record r JOIN token t ON t.no = r.token_no WHERE t.id = ?1 AND r.resource = 'funding'
                     ORDER BY r.starts_at DESC NULLS LAST, r.no",
            )?;
            all(&mut statement, [token], |row| from_json("a funding round", token, &row.get::<String>(0)?))
        })
    }
}
