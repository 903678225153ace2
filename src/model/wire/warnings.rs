//! Warnings that are collected while a response is parsed: invalid fields, and what was left out because of them.

use std::cell::{Cell, RefCell};

use serde::{Deserialize, Serialize};

use super::text::sharing;

/// A value in a response that was left out. The text has at most 120 characters from the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParseWarning {
    /// The path in the response, such as `[3].cliffUnlocks.cliffAmount`.
    pub path: String,
    /// The problem, such as `expected a number, got the text "n/a"; the field is ignored`.
    pub problem: String,
}

/// The maximum number of warnings that are kept for one response; more are counted.
pub const MAX_PARSE_WARNINGS: usize = 100;

/// The maximum number of list items and unknown values in one response. Otherwise a body of a few megabytes could list `{}`
/// millions of times, and each would become a record of several hundred bytes.
const MAX_ITEMS: usize = 500_000;

#[derive(Default)]
struct WarningLog {
    /// The steps of each path, innermost first, and the problem.
    parse_warnings: Vec<(Vec<PathStep>, String)>,
    total: usize,
    dropped: usize,
    lost_dates: usize,
    items: usize,
}

/// One step of the path to the value being parsed.
#[derive(Clone, Copy)]
pub enum PathStep {
    Field(&'static str),
    /// An item of a list, counted from zero.
    Index(usize),
}

/// The warnings of one response.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// The first hundred warnings.
    pub parse_warnings: Vec<ParseWarning>,
    /// The number of all warnings.
    pub total: usize,
    /// The number of lists, objects, and list items that were left out. If it is not zero, the response proves no removal.
    pub dropped: usize,
}

thread_local! {
    // Serde passes no context to nested values, and parsing stays on one thread.
    static LOG: RefCell<Option<WarningLog>> = const { RefCell::new(None) };
    // The number of warnings in the log. Most values have none, and need no path.
    static NOTED: Cell<usize> = const { Cell::new(0) };
}

/// Runs `read`. Returns its result, the first hundred warnings, and the number of all.
pub fn collect_parse_warnings<T>(read: impl FnOnce() -> T) -> (T, Vec<ParseWarning>, usize) {
    let (result, gathered) = gather(read);
    (result, gathered.parse_warnings, gathered.total)
}

/// Runs `read` and collects its warnings. Limits the number of items that are read.
pub fn gather<T>(read: impl FnOnce() -> T) -> (T, ReadReport) {
    let outer = (LOG.with_borrow_mut(|log| log.replace(WarningLog::default())), NOTED.replace(0));
    let result = sharing(read);
    NOTED.set(outer.1);
    let log = LOG.with_borrow_mut(|log| std::mem::replace(log, outer.0)).unwrap_or_default();
    let parse_warnings =
        log.parse_warnings.into_iter().map(|(steps, problem)| ParseWarning { path: path(&steps), problem }).collect();
    (result, ReadReport { parse_warnings, total: log.total, dropped: log.dropped })
}

/// Returns the path of these steps, which are given innermost first.
fn path(steps: &[PathStep]) -> String {
    steps.iter().rev().fold(String::new(), |mut text, step| {
        match step {
            PathStep::Field(name) if text.is_empty() => text.push_str(name),
            PathStep::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
        text
    })
}

/// Adds a warning about the value being parsed.
pub fn note(problem: impl FnOnce() -> String) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        log.total += 1;
        NOTED.set(log.total);
        if log.parse_warnings.len() < MAX_PARSE_WARNINGS {
            log.parse_warnings.push((Vec::new(), problem()));
        }
    });
}

/// Adds a warning that the item being parsed is left out.
pub fn note_dropped(problem: impl FnOnce() -> String) {
    note(problem);
    count_dropped();
}

pub(super) fn count_dropped() {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.dropped += 1;
        }
    });
}

/// Returns the number of dates that were invalid so far. A record without a valid date is not one whose date is to be determined.
pub fn lost_dates() -> usize {
    LOG.with_borrow(|log| log.as_ref().map_or(0, |log| log.lost_dates))
}

pub(super) fn count_lost_date() {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.lost_dates += 1;
        }
    });
}

/// Counts an item towards the limit.
pub fn count_item<E: serde::de::Error>() -> Result<(), E> {
    let fits = LOG.with_borrow_mut(|log| {
        log.as_mut().is_none_or(|log| {
            log.items += 1;
            log.items <= MAX_ITEMS
        })
    });
    if fits { Ok(()) } else { Err(E::custom(format_args!("more than {MAX_ITEMS} items in one response"))) }
}

/// Runs `read` one step deeper in the path. The step is added only to warnings, on the way back.
pub fn at<T>(step: PathStep, read: impl FnOnce() -> T) -> T {
    let before = NOTED.get();
    let result = read();
    if NOTED.get() != before {
        LOG.with_borrow_mut(|log| {
            for (steps, _) in log.iter_mut().flat_map(|log| log.parse_warnings.iter_mut().skip(before)) {
                steps.push(step);
            }
        });
    }
    result
}
