//! Fields that can be missing.

use serde::{Serialize, Serializer};

use super::text::Text;

/// A field that is absent, null, or has a value. Rules treat absent and null alike; the data service distinguishes them by version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Maybe<T> {
    /// The object does not have the key.
    #[default]
    Absent,
    /// The value is `null`.
    Null,
    Value(T),
}

impl<T> Maybe<T> {
    /// Returns the value; `None` if absent or null.
    pub fn get(&self) -> Option<&T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    pub fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    pub fn into_option(self) -> Option<T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// Returns whether the object does not have the key.
    pub fn is_absent(&self) -> bool {
        matches!(self, Maybe::Absent)
    }

    /// Converts from an option, with `None` as null.
    pub fn or_null(value: Option<T>) -> Self {
        value.map_or(Maybe::Null, Maybe::Value)
    }

    /// Converts from an option, with `None` as absent.
    pub fn or_absent(value: Option<T>) -> Self {
        value.map_or(Maybe::Absent, Maybe::Value)
    }
}

impl<T: Copy> Maybe<T> {
    pub fn copied(&self) -> Option<T> {
        self.get().copied()
    }
}

impl<T: AsText> Maybe<T> {
    pub fn as_str(&self) -> Option<&str> {
        self.get().map(AsText::as_text)
    }
}

/// A type that can be borrowed as a string.
pub trait AsText {
    fn as_text(&self) -> &str;
}

impl AsText for String {
    fn as_text(&self) -> &str {
        self
    }
}

impl AsText for Text {
    fn as_text(&self) -> &str {
        self
    }
}

impl From<&str> for Maybe<Text> {
    fn from(text: &str) -> Self {
        Maybe::Value(text.into())
    }
}

impl From<String> for Maybe<Text> {
    fn from(text: String) -> Self {
        Maybe::Value(text.into())
    }
}

impl<T> Maybe<Vec<T>> {
    /// Returns the items; empty if the list is absent or null.
    pub fn items(&self) -> &[T] {
        self.get().map_or(&[], Vec::as_slice)
    }
}

impl<T> From<T> for Maybe<T> {
    fn from(value: T) -> Self {
        Maybe::Value(value)
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Maybe::Value(value) => value.serialize(serializer),
            Maybe::Absent | Maybe::Null => serializer.serialize_none(),
        }
    }
}
