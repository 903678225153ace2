//! Programs that a test writes and then runs.

use std::path::Path;
use std::process::Command;

/// Copies a program through another process and makes it executable for everyone.
///
/// If this process wrote the file, children that concurrent tests start meanwhile could inherit the writable descriptor, and the kernel
/// does not execute a file that is open for writing (`ETXTBSY`).
pub fn install_program(from: impl AsRef<Path>, to: &Path) {
    let status = Command::new("install").args(["-m", "755", "--"]).args([from.as_ref(), to]).status();
    assert!(status.is_ok_and(|status| status.success()), "{} is not installed", to.display());
}

/// Writes a script as [`install_program`] does.
pub fn install_script(text: &str, to: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    std::fs::write(&source, text).expect("written");
    install_program(&source, to);
}
