//! The texts of records: names, categories and words that a schedule says over and over.
//!
//! A text is shared by whoever has a copy of it, so that copying a record copies no text, and the many equal ones of an answer, or of a
//! packed schedule, are one in memory.

use std::{borrow::Borrow, cell::RefCell, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::lenient::Lenient;

/// A text of a record; copying it is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// The text.
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

/// Texts that are remembered while something is read: those of one schedule are few.
const REMEMBERED: usize = 64;

thread_local! {
    // As the log of what is read: serde hands no context down, and reading stays on one thread.
    static RECENT: RefCell<Option<Vec<Option<Text>>>> = const { RefCell::new(None) };
}

/// Runs `read`, in which texts that stood shortly before are not made anew. What is remembered for that is forgotten at its end.
pub(super) fn sharing<T>(read: impl FnOnce() -> T) -> T {
    let outer = RECENT.with_borrow_mut(|recent| recent.replace(vec![None; REMEMBERED]));
    let result = read();
    RECENT.with_borrow_mut(|recent| *recent = outer);
    result
}

/// The text, as it stands already where it was read shortly before.
fn shared(text: &str) -> Text {
    RECENT.with_borrow_mut(|recent| {
        let Some(slot) = recent.as_mut().and_then(|recent| recent.get_mut(place(text))) else { return Text::from(text) };
        match slot {
            Some(known) if known.as_str() == text => known.clone(),
            _ => slot.insert(Text::from(text)).clone(),
        }
    })
}

/// Where a text is remembered: by its length, its begin and its end.
fn place(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mix = |hash: usize, byte: &u8| (hash ^ usize::from(*byte)).wrapping_mul(0x0100_0193);
    let begin = bytes.iter().take(4).fold(bytes.len(), mix);
    bytes.iter().rev().take(4).fold(begin, mix) % REMEMBERED
}

#[cfg(test)]
mod tests;
