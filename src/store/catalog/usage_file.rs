//! The used credits of API keys, in a file beside the database.
//!
//! A commit of SQLite for each request would take most of the time of a cached response. Instead, each key has a record at a fixed
//! position of this file. A charge locks the file, reads the record, and writes it, which are four short system calls.
//!
//! - All processes charge the same record under the lock, so a limit is never exceeded. The system releases the lock of a process that
//!   dies.
//! - A record is written by one system call within a page of the system's cache, so a killed process leaves the old or the new record.
//! - A power failure can leave older or damaged records. Their checksums do not match, and the row of the key then counts, to which
//!   [`Catalog::sync`](super::Catalog::sync) copies the usage. Each source alone never counts a request that was not made, so the
//!   larger one counts.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use xxhash_rust::xxh3::xxh3_64;

use super::api_keys::{Grants, KeyRow, KeyUsage, next_month, time};
use crate::connection::{CATALOG, sibling_path};
use crate::owner::give_to_owner_of;
use model::Timestamp;

/// The size of a record in bytes. A power of two, so that no record crosses a page boundary.
const RECORD_BYTES: usize = 64;
const WORD_BYTES: usize = 8;
/// `CWusage1` in ASCII. Marks a record and its format.
const MARK: u64 = u64::from_be_bytes(*b"CWusage1");
/// The time for which a row of a key is used without reading it again. Changes through [`Catalog`](super::Catalog) apply at once,
/// because they increment the version of the record.
const ROW_CACHE_TIME: Duration = Duration::from_secs(1);
/// The pause between attempts to lock the file.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

type KeyHash = [u8; 32];

/// The usage of a key in one period. Times are in seconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UsageRecord {
    /// The first bytes of the key's hash. A record of another key, from an earlier database with the same path, does not count.
    prefix: u64,
    pub used: u64,
    pub reset_at: i64,
    pub last_used_at: i64,
    /// Incremented when the row of the key changed, so that all processes read it again.
    version: u64,
}

impl UsageRecord {
    fn encode(&self) -> [u8; RECORD_BYTES] {
        let words =
            [MARK, self.prefix, self.used, self.reset_at.cast_unsigned(), self.last_used_at.cast_unsigned(), self.version, 0];
        let mut bytes = [0; RECORD_BYTES];
        let (content, checksum) = bytes.split_at_mut(RECORD_BYTES - WORD_BYTES);
        for (chunk, word) in content.chunks_exact_mut(WORD_BYTES).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        checksum.copy_from_slice(&xxh3_64(content).to_le_bytes());
        bytes
    }

    /// Returns `None` if the record is empty or damaged.
    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<WORD_BYTES>()?;
        let (chunks, _) = content.as_chunks::<WORD_BYTES>();
        let &[mark, prefix, used, reset_at, last_used_at, version, _] = chunks else { return None };
        if u64::from_le_bytes(mark) != MARK || u64::from_le_bytes(*checksum) != xxh3_64(content) {
            return None;
        }
        Some(Self {
            prefix: u64::from_le_bytes(prefix),
            used: u64::from_le_bytes(used),
            reset_at: i64::from_le_bytes(reset_at),
            last_used_at: i64::from_le_bytes(last_used_at),
            version: u64::from_le_bytes(version),
        })
    }

    fn of_row(prefix: u64, row: &KeyRow) -> Self {
        Self {
            prefix,
            used: row.used,
            reset_at: row.reset_at.timestamp(),
            last_used_at: row.last_used_at.map_or(0, |at| at.timestamp()),
            version: 0,
        }
    }

    /// Returns the later usage of two: that of the later period, or within a period the larger one.
    fn later(self, other: Self) -> Self {
        let version = self.version.max(other.version);
        let later = match (self.reset_at, self.used).cmp(&(other.reset_at, other.used)) {
            Ordering::Less => other,
            Ordering::Equal | Ordering::Greater => self,
        };
        Self { version, last_used_at: self.last_used_at.max(other.last_used_at), ..later }
    }
}

/// A key whose row was read recently.
#[derive(Debug)]
struct CountedKey {
    id: i64,
    limit: u64,
    /// The version of the record before the row was read.
    version: u64,
    read_at: Instant,
    /// Whether the record must be copied to the database.
    is_unsaved: bool,
}

#[derive(Debug, Default)]
struct UsageState {
    /// `None` before the first use.
    file: Option<File>,
    keys: HashMap<KeyHash, CountedKey>,
}

#[derive(Debug)]
pub(super) struct UsageFile {
    database: PathBuf,
    pub path: PathBuf,
    /// Locked for a few system calls only. A thread that waits for another process does not hold it.
    state: Mutex<UsageState>,
}

/// The result of a charge without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeOutcome {
    Charged(KeyUsage),
    /// The credits of the key are used up.
    Exhausted,
    /// Nothing was charged: another process uses the file, or the row of the key must be read.
    MustWait,
}

impl UsageFile {
    /// Returns the usage file of a database. The first use opens or creates it.
    pub fn beside(database: &Path) -> Self {
        Self { database: database.to_owned(), path: sibling_path(database, "-usage"), state: Mutex::default() }
    }

