//! The macro that declares the API's objects, and the parsing of their fields.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::{
    lenient::Lenient,
    maybe::Maybe,
    warnings::{PathStep, at, count_item, note},
};

/// Unknown fields, kept as they came.
pub type Extra = BTreeMap<String, Value>;

/// The maximum nesting depth of unknown fields; deeper values are dropped.
const MAX_EXTRA_DEPTH: usize = 32;

/// Declares an object of the API, with the JSON name of each field. Parsing is lenient, and absent fields are not written.
macro_rules! wire {
    ($(#[doc = $doc:literal])* $name:ident { $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty = $json:literal, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: Maybe<$type>, )*
            /// Unknown fields, kept as they came.
            pub extra: Extra,
        }

        impl $name {
            /// The JSON names of the fields, in the order of writing.
            pub const FIELDS: &'static [&'static str] = &[$($json),*];

            /// Fills each field that is absent or null from `known`. Objects and lists are copied whole.
            pub fn fill_gaps(&mut self, known: &Self) {
                $( if self.$field.get().is_none() && known.$field.get().is_some() {
                    self.$field = known.$field.clone();
                } )*
            }

            /// Returns whether this has each field that `known` has.
            pub fn has_all_of(&self, known: &Self) -> bool {
                $( (self.$field.get().is_some() || known.$field.get().is_none()) )&&*
            }
        }

        impl Described for $name {
            const SHAPE: JsonShape = JsonShape::Object(&ObjectShape {
                name: stringify!($name),
                doc: concat!($($doc),*),
                fields: &[$( FieldShape { name: $json, doc: concat!($($field_doc),*), shape: <$type as Described>::SHAPE } ),*],
            });

            fn keep(&mut self, has: FieldFilter<'_>) {
                $( if !has(stringify!($name), $json) {
                    self.$field = Maybe::Absent;
                } else if let Maybe::Value(value) = &mut self.$field {
                    value.keep(has);
                } else {
                    self.$field = Maybe::Null;
                } )*
            }
        }

        impl Lenient for $name {
            const EXPECTED: &'static str = "an object";
            const HOLDS_RECORDS: bool = true;
            fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
                let mut record = Self::default();
                while let Some(key) = map.next_key::<ObjectKey<'de>>()? {
                    match key.0.as_ref() {
                        $( $json => {
                            let value = map.next_value_seed(FieldSeed::<$type>($json, PhantomData))?;
                            if !record.$field.is_absent() {
                                note(|| concat!("`", $json, "` occurs twice; the last one is used").into());
                            }
                            record.$field = value;
                        } )*
                        key if super::object::is_reserved(key) => {
                            map.next_value::<serde::de::IgnoredAny>()?;
                        }
                        _ => {
                            let value = map.next_value_seed(UnknownValue { depth: 0 })?;
                            if let Some((key, _)) = record.extra.remove_entry(key.0.as_ref()) {
                                note(|| format!("the field {} occurs twice; the last one is used", quoted(&key)));
                            }
                            record.extra.insert(key.0.into_owned(), value);
                        }
                    }
                }
                Ok(Some(record))
            }
        }

        impl Pack for $name {
            fn pack<'a>(&'a self, to: &mut Packer<'a>) {
                to.shape(Self::FIELDS, [$( pack::state(&self.$field) ),*], !self.extra.is_empty());
                $( if let Maybe::Value(value) = &self.$field { value.pack(to); } )*
                to.extra(&self.extra);
            }

            fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
                let mut shape = from.shape(Self::FIELDS)?;
                let mut record = Self::default();
                $( record.$field = pack::field(shape.next(), from)?; )*
                if shape.has_extra {
                    record.extra = from.extra()?;
                    if Self::FIELDS.iter().any(|name| record.extra.contains_key(*name)) {
                        // The field was unknown when the record was packed.
                        return serde_json::from_value(serde_json::to_value(&record).ok()?).ok();
                    }
                }
                Some(record)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $( if !self.$field.is_absent() { map.serialize_entry($json, &self.$field)?; } )*
                for (key, value) in &self.extra {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Maybe::<Self>::deserialize(deserializer)?
                    .into_option()
                    .ok_or_else(|| serde::de::Error::custom(concat!("expected an object: ", stringify!($name))))
            }
        }
    };
}

pub(super) use wire;

/// Parses a known field of an object, for the macro below.
pub(super) struct FieldSeed<T>(pub(super) &'static str, pub(super) PhantomData<T>);

impl<'de, T: Lenient> DeserializeSeed<'de> for FieldSeed<T> {
    type Value = Maybe<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        at(PathStep::Field(self.0), || Maybe::<T>::deserialize(deserializer))
    }
}

/// A key of an object, borrowed from the text if possible.
pub(super) struct ObjectKey<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for ObjectKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectKeyVisitor;
        impl<'de> Visitor<'de> for ObjectKeyVisitor {
            type Value = ObjectKey<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ObjectKey(text.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ObjectKey(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(ObjectKeyVisitor)
    }
}

/// Parses an unknown value, with limits on depth and number of values.
pub(super) struct UnknownValue {
    pub(super) depth: usize,
}

impl<'de> DeserializeSeed<'de> for UnknownValue {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        count_item()?;
        deserializer.deserialize_any(self)
    }
}

impl UnknownValue {
    /// Returns whether a list or an object at this depth is dropped. Other values are kept at any depth, so that packed data is
    /// read back unchanged.
    fn lies_too_deep(&self) -> bool {
        let is_deep = self.depth > MAX_EXTRA_DEPTH;
        if is_deep {
            note(|| format!("an unknown field nests deeper than {MAX_EXTRA_DEPTH} levels; deeper values are left out"));
        }
        is_deep
    }
}

impl<'de> Visitor<'de> for UnknownValue {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        if self.lies_too_deep() {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(UnknownValue { depth: self.depth + 1 })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        if self.lies_too_deep() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut fields = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if is_reserved(&key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            fields.insert(key, map.next_value_seed(UnknownValue { depth: self.depth + 1 })?);
        }
        Ok(Value::Object(fields))
    }
}

/// The name of a field that `serde_json` uses for its own purposes. It would read a stored value with this field as something else, or not
/// at all.
const RESERVED_FIELD: &str = "$serde_json::private::RawValue";

/// Returns whether a field is left out because of its name. Warns about it.
pub(super) fn is_reserved(name: &str) -> bool {
    let is_reserved = name == RESERVED_FIELD;
    if is_reserved {
        note(|| format!("the field {} is left out, because its name is reserved", quoted(name)));
    }
    is_reserved
}

/// Returns the first characters of a text from outside, in quotes and escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(80).collect::<String>())
}
