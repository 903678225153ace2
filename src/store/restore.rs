//! Replaces the database with a backup. The old files are moved aside, including the WAL, which SQLite would otherwise
//! replay over the backup.
//!
//! The backup is first copied and checked under a temporary name. Then the copy is renamed to `<db>.restore`, the old
//! files are moved, and the copy gets its final name. If the process is killed in between, `<db>.restore` remains, and
//! the database cannot be opened until the restore is run again. `<db>.restore.aside` contains the new name of the old
//! files, so that the next run moves all of them to the same name: a database without its WAL lacks the latest writes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::backup::{check, copy_into, sync_directory};
use super::connection::{open_read_only, sibling_path};
use super::error::{ErrorKind, OPENING, StoreError, StoreFault};
use super::lock::{resolve, take_lock};
use super::open::{check_file, version_of};
use super::owner::{create_directory_of, give_to_owner_of, give_to_owner_of_directory};
use super::{Opening, Store, failpoint};

/// The suffixes of the files that SQLite keeps next to the database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub path: PathBuf,
    /// The new path of the previous database. `None` if the database did not exist.
    pub aside: Option<PathBuf>,
}

impl Store {
    /// Checks, without changing the file, whether this version can open the database at `path`. A missing file passes.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::open`] would.
    pub fn check_file(path: &Path) -> Result<(), StoreError> {
        check_file(path)
    }

    /// Replaces the database of `opening` with the backup at `from`, and moves the old files aside. An older backup is
    /// migrated at the next start. Blocks.
    ///
    /// # Errors
    ///
    /// Fails, and leaves the database unchanged, if it is in use, or if the backup is damaged, from a newer version, or
    /// not a Cliffwatch database.
    pub fn restore(from: &Path, opening: &Opening) -> Result<Restored, StoreError> {
        let doing = "restore the backup";
        create_directory_of(&opening.path).map_err(|source| StoreError::io(doing, &opening.path, source))?;
        let path = resolve(&opening.path)?;
        let failed = |source: io::Error| StoreError::io(doing, &path, source);
        let _lock = take_lock(&path)?;
        let from = fs::canonicalize(from).map_err(|source| StoreError::io(doing, from, source))?;
        let rejected = |reason: &'static str| StoreError::new(ErrorKind::Rejected, doing, &from, reason);
        if from == path {
            return Err(rejected("it is the database itself; choose a backup file"));
        }
        if version_of(&from)? == 0 {
            return Err(rejected("it is empty; choose another backup"));
        }
        let ready = marker(&path);
        let copy = sibling_path(&path, ".restore.tmp");
        remove(&copy).map_err(failed)?;
        if let Err(fault) = checked_copy(&from, &copy) {
            remove(&copy).map_err(failed)?;
            return Err(fault.during("copy the backup", &from));
        }
        give_to_service(&copy, &path).map_err(|source| {
            let help =
                "the service could not open the restored database; run the command as root, or as the owner of the old one";
            StoreError::new(ErrorKind::Rejected, doing, &path, help).with_source(source)
        })?;
        File::open(&copy).and_then(|copy| copy.sync_all()).map_err(failed)?;
        failpoint::pass("restore.checked");
        let was_interrupted = ready.exists();
        let aside = match interrupted_aside(&path).filter(|_| was_interrupted) {
            Some(aside) if !path.exists() || !aside.exists() => aside,
            _ => free_name(&path, opening),
        };
        // Before the marker, so that a marker without this record is impossible.
        record_aside(&path, &aside).map_err(failed)?;
        fs::rename(&copy, &ready).and_then(|()| sync_directory(&path)).map_err(failed)?;
        failpoint::pass("restore.marked");
        for companion in COMPANIONS {
            let moved = sibling_path(&aside, companion);
            // Another program opened the old database in between. Only the first WAL belongs to it.
            let to = if moved.exists() { sibling_path(&free_name(&path, opening), companion) } else { moved };
            move_if_exists(&sibling_path(&path, companion), &to).map_err(failed)?;
            failpoint::pass("restore.moving");
        }
        move_if_exists(&path, &aside).and_then(|()| sync_directory(&path)).map_err(failed)?;
        failpoint::pass("restore.moved");
        fs::rename(&ready, &path).and_then(|()| sync_directory(&path)).map_err(failed)?;
        remove(&aside_record(&path)).map_err(failed)?;
        let has_old = aside.exists();
        Ok(Restored { path, aside: has_old.then_some(aside) })
    }
}

/// Copies a database, including the content of its WAL, without the rows about its machine.
fn checked_copy(from: &Path, to: &Path) -> Result<(), StoreFault> {
    let source = open_read_only(from)?;
    check(&source, from)?;
    copy_into(&source, to)
}

/// Gives the copy the owner and the permissions of the database that it replaces, else the owner of the directory. Removes the copy if
/// this fails.
fn give_to_service(copy: &Path, database: &Path) -> io::Result<()> {
    let given = match fs::metadata(database) {
        Ok(old) => give_to_owner_of(&old, copy).and_then(|()| fs::set_permissions(copy, old.permissions())),
        Err(_) => give_to_owner_of_directory(copy),
    };
    given.inspect_err(|_| drop(remove(copy)))
}

/// Fails if a restore of this database was interrupted.
pub(super) fn check_restore_finished(path: &Path) -> Result<(), StoreError> {
    let marker = marker(path);
    if !marker.exists() {
        return Ok(());
    }
    let help = "run `cliffwatch restore` again with the backup, or with its complete copy";
    let reason = format!("a restore was interrupted; {help} {}", marker.display());
    Err(StoreError::new(ErrorKind::RestoreUnfinished, OPENING, path, reason))
}

fn marker(path: &Path) -> PathBuf {
    sibling_path(path, ".restore")
}

/// The file that contains the name of the old database.
fn aside_record(path: &Path) -> PathBuf {
    sibling_path(path, ".restore.aside")
}

/// Stores the file name to which the old files are moved.
fn record_aside(path: &Path, aside: &Path) -> io::Result<()> {
    let (record, fresh) = (aside_record(path), sibling_path(path, ".restore.aside.tmp"));
    let name = aside.file_name().unwrap_or_default();
    // A new file, since another user may have put a link there.
    remove(&fresh)?;
    let mut file = File::create_new(&fresh)?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, &record)?;
    sync_directory(path)
}

/// Returns the name to which an interrupted restore moves the old files. `None` if none was recorded.
fn interrupted_aside(path: &Path) -> Option<PathBuf> {
    let name = fs::read(aside_record(path)).ok()?;
    let own = path.file_name()?.as_bytes();
    // Nothing but a file name of this database, whatever the file contains.
    let is_own = name.starts_with(own) && !name.contains(&b'/');
    is_own.then(|| path.with_file_name(OsStr::from_bytes(&name)))
}

/// Returns a free name like `cliffwatch.db.before-2026-03-09T00-00-00Z`, with a number appended if needed.
fn free_name(path: &Path, opening: &Opening) -> PathBuf {
    let name = format!(".before-{}", opening.now.format("%Y-%m-%dT%H-%M-%SZ"));
    let is_free = |name: &Path| !name.exists() && COMPANIONS.iter().all(|companion| !sibling_path(name, companion).exists());
    let mut numbered = (1..u32::MAX).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
    numbered
        .by_ref()
        .map(|name| sibling_path(path, &name))
        .find(|name| is_free(name))
        .unwrap_or_else(|| sibling_path(path, &name))
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn move_if_exists(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
