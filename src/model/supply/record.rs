//! Records of all resources, and their keys.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{endpoint::Resource, id::RecordKey};
use crate::{
    time::{Interval, Precision, is_placeholder},
    wire,
};

/// A record of any resource, in the API's shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Shared, because events are large and most of a schedule stays the same from one response to the next.
    Unlock(Arc<wire::UnlockEvent>),
    Burn(Box<wire::Burn>),
    Buyback(Box<wire::Buyback>),
    /// The emission of a day or a week.
    Emission(Box<wire::Emission>),
    /// A row of the allocation table.
    Allocation(Box<wire::Allocation>),
    Funding(Box<wire::FundingRound>),
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Record::Unlock(event) => event.serialize(serializer),
            Record::Burn(burn) => burn.serialize(serializer),
            Record::Buyback(buyback) => buyback.serialize(serializer),
            Record::Emission(emission) => emission.serialize(serializer),
            Record::Allocation(allocation) => allocation.serialize(serializer),
            Record::Funding(round) => round.serialize(serializer),
        }
    }
}

impl Record {
    #[must_use]
    pub fn resource(&self) -> Resource {
        match self {
            Record::Unlock(_) => Resource::Unlock,
            Record::Burn(_) => Resource::Burn,
            Record::Buyback(_) => Resource::Buyback,
            Record::Emission(_) => Resource::Emission,
            Record::Allocation(_) => Resource::Allocation,
            Record::Funding(_) => Resource::Funding,
        }
    }

    /// Returns the unlock event; `None` for other records.
    #[must_use]
    pub fn unlock(&self) -> Option<&wire::UnlockEvent> {
        if let Record::Unlock(event) = self { Some(event) } else { None }
    }

    /// Parses a record from the stored JSON.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn from_json(resource: Resource, json: &str) -> Result<Self, serde_json::Error> {
        Ok(match resource {
            Resource::Unlock => Record::Unlock(Arc::new(serde_json::from_str(json)?)),
            Resource::Burn => Record::Burn(serde_json::from_str(json)?),
            Resource::Buyback => Record::Buyback(serde_json::from_str(json)?),
            Resource::Emission => Record::Emission(serde_json::from_str(json)?),
            Resource::Allocation => Record::Allocation(serde_json::from_str(json)?),
            Resource::Funding => Record::Funding(serde_json::from_str(json)?),
        })
    }

    /// Returns the interval of an unlock's date, or of the date of a burn, buyback, or round. `None` without a date.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Record::Unlock(event) => event.interval(),
            Record::Burn(burn) => Interval::of(burn.burn_date.copied()?, Precision::Second),
            Record::Buyback(buyback) => Interval::of(buyback.buyback_date.copied()?, Precision::Second),
            Record::Emission(emission) => Some(Interval {
                start: emission.start_date.copied()?,
                end: emission.end_date.copied().or(emission.start_date.copied())?,
                precision: Precision::Day,
                nominal: None,
            }),
            Record::Allocation(_) => None,
            Record::Funding(round) => Interval::of(round.funding_date.copied()?, Precision::Day),
        }
    }
}

impl wire::UnlockEvent {
    /// Returns the precision of the date: the least exact of its parts. Parts without a date are ignored if others have one.
    #[must_use]
    pub fn precision(&self) -> Precision {
        let cliffs = self.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let linears = self.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
        cliffs
            .iter()
            .map(|item| Precision::of(item.unlock_precision.as_str()))
            .chain(linears.iter().map(|item| Precision::of(item.unlock_precision.as_str())))
            .max_by_key(|precision| (*precision != Precision::ToBeDetermined, *precision))
            .unwrap_or(Precision::Second)
    }

    /// Returns the interval of the date; `None` if it is missing or to be determined.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        Interval::of(self.unlock_date.copied().filter(|at| !is_placeholder(*at))?, self.precision())
    }

    /// Returns whether the event has a cliff unlock, whose size can be unknown. Other events only begin linear unlocks.
    #[must_use]
    pub fn has_cliff(&self) -> bool {
        let is_linear = self.linear_unlocks.get().is_some_and(|linear| !linear.allocation_breakdown.items().is_empty());
        let cliffs = self.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let is_sized = [self.cliff_amount(), self.cliff_value()].into_iter().flatten().any(|size| size > 0.0);
        !is_linear || is_sized || !cliffs.is_empty()
    }

    /// Returns the tokens of the cliff unlock, under either of the names that API versions use.
    #[must_use]
    pub fn cliff_amount(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied())
    }

    /// Returns the tokens of the cliff unlock; without a cliff, those of the linear unlocks that start on this date.
    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        match self.cliff_unlocks.get().filter(|_| self.has_cliff()) {
            Some(_) => self.cliff_amount(),
            None => self.linear_unlocks.get()?.linear_amount.copied(),
        }
    }

    /// Returns the USD value of the cliff unlock, under either of the names that API versions use.
    #[must_use]
    pub fn cliff_value(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_value.copied().or(cliffs.total_cliff_value.copied())
    }

    /// Returns the value of the cliff unlock in percent of market cap.
    #[must_use]
    pub fn value_to_market_cap(&self) -> Option<f64> {
        self.cliff_unlocks.get()?.value_to_market_cap.copied()
    }
}

/// A record with its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// Stays the same when the record is rescheduled or resized.
    pub key: RecordKey,
    /// The record as the source last sent it.
    pub record: Record,
}
