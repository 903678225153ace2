//! API keys of the data service, and their credits. Credits are charged in one transaction, so that concurrent requests
//! cannot exceed the limit. On a server, row locks serialize the instances.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io,
    sync::TryLockError,
    time::Duration,
};

use chrono::{DateTime, Datelike, Months, NaiveTime};
use rusqlite::params;
use serde::Serialize;
use subtle::ConstantTimeEq as _;

use super::{Catalog, CatalogError, error::doing, in_transaction};
use crate::connection::{self, open_writer, sibling_path};
use crate::sql::{Connection, Row, SqlResult, Transaction};
use model::Timestamp;

/// The WAL size, in bytes, above which [`Catalog::sync`] checkpoints.
const LOG_BYTES: u64 = 8 << 20;

impl Catalog {
    /// Stores the hash of a new key.
    ///
    /// # Errors
    ///
    /// Fails with [`CatalogError::NameTaken`] if a key in use has that name.
    pub fn add_key(&self, name: &str, hash: &[u8], monthly_limit: u64, now: Timestamp) -> Result<KeyRow, CatalogError> {
        let limit = i64::try_from(monthly_limit).unwrap_or(i64::MAX);
        let sql = format!(
            "INSERT INTO api_key (name, hash, monthly_limit, used, reset_at, created_at) VALUES (?1, ?2, ?3, 0, ?4, ?5)
             ON CONFLICT DO NOTHING RETURNING {KEY_COLUMNS}"
        );
        let add = |at: Transaction<'_>| {
            let values = params![name, hash, limit, next_month(now).timestamp(), now.timestamp()];
            let added = at.prepare(&sql).and_then(|mut insert| insert.query_optional(values, key_row));
            added.map_err(doing("add a key"))?.ok_or_else(|| CatalogError::NameTaken(name.to_owned()))
        };
        in_transaction(&mut self.writer(), "add a key", add)
    }

    /// Changes the limit of an active key. Returns whether there is one with this name.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be written.
    pub fn set_monthly_limit(&self, name: &str, monthly_limit: u64) -> Result<bool, CatalogError> {
        in_transaction(&mut self.writer(), "change a key", |at| {
            let limit = i64::try_from(monthly_limit).unwrap_or(i64::MAX);
            let sql = "UPDATE api_key SET monthly_limit = ?2 WHERE name = ?1 AND revoked_at IS NULL";
            let changed = at.execute_counted(sql, params![name, limit]).map_err(doing("change a key"))?;
            Ok(changed > 0)
        })
    }

    /// Returns all keys, including revoked ones, oldest first.
    pub fn keys(&self) -> Result<Vec<KeyRow>, CatalogError> {
        self.read(|view| {
            let sql = format!("SELECT {KEY_COLUMNS} FROM api_key ORDER BY id");
            let read = || -> SqlResult<Vec<KeyRow>> {
                let mut statement = view.0.prepare(&sql)?;
                let (mut rows, mut keys) = (statement.query([])?, Vec::new());
                while let Some(row) = rows.next()? {
                    keys.push(key_row(&row)?);
                }
                Ok(keys)
            };
            read().map_err(doing("list the keys"))
        })
    }

    /// Revokes the key of that name. Returns whether a key in use had that name.
    pub fn revoke_key(&self, name: &str, now: Timestamp) -> Result<bool, CatalogError> {
        in_transaction(&mut self.writer(), "revoke a key", |at| {
            let sql = "UPDATE api_key SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
            let changed = at.execute_counted(sql, params![name, now.timestamp()]).map_err(doing("revoke a key"))?;
            Ok(changed > 0)
        })
    }

    /// Returns the state of a key without charging it, or `None` if no key in use has that hash.
    pub fn key(&self, hash: &[u8], now: Timestamp) -> Result<Option<KeyRow>, CatalogError> {
        self.read(|view| Ok::<_, CatalogError>(find_key(view.0, hash, "")?.map(|(_, row)| row.as_of(now))))
    }

    /// Charges one credit for each of `hashes` and returns the usage after each charge, in the same order. The usage is
    /// `None` if the key is unknown or its credits are used up. A batch costs one transaction, with one write per key.
    ///
    /// # Errors
    ///
    /// If this fails, nothing was charged.
    pub fn charge(&self, hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<Option<KeyUsage>>, CatalogError> {
        charge(&mut self.writer(), hashes, now)
    }

    /// Like [`Self::charge`], but never waits. Returns `None`, with nothing charged, if another writer is active or the
    /// database is on a server.
    ///
    /// # Errors
    ///
    /// If this fails, nothing was charged.
    pub fn try_charge(&self, hashes: &[[u8; 32]], now: Timestamp) -> Result<Option<Vec<Option<KeyUsage>>>, CatalogError> {
        let mut connection = match self.writer.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let patience = |connection: &Connection, patience: Duration| match connection {
            Connection::Sqlite(file) => file.busy_timeout(patience).map(|()| true).map_err(doing("count a credit")),
            Connection::Postgres(_) => Ok(false),
        };
        if !patience(&connection, Duration::ZERO)? {
            return Ok(None);
        }
        let charged = charge(&mut connection, hashes, now);
        patience(&connection, connection::CATALOG.busy_timeout)?;
        match charged {
            Ok(usages) => Ok(Some(usages)),
            Err(error) if error.is_busy() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes all commits durable against power loss, without blocking other calls.
    pub fn sync(&self) -> Result<(), CatalogError> {
        let Some(readers) = self.readers.as_ref().filter(|_| !self.is_on_server()) else { return Ok(()) };
        // SQLite locks the database and its `-shm`, never the WAL, so closing this handle releases no lock.
        let path = sibling_path(readers.path(), "-wal");
        match File::open(&path).and_then(|log| log.sync_data().and_then(|()| Ok(log.metadata()?.len()))) {
            // No WAL: all data is in the main file, which SQLite has synced.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(CatalogError::Sync { path, source }),
            Ok(bytes) if bytes > LOG_BYTES => {
                // Checkpoint here, so that no request has to wait for it.
                let shorten = || {
                    let connection = open_writer(readers.path(), false)?;
                    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                };
                shorten().map_err(|error: rusqlite::Error| doing("checkpoint the WAL")(error))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Charges in one transaction; see [`Catalog::charge`].
fn charge(connection: &mut Connection, hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<Option<KeyUsage>>, CatalogError> {
    // Sorted, so that instances that charge the same keys lock them in the same order and cannot deadlock.
    let mut wanted: BTreeMap<&[u8; 32], u64> = BTreeMap::new();
    for hash in hashes {
        *wanted.entry(hash).or_default() += 1;
    }
    let mut grants = in_transaction(connection, CHARGING, |at| grant(at, &wanted, now))?;
    let usages = hashes.iter().map(|hash| {
        let (left, usage) = grants.get_mut(hash)?;
        *left = left.checked_sub(1)?;
        usage.used += 1;
        Some(*usage)
    });
    Ok(usages.collect())
}

const CHARGING: &str = "count a credit";

/// Charges each key as many of the wanted credits as it has left. Returns that number and the usage before the charge.
fn grant<'h>(
    at: Transaction<'_>,
    wanted: &BTreeMap<&'h [u8; 32], u64>,
    now: Timestamp,
) -> Result<HashMap<&'h [u8; 32], (u64, KeyUsage)>, CatalogError> {
    let mut grants = HashMap::with_capacity(wanted.len());
    for (hash, wanted) in wanted {
        let Some((id, row)) = find_key(at, *hash, at.engine().for_update())? else { continue };
        let row = row.as_of(now);
        let granted = (*wanted).min(row.monthly_limit.saturating_sub(row.used));
        if granted == 0 {
            continue;
        }
        let used = i64::try_from(row.used + granted).unwrap_or(i64::MAX);
        at.prepare_cached("UPDATE api_key SET used = ?2, reset_at = ?3, last_used_at = ?4 WHERE id = ?1")
            .and_then(|mut statement| statement.execute(params![id, used, row.reset_at.timestamp(), now.timestamp()]))
            .map_err(doing(CHARGING))?;
        grants.insert(*hash, (granted, KeyUsage { used: row.used, limit: row.monthly_limit, reset_at: row.reset_at }));
    }
    Ok(grants)
}

/// The bytes of a hash used for the index lookup, whose timing can leak them. The remaining bytes are compared in
/// constant time, so a leaked prefix does not help to guess a 256-bit key.
const PREFIX_BYTES: usize = 8;

/// Finds the key in use with this hash. `lock` is appended to the query.
fn find_key(at: Transaction<'_>, hash: &[u8], lock: &str) -> Result<Option<(i64, KeyRow)>, CatalogError> {
    let find = || -> SqlResult<Option<(i64, KeyRow)>> {
        let mut statement = at.prepare_cached(&format!(
            "SELECT {KEY_COLUMNS}, id, hash FROM api_key WHERE substr(hash, 1, {PREFIX_BYTES}) = ?1 AND revoked_at IS NULL{lock}"
        ))?;
        let mut rows = statement.query([hash.get(..PREFIX_BYTES)])?;
        while let Some(row) = rows.next()? {
            let known: Vec<u8> = row.get(8)?;
            if bool::from(known.as_slice().ct_eq(hash)) {
                return Ok(Some((row.get(7)?, key_row(&row)?)));
            }
        }
        Ok(None)
    };
    find().map_err(doing("look up a key"))
}

const KEY_COLUMNS: &str = "name, monthly_limit, used, reset_at, created_at, last_used_at, revoked_at";

fn key_row(row: &Row<'_>) -> SqlResult<KeyRow> {
    Ok(KeyRow {
        name: row.get(0)?,
        monthly_limit: count(row.get(1)?),
        used: count(row.get(2)?),
        reset_at: time(row.get(3)?),
        created_at: time(row.get(4)?),
        last_used_at: row.get::<Option<i64>>(5)?.map(time),
        revoked_at: row.get::<Option<i64>>(6)?.map(time),
    })
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn time(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// Returns the start of the next calendar month, when quotas reset.
fn next_month(now: Timestamp) -> Timestamp {
    let first = now.date_naive().with_day(1).and_then(|first| first.checked_add_months(Months::new(1)));
    first.map_or(now, |first| first.and_time(NaiveTime::MIN).and_utc())
}

/// The state of an API key, without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRow {
    /// Unique among keys that are not revoked.
    pub name: String,
    /// Credits per month.
    pub monthly_limit: u64,
    /// Credits used in the period that ends at `reset_at`.
    pub used: u64,
    pub reset_at: Timestamp,
    pub created_at: Timestamp,
    /// The time of the last request that cost a credit.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyRow {
    /// Returns the row as of `now`. Resets the usage if the period has ended.
    #[must_use]
    pub fn as_of(mut self, now: Timestamp) -> Self {
        if self.reset_at <= now {
            self.used = 0;
            self.reset_at = next_month(now);
        }
        self
    }
}

/// The usage of a key after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// Credits used in this period, including this request.
    pub used: u64,
    pub limit: u64,
    /// The end of the period.
    pub reset_at: Timestamp,
}

#[cfg(test)]
mod tests;
