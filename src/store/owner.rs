//! Owners of database files. Root runs commands for a service with a user of its own, which must be able to open what they create.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, lchown};
use std::path::Path;

const ROOT: u32 = 0;

/// Gives `file` the owner and group of `model`, such as the file that it replaces.
///
/// # Errors
///
/// Fails if `file` belongs to another user and only root could change that.
pub(super) fn give_to_owner_of(model: &Metadata, file: &Path) -> io::Result<()> {
    // The directory can belong to another user, so a link is never followed.
    let own = fs::symlink_metadata(file)?;
    if (own.uid(), own.gid()) == (model.uid(), model.gid()) {
        return Ok(());
    }
    match lchown(file, Some(model.uid()), Some(model.gid())) {
        // Only the group differs, and the owner can open the file.
        Err(_) if own.uid() == model.uid() => Ok(()),
        result => result,
    }
}

/// Gives a new `file` of root the owner of its directory. A file of another user stays as it is.
pub(super) fn give_to_owner_of_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if fs::symlink_metadata(file)?.uid() != ROOT {
        return Ok(());
    }
    give_to_owner_of(&fs::metadata(directory)?, file)
}

/// Creates the directory of `file` if it is missing, accessible only for its owner.
pub(super) fn create_directory_of(file: &Path) -> io::Result<()> {
    match file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.exists() => DirBuilder::new().recursive(true).mode(0o700).create(parent),
        _ => Ok(()),
    }
}

/// Returns the reason and remedy for a file or directory that the user of this process cannot open.
pub(super) fn no_permission(path: &Path) -> String {
    let shown = |path: &Path| model::text::harmless(&path.display().to_string());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(path) {
        Ok(metadata) => format!(
            "no permission; the file belongs to user {}; run the command as root, or change the owner with \
             `sudo chown --reference={} {}`",
            metadata.uid(),
            shown(directory),
            shown(path)
        ),
        Err(_) => format!("no permission to open files in {}; run the command as root", shown(directory)),
    }
}
