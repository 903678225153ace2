//! What an evaluation reads from: the record, the token, the change, the time, and the items that variables stand for.

use std::cell::RefCell;

use crate::aggregate::Totals;
use model::{Change, Record, Timestamp, Token};

use super::fields::ListItem;
use super::scope::{Scope, SourceFacts};

/// How deep `exists`, `all`, `filter` and `map` may stand within each other.
pub const MAX_MACRO_NESTING: usize = 2;

/// What expressions read from.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub record: Option<&'a Record>,
    old: Option<&'a Record>,
    new: Option<&'a Record>,
    pub token: Option<&'a Token>,
    pub change: Option<&'a Change>,
    pub source: Option<&'a SourceFacts>,
    pub totals: Option<&'a Totals>,
    pub lead: Option<&'a str>,
    pub now: Timestamp,
    items: [Option<ListItem<'a>>; MAX_MACRO_NESTING],
    /// Names of the fields that were missing, where someone wants to know them.
    missed: Option<&'a RefCell<Vec<&'static str>>>,
}

impl<'a> Env<'a> {
    /// The surroundings of one evaluation.
    pub fn of(scope: &Scope<'a>, missed: Option<&'a RefCell<Vec<&'static str>>>) -> Self {
        Self {
            record: scope.record_in_view(),
            old: scope.change.and_then(|change| change.old.as_ref()),
            new: scope.change.and_then(|change| change.new.as_ref()),
            token: scope.token,
            change: scope.change,
            source: scope.source,
            totals: scope.totals,
            lead: scope.lead.map(|lead| lead.text.as_str()),
            now: scope.now,
            items: [None; MAX_MACRO_NESTING],
            missed,
        }
    }

    pub fn record_of(&self, side: RecordSide) -> Option<&'a Record> {
        match side {
            RecordSide::Current => self.record,
            RecordSide::Old => self.old,
            RecordSide::New => self.new,
        }
    }

    /// The item that a variable stands for.
    pub fn item(&self, variable: u8) -> Option<ListItem<'a>> {
        self.items.get(usize::from(variable)).copied().flatten()
    }

    /// The totals that are asked for: the scope's own, or those of the token that a variable stands for.
    pub fn totals_of(&self, variable: Option<u8>) -> Option<&'a Totals> {
        match variable {
            None => self.totals,
            Some(variable) => match self.item(variable)? {
                ListItem::Member(member) => Some(&member.totals),
                _ => None,
            },
        }
    }

    pub fn with_item(&self, variable: u8, item: ListItem<'a>) -> Self {
        let mut env = *self;
        if let Some(slot) = env.items.get_mut(usize::from(variable)) {
            *slot = Some(item);
        }
        env
    }

    /// The same, without taking note of what is missing.
    pub fn without_notes(&self) -> Self {
        Self { missed: None, ..*self }
    }

    /// Takes note of a field that is missing.
    pub fn miss(&self, name: &'static str) {
        if let Some(missed) = self.missed
            && let Ok(mut missed) = missed.try_borrow_mut()
            && !missed.contains(&name)
        {
            missed.push(name);
        }
    }

    /// How much was missed so far.
    pub fn mark(&self) -> usize {
        self.missed.and_then(|missed| missed.try_borrow().ok().map(|missed| missed.len())).unwrap_or_default()
    }

    /// Forgets what was missed since `mark`, where the result did not depend on it after all.
    pub fn settle<T>(&self, mark: usize, result: Option<T>) -> Option<T> {
        if result.is_some()
            && let Some(missed) = self.missed
            && let Ok(mut missed) = missed.try_borrow_mut()
        {
            missed.truncate(mark);
        }
        result
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSide {
    Current,
    Old,
    New,
}
