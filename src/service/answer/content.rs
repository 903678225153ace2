//! The payload of an answer as it goes out, and lists that pages are cut from.

use axum::body::Bytes;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::query::PageRequest;
use model::Timestamp;

/// What a question without pages, or one with them, is answered from.
#[derive(Debug)]
pub enum AnswerContent {
    /// All of it.
    Whole(AnswerBody),
    /// A list, from which pages are cut.
    Rows(ListRows),
}

/// A payload as it goes out, without what is around it.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerBody {
    /// The end of the body: JSON of `data`, with the name before it and the brace after it. Shared by all who ask.
    pub tail: Bytes,
    /// Page numbers, where the list has pages.
    pub paging: Option<Paging>,
    /// When the source told it; none where the data is our own.
    pub read_at: Option<Timestamp>,
    /// Stands for the payload and its paging: equal tags, equal facts.
    pub tag: String,
}

/// Where a page stands in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// From 1.
    pub page: u64,
    pub page_size: u64,
    /// Pages; zero for an empty list.
    pub total_pages: u64,
    pub total: u64,
}

/// A whole list as JSON.
#[derive(Debug)]
pub struct ListRows {
    /// Items with commas between them.
    text: String,
    /// Where each item ends in it.
    ends: Vec<usize>,
    read_at: Option<Timestamp>,
}

impl ListRows {
    /// A list of what `items` are as JSON.
    pub fn of<T: Serialize>(items: impl IntoIterator<Item = T>, read_at: Option<Timestamp>) -> serde_json::Result<Self> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for item in items {
            if !ends.is_empty() {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(&item)?);
            ends.push(text.len());
        }
        text.shrink_to_fit();
        Ok(Self { text, ends, read_at })
    }

    /// Bytes that it takes.
    pub fn len(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<usize>()
    }

    /// A page; one past the end is empty.
    pub fn page(&self, page: PageRequest) -> AnswerBody {
        let count = self.ends.len();
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let first = usize::try_from(page.number - 1).unwrap_or(usize::MAX).saturating_mul(size).min(count);
        let last = first.saturating_add(size).min(count);
        let end_of = |items: usize| items.checked_sub(1).and_then(|index| self.ends.get(index)).copied().unwrap_or(0);
        // Behind the comma that follows the item before.
        let begin = if first == 0 { 0 } else { end_of(first) + 1 };
        let items = if first == last { "" } else { self.text.get(begin..end_of(last)).unwrap_or_default() };
        let tail = [DATA, "[", items, "]}"].concat();
        let total = u64::try_from(count).unwrap_or(u64::MAX);
        let tag = format!("{:032x}-{}-{}-{total}", xxh3_128(tail.as_bytes()), page.number, page.size);
        let paging = Paging { page: page.number, page_size: page.size, total_pages: total.div_ceil(page.size), total };
        AnswerBody { tail: tail.into(), paging: Some(paging), read_at: self.read_at, tag }
    }
}

/// What stands before a payload.
pub(super) const DATA: &str = ",\"status\":true,\"data\":";