    /// Locks the file. Returns `None` if another process has locked it.
    pub fn try_lock(&self) -> io::Result<Option<LockedUsage<'_>>> {
        // After a panic, the file is unlocked and each record is complete.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(self.open()?),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(LockedUsage(state))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks the file. Waits for other processes, as long as for a lock of the database. Blocks.
    pub fn lock(&self) -> io::Result<LockedUsage<'_>> {
        let begun = Instant::now();
        loop {
            if let Some(locked) = self.try_lock()? {
                return Ok(locked);
            }
            if begun.elapsed() >= CATALOG.busy_timeout {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            thread::sleep(LOCK_PAUSE);
        }
    }

    /// Makes all charges durable against power loss. Blocks, but no charge waits for it.
    pub fn sync(&self) -> io::Result<()> {
        let file = self.state.lock().unwrap_or_else(PoisonError::into_inner).file.as_ref().map(File::try_clone).transpose()?;
        file.map_or(Ok(()), |file| file.sync_data())
    }

    /// Opens or creates the file, with the owner and the permissions of the database.
    fn open(&self) -> io::Result<File> {
        let database = fs::metadata(&self.database)?;
        let mode = database.permissions().mode() & 0o666;
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(mode).open(&self.path)?;
        // Root runs commands on the database of a service. A failure only matters to a process that cannot open the file, which reports it.
        let _ = give_to_owner_of(&database, &self.path);
        Ok(file)
    }
}

/// The file, locked against all other threads and processes until this is dropped.
#[derive(Debug)]
pub(super) struct LockedUsage<'a>(MutexGuard<'a, UsageState>);

impl Drop for LockedUsage<'_> {
    fn drop(&mut self) {
        if let Some(file) = &self.0.file
            && let Err(error) = file.unlock()
        {
            tracing::error!(%error, "cannot unlock the usage file");
            // Closing the file unlocks it.
            self.0.file = None;
        }
    }
}

