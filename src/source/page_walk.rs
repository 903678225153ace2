//! Walks over the pages of a response and checks that they are consistent. Pure.
//!
//! The pages must agree with the server's `total`, `totalPages`, and `page`. If the list changed during the walk, a page is missing, or
//! a row is on two pages, the rows are not the complete list, so a missing row proves nothing. Pages with the hash of a previous
//! complete response are complete too, and their rows are not checked again.

use std::collections::HashSet;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::envelope::ResponsePage;
use model::phrase;
use model::poll::FailureKind;
use model::supply::ContentHash;

pub(super) const MAX_PAGES: u64 = 1_000;
const MAX_ROWS: usize = 1_000_000;

/// The size limit of all pages, as a multiple of the size limit of a page.
const MAX_WALK_BODIES: u64 = 4;

/// The step after a page.
#[derive(Debug, PartialEq)]
pub(super) enum WalkStep {
    /// The number of the page to request.
    Next(u32),
    /// The pages are complete and consistent.
    Complete,
    /// The pages are complete and equal to the known response.
    Unchanged,
    /// The pages are inconsistent, probably because the list changed. Another walk may help.
    Inconsistent(String),
    /// Another walk would fail too.
    Invalid(FailureKind, String),
}

/// The size of the whole list according to a page.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ListExtent {
    total: Option<i64>,
    pages: Option<i64>,
}

/// The pages of a response so far.
#[derive(Debug)]
pub(super) struct PageWalk {
    is_list: bool,
    /// The requested page size. `None` if the endpoint is not known to have pages.
    requested_size: Option<u32>,
    max_bytes: u64,
    /// The hash of the last complete response.
    known: Option<ContentHash>,
    extent: Option<ListExtent>,
    pages: Vec<ResponsePage>,
    /// The indexes of the rows of each page that are repetitions, in order.
    repeated: Vec<Vec<usize>>,
    rows: usize,
    rows_on_last: usize,
    /// The number of repeated rows, on the same or on different pages.
    repeated_rows: usize,
    repeated_across: usize,
    seen: HashSet<u128>,
    bytes: u64,
}

/// The complete, consistent pages of a response.
#[derive(Debug)]
pub(super) struct ResponsePages {
    pub pages: Vec<ResponsePage>,
    /// The indexes of the rows of each page to skip because they are repetitions, in order.
    pub repeated: Vec<Vec<usize>>,
}

impl ResponsePages {
    pub fn hash(&self) -> ContentHash {
        hash(&self.pages)
    }
}

