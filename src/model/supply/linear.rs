//! The linear unlocks of a token with their allocations: what lists, calendars, and digests name. Sums need only their pieces.

use std::collections::HashMap;

use chrono::NaiveDate;
use serde_json::Value;

use super::ahead::{LinearPiece, RATE_TOLERANCE};
use super::feed::FeedState;
use super::known::{KnownSupply, LinearAhead, LinearRun, supply_coverage};
use crate::time::{Precision, Timestamp};
use crate::wire::UnlockEvent;

/// A linear unlock of one allocation at a constant rate. Adjoining segments of an allocation with an equal rate are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearUnlock<'e> {
    pub piece: LinearPiece,
    /// The name of the allocation; empty if the source does not name it.
    pub allocation: &'e str,
    /// The category of the allocation.
    pub category: Option<&'e str>,
    /// The least exact precision of its dates.
    pub precision: Precision,
    /// The record keys of the event with its first segment and of the event with its last one. `None` if daily emission ahead shows it.
    pub keys: Option<(&'e str, &'e str)>,
    /// Whether it ends at its end. `false` if nothing is known about the time from then on.
    pub is_end_known: bool,
}

impl<'e> LinearUnlock<'e> {
    /// Returns the linear unlocks of the events of a schedule, given with their record keys, by start, end, and allocation.
    #[must_use]
    pub fn of_schedule(events: impl IntoIterator<Item = (&'e str, &'e UnlockEvent)>) -> Vec<Self> {
        joined(events.into_iter().flat_map(|(key, event)| Self::of_event(key, event)).collect())
    }

    fn of_event(key: &'e str, event: &'e UnlockEvent) -> impl Iterator<Item = Self> {
        let parts = event.linear_unlocks.get().map_or(&[][..], |linear| linear.allocation_breakdown.items());
        parts.iter().filter_map(move |part| {
            Some(Self {
                piece: LinearPiece::of_part(part, event.unlock_date.copied())?,
                allocation: part.allocation_name.as_str().unwrap_or_default(),
                category: part.standard_allocation_name.as_str(),
                precision: Precision::of(part.unlock_precision.as_str()),
                keys: Some((key, key)),
                is_end_known: true,
            })
        })
    }

    /// Returns the linear unlocks that only daily emission ahead shows.
    #[must_use]
    pub fn of_emission(ahead: &'e LinearAhead) -> Vec<Self> {
        let unlock = |run: &'e LinearRun| {
            let (start, end) = (run.starts_at(), run.ends_at());
            let amount = run.amount_between(start, end);
            Some(Self {
                piece: LinearPiece::new(start.timestamp_millis(), end.timestamp_millis(), Some(amount))?,
                allocation: &run.allocation,
                category: run.category.as_deref(),
                precision: Precision::Day,
                keys: None,
                is_end_known: end < ahead.until,
            })
        };
        joined(ahead.runs.iter().filter_map(unlock).collect())
    }

    /// Returns the first instant.
    #[must_use]
    pub fn starts_at(&self) -> Option<Timestamp> {
        Timestamp::from_timestamp_millis(self.piece.starts_at)
    }

    /// Returns the instant after the last one.
    #[must_use]
    pub fn ends_at(&self) -> Option<Timestamp> {
        Timestamp::from_timestamp_millis(self.piece.ends_at)
    }

    /// Returns the day on which it starts.
    #[must_use]
    pub fn first_day(&self) -> Option<NaiveDate> {
        self.starts_at().map(|at| at.date_naive())
    }
}

impl LinearAhead {
    /// Returns the daily emission ahead that counts, from the state of a schedule's feed and the header of the feed.
    #[must_use]
    pub fn of_feed(feed: Option<&FeedState>, header: Option<&Value>) -> Option<Self> {
        let is_counted = supply_coverage(feed, header).known == KnownSupply::All;
        header.filter(|_| is_counted).and_then(Self::of_header)
    }
}

/// Joins adjoining segments of an allocation with an equal rate. Sorts by start, end, and allocation.
fn joined(mut segments: Vec<LinearUnlock<'_>>) -> Vec<LinearUnlock<'_>> {
    let order = |of: &LinearUnlock<'_>| (of.piece.starts_at, of.piece.ends_at);
    segments.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.allocation.cmp(b.allocation)));
    let mut unlocks: Vec<LinearUnlock<'_>> = Vec::with_capacity(segments.len());
    // The unlocks of each allocation, by the end of their last segment.
    let mut ending: HashMap<(&str, i64), Vec<usize>> = HashMap::new();
    for segment in segments {
        let before = ending.get_mut(&(segment.allocation, segment.piece.starts_at));
        let index = before.and_then(|before| {
            let place = before
                .iter()
                .position(|index| unlocks.get(*index).is_some_and(|of| has_equal_rate(&of.piece, &segment.piece)))?;
            Some(before.swap_remove(place))
        });
        let index = match index.and_then(|index| Some((index, unlocks.get_mut(index)?))) {
            Some((index, unlock)) => {
                unlock.piece.ends_at = segment.piece.ends_at;
                unlock.piece.amount = unlock.piece.amount.zip(segment.piece.amount).map(|(a, b)| a + b);
                unlock.precision = unlock.precision.max(segment.precision);
                unlock.keys = unlock.keys.zip(segment.keys).map(|((first, _), (_, last))| (first, last));
                unlock.is_end_known = segment.is_end_known;
                index
            }
            None => {
                unlocks.push(segment);
                unlocks.len() - 1
            }
        };
        ending.entry((segment.allocation, segment.piece.ends_at)).or_default().push(index);
    }
    unlocks
}

fn has_equal_rate(a: &LinearPiece, b: &LinearPiece) -> bool {
    match (a.per_day(), b.per_day()) {
        (Some(a), Some(b)) => (a - b).abs() <= RATE_TOLERANCE * a.abs().max(b.abs()),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
