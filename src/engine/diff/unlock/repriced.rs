//! Responses that change nothing but prices. These are the usual ones, and need no alignment.

use std::{collections::HashMap, mem::discriminant, sync::Arc};

use super::same::has_linear;
use crate::diff::{DateWindow, Diff, RowAnomalies};
use model::{
    rows::Put,
    supply::{Record, Timestamp, Tracked},
    wire::{CliffAllocation, CliffUnlocks, CommittedClaim, LinearAllocation, LinearUnlocks, Maybe, UnlockEvent},
};

/// Returns the diff of a response that repeats every event that it covers, with other prices at most.
///
/// Returns `None` if anything else changed or may have changed. [`diff_unlocks`](super::diff_unlocks) then decides.
/// `window` and `shows_linear` come from the poll. No record may be missing already.
#[must_use]
pub fn repriced(before: &[Tracked], after: &[UnlockEvent], window: &DateWindow, shows_linear: Option<bool>) -> Option<Diff> {
    if after.is_empty() {
        return None;
    }
    let mut known: HashMap<Timestamp, (&Tracked, &Arc<UnlockEvent>)> = HashMap::with_capacity(before.len());
    for tracked in before {
        if let Record::Unlock(event) = &tracked.record
            && known.insert(event.unlock_date.copied()?, (tracked, event)).is_some()
        {
            return None;
        }
    }
    let (mut put, mut anomalies, mut last) = (Vec::with_capacity(after.len()), RowAnomalies::default(), None);
    for event in after {
        let date = event.unlock_date.copied()?;
        anomalies.reordered += u32::from(last.is_some_and(|last| last > date));
        last = Some(date);
        let (tracked, was) = known.remove(&date)?;
        let keeps_segments = shows_linear == Some(false) && event.linear_unlocks.get().is_none();
        if !is_same_but_for_prices(was, event, keeps_segments) {
            return None;
        }
        let segments = if keeps_segments { &was.linear_unlocks } else { &event.linear_unlocks };
        let is_same = was.cliff_unlocks == event.cliff_unlocks
            && was.linear_unlocks == *segments
            && was.reference_price == event.reference_price
            && was.reference_price_updated_time == event.reference_price_updated_time
            && was.latest_update_date == event.latest_update_date;
        if !is_same {
            let mut event = event.clone();
            if keeps_segments {
                event.linear_unlocks = segments.clone();
            }
            put.push(Put { key: tracked.key.clone(), record: Record::Unlock(Arc::new(event)), is_new_version: false });
        }
    }
    // The response covers no other known event: it is outside the window, or has only segments.
    let is_hidden = |event: &UnlockEvent| {
        shows_linear == Some(false) && event.cliff_unlocks.get().is_none() && has_linear(event)
            || !window.contains(event.unlock_date.copied())
    };
    known.values().all(|(_, event)| is_hidden(event)).then(|| Diff { put, anomalies, ..Diff::default() })
}

/// Returns whether both prices are given, null, or absent.
fn same_kind<T>(a: &Maybe<T>, b: &Maybe<T>) -> bool {
    discriminant(a) == discriminant(b)
}

fn both<T>(a: &Maybe<T>, b: &Maybe<T>, is_same: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Maybe::Value(a), Maybe::Value(b)) => is_same(a, b),
        _ => same_kind(a, b),
    }
}

