//! Unlock schedules in the form of each version.

use super::totals::{total_cliffs, total_linears};
use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use model::Timestamp;
use model::wire::{CliffAllocation, Extra, Maybe, UnlockEvent};

/// Converts a schedule to the form of a version. The events must be in chronological order.
pub(super) fn unlock_events(mut events: Vec<UnlockEvent>, query: &DataQuery) -> Result<Vec<UnlockEvent>, Refusal> {
    if query.version >= 4 {
        return Ok(events.into_iter().filter_map(|event| cliff_event(event, query)).collect());
    }
    if events.iter().any(|event| event.linear_unlocks.is_absent()) {
        return Err(Refusal::not_found(format!(
            "the schedule of token \"{}\" is stored without linear unlocks, as in version 4: request version 4 or 5",
            redact(&query.id)
        )));
    }
    if query.version >= 2 {
        drop_rate_changes(&mut events);
    }
    Ok(events)
}

/// Returns the cliff unlocks of an event in the requested categories, as version 4, version 5, and `upcoming` show it. Returns `None`
/// if nothing remains.
pub(super) fn cliff_event(mut event: UnlockEvent, query: &DataQuery) -> Option<UnlockEvent> {
    if is_reward(&event.extra, None) {
        return None;
    }
    let cliffs = event.cliff_unlocks.get_mut()?;
    // Version 1 of `upcoming` has other names for these fields, and a mirror may know the event only from there.
    for (total, renamed) in
        [(&mut cliffs.cliff_amount, &mut cliffs.total_cliff_amount), (&mut cliffs.cliff_value, &mut cliffs.total_cliff_value)]
    {
        if total.is_absent() {
            *total = std::mem::take(renamed);
        }
    }
    let Maybe::Value(items) = &mut cliffs.allocation_breakdown else {
        // Without a breakdown, the categories are unknown.
        return query.standards.is_empty().then_some(event);
    };
    if !items.is_empty() && items.iter().all(is_reward_part) {
        return None;
    }
    let before = items.len();
    items.retain(|item| query.wants(item.standard_allocation_name.as_str()));
    if items.is_empty() && before > 0 {
        return None;
    }
    if items.len() < before {
        total_cliffs(cliffs);
    }
    Some(event)
}

/// Removes linear items that begin where another item of the same allocation ends: they only change the rate. Removes events that
/// have nothing else.
fn drop_rate_changes(events: &mut Vec<UnlockEvent>) {
    let ends: std::collections::HashSet<(Option<String>, Timestamp)> = events
        .iter()
        .flat_map(|event| event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items()))
        .filter_map(|item| Some((item.allocation_name.as_str().map(str::to_owned), item.end_date.copied()?)))
        .collect();
    events.retain_mut(|event| {
        let had_cliff = event.cliff_unlocks.get().is_some();
        let Maybe::Value(linears) = &mut event.linear_unlocks else {
            return true;
        };
        let Maybe::Value(items) = &mut linears.allocation_breakdown else {
            return true;
        };
        let before = items.len();
        items.retain(|item| {
            let Some(begin) = item.begin_date.copied() else { return true };
            // An item without duration ends where it begins, so it would match itself.
            item.end_date.copied() == Some(begin) || !ends.contains(&(item.allocation_name.as_str().map(str::to_owned), begin))
        });
        if items.is_empty() && before > 0 {
            event.linear_unlocks = Maybe::Null;
            return had_cliff;
        }
        if items.len() < before {
            total_linears(linears);
        }
        true
    });
}

/// The field of an imported event or allocation share with its release mechanism. The source has no such field.
const MECHANISM: &str = "releaseMechanism";

/// Mechanisms and categories that pay miners, validators, or farmers, in lowercase letters only.
const REWARDS: [&str; 7] =
    ["mining", "miningvalidators", "miningandvalidators", "farming", "yieldfarming", "liquiditymining", "miningrewards"];

/// Returns whether an event or allocation share pays miners or farmers, which later versions omit. The allocation name does not count.
fn is_reward(extra: &Extra, standard: Option<&str>) -> bool {
    let mechanism = extra.get(MECHANISM).and_then(|mechanism| mechanism.as_str());
    let is_one = |word: &str| {
        let letters: String = word.chars().filter(|c| c.is_ascii_alphabetic()).map(|c| c.to_ascii_lowercase()).collect();
        REWARDS.contains(&letters.as_str())
    };
    mechanism.is_some_and(is_one) || standard.is_some_and(is_one)
}

fn is_reward_part(item: &CliffAllocation) -> bool {
    is_reward(&item.extra, item.standard_allocation_name.as_str())
}
