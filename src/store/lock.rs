//! The lock beside the database, by which there is one owner at most.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{connection::beside, error::StoreError};

/// How often the lock is tried, and the pause between tries: together well below a second.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(30);

/// Takes `<db>.lock` for as long as the file handle lives, and leaves our process id in it for the message to others.
pub(super) fn take_lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = beside(path, ".lock");
    let failed = |source: io::Error| StoreError::Unreachable {
        doing: "take the lock of the database",
        path: lock_path.clone(),
        source: Box::new(source),
    };
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&lock_path).map_err(failed)?;
    let mut tries_left = LOCK_TRIES;
    loop {
        tries_left -= 1;
        match file.try_lock() {
            Ok(()) => break,
            // One that is just ending lets go in a moment.
            Err(TryLockError::WouldBlock) if tries_left > 0 => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A process id is short; whatever else is in that file is of no interest.
                let pid = file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StoreError::InUse { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// One name for one file, however it was written: two owners through two links would not see each other's lock.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let unreachable = |path: &Path, source: io::Error| StoreError::Unreachable {
        doing: "open the store",
        path: path.to_owned(),
        source: Box::new(source),
    };
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(name), parent) = (path.file_name(), path.parent()) else {
                return Err(unreachable(path, error));
            };
            let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(fs::canonicalize(parent).map_err(|source| unreachable(path, source))?.join(name))
        }
        Err(error) => Err(unreachable(path, error)),
    }
}