fn each<T>(a: &[T], b: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

// Each of these functions destructures an object, so that a new field does not compile until it is handled here.

fn is_same_but_for_prices(a: &UnlockEvent, b: &UnlockEvent, keeps_segments: bool) -> bool {
    let UnlockEvent {
        unlock_date,
        token_name,
        token_symbol,
        listed_method,
        data_source,
        reference_price,
        reference_price_updated_time,
        linear_unlocks,
        cliff_unlocks,
        latest_update_date,
        extra,
    } = a;
    *unlock_date == b.unlock_date
        && *token_name == b.token_name
        && *token_symbol == b.token_symbol
        && *listed_method == b.listed_method
        && *data_source == b.data_source
        && same_kind(reference_price, &b.reference_price)
        && same_kind(reference_price_updated_time, &b.reference_price_updated_time)
        && same_kind(latest_update_date, &b.latest_update_date)
        && both(cliff_unlocks, &b.cliff_unlocks, cliffs)
        && (keeps_segments || both(linear_unlocks, &b.linear_unlocks, linears))
        && *extra == b.extra
}

fn cliffs(a: &CliffUnlocks, b: &CliffUnlocks) -> bool {
    let CliffUnlocks {
        cliff_amount,
        cliff_value,
        total_cliff_amount,
        total_cliff_value,
        value_to_market_cap,
        reference_price,
        reference_price_updated_time,
        allocation_breakdown,
        extra,
    } = a;
    *cliff_amount == b.cliff_amount
        && *total_cliff_amount == b.total_cliff_amount
        && same_kind(cliff_value, &b.cliff_value)
        && same_kind(total_cliff_value, &b.total_cliff_value)
        && same_kind(value_to_market_cap, &b.value_to_market_cap)
        && same_kind(reference_price, &b.reference_price)
        && same_kind(reference_price_updated_time, &b.reference_price_updated_time)
        && both(allocation_breakdown, &b.allocation_breakdown, |a, b| each(a, b, cliff_part))
        && *extra == b.extra
}

fn cliff_part(a: &CliffAllocation, b: &CliffAllocation) -> bool {
    let CliffAllocation {
        unlock_date,
        allocation_name,
        standard_allocation_name,
        cliff_amount,
        cliff_value,
        reference_price,
        reference_price_updated_time,
        unlock_precision,
        committed_claim,
        extra,
    } = a;
    *unlock_date == b.unlock_date
        && *allocation_name == b.allocation_name
        && *standard_allocation_name == b.standard_allocation_name
        && *cliff_amount == b.cliff_amount
        && same_kind(cliff_value, &b.cliff_value)
        && same_kind(reference_price, &b.reference_price)
        && same_kind(reference_price_updated_time, &b.reference_price_updated_time)
        && *unlock_precision == b.unlock_precision
        && both(committed_claim, &b.committed_claim, claim)
        && *extra == b.extra
}

fn claim(a: &CommittedClaim, b: &CommittedClaim) -> bool {
    let CommittedClaim { amount, value, timestamp, extra } = a;
    *amount == b.amount && same_kind(value, &b.value) && *timestamp == b.timestamp && *extra == b.extra
}

fn linears(a: &LinearUnlocks, b: &LinearUnlocks) -> bool {
    let LinearUnlocks {
        linear_amount,
        linear_value,
        daily_amount,
        daily_value,
        reference_price,
        reference_price_updated_time,
        allocation_breakdown,
        extra,
    } = a;
    *linear_amount == b.linear_amount
        && *daily_amount == b.daily_amount
        && same_kind(linear_value, &b.linear_value)
        && same_kind(daily_value, &b.daily_value)
        && same_kind(reference_price, &b.reference_price)
        && same_kind(reference_price_updated_time, &b.reference_price_updated_time)
        && both(allocation_breakdown, &b.allocation_breakdown, |a, b| each(a, b, linear_part))
        && *extra == b.extra
}

fn linear_part(a: &LinearAllocation, b: &LinearAllocation) -> bool {
    let LinearAllocation {
        allocation_name,
        standard_allocation_name,
        linear_amount,
        linear_value,
        reference_price,
        reference_price_updated_time,
        daily_amount,
        daily_value,
        duration_of_rate,
        begin_date,
        end_date,
        unlock_precision,
        extra,
    } = a;
    *allocation_name == b.allocation_name
        && *standard_allocation_name == b.standard_allocation_name
        && *linear_amount == b.linear_amount
        && *daily_amount == b.daily_amount
        && *duration_of_rate == b.duration_of_rate
        && *begin_date == b.begin_date
        && *end_date == b.end_date
        && *unlock_precision == b.unlock_precision
        && same_kind(linear_value, &b.linear_value)
        && same_kind(daily_value, &b.daily_value)
        && same_kind(reference_price, &b.reference_price)
        && same_kind(reference_price_updated_time, &b.reference_price_updated_time)
        && *extra == b.extra
}

#[cfg(test)]
mod tests;
