//! The parts of a field definition: a name, a type, and a function that reads the value.

use crate::aggregate::Member;
use model::{AllocationChange, Fact, Timestamp, wire};

/// A field of an `O`.
#[derive(Debug)]
pub struct FieldDef<O: 'static> {
    /// The name in conditions and templates, with its prefix (`token.symbol`).
    pub name: &'static str,
    /// The description in the reference.
    pub about: &'static str,
    /// The name with the prefix `old.`. Only used for records.
    pub old: &'static str,
    /// The name with the prefix `new.`. Only used for records.
    pub new: &'static str,
    pub read: FieldReader<O>,
}

/// A typed function that reads a field of an `O`. It returns `None` if the field is missing or null.
#[derive(Clone, Copy, Debug)]
pub enum FieldReader<O: 'static> {
    Number(NumberUnit, fn(&O) -> Option<f64>),
    Bool(fn(&O) -> Option<bool>),
    Time(fn(&O) -> Option<Timestamp>),
    Text(for<'a> fn(&'a O) -> Option<&'a str>),
    Texts(for<'a> fn(&'a O) -> Option<&'a [String]>),
    /// A number, time, or string, depending on the change kind.
    Fact(for<'a> fn(&'a O) -> Option<&'a Fact>),
    /// A list of allocations, or of the tokens of a group.
    Items(ItemKind, for<'a> fn(&'a O, ItemVisitor<'a, '_>) -> Option<()>),
}

impl<O> FieldReader<O> {
    /// Returns `true` if both have the same value. Lists of items are never equal.
    pub fn is_same(&self, a: &O, b: &O) -> bool {
        match self {
            FieldReader::Number(_, read) => read(a) == read(b),
            FieldReader::Bool(read) => read(a) == read(b),
            FieldReader::Time(read) => read(a) == read(b),
            FieldReader::Text(read) => read(a) == read(b),
            FieldReader::Texts(read) => read(a) == read(b),
            FieldReader::Fact(read) => read(a) == read(b),
            FieldReader::Items(..) => false,
        }
    }
}

/// The unit of a number. Used to warn about thresholds in the wrong unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberUnit {
    /// No fixed unit, or the unit in another field.
    Plain,
    Tokens,
    TokensADay,
    /// USD per day.
    UsdADay,
    /// USD per token.
    Price,
    /// A quotient of two numbers of the same unit.
    Ratio,
    Count,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// Percent: 2.5 means 2.5 %.
    Percent,
    Usd,
    Days,
}

impl NumberUnit {
    /// Returns the name of the unit in the reference.
    pub fn as_str(self) -> &'static str {
        match self {
            NumberUnit::Plain => "number",
            NumberUnit::Tokens => "tokens",
            NumberUnit::TokensADay => "tokens per day",
            NumberUnit::UsdADay => "USD per day",
            NumberUnit::Price => "USD per token",
            NumberUnit::Ratio => "ratio",
            NumberUnit::Count => "count",
            NumberUnit::Fraction => "fraction",
            NumberUnit::Percent => "percent",
            NumberUnit::Usd => "USD",
            NumberUnit::Days => "days",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Recipients of an unlock: allocation shares of the cliff, then linear segments.
    Unlock,
    /// Recipients of an emission.
    Emission,
    /// Recipients affected by a change.
    Change,
    /// Tokens of a group.
    Member,
}

#[derive(Clone, Copy, Debug)]
pub enum ListItem<'a> {
    Cliff(&'a wire::CliffAllocation),
    Linear(&'a wire::LinearAllocation),
    Emission(&'a wire::EmissionAllocation),
    Change(&'a AllocationChange),
    /// A token of a group.
    Member(&'a Member),
    /// A plain name: a recipient in the oldest responses, or an item of a list of strings.
    Name(&'a str),
}

/// A function that is called with each item until it returns `false`.
pub type ItemVisitor<'a, 'f> = &'f mut dyn FnMut(ListItem<'a>) -> bool;

#[derive(Debug)]
pub struct ItemField {
    /// The name without the variable.
    pub name: &'static str,
    /// The description in the reference.
    pub about: &'static str,
    pub read: ItemReader,
}

/// A typed function that reads a field of an item.
#[derive(Clone, Copy, Debug)]
pub enum ItemReader {
    Number(NumberUnit, for<'a> fn(ListItem<'a>) -> Option<f64>),
    Time(for<'a> fn(ListItem<'a>) -> Option<Timestamp>),
    Text(for<'a> fn(ListItem<'a>) -> Option<&'a str>),
    /// A number, time, or string, depending on the change kind.
    Fact(for<'a> fn(ListItem<'a>) -> Option<&'a Fact>),
}
