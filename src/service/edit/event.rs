//! Edits of a single unlock event.

use crate::payload::totals::{total_cliffs, total_linears};
use model::Timestamp;
use model::wire::{Maybe, Text, UnlockEvent};

/// Moves an event with its allocation shares and linear segments.
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

/// Renames an allocation. Returns whether the event has it.
pub fn rename(event: &mut UnlockEvent, from: &str, to: &str) -> bool {
    let mut is_found = false;
    let mut rename = |name: &mut Maybe<Text>| {
        if name.as_str() == Some(from) {
            *name = to.to_owned().into();
            is_found = true;
        }
    };
    if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
        && let Maybe::Value(items) = &mut cliffs.allocation_breakdown
    {
        items.iter_mut().for_each(|item| rename(&mut item.allocation_name));
    }
    if let Maybe::Value(linears) = &mut event.linear_unlocks
        && let Maybe::Value(items) = &mut linears.allocation_breakdown
    {
        items.iter_mut().for_each(|item| rename(&mut item.allocation_name));
    }
    is_found
}

/// Multiplies all amounts, daily amounts, and values of an event and of its allocation shares, and the share of market cap. Unknown
/// numbers stay unknown.
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

/// Adds the allocation shares of `event` to another event at the same date.
pub(super) fn merge(target: &mut UnlockEvent, event: UnlockEvent) {
    target.latest_update_date = event.latest_update_date;
    match (&mut target.cliff_unlocks, event.cliff_unlocks) {
        (Maybe::Value(target), Maybe::Value(more)) => {
            append(&mut target.allocation_breakdown, more.allocation_breakdown);
            total_cliffs(target);
        }
        (target, more @ Maybe::Value(_)) => *target = more,
        _ => {}
    }
    match (&mut target.linear_unlocks, event.linear_unlocks) {
        (Maybe::Value(target), Maybe::Value(more)) => {
            append(&mut target.allocation_breakdown, more.allocation_breakdown);
            total_linears(target);
        }
        (target, more @ Maybe::Value(_)) => *target = more,
        _ => {}
    }
}

fn append<T>(list: &mut Maybe<Vec<T>>, more: Maybe<Vec<T>>) {
    let more = more.into_option().unwrap_or_default();
    match list {
        Maybe::Value(list) => list.extend(more),
        list => *list = more.into(),
    }
}
