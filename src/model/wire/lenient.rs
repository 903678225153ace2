//! Lenient parsing of JSON, field by field. An invalid value affects only itself.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    maybe::Maybe,
    object::quoted,
    warnings::{PathStep, at, count_dropped, count_item, count_lost_date, note, note_dropped},
};
use crate::supply::{Timestamp, parse_timestamp};

/// A value that is parsed leniently: an invalid value becomes [`Maybe::Absent`] with a warning, never an error.
pub trait Lenient: Sized {
    /// The expected value, for messages: `a number`.
    const EXPECTED: &'static str;
    /// Whether records are lost with an invalid value, as with a list or an object. The loss is counted, so that missing records do
    /// not count as removed.
    const HOLDS_RECORDS: bool = false;
    /// Whether the value is the date of an event; see [`lost_dates`](super::lost_dates).
    const IS_DATE: bool = false;
    /// Parses a JSON number.
    fn from_number(_: f64) -> Option<Self> {
        None
    }
    /// Describes a JSON number that is not valid here, for messages.
    fn refused(value: f64) -> String {
        format!("the number {value}")
    }
    /// Parses a JSON string.
    fn from_text(_: &str) -> Option<Self> {
        None
    }
    /// Parses a JSON boolean.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
    /// Parses an array; the default skips it.
    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    /// Parses an object; the default skips it.
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// The maximum plausible number of tokens, USD, or percent.
const ABSURD: f64 = 1e30;

struct LenientVisitor<T>(std::marker::PhantomData<T>);

impl<T: Lenient> LenientVisitor<T> {
    fn got(value: Option<T>, what: impl FnOnce() -> String) -> Maybe<T> {
        if value.is_none() {
            note(|| format!("expected {}, got {}; the field is ignored", T::EXPECTED, what()));
            if T::HOLDS_RECORDS {
                count_dropped();
            }
            if T::IS_DATE {
                count_lost_date();
            }
        }
        Maybe::or_absent(value)
    }
}

impl<'de, T: Lenient> Visitor<'de> for LenientVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Null)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_bool(value), || value.to_string()))
    }
    #[expect(clippy::cast_precision_loss, reason = "the source sends doubles; no whole number in it needs more than 53 bits")]
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value as f64), || T::refused(value as f64)))
    }
    #[expect(clippy::cast_precision_loss, reason = "the source sends doubles; no whole number in it needs more than 53 bits")]
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value as f64), || T::refused(value as f64)))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value), || T::refused(value)))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_text(value), || format!("the text {}", quoted(value))))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(Self::got(T::from_seq(seq)?, || "an array".into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(Self::got(T::from_map(map)?, || "an object".into()))
    }
}

impl<'de, T: Lenient> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(std::marker::PhantomData))
    }
}

impl Lenient for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_number(value: f64) -> Option<Self> {
        // The API's numbers are amounts, prices, values, percentages, and durations. A negative or absurdly large one is invalid.
        (0.0..=ABSURD).contains(&value).then_some(value)
    }
    fn refused(value: f64) -> String {
        if value < 0.0 { format!("{value}, which is negative") } else { format!("{value:e}, which is implausibly large") }
    }
    fn from_text(text: &str) -> Option<Self> {
        // Some sources write numbers as strings.
        text.trim().parse::<f64>().ok().and_then(Self::from_number)
    }
}

impl Lenient for i64 {
    const EXPECTED: &'static str = "a whole number";
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
    fn from_number(value: f64) -> Option<Self> {
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    }
    fn from_text(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }
}

impl Lenient for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl Lenient for String {
    const EXPECTED: &'static str = "a text";
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Lenient for Timestamp {
    const EXPECTED: &'static str = "a timestamp like 2026-03-09T00:00:00Z";
    const IS_DATE: bool = true;
    fn from_text(text: &str) -> Option<Self> {
        parse_timestamp(text)
    }
}

impl<T: Lenient> Lenient for Vec<T> {
    const EXPECTED: &'static str = "a list";
    const HOLDS_RECORDS: bool = true;
    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut items = Vec::new();
        let mut index = 0;
        while let Some(item) = at(PathStep::Index(index), || {
            let item = seq.next_element::<Maybe<T>>()?;
            match &item {
                Some(Maybe::Null) => note_dropped(|| format!("expected {}, got null; the item is left out", T::EXPECTED)),
                Some(Maybe::Absent) if !T::HOLDS_RECORDS => count_dropped(), // its warning was added when it was parsed
                Some(Maybe::Absent | Maybe::Value(_)) | None => {}
            }
            Ok(item)
        })? {
            count_item()?;
            if let Maybe::Value(item) = item {
                items.push(item);
            }
            index += 1;
        }
        // Most lists have one or two items, and records stay in memory for long: drop the spare capacity.
        items.shrink_to_fit();
        Ok(Some(items))
    }
}

impl<T: Lenient> Lenient for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const HOLDS_RECORDS: bool = T::HOLDS_RECORDS;
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Ok(T::from_map(map)?.map(Box::new))
    }
}

/// An item of a list that is an object in one API version and a name in another.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedOr<T> {
    /// The name alone, as in the first version of weekly emissions.
    Name(String),
    Item(T),
}

impl<T> NamedOr<T> {
    /// Returns the object; `None` for a name.
    pub fn item(&self) -> Option<&T> {
        if let NamedOr::Item(item) = self { Some(item) } else { None }
    }

    pub fn item_mut(&mut self) -> Option<&mut T> {
        if let NamedOr::Item(item) = self { Some(item) } else { None }
    }
}

impl<T: Lenient> Lenient for NamedOr<T> {
    const EXPECTED: &'static str = "a name or an object";
    const HOLDS_RECORDS: bool = true;
    fn from_text(text: &str) -> Option<Self> {
        Some(NamedOr::Name(text.to_owned()))
    }
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Ok(T::from_map(map)?.map(NamedOr::Item))
    }
}

impl<T: Serialize> Serialize for NamedOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            NamedOr::Name(name) => serializer.serialize_str(name),
            NamedOr::Item(item) => item.serialize(serializer),
        }
    }
}
