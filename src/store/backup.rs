//! A copy of a live database: of one moment, checked, on the disk for good before it gets its name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rusqlite::Connection;

use super::Store;
use super::connection::{beside, open_read_only};
use super::error::{StoreError, StoreFault};

impl Store {
    /// Copies the live database to `to`, of one moment, checked and synced before it gets its name. It replaces a file only where
    /// `overwrite` says so, and never the database itself.
    /// Fails where the copy is refused, cannot be written, or the database is damaged.
    pub async fn backup(&self, to: PathBuf, overwrite: bool) -> Result<(), StoreError> {
        let doing = "back up the database";
        if self.0.is_on_server {
            let why = "the database is on a server: copy it by `pg_dump`";
            return Err(StoreError::BackupRefused { path: to, why });
        }
        let path = self.0.path.clone();
        let task = tokio::task::spawn_blocking(move || backup(&path, &to, overwrite).map_err(|fault| fault.during(doing, &path)));
        task.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Reads every page and says what is damaged: seconds for a large database, so it runs on a connection of its own, beside the
    /// work. Closing the store ends it. Fails with [`StoreError::Damaged`] with what was found, or that it could not be read.
    pub async fn integrity_check(&self) -> Result<(), StoreError> {
        let doing = "check the database";
        if self.0.is_on_server {
            // The server looks after its pages itself, by checksums where they are on.
            return Ok(());
        }
        let handle = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            let read_pages = || -> Result<(), StoreFault> {
                let connection = open_read_only(&handle.path)?;
                *handle.check.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.get_interrupt_handle());
                check(&connection, &handle.path)
            };
            let result = read_pages();
            drop(handle.check.lock().unwrap_or_else(PoisonError::into_inner).take());
            match result {
                Err(StoreFault::Sqlite(error))
                    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
                {
                    Err(StoreError::Closed { doing })
                }
                result => result.map_err(|fault| fault.during(doing, &handle.path)),
            }
        });
        task.await.map_err(|_| StoreError::Closed { doing })?
    }
}

/// Removes what is left of a copy that failed.
struct UnfinishedCopy(PathBuf);

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        // Gone already if the copy got its name.
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies the database at `from` to `to`. Writers go on meanwhile; the copy is of the moment at which it began.
fn backup(from: &Path, to: &Path, overwrite: bool) -> Result<(), StoreFault> {
    let refused = |why| StoreError::BackupRefused { path: to.to_owned(), why };
    let failed = |source: io::Error| StoreError::BackupFile { path: to.to_owned(), source };
    let is_there = fs::symlink_metadata(to).is_ok();
    if is_there && fs::canonicalize(to).is_ok_and(|real| real == from) {
        return Err(refused("that is the database itself").into());
    }
    if is_there && !overwrite {
        return Err(refused("the file is there already; name another, or ask to overwrite it").into());
    }
    if to.file_name().is_none() {
        return Err(refused("it is no file name").into());
    }

    let copy = UnfinishedCopy(beside(to, &format!(".{}.tmp", std::process::id())));
    match fs::remove_file(&copy.0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error).into()),
    }
    copy_into(&open_read_only(from)?, &copy.0)?;
    check(&open_read_only(&copy.0)?, &copy.0)?;
    File::open(&copy.0).and_then(|file| file.sync_all()).map_err(failed)?;
    if overwrite {
        fs::rename(&copy.0, to).map_err(failed)?;
    } else {
        // Unlike a rename, a link never replaces what somebody else put there meanwhile.
        match fs::hard_link(&copy.0, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(refused("the file is there already; name another, or ask to overwrite it").into());
            }
            // Some file systems have no links.
            Err(_) => fs::rename(&copy.0, to).map_err(failed)?,
        }
    }
    sync_directory(to).map_err(failed)?;
    Ok(())
}

/// Copies a database as it is at this moment to a file that is not there yet.
pub(super) fn copy_into(source: &Connection, to: &Path) -> Result<(), StoreFault> {
    let name = to.to_str().ok_or_else(|| StoreError::BackupRefused { path: to.to_owned(), why: "its name is not UTF-8" })?;
    // SQLite makes the file as it makes any; the copy is nobody's business but its owner's, so it is made first.
    private_file(to).map_err(|source| StoreError::BackupFile { path: to.to_owned(), source })?;
    source.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Has the names in the folder of `file` on the disk.
pub(super) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all())
}

/// Makes an empty file that nobody but its owner can read.
pub(super) fn private_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Reads every page of a database; an error tells the first things that are wrong.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreFault> {
    let mut statement = connection.prepare("PRAGMA quick_check(5)")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if found.iter().map(String::as_str).eq(["ok"]) {
        return Ok(());
    }
    let detail = found.join("; ").replace('\n', " ");
    Err(StoreError::Damaged { doing: "check the database", path: path.to_owned(), detail, source: None }.into())
}
