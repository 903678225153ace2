//! Backups of a live database file: consistent, checked, and synced before the file gets its final name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rusqlite::Connection;

use super::Store;
use super::connection::{open_read_only, open_writer, sibling_path};
use super::copy::MACHINE_KEYS;
use super::error::{ErrorKind, StoreError, StoreFault};

impl Store {
    /// Writes a consistent backup of the live database to `to`. The file is checked and synced before it gets its name.
    /// Replaces an existing file only if `overwrite` is set, and never the database itself.
    ///
    /// # Errors
    ///
    /// Fails if the target is rejected, cannot be written, or the database is damaged.
    pub async fn backup(&self, to: PathBuf, overwrite: bool) -> Result<(), StoreError> {
        let doing = "back up the database";
        if self.handle.is_on_server {
            return Err(rejected(&to, "the database is on a server; use `pg_dump` instead"));
        }
        let path = self.handle.path.clone();
        let task = tokio::task::spawn_blocking(move || backup(&path, &to, overwrite).map_err(|fault| fault.during(doing, &path)));
        task.await.map_err(|_| StoreError::closed(doing))?
    }

    /// Checks every page. This takes seconds on a large database, so it uses a separate connection; closing the store
    /// interrupts it.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Damaged`] if a page is damaged, or if the file cannot be read.
    pub async fn integrity_check(&self) -> Result<(), StoreError> {
        let doing = "check the database";
        if self.handle.is_on_server {
            // The server checks its own pages, with checksums if they are enabled.
            return Ok(());
        }
        let handle = self.handle.clone();
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
                    Err(StoreError::closed(doing))
                }
                result => result.map_err(|fault| fault.during(doing, &handle.path)),
            }
        });
        task.await.map_err(|_| StoreError::closed(doing))?
    }
}

const WRITING: &str = "write the backup";

fn rejected(to: &Path, reason: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Rejected, WRITING, to, reason)
}

/// Removes the temporary file of a failed backup.
struct UnfinishedCopy(PathBuf);

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        // The file no longer exists if it was renamed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies the database at `from`, as of now, to `to`. Other processes can write meanwhile.
fn backup(from: &Path, to: &Path, overwrite: bool) -> Result<(), StoreFault> {
    let failed = |source: io::Error| StoreError::io(WRITING, to, source);
    let is_there = fs::symlink_metadata(to).is_ok();
    if is_there && fs::canonicalize(to).is_ok_and(|real| real == from) {
        return Err(rejected(to, "it is the database itself; choose another path").into());
    }
    if is_there && !overwrite {
        return Err(rejected(to, "the file exists; choose another path, or allow overwriting it").into());
    }
    if to.file_name().is_none() {
        return Err(rejected(to, "it is not a file name").into());
    }

    let copy = UnfinishedCopy(sibling_path(to, &format!(".{}.tmp", std::process::id())));
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
        // Unlike a rename, a link never replaces a file that another process created meanwhile.
        match fs::hard_link(&copy.0, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(rejected(to, "the file exists; choose another path, or allow overwriting it").into());
            }
            // Some file systems do not support hard links.
            Err(_) => fs::rename(&copy.0, to).map_err(failed)?,
        }
    }
    sync_directory(to).map_err(failed)?;
    Ok(())
}

/// Copies a database, as of now and without the rows about its machine, to a file that does not exist yet.
pub(super) fn copy_into(source: &Connection, to: &Path) -> Result<(), StoreFault> {
    let name = to.to_str().ok_or_else(|| rejected(to, "the path is not valid UTF-8; choose another one"))?;
    // `VACUUM INTO` would create the file with the default permissions, so create it as private first.
    private_file(to).map_err(|source| StoreError::io(WRITING, to, source))?;
    source.execute("VACUUM INTO ?1", [name])?;
    let copy = open_writer(to, false)?;
    copy.execute(&format!("DELETE FROM meta WHERE key IN ({MACHINE_KEYS})"), [])?;
    Ok(copy.close().map_err(|(_, error)| error)?)
}

/// Syncs the directory of `file`, which makes a rename durable.
pub(super) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all())
}

/// Creates an empty file that only its owner can read.
pub(super) fn private_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Checks every page; the error lists the first problems.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreFault> {
    let mut statement = connection.prepare("PRAGMA quick_check(5)")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if found.iter().map(String::as_str).eq(["ok"]) {
        return Ok(());
    }
    let detail = found.join("; ").replace('\n', " ");
    Err(StoreError::damaged("check the database", path, &detail).into())
}
