//! Ends of linear unlocks as events, so that rules can follow them.
//!
//! A schedule has an event at the begin of a linear unlock. It has no event at a date on which one only ends. These events are derived
//! from the records of a token. They are not records themselves: no response contains them, and no change is about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ahead::ReferencePrice;
use super::id::RecordKey;
use super::linear::LinearUnlock;
use super::record::{Record, Tracked};
use crate::time::{Interval, Precision, Timestamp};
use crate::wire::{LinearAllocation, LinearUnlocks, UnlockEvent};

/// The last part of the key of an end.
const END: &str = "end";

/// The end of one or more linear unlocks of a token at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearEnd {
    /// The event: its date, and the linear unlocks that end then, without their amounts.
    pub tracked: Tracked,
    /// The keys of all linear unlocks that end then, of which each can have several. The first one is the key of the event.
    pub keys: Vec<RecordKey>,
    /// Whether the schedule has an event on the same date, whose rates then include the end.
    pub has_event: bool,
}

impl LinearEnd {
    /// Returns the ends after `since` that the records of a token show, in order.
    #[must_use]
    pub fn all(records: &[Tracked], since: Timestamp) -> Vec<Self> {
        let events = || records.iter().filter_map(|tracked| Some((tracked, tracked.record.unlock()?)));
        let unlocks = LinearUnlock::of_schedule(events().map(|(tracked, event)| (tracked.key.as_str(), event)));
        let mut by_instant: BTreeMap<Timestamp, Vec<(Vec<RecordKey>, &LinearUnlock<'_>)>> = BTreeMap::new();
        for of in &unlocks {
            if let Some(at) = of.ends_at().filter(|at| *at > since && of.is_end_known) {
                by_instant.entry(at).or_default().push((keys_of(of, &unlocks), of));
            }
        }
        if by_instant.is_empty() {
            return Vec::new();
        }
        let price = ReferencePrice::latest(events().map(|(_, event)| event));
        let has_event = |at: Timestamp| events().any(|(_, event)| event.unlock_date.copied() == Some(at));
        let end = |(at, mut of): (Timestamp, Vec<(Vec<RecordKey>, &LinearUnlock<'_>)>)| {
            of.sort_by(|a, b| a.0.cmp(&b.0));
            let owner = of.first().and_then(|(_, first)| first.keys);
            let owner = events().find(|(tracked, _)| owner.is_some_and(|(_, last)| tracked.key.as_str() == last));
            let event = event(at, of.iter().map(|(_, of)| *of), owner.map(|(_, event)| event), price);
            let keys: Vec<RecordKey> = of.into_iter().flat_map(|(keys, _)| keys).collect();
            let tracked = Tracked { key: keys.first()?.clone(), record: Record::Unlock(Arc::new(event)) };
            Some(Self { tracked, keys, has_event: has_event(at) })
        };
        by_instant.into_iter().filter_map(end).collect()
    }

    /// Returns whether a key identifies an end.
    #[must_use]
    pub fn is_key(key: &RecordKey) -> bool {
        key.as_str().rsplit_once('/').is_some_and(|(_, last)| last.split('#').next() == Some(END))
    }

    /// Returns the instants at which the interval of an end at `at` can start, one for each precision.
    pub fn possible_starts(at: Timestamp) -> impl Iterator<Item = Timestamp> {
        const ALL: [Precision; 5] = [Precision::Second, Precision::Hour, Precision::Day, Precision::Week, Precision::Month];
        ALL.into_iter().filter_map(move |precision| Interval::of(at, precision).map(|interval| interval.start))
    }
}

/// Returns the keys of the end of a linear unlock: by the event with its first segment, and by the event with its last one. One of them
/// remains when the unlock is moved, prolonged, or split. Empty if no event shows it. `all` are the linear unlocks of the token.
fn keys_of(of: &LinearUnlock<'_>, all: &[LinearUnlock<'_>]) -> Vec<RecordKey> {
    let key = |event_of: for<'e> fn((&'e str, &'e str)) -> &'e str| {
        let event = event_of(of.keys?);
        // Rarely, an event has several linear unlocks of one allocation.
        let is_earlier = |other: &&LinearUnlock<'_>| {
            other.allocation == of.allocation
                && other.keys.is_some_and(|keys| event_of(keys) == event)
                && other.piece.ends_at < of.piece.ends_at
        };
        let ordinal = match all.iter().filter(is_earlier).count() {
            0 => String::new(),
            earlier => format!("#{}", earlier + 1),
        };
        Some(RecordKey::from(format!("{event}/{}/{END}{ordinal}", of.allocation)))
    };
    let mut keys: Vec<RecordKey> = [key(|(first, _)| first), key(|(_, last)| last)].into_iter().flatten().collect();
    keys.dedup();
    keys
}

/// Returns the event at the end of some linear unlocks. `owner` is the event that has the last segment of the first of them.
fn event<'u, 'e: 'u>(
    at: Timestamp,
    of: impl Iterator<Item = &'u LinearUnlock<'e>>,
    owner: Option<&UnlockEvent>,
    price: Option<ReferencePrice>,
) -> UnlockEvent {
    let part = |of: &LinearUnlock<'_>| LinearAllocation {
        allocation_name: of.allocation.into(),
        standard_allocation_name: of.category.map(Into::into).unwrap_or_default(),
        begin_date: of.starts_at().map(Into::into).unwrap_or_default(),
        end_date: of.ends_at().map(Into::into).unwrap_or_default(),
        unlock_precision: word(of.precision).into(),
        ..LinearAllocation::default()
    };
    let parts: Vec<LinearAllocation> = of.map(part).collect();
    let mut event = UnlockEvent {
        unlock_date: at.into(),
        linear_unlocks: LinearUnlocks { allocation_breakdown: parts.into(), ..LinearUnlocks::default() }.into(),
        ..UnlockEvent::default()
    };
    if let Some(owner) = owner {
        event.token_name = owner.token_name.clone();
        event.token_symbol = owner.token_symbol.clone();
        event.listed_method = owner.listed_method.clone();
        event.data_source = owner.data_source.clone();
        event.latest_update_date = owner.latest_update_date;
    }
    if let Some(price) = price {
        event.reference_price = price.usd.into();
        event.reference_price_updated_time = price.at.map(Into::into).unwrap_or_default();
    }
    event
}

/// Returns the word of the source for a precision.
const fn word(precision: Precision) -> &'static str {
    match precision {
        Precision::Second => "second",
        Precision::Hour => "hour",
        Precision::Day => "day",
        Precision::Week => "week",
        Precision::Month => "month",
        Precision::ToBeDetermined => "tbd",
    }
}

impl UnlockEvent {
    /// Returns whether linear unlocks end at the event and nothing else happens: the event of a [`LinearEnd`].
    #[must_use]
    pub fn is_linear_end(&self) -> bool {
        let parts = self.linear_unlocks.get().map_or(&[][..], |linear| linear.allocation_breakdown.items());
        let has_ended = |part: &LinearAllocation| {
            part.end_date.copied().zip(self.unlock_date.copied()).is_some_and(|(end, date)| end <= date)
        };
        !parts.is_empty() && !self.has_cliff() && parts.iter().all(has_ended)
    }
}

#[cfg(test)]
mod tests;
