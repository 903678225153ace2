//! The data that expressions read: the record, token, change, time, and the items of list variables.

use std::cell::RefCell;

use chrono::TimeDelta;

use crate::aggregate::Totals;
use model::{RateStep, Record, ReferencePrice, corrections::Corrections, days};

use super::condition::PositionField;
use super::fields::ListItem;
use super::fields::reference_price_time;
use super::scope::Scope;

/// The maximum nesting of `exists`, `all`, `filter`, and `map`.
pub const MAX_MACRO_NESTING: usize = 2;

/// A scope with the items of list variables. It is created for each evaluation of a condition, so it is small.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub scope: &'a Scope<'a>,
    /// The record in view.
    pub record: Option<&'a Record>,
    items: [Option<ListItem<'a>>; MAX_MACRO_NESTING],
    /// Collects the names of missing fields, if the caller wants them.
    missed: Option<&'a RefCell<Vec<&'static str>>>,
}

impl<'a> Env<'a> {
    pub fn of(scope: &'a Scope<'a>, missed: Option<&'a RefCell<Vec<&'static str>>>) -> Self {
        Self { scope, record: scope.record_in_view(), items: [None; MAX_MACRO_NESTING], missed }
    }

    pub fn record_of(&self, side: RecordSide) -> Option<&'a Record> {
        match side {
            RecordSide::Current => self.record,
            RecordSide::Old => self.scope.change?.old.as_ref(),
            RecordSide::New => self.scope.change?.new.as_ref(),
        }
    }

    /// Returns the item in a variable.
    pub fn item(&self, variable: u8) -> Option<ListItem<'a>> {
        self.items.get(usize::from(variable)).copied().flatten()
    }

    /// Returns the totals of the token in `variable`, or of the scope if it is `None`.
    pub fn totals_of(&self, variable: Option<u8>) -> Option<&'a Totals> {
        match variable {
            None => self.scope.totals,
            Some(variable) => match self.item(variable)? {
                ListItem::Member(member) => Some(&member.totals),
                _ => None,
            },
        }
    }

    /// Returns the change of the daily release at the record's date. `None` if none is known, or if the date is to be determined.
    pub fn rate_step(&self) -> Option<RateStep> {
        let event = self.record?.unlock()?;
        event.interval()?;
        self.scope.schedule.rate_step(event.unlock_date.copied()?)
    }

    /// Returns the corrections of the token's schedule that were detected less than `span` before now. `None` if they were not read.
    pub fn corrections(&self, span: TimeDelta) -> Option<Corrections> {
        Some(self.scope.schedule.corrections?.within(span, self.scope.now))
    }

    /// Returns the age in days of the latest price of a token, or of the record's price if the scope has no totals.
    pub fn price_age(&self, variable: Option<u8>) -> Option<f64> {
        let at = match (variable, self.scope.totals) {
            (None, None) => reference_price_time(self.record?.unlock()?)?,
            _ => self.totals_of(variable)?.supply.as_ref()?.price_at?,
        };
        Some(days(self.scope.now - at))
    }

    /// Returns a field of the position in the token. `None` without a position, a price, or an unlock amount.
    pub fn position(&self, field: PositionField) -> Option<f64> {
        let position = self.scope.token?.position?;
        match field {
            PositionField::Amount => Some(position.amount()),
            PositionField::Value => Some(position.value(self.price()?)),
            PositionField::Share => position.share_of_unlock(self.record?.unlock()?.amount()?),
        }
    }

    /// Returns the reference price in USD: that of the unlock, else the latest of the token's schedule, else market cap divided by
    /// circulating supply.
    fn price(&self) -> Option<f64> {
        let of_record = || ReferencePrice::latest(std::iter::once(self.record?.unlock()?));
        let of_totals = || self.scope.totals?.supply.as_ref()?.price;
        let price = of_record().map(|price| price.usd).or_else(of_totals);
        price.or_else(|| {
            let item = &self.scope.token?.item;
            let supply = item.circulating_supply.copied().filter(|supply| *supply > 0.0)?;
            Some(item.market_cap.copied()? / supply)
        })
    }

    /// Returns the days until the next change of a token's daily release.
    pub fn until_rate_change(&self, variable: Option<u8>) -> Option<f64> {
        Some(days(self.totals_of(variable)?.supply.as_ref()?.next_rate?.at - self.scope.now))
    }

    pub fn with_item(&self, variable: u8, item: ListItem<'a>) -> Self {
        let mut env = *self;
        if let Some(slot) = env.items.get_mut(usize::from(variable)) {
            *slot = Some(item);
        }
        env
    }

    /// Returns a copy that does not record missing fields.
    pub fn without_recording(&self) -> Self {
        Self { missed: None, ..*self }
    }

    /// Records a missing field.
    pub fn record_missing(&self, name: &'static str) {
        if let Some(missed) = self.missed
            && let Ok(mut missed) = missed.try_borrow_mut()
            && !missed.contains(&name)
        {
            missed.push(name);
        }
    }

    /// Returns the number of missing fields recorded so far.
    pub fn missing_count(&self) -> usize {
        self.missed.and_then(|missed| missed.try_borrow().ok().map(|missed| missed.len())).unwrap_or_default()
    }

    /// Removes the fields recorded since `mark` if there is a result, which then did not depend on them.
    pub fn clear_missing_since<T>(&self, mark: usize, result: Option<T>) -> Option<T> {
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
