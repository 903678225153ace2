//! A description of the wire types as data. The data service's OpenAPI document is generated from it.

use super::{NamedOr, Text};
use crate::supply::Timestamp;

/// The JSON type of a value.
#[derive(Clone, Copy, Debug)]
pub enum JsonShape {
    Number,
    /// An integer.
    Whole,
    Truth,
    Text,
    /// An instant in ISO 8601.
    Time,
    List(&'static JsonShape),
    Object(&'static ObjectShape),
    /// A name alone, or the given type.
    NameOr(&'static JsonShape),
}

/// An object of the API.
#[derive(Debug)]
pub struct ObjectShape {
    /// The name of its Rust type.
    pub name: &'static str,
    /// Its doc comment.
    pub doc: &'static str,
    /// Fields in the order of writing.
    pub fields: &'static [FieldShape],
}

/// A field of an object. Every field can be absent or null.
#[derive(Debug)]
pub struct FieldShape {
    /// The name in JSON.
    pub name: &'static str,
    /// Its doc comment.
    pub doc: &'static str,
    pub shape: JsonShape,
}

/// Returns whether an object, given by name, has a field, given by name.
pub type FieldFilter<'a> = &'a dyn Fn(&'static str, &'static str) -> bool;

/// A type with a description.
pub trait Described {
    const SHAPE: JsonShape;
    /// The same as a reference.
    const SHAPE_REF: &'static JsonShape = &Self::SHAPE;

    /// Reduces each object in the value to the known fields for which `has` returns `true`, and sets absent ones to null. Unknown
    /// fields stay.
    fn keep(&mut self, _: FieldFilter<'_>) {}
}

impl Described for f64 {
    const SHAPE: JsonShape = JsonShape::Number;
}

impl Described for i64 {
    const SHAPE: JsonShape = JsonShape::Whole;
}

impl Described for bool {
    const SHAPE: JsonShape = JsonShape::Truth;
}

impl Described for String {
    const SHAPE: JsonShape = JsonShape::Text;
}

impl Described for Text {
    const SHAPE: JsonShape = JsonShape::Text;
}

impl Described for Timestamp {
    const SHAPE: JsonShape = JsonShape::Time;
}

impl<T: Described> Described for Vec<T> {
    const SHAPE: JsonShape = JsonShape::List(T::SHAPE_REF);

    fn keep(&mut self, has: FieldFilter<'_>) {
        self.iter_mut().for_each(|item| item.keep(has));
    }
}

impl<T: Described> Described for NamedOr<T> {
    const SHAPE: JsonShape = JsonShape::NameOr(T::SHAPE_REF);

    fn keep(&mut self, has: FieldFilter<'_>) {
        if let NamedOr::Item(item) = self {
            item.keep(has);
        }
    }
}
