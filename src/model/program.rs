//! Which build of the program runs: its version, and the commit that it is made of, where that is known.

use std::sync::OnceLock;

/// The version of every room.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A commit of the program's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramCommit {
    /// The first digits of its hash.
    pub hash: &'static str,
    /// The day on which it was made, UTC, as `2026-03-09`; empty where nobody knows.
    pub date: &'static str,
}

static COMMIT: OnceLock<ProgramCommit> = OnceLock::new();
static LINE: OnceLock<String> = OnceLock::new();

/// Says which commit the program is made of. For the binary, which alone knows, before anything else; an empty hash says nothing.
pub fn made_of(commit: ProgramCommit) {
    if !commit.hash.is_empty() {
        let _ = COMMIT.set(commit);
    }
}

/// The commit that this program is made of; none in tests, and where it was built outside of its repository.
pub fn commit() -> Option<ProgramCommit> {
    COMMIT.get().copied()
}

/// For people: `0.1.0 (84c9a7b1d2e3 2026-11-23)`, or the version alone.
pub fn version_line() -> &'static str {
    LINE.get_or_init(|| line_of(commit()))
}

/// For metrics: label and value of what is known.
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
