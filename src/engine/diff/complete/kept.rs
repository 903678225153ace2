//! What is conserved is not missing: amounts that an answer has elsewhere than where they were known.

use std::collections::{HashMap, HashSet};

use super::{names, parts::Part};
use model::{supply::Timestamp, wire::UnlockEvent};

/// Totals are compared with this relative tolerance: sources round each part.
const TOTAL_TOLERANCE: f64 = 1e-6;

/// Amounts of an allocation, or of all: as known, as known between the first and the last date of the answer, and as answered. None
/// where a part has no amount.
#[derive(Clone, Copy)]
struct KeptTotals([Option<f64>; 3]);

impl KeptTotals {
    const NONE: KeptTotals = KeptTotals([Some(0.0); 3]);

    /// Whether nothing is missing, where `amount` would be seen to be.
    fn are_kept(self, amount: f64) -> bool {
        let KeptTotals([known, in_span, Some(answered)]) = self else { return false };
        // So little that it could be rounding of the rest may be missing all the same.
        let is_kept = |known: f64| (known - answered).abs() <= (known * TOTAL_TOLERANCE).min(amount / 100.0);
        [known, in_span].into_iter().flatten().any(is_kept)
    }
}

/// The totals of a schedule, before and after.
pub(super) struct KeptAmounts {
    of_allocations: HashMap<String, KeptTotals>,
    of_all: KeptTotals,
}

impl KeptAmounts {
    pub(super) fn of(known: &[&UnlockEvent], after: &[UnlockEvent], with_linear: bool) -> Self {
        let mut kept = Self { of_allocations: HashMap::new(), of_all: KeptTotals::NONE };
        let dates: Vec<Timestamp> = after.iter().filter_map(|event| event.unlock_date.copied()).collect();
        let (first, last) = (dates.iter().min(), dates.iter().max());
        for event in known {
            let date = event.unlock_date.get();
            let is_in_span = date.is_none() || (date >= first && date <= last);
            kept.add(event, with_linear, if is_in_span { &[0, 1] } else { &[0] });
        }
        after.iter().for_each(|event| kept.add(event, with_linear, &[2]));
        kept
    }

    fn add(&mut self, event: &UnlockEvent, with_linear: bool, columns: &[usize]) {
        let cliffs = event.cliff_unlocks.get().map(|cliffs| (cliffs.allocation_breakdown.items(), event.cliff_amount()));
        let linears = event.linear_unlocks.get().filter(|_| with_linear);
        let linears = linears.map(|linears| (linears.allocation_breakdown.items(), linears.linear_amount.copied()));
        let mut parts: Vec<(&str, Option<f64>)> = Vec::new();
        if let Some((items, total)) = cliffs {
            parts.extend(items.iter().map(|part| (part.name().unwrap_or_default(), part.amount())));
            parts.extend(items.is_empty().then_some(("", total)));
        }
        if let Some((items, total)) = linears {
            parts.extend(items.iter().map(|part| (part.name().unwrap_or_default(), part.amount())));
            parts.extend(items.is_empty().then_some(("", total)));
        }
        for (name, amount) in parts {
            let of_name = self.of_allocations.entry(name.to_owned()).or_insert(KeptTotals::NONE);
            for totals in [of_name, &mut self.of_all] {
                for column in columns {
                    totals.0[*column] = totals.0[*column].zip(amount).map(|(total, amount)| total + amount);
                }
            }
        }
    }

    /// Whether the answer has all of the part's allocation, or all of the schedule, though it does not have it in its place.
    pub(super) fn covers(&self, part: &impl Part) -> bool {
        let Some(amount) = part.amount() else { return false };
        let of_name = self.of_allocations.get(part.name().unwrap_or_default());
        of_name.is_some_and(|totals| totals.are_kept(amount)) || self.of_all.are_kept(amount)
    }
}

/// Allocations that an answer tells nowhere (`told` are those that it tells), and whose parts mostly stood in events that it leaves
/// out as a whole (`free`): what is null of them is as gone as the rest.
pub(super) fn given_up(known: &[&UnlockEvent], after: &[UnlockEvent], free: &[bool], told: &HashSet<String>) -> HashSet<String> {
    let dates = || after.iter().filter_map(|event| event.unlock_date.copied());
    let (first, last) = (dates().min(), dates().max());
    let mut parts: HashMap<&str, i32> = HashMap::new();
    for (event, is_left_out) in known.iter().zip(free) {
        let date = event.unlock_date.copied();
        for (_, name, _) in names(event).into_iter().filter(|(_, name, _)| !told.contains(*name)) {
            *parts.entry(name).or_default() += match (*is_left_out, date >= first && date <= last) {
                (true, true) => 1,
                // Nobody knows how far the answer speaks.
                (true, false) => 0,
                (false, _) => -1,
            };
        }
    }
    parts.into_iter().filter(|(_, left_out)| *left_out > 0).map(|(name, _)| name.to_owned()).collect()
}
