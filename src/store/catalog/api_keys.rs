//! API keys of the data service, and their credits.
//!
//! With a database file, credits are charged in the usage file beside it, and copied to the rows of the keys by
//! [`Catalog::sync`]. Readers combine both, so they never see an old usage. On a server, credits are charged in one
//! transaction, with row locks that serialize the instances. In both cases, concurrent requests cannot exceed the limit.

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

use super::error::{counting, doing};
use super::usage_file::{ChargeOutcome, LockedUsage, UsageFile, UsageRecord};
use super::{Catalog, CatalogError, in_transaction};
use crate::connection::{self, open_writer, sibling_path};
use crate::sql::{Connection, Row, SqlResult, Transaction};
use model::Timestamp;

/// The WAL size, in bytes, above which [`Catalog::sync`] checkpoints.
const LOG_BYTES: u64 = 8 << 20;

/// The wait for another writer before the service stops.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// The attempts to charge keys whose rows another process changes at the same time.
const MAX_CHARGE_ATTEMPTS: usize = 100;

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
        let limit = i64::try_from(monthly_limit).unwrap_or(i64::MAX);
        self.change_key("change a key", name, "monthly_limit", limit)
    }

    /// Returns all keys, including revoked ones, oldest first.
    pub fn keys(&self) -> Result<Vec<KeyRow>, CatalogError> {
        let keys = self.read(|view| {
            let sql = format!("SELECT {KEY_COLUMNS}, id, hash FROM api_key ORDER BY id");
            let read = || -> SqlResult<Vec<(i64, Vec<u8>, KeyRow)>> {
                let mut statement = view.0.prepare(&sql)?;
                let (mut rows, mut keys) = (statement.query([])?, Vec::new());
                while let Some(row) = rows.next()? {
                    keys.push((row.get(7)?, row.get(8)?, key_row(&row)?));
                }
                Ok(keys)
            };
            read().map_err(doing("list the keys"))
        })?;
        let Some(usage) = &self.usage else { return Ok(keys.into_iter().map(|(.., row)| row).collect()) };
        let locked = lock(usage)?;
        keys.into_iter().map(|(id, hash, row)| locked.completed(id, &hash, row).map_err(counting(&usage.path))).collect()
    }

    /// Revokes the key of that name. Returns whether a key in use had that name.
    pub fn revoke_key(&self, name: &str, now: Timestamp) -> Result<bool, CatalogError> {
        self.change_key("revoke a key", name, "revoked_at", now.timestamp())
    }

    /// Sets a column of the active key with this name. No process charges the key with its old row after this returns.
    fn change_key(&self, changing: &'static str, name: &str, column: &str, value: i64) -> Result<bool, CatalogError> {
        let sql = format!("UPDATE api_key SET {column} = ?2 WHERE name = ?1 AND revoked_at IS NULL RETURNING id, hash");
        let change = |at: Transaction<'_>| {
            let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let changed = at.prepare(&sql).and_then(|mut update| update.query_optional(params![name, value], columns));
            changed.map_err(doing(changing))
        };
        let changed: Option<(i64, Vec<u8>)> = in_transaction(&mut self.writer(), changing, change)?;
        if let (Some((id, hash)), Some(usage)) = (&changed, &self.usage)
            && let Err(error) = usage.lock().and_then(|locked| locked.increment_version(*id, hash))
        {
            tracing::warn!(%error, "running services apply the change of a key within a second, not at once");
        }
        Ok(changed.is_some())
    }

    /// Returns the state of a key without charging it, or `None` if no key in use has that hash.
    pub fn key(&self, hash: &[u8], now: Timestamp) -> Result<Option<KeyRow>, CatalogError> {
        let Some((id, row)) = self.find(hash)? else { return Ok(None) };
        let row = match &self.usage {
            Some(usage) => lock(usage)?.completed(id, hash, row).map_err(counting(&usage.path))?,
            None => row,
        };
        Ok(Some(row.as_of(now)))
    }

    fn find(&self, hash: &[u8]) -> Result<Option<(i64, KeyRow)>, CatalogError> {
        self.read(|view| find_key(view.0, hash, ""))
    }

    /// Charges one credit to a key in the usage file, if that is possible without waiting. Takes a few microseconds.
    pub fn charge_at_once(&self, hash: &[u8; 32], now: Timestamp) -> Result<ChargeOutcome, CatalogError> {
        let Some(usage) = &self.usage else { return Ok(ChargeOutcome::MustWait) };
        let charged = usage.try_lock().and_then(|locked| match locked {
            Some(mut locked) => locked.charge(hash, now),
            None => Ok(ChargeOutcome::MustWait),
        });
        charged.map_err(counting(&usage.path))
    }

    /// Charges one credit for each of `hashes` and returns the usage after each charge, in the same order. The usage is
    /// `None` if the key is unknown or its credits are used up. Blocks. A batch costs one lock of the usage file or one
    /// transaction, with one write per key.
    ///
    /// # Errors
    ///
    /// If this fails, nothing was charged.
    pub fn charge(&self, hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<Option<KeyUsage>>, CatalogError> {
        match &self.usage {
            Some(usage) => self.charge_in_file(usage, hashes, now),
            None => charge(&mut self.writer(), hashes, now),
        }
    }

    /// Like [`Self::charge`], but returns `None` instead of waiting: if another thread is writing, or if the database is not
    /// in memory.
    pub fn try_charge(&self, hashes: &[[u8; 32]], now: Timestamp) -> Result<Option<Vec<Option<KeyUsage>>>, CatalogError> {
        if self.readers.is_some() {
            return Ok(None);
        }
        let mut connection = match self.writer.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        charge(&mut connection, hashes, now).map(Some)
    }

    fn charge_in_file(
        &self,
        usage: &UsageFile,
        hashes: &[[u8; 32]],
        now: Timestamp,
    ) -> Result<Vec<Option<KeyUsage>>, CatalogError> {
        let mut wanted = wanted_credits(hashes);
        for _ in 0..MAX_CHARGE_ATTEMPTS {
            let mut unknown = Vec::new();
            for hash in wanted.keys() {
                if !self.read_row(usage, hash)? {
                    unknown.push(*hash);
                }
            }
            wanted.retain(|hash, _| !unknown.contains(hash));
            let granted = lock(usage)?.grant(&wanted, now).map_err(counting(&usage.path))?;
            if let Some(grants) = granted {
                return Ok(usages_after(hashes, grants));
            }
        }
        Err(CatalogError::Busy { doing: CHARGING, source: "the keys change too often".into() })
    }

    /// Reads the row of a key for charges, unless it was read recently. Returns whether a key in use has that hash.
    pub(super) fn read_row(&self, usage: &UsageFile, hash: &[u8; 32]) -> Result<bool, CatalogError> {
        let failed = || counting(&usage.path);
        let known = {
            let mut locked = lock(usage)?;
            if locked.is_ready(hash).map_err(failed())? {
                return Ok(true);
            }
            locked.id_of(hash)
        };
        let id = match known {
            Some(id) => Some(id),
            None => self.find(hash)?.map(|(id, _)| id),
        };
        let Some(id) = id else { return Ok(false) };
        // If the row changes after this, the version changes too, and the row is read again.
        let version = lock(usage)?.version(id, hash).map_err(failed())?;
        let row = self.find(hash)?;
        let mut locked = lock(usage)?;
        match &row {
            Some((id, row)) => locked.put_row(hash, *id, version, row).map_err(failed())?,
            None => locked.remove(hash),
        }
        Ok(row.is_some())
    }

    /// Copies the usage of charged keys to their rows before a service stops, so that a copy of the database alone has all
    /// credits. Does nothing if another thread is writing. Another process delays it only briefly.
    pub fn finish(&self) -> Result<(), CatalogError> {
        let (Some(usage), Ok(mut writer)) = (&self.usage, self.writer.try_lock()) else { return Ok(()) };
        let set_patience = |connection: &Connection, patience: Duration| match connection {
            Connection::Sqlite(file) => file.busy_timeout(patience).map_err(doing(COPYING)),
            Connection::Postgres(_) => Ok(()),
        };
        set_patience(&writer, STOP_PATIENCE)?;
        let copied = copy_usage(usage, &mut writer);
        set_patience(&writer, connection::CATALOG.busy_timeout)?;
        copied
    }

    /// Makes all charges and commits durable against power loss, without blocking other calls. Copies the usage of charged
    /// keys to their rows.
    pub fn sync(&self) -> Result<(), CatalogError> {
        if let Some(usage) = &self.usage {
            usage.sync().map_err(counting(&usage.path))?;
            copy_usage(usage, &mut self.writer())?;
        }
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

/// Copies the usage of charged keys to their rows, in one transaction.
fn copy_usage(usage: &UsageFile, writer: &mut Connection) -> Result<(), CatalogError> {
    let unsaved = lock(usage)?.take_unsaved().map_err(counting(&usage.path))?;
    if unsaved.is_empty() {
        return Ok(());
    }
    let copied = in_transaction(writer, COPYING, |at| write_usage(at, &unsaved));
    if copied.is_err() {
        lock(usage)?.put_back(&unsaved);
    }
    copied
}

/// Writes the usage of keys to their rows, unless they have a later one.
fn write_usage(at: Transaction<'_>, unsaved: &[(i64, UsageRecord)]) -> Result<(), CatalogError> {
    let sql = "UPDATE api_key SET used = ?2, reset_at = ?3, last_used_at = ?4
               WHERE id = ?1 AND (reset_at < ?3 OR (reset_at = ?3 AND used < ?2))";
    for (id, record) in unsaved {
        let used = i64::try_from(record.used).unwrap_or(i64::MAX);
        at.prepare_cached(sql)
            .and_then(|mut update| update.execute(params![id, used, record.reset_at, record.last_used_at]))
            .map_err(doing(COPYING))?;
    }
    Ok(())
}

fn lock(usage: &UsageFile) -> Result<LockedUsage<'_>, CatalogError> {
    usage.lock().map_err(counting(&usage.path))
}

/// Charges in one transaction; see [`Catalog::charge`].
fn charge(connection: &mut Connection, hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<Option<KeyUsage>>, CatalogError> {
    let wanted = wanted_credits(hashes);
    Ok(usages_after(hashes, in_transaction(connection, CHARGING, |at| grant(at, &wanted, now))?))
}

/// Returns the number of wanted credits of each key. Sorted, so that instances that charge the same keys lock them in the
/// same order and cannot deadlock.
fn wanted_credits(hashes: &[[u8; 32]]) -> BTreeMap<&[u8; 32], u64> {
    let mut wanted = BTreeMap::new();
    for hash in hashes {
        *wanted.entry(hash).or_default() += 1;
    }
    wanted
}

/// Returns the usage after each charge of a batch, from the number of charges and the usage before.
fn usages_after(hashes: &[[u8; 32]], mut grants: Grants<'_>) -> Vec<Option<KeyUsage>> {
    let usages = hashes.iter().map(|hash| {
        let (left, usage) = grants.get_mut(hash)?;
        *left = left.checked_sub(1)?;
        usage.used += 1;
        Some(*usage)
    });
    usages.collect()
}

const CHARGING: &str = "count a credit";
const COPYING: &str = "store the usage of keys";

/// The number of charged credits of each key, and its usage before.
pub(super) type Grants<'h> = HashMap<&'h [u8; 32], (u64, KeyUsage)>;

/// Charges each key as many of the wanted credits as it has left. Returns that number and the usage before the charge.
fn grant<'h>(at: Transaction<'_>, wanted: &BTreeMap<&'h [u8; 32], u64>, now: Timestamp) -> Result<Grants<'h>, CatalogError> {
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

pub(super) fn time(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// Returns the start of the next calendar month, when quotas reset.
pub(super) fn next_month(now: Timestamp) -> Timestamp {
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