/// Hashes the pages: `data` of each page with its length, and the server's totals.
pub(super) fn hash(pages: &[ResponsePage]) -> ContentHash {
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
    pub fn new(is_list: bool, requested_size: Option<u32>, max_body: u64, known: Option<ContentHash>) -> Self {
        Self {
            is_list,
            requested_size,
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

    /// Returns the number of remaining pages.
    pub fn pages_left(&self) -> u64 {
        self.page_count().saturating_sub(self.pages.len() as u64)
    }

    /// Returns the number of pages according to the server, or one if it is unknown.
    pub fn page_count(&self) -> u64 {
        self.extent.and_then(|extent| extent.pages).and_then(|pages| u64::try_from(pages).ok()).unwrap_or(1).max(1)
    }

    /// Returns the actual size of the first page, which is the size to request for the others.
    pub fn page_size(&self) -> Option<i64> {
        self.pages.first().and_then(|page| page.metadata.page_size.copied()).filter(|size| *size > 0)
    }

    /// Adds the next page and returns the next step.
    pub fn take(&mut self, page: ResponsePage) -> WalkStep {
        let number = self.pages.len() as i64 + 1;
        let extent = ListExtent { total: page.metadata.total.copied(), pages: page.metadata.total_pages.copied() };
        if let Some(reported) = page.metadata.page.copied()
            && reported != number
        {
            return WalkStep::Inconsistent(format!("page {number} was requested, but page {reported} was returned"));
        }
        match self.extent {
            None => self.extent = Some(extent),
            Some(first) if first == extent => {}
            Some(first) => {
                let described = |extent: ListExtent| match (extent.total, extent.pages) {
                    (Some(total), Some(pages)) => format!("{} on {}", phrase::count(total, "row"), phrase::count(pages, "page")),
                    (Some(total), None) => phrase::count(total, "row"),
                    (None, Some(pages)) => phrase::count(pages, "page"),
                    (None, None) => "no total".to_owned(),
                };
                return WalkStep::Inconsistent(format!(
                    "page 1 reports {}, page {number} reports {}",
                    described(first),
                    described(extent)
                ));
            }
        }
        if extent.total.is_some_and(i64::is_negative) || extent.pages.is_some_and(i64::is_negative) {
            return WalkStep::Invalid(FailureKind::Incomplete, "the response reports a negative number of rows or pages".into());
        }
        let page_count = self.page_count();
        if page_count > MAX_PAGES {
            return WalkStep::Invalid(
                FailureKind::TooLarge,
                format!("the response has {page_count} pages, more than the limit of {MAX_PAGES}"),
            );
        }
        if page_count > 1 && !self.is_list {
            return WalkStep::Invalid(
                FailureKind::Incomplete,
                format!("`data` is an object, but the response reports {page_count} pages"),
            );
        }
        self.bytes += page.len() as u64;
        if self.bytes > self.max_bytes {
            let most = self.max_bytes;
            return WalkStep::Invalid(FailureKind::TooLarge, format!("all pages together exceed {most} bytes"));
        }
        let is_last = number as u64 >= page_count;
        let is_blank = page.is_blank();
        self.pages.push(page);
        // If a hash is known, rows are only counted after the hash of all pages differs.
        let counted = if self.known.is_none() { self.count(self.pages.len() - 1) } else { Ok(()) };
        if let Err(step) = counted {
            return step;
        }
        if !is_last {
            if self.is_list && is_blank {
                return WalkStep::Inconsistent(format!("page {number} of {page_count} is empty"));
            }
            return u32::try_from(number + 1).map_or(WalkStep::Inconsistent("the page numbers overflow".into()), WalkStep::Next);
        }
        if let Some(known) = self.known {
            if hash(&self.pages) == known {
                return WalkStep::Unchanged;
            }
            if let Err(step) = (0..self.pages.len()).try_for_each(|index| self.count(index)) {
                return step;
            }
        }
        self.finish(extent)
    }

    /// Counts the rows of a page, and records repeated rows.
    fn count(&mut self, index: usize) -> Result<(), WalkStep> {
        let (page_count, extent) = (self.page_count(), self.extent);
        let Some(page) = self.pages.get(index) else { return Ok(()) };
        // Without a total or pages, there is nothing to compare the rows with.
        let total = extent.and_then(|extent| extent.total);
        let is_counted = page_count > 1 || total.is_some() || self.requested_size.is_some();
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
                Err(error) => {
                    return Err(WalkStep::Inconsistent(format!("`data` of page {} cannot be read: {error}", index + 1)));
                }
            };
            // Equal rows on a single page without a differing total are separate rows.
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
            return Err(WalkStep::Invalid(FailureKind::TooLarge, format!("the response has more than {MAX_ROWS} rows")));
        }
        Ok(())
    }

    /// Checks after the last page that the rows are the complete list. With a `total`, the list is complete if it has that number of rows
    /// and no row on two pages, or if the rows in excess of `total` are exactly the repeated ones, which are skipped. Otherwise the list
    /// changed during the walk. Without a `total`, a row on two pages also means that the list changed, and a full page without a number of
    /// pages is invalid, because more may follow. Objects are always complete.
    fn finish(&mut self, extent: ListExtent) -> WalkStep {
        let rows_here = self.rows_on_last;
        if !self.is_list {
            return WalkStep::Complete;
        }
        let Some(total) = extent.total.and_then(|total| usize::try_from(total).ok()) else {
            if self.repeated_across > 0 {
                return WalkStep::Inconsistent(format!("{} on two pages", phrase::count(self.repeated_across, "row")));
            }
            // If an endpoint with pages reports neither pages nor total, a full page may be the first of many.
            return match (extent.pages, self.requested_size) {
                (None, Some(size)) if rows_here == size as usize => WalkStep::Invalid(
                    FailureKind::Incomplete,
                    format!(
                        "{} fill a page, but the response does not report the number of pages",
                        phrase::count(rows_here, "row")
                    ),
                ),
                _ => {
                    self.repeated.iter_mut().for_each(Vec::clear);
                    WalkStep::Complete
                }
            };
        };
        if self.rows == total && self.repeated_across == 0 {
            self.repeated.iter_mut().for_each(Vec::clear);
            return WalkStep::Complete;
        }
        if self.rows > total && self.rows - self.repeated_rows == total {
            return WalkStep::Complete;
        }
        if self.rows == total {
            return WalkStep::Inconsistent(format!(
                "{} of {total} rows are on two pages, so other rows are missing",
                self.repeated_across
            ));
        }
        WalkStep::Inconsistent(format!("the response reports {}, but has {}", phrase::count(total, "row"), self.rows))
    }

    /// Returns the pages after [`WalkStep::Complete`] or [`WalkStep::Unchanged`].
    pub fn into_pages(self) -> ResponsePages {
        ResponsePages { pages: self.pages, repeated: self.repeated }
    }
}

#[cfg(test)]
mod tests;
