//! The wire types as data: what the description of the data service is made from, so that it cannot say other than what is written.

use super::{NamedOr, Text};
use crate::supply::Timestamp;

/// What a value is on the wire.
#[derive(Clone, Copy, Debug)]
pub enum JsonShape {
    /// A number.
    Number,
    /// A whole number.
    Whole,
    /// `true` or `false`.
    Truth,
    /// A text.
    Text,
    /// An instant as text.
    Time,
    /// Items of one kind.
    List(&'static JsonShape),
    /// An object with these fields.
    Object(&'static ObjectShape),
    /// A name alone, or this.
    NameOr(&'static JsonShape),
}

/// An object of the API.
#[derive(Debug)]
pub struct ObjectShape {
    /// Name of its type here.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its fields, in the order in which they are written.
    pub fields: &'static [FieldShape],
}

/// A field of an object. Any may be absent or null.
#[derive(Debug)]
pub struct FieldShape {
    /// Name on the wire.
    pub name: &'static str,
    /// What it holds, as far as the name does not say it.
    pub doc: &'static str,
    /// Of what kind.
    pub shape: JsonShape,
}

/// Whether an object of this name has a field of that name.
pub type FieldFilter<'a> = &'a dyn Fn(&'static str, &'static str) -> bool;

/// A type whose values have one shape.
pub trait Described {
    /// The shape.
    const SHAPE: JsonShape;
    /// The same, to point to.
    const SHAPE_REF: &'static JsonShape = &Self::SHAPE;

    /// Gives every object in the value exactly the known fields that `has` answers yes for: others are taken out, absent ones become
    /// null. Fields that nobody knows stay.
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
