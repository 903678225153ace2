//! A copy of a live database: of one moment, checked, on the disk for good before it gets its name.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    error::{Fault, StoreError},
    open::open_read_only,
    threads::beside,
};

/// Removes what is left of a copy that failed.
struct Scrap(PathBuf);

impl Drop for Scrap {
    fn drop(&mut self) {
        // Gone already if the copy got its name.
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies the database at `from` to `to`. Writers go on meanwhile; the copy is of the moment at which it began.
pub(super) fn backup(from: &Path, to: &Path, overwrite: bool) -> Result<(), Fault> {
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

    let scrap = Scrap(beside(to, &format!(".{}.tmp", std::process::id())));
    match fs::remove_file(&scrap.0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error).into()),
    }
    // SQLite makes the file as it makes any; the copy is nobody's business but its owner's, so it is made first.
    private_file(&scrap.0).map_err(failed)?;
    let name = scrap.0.to_str().ok_or_else(|| refused("its name is not UTF-8"))?;
    let source = open_read_only(from)?;
    source.execute("VACUUM INTO ?1", [name])?;
    drop(source);
    check(&open_read_only(&scrap.0)?, &scrap.0)?;
    File::open(&scrap.0).and_then(|file| file.sync_all()).map_err(failed)?;
    if overwrite {
        fs::rename(&scrap.0, to).map_err(failed)?;
    } else {
        // Unlike a rename, a link never replaces what somebody else put there meanwhile.
        match fs::hard_link(&scrap.0, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(refused("the file is there already; name another, or ask to overwrite it").into());
            }
            // Some file systems have no links.
            Err(_) => fs::rename(&scrap.0, to).map_err(failed)?,
        }
    }
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(())
}

fn private_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Reads every page of a database; an error tells the first things that are wrong.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let mut statement = connection.prepare("PRAGMA quick_check(5)")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if found.iter().map(String::as_str).eq(["ok"]) {
        return Ok(());
    }
    let detail = found.join("; ").replace('\n', " ");
    Err(StoreError::Damaged { doing: "check the database", path: path.to_owned(), detail, source: None }.into())
}
