//! Dates of linear unlocks: starts, ends, and rate changes.

use super::linear::LinearUnlock;
use super::rate_changes::{RateChange, rate_changes};
use crate::phrase::linear::VestingSpan;
use crate::time::{Precision, SumWindow, Timestamp};

/// A date of a token's linear unlocks.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearDate<'e> {
    pub at: Timestamp,
    pub precision: Precision,
    pub kind: LinearDateKind<'e>,
    /// The record keys of the events on which it depends. The first one identifies it. Empty if only daily emission ahead shows it.
    pub keys: Vec<&'e str>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LinearDateKind<'e> {
    /// An allocation begins to unlock.
    Start(LinearUnlock<'e>),
    /// An allocation no longer unlocks.
    End(LinearUnlock<'e>),
    /// The rate of the token changes, because an allocation goes on at another rate.
    Rate(RateChange),
}

impl LinearUnlock<'_> {
    /// Returns its span. `None` if a time is out of range.
    #[must_use]
    pub fn span(&self) -> Option<VestingSpan> {
        let (starts_at, ends_at) = (self.starts_at()?, self.ends_at()?);
        Some(VestingSpan { starts_at, ends_at, is_end_known: self.is_end_known, precision: self.precision })
    }
}

/// Returns the dates after the start of `window`, up to and including its end, in order. Where an allocation goes on at another rate,
/// it neither ends nor starts.
#[must_use]
pub fn linear_dates<'e>(unlocks: &[LinearUnlock<'e>], window: SumWindow) -> Vec<LinearDate<'e>> {
    let is_in = |at: i64| window.at.timestamp_millis() < at && at <= window.until.timestamp_millis();
    let of_allocation = |of: &LinearUnlock<'e>| {
        let allocation = of.allocation;
        unlocks.iter().filter(move |other| other.allocation == allocation)
    };
    let mut dates = Vec::new();
    for of in unlocks {
        let (start, end) = (of.piece.starts_at, of.piece.ends_at);
        let keys = of.keys.map_or_else(Vec::new, |(first, last)| vec![first, last]);
        let runs_before = || of_allocation(of).any(|other| other.piece.starts_at < start && start <= other.piece.ends_at);
        if let Some(at) = of.starts_at().filter(|_| is_in(start) && !runs_before()) {
            dates.push(LinearDate { at, precision: of.precision, kind: LinearDateKind::Start(*of), keys: keys.clone() });
        }
        let runs_after = || of_allocation(of).any(|other| other.piece.starts_at <= end && end < other.piece.ends_at);
        if let Some(at) = of.ends_at().filter(|_| is_in(end) && of.is_end_known && !runs_after()) {
            let keys = keys.into_iter().rev().collect();
            dates.push(LinearDate { at, precision: of.precision, kind: LinearDateKind::End(*of), keys });
        }
    }
    let steps = rate_changes(unlocks, window).into_iter().filter(|change| change.has_step() && change.is_notable());
    dates.extend(steps.map(|change| rate_date(unlocks, change)));
    let order = |date: &LinearDate<'_>| match date.kind {
        LinearDateKind::End(_) => 0,
        LinearDateKind::Start(_) => 1,
        LinearDateKind::Rate(_) => 2,
    };
    dates.sort_by_key(|date| (date.at, order(date)));
    dates
}

fn rate_date<'e>(unlocks: &[LinearUnlock<'e>], change: RateChange) -> LinearDate<'e> {
    let at = change.at.timestamp_millis();
    let begun = |of: &&LinearUnlock<'e>| of.piece.starts_at == at;
    let involved = unlocks.iter().filter(|of| of.piece.starts_at <= at && at <= of.piece.ends_at);
    let mut keys: Vec<&str> = unlocks.iter().filter(begun).filter_map(|of| Some(of.keys?.0)).collect();
    keys.sort_unstable();
    keys.extend(involved.clone().filter_map(|of| Some(of.keys?.1)));
    let edges = involved.filter(|of| of.piece.starts_at == at || of.piece.ends_at == at);
    let precision = edges.map(|of| of.precision).max().unwrap_or(Precision::Second);
    LinearDate { at: change.at, precision, kind: LinearDateKind::Rate(change), keys }
}

#[cfg(test)]
mod tests;
