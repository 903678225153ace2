//! Changes of one unlock event: moved, resized, repriced, joined with another.

use crate::answer::totals::{total_cliffs, total_linears};
use model::Timestamp;
use model::wire::{Maybe, UnlockEvent};

/// Moves an event, its parts and its linear segments.
pub fn shift(event: &mut UnlockEvent, from: Timestamp, to: Timestamp) {
    event.unlock_date = to.into();
    if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
        && let Maybe::Value(items) = &mut cliffs.allocation_breakdown
    {
        for item in items {
            item.unlock_date = to.into();
        }
    }
    if let Maybe::Value(linears) = &mut event.linear_unlocks
        && let Maybe::Value(items) = &mut linears.allocation_breakdown
    {
        for item in items {
            for date in [&mut item.begin_date, &mut item.end_date] {
                if let Maybe::Value(date) = date {
                    *date = date.checked_add_signed(to - from).unwrap_or(*date);
                }
            }
        }
    }
}

/// Multiplies all amounts and values of an event.
pub fn scale(event: &mut UnlockEvent, factor: f64) {
    let scale = |amount: &mut Maybe<f64>| {
        if let Maybe::Value(amount) = amount {
            *amount *= factor;
        }
    };
    if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
        [&mut cliffs.cliff_amount, &mut cliffs.cliff_value, &mut cliffs.value_to_market_cap].into_iter().for_each(scale);
        if let Maybe::Value(items) = &mut cliffs.allocation_breakdown {
            for item in items {
                [&mut item.cliff_amount, &mut item.cliff_value].into_iter().for_each(scale);
            }
        }
    }
    if let Maybe::Value(linears) = &mut event.linear_unlocks {
        [&mut linears.linear_amount, &mut linears.linear_value, &mut linears.daily_amount, &mut linears.daily_value]
            .into_iter()
            .for_each(scale);
        if let Maybe::Value(items) = &mut linears.allocation_breakdown {
            for item in items {
                [&mut item.linear_amount, &mut item.linear_value, &mut item.daily_amount, &mut item.daily_value]
                    .into_iter()
                    .for_each(scale);
            }
        }
    }
}

/// Adds the parts of an event to another one of the same instant.
pub(super) fn merge(there: &mut UnlockEvent, event: UnlockEvent) {
    there.latest_update_date = event.latest_update_date;
    match (&mut there.cliff_unlocks, event.cliff_unlocks) {
        (Maybe::Value(there), Maybe::Value(more)) => {
            let items = more.allocation_breakdown.into_option().unwrap_or_default();
            match &mut there.allocation_breakdown {
                Maybe::Value(list) => list.extend(items),
                list => *list = items.into(),
            }
            total_cliffs(there);
        }
        (there, more @ Maybe::Value(_)) => *there = more,
        _ => {}
    }
    match (&mut there.linear_unlocks, event.linear_unlocks) {
        (Maybe::Value(there), Maybe::Value(more)) => {
            let items = more.allocation_breakdown.into_option().unwrap_or_default();
            match &mut there.allocation_breakdown {
                Maybe::Value(list) => list.extend(items),
                list => *list = items.into(),
            }
            total_linears(there);
        }
        (there, more @ Maybe::Value(_)) => *there = more,
        _ => {}
    }
}
