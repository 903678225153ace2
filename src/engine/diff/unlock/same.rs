//! Compares single events: their schedule facts, and whether a response covers their linear segments.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::diff::{
    index::{New, Old},
    tolerances::{close, close_or_none},
    tranche::Events,
};
use model::{
    rows::Put,
    supply::{Record, RecordKey, Timestamp},
    wire::{CliffAllocation, LinearAllocation, Maybe, Text, UnlockEvent},
};

/// Returns what to write for a known event, or `None` if no field changed.
pub(super) fn event_put(
    key: &RecordKey,
    before: &UnlockEvent,
    after: &UnlockEvent,
    covers_linear: bool,
    tolerance: f64,
) -> Option<Put> {
    let mut record = after.clone();
    if !covers_linear && after.linear_unlocks.get().is_none() {
        record.linear_unlocks = before.linear_unlocks.clone();
    }
    if record == *before {
        return None;
    }
    let is_new_version = !same_schedule(before, &record, tolerance);
    Some(Put { key: key.clone(), record: Record::Unlock(Arc::new(record)), is_new_version })
}

/// Returns whether an event has linear segments.
pub(super) fn has_linear(event: &UnlockEvent) -> bool {
    event
        .linear_unlocks
        .get()
        .is_some_and(|linear| !linear.allocation_breakdown.items().is_empty() || linear.linear_amount.get().is_some())
}

/// Returns the linear segments of an event whose cliffs were removed, if the response does not cover segments.
pub(super) fn remaining_segments(event: &UnlockEvent, covers_linear: bool) -> Option<Record> {
    if covers_linear || !has_linear(event) {
        return None;
    }
    Some(Record::Unlock(Arc::new(UnlockEvent { cliff_unlocks: Maybe::Null, ..event.clone() })))
}

/// Returns an event with all its dates moved by `shift` milliseconds.
pub(super) fn moved_by(event: &UnlockEvent, shift: i64) -> UnlockEvent {
    let mut moved = event.clone();
    let later = |date: &mut Maybe<Timestamp>| {
        if let Some(at) = date.copied().and_then(|at| at.checked_add_signed(TimeDelta::milliseconds(shift))) {
            *date = at.into();
        }
    };
    later(&mut moved.unlock_date);
    for part in moved.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
        later(&mut part.unlock_date);
    }
    for part in moved.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut()).into_iter().flatten() {
        later(&mut part.begin_date);
        later(&mut part.end_date);
    }
    moved
}

/// Returns whether a response of an unknown endpoint version covers linear segments.
///
/// Later versions do not. A response without segments, whose cliffs are mostly the known ones, comes from such a version.
pub(super) fn covers_linear(old: &Events<'_, Old>, new: &Events<'_, New>, tolerance: f64) -> bool {
    if !old.iter().any(|event| has_linear(event)) || new.iter().any(|event| event.linear_unlocks.get().is_some()) {
        return true;
    }
    fn cliffs<S>(events: &Events<'_, S>) -> Vec<(Timestamp, f64)> {
        let mut found: Vec<(Timestamp, f64)> =
            events.iter().filter_map(|event| Some((event.unlock_date.copied()?, event.cliff_amount()?))).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        found
    }
    let (before, after) = (cliffs(old), cliffs(new));
    let same = before.iter().filter(|(at, amount)| {
        let from = after.partition_point(|(other, _)| other < at);
        after[from..].iter().take_while(|(other, _)| other == at).any(|(_, other)| close(*amount, *other, tolerance))
    });
    same.count() * 2 < before.len().max(1)
}

/// Returns whether two events agree in every schedule fact. Values and prices may differ.
pub(in crate::diff) fn same_schedule(a: &UnlockEvent, b: &UnlockEvent, tolerance: f64) -> bool {
    let text = |a: &Maybe<Text>, b: &Maybe<Text>| a.as_str() == b.as_str();
    let amount = |a: &Maybe<f64>, b: &Maybe<f64>| close_or_none(a.copied(), b.copied(), tolerance);
    let whole = |a: Option<f64>, b: Option<f64>| close_or_none(a, b, tolerance);
    if a.unlock_date.copied() != b.unlock_date.copied()
        || !text(&a.token_name, &b.token_name)
        || !text(&a.token_symbol, &b.token_symbol)
        || !text(&a.listed_method, &b.listed_method)
        || !text(&a.data_source, &b.data_source)
    {
        return false;
    }
    let cliffs = |event: &'_ UnlockEvent| -> Vec<CliffAllocation> {
        let mut parts = event.cliff_unlocks.get().map_or_else(Vec::new, |cliffs| cliffs.allocation_breakdown.items().to_vec());
        let amount = |part: &CliffAllocation| part.cliff_amount.copied().unwrap_or(-1.0);
        parts.sort_by(|a, b| a.allocation_name.as_str().cmp(&b.allocation_name.as_str()).then(amount(a).total_cmp(&amount(b))));
        parts
    };
    let linears = |event: &'_ UnlockEvent| -> Vec<LinearAllocation> {
        let mut parts = event.linear_unlocks.get().map_or_else(Vec::new, |linears| linears.allocation_breakdown.items().to_vec());
        let amount = |part: &LinearAllocation| part.linear_amount.copied().unwrap_or(-1.0);
        parts.sort_by(|a, b| {
            (a.allocation_name.as_str(), a.begin_date.copied(), a.end_date.copied())
                .cmp(&(b.allocation_name.as_str(), b.begin_date.copied(), b.end_date.copied()))
                .then(amount(a).total_cmp(&amount(b)))
        });
        parts
    };
    let same_cliff = |a: &CliffAllocation, b: &CliffAllocation| {
        text(&a.allocation_name, &b.allocation_name)
            && text(&a.standard_allocation_name, &b.standard_allocation_name)
            && text(&a.unlock_precision, &b.unlock_precision)
            && amount(&a.cliff_amount, &b.cliff_amount)
            && match (a.committed_claim.get(), b.committed_claim.get()) {
                (Some(a), Some(b)) => amount(&a.amount, &b.amount) && a.timestamp.copied() == b.timestamp.copied(),
                (None, None) => true,
                _ => false,
            }
    };
    let same_linear = |a: &LinearAllocation, b: &LinearAllocation| {
        text(&a.allocation_name, &b.allocation_name)
            && text(&a.standard_allocation_name, &b.standard_allocation_name)
            && text(&a.unlock_precision, &b.unlock_precision)
            && a.begin_date.copied() == b.begin_date.copied()
            && a.end_date.copied() == b.end_date.copied()
            && amount(&a.linear_amount, &b.linear_amount)
    };
    let (ca, cb, la, lb) = (cliffs(a), cliffs(b), linears(a), linears(b));
    ca.len() == cb.len()
        && la.len() == lb.len()
        && ca.iter().zip(&cb).all(|(a, b)| same_cliff(a, b))
        && la.iter().zip(&lb).all(|(a, b)| same_linear(a, b))
        && (!ca.is_empty() || whole(a.cliff_amount(), b.cliff_amount()))
        && (!la.is_empty()
            || whole(
                a.linear_unlocks.get().and_then(|l| l.linear_amount.copied()),
                b.linear_unlocks.get().and_then(|l| l.linear_amount.copied()),
            ))
}
