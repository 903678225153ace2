//! The version and commit of the running program.

use std::sync::OnceLock;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A commit of the source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramCommit {
    /// The first digits of the hash.
    pub hash: &'static str,
    /// The commit date in UTC, as `2026-03-09`; empty if unknown.
    pub date: &'static str,
}

static COMMIT: OnceLock<ProgramCommit> = OnceLock::new();
static LINE: OnceLock<String> = OnceLock::new();

/// Sets the commit of the program. Called by the binary before anything else; an empty hash is ignored.
pub fn set_commit(commit: ProgramCommit) {
    if !commit.hash.is_empty() {
        let _ = COMMIT.set(commit);
    }
}

/// Returns the commit; `None` in tests and in builds outside of the repository.
pub fn commit() -> Option<ProgramCommit> {
    COMMIT.get().copied()
}

/// Returns `0.1.0 (84c9a7b1d2e3 2026-11-23)`, or the version alone.
pub fn version_line() -> &'static str {
    LINE.get_or_init(|| line_of(commit()))
}

/// Returns the labels of the build metric.
pub fn labels() -> Vec<(&'static str, &'static str)> {
    let commit = commit().map(|commit| [("commit", commit.hash), ("commit_date", commit.date)]);
    [("version", VERSION)].into_iter().chain(commit.into_iter().flatten()).collect()
}

fn line_of(commit: Option<ProgramCommit>) -> String {
    match commit {
        Some(ProgramCommit { hash, date: "" }) => format!("{VERSION} ({hash})"),
        Some(ProgramCommit { hash, date }) => format!("{VERSION} ({hash} {date})"),
        None => VERSION.to_owned(),
    }
}

#[cfg(test)]
mod tests;
