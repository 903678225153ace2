//! A walk over the pages of one answer: which page is next, and whether all of them fit together. Pure.
//!
//! The server's own `total`, `totalPages` and `page` are the truth. A list that changed under the walk, a page that is missing, a
//! row that stands on two pages: each means that the rows at hand are not the list, and that nothing may be concluded from a
//! row's absence. Pages whose bytes and counts are those of an answer that was whole before are whole again: their rows are not
//! gone through.

use std::collections::HashSet;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::{FailureKind, envelope::Page};
use crate::supply::ContentHash;

/// Most pages of one answer.
pub(super) const MAX_PAGES: u64 = 1_000;

/// Most rows of one answer.
const MAX_ROWS: usize = 1_000_000;

/// Most text kept of one answer, as a multiple of the largest page.
const MAX_WALK_BODIES: u64 = 4;

/// What to do after a page.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
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
struct Extent {
    total: Option<i64>,
    pages: Option<i64>,
}

/// The pages of one answer so far.
#[derive(Debug)]
pub(super) struct Walk {
    is_list: bool,
    /// Rows asked for on a page, where the endpoint is known to have pages.
    asked_size: Option<u32>,
    max_bytes: u64,
    /// The hash of the last whole answer, where there is one to compare with.
    known: Option<ContentHash>,
    extent: Option<Extent>,
    pages: Vec<Page>,
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
pub(super) struct Pages {
    /// The pages in order.
    pub pages: Vec<Page>,
    /// Rows of each page that are left out because they stood before, in order.
    pub repeated: Vec<Vec<usize>>,
}

impl Pages {
    /// See [`hash`].
    pub fn hash(&self) -> ContentHash {
        hash(&self.pages)
    }
}

/// Hash over what decides whether pages are a whole answer, and which: the raw spans of `data`, each with its length before it, and
/// what the server counts.
pub(super) fn hash(pages: &[Page]) -> ContentHash {
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

impl Walk {
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
    pub fn take(&mut self, page: Page) -> Step {
        let number = self.pages.len() as i64 + 1;
        let extent = Extent { total: page.metadata.total.copied(), pages: page.metadata.total_pages.copied() };
        if let Some(told) = page.metadata.page.copied()
            && told != number
        {
            return Step::Shifted(format!("page {number} was asked for and page {told} came"));
        }
        match self.extent {
            None => self.extent = Some(extent),
            Some(first) if first == extent => {}
            Some(first) => {
                let shown = |extent: Extent| match (extent.total, extent.pages) {
                    (Some(total), Some(pages)) => format!("{total} rows on {pages} pages"),
                    (Some(total), None) => format!("{total} rows"),
                    (None, Some(pages)) => format!("{pages} pages"),
                    (None, None) => "no total".to_owned(),
                };
                return Step::Shifted(format!("page 1 said {}, page {number} said {}", shown(first), shown(extent)));
            }
        }
        if extent.total.is_some_and(i64::is_negative) || extent.pages.is_some_and(i64::is_negative) {
            return Step::Hopeless(FailureKind::Incomplete, "the answer counts its rows or pages below zero".into());
        }
        let page_count = self.page_count();
        if page_count > MAX_PAGES {
            return Step::Hopeless(
                FailureKind::TooLarge,
                format!("the answer has {page_count} pages; at most {MAX_PAGES} are read"),
            );
        }
        if page_count > 1 && !self.is_list {
            return Step::Hopeless(
                FailureKind::Incomplete,
                format!("`data` is an object, yet the answer says that it has {page_count} pages"),
            );
        }
        self.bytes += page.len() as u64;
        if self.bytes > self.max_bytes {
            let most = self.max_bytes;
            return Step::Hopeless(FailureKind::TooLarge, format!("the pages together hold more than {most} bytes"));
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
                return Step::Shifted(format!("page {number} of {page_count} is empty"));
            }
            return u32::try_from(number + 1).map_or(Step::Shifted("the page numbers overflow".into()), Step::Next);
        }
        if let Some(known) = self.known {
            if hash(&self.pages) == known {
                return Step::Same;
            }
            if let Err(step) = (0..self.pages.len()).try_for_each(|index| self.count(index)) {
                return step;
            }
        }
        self.finish(extent)
    }

    /// Goes through the rows of a page: counts them, and marks those that stood before.
    fn count(&mut self, index: usize) -> Result<(), Step> {
        let (page_count, extent) = (self.page_count(), self.extent);
        let Some(page) = self.pages.get(index) else { return Ok(()) };
        // Where nobody counts rows there is nothing to compare them with, and an unchanged answer need not be gone through twice.
        let total = extent.and_then(|extent| extent.total);
        let is_counted = page_count > 1 || total.is_some() || self.asked_size.is_some();
        if !self.is_list {
            return Ok(());
        }
        let mut repeated = Vec::new();
        if is_counted || page.is_skimmed {
            let rows: Vec<&RawValue> = match serde_json::from_str(page.data()) {
                Ok(rows) => rows,
                Err(error) => return Err(Step::Shifted(format!("`data` of page {} cannot be read: {error}", index + 1))),
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
            return Err(Step::Hopeless(FailureKind::TooLarge, format!("the answer has more than {MAX_ROWS} rows")));
        }
        Ok(())
    }

    /// Whether the pages are the whole list. Rows that stand twice beyond `total` are left out; where they stand in the place of
    /// others, the list has shifted.
    fn finish(&mut self, extent: Extent) -> Step {
        let rows_here = self.rows_on_last;
        if !self.is_list {
            return Step::Whole;
        }
        let Some(total) = extent.total.and_then(|total| usize::try_from(total).ok()) else {
            if self.repeated_across > 0 {
                return Step::Shifted(format!("{} rows stood on two pages", self.repeated_across));
            }
            // An endpoint with pages that tells neither pages nor total: a page that is exactly full may be the first of many.
            return match (extent.pages, self.asked_size) {
                (None, Some(size)) if rows_here == size as usize => Step::Hopeless(
                    FailureKind::Incomplete,
                    format!("{rows_here} rows came, as many as fit on a page, without a word on how many pages there are"),
                ),
                _ => {
                    self.repeated.iter_mut().for_each(Vec::clear);
                    Step::Whole
                }
            };
        };
        if self.rows == total && self.repeated_across == 0 {
            self.repeated.iter_mut().for_each(Vec::clear);
            return Step::Whole;
        }
        if self.rows > total && self.rows - self.repeated_rows == total {
            return Step::Whole;
        }
        if self.rows == total {
            return Step::Shifted(format!("{} of {total} rows stood on two pages, so others are missing", self.repeated_across));
        }
        Step::Shifted(format!("the answer says {total} rows, and {} came", self.rows))
    }

    /// The pages, once [`Step::Whole`] was answered.
    pub fn into_pages(self) -> Pages {
        Pages { pages: self.pages, repeated: self.repeated }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::envelope, *};

    fn page(metadata: &str, data: &str) -> Page {
        let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
        envelope::read(body.into_bytes(), None, data.starts_with('[')).expect("an envelope")
    }

    fn numbered(number: u32, pages: u32, total: u32, data: &str) -> Page {
        page(&format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#), data)
    }

    fn walk(pages: Vec<Page>) -> (Step, Walk) {
        walk_knowing(None, pages)
    }

    fn walk_knowing(known: Option<ContentHash>, pages: Vec<Page>) -> (Step, Walk) {
        let mut walk = Walk::new(true, Some(2), 1 << 20, known);
        let mut last = Step::Next(1);
        for page in pages {
            last = walk.take(page);
            if !matches!(last, Step::Next(_)) {
                break;
            }
        }
        (last, walk)
    }

    #[test]
    fn a_walk_ends_where_the_server_says() {
        let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]);
        assert_eq!((step, walk.rows), (Step::Whole, 3));
    }

    #[test]
    fn an_empty_list_is_whole_with_or_without_pages() {
        assert_eq!(walk(vec![numbered(1, 0, 0, "[]")]).0, Step::Whole);
        assert_eq!(walk(vec![page("", "[]")]).0, Step::Whole);
    }

    #[test]
    fn pages_that_do_not_fit_are_no_answer() {
        let shifted = |pages| matches!(walk(pages).0, Step::Shifted(_));
        assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 4, "[3,4]")]), "the total changed");
        assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 3, 3, "[3]")]), "the pages changed");
        assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), page("", "[3]")]), "the totals vanished");
        assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(1, 2, 3, "[1,2]")]), "the same page again");
        assert!(shifted(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[2,4]")]), "a row in the place of another");
        assert!(shifted(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[3]")]), "a row short");
        assert!(shifted(vec![numbered(1, 1, 4, "[1,2]")]), "a page short");
        assert!(shifted(vec![numbered(1, 3, 5, "[1,2]"), numbered(2, 3, 5, "[]")]), "an empty page between");
        assert!(shifted(vec![numbered(1, 1, 0, "[1]")]), "more than nothing");
    }

    #[test]
    fn rows_repeated_beyond_the_total_are_left_out() {
        let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[2,3]")]);
        assert_eq!(step, Step::Whole);
        assert_eq!(walk.into_pages().repeated, [vec![], vec![0]]);
    }

    #[test]
    fn equal_rows_that_the_total_counts_are_two_rows() {
        let (step, walk) = walk(vec![numbered(1, 1, 2, "[7,7]")]);
        assert_eq!(step, Step::Whole);
        assert_eq!(walk.into_pages().repeated, [Vec::<usize>::new()]);
    }

    #[test]
    fn bounds_hold() {
        assert!(matches!(walk(vec![numbered(1, 1001, 2002, "[1,2]")]).0, Step::Hopeless(FailureKind::TooLarge, _)));
        assert!(matches!(walk(vec![page(r#""total":-1"#, "[]")]).0, Step::Hopeless(FailureKind::Incomplete, _)));
        assert!(
            matches!(walk(vec![page("", "[1,2]")]).0, Step::Hopeless(FailureKind::Incomplete, _)),
            "full, and not a word on pages"
        );
        assert_eq!(walk(vec![page("", "[1,2,3]")]).0, Step::Whole, "a server that does not page");
        let mut object = Walk::new(false, None, 1 << 20, None);
        assert!(matches!(object.take(numbered(1, 2, 3, "{}")), Step::Hopeless(FailureKind::Incomplete, _)));
        let mut tight = Walk::new(true, Some(2), 10, None);
        assert!(matches!(tight.take(numbered(1, 1, 1, "[1]")), Step::Hopeless(FailureKind::TooLarge, _)));
    }

    #[test]
    fn the_hash_tells_pages_apart() {
        let hash = |pages| walk(pages).1.into_pages().hash();
        let two = hash(vec![numbered(1, 2, 2, "[1]"), numbered(2, 2, 2, "[2]")]);
        assert_eq!(
            two,
            hash(vec![
                page(r#""page":1,"totalPages":2,"total":2,"credit":{"used":9}"#, "[1]"),
                page(r#""page":2,"totalPages":2,"total":2"#, "[2]")
            ])
        );
        assert_ne!(two, hash(vec![numbered(1, 1, 2, "[1,2]")]));
    }

    fn skimmed(number: u32, pages: u32, total: u32, data: &str) -> Page {
        let metadata = format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#);
        let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
        envelope::skim(body.into_bytes(), true).expect("skimmed")
    }

    #[test]
    fn pages_that_were_whole_before_are_whole_again_and_gone_through_by_nobody() {
        let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
        let again = |pages| walk_knowing(Some(known), pages);
        let (step, walk) = again(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]);
        assert_eq!((step, walk.rows), (Step::Same, 0));
        assert_eq!(again(vec![numbered(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]).0, Step::Same, "however they were read");
    }

    #[test]
    fn pages_that_differ_from_the_known_ones_are_gone_through_as_ever() {
        let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
        let (step, walk) = walk_knowing(Some(known), vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[4]")]);
        assert_eq!((step, walk.rows), (Step::Whole, 3));
        let shifted = |pages| matches!(walk_knowing(Some(known), pages).0, Step::Shifted(_));
        assert!(shifted(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[3]")]), "the same rows, and one more counted");
        assert!(shifted(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[2,4]")]), "a row in the place of another");
        assert!(shifted(vec![skimmed(1, 3, 3, "[1,2]"), skimmed(2, 3, 3, "[ ]")]), "an empty page between");
        assert!(shifted(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[nonsense]")]), "no JSON behind a sound envelope");
    }
}
