//! Opens both databases of a copy, and locks out other processes until the copy ends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;

use super::CopySide;
use crate::backup::sync_directory;
use crate::connection::sibling_path;
use crate::error::{ErrorKind, OPENING, StoreError, StoreFault};
use crate::lease_keeper::LeaseKeeper;
use crate::lock::{resolve, take_lock};
use crate::open::{self, DatabaseLocation};
use crate::restore::check_restore_finished;
use crate::sql::postgres::PgSession;
use crate::sql::postgres::fence::Fence;
use crate::sql::postgres::schema::DAEMON;
use crate::sql::postgres::url::PostgresUrl;
use crate::sql::{Connection, Transaction};
use crate::writer;
use crate::{LeaseStatus, Opening};
use model::Timestamp;
use model::lease::{RENEWAL, TERM};

/// The lock that keeps other processes away from a database.
#[expect(dead_code, reason = "held, not read")]
enum EndLock {
    File(File),
    Lease(HeldLease),
}

/// The database to copy from.
pub(super) struct CopySource {
    // Declared before the lock, so that it closes first.
    connection: Connection,
    path: PathBuf,
    _hold: EndLock,
}

impl CopySource {
    /// Opens a database of the current schema. Fails if it is missing, has another schema, or is in use.
    pub(super) fn open(place: &DatabaseLocation, instance: &str) -> Result<Self, StoreError> {
        match place {
            DatabaseLocation::File(path) => {
                let path = resolve(path)?;
                open::check_current(&path)?;
                check_restore_finished(&path)?;
                let lock = take_lock(&path)?;
                Ok(Self { connection: open::open_unmigrated(&path)?, path, _hold: EndLock::File(lock) })
            }
            DatabaseLocation::Server(place) => {
                let (session, fence) = open_session(place)?;
                session.prepare_schema(DAEMON, false, env!("CARGO_PKG_VERSION"))?;
                let lease = HeldLease::take(place, fence, instance)?;
                let connection = Connection::Postgres(Box::new(session));
                Ok(Self { connection, path: place.name().to_owned(), _hold: EndLock::Lease(lease) })
            }
        }
    }

    /// Runs `run` in one transaction that blocks other writers.
    pub(super) fn hold<T>(&mut self, run: impl FnOnce(CopySide<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        in_transaction(&mut self.connection, &self.path, "read the database", run)
    }
}

/// The database to copy into.
pub(super) struct Target {
    connection: Connection,
    path: PathBuf,
    /// The temporary file being filled. `finish` renames it to `path`.
    unfinished: Option<PathBuf>,
    _hold: EndLock,
}

impl Target {
    /// Opens an empty database, or creates one. Fails if the database is not ours, has another schema, or is in use.
    pub(super) fn open(place: &DatabaseLocation, instance: &str, now: Timestamp) -> Result<Self, StoreError> {
        match place {
            DatabaseLocation::File(path) => Self::open_file(path, now),
            DatabaseLocation::Server(place) => {
                let (session, fence) = open_session(place)?;
                let program = env!("CARGO_PKG_VERSION");
                match session.prepare_schema(DAEMON, false, program) {
                    Err(error) if error.kind() == ErrorKind::Missing => session.prepare_schema(DAEMON, true, program)?,
                    found => found?,
                }
                let lease = HeldLease::take(place, fence, instance)?;
                let connection = Connection::Postgres(Box::new(session));
                Ok(Self { connection, path: place.name().to_owned(), unfinished: None, _hold: EndLock::Lease(lease) })
            }
        }
    }

    fn open_file(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let path = resolve(path)?;
        check_restore_finished(&path)?;
        let lock = take_lock(&path)?;
        if open::version_of(&path)? > 0 {
            open::check_current(&path)?;
            let mut present = open::open_unmigrated(&path)?;
            in_transaction(&mut present, &path, "read the database", super::check_empty)?;
        }
        let unfinished = sibling_path(&path, ".copy");
        remove_database(&unfinished).map_err(|source| file_failed(&unfinished, source))?;
        let opening = Opening { path: unfinished.clone(), access: crate::Access::Own, now };
        let connection = open::open_new(&opening)?;
        Ok(Self { connection, path, unfinished: Some(unfinished), _hold: EndLock::File(lock) })
    }

