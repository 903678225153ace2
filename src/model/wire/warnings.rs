//! What is noted while an answer is read: fields that did not fit, and what was left out because of that.

use std::cell::{Cell, RefCell};

use serde::{Deserialize, Serialize};

use super::text::sharing;

/// Something in an answer that could not be used as it came: where it stood and what was wrong. The text holds no more than 120
/// characters of what the source sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParseWarning {
    /// Path inside the payload, such as `[3].cliffUnlocks.cliffAmount`.
    pub path: String,
    /// What was wrong, such as `expected a number, got the text "n/a"; the field is ignored`.
    pub problem: String,
}

/// Warnings kept from one answer; more are only counted.
const MAX_ODDITIES: usize = 100;

/// List items and unknown values read from one answer. A body of a few megabytes could otherwise say `{}` millions of times, and
/// each would become a record of several hundred bytes.
const MAX_ITEMS: usize = 500_000;

#[derive(Default)]
struct WarningLog {
    /// The steps to each, the last one first, and what was wrong there.
    oddities: Vec<(Vec<PathStep>, String)>,
    total: usize,
    dropped: usize,
    lost_dates: usize,
    items: usize,
}

/// One step of the path to what is being read.
#[derive(Clone, Copy)]
pub enum PathStep {
    /// Into a field.
    Field(&'static str),
    /// Into an item of a list, counted from zero.
    Index(usize),
}

/// What was noted while something was read.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// The first hundred warnings.
    pub oddities: Vec<ParseWarning>,
    /// How many parse warnings in all.
    pub total: usize,
    /// Lists, objects and items of lists that could not be used and were left out. While there are any, nothing that is missing
    /// is proven gone.
    pub dropped: usize,
}

thread_local! {
    // serde hands no context down a derived tree; parsing one answer stays on one thread, so the log wait here.
    static LOG: RefCell<Option<WarningLog>> = const { RefCell::new(None) };
    // Of that log: how many warnings there were. Most of what is read has none, and its path is nobody's business.
    static NOTED: Cell<usize> = const { Cell::new(0) };
}

/// Runs `read` and gathers the warnings meanwhile: the first hundred, and how many there were in all.
pub fn gather_oddities<T>(read: impl FnOnce() -> T) -> (T, Vec<ParseWarning>, usize) {
    let (result, gathered) = gather(read);
    (result, gathered.oddities, gathered.total)
}

/// Runs `read` and gathers the warnings meanwhile, and what was left out. While gathering, the number of items read is bounded.
pub fn gather<T>(read: impl FnOnce() -> T) -> (T, ReadReport) {
    let outer = (LOG.with_borrow_mut(|log| log.replace(WarningLog::default())), NOTED.replace(0));
    let result = sharing(read);
    NOTED.set(outer.1);
    let log = LOG.with_borrow_mut(|log| std::mem::replace(log, outer.0)).unwrap_or_default();
    let oddities = log.oddities.into_iter().map(|(steps, problem)| ParseWarning { path: path(&steps), problem }).collect();
    (result, ReadReport { oddities, total: log.total, dropped: log.dropped })
}

/// A path of these steps, the last of which comes first.
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

/// Notes a warning at the place that is being read.
pub fn note(problem: impl FnOnce() -> String) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        log.total += 1;
        NOTED.set(log.total);
        if log.oddities.len() < MAX_ODDITIES {
            log.oddities.push((Vec::new(), problem()));
        }
    });
}

/// Notes that the item being read is left out.
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

/// How many dates could not be read so far. A record that lost its date is not one whose date is to be determined.
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

/// Counts an item towards the bound.
pub fn count_item<E: serde::de::Error>() -> Result<(), E> {
    let fits = LOG.with_borrow_mut(|log| {
        log.as_mut().is_none_or(|log| {
            log.items += 1;
            log.items <= MAX_ITEMS
        })
    });
    if fits { Ok(()) } else { Err(E::custom(format_args!("more than {MAX_ITEMS} items in one answer"))) }
}

/// Runs `read` one step further down the path. Steps are put to what was noted on the way back, and nowhere else.
pub fn at<T>(step: PathStep, read: impl FnOnce() -> T) -> T {
    let before = NOTED.get();
    let result = read();
    if NOTED.get() != before {
        LOG.with_borrow_mut(|log| {
            for (steps, _) in log.iter_mut().flat_map(|log| log.oddities.iter_mut().skip(before)) {
                steps.push(step);
            }
        });
    }
    result
}
