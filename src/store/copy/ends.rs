//! Both databases of a copy: opened, and out of everybody else's reach until the copy is over.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;

use super::Side;
use crate::backup::sync_directory;
use crate::connection::beside;
use crate::error::{StoreError, StoreFault};
use crate::lease::LeaseKeeper;
use crate::lock::{resolve, take_lock};
use crate::open::{self, Place};
use crate::restore::refuse_unfinished;
use crate::sql::postgres::PgSession;
use crate::sql::postgres::lease::Fence;
use crate::sql::postgres::place::PostgresPlace;
use crate::sql::postgres::schema::DAEMON;
use crate::sql::{Connection, Transaction};
use crate::{Opening, Standing, lease};
use model::Timestamp;
use model::lease::RENEWAL;

/// What keeps others away from a database.
#[expect(dead_code, reason = "held, not read")]
enum EndLock {
    File(File),
    Lease(HeldLease),
}

/// Where everything comes from.
pub(super) struct Source {
    // Before what keeps others away: it is closed first.
    connection: Connection,
    path: PathBuf,
    _hold: EndLock,
}

impl Source {
    /// Opens a database of the present schema. Fails where it is missing, of another schema, or in use.
    pub(super) fn open(place: &Place, holder: &str) -> Result<Self, StoreError> {
        match place {
            Place::File(path) => {
                let path = resolve(path)?;
                open::refuse_unless_current(&path)?;
                refuse_unfinished(&path)?;
                let lock = take_lock(&path)?;
                Ok(Self { connection: open::open_as_it_is(&path)?, path, _hold: EndLock::File(lock) })
            }
            Place::Server(place) => {
                let (session, fence) = open_session(place)?;
                session.prepare_schema(DAEMON, false, env!("CARGO_PKG_VERSION"))?;
                let lease = HeldLease::take(place, fence, holder)?;
                let connection = Connection::Postgres(Box::new(session));
                Ok(Self { connection, path: place.name().to_owned(), _hold: EndLock::Lease(lease) })
            }
        }
    }

    /// Runs `run` while nobody writes here.
    pub(super) fn hold<T>(&mut self, run: impl FnOnce(Side<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        in_transaction(&mut self.connection, &self.path, "read the database", run)
    }
}

/// Where everything goes.
pub(super) struct Target {
    connection: Connection,
    path: PathBuf,
    /// The file that is filled, and gets its name when it is whole.
    unfinished: Option<PathBuf>,
    _hold: EndLock,
}

impl Target {
    /// Opens a database that is empty, or makes it. Fails where it is not ours, of another schema, or in use. What is in it is looked at
    /// later.
    pub(super) fn open(place: &Place, holder: &str, now: Timestamp) -> Result<Self, StoreError> {
        match place {
            Place::File(path) => Self::open_file(path, now),
            Place::Server(place) => {
                let (session, fence) = open_session(place)?;
                let program = env!("CARGO_PKG_VERSION");
                match session.prepare_schema(DAEMON, false, program) {
                    Err(StoreError::Missing { .. }) => session.prepare_schema(DAEMON, true, program)?,
                    found => found?,
                }
                let lease = HeldLease::take(place, fence, holder)?;
                let connection = Connection::Postgres(Box::new(session));
                Ok(Self { connection, path: place.name().to_owned(), unfinished: None, _hold: EndLock::Lease(lease) })
            }
        }
    }

    fn open_file(path: &Path, now: Timestamp) -> Result<Self, StoreError> {
        let path = resolve(path)?;
        refuse_unfinished(&path)?;
        let lock = take_lock(&path)?;
        if open::version_of(&path)? > 0 {
            open::refuse_unless_current(&path)?;
            let mut present = open::open_as_it_is(&path)?;
            in_transaction(&mut present, &path, "read the database", super::refuse_filled)?;
        }
        let unfinished = beside(&path, ".copy");
        remove_with_log(&unfinished).map_err(|source| file_failed(&unfinished, source))?;
        let opening = Opening { path: unfinished.clone(), access: crate::Access::Own, now };
        let connection = open::open_new(&opening)?;
        Ok(Self { connection, path, unfinished: Some(unfinished), _hold: EndLock::File(lock) })
    }

    /// Runs `run` in one transaction, which is committed if it succeeds and undone if not.
    pub(super) fn fill<T>(&mut self, run: impl FnOnce(Side<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let filled = in_transaction(&mut self.connection, &self.path, "write the database", run);
        if let (Err(_), Some(unfinished)) = (&filled, &self.unfinished) {
            // Nobody reads it; where it stays, the next copy takes it away.
            let _ = remove_with_log(unfinished);
        }
        filled
    }

    /// Gives a file its name.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let Some(unfinished) = self.unfinished else { return Ok(()) };
        // The last connection that closes moves the log into the file.
        drop(self.connection);
        let path = &self.path;
        let named = File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| remove_with_log_beside(path))
            .and_then(|()| fs::rename(&unfinished, path))
            .and_then(|()| sync_directory(path));
        named.map_err(|source| file_failed(path, source))
    }
}

fn in_transaction<T>(
    connection: &mut Connection,
    path: &Path,
    doing: &'static str,
    run: impl FnOnce(Side<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let ran = connection.write(true, |transaction: &Transaction<'_>| {
        transaction.allow_long()?;
        Ok(run(Side { at: transaction, path })?)
    });
    ran.map_err(|fault| fault.during(doing, path))
}

fn open_session(place: &Arc<PostgresPlace>) -> Result<(PgSession, Arc<Fence>), StoreError> {
    let fence = Arc::default();
    let session = PgSession::open(place, &fence);
    Ok((session.map_err(|error| StoreFault::from(error).during("open the database", place.name()))?, fence))
}

fn file_failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::Unreachable { doing: "write the copy", path: path.to_owned(), source: Box::new(source) }
}

fn remove_with_log(path: &Path) -> io::Result<()> {
    remove_if_there(path)?;
    remove_with_log_beside(path)
}

/// Removes what a database keeps beside its file.
fn remove_with_log_beside(path: &Path) -> io::Result<()> {
    remove_if_there(&beside(path, "-wal"))?;
    remove_if_there(&beside(path, "-shm"))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A lease that is ours, and renewed by a thread of its own until this is dropped.
struct HeldLease {
    keeper: LeaseKeeper,
    /// Dropped, it ends the thread.
    ending: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeldLease {
    fn take(place: &Arc<PostgresPlace>, fence: Arc<Fence>, holder: &str) -> Result<Self, StoreError> {
        let path = place.name();
        let doing = "take the lease";
        let keeper = lease::LeaseKeeper::new(place.clone(), fence);
        match keeper.keep(holder).map_err(|error| StoreFault::from(error).during(doing, path))? {
            Standing::Active => {}
            Standing::StandingBy { holder } => return Err(StoreError::Held { path: path.to_owned(), holder }),
        }
        let (ending, ended) = mpsc::channel::<()>();
        let (kept, name) = (keeper.clone(), holder.to_owned());
        let keep = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEWAL) {
                // Where it fails for too long, the transaction finds the lease gone and fails too.
                let _ = kept.keep(&name);
            }
        };
        let thread =
            std::thread::Builder::new().name("store-lease".into()).spawn(keep).map_err(|source| file_failed(path, source))?;
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
