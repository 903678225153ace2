//! Checks that a program exists, is executable, and cannot be replaced by other users.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The permission bit that lets every user write.
const WORLD_WRITABLE: u32 = 0o002;
/// In a sticky directory, only the owner of a file can replace it.
const STICKY: u32 = 0o1000;
const EXECUTABLE: u32 = 0o111;

#[derive(Debug, thiserror::Error)]
pub enum ProgramProblem {
    #[error("{} is not an absolute path: give the full path of the program", path.display())]
    Relative { path: PathBuf },
    #[error("{} does not exist", path.display())]
    NotThere { path: PathBuf },
    /// The path is not accessible for this user. The user of the daemon may have access.
    #[error("cannot read the permissions of {}", path.display())]
    Hidden { path: PathBuf, source: std::io::Error },
    #[error("{} is not a regular file", path.display())]
    NotFile { path: PathBuf },
    #[error("{} is not executable: run `chmod 755` on it", path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} is writable by every user, who could replace the program: run `chmod o-w` on it", path.display())]
    WorldWritable { path: PathBuf },
}

/// Checks the program at `path` and all directories above it, with and without symbolic links resolved.
pub fn check(path: &Path) -> Result<(), ProgramProblem> {
    if !path.is_absolute() {
        return Err(ProgramProblem::Relative { path: path.to_owned() });
    }
    let metadata = |path: &Path| {
        fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ProgramProblem::NotThere { path: path.to_owned() },
            _ => ProgramProblem::Hidden { path: path.to_owned(), source },
        })
    };
    let found = metadata(path)?;
    let mode = found.permissions().mode();
    if !found.is_file() {
        return Err(ProgramProblem::NotFile { path: path.to_owned() });
    }
    if mode & EXECUTABLE == 0 {
        return Err(ProgramProblem::NotExecutable { path: path.to_owned() });
    }
    if mode & WORLD_WRITABLE != 0 {
        return Err(ProgramProblem::WorldWritable { path: path.to_owned() });
    }
    let real = fs::canonicalize(path).map_err(|source| ProgramProblem::Hidden { path: path.to_owned(), source })?;
    for path in [path, &real] {
        for (above, folder) in path.ancestors().skip(1).enumerate() {
            let mode = metadata(folder)?.permissions().mode();
            // In a sticky directory higher up, such as /tmp, other users cannot replace the directory below it.
            let is_open = mode & WORLD_WRITABLE != 0 && (above == 0 || mode & STICKY == 0);
            if is_open {
                return Err(ProgramProblem::WorldWritable { path: folder.to_owned() });
            }
        }
    }
    Ok(())
}

/// Explains why the system did not start the program, which was found by [`check`].
pub fn explain(error: &std::io::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::NotFound => "the interpreter in its first line does not exist",
        ErrorKind::PermissionDenied => {
            "no permission to execute it or the interpreter in its first line; under systemd, list both in ExecPaths= of the unit"
        }
        _ if error.raw_os_error() == Some(EXEC_FORMAT) => "it is neither a program nor a script that begins with `#!`",
        _ => return format!("cannot start the program: {error}"),
    };
    format!("cannot start the program: {hint} ({error})")
}

/// `ENOEXEC`.
const EXEC_FORMAT: i32 = 8;
