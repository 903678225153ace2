//! The shape of a field: a name, a type, and a plain function that reads it.

use crate::aggregate::Member;
use model::{AllocationChange, Fact, Timestamp, wire};

/// A field of an `O` by name.
#[derive(Debug)]
pub struct FieldDef<O: 'static> {
    /// Its name in conditions and templates, with the prefix that it needs there (`token.symbol`).
    pub name: &'static str,
    /// What it means, in a few words.
    pub about: &'static str,
    /// Its name under `old.`; used of records alone.
    pub old: &'static str,
    /// Its name under `new.`; used of records alone.
    pub new: &'static str,
    pub read: FieldReader<O>,
}

/// Reads one field of an `O`. None where it is missing or null.
#[derive(Clone, Copy, Debug)]
pub enum FieldReader<O: 'static> {
    /// A number, and what it counts.
    Number(NumberUnit, fn(&O) -> Option<f64>),
    /// True or false.
    Bool(fn(&O) -> Option<bool>),
    Time(fn(&O) -> Option<Timestamp>),
    Text(for<'a> fn(&'a O) -> Option<&'a str>),
    Texts(for<'a> fn(&'a O) -> Option<&'a [String]>),
    /// A number, an instant or a text, as the kind of change has it.
    Fact(for<'a> fn(&'a O) -> Option<&'a Fact>),
    /// A list of items: allocations, tokens of a group.
    Items(ItemKind, for<'a> fn(&'a O, ItemVisitor<'a, '_>) -> Option<()>),
}

impl<O> FieldReader<O> {
    /// Whether both have the same value; lists of items are not compared and count as different.
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

/// What a number counts. Where a threshold in another unit can be recognised, there is a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberUnit {
    /// What another field says.
    Plain,
    Tokens,
    TokensADay,
    /// US dollars a day.
    UsdADay,
    /// US dollars a token.
    Price,
    /// One number divided by another of its kind.
    Ratio,
    /// Things that are counted.
    Count,
    /// Percent: 2.5 means 2.5 %.
    Percent,
    /// US dollars.
    Usd,
    Days,
}

impl NumberUnit {
    /// As the reference of fields writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            NumberUnit::Plain => "number",
            NumberUnit::Tokens => "tokens",
            NumberUnit::TokensADay => "tokens a day",
            NumberUnit::UsdADay => "USD a day",
            NumberUnit::Price => "USD a token",
            NumberUnit::Ratio => "ratio",
            NumberUnit::Count => "count",
            NumberUnit::Percent => "percent",
            NumberUnit::Usd => "USD",
            NumberUnit::Days => "days",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Recipients of an unlock: parts of the cliff, then linear segments.
    Unlock,
    /// Recipients of an emission.
    Emission,
    /// Recipients concerned by a change.
    Change,
    /// Tokens of a group.
    Member,
}

#[derive(Clone, Copy, Debug)]
pub enum ListItem<'a> {
    /// A recipient's part of a cliff.
    Cliff(&'a wire::CliffAllocation),
    /// A recipient's linear segment.
    Linear(&'a wire::LinearAllocation),
    /// A recipient's part of an emission.
    Emission(&'a wire::EmissionAllocation),
    /// A recipient's part of a change.
    Change(&'a AllocationChange),
    /// A token of a group.
    Member(&'a Member),
    /// A bare name: a recipient in the oldest answers, or an item of a list of texts.
    Name(&'a str),
}

/// Called with each item until it says `false`.
pub type ItemVisitor<'a, 'f> = &'f mut dyn FnMut(ListItem<'a>) -> bool;

#[derive(Debug)]
pub struct ItemField {
    /// Its name, without the variable before it.
    pub name: &'static str,
    /// What it means, in a few words.
    pub about: &'static str,
    pub read: ItemReader,
}

/// Reads one field of an item.
#[derive(Clone, Copy, Debug)]
pub enum ItemReader {
    /// A number, and what it counts.
    Number(NumberUnit, for<'a> fn(ListItem<'a>) -> Option<f64>),
    Time(for<'a> fn(ListItem<'a>) -> Option<Timestamp>),
    Text(for<'a> fn(ListItem<'a>) -> Option<&'a str>),
    /// As the kind of change has it.
    Fact(for<'a> fn(ListItem<'a>) -> Option<&'a Fact>),
}
