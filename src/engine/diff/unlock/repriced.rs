//! An answer in which nothing but prices is another: the usual one. Whoever knows that need not align anything.

use std::{collections::HashMap, mem::discriminant, sync::Arc};

use super::same::has_linear;
use crate::diff::{DateWindow, Diff, RowAnomalies};
use model::{
    rows::Put,
    supply::{Record, Timestamp, Tracked},
    wire::{CliffAllocation, CliffUnlocks, CommittedClaim, LinearAllocation, LinearUnlocks, Maybe, UnlockEvent},
};

/// What to write of an answer that has each event of which it speaks once and as it was known in every fact, with other prices at most.
/// None where that is not so, or not plain: then [`diff_unlocks`](super::diff_unlocks) says what it is. `window` and `shows_linear`
/// are as there; nothing may be missing already.
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
    let (mut put, mut odd, mut last) = (Vec::with_capacity(after.len()), RowAnomalies::default(), None);
    for event in after {
        let date = event.unlock_date.copied()?;
        odd.reordered += u32::from(last.is_some_and(|last| last > date));
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
    // Of the rest the answer does not speak: of other days, or of segments.
    let is_hidden = |event: &UnlockEvent| {
        shows_linear == Some(false) && event.cliff_unlocks.get().is_none() && has_linear(event)
            || !window.contains(event.unlock_date.copied())
    };
    known.values().all(|(_, event)| is_hidden(event)).then(|| Diff { put, odd, ..Diff::default() })
}

/// Whether a price is told by both or by neither, and in the same way.
fn told<T>(a: &Maybe<T>, b: &Maybe<T>) -> bool {
    discriminant(a) == discriminant(b)
}

fn both<T>(a: &Maybe<T>, b: &Maybe<T>, is_same: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Maybe::Value(a), Maybe::Value(b)) => is_same(a, b),
        _ => told(a, b),
    }
}

fn each<T>(a: &[T], b: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

// Each of these takes an object apart, so that a new field must be thought of here.

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
        && told(reference_price, &b.reference_price)
        && told(reference_price_updated_time, &b.reference_price_updated_time)
        && told(latest_update_date, &b.latest_update_date)
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
        && told(cliff_value, &b.cliff_value)
        && told(total_cliff_value, &b.total_cliff_value)
        && told(value_to_market_cap, &b.value_to_market_cap)
        && told(reference_price, &b.reference_price)
        && told(reference_price_updated_time, &b.reference_price_updated_time)
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
        && told(cliff_value, &b.cliff_value)
        && told(reference_price, &b.reference_price)
        && told(reference_price_updated_time, &b.reference_price_updated_time)
        && *unlock_precision == b.unlock_precision
        && both(committed_claim, &b.committed_claim, claim)
        && *extra == b.extra
}

fn claim(a: &CommittedClaim, b: &CommittedClaim) -> bool {
    let CommittedClaim { amount, value, timestamp, extra } = a;
    *amount == b.amount && told(value, &b.value) && *timestamp == b.timestamp && *extra == b.extra
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
        && told(linear_value, &b.linear_value)
        && told(daily_value, &b.daily_value)
        && told(reference_price, &b.reference_price)
        && told(reference_price_updated_time, &b.reference_price_updated_time)
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
        && told(linear_value, &b.linear_value)
        && told(daily_value, &b.daily_value)
        && told(reference_price, &b.reference_price)
        && told(reference_price_updated_time, &b.reference_price_updated_time)
        && *extra == b.extra
}

#[cfg(test)]
mod tests;
