//! Records of any resource, under their keys.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{endpoint::Resource, id::RecordKey};
use crate::{
    time::{Interval, Precision},
    wire,
};

/// A record of any resource, in the API's shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An unlock event: the largest of them, and of a schedule most are the same from one answer to the next, so that it is shared.
    Unlock(Arc<wire::UnlockEvent>),
    /// A burn.
    Burn(Box<wire::Burn>),
    /// A buyback.
    Buyback(Box<wire::Buyback>),
    /// The emission of a day or a week.
    Emission(Box<wire::Emission>),
    /// A row of the allocation table.
    Allocation(Box<wire::Allocation>),
    /// A funding round.
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
    /// Which kind it is.
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

    /// The unlock event, where it is one.
    #[must_use]
    pub fn unlock(&self) -> Option<&wire::UnlockEvent> {
        if let Record::Unlock(event) = self { Some(event) } else { None }
    }

    /// Reads a record back from the JSON that the store keeps.
    ///
    /// # Errors
    /// Where the text is not a JSON object.
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

    /// The time it stands for: when an unlock is due, or when a burn, buyback or round happened. None where undated.
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
            }),
            Record::Allocation(_) => None,
            Record::Funding(round) => Interval::of(round.funding_date.copied()?, Precision::Day),
        }
    }
}

impl wire::UnlockEvent {
    /// How exact its date is: the least exact of its parts. A part whose date is to be determined leaves that of the others alone.
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

    /// The time it stands for; none where the date is missing or to be determined.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        Interval::of(self.unlock_date.copied()?, self.precision())
    }

    /// Tokens that unlock at once, under either of the names the versions use.
    #[must_use]
    pub fn cliff_amount(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied())
    }

    /// USD that unlock at once, under either of the names the versions use.
    #[must_use]
    pub fn cliff_value(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_value.copied().or(cliffs.total_cliff_value.copied())
    }

    /// Percent of the market cap.
    #[must_use]
    pub fn value_to_market_cap(&self) -> Option<f64> {
        self.cliff_unlocks.get()?.value_to_market_cap.copied()
    }
}

/// A record under its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// Stays the same while the record moves or grows.
    pub key: RecordKey,
    /// What the source last said.
    pub record: Record,
}
