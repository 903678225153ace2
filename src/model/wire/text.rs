//! The strings of records: names, categories, and other words that a schedule repeats.
//!
//! A string is reference-counted: cloning a record copies no strings, and equal strings of one response or packed schedule share
//! memory.

use std::{borrow::Borrow, cell::RefCell, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::lenient::Lenient;

/// A string of a record. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl<T: Into<Arc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl Lenient for Text {
    const EXPECTED: &'static str = "a text";
    fn from_text(text: &str) -> Option<Self> {
        Some(shared(text))
    }
}

/// The number of strings that are cached while a response is parsed.
const CACHED_TEXTS: usize = 64;

thread_local! {
    // Serde passes no context to nested values, and parsing stays on one thread.
    static RECENT: RefCell<Option<Vec<Option<Text>>>> = const { RefCell::new(None) };
}

/// Runs `read` with a cache of recent strings, which is cleared at the end.
pub(super) fn sharing<T>(read: impl FnOnce() -> T) -> T {
    let outer = RECENT.with_borrow_mut(|recent| recent.replace(vec![None; CACHED_TEXTS]));
    let result = read();
    RECENT.with_borrow_mut(|recent| *recent = outer);
    result
}

/// Returns the string from the cache, if it was read recently.
fn shared(text: &str) -> Text {
    RECENT.with_borrow_mut(|recent| {
        let Some(slot) = recent.as_mut().and_then(|recent| recent.get_mut(place(text))) else { return Text::from(text) };
        match slot {
            Some(known) if known.as_str() == text => known.clone(),
            _ => slot.insert(Text::from(text)).clone(),
        }
    })
}

/// Returns the cache slot of a string: a hash of its length, its start, and its end.
fn place(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mix = |hash: usize, byte: &u8| (hash ^ usize::from(*byte)).wrapping_mul(0x0100_0193);
    let begin = bytes.iter().take(4).fold(bytes.len(), mix);
    bytes.iter().rev().take(4).fold(begin, mix) % CACHED_TEXTS
}

#[cfg(test)]
mod tests;