    /// Runs `run` in one transaction, which is rolled back if it fails.
    pub(super) fn fill<T>(&mut self, run: impl FnOnce(CopySide<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let filled = in_transaction(&mut self.connection, &self.path, "write the database", run);
        if let (Err(_), Some(unfinished)) = (&filled, &self.unfinished) {
            // Nothing reads a leftover file, and the next copy removes it.
            let _ = remove_database(unfinished);
        }
        filled
    }

    /// Renames the finished file to its final name.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let Some(unfinished) = self.unfinished else { return Ok(()) };
        let path = &self.path;
        checkpoint(self.connection, &unfinished)?;
        let named = File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| remove_companions(path))
            .and_then(|()| fs::rename(&unfinished, path))
            .and_then(|()| sync_directory(path));
        named.map_err(|source| file_failed(path, source))
    }
}

/// Moves everything from the WAL into the database, and closes it. The commit of a transaction does not report a checkpoint that fails,
/// for example on a full disk.
fn checkpoint(connection: Connection, path: &Path) -> Result<(), StoreError> {
    let closed = writer::close(connection);
    closed.map_err(|fault| fault.during("write the database", path))?;
    // The checkpoint leaves data there if another program reads the file.
    let wal = fs::metadata(sibling_path(path, "-wal")).map_or(0, |wal| wal.len());
    if wal > 0 {
        let why = "another program reads the unfinished copy, so some data is still in its write-ahead log";
        return Err(file_failed(path, io::Error::other(why)));
    }
    Ok(())
}

fn in_transaction<T>(
    connection: &mut Connection,
    path: &Path,
    doing: &'static str,
    run: impl FnOnce(CopySide<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let ran = connection.write_uncounted(true, |transaction: &Transaction<'_>| {
        transaction.allow_long()?;
        Ok(run(CopySide { at: transaction, path })?)
    });
    ran.map_err(|fault| fault.during(doing, path))
}

fn open_session(place: &Arc<PostgresUrl>) -> Result<(PgSession, Arc<Fence>), StoreError> {
    let fence = Arc::default();
    let session = PgSession::open(place, &fence);
    Ok((session.map_err(|error| StoreFault::from(error).during(OPENING, place.name()))?, fence))
}

fn file_failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::io("write the copy", path, source)
}

fn remove_database(path: &Path) -> io::Result<()> {
    remove_if_exists(path)?;
    remove_companions(path)
}

/// Removes the companion files of a database.
fn remove_companions(path: &Path) -> io::Result<()> {
    remove_if_exists(&sibling_path(path, "-wal"))?;
    remove_if_exists(&sibling_path(path, "-shm"))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A lease that a background thread renews until this value is dropped.
struct HeldLease {
    keeper: LeaseKeeper,
    /// Dropping the sender ends the thread.
    ending: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeldLease {
    fn take(place: &Arc<PostgresUrl>, fence: Arc<Fence>, instance: &str) -> Result<Self, StoreError> {
        let path = place.name();
        let doing = "take the lease";
        let keeper = LeaseKeeper::new(place.clone(), fence);
        match keeper.maintain(instance).map_err(|error| StoreFault::from(error).during(doing, path))? {
            LeaseStatus::Active => {}
            LeaseStatus::Standby { holder } => {
                let reason = format!(
                    "another cliffwatch ({holder}) uses it; stop all instances; the lease of an instance that died expires after {} s",
                    TERM.as_secs()
                );
                return Err(StoreError::new(ErrorKind::InUse, doing, path, reason));
            }
        }
        let (ending, ended) = mpsc::channel::<()>();
        let (renewing, name) = (keeper.clone(), instance.to_owned());
        let renew = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEWAL) {
                // If renewals keep failing, the transaction detects the lost lease and fails.
                let _ = renewing.maintain(&name);
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-lease".into())
            .spawn(renew)
            .map_err(|source| StoreError::new(ErrorKind::Other, doing, path, "").with_source(source))?;
        Ok(Self { keeper, ending: Some(ending), thread: Some(thread) })
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        drop(self.ending.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.keeper.release_now();
    }
}
