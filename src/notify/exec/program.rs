//! Whether a program may be run: it is there, it can be executed, and nobody but its owner's group can put another in its place.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Everybody may write.
const WORLD_WRITABLE: u32 = 0o002;
/// In a directory in which everybody may write, only the owner of a file may replace it.
const STICKY: u32 = 0o1000;
const EXECUTABLE: u32 = 0o111;

/// Why a program is not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramProblem {
    /// Its path begins somewhere.
    #[error("{} is no absolute path: which program is meant must not depend on where one stands", path.display())]
    Relative { path: PathBuf },
    /// There is no such file.
    #[error("{} is not there", path.display())]
    NotThere { path: PathBuf },
    /// This user cannot see it; the daemon's may.
    #[error("{} cannot be looked at", path.display())]
    Hidden { path: PathBuf, source: std::io::Error },
    /// A directory, a device.
    #[error("{} is no file", path.display())]
    NoFile { path: PathBuf },
    /// A file without the permission.
    #[error("{} is not executable: `chmod 755` it", path.display())]
    NotExecutable { path: PathBuf },
    /// Anybody on this machine could have it run what they like.
    #[error("everybody may write to {}: `chmod o-w` it, or anybody on this machine decides what is run", path.display())]
    WorldWritable { path: PathBuf },
}

/// Checks the program at `path`, and the directories that it lies in, also behind symbolic links.
pub fn check(path: &Path) -> Result<(), ProgramProblem> {
    if !path.is_absolute() {
        return Err(ProgramProblem::Relative { path: path.to_owned() });
    }
    let look = |path: &Path| {
        fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ProgramProblem::NotThere { path: path.to_owned() },
            _ => ProgramProblem::Hidden { path: path.to_owned(), source },
        })
    };
    let found = look(path)?;
    let mode = found.permissions().mode();
    if !found.is_file() {
        return Err(ProgramProblem::NoFile { path: path.to_owned() });
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
            let mode = look(folder)?.permissions().mode();
            // A directory higher up lets nobody replace what is another's in it where it is sticky, as /tmp is.
            let is_open = mode & WORLD_WRITABLE != 0 && (above == 0 || mode & STICKY == 0);
            if is_open {
                return Err(ProgramProblem::WorldWritable { path: folder.to_owned() });
            }
        }
    }
    Ok(())
}

/// What the system's refusal to start a program means, and what to do. The program itself was found before.
pub fn explain(error: &std::io::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::NotFound => "the interpreter that its first line names is not there",
        ErrorKind::PermissionDenied => {
            "this user may not execute it, or what its first line names; under systemd both must stand in ExecPaths= of the unit"
        }
        _ if error.raw_os_error() == Some(EXEC_FORMAT) => "neither a program nor a script that begins with `#!`",
        _ => return format!("it did not start: {error}"),
    };
    format!("it did not start: {hint} ({error})")
}

/// `ENOEXEC`.
const EXEC_FORMAT: i32 = 8;
