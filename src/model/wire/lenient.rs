//! Lenient reading: from any JSON, field by field. What does not fit costs no more than itself.

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

/// A value that can be read from any JSON: what does not fit becomes [`Maybe::Absent`] and a warning, never an error.
pub trait Lenient: Sized {
    /// What is expected here, for messages: `a number`.
    const EXPECTED: &'static str;
    /// Whether records may be lost with it: a list, an object. Losing one is counted, so that nobody takes it for a removal.
    const HOLDS_RECORDS: bool = false;
    /// Whether it says when something happens: see [`lost_dates`](super::lost_dates).
    const IS_DATE: bool = false;
    /// From a JSON number.
    fn from_number(_: f64) -> Option<Self> {
        None
    }
    /// What a JSON number is that does not fit, for messages.
    fn refused(value: f64) -> String {
        format!("the number {value}")
    }
    /// From a JSON string.
    fn from_text(_: &str) -> Option<Self> {
        None
    }
    /// From `true` or `false`.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
    /// From an array; the default skips it.
    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    /// From an object; the default skips it.
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Tokens, USD or percent beyond which a number is absurd.
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
        // Whatever the API measures is an amount, a price, a value, a share or a span: none is negative, and none is beyond all
        // measure. Such a number is no fact, so it is as unreadable as a text.
        (0.0..=ABSURD).contains(&value).then_some(value)
    }
    fn refused(value: f64) -> String {
        if value < 0.0 { format!("{value}, which is negative") } else { format!("{value:e}, which is beyond all measure") }
    }
    fn from_text(text: &str) -> Option<Self> {
        // Some sources quote their numbers; that much is safe to understand.
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
                Some(Maybe::Absent) if !T::HOLDS_RECORDS => count_dropped(), // noted where it did not fit
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
        // Most lists are of one or two items, where there would be room for four; and records stay for long.
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

/// An item of a list that is an object in one version and a bare name in another.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedOr<T> {
    /// The name alone, as the first version of weekly emission has it.
    Name(String),
    /// The whole object.
    Item(T),
}

impl<T> NamedOr<T> {
    /// The object, where it is one.
    pub fn item(&self) -> Option<&T> {
        if let NamedOr::Item(item) = self { Some(item) } else { None }
    }

    /// The object for changing, where it is one.
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
