//! Conserved amounts: a part is not missing if the response lists its amount elsewhere.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{cliffs, linears, parts, parts::Part};
use crate::diff::{
    index::{List, New, Old, OldRow, RowOf},
    tolerances::{self, SHARE_OF_PART},
    tranche::Events,
};
use model::{supply::Timestamp, wire::UnlockEvent};

/// The total of an allocation, or of the whole schedule. `None` if a part has no amount.
#[derive(Clone, Copy)]
struct ListedTotals {
    known: Option<f64>,
    /// The known total between the first and the last date of the response.
    known_in_span: Option<f64>,
    given: Option<f64>,
}

impl ListedTotals {
    const ZERO: Self = Self { known: Some(0.0), known_in_span: Some(0.0), given: Some(0.0) };

    /// Returns whether the response lists the whole total, so that no part of this `amount` can be missing from it.
    fn are_conserved(self, amount: f64) -> bool {
        let Some(given) = self.given else { return false };
        // The difference must be smaller than the part, or rounding could hide that the part is missing.
        let is_equal = |known: f64| (known - given).abs() <= (known * tolerances::TOTAL).min(amount * SHARE_OF_PART);
        [self.known, self.known_in_span].into_iter().flatten().any(is_equal)
    }
}

/// The totals of a schedule, before and after a response.
pub(super) struct ConservedAmounts {
    of_allocations: HashMap<String, ListedTotals>,
    of_all: ListedTotals,
}

impl ConservedAmounts {
    pub(super) fn of(known: &[&UnlockEvent], after: &[UnlockEvent], with_linear: bool) -> Self {
        fn add(total: &mut Option<f64>, amount: Option<f64>) {
            *total = total.zip(amount).map(|(total, amount)| total + amount);
        }
        let dates = || after.iter().filter_map(|event| event.unlock_date.copied());
        let span = (dates().min(), dates().max());
        let mut amounts = Self { of_allocations: HashMap::new(), of_all: ListedTotals::ZERO };
        for event in known {
            let is_in_span = is_within(event.unlock_date.copied(), span);
            amounts.add(event, with_linear, |totals, amount| {
                add(&mut totals.known, amount);
                if is_in_span {
                    add(&mut totals.known_in_span, amount);
                }
            });
        }
        for event in after {
            amounts.add(event, with_linear, |totals, amount| add(&mut totals.given, amount));
        }
        amounts
    }

    fn add(&mut self, event: &UnlockEvent, with_linear: bool, add: impl Fn(&mut ListedTotals, Option<f64>)) {
        let linear = event.linear_unlocks.get().filter(|_| with_linear);
        let cliff_parts = cliffs(event).iter().map(|part| (part.name().unwrap_or_default(), part.amount()));
        let linear_parts = linears(event).iter().filter(|_| with_linear);
        let linear_parts = linear_parts.map(|part| (part.name().unwrap_or_default(), part.amount()));
        // A form without parts counts by its total.
        let cliff_total = event.cliff_unlocks.get().filter(|_| cliffs(event).is_empty()).map(|_| event.cliff_amount());
        let linear_total = linear.filter(|_| linears(event).is_empty()).map(|linear| linear.linear_amount.copied());
        let totals = cliff_total.into_iter().chain(linear_total).map(|total| ("", total));
        for (name, amount) in cliff_parts.chain(linear_parts).chain(totals) {
            add(self.of_allocations.entry(name.to_owned()).or_insert(ListedTotals::ZERO), amount);
            add(&mut self.of_all, amount);
        }
    }

    /// Returns whether the response lists the whole total of the part's allocation, or of the schedule, without the part in its place.
    pub(super) fn covers(&self, part: &impl Part) -> bool {
        let Some(amount) = part.amount() else { return false };
        let of_name = self.of_allocations.get(part.name().unwrap_or_default());
        of_name.is_some_and(|totals| totals.are_conserved(amount)) || self.of_all.are_conserved(amount)
    }
}

/// Returns whether a date lies within a span of dates. An undated event does.
fn is_within(date: Option<Timestamp>, (first, last): (Option<Timestamp>, Option<Timestamp>)) -> bool {
    date.is_none() || (date >= first && date <= last)
}

/// Returns the allocations that the response never names and most of whose parts belonged to events that are missing completely. A
/// part of such an allocation that is null was removed together with these events.
pub(super) fn abandoned_allocations(
    known: &Events<'_, Old>,
    after: &List<RowOf<New>, UnlockEvent>,
    missing: &BTreeSet<OldRow>,
    listed: &HashSet<String>,
) -> HashSet<String> {
    let dates = || after.iter().filter_map(|event| event.unlock_date.copied());
    let (first, last) = (dates().min(), dates().max());
    let mut votes: HashMap<&str, i32> = HashMap::new();
    for (row, event) in known.indexed() {
        let date = event.unlock_date.copied();
        for part in parts(event).filter(|part| !listed.contains(part.name)) {
            *votes.entry(part.name).or_default() += match (missing.contains(&row), date >= first && date <= last) {
                (true, true) => 1,
                // The response may not cover that date.
                (true, false) => 0,
                (false, _) => -1,
            };
        }
    }
    votes.into_iter().filter(|(_, votes)| *votes > 0).map(|(name, _)| name.to_owned()).collect()
}
