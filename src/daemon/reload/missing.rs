//! Detects rule files that are missing or empty. A deployment or an editor may be about to restore them, and dropping their rules
//! would resolve alerts that then fire again. Pure.

use std::collections::HashSet;
use std::path::Path;

use chrono::TimeDelta;

use model::{Diagnostic, SourceText, Timestamp, phrase};

/// The time after which a missing rule file counts as removed, if other rule files exist.
pub const REMOVAL_DELAY: TimeDelta = TimeDelta::minutes(5);

/// Returns an error for each file of the active rules that is missing since `since`. A missing file counts as removed after
/// [`REMOVAL_DELAY`]. An empty file, or the last file, never counts as removed unless `[rules] paths` changes.
pub fn missing_files(active: &[SourceText], current: &[SourceText], since: Timestamp, now: Timestamp) -> Vec<Diagnostic> {
    let is_blank = |source: &&SourceText| source.text.trim().is_empty();
    let (blank, full): (Vec<_>, Vec<_>) = current.iter().partition(is_blank);
    let blank: HashSet<&Path> = blank.into_iter().map(|source| source.file.as_path()).collect();
    let present: HashSet<&Path> = full.iter().map(|source| source.file.as_path()).collect();
    // A file with the same text under another name was renamed.
    let texts: HashSet<&str> = full.iter().map(|source| source.text.as_str()).collect();
    let is_removed = !full.is_empty() && now - since >= REMOVAL_DELAY;
    let missing = active
        .iter()
        .filter(|source| !is_blank(source) && !present.contains(source.file.as_path()) && !texts.contains(source.text.as_str()));
    missing
        .filter_map(|source| {
            let file = source.file.as_path();
            let (message, help) = match (blank.contains(file), full.is_empty()) {
                (true, _) => {
                    ("this rule file is empty; its rules stay active", "restore its rules, or remove the file".to_owned())
                }
                (false, true) => (
                    "all rule files are missing, including this one; their rules stay active",
                    "restore the files, or change `paths` in `[rules]`".to_owned(),
                ),
                (false, false) if is_removed => return None,
                (false, false) => {
                    let until = phrase::instant(since + REMOVAL_DELAY);
                    ("this rule file is missing; its rules stay active for now", format!("its rules are removed on {until}"))
                }
            };
            Some(Diagnostic::error(file, None, message.to_owned()).help(help))
        })
        .collect()
}
