//! The lock file next to the database, which ensures a single owner.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::connection::sibling_path;
use super::error::{ErrorKind, OPENING, StoreError};
use super::owner::{give_to_owner_of, give_to_owner_of_directory};

/// The number of attempts and the pause between them, together well below one second.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(30);

/// Locks `<db>.lock` for the lifetime of the returned handle, and writes the process id into it for error messages.
pub(super) fn take_lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = sibling_path(path, ".lock");
    let failed = |source: io::Error| StoreError::io("lock the database", &lock_path, source);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&lock_path).map_err(failed)?;
    // Root runs commands on the database of the service, which must be able to lock it later. If this fails, opening it reports why.
    let _ = match fs::metadata(path) {
        Ok(database) => give_to_owner_of(&database, &lock_path),
        Err(_) => give_to_owner_of_directory(&lock_path),
    };
    let mut tries_left = LOCK_ATTEMPTS;
    loop {
        tries_left -= 1;
        match file.try_lock() {
            Ok(()) => break,
            // A process that is shutting down releases the lock soon.
            Err(TryLockError::WouldBlock) if tries_left > 0 => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A process id is short; ignore other content.
                let pid: Option<u32> = file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                let reason = format!("another cliffwatch{pid} uses it; stop it, or set another `path` in [store]");
                return Err(StoreError::new(ErrorKind::InUse, OPENING, path, reason));
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// Returns the canonical path, so that two owners cannot lock the same file under different names.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(name), parent) = (path.file_name(), path.parent()) else {
                return Err(StoreError::io(OPENING, path, error));
            };
            let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(fs::canonicalize(parent).map_err(|source| StoreError::io(OPENING, path, source))?.join(name))
        }
        Err(error) => Err(StoreError::io(OPENING, path, error)),
    }
}
