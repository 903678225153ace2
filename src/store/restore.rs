//! A backup takes the place of the database. What was there is moved aside, its WAL with it: one that stays would be replayed over the
//! backup.
//!
//! A copy is made and checked first, under a name that nobody reads; then it gets the name `<db>.restore`, the old files go, and the
//! copy takes the last name. Killed on the way, `<db>.restore` is there: nobody opens the database until the restore was run again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::backup::{check, copy_into, sync_directory};
use super::connection::{beside, open_read_only};
use super::error::{StoreError, StoreFault};
use super::lock::{resolve, take_lock};
use super::open::{look_at, version_of};
use super::{Opening, Store, failpoint};

/// The files of a database beside its own: what they hold belongs to that database alone.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// What became of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The database that was put back.
    pub path: PathBuf,
    /// Where the one before it was moved, if there was one.
    pub aside: Option<PathBuf>,
}

impl Store {
    /// Whether the database at `path` could be opened by this program, as far as can be told without touching it: one that is not there
    /// yet could. Blocks.
    /// Fails as opening it would.
    pub fn look_at(path: &Path) -> Result<(), StoreError> {
        look_at(path)
    }

    /// Puts the backup at `from` in the place of the database of `opening`, whose files are moved aside. It may be an older one: the
    /// next start brings it up to date. Blocks; run it where that harms nobody.
    /// Fails, with the database as it was, where a daemon runs on it, or the backup is damaged, of a newer program, or no database.
    pub fn restore(from: &Path, opening: &Opening) -> Result<Restored, StoreError> {
        let path = resolve(&opening.path)?;
        let failed = |source: io::Error| StoreError::RestoreFile { path: path.clone(), source };
        let _lock = take_lock(&path)?;
        let from = fs::canonicalize(from).map_err(|source| StoreError::RestoreFile { path: from.to_owned(), source })?;
        if from == path {
            return Err(StoreError::RestoreRefused { path: from, why: "that is the database itself" });
        }
        if version_of(&from)? == 0 {
            return Err(StoreError::RestoreRefused { path: from, why: "it is empty" });
        }
        let ready = marker(&path);
        let copy = beside(&path, ".restore.tmp");
        remove(&copy).map_err(failed)?;
        if let Err(fault) = checked_copy(&from, &copy) {
            remove(&copy).map_err(failed)?;
            return Err(fault.during("copy the backup", &from));
        }
        File::open(&copy).and_then(|copy| copy.sync_all()).map_err(failed)?;
        failpoint::pass("restore.checked");
        fs::rename(&copy, &ready).and_then(|()| sync_directory(&path)).map_err(failed)?;
        failpoint::pass("restore.marked");
        let aside = free_name(&path, opening);
        let was_there = path.exists();
        for companion in COMPANIONS {
            move_if_there(&beside(&path, companion), &beside(&aside, companion)).map_err(failed)?;
            failpoint::pass("restore.moving");
        }
        move_if_there(&path, &aside).and_then(|()| sync_directory(&path)).map_err(failed)?;
        failpoint::pass("restore.moved");
        fs::rename(&ready, &path).and_then(|()| sync_directory(&path)).map_err(failed)?;
        Ok(Restored { path, aside: was_there.then_some(aside) })
    }
}

/// Copies a database, with what its own WAL may hold.
fn checked_copy(from: &Path, to: &Path) -> Result<(), StoreFault> {
    let source = open_read_only(from)?;
    check(&source, from)?;
    copy_into(&source, to)
}

/// Fails where a restore of this database was cut off.
pub(super) fn refuse_unfinished(path: &Path) -> Result<(), StoreError> {
    let marker = marker(path);
    if marker.exists() { Err(StoreError::RestoreUnfinished { path: path.to_owned(), marker }) } else { Ok(()) }
}

fn marker(path: &Path) -> PathBuf {
    beside(path, ".restore")
}

/// `cliffwatch.db.before-2026-03-09T00-00-00Z`, or with a number behind it where that is taken.
fn free_name(path: &Path, opening: &Opening) -> PathBuf {
    let name = format!(".before-{}", opening.now.format("%Y-%m-%dT%H-%M-%SZ"));
    let is_free = |name: &Path| !name.exists() && COMPANIONS.iter().all(|companion| !beside(name, companion).exists());
    let mut numbered = (1..u32::MAX).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
    numbered.by_ref().map(|name| beside(path, &name)).find(|name| is_free(name)).unwrap_or_else(|| beside(path, &name))
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