impl LockedUsage<'_> {
    /// Charges one credit to a key whose row was read recently.
    pub fn charge(&mut self, hash: &KeyHash, now: Timestamp) -> io::Result<ChargeOutcome> {
        let Some((file, key, mut record)) = self.ready(hash)? else { return Ok(ChargeOutcome::MustWait) };
        match record.grant(1, key.limit, now) {
            0 => Ok(ChargeOutcome::Exhausted),
            _ => {
                write(file, key.id, &record)?;
                key.is_unsaved = true;
                Ok(ChargeOutcome::Charged(KeyUsage { used: record.used, limit: key.limit, reset_at: time(record.reset_at) }))
            }
        }
    }

    /// Charges each key as many of the wanted credits as it has left. Returns `None` if the row of a key must be read first.
    ///
    /// # Errors
    ///
    /// If this fails, nothing was charged.
    pub fn grant<'h>(&mut self, wanted: &BTreeMap<&'h KeyHash, u64>, now: Timestamp) -> io::Result<Option<Grants<'h>>> {
        let (mut grants, mut changes) = (HashMap::new(), Vec::new());
        for (&hash, &wanted) in wanted {
            let Some((_, key, before)) = self.ready(hash)? else { return Ok(None) };
            let mut record = before;
            let granted = record.grant(wanted, key.limit, now);
            if granted > 0 {
                let usage = KeyUsage { used: record.used - granted, limit: key.limit, reset_at: time(record.reset_at) };
                grants.insert(hash, (granted, usage));
                changes.push((hash, key.id, before, record));
            }
        }
        for (at, (hash, id, _, record)) in changes.iter().enumerate() {
            let Some(file) = &self.0.file else { return Ok(None) };
            if let Err(error) = write(file, *id, record) {
                for (_, id, before, _) in changes.iter().take(at) {
                    write(file, *id, before)?;
                }
                return Err(error);
            }
            if let Some(key) = self.0.keys.get_mut(*hash) {
                key.is_unsaved = true;
            }
        }
        Ok(Some(grants))
    }

    /// Returns whether a key can be charged without reading its row.
    pub fn is_ready(&mut self, hash: &KeyHash) -> io::Result<bool> {
        Ok(self.ready(hash)?.is_some())
    }

    /// Returns a key with its record, unless its row must be read first.
    fn ready(&mut self, hash: &KeyHash) -> io::Result<Option<(&File, &mut CountedKey, UsageRecord)>> {
        let state = &mut *self.0;
        let (Some(file), Some(key)) = (&state.file, state.keys.get_mut(hash)) else { return Ok(None) };
        if key.read_at.elapsed() >= ROW_CACHE_TIME {
            return Ok(None);
        }
        let record = read(file, key.id, hash)?.filter(|record| record.version == key.version);
        Ok(record.map(|record| (file, key, record)))
    }

    /// Returns the row id of a key that was charged before.
    pub fn id_of(&self, hash: &KeyHash) -> Option<i64> {
        self.0.keys.get(hash).map(|key| key.id)
    }

    /// Returns the version of a record, to read before the row of its key.
    pub fn version(&self, id: i64, hash: &KeyHash) -> io::Result<u64> {
        Ok(self.record(id, hash)?.map_or(0, |record| record.version))
    }

    /// Caches a row that was read after this `version` of its record. Writes the record if the row has a later usage.
    pub fn put_row(&mut self, hash: &KeyHash, id: i64, version: u64, row: &KeyRow) -> io::Result<()> {
        let known = self.record(id, hash)?;
        let stored = UsageRecord::of_row(prefix(hash), row);
        let record = known.map_or(stored, |known| known.later(stored));
        if let (Some(file), true) = (&self.0.file, known != Some(record)) {
            write(file, id, &record)?;
        }
        // A process that died did not copy its last charges.
        let is_unsaved = (record.reset_at, record.used) != (stored.reset_at, stored.used)
            || self.0.keys.get(hash).is_some_and(|key| key.is_unsaved);
        let key = CountedKey { id, limit: row.monthly_limit, version, read_at: Instant::now(), is_unsaved };
        self.0.keys.insert(*hash, key);
        Ok(())
    }

    /// Removes a key that is not in use any more.
    pub fn remove(&mut self, hash: &KeyHash) {
        self.0.keys.remove(hash);
    }

    /// Makes all processes read the row of a key again. Call after the change is committed.
    pub fn increment_version(&self, id: i64, hash: &[u8]) -> io::Result<()> {
        match (&self.0.file, self.record(id, hash)?) {
            (Some(file), Some(record)) => write(file, id, &UsageRecord { version: record.version.wrapping_add(1), ..record }),
            // No process has charged the key yet.
            _ => Ok(()),
        }
    }

    /// Returns a row with the usage of the file, if that is later.
    pub fn completed(&self, id: i64, hash: &[u8], row: KeyRow) -> io::Result<KeyRow> {
        let Some(record) = self.record(id, hash)? else { return Ok(row) };
        let record = record.later(UsageRecord::of_row(prefix(hash), &row));
        let last_used_at = (record.last_used_at != 0).then(|| time(record.last_used_at));
        Ok(KeyRow { used: record.used, reset_at: time(record.reset_at), last_used_at, ..row })
    }

    /// Returns the ids and records to copy to the database: of keys that were charged after the last call.
    pub fn take_unsaved(&mut self) -> io::Result<Vec<(i64, UsageRecord)>> {
        let state = &mut *self.0;
        let Some(file) = &state.file else { return Ok(Vec::new()) };
        let mut unsaved = Vec::new();
        for (hash, key) in state.keys.iter().filter(|(_, key)| key.is_unsaved) {
            unsaved.extend(read(file, key.id, hash)?.map(|record| (key.id, record)));
        }
        state.keys.values_mut().for_each(|key| key.is_unsaved = false);
        Ok(unsaved)
    }

    /// Returns records to the next [`Self::take_unsaved`], because they could not be copied.
    pub fn put_back(&mut self, unsaved: &[(i64, UsageRecord)]) {
        for key in self.0.keys.values_mut() {
            key.is_unsaved |= unsaved.iter().any(|(id, _)| *id == key.id);
        }
    }

    fn record(&self, id: i64, hash: &[u8]) -> io::Result<Option<UsageRecord>> {
        self.0.file.as_ref().map_or(Ok(None), |file| read(file, id, hash))
    }
}

impl UsageRecord {
    /// Adds as many of the wanted credits as are left, in the current period. Returns that number.
    fn grant(&mut self, wanted: u64, limit: u64, now: Timestamp) -> u64 {
        if self.reset_at <= now.timestamp() {
            (self.used, self.reset_at) = (0, next_month(now).timestamp());
        }
        let granted = wanted.min(limit.saturating_sub(self.used));
        if granted > 0 {
            self.used += granted;
            self.last_used_at = self.last_used_at.max(now.timestamp());
        }
        granted
    }
}

/// Returns the first bytes of a hash as a number.
fn prefix(hash: &[u8]) -> u64 {
    hash.first_chunk::<WORD_BYTES>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Returns the position of the record of a row.
fn position(id: i64) -> io::Result<u64> {
    let size = u64::try_from(RECORD_BYTES).unwrap_or(u64::MAX);
    // Ids begin at 1.
    let index = u64::try_from(id).ok().and_then(|id| id.checked_sub(1)?.checked_mul(size));
    index.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("the id {id} of a key is out of range")))
}

/// Returns `None` if there is no record of this key, or if it is damaged.
fn read(file: &File, id: i64, hash: &[u8]) -> io::Result<Option<UsageRecord>> {
    let mut bytes = [0; RECORD_BYTES];
    match file.read_exact_at(&mut bytes, position(id)?) {
        Ok(()) => Ok(UsageRecord::decode(&bytes).filter(|record| record.prefix == prefix(hash))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(file: &File, id: i64, record: &UsageRecord) -> io::Result<()> {
    file.write_all_at(&record.encode(), position(id)?)
}

#[cfg(test)]
mod tests;
