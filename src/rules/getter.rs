//! Typed access to the fields of the record, token, change, or list item that a condition reads.

use crate::aggregate::Totals;
use model::{Change, Fact, Record, Timestamp, Token};

use super::env::{Env, RecordSide};
use super::fields::{ItemVisitor, ListItem};
use super::scope::SourceFacts;

/// The maximum number of items of a list that a condition reads. A longer list counts as missing.
const MAX_ITEMS: usize = 1_000;

/// Declares the sources of values of one type, each with the field name for messages and the reader of the field table.
macro_rules! getter {
    ($(#[$doc:meta])* $name:ident -> $out:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "one shape for all types; items of lists do not have fields of each type")]
        pub enum $name {
            Record(RecordSide, &'static str, for<'a> fn(&'a Record) -> Option<$out>),
            Token(&'static str, for<'a> fn(&'a Token) -> Option<$out>),
            Change(&'static str, for<'a> fn(&'a Change) -> Option<$out>),
            Source(&'static str, for<'a> fn(&'a SourceFacts) -> Option<$out>),
            Totals(&'static str, for<'a> fn(&'a Totals) -> Option<$out>),
            Item(u8, &'static str, for<'a> fn(ListItem<'a>) -> Option<$out>),
        }

        impl $name {
            pub fn get<'a>(self, env: &Env<'a>) -> Option<$out> {
                let value = match self {
                    Self::Record(side, _, read) => env.record_of(side).and_then(read),
                    Self::Token(_, read) => env.scope.token.and_then(read),
                    Self::Change(_, read) => env.scope.change.and_then(read),
                    Self::Source(_, read) => env.scope.source.and_then(read),
                    Self::Totals(_, read) => env.scope.totals.and_then(read),
                    Self::Item(variable, _, read) => env.item(variable).and_then(read),
                };
                if value.is_none() {
                    env.record_missing(self.name());
                }
                value
            }

            pub fn name(self) -> &'static str {
                match self {
                    Self::Record(_, name, _)
                    | Self::Token(name, _)
                    | Self::Change(name, _)
                    | Self::Source(name, _)
                    | Self::Totals(name, _)
                    | Self::Item(_, name, _) => name,
                }
            }
        }
    };
}

getter!(GetNumber -> f64);
getter!(GetBool -> bool);
getter!(GetTime -> Timestamp);
getter!(GetText -> &'a str);
getter!(GetTexts -> &'a [String]);
getter!(GetFact -> &'a Fact);

#[derive(Clone, Copy, Debug)]
pub enum ItemList {
    Record(RecordSide, &'static str, for<'a> fn(&'a Record, ItemVisitor<'a, '_>) -> Option<()>),
    Token(&'static str, for<'a> fn(&'a Token, ItemVisitor<'a, '_>) -> Option<()>),
    Change(&'static str, for<'a> fn(&'a Change, ItemVisitor<'a, '_>) -> Option<()>),
    Source(&'static str, for<'a> fn(&'a SourceFacts, ItemVisitor<'a, '_>) -> Option<()>),
    Totals(&'static str, for<'a> fn(&'a Totals, ItemVisitor<'a, '_>) -> Option<()>),
    Texts(GetTexts),
}

impl ItemList {
    pub fn visit<'a>(self, env: &Env<'a>, visit: ItemVisitor<'a, '_>) -> Option<()> {
        let mut seen = 0;
        let mut bounded = |item: ListItem<'a>| {
            seen += 1;
            seen <= MAX_ITEMS && visit(item)
        };
        let (name, done) = match self {
            Self::Record(side, name, read) => (name, env.record_of(side).and_then(|record| read(record, &mut bounded))),
            Self::Token(name, read) => (name, env.scope.token.and_then(|token| read(token, &mut bounded))),
            Self::Change(name, read) => (name, env.scope.change.and_then(|change| read(change, &mut bounded))),
            Self::Source(name, read) => (name, env.scope.source.and_then(|source| read(source, &mut bounded))),
            Self::Totals(name, read) => (name, env.scope.totals.and_then(|totals| read(totals, &mut bounded))),
            Self::Texts(get) => {
                (get.name(), get.get(env).map(|texts| _ = texts.iter().all(|text| bounded(ListItem::Name(text)))))
            }
        };
        let result = done.filter(|()| seen <= MAX_ITEMS);
        if result.is_none() {
            env.record_missing(name);
        }
        result
    }
}
