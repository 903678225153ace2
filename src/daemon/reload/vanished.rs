//! Rule files that are gone, or empty, since the last good ones: a deployment or an editor may be about to put them back, and alerts that
//! ended meanwhile would begin anew. Pure.

use std::collections::HashSet;
use std::path::Path;

use chrono::TimeDelta;

use model::{Diagnostic, SourceText, Timestamp, format};

/// How long a rule file may be gone before that is believed, where other rule files are there.
pub const SETTLING: TimeDelta = TimeDelta::minutes(5);

/// What is missing of the texts at work: an error for each file. `since` is when that was first seen. A file that is gone for good is
/// believed in time, where others are there; one that is empty, or the last one, never is, before `[rules] paths` says so.
pub fn vanished(at_work: &[SourceText], now_there: &[SourceText], since: Timestamp, now: Timestamp) -> Vec<Diagnostic> {
    let is_blank = |source: &&SourceText| source.text.trim().is_empty();
    let (blank, full): (Vec<_>, Vec<_>) = now_there.iter().partition(is_blank);
    let blank: HashSet<&Path> = blank.into_iter().map(|source| source.file.as_path()).collect();
    let there: HashSet<&Path> = full.iter().map(|source| source.file.as_path()).collect();
    // A file under another name is the same file.
    let texts: HashSet<&str> = full.iter().map(|source| source.text.as_str()).collect();
    let is_over = !full.is_empty() && now - since >= SETTLING;
    let missing = at_work
        .iter()
        .filter(|source| !is_blank(source) && !there.contains(source.file.as_path()) && !texts.contains(source.text.as_str()));
    missing
        .filter_map(|source| {
            let file = source.file.as_path();
            let (message, help) = match (blank.contains(file), full.is_empty()) {
                (true, _) => {
                    ("this rule file is empty now; its rules stay at work", "put its rules back, or remove the file".to_owned())
                }
                (false, true) => (
                    "this rule file is gone, and so are all others; their rules stay at work",
                    "put them back, or change `paths` in `[rules]`".to_owned(),
                ),
                (false, false) if is_over => return None,
                (false, false) => {
                    let until = format::instant(since + SETTLING);
                    (
                        "this rule file is gone; its rules stay at work for now",
                        format!("that it is gone is believed from {until} on"),
                    )
                }
            };
            Some(Diagnostic::error(file, None, message.to_owned()).help(help))
        })
        .collect()
}
