//! The payload of a response, and its split into pages.

use axum::body::Bytes;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::query::PageRequest;
use model::Timestamp;

/// A response body without its metadata.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseBody {
    /// The end of the body: the field `data` and the closing brace. Shared by all responses to the same query.
    pub tail: Bytes,
    /// `None` if the list has no pages.
    pub paging: Option<Paging>,
    /// When the data was polled. `None` for own data.
    pub read_at: Option<Timestamp>,
    /// A hash of payload and paging, for the `ETag` header.
    pub tag: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// The page number, from 1.
    pub page: u64,
    pub page_size: u64,
    /// Zero for an empty list.
    pub total_pages: u64,
    pub total: u64,
}

/// The data of a response, before it is split into pages.
#[derive(Debug)]
pub struct ResponseData {
    json: String,
    /// The end of each item in `json`, if it is a list.
    item_ends: Vec<usize>,
    read_at: Option<Timestamp>,
}

impl ResponseData {
    pub fn object(data: &impl Serialize, read_at: Option<Timestamp>) -> serde_json::Result<Self> {
        Ok(Self { json: serde_json::to_string(data)?, item_ends: Vec::new(), read_at })
    }

    pub fn list<T: Serialize>(items: impl IntoIterator<Item = T>, read_at: Option<Timestamp>) -> serde_json::Result<Self> {
        let (mut json, mut item_ends) = ("[".to_owned(), Vec::new());
        for item in items {
            if !item_ends.is_empty() {
                json.push(',');
            }
            json.push_str(&serde_json::to_string(&item)?);
            item_ends.push(json.len());
        }
        json.push(']');
        json.shrink_to_fit();
        Ok(Self { json, item_ends, read_at })
    }

    /// Returns the memory size in bytes.
    pub fn len(&self) -> usize {
        self.json.len() + self.item_ends.len() * size_of::<usize>()
    }

    /// Returns the body with all data.
    pub fn whole(&self) -> ResponseBody {
        let tail = [DATA, &self.json, "}"].concat();
        let tag = format!("{:032x}", xxh3_128(tail.as_bytes()));
        ResponseBody { tail: tail.into(), paging: None, read_at: self.read_at, tag }
    }

    /// Returns the body with a page of a list, which is empty after the last page.
    pub fn page(&self, page: PageRequest) -> ResponseBody {
        let count = self.item_ends.len();
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let first = usize::try_from(page.number - 1).unwrap_or(usize::MAX).saturating_mul(size).min(count);
        let last = first.saturating_add(size).min(count);
        let end_of = |items: usize| items.checked_sub(1).and_then(|index| self.item_ends.get(index)).copied().unwrap_or(0);
        // Skips the bracket or comma before the first item.
        let items = self.json.get(end_of(first) + 1..end_of(last)).unwrap_or_default();
        let tail = [DATA, "[", items, "]}"].concat();
        let total = u64::try_from(count).unwrap_or(u64::MAX);
        let tag = format!("{:032x}-{}-{}-{total}", xxh3_128(tail.as_bytes()), page.number, page.size);
        let paging = Paging { page: page.number, page_size: page.size, total_pages: total.div_ceil(page.size), total };
        ResponseBody { tail: tail.into(), paging: Some(paging), read_at: self.read_at, tag }
    }
}

const DATA: &str = ",\"status\":true,\"data\":";
