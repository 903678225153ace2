//! A walk over the pages of one answer: which page is next, and whether all of them fit together. Pure.
//!
//! The server's own `total`, `totalPages` and `page` are the truth. A list that changed under the walk, a page that is missing, a
//! row that stands on two pages: each means that the rows at hand are not the list, and that nothing may be concluded from a
//! row's absence. Pages whose bytes and counts are those of an answer that was whole before are whole again: their rows are not
//! gone through.

use std::collections::HashSet;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::envelope::AnswerPage;
use model::poll::FailureKind;
use model::supply::ContentHash;

/// Most pages of one answer.
pub(super) const MAX_PAGES: u64 = 1_000;

/// Most rows of one answer.
const MAX_ROWS: usize = 1_000_000;

/// Most text kept of one answer, as a multiple of the largest page.
const MAX_WALK_BODIES: u64 = 4;

/// What to do after a page.
#[derive(Debug, PartialEq)]
pub(super) enum WalkStep {
    /// Ask for this page.
    Next(u32),
    /// All pages are here and fit.
    Whole,
    /// All pages are here, and they are those of the answer that is known.
    Same,
    /// They do not fit: the list changed meanwhile. Walking again may help.
    Shifted(String),
    /// They will never fit.
    Hopeless(FailureKind, String),
}

/// What a page says of the whole list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ListExtent {
    total: Option<i64>,
    pages: Option<i64>,
}

/// The pages of one answer so far.
#[derive(Debug)]
pub(super) struct PageWalk {
    is_list: bool,
    /// Rows asked for on a page, where the endpoint is known to have pages.
    asked_size: Option<u32>,
    max_bytes: u64,
    /// The hash of the last whole answer, where there is one to compare with.
    known: Option<ContentHash>,
    extent: Option<ListExtent>,
    pages: Vec<AnswerPage>,
    /// Rows of each page that stood on an earlier one, in order.
    repeated: Vec<Vec<usize>>,
    rows: usize,
    rows_on_last: usize,
    /// Rows that stood before, on an earlier page or on the same one.
    repeated_rows: usize,
    repeated_across: usize,
    seen: HashSet<u128>,
    bytes: u64,
}

/// All pages of an answer, fitting together.
#[derive(Debug)]
pub(super) struct AnswerPages {
    /// The pages in order.
    pub pages: Vec<AnswerPage>,
    /// Rows of each page that are left out because they stood before, in order.
    pub repeated: Vec<Vec<usize>>,
}

impl AnswerPages {
    /// See [`hash`].
    pub fn hash(&self) -> ContentHash {
        hash(&self.pages)
    }
}

/// Hash over what decides whether pages are a whole answer, and which: the raw spans of `data`, each with its length before it, and
/// what the server counts.
pub(super) fn hash(pages: &[AnswerPage]) -> ContentHash {
    let mut hash = Xxh3::new();
    for page in pages {
        for count in [page.metadata.total.copied(), page.metadata.total_pages.copied()] {
            hash.update(&[u8::from(count.is_some())]);
            hash.update(&count.unwrap_or_default().to_le_bytes());
        }
        let data = page.data().as_bytes();
        hash.update(&(data.len() as u64).to_le_bytes());
        hash.update(data);
    }
    ContentHash(hash.digest128())
}

impl PageWalk {
    /// A walk that has seen nothing yet. `asked_size`: rows asked for on a page, where the endpoint is known to have pages. `known`:
    /// the [`hash`] of the last whole answer.
    pub fn new(is_list: bool, asked_size: Option<u32>, max_body: u64, known: Option<ContentHash>) -> Self {
        Self {
            is_list,
            asked_size,
            max_bytes: max_body.saturating_mul(MAX_WALK_BODIES),
            known,
            extent: None,
            pages: Vec::new(),
            repeated: Vec::new(),
            rows: 0,
            rows_on_last: 0,
            repeated_rows: 0,
            repeated_across: 0,
            seen: HashSet::new(),
            bytes: 0,
        }
    }

    /// Pages that are still to come, as far as is known.
    pub fn pages_left(&self) -> u64 {
        self.page_count().saturating_sub(self.pages.len() as u64)
    }

    /// Pages of the whole list, as the server says; one where it says nothing.
    pub fn page_count(&self) -> u64 {
        self.extent.and_then(|extent| extent.pages).and_then(|pages| u64::try_from(pages).ok()).unwrap_or(1).max(1)
    }

    /// Rows to ask for on the pages after the first: as many as the server put on it.
    pub fn page_size(&self) -> Option<i64> {
        self.pages.first().and_then(|page| page.metadata.page_size.copied()).filter(|size| *size > 0)
    }

