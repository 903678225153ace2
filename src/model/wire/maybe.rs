//! A field that may be missing.

use serde::{Serialize, Serializer};

use super::text::Text;

/// A field that may be absent, null, or there. Absent and null mean the same to rules; the service tells them apart by version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Maybe<T> {
    /// The key is not in the object.
    #[default]
    Absent,
    /// The key is there, its value is `null`.
    Null,
    /// The key has a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// The value, where there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// The value for changing, where there is one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// The value itself, where there is one.
    pub fn into_option(self) -> Option<T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// Whether the key is missing from the object.
    pub fn is_absent(&self) -> bool {
        matches!(self, Maybe::Absent)
    }

    /// `null` where the option is empty.
    pub fn or_null(value: Option<T>) -> Self {
        value.map_or(Maybe::Null, Maybe::Value)
    }

    /// Absent where the option is empty.
    pub fn or_absent(value: Option<T>) -> Self {
        value.map_or(Maybe::Absent, Maybe::Value)
    }
}

impl<T: Copy> Maybe<T> {
    /// A copy of the value, where there is one.
    pub fn copied(&self) -> Option<T> {
        self.get().copied()
    }
}

impl<T: AsText> Maybe<T> {
    /// The text, where there is one.
    pub fn as_str(&self) -> Option<&str> {
        self.get().map(AsText::as_text)
    }
}

/// What is a text.
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
    /// The items; none where the list is absent or null.
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