    /// Adds the next page and says what follows.
    pub fn take(&mut self, page: AnswerPage) -> WalkStep {
        let number = self.pages.len() as i64 + 1;
        let extent = ListExtent { total: page.metadata.total.copied(), pages: page.metadata.total_pages.copied() };
        if let Some(told) = page.metadata.page.copied()
            && told != number
        {
            return WalkStep::Shifted(format!("page {number} was asked for and page {told} came"));
        }
        match self.extent {
            None => self.extent = Some(extent),
            Some(first) if first == extent => {}
            Some(first) => {
                let described = |extent: ListExtent| match (extent.total, extent.pages) {
                    (Some(total), Some(pages)) => format!("{} on {}", counted(total, "row"), counted(pages, "page")),
                    (Some(total), None) => counted(total, "row"),
                    (None, Some(pages)) => counted(pages, "page"),
                    (None, None) => "no total".to_owned(),
                };
                return WalkStep::Shifted(format!("page 1 said {}, page {number} said {}", described(first), described(extent)));
            }
        }
        if extent.total.is_some_and(i64::is_negative) || extent.pages.is_some_and(i64::is_negative) {
            return WalkStep::Hopeless(FailureKind::Incomplete, "the answer counts its rows or pages below zero".into());
        }
        let page_count = self.page_count();
        if page_count > MAX_PAGES {
            return WalkStep::Hopeless(
                FailureKind::TooLarge,
                format!("the answer has {page_count} pages; at most {MAX_PAGES} are read"),
            );
        }
        if page_count > 1 && !self.is_list {
            return WalkStep::Hopeless(
                FailureKind::Incomplete,
                format!("`data` is an object, yet the answer says that it has {page_count} pages"),
            );
        }
        self.bytes += page.len() as u64;
        if self.bytes > self.max_bytes {
            let most = self.max_bytes;
            return WalkStep::Hopeless(FailureKind::TooLarge, format!("the pages together hold more than {most} bytes"));
        }
        let is_last = number as u64 >= page_count;
        let is_blank = page.is_blank();
        self.pages.push(page);
        // Where an answer is known, rows are counted only once it is clear that this is another one.
        let counted = if self.known.is_none() { self.count(self.pages.len() - 1) } else { Ok(()) };
        if let Err(step) = counted {
            return step;
        }
        if !is_last {
            if self.is_list && is_blank {
                return WalkStep::Shifted(format!("page {number} of {page_count} is empty"));
            }
            return u32::try_from(number + 1).map_or(WalkStep::Shifted("the page numbers overflow".into()), WalkStep::Next);
        }
        if let Some(known) = self.known {
            if hash(&self.pages) == known {
                return WalkStep::Same;
            }
            if let Err(step) = (0..self.pages.len()).try_for_each(|index| self.count(index)) {
                return step;
            }
        }
        self.finish(extent)
    }

    /// Goes through the rows of a page: counts them, and marks those that stood before.
    fn count(&mut self, index: usize) -> Result<(), WalkStep> {
        let (page_count, extent) = (self.page_count(), self.extent);
        let Some(page) = self.pages.get(index) else { return Ok(()) };
        // Where nobody counts rows there is nothing to compare them with, and an unchanged answer need not be gone through twice.
        let total = extent.and_then(|extent| extent.total);
        let is_counted = page_count > 1 || total.is_some() || self.asked_size.is_some();
        if !self.is_list {
            return Ok(());
        }
        let mut repeated = Vec::new();
        if let Some(rows) = page.rows.filter(|rows| page_count == 1 && total.is_none_or(|total| total == *rows as i64)) {
            self.rows += rows;
            self.rows_on_last = rows;
        } else if is_counted || page.is_skimmed {
            let rows: Vec<&RawValue> = match serde_json::from_str(page.data()) {
                Ok(rows) => rows,
                Err(error) => return Err(WalkStep::Shifted(format!("`data` of page {} cannot be read: {error}", index + 1))),
            };
            // Single pages without a count need no comparing: equal rows on one page are two rows.
            if page_count > 1 || total.is_some_and(|total| total != rows.len() as i64) {
                let mut here = HashSet::with_capacity(rows.len());
                for (index, row) in rows.iter().enumerate() {
                    let hash = xxh3_128(row.get().as_bytes());
                    let is_across = self.seen.contains(&hash);
                    if is_across || !here.insert(hash) {
                        repeated.push(index);
                        self.repeated_rows += 1;
                        self.repeated_across += usize::from(is_across);
                    }
                }
                self.seen.extend(here);
            }
            self.rows += rows.len();
            self.rows_on_last = rows.len();
        }
        self.repeated.push(repeated);
        if self.rows > MAX_ROWS {
            return Err(WalkStep::Hopeless(FailureKind::TooLarge, format!("the answer has more than {MAX_ROWS} rows")));
        }
        Ok(())
    }

    /// Whether the pages are the whole list. Rows that stand twice beyond `total` are left out; where they stand in the place of
    /// others, the list has shifted.
    fn finish(&mut self, extent: ListExtent) -> WalkStep {
        let rows_here = self.rows_on_last;
        if !self.is_list {
            return WalkStep::Whole;
        }
        let Some(total) = extent.total.and_then(|total| usize::try_from(total).ok()) else {
            if self.repeated_across > 0 {
                return WalkStep::Shifted(format!("{} stood on two pages", counted(self.repeated_across, "row")));
            }
            // An endpoint with pages that tells neither pages nor total: a page that is exactly full may be the first of many.
            return match (extent.pages, self.asked_size) {
                (None, Some(size)) if rows_here == size as usize => WalkStep::Hopeless(
                    FailureKind::Incomplete,
                    format!(
                        "{} came, as many as fit on a page, without a word on how many pages there are",
                        counted(rows_here, "row")
                    ),
                ),
                _ => {
                    self.repeated.iter_mut().for_each(Vec::clear);
                    WalkStep::Whole
                }
            };
        };
        if self.rows == total && self.repeated_across == 0 {
            self.repeated.iter_mut().for_each(Vec::clear);
            return WalkStep::Whole;
        }
        if self.rows > total && self.rows - self.repeated_rows == total {
            return WalkStep::Whole;
        }
        if self.rows == total {
            return WalkStep::Shifted(format!(
                "{} of {total} rows stood on two pages, so others are missing",
                self.repeated_across
            ));
        }
        WalkStep::Shifted(format!("the answer says {}, and {} came", counted(total, "row"), self.rows))
    }

    /// The pages, once [`WalkStep::Whole`] was answered.
    pub fn into_pages(self) -> AnswerPages {
        AnswerPages { pages: self.pages, repeated: self.repeated }
    }
}

/// `1 row`, `2 rows`; whatever a server claims.
fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let end = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{end}")
}

#[cfg(test)]
mod tests;
